"""The law of a graph of weighted points, whose nodes gather the edges of several copies of a point; see `laws.copies`.

Edges among the copies of one node do not act on an embedding; they only lower the means of the other edges.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy.special import gammaln, xlogy
from scipy.stats import binom

from graphcouple.graphs import FloatArray, Graph, GraphLike, IntArray, Support
from graphcouple.laws.copies import Copies
from graphcouple.laws.priors.base import BINARY, GraphPrior
from graphcouple.laws.priors.binary import symmetrized
from graphcouple.laws.priors.posterior import GraphPosterior, counted_edges, draw_by_inversion, draw_in_rows
from graphcouple.laws.priors.random_graph import RandomGraph, Rng


class RepeatedPosterior(RandomGraph):
    """The law of the graph of all copies of weighted points, with one node for the copies of each.

    `law` is of part of the edges, chosen by `GraphPrior.drawn_by`. "row": the edges out of one copy of each point.
    "pair": the edges between one copy of each point. "graph": edges of the whole graph, `draws` for each node. Its
    support also has each node's edge to its own other copies, if any; see `law_with_copies`. `copies` holds the weights
    of the nodes, and how many copies the edges of `law` may lead to.
    """

    def __init__(self, law: GraphPosterior, copies: Copies, prior: GraphPrior) -> None:
        edges = law.support.select(law.support.rows != law.support.indices)
        super().__init__(Support(edges.indptr, edges.indices, edges.n_edges == edges.n_nodes * (edges.n_nodes - 1)))
        self.law, self.copies, self.prior = law, copies, prior
        self.prior_class, self.unordered, self.node_weights = type(prior), law.unordered, copies.weights

    @cached_property
    def _factor(self) -> FloatArray:
        """How many edges of the graph of all copies each edge of `law` stands for."""
        support, weights = self.law.support, self.copies.weights
        if self.prior.drawn_by == "row":
            return weights[support.rows]
        if self.prior.drawn_by == "graph":
            return np.full(support.n_edges, weights.sum() / support.n_nodes)
        others = np.where(support.rows == support.indices, weights[support.rows] - 1.0, weights[support.indices])
        return weights[support.rows] * np.maximum(others, 0.0)

    @cached_property
    def _all_means(self) -> FloatArray:
        return self._factor * self.law.edge_means

    @cached_property
    def _is_own(self) -> np.ndarray:
        return self.law.support.rows == self.law.support.indices

    @cached_property
    def edge_means(self) -> FloatArray:
        """The expected number of edges from the copies of a node to the copies of another."""
        return self._all_means[~self._is_own]

    @cached_property
    def own_means(self) -> FloatArray:
        """The expected number of edges among the copies of each node."""
        means = np.zeros(self.n_nodes)
        means[self.law.support.indices[self._is_own]] = self._all_means[self._is_own]
        return means

    def least_entropy(self) -> float:
        """Return the entropy of the graph of all copies in nats; the bound 0 if a pair can have several edges."""
        if BINARY not in self.prior.constraints:
            return 0.0
        pairs = self._factor if self.prior.drawn_by == "pair" else self._factor * self._ends
        share = 0.5 if self.unordered else 1.0
        return share * self.prior.least_cross_entropy(self._all_means, 1, 1.0, pairs)

    @cached_property
    def _ends(self) -> FloatArray:
        """How many copies each edge of `law` may lead to."""
        support = self.law.support
        counts = np.empty(support.n_edges)
        counts[~self._is_own] = self.copies.edges
        counts[self._is_own] = self.copies.own[support.indices[self._is_own]]
        return counts

    def _draw(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the positions of drawn edges in the support of `law`, and their counts; rounds weights at random."""
        weights, support = self.copies.weights, self.law.support
        copies = np.floor(weights + rng.random(weights.size)).astype(np.int64)
        if self.prior.drawn_by == "pair":
            at = np.flatnonzero(support.rows < support.indices) if self.unordered else np.arange(support.n_edges)
            pairs = copies[support.rows[at]] * copies[support.indices[at]]
            counts = rng.binomial(pairs, self.law.edge_means[at])
            if self.unordered:
                reverses = support.find(support.indices[at], support.rows[at])
                at, counts = np.concatenate([at, reverses]), np.concatenate([counts, counts])
            order = np.argsort(at)
            return at[order], counts[order]
        cumulative = np.cumsum(self.law.edge_means)
        copies *= self.prior.draws
        if self.prior.drawn_by == "row":
            senders = np.repeat(np.arange(self.n_nodes), copies)
            edges = draw_in_rows(cumulative, support.indptr[senders], support.indptr[senders + 1], rng)
        else:
            edges = draw_by_inversion(cumulative, cumulative[-1] * rng.random(int(copies.sum())))
        return np.unique(edges, return_counts=True)

    def _draw_between(self, rng: Rng) -> tuple[IntArray, IntArray, IntArray]:
        at, counts = self._draw(np.random.default_rng(rng))
        keep = (counts > 0) & ~self._is_own[at]
        support = self.law.support
        return support.rows[at[keep]], support.indices[at[keep]], counts[keep]

    def sample(self, rng: Rng = None) -> Graph:
        """Draw one graph of all copies, and return the numbers of its edges between nodes.

        The fractional part of a weight is the probability of one more copy.
        """
        rows, columns, counts = self._draw_between(rng)
        return Graph((counts.astype(np.int32), (rows, columns)), shape=(self.n_nodes,) * 2)

    def sample_edges(self, rng: Rng = None) -> tuple[IntArray, IntArray]:
        """Draw one graph as the starts and ends of its edges between nodes, each pair once."""
        return self._draw_between(rng)[:2]

    def log_prob(self, W: GraphLike) -> float:
        """Return the log-probability of numbers of edges between nodes, in nats; sample weights must be integers."""
        weights = self.copies.weights
        if (weights != np.floor(weights)).any():
            raise ValueError("the probability of a graph needs integer sample weights: fractions are not copies.")
        rows, columns, numbers = counted_edges(W, self.n_nodes)
        support = self.law.support
        at = support.find(rows, columns)
        if (at < 0).any() or (rows == columns).any():
            return -np.inf
        counts = np.zeros(support.n_edges)
        counts[at] = numbers
        if self.unordered and (counts != counts[support.find(support.indices, support.rows)]).any():
            return -np.inf
        if self.prior.drawn_by == "pair":
            once = ~self._is_own & ((support.rows < support.indices) | (not self.unordered))
            return float(binom.logpmf(counts[once], self._factor[once], self.law.edge_means[once]).sum())
        n_draws, chance = self.prior.draws * weights, self.law.edge_means / self.prior.draws
        groups = support.rows
        if self.prior.drawn_by == "graph":
            groups, n_draws, chance = np.zeros_like(groups), n_draws.sum(keepdims=True), chance / self.n_nodes
        # The remaining draws are edges among the copies of a node.
        n_own = n_draws - np.bincount(groups, weights=counts, minlength=n_draws.size)
        own_chance = np.bincount(groups[self._is_own], weights=chance[self._is_own], minlength=n_draws.size)
        if (n_own < 0).any() or (own_chance[n_own > 0] <= 0).any():
            return -np.inf
        logs = gammaln(n_draws + 1.0) - gammaln(n_own + 1.0) + xlogy(n_own, own_chance)
        return float(logs.sum() + (xlogy(counts, chance) - gammaln(counts + 1.0))[~self._is_own].sum())


