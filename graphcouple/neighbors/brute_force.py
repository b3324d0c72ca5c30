"""An exact search by comparing all points; a row's result depends on no other row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from graphcouple._numba.threads import one_blas_thread, over_blocks
from graphcouple.neighbors.points import nearest_of
from graphcouple.neighbors.projection import ROWS_TOGETHER

# Columns of distances held at once: 64 × 4,096 doubles are 2 MB.
_COLUMNS_AT_ONCE = 4096

# Extra candidates, since expanding the square may change the order of the nearest.
_SPARE = 8

# Squared distances below this share of the squared norm have less than four digits when the square is expanded.
_LOST = 1e-12


def nearest_exactly(
    X: NDArray[Any], X_new: NDArray[Any], n_neighbors: int, n_jobs: int | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the points of `X`, near the origin, nearest to each row of `X_new`, by index, and squared distances."""
    sq_norms = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    indices = np.empty((len(X_new), n_neighbors), dtype=np.int32)
    sq_dist = np.empty(indices.shape)

    def search(block: slice) -> None:
        rows = np.arange(block.start, block.stop, dtype=np.int32)
        # Products of a fixed number of rows give a row the same bits, whatever the other rows are.
        queries = np.zeros((ROWS_TOGETHER, X.shape[1]))
        queries[: rows.size] = X_new[rows]

        def shifted_sq_dist(part: slice) -> NDArray[np.float64]:
            return sq_norms[part] - 2.0 * (queries @ X[part].astype(np.float64, copy=False).T)

        candidates = _candidates(ROWS_TOGETHER, len(X), n_neighbors, shifted_sq_dist)[: rows.size]
        indices[rows], sq_dist[rows] = nearest_of(X_new, rows, X, candidates, n_neighbors)

    with one_blas_thread():
        over_blocks(len(X_new), ROWS_TOGETHER, n_jobs, search)
    search_lost(X, X_new, indices, sq_dist, n_jobs)
    return indices, sq_dist


def search_lost(
    X: NDArray[Any],
    X_new: NDArray[Any],
    indices: NDArray[Any],
    sq_dist: NDArray[Any],
    n_jobs: int | None = None,
    others_only: bool = False,
) -> None:
    """Replace neighbours, in place, of rows whose distances are lost when the square is expanded."""
    farthest = sq_dist.max(axis=1)
    sq_norms = np.einsum("ij,ij->i", X_new, X_new, dtype=np.float64)
    lost = np.flatnonzero((farthest > 0.0) & (farthest <= _LOST * sq_norms))

    def search(block: slice) -> None:
        rows, k = lost[block], indices.shape[1]
        candidates = _candidates(rows.size, len(X), k, lambda part: cdist(X_new[rows], X[part], "sqeuclidean"))
        itself, left = rows if others_only else None, rows.astype(np.int32)
        indices[rows], sq_dist[rows] = nearest_of(X_new, left, X, candidates, k, itself)

    over_blocks(lost.size, ROWS_TOGETHER, n_jobs, search)


def _candidates(
    n_rows: int, n: int, n_neighbors: int, sq_dist_to: Callable[[slice], NDArray[np.float64]]
) -> NDArray[np.int32]:
    """Return the nearest of n points for some rows, from squared distances to parts of the points, and some more."""
    from graphcouple._numba.nearest import keep_nearest

    names, rows, no_norms = np.arange(n, dtype=np.int32), np.arange(n_rows), np.zeros(n_rows)
    distances = np.full((n_rows, min(n_neighbors + _SPARE, n)), np.inf)
    candidates = np.empty(distances.shape, dtype=np.int32)
    for a in range(0, n, _COLUMNS_AT_ONCE):
        part = slice(a, min(a + _COLUMNS_AT_ONCE, n))
        keep_nearest(sq_dist_to(part), names[part], rows, no_norms, distances, candidates)
    return candidates
