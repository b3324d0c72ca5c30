"""Points sorted into square cells, to find the points near a place."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._numba.threads import POINTS_WORTH_THREADS, over_rows
from graphcouple.graphs import FloatArray

# With more cells than this, groups of cells move together.
_MOST_CELLS = 2**22


def bounds(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the smallest and largest coordinates; a loop over columns is ten times as fast as NumPy's ``axis=0``."""
    return np.array([float(column.min()) for column in points.T]), np.array(
        [float(column.max()) for column in points.T]
    )


def sorted_by_bin(bins: NDArray[Any], n_bins: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Return the order of points by bin, and where each bin starts in it."""
    from graphcouple._numba.mesh import sort_by_bin

    order, starts = np.empty(bins.size, dtype=np.int32), np.empty(n_bins + 1, dtype=np.int64)
    sort_by_bin(bins, n_bins, order, starts)
    return order, starts


def _packed(rows: NDArray[np.int64], columns: NDArray[np.int64], side: int) -> tuple[NDArray[np.int64], ...]:
    """Return rows and columns of cells, with the groups of cells that lie far apart moved together into shelves.

    Groups are components of a grid whose squares are `side` cells wide, at least three, so no two points of different
    groups are near each other.
    """
    from scipy.ndimage import label

    near, far = rows // side, columns // side
    occupied = np.zeros((near.max() + 1, far.max() + 1), dtype=bool)
    occupied[near, far] = True
    groups, n_groups = label(occupied, structure=np.ones((3, 3)))
    group = groups[near, far] - 1
    firsts, sizes = [], []
    for cells in (rows, columns):
        first, last = np.full(n_groups, cells.max()), np.zeros(n_groups, dtype=np.int64)
        np.minimum.at(first, group, cells)
        np.maximum.at(last, group, cells)
        firsts.append(first)
        sizes.append(last - first + 1)
    heights, widths = sizes
    by_height = np.argsort(-heights, kind="stable")
    begins = np.empty(n_groups, dtype=np.int64)
    begins[by_height] = np.cumsum(widths[by_height]) - widths[by_height]
    shelf, left = np.divmod(begins, max(int(widths.max()), int((heights * widths).sum() ** 0.5)))
    depths = np.zeros(int(shelf.max()) + 1, dtype=np.int64)
    np.maximum.at(depths, shelf, heights)
    top = (np.cumsum(depths) - depths)[shelf]
    return rows + (top - firsts[0])[group], columns + (left - firsts[1])[group]


class NearCells:
    """Points in square cells, half as wide as the distance below which pairs are near.

    Parameters
    ----------
    points : ndarray of shape (n, 1 or 2)
    charges : ndarray of shape (n_sets, n)
    edge : float
        The squared distance below which pairs are near.
    table : ndarray
        The correction for near pairs; see `near_table`.
    n_jobs : int or None, default=None
    close_up : bool, default=False
        Whether wide gaps between points are left out if there are very many cells. `add` then finds no cell.
    """

    def __init__(
        self,
        points: FloatArray,
        charges: FloatArray,
        edge: float,
        table: FloatArray,
        n_jobs: int | None = None,
        close_up: bool = False,
    ) -> None:
        from graphcouple._numba.near import fill_cells, take_in_order

        n, n_dims = points.shape
        self.edge, self.table = edge, table
        self.side = 0.5 * float(np.sqrt(edge))
        self.low, high = bounds(points)
        self.shape = np.ones(2, dtype=np.int64)
        self.shape[:n_dims] = ((high - self.low) / self.side).astype(np.int64) + 1
        cells, at_least = np.empty(n, dtype=np.int32), POINTS_WORTH_THREADS
        if close_up and n_dims == 2 and self.shape.prod() > _MOST_CELLS:
            rows, columns = (((points[:, a] - self.low[a]) / self.side).astype(np.int64) for a in (0, 1))
            n_cells, before = int(self.shape.prod()), np.inf
            # Each packing tells groups apart more finely.
            while _MOST_CELLS < n_cells < before / 2:
                rows, columns = _packed(rows, columns, max(3, int((n_cells / max(_MOST_CELLS, 1)) ** 0.5) + 1))
                n_cells, before = int(rows.max() + 1) * int(columns.max() + 1), n_cells
            self.shape[:] = rows.max() + 1, columns.max() + 1
            cells[:] = rows * self.shape[1] + columns
        else:
            over_rows(n, n_jobs, fill_cells, points, self.low, self.side, int(self.shape[1]), cells, at_least=at_least)
        self.order, self.starts = sorted_by_bin(cells, int(self.shape.prod()))
        self.xs, self.ys, self.cs = np.empty(n), np.empty(n), np.empty(charges.shape)
        over_rows(n, n_jobs, take_in_order, self.order, points, charges, self.xs, self.ys, self.cs, at_least=at_least)

    def add(self, places: FloatArray, n_jobs: int | None, potential: FloatArray, gradient: FloatArray) -> None:
        """Add the correction for points nearer than the edge to potentials and gradients at places."""
        from graphcouple._numba.places import add_near_at

        cells = (self.low, self.side, self.shape, self.edge, self.table, self.starts, self.xs, self.ys, self.cs)
        over_rows(len(places), n_jobs, add_near_at, places, *cells, potential, gradient)
