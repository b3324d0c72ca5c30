"""Every score against a literal transcription of its definition, and against scikit-learn where it has one."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import pearsonr
from sklearn import metrics as sk
from sklearn.cluster import KMeans
from sklearn.manifold import trustworthiness as sk_trustworthiness
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import graphcouple as gc
from graphcouple import metrics
from graphcouple.metrics import _relations

CURVES = (metrics.k_ary_preservation, metrics.trustworthiness, metrics.continuity)


def distances(A):
    return np.sqrt(np.square(A[:, None] - A[None]).sum(axis=2))


def ranks(A):
    """Ranks of the other points from 1, the smaller index first among ties; the point itself has rank 0."""
    D = distances(np.asarray(A, dtype=float))
    np.fill_diagonal(D, -1.0)
    return np.argsort(np.argsort(D, axis=1, kind="stable"), axis=1)


def literal(X, Z, K):
    """R, T and M from the definitions."""
    rho, r, n = ranks(X), ranks(Z), len(X)
    near_x, near_z = (rho >= 1) & (rho <= K), (r >= 1) & (r <= K)
    Q = (near_x & near_z).sum() / (n * K)
    most = K * (2 * n - 3 * K - 1) / 2 if n / 2 > K else (n - K) * (n - K - 1) / 2
    T = 1 - (rho - K)[near_z & ~near_x].sum() / (n * most)
    M = 1 - (r - K)[near_x & ~near_z].sum() / (n * most)
    return ((n - 1) * Q - K) / (n - 1 - K), T, M


def maps(rng, kind):
    if kind == "ties":
        X, Z = rng.integers(0, 3, size=(60, 3)).astype(float), rng.integers(0, 4, size=(60, 2)).astype(float)
    elif kind == "wide":
        X = rng.normal(size=(60, 40))
        Z = X[:, :2] + 0.1 * rng.normal(size=(60, 2))
    else:
        X, Z = rng.normal(size=(60, 5)), rng.normal(size=(60, 2))
    if kind == "duplicates":
        X[10:20] = X[0]
        Z[15:30] = Z[3]
    return X, Z


@pytest.mark.parametrize("kind", ["plain", "ties", "wide", "duplicates"])
def test_curves_are_the_definitions(rng, kind):
    X, Z = maps(rng, kind)
    curves = metrics.neighborhood_curves(X, Z)
    found = np.stack([curves.preservation, curves.trustworthiness, curves.continuity])
    np.testing.assert_allclose(found, np.transpose([literal(X, Z, K) for K in range(1, 59)]), atol=1e-12)
    np.testing.assert_array_equal(curves.K, np.arange(1, 59))
    for error in (curves.preservation_error, curves.trustworthiness_error, curves.continuity_error):
        np.testing.assert_array_equal(error, 0.0)
    for curve, values in zip(CURVES, found, strict=True):
        assert curve(X, Z, 7) == values[6]
        np.testing.assert_array_equal(curve(X, Z, [3, 10]), values[[2, 9]])
    R = curves.preservation
    assert curves.area == pytest.approx(np.sum([R[k - 1] / k for k in range(1, 59)]) / sum(1 / np.arange(1, 59)))


@pytest.mark.parametrize("K", [1, 5, 29])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
def test_trustworthiness_is_that_of_scikit_learn(rng, K, metric):
    X, Z = maps(rng, "plain")
    theirs = sk_trustworthiness(X, Z, n_neighbors=K, metric=metric)
    assert metrics.trustworthiness(X, Z, K, metric) == pytest.approx(theirs, abs=1e-12)
    assert metrics.continuity(Z, X, K) == pytest.approx(metrics.trustworthiness(X, Z, K), abs=1e-12)


def test_any_metric_sparse_points_and_given_distances(rng):
    X, Z = maps(rng, "plain")
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for K in (1, 5, 40):
        R, T, M = literal(unit, Z, K)
        found = [curve(X, Z, K, metric="cosine") for curve in CURVES]
        np.testing.assert_allclose(found, [R, T, M], atol=1e-12)
        expected = literal(X, Z, K)
        D = distances(X)
        D.flags.writeable = False
        for given, metric in ((sp.csr_matrix(X), "euclidean"), (D, "precomputed"), (X + 1e4, "euclidean")):
            np.testing.assert_allclose([curve(given, Z, K, metric=metric) for curve in CURVES], expected, atol=1e-12)


def test_neither_blocks_nor_threads_show(rng, monkeypatch):
    X, Z = rng.normal(size=(80, 30)), rng.normal(size=(80, 2))
    whole = metrics.neighborhood_curves(X, Z)
    monkeypatch.setattr(_relations, "_BLOCK_ENTRIES", 700)
    for n_jobs in (1, 3):
        parts = metrics.neighborhood_curves(X, Z, n_jobs=n_jobs)
        np.testing.assert_array_equal(parts.preservation, whole.preservation)
        np.testing.assert_array_equal(parts.continuity, whole.continuity)
    monkeypatch.setattr(_relations, "_FEW_ROWS", 30)
    X, Z = rng.normal(size=(700, 30)), rng.normal(size=(700, 2))
    one, three = (metrics.evaluate(X, Z, n_rows=40, n_jobs=n_jobs) for n_jobs in (1, 3))
    pd.testing.assert_series_equal(one, three, check_exact=True)


@pytest.mark.parametrize("kind", ["plain", "ties", "wide", "duplicates"])
def test_a_copy_is_perfect(rng, kind):
    X, _ = maps(rng, kind)
    for Z in (X, 4.0 * X):
        curves = metrics.neighborhood_curves(X, Z)
        for curve in (curves.preservation, curves.trustworthiness, curves.continuity):
            np.testing.assert_array_equal(curve, 1.0)
        assert curves.area == 1.0
        assert metrics.distance_correlation(X, Z) == pytest.approx(1.0, abs=1e-12)


def test_chance_is_zero(rng):
    X = rng.normal(size=(300, 5))
    found = np.array(
        [metrics.neighborhood_curves(X, rng.normal(size=(300, 2))).preservation[[0, 19, 99, 200]] for _ in range(40)]
    )
    assert (np.abs(found.mean(axis=0)) <= 3.0 * found.std(axis=0, ddof=1) / np.sqrt(40)).all()


def test_a_samples_standard_error_is_its_spread(rng):
    X = rng.normal(size=(500, 6))
    Z = X[:, :2]
    exact = metrics.neighborhood_curves(X, Z)
    samples = [metrics.neighborhood_curves(X, Z, n_rows=100, random_state=seed) for seed in range(200)]
    for name in ("preservation", "trustworthiness", "continuity"):
        drawn = np.array([getattr(sample, name) for sample in samples])
        errors = np.mean([getattr(sample, f"{name}_error") for sample in samples], axis=0)
        spread = drawn.std(axis=0, ddof=1)
        at = [0, 9, 99, 250, 400]
        np.testing.assert_allclose(errors[at], spread[at], rtol=0.2)
        assert (np.abs(drawn.mean(axis=0) - getattr(exact, name))[at] <= 4.0 * spread[at] / np.sqrt(200)).all()
    assert samples[0].n_rows == 100


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_what_is_known_of_all_points_makes_a_sample_more_accurate(rng, monkeypatch, metric):
    from graphcouple.metrics import _covariates

    monkeypatch.setattr(_covariates, "_REFERENCES", 128)
    X = rng.normal(size=(1200, 6)) + 4.0 * np.eye(6)[rng.integers(0, 6, 1200)]
    Z = X[:, :2] + 0.3 * rng.normal(size=(1200, 2))
    exact = metrics.neighborhood_curves(X, Z, metric=metric)

    def sample(seed):
        return metrics.neighborhood_curves(X, Z, metric=metric, n_rows=500, random_state=seed)

    monkeypatch.setattr(_relations, "_FEW_ROWS", 400)
    informed = [sample(seed) for seed in range(40)]
    monkeypatch.setattr(_relations, "_FEW_ROWS", 10**9)
    plain = sample(0)
    at = [0, 9, 99, 600, 1000]
    for name in ("preservation", "trustworthiness", "continuity"):
        drawn = np.array([getattr(curves, name)[at] for curves in informed])
        errors = np.mean([getattr(curves, f"{name}_error")[at] for curves in informed], axis=0)
        spread = drawn.std(axis=0, ddof=1)
        np.testing.assert_allclose(errors, spread, rtol=0.35, atol=1e-9)
        assert (np.abs(drawn.mean(axis=0) - getattr(exact, name)[at]) <= 4.0 * spread / np.sqrt(40) + 1e-12).all()
        assert (errors < getattr(plain, f"{name}_error")[at]).all()
    ratio = informed[0].preservation_error / plain.preservation_error
    # Neighbors by other metrics than Euclidean and cosine are not searched; reference points tell of large K.
    assert (ratio[[0, 9, 15]] < 0.1).all() if metric == "euclidean" else (ratio[[600, 900]] < 0.75).all()


def test_a_sample_of_all_points_is_exact(rng):
    X = rng.normal(size=(500, 6))
    Z = X[:, :2]
    exact = metrics.neighborhood_curves(X, Z)
    everyone = metrics.neighborhood_curves(X, Z, n_rows=500, random_state=0)
    np.testing.assert_array_equal(everyone.preservation, exact.preservation)


@pytest.mark.parametrize("kind", ["plain", "wide"])
def test_distance_correlation_is_pearsons(rng, kind):
    X, Z = maps(rng, kind)
    above = np.triu_indices(len(X), 1)
    expected = pearsonr(distances(X)[above], distances(Z)[above]).statistic
    assert metrics.distance_correlation(X, Z) == pytest.approx(expected, abs=1e-12)
    rows = 45
    sampled = metrics.distance_correlation(X, Z, n_rows=rows, random_state=0)
    assert abs(sampled - expected) < 0.2
    assert sampled != expected


def test_triplet_correlation_is_that_of_the_triplets_drawn(rng, monkeypatch):
    X, Z = rng.normal(size=(50, 4)), rng.normal(size=(50, 2))
    Z[:10] = Z[0]
    D, E = distances(X), distances(Z)
    drawn = []
    plain = _relations.random_pairs
    monkeypatch.setattr(_relations, "random_pairs", lambda *args: drawn.append((args[1], plain(*args))) or drawn[-1][1])
    found = metrics.triplet_correlation(X, Z, n_rows=None, random_state=3)
    agreed = [
        np.sign(D[i, j] - D[i, k]) * np.sign(E[i, j] - E[i, k])
        for rows, (first, second) in drawn
        for i, *pairs in zip(rows, first, second, strict=True)
        for j, k in np.transpose(pairs)
        if len({i, j, k}) == 3
    ]
    assert len(agreed) == 5000
    assert found == pytest.approx(np.mean(agreed), abs=1e-12)
    every = np.mean(
        [
            np.sign(D[i, j] - D[i, k]) * np.sign(E[i, j] - E[i, k])
            for i in range(50)
            for j in range(50)
            for k in range(50)
            if len({i, j, k}) == 3
        ]
    )
    assert abs(found - every) < 4.0 * np.std(agreed) / np.sqrt(len(agreed))


def test_knn_accuracy_and_clusters_are_those_of_scikit_learn():
    X, y = gc.datasets.load("iris")
    Z = X[:, 1:3]
    expected = cross_val_score(KNeighborsClassifier(7), Z, y, cv=4).mean()
    assert metrics.knn_accuracy(Z, y, 7, n_folds=4) == pytest.approx(expected, abs=1e-12)
    found = KMeans(3, n_init=10, random_state=0).fit_predict(Z)
    scores = metrics.cluster_scores(Z, np.array(["a", "b", "c"])[y])
    assert scores.nmi == pytest.approx(sk.normalized_mutual_info_score(y, found), abs=1e-12)
    assert scores.silhouette == pytest.approx(sk.silhouette_score(Z, found), abs=1e-12)
    assert scores.davies_bouldin == pytest.approx(sk.davies_bouldin_score(Z, found), abs=1e-12)
    assert np.isnan(metrics.cluster_scores(Z, n_clusters=4).nmi)


def test_silhouette_from_its_definition(rng):
    Z = rng.normal(size=(40, 2)) + 5.0 * np.repeat(np.eye(2), 20, axis=0)
    found = KMeans(2, n_init=10, random_state=0).fit_predict(Z)
    D = distances(Z)
    values = []
    for i in range(40):
        own = D[i, (found == found[i]) & (np.arange(40) != i)].mean()
        other = D[i, found != found[i]].mean()
        values.append((other - own) / max(own, other))
    assert metrics.cluster_scores(Z, n_clusters=2).silhouette == pytest.approx(np.mean(values), abs=1e-12)


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
    two = (y > 2).astype(int)
    assert metrics.class_mean_disparity(X, Z, two) == pytest.approx(0.0, abs=1e-12)


def test_seed_stability_is_the_mean_over_pairs(rng):
    A, B, C = (rng.normal(size=(30, 2)) for _ in range(3))
    expected = 1 - np.mean([procrustes_left(A, B), procrustes_left(A, C), procrustes_left(B, C)])
    assert metrics.seed_stability([A, B, C]) == pytest.approx(expected, abs=1e-12)
    pairs = [literal(A, B, 6)[0], literal(A, C, 6)[0], literal(B, C, 6)[0]]
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
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
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
        (lambda: metrics.knn_accuracy(X10, np.arange(9)), "y has 9 labels, but there are 10 points"),
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
        (lambda: metrics.seed_stability([X10, X10[:9]]), "one shape"),
        (lambda: metrics.seed_stability([X10, np.full((10, 3), np.nan)]), "holds NaN"),
        (lambda: metrics.evaluate(X10, X10, np.zeros(10)), "single class"),
        (lambda: metrics.evaluate(X10, X10[:9]), "9 rows, but X has 10"),
        (lambda: metrics.evaluate(X10, {}), "at least one embedding"),
        (lambda: metrics.evaluate(X10, X10, n_rows="some"), "n_rows must be"),
        (lambda: metrics.evaluate(X10, X10, K=9), "K=9 must be at most"),
    ],
)
def test_what_cannot_be_scored_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("scale", [1e25, 1e-25, 1e60])
def test_no_score_depends_on_the_unit_of_length(rng, scale):
    X = rng.normal(size=(700, 20))
    Z = X[:, :2] + 0.1 * rng.normal(size=(700, 2))
    for given, metric in ((X, "euclidean"), (distances(X), "precomputed")):
        for n_rows in (None, 300):
            options = {"n_rows": n_rows, "random_state": 0, "metric": metric}
            plain = metrics.neighborhood_curves(given, Z, **options).preservation
            np.testing.assert_allclose(
                metrics.neighborhood_curves(scale * given, Z, **options).preservation, plain, atol=2e-3
            )
            for score in (metrics.distance_correlation, metrics.triplet_correlation):
                assert score(scale * given, Z, **options) == pytest.approx(score(given, Z, **options), abs=1e-4)


def test_single_precision_points_are_ranked_in_double(rng):
    X, Z = (rng.normal(size=(60, q)).astype(np.float32) for q in (20, 2))
    found = metrics.neighborhood_curves(X, Z).preservation
    exact = [literal(X.astype(np.float64), Z.astype(np.float64), K)[0] for K in range(1, 59)]
    np.testing.assert_allclose(found, exact, atol=1e-12)


def test_a_points_distance_from_itself_is_not_looked_at(rng):
    X, Z = maps(rng, "plain")
    D = distances(X)
    own = D + 5.0 * np.eye(60)
    for score in (metrics.distance_correlation, metrics.triplet_correlation):
        assert score(own, Z, "precomputed", random_state=0) == pytest.approx(score(D, Z, "precomputed", random_state=0))


def test_points_far_from_the_origin_keep_their_ties(rng):
    X, Z = rng.integers(0, 3, size=(60, 30)).astype(float), rng.normal(size=(60, 2))
    expected = metrics.neighborhood_curves(X, Z).preservation
    np.testing.assert_array_equal(metrics.neighborhood_curves(X + 1e6, Z).preservation, expected)


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
    assert {"R(6)", "trustworthiness(6)", "5-NN accuracy", "NMI"} <= set(table.index)


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
        (lambda: metrics.knn_accuracy(X10, ["a", 1] * 5), TypeError, "numbers or names"),
        (lambda: metrics.knn_accuracy(X10, np.eye(10)), ValueError, "shape"),
        (lambda: metrics.evaluate(X10, X10, random_state=-1), ValueError, "random_state must be a seed"),
        (lambda: metrics.evaluate(X10, X10, n_jobs="2"), TypeError, "n_jobs must be an integer"),
        (lambda: metrics.evaluate(X10, {"a": X10, "b": X10[:5]}), ValueError, r"Z\['b'\] has 5 rows"),
    ],
)
def test_unusual_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()
