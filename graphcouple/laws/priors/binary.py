"""Prior B: every ordered pair has an edge or none, independently."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np
from scipy.special import expit, logit, xlogy

from graphcouple.graphs import FloatArray, IntArray, Support, cached_if_few
from graphcouple.kernels import Kernel
from graphcouple.laws.priors.base import BINARY, GraphPrior, check_enumerable, graphs_of_counts, register, with_copies
from graphcouple.laws.priors.posterior import GraphPosterior, sum_x_log_x
from graphcouple.summation import LogEdgeProbability, LogOnePlusKernel, RadialFunction, Summation
from graphcouple.summation.directions import either_direction

# Log-odds of an edge of weight 1: the probability rounds to 1 in double precision.
_SURE = 40.0
# Three nodes have 2⁶ = 64 graphs, four have 4,096.
_MOST_ENUMERATED = 3


class BinaryPosterior(GraphPosterior):
    """Independent Bernoulli edges with probability e^η/(1 + e^η).

    With ``unordered=True`` it is a law of undirected graphs: the support is symmetric, each pair {i, j} is one
    Bernoulli variable, and all sums run over pairs i < j.
    """

    def __init__(self, support: Support, natural_parameters: FloatArray, unordered: bool = False) -> None:
        super().__init__(support, natural_parameters)
        self.unordered, self._share = unordered, 0.5 if unordered else 1.0

    def _on(self, support: Support, natural_parameters: FloatArray) -> BinaryPosterior:
        return BinaryPosterior(support, natural_parameters, self.unordered)

    def log_partition(self) -> float:
        """Return Σ log(1 + e^η), in nats."""
        return self._share * float(np.logaddexp(0.0, self.natural_parameters).sum(dtype=np.float64))

    @cached_if_few
    def edge_means(self) -> FloatArray:
        """Edge probabilities e^η/(1 + e^η) on the edges of `support`."""
        return expit(self.natural_parameters)

    def entropy(self) -> float:
        """Return the sum of the edges' entropies, in nats."""
        # Per edge log(1 + e^η) − p η, written in abs(η) so that the entropy of a certain edge is exactly 0.
        size = np.abs(self.natural_parameters)
        return self._share * float((np.log1p(np.exp(-size)) + size * expit(-size)).sum(dtype=np.float64))

    def _draw(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        if self.unordered:
            upper = np.flatnonzero(self.support.rows < self.support.indices)
            edges = upper[rng.random(upper.size) < self.edge_means[upper]]
            reverses = self.support.find(self.support.indices[edges], self.support.rows[edges])
            at = np.sort(np.concatenate([edges, reverses]))
        else:
            at = np.flatnonzero(rng.random(self.n_edges) < self.edge_means)
        return at, np.ones(at.size, dtype=np.int32)

    def _log_base_measure(self, rows: IntArray, counts: FloatArray) -> float:
        return 0.0 if (counts <= 1).all() else -np.inf

    def thresholded(self) -> BinaryPosterior:
        """Return the law of the undirected graph W̃ = 1{W + Wᵀ ≥ 1}.

        Its edges are independent over unordered pairs with probability
        P̃ = P + Pᵀ − P∘Pᵀ (UMAP's fuzzy union; graph-coupling paper, section 3.1).
        A law of undirected graphs raises `ValueError`.
        """
        if self.unordered:
            raise ValueError("the law is thresholded already: its pairs are unordered.")
        # 1 − P̃ = (1 − P)(1 − Pᵀ): log(1 + e^η̃) of a pair is the sum over its two directions.
        support, total = either_direction(self.support, np.logaddexp(0.0, self.natural_parameters))
        tiny = np.finfo(total.dtype).tiny
        for nodes, edges, part in support.in_parts():
            sums = total[edges]
            faint = np.flatnonzero(sums < 1e4 * tiny)
            sums += np.log(-np.expm1(-np.maximum(sums, tiny)))
            # Where the sum of both directions underflows, their logarithms are added.
            i, j = nodes.start + part.rows[faint], part.indices[faint]
            sums[faint] = np.logaddexp(self._parameter_of(i, j), self._parameter_of(j, i))
        return BinaryPosterior(support, total, unordered=True)

    def _parameter_of(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return η of ordered pairs, −∞ for pairs without an edge."""
        at = self.support.find(rows, columns)
        return np.where(at >= 0, self.natural_parameters[at], -np.inf)

    def mutual(self) -> BinaryPosterior:
        """Return the law of the undirected graph W∘Wᵀ, whose pairs are linked in both directions: probability P∘Pᵀ.

        It is UMAP's fuzzy intersection. A law of undirected graphs raises `ValueError`.
        """
        if self.unordered:
            raise ValueError("the law is one of undirected graphs already: its pairs are unordered.")
        reverses = self.support.find(self.support.indices, self.support.rows)
        in_both = reverses >= 0
        ahead, behind = self.natural_parameters[in_both], self.natural_parameters[reverses[in_both]]
        # With a = e^−η and b = e^−η' of the two directions, the log-odds of 1/((1 + a)(1 + b)) are −log(a + b + ab).
        log_odds = -np.logaddexp(np.logaddexp(-ahead, -behind), -ahead - behind)
        return BinaryPosterior(self.support.select(in_both), log_odds, unordered=True)


@register
@dataclass(frozen=True, eq=False, repr=False)
class Binary(GraphPrior):
    """Prior B: W_ij ∈ {0, 1}, independently.

    The posterior has edge probabilities k/(1 + k), so a kernel with k ≤ 1 never
    gives an edge a probability above ½. If the kernel itself is a probability, wrap
    it in `Odds`. This is the prior of UMAP (both sides) and LargeVis (embedding).

    Parameters
    ----------
    edge_prior : float, array, sparse matrix, networkx or igraph graph, optional
        π; None favours all pairs alike.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> gc.Binary().posterior(np.zeros((2, 2))).mean()
    array([[0. , 0.5],
           [0.5, 0. ]])
    """

    code: ClassVar[str] = "B"

    log_partition_latex: ClassVar[str] = r"\sum_{i \neq j} \log(1 + k_{ij})"
    constraints: ClassVar[frozenset[str]] = frozenset({BINARY})
    posterior_class: ClassVar[type[GraphPosterior]] = BinaryPosterior
    drawn_by: ClassVar[str | None] = "pair"
    symmetric_mean: ClassVar[bool] = True

    def thinned(self, natural_parameters: FloatArray, log_share: FloatArray) -> FloatArray:
        """Return the log-odds of edges that are present and kept: log(s p/(1 − s p))."""
        # With 1/p = 1 + e^−η it is log s − log(1 − s + e^−η).
        with np.errstate(divide="ignore"):
            return log_share - np.logaddexp(np.log(-np.expm1(log_share)), -natural_parameters)

    def log_strength(self, log_kernel: FloatArray) -> FloatArray:
        """Return log(k / (1 + k)), the logarithm of an edge's probability."""
        return -np.logaddexp(0.0, -log_kernel)

    def edge_strength(self, kernel: Kernel) -> RadialFunction:
        """Return log v, v = πk/(1 + πk) for a scalar π, as a function of the squared distance."""
        return LogEdgeProbability(self.latent_kernel(kernel))

    def least_cross_entropy(
        self, means: FloatArray, n_nodes: float, share: float = 1.0, pairs: FloatArray | None = None
    ) -> float:
        """Return −Σ (m log m + (1 − m) log(1 − m)), which is attained at η = log m/(1 − m)."""
        if pairs is None:
            return -sum_x_log_x(means, share)[0] - sum_x_log_x(1.0 - share * means)[0]
        p = share * np.divide(means, pairs, out=np.zeros_like(means), where=pairs > 0)
        return -float(pairs @ (xlogy(p, p) + xlogy(1.0 - p, 1.0 - p)))

    def _around(self, support: Support, weights: FloatArray, name: str) -> GraphPosterior:
        if (weights > 1).any():
            raise ValueError(
                f"{name} has an edge of weight {weights.max():.4g}, but under prior B weights are probabilities; "
                "divide them by the largest."
            )
        reverses = support.find(support.indices, support.rows)
        symmetric = bool((reverses >= 0).all() and np.allclose(weights, weights[reverses], rtol=1e-6, atol=0.0))
        return BinaryPosterior(support, np.minimum(logit(weights), _SURE), unordered=symmetric)

    @classmethod
    def enumerate(cls, n_nodes: int) -> tuple[IntArray, FloatArray]:
        """Return every graph of at most 3 nodes, and its log base measure, 0."""
        check_enumerable(cls.code, n_nodes, _MOST_ENUMERATED)
        counts = np.array(list(product((0, 1), repeat=n_nodes * (n_nodes - 1))))
        return graphs_of_counts(n_nodes, counts), np.zeros(len(counts))

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
        """Return Σ_{i≠j} w_i w_j log(1 + k(d²_ij)) and its gradient 2 w_i ∇Φ_i[log(1 + k); w]."""
        radial = LogOnePlusKernel(kernel)
        outputs = {"with_potential": with_value, "with_gradient": with_gradient}
        potential, gradient = summation.potential(Z, radial, weights, **outputs)
        if weights is None:
            return float(potential.sum()) if with_value else np.nan, 2.0 * gradient if with_gradient else None
        value = float(weights @ with_copies(potential, radial, weights)) if with_value else np.nan
        return value, 2.0 * weights[:, None] * gradient if with_gradient else None


def symmetrized(posterior: GraphPosterior, how: str) -> BinaryPosterior:
    """Return the law of undirected graphs of pairs linked in either direction, or in both if `how` is "mutual"."""
    if not isinstance(posterior, BinaryPosterior):
        raise ValueError(f"symmetrize={how!r} needs prior B, whose edges are independent; got {posterior.prior_name}.")
    return posterior.mutual() if how == "mutual" else posterior.thresholded()
