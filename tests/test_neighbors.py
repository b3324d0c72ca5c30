"""Approximate neighbours against exact ones, and both against literal distances."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

import graphcouple as gc
from graphcouple.graphs import Support, off_diagonal
from graphcouple.neighbors import InvertedFile, as_points, distances_of, nearest_neighbors
from graphcouple.neighbors.neighbor_graph import suits

K = 20
WEIGHTS = np.array([1.0, 2.0, 0.5, 3.0])


def clusters(n, p, rng, dtype=np.float64):
    centres = 3.0 * rng.normal(size=(12, p))
    return (centres[rng.integers(0, 12, n)] + rng.normal(size=(n, p))).astype(dtype)


def on_a_surface(n, p, rng):
    """Points whose many columns follow a few hidden ones."""
    hidden = rng.normal(size=(n, 6))
    return np.tanh(hidden @ rng.normal(size=(6, p))) + 0.05 * rng.normal(size=(n, p))


def text_like(n, p, rng):
    topics = rng.dirichlet(np.full(p, 0.02), size=15)
    counts = np.vstack([rng.multinomial(60, topics[t]) for t in rng.integers(0, 15, n)])
    return sp.csr_array(counts.astype(np.float64))


def recall(support, X, metric):
    true = NearestNeighbors(n_neighbors=K, metric=metric).fit(X).kneighbors()[0][:, -1]
    found = pairwise_distances(X, metric=metric)[support.rows, support.indices]
    return (found.reshape(-1, K) <= true[:, None] * (1 + 1e-6) + 1e-9).mean()


SETS = {
    "narrow": lambda rng: clusters(5000, 30, rng),
    "float32": lambda rng: clusters(5000, 30, rng, np.float32),
    "wide": lambda rng: on_a_surface(4000, 300, rng),
    "white noise": lambda rng: rng.normal(size=(3000, 150)),
    "far away": lambda rng: 1e6 + clusters(4000, 10, rng),
    "tiny": lambda rng: 1e-140 * clusters(3000, 10, rng),
    "tiny float32": lambda rng: (1e-25 * on_a_surface(3000, 150, rng)).astype(np.float32),
    "huge float32": lambda rng: (1e25 * clusters(3000, 10, rng)).astype(np.float32),
    "ties": lambda rng: rng.integers(0, 3, size=(4000, 12)).astype(float),
    "sparse": lambda rng: text_like(3000, 400, rng),
}


@pytest.mark.parametrize("data", SETS.values(), ids=SETS.keys())
@pytest.mark.parametrize("metric", ["euclidean", pytest.param("cosine", marks=pytest.mark.nightly)])
def test_nearly_all_true_neighbours_are_found_with_exact_distances(data, metric, rng):
    X = data(rng)
    support, sq_dist = nearest_neighbors(X, K, metric, search="approximate")
    dense = X.toarray() if sp.issparse(X) else X.astype(np.float64)
    assert recall(support, dense if metric == "euclidean" else X, metric) >= 0.95
    columns = support.indices.reshape(-1, K)
    assert (np.diff(columns, axis=1) > 0).all()
    assert (columns != np.arange(len(dense))[:, None]).all()
    difference = dense[support.rows] - dense[support.indices]
    if metric == "euclidean":
        np.testing.assert_allclose(sq_dist, np.square(difference).sum(axis=1), rtol=1e-12)
    else:
        unit = dense / np.linalg.norm(dense, axis=1, keepdims=True)
        cosine = 1.0 - (unit[support.rows] * unit[support.indices]).sum(axis=1)
        np.testing.assert_allclose(np.sqrt(sq_dist), cosine, atol=1e-5 if X.dtype == np.float32 else 1e-12)


def test_more_duplicates_than_neighbours_are_at_distance_zero(rng):
    X = clusters(3000, 20, rng)
    X[:500] = X[0]
    support, sq_dist = nearest_neighbors(X, K, search="approximate")
    assert (sq_dist.reshape(-1, K)[:500] == 0.0).all()
    assert (support.indices.reshape(-1, K)[:500] < 500).all()
    assert (support.indices != support.rows).all()


def test_one_list_full_of_duplicates_leaves_no_row_short():
    X = np.repeat(np.eye(5), 500, axis=0)
    X[:3] += 1.0
    support, sq_dist = nearest_neighbors(X, K, search="approximate")
    assert (np.diff(support.indptr) == K).all()
    far = np.sort(np.square(X[:, None] - X[None, :3]).sum(axis=2), axis=0)
    assert sq_dist.reshape(-1, K)[0, 1] == far[0, 0] or sq_dist[0] == 0.0


def test_result_has_the_same_bits_for_any_number_of_threads(rng):
    X = clusters(6000, 120, rng, np.float32)
    one, several = (nearest_neighbors(X, K, n_jobs=n, search="approximate") for n in (1, 3))
    np.testing.assert_array_equal(one[0].indices, several[0].indices)
    np.testing.assert_array_equal(one[1], several[1])


def test_rows_of_zeros_are_at_cosine_distance_one_of_all_others(rng):
    X = clusters(2000, 10, rng)
    X[5] = 0.0
    for points in (X, sp.csr_array(X)):
        with pytest.warns(UserWarning, match="zero throughout: 1, the first of them row 5"):
            support, sq_dist = nearest_neighbors(points, K, "cosine", search="approximate")
        np.testing.assert_allclose(sq_dist[support.indptr[5] : support.indptr[6]], 1.0)


@pytest.mark.filterwarnings("ignore:rows of X that are")
@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_directions_have_one_distance_wherever_it_is_asked_for(rng, metric):
    X = rng.poisson(0.6, size=(40, 8)).astype(float)
    X[:3] = 0.0
    distances = distances_of(X, metric)
    pairs, sq_dist = distances.all_pairs()
    np.testing.assert_allclose(distances.of_edges(pairs), sq_dist, atol=1e-12)
    support, nearest = distances.nearest(39)
    np.testing.assert_allclose(nearest, sq_dist[pairs.find(support.rows, support.indices)], atol=1e-12)
    own = pairs.to_csr(np.sqrt(sq_dist)).toarray()
    assert own[0, 1] == 0.0
    np.testing.assert_allclose(own[0, 3:], 1.0)
    np.testing.assert_allclose(distances.to(sp.csr_matrix(X[5:9]), 7)[1], distances.to(X[5:9], 7)[1], atol=1e-15)
    if metric == "cosine":
        np.testing.assert_allclose(own[3:, 3:], pairwise_distances(X[3:], metric="cosine"), atol=1e-12)


def test_the_callers_matrix_is_left_alone(rng):
    X = text_like(2000, 150, rng)
    shuffled = sp.csr_array((X.data, X.indices, X.indptr), shape=X.shape)
    shuffled.indices[:2] = shuffled.indices[:2][::-1].copy()
    shuffled.has_sorted_indices = shuffled.has_canonical_format = False
    before = shuffled.indices.copy()
    nearest_neighbors(shuffled, K, search="approximate")
    np.testing.assert_array_equal(shuffled.indices, before)


def test_few_points_and_few_columns_are_searched_exactly_by_default(rng):
    for X in (clusters(1500, 30, rng), rng.normal(size=(30_000, 2))):
        found, exact = (nearest_neighbors(X, 5, search=search) for search in ("auto", "exact"))
        np.testing.assert_array_equal(found[0].indices, exact[0].indices)


def test_a_model_can_insist_on_an_exact_search(rng):
    X = on_a_surface(9000, 300, rng)
    exact, default = (
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), n_neighbors=K, search=search).posterior(X)
        for search in ("exact", "auto")
    )
    # Each row is its own first neighbour.
    true = NearestNeighbors(n_neighbors=K + 1).fit(X).kneighbors(X[::10], return_distance=False)[:, 1:]
    np.testing.assert_array_equal(exact.support.indices.reshape(-1, K)[::10], np.sort(true, axis=1))
    assert 0.95 < (exact.support.find(default.support.rows, default.support.indices) >= 0).mean() < 1.0


def test_unknown_searches_are_refused(rng):
    X = rng.normal(size=(50, 5))
    with pytest.raises(ValueError, match="search must be one of"):
        nearest_neighbors(X, 5, search="fast")
    with pytest.raises(ValueError, match="search must be one of"):
        gc.GraphModel(gc.Gaussian(), "D", search="fast")


@pytest.mark.parametrize("far", ["groups", "one point"])
def test_points_far_apart_keep_their_near_neighbours(rng, far):
    X = rng.normal(size=(3000, 10))
    X[:, 0] += 1e8 * rng.integers(0, 2, 3000) if far == "groups" else 0.0
    X[0] += 0.0 if far == "groups" else 1e12
    support, _ = nearest_neighbors(X, K, search="approximate")
    exact = nearest_neighbors(X, K, search="exact")[0]
    assert (exact.find(support.rows, support.indices) >= 0).mean() >= 0.95


@pytest.mark.parametrize("n_columns", [5, 20])
@pytest.mark.parametrize("n_neighbors", [5, 90, 200])
def test_far_groups_in_a_column_keep_their_exact_neighbours(n_neighbors, n_columns, rng):
    """A code for missing values, such as −999999999, leaves no digits of near distances in an expanded square."""
    X, new = rng.normal(size=(400, n_columns)), rng.normal(size=(60, n_columns))
    X[::4, 0] = new[::4, 0] = -999999999
    among = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(among, np.inf)
    metric, params = ("euclidean", None) if n_neighbors == 5 else ("minkowski", {"p": 2})
    distances = distances_of(X, metric, params)
    found = distances.nearest(n_neighbors), distances.to(new, n_neighbors), distances.to(X, n_neighbors)
    itself = among.copy()
    np.fill_diagonal(itself, 0.0)
    for (support, sq_dist), wanted in zip(found, (among, cdist(new, X, "sqeuclidean"), itself), strict=True):
        nearest = np.sort(wanted, axis=1)[:, :n_neighbors]
        np.testing.assert_allclose(np.sort(sq_dist.reshape(nearest.shape)), nearest, rtol=1e-9)
        np.testing.assert_allclose(wanted[support.rows, support.indices], sq_dist, rtol=1e-9)


def test_sparse_points_without_few_directions_are_found(rng):
    X = sp.random(3000, 300, density=0.02, random_state=0, data_rvs=rng.standard_normal, format="csr")
    assert recall(nearest_neighbors(X, K, search="approximate")[0], X.toarray(), "euclidean") >= 0.95


def test_too_many_sparse_columns_for_that_are_warned_of(rng, monkeypatch):
    from graphcouple.neighbors import inverted_file

    monkeypatch.setattr(inverted_file, "_DENSE_ENTRIES", 1000)
    X = sp.random(2000, 400, density=0.02, random_state=0, data_rvs=rng.standard_normal, format="csr")
    with pytest.warns(UserWarning, match="do not identify the neighbors"):
        nearest_neighbors(X, K, search="approximate")


def test_lists_shorter_than_the_neighbours_wanted_leave_no_row_short(rng):
    """Clusters far apart, with fewer points each than neighbours: the nearest other clusters are searched too."""
    centres = 30.0 * rng.normal(size=(400, 10))
    X = np.repeat(centres, 15, axis=0) + rng.normal(size=(6000, 10))
    _, sq_dist = nearest_neighbors(X, 100, search="approximate")
    assert np.isfinite(sq_dist).all()
    true = np.sort(pairwise_distances(X[:300], X, metric="sqeuclidean"), axis=1)[:, 100]
    found = sq_dist.reshape(-1, 100)[:300]
    assert (found <= true[:, None] * (1 + 1e-9)).mean() >= 0.95


def test_the_nearest_of_blocks_of_distances_are_kept(rng):
    from graphcouple._numba.nearest import keep_nearest

    distances = rng.integers(0, 500, size=(7, 1000)).astype(np.float32)
    names = rng.permutation(1000).astype(np.int32)
    kept, candidates = np.full((7, 31), np.inf, dtype=np.float32), np.empty((7, 31), dtype=np.int32)
    rows, added = np.array([4, 0, 6, 1, 2, 5, 3]), rng.integers(0, 9, size=7).astype(np.float32)
    for a, b in [(0, 5), (5, 300), (300, 300), (300, 1000)]:
        block = np.ascontiguousarray(distances[rows, a:b] - added[:, None])
        keep_nearest(block, names[a:b], rows, added, kept, candidates)
    np.testing.assert_array_equal(np.sort(kept, axis=1), np.sort(distances, axis=1)[:, :31])
    by_name = distances[:, np.argsort(names)]
    np.testing.assert_array_equal(np.take_along_axis(by_name, candidates.astype(int), axis=1), kept)
    assert all(np.unique(row).size == 31 for row in candidates)


@pytest.mark.parametrize(("offset", "dtype"), [(0.0, float), (50.0, float), (0.0, np.float32)])
def test_duplicates_are_at_distance_zero_exactly(digits, offset, dtype):
    """In 64 dimensions a search expands the square, which leaves them apart by rounding."""
    X = np.concatenate([digits[0][:200], digits[0][:40]]).astype(dtype) / 3.0 + offset
    support, sq_dist = nearest_neighbors(X, 5)
    i, j = support.rows, support.indices
    twins = (np.abs(i - j) == 200) & (np.minimum(i, j) < 40)
    assert twins.sum() == 80
    assert (sq_dist[twins] == 0.0).all()
    assert (sq_dist[~twins] > 1.0).all()


def halves_apart(left, right, power=1.0):
    return float(np.abs(left - right).max() ** power)


@pytest.mark.parametrize(
    ("metric", "params", "scipy_metric", "options"),
    [
        ("minkowski", {"p": 3}, "minkowski", {"p": 3}),
        ("minkowski", {"w": WEIGHTS}, "minkowski", {"w": WEIGHTS}),
        ("canberra", {"w": WEIGHTS}, "canberra", {"w": WEIGHTS}),
        ("chebyshev", {"w": WEIGHTS}, "chebyshev", {"w": WEIGHTS}),
        ("minkowski", {"p": np.inf, "w": WEIGHTS}, "chebyshev", {"w": WEIGHTS}),
        (halves_apart, None, "chebyshev", {}),
        (halves_apart, {"power": 1.0}, "chebyshev", {}),
        ("manhattan", None, "cityblock", {}),
    ],
)
def test_metrics_with_arguments_and_metrics_of_ones_own(metric, params, scipy_metric, options):
    X = np.random.default_rng(0).normal(size=(60, 4))
    X_new = np.random.default_rng(1).normal(size=(7, 4))
    wanted = cdist(X, X, scipy_metric, **options)
    distances = distances_of(X, metric, params)
    np.testing.assert_allclose(distances.all_pairs()[1], off_diagonal(wanted) ** 2, rtol=1e-12)
    support, sq_dist = distances.nearest(5)
    np.testing.assert_allclose(sq_dist, wanted[support.rows, support.indices] ** 2, rtol=1e-12)
    support, sq_dist = distances.to(X_new, 5)
    between = cdist(X_new, X, scipy_metric, **options)
    np.testing.assert_allclose(np.sort(sq_dist.reshape(7, 5)), np.sort(between)[:, :5] ** 2, rtol=1e-12)
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), metric=metric, metric_params=params)
    same = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), metric="precomputed").posterior(wanted)
    np.testing.assert_allclose(law.posterior(X).mean(), same.mean(), atol=1e-9)
    assert law == gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), metric=metric, metric_params=params)
    fitted = gc.TSNE(perplexity=5, metric=metric, metric_params=params, max_iter=30, random_state=0).fit(X)
    assert fitted.transform(X_new).shape == (7, 2)


def test_functions_without_a_triangle_inequality_keep_their_nearest(rng):
    X = np.square(rng.gamma(0.3, size=(300, 3)))
    _, sq_dist = nearest_neighbors(X, 5, lambda a, b: float(np.square(a - b).sum() ** 1.5))
    wanted = np.sort(cdist(X, X) ** 6, axis=1)[:, 1:6]
    np.testing.assert_allclose(np.sort(sq_dist.reshape(300, 5)), wanted, rtol=1e-9)


@pytest.mark.parametrize("metric", ["dice", "jaccard", "rogerstanimoto", "russellrao", "sokalsneath", "yule"])
def test_edges_have_the_distances_of_truth_values(metric, rng):
    X = rng.integers(0, 4, size=(40, 8)).astype(float)
    X[:, 0] = 1.0
    pairs = Support.all_pairs(40)
    wanted = off_diagonal(cdist(X != 0, X != 0, metric)) ** 2
    np.testing.assert_allclose(distances_of(X, metric).of_edges(pairs), wanted)


def test_bray_curtis_distances_of_negative_entries_are_those_of_scipy(rng):
    X = rng.normal(size=(100, 8))
    support, sq_dist = nearest_neighbors(X, 5, "braycurtis")
    wanted = cdist(X, X, "braycurtis")
    np.fill_diagonal(wanted, np.inf)
    np.testing.assert_allclose(np.sort(sq_dist.reshape(100, 5)), np.sort(wanted, axis=1)[:, :5] ** 2)
    np.testing.assert_allclose(distances_of(X, "braycurtis").of_edges(support), sq_dist)


def test_metrics_that_cannot_be_used_say_why():
    X = np.random.default_rng(0).normal(size=(20, 4))
    for call, error, message in [
        (lambda: distances_of(sp.csr_matrix(X), halves_apart), TypeError, "two dense rows"),
        (lambda: gc.GraphModel(gc.Gaussian(), "D", metric=3), TypeError, "a name, a function"),
        (lambda: gc.GraphModel(gc.Gaussian(), "D", metric_params="p"), TypeError, "metric_params must be a dict"),
        (lambda: distances_of(X, "minkowski", {"q": 1}), ValueError, r"\{'q': 1\} do not fit metric='minkowski'"),
        (lambda: distances_of(X, "haversine"), ValueError, "'haversine' takes latitude and longitude"),
        (lambda: distances_of(X, "infinity"), ValueError, "metric must be"),
    ]:
        with pytest.raises(error, match=message):
            call()
    latent = gc.GraphModel(gc.Student(), "E", metric_params={"p": 2})
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    with pytest.raises(ValueError, match="defaults"):
        gc.CrossEntropy(posterior, latent)


@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_half_precision_is_kept_in_single_precision(rng, search):
    X = rng.normal(size=(600, 120)).astype(np.float16)
    support, sq_dist = nearest_neighbors(X, 10, search=search)
    same, same_sq_dist = nearest_neighbors(X.astype(np.float32), 10, search=search)
    np.testing.assert_array_equal(support.indices, same.indices)
    np.testing.assert_array_equal(sq_dist, same_sq_dist)
    assert as_points(X).dtype == np.float32
    for small in (np.int8, np.int32, np.uint8, bool):
        assert as_points(X.astype(small)).dtype == np.float64
    with pytest.raises(ValueError, match="X holds NaN"):
        nearest_neighbors(np.full((50, 3), np.nan), 5, search=search)


def test_rounding_of_constant_rows_correlates_with_nothing(rng):
    X = rng.normal(size=(60, 10))
    X[:5] = np.array([0.1, 0.3, 1 / 3, 0.7, 1e5 / 3])[:, None]
    with pytest.warns(UserWarning, match="constant throughout: 5, the first of them row 0"):
        distances = distances_of(X, "correlation")
    dist = np.sqrt(distances.all_pairs()[1]).reshape(60, 59)[:5]
    np.testing.assert_allclose(dist[:, 4:], 1.0)
    with pytest.raises(ValueError, match=r"'euclidean' has no parameters, got metric_params="):
        distances_of(X, "euclidean", {"p": 3})


def test_a_point_whose_nearest_lists_are_short_searches_more(rng):
    X = np.concatenate([clusters(3000, 10, rng), 60.0 + 0.01 * rng.normal(size=(40, 10))])
    index = InvertedFile(X - X.mean(axis=0), 100)
    index.n_probed = 1
    found, sq_dist = index.of_each_other()
    assert np.isfinite(sq_dist).all()
    assert all(np.unique(row).size == 100 for row in found)


@pytest.mark.parametrize("metric", ["seuclidean", "mahalanobis"])
def test_metrics_take_their_scales_from_all_points(metric, rng):
    X, few = rng.normal(size=(60, 4)) * [1, 2, 3, 4], rng.normal(size=(5, 4))
    scales = {"V": X.var(axis=0, ddof=1)} if metric == "seuclidean" else {"VI": np.linalg.inv(np.cov(X.T))}
    distances = distances_of(X, metric)
    support, sq_dist = distances.nearest(3)
    expected = cdist(X, X, metric, **scales)
    np.testing.assert_allclose(sq_dist, expected[support.rows, support.indices] ** 2)
    support, sq_dist = distances.to(few, 4)
    np.testing.assert_allclose(sq_dist, cdist(few, X, metric, **scales)[support.rows, support.indices] ** 2)
    assert gc.TSNE(perplexity=5, n_neighbors=15, metric=metric, max_iter=5).fit(X).transform(few).shape == (5, 2)


def test_constant_columns_count_nothing_in_standardized_distances(rng):
    X = np.column_stack([rng.normal(size=(40, 3)) * [1, 5, 20], np.full(40, 0.1)])
    support, sq_dist = nearest_neighbors(X, 5, "seuclidean")
    wanted = cdist(X[:, :3], X[:, :3], "seuclidean", V=X[:, :3].var(axis=0, ddof=1)) ** 2
    np.testing.assert_allclose(sq_dist, wanted[support.rows, support.indices])
    np.testing.assert_allclose(np.sort(sq_dist.reshape(40, 5)), np.sort(wanted, axis=1)[:, 1:6])


def test_arguments_that_pynndescent_lacks_are_searched_exactly():
    weights = {"p": 3, "w": np.ones(4)}
    assert suits(np.eye(4), "minkowski", {"p": 3})
    assert not suits(np.eye(4), "minkowski", weights)
    assert not suits(np.eye(4), "hamming", {"w": np.ones(4)})
