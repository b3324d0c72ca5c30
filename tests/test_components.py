"""Connected components of posterior graphs and the averaged projection, against enumeration."""

import itertools
import pickle

import joblib
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator
from scipy.spatial.distance import cdist

import graphcouple as gc
from graphcouple.components import component_law, sampled_pca, weak_components

from .reference import enumerated_law, fast_and_nightly, pairs


def _projection(labels):
    """UUᵀ of one graph, from the definition."""
    same = labels[:, None] == labels[None]
    return same / same.sum(axis=1)


def _labels_by_networkx(W):
    graph = nx.from_numpy_array(np.asarray(W), create_using=nx.DiGraph)
    labels = np.empty(len(W), dtype=int)
    for c, nodes in enumerate(nx.weakly_connected_components(graph)):
        labels[list(nodes)] = c
    return labels


def _dense(M):
    return M @ np.eye(M.shape[0])


@pytest.mark.parametrize("code", fast_and_nightly({"D": "D", "B": "B", "E": "E"}, fast=("D",)))
def test_averaged_projection_is_its_expectation_over_every_graph(rng, code):
    """All graphs at n = 4 for D (81); at n = 3 for B (64) and E."""
    n = 4 if code == "D" else 3
    K = rng.uniform(0.05, 1.0, size=(n, n)) ** 2
    graphs, probabilities, _ = enumerated_law(code, K)
    each = np.array([_projection(_labels_by_networkx(W)) for W in graphs])
    wanted = np.einsum("g,gij->ij", probabilities, each)
    spread = np.einsum("g,gij->ij", probabilities, each**2) - wanted**2
    n_samples = 20_000
    prior = {"B": gc.Binary(), "D": gc.UnitOutDegree(), "E": gc.FixedEdges()}[code]
    posterior = prior.posterior(np.log(K))
    M = gc.AveragedProjection(gc.sample_components(posterior, n_samples, seed=1))
    error = np.sqrt(np.maximum(spread, 0.0) / n_samples)
    assert (np.abs(_dense(M) - wanted) <= 3.0 * error + 1e-12).all()


def _random_projection(rng, n=40, n_samples=23):
    return gc.AveragedProjection(rng.integers(0, 9, size=(n_samples, n)))


