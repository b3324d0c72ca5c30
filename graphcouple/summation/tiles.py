"""Tiles of a fine grid, only where points are: what a coarse grid's cap leaves out, by one small convolution a tile.

Separated clusters leave most of a page empty, so a grid that resolves them has mostly empty nodes. So the function is
split at several scales. On the coarsest grid, of the whole page, a smooth cap replaces it below four spacings. What the
cap leaves out reaches no further. It is split in the same way on a grid four times as fine, and so on. A tile of such a
grid needs the charges of its own points and of a margin as wide as the reach.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._numba.threads import over_rows
from graphcouple.graphs import FloatArray
from graphcouple.summation.near_cells import bounds, sorted_by_bin
from graphcouple.summation.transforms import Grid, Transform

COARSER = 4
"""The coarse spacing, in fine ones."""

TILE = 128
"""Nodes along a side of a tile, with its margins."""

# Nodes of a margin beyond the reach: two each for the splines that spread and gather.
_SPLINES = 4
_LEAST_CORE = 32

# More tiles than these are sorted by comparing, not by counting.
_MOST_BINS = 2**22


def core_of(near: float) -> int:
    """Return the nodes along a side of a tile without its margins, where caps reach `near` spacings; 0 if too few."""
    core = TILE - 2 * (int(np.ceil(COARSER * near)) + _SPLINES)
    return core if core >= _LEAST_CORE else 0


def _tile_of(points: FloatArray, low: FloatArray, side: float) -> tuple[NDArray[np.int64], int, int]:
    """Return the number of each point's tile, row by row within a border of empty ones; the rows' length and number."""
    columns = zip(points.T, low, strict=True)
    across = [((column - least) / side).astype(np.int64) + 1 for column, least in columns]
    n_rows, width = (int(tiles.max()) + 2 for tiles in across)
    return across[0] * width + across[1], width, n_rows


def n_tiles(points: FloatArray, low: FloatArray, side: float) -> int:
    """Return the number of tiles with points; tiles are as wide as `side` without their margins."""
    numbers, width, n_rows = _tile_of(points, low, side)
    if width * n_rows > _MOST_BINS:
        return int(np.unique(numbers).size)
    return int(np.count_nonzero(np.bincount(numbers, minlength=width * n_rows)))


def _by_tile(points: FloatArray, low: FloatArray, side: float) -> tuple[NDArray[Any], NDArray[np.int64], int]:
    """Return the order of points by tile, the tile of each in this order, and the tiles in a row."""
    numbers, width, n_rows = _tile_of(points, low, side)
    if width * n_rows > _MOST_BINS:
        order: NDArray[Any] = np.argsort(numbers, kind="stable")
    else:
        order = sorted_by_bin(numbers, width * n_rows)[0]
    return order, numbers[order], width


def add_tiles(
    points: FloatArray,
    charges: FloatArray,
    grid: Grid,
    core: int,
    transform: Transform,
    n_jobs: int | None,
    potential: FloatArray,
    gradient: FloatArray,
) -> None:
    """Add the tiles' potentials and gradients to those of the coarse grid.

    Parameters
    ----------
    points : ndarray of shape (n, 2)
    charges : ndarray of shape (n_sets, n)
    grid : Grid
        The fine grid.
    core : int
        Nodes along a side of a tile without its margins.
    transform : Transform
        Of a tile; see `tile_transform`.
    n_jobs : int or None
    potential : ndarray of shape (n_sets, n)
    gradient : ndarray of shape (n_sets, n, 2)
    """
    from scipy.fft import irfft2, rfft2

    from graphcouple._numba.mesh import gather, spread_inside

    low, spacing = bounds(points)[0].astype(np.float64), grid.spacing
    order, numbers, width = _by_tile(points, low, core * spacing)
    places, sorted_charges = points[order], charges[:, order]
    occupied = numbers[np.flatnonzero(np.diff(numbers, prepend=-1))]
    # The tiles around one lie in three runs, one for each row.
    runs = [np.searchsorted(numbers, occupied + width * row + np.array([[-1], [2]])) for row in (-1, 0, 1)]
    own = np.searchsorted(numbers, [occupied, occupied + 1])
    sums, forces = np.empty(charges.shape), np.empty(gradient.shape)

    def fill(first: int, last: int) -> None:
        nodes = np.empty((TILE, TILE))
        for t in range(first, last):
            corner = low + spacing * (core * (np.array(divmod(occupied[t], width)) - 1.0) - (TILE - core) // 2)
            for k, charge in enumerate(sorted_charges):
                nodes[:] = 0.0
                for starts, ends in runs:
                    spread_inside(starts[t], ends[t], places, corner, spacing, charge, nodes)
                spectrum = rfft2(nodes.astype(transform.values.dtype))
                spectrum *= transform.values
                field = irfft2(spectrum, nodes.shape, overwrite_x=True).astype(np.float64, copy=False)
                here = (places, corner, spacing, charge, field, transform.own)
                gather(own[0, t], own[1, t], *here, sums[k], forces[k])

    over_rows(occupied.size, n_jobs, fill, at_least=2)
    potential[:, order] += sums
    gradient[:, order] += forces
