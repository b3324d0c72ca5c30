"""Scores of classes, arrangement and stability, the table of all scores, and what is refused."""

import builtins
import warnings
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn import metrics as sk
from sklearn.cluster import KMeans
from sklearn.manifold import trustworthiness
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import graphcouple as gc
from graphcouple import metrics
from graphcouple._support.validation import centred
from tests.reference import distances, literal_neighborhoods


def test_knn_accuracy_and_clusters_are_those_of_scikit_learn():
    X, y = gc.datasets.load("iris")
    Z = X[:, 1:3]
    expected = cross_val_score(KNeighborsClassifier(7), Z, y, cv=4).mean()
    assert metrics.knn_accuracy(Z, y, 7, n_folds=4) == pytest.approx(expected, abs=1e-12)
    for named in (y == 1, 2**70 + (y == 1).astype(object)):
        assert metrics.knn_accuracy(Z, list(named)) == metrics.knn_accuracy(Z, (y == 1).astype(int))
    found = KMeans(3, n_init=10, random_state=0).fit_predict(Z)
    scores = metrics.cluster_scores(Z, np.array(["a", "b", "c"])[y])
    assert scores.nmi == pytest.approx(sk.normalized_mutual_info_score(y, found), abs=1e-12)
    around = centred(Z)
    assert scores.silhouette == pytest.approx(sk.silhouette_score(around, found), abs=1e-12)
    assert scores.davies_bouldin == pytest.approx(sk.davies_bouldin_score(around, found), abs=1e-12)
    assert np.isnan(metrics.cluster_scores(Z, n_clusters=4).nmi)


def procrustes_left(A, B):
    """1 − (Σ singular values of A'B)² of centred arrangements of norm 1."""
    A, B = (Z - Z.mean(axis=0) for Z in (A, B))
    lengths = np.linalg.svd((A / np.linalg.norm(A)).T @ (B / np.linalg.norm(B)), compute_uv=False)
    return 1 - lengths.sum() ** 2


def test_class_means_are_compared_with_their_principal_components(rng):
    y = rng.integers(0, 6, 200)
    X = 2.0 * rng.normal(size=(6, 8))[y] + rng.normal(size=(200, 8))
    Z = rng.normal(size=(6, 2))[y] + 0.1 * rng.normal(size=(200, 2))
    means = np.array([X[y == c].mean(axis=0) for c in range(6)])
    centred = means - means.mean(axis=0)
    values, axes = np.linalg.eigh(centred.T @ centred)
    planar = centred @ axes[:, np.argsort(values)[-2:]]
    expected = procrustes_left(planar, np.array([Z[y == c].mean(axis=0) for c in range(6)]))
    assert metrics.class_mean_disparity(X, Z, y) == pytest.approx(expected, abs=1e-12)
    assert metrics.class_mean_disparity(sp.csr_array(X), Z, y) == pytest.approx(expected, abs=1e-12)
    turned = planar[y] @ np.array([[0.0, -3.0], [3.0, 0.0]]) + 7.0
    assert metrics.class_mean_disparity(X, turned, y) == pytest.approx(0.0, abs=1e-12)
    # Classes of the same rows in other orders have means that differ by rounding alone.
    rows = 100.0 + rng.normal(size=(50, 8))
    alike = np.concatenate([rows[rng.permutation(50)] for _ in range(4)])
    for moved in (alike, alike + 1.0, alike[:, ::-1]):
        with pytest.raises(ValueError, match="the class means of X coincide"):
            metrics.class_mean_disparity(moved, Z, np.repeat(np.arange(4), 50))
    two = (y > 2).astype(int)
    assert metrics.class_mean_disparity(X, Z, two) == pytest.approx(0.0, abs=1e-12)


def test_seed_stability_is_the_mean_over_pairs(rng):
    A, B, C = (rng.normal(size=(30, 2)) for _ in range(3))
    expected = 1 - np.mean([procrustes_left(A, B), procrustes_left(A, C), procrustes_left(B, C)])
    assert metrics.seed_stability([A, B, C]) == pytest.approx(expected, abs=1e-12)
    pairs = [literal_neighborhoods(A, B, 6)[0], literal_neighborhoods(A, C, 6)[0], literal_neighborhoods(B, C, 6)[0]]
    assert metrics.seed_stability([A, B, C], K=6) == pytest.approx(np.mean(pairs), abs=1e-12)
    assert metrics.seed_stability([A, 2.0 * A[:, ::-1] + 1.0]) == pytest.approx(1.0, abs=1e-12)


