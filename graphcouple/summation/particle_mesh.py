"""Particle mesh: charges on a grid, one convolution by FFT, potentials and forces back from the same grid."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphcouple._formula import Formula
from graphcouple._validation import check_integer, check_positive
from graphcouple.graphs import FloatArray
from graphcouple.summation._base import Summation, register

_SPACING = 1.0 / 3.0
_MARGIN = 3
_BAND = 8
_LARGEST = 4096


class _Transform(NamedTuple):
    """The radial function on a grid: its transform, and its values near the origin, both as splines need them."""

    values: FloatArray
    near_origin: FloatArray
    padded: tuple[int, int]


class _Grid(NamedTuple):
    origin: FloatArray
    spacing: float
    shape: tuple[int, int]


@register("particle_mesh")
class ParticleMesh(Summation):
    """Sums over all pairs in O(n + G log G) by a grid of G nodes; embeddings of one or two dimensions.

    Charges are spread by cubic B-splines and convolved with the radial function by FFT; its transform is divided by
    the splines' own, squared, so that grid values are interpolated. The potential and its gradient are both read off
    one grid, by the splines and their derivatives. What a point's own charge put on the grid is taken off exactly.
    A radial function that is not smooth at zero is split: a polynomial cap in d² takes its place below
    ``near * spacing``, and the rest is summed over near pairs.

    Potentials have an absolute error, `resolution`. Where a prior needs the logarithm of one that is smaller (a point
    far from all others, prior D, a Gaussian kernel), it falls back on exact sums in the log.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; None means every core. The result has the same bits for any number of them.
    spacing : float, default=0.3333
        Largest distance between grid nodes, in units of the radial function's length: 1 for the Student kernel. The
        error of forces falls with about its third power.
    n_cells : int, default=64
        Fewest cells along the longer side: a small embedding has a finer grid.
    near : float, optional
        Reach of the near pairs, in grid spacings, for functions that are not smooth at zero: 4 at the default spacing,
        and more, like its inverse square root, at a finer one.

    Raises
    ------
    ValueError
        When the embedding has more than two dimensions, or is so large that the grid would have more than
        4,096 nodes a side.

    References
    ----------
    Hockney and Eastwood (1988), Computer simulation using particles; Linderman et al. (2019) for t-SNE by FFT.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> from graphcouple.radials import EdgeWeight
    >>> from graphcouple.summation import Exact, ParticleMesh
    >>> Z = np.random.default_rng(0).normal(size=(500, 2))
    >>> mesh, exact = (s.potential(Z, EdgeWeight(gc.Student())) for s in (ParticleMesh(), Exact()))
    >>> bool(np.linalg.norm(mesh[1] - exact[1]) < 1e-3 * np.linalg.norm(exact[1]))
    True
    """

    def __init__(
        self,
        n_jobs: int | None = None,
        *,
        spacing: float = _SPACING,
        n_cells: int = 64,
        near: float | None = None,
    ) -> None:
        super().__init__(n_jobs)
        self.spacing = check_positive("spacing", spacing)
        self.n_cells = check_integer("n_cells", n_cells, 4)
        self.near = 4.0 * (_SPACING / self.spacing) ** 0.5 if near is None else check_positive("near", near)
        self.resolution = 1e-3 * (self.spacing / _SPACING) ** 2
        self._known: OrderedDict[Any, _Transform] = OrderedDict()

    def potential(
        self,
        Z: FloatArray,
        radial: Formula,
        charges: FloatArray | None = None,
        *,
        with_potential: bool = True,
        with_gradient: bool = True,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the potential of charges at the points, and its gradient; see `Summation.potential`."""
        from graphcouple._numba.mesh import gather
        from graphcouple._numba.threads import over_rows

        n, n_dims = Z.shape
        if n_dims > 2:
            raise ValueError(
                f"summation='particle_mesh' is for one or two dimensions, the embedding has {n_dims}; "
                "use 'barnes_hut' or 'exact'."
            )
        points = np.ascontiguousarray(Z, dtype=np.float64)
        c = np.ones(n) if charges is None else np.ascontiguousarray(charges, dtype=np.float64)
        grid = self._grid(points, self.spacing * getattr(radial, "length", 1.0))
        cap = _cap(radial, (self.near * grid.spacing) ** 2)
        transform = self._transform(radial, grid, cap)
        x = (points[:, 0] - grid.origin[0]) / grid.spacing
        y = (points[:, 1] - grid.origin[1]) / grid.spacing if n_dims > 1 else np.full(n, float(_MARGIN))
        order, starts = _sorted(np.floor(x).astype(np.int32), grid.shape[0])
        field = self._convolve(self._charges_on_grid(x, y, c, order, starts, transform.padded), transform)
        potential, gradient = np.empty(n), np.empty((n, n_dims))
        near_origin = transform.near_origin
        over_rows(n, self.n_jobs, gather, order, x, y, c, field, near_origin, grid.spacing, potential, gradient)
        if cap is not None:
            self._add_near(points, c, radial, cap, potential, gradient)
        return potential, gradient

    def _grid(self, points: FloatArray, widest: float) -> _Grid:
        low, high = points.min(axis=0), points.max(axis=0)
        longest = float((high - low).max())
        spacing = min(widest, longest / self.n_cells) if longest > 0 else widest
        # Sizes come in steps, so that a slowly growing embedding keeps its grid, and the transform of the kernel.
        spacing = 2.0 ** (np.floor(8.0 * np.log2(spacing)) / 8.0)
        cells = np.ceil((high - low) / spacing).astype(int) + 1
        nodes = cells + 2 * _MARGIN
        nodes = 16 * -(-nodes // 16)
        if nodes.max() > _LARGEST:
            raise ValueError(
                f"the embedding spans {longest:.3g}, which takes {nodes.max()} grid nodes of spacing {spacing:.3g} a "
                f"side, more than {_LARGEST}; use summation='barnes_hut', or a wider spacing."
            )
        shape = (int(nodes[0]), int(nodes[1]) if points.shape[1] > 1 else 2 * _MARGIN + 2)
        return _Grid(low - _MARGIN * spacing, float(spacing), shape)

    def _transform(self, radial: Formula, grid: _Grid, cap: FloatArray | None) -> _Transform:
        key = (radial, grid.spacing, grid.shape)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        self._known[key] = _kernel_transform(radial, grid, cap)
        if len(self._known) > 4:
            self._known.popitem(last=False)
        return self._known[key]

    def _charges_on_grid(
        self,
        x: FloatArray,
        y: FloatArray,
        charges: FloatArray,
        order: NDArray[np.int32],
        starts: NDArray[np.int64],
        shape: tuple[int, int],
    ) -> FloatArray:
        from graphcouple._numba.mesh import spread
        from graphcouple._numba.threads import over_rows

        field = np.zeros(shape)
        half = -(-(starts.size - 1) // (2 * _BAND))
        for parity in (0, 1):
            over_rows(half, self.n_jobs, spread, parity, _BAND, order, starts, x, y, charges, field, at_least=2)
        return field

    def _convolve(self, field: FloatArray, transform: _Transform) -> FloatArray:
        from scipy.fft import irfft2, rfft2

        from graphcouple._numba.threads import effective_n_jobs

        workers = effective_n_jobs(self.n_jobs)
        spectrum = rfft2(field, workers=workers, overwrite_x=True)
        spectrum *= transform.values
        return irfft2(spectrum, s=field.shape, workers=workers, overwrite_x=True)

    def _add_near(
        self,
        points: FloatArray,
        charges: FloatArray,
        radial: Formula,
        cap: FloatArray,
        potential: FloatArray,
        gradient: FloatArray,
    ) -> None:
        from graphcouple._numba.mesh import add_near_pairs
        from graphcouple._numba.threads import over_rows

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


def _sorted(bins: NDArray[Any], n_bins: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    from graphcouple._numba.mesh import sort_by_bin

    order, starts = np.empty(bins.size, dtype=np.int32), np.empty(n_bins + 1, dtype=np.int64)
    sort_by_bin(bins, n_bins, order, starts)
    return order, starts


def _cap(radial: Formula, edge: float) -> FloatArray | None:
    """Return the smooth cap below d² = edge: the cubic that matches three derivatives there; None where not needed."""
    if getattr(radial, "smooth_at_zero", False):
        return None
    h = 1e-2 * edge
    s = edge + h * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    slope = np.asarray(radial.slope(s), dtype=np.float64)  # type: ignore[attr-defined]
    first = (slope[0] - 8.0 * slope[1] + 8.0 * slope[3] - slope[4]) / (12.0 * h)
    second = (-slope[0] + 16.0 * slope[1] - 30.0 * slope[2] + 16.0 * slope[3] - slope[4]) / (12.0 * h**2)
    value = float(radial.potential(np.array([edge]))[0])  # type: ignore[attr-defined]
    return np.array([edge, value, slope[2], first / 2.0, second / 6.0])


def _kernel_transform(radial: Formula, grid: _Grid, cap: FloatArray | None) -> _Transform:
    from scipy.fft import dctn, idctn, next_fast_len

    # An even length of at least twice the grid keeps the images of a periodic convolution apart.
    half = [next_fast_len(size, real=True) for size in grid.shape]
    offsets = [np.square(grid.spacing * np.arange(size + 1)) for size in half]
    sq_dist = offsets[0][:, None] + offsets[1][None]
    if cap is None:
        values = radial.potential(sq_dist)  # type: ignore[attr-defined]
    else:
        u = np.minimum(sq_dist, cap[0]) - cap[0]
        smooth = cap[1] + u * (cap[2] + u * (cap[3] + u * cap[4]))
        values = np.where(u < 0.0, smooth, radial.potential(np.maximum(sq_dist, cap[0])))  # type: ignore[attr-defined]
    # The transform of an even array is a cosine transform of its quarter.
    spectrum = dctn(values, type=1)
    for axis, size in enumerate(half):
        response = np.square((4.0 + 2.0 * np.cos(np.pi * np.arange(size + 1) / size)) / 6.0)
        spectrum /= response[:, None] if axis == 0 else response
    near_origin = idctn(spectrum, type=1)[:4, :4].copy()
    mirrored = np.concatenate([spectrum, spectrum[-2:0:-1]])
    return _Transform(mirrored, near_origin, (2 * half[0], 2 * half[1]))
