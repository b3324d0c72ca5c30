"""A tree of cells over points in two or three dimensions, and sums over it."""

from __future__ import annotations

import numpy as np

from graphcouple._numba import formulas as _formulas  # noqa: F401  registers the formula type
from graphcouple._numba.jit import jit

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
    n_cells = 1
    c = 0
    while c < n_cells:
        n_children[c] = 0
        child[c] = n_cells
        if last[c] - first[c] > leaf_size and level[c] < LEVELS:
            shift = n_dims * (LEVELS - 1 - level[c])
            begin = first[c]
            while begin < last[c]:
                octant = keys[begin] >> shift
                low, high = begin, last[c]
                while low < high:
                    middle = (low + high) // 2
                    if keys[middle] >> shift == octant:
                        low = middle + 1
                    else:
                        high = middle
                first[n_cells], last[n_cells], level[n_cells] = begin, low, level[c] + 1
                n_children[c] += 1
                n_cells += 1
                begin = low
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
            low = np.inf
            high = -np.inf
            for i in range(first[c], last[c]):
                low = min(low, points[i, a])
                high = max(high, points[i, a])
            sq_size[c] += (high - low) * (high - low)


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
    force = np.empty(n_dims)
    for i in range(start, stop):
        total = 0.0
        force[:] = 0.0
        stack[0] = 0
        depth = 1
        while depth > 0:
            depth -= 1
            c = stack[depth]
            sq_dist = 0.0
            for a in range(n_dims):
                sq_dist += (points[i, a] - centre[c, a]) ** 2
            inside = first[c] <= i < last[c]
            if not inside and sq_size[c] <= sq_angle * (sq_dist + sq_length):
                total += charge[c] * radial.potential(sq_dist)
                pull = 2.0 * charge[c] * radial.slope(sq_dist)
                for a in range(n_dims):
                    force[a] += pull * (points[i, a] - centre[c, a])
            elif n_children[c] > 0:
                for k in range(n_children[c]):
                    stack[depth] = child[c] + k
                    depth += 1
            else:
                for j in range(first[c], last[c]):
                    if j != i:
                        near = 0.0
                        for a in range(n_dims):
                            near += (points[i, a] - points[j, a]) ** 2
                        total += charges[j] * radial.potential(near)
                        pull = 2.0 * charges[j] * radial.slope(near)
                        for a in range(n_dims):
                            force[a] += pull * (points[i, a] - points[j, a])
        potential[i] = total
        for a in range(n_dims):
            gradient[i, a] = force[a]
