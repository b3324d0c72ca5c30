"""Near pairs of the particle mesh: their number, and their correction to a smooth cap."""

from __future__ import annotations

import numpy as np

from graphcouple._numba.threads import POINTS_WORTH_THREADS, over_rows
from graphcouple.graphs import FloatArray
from graphcouple.summation.near_cells import NearCells
from graphcouple.summation.radials import RadialFunction

# 4,096² nodes take 0.5 GB: charges, field, spectrum and transform, each of 8 bytes a node.
LARGEST = 4096

# Nanoseconds that a node of the grid and a near pair take, to weigh a finer grid against fewer near pairs; near pairs
# are compared within blocks ten nodes wide. With more than 10,000 near pairs a point, the mesh gives up.
_TIME_OF_NODE, _TIME_OF_PAIR = 15.0, 2.0
_BLOCK_NODES = 10.0
MOST_PAIRS = 10_000.0

# Reads of a grid per point, the factor of one refinement of its spacing, and its largest number of nodes a side. With
# 8 reads for fixed points, UMAP of 100,000 takes 0.6 GB more to place new points in a tenth less time.
_MOVING_POINTS = (1.0, 0.5, 0.8 * LARGEST)
_FIXED_POINTS = (2.0, 0.5**0.5, 0.98 * LARGEST)


def crowding(points: FloatArray, low: FloatArray, spacing: float) -> float:
    """Return about how many points each point is compared with in the search for near pairs, on average."""
    blocks = np.zeros(len(points), dtype=np.int64)
    for column, least in zip(points.T, low, strict=True):
        block = ((column - least) / (_BLOCK_NODES * spacing)).astype(np.int64)
        blocks = blocks * (int(block.max()) + 1) + block
    counts = np.unique(blocks, return_counts=True)[1] if blocks.max() > LARGEST**2 else np.bincount(blocks)
    return float(np.square(counts, dtype=np.float64).sum() / len(points))


def finer_where_crowded(
    points: FloatArray, low: FloatArray, extent: FloatArray, spacing: float, fixed: bool = False
) -> float:
    """Refine the spacing as long as this saves more time on near pairs than the additional nodes take.

    The grid of `fixed` points is built once and read often, so it is refined in smaller steps and to more nodes.
    """
    reads, step, widest = _FIXED_POINTS if fixed else _MOVING_POINTS

    def cost(width: float) -> float:
        nodes = float(np.prod(np.maximum(extent / width, 16.0)))
        return _TIME_OF_NODE * nodes + reads * _TIME_OF_PAIR * len(points) * crowding(points, low, width)

    current = cost(spacing)
    while float(extent.max()) < step * widest * spacing:
        refined = cost(step * spacing)
        if refined >= current:
            break
        spacing, current = step * spacing, refined
    return spacing


def cap_of(radial: RadialFunction, edge: float) -> FloatArray:
    """Return the smooth cap below d² = edge: the cubic in d² that matches three derivatives there."""
    h = 1e-2 * edge
    s = edge + h * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    slope = np.asarray(radial.slope(s), dtype=np.float64)
    first = (slope[0] - 8.0 * slope[1] + 8.0 * slope[3] - slope[4]) / (12.0 * h)
    second = (-slope[0] + 16.0 * slope[1] - 30.0 * slope[2] + 16.0 * slope[3] - slope[4]) / (12.0 * h**2)
    value = float(radial.potential(np.array([edge]))[0])
    return np.array([edge, value, slope[2], first / 2.0, second / 6.0])


def near_table(radial: RadialFunction, cap: FloatArray) -> FloatArray:
    """Return the table of the slope and the value of a radial function minus its cap."""
    from graphcouple._numba.tables import places, tabulate

    s = places(cap[0])
    u = s - cap[0]
    smooth = cap[1] + u * (cap[2] + u * (cap[3] + u * cap[4]))
    tangent = cap[2] + u * (2.0 * cap[3] + u * 3.0 * cap[4])
    return np.hstack([tabulate(radial.slope(s) - tangent), tabulate(radial.potential(s) - smooth)])


def in_one_place(radial: RadialFunction, charges: FloatArray, n_dims: int) -> tuple[FloatArray, FloatArray]:
    """Return the potentials and gradients of sets of charges where all distances are zero."""
    others = charges.sum(axis=1, keepdims=True) - charges
    return others * float(radial.potential(np.zeros(1))[0]), np.zeros((*charges.shape, n_dims))


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
    from graphcouple._numba.near import add_near_pairs, block_sizes

    cells = NearCells(points, charges, edge, table, n_jobs)
    starts, shape = cells.starts, cells.shape
    sizes = np.empty(shape[0], dtype=np.int64)
    over_rows(int(shape[0]), n_jobs, block_sizes, starts, shape, sizes, at_least=POINTS_WORTH_THREADS)
    table = table.astype(points.dtype, copy=False)
    near = (int(sizes.max()), table, points.dtype.type(edge), cells.order, starts, shape, cells.xs, cells.ys, cells.cs)
    over_rows(starts.size - 1, n_jobs, add_near_pairs, *near, with_potential, potential, gradient)
