import numpy as np
import pytest
import scipy.sparse as sp

import graphcouple as gc
from graphcouple._numba.calibration import perplexity_rows
from graphcouple.laws.bandwidths import DistanceRows
from graphcouple.neighbors import nearest_neighbors
from tests.reference import literal_kernel

SHARP = {"gaussian": gc.Gaussian(), "exponential": gc.Exponential(), "student-30": gc.Student(30.0)}


def _entropies(posterior):
    P = posterior.edge_means
    surprise = -P * np.log(np.maximum(P, 1e-300))
    return np.add.reduceat(surprise, posterior.support.indptr[:-1])


@pytest.mark.parametrize("kernel", SHARP.values(), ids=SHARP.keys())
@pytest.mark.parametrize("n_neighbors", [None, 90])
@pytest.mark.parametrize("perplexity", [10.0, 30.0, 80.0])
def test_perplexity_meets_every_rows_entropy(digits, kernel, n_neighbors, perplexity):
    posterior = gc.GraphModel(kernel, "D", gc.Perplexity(perplexity), n_neighbors).posterior(digits[0][:400])
    np.testing.assert_allclose(_entropies(posterior), np.log(perplexity), atol=1e-5)


@pytest.mark.parametrize("kernel", [gc.Student(), gc.RationalPower(1.5, 0.9), gc.Odds(gc.Student(2.0))])
def test_heavy_tails_meet_the_entropies_they_can_reach(kernel):
    """On a line of points far apart, the tail d^(−m) alone already concentrates on few neighbours."""
    X = 1.2 ** np.arange(40.0)[:, None]
    posterior = gc.GraphModel(kernel, "D", gc.Perplexity(33.0)).posterior(X)
    np.testing.assert_allclose(_entropies(posterior), np.log(33), atol=1e-5)


def test_perplexity_a_power_law_cannot_sharpen_to_is_refused(digits):
    X = digits[0][:400]
    d = np.sqrt(((X[0] - X[1:]) ** 2).sum(1))
    limit = literal_kernel(gc.Student(3.0), d / 1e-6)
    limit /= limit.sum()
    least = np.exp(-(limit * np.log(limit)).sum())
    assert least > 30
    with pytest.raises(ValueError, match="no bandwidth gives row 0") as refused:
        gc.GraphModel(gc.Student(3.0), "D", gc.Perplexity(30)).posterior(X)
    assert f"{least:.4g}" in str(refused.value)


def test_perplexity_meets_the_entropy_on_scales_far_apart():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * 10.0 ** rng.integers(-6, 7, size=(200, 1))
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)).posterior(X)
    np.testing.assert_allclose(_entropies(posterior), np.log(10), atol=1e-5)


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_all_points_equal_give_the_uniform_law():
    P = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(np.ones((12, 2))).mean()
    np.testing.assert_allclose(P[~np.eye(12, dtype=bool)], 1 / 11, rtol=1e-12)


@pytest.mark.parametrize("perplexity", [11.0, 12.0, 50.0])
def test_perplexity_out_of_reach_is_lowered_with_a_warning(perplexity):
    X = np.random.default_rng(0).normal(size=(12, 2))
    with pytest.warns(
        UserWarning,
        match=r"is lowered to 3\.67: it must be below 11, .* \(n_samples = 12\), and usually is a third of it",
    ):
        P = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(perplexity)).posterior(X).mean()
    same = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(11.0 / 3.0)).posterior(X).mean()
    np.testing.assert_array_equal(P, same)


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_very_few_points_have_a_law_at_any_perplexity(n):
    X = np.random.default_rng(0).normal(size=(n, 2))
    with pytest.warns(UserWarning, match="lowered"):
        P = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(30.0)).posterior(X).mean()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_perplexity_out_of_the_reach_of_given_edges_is_refused():
    X = np.random.default_rng(0).normal(size=(12, 2))
    for perplexity in (4.0, 9.0):
        with pytest.raises(ValueError, match="perplexity"):
            gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(perplexity), n_neighbors=4).posterior(X)


def test_neighborhoods_larger_than_the_data_are_lowered_with_a_warning():
    X = np.random.default_rng(0).normal(size=(12, 2))
    with pytest.warns(UserWarning, match="n_neighbors=40 is lowered to 12, the point itself included, since there are"):
        posterior = gc.UMAP(n_neighbors=40).models(12)[0].posterior(X)
    whole = gc.UMAP(n_neighbors=12).models(12)[0].posterior(X)
    np.testing.assert_array_equal(posterior.mean().toarray(), whole.mean().toarray())
    assert (np.diff(posterior.support.indptr) == 11).all()