def test_evaluate_gathers_the_scores(rng):
    X, y = gc.datasets.load("iris")
    Z = {"petals": X[:, 2:], "sepals": X[:, :2]}
    table = metrics.evaluate(X, Z, y)
    assert list(table.index) == ["petals", "sepals"]
    for name, embedding in Z.items():
        row = table.loc[name]
        R = metrics.k_ary_preservation(X, embedding, [10, 37, 75])
        np.testing.assert_array_equal(row[["R(10)", "R(n/4)", "R(n/2)"]], R)
        assert row["trustworthiness(10)"] == metrics.trustworthiness(X, embedding, 10)
        assert row["continuity(10)"] == metrics.continuity(X, embedding, 10)
        assert row["R area"] == metrics.neighborhood_curves(X, embedding).area
        assert row["distance correlation"] == metrics.distance_correlation(X, embedding)
        assert row["triplet correlation"] == metrics.triplet_correlation(X, embedding, n_rows=None, random_state=0)
        assert row["10-NN accuracy"] == metrics.knn_accuracy(embedding, y)
        scores = metrics.cluster_scores(embedding, y)
        np.testing.assert_array_equal(row[["NMI", "silhouette", "Davies-Bouldin"]], scores)
        assert row["class-mean disparity"] == metrics.class_mean_disparity(X, embedding, y)
        assert tuple(row[["torn edges", "flung points", "detached points"]]) == metrics.tears(X, embedding, y)
    one = metrics.evaluate(X, Z["petals"], y)
    pd.testing.assert_series_equal(one, table.loc["petals"], check_names=False)


def test_evaluate_without_classes_with_distances_and_from_a_sample(rng):
    X, y = gc.datasets.load("iris")
    Z = X[:, 2:]
    bare = metrics.evaluate(X, Z, K=[3, 7])
    assert list(bare.index[:3]) == ["R(3)", "R(7)", "R area"]
    assert not {"NMI", "10-NN accuracy", "class-mean disparity"} & set(bare.index)
    given = metrics.evaluate(distances(X), Z, y, metric="precomputed")
    assert given["R(n/4)"] == pytest.approx(metrics.k_ary_preservation(X, Z, 37), abs=1e-3)
    assert "class-mean disparity" not in given
    sampled = metrics.evaluate(X, Z, n_rows=60)
    for name in ("R(10)", "R(n/4)", "trustworthiness(10)", "triplet correlation"):
        assert abs(sampled[name] - metrics.evaluate(X, Z)[name]) < 5.0 * sampled[f"{name} ±"]


def test_without_pandas_the_table_is_a_dict(rng, monkeypatch):
    # scikit-learn 1.6 takes a module None in `sys.modules` for pandas itself.
    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", lambda name, *rest: real("no_" * (name == "pandas") + name, *rest))
    X, Z = rng.normal(size=(40, 4)), rng.normal(size=(40, 2))
    plain = metrics.evaluate(X, Z)
    assert isinstance(plain, dict)
    assert metrics.evaluate(X, {"map": Z}) == {"map": plain}


X10 = np.random.default_rng(0).normal(size=(10, 3))


