"""Eigenvectors of Gram matrices and Laplacians, whichever way they are found."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from scipy.spatial.distance import cdist
from sklearn.datasets import make_swiss_roll

import graphcouple as gc
from graphcouple.couplings import reconstruction_weights
from graphcouple.spectral import (
    GramMatrix,
    GraphLaplacian,
    ReconstructionLaplacian,
    eigen,
    embed_parts,
    laplacian_eigenvalues,
    leading_svd,
    normalized_similarity,
)
from tests.reference import angle

RNG = np.random.default_rng(0)
ROLL = make_swiss_roll(1000, random_state=0)[0]


def _laplacians():
    support, _ = gc.neighbors.nearest_neighbors(ROLL, 10)
    graph = support.to_csr(np.ones(support.n_edges))
    return {
        "graph": GraphLaplacian(graph + graph.T),
        "plain": GraphLaplacian(graph + graph.T, normalized=False),
        "weights": ReconstructionLaplacian(reconstruction_weights(ROLL, support)),
    }


@pytest.mark.parametrize("kind", ["graph", "plain", "weights"])
def test_all_solvers_agree(kind, monkeypatch):
    laplacian = _laplacians()[kind]
    M = laplacian.matrix.toarray()
    values = np.linalg.eigvalsh(M)
    assert values[-1] <= laplacian.bound
    V = RNG.normal(size=(1000, 3))
    np.testing.assert_allclose(laplacian.times(V), M @ V, atol=1e-12)
    Z = RNG.normal(size=(1000, 2))
    whole = laplacian.affinity.toarray() if kind != "weights" else np.eye(1000) - M
    pairs = 0.5 * (whole * cdist(Z, Z, "sqeuclidean")).sum()
    assert laplacian.value(Z) == pytest.approx(pairs, rel=1e-9)
    found = {}
    for name, dense, thin in (("dense", 2000, 0), ("inverse", 10, 2000), ("lanczos", 10, 0)):
        monkeypatch.setattr(eigen, "DENSE", dense)
        monkeypatch.setattr(eigen, "_THIN", thin)
        found[name] = laplacian.embedding(2, 1e-12)
    for name in ("inverse", "lanczos") if kind != "weights" else ("inverse",):
        np.testing.assert_allclose(found[name][0], values[1:3], rtol=1e-5, atol=1e-10)
        assert angle(found[name][1], found["dense"][1]) < 1e-6


def test_eigenvectors_that_do_not_converge_are_told(monkeypatch):
    laplacian = _laplacians()["weights"]
    for name, value in (("DENSE", 10), ("_THIN", 0), ("_STILL_FACTORISED", 0)):
        monkeypatch.setattr(eigen, name, value)
    wanted = np.linalg.eigvalsh(laplacian.matrix.toarray())[1:3]
    for restarts in (100, 3):
        monkeypatch.setattr(eigen, "_RESTARTS", restarts)
        with pytest.warns(match="residual of") as said:
            values, Z = laplacian.embedding(2, 1e-14)
        residual = float(str(said[0].message).split("residual of ")[1].split()[0])
        # A residual bounds the error of an eigenvalue.
        assert (np.abs(values - wanted) <= residual).all()
        np.testing.assert_allclose(Z.T @ Z / 1000, np.eye(2), atol=1e-9)


def test_edges_that_rounding_hides_connect_nothing():
    clique = np.ones((5, 5)) - np.eye(5)
    joined = np.kron(np.eye(2), clique)
    joined[0, 5] = joined[5, 0] = 1e-20
    assert GraphLaplacian(joined).components[0] == 2
    joined[0, 5] = joined[5, 0] = 1e-6
    assert GraphLaplacian(joined).components[0] == 1


def test_places_without_points_lie_apart():
    labels = GraphLaplacian(np.kron(np.eye(6), np.ones((5, 5)) - np.eye(5)))
    for q in (1, 2, 4):
        found = embed_parts(labels, q)
        between = cdist(found.origins, found.origins) + np.diag(np.full(6, np.inf))
        assert between.min() > 2 * found.radii.max()


def test_factors_are_decomposed_alike_whatever_their_shape():
    # Of a side up to 500, of more points than columns, and of fewer.
    for shape in ((60, 20), (300, 200), (200, 300), (520, 510), (510, 520)):
        F = RNG.normal(size=shape) * np.exp(-np.arange(shape[1]) / 20)
        placement = GramMatrix(F).placement(3)
        wanted = leading_svd(F, 3, center=True, svd_solver="full", rng=np.random.RandomState(0))
        np.testing.assert_allclose(np.sqrt(placement.eigenvalues), wanted.singular_values, rtol=1e-9)
        assert angle(placement.Z, wanted.scores) < 1e-7
        sparse = GramMatrix(sp.csr_array(F)).placement(3)
        np.testing.assert_allclose(np.abs(sparse.Z), np.abs(placement.Z), atol=1e-6)


def test_lanczos_iteration_has_the_same_bits_where_its_start_spans_too_little():
    from graphcouple.spectral.eigen import lanczos

    # Three eigenvalues, so that every start spans three dimensions.
    basis = np.linalg.qr(np.random.default_rng(1).normal(size=(300, 300)))[0]
    matrix = basis @ np.diag(np.repeat([3.0, 2.0, 1.0], 100)) @ basis.T
    start = np.random.default_rng(2).normal(size=300)
    values, vectors = lanczos(matrix, 8, start)
    again = lanczos(matrix, 8, start)
    assert np.array_equal(vectors, again[1])
    np.testing.assert_allclose(values, 3.0)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-9)
    values, vectors = lanczos(np.zeros((300, 300)), 8, start)
    assert np.array_equal(values, np.zeros(8))
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-12)


def _cube(dim):
    ends = np.repeat(np.arange(2**dim), dim)
    neighbors = ends ^ (1 << np.tile(np.arange(dim), 2**dim))
    return sp.csr_array((np.ones(ends.size), (ends, neighbors)))


def _arms(count, length):
    """Paths of equal length from a hub."""
    nodes = 1 + np.arange(count * length).reshape(count, length)
    ends = np.column_stack([np.zeros(count, dtype=int), nodes[:, :-1]]).ravel()
    paths = sp.coo_array((np.ones(ends.size), (ends, nodes.ravel())), shape=(nodes.size + 1,) * 2)
    return sp.csr_array(paths + paths.T)


def _torus(side, dim):
    ends = np.arange(side)
    ring = sp.coo_array((np.ones(side), (ends, (ends + 1) % side)), shape=(side, side))
    ring = sp.csr_array(ring + ring.T)
    whole = ring
    for _ in range(dim - 1):
        whole = sp.kronsum(whole, ring)
    return sp.csr_array(whole)


GRAPHS = [
    (_arms(6, 200), 5),
    (_arms(12, 80), 8),
    (_cube(10), 10),
    (_torus(10, 3), 3),
    (_torus(10, 3), 7),
    (_torus(1200, 1), 3),
]


@pytest.mark.parametrize(("graph", "k"), GRAPHS)
@pytest.mark.parametrize("normalized", [True, False])
def test_none_of_equal_eigenvalues_is_missed(graph, k, normalized):
    laplacian = GraphLaplacian(graph, normalized)
    wanted = np.linalg.eigvalsh(laplacian.matrix.toarray())[1 : k + 1]
    values, Z = laplacian.embedding(k)
    np.testing.assert_allclose(values, wanted, rtol=1e-6, atol=1e-9)
    assert np.linalg.matrix_rank(Z) == k
    if normalized:
        np.testing.assert_allclose(laplacian_eigenvalues(graph, k + 1), [0.0, *wanted], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("values", [-np.arange(1.0, 61.0), np.r_[60.0, np.zeros(59)], np.r_[np.ones(30), np.zeros(30)]])
def test_the_search_for_missed_eigenvalues_ends(values):
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(60, 60)))[0]
    matrix = aslinearoperator((rotation * values) @ rotation.T)
    found = eigen.complete_lanczos(matrix, 5, np.random.default_rng(1).normal(size=60))[0]
    np.testing.assert_allclose(np.sort(found), np.sort(values)[-5:], atol=1e-9)


@pytest.mark.parametrize("bridge", [None, 1e-6, 1e-3])
@pytest.mark.parametrize("normalized", [True, False])
def test_round_graphs_and_groups_that_hardly_touch_have_their_eigenvectors(bridge, normalized):
    # Lanczos iteration is tried first, but to its residual a weak bridge's eigenvalue is 0.
    sizes = [1000] if bridge is None else [250] * 5
    graph = sp.block_diag([gc.UMAP().sentence.input.posterior(RNG.normal(size=(n, 6))).mean() for n in sizes]).tolil()
    for k in range(len(sizes) - 1):
        graph[250 * k, 250 * (k + 1)] = graph[250 * (k + 1), 250 * k] = bridge * (k + 1)
    laplacian = GraphLaplacian(sp.csr_array(graph + graph.T), normalized)
    values, Z = laplacian.embedding(2, tol=1e-4)
    exact, vectors = np.linalg.eigh(laplacian.matrix.toarray())
    np.testing.assert_allclose(values, exact[1:3], rtol=1e-5, atol=1e-14)
    assert angle(Z, vectors[:, 1:3] / np.sqrt(laplacian.mass)[:, None]) < 1e-2


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_callers_matrix_is_not_sorted(dtype):
    cycle = sp.csr_array(np.roll(np.eye(5, dtype=dtype), 1, axis=0) + np.roll(np.eye(5, dtype=dtype), -1, axis=0))
    ends = cycle.indices.reshape(5, 2)[:, ::-1].ravel()
    graph = sp.csr_array((cycle.data, ends.copy(), cycle.indptr), shape=(5, 5))
    laplacian_eigenvalues(graph, 2)
    normalized_similarity(graph).sort_indices()
    np.testing.assert_array_equal(graph.indices, ends)
