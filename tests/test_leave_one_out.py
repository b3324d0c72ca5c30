"""Scales of largest leave-one-out likelihood, against dense sums and closed forms."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph

import graphcouple as gc
from tests.reference import Parabola

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3)) * [3.0, 1.0, 1.0]


def _rows(points):
    return cdist(points, points, "sqeuclidean")[~np.eye(len(points), dtype=bool)].reshape(len(points), -1)


def _likelihoods(sq_dist, kernel, scale, dim):
    """Return log mean_j k(d²/τ²) − d log τ of each row, summed as it is written."""
    with np.errstate(divide="ignore"):
        return np.log(kernel.value(sq_dist / scale**2).mean(axis=1)) - dim * np.log(scale)


@pytest.mark.parametrize("kernel", [gc.Gaussian(), gc.Exponential(), gc.Student(6.0)], ids=str)
def test_the_shared_scale_maximises_the_trimmed_likelihood(kernel):
    def loss(log_scale):
        # The worst 1 % of 150 rows are one row and a half.
        values = np.sort(_likelihoods(_rows(X), kernel, np.exp(log_scale), 3.0))
        return -np.average(values[1:], weights=[0.5, *np.ones(148)])

    best = minimize_scalar(loss, bounds=(-3.0, 3.0), method="bounded", options={"xatol": 1e-8})
    _, scale = gc.LeaveOneOut(dim=3).fit(cdist(X, X, "sqeuclidean"), kernel)
    assert np.ptp(scale) == 0.0
    assert -loss(np.log(scale[0])) == pytest.approx(-best.fun, abs=1e-10)


@pytest.mark.filterwarnings("ignore:divide by zero encountered in log:RuntimeWarning")
def test_points_that_a_kernel_does_not_reach_have_no_likelihood():
    far = np.vstack([X, [[1e4, 0.0, 0.0]]])
    _, scale = gc.LeaveOneOut(dim=3).fit(cdist(far, far, "sqeuclidean"), Parabola())
    less, best, more = (
        np.sort(_likelihoods(_rows(far), Parabola(), factor * scale[0], 3.0))[2:].mean() for factor in (0.9, 1.0, 1.1)
    )
    assert best > max(less, more)
    for by_row in (False, True):
        scales = [
            gc.LeaveOneOut(by_row=by_row, dim=3).fit(cdist(far, far, "sqeuclidean"), Parabola(reach))[1]
            for reach in (1.0, 0.05, 30.0)
        ]
        for reach, scale in zip((0.05, 30.0), scales[1:], strict=True):
            np.testing.assert_allclose(reach * np.median(scale), np.median(scales[0]), rtol=1e-5)


def test_the_scale_of_normal_points_is_near_the_best_for_their_density():
    """Silverman's rule is optimal for a normal density: σ (4/((d + 2) n))^(1/(d + 4))."""
    points = np.random.default_rng(1).normal(size=(1500, 2))
    scale = gc.LeaveOneOut(dim=2).fit(cdist(points, points, "sqeuclidean"))[1][0]
    assert scale == pytest.approx((4 / (4 * 1500)) ** (1 / 6), rel=0.15)


def test_the_scale_of_each_row_maximises_its_likelihood():
    rows = _rows(X)
    _, scale = gc.LeaveOneOut(by_row=True, dim=3).fit(cdist(X, X, "sqeuclidean"))
    found = np.array([_likelihoods(rows[i : i + 1], gc.Gaussian(), scale[i], 3.0)[0] for i in range(150)])
    for tried in np.geomspace(0.02, 30.0, 400):
        assert (found >= _likelihoods(rows, gc.Gaussian(), tried, 3.0) - 1e-9).all()
    # There the dimension seen is the dimension given.
    weights = gc.Gaussian().value(rows / scale[:, None] ** 2)
    seen = (weights * rows).sum(axis=1) / weights.sum(axis=1) / scale**2
    np.testing.assert_allclose(seen, 3.0, rtol=1e-3)


def test_a_wider_kernel_across_a_gap_is_no_better():
    """Two sheets side by side see two dimensions, and far more at the scale of the gap between them."""
    roll, _ = gc.datasets.make_swiss_roll(700, random_state=0)
    law = gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut()).posterior(roll)
    assert 10 < np.exp(law.entropy() / 700) < 100


def test_the_dimension_is_that_of_the_points():
    sheet = np.random.default_rng(0).uniform(size=(700, 2)) @ np.random.default_rng(1).normal(size=(2, 20))
    law = gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut(by_row=True)).given(sheet)
    law.posterior()
    assert law.law.bandwidth.dim == pytest.approx(2.0, abs=0.2)
    with pytest.warns(UserWarning, match="makes neighbors of 39 of 39 points"):
        simplex = gc.LeaveOneOut().fit(2.0 - 2.0 * np.eye(40))[1]
    np.testing.assert_allclose(simplex, np.sqrt(2.0 / 39.0), rtol=1e-5)


def test_copies_of_points_and_one_far_point_leave_the_scale():
    plain = gc.LeaveOneOut(dim=3).fit(cdist(X, X, "sqeuclidean"))[1][0]
    for others in (X[:30], [[1e6, 0.0, 0.0]]):
        more = np.vstack([X, others])
        assert gc.LeaveOneOut(dim=3).fit(cdist(more, more, "sqeuclidean"))[1][0] == pytest.approx(plain, rel=0.1)
    # Copies are in one place, which counts once for the dimension; several outliers share a floor of the density.
    copied, outlying = np.tile(X, (4, 1)), np.vstack([X, 1e3 * RNG.normal(size=(6, 3))])
    scales = [gc.LeaveOneOut().fit(cdist(of, of, "sqeuclidean"))[1][0] for of in (X, copied, outlying)]
    np.testing.assert_allclose(scales, scales[0], rtol=0.15)
    with pytest.raises(ValueError, match="all points are in one place"):
        gc.LeaveOneOut(dim=3).fit(np.zeros((5, 5)))


