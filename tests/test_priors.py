import igraph
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import graphcouple as gc
from graphcouple.laws.priors.fixed_edges import expected_log_factorial
from tests.reference import dense, enumerated_law

PRIORS = {"B": gc.Binary, "D": gc.UnitOutDegree, "E": gc.FixedEdges}
EVERY = pytest.mark.parametrize("code", PRIORS)
N = 3


def _log_kernel(seed=0):
    return np.random.default_rng(seed).normal(size=(N, N)) - 0.3


def _edge_prior(seed=1):
    prior = np.random.default_rng(seed).uniform(0.2, 3.0, size=(N, N))
    prior[0, 2] = 0.0
    np.fill_diagonal(prior, 0.0)
    return prior


CASES = {
    "no edge prior": (None, np.ones((N, N))),
    "scalar": (2.5, np.full((N, N), 2.5)),
    "array": (_edge_prior(), _edge_prior()),
    "sparse": (sp.csr_matrix(_edge_prior()), _edge_prior()),
}
WITH_PRIOR = pytest.mark.parametrize(("given", "pi"), CASES.values(), ids=CASES.keys())


@EVERY
@WITH_PRIOR
@pytest.mark.parametrize("stored", ["dense", "sparse"])
def test_law_against_enumeration_of_all_graphs(code, given, pi, stored):
    log_kernel = _log_kernel()
    graphs, probabilities, log_partition = enumerated_law(code, pi * np.exp(log_kernel))
    law = PRIORS[code](given).posterior(log_kernel if stored == "dense" else sp.csr_array(log_kernel))
    np.testing.assert_allclose(law.log_partition(), log_partition, rtol=1e-12)
    mean = sum(p * W for p, W in zip(probabilities, graphs, strict=True))
    np.testing.assert_allclose(dense(law.mean()), mean, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(law.entropy(), -(probabilities @ np.log(probabilities)), rtol=1e-12)
    found = [law.log_prob(W) for W in graphs]
    np.testing.assert_allclose(found, np.log(probabilities), rtol=1e-11, atol=1e-13)


@EVERY
def test_sampling_frequencies_match_the_enumerated_law(code):
    graphs, probabilities, _ = enumerated_law(code, np.exp(_log_kernel()))
    law = PRIORS[code]().posterior(_log_kernel())
    index = {W.tobytes(): i for i, W in enumerate(graphs)}
    rng = np.random.default_rng(0)
    counts = np.zeros(len(graphs))
    draws = 8000
    for _ in range(draws):
        counts[index[law.sample(rng).toarray().astype(int).tobytes()]] += 1
    chi2 = ((counts - draws * probabilities) ** 2 / (draws * probabilities)).sum()
    dof = len(graphs) - 1
    assert abs(chi2 - dof) < 4 * np.sqrt(2 * dof)


@EVERY
def test_sparse_samples_match_the_mean_and_their_law(code, rng):
    n = 60
    X = rng.normal(size=(n, 3))
    law = gc.GraphModel(gc.Gaussian(), code, gc.ConstantBandwidth(1.0), n_neighbors=8).posterior(X)
    draws = 3000
    total = sum(law.sample(rng).astype(float) for _ in range(draws)).toarray()
    mean = law.mean().toarray()
    deviation = (total / draws - mean) / np.sqrt(np.maximum(mean, 1e-4) / draws)
    assert np.abs(deviation).max() < 5.5
    assert not total[mean == 0].any()
    surprise = [-law.log_prob(law.sample(rng)) for _ in range(400)]
    assert abs(np.mean(surprise) - law.entropy()) < 4 * np.std(surprise) / np.sqrt(400) + 1e-9


def test_graphs_off_the_support_have_log_probability_minus_infinity():
    laws = {code: prior().posterior(_log_kernel()) for code, prior in PRIORS.items()}
    double = np.zeros((N, N))
    double[0, 1] = 2
    loop = np.eye(N)
    few = np.zeros((N, N))
    few[0, 1] = 1
    assert laws["B"].log_prob(double) == -np.inf
    assert laws["D"].log_prob(few) == -np.inf
    assert laws["E"].log_prob(few) == -np.inf
    for law in laws.values():
        assert law.log_prob(loop) == -np.inf
    with pytest.raises(ValueError, match="integers"):
        laws["B"].log_prob(few / 2)
    with pytest.raises(ValueError, match="nodes"):
        laws["B"].log_prob(np.zeros((4, 4)))


def test_stored_zero_means_log_one_and_absent_means_impossible():
    log_kernel = sp.csr_array((np.zeros(3), ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
    assert log_kernel.nnz == 3
    mean = gc.Binary().posterior(log_kernel).mean()
    np.testing.assert_array_equal(mean.toarray(), 0.5 * (np.roll(np.eye(3), 1, axis=1)))
    assert gc.Binary(np.zeros((3, 3))).posterior(log_kernel).n_edges == 0


@pytest.mark.parametrize("kind", ["networkx", "networkx directed", "igraph", "igraph directed", "sparse"])
def test_an_observed_network_is_an_edge_prior(kind):
    edges = [(0, 1, 2.0), (1, 2, 0.5), (2, 3, 1.0), (0, 3, 3.0)]
    directed = "directed" in kind
    pi = np.zeros((4, 4))
    for i, j, w in edges:
        pi[i, j] = w
        if not directed:
            pi[j, i] = w
    if kind.startswith("networkx"):
        graph = nx.DiGraph() if directed else nx.Graph()
        graph.add_nodes_from(range(4))
        graph.add_weighted_edges_from(edges)
    elif kind.startswith("igraph"):
        graph = igraph.Graph([(i, j) for i, j, _ in edges], directed=directed)
        graph.es["weight"] = [w for *_, w in edges]
    else:
        graph = sp.coo_matrix(pi)
    X = np.random.default_rng(0).normal(size=(4, 2))
    found = gc.GraphModel(gc.Gaussian(), gc.FixedEdges(graph)).posterior(X).mean()
    k = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 2) * pi
    np.testing.assert_allclose(found.toarray(), 4 * k / k.sum(), rtol=1e-12)


def test_node_without_an_allowed_edge_is_named_by_prior_d():
    pi = np.ones((3, 3))
    pi[1] = 0
    with pytest.raises(ValueError, match="node 1"):
        gc.UnitOutDegree(pi).posterior(np.zeros((3, 3)))


@pytest.mark.parametrize(
    ("edge_prior", "error"),
    [
        (-1.0, ValueError),
        (np.nan, ValueError),
        (-np.ones((3, 3)), ValueError),
        ("dense", TypeError),
        (np.ones((2, 3)), ValueError),
    ],
)
def test_bad_edge_priors_are_refused(edge_prior, error):
    with pytest.raises(error, match="edge_prior"):
        gc.Binary(edge_prior)


def test_bad_log_kernels_are_refused():
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="log_kernel"):
            gc.Binary().posterior(np.full((3, 3), value))


@pytest.mark.parametrize("code", ["B", "D", "E"])
def test_letters_stand_for_priors(code):
    assert isinstance(gc.GraphModel(gc.Gaussian(), code).prior, PRIORS[code])
    with pytest.raises(ValueError, match="prior"):
        gc.GraphModel(gc.Gaussian(), "F")


@EVERY
def test_samples_convert(code, rng):
    X = rng.normal(size=(30, 3))
    W = gc.GraphModel(gc.Gaussian(), code, n_neighbors=5).posterior(X).sample(0)
    assert sp.issparse(W)
    assert W.dtype.kind == "i"
    np.testing.assert_array_equal(nx.to_numpy_array(W.to_networkx(), dtype=int), W.toarray())
    graph = W.to_igraph()
    assert graph.is_directed()
    found = np.zeros(W.shape)
    for edge in graph.es:
        found[edge.source, edge.target] = edge["weight"]
    np.testing.assert_array_equal(found, W.toarray())
    assert (abs(gc.GraphModel(gc.Gaussian(), code, n_neighbors=5).posterior(X).sample(0) - W)).nnz == 0


def test_threshold_is_the_law_of_the_undirected_graph():
    log_kernel = _log_kernel()
    graphs, probabilities, _ = enumerated_law("B", np.exp(log_kernel))
    law = gc.Binary().posterior(log_kernel).thresholded()
    table = {}
    for W, p in zip(graphs, probabilities, strict=True):
        key = ((W + W.T) >= 1).astype(int).tobytes()
        table[key] = table.get(key, 0.0) + p
    p = np.array(list(table.values()))
    undirected = [np.frombuffer(key, dtype=int).reshape(N, N) for key in table]
    np.testing.assert_allclose([law.log_prob(W) for W in undirected], np.log(p), rtol=1e-11)
    np.testing.assert_allclose(law.entropy(), -(p @ np.log(p)), rtol=1e-12)
    np.testing.assert_allclose(law.mean(), sum(q * W for q, W in zip(p, undirected, strict=True)), rtol=1e-12)
    directed = np.zeros((N, N))
    directed[0, 1] = 1
    assert law.log_prob(directed) == -np.inf
    W = law.sample(0).toarray()
    np.testing.assert_array_equal(W, W.T)
    with pytest.raises(ValueError, match="thresholded already"):
        law.thresholded()


def test_threshold_of_a_sparse_law_joins_both_directions(rng):
    X = rng.normal(size=(40, 3))
    directed = gc.GraphModel(gc.Gaussian(), "B", n_neighbors=4).posterior(X)
    P = directed.mean().toarray()
    law = directed.thresholded()
    np.testing.assert_allclose(law.mean().toarray(), P + P.T - P * P.T, rtol=1e-12)
    # Far pairs have log-odds of log(e^η + e^η').
    faint = gc.GraphModel(gc.Gaussian(), "B").posterior([[0.0], [60.0], [450.0]]).thresholded()
    np.testing.assert_allclose(
        faint.natural_parameters[:2], np.log(2.0) - 0.5 * np.array([60.0, 450.0]) ** 2, rtol=1e-12
    )
    around = gc.Binary().around(np.array([[0.0, 1e-9], [4e-9, 0.0]]))
    assert not around.unordered
    np.testing.assert_array_equal((law.sample(0) - law.sample(0).T).toarray(), 0)
    draws = sum(law.sample(rng).astype(float) for _ in range(2000)).toarray() / 2000
    assert np.abs(draws - law.mean().toarray()).max() < 5 * 0.5 / np.sqrt(2000)


def test_expected_log_factorial_at_large_and_small_means():
    from scipy.special import gammaln
    from scipy.stats import binom

    for n, p in ((50, [0.9, 0.02, 0.08]), (2000, [0.5, 0.499, 0.001]), (7, [1.0])):
        w = np.arange(n + 1)
        wanted = sum((binom.pmf(w, n, q) * gammaln(w + 1)).sum() for q in p)
        np.testing.assert_allclose(expected_log_factorial(n, np.array(p)), wanted, rtol=1e-12)


def test_means_at_extreme_weights_are_exact():
    eta = np.array([[0, 800.0, -800.0], [-800.0, 0, 0.0], [5.0, -5.0, 0]])
    for prior in PRIORS.values():
        law = prior().posterior(eta)
        assert np.isfinite(law.log_partition())
        assert np.isfinite(law.entropy())
        assert law.entropy() >= 0
    np.testing.assert_allclose(gc.Binary().posterior(eta).mean()[0], [0, 1, 0], atol=1e-300)