def law_with_copies(
    prior: GraphPrior,
    support: Support,
    log_kernel: FloatArray,
    copies: Copies,
    own_log_kernel: FloatArray,
    symmetrize: str | None,
) -> tuple[GraphPosterior, Copies]:
    """Return the law of a `RepeatedPosterior` from the log-kernels of edges, and of the pairs of copies of each node.

    Also return the copies that its edges lead to, without impossible edges. The prior's `drawn_by` must not be None.
    `symmetrize` is for prior B only.
    """
    if prior.drawn_by is None:
        raise ValueError(
            f"sample weights need a prior that says how its edges are drawn (drawn_by), which {prior!r} does not; "
            "repeat rows, with unique=False."
        )
    nodes = np.arange(support.n_nodes, dtype=support.indices.dtype)
    at = np.searchsorted(support.keys, nodes.astype(np.int64) * (support.n_nodes + 1))
    with_own = Support(support.with_one_more(), np.insert(support.indices, at, nodes))
    natural = np.insert(log_kernel, at, own_log_kernel) + prior.log_favour(with_own)
    counts = np.insert(copies.edges, at, copies.own)
    with np.errstate(divide="ignore"):
        if prior.drawn_by == "pair":
            # An edge that may lead to u of w copies leads to each with probability u/w of its own.
            n_ends = np.insert(copies.weights[support.indices], at, np.maximum(copies.weights - 1.0, 0.0))
            share = np.divide(counts, n_ends, out=np.zeros_like(counts), where=n_ends > 0)
            natural = prior.thinned(natural, np.log(np.minimum(share, 1.0)))
        else:
            natural = natural + np.log(counts)
        if prior.drawn_by == "graph":
            natural = natural + np.log(copies.weights)[with_own.rows]
    possible = natural > -np.inf
    law = prior.posterior_class(with_own.select(possible), natural[possible])
    kept = Copies(copies.weights, counts[possible & (with_own.rows != with_own.indices)], copies.own)
    return symmetrized(law, symmetrize) if symmetrize else law, kept
