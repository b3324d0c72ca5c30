"""Landmarks of chunked rows: the same sample and the same places whatever the chunks, and fair weights."""

import os
import signal
import warnings
from decimal import Decimal

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from dask.distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline

import graphcouple as gc
from graphcouple.distributed import fit_landmarks
from graphcouple.distributed.chunks import as_chunks

ROWS, CLASSES = gc.datasets.make_branches(900, random_state=0)
TSNE = gc.TSNE(perplexity=10, max_iter=60, random_state=0)
CHUNKINGS = [(900, -1), (250, -1), ((1, 437, 462), 2)]


@pytest.fixture(autouse=True)
def one_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def importances(importance):
    return importance if importance in (None, "leverage") else 1.0 + CLASSES % 3


@pytest.mark.parametrize("importance", [None, "leverage", "of rows"])
def test_the_same_bits_for_any_chunks(importance):
    fits = [
        fit_landmarks(da.from_array(ROWS, chunks=chunks), TSNE, n=200, importance=importances(importance))
        for chunks in CHUNKINGS
    ]
    for fit in fits:
        assert len(np.unique(fit.landmarks)) == 200
        np.testing.assert_array_equal(fit.landmarks, fits[0].landmarks)
        np.testing.assert_array_equal(fit.embedding.compute(), fits[0].estimator.transform(ROWS))
    assert (fits[0].weights is None) == (importance is None)
    alone = TSNE.fit(ROWS[fits[0].landmarks], sample_weight=fits[0].weights)
    np.testing.assert_array_equal(fits[0].estimator.embedding_, alone.embedding_)


def test_masked_rows_are_refused():
    masked = np.ma.masked_greater(ROWS, 1.0)
    with pytest.raises(ValueError, match="X has masked entries; impute or drop them"):
        as_chunks(masked)
    with pytest.raises(ValueError, match=r"X has chunks of masked arrays, .* pass da\.ma\.getdata"):
        as_chunks(da.from_array(masked, chunks=(300, -1)))
    np.testing.assert_array_equal(as_chunks(np.ma.masked_greater(ROWS, 1e9)).compute(), ROWS)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float16, object])
