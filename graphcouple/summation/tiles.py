"""Tiles of a fine grid, only where points are: small convolutions add the short range that a coarse grid lacks.

Separated clusters leave most of a map empty, so a grid that resolves them has mostly empty nodes. So the function is
split at several scales. On the coarsest grid, of the whole map, a smooth cap replaces it below four spacings. The
remainder is zero beyond; it is split in the same way on a grid four times as fine, and so on. A tile of a fine grid
needs the charges of its own points and of a margin as wide as the reach of the remainder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft2, rfft2

from graphcouple._numba.mesh import add_tiles_at, gather, spread_inside
from graphcouple._numba.near import add_band, add_in_order, fill_tiles, take_in_order
from graphcouple._numba.threads import POINTS_WORTH_THREADS, over_blocks, over_rows
from graphcouple.graphs import FloatArray
from graphcouple.summation.near_cells import bounds, sorted_by_bin
from graphcouple.summation.transforms import Grid, Transform

COARSER = 4
"""The ratio of the coarse spacing to the fine one."""

TILE = 128
"""Nodes along a side of a tile, with its margins."""

# Nodes of a margin beyond the reach: two each for the splines that spread and gather.
_SPLINES = 4
# With a smaller core, more than fifteen sixteenths of a tile's nodes are margins.
_LEAST_CORE = 32

# Above this number, tiles are sorted by comparison, not by counting.
_MOST_BINS = 2**22

SPARSE_PAIRS = 30_000
"""Pairs of a tile's points with points around it below which a sum over pairs takes less time than a transform."""

# Threads for fewer sparse tiles wait longer than they work.
_SPARSE_WORTH_THREADS = 64

# Tiles transformed together: fewer calls of SciPy, which one thread at a time prepares.
_TOGETHER = 8

# A field of a tile takes 68 kB, and there are about as many empty tiles around the tiles with points.
MOST_FIELDS = 2000


def core_of(near: float) -> int:
    """Return the nodes along a side of a tile without its margins, for caps of `near` spacings; 0 if too few."""
    core = TILE - 2 * (int(np.ceil(COARSER * near)) + _SPLINES)
    return core if core >= _LEAST_CORE else 0


def _tile_of(
    points: FloatArray, low: FloatArray, side: float, n_jobs: int | None
) -> tuple[NDArray[np.int64], int, int]:
    """Return each point's tile, numbered by rows with an empty border, and the length and number of rows."""
    n_rows, width = ((bounds(points)[1] - low) / side).astype(np.int64) + 3
    tiles, at_least = np.empty(len(points), dtype=np.int64), POINTS_WORTH_THREADS
    over_rows(len(points), n_jobs, fill_tiles, points, low, side, width, tiles, at_least=at_least)
    return tiles, int(width), int(n_rows)


def n_tiles(points: FloatArray, low: FloatArray, side: float) -> int:
    """Return the number of tiles with points; tiles without margins have width `side`."""
    numbers, width, n_rows = _tile_of(points, low, side, 1)
    return int(np.unique(numbers).size if width * n_rows > len(points) else np.count_nonzero(np.bincount(numbers)))


def _by_tile(
    points: FloatArray, low: FloatArray, side: float, n_jobs: int | None
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64], int]:
    """Return the order of points by tile, the tiles with points, where these begin and end, and the tiles in a row."""
    numbers, width, n_rows = _tile_of(points, low, side, n_jobs)
    if width * n_rows > _MOST_BINS:
        order: NDArray[Any] = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        occupied = numbers[starts]
    else:
        order, starts = sorted_by_bin(numbers, width * n_rows)
        occupied = np.flatnonzero(np.diff(starts))
        starts = starts[occupied]
    return order, occupied, np.append(starts, len(points)), width


