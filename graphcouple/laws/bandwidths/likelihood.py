"""Scales of largest leave-one-out likelihood."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from graphcouple._numba.calibration import likelihood_rows
from graphcouple._numba.threads import over_rows
from graphcouple._support.validation import check_integer, check_positive, warn
from graphcouple.graphs import FloatArray
from graphcouple.kernels import Gaussian
from graphcouple.laws.bandwidths.base import Bandwidth, ConstantBandwidth, DistanceRows

# The share of least likely rows that the likelihood leaves out: otherwise one outlier would set the scale. For 1,500
# normal points in the plane, 1 % gives the scale of Silverman's rule, 0 % a quarter more, 5 % a quarter less.
_TRIMMED = 0.01

# The share of a row's density that is uniform: without it, a few outliers would make the scale as wide as the data.
_ANYWHERE = 0.01

# If scales further apart than this factor have likelihoods within a standard error, a warning says so.
_FLAT = 4.0

# With fewer than twice this many other points, most of them are neighbours.
_FEW = 10

# Neighbours that estimate the intrinsic dimension: fewer give a noisier estimate, more see the data's curvature.
_NEAR = 20

# By noise, an estimated dimension may exceed the true dimension by this factor.
_JUST_ABOVE = 1.25

# Number of scales on the first grid, and of steps of the golden-section search, which leave 1e-6 of an interval.
_TRIED, _STEPS = 40, 30


@dataclass(frozen=True)
class LeaveOneOut(Bandwidth):
    """Scales of largest leave-one-out likelihood of the points, in place of a perplexity.

    Under prior D, point i is drawn from the kernel around the end of its only edge, so its density given the others is
    p(x_i | x_−i) = mean_j k(d_ij²/τ²)/(c τ^d), with c = ∫ k. The scale maximises Σ_i log p(x_i | x_−i). At the maximum,
    the slope of log mean_j k in log τ, a local dimension at scale τ, has the mean d.

    Of several maxima, the one at the smallest scale is taken: a wider kernel reaches across gaps, where the local
    dimension is higher. For the same reason the search ends where the local dimension stops falling just above d.

    Points at distance 0 of i are left out together with i, since copies would give τ = 0. For robustness, the least
    likely 1 % of rows, at least one, do not count, and each p includes a share of 1 % of the density at the largest
    scale tried.

    Parameters
    ----------
    by_row : bool, default=False
        Whether each row has a scale of its own, which maximises p(x_i | x_−i). A row is one draw, so these scales
        vary by more than the density does.
    dim : float, optional
        The dimension d of the kernel, at least 1. By default the intrinsic dimension, by maximum likelihood from the
        distances of each point to its 20 nearest places. The number of columns, if large, gives perplexities near 1.
    n_points : int, optional
        The number of points that chose `dim`, for scales by row; by default the number of rows.

    Raises
    ------
    ValueError
        When `dim` is below 1; in `fit`, when the kernel is not bounded and integrable in d dimensions, or all points
        are in one place.
    TypeError
        When `by_row` is not a bool.

    Warns
    -----
    UserWarning
        When the effective neighbours are more than half of the neighbours that rows keep; when scales that differ by a
        factor of 4 are equally likely, or the likeliest scale makes most points neighbours.

    Notes
    -----
    The shared scale needs distances to all points. If a graph has edges to near points only, the scale is chosen on 100
    to 2,000 rows of about 5 million such distances; more than 200,000 points raise an error. Scales by row need all
    pairs.

    References
    ----------
    Habbema, Hermans and van den Broek (1974) for the likelihood; Levina and Bickel (2005) for the dimension, with the
    mean of MacKay and Ghahramani. Graph-coupling paper, remark 1, for the bandwidths of a law.

    Examples
    --------
    Two points at distance 3 have one dimension, and the likelihood exp(−9/(2τ²))/τ:

    >>> import numpy as np
    >>> import graphcouple as gc
    >>> points = np.array([[0.0], [3.0]])
    >>> gc.LeaveOneOut(dim=1).fit((points - points.T) ** 2)[1].round(4)
    array([3., 3.])

    The resulting perplexity for the digits:

    >>> X, y = gc.datasets.load("digits")
    >>> law = gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut()).posterior(X[:500])
    >>> bool(50 < np.exp(law.entropy() / 500) < 150)
    True
    """

    by_row: bool = False
    dim: float | None = None
    n_points: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.by_row, bool | np.bool_):
            raise TypeError(f"by_row must be True or False, got {self.by_row!r}.")
        if self.dim is not None and check_positive("dim", self.dim) < 1.0:
            raise ValueError(f"dim must be at least 1, got {self.dim}.")
        if self.n_points is not None:
            check_integer("n_points", self.n_points, 2)

    @property
    def suited_neighbors(self) -> int | None:
        """Three times a typical resulting perplexity; all points for scales by row."""
        return None if self.by_row else 150

    @property
    def looks_at_all(self) -> bool:
        """Whether the shared scale is chosen from distances to all points; see `Bandwidth`."""
        return not self.by_row

    def settled(self, rows: DistanceRows, n_stored: int | None = None) -> Bandwidth:
        """Return the constant scale of all rows, or the bandwidth by row with its dimension; see `Bandwidth`."""
        dim = _intrinsic_dimension(rows) if self.dim is None else float(self.dim)
        # The dimension is seldom an integer, which `assumptions` would need. Measured tails are rounded.
        if not (rows.kernel.assumptions(1).bounded and rows.kernel.tail > dim + 1e-9):
            raise ValueError(
                f"{rows.kernel!r} gives points no density in {dim:.3g} dimensions: it is not bounded and "
                "integrable there; choose a faster decay, a smaller dim, or Perplexity."
            )
        if self.by_row:
            return replace(self, dim=dim, n_points=rows.support.n_nodes)
        evidence = _Likelihoods(rows, dim)
        scale, effective, (low, high) = evidence.shared_scale()
        if high > _FLAT * low:
            warn(
                f"scales from {low:.3g} to {high:.3g} are about as likely as {scale:.3g}, so other rows may choose "
                "another. Set a ConstantBandwidth or a Perplexity if it matters."
            )
        if effective > 0.5 * evidence.n_points >= _FEW:
            warn(
                f"the likeliest scale, {scale:.3g}, makes neighbors of {effective:.0f} of {evidence.n_points} points: "
                f"they have no structure of {dim:.3g} dimensions."
            )
        elif n_stored is not None and effective > 0.5 * n_stored:
            warn(
                f"the scale of largest likelihood, {scale:.3g}, has {effective:.0f} effective neighbors, and rows keep "
                f"{n_stored}. Set n_neighbors to {3 * round(effective)}."
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
        # A row's own copies, at distance 0, do not count.
        self.counts = None if rows.copies is None else rows.copies.edges
        self.n_points = int(np.bincount(rows.support.rows, self.counts).max())
        self.weights: FloatArray = np.ones(self.n) if rows.copies is None else rows.copies.weights
        # The scales that are tried suit a Gaussian kernel, and are larger for kernels of a smaller length.
        self.widening = np.log(Gaussian().length / self.kernel.length)
        positive = np.where(self.sq_dist > 0, self.sq_dist, np.inf)
        with np.errstate(divide="ignore"):
            self.nearest = 0.5 * np.log(np.minimum.reduceat(positive, self.indptr[:-1]))
            self.furthest = 0.5 * np.log(np.maximum.reduceat(self.sq_dist, self.indptr[:-1]))
        if not np.isfinite(self.furthest).any():
            raise ValueError("all points are in one place, where all scales are as likely; look at how X was made.")

    def likelihoods(self, log_scale: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return each row's log-likelihood, and its effective number of neighbours."""
        value, effective = np.empty(self.n), np.empty(self.n)
        edges = (self.sq_dist, self.indptr, self.kernel)
        over_rows(self.n, self.n_jobs, likelihood_rows, *edges, log_scale, value, effective, self.counts)
        return value - self.dim * log_scale, effective

    def shared_scale(self) -> tuple[float, float, tuple[float, float]]:
        """Return the likeliest scale, its effective number of neighbours, and the scales that are about as likely."""
        known = np.isfinite(self.furthest)
        nearest, furthest = (self._median(logs, known) for logs in (self.nearest, self.furthest))
        tried = np.linspace(nearest - 0.5 * np.log(self.dim) - 2.0, furthest + 2.0, _TRIED) + self.widening
        anywhere = np.log(_ANYWHERE) + self.likelihoods(np.full(self.n, tried[-1]))[0][known]

        def values(log_scale: float) -> FloatArray:
            own = self.likelihoods(np.full(self.n, log_scale))[0][known]
            return np.logaddexp(np.log1p(-_ANYWHERE) + own, anywhere)

        def loss(log_scale: float) -> float:
            return -self._trimmed_mean(values(log_scale), known)

        rows = np.array([values(at) for at in tried])
        # At smaller scales, the uniform share dominates for most points.
        begin = int(np.argmax((rows > anywhere + np.log(2.0)).mean(axis=1) > 0.5))
        tried, rows = tried[begin:], rows[begin:]
        losses = -np.array([self._trimmed_mean(row, known) for row in rows])
        bounds = _first_maximum(losses, np.diff(rows, axis=0).std(axis=1) / np.sqrt(known.sum()), tried, self.dim)
        log_scale = float(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6}).x)
        drops = values(log_scale) - rows
        unlike = np.abs(drops.mean(axis=1)) > drops.std(axis=1) / np.sqrt(known.sum())
        # The interval of scales around the likeliest within a standard error.
        near = np.exp(tried[np.cumsum(unlike) == np.interp(log_scale, tried, np.cumsum(unlike)).round()])
        near = near if near.size else np.exp([log_scale])
        effective = self.likelihoods(np.full(self.n, log_scale))[1]
        n_effective, likely = self._median(effective, ~np.isnan(effective)), (float(near.min()), float(near.max()))
        return float(np.exp(log_scale)), n_effective, likely

    def _median(self, values: FloatArray, known: NDArray[np.bool_]) -> float:
        """Return the median over rows, weighted by copies."""
        return float(np.quantile(values[known], 0.5, method="inverted_cdf", weights=self.weights[known]))

    def _trimmed_mean(self, values: FloatArray, known: NDArray[np.bool_]) -> float:
        """Return the mean over rows without the least likely, weighted by copies."""
        weights, order = self.weights[known], np.argsort(values)
        total = np.cumsum(weights[order])
        masses = np.clip(total - max(_TRIMMED * total[-1], 1.0), 0.0, weights[order])
        # Rows out of reach have a likelihood of −∞.
        kept = masses > 0.0
        return float(masses[kept] @ values[order][kept] / masses[kept].sum())

    def own_scales(self) -> FloatArray:
        """Return each row's scale of largest likelihood; rows without a maximum get the median of the others."""
        known = np.isfinite(self.furthest)
        low = np.where(known, self.nearest, 0.0) - 0.5 * np.log(self.dim) - 1.0 + self.widening
        high = np.where(known, self.furthest, 0.0) + 1.0 + self.widening
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
        return np.where(known, scale, np.median(scale[known]))


