"""Scales that make each point most likely, given the others."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from graphcouple._numba.threads import over_rows
from graphcouple._validation import check_integer, check_positive
from graphcouple.graphs import FloatArray, Support
from graphcouple.laws.bandwidths.base import Bandwidth, ConstantBandwidth, DistanceRows

# The share of rows, the least likely, that the likelihood leaves out: one far outlier would set the scale otherwise. Of
# 1,500 normal points in the plane, 1 % gives the scale of Silverman's rule, 0 and 5 % one a quarter larger and smaller.
_TRIMMED = 0.01

# Neighbours whose distances give the intrinsic dimension.
_NEAR = 20

# A dimension up to this many times the dimension of the points is noise of the estimate.
_JUST_ABOVE = 1.25

# Scales tried before the best of them is refined, and steps of the golden section, which leave 1e-6 of an interval.
_TRIED, _STEPS = 40, 30


@dataclass(frozen=True)
class LeaveOneOut(Bandwidth):
    """Scales of largest leave-one-out likelihood: the evidence of the points under the law, and no perplexity to set.

    Under prior D, point i is drawn from the kernel around the end of its only edge, so that the others give it the
    density p(x_i | x_−i) = mean_j k(d_ij²/τ²)/(c τ^d), with c = ∫ k. The scale maximises Σ_i log p(x_i | x_−i). There
    the slope of log mean_j k in log τ, which is the dimension seen at scale τ, has the mean d.

    If there are several maxima, the first is taken, from small scales to large: a wider kernel reaches across gaps and
    sees more dimensions. For the same reason the search ends where the dimension seen stops falling just above d.

    Points at distance 0 of i are left out together with it, since copies would ask for τ = 0, and the 1 % of rows that
    are least likely, at least one, count as outliers.

    Parameters
    ----------
    by_row : bool, default=False
        Whether each row has a scale of its own, which maximises p(x_i | x_−i). A row is one draw, so these scales
        vary by more than the density does.
    dim : float, optional
        The dimension d of the kernel. By default the intrinsic dimension, by maximum likelihood from the 20 nearest
        distances of each point. The number of columns gives perplexities near 1 if there are many.

    Raises
    ------
    ValueError
        When `dim` is not above 0; in `fit`, when the kernel is not bounded and integrable in d dimensions, or all
        points are in one place.

    Warns
    -----
    UserWarning
        When the scale has more effective neighbours than half of those that rows keep; raise `n_neighbors` then.

    Notes
    -----
    The shared scale looks at distances to all points. Where a graph has edges to near points only, 500 of its rows do;
    they are as many as have 2e7 distances, and a graph has at most 200,000 points then. Scales by row need all pairs.

    References
    ----------
    Habbema, Hermans and van den Broek (1974) for the likelihood; Levina and Bickel (2005) for the dimension, with the
    mean of MacKay and Ghahramani. Graph-coupling paper, section 7, names bandwidths as future work.

    Examples
    --------
    Two points at distance 3 have one dimension, and the likelihood exp(−9/(2τ²))/τ:

    >>> import numpy as np
    >>> import graphcouple as gc
    >>> points = np.array([[0.0], [3.0]])
    >>> gc.LeaveOneOut(dim=1).fit((points - points.T) ** 2)[1].round(4)
    array([3., 3.])

    The perplexity that evidence chooses for the digits:

    >>> X, y = gc.datasets.load("digits")
    >>> law = gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut()).posterior(X[:500])
    >>> bool(50 < np.exp(law.entropy() / 500) < 150)
    True
    """

    by_row: bool = False
    dim: float | None = None
    n_points: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.dim is not None:
            check_positive("dim", self.dim)
        if self.n_points is not None:
            check_integer("n_points", self.n_points, 2)

    @property
    def suited_neighbors(self) -> int | None:
        """Three times the perplexity that evidence often chooses; all points for scales by row."""
        return None if self.by_row else 150

    @property
    def looks_at_all(self) -> bool:
        """Whether the shared scale is chosen from distances to all points; see `Bandwidth`."""
        return not self.by_row

    def settled(self, rows: DistanceRows, kept: int | None = None) -> Bandwidth:
        """Return the constant scale of all rows, or the bandwidth by row with its dimension; see `Bandwidth`."""
        dim = _intrinsic_dimension(rows.support, rows.sq_dist) if self.dim is None else float(self.dim)
        if not all(rows.kernel.assumptions(int(np.ceil(dim)))):
            raise ValueError(
                f"{rows.kernel!r} gives points no density in {dim:.3g} dimensions, for it is not bounded and "
                "integrable there; choose a faster decay, a smaller dim, or Perplexity."
            )
        if self.by_row:
            return replace(self, dim=dim, n_points=rows.support.n_nodes)
        scale, effective = _Likelihoods(rows, dim).shared_scale()
        if kept is not None and effective > 0.5 * kept:
            warnings.warn(
                f"the scale of largest likelihood, {scale:.3g}, has {effective:.0f} effective neighbors, and rows keep "
                f"{kept}. Set n_neighbors to {3 * round(effective)}.",
                UserWarning,
                stacklevel=5,
            )
        return ConstantBandwidth(scale)

    def fit_rows(self, rows: DistanceRows) -> tuple[FloatArray, FloatArray]:
        """Return no shift and the scales."""
        if not self.by_row or self.dim is None or self.n_points is None:
            return self.settled(rows).fit_rows(rows)
        fewest = int(np.diff(rows.support.indptr).min())
        if fewest < self.n_points - 1:
            raise ValueError(
                f"LeaveOneOut(by_row=True) compares each row with all others, but a row has {fewest} neighbors of "
                f"{self.n_points} points; pass n_neighbors=None, or by_row=False."
            )
        return np.zeros(rows.support.n_nodes), _Likelihoods(rows, self.dim).own_scales()


class _Likelihoods:
    """The likelihoods of rows of distances, at any scales."""

    def __init__(self, rows: DistanceRows, dim: float) -> None:
        self.n, self.indptr, self.kernel = rows.support.n_nodes, rows.support.indptr, rows.kernel
        self.n_jobs, self.sq_dist, self.dim = rows.n_jobs, rows.sq_dist, dim
        # Own copies, at distance 0, do not count.
        self.counts = None if rows.copies is None else rows.copies.edges
        self.weights: FloatArray = np.ones(self.n) if rows.copies is None else rows.copies.weights
        positive = np.where(self.sq_dist > 0, self.sq_dist, np.inf)
        with np.errstate(divide="ignore"):
            self.nearest = 0.5 * np.log(np.minimum.reduceat(positive, self.indptr[:-1]))
            self.furthest = 0.5 * np.log(np.maximum.reduceat(self.sq_dist, self.indptr[:-1]))
        if not np.isfinite(self.furthest).any():
            raise ValueError("all points are in one place, where every scale is as likely; look at how X was made.")

    def likelihoods(self, log_scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return each row's log-likelihood, and its effective number of neighbours."""
        from graphcouple._numba.calibration import likelihood_rows

        value, effective = np.empty(self.n), np.empty(self.n)
        edges = (self.sq_dist, self.indptr, self.kernel)
        over_rows(self.n, self.n_jobs, likelihood_rows, *edges, log_scale, value, effective, self.counts)
        return value - self.dim * log_scale, effective

    def shared_scale(self) -> tuple[float, float]:
        """Return the scale of largest likelihood of all rows but outliers, and its effective number of neighbours."""

        def loss(log_scale: float) -> float:
            values, _ = self.likelihoods(np.full(self.n, log_scale))
            order = np.argsort(values)[: np.isfinite(values).sum()]
            total = np.cumsum(self.weights[order])
            kept = np.clip(total - max(_TRIMMED * total[-1], 1.0), 0.0, self.weights[order])
            return -float(kept @ values[order] / kept.sum())

        known = np.isfinite(self.furthest)
        low = float(np.median(self.nearest[known])) - 0.5 * np.log(self.dim) - 2.0
        tried = np.linspace(low, np.median(self.furthest[known]) + 2.0, _TRIED)
        log_scale = _first_maximum(loss, tried, self.dim)
        effective = self.likelihoods(np.full(self.n, log_scale))[1]
        return float(np.exp(log_scale)), float(np.nanmedian(effective))

    def own_scales(self) -> FloatArray:
        """Return each row's scale of largest likelihood; rows without one get the median of the others."""
        known = np.isfinite(self.furthest)
        low = np.where(known, self.nearest, 0.0) - 0.5 * np.log(self.dim) - 1.0
        high = np.where(known, self.furthest, 0.0) + 1.0
        step = (high - low) / (_TRIED - 1)
        best, at = np.full(self.n, -np.inf), low
        for i in range(_TRIED):
            values = self.likelihoods(low + i * step)[0]
            at = np.where(values > best, low + i * step, at)
            best = np.fmax(best, values)
        left, right, inner = at - step, at + step, 0.5 * (np.sqrt(5.0) - 1.0)
        for _ in range(_STEPS):
            a, b = right - inner * (right - left), left + inner * (right - left)
            lower = self.likelihoods(a)[0] > self.likelihoods(b)[0]
            left, right = np.where(lower, left, a), np.where(lower, b, right)
        scale: FloatArray = np.exp(0.5 * (left + right))
        return np.where(known, scale, np.median(scale[known]) if known.any() else 1.0)


