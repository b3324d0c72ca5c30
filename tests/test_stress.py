"""Stress, and metric multidimensional scaling."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.spatial.distance import cdist, squareform
from sklearn import manifold
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import graphcouple as gc
from graphcouple.couplings import FreeScaleStress, Stress, sampled_pairs, stress_weights
from graphcouple.graphs import Support
from graphcouple.neighbors import all_pairs, distances_of
from tests.reference import Fourth, numerical_gradient, relative_error

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 6))
D = cdist(X, X)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("loss", ["square", Fourth(1.0)])
def test_value_and_gradient(power, loss):
    Z = RNG.normal(size=(80, 3))
    objective = Stress.of(distances_of(X), power=power, loss=loss)
    off = ~np.eye(80, dtype=bool)
    weights = (D[off] / D[off].mean()) ** -power
    wanted = (weights * np.abs(D[off] - cdist(Z, Z)[off]) ** (2 if loss == "square" else 4)).sum()
    value, gradient = objective.value_and_grad(Z)
    assert value == pytest.approx(wanted, rel=1e-12)
    assert relative_error(gradient, numerical_gradient(objective.value, Z)) < 1e-7
    assert objective.lower_bound == 0.0
    assert objective.value(np.pad(X, ((0, 0), (0, 2)))) == pytest.approx(0.0, abs=1e-20)
    for jobs in (1, 2):
        again = Stress.of(distances_of(X), power=power, loss=loss, n_jobs=jobs).value_and_grad(Z)
        assert again[0] == value
        np.testing.assert_array_equal(again[1], gradient)


def test_copies_weigh_as_the_nearest_pair_and_feel_no_force():
    assert stress_weights(np.array([0.0, 1.0, 3.0]), 1.0) == pytest.approx([2.0, 2.0, 2.0 / 3.0])
    assert (stress_weights(np.zeros(3), 2.0) == 1).all()
    value, gradient = Stress.of(distances_of(X[:5])).value_and_grad(np.zeros((5, 2)))
    assert value == pytest.approx(np.square(D[:5, :5]).sum())
    assert (gradient == 0).all()


@pytest.mark.filterwarnings("ignore:The default value of `init`:FutureWarning")
@pytest.mark.parametrize("q", [1, 2, 3])
def test_no_higher_than_smacof_from_the_same_start(q):
    start = PCA(q).fit_transform(X) + 0.01
    smacof = manifold.MDS(q, n_init=1, max_iter=20000, eps=1e-14, normalized_stress=False, random_state=0)
    theirs = smacof.fit_transform(X, init=start)
    ours = gc.MetricMDS(q, init=start, max_iter=5000).fit(X)
    assert ours.stress_ == pytest.approx(np.square(D - cdist(ours.embedding_, ours.embedding_)).sum(), rel=1e-10)
    if q > 1:
        # On a line, a start decides the order of the points.
        assert ours.stress_ / 2 <= smacof.stress_ * (1 + 1e-6)
        back = gc.MetricMDS(q, init=theirs, max_iter=5000).fit(X)
        assert back.stress_ / 2 == pytest.approx(smacof.stress_, rel=1e-4)


def test_sammon_against_a_general_minimiser():
    few = X[:25]
    wanted = D[:25, :25]
    off = ~np.eye(25, dtype=bool)
    ours = gc.MetricMDS(weights="sammon", random_state=0, max_iter=5000).fit(few)

    def sammon(flat):
        Z = flat.reshape(25, 2)
        distances = cdist(Z, Z)
        with np.errstate(divide="ignore", invalid="ignore"):
            residual = np.where(off, (distances - wanted) / wanted, 0.0)
            pull = np.where(off, residual / distances, 0.0)
        return (residual**2 * wanted).sum(), 4.0 * (pull[:, :, None] * (Z[:, None] - Z)).sum(axis=1).ravel()

    found = minimize(sammon, ours.embedding_.ravel(), jac=True, method="BFGS", options={"gtol": 1e-8})
    assert sammon(ours.embedding_.ravel())[0] == pytest.approx(found.fun, rel=1e-6)
    assert ours.stress_ == pytest.approx(found.fun * wanted[off].mean(), rel=1e-6)
    power = gc.MetricMDS(weights=1.0, random_state=0, max_iter=5000).fit(few)
    np.testing.assert_array_equal(power.embedding_, ours.embedding_)


def test_sampled_pairs_stand_for_all():
    Z = X[:, :2]
    whole = Stress.of(distances_of(X), power=1.0).value(Z)
    drawn = []
    for seed in range(300):
        pairs = sampled_pairs(80, 10, np.random.RandomState(seed))
        assert pairs.n_edges == 800
        drawn.append(Stress.of(distances_of(X), pairs).value(Z))
    raw = Stress.of(distances_of(X)).value(Z)
    assert np.mean(drawn) == pytest.approx(raw, rel=4 * np.std(drawn) / 300**0.5 / raw)
    assert whole > 0
    counts = sum(sampled_pairs(6, 2, np.random.RandomState(s)).to_csr(np.ones(12)).toarray() for s in range(1000))
    assert (np.diag(counts) == 0).all()
    # Each of 15 pairs is one of the 6 drawn in two fifths of the samples.
    np.testing.assert_allclose(squareform(counts), 400, atol=4 * (1000 * 0.4 * 0.6) ** 0.5)


def test_a_fit_to_sampled_pairs_tells_the_stress_of_others():
    many = RNG.normal(size=(1000, 10))
    sampled = gc.MetricMDS(pairs_per_point=40, random_state=0).fit(many)
    places = sampled.embedding_.astype(np.float64)
    truth = np.square(cdist(many, many) - cdist(places, places)).sum()
    assert sampled.stress_ == pytest.approx(truth, rel=0.02)
    whole = gc.MetricMDS(random_state=0).fit(many)
    assert whole.stress_ < truth < 1.5 * whole.stress_


def test_new_points_lie_where_their_stress_is_least():
    for weights in (None, "sammon"):
        mds = gc.MetricMDS(weights=weights, random_state=0).fit(X)
        new = RNG.normal(size=(10, 6))
        Z = mds.transform(new)
        np.testing.assert_array_equal(mds.transform(new[3:5]), Z[3:5])
        for x, z in zip(new, Z, strict=True):
            wanted = np.linalg.norm(x - X, axis=1)
            w = np.ones(80) if weights is None else 1 / wanted

            def stress(place, wanted=wanted, w=w, fixed=mds.embedding_):
                return (w * (wanted - np.linalg.norm(place - fixed, axis=1)) ** 2).sum()

            assert stress(z) <= minimize(stress, z).fun * (1 + 1e-6)
    mds = gc.MetricMDS(random_state=0).fit(load_digits().data[:200])
    places = mds.set_params(n_components=3).transform(load_digits().data[:200])
    assert np.abs(places - mds.embedding_).max() < 0.01 * mds.embedding_.std()
    with pytest.raises(ValueError, match="needs the square loss"):
        gc.MetricMDS(loss=Fourth(1.0), random_state=0).fit(X).transform(X)


def test_starts_and_seeds():
    a, b = (gc.MetricMDS(random_state=0, n_jobs=jobs).fit_transform(X) for jobs in (1, 2))
    np.testing.assert_array_equal(a, b)
    best = gc.MetricMDS(init="random", n_starts=4, random_state=0).fit(X)
    assert best.stress_ <= gc.MetricMDS(init="random", random_state=0).fit(X).stress_ * (1 + 1e-9)
    # A line of points must leave the line where a plane is wanted.
    circle = np.column_stack([np.cos(np.arange(20)), np.sin(np.arange(20))])
    flat = gc.MetricMDS(metric="precomputed", random_state=0).fit(cdist(circle, circle))
    assert flat.normalized_stress_ < 1e-4


def test_bad_input_is_told():
    cases = [
        (gc.MetricMDS(80), X, "n_components=80 must be below"),
        (gc.MetricMDS(metric="precomputed"), sp.csr_array(D), "Isomap"),
        (gc.MetricMDS(metric="precomputed", init="random"), np.triu(D), "symmetric"),
        (gc.MetricMDS(init=X), X, "n_components=2"),
        (gc.MetricMDS(init=X[:3]), X, "init"),
    ]
    for method, given, message in cases:
        with pytest.raises(ValueError, match=message):
            method.fit(given)
    one_way = Support(np.array([0, 1, 1]), np.array([1]))
    with pytest.raises(ValueError, match="both directions"):
        Stress(one_way, np.ones(1))
    both = Support(np.array([0, 1, 2]), np.array([1, 0]))
    with pytest.raises(ValueError, match="wanted must hold a finite number"):
        Stress(both, np.array([np.nan, np.nan]))
    with pytest.raises(ValueError, match="weights must be the same"):
        Stress(both, np.ones(2), np.array([1.0, 2.0]))


def test_losses_of_probabilities_take_no_distances_above_1():
    for call in (
        lambda: gc.MetricMDS(loss=gc.BinaryKL()).fit(X),
        lambda: Stress.of(distances_of(X), loss=gc.BinaryKL()),
    ):
        with pytest.raises(ValueError, match=r"loss=BinaryKL\(\) of the distance .* Use loss='square'"):
            call()
    # Correlations, say, which may be matched as probabilities: the sum of entropies is the least.
    near = distances_of(0.9 * X / D.max())
    stress, share = Stress.of(near, loss="kl"), 0.9 * D[~np.eye(80, dtype=bool)] / D.max()
    wanted = -(share * np.log(share) + (1 - share) * np.log(1 - share)).sum()
    assert stress.lower_bound == pytest.approx(wanted, rel=1e-12)
    assert stress.value(1.05 * X / D.max()) > stress.value(0.9 * X / D.max()) == pytest.approx(wanted, rel=1e-9)


def test_pairs_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="per_point=10 must be at most 4"):
        sampled_pairs(5, 10, np.random.RandomState(0))
    one_way = Support.all_pairs(3).select(np.array([True, False, False, False, False, False]))
    with pytest.raises(ValueError, match="both directions"):
        Stress(one_way, np.ones(1))


@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0, 4.0])
def test_other_norms_of_the_embedding(norm):
    rng = np.random.default_rng(0)
    points, Z = rng.normal(size=(15, 4)), rng.normal(size=(15, 2))
    support, sq_dist = all_pairs(points)
    objective = Stress(support, np.sqrt(sq_dist), norm=norm)
    between = np.power(np.power(np.abs(Z[:, None] - Z), norm).sum(axis=2), 1.0 / norm)
    wanted = np.square(between - np.sqrt(np.square(points[:, None] - points).sum(axis=2))).sum()
    assert objective.value(Z) == pytest.approx(wanted, rel=1e-12)
    assert relative_error(objective.gradient(Z), numerical_gradient(objective.value, Z)) < 1e-6
    if norm != 2.0:
        with pytest.raises(ValueError, match=f"of Euclidean distances only, got .* and norm={norm}"):
            FreeScaleStress(objective)


def test_streets_are_found_again():
    plane = np.random.default_rng(0).normal(size=(40, 2))
    streets = gc.MetricMDS(metric="manhattan", norm=1.0, n_starts=3, random_state=0).fit(plane)
    lengths = gc.MetricMDS(metric="manhattan", random_state=0).fit(plane)
    assert streets.normalized_stress_ < 0.5 * lengths.normalized_stress_
    with pytest.raises(ValueError, match="norm=2"):
        streets.transform(plane[:3])
    with pytest.raises(ValueError, match="at least 1"):
        Stress(*all_pairs(plane), norm=0.5)
