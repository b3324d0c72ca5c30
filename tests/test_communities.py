"""Communities of a graph, and the law whose edge prior knows them."""

import itertools
import random

import igraph
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import quad
from scipy.special import digamma, factorial, softmax
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

import graphcouple as gc
from graphcouple.laws.community import _Blocks

LAW = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10))


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(90, 4, centers=3, cluster_std=1.0, random_state=0)


@pytest.fixture(scope="module")
def overlapping():
    return make_blobs(90, 4, centers=3, cluster_std=2.5, random_state=0)[0]


def planted(n, n_groups, within, between, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_groups), n // n_groups)
    upper = np.triu(rng.random((n, n)) < np.where(labels[:, None] == labels, within, between), 1)
    return (upper | upper.T).astype(float), labels


def network(adjacency):
    """An observed network under prior B, as good as certain."""
    return gc.Binary().around(sp.csr_array(adjacency) * (1.0 - 1e-9))


def log_evidence(adjacency, labels):
    """The log-evidence of labels, with the rates integrated numerically and the share of labels in closed form."""
    n, n_groups = labels.size, labels.max() + 1
    degrees = adjacency.sum(axis=1) / adjacency.sum(axis=1).mean()
    mean_rate = adjacency.sum() / n**2
    total = 0.0
    for a, b in itertools.combinations_with_replacement(range(n_groups), 2):
        share = 0.5 if a == b else 1.0
        edges = share * adjacency[np.ix_(labels == a, labels == b)].sum()
        pairs = share * degrees[labels == a].sum() * degrees[labels == b].sum()
        likelihood, _ = quad(lambda t, e=edges, p=pairs: t**e * np.exp(-t * p - t / mean_rate) / mean_rate, 0, np.inf)
        total += np.log(likelihood)
    counts = np.bincount(labels)
    arrangements = factorial(n) / np.prod(factorial(counts))
    compositions = factorial(n + n_groups - 1) / factorial(n) / factorial(n_groups - 1)
    return total - np.log(arrangements) - np.log(compositions)


def test_the_groups_of_greatest_evidence():
    """Among all ways to label ten nodes in two groups, by enumeration."""
    adjacency = np.kron(np.eye(2), np.ones((5, 5)) - np.eye(5))
    adjacency[4, 5] = adjacency[5, 4] = 1.0
    found = gc.laws.communities(network(adjacency), 2, edges_per_node=adjacency.sum() / 10)
    labelings = [np.array((0, *rest)) for rest in itertools.product((0, 1), repeat=9) if any(rest)]
    evidence = [log_evidence(2.0 * adjacency, labels) for labels in labelings]
    best = labelings[int(np.argmax(evidence))]
    assert adjusted_rand_score(best, found.labels) == 1.0
    # The memberships are not quite certain, which adds their entropy; and the bound has two orders of the labels.
    assert max(evidence) - 0.2 < found.evidence < max(evidence) + np.log(2.0)


@pytest.mark.parametrize(("n", "n_groups", "within", "between"), [(300, 3, 0.2, 0.02), (600, 6, 0.14, 0.008)])
def test_planted_partitions_as_leiden_finds_them(n, n_groups, within, between):
    adjacency, labels = planted(n, n_groups, within, between)
    found = gc.laws.communities(network(adjacency), edges_per_node=None)
    graph = igraph.Graph.Adjacency(adjacency, mode="undirected")
    leiden = graph.community_leiden("modularity", n_iterations=-1).membership
    assert found.memberships.shape[1] == n_groups
    assert adjusted_rand_score(labels, found.labels) > 0.97
    assert adjusted_rand_score(leiden, found.labels) > 0.97


def test_the_union_of_greatest_evidence():
    """Among all pairs of seven groups, of which some belong together; the evidence is computed anew for each."""
    adjacency, labels = planted(70, 7, 0.5, 0.05)
    adjacency[np.ix_(labels == 2, labels == 5)] = adjacency[np.ix_(labels == 5, labels == 2)] = 0.6
    blocks = _Blocks.of(network(adjacency), None)
    apart = np.eye(7)[labels]
    evidence = {}
    for a, b in itertools.combinations(range(7), 2):
        union = np.delete(np.eye(7), b, axis=1)
        union[b, a if a < b else a - 1] = 1.0
        evidence[blocks.table(apart @ union).evidence] = union
    np.testing.assert_array_equal(blocks.table(apart).merged(6), evidence[max(evidence)])


def test_memberships_solve_their_equations(overlapping):
    """Of variational Bayes, written with dense sums."""
    posterior = LAW.posterior(overlapping)
    found = gc.laws.communities(posterior, 3)
    weights = posterior.mean() + posterior.mean().T
    weights *= 4.0 * len(overlapping) / weights.sum()
    degrees = weights.sum(axis=1) / weights.sum(axis=1).mean()
    q, share = found.memberships, 1.0 - 0.5 * np.eye(3)
    edges, pairs = share * (q.T @ weights @ q), share * np.outer(degrees @ q, degrees @ q)
    scale = pairs + len(overlapping) ** 2 / weights.sum()
    np.testing.assert_allclose(found.rates, digamma(edges + 1.0) - np.log(scale), rtol=1e-3)
    field = np.einsum("ij,jb,ab->ia", weights, q, found.rates) + digamma(q.sum(axis=0) + 1.0)
    np.testing.assert_allclose(q, softmax(field, axis=1), atol=5e-3)
    # The update leaves out the expected number of edges, whose effect is small.
    field -= np.einsum("i,b,ab->ia", degrees, degrees @ q, (edges + 1.0) / scale)
    np.testing.assert_allclose(q, softmax(field, axis=1), atol=0.05)
    assert (q.max(axis=1) < 0.99).sum() > 5


