"""The term at the scale of the whole, against its definition written out."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist
from sklearn.metrics import pairwise_distances

import graphcouple as gc
from graphcouple.couplings import LargeScale, LargeScaleCrossEntropy
from graphcouple.neighbors import mean_sq_distances_to_groups, sq_distances_to_points
from graphcouple.spectral import far_rows_drawn_in
from tests.contracts import check_objective


def literal(X, landmarks, Z, width=0.15, softening=1e-4):
    """L by loops, from the definition."""
    n, m = len(X), len(landmarks)
    group = np.array([int(np.argmin(row)) for row in cdist(X, X[landmarks])])
    squares = cdist(X, X, "sqeuclidean")
    delta = np.array([[squares[i, group == g].mean() for g in range(m)] for i in range(n)])
    means = np.array([Z[group == g].mean(axis=0) for g in range(m)])
    variance = np.mean(np.sum((Z - Z.mean(axis=0)) ** 2, axis=1))

    def spread(z):
        return np.sum((z - Z.mean(axis=0)) ** 2) + variance

    total = 0.0
    for i in range(n):
        for g in range(m):
            nearer = np.sum(delta[i, group] < delta[i, g]) + 0.5 * np.sum(delta[i, group] == delta[i, g])
            p = 1.0 / (1.0 + np.exp((nearer / n - 0.5) / width))
            u = np.sum((Z[i] - means[g]) ** 2) / (0.5 * (spread(Z[i]) + spread(means[g])))
            entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
            total += np.sum(group == g) * (np.log(1 + u) - (1 - p) * np.log(u + softening) - entropy)
    return total / n**2 + np.log(1 + softening)


def of(X, landmarks=10, seed=0, **options):
    return LargeScaleCrossEntropy.of(X, landmarks, np.random.RandomState(seed), **options)


@pytest.mark.parametrize("q", [1, 2, 3])
def test_it_is_its_definition(rng, q):
    X, Z = rng.normal(size=(60, 4)), 5.0 * rng.normal(size=(60, q))
    for k in (7, 60):
        landmarks = np.sort(np.random.RandomState(0).permutation(60)[:k])
        assert of(X, k).value(Z) == pytest.approx(literal(X, landmarks, Z), rel=1e-6)
        assert of(X, k, width=0.3).value(Z) == pytest.approx(literal(X, landmarks, Z, 0.3), rel=1e-6)


@pytest.mark.parametrize("q", [1, 2, 5])
def test_it_keeps_the_rules_of_objectives(rng, q):
    check_objective(of(rng.normal(size=(40, 4))), rng.normal(size=(40, q)))


def test_units_places_and_turns_do_not_matter(rng):
    X, Z = rng.normal(size=(60, 4)), rng.normal(size=(60, 2))
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    expected = of(X).value(Z)
    assert of(1e-5 * X + 3.0).value(1e6 * Z @ turn - 7.0) == pytest.approx(expected, rel=1e-6)
    assert of(1e-140 * X).value(1e160 * Z) == pytest.approx(expected, rel=1e-6)
    assert of(1e140 * X).value(1e-160 * Z) == pytest.approx(expected, rel=1e-6)


def test_sparse_points_and_other_metrics_have_their_own_ranks(rng):
    X, Z = rng.poisson(0.5, size=(60, 8)).astype(float), rng.normal(size=(60, 2))
    for sparse in (sp.csr_array, sp.csc_matrix, sp.coo_array):
        assert of(sparse(X)).value(Z) == pytest.approx(of(X).value(Z), rel=1e-9)
    # With a landmark at every point, a group is one point, and on a line all metrics have the same ranks.
    line = rng.normal(size=(60, 1))
    assert of(line, 60).value(Z) == pytest.approx(of(line, 60, metric="manhattan").value(Z), rel=1e-9)
    # The mean over four members is near that over all.
    few, all_of_them = of(line, 5, metric="manhattan").value(Z), of(line, 5).value(Z)
    assert few == pytest.approx(all_of_them, rel=0.05)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", lambda a, b: float(np.abs(a - b).max())])
def test_mean_distances_to_groups_of_four_are_exact(rng, metric):
    X, groups = rng.normal(size=(40, 3)) + 50.0, rng.permutation(np.repeat(np.arange(10), 4))
    found = mean_sq_distances_to_groups(X, groups, np.random.RandomState(0), metric)
    squares = pairwise_distances(X, metric=metric) ** 2
    wanted = np.array([squares[:, groups == g].mean(axis=1) for g in range(10)]).T
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12)
    places = np.array([3, 3, 17])
    np.testing.assert_allclose(sq_distances_to_points(X, places, metric), squares[:, places], rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize(
    ("metric", "params"),
    [("minkowski", {"p": 1.5}), ("seuclidean", None), ("mahalanobis", None), ("correlation", None)],
)
def test_metrics_have_the_parameters_of_all_points(rng, metric, params):
    X, groups = rng.normal(size=(40, 3)) * [1.0, 5.0, 30.0], rng.permutation(np.repeat(np.arange(10), 4))
    squares = pairwise_distances(X, metric=metric, **(params or {})) ** 2
    wanted = np.array([squares[:, groups == g].mean(axis=1) for g in range(10)]).T
    found = mean_sq_distances_to_groups(X, groups, np.random.RandomState(0), metric, params)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12)
    near = [of(X, 40, metric=metric, metric_params=given).near for given in (params, None)]
    assert np.array_equal(*near) == (params is None)
    options = {"metric": metric, "metric_params": params, "perplexity": 5, "max_iter": 20, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = gc.TSNE(terms=[gc.DistanceShape(pairs_per_point=5), LargeScale()], **options).fit(X)
    assert np.isfinite(fitted.embedding_).all()


def test_clusters_far_apart_and_sparse_offsets_keep_their_digits(rng):
    P, places = rng.normal(size=(200, 5)), np.arange(0, 200, 10)
    for X in (np.concatenate([P[:100], P[100:] + 1e9]), sp.csr_array(P + 1e6)):
        dense = X if isinstance(X, np.ndarray) else X.toarray()
        exact = cdist(dense, dense, "sqeuclidean")
        np.testing.assert_allclose(sq_distances_to_points(X, places), exact[:, places], rtol=1e-7)
        groups = np.repeat(np.arange(50), 4)
        found = mean_sq_distances_to_groups(X, groups, np.random.RandomState(0))
        wanted = np.array([exact[:, groups == g].mean(axis=1) for g in range(50)]).T
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_blocks_have_the_units_of_all_points(rng):
    X = np.column_stack([rng.normal(size=(60, 3)), rng.integers(0, 4, 60)])
    metric = gc.Blocks([gc.Block([0, 1, 2]), gc.Block([3], "categorical")])
    places = rng.permutation(60)[:9]
    support, sq_dist = gc.neighbors.distances_of(X, metric).all_pairs()
    exact = support.to_array(sq_dist)
    np.testing.assert_allclose(sq_distances_to_points(X, places, metric), exact[:, places], rtol=1e-9, atol=1e-12)


def test_single_precision_holds_gradients_with_an_outlier(rng):
    X, Z = rng.normal(size=(3000, 4)), rng.normal(size=(3000, 2))
    Z[7] = 1e4
    objective = of(X, 40)
    exact, found = objective.value_and_grad(Z), objective.value_and_grad(Z.astype(np.float32))
    assert found[0] == pytest.approx(exact[0], rel=1e-5)
    assert np.abs(found[1] - exact[1]).max() < 1e-5 * np.abs(exact[1]).max()


def test_points_in_one_place(rng):
    objective = of(rng.normal(size=(30, 4)))
    value, gradient = objective.value_and_grad(np.full((30, 2), 0.1))
    assert value == objective.value(np.ones((30, 2)))
    assert not gradient.any()
    Z = np.repeat(rng.normal(size=(2, 2)), 15, axis=0)
    value, gradient = objective.value_and_grad(Z)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    copies = of(np.ones((30, 4)))
    np.testing.assert_allclose(copies.near, 0.5)
    with pytest.raises(ValueError, match="probabilities"):
        LargeScaleCrossEntropy(np.array([0, 1, 1]), np.full((3, 2), 1.5))
    with pytest.raises(ValueError, match="every group"):
        LargeScaleCrossEntropy(np.array([0, 2, 2]), np.full((3, 3), 0.5))


def test_its_minimum_is_the_plane_that_the_data_come_from(rng):
    plane = rng.uniform(size=(300, 2))
    X = plane @ np.linalg.qr(rng.normal(size=(6, 6)))[0][:2]
    found = gc.solve(of(X, 300), rng.normal(size=(300, 2)), gc.LBFGS(), max_iter=500)
    assert gc.metrics.k_ary_preservation(X, found.Z, K=150) > 0.9
    assert gc.metrics.seed_stability([plane, found.Z]) > 0.95


def test_the_preset_is_the_term_and_zero_is_the_plain_method(rng):
    X, _ = gc.datasets.make_hierarchical_mixture(200, random_state=0)
    options = {"max_iter": 60, "random_state": 0}
    plain = gc.TSNE(**options).fit(X)
    with_term = gc.TSNE(terms=[LargeScale(3.0, 50)], **options).fit(X)
    both = gc.TwoScaleCoupling(gc.TSNE(**options), weight=3.0, n_groups=50).fit(X)
    assert np.array_equal(both.embedding_, with_term.embedding_)
    assert both.large_scale_loss_ == with_term.term_losses_[0]
    assert both.loss_ == pytest.approx(both.coupling_loss_ + 3.0 * both.large_scale_loss_)
    nothing = gc.TwoScaleCoupling(gc.TSNE(**options), weight=0.0).fit(X)
    assert np.array_equal(nothing.embedding_, plain.embedding_)
    assert nothing.large_scale_loss_ == 0.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "method",
    [gc.TSNE(), gc.UMAP(), *(pytest.param(slow, marks=pytest.mark.nightly) for slow in (gc.SNE(), gc.LargeVis()))],
)
def test_any_method_keeps_more_of_the_whole_and_as_much_nearby(method):
    X, _ = gc.datasets.make_hierarchical_mixture(400, random_state=1)
    plain = method.set_params(random_state=0).fit_transform(X)
    placed = gc.TwoScaleCoupling(method).fit_transform(X)
    far, near = ([gc.metrics.k_ary_preservation(X, Z, K) for Z in (plain, placed)] for K in (200, 10))
    assert far[1] > max(far[0], 0.7)
    assert near[1] > near[0] - 0.05


def test_what_it_cannot_take_is_refused():
    for options, word in (({"n_groups": 1}, "n_groups"), ({"n_groups": "few"}, "n_groups"), ({"width": 0}, "width")):
        with pytest.raises((ValueError, TypeError), match=word):
            LargeScale(**options)


def test_threads_and_repetitions_give_the_same_bits(rng):
    X, Z = rng.normal(size=(3000, 4)), rng.normal(size=(3000, 2)).astype(np.float32)
    expected = of(X, 40).value_and_grad(Z)
    for n_jobs in (1, 2, 5):
        found = of(X, 40, n_jobs=n_jobs).value_and_grad(Z)
        assert found[0] == expected[0]
        assert np.array_equal(found[1], expected[1])


def test_beyond_many_points_the_weight_falls(rng, monkeypatch):
    monkeypatch.setattr("graphcouple.couplings.global_term._MANY", 1000.0)
    X = rng.normal(size=(2500, 2))
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), n_neighbors=15)
    method = gc.GraphCoupling(law, gc.GraphModel(gc.Student(), "E"), terms=[LargeScale()], max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method.fit(X)
    objective = of(X, 25)
    objective_of = objective.value(method.embedding_.astype(np.float64))
    assert method.term_losses_[0] == pytest.approx((1000 * 2500) ** 0.5 * objective_of, rel=0.02)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("far", [1e2, 1e4, 1e8])
def test_an_outlier_leaves_the_weight_and_the_others(far):
    X, _ = gc.datasets.make_branches(300, random_state=0)
    both = gc.TwoScaleCoupling(gc.TSNE(max_iter=100), random_state=0).fit(np.concatenate([X, X[:1] + far]))
    assert both.weight_ == 3.0
    assert gc.metrics.k_ary_preservation(X, both.embedding_[:300], K=150) > 0.85


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "n_far"), [(np.asarray, 1), (sp.csr_array, 3), (np.asarray, 5)])
def test_a_few_rows_at_any_distance_leave_the_weight(rng, n_far, kind):
    X, _ = gc.datasets.make_hierarchical_mixture(300, random_state=0)
    ways = rng.normal(size=(n_far, X.shape[1]))
    ways *= np.median(pdist(X)) / np.linalg.norm(ways, axis=1, keepdims=True)
    for far in (10.0, 300.0, 1e6):
        X[:n_far] = far * ways
        assert gc.TwoScaleCoupling(gc.TSNE(max_iter=1), random_state=0).fit(kind(X)).weight_ == 3.0


@pytest.mark.filterwarnings("ignore:perplexity=")
@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_many_rows_in_one_place_leave_the_weight(rng, noise):
    X, _ = gc.datasets.make_hierarchical_mixture(300, random_state=0)
    X[:156] = X[200] + noise * rng.normal(size=(156, X.shape[1]))
    assert gc.TwoScaleCoupling(gc.TSNE(max_iter=1), random_state=0).fit(X).weight_ == 3.0


def test_far_rows_are_drawn_in_along_their_ray(rng):
    X = rng.normal(size=(200, 4)) + 5.0
    assert far_rows_drawn_in(X) is X
    X[3] += 1e4
    dense, sparse = far_rows_drawn_in(X), far_rows_drawn_in(sp.csr_array(X)).toarray()
    middle = np.median(X, axis=0)
    np.testing.assert_allclose(dense, sparse - middle, atol=1e-8)
    distances = np.linalg.norm(X - middle, axis=1)
    wanted = (X - middle) * np.minimum(1.0, 3.0 * np.quantile(distances, 0.9) / distances)[:, None]
    np.testing.assert_allclose(dense, wanted, rtol=1e-12)


@pytest.mark.parametrize("wrapper", [gc.TwoScaleCoupling, gc.HierarchicalCoupling])
def test_the_term_of_a_preset_is_told_from_those_of_the_method(wrapper):
    X, _ = gc.datasets.make_branches(120, random_state=0)
    fitted = wrapper(gc.LaptSNE(max_iter=20, n_clusters=3), weight=2.0, random_state=0).fit(X)
    assert fitted.weight_ == 2.0 != fitted.term_weights_[-1]
    loss = fitted.large_scale_loss_ if wrapper is gc.TwoScaleCoupling else fitted.component_loss_
    assert loss == fitted.term_losses_[0] != fitted.term_losses_[-1]


def test_a_preset_goes_on_where_its_method_is_warm_and_forgets_the_last_fit():
    X, _ = gc.datasets.make_branches(120, random_state=0)
    warm = gc.TwoScaleCoupling(gc.TSNE(max_iter=20, warm_start=True), random_state=0)
    first = warm.fit(X).loss_
    assert warm.fit(X).loss_ < first
    cold = gc.TwoScaleCoupling(gc.LaptSNE(max_iter=20, n_clusters=3), random_state=0).fit(X)
    assert not hasattr(cold.set_params(estimator=gc.TSNE(max_iter=20)).fit(X), "n_clusters_")


@pytest.mark.parametrize("q", [1, 2, 5])
def test_what_is_explained_is_a_covariance_over_groups(rng, q):
    X, Z = rng.normal(size=(60, 4)), rng.normal(size=(60, q))
    objective = LargeScaleCrossEntropy.of(X, 7, np.random.RandomState(0))
    group = objective._groups
    means = np.array([Z[group == g].mean(axis=0) for g in range(7)])
    around = np.sum((Z - Z.mean(axis=0)) ** 2, axis=1)
    spread, spread_of = around + around.mean(), np.sum((means - Z.mean(axis=0)) ** 2, axis=1) + around.mean()
    logs = np.log(cdist(Z, means, "sqeuclidean") / (0.5 * (spread[:, None] + spread_of)) + 1e-4)
    covariances = [
        np.cov(p, -row, fweights=np.bincount(group), ddof=0)[0, 1] for p, row in zip(objective.near, logs, strict=True)
    ]
    wanted = np.mean(covariances) / (np.mean(covariances) + objective.value(Z))
    assert objective.explained(Z) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("n", [300, pytest.param(3000, marks=pytest.mark.nightly)])
@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
def test_clusters_far_apart_have_a_shape_at_large_at_any_size(n, rng):
    # Exchanging rows draws the means of large groups to one place: of 3,000 points a weight of 0 was found so.
    X = rng.normal(size=(n, 5)) + 30.0 * (np.arange(n) < n // 2)[:, None]
    assert gc.TwoScaleCoupling(gc.TSNE(max_iter=1), random_state=0).fit(X).weight_ == 3.0
    # Ten per cent far out make most of what distances there are, and leave the plane nothing of the others.
    for lifted in (0.0, 300.0):
        noise = rng.normal(size=(n, 50)) + lifted * (np.arange(n) < n // 10)[:, None]
        assert gc.TwoScaleCoupling(gc.TSNE(max_iter=1), random_state=0).fit(noise).weight_ < 2.5


def test_what_a_preset_or_its_terms_cannot_be_is_said():
    X, _ = gc.datasets.make_branches(60, random_state=0)
    with pytest.raises(
        ValueError, match=r"estimator__perplexity is a parameter of `estimator`, which is None; pass one first"
    ):
        gc.TwoScaleCoupling().set_params(estimator__perplexity=5)
    both = gc.TwoScaleCoupling().set_params(estimator=gc.TSNE(), estimator__perplexity=5)
    assert both.estimator.perplexity == 5
    with pytest.raises(TypeError, match=r"put it in a list, as terms=\[LargeScale\("):
        gc.TSNE(terms=gc.LargeScale()).fit(X)
    for method in (gc.TSNE(), gc.TwoScaleCoupling()):
        with pytest.raises(ValueError, match="X is None, and the input's law finds its graph among points"):
            method.fit(None)
    with pytest.raises(ValueError, match="weight must be"):
        gc.TwoScaleCoupling(weight=True).fit(X)


def test_groups_that_are_equally_far_have_equal_probabilities_in_any_unit():
    X = np.eye(6)[np.random.default_rng(0).integers(0, 6, 600)]
    parts = [LargeScaleCrossEntropy.of(unit * X, 100, np.random.RandomState(0)) for unit in (1.0, 3.0)]
    np.testing.assert_array_equal(parts[0]._groups, parts[1]._groups)
    np.testing.assert_allclose(parts[0].near, parts[1].near, atol=1e-6)
