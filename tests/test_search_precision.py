"""Neighbours of points whose digits cancel: far from 0, or in clusters far from each other."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from graphcouple import distributed
from graphcouple.neighbors import InvertedFile, distances_of, nearest_neighbors, neighbors_among
from graphcouple.neighbors.neighbor_graph import NeighborGraph, _single, suits


def recall(indices, D, k):
    """Return the share of each row's k nearest that are found, by distances to all points, infinite to themselves."""
    kth = np.partition(D, k - 1, axis=1)[:, k - 1 : k]
    return (np.take_along_axis(D, np.reshape(indices, (len(D), k)), axis=1) <= kth * (1.0 + 1e-6)).mean()


def others(X, metric="euclidean"):
    D = cdist(X, X, metric)
    np.fill_diagonal(D, np.inf)
    return D


@pytest.fixture(scope="module")
def far_clusters():
    """Clusters that share a list, so that squared distances from its middle have no digits left for neighbours."""
    rng = np.random.default_rng(0)
    return 1e4 * rng.normal(size=(60, 10))[np.arange(3000) % 60] + rng.normal(size=(3000, 10))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_clusters_far_from_each_other(far_clusters, dtype):
    X = far_clusters.astype(dtype)
    support, _ = nearest_neighbors(X, 10, search="approximate")
    assert recall(support.indices, others(X.astype(float)), 10) > 0.97


def test_a_file_of_far_clusters_finds_new_points(far_clusters):
    searched = InvertedFile(far_clusters, 10)
    again = InvertedFile.from_lists(far_clusters, searched.lists)
    for file in (searched, again):
        assert (file.of_new(far_clusters[:50])[1] == 0).any(axis=1).all()
    plain = InvertedFile(far_clusters % 1.0, 10)
    assert searched.is_double
    assert not plain.is_double
    assert not InvertedFile.from_lists(far_clusters % 1.0, {**plain.lists, "is_double": False}).is_double


def test_chunks_of_far_clusters(far_clusters):
    pytest.importorskip("dask")
    indices, _ = distributed.nearest_neighbors(far_clusters, 10)
    assert recall(indices.compute(), others(far_clusters), 10) > 0.97


@pytest.mark.parametrize("far", [0.0, 1e7, 1e9])
def test_pynndescent_takes_no_points_that_single_precision_rounds(far):
    X = np.random.default_rng(0).normal(size=(300, 8)) + far
    assert suits(X, "manhattan", None) == (far == 0)
    assert suits(X.astype(np.float32), "manhattan", None)
    assert suits(np.column_stack([X - far, np.full(300, 0.1)]), "manhattan", None)
    support, _ = nearest_neighbors(X, 5, "manhattan")
    assert recall(support.indices, others(X, "cityblock"), 5) == 1.0


def test_squared_distances_far_from_zero():
    X = np.random.default_rng(0).normal(size=(200, 20)) + 1e8
    support, sq_sq_dist = nearest_neighbors(X, 10, "sqeuclidean")
    D = others(X)
    assert recall(support.indices, D, 10) == 1.0
    np.testing.assert_allclose(sq_sq_dist, D[support.rows, support.indices] ** 4, rtol=1e-6)
    new = X[:3] + 0.5
    support, sq_sq_dist = neighbors_among(new, X, 4, "sqeuclidean")
    np.testing.assert_allclose(sq_sq_dist, cdist(new, X)[support.rows, support.indices] ** 4, rtol=1e-6)


def test_sparse_points_in_two_far_groups():
    rng = np.random.default_rng(0)
    X = np.zeros((300, 12))
    X[:, :6] = rng.normal(size=(300, 6)) * (rng.random((300, 6)) < 0.5)
    X[:, 11] = 1e9 * np.where(np.arange(300) % 2, 1.0, -1.0)
    support, sq_dist = nearest_neighbors(sp.csr_matrix(X), 10)
    dense = nearest_neighbors(X, 10)
    np.testing.assert_array_equal(support.indices, dense[0].indices)
    np.testing.assert_array_equal(sq_dist, dense[1])


