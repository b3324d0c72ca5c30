"""A second pair of hidden graphs, at the scale of the whole: each point is tied to the nearer half of all others.

Given X, the edge of a pair is there with probability

    p_ij = (f(r_i(j)) + f(r_j(i)))/2,    f(r) = 1/(1 + e^{(r − ½)/w}),

where r_i(j) is the share of points that are nearer to i than j is. Given Z, its odds are T_ij/d²_ij, where d_ij is the
distance and T_ij the mean of both ends' mean squared distances to all points,

    T_ij = (D_i + D_j)/2,    D_i = |z_i − z̄|² + n⁻¹ Σ_k |z_k − z̄|².

Both graphs have independent edges (prior B), and do not depend on the units of X and Z. Their cross-entropy, less the
entropy of the first, is averaged over pairs drawn once:

    L(Z) = mean_ij [log(1 + u_ij) − (1 − p_ij) log(u_ij + δ) − H(p_ij)] + log(1 + δ),    u_ij = d²_ij/T_ij,

with a small δ for points in one place; L ≥ 0. Neighbour embeddings compare graphs whose edges are short. L compares
graphs whose edges are as long as they can be told apart, so it arranges what the others leave to chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcouple._numba.threads import over_rows
from graphcouple._validation import check_embedding, check_integer, check_positive
from graphcouple.couplings.base import Objective, WeightedSum
from graphcouple.couplings.recipes import Problem, Term
from graphcouple.couplings.stress import sampled_pairs
from graphcouple.graphs import FloatArray, Support
from graphcouple.neighbors import distances_of

# Points to which ranks are measured, and rows for which that is done at once.
_REFERENCES, _ROWS = 500, 20_000

# Squared distances that differ by rounding, of points in single precision.
_TIE = 1e-6

# δ: pairs nearer than a hundredth of the typical distance do not repel more.
_SOFTENING = 1e-4


class LargeScaleCrossEntropy(Objective):
    """L(Z), the cross-entropy of two graphs of the nearer half of all points; see the module's text.

    Parameters
    ----------
    support : Support
        The pairs, each in both directions.
    near : ndarray of shape (n_edges,)
        p, symmetric, in [0, 1].
    n_jobs : int or None, default=None

    Raises
    ------
    ValueError
        When `near` does not fit the pairs or has values outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> large = gc.couplings.LargeScaleCrossEntropy.of(X, 30, np.random.RandomState(0))
    >>> noise = np.random.default_rng(0).normal(size=(150, 2))
    >>> bool(large.value(X[:, 2:]) < 0.5 * large.value(noise))
    True
    """

    def __init__(self, support: Support, near: FloatArray, n_jobs: int | None = None) -> None:
        if near.shape != (support.n_edges,) or not (near >= 0).all() or not (near <= 1).all():
            raise ValueError(f"near must hold {support.n_edges} probabilities, one for each pair.")
        self.support, self.near, self.n_jobs = support, near.astype(np.float64, copy=False), n_jobs
        inside = np.clip(near, 1e-300, 1.0 - 1e-16)
        entropy = -(near * np.log(inside) + (1.0 - near) * np.log1p(-inside))
        self._constant = float(np.log1p(_SOFTENING) - entropy.mean()) if near.size else 0.0

    @classmethod
    def of(
        cls,
        X: Any,
        pairs_per_point: int,
        rng: np.random.RandomState,
        width: float = 0.15,
        metric: Any = "euclidean",
        n_jobs: int | None = None,
    ) -> LargeScaleCrossEntropy:
        """Return the objective for given points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, p)
        pairs_per_point : int
        rng : numpy.random.RandomState
            Draws the pairs and the 500 points to which ranks are measured.
        width : float, default=0.15
            w.
        metric : str or callable, default="euclidean"
        n_jobs : int or None, default=None
        """
        n = X.shape[0]
        every = pairs_per_point >= n - 1
        support = Support.all_pairs(n) if every else sampled_pairs(n, pairs_per_point, rng)
        near = 1.0 / (1.0 + np.exp((_shares(X, metric, support, rng, n_jobs) - 0.5) / width))
        matrix = support.to_csr(near)
        whole = ((matrix + matrix.T) * 0.5).tocsr()
        whole.sort_indices()
        return cls(Support(whole.indptr, whole.indices), whole.data, n_jobs)

    @property
    def n_points(self) -> int:
        """The number of points of the embedding."""
        return self.support.n_nodes

    @property
    def lower_bound(self) -> float:
        """0."""
        return 0.0

    def value(self, Z: FloatArray) -> float:
        """Return L at `Z`."""
        return self._evaluate(Z, True)[0]

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return L and its gradient."""
        return self._evaluate(Z, True)

    def gradient(self, Z: FloatArray) -> FloatArray:
        """Return the gradient, without the logarithms of the value."""
        return self._evaluate(Z, False)[1]

    def _evaluate(self, Z: Any, with_value: bool) -> tuple[float, FloatArray]:
        from graphcouple._numba.large_scale import near_or_far

        points = check_embedding(Z, n_points=self.n_points)
        centred = points.astype(np.float64)
        centred -= centred.mean(axis=0)
        n, n_edges = self.n_points, max(self.support.n_edges, 1)
        squares = np.einsum("ij,ij->i", centred, centred)
        spread = squares + squares.mean()
        if not spread.min() > 0:
            # In one place, all pairs are equally far: u is 1, as it is on average wherever points lie.
            at_one = np.log(2.0) - (1.0 - self.near) * np.log1p(_SOFTENING)
            return float(at_one.mean()) + self._constant, np.zeros_like(points)
        value, gradient, pull = np.empty(n), np.empty(centred.shape), np.empty(n)
        pairs = (self.support.indptr, self.support.indices, self.near, _SOFTENING, with_value)
        over_rows(n, self.n_jobs, near_or_far, centred, spread, *pairs, value, gradient, pull)
        # Each spread depends on its own point and, through the mean square, on all.
        gradient += 2.0 * (pull + pull.mean())[:, None] * centred
        gradient -= gradient.mean(axis=0)
        gradient *= 2.0 / n_edges
        loss = float(value.sum()) / n_edges + self._constant if with_value else np.nan
        return loss, gradient.astype(points.dtype, copy=False)


