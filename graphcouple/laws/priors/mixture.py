"""Mixtures of laws of hidden graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from graphcouple.graphs import FloatArray, Graph, GraphLike, IntArray, Support
from graphcouple.laws.priors.random_graph import RandomGraph, Rng


def mixture_weights(weights: Any, n_parts: int) -> FloatArray:
    """Return the probabilities of a mixture, positive numbers divided by their sum; None means equal ones."""
    if weights is None:
        return np.full(n_parts, 1.0 / n_parts)
    try:
        w = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"weights must hold a number for each law, got {weights!r}.") from None
    if w.shape != (n_parts,) or not np.isfinite(w).all() or (w <= 0).any():
        raise ValueError(f"weights must hold a positive number for each of the {n_parts} laws, got {weights!r}.")
    return w / w.sum()


def weighted_sum(weights: FloatArray, matrices: Sequence[sp.csr_array]) -> sp.csr_array:
    """Return Σ_m w_m A_m, with columns in order."""
    first, *others = (w * matrix for w, matrix in zip(weights, matrices, strict=True))
    total = sp.csr_array(sum(others, first))
    total.sort_indices()
    return total


class MixturePosterior(RandomGraph):
    """A law drawn at random, then a graph from it: P(W) = Σ_m w_m P_m(W).

    Its mean is Σ_m w_m E_m[W]. A cross-entropy to an exponential family depends on the input's law only through its
    mean, so a mixture costs as much as one law with the same edges.

    Parameters
    ----------
    laws : sequence of RandomGraph
        At least one, with equally many nodes; all of undirected graphs, or none.
    weights : sequence of float, optional
        w_m, positive; they are divided by their sum. Equal by default.

    Raises
    ------
    TypeError, ValueError
        When the laws differ in nodes, sample weights or direction, or the weights are not positive.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> near, far = (gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(p)).posterior(X) for p in (5, 50))
    >>> both = gc.MixturePosterior([near, far])
    >>> both
    <MixturePosterior (prior D) of 150 nodes, all pairs>
    >>> bool(abs(both.mean() - (near.mean() + far.mean()) / 2).max() < 1e-15)
    True
    """

    def __init__(self, laws: Sequence[RandomGraph], weights: Sequence[float] | None = None) -> None:
        laws = tuple(laws) if isinstance(laws, Iterable) else (laws,)
        if not laws or not all(isinstance(law, RandomGraph) for law in laws):
            raise TypeError(f"laws must hold at least one law of a graph, such as model.posterior(X), got {laws!r}.")
        if len({law.n_nodes for law in laws}) > 1:
            raise ValueError(f"laws must have equally many nodes, got {[law.n_nodes for law in laws]}.")
        if len({law.unordered for law in laws}) > 1:
            raise ValueError("laws must all be thresholded (undirected graphs), or none of them.")
        weights_of: list[Any] = [law.node_weights for law in laws]
        if not all(np.array_equal(each, weights_of[0]) for each in weights_of):
            raise ValueError("laws must all have the same sample weights, or none.")
        self.laws, self.unordered, self.node_weights = laws, laws[0].unordered, laws[0].node_weights
        self.weights = mixture_weights(weights, len(laws))
        n = laws[0].n_nodes
        if len({id(law.support) for law in laws}) == 1 or all(law.support.complete for law in laws):
            support = laws[0].support
            means = sum(w * law.edge_means for w, law in zip(self.weights, laws, strict=True))
        else:
            total = weighted_sum(self.weights, [law.support.to_csr(law.edge_means) for law in laws])
            support, means = Support(total.indptr, total.indices, total.nnz == n * (n - 1)), total.data
        super().__init__(support)
        self._means = means

    @property
    def code(self) -> str:
        """The codes of the parts' priors, as in "B+D"; one code if they all have the same."""
        return "+".join(dict.fromkeys(law.code for law in self.laws))

    @property
    def prior_name(self) -> str:
        """The names of the parts' priors."""
        return "mixture of " + " and ".join(dict.fromkeys(law.prior_name for law in self.laws))

    @property
    def constraints(self) -> frozenset[str]:
        """The constraints that the graphs of every part obey."""
        return frozenset.intersection(*[law.constraints for law in self.laws])

    @property
    def own_means(self) -> FloatArray:
        return sum((w * law.own_means for w, law in zip(self.weights, self.laws, strict=True)), np.zeros(self.n_nodes))

    @cached_property
    def edge_means(self) -> FloatArray:
        """Σ_m w_m E_m[W_ij] on the edges of `support`."""
        return self._means

    def _draw_law(self, rng: Rng) -> tuple[RandomGraph, np.random.Generator]:
        generator = np.random.default_rng(rng)
        return self.laws[generator.choice(len(self.laws), p=self.weights)], generator

    def sample(self, rng: Rng = None) -> Graph:
        """Draw a law, then one graph from it."""
        law, generator = self._draw_law(rng)
        return law.sample(generator)

    def sample_edges(self, rng: Rng = None) -> tuple[IntArray, IntArray]:
        """Draw a law, then one graph from it, as the starts and ends of its edges."""
        law, generator = self._draw_law(rng)
        return law.sample_edges(generator)

    def log_prob(self, W: GraphLike) -> float:
        """Return log Σ_m w_m P_m(W), in nats."""
        return float(logsumexp([law.log_prob(W) for law in self.laws], b=self.weights))

    def entropy(self) -> float:
        """Raise, because the entropy of a mixture has no closed form.

        Raises
        ------
        ValueError
            Unless there is one law; `least_entropy` gives a lower bound.
        """
        if len(self.laws) == 1:
            return self.laws[0].entropy()
        raise ValueError("the entropy of a mixture has no closed form; least_entropy() is a lower bound.")

    def least_entropy(self) -> float:
        """Return Σ_m w_m H(P_m), a lower bound of the entropy because entropy is concave, in nats."""
        return float(self.weights @ [law.least_entropy() for law in self.laws])
