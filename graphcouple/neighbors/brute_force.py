"""An exact search by comparing all points; a row's result depends on no other row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._numba.threads import one_blas_thread, over_blocks
from graphcouple.neighbors.points import nearest_of
from graphcouple.neighbors.projection import ROWS_TOGETHER

# Columns of distances held at once: 64 × 4,096 doubles are 2 MB.
_COLUMNS_AT_ONCE = 4096

# Extra candidates, since expanding the square may change the order of the nearest.
_SPARE = 8


def nearest_exactly(
    X: NDArray[Any], X_new: NDArray[Any], n_neighbors: int, n_jobs: int | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the points of `X` nearest to each row of `X_new`, ordered by index, and their squared distances.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Centred near the origin.
    X_new : ndarray of shape (n_new, n_features)
    """
    from graphcouple._numba.nearest import keep_nearest

    n = X.shape[0]
    n_candidates = min(n_neighbors + _SPARE, n)
    names = np.arange(n, dtype=np.int32)
    sq_norms = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    indices = np.empty((len(X_new), n_neighbors), dtype=np.int32)
    sq_dist = np.empty(indices.shape)
    block_rows, no_norms = np.arange(ROWS_TOGETHER), np.zeros(ROWS_TOGETHER)

    def search(block: slice) -> None:
        rows = np.arange(block.start, block.stop, dtype=np.int32)
        # Products of a fixed number of rows give a row the same bits, whatever the other rows are.
        queries = np.zeros((ROWS_TOGETHER, X.shape[1]))
        queries[: rows.size] = X_new[rows]
        distances = np.full((ROWS_TOGETHER, n_candidates), np.inf)
        candidates = np.empty(distances.shape, dtype=np.int32)
        for a in range(0, n, _COLUMNS_AT_ONCE):
            part = slice(a, min(a + _COLUMNS_AT_ONCE, n))
            shifted_sq_dist = sq_norms[part] - 2.0 * (queries @ X[part].astype(np.float64, copy=False).T)
            keep_nearest(shifted_sq_dist, names[part], block_rows, no_norms, distances, candidates)
        indices[rows], sq_dist[rows] = nearest_of(X_new, rows, X, candidates[: rows.size], n_neighbors)

    with one_blas_thread():
        over_blocks(len(X_new), ROWS_TOGETHER, n_jobs, search)
    return indices, sq_dist