def test_product_is_the_mean_of_the_graphs_projections(rng):
    M = _random_projection(rng)
    wanted = np.mean([_projection(row) for row in M.labels], axis=0)
    V = rng.normal(size=(40, 5))
    np.testing.assert_allclose(M @ V, wanted @ V, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(M @ V[:, 0], wanted @ V[:, 0], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(M.T @ V, wanted.T @ V, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(V.T @ M, V.T @ wanted, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose((2.0 * M.H + M) @ V, 3.0 * wanted @ V, rtol=1e-12, atol=1e-14)


def test_symmetric_doubly_stochastic_with_spectrum_in_the_unit_interval(iris):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)).posterior(iris[0])
    M = gc.AveragedProjection(gc.sample_components(posterior, 30))
    assert isinstance(M, LinearOperator)
    dense = _dense(M)
    np.testing.assert_allclose(dense, dense.T, atol=1e-15)
    np.testing.assert_allclose(dense.sum(axis=1), 1.0, rtol=1e-13)
    assert (dense >= 0).all()
    spectrum = np.linalg.eigvalsh(dense)
    assert spectrum[0] > -1e-13
    assert spectrum[-1] == pytest.approx(1.0, rel=1e-12)


def test_holds_memberships_only(rng):
    M = _random_projection(rng)
    assert M.labels.dtype == np.int32
    held = [value for value in vars(M).values() if isinstance(value, np.ndarray)]
    assert [array.shape for array in held] == [(23, 40)]


def test_labels_number_weak_components_in_order_of_their_first_nodes(rng):
    for density in (0.01, 0.03, 0.1):
        W = rng.uniform(size=(30, 30)) < density
        labels = weak_components(30, *np.nonzero(W))
        wanted = _labels_by_networkx(W)
        assert labels.dtype == np.int32
        np.testing.assert_array_equal(labels[:, None] == labels, wanted[:, None] == wanted)
        first = [int(np.argmax(labels == c)) for c in range(labels.max() + 1)]
        assert first == sorted(first)


def test_sizes_counts_and_co_membership(rng):
    M = _random_projection(rng, n=15, n_samples=6)
    for row, size, count in zip(M.labels, M.sizes, M.n_components, strict=True):
        assert sorted(np.unique(row, return_counts=True)[1].tolist(), reverse=True) == size.tolist()
        assert len(set(row.tolist())) == count
    rows, columns = np.array(pairs(15)).T
    wanted = [(M.labels[:, i] == M.labels[:, j]).mean() for i, j in pairs(15)]
    np.testing.assert_allclose(M.co_membership(rows, columns), wanted, rtol=1e-15)


@pytest.mark.parametrize("code", ["B", *(pytest.param(code, marks=pytest.mark.nightly) for code in "DE")])
def test_samples_do_not_depend_on_workers_backend_or_rounds(rng, code):
    model = gc.GraphModel(gc.Gaussian(), code, gc.Perplexity(5), n_neighbors=20)
    posterior = model.posterior(rng.normal(size=(80, 3)))
    wanted = gc.sample_components(posterior, 70, seed=3, n_jobs=1)
    np.testing.assert_array_equal(gc.sample_components(posterior, 70, seed=3, n_jobs=2), wanted)
    # Processes, which take seconds to start, by night.
    with joblib.parallel_config(backend="threading" if code == "B" else "loky", n_jobs=2):
        np.testing.assert_array_equal(gc.sample_components(posterior, 70, seed=3), wanted)
    with joblib.parallel_config(backend="sequential"):
        np.testing.assert_array_equal(gc.sample_components(posterior, 70, seed=3), wanted)
    parts = [gc.sample_components(posterior, 50, seed=3), gc.sample_components(posterior, 20, seed=3, first=50)]
    np.testing.assert_array_equal(np.concatenate(parts), wanted)
    assert (gc.sample_components(posterior, 70, seed=4) != wanted).any()


def test_products_do_not_depend_on_threads(rng):
    labels = rng.integers(0, 30, size=(57, 300))
    V = rng.normal(size=(300, 4))
    np.testing.assert_array_equal(gc.AveragedProjection(labels, 1) @ V, gc.AveragedProjection(labels, 2) @ V)


def test_sampled_edges_are_the_samples_edges(rng):
    for code in "BDE":
        posterior = gc.GraphModel(gc.Gaussian(), code).posterior(rng.normal(size=(12, 2)))
        W = posterior.sample(7).tocoo()
        rows, columns = posterior.sample_edges(7)
        assert set(zip(rows.tolist(), columns.tolist(), strict=True)) == set(
            zip(W.row.tolist(), W.col.tolist(), strict=True)
        )


def test_progress_counts_the_graphs_drawn(rng):
    posterior = gc.GraphModel(gc.Gaussian(), "D").posterior(rng.normal(size=(12, 2)))
    seen = []
    gc.sample_components(posterior, 75, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 75


def test_a_binary_law_is_thinned_to_one_edge_a_node(rng):
    X = rng.normal(size=(60, 3))
    binary = gc.UMAP(n_neighbors=8).models(60)[0].posterior(X)
    thin = component_law(binary)
    P = binary.mean().toarray()
    np.testing.assert_allclose(thin.mean().toarray(), P / P.sum(axis=1, keepdims=True), rtol=1e-10)
    for code in "DE":
        posterior = gc.GraphModel(gc.Gaussian(), code).posterior(X)
        assert component_law(posterior) is posterior
    alone = sp.csr_array((np.zeros(2), ([0, 1], [1, 0])), shape=(3, 3))
    isolated = gc.Binary().posterior(alone)
    assert component_law(isolated) is isolated


def test_pickles(rng):
    M = _random_projection(rng)
    again = pickle.loads(pickle.dumps(M))
    V = rng.normal(size=(40, 2))
    np.testing.assert_array_equal(again @ V, M @ V)


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (np.zeros((2, 3)), TypeError, "integers"),
        (np.zeros(3, dtype=int), ValueError, "shape"),
        (np.zeros((0, 3), dtype=int), ValueError, "shape"),
        (np.array([[0, 3, 1]]), ValueError, "0 to 3"),
        (np.array([[0, -1, 1]]), ValueError, "-1"),
    ],
)
def test_refuses_what_are_no_labels(labels, error, message):
    with pytest.raises(error, match=message):
        gc.AveragedProjection(labels)


def test_refuses_bad_draws(rng):
    posterior = gc.GraphModel(gc.Gaussian(), "D").posterior(rng.normal(size=(5, 2)))
    with pytest.raises(TypeError, match="posterior"):
        gc.sample_components(np.eye(5), 3)
    for n_samples, seed in itertools.product((0, 3), (0, -1)):
        if (n_samples, seed) != (3, 0):
            with pytest.raises(ValueError, match="at least"):
                gc.sample_components(posterior, n_samples, seed)


def test_co_membership_names_pairs_of_nodes(rng):
    M = _random_projection(rng)
    assert M.co_membership([0], [0]).tolist() == [1.0]
    with pytest.raises(ValueError, match="one length, got 2 and 1"):
        M.co_membership([0, 1], [1])
    with pytest.raises(ValueError, match="nodes 0 to 39"):
        M.co_membership([0], [40])
    with pytest.raises(ValueError, match="V must have 40 rows"):
        M.batch_sums(np.zeros((39, 2)))


def test_labels_are_the_operators_own(rng):
    labels = rng.integers(0, 9, size=(4, 30)).astype(np.int32)
    M = gc.AveragedProjection(labels)
    labels[:] = 1000
    assert M.labels.max() < 9


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"rng": np.random.default_rng(0)}, ValueError),
        ({"tol": 0.0}, ValueError),
        ({"n_samples": "atuo"}, ValueError),
        ({"n_samples": 10.7}, TypeError),
        ({"svd_solver": "fulll"}, ValueError),
        ({"n_components": 5}, ValueError),
        ({"X": np.zeros((9, 4))}, ValueError),
    ],
)
def test_arguments_of_a_sampled_pca_are_checked(arguments, error, rng):
    X = rng.normal(size=(30, 4))
    law = gc.GraphModel("gaussian", "D", gc.Perplexity(5)).posterior(X)
    (name,) = arguments
    with pytest.raises(error, match={"rng": "seed", "X": "X has 9 rows"}.get(name, name)):
        sampled_pca(**{"X": X, "posterior": law, "n_components": 2, "rng": 0, **arguments})