def _first_maximum(losses: FloatArray, errors: FloatArray, tried: FloatArray, dim: float) -> tuple[float, float]:
    """Return an interval of scales: where the local dimension first falls to `dim`, or stops falling just above it."""
    steps = np.diff(tried)
    seen, errors = dim - np.diff(losses) / steps, errors / steps
    least = 0
    for at in range(seen.size):
        if seen[at] <= dim:
            return float(tried[max(at - 1, 0)]), float(tried[at + 1])
        if seen[at] < seen[least]:
            least = at
        elif seen[least] < _JUST_ABOVE * dim and seen[at] > seen[least] + 2.0 * errors[at]:
            # Take the middle of the step, since the likelihood has no maximum there.
            middle = 0.5 * float(tried[least] + tried[least + 1])
            return middle - 1e-6, middle + 1e-6
    return float(tried[-2]), float(tried[-1])


def _intrinsic_dimension(rows: DistanceRows) -> float:
    """Return the intrinsic dimension by distances to near places, from 1 to the dimension of a simplex."""
    inverses, counts = 0.0, 0.0
    place, n_places = rows.end_places()
    for nodes, edges, part in rows.support.in_parts():
        sq_dist, ends = rows.sq_dist[edges], place[part.indices]
        if n_places < place.size:
            _, first = np.unique(part.rows * np.int64(place.size) + ends, return_index=True)
            starts, sq_dist = part.rows[first], sq_dist[first]
        else:
            starts = part.rows
        order = np.lexsort((sq_dist, starts))
        order = order[sq_dist[order] > 0]
        starts, logs = starts[order], 0.5 * np.log(sq_dist[order])
        rank = np.arange(starts.size) - np.searchsorted(starts, np.arange(part.n_nodes))[starts]
        near = rank < _NEAR
        logs, rank = logs[near], rank[near]
        begin = np.flatnonzero(rank == 0)
        lengths = np.diff(np.append(begin, rank.size))
        furthest = np.repeat(logs[begin + lengths - 1], lengths)
        # A row counts as often as it has copies.
        weights = np.ones(begin.size) if rows.copies is None else rows.copies.weights[nodes][starts[near][begin]]
        inverses += float((np.repeat(weights, lengths) * (furthest - logs)).sum())
        counts += float(weights @ (lengths - 1))
    most = max(n_places - 1.0, 1.0)
    return max(min(counts / inverses, most), 1.0) if inverses > counts / most else most
