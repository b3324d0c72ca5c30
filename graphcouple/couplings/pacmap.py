"""PaCMAP's loss: near pairs and mid-near pairs attract, further pairs repel, with weights that change in phases.

    L(Z) = w_near Σ_near d̃/(10 + d̃) + w_mid Σ_mid d̃/(10⁴ + d̃) + w_far Σ_far 1/(1 + d̃),    d̃ = 1 + d².

All three are sums over fixed edges of s_c(d²) = d̃/(c + d̃), for 1/(1 + d̃) = 1 − s_1. The near pairs are each
point's most likely edges under the input's law; a mid-near pair leads to the second nearest of six random points, a
further pair to a random point that is not a near one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from graphcouple._support.validation import changed, check_embedding, check_integer, warn
from graphcouple.couplings.base import Objective
from graphcouple.couplings.recipes import Coupling, Problem
from graphcouple.graphs import FloatArray, IntArray, Support, edges_of, largest_of_rows
from graphcouple.laws import GraphModel
from graphcouple.laws.priors import RandomGraph
from graphcouple.neighbors import Distances
from graphcouple.summation import EdgeSum, RadialFunction

PHASES = (100, 200)
"""The iterations at which the second and the third phase begin."""

# Weight of the mid-near pairs at first, and points drawn for each such pair, of which the second nearest is taken: both
# as in Wang et al. (2021).
_FIRST_MID_WEIGHT, _DRAWN = 1000.0, 6


@dataclass(frozen=True)
class Saturating(RadialFunction):
    """The radial function s_c = (1 + d²)/(c + 1 + d²), which no longer grows at distances far above √c."""

    c: float

    def potential(self, sq_dist: Any) -> Any:
        return (1.0 + sq_dist) / (self.c + 1.0 + sq_dist)

    def slope(self, sq_dist: Any) -> Any:
        """Return c/(c + 1 + d²)²."""
        return self.c / (self.c + 1.0 + sq_dist) ** 2


def phase_weights(iteration: int) -> tuple[float, float, float]:
    """Return the weights of near, mid-near and further pairs at an iteration."""
    first, second = PHASES
    if iteration < first:
        done = iteration / first
        return 2.0, (1.0 - done) * _FIRST_MID_WEIGHT + done * 3.0, 1.0
    return (3.0, 3.0, 1.0) if iteration < second else (1.0, 0.0, 1.0)


class PairwiseControlled(Objective):
    """PaCMAP's loss, with the weights of its last phase; `at` gives the earlier phases.

    `sums` are over the near, mid-near and further pairs, of `Saturating` functions with c = 10, 10⁴ and 1.
    """

    lower_bound = 0.0

    def __init__(self, sums: list[EdgeSum], n_points: int, n_far: int) -> None:
        self.sums, self.n_points, self._n_far = sums, n_points, n_far
        self.weights = (1.0, 0.0, 1.0)

    def at(self, iteration: int, Z: FloatArray) -> PairwiseControlled:
        return changed(self, weights=phase_weights(iteration))

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        points = check_embedding(Z, n_points=self.n_points)
        near, mid, far = self.weights
        value, gradient = far * self._n_far, np.zeros(points.shape)
        for weight, pairs in zip((near, mid, -far), self.sums, strict=True):
            if weight:
                own, slopes = pairs.evaluate(points)
                value += weight * own
                gradient += weight * slopes
        return value, gradient.astype(points.dtype, copy=False)


@dataclass(frozen=True)
class PairwiseControlledCoupling(Coupling):
    """PaCMAP's loss, between the most likely edges of the input's law and random pairs; see `PairwiseControlled`.

    The law of the embedding is not used.

    Parameters
    ----------
    n_near, n_mid, n_far : int, default=10, 5, 20
        Pairs of each kind for each point; fewer if there are fewer points.

    Raises
    ------
    TypeError, ValueError
        When a number is not an integer of at least 1.

    References
    ----------
    Wang, Huang, Rudin and Shaposhnik (2021), Understanding how dimension reduction tools work, section 5.

    Examples
    --------
    >>> import graphcouple as gc
    >>> print(gc.PaCMAP().sentence.coupling)
    pairwise controlled: 10 near, 5 mid-near and 20 further pairs of each point
    """

    n_near: int = 10
    n_mid: int = 5
    n_far: int = 20

    places_points: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name in ("n_near", "n_mid", "n_far"):
            check_integer(name, getattr(self, name), 1)

    def __str__(self) -> str:
        pairs = f"{self.n_near} near, {self.n_mid} mid-near and {self.n_far} further pairs"
        return f"pairwise controlled: {pairs} of each point"

    def bind(self, problem: Problem) -> PairwiseControlled:
        problem.refuse_weights(self)
        n, rng = problem.posterior.n_nodes, np.random.default_rng(problem.seed())
        if n < 3:
            raise ValueError(f"further pairs need at least 3 points, got {n}; add rows to X.")
        return self._among(n)._bound(problem, n, rng)

    def _among(self, n: int) -> PairwiseControlledCoupling:
        """Return the recipe with as many pairs as n points allow, in the same proportions."""
        wanted = self.n_near + self.n_mid + self.n_far
        if wanted < n:
            return self
        names = {"n_near": "near pairs", "n_mid": "mid-near pairs", "n_far": "further pairs"}
        fewer = {name: max(1, getattr(self, name) * n // (wanted + self.n_near)) for name in names}
        # Few points have fewer pairs by default than many.
        if self.n_near >= n or any(getattr(self, name) != getattr(type(self), name) for name in names):
            lowered = next((name for name in names if fewer[name] < getattr(self, name)), "n_near")
            numbers = names[lowered], getattr(self, lowered), fewer[lowered]
            warn_of_fewer(*numbers, n, "n_neighbors, mid_ratio or far_ratio")
        return replace(self, **fewer)

    def _bound(self, problem: Problem, n: int, rng: np.random.Generator) -> PairwiseControlled:
        near = most_likely(problem.posterior, self.n_near)
        mid, n_mid = self._mid_near(problem, n, rng)
        rows = np.repeat(np.arange(n), self.n_far)
        far, n_far = _counted(rows, points_not_near(rng, near, rows), n)
        kinds = ((near, np.ones(near.n_edges), 10.0), (mid, n_mid, 1e4), (far, n_far, 1.0))
        sums = [_edge_sum(pairs, counts, c, problem.n_jobs) for pairs, counts, c in kinds]
        return PairwiseControlled(sums, n, int(n_far.sum()))

    def latex(self, latent: GraphModel) -> str:
        """Return the loss of the last phase, by d̃ = 1 + d²."""
        return r"\sum_{near} \frac{\tilde d_{ij}}{10 + \tilde d_{ij}} + \sum_{far} \frac{1}{1 + \tilde d_{ij}}"

    def _mid_near(self, problem: Problem, n: int, rng: np.random.Generator) -> tuple[Support, FloatArray]:
        """Return pairs to the second nearest of six random points, and how often each was drawn."""
        distances = problem.distances
        rows, ends = np.repeat(np.arange(n), _DRAWN), []
        for _ in range(self.n_mid):
            drawn = other_points(rng, rows, n)
            sq_dist = sq_dist_along(distances, rows, drawn, problem.n_jobs)
            second = np.argsort(sq_dist.reshape(n, _DRAWN), axis=1)[:, 1]
            ends.append(drawn.reshape(n, _DRAWN)[np.arange(n), second])
        return _counted(np.tile(np.arange(n), self.n_mid), np.concatenate(ends), n)


def warn_of_fewer(pairs: str, wanted: int, drawn: int, n: int, parameter: str) -> None:
    """Warn that there are too few points for as many pairs of each as a user wants."""
    if drawn < wanted:
        warn(f"{wanted} {pairs} of each point are lowered to {drawn}, as there are {n} points. Lower {parameter}.")


def most_likely(posterior: RandomGraph, n_edges: int) -> Support:
    """Return the `n_edges` most likely edges of each row, or all if there are fewer."""
    return posterior.support.select(largest_of_rows(posterior.support, posterior.edge_means, n_edges))


def other_points(rng: np.random.Generator, rows: IntArray, n: int) -> IntArray:
    """Return a random point of n for each entry of `rows`, other than this entry."""
    drawn = rng.integers(n - 1, size=rows.size)
    return drawn + (drawn >= rows)


def points_not_near(rng: np.random.Generator, near: Support, rows: IntArray) -> IntArray:
    """Return a random point for each entry of `rows`, other than this entry and the points near it."""
    drawn = other_points(rng, rows, near.n_nodes)
    taken = np.flatnonzero(near.find(rows, drawn) >= 0)
    while taken.size:
        drawn[taken] = other_points(rng, rows[taken], near.n_nodes)
        taken = taken[near.find(rows[taken], drawn[taken]) >= 0]
    return drawn


def sq_dist_along(distances: Distances, rows: IntArray, columns: IntArray, n_jobs: int | None) -> FloatArray:
    """Return the squared distance of each pair. Pairs may be in any order, and may repeat."""
    pairs, _ = _counted(rows, columns, distances.n_points)
    return distances.of_edges(pairs, n_jobs)[pairs.find(rows, columns)]


def _counted(rows: IntArray, columns: IntArray, n: int) -> tuple[Support, FloatArray]:
    """Return each pair once, and how often it occurs."""
    matrix = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n, n))
    matrix.sum_duplicates()
    return edges_of(matrix)


def _edge_sum(pairs: Support, counts: FloatArray, c: float, n_jobs: int | None) -> EdgeSum:
    """Return the sum of s_c over pairs, stored in both directions: one matrix is read faster than two."""
    directed = pairs.to_csr(counts)
    both, halves = edges_of(sp.csr_array(0.5 * (directed + directed.T)))
    return EdgeSum(both, halves, Saturating(c), n_jobs, symmetric=True, overwrite=True)
