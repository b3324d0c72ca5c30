"""PaCMAP's pairs and loss, against plain loops and the distributions that they are drawn from."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

import graphcouple as gc
from graphcouple.couplings import PairwiseControlledCoupling
from graphcouple.couplings.pacmap import most_likely, phase_weights
from tests.reference import bound


def _bound(X, coupling=None, seed=0):
    return bound(gc.PaCMAP().sentence, X, coupling, seed)


def _pairs(objective):
    """Return the dense symmetric matrices of the three kinds of pairs, each pair counted in both directions."""
    return [0.5 * sum(np.asarray(m.todense()) for m in pairs.matrices) for pairs in objective.sums]


def _reference(matrices, weights, Z):
    """Return the loss and its gradient by loops over pairs, as the paper writes them."""
    value, gradient = 0.0, np.zeros_like(Z)
    for kind, (matrix, weight) in enumerate(zip(matrices, weights, strict=True)):
        for i, j in zip(*np.nonzero(matrix), strict=True):
            d = 1.0 + float(((Z[i] - Z[j]) ** 2).sum())
            loss, slope = (
                (d / (10.0 + d), 10.0 / (10.0 + d) ** 2),
                (d / (10_000.0 + d), 10_000.0 / (10_000.0 + d) ** 2),
                (1.0 / (1.0 + d), -1.0 / (1.0 + d) ** 2),
            )[kind]
            count = 0.5 * weight * matrix[i, j]
            value += count * loss
            force = 2.0 * count * slope * (Z[i] - Z[j])
            gradient[i] += force
            gradient[j] -= force
    return value, gradient


def test_the_weights_of_the_phases_are_the_papers():
    weights = [phase_weights(iteration) for iteration in (0, 50, 150, 300)]
    assert weights == [(2.0, 1000.0, 1.0), (2.0, 501.5, 1.0), (3.0, 3.0, 1.0), (1.0, 0.0, 1.0)]


@pytest.mark.parametrize("iteration", [0, 50, 150, 300])
def test_loss_and_gradient_are_the_papers(iteration):
    rng = np.random.default_rng(0)
    objective = _bound(rng.normal(size=(70, 4)))
    Z = 5.0 * rng.normal(size=(70, 2))
    weights = phase_weights(iteration)
    # Both directions of a pair stand for one pair.
    value, gradient = _reference([2.0 * m for m in _pairs(objective)], weights, Z)
    found, slopes = objective.at(iteration, Z).value_and_grad(Z)
    assert found == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(slopes, gradient, atol=1e-8 * np.abs(gradient).max())


def test_the_number_of_pairs():
    n = 300
    objective = _bound(np.random.default_rng(0).normal(size=(n, 4)))
    near, mid, far = (m.sum() for m in _pairs(objective))
    assert near == pytest.approx(10 * n)
    assert mid == pytest.approx(5 * n)
    # Random pairs that are near ones are drawn again.
    assert far == pytest.approx(20 * n)


def test_near_pairs_are_nearest_by_scaled_distance():
    X = np.random.default_rng(1).normal(size=(200, 3)) ** 3
    near = most_likely(gc.PaCMAP().sentence.input.posterior(X), 10)
    distances = cdist(X, X)
    scale = np.sort(distances, axis=1)[:, 5]
    for i in (0, 50, 199):
        candidates = np.argsort(distances[i])[1:61]
        scaled = distances[i, candidates] ** 2 / (scale[i] * scale[candidates])
        expected = set(candidates[np.argsort(scaled)[:10]])
        assert set(near.indices[near.indptr[i] : near.indptr[i + 1]]) == expected


def test_mid_near_pairs_lead_to_the_second_nearest_of_six():
    n = 400
    # On a ring, a pair has about the same rank in both directions.
    angles = 2.0 * np.pi * (np.arange(n) + np.random.default_rng(2).uniform(-0.4, 0.4, n)) / n
    X = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    mid = _pairs(_bound(X))[1]
    ranks = np.argsort(np.argsort(cdist(X, X), axis=1), axis=1)
    mean_rank = float((mid * ranks).sum() / mid.sum()) / n
    # The second smallest of six uniform numbers has the mean 2/7.
    assert mean_rank == pytest.approx(2.0 / 7.0, abs=0.03)


@pytest.mark.filterwarnings("ignore:10 near pairs of each point are lowered")
@pytest.mark.parametrize("make", [gc.PaCMAP, gc.LocalMAP])
@pytest.mark.parametrize("n", [4, 12, 40])
def test_few_points(n, make):
    Z = make(random_state=0).fit_transform(np.random.default_rng(0).normal(size=(n, 3)))
    assert len(np.unique(Z.round(6), axis=0)) == n


def test_threads_and_seeds():
    X = np.random.default_rng(0).normal(size=(500, 5))
    maps = [gc.PaCMAP(random_state=0, n_jobs=jobs).fit_transform(X) for jobs in (1, 2)]
    np.testing.assert_array_equal(*maps)
    assert not np.array_equal(maps[0], gc.PaCMAP(random_state=1).fit_transform(X))


@pytest.mark.nightly
def test_it_keeps_neighbourhoods_and_clusters_as_the_original_does():
    """PaCMAP 0.9.1 has R(10) .43, R(n/2) .36 and 97 % of neighbours of the own class on all digits, over seeds."""
    X, y = gc.datasets.load("digits")
    fitted = gc.PaCMAP(random_state=0).fit(X)
    scores = gc.metrics.evaluate(X, fitted.embedding_)
    assert scores["R(10)"] > 0.41
    assert scores["R(n/2)"] > 0.30
    assert gc.metrics.knn_accuracy(fitted.embedding_, y) > 0.95


def test_a_run_without_its_last_phase_says_so():
    X = np.random.default_rng(0).normal(size=(60, 3))
    for max_iter in (1, 200):
        with pytest.warns(ConvergenceWarning, match=f"max_iter={max_iter} ends the run before the last phase"):
            gc.PaCMAP(max_iter=max_iter, random_state=0).fit(X)
    gc.PaCMAP(max_iter=201, random_state=0).fit(X)


def test_refusals():
    X = np.random.default_rng(0).normal(size=(100, 3))
    with pytest.raises(ValueError, match="takes no sample weights"):
        gc.PaCMAP().fit(X, sample_weight=np.ones(100))
    with pytest.raises(ValueError, match="has no law that places new points"):
        gc.PaCMAP(random_state=0).fit(X).transform(X)
    distances = np.linalg.norm(X[:, None] - X, axis=-1)
    for method, message in [("law", "has no law that places new points; fit"), ("mlp", "fitted to distances; fit")]:
        fitted = gc.PaCMAP(metric="precomputed", transform_method=method, random_state=0).fit(distances)
        with pytest.raises(ValueError, match=message):
            fitted.transform(distances)
    sentence = gc.PaCMAP(random_state=0).sentence.replace()
    with pytest.raises(ValueError, match="GraphCoupling has no law that places the rows beyond n_landmarks=50"):
        gc.GraphCoupling(**sentence, n_landmarks=50).fit(X)
    for n, lowered, options in (
        (100, "100 near pairs of each point are lowered to 22", {"n_neighbors": 100}),
        (100, "60 near pairs of each point are lowered to 22", {"n_neighbors": 60}),
        (20, "8 near pairs of each point are lowered to 4", {"n_neighbors": 8}),
        (100, "10 near pairs of each point are lowered to 3", {"far_ratio": 30}),
        (40, "60 further pairs of each point are lowered to 38", {"n_neighbors": 1, "far_ratio": 60}),
    ):
        with pytest.warns(UserWarning, match=f"{lowered}, as there are {n} points. Lower n_neighbors, .* or far_ratio"):
            gc.PaCMAP(**options, max_iter=201, random_state=0).fit(X[:n])
    with pytest.raises(ValueError, match="at least 3 points, got 2"):
        gc.PaCMAP().fit(np.eye(2))
    with pytest.raises(ValueError, match="n_near must be"):
        PairwiseControlledCoupling(n_near=0)
