"""Tables of a function of d², linear between places 1/128 of an octave apart, which cost the same for every kernel.

A table is accurate to about 1e-5 of the function where that is smooth on a logarithmic scale, as kernels are.
"""

from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import overload

from graphcouple._numba.elementary import _bits, _strict
from graphcouple._numba.jit import jit
from graphcouple._numba.low_rank import fill_charges, fill_distances
from graphcouple._numba.pairs import _BLOCK

# A double's leading bits, its exponent and the first of its significand, number the places of the table.
_PER_OCTAVE_BITS = 7
_SHIFT = 52 - _PER_OCTAVE_BITS
_REST = np.int64((1 << _SHIFT) - 1)
_LOWEST = 2.0**-124
_FIRST = np.int64(np.float64(_LOWEST).view(np.int64) >> _SHIFT)

# The same of a single's bits.
_SHIFT_SINGLE = np.int32(23 - _PER_OCTAVE_BITS)
_REST_SINGLE = np.int32((1 << (23 - _PER_OCTAVE_BITS)) - 1)
_STEP_SINGLE = np.float32(1.0 / (1 << (23 - _PER_OCTAVE_BITS)))
_LOWEST_SINGLE = np.float32(_LOWEST)
_FIRST_SINGLE = np.int32(_LOWEST_SINGLE.view(np.int32) >> _SHIFT_SINGLE)

# Squared distances beyond this are read as this.
HIGHEST = 2.0**60


def places(highest=HIGHEST):
    """Return the squared distances from 2^−124 to beyond `highest` at which a table needs the function."""
    last = int(np.float64(highest).view(np.int64) >> _SHIFT) + 2
    return (np.arange(int(_FIRST), last + 1, dtype=np.int64) << _SHIFT).view(np.float64)


def tabulate(values):
    """Return the table of a function with these values at `places`: values, and differences to the next."""
    return np.column_stack([values[:-1], np.diff(values)])


def _place(sq_dist):
    """Return the number of the place below a squared distance, and which share of the way to the next it is."""


@overload(_place, inline="always")
def _place_of(sq_dist):
    if sq_dist == types.float32:

        def single(sq_dist):
            bits = _bits(max(sq_dist, _LOWEST_SINGLE))
            return (bits >> _SHIFT_SINGLE) - _FIRST_SINGLE, np.float32(bits & _REST_SINGLE) * _STEP_SINGLE

        return single

    def double(sq_dist):
        bits = _bits(max(sq_dist, _LOWEST))
        return (bits >> _SHIFT) - _FIRST, np.float64(bits & _REST) * (1.0 / (1 << _SHIFT))

    return double


@_strict
def look_up(table, sq_dist, column):
    """Return the function in two columns of a table, below its first place as at it, and beyond its last as there.

    Singles need a table of singles, doubles one of doubles.
    """
    place, fraction = _place(sq_dist)
    at = min(place, table.shape[0] - 1)
    return table[at, column] + fraction * table[at, column + 1]


@jit
def edge_rows_from_table(
    start, stop, points, table, indptr, indices, weights, with_potential, with_gradient, potential, gradient
):
    """Like `graphcouple._numba.pairs.edge_rows_2d`, with the slope and the function from a table."""
    for i in range(start, stop):
        total = 0.0
        fx = 0.0
        fy = 0.0
        for e in range(np.int64(indptr[i]), np.int64(indptr[i + 1])):
            j = indices[e]
            dx = np.float64(points[i, 0] - points[j, 0])
            dy = np.float64(points[i, 1] - points[j, 1])
            sq_dist = dx * dx + dy * dy
            if with_potential:
                total += weights[e] * look_up(table, sq_dist, 2)
            if with_gradient:
                weight = weights[e] * look_up(table, sq_dist, 0)
                fx += weight * dx
                fy += weight * dy
        if with_potential:
            potential[i] = total
        if with_gradient:
            gradient[i, 0] = 2.0 * fx
            gradient[i, 1] = 2.0 * fy


@jit
def force_rows(start, stop, coords, table, left, right, gradient):
    """Fill ∇Φ_i = Σ_{j≠i} c_ij 2 φ'(d²_ij) (z_i − z_j), c_ij = Σ_s left_is right_sj, with φ' from a table.

    Like `graphcouple._numba.low_rank.low_rank_rows`: `coords` has shape (q, n), `left` (n, rank) and `right` (rank, n).
    """
    n_dims, n_points = coords.shape
    sq_dist, c = np.empty(_BLOCK), np.empty(_BLOCK)
    for i in range(start, stop):
        gradient[i] = 0.0
        for b in range(0, n_points, _BLOCK):
            m = min(_BLOCK, n_points - b)
            fill_distances(coords, i, b, m, sq_dist)
            fill_charges(left[i], right, b, m, c)
            for j in range(m):
                c[j] *= look_up(table, sq_dist[j], 0)
            for a in range(n_dims):
                here = coords[a, i]
                there = coords[a, b : b + m]
                pull = 0.0
                for j in range(m):
                    pull += c[j] * (here - there[j])
                gradient[i, a] += 2.0 * pull


def table_of(radial, highest=HIGHEST):
    """Return the table of a radial function: its slope in columns 0 and 1, itself in columns 2 and 3."""
    s = places(highest)
    return np.hstack([tabulate(np.asarray(f(s), dtype=np.float64)) for f in (radial.slope, radial.potential)])