@pytest.mark.parametrize("score", [metrics.k_ary_preservation, metrics.trustworthiness, metrics.continuity])
@pytest.mark.parametrize(
    ("Z", "K", "error", "message"),
    [
        (np.ones((9, 2)), 3, ValueError, "9 rows, but X has 10"),
        (np.full((10, 2), np.nan), 3, ValueError, "Z holds NaN"),
        (np.ones((10, 2)), 0, ValueError, "K must be at least 1"),
        (np.ones((10, 2)), 9, ValueError, "K=9 must be at most"),
        (np.ones((10, 2)), 2.5, TypeError, "K must be an integer"),
        (np.ones((10, 2)), [], ValueError, "at least one"),
    ],
)
def test_neighborhoods_that_cannot_be_compared_are_refused(score, Z, K, error, message):
    with pytest.raises(error, match=message):
        score(X10, Z, K)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.distance_correlation(X10, np.ones((10, 2))), "all points of Z are equally far"),
        (lambda: metrics.distance_correlation(-distances(X10), X10, "precomputed"), "must not be negative"),
        (lambda: metrics.k_ary_preservation(X10, X10, 2, "precomputed"), "square array"),
        (lambda: metrics.neighborhood_curves(X10, X10, n_rows=1), "n_rows must be at least 2"),
        (lambda: metrics.triplet_correlation(X10[:2], X10[:2]), "at least 3 rows"),
        (lambda: metrics.knn_accuracy(X10, np.zeros(10)), "single class"),
        (lambda: metrics.knn_accuracy(X10, np.arange(10)), "class of its own"),
        (lambda: metrics.knn_accuracy(X10, np.arange(9)), "y has 9 entries, but there are 10 points"),
        (lambda: metrics.knn_accuracy(X10, np.arange(10) / 3), "must hold classes"),
        (lambda: metrics.knn_accuracy(X10, np.array([0.0] * 5 + [np.nan] * 5)), "y holds NaN"),
        (lambda: metrics.knn_accuracy(X10, [0] * 5 + [1] * 5, 9), "n_neighbors=9 must be at most 8"),
        (lambda: metrics.knn_accuracy(X10, [0] * 5 + [1] * 5, 2, n_folds=6), "n_folds=6 must be at most 5"),
        (lambda: metrics.cluster_scores(X10), "n_clusters must be given"),
        (lambda: metrics.cluster_scores(X10, n_clusters=10), "n_clusters=10 must be at most 9"),
        (lambda: metrics.cluster_scores(np.ones((10, 2)), n_clusters=2), "only 1 different points"),
        (lambda: metrics.class_mean_disparity(X10, X10[:9], [0] * 5 + [1] * 5), "9 rows, but X has 10"),
        (lambda: metrics.class_mean_disparity(X10, np.ones((10, 2)), [0] * 5 + [1] * 5), "coincide"),
        (lambda: metrics.seed_stability([X10]), "at least two"),
        (lambda: metrics.unregister("nope"), "score must be one of"),
        (lambda: metrics.seed_stability([X10, X10[:9]]), "one shape"),
        (lambda: metrics.seed_stability([X10, np.full((10, 3), np.nan)]), "holds NaN"),
        (lambda: metrics.evaluate(X10, X10, np.zeros(10)), "single class"),
        (lambda: metrics.evaluate(X10, X10[:9]), "9 rows, but X has 10"),
        (lambda: metrics.evaluate(X10, {}), "at least one embedding"),
        (lambda: metrics.evaluate(X10, [X10, X10]), "name them in a dict"),
        (lambda: metrics.evaluate(X10, X10, n_rows="some"), "n_rows must be"),
        (lambda: metrics.evaluate(X10, X10, K=9), "K=9 must be at most"),
    ],
)
def test_what_cannot_be_scored_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_any_kind_of_labels_random_state_and_map(rng):
    X, y = gc.datasets.load("iris")
    Z = X[:, 2:]
    expected = metrics.evaluate(X, Z, y)
    for labels in (
        y[:, None],
        y.astype(float),
        [f"class {c}" for c in y],
        pd.Series(y, dtype="category"),
        pd.Series([f"class {c}" for c in y]),
        np.array([f"class {c}" for c in y], dtype=object),
    ):
        pd.testing.assert_series_equal(metrics.evaluate(X, Z, labels), expected)
    pd.testing.assert_series_equal(metrics.evaluate(X, sp.csr_array(Z), y), expected)
    for state in (np.random.default_rng(3), np.random.RandomState(3), None, 2**40):
        assert metrics.evaluate(X, Z, y, random_state=state)["R(10)"] == expected["R(10)"]


def test_few_points_and_small_classes_get_the_scores_there_are(rng):
    X = rng.normal(size=(8, 4))
    table = metrics.evaluate(X, X[:, :2], [0, 0, 0, 1, 1, 1, 2, 2])
    assert {"R(6)", "trustworthiness(3)", "5-NN accuracy", "NMI"} <= set(table.index)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("metric", ["chebyshev", "canberra", "jaccard"])
def test_sparse_points_and_truth_values_of_any_metric(metric, rng):
    X, Z = rng.normal(size=(30, 4)) * (rng.uniform(size=(30, 4)) < 0.8), rng.normal(size=(30, 2))
    X[:, 0] = 1.0
    D = cdist(X != 0, X != 0, metric) if metric == "jaccard" else cdist(X, X, metric)
    wanted = metrics.evaluate(D, Z, metric="precomputed")
    # Neighbours at the same distance differ in the scores of tears.
    for points in (X, sp.csr_array(X)):
        pd.testing.assert_series_equal(metrics.evaluate(points, Z, metric=metric)[:8], wanted[:8])