def test_no_groups_in_noise_where_leiden_finds_some():
    adjacency, _ = planted(400, 1, 0.05, 0.05)
    assert gc.laws.communities(network(adjacency), edges_per_node=None).memberships.shape == (400, 1)
    X = np.random.default_rng(0).normal(size=(500, 10))
    posterior = LAW.posterior(X)
    assert gc.laws.communities(posterior).memberships.shape == (500, 1)
    law = gc.laws.CommunityLaw(LAW).posterior(X)
    np.testing.assert_allclose(law.edge_means, posterior.edge_means, rtol=1e-12)


def test_the_search_leaves_igraphs_and_the_global_random_numbers_alone(blobs):
    X, _ = blobs
    random.seed(3)
    before = random.getstate()
    first = gc.laws.communities(LAW.posterior(X)).memberships
    assert random.getstate() == before
    graphs = []
    for seed in (5, 5):
        random.seed(seed)
        graphs.append(igraph.Graph.Erdos_Renyi(20, 0.5).get_edgelist())
    assert graphs[0] == graphs[1]
    np.testing.assert_array_equal(gc.laws.communities(LAW.posterior(X)).memberships, first)


@pytest.mark.parametrize("n_groups", [1, 2, 7])
def test_as_many_groups_as_asked(blobs, n_groups):
    X, _ = blobs
    found = gc.laws.communities(LAW.posterior(X), n_groups)
    assert found.memberships.shape == (len(X), n_groups)
    np.testing.assert_allclose(found.memberships.sum(axis=1), 1.0)
    assert np.bincount(found.labels).tolist() == sorted(np.bincount(found.labels), reverse=True)


@pytest.mark.parametrize(
    "law",
    [
        LAW,
        gc.GraphModel(gc.Gaussian(), "E", gc.Perplexity(10), 30),
        gc.GraphModel(gc.Odds(gc.Exponential()), "B", gc.LocalConnectivity(10), 10, symmetrize="threshold"),
    ],
    ids=["D", "E", "B"],
)
def test_edges_between_groups_are_less_likely(blobs, law):
    """Against loops over pairs: a mean is multiplied by exp(E[log θ]), and normalised where graphs have all edges."""
    X, _ = blobs
    plain = law.posterior(X)
    found = gc.laws.communities(plain, 3)
    got = gc.laws.CommunityLaw(law, 3).posterior(X)
    expected = sp.csr_array(plain.mean()).toarray()
    own = np.diagonal(found.rates)
    for i, j in zip(*expected.nonzero(), strict=True):
        log_factor = 0.0
        for a, b in itertools.product(range(3), repeat=2):
            theta = min(found.rates[a, b] - 0.5 * (own[a] + own[b]), 0.0)
            log_factor += found.memberships[i, a] * found.memberships[j, b] * theta
        expected[i, j] *= np.exp(log_factor)
    if law.prior.code == "D":
        expected /= expected.sum(axis=1, keepdims=True)
    if law.prior.code == "E":
        expected *= len(X) / expected.sum()
    np.testing.assert_allclose(sp.csr_array(got.mean()).toarray(), expected, rtol=1e-9, atol=1e-14)


def test_new_points_join_the_groups_of_their_neighbours(overlapping):
    """Memberships of a new row by one update, with two edges."""
    law = gc.laws.CommunityLaw(LAW, 3).given(overlapping)
    law.posterior()
    found = law.groups
    X = overlapping[:20] + 0.1
    plain = LAW.given(overlapping).new_edges(X).normalized().toarray()
    q = softmax(2.0 * plain @ found.memberships @ found.rates + digamma(found.memberships.sum(axis=0) + 1.0), axis=1)
    expected = plain * np.exp(q @ found.log_affinity @ found.memberships.T)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(law.new_edges(X).to_csr().toarray(), expected, rtol=1e-9, atol=1e-12)
    assert np.abs(expected - plain).max() > 0.01


def test_saved_and_loaded(blobs, tmp_path):
    X, _ = blobs
    latent = gc.GraphModel(gc.Student(), "E")
    method = gc.GraphCoupling(gc.laws.CommunityLaw(LAW, 3), latent, init="pca", random_state=0, max_iter=100).fit(X)
    method.save(tmp_path / "model.gc")
    loaded = gc.load(tmp_path / "model.gc")
    np.testing.assert_array_equal(loaded.transform(X[:9] + 0.1), method.transform(X[:9] + 0.1))


def test_wrong_arguments(blobs):
    X, _ = blobs
    posterior = LAW.posterior(X)
    for n_groups, error in ((0, ValueError), (2.5, TypeError), ("many", ValueError), (len(X) + 1, ValueError)):
        with pytest.raises(error, match="n_groups"):
            gc.laws.communities(posterior, n_groups)
    with pytest.raises(TypeError, match="posterior must be the law of a graph"):
        gc.laws.communities("D")
    for laws in ([LAW, LAW], [LAW]):
        with pytest.raises(TypeError, match="of one GraphModel, not of a GraphMixture"):
            gc.laws.CommunityLaw(gc.GraphMixture(laws))
    with pytest.raises(ValueError, match="edges_per_node"):
        gc.laws.communities(posterior, edges_per_node=0)
    with pytest.raises(TypeError, match="law must be a GraphModel"):
        gc.laws.CommunityLaw("D")
    with pytest.raises(ValueError, match="CommunityLaw takes no sample weights"):
        gc.laws.CommunityLaw(LAW).posterior(X, sample_weight=np.ones(len(X)))
