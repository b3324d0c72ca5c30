import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

import graphcouple as gc
from graphcouple.graphs import Graph, Support, as_csr, off_diagonal
from tests.reference import dense


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(60, 5))


def _mean(X, **options):
    return dense(gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(6), **options).posterior(X).mean())


@pytest.mark.parametrize("n_neighbors", [None, 18])
def test_precomputed_distances_give_the_same_law(X, n_neighbors):
    wanted = _mean(X, n_neighbors=n_neighbors)
    D = pairwise_distances(X)
    np.testing.assert_allclose(_mean(D, n_neighbors=n_neighbors, metric="precomputed"), wanted, rtol=1e-9)
    sparse = sp.csr_matrix(D)
    np.testing.assert_allclose(_mean(sparse, n_neighbors=n_neighbors, metric="precomputed"), wanted, rtol=1e-9)


@pytest.mark.parametrize("n_neighbors", [None, 18])
def test_sparse_points_give_the_same_law(X, n_neighbors):
    np.testing.assert_allclose(
        _mean(sp.csr_matrix(X), n_neighbors=n_neighbors), _mean(X, n_neighbors=n_neighbors), rtol=1e-8
    )


@pytest.mark.parametrize("metric", ["cosine", "manhattan"])
@pytest.mark.parametrize("n_neighbors", [None, 18])
def test_other_metrics(X, metric, n_neighbors):
    D = pairwise_distances(X, metric=metric)
    wanted = _mean(D, n_neighbors=n_neighbors, metric="precomputed")
    np.testing.assert_allclose(_mean(X, n_neighbors=n_neighbors, metric=metric), wanted, rtol=1e-7, atol=1e-12)


def test_every_edge_prior_route_agrees(X):
    pi = np.random.default_rng(1).uniform(size=(60, 60)) * (np.random.default_rng(2).uniform(size=(60, 60)) < 0.4)
    np.fill_diagonal(pi, 0)
    d2 = pairwise_distances(X) ** 2
    wanted = pi * np.exp(-d2 / 2)
    wanted /= wanted.sum(1, keepdims=True)
    for metric, points in (("euclidean", X), ("precomputed", pairwise_distances(X)), ("euclidean", sp.csr_matrix(X))):
        model = gc.GraphModel(gc.Gaussian(), gc.UnitOutDegree(pi), metric=metric)
        np.testing.assert_allclose(model.posterior(points).mean().toarray(), wanted, rtol=1e-8)


def test_neighbors_and_edge_prior_intersect(X):
    pi = np.ones((60, 60))
    pi[:, :30] = 0
    model = gc.GraphModel(gc.Gaussian(), gc.Binary(pi), n_neighbors=10)
    mean = model.posterior(X).mean()
    plain = gc.GraphModel(gc.Gaussian(), "B", n_neighbors=10).posterior(X).mean()
    np.testing.assert_allclose(mean.toarray(), np.where(pi > 0, plain.toarray(), 0.0))


def test_the_callers_arrays_are_not_changed(X):
    before, D = X.copy(), pairwise_distances(X)
    kept = D.copy()
    sparse = sp.csr_matrix(D)
    _mean(X)
    _mean(D, metric="precomputed")
    _mean(sparse, metric="precomputed")
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(D, kept)
    np.testing.assert_array_equal(sparse.toarray(), kept)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.array([[0.0, np.nan], [1.0, 2.0]]), ValueError, "NaN"),
        (np.array([[0.0, np.inf], [1.0, 2.0]]), ValueError, "infinity"),
        (np.ones((1, 3)), ValueError, "2 rows"),
        (np.ones(5), ValueError, "shape"),
        (np.array([["a", "b"], ["c", "d"]]), TypeError, "numeric"),
        (np.ones((5, 2)), ValueError, "n_neighbors"),
    ],
)
def test_bad_points_are_refused(X, error, message):
    with pytest.raises(error, match=message):
        gc.GraphModel(gc.Gaussian(), "D", n_neighbors=7).posterior(X)


@pytest.mark.parametrize(
    ("D", "message"),
    [(np.ones((3, 4)), "square"), (-np.ones((3, 3)), "negative"), (sp.csr_matrix(np.diag([1.0, 1.0], 1)), "stores")],
)
def test_bad_distances_are_refused(D, message):
    n_neighbors = 1 if sp.issparse(D) else None
    with pytest.raises(ValueError, match=message):
        gc.GraphModel(gc.Gaussian(), "D", n_neighbors=n_neighbors, metric="precomputed").posterior(D)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: gc.GraphModel(1.0, "D"), TypeError, "kernel"),
        (lambda: gc.GraphModel("gauss", "D"), ValueError, "kernel"),
        (lambda: gc.GraphModel(gc.Gaussian(), 3), TypeError, "prior"),
        (lambda: gc.GraphModel(gc.Gaussian(), "D", 2.0), TypeError, "bandwidth"),
        (lambda: gc.GraphModel(gc.Gaussian(), "D", n_neighbors=0), ValueError, "n_neighbors"),
        (lambda: gc.GraphModel(gc.Gaussian(), "D", n_neighbors=2.5), TypeError, "n_neighbors"),
        (lambda: gc.GraphModel(gc.Gaussian(), "D", symmetrize="threshold"), ValueError, "prior B"),
        (lambda: gc.GraphModel(gc.Gaussian(), "B", symmetrize="mean"), ValueError, "symmetrize"),
    ],
)
def test_bad_models_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_graph_conversions_refuse_what_is_no_graph():
    with pytest.raises(TypeError, match="W must be"):
        as_csr("graph", "W")
    with pytest.raises(ValueError, match="square"):
        as_csr(np.ones((2, 3)), "W")
    with pytest.raises(ValueError, match="NaN"):
        as_csr(np.full((2, 2), np.nan), "W")


def test_support_finds_and_selects_edges():
    support = Support.all_pairs(4)
    assert support.n_edges == 12
    np.testing.assert_array_equal(support.find(np.array([0, 3, 1]), np.array([3, 2, 1])), [2, 11, -1])
    np.testing.assert_array_equal(off_diagonal(np.arange(16).reshape(4, 4))[:4], [1, 2, 3, 4])
    kept = support.select(support.rows < support.indices)
    assert not kept.complete
    np.testing.assert_array_equal(kept.to_csr(np.ones(6)).toarray(), np.triu(np.ones((4, 4)), 1))


def test_graph_stays_a_graph_through_scipy_operations():
    graph = Graph(np.array([[0, 1], [2, 0]]))
    assert isinstance(graph.T.tocsr() + graph, sp.csr_array)
    assert graph.to_networkx().number_of_edges() == 2