def test_a_report_needs_the_points_for_their_dimension(rng):
    X = rng.normal(size=(30, 4))
    law = gc.GraphModel("gaussian", "D", gc.Perplexity(5), metric="precomputed")
    distances = cdist(X, X)
    cosine = gc.GraphModel("gaussian", "D", gc.Perplexity(5), metric="cosine")
    mixture = gc.laws.GraphMixture([gc.GraphModel("gaussian", "D"), cosine])
    for other, data in ((law, distances), (cosine, X), (mixture, X)):
        with pytest.raises(ValueError, match="a norm of differences of the columns"):
            gc.degeneracy_report(other, data)
    assert gc.degeneracy_report(law.posterior(distances), X, n_samples=5).n_features == 4
    by_class, y = gc.GraphModel("gaussian", "D", gc.Perplexity(5), target_weight=0.9), np.arange(30) % 2
    report = gc.degeneracy_report(gc.laws.GraphMixture([by_class, by_class]), X, n_samples=5, y=y)
    assert report.kernel == gc.Gaussian()
    report = gc.degeneracy_report(by_class, X, n_samples=5, y=y)
    again = gc.degeneracy_report(by_class.posterior(X, y=y), X, n_samples=5, y=y)
    np.testing.assert_array_equal(report.n_components, again.n_components)
    listed, plain = (sampled_pca(each, law.posterior(distances), 2, n_samples=5)[1] for each in (X.tolist(), X))
    np.testing.assert_array_equal(listed.embedding, plain.embedding)
    with pytest.raises(ValueError, match="pairs must hold row numbers"):
        gc.degeneracy_report(law.posterior(distances), X, n_samples=5, pairs=[(0.9, 1.7)])
