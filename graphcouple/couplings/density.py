"""The density of the data around each point, as a term: where data are dense, so is the map.

Neighbour embeddings give each point the same number of neighbours, so dense and sparse clusters look alike. Let r_i be
the local radius of point i in the data, and ρ_i in the map,

    log r_i = Σ_j w_ij log d(x_i, x_j) / W_i,    ρ_i² = Σ_j w_ij q_ij ‖z_i − z_j‖² / Σ_j w_ij q_ij,    W_i = Σ_j w_ij,

with w_ij the sum of the means of both edges between i and j in the input's graph, and q_ij = 1/(1 + ‖z_i − z_j‖²), so
that neighbours far apart in the map do not count. The map shows the densities if ρ_i is a constant times r_i^s. So the
term is, with ē the mean of the e_i (the logarithm of the best constant),

    F(Z) = ½ Σ_i (e_i − ē)²,    e_i = log ρ_i − s log r_i.

With the mean kernel m_i = Σ_j w_ij q_ij / W_i, ρ_i² = (1 − m_i)/m_i, so F and its gradient are sums over the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcouple._numba.pairs import sum_edges
from graphcouple._support.validation import check_embedding, check_positive, check_weight
from graphcouple.couplings.base import balanced
from graphcouple.couplings.global_term import warn_if_few_points
from graphcouple.couplings.kinds import Delayed, InParts
from graphcouple.couplings.recipes import Problem, Term
from graphcouple.graphs import FloatArray, Support
from graphcouple.kernels import Student
from graphcouple.summation.edges import EdgeSum
from graphcouple.summation.radials import KernelValue

# Lengths in the data count as at least this share of their median, and this number is added to squared radii in the
# map, so that copies have finite logarithms. Kernels vary over lengths of about 1. Both are a hundredth of a length.
_LEAST_SHARE, _LEAST = 0.01, 1e-4

_NEAR = KernelValue(Student())


class LocalRadii(InParts, Delayed):
    """F(Z), the variance of the log-ratios of local radii in the map and in the data, times n/2; see the module's text.

    Parameters
    ----------
    support : Support
        The edges of the input's graph.
    means : ndarray of shape (n_edges,)
        The mean of each edge.
    targets : ndarray of shape (n_points,)
        s log r. Points without edges do not count.
    n_jobs : int or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import LocalRadii
    >>> from graphcouple.graphs import Support
    >>> Z = np.array([[0.0], [1.0], [10.0], [12.0]])
    >>> pairs = Support(np.array([0, 1, 2, 3, 4]), np.array([1, 0, 3, 2]))
    >>> for radii in ([3.0, 3.0, 6.0, 6.0], [1.0, 1.0, 1.0, 1.0]):
    ...     round(LocalRadii(pairs, np.ones(4), np.log(radii)).value(Z), 3)
    0.0
    0.24
    """

    lower_bound = 0.0

    def __init__(self, support: Support, means: FloatArray, targets: FloatArray, n_jobs: int | None = None) -> None:
        self._edges = EdgeSum(support, means, _NEAR, n_jobs).symmetric_edges
        self._degrees, self._targets, self._n_jobs = _sums(support, means), targets, n_jobs
        self._counts, self.n_points = self._degrees > 0, targets.size

    def _evaluate(self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True) -> tuple[float, Any]:
        points = check_embedding(Z, n_points=self.n_points)
        excess, near = self._excess(points)
        value = 0.5 * float((excess * excess).sum())
        if not with_gradient:
            return value, None
        slopes = -0.5 * excess * (1.0 / (1.0 - near + _LEAST) + 1.0 / near)
        slopes = np.divide(slopes, self._degrees, out=np.zeros_like(slopes), where=self._counts)
        indptr, indices, means = self._edges
        weights = means * (np.repeat(slopes, np.diff(indptr).astype(np.int64)) + slopes[indices])
        gradient = sum_edges(points, _NEAR, indptr, indices, weights, self._n_jobs, False, True)[1]
        return value, balanced(gradient).astype(points.dtype, copy=False)

    def _excess(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return e − ē, which is 0 for points without edges, and the mean kernel of each point's edges."""
        sums, _ = sum_edges(points, _NEAR, *self._edges, self._n_jobs, True, False)
        near = np.divide(sums, self._degrees, out=np.full(sums.size, 0.5), where=self._counts)
        near = np.clip(near, np.finfo(np.float64).tiny, 1.0)
        return self._centred(0.5 * np.log((1.0 - near + _LEAST) / near) - self._targets), near

    def _centred(self, values: FloatArray) -> FloatArray:
        """Return values minus their mean, and 0 for points without edges."""
        mean = values[self._counts].mean() if self._counts.any() else 0.0
        return np.where(self._counts, values - mean, 0.0)

    @property
    def shares(self) -> FloatArray:
        """The share of each point in the sum of squared deviations of the targets, or in n if n is larger."""
        squares = np.square(self._centred(self._targets))
        # One point far out shrinks the map of all others if its square is above about 1 for each of them.
        return squares / max(float(squares.sum()), self.n_points)


def _sums(support: Support, values: FloatArray) -> FloatArray:
    """Return for each node the sum of the values of the edges that begin or end there."""
    graph = support.to_csr(values)
    return np.asarray(graph.sum(axis=1, dtype=np.float64) + graph.sum(axis=0, dtype=np.float64)).ravel()


@dataclass(frozen=True)
class Density(Term):
    """The term weight · F(Z), which makes a map dense where the data are dense; see `LocalRadii`.

    F is half the sum of squared differences between the logarithms of local radii in the map and, times the slope, in
    the data, after the best constant. It joins when exaggeration has ended.

    Parameters
    ----------
    weight : float, default=3.0
        Weight of density against neighbourhoods; 0 is the plain method.
    slope : float, default=1.0
        A radius twice as large in the data is 2^slope times as large in the map.

    Raises
    ------
    TypeError, ValueError
        When a parameter is out of range; when fitted, if there are no points or distances, or points have weights.

    References
    ----------
    Narayan, Berger and Cho (2021), Assessing single-cell transcriptomic variability through density-preserving data
    visualization (densMAP and den-SNE). They maximise the correlation of the logarithms, which leaves the slope free.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(150, 5)), 20.0 + 5.0 * rng.normal(size=(150, 5))])
    >>> for terms in ([], [gc.Density()]):
    ...     Z = gc.UMAP(terms=terms, random_state=0).fit_transform(X)
    ...     bool(gc.metrics.density_match(X, Z).correlation > 0.8)
    False
    True
    """

    weight: float = 3.0
    slope: float = 1.0

    def __post_init__(self) -> None:
        check_weight(self.weight)
        check_positive("slope", self.slope)

    def bind(self, problem: Problem) -> LocalRadii:
        problem.refuse_weights(self)
        support, means = problem.posterior.support, problem.posterior.edge_means
        sq_dist = problem.distances.of_edges(support, problem.n_jobs)
        least = _LEAST_SHARE**2 * float(np.median(sq_dist[sq_dist > 0])) if sq_dist.any() else 1.0
        sums, degrees = _sums(support, means * np.log(sq_dist + least)), _sums(support, means)
        targets = 0.5 * self.slope * sums / np.where(degrees > 0, degrees, 1.0)
        radii = LocalRadii(support, means, targets, problem.n_jobs)
        warn_if_few_points(radii.shares, "Density", "lower the slope of the term")
        return radii

    def __str__(self) -> str:
        slope = "" if self.slope == 1.0 else f" to the power {self.slope:g}"
        return f"{self.weight:g} × local radii{slope}"
