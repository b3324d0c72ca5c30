"""A radial function on a grid, and its transform, corrected for the splines that spread and gather charges."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.fft import dctn, next_fast_len

from graphcouple._numba.tables import places, tabulate
from graphcouple._numba.threads import effective_n_jobs, over_blocks
from graphcouple.graphs import FloatArray
from graphcouple.summation.radials import RadialFunction

STRIP = 32
"""Rows or columns of a grid done at once: 32 of 4,096 doubles take 1 MB, which fits in a level 2 cache."""

STRIPS_WORTH_THREADS = 16
"""With fewer strips, one thread is faster than several that wait for Python's interpreter lock."""


class Transform(NamedTuple):
    """The radial function on a grid: its transform, corrected for splines, and a unit charge's own potential.

    `graphcouple._numba.mesh.gather` explains the coefficients `own` of this potential. `near` is the table for near
    pairs, `band` the table of a tile's function, which is zero from d² = `reach` on.
    """

    values: FloatArray
    own: FloatArray
    padded: tuple[int, int]
    near: FloatArray | None
    band: FloatArray | None = None
    reach: float = 0.0


class Grid(NamedTuple):
    """The nodes of a grid, and the precision of its sums."""

    origin: FloatArray
    spacing: float
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    edge: float | None
    """The squared distance below which pairs are near; None if the grid resolves all pairs."""
    coarse: Grid | None = None
    """A coarser grid of all points; if set, this grid consists of tiles where points are."""


def kernel_transform(radial: RadialFunction, grid: Grid, n_jobs: int | None) -> Transform:
    """Return the transform of a radial function on a grid."""
    # An even length of at least twice the grid keeps the images of a periodic convolution apart.
    half = (next_fast_len(grid.shape[0], real=True), next_fast_len(grid.shape[1], real=True))
    squares = _squares(half, grid.spacing)
    values = np.empty([len(part) for part in squares])

    def fill(rows: slice) -> None:
        values[rows] = _capped(radial, grid.edge, squares[0][rows, None] + squares[1])

    over_blocks(len(values), STRIP, n_jobs, fill, at_least=STRIPS_WORTH_THREADS)
    return _transform_of(radial, grid, values, half, effective_n_jobs(n_jobs))


def tile_transform(radial: RadialFunction, grid: Grid, reach: float, n_nodes: int) -> Transform:
    """Return the transform of the function minus its cap below d² = `reach`, on a periodic tile."""
    half = (n_nodes // 2, n_nodes // 2)
    rows, columns = _squares(half, grid.spacing)
    sq_dist = rows[:, None] + columns
    values = np.where(sq_dist < reach, _capped(radial, grid.edge, sq_dist) - _capped(radial, reach, sq_dist), 0.0)
    band = _table_below(radial, reach, grid.edge)
    return _transform_of(radial, grid, values, half, 1)._replace(band=band, reach=reach)


def _squares(half: tuple[int, int], spacing: float) -> list[FloatArray]:
    """Return the squared distances of rows, and of columns, from the first."""
    return [np.square(spacing * np.arange(size + 1)) for size in half]


def _capped(radial: RadialFunction, edge: float | None, sq_dist: FloatArray) -> FloatArray:
    """Return the function of squared distances, with a smooth cap below d² = edge."""
    if edge is None:
        return radial.potential(sq_dist)
    smooth = _cap(radial, edge, np.minimum(sq_dist, edge))[0]
    return np.where(sq_dist < edge, smooth, radial.potential(np.maximum(sq_dist, edge)))


def _transform_of(
    radial: RadialFunction, grid: Grid, values: FloatArray, half: tuple[int, int], workers: int
) -> Transform:
    """Return the transform of an even function from a quarter of its values, which is a cosine transform."""
    spectrum = dctn(values, type=1, overwrite_x=True, workers=workers)
    for axis, size in enumerate(half):
        response = np.square((4.0 + 2.0 * np.cos(np.pi * np.arange(size + 1) / size)) / 6.0)
        spectrum /= response[:, None] if axis == 0 else response
    to_origin = [_inverse_cosines(size) for size in half]
    near_origin = to_origin[0] @ spectrum @ to_origin[1].T
    whole = np.empty((2 * half[0], half[1] + 1), dtype=grid.dtype)
    whole[: half[0] + 1], whole[half[0] + 1 :] = spectrum, spectrum[-2:0:-1]
    own = _OVERLAPS.T @ near_origin @ _OVERLAPS
    near = None if grid.edge is None else _table_below(radial, grid.edge)
    return Transform(whole, own, (2 * half[0], 2 * half[1]), near)


def _cap(radial: RadialFunction, edge: float, sq_dist: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values and slopes of the smooth cap below d² = edge, the cubic that matches three derivatives there."""
    h = 1e-2 * edge
    s = edge + h * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    slope = np.asarray(radial.slope(s), dtype=np.float64)
    first = (slope[0] - 8.0 * slope[1] + 8.0 * slope[3] - slope[4]) / (12.0 * h)
    second = (-slope[0] + 16.0 * slope[1] - 30.0 * slope[2] + 16.0 * slope[3] - slope[4]) / (12.0 * h**2)
    value = float(radial.potential(np.array([edge]))[0])
    a, b, c, d = value, slope[2], first / 2.0, second / 6.0
    u = sq_dist - edge
    return a + u * (b + u * (c + u * d)), b + u * (2.0 * c + u * 3.0 * d)


def _table_below(radial: RadialFunction, reach: float, edge: float | None = None) -> FloatArray:
    """Return the table of the slope and the value of the function minus its cap below d² = `reach`; 0 from there on.

    With `edge`, the function itself has a cap below d² = `edge`.
    """
    s = places(reach)
    coarse, tangent = _cap(radial, reach, s)
    far = s if edge is None else np.maximum(s, edge)
    # Powers may overflow on their way to 0.
    with np.errstate(over="ignore"):
        values, slopes = radial.potential(far), radial.slope(far)
        if edge is not None:
            fine, steep = _cap(radial, edge, s)
            values, slopes = np.where(s < edge, fine, values), np.where(s < edge, steep, slopes)
        return tabulate(slopes - tangent, values - coarse)


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
