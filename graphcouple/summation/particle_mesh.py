"""Particle mesh: charges are spread on a grid and convolved by FFT; the grid gives potentials and forces."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import fft, ifft, irfft, rfft

from graphcouple._numba.mesh import gather, grid_rows, spread
from graphcouple._numba.threads import POINTS_WORTH_THREADS, over_blocks, over_rows
from graphcouple._support.validation import changed, check_integer, check_positive
from graphcouple.graphs import FloatArray
from graphcouple.summation.base import SummationOfSets, register
from graphcouple.summation.fields import ExactField, Field, MeshField
from graphcouple.summation.near_cells import NearCells, bounds, sorted_by_bin
from graphcouple.summation.near_pairs import (
    BLOCK_NODES,
    LARGEST,
    MOST_PAIRS,
    add_near,
    crowding,
    finer_where_crowded,
    tiled_spacings,
)
from graphcouple.summation.radials import RadialFunction
from graphcouple.summation.tiles import MOST_FIELDS, TILE, TileField, Tiles, core_of, n_tiles
from graphcouple.summation.transforms import (
    STRIP,
    STRIPS_WORTH_THREADS,
    Grid,
    Transform,
    kernel_transform,
    tile_transform,
)

MESH_FROM = 2000
"""Number of points above which the particle mesh replaces exact sums: O(n²) then exceeds the cost of a grid."""

# tests/test_particle_mesh.py checks that forces are then accurate to 1e-2 for every kernel of the package.
_SPACING = 1.0 / 3.0

# A cubic B-spline reaches two nodes; one more keeps rounding inside the grid.
_MARGIN = 3

# Bytes of cached transforms of recent pages; two are always kept, because one sum may need both. A sum needs a few
# transforms of tiles too, of 33 kB each.
_MOST_KEPT, _MOST_TILES = 2**25, 64

# Rows of a band; threads write to every second band. Wider than a spline's reach of 4, with few points in each.
_BAND = 8

# On a narrower grid (in lengths), the function varies so little that single precision loses its slopes.
_FLAT_LENGTHS = 4.0

# From 20,000 points on, a coarse mesh leaves near pairs out, and a mesh may have tiles; fewer points take little time.
SOFTENED_FROM = 20_000

# Grid nodes along a side, per √n points, where near pairs are summed one by one: if points are spread evenly, about
# π · 4² / 2² = 13 of them lie within the four nodes' distance that counts as near, in clusters many more.
_NODES_PER_ROOT = 2.0


class _Workspace(NamedTuple):
    """Memory for one convolution, kept because allocating it each time is expensive."""

    charges: FloatArray
    spectrum: NDArray[np.complexfloating[Any, Any]]
    field: FloatArray


@register("particle_mesh")
class ParticleMesh(SummationOfSets):
    """Sums over all pairs in O(n + G log G) by a grid of G nodes; embeddings of one or two dimensions.

    Charges are spread by cubic B-splines and convolved with the radial function by FFT. Its transform is divided by the
    square of the splines' transform, so that grid values are interpolated. The splines and their derivatives give the
    potential and its gradient from the same grid. The contribution of a point's own charge is subtracted exactly. A
    radial function that is not smooth at zero is split: below ``near`` times the grid spacing, a polynomial cap in d²
    replaces it on the grid, and the difference is summed over near pairs, which a list of cells finds. A smooth
    function is split too if points are so sparse that the spacing can exceed the function's length.

    Potentials have an error of about `resolution`, absolute below 1 and relative above. Prior D needs the logarithm of
    smaller potentials, of points far from all others under a Gaussian kernel. It then uses exact sums: for all points
    if many potentials are too small, else for these points alone, in logarithms.

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
        Distance up to which pairs are near, in grid spacings, for functions that are not smooth at zero. The default is
        4 at the default spacing and grows like its inverse square root at finer ones.

    Raises
    ------
    ValueError
        When the embedding has more than two dimensions, or is so wide that the grid would have more than
        4,096 nodes per side.

    References
    ----------
    Hockney and Eastwood (1988), Computer simulation using particles; Linderman et al. (2019) for t-SNE by FFT.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> from graphcouple.summation import Exact, KernelValue, ParticleMesh
    >>> Z = np.random.default_rng(0).normal(size=(500, 2))
    >>> mesh, exact = (s.potential(Z, KernelValue(gc.Student())) for s in (ParticleMesh(), Exact()))
    >>> bool(np.linalg.norm(mesh[1] - exact[1]) < 1e-3 * np.linalg.norm(exact[1]))
    True
    """

    single_from = MESH_FROM
    _softens = False

    def __init__(
        self, n_jobs: int | None = None, *, spacing: float = _SPACING, n_cells: int = 64, near: float | None = None
    ) -> None:
        super().__init__(n_jobs)
        self.spacing = check_positive("spacing", spacing)
        self.n_cells = check_integer("n_cells", n_cells, 4)
        self.near = 4.0 * (_SPACING / self.spacing) ** 0.5 if near is None else check_positive("near", near)
        self.resolution = 1e-3 * (self.spacing / _SPACING) ** 2
        self._transforms: OrderedDict[Any, Transform] = OrderedDict()
        self._idle: list[_Workspace] = []

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the transforms and workspaces, which are computed again."""
        return {**self.__dict__, "_transforms": OrderedDict(), "_idle": []}

    def coarse(self) -> ParticleMesh:
        """Return a mesh that omits near pairs from 20,000 points on; functions not smooth at zero are then softened."""
        # The transforms are the same, and a step of exaggerated descent would compute them anew.
        return changed(self, _softens=True, _transforms=self._transforms, _idle=self._idle)

    def potentials(
        self, Z: FloatArray, radial: RadialFunction, charges: FloatArray, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the potentials of several sets of charges, with one pass over near pairs; see `Summation`."""
        n, n_dims = Z.shape
        if n_dims > 2:
            raise ValueError(
                f"summation='particle_mesh' is for one or two dimensions, but the embedding has {n_dims}; "
                "use 'barnes_hut' or 'exact'."
            )
        # Grids of integers, or in half precision, would round places.
        points: FloatArray = np.ascontiguousarray(Z, dtype=np.float32 if Z.dtype == np.float32 else np.float64)
        c = np.ascontiguousarray(charges, dtype=np.float64)
        low, high = bounds(points)
        if (low == high).all():
            others = c.sum(axis=1, keepdims=True) - c
            return others * float(radial.potential(np.zeros(1))[0]), np.zeros((*c.shape, n_dims))
        grid = self._grid(points, radial)
        if not _fits(grid):
            raise ValueError(
                f"the embedding spans {(high - low).max():.3g}, which needs {max(grid.shape)} grid nodes of "
                f"spacing {grid.spacing:.3g} a side, more than {LARGEST} (the kernel's length: {radial.length:.3g}); "
                "use summation='barnes_hut', or a wider spacing."
            )
        potential, gradient = self._read(points, c, grid, radial)
        transform = self._transform(radial, grid)
        if transform.near is not None and not (self._softens and n >= SOFTENED_FROM):
            assert grid.edge is not None
            with_potential = outputs.get("with_potential", True)
            add_near(points, c, grid.edge, transform.near, self.n_jobs, with_potential, potential, gradient)
        return potential, gradient

    def _read(
        self, points: FloatArray, charges: FloatArray, grid: Grid, radial: RadialFunction
    ) -> tuple[FloatArray, FloatArray]:
        """Return the potentials of the grid and its coarser grids, and their gradients."""
        transform = self._transform(radial, grid)
        if grid.coarse is not None:
            potential, gradient = self._read(points, charges, grid.coarse, radial)
            Tiles(points, charges, grid, core_of(self.near), transform, self.n_jobs).add(potential, gradient)
            return potential, gradient
        potential, gradient = np.empty(charges.shape), np.empty((len(charges), *points.shape))
        places, at_least = (points, grid.origin, grid.spacing), POINTS_WORTH_THREADS
        fields = self._convolved(points, charges, grid, transform)
        for row, field, *sums in zip(charges, fields, potential, gradient, strict=True):
            over_rows(len(points), self.n_jobs, gather, *places, row, field, transform.own, *sums, at_least=at_least)
        return potential, gradient

    def _convolved(
        self, points: FloatArray, charges: FloatArray, grid: Grid, transform: Transform
    ) -> Iterator[FloatArray]:
        """Yield the field of each set of charges, in memory that the next one overwrites."""
        work, by_rows = self._workspace(grid, transform), self._by_rows(points, grid)
        for row in charges:
            self._spread(points, row, grid, by_rows, work.charges)
            yield self._convolve(work, transform)
        self._idle.append(work)

    def field(self, Z: FloatArray, radial: RadialFunction, charges: FloatArray) -> Field:
        """Return the potentials of sets of charges, interpolated from the grid; see `Summation.field`."""
        points = np.ascontiguousarray(Z, dtype=np.float64)
        low, high = bounds(points)
        exact = ExactField(points, radial, charges, self.n_jobs)
        if (low == high).all() or not _fits(grid := self._grid(points, radial, fixed=True)):
            return exact
        tiles = []
        while grid.coarse is not None:
            transform = self._transform(radial, grid)
            tiles.append(TileField(Tiles(points, exact.charges, grid, core_of(self.near), transform, self.n_jobs)))
            grid = grid.coarse
        transform = self._transform(radial, grid)
        fields = [field.copy() for field in self._convolved(points, exact.charges, grid, transform)]
        near = None
        if transform.near is not None and not tiles:
            assert grid.edge is not None
            near = NearCells(points, exact.charges, grid.edge, transform.near)
        return MeshField(exact, grid.origin, grid.spacing, np.stack(fields), near, self.resolution, tiles)

    def holds(self, Z: FloatArray, radial: RadialFunction) -> bool:
        """Return whether a grid has at most 4,096 nodes per side (2,097,152 on a line) and few near pairs."""
        low, high = bounds(Z)
        if (low == high).all():
            return True
        grid = self._grid(Z, radial)
        return _fits(grid) and (grid.edge is None or crowding(Z, low, BLOCK_NODES * grid.spacing) <= MOST_PAIRS)

    def _grid(self, points: FloatArray, radial: RadialFunction, fixed: bool = False) -> Grid:
        """Return the fastest grid; tiles of `fixed` points need no near pairs."""
        low, high = bounds(points)
        longest, length = float((high - low).max()), radial.length
        dtype = points.dtype if longest > _FLAT_LENGTHS * length else np.dtype(np.float64)
        resolved = self.spacing * length if radial.smooth_at_zero else 0.0
        spacing, edge = self._dense(points, low, high, radial, fixed)
        grid = _of_page(low, high, spacing, dtype, edge)
        core = core_of(self.near)
        untiled = points.shape[1] == 1 or not core or len(points) < SOFTENED_FROM
        if untiled or (fixed and (edge is None or not resolved)):
            return grid
        widths = tiled_spacings(points, low, high - low, spacing, resolved, core, _fits(grid))
        if not widths or (fixed and (widths[0] > resolved or n_tiles(points, low, core * widths[0]) > MOST_FIELDS)):
            return grid
        grid = _of_page(low, high, widths[-1], dtype, (self.near * widths[-1]) ** 2)
        for width in widths[-2::-1]:
            grid = Grid(low, width, (TILE, TILE), dtype, (self.near * width) ** 2, coarse=grid)
        return grid._replace(edge=None) if widths[0] <= resolved else grid

    def _dense(
        self, points: FloatArray, low: FloatArray, high: FloatArray, radial: RadialFunction, fixed: bool
    ) -> tuple[float, float | None]:
        """Return the spacing of a grid of the whole map, and its edge."""
        longest, length = float((high - low).max()), radial.length
        per_root = _NODES_PER_ROOT * len(points) ** 0.5
        spacing = self.spacing * length
        # At this spacing, near pairs are few. Smooth functions are split only if their length is shorter.
        wide = longest / per_root
        if not radial.smooth_at_zero or wide > length:
            if wide > length or longest < spacing * max(self.n_cells, per_root):
                spacing = _in_steps(longest / max(self.n_cells, per_root))
            spacing = finer_where_crowded(points, low, high - low, spacing, fixed)
            if radial.smooth_at_zero and spacing <= self.spacing * length:
                return min(self.spacing * length, _in_steps(longest / self.n_cells)), None
            return spacing, (self.near * spacing) ** 2
        if longest < spacing * self.n_cells:
            spacing = _in_steps(longest / self.n_cells)
        return spacing, None

    def _transform(self, radial: RadialFunction, grid: Grid) -> Transform:
        key = (radial, grid.spacing, grid.shape, grid.coarse is None, grid.dtype, grid.edge)
        if key in self._transforms:
            self._transforms.move_to_end(key)
            return self._transforms[key]
        if grid.coarse is None:
            transform = kernel_transform(radial, grid, self.n_jobs)
        else:
            assert grid.coarse.edge is not None
            transform = tile_transform(radial, grid, grid.coarse.edge, TILE)
        self._transforms[key] = transform
        pages, tiles = ([other for other in self._transforms if other[3] is of_page] for of_page in (True, False))
        is_much = sum(self._transforms[page].values.nbytes for page in pages) > _MOST_KEPT
        for old in (pages[:-2] if is_much else []) + tiles[:-_MOST_TILES]:
            self._transforms.pop(old, None)
        return transform

    def _workspace(self, grid: Grid, transform: Transform) -> _Workspace:
        """Return a workspace that no other thread uses."""
        dtype, half = np.result_type(grid.dtype, np.complex64), (grid.shape[0], transform.padded[1] // 2 + 1)
        while self._idle:
            work = self._idle.pop()
            if (work.charges.shape, work.spectrum.shape, work.spectrum.dtype) == (grid.shape, half, dtype):
                return work
        # Compiled loops always see grids in double precision, so that they are compiled only once.
        return _Workspace(np.empty(grid.shape), np.empty(half, dtype=dtype), np.empty(grid.shape))

    def _by_rows(self, points: FloatArray, grid: Grid) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the order of points by rows of the grid, and where each row starts in it."""
        rows, places = np.empty(len(points), dtype=np.int32), (points, grid.origin, grid.spacing)
        over_rows(len(points), self.n_jobs, grid_rows, *places, rows, at_least=POINTS_WORTH_THREADS)
        return sorted_by_bin(rows, grid.shape[0])

    def _spread(self, points: FloatArray, charges: FloatArray, grid: Grid, by_rows: Any, field: FloatArray) -> None:
        field[:] = 0.0
        half = -(-grid.shape[0] // (2 * _BAND))
        least = 2 if len(points) >= POINTS_WORTH_THREADS else half + 1
        loop = (_BAND, *by_rows, points, grid.origin, grid.spacing, charges, field)
        for parity in (0, 1):
            over_rows(half, self.n_jobs, spread, parity, *loop, at_least=least)

    def _convolve(self, work: _Workspace, transform: Transform) -> FloatArray:
        """Return the free-space convolution on the grid; rows and columns are padded only during their transform."""
        n_rows, n_columns = work.charges.shape
        padded_rows, padded_columns = transform.padded
        spectrum = work.spectrum

        def rows_forward(rows: slice) -> None:
            spectrum[rows] = rfft(work.charges[rows].astype(transform.values.dtype), padded_columns, axis=1)

        def columns_through(columns: slice) -> None:
            strip = fft(spectrum[:, columns], padded_rows, axis=0)
            strip *= transform.values[:, columns]
            spectrum[:, columns] = ifft(strip, axis=0, overwrite_x=True)[:n_rows]

        def rows_back(rows: slice) -> None:
            work.field[rows] = irfft(spectrum[rows], padded_columns, axis=1)[:, :n_columns]

        # An FFT rounds a row by the rows beside it.
        for size, step in ((n_rows, rows_forward), (spectrum.shape[1], columns_through), (n_rows, rows_back)):
            over_blocks(size, STRIP, self.n_jobs, step, at_least=STRIPS_WORTH_THREADS)
        return work.field


def _of_page(low: FloatArray, high: FloatArray, spacing: float, dtype: Any, edge: float | None) -> Grid:
    """Return a grid of the whole map; sizes are rounded up, so that a growing embedding can reuse it."""
    nodes = np.ceil((high - low) / spacing) + 1 + 2 * _MARGIN
    step = 2.0 ** np.maximum(4.0, np.floor(np.log2(nodes / 12.0)))
    nodes = step * np.ceil(nodes / step)
    if low.size == 1:
        return Grid(np.array([low[0] - _MARGIN * spacing, _MARGIN]), spacing, (int(nodes[0]), 8), dtype, edge)
    return Grid(low - _MARGIN * spacing, float(spacing), (int(nodes[0]), int(nodes[1])), dtype, edge)


def _in_steps(spacing: float) -> float:
    """Return the spacing rounded down to an eighth of an octave: a slowly growing embedding can reuse its grid."""
    return float(2.0 ** (np.floor(8.0 * np.log2(spacing)) / 8.0))


def _fits(grid: Grid) -> bool:
    # The grid of a line is 8 nodes wide.
    widest = LARGEST**2 // 8 if grid.shape[1] == 8 else LARGEST
    return max(grid.shape) <= widest
