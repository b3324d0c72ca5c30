"""Approximate neighbours by metrics other than the Euclidean: recall, exact distances, and rows on their own."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise_distances

import graphcouple as gc
from graphcouple.neighbors import distances_of
from graphcouple.neighbors.by_metric import ByMetric

K = 15
DIGITS = gc.datasets.load("digits")[0]
TRUTH = (DIGITS > 7).astype(np.float64)
CASES = [
    ("manhattan", DIGITS, None),
    ("minkowski", DIGITS, {"p": 3}),
    ("canberra", DIGITS, None),
    ("chebyshev", DIGITS, None),
    ("braycurtis", DIGITS, None),
    ("hamming", np.round(DIGITS / 4), None),
    ("correlation", DIGITS, None),
    ("jaccard", TRUTH, None),
    ("dice", TRUTH, None),
]
SPARSE = [("jaccard", sp.csr_array(TRUTH)), ("hamming", sp.csr_matrix(TRUTH)), ("correlation", sp.csr_array(DIGITS))]


def truth(A, B, metric, params=None):
    A, B = (Y.toarray() if sp.issparse(Y) else Y for Y in (A, B))
    if metric in ("jaccard", "dice"):
        A, B = A.astype(bool), B.astype(bool)
    return pairwise_distances(A, B, metric=metric, **(params or {}))


def check(support, sq_dist, exact):
    """Check the share of true neighbours, ties included, and that each distance is right."""
    k = sq_dist.size // exact.shape[0]
    rows = np.repeat(np.arange(exact.shape[0]), k)
    dist = exact[rows, support.indices]
    np.testing.assert_allclose(np.sqrt(sq_dist), dist, rtol=1e-5, atol=1e-6)
    kth = np.partition(exact, k - 1, axis=1)[:, k - 1]
    assert np.mean(dist <= kth[rows] * (1 + 1e-9) + 1e-12) > 0.95


def stood_in_and_nightly(cases, fast):
    """Each case with PyNNDescent at night, and a few with the stand-in for it."""
    for case in cases:
        yield pytest.param(*case, id=f"{case[0]}-nightly", marks=pytest.mark.nightly)
        if case[0] in fast:
            yield pytest.param(*case, id=case[0])


@pytest.mark.parametrize(("metric", "X", "params"), list(stood_in_and_nightly(CASES, ("manhattan", "correlation"))))
def test_near_neighbors_are_found_by_many_metrics(metric, X, params):
    old, new = X[:1500], X[1500:]
    distances = distances_of(old, metric, params)
    support, sq_dist = distances.nearest(K, search="approximate")
    exact = truth(old, old, metric, params)
    np.fill_diagonal(exact, np.inf)
    check(support, sq_dist, exact)
    check(*distances.to(new, K, search="approximate"), truth(new, old, metric, params))


@pytest.mark.parametrize(("metric", "X"), list(stood_in_and_nightly(SPARSE, ("jaccard",))))
def test_sparse_points_are_searched_without_making_them_dense(metric, X, monkeypatch):
    monkeypatch.setattr("graphcouple.neighbors.by_metric.DENSE_ENTRIES", 0)
    old, new = X[:1500], X[1500:]
    distances = distances_of(old, metric)
    support, sq_dist = distances.nearest(K, search="approximate")
    exact = truth(old, old, metric)
    np.fill_diagonal(exact, np.inf)
    check(support, sq_dist, exact)
    check(*distances.to(new, K, search="approximate"), truth(new, old, metric))
    with pytest.raises(ValueError, match=r"compares all pairs only of dense points.*search='approximate'"):
        distances.all_pairs()


@pytest.mark.nightly
def test_rows_depend_on_no_other_row_and_no_thread():
    old, new = DIGITS[:1500], DIGITS[1500:]
    distances = distances_of(old, "manhattan")
    whole, sq_dist = distances.to(new, K, search="approximate")
    shuffled = np.random.default_rng(0).permutation(len(new))
    parts = [distances.to(new[rows], K, search="approximate") for rows in np.array_split(shuffled, 7)]
    np.testing.assert_array_equal(
        np.concatenate([part.indices for part, _ in parts]).reshape(-1, K), whole.indices.reshape(-1, K)[shuffled]
    )
    np.testing.assert_array_equal(
        np.concatenate([d for _, d in parts]).reshape(-1, K), sq_dist.reshape(-1, K)[shuffled]
    )
    one, two = (distances_of(old, "manhattan").nearest(K, jobs, "approximate") for jobs in (1, 2))
    np.testing.assert_array_equal(one[0].indices, two[0].indices)
    np.testing.assert_array_equal(one[1], two[1])


def test_copies_and_rows_with_too_few_neighbors_are_found():
    X = np.vstack([DIGITS[:600], np.repeat(DIGITS[:1], 40, axis=0)])
    distances = distances_of(X, "manhattan")
    support, sq_dist = distances.nearest(K, search="approximate")
    assert (support.rows != support.indices).all()
    assert (sq_dist.reshape(-1, K)[600:] == 0.0).all()
    found = np.argsort(truth(X, X, "manhattan"), axis=1)[:, 1 : K + 1].astype(np.int32)
    found[3, 4:] = -1
    dist = np.take_along_axis(truth(X, X, "manhattan"), np.maximum(found, 0), axis=1)
    completed, sq = ByMetric(X, "manhattan")._completed(found, dist, X, None, others_only=True)
    exact = truth(X, X, "manhattan")
    np.fill_diagonal(exact, np.inf)
    np.testing.assert_allclose(np.sort(sq.reshape(-1, K)[3]), np.sort(exact[3])[:K] ** 2)
    assert (completed.indices.reshape(-1, K)[3] != 3).all()


def test_constant_rows_are_uncorrelated_with_all_others():
    X = np.vstack([DIGITS[:300], np.ones((2, 64))])
    for search in ("exact", "approximate"):
        with pytest.warns(UserWarning, match="constant throughout: 2, the first"):
            distances = distances_of(X, "correlation")
        support, sq_dist = distances.nearest(5, search=search)
        assert np.isfinite(sq_dist).all()
        np.testing.assert_allclose(np.sort(sq_dist.reshape(-1, 5)[300])[:2], [0.0, 1.0], atol=1e-12)
        assert support.n_edges == 302 * 5
    assert np.isfinite(distances.all_pairs()[1]).all()


def test_estimators_search_by_any_metric():
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), 15, metric="jaccard", search="approximate")
    method = gc.GraphCoupling(law, gc.GraphModel(gc.Student(), "E"), init="spectral", random_state=0, max_iter=50)
    fitted = method.fit(sp.csr_matrix(TRUTH[:500]))
    np.testing.assert_array_equal(fitted.transform(sp.csr_matrix(TRUTH[:3])), fitted.embedding_[:3])
    assert np.isfinite(fitted.transform(sp.csr_matrix(TRUTH[500:503]))).all()
    # All pairs of sparse points, too, by a metric for which scikit-learn takes dense ones.
    assert (
        gc.TSNE(metric="jaccard", init="spectral", perplexity=5, random_state=0, max_iter=20)
        .fit(sp.csr_matrix(TRUTH[:60]))
        .loss_
    )


def test_what_cannot_be_searched_fast_says_so():
    with pytest.raises(ValueError, match="no approximate search for metric"):
        distances_of(DIGITS[:100], "seuclidean").nearest(5, search="approximate")
    with pytest.raises(ValueError, match="no approximate search"):
        distances_of(DIGITS[:100] * 1e35, "manhattan").nearest(5, search="approximate")
