"""Tables of a function of d², linear between places 1/128 of an octave apart, at the same cost for every kernel.

A table is accurate to about 1e-5 of a function that is smooth on a logarithmic scale, as kernels are; a table of cubics
is accurate to 1e-9.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from graphcouple._numba.blocks import fill
from graphcouple._numba.elementary import _bits, _strict
from graphcouple._numba.jit import OPTIONS

# A double's leading bits, its exponent and the first of its significand, number the places of the table.
_PER_OCTAVE_BITS = 7
_SHIFT = 52 - _PER_OCTAVE_BITS
_REST = np.int64((1 << _SHIFT) - 1)
_LOWEST = 2.0**-124
_FIRST = np.int64(np.float64(_LOWEST).view(np.int64) >> _SHIFT)

# The same for single precision.
_SHIFT_SINGLE = np.int32(23 - _PER_OCTAVE_BITS)
_REST_SINGLE = np.int32((1 << (23 - _PER_OCTAVE_BITS)) - 1)
_STEP_SINGLE = np.float32(1.0 / (1 << (23 - _PER_OCTAVE_BITS)))
_LOWEST_SINGLE = np.float32(_LOWEST)
_FIRST_SINGLE = np.int32(_LOWEST_SINGLE.view(np.int32) >> _SHIFT_SINGLE)

# Largest relative error of cubics; for smooth functions it is 1e-9.
_INEXACT = 1e-8
# Below this squared distance, formulas cap infinite values.
_EXACT_FROM = 1e-25

# Larger squared distances count as this one.
HIGHEST = 2.0**60


def places(highest=HIGHEST):
    """Return the squared distances from 2^−124 to beyond `highest` at which a table needs the function."""
    last = int(np.float64(highest).view(np.int64) >> _SHIFT) + 2
    return (np.arange(int(_FIRST), last + 1, dtype=np.int64) << _SHIFT).view(np.float64)


def tabulate(slopes, values):
    """Return the table of a function with these slopes and values at `places`, each before its change to the next."""
    return np.column_stack([slopes[:-1], np.diff(slopes), values[:-1], np.diff(values)])


def _place(sq_dist):
    """Return the number of the place below a squared distance, and the fraction of the way to the next place."""


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
    """Interpolate the function in two columns of a table; outside the table, return the first or the last entry.

    The table must have the precision of `sq_dist`.
    """
    place, fraction = _place(sq_dist)
    at = min(place, table.shape[0] - 1)
    return table[at, column] + fraction * table[at, column + 1]


@_strict
def look_up_smooth(table, sq_dist):
    """Return the function of a table of cubics, in doubles; see `cubics`."""
    place, fraction = _place(sq_dist)
    at = min(place, table.shape[0] - 1)
    return table[at, 0] + fraction * (table[at, 1] + fraction * (table[at, 2] + fraction * table[at, 3]))


def cubics(function):
    """Return the table of a function of d² between `places` by a cubic spline; None if the spline is not exact.

    It is exact if the function is finite everywhere, at zero too, and the error halfway between places beyond
    d² = 1e-25 is below 1e-8 times the function there, or times its largest value, at most 1.
    """
    from scipy.interpolate import CubicSpline

    s = places()
    gaps = np.diff(s)
    values, halfway, at_zero = (np.asarray(function(at), dtype=float) for at in (s, s[:-1] + 0.5 * gaps, np.zeros(1)))
    if not (np.isfinite(values).all() and np.isfinite(at_zero).all()):
        return None
    table = np.ascontiguousarray((CubicSpline(s, values).c[::-1] * gaps ** np.arange(4)[:, None]).T)
    error = np.abs(table @ np.array([1.0, 0.5, 0.25, 0.125]) - halfway)
    bound = _INEXACT * np.maximum(np.abs(halfway), min(np.abs(values).max(), 1.0))
    return table if (error <= bound)[s[:-1] >= _EXACT_FROM].all() else None


class Linear(NamedTuple):
    """A table that is linear between places, of the values and slopes of a radial function; see `table_of`."""

    table: np.ndarray


@overload(fill, jit_options=OPTIONS)
def _fill_from_table(source, with_slopes, sq_dist, filled):
    def linear(source, with_slopes, sq_dist, filled):
        column = 0 if with_slopes else 2
        for j in range(sq_dist.size):
            filled[j] = look_up(source.table, sq_dist[j], column)

    def smooth(source, with_slopes, sq_dist, filled):
        for j in range(sq_dist.size):
            filled[j] = look_up_smooth(source, sq_dist[j])

    if getattr(source, "instance_class", None) is Linear:
        return linear
    return smooth if isinstance(source, types.Array) else None


@lru_cache(maxsize=8)
def table_of(radial):
    """Return the table of a radial function: its slope in columns 0 and 1, its value in columns 2 and 3."""
    s = places()
    return Linear(tabulate(*(np.asarray(f(s), dtype=np.float64) for f in (radial.slope, radial.potential))))