D10 = distances(X10)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: metrics.k_ary_preservation(sp.csr_array(np.triu(D10)), X10, 2, "precomputed"),
            ValueError,
            "all pairs",
        ),
        (lambda: metrics.k_ary_preservation(np.zeros((10, 2)), X10, 2, "correlation"), ValueError, "NaN or infinite"),
        (lambda: metrics.k_ary_preservation(X10, X10, 2, "fast"), ValueError, "metric='fast' cannot be used; name"),
        (lambda: metrics.k_ary_preservation(X10, X10, 2, "seuclidean"), ValueError, "takes no parameters"),
        (lambda: metrics.k_ary_preservation(X10, X10, 2, None), TypeError, "metric must be the name"),
        (
            lambda: metrics.k_ary_preservation(X10, gc.PrecisionCoupling(2).fit(X10), 2),
            TypeError,
            "embedding_ rather than",
        ),
        (lambda: metrics.class_mean_disparity(X10, np.full((10, 2), 0.1), [0, 1] * 5), ValueError, "class means of Z"),
        (lambda: metrics.knn_accuracy(X10, ["a", None] * 5), ValueError, "missing labels"),
        (lambda: metrics.knn_accuracy(X10, ["a", 1] * 5), TypeError, "numbers or names, got int, str;"),
        (lambda: metrics.knn_accuracy(X10, [Decimal(1)] * 10), TypeError, "numbers or names, got Decimal;"),
        (lambda: metrics.knn_accuracy(X10, [Fraction(1, 3)] * 10), ValueError, "must hold classes"),
        *(
            (lambda y=y: metrics.knn_accuracy(X10, y), TypeError, "numbers or names, .*convert them to str")
            for kind in ("M8[ns]", "M8[D]", "m8[ns]")
            for y in (np.arange(10).astype(kind), list(np.arange(10).astype(kind)))
        ),
        (lambda: metrics.knn_accuracy(X10, np.eye(10)), ValueError, "shape"),
        (
            lambda: metrics.evaluate(X10, X10, metric="nan_euclidean"),
            ValueError,
            "metric must be 'precomputed' or one of .*'euclidean'.*, got 'nan_euclidean'",
        ),
        (lambda: metrics.evaluate(X10, X10, metric="seuclidean"), ValueError, "metric must be 'precomputed' or one of"),
        (lambda: metrics.scorer("R(10)", metric="euclidian"), ValueError, "metric must be .*got 'euclidian'"),
        (lambda: metrics.evaluate(X10, X10, random_state=-1), ValueError, "random_state must be a seed"),
        (lambda: metrics.evaluate(X10, X10, n_jobs="2"), TypeError, "n_jobs must be an integer"),
        (lambda: metrics.evaluate(X10, {"a": X10, "b": X10[:5]}), ValueError, r"Z\['b'\] has 5 rows"),
    ],
)
def test_unusual_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_scores_that_say_nothing_are_left_out(rng):
    """Two class means superimpose in any map; trustworthiness needs K below half the points."""
    X, Z = rng.normal(size=(12, 6)), rng.normal(size=(12, 2))
    scores = metrics.evaluate(X, Z, np.repeat([0, 1], 6))
    assert np.isnan(scores["class-mean disparity"])
    assert scores["trustworthiness(5)"] == pytest.approx(trustworthiness(X, Z, n_neighbors=5))
    with pytest.raises(ValueError, match="all points in one place"):
        metrics.tears(X, np.ones((12, 2)), K=3)


@contextmanager
def registered(name, score):
    metrics.register(name)(score)
    try:
        yield
    finally:
        metrics.unregister(name)


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda Z: 1.0, "the registered score 'own' of X, Z and y failed: .*takes 1"),
        (lambda X, Z, y: np.ones(3), "the registered score 'own'"),
    ],
)
def test_a_registered_score_that_fails_is_named(rng, score, message):
    X = rng.normal(size=(20, 3))
    with registered("own", score), pytest.raises(TypeError, match=message):
        metrics.evaluate(X, X[:, :2])


