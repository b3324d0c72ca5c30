"""Prior D: every node sends out exactly one edge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np

from graphcouple.graphs import FloatArray, IntArray, Support, cached_if_few
from graphcouple.kernels import Kernel
from graphcouple.laws.priors.base import (
    BINARY,
    N_EDGES,
    ONE_EACH,
    GraphPrior,
    check_enumerable,
    per_pair,
    register,
    with_copies,
)
from graphcouple.laws.priors.log_domain import UNDERFLOW, isolated_terms
from graphcouple.laws.priors.posterior import GraphPosterior, draw_in_rows, sum_x_log_x
from graphcouple.summation import Exact, KernelValue, Summation

# Four nodes have 3⁴ = 81 graphs, five have 1,024.
_MOST_ENUMERATED = 4

# If more than this share of points needs logarithms, exact sums of all points are faster.
_MOST_UNDERFLOWING = 0.25


class UnitOutDegreePosterior(GraphPosterior):
    """One categorical variable per node: the end of its only edge, with probability e^η_ij / Σ_l e^η_il."""

    def __init__(self, support: Support, natural_parameters: FloatArray) -> None:
        super().__init__(support, natural_parameters)
        isolated = np.flatnonzero(np.diff(support.indptr) == 0)
        if isolated.size:
            raise ValueError(
                f"every node needs an edge out of it, but {isolated.size} node(s) are allowed none; "
                f"the first is node {isolated[0]}; give each an edge with positive edge_prior and kernel, or use "
                "prior B or E."
            )

    @cached_property
    def _largest(self) -> FloatArray:
        return np.maximum.reduceat(self.natural_parameters, self.support.indptr[:-1])

    def _below_largest(self) -> Iterator[tuple[slice, slice, Support, FloatArray]]:
        """Yield η minus the largest of its row: only differences matter, and η may be too large to hold them."""
        for rows, edges, part in self.support.in_parts():
            largest = self._largest[rows].astype(np.float64)
            yield rows, edges, part, self.natural_parameters[edges] - largest[part.rows]

    @cached_property
    def _log_mass(self) -> FloatArray:
        """log Σ_j e^η_ij of each row, minus its largest η."""
        mass = np.empty(self.n_nodes)
        for rows, _, part, below in self._below_largest():
            mass[rows] = np.add.reduceat(np.exp(below), part.indptr[:-1])
        return np.log(mass)

    def log_partition(self) -> float:
        """Return Σ_i log Σ_j e^η_ij, in nats."""
        return float(self._largest.sum() + self._log_mass.sum())

    @cached_if_few
    def edge_means(self) -> FloatArray:
        """Edge probabilities e^η_ij / Σ_l e^η_il on the edges of `support`."""
        means = np.empty_like(self.natural_parameters)
        for rows, edges, part, below in self._below_largest():
            means[edges] = np.exp(below - self._log_mass[rows][part.rows])
        return means

    def entropy(self) -> float:
        """Return the sum of the rows' entropies, in nats."""
        total = 0.0
        for rows, _, part, below in self._below_largest():
            surprise = self._log_mass[rows][part.rows] - below
            total += float((np.exp(-surprise) * surprise).sum())
        return total

    def _log_weight(self, at: IntArray, counts: FloatArray) -> float:
        below = self.natural_parameters[at] - self._largest[self.support.rows[at]]
        return float(counts @ below - self._log_mass.sum())

    def _draw(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        at = draw_in_rows(self._cumulative, self.support.indptr[:-1], self.support.indptr[1:], rng)
        return at, np.ones(self.n_nodes, dtype=np.int32)

    def _log_base_measure(self, rows: IntArray, counts: FloatArray) -> float:
        return 0.0 if (np.bincount(rows, weights=counts, minlength=self.n_nodes) == 1).all() else -np.inf


@register
@dataclass(frozen=True, eq=False, repr=False)
class UnitOutDegree(GraphPrior):
    """Prior D: W_i+ = 1 for every node i.

    SNE, t-SNE and LargeVis have this prior on the input, and SNE also on the embedding.

    Parameters
    ----------
    edge_prior : float, array, sparse matrix, networkx or igraph graph, optional
        π; None favours all pairs alike.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> gc.UnitOutDegree().posterior(np.zeros((3, 3))).mean()
    array([[0. , 0.5, 0.5],
           [0.5, 0. , 0.5],
           [0.5, 0.5, 0. ]])
    """

    code: ClassVar[str] = "D"

    log_partition_latex: ClassVar[str] = r"\sum_i \log \sum_{j \neq i} k_{ij}"
    constraints: ClassVar[frozenset[str]] = frozenset({BINARY, ONE_EACH, N_EDGES})
    posterior_class: ClassVar[type[GraphPosterior]] = UnitOutDegreePosterior
    drawn_by: ClassVar[str | None] = "row"

    def least_cross_entropy(
        self, means: FloatArray, n_nodes: float, share: float = 1.0, pairs: FloatArray | None = None
    ) -> float:
        """Return −Σ m log m, which is attained at η = log m for rows of means that sum to 1."""
        return -sum_x_log_x(means, share)[0] + per_pair(means, share, pairs)

    @classmethod
    def enumerate(cls, n_nodes: int) -> tuple[IntArray, FloatArray]:
        """Return every graph of at most 4 nodes, and its log base measure, 0."""
        check_enumerable(cls.code, n_nodes, _MOST_ENUMERATED)
        ends = np.array(list(product(*[[j for j in range(n_nodes) if j != i] for i in range(n_nodes)])))
        graphs = np.zeros((len(ends), n_nodes, n_nodes), dtype=np.int64)
        graphs[np.arange(len(ends))[:, None], np.arange(n_nodes), ends] = 1
        return graphs, np.zeros(len(ends))

    def log_partition_and_grad(
        self,
        kernel: Kernel,
        Z: FloatArray,
        summation: Summation,
        *,
        weights: FloatArray | None = None,
        with_value: bool = True,
        with_gradient: bool = True,
    ) -> tuple[float, FloatArray | None]:
        """Return Σ_i w_i log S_i, S_i = Σ_{j≠i} w_j k(d²_ij), and its gradient w_i (∇Φ_i[k; w]/S_i + ∇Φ_i[k; w/S])."""
        radial = KernelValue(kernel)
        summation = summation.for_points(Z, radial)
        mass, forces = summation.potential(Z, radial, weights, with_gradient=with_gradient)
        mass = with_copies(mass, radial, weights)
        underflows = mass < max(UNDERFLOW, summation.resolution)
        w: FloatArray = np.ones(len(mass)) if weights is None else weights
        if not underflows.any():
            value = float(np.log(mass).sum()) if weights is None else float(w @ np.log(mass))
            if not with_gradient:
                return value, None
            _, reactions = summation.potential(Z, radial, w / mass, with_potential=False)
            total = forces / mass[:, None] + reactions
            return value, total if weights is None else w[:, None] * total
        if summation.resolution > 0 and np.count_nonzero(underflows) > _MOST_UNDERFLOWING * underflows.size:
            outputs = {"with_value": with_value, "with_gradient": with_gradient}
            return self.log_partition_and_grad(kernel, Z, Exact(summation.n_jobs), weights=weights, **outputs)
        # Points far from all others get an exact sum each; there are usually few of them.
        isolated, regular = np.flatnonzero(underflows), ~underflows
        logs, gradient = isolated_terms(kernel, Z.astype(np.float64, copy=False), isolated, with_gradient, w)
        value = float(w[regular] @ np.log(mass[regular])) + float(w[isolated] @ logs)
        if gradient is None:
            return value, None
        if regular.any():
            inverse = np.where(underflows, 0.0, 1.0 / np.where(underflows, 1.0, mass))
            _, reactions = summation.potential(Z, radial, w * inverse, with_potential=False)
            gradient += w[:, None] * (reactions + inverse[:, None] * np.where(underflows[:, None], 0.0, forces))
        return value, gradient
