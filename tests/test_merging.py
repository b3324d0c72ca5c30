"""Neighbours found in parts: the same bits in any order, chunks and parts, and nearly all of the true ones."""

import dask
import dask.array as da
import numpy as np
import pytest
from dask.distributed import Client, LocalCluster
from sklearn.neighbors import NearestNeighbors

import graphcouple as gc
from graphcouple.neighbors import InvertedFile, inverted_file, merge, partial

CENTRES = 4.0 * np.random.default_rng(1).normal(size=(12, 8))


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    return CENTRES[rng.integers(0, 12, n)] + rng.normal(size=(n, 8))


@pytest.fixture(autouse=True)
def one_process():
    with dask.config.set(scheduler="synchronous"):
        yield


def brute_force(X, n_neighbors):
    """Return each row's nearest others, by distance and then by index."""
    sq_dist = np.square(X[:, None] - X).sum(axis=2)
    np.fill_diagonal(sq_dist, np.inf)
    nearest = np.sort(np.lexsort((np.broadcast_to(np.arange(len(X)), sq_dist.shape), sq_dist), axis=1)[:, :n_neighbors])
    return nearest, np.take_along_axis(sq_dist, nearest, axis=1)


def test_parts_merge_in_any_order_though_distances_tie(rng):
    X = rng.integers(0, 4, size=(60, 3)).astype(float)  # many ties and duplicates
    wanted = brute_force(X, 7)
    parts = []
    for points in (np.arange(0, 25), np.arange(20, 22), np.arange(18, 60)):  # they overlap, and one holds too few
        sq_dist = np.square(X[:, None] - X[points]).sum(axis=2)
        sq_dist[np.arange(60)[:, None] == points] = np.inf
        order = np.lexsort((np.broadcast_to(points, sq_dist.shape), sq_dist), axis=1)[:, :7]
        sq_dist, indices = np.take_along_axis(sq_dist, order, axis=1), points[order]
        indices[np.isinf(sq_dist)] = -1
        short = ((0, 0), (0, 7 - indices.shape[1]))
        parts.append((np.pad(indices, short, constant_values=-1), np.pad(sq_dist, short, constant_values=np.inf)))
    a, b, c = parts
    for merged in (merge([a, b, c]), merge([c, b, a]), merge([merge([b, c]), a]), merge([a, merge([c, a]), b])):
        np.testing.assert_array_equal(merged[0], wanted[0])
        np.testing.assert_array_equal(merged[1], wanted[1])


def test_parts_of_other_shapes_do_not_merge():
    of_three, of_four = (([list(range(k))] * 2, [[0.5] * k] * 2) for k in (3, 4))
    for parts in ([of_three, of_four], [(np.zeros(3, int), np.zeros(3))], []):
        with pytest.raises(ValueError, match=r"parts must be pairs of arrays of one shape \(n_rows, n_neighbors\)"):
            merge(parts)
    np.testing.assert_array_equal(merge([of_three])[1], of_three[1])


def test_points_that_do_not_fit_their_lists_are_refused():
    X = rows_of(600)
    with pytest.raises(ValueError, match="X must have at least n_neighbors=10 rows, got 5"):
        InvertedFile(X[:5], 10, n_rows=600)
    lists, every = InvertedFile(X, 10), np.arange(600)
    for among in (every[:-1], every[::-1]):
        with pytest.raises(ValueError, match="among must hold the indices of the 600 points in lists, ascending"):
            partial(X, every, lists, among)


