"""Points sorted into square cells, in which near points are near in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._numba.mesh import sort_by_bin
from graphcouple._numba.near import fill_cells, take_in_order
from graphcouple._numba.places import add_near_at
from graphcouple._numba.threads import POINTS_WORTH_THREADS, over_rows
from graphcouple._numba.tree import LEVELS, interleave
from graphcouple.graphs import FloatArray

# The most cells: their starts take 32 MB. A wider page is folded.
_MOST_CELLS = 2**22


def bounds(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest coordinates; a loop over columns is ten times as fast as NumPy's ``axis=0``."""
    low = np.array([float(column.min()) for column in points.T])
    return low, np.array([float(column.max()) for column in points.T])


def sorted_by_bin(bins: NDArray[Any], n_bins: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the order of points by bin, and where each bin starts in it."""
    order, starts = np.empty(bins.size, dtype=np.int32), np.empty(n_bins + 1, dtype=np.int64)
    sort_by_bin(bins, n_bins, order, starts)
    return order, starts


def morton_keys(points: FloatArray, n_jobs: int | None = None) -> NDArray[np.int64]:
    """Return a key for each point of at most three dimensions; most points of neighbouring keys are near each other.

    It is the Morton code of the point's cell: a curve through all cells, which visits the quarters of a square in turn.
    """
    low, high = bounds(points)
    widest = float((high - low).max())
    cells = ((points - low) * ((2**LEVELS - 1) / widest if widest > 0 else 0.0)).astype(np.int64)
    keys = np.empty(len(points), dtype=np.int64)
    over_rows(len(points), n_jobs, interleave, cells, points.shape[1], keys)
    return keys


class NearCells:
    """Points in square cells, half as wide as the distance below which pairs are near.

    A page of very many cells is folded like paper, to and fro. Neighbouring cells stay neighbours or coincide, so a
    point's surroundings still hold all points near it. They may also hold some of another layer, which are not near.

    Points have one or two columns, and `charges` the shape (n_sets, n). Pairs are near below the squared distance
    `edge`; `table` is their correction, see `Transform`.
    """

    def __init__(
        self, points: FloatArray, charges: FloatArray, edge: float, table: FloatArray, n_jobs: int | None = None
    ) -> None:
        n, n_dims = points.shape
        self.edge, self.table = edge, table
        self.side = 0.5 * float(np.sqrt(edge))
        self.low, high = bounds(points)
        page = np.ones(2, dtype=np.int64)
        page[:n_dims] = ((high - self.low) / self.side).astype(np.int64) + 1
        # A folded page is as square as the page allows.
        fewer = max(1, int(_MOST_CELLS**0.5))
        self.shape = np.minimum(page, np.maximum(fewer, _MOST_CELLS // np.minimum(page[::-1], _MOST_CELLS)))
        self.is_folded = bool((self.shape < page).any())
        cells, at_least = np.empty(n, dtype=np.int32), POINTS_WORTH_THREADS
        over_rows(n, n_jobs, fill_cells, points, self.low, self.side, self.shape, cells, at_least=at_least)
        self.order, self.starts = sorted_by_bin(cells, int(self.shape.prod()))
        self.xs, self.ys, self.cs = np.empty(n), np.empty(n), np.empty(charges.shape)
        over_rows(n, n_jobs, take_in_order, self.order, points, charges, self.xs, self.ys, self.cs, at_least=at_least)

    def add(self, places: FloatArray, n_jobs: int | None, potential: FloatArray, gradient: FloatArray) -> None:
        """Add the correction for points nearer than the edge to potentials and gradients at places."""
        page = self.low, self.side, self.shape, self.is_folded
        cells = *page, self.edge, self.table, self.starts, self.xs, self.ys, self.cs
        over_rows(len(places), n_jobs, add_near_at, places, *cells, potential, gradient)
