"""Communities of a hidden graph, and a law whose edge prior knows them.

The nodes of a graph are in hidden groups c, and edges between groups a and b have the rate θ_ab: a stochastic block
model. With the weights w_ij of a graph's pairs and the degrees d, divided by their mean, w_ij is Poisson with the mean
θ_{c_i c_j} d_i d_j. Each θ has an exponential prior whose mean is the mean rate; the groups' shares have a uniform
prior.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma, gammaln, softmax, xlogy

from graphcouple._numba.threads import one_blas_thread
from graphcouple._support.validation import check_integer, check_positive, is_word
from graphcouple.graphs import FloatArray, IntArray, Support, largest_of_rows
from graphcouple.laws.copies import refuse_weights
from graphcouple.laws.derived import DerivedConditioned, DerivedLaw
from graphcouple.laws.given import GraphLaw, NewEdges
from graphcouple.laws.mixture import GraphMixture
from graphcouple.laws.priors import RandomGraph
from graphcouple.laws.priors.posterior import GraphPosterior

# Each node has an edge in the input's graph and one in the embedding's, which the coupling makes agree.
_EDGES = 2.0

# Leiden's algorithm starts at the usual resolution and at a finer one, for many small groups, and sees the heaviest
# edges of each node.
_RESOLUTIONS, _HEAVIEST = (1.0, 8.0), 20

# Updates end when memberships change by less than this on average.
_MOST_UPDATES, _SETTLED = 50, 1e-4

# Lighter pairs hold less than a thousandth of all edges.
_LEAST = 1e-5


@dataclass(frozen=True)
class Communities:
    """Groups of the nodes of a graph.

    Attributes
    ----------
    memberships : ndarray of shape (n_nodes, n_groups)
        The probability of each group, for each node.
    rates : ndarray of shape (n_groups, n_groups)
        E[log θ], the mean logarithm of the rates.
    evidence : float
        The lower bound of the logarithm of the evidence, in nats, up to a constant of the graph.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> groups = gc.laws.communities(gc.GraphModel("gaussian", "D", gc.Perplexity(30)).posterior(X), n_groups=2)
    >>> [int((groups.labels == group).sum()) for group in range(2)]
    [100, 50]
    """

    memberships: FloatArray
    rates: FloatArray
    evidence: float

    @cached_property
    def labels(self) -> IntArray:
        """The likeliest group of each node, of shape (n_nodes,); groups are numbered from the largest."""
        return self.memberships.argmax(axis=1)

    @property
    def log_affinity(self) -> FloatArray:
        """log θ_ab − ½ (log θ_aa + log θ_bb), at most 0: the factor of edges between groups in an edge prior."""
        own = np.diagonal(self.rates)
        return np.minimum(self.rates - 0.5 * (own[:, None] + own), 0.0)


def communities(
    posterior: RandomGraph, n_groups: int | str = "auto", edges_per_node: float | None = _EDGES
) -> Communities:
    """Find the groups of a hidden graph by variational inference in a stochastic block model.

    The weights are the mean graph's, times a factor. Leiden's algorithm gives two starts, the second with smaller
    groups. Of the groups that an edge joins, the two whose union raises the evidence most are united, until none raises
    it. Then memberships and rates are updated in turn. Of the two results, the one with the greater evidence is
    returned.

    Parameters
    ----------
    posterior : RandomGraph
        Such as an estimator's `posterior_`.
    n_groups : int or "auto", default="auto"
        "auto" unites groups while the evidence rises.
    edges_per_node : float or None, default=2.0
        How many independent edges of each node the evidence counts. Edges to near neighbours depend on each other: with
        all of them, the evidence finds groups even in noise. The default counts one edge of the input's graph and one
        of the embedding's, which the coupling makes agree. None counts all edges of the mean graph, for an observed
        network under prior B.

    Returns
    -------
    Communities

    Raises
    ------
    ValueError
        When `n_groups` is below 1 or above the number of nodes, or `edges_per_node` is not positive.
    TypeError
        When `posterior` is no law of a graph.

    References
    ----------
    Karrer and Newman (2011), Stochastic blockmodels and community structure in networks; Van Assel, Espinasse, Chiquet
    and Picard (2022), section 5, names communities as a prior. Traag, Waltman and van Eck (2019) for Leiden.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.laws.communities(gc.GraphModel("gaussian", "D", gc.Perplexity(30)).posterior(X)).memberships.shape
    (150, 3)
    """
    if not isinstance(posterior, RandomGraph):
        raise TypeError(f"posterior must be the law of a graph, such as an estimator's posterior_, got {posterior!r}.")
    refuse_weights(posterior.node_weights, "communities")
    number = None if is_word("n_groups", n_groups, "auto", "an integer") else check_integer("n_groups", n_groups, 1)
    if number is not None and number > posterior.n_nodes:
        raise ValueError(f"n_groups is {number}, but the graph has {posterior.n_nodes} nodes; lower it.")
    if edges_per_node is not None:
        check_positive("edges_per_node", edges_per_node)
    with one_blas_thread():
        blocks = _Blocks.of(posterior, edges_per_node)
        found = (blocks.fit(start, number) for start in blocks.starts(number or 1))
        return max(found, key=lambda groups: groups.evidence)


@dataclass(frozen=True)
class _Table:
    """The sums of a weighted graph over groups: edges between groups (twice those within), degrees and nodes."""

    edges: FloatArray
    degrees: FloatArray
    nodes: FloatArray
    typical: float
    """The inverse of the mean rate: pairs of nodes, by edge."""

    @cached_property
    def counts(self) -> tuple[FloatArray, FloatArray]:
        """The number of edges, and of pairs of nodes, between each pair of groups."""
        share = 1.0 - 0.5 * np.eye(self.nodes.size)
        return share * self.edges, share * np.outer(self.degrees, self.degrees)

    @property
    def log_rates(self) -> FloatArray:
        """E[log θ] given the memberships, under a gamma law for each pair of groups."""
        edges, pairs = self.counts
        return digamma(edges + 1.0) - np.log(pairs + self.typical)

    def _block(self, edges: FloatArray, pairs: FloatArray) -> FloatArray:
        """Return the log-evidence of blocks: ∫ θ^e exp(−θ p) r exp(−r θ) dθ, with 1/r the mean rate."""
        return gammaln(edges + 1.0) - (edges + 1.0) * np.log(pairs + self.typical) + np.log(self.typical)

    @property
    def evidence(self) -> float:
        """The log-evidence of the graph and of certain memberships, up to a constant of the graph."""
        n_groups, n_nodes = self.nodes.size, self.nodes.sum()
        labels = gammaln(n_groups) - gammaln(n_nodes + n_groups) + gammaln(self.nodes + 1.0).sum()
        return float(np.triu(self._block(*self.counts)).sum() + labels)

    def gains(self, all_pairs: bool = False) -> FloatArray:
        """Return the evidence gained by uniting groups a < b, except for their number; −inf without an edge."""
        (edges, pairs), nodes, n_groups = self.counts, self.nodes, self.nodes.size
        blocks = self._block(edges, pairs)
        own, labels = blocks.sum(axis=1), gammaln(nodes + 1.0)
        gains = np.full((n_groups, n_groups), -np.inf)
        for a in range(n_groups - 1):
            b = a + 1 + np.flatnonzero(all_pairs | (edges[a, a + 1 :] > 0.0))
            joint = self._block(edges[a] + edges[b], pairs[a] + pairs[b])
            others = joint.sum(axis=1) - joint[:, a] - joint[np.arange(b.size), b]
            both = self._block(edges[a, a] + edges[b, b] + edges[a, b], pairs[a, a] + pairs[b, b] + pairs[a, b])
            gains[a, b] = others + both - (own[a] + own[b] - blocks[a, b])
            gains[a, b] += gammaln(nodes[a] + nodes[b] + 1.0) - labels[a] - labels[b]
        return gains

    def merged(self, n_groups: int | None) -> FloatArray:
        """Return which groups belong together, of shape (groups before, groups after), by greedy unions.

        Unions end at `n_groups`, or if it is None where they would lower the evidence.
        """
        table, union = self, np.eye(self.nodes.size)
        while table.nodes.size > (n_groups or 1):
            gains = table.gains()
            gains = gains if np.isfinite(gains).any() else table.gains(all_pairs=True)
            first, second = divmod(int(gains.argmax()), table.nodes.size)
            pair = np.delete(np.eye(table.nodes.size), second, axis=1)
            pair[second, first] = 1.0
            fewer = _Table(pair.T @ table.edges @ pair, table.degrees @ pair, table.nodes @ pair, self.typical)
            if n_groups is None and fewer.evidence <= table.evidence:
                break
            table, union = fewer, union @ pair
        return union


@dataclass(frozen=True)
class _Blocks:
    """A weighted graph under the block model. `weights` is symmetric, `degrees` have the mean 1."""

    weights: sp.csr_array
    degrees: FloatArray

    @classmethod
    def of(cls, posterior: RandomGraph, edges_per_node: float | None) -> _Blocks:
        means = posterior.support.to_csr(np.asarray(posterior.edge_means, dtype=np.float64))
        both = sp.csr_array(means + means.T) * (0.5 if posterior.unordered else 1.0)
        if edges_per_node is not None and both.sum() > 0.0:
            both *= 2.0 * edges_per_node * both.shape[0] / both.sum()
        both.data[both.data < _LEAST] = 0.0
        both.eliminate_zeros()
        if not both.nnz:
            raise ValueError(
                f"the mean graph has no edges of weight {_LEAST:g} or more, so it has no groups; look at its weights, "
                "or raise edges_per_node."
            )
        degrees = np.asarray(both.sum(axis=1)).ravel()
        return cls(both, degrees / degrees.mean())

    def starts(self, least: int) -> Iterator[sp.csr_array]:
        """Yield memberships by Leiden's algorithm, with at least this many groups."""
        import igraph

        rows, n = Support(self.weights.indptr, self.weights.indices), self.degrees.size
        keep = largest_of_rows(rows, self.weights.data, _HEAVIEST)
        near = rows.select(keep).to_csr(self.weights.data[keep])
        edges = sp.triu(near.maximum(near.T), 1)
        graph = igraph.Graph(n=n, edges=np.column_stack([edges.row, edges.col]))
        for resolution in _RESOLUTIONS:
            igraph.set_random_number_generator(random.Random(0))
            try:
                while True:
                    found = graph.community_leiden("modularity", edges.data, resolution, n_iterations=-1)
                    membership = found.membership
                    if max(membership) + 1 >= least:
                        break
                    resolution *= 2.0
            finally:
                igraph.set_random_number_generator(random)
            yield sp.csr_array((np.ones(n), membership, np.arange(n + 1)))

    def table(self, memberships: Any, to_groups: Any = None) -> _Table:
        """Return the sums over groups with these memberships, dense or sparse; `to_groups` is weights @ memberships."""
        edges = memberships.T @ (self.weights @ memberships if to_groups is None else to_groups)
        edges = edges.toarray() if sp.issparse(edges) else edges
        typical = self.degrees.size**2 / float(self.weights.sum())
        return _Table(edges, self.degrees @ memberships, np.asarray(memberships.sum(axis=0)).ravel(), typical)

    def updated(self, memberships: FloatArray, least: int) -> FloatArray:
        """Return memberships after variational updates, which may empty groups, down to `least`.

        The expected number of a node's edges is left out: apart from the prior, it is the node's degree in every group.
        """
        for _ in range(_MOST_UPDATES):
            before, to_groups = memberships, self.weights @ memberships
            table = self.table(before, to_groups)
            memberships = softmax(to_groups @ table.log_rates + digamma(table.nodes + 1.0), axis=1)
            taken = np.unique(memberships.argmax(axis=1))
            if taken.size < least:
                return before
            memberships = memberships[:, taken] / memberships[:, taken].sum(axis=1, keepdims=True)
            if taken.size == before.shape[1] and np.abs(memberships - before).sum() < _SETTLED * self.degrees.size:
                break
        return memberships

    def fit(self, start: sp.csr_array, n_groups: int | None) -> Communities:
        """Return the groups from a start; their number by the evidence, if it is None."""
        memberships = self.updated(start @ self.table(start).merged(n_groups), n_groups or 1)
        sizes = np.bincount(memberships.argmax(axis=1), minlength=memberships.shape[1])
        memberships = memberships[:, np.argsort(-sizes, kind="stable")]
        table = self.table(memberships)
        evidence = table.evidence - float(xlogy(memberships, memberships).sum())
        return Communities(memberships, table.log_rates, evidence)


