"""Sums over near pairs, which the particle mesh cannot resolve, through a list of cells."""

import numpy as np

from graphcouple._numba.jit import jit
from graphcouple._numba.tables import look_up


@jit
def folded(cell, n_cells):
    """Return the place of a row or column of cells when all are folded to `n_cells`, to and fro."""
    at = cell % (2 * n_cells)
    return min(at, 2 * n_cells - 1 - at)


@jit
def fill_cells(start, stop, Z, low, side, shape, cells):
    """Fill the cell of each point, row by row of a folded page of square cells."""
    for i in range(start, stop):
        row = folded(int((Z[i, 0] - low[0]) / side), shape[0])
        column = folded(int((Z[i, 1] - low[1]) / side), shape[1]) if Z.shape[1] > 1 else 0
        cells[i] = row * shape[1] + column


@jit
def fill_tiles(start, stop, Z, low, side, width, tiles):
    """Fill the square tile of each point, row by row of a page with a border of empty tiles."""
    for i in range(start, stop):
        tiles[i] = (int((Z[i, 0] - low[0]) / side) + 1) * width + int((Z[i, 1] - low[1]) / side) + 1


@jit
def take_in_order(start, stop, order, Z, charges, xs, ys, cs):
    """Fill coordinates and charges in the order of the cells, so that near points are near in memory."""
    for s in range(start, stop):
        i = order[s]
        xs[s] = Z[i, 0]
        ys[s] = Z[i, 1] if Z.shape[1] > 1 else 0.0
        for k in range(charges.shape[0]):
            cs[k, s] = charges[k, i]


@jit
def add_in_order(start, stop, order, sums, forces, potential, gradient):
    """Add potentials and gradients, which are in this order of the points, to the results of all points."""
    for s in range(start, stop):
        i = order[s]
        for k in range(sums.shape[0]):
            potential[k, i] += sums[k, s]
            gradient[k, i, 0] += forces[k, s, 0]
            gradient[k, i, 1] += forces[k, s, 1]


@jit
def _sums(table, edge, me, xs, ys, c, with_potential):
    """Return the potential and the force at the point `me` of a block, from one set of charges."""
    x, y = xs[me], ys[me]
    zero = xs.dtype.type(0.0)
    total, fx, fy = zero, zero, zero
    for j in range(xs.size):
        dx, dy = x - xs[j], y - ys[j]
        sq_dist = dx * dx + dy * dy
        near = sq_dist < edge and j != me
        weight = c[j] * look_up(table, sq_dist, 0) if near else zero
        if with_potential:
            total += c[j] * look_up(table, sq_dist, 2) if near else zero
        fx += weight * dx
        fy += weight * dy
    return total, fx, fy


@jit
def _sums_of_two(table, edge, me, xs, ys, c, other, with_potential):
    """Return the potentials and forces at the point `me` of a block, from two sets of charges."""
    x, y = xs[me], ys[me]
    zero = xs.dtype.type(0.0)
    total, fx, fy = zero, zero, zero
    other_total, other_fx, other_fy = zero, zero, zero
    for j in range(xs.size):
        dx, dy = x - xs[j], y - ys[j]
        sq_dist = dx * dx + dy * dy
        near = sq_dist < edge and j != me
        slope = look_up(table, sq_dist, 0) if near else zero
        wx, wy = slope * dx, slope * dy
        fx += c[j] * wx
        fy += c[j] * wy
        if with_potential:
            value = look_up(table, sq_dist, 2) if near else zero
            total += c[j] * value
            other_total += other[j] * value
        other_fx += other[j] * wx
        other_fy += other[j] * wy
    return total, fx, fy, other_total, other_fx, other_fy


@jit
def _gather_block(starts, row, column, n_rows, n_columns, xs, ys, cs, x, y, c):
    """Copy the points of the 25 cells around one into buffers; return their number and where the central cell begins.

    Coordinates are relative to the cell's first point, so that single precision resolves distances within the block.
    """
    origin = starts[row * n_columns + column]
    count, own = 0, 0
    for r in range(max(row - 2, 0), min(row + 3, n_rows)):
        first = starts[r * n_columns + max(column - 2, 0)]
        last = starts[r * n_columns + min(column + 3, n_columns)]
        if r == row:
            own = count + starts[r * n_columns + column] - first
        for t in range(first, last):
            x[count] = xs[t] - xs[origin]
            y[count] = ys[t] - ys[origin]
            for k in range(cs.shape[0]):
                c[k, count] = cs[k, t]
            count += 1
    return count, own


