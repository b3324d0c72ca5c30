"""The nearest neighbours of all rows, wherever dask runs.

A sample trains the lists of an inverted file. Each chunk sends its rows to the parts whose lists they search, each part
compares them with the points in its lists, and each chunk merges the results of its rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import check_integer
from graphcouple.distributed.chunks import as_chunks, check_finite, dense_rows
from graphcouple.distributed.landmarks import sampled
from graphcouple.neighbors.inverted_file import InvertedFile
from graphcouple.neighbors.merging import Nearest, merge, partial
from graphcouple.neighbors.points import shift_of, shifted

# The sample trains up to 4,096 lists.
_SAMPLED = 2**18

# As many as in a chunk of dask's default size, in double precision.
_ENTRIES_A_PART = 2**24


# Rows of a chunk that search a part: their numbers, the rows, and which of them the part holds.
_Sent = tuple[NDArray[np.int64], NDArray[Any], NDArray[np.bool_]]


class _Lists(NamedTuple):
    empty: InvertedFile
    part_of: NDArray[np.int64]
    searched: NDArray[np.bool_]
    shift: NDArray[Any]


def nearest_neighbors(
    X: Any, n_neighbors: int, *, n_parts: int | None = None, random_state: int = 0
) -> tuple[Any, Any]:
    """Return the nearest neighbours of all rows, found chunk by chunk: about 99 % of the true ones.

    Parameters
    ----------
    X : dask array of shape (n_rows, n_features), path or array
        A path names a Zarr array (``.zarr``) or a Parquet file or folder of numbers.
    n_neighbors : int
        Neighbours of each row, without the row itself.
    n_parts : int, optional
        The number of parts of the points; by default one for 2²⁴ entries. A worker holds the points of one part, and
        the rows that search among them. Each part keeps its own candidates, so more parts may find more neighbours.
    random_state : int, default=0
        The seed of the sample on which lists are trained.

    Returns
    -------
    indices : dask array of shape (n_rows, n_neighbors), int64
        Ascending in each row; the same for any chunks.
    distances : dask array of shape (n_rows, n_neighbors)
        In the precision of `X`. Estimators take both as ``neighbors=(indices, distances)``.

    Raises
    ------
    ImportError
        Without dask, which the extra ``dask`` installs.
    TypeError, ValueError
        When an argument is unusable, or rows are; the message names the first of a chunk.

    Examples
    --------
    >>> import dask.array as da
    >>> import graphcouple as gc
    >>> rows, _ = gc.datasets.make_branches(900, random_state=0)
    >>> indices, distances = gc.distributed.nearest_neighbors(da.from_array(rows, chunks=(250, -1)), 15)
    >>> indices
    dask.array<concatenate, shape=(900, 15), dtype=int64, chunksize=(250, 15), chunktype=numpy.ndarray>
    """
    rows = as_chunks(X)
    n, sizes = rows.shape[0], rows.chunks[0]
    if check_integer("n_neighbors", n_neighbors, 1) >= n:
        raise ValueError(f"n_neighbors={n_neighbors} must be below the number of rows, {n}.")
    n_parts = -(-rows.size // _ENTRIES_A_PART) if n_parts is None else check_integer("n_parts", n_parts, 1)
    import dask
    import dask.array as da

    seed = check_integer("random_state", random_state, 0)
    lists = dask.delayed(_trained(rows, n_neighbors, n_parts, seed), traverse=False)
    firsts = np.cumsum((0, *sizes))
    send, search, gather = (dask.delayed(function, pure=True) for function in (_send, _search, _gather))
    sent = [send(rows.blocks[c], lists, int(firsts[c]), n_parts) for c in range(len(sizes))]
    from_parts = [search([chunk[p] for chunk in sent], lists) for p in range(n_parts)]
    nearest = [
        gather([part[c] for part in from_parts], int(firsts[c]), size, n_neighbors, rows.dtype)
        for c, size in enumerate(sizes)
    ]

    def joined(k: int, dtype: Any) -> Any:
        chunks = zip(nearest, sizes, strict=True)
        return da.concatenate([da.from_delayed(both[k], (size, n_neighbors), dtype) for both, size in chunks])

    return joined(0, np.dtype(np.int64)), joined(1, np.result_type(rows.dtype, np.float32))


def _trained(X: Any, n_neighbors: int, n_parts: int, seed: int) -> _Lists:
    """Return lists trained on a sample, and neighbouring lists in the same part."""
    from scipy.cluster.hierarchy import leaves_list, linkage

    n = X.shape[0]
    sample, _ = sampled(X, min(n, max(_SAMPLED, 4 * n_neighbors)), None, seed)
    points = dense_rows(X[sample].compute())
    check_finite(points, sample)
    shift = shift_of(points)
    index = InvertedFile(shifted(points, shift), n_neighbors, n_rows=n)
    n_lists = len(index.means)
    order = leaves_list(linkage(index.means, "ward")) if n_lists > 1 else np.zeros(1, dtype=np.int64)
    # Parts get nearly equal numbers of points.
    before = np.cumsum(np.bincount(index.list_of, minlength=n_lists)[order])
    part_of = np.empty(n_lists, dtype=np.int64)
    part_of[order] = np.minimum((before - 1).clip(0) * n_parts // before[-1], n_parts - 1)
    searched = np.zeros((n_lists, n_parts), dtype=bool)
    for k, (nearest, n_searched) in enumerate(zip(index.nearest_lists, index.n_searched, strict=True)):
        searched[k, part_of[nearest[:n_searched]]] = True
    return _Lists(index.holding(points[:0]), part_of, searched, shift)


def _send(chunk: Any, lists: _Lists, first: int, n_parts: int) -> list[_Sent]:
    """Return the rows of a chunk that each part needs."""
    rows = dense_rows(chunk)
    check_finite(rows, first + np.arange(len(rows)))
    rows = shifted(rows, lists.shift)
    list_of = lists.empty.lists_of(rows)
    searching = (np.flatnonzero(lists.searched[list_of, part]) for part in range(n_parts))
    return [(first + at, rows[at], lists.part_of[list_of[at]] == part) for part, at in enumerate(searching)]


def _search(sent: list[_Sent], lists: _Lists) -> list[tuple[NDArray[np.int64], Nearest]]:
    """Return the nearest points of one part, for the rows from each chunk."""
    numbers, rows, held = (np.concatenate(values) for values in zip(*sent, strict=True))
    indices, sq_dist = partial(rows, numbers, lists.empty.holding(rows[held]), numbers[held])
    ends = np.cumsum([of_chunk.size for of_chunk, *_ in sent])[:-1]
    nearest = zip(np.split(indices, ends), np.split(sq_dist, ends), strict=True)
    return list(zip(np.split(numbers, ends), nearest, strict=True))


def _gather(
    parts: list[tuple[NDArray[np.int64], Nearest]], first: int, size: int, n_neighbors: int, dtype: Any
) -> Nearest:
    """Return the nearest of all parts for the rows of one chunk, and distances."""
    indices = np.full((size, n_neighbors), -1, dtype=np.int64)
    sq_dist = np.full((size, n_neighbors), np.inf)
    for numbers, nearest in parts:
        if numbers.size:
            at = numbers - first
            indices[at], sq_dist[at] = merge([(indices[at], sq_dist[at]), nearest])
    return indices, np.sqrt(sq_dist).astype(np.result_type(dtype, np.float32), copy=False)
