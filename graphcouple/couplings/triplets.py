"""TriMap's loss: of three points, the pair that is nearer in the input should be nearer on the map.

    L(Z) = Σ_(i,j,k) w_ijk d̃_ij/(d̃_ij + d̃_ik),    d̃ = 1 + d²,

where j is nearer to i than k is. With σ_i the mean distance of the third to fifth neighbour of i, and
s_ij = d²_ij/(σ_i σ_j) in the input, w = log_t(1 + s_ik − s_ij − least), with log_t x = (x^(1 − t) − 1)/(1 − t).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from graphcouple._numba.threads import over_rows
from graphcouple._support.validation import check_embedding, check_fraction, check_integer
from graphcouple.couplings.base import Objective
from graphcouple.couplings.pacmap import most_likely, other_points, points_not_near, sq_dist_along, warn_of_fewer
from graphcouple.couplings.recipes import Coupling, Problem
from graphcouple.graphs import FloatArray, IntArray, Support
from graphcouple.laws import GraphModel

# Sums are added up in this many parts, whatever the number of threads.
_PARTS = 8

# Weight of random triplets relative to the triplets of neighbours, as in trimap.
_RANDOM_SHARE = 0.1

# A point with a scale below this share of the median has copies: a tolerance.
_LEAST_SCALE = 1e-6


class TripletSum(Objective):
    """TriMap's loss over fixed triplets; the module has the formula.

    Parameters
    ----------
    triplets : ndarray of int, shape (n_triplets, 3)
        i, j and k.
    weights : ndarray of shape (n_triplets,)
    n_points : int
    n_jobs : int or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings.triplets import TripletSum
    >>> loss = TripletSum(np.array([[0, 1, 2]]), np.ones(1), 3)
    >>> loss.value(np.array([[0.0], [1.0], [3.0]])) == 2.0 / (2.0 + 10.0)
    True
    """

    lower_bound = 0.0

    def __init__(self, triplets: IntArray, weights: FloatArray, n_points: int, n_jobs: int | None = None) -> None:
        self.triplets, self.weights, self.n_points, self.n_jobs = triplets, weights, n_points, n_jobs

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        from graphcouple._numba.triplets import triplet_parts

        points = check_embedding(Z, n_points=self.n_points)
        bounds = np.linspace(0, len(self.triplets), _PARTS + 1).astype(np.int64)
        value, gradient = np.zeros(_PARTS), np.zeros((_PARTS, *points.shape))
        arrays = (bounds, points, self.triplets, self.weights, value, gradient)
        over_rows(_PARTS, self.n_jobs, triplet_parts, *arrays, at_least=1 if len(self.triplets) > 10_000 else _PARTS)
        return float(value.sum()), gradient.sum(axis=0).astype(points.dtype, copy=False)


@dataclass(frozen=True)
class TripletCoupling(Coupling):
    """TriMap's loss, on triplets of the most likely edges of the input's law and random points; see `TripletSum`.

    The law of the embedding is not used.

    Parameters
    ----------
    n_inliers, n_outliers, n_random : int, default=12, 4, 3
        Near points of each point; far points for each near one, none of them near; and triplets of random points, whose
        differences count a tenth.
    weight_temp : float, default=0.5
        t, in [0, 1).

    Raises
    ------
    TypeError, ValueError
        When a number is out of range.

    References
    ----------
    Amid and Warmuth (2019), TriMap: large-scale dimensionality reduction using triplets.

    Examples
    --------
    >>> import graphcouple as gc
    >>> print(gc.TriMap().sentence.coupling)
    triplets: 12 near points with 4 far ones each, and 3 random triplets of each point
    """

    n_inliers: int = 12
    n_outliers: int = 4
    n_random: int = 3
    weight_temp: float = 0.5

    places_points: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_integer("n_inliers", self.n_inliers, 1)
        check_integer("n_outliers", self.n_outliers, 1)
        check_integer("n_random", self.n_random, 0)
        check_fraction("weight_temp", self.weight_temp)

    def __str__(self) -> str:
        near = f"{self.n_inliers} near points with {self.n_outliers} far ones each"
        return f"triplets: {near}, and {self.n_random} random triplets of each point"

    def latex(self, latent: GraphModel) -> str:
        """Return the loss, by d̃ = 1 + d²."""
        return r"\sum_{ijk} w_{ijk} \frac{\tilde d_{ij}}{\tilde d_{ij} + \tilde d_{ik}}"

    def bind(self, problem: Problem) -> TripletSum:
        problem.refuse_weights(self)
        if problem.posterior.n_nodes < 3:
            raise ValueError(f"a triplet needs at least 3 points, got {problem.posterior.n_nodes}.")
        n, rng = problem.posterior.n_nodes, np.random.default_rng(problem.seed())
        distances = problem.distances
        n_inliers = min(self.n_inliers, max(1, n // 2 - 1))
        if self.n_inliers != type(self).n_inliers:
            warn_of_fewer("inliers", self.n_inliers, n_inliers, n, "n_inliers")
        near = most_likely(problem.posterior, n_inliers)
        # The most likely edges are those short beside the scales, so they are not always the shortest.
        edges = problem.posterior.support
        scales = _scales(edges, np.sqrt(distances.of_edges(edges, problem.n_jobs)))
        rows, columns = np.repeat(near.rows, self.n_outliers), np.repeat(near.indices, self.n_outliers)
        of_neighbors = np.column_stack([rows, columns, points_not_near(rng, near, rows)])
        triplets = np.concatenate([of_neighbors, _random(n, self.n_random, rng)])
        i, j, k = triplets.T
        nearer = sq_dist_along(distances, i, j, problem.n_jobs) / (scales[i] * scales[j])
        farther = sq_dist_along(distances, i, k, problem.n_jobs) / (scales[i] * scales[k])
        swap = (nearer > farther) & (np.arange(len(triplets)) >= rows.size)
        triplets[swap, 1:] = triplets[swap, :0:-1]
        weights = np.where(swap, nearer - farther, farther - nearer)
        weights[rows.size :] *= _RANDOM_SHARE
        weights -= weights.min()
        power = 1.0 - self.weight_temp
        return TripletSum(triplets, ((1.0 + weights) ** power - 1.0) / power, n, problem.n_jobs)


def _scales(edges: Support, dist: FloatArray) -> FloatArray:
    """Return the scale of each point, the mean distance of its third to fifth neighbours."""
    order = np.lexsort((dist, edges.rows))
    rank = np.arange(edges.n_edges) - edges.indptr[edges.rows]
    counts = np.diff(edges.indptr)
    # The last neighbours, if there are fewer.
    between = (rank >= np.minimum(2, counts - 1)[edges.rows]) & (rank < 5)
    sums = np.bincount(edges.rows[between], dist[order][between], minlength=counts.size)
    scales = sums / np.maximum(np.bincount(edges.rows[between], minlength=counts.size), 1)
    # Among copies the scale is 0, and all other points would be infinitely far; so it is without edges.
    typical = float(np.median(scales[scales > 0.0])) if (scales > 0.0).any() else 1.0
    return np.where(scales > _LEAST_SCALE * typical, scales, typical)


def _random(n: int, count: int, rng: np.random.Generator) -> IntArray:
    """Return triplets of each point and two different others."""
    rows = np.repeat(np.arange(n), count)
    first, second = other_points(rng, rows, n), other_points(rng, rows, n)
    while (same := np.flatnonzero(first == second)).size:
        second[same] = other_points(rng, rows[same], n)
    return np.column_stack([rows, first, second])
