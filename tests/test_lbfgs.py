"""The directions of L-BFGS: the two-loop recursion, and the stiffness that it starts from."""

import numpy as np
import pytest
import scipy.sparse as sp

from graphcouple.optimize.stiffness import inverse_stiffness, strongest_edges
from tests.reference import noise, tsne_of


@pytest.mark.parametrize("softened", [False, True])
@pytest.mark.parametrize("few", [0, 12])
def test_lbfgs_steps_are_those_of_the_dense_bfgs_matrix(softened, few, monkeypatch):
    """The two-loop recursion, step by step and of few numbers, against the product form of the inverse Hessian."""
    from graphcouple.optimize.two_loops import newton_direction

    monkeypatch.setattr("graphcouple.optimize.two_loops._FEW", few)
    rng = np.random.default_rng(0)
    gradient = rng.normal(size=(6, 2))
    root = rng.normal(size=(6, 6))
    soft = root @ root.T if softened else np.eye(6)
    pairs = []
    for _ in range(4):
        s = rng.normal(size=12)
        y = s * rng.uniform(0.5, 2.0, size=12)
        pairs.append((s, y, 1.0 / float(s @ y)))
    first = np.kron(soft, np.eye(2))
    H = first / (pairs[-1][2] * (pairs[-1][1] @ first @ pairs[-1][1]))
    for s, y, inverse in pairs:
        V = np.eye(12) - inverse * np.outer(y, s)
        H = V.T @ H @ V + inverse * np.outer(s, s)
    found = newton_direction(gradient, tuple(pairs), 1, soft.__matmul__ if softened else None)
    np.testing.assert_allclose(found.ravel(), -H @ gradient.ravel(), rtol=1e-10)
    found = newton_direction(gradient, (), 1, soft.__matmul__ if softened else None)
    np.testing.assert_allclose(found.ravel(), -first @ gradient.ravel(), rtol=1e-10)


@pytest.mark.parametrize("share", [0.05, 0.6])
def test_the_strongest_of_sparse_edges_are_those_of_the_matrix(share):
    rng = np.random.default_rng(0)
    W = np.triu(rng.uniform(size=(80, 80)).round(2) * (rng.uniform(size=(80, 80)) < share))
    W = W + W.T
    sparse, dense = strongest_edges(sp.csr_array(W)), strongest_edges(W)
    np.testing.assert_array_equal(sparse.toarray(), dense.toarray())
    tenth = np.sort(W * ~np.eye(80, dtype=bool), axis=1)[:, -10]
    strong = (np.minimum(tenth[:, None], tenth) <= W) & ~np.eye(80, dtype=bool)
    np.testing.assert_array_equal(dense.toarray(), np.where(strong, W, 0.0))


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_the_inverse_stiffness_is_that_of_the_laplacian_of_the_strongest_edges():
    objective = tsne_of(noise(60), 12.0)
    W = np.asarray(sum(objective.attracting.matrices))
    W = np.where(np.eye(60, dtype=bool), 0.0, W)
    tenth = np.sort(W, axis=1)[:, -10]
    W = np.where((tenth[:, None] <= W) | (tenth[None, :] <= W), W, 0.0)
    degrees = W.sum(axis=1)
    stiffness = np.diag(degrees) - W + 0.01 * degrees.mean() * np.eye(60)
    forces = np.random.default_rng(1).normal(size=(60, 2))
    np.testing.assert_allclose(inverse_stiffness(objective, 2)(forces), np.linalg.solve(stiffness, forces), rtol=1e-8)
    assert inverse_stiffness(objective, 1) is None
    assert inverse_stiffness(tsne_of(np.eye(100), 12.0), 2) is None


@pytest.mark.parametrize("size", [0.2, 1.05, 30.0])
def test_a_slope_is_followed_to_where_it_is_level(size):
    from graphcouple.optimize.rays import level_exponent

    asked = []

    def slope(exponent):
        asked.append(exponent)
        return np.tanh(exponent - np.log(size)) + 0.1 * (exponent - np.log(size))

    found = min(np.log(17.8), np.log(size)) if size > 1 else np.log(size)
    assert level_exponent(slope) == pytest.approx(found, abs=0.12)
    assert len(set(asked)) <= 8


def test_tight_clusters_take_their_best_size_at_once():
    from graphcouple.optimize import best_scale
    from graphcouple.optimize.lbfgs import LBFGSState, _resized

    y = np.repeat(np.arange(12), 30)
    Z = (10.0 * noise(12)[y] + 0.1 * noise(360))[:, :2]
    objective = tsne_of(20.0 * noise(12)[y] + noise(360), 8.0)
    best = best_scale(objective, Z)
    gradient = objective.gradient(Z) / 360
    s, change = noise(360)[:, :2].ravel(), noise(360)[:, 2:4].ravel()
    pairs = ((s, change, 1.0 / float(s @ change)),)
    here = LBFGSState(Z, gradient, pairs=pairs)
    found = _resized(objective, here)
    factor = found.Z[:, 0].std() / Z[:, 0].std()
    assert factor == pytest.approx(min(best, 17.8), rel=0.3)
    np.testing.assert_allclose(found.gradient, objective.gradient(found.Z) / 360)
    np.testing.assert_allclose(found.pairs[0][0], factor * s)
    assert found.pairs[0][2] * float(found.pairs[0][0] @ found.pairs[0][1]) == pytest.approx(1.0)
    slope = abs(float((gradient * (Z - Z.mean(axis=0))).sum()))
    assert _resized(objective, here, 1.01 * slope) is here
    assert _resized(objective, here, 0.99 * slope).Z.std() == found.Z.std()
