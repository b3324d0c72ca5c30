"""The sum m + mᵀ over both directions of edges, without a copy of all edges, and its product with points."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from graphcouple._numba.mirror import add_reverses, count_reverses, fill_reverses, merge_rows, multiply_rows
from graphcouple._numba.pairs import worth_threads
from graphcouple._numba.threads import over_rows
from graphcouple.graphs import FloatArray, IntArray, Support, index_dtype

Edges: TypeAlias = tuple[IntArray, IntArray, FloatArray]
"""A csr matrix: unsigned row pointers and column indices, and entries."""


def unsigned(index: IntArray) -> IntArray:
    """Return non-negative integers as unsigned ones, for which the compiler has gather instructions."""
    return index.view(np.uint32 if index.dtype.itemsize == 4 else np.uint64)


def both_directions(support: Support, weights: FloatArray, n_jobs: int | None = None) -> list[Edges]:
    """Return csr matrices whose sum is m + mᵀ: one on the edges of m, one on the reverses that m lacks.

    A single matrix would need all edges in memory twice. The weights m are overwritten.
    """
    indptr, indices = unsigned(support.indptr), unsigned(support.indices)
    one_way = np.empty(weights.size, dtype=np.bool_)
    over_rows(support.n_nodes, n_jobs, add_reverses, indptr, indices, weights, one_way)
    place = np.zeros(support.n_nodes + 1, dtype=np.int64)
    count_reverses(indices, one_way, place[1:])
    np.cumsum(place, out=place)
    starts = unsigned(place.astype(index_dtype(int(place[-1]))))
    columns, entries = np.empty(int(place[-1]), dtype=indices.dtype), np.empty(int(place[-1]), dtype=weights.dtype)
    if entries.size:
        fill_reverses(indptr, indices, weights, one_way, place, columns, entries)
        return [(indptr, indices, weights), (starts, columns, entries)]
    return [(indptr, indices, weights)]


def either_direction(support: Support, weights: FloatArray) -> tuple[Support, FloatArray]:
    """Return the edges of m + mᵀ and its entries, stored zeros included; starts no threads."""
    own, *reverses = both_directions(support, weights.copy(), n_jobs=1)
    if not reverses:
        return support, own[2]
    indptr = own[0].astype(np.int64) + reverses[0][0]
    columns, entries = np.empty(int(indptr[-1]), dtype=support.indices.dtype), np.empty(int(indptr[-1]), weights.dtype)
    merge_rows(*own, *reverses[0], indptr, columns, entries)
    return Support(indptr, columns), entries


def mean_of_directions(support: Support, weights: FloatArray) -> tuple[Support, FloatArray]:
    """Return the edges of m + mᵀ, each with the mean of its stored entries in m and mᵀ."""
    edges, total = either_direction(support, weights.astype(np.float64))
    _, directions = either_direction(support, np.ones(support.n_edges))
    return Support(edges.indptr, edges.indices, support.complete), total / directions


def edge_product(matrix: Any, points: FloatArray, n_jobs: int | None = None) -> FloatArray:
    """Return the product of an array or csr matrix with points, in double precision.

    Points are read in the precision of the entries. SciPy's product uses one thread, and takes three times as long if
    points do not fit in the caches.
    """
    if not (sp.issparse(matrix) and matrix.format == "csr"):
        return np.asarray(matrix @ points, dtype=np.float64)
    n_rows, n_columns = matrix.shape
    if points.ndim != 2 or len(points) != n_columns:
        raise ValueError(
            f"points must have shape ({n_columns}, q), a row for each column of the matrix, got {points.shape}."
        )
    result = np.empty((n_rows, points.shape[1]))
    read = np.ascontiguousarray(points, dtype=np.result_type(matrix.dtype, np.float32))
    arrays = (unsigned(matrix.indptr), unsigned(matrix.indices), matrix.data, read, result)
    over_rows(n_rows, n_jobs, multiply_rows, *arrays, at_least=worth_threads(matrix.nnz // max(n_rows, 1)))
    return result