def test_a_registered_score_replaces_no_other_and_changes_no_array(rng):
    with pytest.raises(ValueError, match=r"'R\(10\)' is a score of evaluate; register yours under another name"):
        gc.metrics.register("R(10)")
    for name in ("seconds", "stability", "half stability", "rows", "front", "R ±", "held out spread"):
        with pytest.raises(ValueError, match=f"'{name}' is a column of compare and search; register your score under"):
            gc.metrics.register(name)
    X, Z = rng.normal(size=(20, 3)), rng.normal(size=(20, 2))
    for own, write in (
        (X, lambda X, Z, y: Z.fill(0.0)),
        (X, lambda X, Z, y: X.fill(0.0)),
        (sp.csr_array(X), lambda X, Z, y: X.data.fill(0.0)),
        (X, lambda X, Z, y: y.fill(0)),
    ):
        y, before = np.repeat([0, 1], 10), own.copy()
        with registered("flat", write), pytest.raises(ValueError, match=r"'flat' of X, Z and y failed: .*read-only"):
            metrics.evaluate(own, Z, y)
        assert not (own != before).sum()
        assert y.sum() == 10
    with registered("other", lambda X, Z, y: metrics.trustworthiness(X, Z, 5)):
        wanted = pytest.approx(metrics.trustworthiness(X, Z, 5))
        assert [metrics.evaluate(each, Z)["other"] for each in (X, sp.csr_array(X))] == [wanted, wanted]


def test_silhouettes_of_a_sample_see_small_clusters(monkeypatch):
    monkeypatch.setattr("graphcouple.metrics._classes._SILHOUETTE_ROWS", 20)
    Z = np.random.default_rng(0).normal(size=(400, 2))
    Z[399] += 1e4
    assert metrics.cluster_scores(Z, n_clusters=2).silhouette > 0.9


def test_numbers_of_neighbors_are_checked_after_the_points():
    for score in (metrics.trustworthiness, metrics.continuity):
        with pytest.raises(ValueError, match="X must"):
            score(5, np.zeros((5, 2)))
    with pytest.raises(ValueError, match="shared names row -1 of Z"):
        metrics.align(np.eye(4), np.eye(4), shared=[-1, 3])


def test_an_unknown_score_is_refused_before_a_search(iris):
    with pytest.raises(ValueError, match="score must be one of R, R area"):
        gc.metrics.scorer("R10")
    names = gc.metrics.evaluate(*(part[:100:4] for part in (iris[0], iris[0][:, :2], iris[1]))).index
    for name in names:
        gc.metrics.scorer(name)


def test_unknown_classes_are_scored_as_one_only_with_a_warning(rng):
    Z, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        metrics.evaluate(Z, Z, y - 1)
        gc.compare({"PCA": gc.PrecisionCoupling()}, Z, (y - 1).astype(str))
        metrics.knn_accuracy(Z, y - 2)
    assert ["y is -1 for 20 points" in str(each.message) for each in caught] == [True, True, True]
    metrics.knn_accuracy(Z, np.where(y > 0, 1, -1))


def test_classes_are_scored_the_same_wherever_the_map_lies_and_in_any_unit(rng):
    y = np.repeat([0, 1], 30)
    Z = rng.normal(size=(60, 2)) + 2.0 * np.eye(2)[y]
    near, far, small = (metrics.cluster_scores(each, n_clusters=2) for each in (Z, Z + 1e9, 1e-9 * Z))
    np.testing.assert_allclose(far, near, rtol=1e-5)
    np.testing.assert_allclose(small, near, rtol=1e-9)
    wide = np.column_stack([Z, rng.normal(size=(60, 15))])
    assert metrics.knn_accuracy(wide + 1e9, y) == pytest.approx(metrics.knn_accuracy(wide, y), abs=0.05)


def test_scores_that_are_undefined_are_nan_and_the_others_stay(rng):
    y = np.arange(60) % 4
    X, Z = np.eye(4)[y] + 1e-13 * rng.normal(size=(60, 4)), rng.normal(size=(60, 2))
    with pytest.warns(UserWarning, match="no class-mean disparity: principal components 2 and 3"):
        scores = metrics.evaluate(X, Z, y)
    assert scores.index[scores.isna()].tolist() == ["class-mean disparity"]
    with pytest.warns(UserWarning, match="no NMI, silhouette and Davies-Bouldin: there are only 2 different points"):
        scores = metrics.evaluate(rng.normal(size=(60, 4)), np.repeat(Z[:2], 30, axis=0), y)
    assert scores.index[scores.isna()].tolist() == ["NMI", "silhouette", "Davies-Bouldin"]
