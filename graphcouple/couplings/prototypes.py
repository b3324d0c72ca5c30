"""n points at m places: the graph of groups of points, and the plan that says which point is at which place.

The loss of a map whose points stand at places z_k, with n_k points each, is the coupling of the graph between groups,
M_ab = Σ M_ij over i at a and j at b, with the latent law of m points of the weights n_k. It is concave in each point's
row of the plan under priors B, D and E, so a plan that splits a point between places is never the only best one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from graphcouple._numba.plan import GRAPH, PAIR, ROW, move_points
from graphcouple.couplings.cross_entropy import CrossEntropy
from graphcouple.couplings.pair import check_shared_places
from graphcouple.graphs import FloatArray, Graph, IntArray, Support
from graphcouple.laws.copies import refuse_weights
from graphcouple.laws.priors import RandomGraph

_RULES = {"pair": PAIR, "row": ROW, "graph": GRAPH}

# The numbers of coordinates and of runs of k-means. On the digits and 60 places, as many eigenvectors gave about the
# same loss in ten times the time; k-means of the points gave a loss 0.01 nats a point higher.
_COORDINATES, _KMEANS = 64, 2

# The least and the most steps of walks: with 2 steps, the loss was .03 nats a point higher. If the graph has more
# components than there are groups, their modes never die away.
_STEPS = range(4, 65)


class GroupedPosterior(RandomGraph):
    """The law of the edges between groups of a graph's nodes; a node stands for all nodes of its group.

    Parameters
    ----------
    law : RandomGraph
    labels : ndarray of shape (n_nodes,)
        The group of each node, from 0; none is empty.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> law = gc.GraphModel("gaussian", "D", gc.Perplexity(10)).posterior(X)
    >>> groups = gc.couplings.GroupedPosterior(law, y)
    >>> round(float(groups.edge_means.sum() + groups.own_means.sum()), 6)  # each of 150 points has an edge
    150.0
    """

    def __init__(self, law: RandomGraph, labels: IntArray) -> None:
        self.law, self.unordered = law, law.unordered
        self.member = sp.csr_array((np.ones(law.n_nodes), labels, np.arange(law.n_nodes + 1)))
        self.node_weights = np.asarray(self.member.sum(axis=0)).ravel()
        self._means = sp.csr_array(self.member.T @ law.support.to_csr(law.edge_means) @ self.member)
        self._edges = sp.csr_array(self._means - sp.diags_array(self.own_means))
        self._edges.eliminate_zeros()
        self._edges.sort_indices()
        super().__init__(Support(self._edges.indptr, self._edges.indices))

    @property
    def code(self) -> str:
        return self.law.code

    @property
    def prior_name(self) -> str:
        return self.law.prior_name

    @property
    def constraints(self) -> frozenset[str]:
        """The constraints on the graph of all nodes."""
        return self.law.constraints

    @property
    def edge_means(self) -> FloatArray:
        return self._edges.data

    @property
    def own_means(self) -> FloatArray:
        return self._means.diagonal()

    def least_entropy(self) -> float:
        """Return the bound for the law of all nodes, because the loss counts all nodes."""
        return self.law.least_entropy()

    def sample(self, rng: Any = None) -> Graph:
        """Draw one graph of all nodes, and return the numbers of its edges between groups."""
        between = sp.coo_array(self.member.T @ self.law.sample(rng) @ self.member)
        keep = between.row != between.col
        counts = between.data[keep].astype(np.int32)
        return Graph((counts, (between.row[keep], between.col[keep])), shape=between.shape)

    def sample_edges(self, rng: Any = None) -> tuple[IntArray, IntArray]:
        """Draw one graph as the starts and ends of its edges between groups, each pair once."""
        graph = sp.coo_array(self.sample(rng))
        once = (graph.row < graph.col) | (not self.unordered)
        return graph.row[once], graph.col[once]

    def log_prob(self, W: Any) -> float:
        """Raise `ValueError`: the numbers of edges between groups have no formula for their probability."""
        raise ValueError("the law of the edges between groups has no formula for its probability; use `law.log_prob`.")


def groups_of(posterior: RandomGraph, n_groups: int, rng: np.random.RandomState) -> IntArray:
    """Return groups of nodes from which random walks end in the same places: k-means of diffusion coordinates.

    The coordinates are a random projection of the distributions after t steps, which keeps their distances. Walks end
    when Σ λ^(2t), the number of modes that have not died away, is at most the number of groups.

    Parameters
    ----------
    posterior : RandomGraph
    n_groups : int
        The number of groups, which are numbered from 0. There are fewer if nodes coincide.
    rng : numpy.random.RandomState

    References
    ----------
    Coifman and Lafon (2006), Diffusion maps. Johnson and Lindenstrauss (1984) for the projection.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> law = gc.GraphModel("gaussian", "D", gc.Perplexity(10)).posterior(X)
    >>> np.bincount(gc.couplings.groups_of(law, 2, np.random.RandomState(0))).tolist()
    [100, 50]
    """
    from sklearn.cluster import KMeans

    n = posterior.n_nodes
    if n_groups >= n:
        return np.arange(n)
    means = posterior.support.to_csr(posterior.edge_means)
    affinity = sp.csr_array(means + means.T, dtype=np.float64)
    degrees = np.asarray(affinity.sum(axis=1)).ravel()
    per_degree = 1.0 / np.where(degrees > 0, degrees, 1.0)
    coordinates = rng.normal(size=(n, _COORDINATES)) * np.sqrt(per_degree)[:, None]
    for t in range(1, _STEPS.stop):
        coordinates = per_degree[:, None] * (affinity @ coordinates)
        modes = float(degrees @ np.square(coordinates).mean(axis=1))
        if t in _STEPS and modes <= n_groups:
            break
    labels = KMeans(n_groups, n_init=_KMEANS, random_state=rng).fit(coordinates).labels_
    return np.unique(labels, return_inverse=True)[1]


class Plan:
    """Which point is at which place, under the cross-entropy with a latent law.

    Parameters
    ----------
    coupling : CrossEntropy
        Of all points.
    labels : ndarray of shape (n_points,)
        The place of each point, from 0; none is empty.

    Raises
    ------
    ValueError
        When the latent law takes no weights or has its own edge prior, or a shared place would have an infinite loss.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> law = gc.GraphModel("gaussian", "D", gc.Perplexity(10)).posterior(X)
    >>> coupling = gc.CrossEntropy(law, gc.GraphModel("student", "E"))
    >>> plan, places = gc.couplings.Plan(coupling, y), np.array([[0.0, 0.0], [1.0, 0.0], [3.0, 0.0]])
    >>> bool(np.isclose(plan.objective().value(places), coupling.value(places[y])))
    True
    """

    def __init__(self, coupling: CrossEntropy, labels: IntArray) -> None:
        latent = coupling.latent
        if latent.prior.drawn_by is None or latent.prior.edges(coupling.n_points) is not None:
            raise ValueError(f"the latent law must have prior B, D or E with one weight for all edges, got {latent}.")
        check_shared_places(latent.kernel)
        refuse_weights(coupling.posterior.node_weights, "Plan")
        # `improve` changes the labels in place.
        self.coupling, self.labels = coupling, np.array(labels, dtype=np.int64)
        means = coupling.posterior.support.to_csr(coupling.posterior.edge_means)
        self._graph = sp.csr_array(means + means.T, dtype=np.float64)
        # The loop treats a place whose weights sum to zero as not yet seen.
        self._graph.eliminate_zeros()

    def objective(self) -> CrossEntropy:
        """Return the loss as a function of the places."""
        coupling = self.coupling
        groups = GroupedPosterior(coupling.posterior, self.labels)
        return CrossEntropy(groups, coupling.latent, "exact", coupling.n_jobs, coupling.exaggeration)

    def improve(self, places: FloatArray, rng: np.random.RandomState) -> tuple[FloatArray, int]:
        """Move each point, in an order that `rng` draws, to the place of the lowest loss.

        Return the places that have points, of `places` of shape (n_places, n_components), and the number of moves.
        """
        latent, n = self.coupling.latent, self.labels.size
        prior, near = latent.prior, places / self.coupling.scale
        log_kernel = prior.latent_kernel(latent.kernel).log(cdist(near, near, "sqeuclidean"))
        rule = _RULES[str(prior.drawn_by)]
        values = np.logaddexp(0.0, log_kernel) if rule == PAIR else np.exp(log_kernel - log_kernel.max())
        sizes = np.bincount(self.labels, minlength=len(places)).astype(np.float64)
        graph = (self._graph.indptr.astype(np.int64), self._graph.indices.astype(np.int64), self._graph.data)
        pulls, total = -self.coupling.exaggeration * log_kernel, float(prior.draws * (n if rule == GRAPH else 1))
        moved = move_points(rng.permutation(n), *graph, self.labels, sizes, pulls, values, rule, total)
        taken, self.labels = np.unique(self.labels, return_inverse=True)
        return places[taken], int(moved)
