"""Near pairs of the particle mesh: their number, and the correction of the smooth cap."""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np

from graphcouple._numba.near import add_near_pairs, block_sizes
from graphcouple._numba.threads import POINTS_WORTH_THREADS, over_rows
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.summation.near_cells import NearCells
from graphcouple.summation.tiles import COARSER, TILE, n_tiles

# 4,096² nodes take 0.5 GB: charges, field, spectrum and transform, each of 8 bytes per node.
LARGEST = 4096

# Nanoseconds for a node of the grid and for a near pair, to balance a finer grid and fewer near pairs; near pairs are
# searched in blocks ten nodes wide. With more than 10,000 near pairs per point, the mesh is not used.
_TIME_OF_NODE, _TIME_OF_PAIR = 15.0, 2.0
BLOCK_NODES = 10.0
# With more bins than this for each point, most are empty, and sorting takes less memory than counting.
_MOST_BINS_A_POINT = 16
MOST_PAIRS = 10_000.0

# Nanoseconds for a node of a tile, without padding, and for a point in tiles, which is spread about twice and read once
# more. Tiles are considered if a sum takes 20 ms, and must save a third of the time.
_TIME_OF_TILE_NODE, _TIME_OF_TILED_POINT, _WORTH_A_LOOK, _WORTH_TILES = 5.0, 200.0, 2e7, 0.67
# Points that estimate crowding and the number of occupied tiles: for a grid in tiles, and for a plain grid. More would
# estimate them better, but take longer to count.
_SOME_POINTS, _COUNTED = 20_000, 200_000

# Spacings are halved until near pairs take this share of the time, at most this many times.
_FEW_PAIRS, _MOST_HALVINGS = 0.1, 20

# Points in a block ten nodes wide above which nodes are crowded: thirty per node.
_CROWDED = 3e3

# Reads of a grid per point, the factor of one refinement of its spacing, and its largest number of nodes per side. With
# 8 reads for fixed points, new points in a UMAP of 100,000 are placed in a tenth less time, with 0.6 GB more memory.
_MOVING_POINTS = (1.0, 0.5, 0.8 * LARGEST)
_FIXED_POINTS = (2.0, 0.5**0.5, 0.98 * LARGEST)


@lru_cache(maxsize=8)
def _drawn(n: int, most: int) -> IntArray:
    """Return up to `most` random rows of n. Every k-th row would not do: of points in order, few would share a cell."""
    rows = np.unique(np.random.default_rng(0).integers(0, n, most))
    rows.flags.writeable = False
    return rows


def some_of(points: FloatArray, most: int) -> FloatArray:
    """Return the points or, of more than `most`, a random part."""
    return points if len(points) <= most else points[_drawn(len(points), most)]


def crowding(points: FloatArray, low: FloatArray, side: float, most: int = _COUNTED) -> float:
    """Return how many points are in a point's block of this side, on average: each is compared with about as many.

    Of more than `most` points, it is estimated from a part.
    """
    n, points = len(points), some_of(points, most)
    blocks = np.zeros(len(points), dtype=np.int64)
    for column, least in zip(points.T, low, strict=True):
        block = ((column - least) / side).astype(np.int64)
        blocks = blocks * (int(block.max()) + 1) + block
    sparse = blocks.max() > _MOST_BINS_A_POINT * len(points)
    counts = np.unique(blocks, return_counts=True)[1] if sparse else np.bincount(blocks)
    return (float(np.square(counts, dtype=np.float64).sum() / len(points)) - 1.0) * n / len(points) + 1.0


def finer_where_crowded(
    points: FloatArray, low: FloatArray, extent: FloatArray, spacing: float, fixed: bool = False
) -> float:
    """Refine the spacing as long as this saves more time on near pairs than the additional nodes take.

    The grid of `fixed` points is built once and read often, so it is refined in smaller steps and to more nodes.
    """
    reads, step, widest = _FIXED_POINTS if fixed else _MOVING_POINTS

    def cost(width: float) -> float:
        nodes = float(np.prod(np.maximum(extent / width, 16.0)))
        return _TIME_OF_NODE * nodes + reads * _TIME_OF_PAIR * len(points) * crowding(points, low, BLOCK_NODES * width)

    current = cost(spacing)
    while float(extent.max()) < step * widest * spacing:
        refined = cost(step * spacing)
        if refined >= current:
            break
        spacing, current = step * spacing, refined
    return spacing