@pytest.mark.parametrize(
    "make", [lambda: gc.Perplexity(1.0), lambda: gc.Perplexity(-3), lambda: gc.ConstantBandwidth(0)]
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(ValueError, match="must be"):
        make()


def test_local_connectivity_meets_its_definition(digits):
    X = np.concatenate([digits[0][:200], digits[0][:20]])
    support, sq_dist = nearest_neighbors(X, 14)
    law = gc.LocalConnectivity(15)
    shift, scale = law.fit_rows(DistanceRows(support, sq_dist, gc.Odds(gc.Exponential())))
    dist = np.sqrt(sq_dist).reshape(-1, 14)
    np.testing.assert_allclose(shift, np.where(dist > 0, dist, np.inf).min(axis=1), rtol=1e-12)
    excess = np.maximum(dist - shift[:, None], 0.0) / scale[:, None]
    free = scale > 1e-3 * dist.sum(axis=1) / 15 * (1 + 1e-9)
    assert free.sum() > 200
    np.testing.assert_allclose(np.exp(-excess).sum(axis=1)[free], np.log2(15), rtol=1e-8)
    np.testing.assert_allclose(law.rescale(support, sq_dist, shift, scale), excess.ravel() ** 2, rtol=1e-9, atol=1e-12)
    with pytest.warns(UserWarning, match="n_neighbors=15 .* 220 of 220 rows, the first row 0 with 3 neighbors"):
        law.fit_rows(DistanceRows(*nearest_neighbors(X, 3), gc.Odds(gc.Exponential())))


@pytest.mark.nightly
@pytest.mark.parametrize("local_connectivity", [1.0, 2.0, 1.5, 0.5])
@pytest.mark.parametrize("duplicates", [False, True])
def test_local_connectivity_has_umaps_values(digits, local_connectivity, duplicates):
    from sklearn.neighbors import NearestNeighbors
    from umap.umap_ import smooth_knn_dist

    X = digits[0][:300]
    if duplicates:
        X = np.concatenate([X, X[:40], X[:40], np.repeat(X[:1], 20, axis=0)])
    dist, _ = NearestNeighbors(n_neighbors=14).fit(X).kneighbors()
    own = np.concatenate([np.zeros((len(X), 1)), dist], axis=1).astype(np.float32)
    sigma, rho = smooth_knn_dist(own, 15.0, local_connectivity=local_connectivity)
    support, sq_dist = nearest_neighbors(X, 14)
    bandwidth = gc.LocalConnectivity(15, local_connectivity)
    shift, scale = bandwidth.fit_rows(DistanceRows(support, sq_dist, gc.Odds(gc.Exponential())))
    np.testing.assert_allclose(shift, rho, rtol=1e-5)
    np.testing.assert_allclose(scale, sigma, rtol=2e-4)


def test_self_tuning_scales_by_both_ends(rng):
    X = rng.normal(size=(40, 3))
    d2 = ((X[:, None] - X[None]) ** 2).sum(-1)
    tau = np.sqrt(np.sort(d2, axis=1)[:, 7])
    k = np.exp(-d2 / (2 * tau[:, None] * tau[None]))
    found = gc.GraphModel(gc.Gaussian(), "B", gc.SelfTuning(7)).posterior(X).mean()
    off = ~np.eye(40, dtype=bool)
    np.testing.assert_allclose(found[off], (k / (1 + k))[off], rtol=1e-10)
    np.testing.assert_array_equal(found, found.T)


def test_self_tuning_survives_duplicates():
    X = np.concatenate([np.zeros((10, 2)), np.random.default_rng(0).normal(size=(10, 2))])
    mean = gc.GraphModel(gc.Gaussian(), "B", gc.SelfTuning(3)).posterior(X).mean()
    assert np.isfinite(mean).all()


def test_fit_reads_dense_and_sparse_graphs_alike(rng):
    d2 = rng.uniform(1, 2, size=(20, 20))
    np.fill_diagonal(d2, 0)
    for bandwidth in (gc.Perplexity(4), gc.LocalConnectivity(6), gc.SelfTuning(3), gc.ConstantBandwidth(2.0)):
        for a, b in zip(bandwidth.fit(d2), bandwidth.fit(sp.csr_matrix(d2)), strict=True):
            np.testing.assert_array_equal(a, b)


# A point's nearest among a million of a Gaussian mixture, for which Newton's method alone goes to and fro for ever.
CYCLE = """
43.755928 44.817767 44.888395 45.453149 45.894937 47.315096 47.703845 48.049776 48.258184 48.821808 48.845150
49.058228 49.061211 49.573083 49.730528 49.754367 49.893996 49.934517 50.317517 50.332994 50.542325 50.675418
50.716581 50.753879 50.835933 50.939034 51.024876 51.300701 51.322051 51.467099 51.522336 51.636627 51.676966
51.684755 51.709822 51.834692 51.968115 52.001608 52.186039 52.219190 52.252985 52.376188 52.424669 52.439017
52.466061 52.475027 52.501682 52.510070 52.659752 52.661890 52.726774 52.797246 52.799660 52.843906 52.893770
52.914820 52.946075 52.948494 52.968751 53.015675 53.022280 53.037938 53.050498 53.071854 53.100281 53.206008
53.252072 53.287159 53.292727 53.313777 53.359023 53.471913 53.488255 53.505501 53.590162 53.597845 53.720378
53.785344 53.815597 53.893940 54.006134 54.116729 54.121289 54.197545 54.250382 54.265225 54.450424 54.507263
54.558833 54.574048
"""


def test_the_search_does_not_go_to_and_fro():
    near, scale, error = np.array(CYCLE.split(), dtype=float), np.empty(1), np.empty(1)
    perplexity_rows(0, 1, near, np.array([0, 90]), gc.Gaussian(), np.log(30.0), 1e-10, scale, error, np.empty(1))
    p = np.exp(-(near - near[0]) / (2 * scale[0] ** 2))
    p /= p.sum()
    assert -(p * np.log(p)).sum() == pytest.approx(np.log(30.0), abs=1e-9)
