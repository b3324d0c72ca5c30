"""PHATE's walks against plain matrices, its cells against a search by hand, its map against distances of potentials."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist

import graphcouple as gc
from graphcouple.spectral.walks import between_cells, cells, entropies, knee, lazy_walk, potentials
from tests.reference import dense

X = np.random.default_rng(0).normal(size=(120, 4))


def _affinity(points, perplexity=5.0):
    mean = dense(gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(perplexity)).posterior(points).mean())
    return mean + mean.T


def _walk(A):
    return 0.5 * np.eye(len(A)) + 0.5 * A / A.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("gamma", [1.0, 0.0, -0.5])
def test_distances_on_the_map_are_distances_of_potentials(gamma):
    """Six dimensions hold nearly all of the distances of −log Pᵗ, by plain matrices, up to one factor."""
    fitted = gc.PHATE(6, t=12, gamma=gamma, random_state=0).fit(X)
    P = np.linalg.matrix_power(_walk(_affinity(X)), 12)
    U = -np.log(P + 1e-7) if gamma == 1.0 else 2.0 / (1.0 - gamma) * P ** ((1.0 - gamma) / 2.0)
    wanted, found = pdist(U), pdist(fitted.embedding_)
    errors = found * (wanted @ found) / (found @ found) - wanted
    assert np.sqrt(errors @ errors / (wanted @ wanted)) == pytest.approx(fitted.stress_, rel=1e-3)
    assert fitted.stress_ < 0.1
    assert fitted.embedding_.std() == pytest.approx(1.0)


def test_entropies_are_of_the_powers_eigenvalues():
    P = _walk(_affinity(X))
    fitted = gc.PHATE(random_state=0).fit(X)
    for t in (1, 7, 40):
        values = np.maximum(np.linalg.eigvals(np.linalg.matrix_power(P, t)).real, 0.0)
        shares = values / values.sum()
        shares = shares[shares > 0]
        assert fitted.entropies_[t - 1] == pytest.approx(-(shares * np.log(shares)).sum(), rel=1e-6)
    assert fitted.t_ == knee(fitted.entropies_) + 1


def test_knee_of_two_lines():
    curve = np.concatenate([np.linspace(10.0, 2.0, 9), np.linspace(2.0, 1.0, 41)[1:]])
    assert knee(curve) == 8


def test_a_lazy_walk_does_not_alternate():
    P = lazy_walk(sp.csr_array(nx.to_numpy_array(nx.complete_bipartite_graph(4, 3)))).toarray()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert np.linalg.eigvals(P).real.min() > -1e-12
    np.testing.assert_allclose(np.diag(P), 0.5)


def test_cells_follow_the_most_likely_paths():
    """The product of a_ij/√(d_i d_j) along the best path from any landmark, by Floyd and Warshall."""
    rng = np.random.default_rng(1)
    A = np.triu(rng.uniform(size=(30, 30)) * (rng.uniform(size=(30, 30)) < 0.2), 1)
    A = A + A.T + np.diag(np.full(29, 0.01), 1) + np.diag(np.full(29, 0.01), -1)
    d = A.sum(axis=1)
    best = np.where(A > 0, A / np.sqrt(np.outer(d, d)), 0.0)
    np.fill_diagonal(best, 1.0)
    for k in range(30):
        best = np.maximum(best, best[:, [k]] * best[[k]])
    landmarks = np.array([3, 11, 25])
    np.testing.assert_array_equal(cells(sp.csr_array(A), landmarks), best[landmarks].argmax(axis=0))


def test_a_walk_between_cells():
    A, cell = _affinity(X[:20]), np.arange(20) % 3
    walk, mass = between_cells(sp.csr_array(_walk(A)), A.sum(axis=1), cell)
    member = np.eye(3)[cell]
    both = member.T @ (A.sum(axis=1)[:, None] * _walk(A)) @ member
    np.testing.assert_allclose(walk.toarray(), both / (A.sum(axis=1) @ member)[:, None], rtol=1e-12)
    np.testing.assert_allclose(mass, A.sum(axis=1) @ member)
    # In each cell the walk is in equilibrium, so that both directions balance.
    flow = mass[:, None] * walk.toarray()
    np.testing.assert_allclose(flow, flow.T, rtol=1e-12)


def test_entropies_and_potentials_by_hand():
    np.testing.assert_allclose(entropies(np.array([1.0, 0.5, 0.0]), 2), [0.6365141683, 0.5004024235])
    np.testing.assert_allclose(potentials(np.array([0.25]), 0.0), [1.0])
    np.testing.assert_allclose(potentials(np.array([0.25])), [-np.log(0.25 + 1e-7)])


def test_landmarks_keep_the_arrangement():
    points, _ = gc.datasets.make_branches(900, random_state=0)
    law = {"perplexity": 10, "n_neighbors": 30, "random_state": 0}
    exact = gc.PHATE(**law).fit(points)
    few = gc.PHATE(n_landmarks=450, **law).fit(points)
    assert np.corrcoef(pdist(exact.embedding_), pdist(few.embedding_))[0, 1] > 0.95


def test_new_points_lie_at_the_mean_of_their_neighbors():
    fitted = gc.PHATE(random_state=0).fit(X)
    new = X[:10] + 0.01
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5.0)).given(X)
    edges = law.new_edges(new).to_csr()
    expected = np.asarray(edges @ fitted.embedding_) / np.asarray(edges.sum(axis=1))[:, None]
    np.testing.assert_allclose(fitted.transform(new), expected, rtol=1e-10)
    np.testing.assert_array_equal(fitted.transform(X[:5]), fitted.embedding_[:5])


def test_pieces_are_embedded_apart():
    """Three far clusters, one pair of points and one point: each has an extent of its own."""
    rng = np.random.default_rng(0)
    sizes = (80, 60, 40)
    points = np.concatenate([rng.normal(size=(m, 3)) + 1e3 * k for k, m in enumerate(sizes)])
    with pytest.warns(UserWarning, match="3 connected components"):
        Z = gc.PHATE(n_neighbors=15, random_state=0).fit_transform(points)
    pieces = np.split(Z, np.cumsum(sizes)[:-1])
    assert min(piece.std(axis=0).min() for piece in pieces) > 0.05 * Z.std()
    graph = nx.disjoint_union_all([nx.path_graph(9), nx.path_graph(2), nx.path_graph(1)])
    with pytest.warns(UserWarning, match="3 connected components"):
        fitted = gc.PHATE(input=graph, random_state=0).fit()
    assert len(np.unique(fitted.embedding_.round(6), axis=0)) == 12


def test_a_walk_that_has_forgotten_its_start():
    with pytest.warns(UserWarning, match="end in the same places"):
        fitted = gc.PHATE(t=10**6, random_state=0).fit(X)
    np.testing.assert_allclose(fitted.embedding_, 0.0, atol=1e-12)


def test_equal_points_have_nothing_to_embed():
    with pytest.warns(UserWarning, match="4 connected components"):
        fitted = gc.PHATE(input=sp.csr_array((4, 4)), random_state=0).fit()
    assert np.isfinite(fitted.embedding_).all()


@pytest.mark.parametrize(("name", "value"), [("t", 0), ("gamma", 2.0), ("n_landmarks", 1), ("perplexity", -1)])
def test_refused_parameters(name, value):
    with pytest.raises(ValueError, match=name):
        gc.PHATE(**{name: value}).fit(X)
    with pytest.raises(ValueError, match="n_landmarks=3 must be above n_components=3; raise n_landmarks"):
        gc.PHATE(3, n_landmarks=3).fit(X)
