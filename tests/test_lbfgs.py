"""The directions of L-BFGS: the two-loop recursion, and the stiffness that it starts from."""

import numpy as np
import pytest

from tests.test_descent import noise, tsne_of


@pytest.mark.parametrize("softened", [False, True])
@pytest.mark.parametrize("few", [0, 12])
def test_lbfgs_steps_are_those_of_the_dense_bfgs_matrix(softened, few, monkeypatch):
    """The two-loop recursion, step by step and of few numbers, against the product form of the inverse Hessian."""
    from graphcouple.optimize.lbfgs import _direction

    monkeypatch.setattr("graphcouple.optimize.lbfgs._FEW", few)
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
    found = _direction(gradient, tuple(pairs), 1, soft.__matmul__ if softened else None)
    np.testing.assert_allclose(found.ravel(), -H @ gradient.ravel(), rtol=1e-10)
    found = _direction(gradient, (), 1, soft.__matmul__ if softened else None)
    np.testing.assert_allclose(found.ravel(), -first @ gradient.ravel(), rtol=1e-10)


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_the_inverse_stiffness_is_that_of_the_laplacian_of_the_strongest_edges():
    from graphcouple.optimize.stiffness import inverse_stiffness

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