def test_lists_held_in_two_parts_find_what_all_of_them_find():
    X = rows_of(3000)
    X[7] = X[3]
    index = InvertedFile(X[::3], 10, n_rows=3000)
    every = np.arange(3000)
    together = partial(X, every, index.holding(X), every)
    list_of = index.lists_of(X)
    halves = []
    for half in (0, 1):
        among = np.flatnonzero(list_of % 2 == half)
        halves.append(partial(X, every, index.holding(X[among]), among))
    merged = merge(halves)
    for one, other in zip(merged, together, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (merged[0] != every[:, None]).all()
    assert 3 in merged[0][7]
    # A part without points changes nothing.
    empty = partial(X, every, index.holding(X[:0]), every[:0])
    for one, other in zip(merge([empty, *halves]), merged, strict=True):
        np.testing.assert_array_equal(one, other)
    # A part that holds fewer points than are asked for.
    few = np.array([5, 2999])
    indices, sq_dist = partial(X[:4], every[:4], index.holding(X[few]), few)
    assert set(indices.ravel()) <= {-1, 5, 2999}
    np.testing.assert_array_equal(np.isinf(sq_dist), indices == -1)


def test_lists_trained_on_a_sample_are_as_many_as_all_rows_need():
    X = rows_of(20_000)
    whole, sampled = InvertedFile(X, 10), InvertedFile(X[::5], 10, n_rows=20_000)
    assert len(sampled.means) == len(whole.means) == 32
    # 4,000 points have fewer neighbours this near, so as many lists hold them.
    assert (sampled.n_searched >= 2).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_rows_of_any_chunks_have_the_same_neighbors(dtype, monkeypatch):
    monkeypatch.setattr("graphcouple.neighbors.inverted_file._POINTS_A_LIST", 64)
    X = (rows_of(2500) + 1e3).astype(dtype)
    # Parts of projected points differ in their candidates.
    monkeypatch.setattr("graphcouple.distributed.neighbors._ENTRIES_A_PART", 2**15)
    projected = np.random.default_rng(1).normal(size=(800, 120)) * np.linspace(1, 0.01, 120) ** 2
    one, other = (
        gc.distributed.nearest_neighbors(da.from_array(projected, chunks=(chunks, -1)), 15)[0].compute()
        for chunks in (800, 400)
    )
    np.testing.assert_array_equal(one, other)
    found = [
        dask.compute(*gc.distributed.nearest_neighbors(da.from_array(X, chunks=(chunks, -1)), 12, n_parts=n_parts))
        for chunks, n_parts in ((2500, 1), (700, None), ((1, 1900, 599), 5))
    ]
    indices, distances = found[0]
    assert distances.dtype == dtype
    for one in found[1:]:
        np.testing.assert_array_equal(one[0], indices)
        np.testing.assert_array_equal(one[1], distances)
    true_dist, true = NearestNeighbors(n_neighbors=13).fit(X).kneighbors(X)
    recall = np.mean([np.isin(row[1:], mine).mean() for row, mine in zip(true, indices, strict=True)])
    assert recall > 0.985
    at = np.flatnonzero([np.array_equal(np.sort(row[1:]), mine) for row, mine in zip(true, indices, strict=True)])
    np.testing.assert_allclose(np.sort(distances[at], axis=1), true_dist[at, 1:], rtol=1e-3)


def test_a_cluster_finds_them_and_an_estimator_takes_them(tmp_path):
    X = rows_of(600)
    chunks = da.from_array(X, chunks=(200, -1))
    indices, distances = gc.distributed.nearest_neighbors(chunks, 30)
    options = {"dashboard_address": ":0", "threads_per_worker": 1, "processes": False}
    with dask.config.set(scheduler=None), LocalCluster(n_workers=2, **options) as cluster, Client(cluster):
        found = dask.compute(indices, distances)
    for name, values in zip(("indices", "distances"), found, strict=True):
        np.save(tmp_path / f"{name}.npy", values)
    neighbors = tuple(np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in ("indices", "distances"))
    tsne = gc.TSNE(perplexity=10, max_iter=50, random_state=0)
    np.testing.assert_allclose(
        tsne.fit(X, neighbors=neighbors).posterior_.edge_means,
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10), n_neighbors=30).posterior(X).edge_means,
        atol=1e-9,
    )


def test_neighbors_of_unusable_rows_are_refused():
    bad = rows_of(700)
    bad[450, 2] = np.inf
    with pytest.raises(ValueError, match="X must be finite, and is not in row 450;"):
        gc.distributed.nearest_neighbors(da.from_array(bad, chunks=(200, -1)), 5)
    with pytest.raises(ValueError, match="n_neighbors=700 must be below the number of rows, 700"):
        gc.distributed.nearest_neighbors(da.from_array(bad, chunks=(200, -1)), 700)


def test_bad_rows_outside_the_sample_are_named(monkeypatch):
    monkeypatch.setattr("graphcouple.distributed.neighbors._SAMPLED", 64)
    bad = rows_of(3000)
    bad[2999] = np.nan
    indices, _ = gc.distributed.nearest_neighbors(da.from_array(bad, chunks=(1000, -1)), 5, random_state=1)
    with pytest.raises(ValueError, match="X must be finite, and is not in row 2999;"):
        indices.compute()


def test_points_dropped_after_the_search_are_there_again_for_new_ones(monkeypatch):
    X, new = rows_of(3000), rows_of(40, seed=5)
    kept = InvertedFile(X, 10)
    kept.of_each_other()
    expected = kept.of_new(new)
    monkeypatch.setattr(inverted_file, "KEPT_BYTES", 1000)
    index = InvertedFile(X, 10)
    found = index.of_each_other()
    assert index.points.nbytes == 0
    np.testing.assert_array_equal(index.of_each_other(), found)
    for found, wanted in zip(index.of_new(new), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
