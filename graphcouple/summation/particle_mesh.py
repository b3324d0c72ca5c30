"""Particle mesh: charges on a grid, one convolution by FFT, potentials and forces back from the same grid."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphcouple._numba.threads import effective_n_jobs, over_rows
from graphcouple._validation import check_integer, check_positive
from graphcouple.graphs import FloatArray
from graphcouple.summation.base import Summation, register
from graphcouple.summation.radials import RadialFunction

MESH_FROM = 2000
"""Number of points above which the particle mesh replaces exact sums: O(n²) then exceeds the cost of a grid."""

# tests/test_particle_mesh.py checks that forces are then accurate to 1e-2 for every kernel of the package.
_SPACING = 1.0 / 3.0

# A cubic B-spline reaches two nodes; one more keeps rounding inside the grid.
_MARGIN = 3

# Rows of a band; threads write to every second band. Wider than a spline's reach of 4, with few points in each.
_BAND = 8

# 4,096² nodes take 0.5 GB: charges, field, spectrum and transform, each of 8 bytes a node.
_LARGEST = 4096

# Columns transformed at once: 32 of 4,096 doubles take 1 MB, which fits in a level 2 cache.
_STRIP = 32

# On a grid this few lengths wide the function hardly varies, and single-precision rounding swamps its slopes.
_FLAT_LENGTHS = 4.0

# Cells along a side, per √n points. If points are spread evenly, about π · 4² / 2² = 13 of them lie within the four
# cells where pairs are summed one by one. With softening within three cells, it is about π · 3² / 1² = 28.
_CELLS_FOR_NEAR = 2.0
_CELLS_IF_SOFT = 1.0


class _Transform(NamedTuple):
    """The radial function on a grid: its transform, corrected for splines, and a unit charge's own potential.

    See `graphcouple._numba.mesh.gather` for the coefficients of the latter.
    """

    values: FloatArray
    own: FloatArray
    padded: tuple[int, int]


class _Workspace(NamedTuple):
    """Memory for one convolution, kept because allocating it each time is expensive."""

    charges: FloatArray
    spectrum: NDArray[np.complexfloating[Any, Any]]
    field: FloatArray


class _Grid(NamedTuple):
    origin: FloatArray
    spacing: float
    shape: tuple[int, int]
    dtype: np.dtype[Any]


@register("particle_mesh")
class ParticleMesh(Summation):
    """Sums over all pairs in O(n + G log G) by a grid of G nodes; embeddings of one or two dimensions.

    Charges are spread by cubic B-splines and convolved with the radial function by FFT. Its transform is divided by
    the square of the splines' own, so that grid values are interpolated. The potential and its gradient are both read
    off one grid, by the splines and their derivatives. The contribution of a point's own charge is subtracted exactly.
    A radial function that is not smooth at zero is split: below ``near * spacing``, a polynomial cap in d² replaces it
    on the grid, and the difference is summed over near pairs.

    Potentials have the absolute error `resolution`. If a prior needs the logarithm of a smaller one (a point far from
    all others, prior D, a Gaussian kernel), it falls back on exact sums in the log.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; None means every core. The result is bitwise the same for any number.
    spacing : float, default=0.3333
        Largest distance between grid nodes, in units of the radial function's length (1 for the Student kernel). The
        error of forces falls with about its third power.
    n_cells : int, default=64
        Minimum number of cells along the longer side: a small embedding gets a finer grid.
    near : float, optional
        Reach of the near pairs, in grid spacings, for functions that are not smooth at zero. The default is 4 at the
        default spacing and grows like its inverse square root at finer ones.
    soften : bool, default=False
        Skip the near pairs, so that functions that are not smooth at zero are softened below three times the grid's
        spacing. This saves time when near pairs contribute little compared with all others.

    Raises
    ------
    ValueError
        When the embedding has more than two dimensions, or is so wide that the grid would have more than
        4,096 nodes a side.

    References
    ----------
    Hockney and Eastwood (1988), Computer simulation using particles; Linderman et al. (2019) for t-SNE by FFT.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> from graphcouple.summation.radials import KernelValue
    >>> from graphcouple.summation import Exact, ParticleMesh
    >>> Z = np.random.default_rng(0).normal(size=(500, 2))
    >>> mesh, exact = (s.potential(Z, KernelValue(gc.Student())) for s in (ParticleMesh(), Exact()))
    >>> bool(np.linalg.norm(mesh[1] - exact[1]) < 1e-3 * np.linalg.norm(exact[1]))
    True
    """

    single_from = MESH_FROM

    def __init__(
        self,
        n_jobs: int | None = None,
        *,
        spacing: float = _SPACING,
        n_cells: int = 64,
        near: float | None = None,
        soften: bool = False,
    ) -> None:
        super().__init__(n_jobs)
        self.spacing = check_positive("spacing", spacing)
        self.n_cells = check_integer("n_cells", n_cells, 4)
        self.soften = bool(soften)
        reach = 3.0 if self.soften else 4.0
        self.near = reach * (_SPACING / self.spacing) ** 0.5 if near is None else check_positive("near", near)
        self.resolution = 1e-3 * (self.spacing / _SPACING) ** 2
        self._known: OrderedDict[Any, _Transform] = OrderedDict()
        self._idle: list[_Workspace] = []

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be computed again."""
        return {**self.__dict__, "_known": OrderedDict(), "_idle": []}

    def potential(
        self,
        Z: FloatArray,
        radial: RadialFunction,
        charges: FloatArray | None = None,
        *,
        with_potential: bool = True,
        with_gradient: bool = True,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the potential of charges at the points, and its gradient; see `Summation.potential`."""
        from graphcouple._numba.mesh import gather

        n, n_dims = Z.shape
        if n_dims > 2:
            raise ValueError(
                f"summation='particle_mesh' is for one or two dimensions, but the embedding has {n_dims}; "
                "use 'barnes_hut' or 'exact'."
            )
        points = np.ascontiguousarray(Z)
        c = np.ones(n) if charges is None else np.ascontiguousarray(charges, dtype=np.float64)
        grid = self._grid(points, radial)
        if not _fits(grid):
            raise ValueError(
                f"the embedding spans {np.ptp(points, axis=0).max():.3g}, which needs {max(grid.shape)} grid nodes of "
                f"spacing {grid.spacing:.3g} a side, more than {_LARGEST} (the kernel's length: {radial.length:.3g}); "
                "use summation='barnes_hut', or a wider spacing."
            )
        cap = _cap(radial, (self.near * grid.spacing) ** 2)
        transform = self._transform(radial, grid, cap, grid.dtype)
        work = self._workspace(grid.shape, transform.padded, grid.dtype)
        self._spread(points, c, grid, work.charges)
        field = self._convolve(work, transform)
        potential, gradient = np.empty(n), np.empty((n, n_dims))
        places = (points, grid.origin, grid.spacing)
        over_rows(n, self.n_jobs, gather, *places, c, field, transform.own, potential, gradient)
        self._idle.append(work)
        if cap is not None and not self.soften:
            self._add_near(points, c, radial, cap, potential, gradient)
        return potential, gradient

    def holds(self, Z: FloatArray, radial: RadialFunction) -> bool:
        """Return whether a grid for these points has at most 4,096 nodes a side, 2,097,152 on a line."""
        return _fits(self._grid(Z, radial))

    def _grid(self, points: FloatArray, radial: RadialFunction) -> _Grid:
        low, high = np.array([[float(column.min()), float(column.max())] for column in points.T]).T
        longest = float((high - low).max())
        length = radial.length
        # Near pairs, whether summed one by one or softened, should be few.
        per_root = _CELLS_IF_SOFT if self.soften else _CELLS_FOR_NEAR
        few = 0.0 if radial.smooth_at_zero else per_root * len(points) ** 0.5
        spacing = self.spacing * length
        if 0 < longest < spacing * max(self.n_cells, few):
            # In steps, so that a slowly growing embedding can reuse its grid and the kernel's transform.
            spacing = 2.0 ** (np.floor(8.0 * np.log2(longest / max(self.n_cells, few))) / 8.0)
        # Within a few lengths the function hardly varies, and single precision would lose its slope.
        dtype = points.dtype if longest > _FLAT_LENGTHS * length else np.dtype(np.float64)
        nodes = np.ceil((high - low) / spacing) + 1 + 2 * _MARGIN
        step = 2.0 ** np.maximum(4.0, np.floor(np.log2(nodes / 12.0)))
        nodes = step * np.ceil(nodes / step)
        if points.shape[1] == 1:
            return _Grid(np.array([low[0] - _MARGIN * spacing, _MARGIN]), spacing, (int(nodes[0]), 8), dtype)
        return _Grid(low - _MARGIN * spacing, float(spacing), (int(nodes[0]), int(nodes[1])), dtype)

    def _transform(self, radial: RadialFunction, grid: _Grid, cap: FloatArray | None, dtype: Any) -> _Transform:
        key = (radial, grid.spacing, grid.shape, dtype)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        self._known[key] = _kernel_transform(radial, grid, cap, dtype, effective_n_jobs(self.n_jobs))
        if len(self._known) > 4:
            self._known.popitem(last=False)
        return self._known[key]

    def _workspace(self, shape: tuple[int, int], padded: tuple[int, int], dtype: Any) -> _Workspace:
        """Return a workspace that no other thread uses."""
        while self._idle:
            work = self._idle.pop()
            fits = work.charges.shape == shape and work.spectrum.dtype == np.result_type(dtype, np.complex64)
            if fits and work.spectrum.shape == (shape[0], padded[1] // 2 + 1):
                return work
        whole = np.result_type(dtype, np.complex64)
        # Compiled loops always see grids in double precision, so that they are compiled only once.
        return _Workspace(
            np.empty(shape),
            np.empty((shape[0], padded[1] // 2 + 1), dtype=whole),
            np.empty(shape),
        )

    def _spread(self, points: FloatArray, charges: FloatArray, grid: _Grid, field: FloatArray) -> None:
        from graphcouple._numba.mesh import grid_rows, spread

        rows = np.empty(len(points), dtype=np.int32)
        over_rows(len(points), self.n_jobs, grid_rows, points, grid.origin, grid.spacing, rows)
        order, starts = _sorted(rows, grid.shape[0])
        field[:] = 0.0
        half = -(-(starts.size - 1) // (2 * _BAND))
        places = (points, grid.origin, grid.spacing)
        for parity in (0, 1):
            over_rows(half, self.n_jobs, spread, parity, _BAND, order, starts, *places, charges, field, at_least=2)

    def _convolve(self, work: _Workspace, transform: _Transform) -> FloatArray:
        """Return the free-space convolution on the grid; rows and columns are padded only during their transform."""
        from scipy.fft import fft, ifft, irfft, rfft

        n_rows, n_columns = work.charges.shape
        padded_rows, padded_columns = transform.padded
        spectrum = work.spectrum

        def rows_forward(start: int, stop: int) -> None:
            for a in range(start, stop, _STRIP):
                rows = slice(a, min(a + _STRIP, stop))
                spectrum[rows] = rfft(work.charges[rows].astype(transform.values.dtype), padded_columns, axis=1)

        def columns_through(start: int, stop: int) -> None:
            for a in range(start, stop, _STRIP):
                columns = slice(a, min(a + _STRIP, stop))
                strip = fft(spectrum[:, columns], padded_rows, axis=0)
                strip *= transform.values[:, columns]
                spectrum[:, columns] = ifft(strip, axis=0, overwrite_x=True)[:n_rows]

        def rows_back(start: int, stop: int) -> None:
            for a in range(start, stop, _STRIP):
                rows = slice(a, min(a + _STRIP, stop))
                work.field[rows] = irfft(spectrum[rows], padded_columns, axis=1)[:, :n_columns]

        over_rows(n_rows, self.n_jobs, rows_forward)
        over_rows(spectrum.shape[1], self.n_jobs, columns_through)
        over_rows(n_rows, self.n_jobs, rows_back)
        return work.field

    def _add_near(
        self,
        points: FloatArray,
        charges: FloatArray,
        radial: RadialFunction,
        cap: FloatArray,
        potential: FloatArray,
        gradient: FloatArray,
    ) -> None:
        from graphcouple._numba.mesh import add_near_pairs

        reach = float(np.sqrt(cap[0]))
        at = np.floor((points - points.min(axis=0)) / reach).astype(np.int64)
        shape = np.ones(2, dtype=np.int64)
        shape[: points.shape[1]] = at.max(axis=0) + 1
        cells = at[:, 0] * shape[1] + (at[:, 1] if points.shape[1] > 1 else 0)
        order, starts = _sorted(cells, int(shape.prod()))
        over_rows(
            len(points),
            self.n_jobs,
            add_near_pairs,
            points,
            charges,
            radial,
            cap,
            order,
            cells,
            starts,
            shape,
            potential,
            gradient,
        )


def _fits(grid: _Grid) -> bool:
    # The grid of a line is 8 nodes wide.
    widest = _LARGEST**2 // 8 if grid.shape[1] == 8 else _LARGEST
    return max(grid.shape) <= widest


def _sorted(bins: NDArray[Any], n_bins: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    from graphcouple._numba.mesh import sort_by_bin

    order, starts = np.empty(bins.size, dtype=np.int32), np.empty(n_bins + 1, dtype=np.int64)
    sort_by_bin(bins, n_bins, order, starts)
    return order, starts


def _cap(radial: RadialFunction, edge: float) -> FloatArray | None:
    """Return the smooth cap below d² = edge, the cubic that matches three derivatives there; None if not needed."""
    if radial.smooth_at_zero:
        return None
    h = 1e-2 * edge
    s = edge + h * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    slope = np.asarray(radial.slope(s), dtype=np.float64)
    first = (slope[0] - 8.0 * slope[1] + 8.0 * slope[3] - slope[4]) / (12.0 * h)
    second = (-slope[0] + 16.0 * slope[1] - 30.0 * slope[2] + 16.0 * slope[3] - slope[4]) / (12.0 * h**2)
    value = float(radial.potential(np.array([edge]))[0])
    return np.array([edge, value, slope[2], first / 2.0, second / 6.0])


def _kernel_transform(
    radial: RadialFunction, grid: _Grid, cap: FloatArray | None, dtype: Any, workers: int
) -> _Transform:
    from scipy.fft import dctn, next_fast_len

    # An even length of at least twice the grid keeps the images of a periodic convolution apart.
    half = [next_fast_len(size, real=True) for size in grid.shape]
    offsets = [np.square(grid.spacing * np.arange(size + 1)) for size in half]
    sq_dist = offsets[0][:, None] + offsets[1][None]
    if cap is None:
        values = radial.potential(sq_dist)
    else:
        u = np.minimum(sq_dist, cap[0]) - cap[0]
        smooth = cap[1] + u * (cap[2] + u * (cap[3] + u * cap[4]))
        values = np.where(u < 0.0, smooth, radial.potential(np.maximum(sq_dist, cap[0])))
    # The transform of an even array is a cosine transform of its quarter.
    spectrum = dctn(values, type=1, workers=workers)
    for axis, size in enumerate(half):
        response = np.square((4.0 + 2.0 * np.cos(np.pi * np.arange(size + 1) / size)) / 6.0)
        spectrum /= response[:, None] if axis == 0 else response
    to_origin = [_inverse_cosines(size) for size in half]
    near_origin = to_origin[0] @ spectrum @ to_origin[1].T
    mirrored = np.concatenate([spectrum, spectrum[-2:0:-1]]).astype(dtype)
    return _Transform(mirrored, _OVERLAPS.T @ near_origin @ _OVERLAPS, (2 * half[0], 2 * half[1]))


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