@pytest.mark.filterwarnings("ignore:the scale of largest likelihood")
def test_few_neighbors_give_the_scale_of_all_pairs():
    points = np.random.default_rng(1).normal(size=(800, 5))
    scales = []
    for k in (None, 100, 30):
        law = gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut(dim=5), k).given(points)
        law.posterior()
        scales.append(law.law.bandwidth.scale)
    np.testing.assert_allclose(scales, scales[0], rtol=0.05)


def test_weights_count_copies():
    weights = RNG.integers(1, 4, size=150).astype(float)
    model = gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut(dim=3))
    weighted, copied = model.given(X, sample_weight=weights), model.given(np.repeat(X, weights.astype(int), axis=0))
    for law in (weighted, copied):
        law.posterior()
    assert weighted.law.bandwidth.scale == pytest.approx(copied.law.bandwidth.scale, rel=1e-5)
    # Five copies of each of a hundred points do not make neighbours of half of them.
    gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut(dim=3)).posterior(X[:100], sample_weight=np.full(100, 5.0))


@pytest.mark.parametrize("part_edges", [None, 5000])
def test_the_dimension_counts_copies(part_edges, monkeypatch):
    """Points of a line have many copies, and points of a cloud none; edges in one part or in several."""
    if part_edges:
        monkeypatch.setattr("graphcouple.graphs._PART_EDGES", part_edges)
    rng = np.random.default_rng(2)
    points = np.vstack([np.outer(rng.uniform(size=75), np.ones(6)), rng.normal(size=(75, 6)) + 20.0])
    weights = np.repeat([6, 1], 75)
    model = gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut(by_row=True))
    plain, weighted, copied = (
        model.given(points),
        model.given(points, sample_weight=weights),
        model.given(np.repeat(points, weights, axis=0)),
    )
    for law in (plain, weighted, copied):
        law.posterior()
    assert weighted.law.bandwidth.dim == pytest.approx(copied.law.bandwidth.dim, rel=1e-6)
    assert weighted.law.bandwidth.dim < 0.7 * plain.law.bandwidth.dim


@pytest.mark.filterwarnings("ignore:the scale of largest likelihood")
def test_scales_that_are_as_likely_are_told():
    sphere = np.random.default_rng(1).normal(size=(700, 3))
    law = gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut(), metric="cosine")
    with pytest.warns(UserWarning, match="are about as likely as .*, so other rows may choose"):
        law.posterior(sphere)


@pytest.mark.parametrize("by_row", [False, True])
def test_new_points_take_the_numbers_of_the_fit(by_row, tmp_path):
    model = gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut(by_row))
    fitted = gc.GraphCoupling(model, gc.GraphModel(gc.Student(), "E"), random_state=0, init="pca", max_iter=300).fit(X)
    places = fitted.transform(X[:7] + 0.1)
    np.testing.assert_array_equal(fitted.transform(X[:1] + 0.1), places[:1])
    fitted.save(tmp_path / "map.gc")
    loaded = gc.load(tmp_path / "map.gc")
    np.testing.assert_array_equal(loaded.transform(X[:7] + 0.1), places)
    # Older files do not name the law in use, only its bandwidth.
    recalled = fitted.sentence.input.recall(fitted._given.remembered())
    np.testing.assert_array_equal(recalled.new_edges(X[:7] + 0.1).means, fitted._given.new_edges(X[:7] + 0.1).means)
    settled = model.given(X)
    settled.posterior()
    new = settled.new_edges(X[:7] + 0.1).normalized().toarray()
    sq_dist = cdist(X[:7] + 0.1, X, "sqeuclidean")
    if not by_row:
        expected = np.exp(-0.5 * sq_dist / settled.law.bandwidth.scale**2)
        np.testing.assert_allclose(new, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9)


def test_refusals_and_warnings():
    sq_dist = cdist(X, X, "sqeuclidean")
    with pytest.raises(ValueError, match="no density in 3 dimensions"):
        gc.LeaveOneOut(dim=3).fit(sq_dist, gc.Student())
    # The density of a tail d^(−2.5) is finite below 2.5 dimensions.
    assert (gc.LeaveOneOut(dim=2.2).fit(sq_dist, gc.Student(1.5))[1] > 0).all()
    for dof in (1.5, 1.75):
        with pytest.raises(ValueError, match="no density"):
            gc.LeaveOneOut(dim=1.0 + dof).fit(sq_dist, gc.Student(dof))
    with pytest.raises(ValueError, match="compares each row with all others, but a row has 20 neighbors of 150 points"):
        gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut(by_row=True), n_neighbors=20).posterior(X)
    own = gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut()).given(
        X, neighbors=kneighbors_graph(X, 20, mode="distance")
    )
    with pytest.raises(ValueError, match="takes no neighbors of your own"):
        own.posterior()
    stored = kneighbors_graph(X, 20, mode="distance")
    with pytest.raises(ValueError, match="no sparse graph of distances"):
        gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut(), 10, metric="precomputed").posterior(stored)
    for dim in (0.0, 0.5):
        with pytest.raises(ValueError, match="dim must be"):
            gc.LeaveOneOut(dim=dim)
    with pytest.raises(TypeError, match="by_row must be True or False"):
        gc.LeaveOneOut(by_row="yes")
    with pytest.warns(UserWarning, match=r"effective neighbors, and rows keep 5\. Set n_neighbors to"):
        gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut(dim=3), n_neighbors=5).posterior(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.GraphModel(gc.Gaussian(), "B", gc.LeaveOneOut(dim=3), n_neighbors=100).posterior(X)
