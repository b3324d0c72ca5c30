"""A radial function on a grid, and its transform, corrected for the splines that spread and gather charges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphcouple.graphs import FloatArray
from graphcouple.summation.near_pairs import cap_of, near_table
from graphcouple.summation.radials import RadialFunction


class Transform(NamedTuple):
    """The radial function on a grid: its transform, corrected for splines, and a unit charge's own potential.

    `graphcouple._numba.mesh.gather` explains the coefficients `own` of this potential. `near` is the table for near
    pairs.
    """

    values: FloatArray
    own: FloatArray
    padded: tuple[int, int]
    near: FloatArray | None


class Grid(NamedTuple):
    """The nodes of a grid, and the precision of its sums."""

    origin: FloatArray
    spacing: float
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    edge: float | None
    """The squared distance below which pairs are near; None if the grid resolves all pairs."""


def kernel_transform(radial: RadialFunction, grid: Grid, workers: int) -> Transform:
    """Return the transform of a radial function on a grid, computed by `workers` threads."""
    from scipy.fft import dctn, next_fast_len

    # An even length of at least twice the grid keeps the images of a periodic convolution apart.
    half = [next_fast_len(size, real=True) for size in grid.shape]
    offsets = [np.square(grid.spacing * np.arange(size + 1)) for size in half]
    sq_dist = offsets[0][:, None] + offsets[1][None]
    near = None
    if grid.edge is None:
        values = radial.potential(sq_dist)
    else:
        cap = cap_of(radial, grid.edge)
        near = near_table(radial, cap)
        u = np.minimum(sq_dist, cap[0]) - cap[0]
        smooth = cap[1] + u * (cap[2] + u * (cap[3] + u * cap[4]))
        values = np.where(u < 0.0, smooth, radial.potential(np.maximum(sq_dist, cap[0])))
    del sq_dist
    # The transform of an even array is a cosine transform of its quarter.
    spectrum = dctn(values, type=1, overwrite_x=True, workers=workers)
    del values
    for axis, size in enumerate(half):
        response = np.square((4.0 + 2.0 * np.cos(np.pi * np.arange(size + 1) / size)) / 6.0)
        spectrum /= response[:, None] if axis == 0 else response
    to_origin = [_inverse_cosines(size) for size in half]
    near_origin = to_origin[0] @ spectrum @ to_origin[1].T
    whole = np.concatenate([spectrum, spectrum[-2:0:-1]]).astype(grid.dtype)
    own = _OVERLAPS.T @ near_origin @ _OVERLAPS
    return Transform(whole, own, (2 * half[0], 2 * half[1]), near)


def _inverse_cosines(size: int) -> FloatArray:
    """Return the first rows of the inverse of the cosine transform of size + 1 values."""
    waves = np.cos(np.pi * np.outer(np.arange(4), np.arange(size + 1)) / size) / size
    waves[:, [0, -1]] *= 0.5
    return waves


def _overlaps() -> FloatArray:
    """Return, for m = 0 to 3, the coefficients of Σ w_k w_p over nodes m apart, in powers of (t − ½)².

    The w are the four cubic B-splines at fraction t of a cell; both directions count.
    """
    t = np.polynomial.Polynomial([0.5, 1.0])
    r = 1.0 - t
    w = [r**3 / 6.0, (3.0 * t**3 - 6.0 * t**2 + 4.0) / 6.0, (3.0 * r**3 - 6.0 * r**2 + 4.0) / 6.0, t**3 / 6.0]
    sums = [sum((w[k] * w[k + m] for k in range(4 - m)), start=0.0 * t) * (2.0 if m else 1.0) for m in range(4)]
    # Odd powers cancel: the splines are mirror images of each other.
    return np.array([np.pad(total.coef, (0, 7 - total.coef.size))[::2] for total in sums])


_OVERLAPS = _overlaps()
