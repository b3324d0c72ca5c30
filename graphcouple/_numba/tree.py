"""A tree of cells over points in two or three dimensions, and sums over it."""

import numpy as np

from graphcouple._numba.blocks import BLOCK, evaluate
from graphcouple._numba.jit import jit

# Levels of cells: keys of three coordinates fill 60 of 64 bits. The stack holds at most eight children of each level.
LEVELS = 20
_STACK = 8 * LEVELS


@jit
def interleave(start, stop, cells, n_dims, keys):
    """Fill keys with the Morton codes of integer cells: the bits of the coordinates in turn, highest first."""
    for i in range(start, stop):
        key = np.int64(0)
        for bit in range(LEVELS - 1, -1, -1):
            for a in range(n_dims):
                key = (key << 1) | ((cells[i, a] >> bit) & 1)
        keys[i] = key


@jit
def build(keys, n_dims, leaf_size, first, last, level, child, n_children):
    """Split the sorted keys into cells, children after their parents; return the number of cells.

    Cell c holds the points first[c] to last[c]; its children are child[c] to child[c] + n_children[c].
    """
    first[0], last[0], level[0] = 0, keys.size, 0
    n_cells, c = 1, 0
    while c < n_cells:
        n_children[c] = 0
        child[c] = n_cells
        if last[c] - first[c] > leaf_size and level[c] < LEVELS:
            shift = n_dims * (LEVELS - 1 - level[c])
            begin = first[c]
            while begin < last[c]:
                octant = keys[begin] >> shift
                end = begin + np.searchsorted(keys[begin : last[c]], (octant + 1) << shift)
                first[n_cells], last[n_cells], level[n_cells] = begin, end, level[c] + 1
                n_children[c] += 1
                n_cells += 1
                begin = end
        c += 1
    return n_cells


@jit
def summarise(n_cells, points, charges, first, last, centre, charge, sq_size):
    """Fill each cell's charge, centre of charge, and the squared diagonal of its points' bounding box."""
    n_dims = points.shape[1]
    for c in range(n_cells):
        charge[c] = 0.0
        weight = 0.0
        sq_size[c] = 0.0
        for a in range(n_dims):
            centre[c, a] = 0.0
        for i in range(first[c], last[c]):
            charge[c] += charges[i]
            weight += abs(charges[i])
            for a in range(n_dims):
                centre[c, a] += abs(charges[i]) * points[i, a]
        for a in range(n_dims):
            centre[c, a] = centre[c, a] / weight if weight > 0.0 else points[first[c], a]
            low, high = np.inf, -np.inf
            for i in range(first[c], last[c]):
                low = min(low, points[i, a])
                high = max(high, points[i, a])
            sq_size[c] += (high - low) * (high - low)


@jit
def _add(radial, count, away, sq_dist, c, value, slope, force):
    """Add the forces of a block of charges, and return its potential."""
    evaluate(radial, sq_dist[:count], value, slope, True, True)
    total = 0.0
    for s in range(count):
        total += c[s] * value[s]
        slope[s] *= 2.0 * c[s]
    for a in range(force.size):
        there = away[a]
        pull = 0.0
        for s in range(count):
            pull += slope[s] * there[s]
        force[a] += pull
    return total


@jit
def walk(
    start, stop, points, charges, radial, sq_angle, sq_length, first, last, child, n_children, centre, charge, sq_size,
    potential, gradient,
):  # fmt: skip
    """Sum over the tree for the points start to stop: cells seen under a small enough angle count as one charge.

    A cell of diagonal s at distance d counts as one charge if s² ≤ angle² · (d² + `sq_length`) and the point is
    not in it. `sq_length` is zero for radial functions that are not smooth.
    """
    n_dims = points.shape[1]
    stack = np.empty(_STACK, dtype=np.int64)
    away, force = np.empty((n_dims, BLOCK)), np.empty(n_dims)
    sq_dist, c, value, slope = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for i in range(start, stop):
        total = 0.0
        force[:] = 0.0
        # The block holds `count` charges. The next one is written behind them, and may be overwritten.
        count = 0
        stack[0] = 0
        depth = 1
        while depth > 0:
            depth -= 1
            cell = stack[depth]
            far = 0.0
            for a in range(n_dims):
                away[a, count] = points[i, a] - centre[cell, a]
                far += away[a, count] * away[a, count]
            if not first[cell] <= i < last[cell] and sq_size[cell] <= sq_angle * (far + sq_length):
                sq_dist[count], c[count] = far, charge[cell]
                count += 1
            else:
                for k in range(n_children[cell]):
                    stack[depth] = child[cell] + k
                    depth += 1
                for j in range(first[cell], last[cell] if n_children[cell] == 0 else first[cell]):
                    if j == i:
                        continue
                    near = 0.0
                    for a in range(n_dims):
                        away[a, count] = points[i, a] - points[j, a]
                        near += away[a, count] * away[a, count]
                    sq_dist[count], c[count] = near, charges[j]
                    count += 1
                    if count == BLOCK:
                        total += _add(radial, count, away, sq_dist, c, value, slope, force)
                        count = 0
            if count == BLOCK:
                total += _add(radial, count, away, sq_dist, c, value, slope, force)
                count = 0
        potential[i] = total + _add(radial, count, away, sq_dist, c, value, slope, force)
        for a in range(n_dims):
            gradient[i, a] = force[a]