def test_other_types_are_read_as_numbers(dtype):
    X = np.random.default_rng(0).integers(0, 200, size=(300, 4)).astype(dtype)
    found = gc.distributed.nearest_neighbors(da.from_array(X, chunks=(100, -1)), 5)
    wanted = gc.distributed.nearest_neighbors(X.astype(np.float32 if dtype == np.float16 else np.float64), 5)
    for one, other in zip(dask.compute(*found), dask.compute(*wanted), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(as_chunks(X).compute(), X.astype(float))
    with pytest.raises(TypeError, match="X must hold real numbers, got dtype complex128"):
        as_chunks(np.ones((3, 2)) * 1j)


def test_parquet_files_are_read(tmp_path):
    pl.DataFrame({str(c): ROWS[:, c] for c in range(ROWS.shape[1])}).write_parquet(tmp_path / "rows.parquet")
    np.testing.assert_array_equal(as_chunks(tmp_path / "rows.parquet").compute(), ROWS)
    missing = pd.DataFrame({"a": pd.array([1, None, 3], dtype="Int64"), "b": [Decimal("0.5"), None, Decimal(2)]})
    missing.to_parquet(tmp_path / "missing.parquet")
    np.testing.assert_array_equal(
        as_chunks(tmp_path / "missing.parquet").compute(), [[1, 0.5], [np.nan, np.nan], [3, 2]]
    )


@pytest.mark.parametrize("values", [["x", "y"], pd.to_datetime(["2020-01-01", "2020-01-02"]), [None, b"x"]])
def test_columns_of_other_values_are_named(values, tmp_path):
    table = pd.DataFrame({"a": [1.0, 2.0], "b": values})
    table.to_parquet(tmp_path / "rows.parquet")
    for rows in (tmp_path / "rows.parquet", table, dd.from_pandas(table, npartitions=2)):
        with pytest.raises(TypeError, match=r"X must hold real numbers, and its column 'b' has dtype .*; encode or"):
            as_chunks(rows)
    twice = table[["a", "a"]].astype(object)
    np.testing.assert_array_equal(as_chunks(twice).compute(), twice)
    for array in (table.to_numpy(dtype=object), da.from_array(table.to_numpy(dtype=object), chunks=(1, -1))):
        with pytest.raises(TypeError, match=r"X must hold real numbers \(.*\); encode or drop"):
            as_chunks(array).compute()


def test_sparse_rows_are_refused():
    for X in (sp.csr_array(ROWS), da.from_array(ROWS, chunks=(300, -1)).map_blocks(sp.csr_matrix)):
        with pytest.raises(TypeError, match="X must be dense, and is sparse; reduce it first"):
            as_chunks(X)
    # A dask array may declare dense chunks.
    hidden = da.from_delayed(dask.delayed(sp.csr_array)(ROWS), ROWS.shape, float)
    for call in (
        lambda: fit_landmarks(hidden, First(), n=9),
        lambda: fit_landmarks(hidden, TSNE, n=9, importance="leverage"),
        lambda: gc.distributed.nearest_neighbors(hidden, 5)[0].compute(),
    ):
        with pytest.raises(TypeError, match="X must be dense, and is sparse; reduce it first"):
            call()


def test_importance_needs_an_estimator_with_weights():
    for estimator in (PCA(2), make_pipeline(PCA(2), TSNE), gc.ClassicalMDS(2)):
        with pytest.raises(TypeError, match="takes no sample weights, which importance needs; leave importance out"):
            fit_landmarks(ROWS, estimator, n=9, importance="leverage")


def test_the_sample_of_many_rows_does_not_depend_on_chunks():
    X = np.arange(5000.0)[:, None]
    chosen = [fit_landmarks(da.from_array(X, chunks=(c, -1)), First(), n=700).landmarks for c in (5000, 1024, 777)]
    assert all(np.array_equal(rows, chosen[0]) for rows in chosen[1:])
    fifths = np.histogram(chosen[0], bins=[0, 1000, 2000, 3000, 4000, 5000])[0]
    assert (abs(fifths - 140) < 50).all()


class First:
    """Stands in for a method: places a row at its first column."""

    def get_params(self, deep=True):
        return {}

    def fit(self, X, sample_weight=None):
        self.embedding_ = X[:, :1]
        return self

    def transform(self, X):
        return X[:, :1]


@pytest.mark.parametrize("importance", [None, "leverage", "of rows"])
def test_weights_estimate_sums_over_all_rows(importance):
    X = da.from_array(ROWS, chunks=(250, -1))
    wanted = np.exp(ROWS[:, 0]).mean()
    estimates = []
    for seed in range(100):
        fit = fit_landmarks(X, First(), n=60, importance=importances(importance), random_state=seed)
        weights = np.ones(60) if fit.weights is None else fit.weights
        assert weights.mean() == pytest.approx(1.0)
        estimates.append((weights * np.exp(ROWS[fit.landmarks, 0])).mean())
    error = np.std(estimates) / np.sqrt(len(estimates))
    # A ratio of two estimates has a bias of the order of its variance.
    assert abs(np.mean(estimates) - wanted) < 4.0 * error + np.var(estimates) / wanted


def test_rows_are_drawn_as_often_as_they_are_important():
    X, importance = da.from_array(np.zeros((40, 1)), chunks=(30, -1)), 1.0 + np.arange(40) % 4
    drawn = np.zeros(40)
    for seed in range(200):
        drawn[fit_landmarks(X, First(), n=2, importance=importance, random_state=seed).landmarks] += 1.0
    # The first of two is drawn by importance; the second too, from the others.
    share = importance / importance.sum()
    second = [sum(share[j] * share[i] / (1 - share[j]) for j in range(40) if j != i) for i in range(40)]
    expected = 200 * (share + second)
    assert (np.abs(drawn - expected) < 5.0 * np.sqrt(expected)).all()
    # Single rows are drawn too seldom to tell importances apart; the ten rows of each importance are not.
    drawn, expected = drawn.reshape(10, 4).sum(axis=0), expected.reshape(10, 4).sum(axis=0)
    assert (np.abs(drawn - expected) < 5.0 * np.sqrt(expected)).all()


def test_all_rows_if_there_are_no_more():
    fit = fit_landmarks(ROWS, TSNE, n=900)
    np.testing.assert_array_equal(fit.landmarks, np.arange(900))
    np.testing.assert_array_equal(fit.embedding.compute(), fit.estimator.embedding_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "method",
    [clone(TSNE).set_params(transform_method="mlp"), gc.MetricMDS(max_iter=5).set_output(transform="pandas")],
    ids=["mlp", "mds"],
)
def test_landmarks_keep_their_places_whatever_places_the_others(method, tmp_path):
    da.from_array(ROWS, chunks=(250, -1)).to_zarr(tmp_path / "rows.ZARR")
    fit = fit_landmarks(tmp_path / "rows.ZARR", method, n=60, random_state=1)
    Z, placed = fit.embedding.compute(), np.asarray(fit.estimator.transform(ROWS))
    np.testing.assert_array_equal(Z[fit.landmarks], fit.estimator.embedding_)
    others = np.setdiff1d(np.arange(900), fit.landmarks)
    # Products of matrices in a network round by the number of rows.
    np.testing.assert_allclose(Z[others], placed[others], rtol=1e-9)
    assert not np.allclose(placed[fit.landmarks], fit.estimator.embedding_, atol=1e-3)
    whole = gc.distributed.LandmarkFit(fit.estimator, da.from_array(ROWS, chunks=(900, -1)), fit.landmarks, None)
    np.testing.assert_allclose(whole.embedding.compute(), Z, rtol=1e-9)


def test_other_methods_place_rows_or_are_refused():
    chunks = da.from_array(ROWS, chunks=(250, -1))
    fit = fit_landmarks(chunks, PCA(2), n=200)
    np.testing.assert_allclose(fit.embedding.compute(), PCA(2).fit(ROWS[fit.landmarks]).transform(ROWS), atol=1e-9)
    with pytest.raises(TypeError, match="coverage needs an estimator with isolation, as TSNE; PCA has none"):
        fit.coverage()
    with pytest.raises(ValueError, match="PaCMAP has no law that places new points"):
        fit_landmarks(chunks, gc.PaCMAP(random_state=0), n=200)


def test_a_structure_that_was_missed_is_told(tmp_path):
    far = np.concatenate([ROWS, ROWS[:30] + 1e3])
    da.from_array(far[:900], chunks=(300, -1)).to_zarr(tmp_path / "rows.zarr")
    fit = fit_landmarks(tmp_path / "rows.zarr", TSNE, n=300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        covered = fit.coverage()
    np.testing.assert_array_equal(covered["first"], [0, 300, 600])
    missed = gc.distributed.LandmarkFit(fit.estimator, da.from_array(far, chunks=(310, -1)), fit.landmarks, None)
    with pytest.warns(UserWarning, match="in 1 of 3 chunks .* from row 620 on"):
        table = missed.coverage(10_000)
    isolation = fit.estimator.isolation(far[620:])
    assert table["largest"][2] == isolation.max() > 100
    assert table["isolated"][2] == (isolation > 3).mean()
    assert table["n_looked_at"].tolist() == table["n_rows"].tolist() == [310, 310, 310]


def test_what_is_unusable_is_named():
    bad = ROWS.copy()
    bad[700, 1] = np.nan
    chunks = da.from_array(bad, chunks=(250, -1))
    fit = fit_landmarks(ROWS, TSNE, n=200)
    fit = gc.distributed.LandmarkFit(fit.estimator, chunks, fit.landmarks, None)
    for placed in (fit.embedding.compute, fit.coverage):
        with pytest.raises(ValueError, match="rows from 500 to 749: X holds NaN"):
            placed()
    for n, importance in ((900, None), (200, "leverage")):
        with pytest.raises(ValueError, match="X must be finite, and is not in row 700;"):
            fit_landmarks(chunks, TSNE, n=n, importance=importance)
    with pytest.raises(ValueError, match="importance must be finite and above 0, and is not in row 260;"):
        fit_landmarks(
            da.from_array(ROWS, chunks=(250, -1)), TSNE, n=200, importance=np.where(np.arange(900) == 260, 0.0, 1.0)
        )
    for n in (200, 900):
        with pytest.raises(ValueError, match=r"importance must have shape \(900,\)"):
            fit_landmarks(ROWS, TSNE, n=n, importance=np.ones(3))
        with pytest.raises(ValueError, match="importance must be 'leverage'"):
            fit_landmarks(ROWS, TSNE, n=n, importance="size")
        with pytest.raises(TypeError, match="importance must hold numbers, got dtype <U1"):
            fit_landmarks(ROWS, TSNE, n=n, importance=np.full(900, "a"))
    with pytest.raises(ValueError, match="needs rows without NaN and infinity"):
        fit_landmarks(np.where(np.arange(900)[:, None] == 3, ROWS, np.nan), TSNE, n=200, importance="leverage")
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        fit_landmarks(chunks[chunks[:, 0] > 0], TSNE, n=200)
    for rows in (ROWS[:, 0], ROWS[:, :0]):
        with pytest.raises(ValueError, match="X must have shape"):
            fit_landmarks(rows, TSNE)
    with pytest.raises(ValueError, match=r"a Zarr array \(\.zarr\), or a Parquet file or folder, got 'rows\.CSV\.gz'"):
        fit_landmarks("rows.CSV.gz", TSNE)
    with pytest.raises(TypeError, match="must have transform"):
        fit_landmarks(ROWS, object())


def test_a_cluster_places_rows_to_the_same_bits_though_a_worker_dies():
    fit = fit_landmarks(da.from_array(ROWS, chunks=(100, -1)), TSNE, n=300)
    options = {"dashboard_address": ":0", "threads_per_worker": 1, "processes": True}
    with dask.config.set(scheduler=None), LocalCluster(n_workers=2, **options) as cluster, Client(cluster) as client:
        places = client.compute(fit.embedding)
        worker = next(iter(cluster.workers.values()))
        worker.close_gracefully()  # no other process takes its place, which would only cost time
        os.kill(worker.process.pid, signal.SIGKILL)
        np.testing.assert_array_equal(places.result(timeout=120), fit.estimator.transform(ROWS))


def test_empty_chunks_have_no_rows_to_sample():
    """Filters leave them."""
    rows = np.random.default_rng(0).normal(size=(60, 3))
    filtered = da.from_array(rows, chunks=((20, 0, 40), (3,)))
    assert 0 in filtered.chunks[0]
    whole = as_chunks(filtered)
    assert whole.chunks[0] == (20, 40)
    np.testing.assert_array_equal(whole.compute(), rows)
    with pytest.warns(ConvergenceWarning):
        fitted = fit_landmarks(filtered, gc.TSNE(perplexity=5, max_iter=5, random_state=0), n=30)
    assert fitted.landmarks.shape == (30,)