class _InCommunities(DerivedConditioned):
    """A law with communities given its points. `inferred` holds the memberships and the rates."""

    remembers = "communities"

    @property
    def groups(self) -> Communities:
        """The groups of the points."""
        memberships, rates = self.inferred
        return Communities(memberships, rates, np.nan)

    def posterior(self, n_jobs: int | None = None) -> RandomGraph:
        plain = self.part.posterior(n_jobs)
        assert isinstance(plain, GraphPosterior)
        groups = communities(plain, self.derived.n_groups)
        self.inferred = (groups.memberships, groups.rates)
        factor = _log_factor(plain.support, groups.memberships, groups)
        return plain.with_natural_parameters(self.derived.parts[0].prior.thinned(plain.natural_parameters, factor))

    def _changed(self, edges: NewEdges) -> NewEdges:
        groups = self.groups
        log_sizes = digamma(groups.memberships.sum(axis=0) + 1.0)
        field = _EDGES * edges.normalized() @ groups.memberships @ groups.rates + log_sizes
        means = edges.means * np.exp(_log_factor(edges.support, softmax(field, axis=1), groups))
        if self.derived.parts[0].prior.normalized:
            means = means / replace(edges, means=means).mass[edges.support.rows]
        return replace(edges, means=means)


def _log_factor(support: Support, starts: FloatArray, groups: Communities) -> FloatArray:
    """Return Σ_ab q_ia q_jb log θ_ab on edges from points with memberships `starts`, θ divided by √(θ_aa θ_bb)."""
    field, ends = starts @ groups.log_affinity, groups.memberships
    factor = np.empty(support.n_edges)
    for rows, edges, part in support.in_parts():
        factor[edges] = np.einsum("ea,ea->e", field[rows][part.rows], ends[part.indices])
    return factor