@jit
def block_sizes(start, stop, starts, shape, sizes):
    """Fill the largest number of points in 25 cells, for each row of cells."""
    n_rows, n_columns = shape[0], shape[1]
    for row in range(start, stop):
        largest = 0
        for column in range(n_columns):
            if starts[row * n_columns + column + 1] == starts[row * n_columns + column]:
                continue
            count = 0
            for r in range(max(row - 2, 0), min(row + 3, n_rows)):
                count += starts[r * n_columns + min(column + 3, n_columns)] - starts[r * n_columns + max(column - 2, 0)]
            largest = max(largest, count)
        sizes[row] = largest


@jit
def _add(sums, set_, i, potential, gradient):
    potential[set_, i] += sums[0]
    gradient[set_, i, 0] += 2.0 * sums[1]
    if gradient.shape[2] > 1:
        gradient[set_, i, 1] += 2.0 * sums[2]


@jit
def add_near_pairs(
    start, stop, max_points, table, edge, order, starts, shape, xs, ys, cs, with_potential, potential, gradient
):
    """Add, over pairs with d² below `edge`, a tabulated function, and twice another times z_i − z_j.

    Cells are half as wide as the root of the edge; `start` and `stop` are cells. `xs`, `ys` and `cs`, of one row for
    each set of charges, are in the order of the cells, and at most `max_points` lie in 25 neighbouring cells. Sums
    have the precision of the table.
    """
    n_rows, n_columns = shape[0], shape[1]
    n_sets = cs.shape[0]
    x, y = np.empty(max_points, table.dtype), np.empty(max_points, table.dtype)
    c = np.empty((n_sets, max_points), table.dtype)
    for cell in range(start, stop):
        if starts[cell] == starts[cell + 1]:
            continue
        row, column = cell // n_columns, cell % n_columns
        count, own = _gather_block(starts, row, column, n_rows, n_columns, xs, ys, cs, x, y, c)
        for s in range(starts[cell], starts[cell + 1]):
            i = order[s]
            me = own + s - starts[cell]
            for k in range(0, n_sets - 1, 2):
                two = c[k, :count], c[k + 1, :count]
                sums = _sums_of_two(table, edge, me, x[:count], y[:count], *two, with_potential)
                _add(sums[:3], k, i, potential, gradient)
                _add(sums[3:], k + 1, i, potential, gradient)
            if n_sets % 2:
                last = _sums(table, edge, me, x[:count], y[:count], c[n_sets - 1, :count], with_potential)
                _add(last, n_sets - 1, i, potential, gradient)


@jit
def add_band(start, stop, tiles, own, runs, reach, table, places, charges, sums, forces):
    """Fill potentials and gradients at the points of sparse tiles: sums of a tabulated function over pairs.

    `own` and `runs` are the first and last points of each tile, and of the three runs of tiles around it, in the order
    of the tiles.
    """
    n_sets = charges.shape[0]
    for at in range(start, stop):
        t = tiles[at]
        for i in range(own[0, t], own[1, t]):
            for k in range(n_sets):
                sums[k, i] = forces[k, i, 0] = forces[k, i, 1] = 0.0
            for r in range(runs.shape[0]):
                for j in range(runs[r, 0, t], runs[r, 1, t]):
                    dx = np.float64(places[i, 0] - places[j, 0])
                    dy = np.float64(places[i, 1] - places[j, 1])
                    sq_dist = dx * dx + dy * dy
                    if sq_dist < reach and j != i:
                        value = look_up(table, sq_dist, 2)
                        slope = 2.0 * look_up(table, sq_dist, 0)
                        for k in range(n_sets):
                            sums[k, i] += charges[k, j] * value
                            forces[k, i, 0] += charges[k, j] * slope * dx
                            forces[k, i, 1] += charges[k, j] * slope * dy