class Tiles:
    """Points and their charges, of shape (n_sets, n), by the tiles of a fine grid.

    A tile without its margins has `core` nodes along a side; `transform` is from `tile_transform`.
    """

    def __init__(
        self, points: FloatArray, charges: FloatArray, grid: Grid, core: int, transform: Transform, n_jobs: int | None
    ) -> None:
        self.low, self.spacing, self.n_jobs = bounds(points)[0].astype(np.float64), grid.spacing, n_jobs
        self.core, self.transform = core, transform
        self.order, self.occupied, self.starts, self.width = _by_tile(points, self.low, core * grid.spacing, n_jobs)
        self.places, self.charges = np.empty_like(points), np.empty_like(charges)
        moved = self.order, points, charges, self.places[:, 0], self.places[:, 1], self.charges
        over_rows(len(points), n_jobs, take_in_order, *moved, at_least=POINTS_WORTH_THREADS)

    def _runs(self, tiles: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the first and last points around each tile, which lie in three runs, one for each row of tiles."""
        around = tiles + np.array([[-1], [2]])
        return np.stack([self.starts[np.searchsorted(self.occupied, around + self.width * row)] for row in (-1, 0, 1)])

    def each_field(self, tiles: NDArray[np.int64], use: Callable[..., None]) -> None:
        """Call `use` with each place in `tiles`, a set of charges, the tile's corner and its field of these charges."""
        runs = self._runs(tiles)
        cells = np.stack(np.divmod(tiles, self.width), axis=1) - 1.0
        corners = self.low + self.spacing * (self.core * cells - (TILE - self.core) // 2)

        def fill(block: slice) -> None:
            together = range(block.start, block.stop)
            nodes = np.empty((len(together), TILE, TILE))
            for k, charge in enumerate(self.charges):
                nodes[:] = 0.0
                for t, grid in zip(together, nodes, strict=True):
                    for starts, ends in runs:
                        spread_inside(starts[t], ends[t], self.places, corners[t], self.spacing, charge, grid)
                spectra = rfft2(nodes.astype(self.transform.values.dtype))
                spectra *= self.transform.values
                fields = irfft2(spectra, nodes.shape[1:], overwrite_x=True).astype(np.float64, copy=False)
                for t, field in zip(together, fields, strict=True):
                    use(t, k, corners[t], field)

        over_blocks(len(tiles), _TOGETHER, self.n_jobs, fill)

    def add(self, potential: FloatArray, gradient: FloatArray) -> None:
        """Add the potentials at the points, and gradients, of shape (n_sets, n) and (n_sets, n, 2)."""
        own = np.stack([self.starts[:-1], self.starts[1:]])
        runs, reach = self._runs(self.occupied), self.transform.reach
        is_sparse = (own[1] - own[0]) * (runs[:, 1] - runs[:, 0]).sum(axis=0) < SPARSE_PAIRS
        sums, forces = np.empty(potential.shape), np.empty(gradient.shape)
        sparse, dense = np.flatnonzero(is_sparse), np.flatnonzero(~is_sparse)
        pairs = (sparse, own, runs, reach, self.transform.band, self.places, self.charges, sums, forces)
        over_rows(sparse.size, self.n_jobs, add_band, *pairs, at_least=_SPARSE_WORTH_THREADS)

        def read(t: int, k: int, corner: FloatArray, field: FloatArray) -> None:
            here = (self.places, corner, self.spacing, self.charges[k], field, self.transform.own)
            gather(own[0, dense[t]], own[1, dense[t]], *here, sums[k], forces[k])

        self.each_field(self.occupied[dense], read)
        added = self.order, sums, forces, potential, gradient
        over_rows(self.order.size, self.n_jobs, add_in_order, *added, at_least=POINTS_WORTH_THREADS)


class TileField:
    """The potentials of fixed charges on the tiles near them, for any place."""

    def __init__(self, tiles: Tiles) -> None:
        self.low, self.spacing, self.side = tiles.low, tiles.spacing, tiles.core * tiles.spacing
        self.width = tiles.width
        around = np.array([[row * tiles.width + column for row in (-1, 0, 1) for column in (-1, 0, 1)]])
        self.numbers = np.unique(tiles.occupied[:, None] + around)
        margin = (TILE - tiles.core) // 2
        here = slice(margin - 1, margin + tiles.core + 3)
        self.values = np.empty((self.numbers.size, len(tiles.charges), tiles.core + 4, tiles.core + 4))

        def keep(t: int, k: int, corner: FloatArray, field: FloatArray) -> None:
            self.values[t, k] = field[here, here]

        tiles.each_field(self.numbers, keep)

    def add(self, places: FloatArray, n_jobs: int | None, potential: FloatArray, gradient: FloatArray) -> None:
        """Add the potentials at places and their gradients."""
        tiles = (self.low, self.side, self.width, self.numbers, self.spacing, self.values)
        over_rows(len(places), n_jobs, add_tiles_at, places, *tiles, potential, gradient)
