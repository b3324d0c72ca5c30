"""What can be had cheaply of all points, to make up for the chance of a sample of them.

A row's agreement of neighborhoods is costly: all points are ranked by their
distance to it. Its agreement among a few hundred reference points, and that of its
nearest neighbors as an approximate search finds them, are cheap enough for every
row. Over the sampled rows they tell how the costly curves depend on them; over all
rows they tell how far the sample is off.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._numba.threads import over_rows
from graphcouple.graphs import FloatArray
from graphcouple.metrics._blocks import Distances, orders_of, ranks_of
from graphcouple.neighbors import nearest_neighbors

_REFERENCES = 512
_LEVELS = (1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4)
_NEIGHBORS = 32
_NEAR = (*range(1, 17), 20, 24, 28, 32)
_ROWS = 256
SEARCHED = ("euclidean", "cosine")


def covariates(
    points: Any,
    given: Distances,
    maps: list[Any],
    mapped: list[Distances],
    metric: str,
    rng: np.random.Generator,
    n_jobs: int | None,
) -> list[FloatArray]:
    """Return for each embedding the covariates of all points, of shape (n, n_covariates)."""
    n = points.shape[0]
    columns = np.sort(rng.choice(n, min(_REFERENCES, n), replace=False))
    levels = np.unique(np.maximum([int(level * columns.size) for level in _LEVELS], 1))
    found = [np.empty((n, 3 * levels.size), dtype=np.float32) for _ in maps]

    def among_references(start: int, stop: int) -> None:
        from graphcouple._numba.ranks import agreement

        for a in range(start, stop, _ROWS):
            rows = np.arange(a, min(a + _ROWS, stop))
            own = rows[:, None] == columns
            ranks = ranks_of(orders_of(given(rows, columns), own))
            curves = np.empty((rows.size, 3, levels.size))
            unused = np.zeros((2, 3, columns.size))
            for covariate, distances in zip(found, mapped, strict=True):
                agreement(ranks, orders_of(distances(rows, columns), own), levels, curves, *unused)
                covariate[rows] = curves.reshape(rows.size, -1)

    over_rows(n, n_jobs, among_references)
    if metric not in SEARCHED or n <= 2 * _NEIGHBORS:
        return found
    before = _nearest(points, metric, "approximate", n_jobs)
    near = [_shared(before, _nearest(Z, "euclidean", "auto", n_jobs)) for Z in maps]
    return [np.hstack(pair) for pair in zip(found, near, strict=True)]


def _nearest(points: Any, metric: str, search: str, n_jobs: int | None) -> NDArray[Any]:
    """Return the nearest points of each, from near to far."""
    support, sq_dist = nearest_neighbors(points, _NEIGHBORS, metric, n_jobs=n_jobs, search=search)
    by_distance = np.argsort(sq_dist.reshape(-1, _NEIGHBORS), axis=1, kind="stable")
    return np.take_along_axis(support.indices.reshape(-1, _NEIGHBORS), by_distance, axis=1)


def _shared(before: NDArray[Any], after: NDArray[Any]) -> NDArray[np.float32]:
    """Return how many of each row's first few are the same, for several numbers of them."""
    shared = np.empty((len(before), len(_NEAR)), dtype=np.float32)
    later = np.maximum.outer(np.arange(_NEIGHBORS), np.arange(_NEIGHBORS)).ravel()
    counted = later[:, None] < np.array(_NEAR)
    for a in range(0, len(before), 4096):
        same = before[a : a + 4096, :, None] == after[a : a + 4096, None, :]
        shared[a : a + 4096] = same.reshape(len(same), -1).astype(np.float32) @ counted.astype(np.float32)
    return shared