def _first_maximum(loss: Callable[[float], float], tried: FloatArray, dim: float) -> float:
    """Return the smallest scale at which the dimension seen has fallen to `dim`, or stops falling just above it."""
    from scipy.optimize import minimize_scalar

    seen = dim - np.diff([loss(at) for at in tried]) / np.diff(tried)
    fallen = seen <= dim
    flat = (seen[:-1] < _JUST_ABOVE * dim) & (np.diff(seen) > 0.0)
    first = int(np.argmax(fallen)) if fallen.any() else seen.size - 1
    if flat[:first].any():
        at = int(np.argmax(flat))
        return float(0.5 * (tried[at] + tried[at + 1]))
    bounds = tried[max(first - 1, 0)], tried[first + 1]
    return float(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6}).x)


def _intrinsic_dimension(support: Support, sq_dist: FloatArray) -> float:
    """Return the dimension in which distances to near points grow as they do, at most that of a simplex."""
    inverses, counts = 0.0, 0
    for _, edges, part in support.in_parts():
        order = np.lexsort((sq_dist[edges], part.rows))
        positive = order[sq_dist[edges][order] > 0]
        rows = part.rows[positive]
        rank = np.arange(rows.size) - np.searchsorted(rows, np.arange(part.n_nodes))[rows]
        near = rank < _NEAR
        logs, rows, rank = 0.5 * np.log(sq_dist[edges][positive[near]]), rows[near], rank[near]
        starts = np.flatnonzero(rank == 0)
        lengths = np.diff(np.append(starts, rows.size))
        furthest = np.repeat(logs[starts + lengths - 1], lengths)
        inverses += float((furthest - logs).sum())
        counts += int((lengths - 1).sum())
    most = support.n_nodes - 1.0
    return min(counts / inverses, most) if inverses > counts / most else most
