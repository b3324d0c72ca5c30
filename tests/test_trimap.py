"""TriMap's triplets, weights and loss, against plain loops."""

import numpy as np
import pytest
from scipy.optimize import check_grad

import graphcouple as gc
from graphcouple.couplings import TripletCoupling, TripletSum
from tests.reference import bound


def _bound(X, coupling=None, seed=0):
    return bound(gc.TriMap().sentence, X, coupling, seed)


def test_the_loss_is_the_papers(rng):
    triplets = np.array([rng.permutation(9)[:3] for _ in range(40)])
    weights = rng.random(40)
    Z = rng.normal(size=(9, 3))
    expected = 0.0
    for (i, j, k), w in zip(triplets, weights, strict=True):
        near, far = 1.0 / (1.0 + ((Z[i] - Z[j]) ** 2).sum()), 1.0 / (1.0 + ((Z[i] - Z[k]) ** 2).sum())
        # Similarities, as the paper has it.
        expected += w * far / (near + far)
    loss = TripletSum(triplets, weights, 9)
    assert loss.value(Z) == pytest.approx(expected, rel=1e-12)
    assert (
        check_grad(lambda z: loss.value(z.reshape(9, 3)), lambda z: loss.gradient(z.reshape(9, 3)).ravel(), Z.ravel())
        < 1e-6
    )


def test_any_number_of_threads_gives_the_same_bits(rng):
    triplets = rng.integers(500, size=(20_000, 3))
    Z = rng.normal(size=(500, 2)).astype(np.float32)
    one, two = (TripletSum(triplets, np.ones(20_000), 500, n_jobs).value_and_grad(Z) for n_jobs in (1, 2))
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])


def test_triplets_and_weights(rng):
    """Each point has its near points with far ones that are not near; weights by loops, as the paper writes them."""
    X = rng.normal(size=(120, 4))
    coupling = TripletCoupling(n_inliers=6, n_outliers=3, n_random=2)
    loss = _bound(X, coupling)
    assert loss.triplets.shape == (120 * (6 * 3 + 2), 3)
    assert all(len(set(triplet)) == 3 for triplet in loss.triplets.tolist())
    of_near, of_random = loss.triplets[: 120 * 18], loss.triplets[120 * 18 :]
    dist = np.sqrt(((X[:, None] - X) ** 2).sum(axis=-1))
    near = [set(of_near[of_near[:, 0] == i, 1]) for i in range(120)]
    assert all(len(points) == 6 for points in near)
    assert all(k not in near[i] for i, _, k in of_near)
    sigma = np.sort(dist, axis=1)[:, 3:6].mean(axis=1)
    s = dist**2 / (sigma[:, None] * sigma)
    assert all(s[i, j] <= s[i, k] for i, j, k in of_random)
    raw = np.array([s[i, k] - s[i, j] for i, j, k in loss.triplets])
    raw[len(of_near) :] *= 0.1
    np.testing.assert_allclose(loss.weights, 2.0 * (np.sqrt(1.0 + raw - raw.min()) - 1.0), rtol=1e-9, atol=1e-12)


def test_far_points_are_drawn_evenly(rng):
    loss = _bound(rng.normal(size=(40, 2)), TripletCoupling(n_inliers=1, n_outliers=2000, n_random=0))
    far = loss.triplets[loss.triplets[:, 0] == 7, 2]
    counts = np.bincount(far, minlength=40)
    # Of 38 points that are neither 7 nor its near one, each is drawn 53 times on average, with a deviation of 7.
    assert np.sort(counts)[:2].tolist() == [0, 0]
    assert np.abs(np.sort(counts)[2:] - 2000 / 38).max() < 5 * 7.2


def test_few_points_and_copies(rng):
    for n in (3, 5, 14):
        loss = _bound(rng.normal(size=(n, 3)))
        assert np.isfinite(loss.weights).all()
        assert np.isfinite(loss.value(rng.normal(size=(n, 2))))
    copies = np.repeat(np.eye(4), 20, axis=0)
    # With scales of 1, copies are √2 nearer than others: raw weights of 0, 2 and, of random triplets, a tenth.
    assert set(np.round(_bound(copies).weights, 9)) <= set(np.round([2 * (np.sqrt(1 + w) - 1) for w in (0, 0.2, 2)], 9))


def test_two_points_have_no_triplet():
    with pytest.raises(ValueError, match="at least 3"):
        gc.TriMap().fit(np.eye(2))


def test_wrong_parameters():
    with pytest.warns(UserWarning, match="8 inliers of each point are lowered to 4, as there are 10 points"):
        gc.TriMap(n_inliers=8, max_iter=1).fit(np.random.default_rng(0).normal(size=(10, 3)))
    for name, value in (("n_inliers", 0), ("n_outliers", 0.5), ("n_random", -1), ("weight_temp", 1.0)):
        with pytest.raises((TypeError, ValueError), match=name):
            TripletCoupling(**{name: value})