@dataclass(frozen=True)
class CommunityLaw(DerivedLaw):
    """A law whose edge prior knows the graph's communities: π_ij = θ_{c_i c_j}.

    The groups c and the rates θ are inferred from the graph of another law; see `communities`. The rates are divided by
    √(θ_aa θ_bb), so edges within groups keep their prior, and edges between groups get the prior exp(E[log π]). Groups
    then stand apart in the map, as classes do with a `target_weight`, without any known class.

    Parameters
    ----------
    law : GraphModel
    n_groups : int or "auto", default="auto"
        "auto" chooses by the evidence.

    Raises
    ------
    TypeError, ValueError
        When `law` is no GraphModel, or n_groups is below 1; when points have weights.

    References
    ----------
    Van Assel, Espinasse, Chiquet and Picard (2022), A probabilistic graph coupling view of dimension reduction,
    section 5: priors with communities.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> law = gc.laws.CommunityLaw(gc.GraphModel("gaussian", "D", gc.Perplexity(30)), n_groups=3)
    >>> law.given(X).posterior()
    <UnitOutDegreePosterior (prior D) of 150 nodes, all pairs>
    """

    law: GraphLaw
    n_groups: int | str = "auto"

    _conditioned: ClassVar[type[DerivedConditioned]] = _InCommunities

    def __post_init__(self) -> None:
        if not is_word("n_groups", self.n_groups, "auto", "an integer"):
            check_integer("n_groups", self.n_groups, 1)
        super().__post_init__()
        inner: Any = self.law
        while isinstance(inner, DerivedLaw):
            inner = inner.law
        if isinstance(inner, GraphMixture):
            raise TypeError(
                f"law must be of one GraphModel, not of a GraphMixture, got {inner!r}; pass one of its laws."
            )

    def __str__(self) -> str:
        return f"{self.law}, {self.n_groups} communities"
