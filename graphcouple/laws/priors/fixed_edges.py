"""Prior E: as many edges as nodes, anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import ClassVar

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import binom

from graphcouple.graphs import FloatArray, IntArray, Support, cached_if_few
from graphcouple.kernels import Kernel
from graphcouple.laws.priors.base import (
    N_EDGES,
    GraphPrior,
    check_enumerable,
    graphs_of_counts,
    per_pair,
    register,
    with_copies,
)
from graphcouple.laws.priors.log_domain import UNDERFLOW, mean_forces, row_log_sums
from graphcouple.laws.priors.posterior import GraphPosterior, draw_by_inversion, sum_x_log_x
from graphcouple.summation import Exact, KernelValue, Summation

# Four nodes have 1,365 graphs, five have 42,504.
_MOST_ENUMERATED = 4


def expected_log_factorial(n: int, probability: FloatArray) -> float:
    """Return Σ_e E[log W_e!] for W_e ~ Binomial(n, p_e), to double precision.

    Counts 0 and 1 contribute nothing. For each count w, the sum runs over the edges
    whose mean λ is at least w, or for which λ^w/w!, a bound on the probability of w, exceeds rounding.
    """
    p = np.sort(probability)[::-1]
    mean = n * p
    negligible = -45.0 - np.log(max(p.size, 1))
    total = 0.0
    for w in range(2, n + 1):
        least = min(float(w), float(np.exp((negligible + gammaln(w + 1.0)) / w)))
        m = int(np.searchsorted(-mean, -least, side="right"))
        if m == 0:
            break
        total += float(gammaln(w + 1.0) * binom.pmf(w, n, p[:m]).sum())
    return total


class FixedEdgesPosterior(GraphPosterior):
    """A multinomial law: n edges drawn independently over all pairs, with probability e^η / Σ e^η each."""

    def __init__(self, support: Support, natural_parameters: FloatArray) -> None:
        super().__init__(support, natural_parameters)
        if not support.n_edges:
            raise ValueError("prior E needs a possible edge; edge_prior and kernel allow none, so relax one of them.")

    @cached_property
    def _largest(self) -> float:
        return float(self.natural_parameters.max())

    @cached_property
    def _log_mass(self) -> float:
        """log Σ e^η, minus the largest η: only differences matter, and η may be too large to hold them."""
        return float(logsumexp(self.natural_parameters.astype(np.float64) - self._largest))

    def log_partition(self) -> float:
        """Return n log Σ_ij e^η_ij, in nats."""
        return self.n_nodes * (self._largest + self._log_mass)

    @cached_if_few
    def edge_means(self) -> FloatArray:
        """Expected counts n e^η_ij / Σ e^η on the edges of `support`."""
        return self.n_nodes * np.exp(self.natural_parameters - self._largest - self._log_mass)

    def _log_weight(self, at: IntArray, counts: FloatArray) -> float:
        return float(counts @ (self.natural_parameters[at] - self._largest - self._log_mass))

    def entropy(self) -> float:
        """Return A − <mean, η> − E[log h], h = n!/Π W_ij!, in nats."""
        below = self.natural_parameters - self._largest
        surprise = float((self.edge_means * (self._log_mass - below)).sum())
        log_base = gammaln(self.n_nodes + 1.0) - expected_log_factorial(self.n_nodes, self.edge_means / self.n_nodes)
        return surprise - float(log_base)

    def _draw(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        edges = draw_by_inversion(self._cumulative, self._cumulative[-1] * rng.random(self.n_nodes))
        return np.unique(edges, return_counts=True)

    def _log_base_measure(self, rows: IntArray, counts: FloatArray) -> float:
        if counts.sum() != self.n_nodes:
            return -np.inf
        return float(gammaln(self.n_nodes + 1.0) - gammaln(counts + 1.0).sum())


@register
@dataclass(frozen=True, eq=False, repr=False)
class FixedEdges(GraphPrior):
    """Prior E: W_++ = n, with the base measure n!/Π W_ij!.

    Symmetric SNE and t-SNE have this prior on the embedding.

    Parameters
    ----------
    edge_prior : float, array, sparse matrix, networkx or igraph graph, optional
        π; None favours all pairs alike.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> gc.FixedEdges().posterior(np.zeros((2, 2))).mean()
    array([[0., 1.],
           [1., 0.]])
    """

    code: ClassVar[str] = "E"

    log_partition_latex: ClassVar[str] = r"\sum_{i \neq j} w_{ij} \, \log \sum_{i \neq j} k_{ij}"
    constraints: ClassVar[frozenset[str]] = frozenset({N_EDGES})
    posterior_class: ClassVar[type[GraphPosterior]] = FixedEdgesPosterior
    drawn_by: ClassVar[str | None] = "graph"
    symmetric_mean: ClassVar[bool] = True

    def least_cross_entropy(
        self, means: FloatArray, n_nodes: float, share: float = 1.0, pairs: FloatArray | None = None
    ) -> float:
        """Return −Σ m log(m/n), which is attained at η = log m for means that sum to n."""
        # Take logarithms first: dividing by n would round the smallest means to zero.
        total, mass = sum_x_log_x(means, share)
        return -total + mass * float(np.log(n_nodes)) + per_pair(means, share, pairs)

    @classmethod
    def enumerate(cls, n_nodes: int) -> tuple[IntArray, FloatArray]:
        """Return every graph of at most 4 nodes, and its log base measure, log n!/Π W_ij!."""
        check_enumerable(cls.code, n_nodes, _MOST_ENUMERATED)
        n_pairs = n_nodes * (n_nodes - 1)
        choices = list(combinations_with_replacement(range(n_pairs), n_nodes))
        counts = np.array([np.bincount(choice, minlength=n_pairs) for choice in choices])
        return graphs_of_counts(n_nodes, counts), gammaln(n_nodes + 1.0) - gammaln(counts + 1.0).sum(axis=1)

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
        """Return n log S, S = Σ_{i≠j} w_i w_j k(d²_ij), and its gradient 2n w_i ∇Φ_i[k; w] / S; n is the sum of w."""
        radial = KernelValue(kernel)
        summation = summation.for_points(Z, radial)
        potential, forces = summation.potential(Z, radial, weights, with_gradient=with_gradient)
        if weights is None:
            total, n = float(potential.sum()), float(Z.shape[0])
        else:
            total, n = float(weights @ with_copies(potential, radial, weights)), float(weights.sum())
        if summation.resolution > 0 and not total >= n * summation.resolution:
            outputs = {"with_value": with_value, "with_gradient": with_gradient}
            return self.log_partition_and_grad(kernel, Z, Exact(summation.n_jobs), weights=weights, **outputs)
        if total < UNDERFLOW:
            return self._in_the_log(kernel, Z.astype(np.float64, copy=False), weights, with_gradient)
        value = n * float(np.log(total))
        if not with_gradient:
            return value, None
        return value, (forces if weights is None else weights[:, None] * forces) * (2.0 * n / total)

    def _in_the_log(
        self, kernel: Kernel, Z: FloatArray, weights: FloatArray | None, with_gradient: bool
    ) -> tuple[float, FloatArray | None]:
        # Here no weight exceeds 1: otherwise pairs of copies, at distance 0, would keep the total from underflowing.
        logs = np.zeros(Z.shape[0]) if weights is None else np.log(weights)
        n = float(Z.shape[0] if weights is None else weights.sum())
        log_total = float(logsumexp(row_log_sums(kernel, Z, logs) + logs))
        if not with_gradient:
            return n * log_total, None
        return n * log_total, mean_forces(kernel, Z, float(np.log(2.0 * n)) - log_total + logs, logs)
