"""Cheap covariates of all points, which reduce the standard errors of scores from a sample of points.

The exact agreement of neighborhoods is costly: for each row, it ranks all points by distance. The agreement among a few
hundred reference points, or among approximate nearest neighbors, is cheap enough for every row. Over the sampled rows,
a regression of the costly curves on these covariates gives slopes; the covariates' means over all rows then correct the
sample.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._numba.threads import one_blas_thread, over_blocks
from graphcouple.graphs import FloatArray
from graphcouple.metrics._blocks import Distances, orders_of, ranks_of
from graphcouple.neighbors import nearest_neighbors

# Each reference costs a distance to every point in the data and in each map; more would correct the sample better.
_REFERENCES = 512
# Sizes at which agreement is counted, densest among the small neighbourhoods of local scores.
_LEVELS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4)
_NEIGHBORS = 32
_NEAR = (*range(1, 17), 20, 24, 28, 32)
_ROWS = 256
SEARCHED = ("euclidean", "cosine")


def covariates(
    points: Any,
    data_distances: Distances,
    maps: list[Any],
    map_distances: list[Distances],
    metric: str,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> list[FloatArray]:
    """Return for each embedding the covariates of all points, of shape (n, n_covariates)."""
    n = points.shape[0]
    columns = np.sort(rng.choice(n, min(_REFERENCES, n), replace=False))
    levels = np.unique(np.maximum([int(level * columns.size) for level in _LEVELS], 1))
    values = [np.empty((n, 3 * levels.size), dtype=np.float32) for _ in maps]

    def among_references(block: slice) -> None:
        from graphcouple._numba.ranks import agreement

        rows = np.arange(block.start, block.stop)
        own = rows[:, None] == columns
        ranks = ranks_of(orders_of(data_distances(rows, columns), own))
        curves = np.empty((rows.size, 3, levels.size))
        unused = np.zeros((2, 3, columns.size))
        for covariate, distances in zip(values, map_distances, strict=True):
            agreement(ranks, orders_of(distances(rows, columns), own), levels, curves, *unused)
            covariate[rows] = curves.reshape(rows.size, -1)

    # The bits of a matrix product depend on the block's shape and on the number of threads, so both are fixed.
    with one_blas_thread():
        over_blocks(n, _ROWS, n_jobs, among_references)
    if metric not in SEARCHED or n <= 2 * _NEIGHBORS:
        return values
    data_neighbors, far_in_data = _nearest(points, metric, n_jobs)
    for c, Z in enumerate(maps):
        map_neighbors, far_in_map = _nearest(Z, "euclidean", n_jobs)
        values[c] = np.hstack([values[c], _count_shared(data_neighbors, map_neighbors), far_in_data, far_in_map])
    return values


def _nearest(points: Any, metric: str, n_jobs: int | None) -> tuple[NDArray[Any], FloatArray]:
    """Return the nearest points of each point, from near to far, and the logarithms of some of the distances."""
    support, sq_dist = nearest_neighbors(points, _NEIGHBORS, metric, n_jobs=n_jobs)
    sq_dist = sq_dist.reshape(-1, _NEIGHBORS)
    by_distance = np.argsort(sq_dist, axis=1, kind="stable")
    far = np.take_along_axis(sq_dist, by_distance[:, [7, _NEIGHBORS - 1]], axis=1)
    smallest = float(far[far > 0].min(initial=1.0))
    nearest = np.take_along_axis(support.indices.reshape(-1, _NEIGHBORS), by_distance, axis=1)
    return nearest, np.log(np.maximum(far, smallest)).astype(np.float32)


def _count_shared(data_neighbors: NDArray[Any], map_neighbors: NDArray[Any]) -> NDArray[np.float32]:
    """Return how many of the first k neighbors agree in each row, for each k in `_NEAR`."""
    counts = np.empty((len(data_neighbors), len(_NEAR)), dtype=np.float32)
    later = np.maximum.outer(np.arange(_NEIGHBORS), np.arange(_NEIGHBORS)).ravel()
    in_first = later[:, None] < np.array(_NEAR)
    for a in range(0, len(data_neighbors), 4096):
        same = data_neighbors[a : a + 4096, :, None] == map_neighbors[a : a + 4096, None, :]
        counts[a : a + 4096] = same.reshape(len(same), -1).astype(np.float32) @ in_first.astype(np.float32)
    return counts