def test_sparse_rows_that_are_equal_stay_sparse():
    X = sp.random(300, 50, 0.1, format="csr", random_state=0)
    distances = distances_of(sp.vstack([X, sp.csr_matrix((30, 50))], format="csr"))
    distances.nearest(10)
    assert sp.issparse(distances.X)


def test_mahalanobis_needs_an_invertible_covariance():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)) * [1.0, 1e-6, 1e6, 1.0, 1.0]
    V = np.cov(X.T)
    support, sq_dist = nearest_neighbors(X, 4, "mahalanobis")
    D = cdist(X, X, "mahalanobis", VI=np.linalg.inv(V))
    np.testing.assert_allclose(sq_dist, D[support.rows, support.indices] ** 2, rtol=1e-6)
    collinear = np.column_stack([X, X[:, 0] + X[:, 3]])
    for bad in (rng.normal(size=(20, 30)), collinear, np.column_stack([X, np.ones(60)])):
        with pytest.raises(ValueError, match="columns depend on each other linearly"):
            nearest_neighbors(bad, 3, "mahalanobis")


def test_a_diagonal_that_is_nearly_zero_takes_no_neighbors_place():
    far = 1e6
    D = np.array([[5.0, 1, 2, far], [1, 5, 3, far], [2, 3, 5, far], [far, far, far, 0]])
    given = D.copy()
    support, sq_dist = nearest_neighbors(D, 1, "precomputed")
    assert support.indices.tolist()[:3] == [1, 0, 0]
    assert sq_dist[:3].tolist() == [1.0, 1.0, 4.0]
    np.testing.assert_array_equal(D, given)


@pytest.mark.parametrize(("n_neighbors", "error"), [(0, ValueError), (-1, ValueError), (2.5, TypeError)])
def test_numbers_of_neighbors_of_new_points(n_neighbors, error):
    X = np.eye(5)
    with pytest.raises(error, match="n_neighbors must be"):
        neighbors_among(X, X, n_neighbors)


def test_chunks_too_large_to_square():
    pytest.importorskip("dask")
    X = 1e160 * np.random.default_rng(0).normal(size=(50, 3))
    with pytest.raises(ValueError, match="whose squares overflow"):
        distributed.nearest_neighbors(X, 3)[0].compute()


def test_pynndescent_is_asked_only_what_single_precision_tells():
    X = np.random.default_rng(0).normal(size=(60, 5))
    assert suits(X, "minkowski", {"p": 3})
    assert not suits(X, "minkowski", {"p": np.inf})
    assert not suits(X, "minkowski", {"p": 20})
    assert not suits(1e-8 * X, "minkowski", {"p": 4})
    days = 20240131 + np.arange(60.0)[:, None] * [3333, 10001]
    assert suits(np.round(X), "hamming", None)
    assert not suits(days, "hamming", None)
    stored = sp.csr_array(np.ones((3, 2)))
    stored.data[::2] = 0.0
    assert _single(stored).nnz == 3
    assert stored.nnz == 6


def test_new_points_for_which_pynndescent_finds_nothing_are_searched_again():
    index = NeighborGraph.__new__(NeighborGraph)
    answers = iter([[3, 1, 2], [7, 7, 7], [0, 1, 9], [0, 1, 2]])
    index.n_neighbors = 3
    index.index = SimpleNamespace(
        _vertex_order=[4, 9], query=lambda rows, k: (np.array([next(answers)]), np.ones((1, 3)))
    )
    found = index.of_new(np.array([[0.0], [0.0], [0.0], [1e39]]))[0]
    assert found.tolist() == [[3, 1, 2], [-1, -1, -1], [-1, -1, -1], [-1, -1, -1]]


def test_lists_of_a_sample_give_as_many_candidates_as_lists_of_all():
    rng = np.random.default_rng(0)
    X = ((2.0 * rng.normal(size=(40, 200)))[rng.integers(0, 40, 4000)] + rng.normal(size=(4000, 200))).astype(
        np.float32
    )
    searched = InvertedFile(X[:1000], 15, n_rows=4000).holding(X)
    rows = np.arange(100)
    found, _ = searched.of_new(X[rows], rows)
    D = cdist(X[rows], X)
    D[rows, rows] = np.inf
    assert recall(found, D, 15) > 0.97