def _shares(X: Any, metric: Any, support: Support, rng: np.random.RandomState, n_jobs: int | None) -> FloatArray:
    """Return r_i(j) for each pair, estimated by the distances to some points."""
    from graphcouple._numba.large_scale import shares_nearer

    n = X.shape[0]
    chosen = np.sort(rng.permutation(n)[:_REFERENCES])
    few = distances_of(X[chosen], metric)
    sq_dist = distances_of(X, metric).along(support, n_jobs)
    share = np.empty(support.n_edges)
    for a in range(0, n, _ROWS):
        b = min(a + _ROWS, n)
        references = few.to(X[a:b], None, n_jobs)[1].reshape(b - a, chosen.size)
        references.sort(axis=1)
        first, last = support.indptr[a], support.indptr[b]
        part = (references, support.indptr[a : b + 1] - first, sq_dist[first:last], _TIE, share[first:last])
        over_rows(b - a, n_jobs, shares_nearer, *part)
    return share


@dataclass(frozen=True)
class LargeScale(Term):
    """The term weight · n · L(Z), which arranges an embedding at the scale of the whole.

    L is the cross-entropy of two graphs in which each point is tied to the nearer half of all others; see
    `LargeScaleCrossEntropy`. It is multiplied by the number of points n, as a cross-entropy is a sum over them: the
    same weight has the same effect whatever n. A sum over `pairs_per_point` · n pairs takes less time than the
    repulsion of the coupling.

    Parameters
    ----------
    weight : float, default=7.0
        Local against global: 0 is the plain method. Neighbourhoods of ten points hardly suffer up to 10.
    pairs_per_point : int, default=100
        Random pairs, drawn once. With fewer, points follow the chance of their own pairs: local structure suffers.
    width : float, default=0.15
        w, how gradually an edge's probability falls with the share of points that are nearer.

    Raises
    ------
    TypeError, ValueError
        When a parameter is out of range; when fitted, if there are no points, or weights of them.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_hierarchical_mixture(500, random_state=0)
    >>> plain = gc.TSNE(random_state=0).fit_transform(X)
    >>> placed = gc.TSNE(terms=[gc.LargeScale()], random_state=0).fit_transform(X)
    >>> before, after = (gc.metrics.k_ary_preservation(X, Z, K=250) for Z in (plain, placed))
    >>> bool(after > before + 0.1)
    True
    """

    weight: float = 7.0
    pairs_per_point: int = 100
    width: float = 0.15

    def __post_init__(self) -> None:
        if not (isinstance(self.weight, (int, float, np.number)) and 0 <= self.weight < np.inf):
            raise ValueError(f"weight must be a finite number of at least 0, got {self.weight!r}.")
        check_integer("pairs_per_point", self.pairs_per_point, 1)
        check_positive("width", self.width)

    def bind(self, problem: Problem) -> WeightedSum:
        """Return n · L for the problem's points; see `Term`."""
        if problem.posterior.node_weights is not None:
            raise ValueError("LargeScale takes no sample weights: shares of points count each row once. Repeat rows.")
        objective = LargeScaleCrossEntropy.of(
            problem.points, self.pairs_per_point, problem.rng, self.width, problem.metric, problem.n_jobs
        )
        return WeightedSum(((objective.n_points, objective),))

    def __str__(self) -> str:
        return f"{self.weight:g} × large scale, from {self.pairs_per_point} pairs of each point"
