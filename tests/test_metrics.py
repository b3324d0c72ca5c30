"""Neighborhood curves, distances and triplets against literal transcriptions, and scikit-learn."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import pearsonr
from sklearn.manifold import trustworthiness as sk_trustworthiness

from graphcouple import metrics
from graphcouple.metrics import _relations
from tests.reference import distances, literal_neighborhoods

CURVES = (metrics.k_ary_preservation, metrics.trustworthiness, metrics.continuity)


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
    np.testing.assert_allclose(found, np.transpose([literal_neighborhoods(X, Z, K) for K in range(1, 59)]), atol=1e-12)
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
    for K in (1, 5, 25):
        R, T, M = literal_neighborhoods(unit, Z, K)
        found = [curve(X, Z, K, metric="cosine") for curve in CURVES]
        np.testing.assert_allclose(found, [R, T, M], atol=1e-12)
        expected = literal_neighborhoods(X, Z, K)
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


@pytest.mark.nightly
def test_a_sample_tells_far_clusters_distances_apart(rng):
    X = rng.normal(size=(1500, 2)) + 1e5 * np.repeat(np.eye(2), 750, axis=0)
    assert metrics.triplet_correlation(X, X, random_state=0) > 0.99


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


@pytest.mark.nightly
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


@pytest.mark.parametrize("unit", [0.1, 1 / 3, 7e-8])
@pytest.mark.parametrize("p", [5, 30])
def test_no_unit_breaks_a_tie(rng, p, unit):
    X, Z = rng.integers(0, 3, size=(60, p)), rng.integers(0, 4, size=(60, 2))
    wanted = [literal_neighborhoods(X * 1.0, Z * 1.0, K)[0] for K in range(1, 59)]
    for scaled in (unit * X, sp.csr_array(unit * X)):
        np.testing.assert_allclose(metrics.neighborhood_curves(scaled, unit * Z).preservation, wanted, atol=1e-12)
    triplets = [metrics.triplet_correlation(scale * X, scale * Z, random_state=0) for scale in (1.0, unit)]
    assert triplets[1] == pytest.approx(triplets[0], abs=1e-12)


def test_single_precision_points_are_ranked_in_double(rng):
    X, Z = (rng.normal(size=(60, q)).astype(np.float32) for q in (20, 2))
    found = metrics.neighborhood_curves(X, Z).preservation
    exact = [literal_neighborhoods(X.astype(np.float64), Z.astype(np.float64), K)[0] for K in range(1, 59)]
    np.testing.assert_allclose(found, exact, atol=1e-12)
    nearby = (10.0 + 0.003 * X).astype(np.float32)
    found, exact = (
        metrics.neighborhood_curves(points, Z, metric="cosine") for points in (nearby, nearby.astype(np.float64))
    )
    np.testing.assert_array_equal(found.preservation, exact.preservation)


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


@pytest.mark.parametrize(("form", "metric"), [(sp.csr_array, "euclidean"), (sp.csr_array, "l2"), (np.array, "l2")])
def test_points_far_from_the_origin_keep_their_distances(rng, form, metric):
    X = rng.normal(size=(60, 5))
    far = form(X + 1e8 * np.eye(5)[0])
    assert metrics.k_ary_preservation(far, X, 5, metric=metric) == 1.0
    assert metrics.distance_correlation(far, X, metric) == pytest.approx(1.0)
    assert metrics.triplet_correlation(far, X, metric, random_state=0) > 0.999
    assert metrics.density_match(far, X, 5, metric=metric).slope == pytest.approx(1.0)


def test_rounding_of_equal_distances_is_no_correlation(rng):
    for n in (3, 5, 6, 7, 37, 60, 101):
        Z = rng.normal(size=(n, 2))
        for X, metric in ((np.eye(n), "euclidean"), (1.1 - 1.1 * np.eye(n), "precomputed")):
            with pytest.raises(ValueError, match="all points of X are equally far"):
                metrics.distance_correlation(X, Z, metric)
    with pytest.warns(UserWarning, match="no distance correlation: all points of X"):
        assert np.isnan(metrics.evaluate(X, Z, metric="precomputed")["distance correlation"])


@pytest.mark.parametrize("form", [np.array, sp.csr_array, np.float32])
def test_densities_leave_out_copies_in_direction_and_see_near_copies(rng, form):
    X, Z = rng.gamma(2.0, size=(60, 8)), rng.normal(size=(60, 2))
    for a in (0, 8, 16):
        X[a : a + 8] = np.outer(rng.uniform(0.5, 3.0, 8), X[a])
    kept = metrics.density_match(form(X), Z, 5, metric="cosine")
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosine = 0.5 * distances(unit) ** 2
    exact = np.where(cosine < 1e-20, 0.0, cosine)
    # Single precision ranks the copies of another point.
    for score in (metrics.k_ary_preservation, metrics.continuity) if form is not np.float32 else ():
        assert score(form(X), Z, 5, metric="cosine") == pytest.approx(score(exact, Z, 5, metric="precomputed"))
    pairs = np.triu_indices(60, 1)
    correlation = np.corrcoef(exact[pairs], distances(Z)[pairs])[0, 1]
    assert metrics.distance_correlation(form(X), Z, "cosine") == pytest.approx(correlation, abs=1e-6)
    squares = np.sort(cosine**2, axis=1)[24:, 1:6]
    radii, map_radii = (
        0.5 * np.log(values.mean(axis=1)) for values in (squares, np.sort(distances(Z) ** 2, axis=1)[24:, 1:6])
    )
    assert kept.correlation == pytest.approx(np.corrcoef(radii, map_radii)[0, 1], abs=1e-5)
    if form is not np.float32:
        X[1:5] = X[0] + 1e-9 * rng.normal(size=(4, 8))
        assert metrics.density_match(form(X), Z, 5).slope == pytest.approx(metrics.density_match(X, Z, 5).slope)