def tiled_spacings(
    points: FloatArray, low: FloatArray, extent: FloatArray, dense: float, least: float, core: int, fits: bool
) -> list[float]:
    """Return the spacings of a grid in tiles and of its coarser ones, each four times the one before; [] for none.

    There are none if a grid of the whole map, of spacing `dense`, takes less time and `fits`: at most 4,096 nodes per
    side. `least` is the spacing that resolves the function without near pairs, or 0; `core` are the nodes along a side
    of a tile without its margins.
    """
    some = some_of(points, _SOME_POINTS)

    @cache
    def page(width: float) -> tuple[float, int]:
        """Return the time of the grids from this spacing on, and the number of tiled grids."""
        nodes = float(np.prod(extent / width + 2.0 * COARSER))
        whole = _TIME_OF_NODE * nodes if float(extent.max()) < LARGEST * width else np.inf
        if nodes < TILE**2 * COARSER**2:
            return whole, 0
        beyond, n_levels = page(COARSER * width)
        nodes = TILE**2 * n_tiles(some, low, core * width)
        tiled = _TIME_OF_TILED_POINT * len(points) + _TIME_OF_TILE_NODE * nodes + beyond
        return (tiled, n_levels + 1) if tiled < whole else (whole, 0)

    @cache
    def sharing(width: float) -> float:
        return crowding(points, low, BLOCK_NODES * width, _SOME_POINTS)

    def near(width: float) -> float:
        return _TIME_OF_PAIR * len(points) * sharing(width) if width > least else 0.0

    usual = _TIME_OF_NODE * float(np.prod(extent / dense)) + near(dense)
    if not fits or (dense <= least and sharing(dense) > _CROWDED):
        usual = np.inf
    if usual < _WORTH_A_LOOK:
        return []
    best, spacing = (np.inf, 0, dense), dense
    for _ in range(_MOST_HALVINGS):
        (cost, n_levels), pairs = page(spacing), near(spacing)
        # Forces between points that crowd at nodes are smaller than the errors of a grid that resolves the function.
        is_crowded = spacing <= least and sharing(spacing) > _CROWDED
        best = min(best, (cost + pairs if not is_crowded else np.inf, n_levels, spacing))
        if pairs < _FEW_PAIRS * cost and not is_crowded:
            break
        spacing = max(0.5 * spacing, least) if spacing > least else 0.5 * spacing
    cost, n_levels, spacing = best
    worth = n_levels > 0 and cost < _WORTH_TILES * usual
    return [spacing * COARSER**level for level in range(n_levels + 1)] if worth else []


def add_near(
    points: FloatArray,
    charges: FloatArray,
    edge: float,
    table: FloatArray,
    n_jobs: int | None,
    with_potential: bool,
    potential: FloatArray,
    gradient: FloatArray,
) -> None:
    """Add the correction for pairs nearer than d² = edge to potentials and gradients."""
    cells = NearCells(points, charges, edge, table, n_jobs)
    starts, shape = cells.starts, cells.shape
    sizes = np.empty(shape[0], dtype=np.int64)
    over_rows(int(shape[0]), n_jobs, block_sizes, starts, shape, sizes, at_least=POINTS_WORTH_THREADS)
    # Infinity times the distance of two points in one place would be NaN, also after a product with a charge.
    most = np.finfo(points.dtype).max / (4.0 * max(1.0, float(np.abs(charges).max(initial=0.0))))
    table = np.clip(table, -most, most).astype(points.dtype, copy=False)
    near = (int(sizes.max()), table, points.dtype.type(edge), cells.order, starts, shape, cells.xs, cells.ys, cells.cs)
    over_rows(starts.size - 1, n_jobs, add_near_pairs, *near, with_potential, potential, gradient)
