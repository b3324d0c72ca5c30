"""The summation that suits the points: exact for few, the particle mesh or Barnes–Hut for many."""

from __future__ import annotations

import numpy as np

from graphcouple._support.validation import changed, warn
from graphcouple.graphs import FloatArray
from graphcouple.summation.accuracy import (
    TOLERATED,
    AccuracyWarning,
    error_of_unit_charges,
    force_error,
    is_crowded,
    is_sharp,
)
from graphcouple.summation.barnes_hut import BarnesHut
from graphcouple.summation.base import Summation, SummationOfSets, register, weighed
from graphcouple.summation.exact import TABLE_FROM, Exact, Tabulated
from graphcouple.summation.fields import Field, sampled_field, sampled_total
from graphcouple.summation.near_cells import bounds
from graphcouple.summation.particle_mesh import MESH_FROM, ParticleMesh
from graphcouple.summation.radials import RadialFunction

TREE_FROM = 20_000
"""Number of points above which Barnes–Hut, in O(n log n), replaces exact sums, in O(n²)."""

# Spacing of the fine mesh that is tried for crowded points, relative to the usual spacing.
_FINE = 0.25

# A check takes up to a quarter of the time of a sum, so a run checks every eighth of the maps of one size, up to 10 %:
# their grids have nearly the same spacing. Up to 1 %, each growing map of ten million points was checked, which took a
# sixth of the descent.
_SUMS_A_CHECK, _SAME_SIZE = 8, 0.1

# Number of points that repel new points, instead of all points, if fits sample their repulsion.
_FIELD_POINTS = 4000


@register("auto")
class Auto(SummationOfSets):
    """Exact sums for few points; for many, a fast summation with forces accurate to 1e-2.

    Sums are exact up to 2,000 points (20,000 in three dimensions), and always beyond three dimensions; exact sums
    interpolate kernels with powers in tables (`Tabulated`). For more points, `ParticleMesh` is used in one and two
    dimensions, and `BarnesHut` in three. If a plane embedding is too wide or too crowded for a grid, sums are exact up
    to 20,000 points and done by `BarnesHut` beyond. Where many points share a cell of the grid, or the kernel has a
    sharp edge, forces on 32 of them are compared with exact ones, and another summation is used if their error exceeds
    1e-2. In a fit they are compared for every eighth map of about one size, in three dimensions at its end only.

    In more than two dimensions, above 2,000 points, the repulsive part of `EffectiveCrossEntropy`, which sampling
    minimises there, is estimated from the potentials of 1,000 points. Its standard error is 1 to 3 %. Potentials and
    gradients of a fit are never estimated. If the repulsive part is estimated, 4,000 of the points repel new points.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; None means every core. The result is bitwise the same for any number.

    Warns
    -----
    AccuracyWarning
        When there are more than 20,000 points and no summation is accurate to 1e-2.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> from graphcouple.summation import Auto, KernelValue
    >>> rng = np.random.default_rng(0)
    >>> kernel = KernelValue(gc.Student())
    >>> [type(Auto().for_points(rng.normal(size=shape), kernel)).__name__ for shape in ((500, 2), (5000, 2), (5000, 3))]
    ['Exact', 'ParticleMesh', 'Exact']
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        super().__init__(n_jobs)
        self._exact = Tabulated(n_jobs)
        self._mesh = ParticleMesh(n_jobs)
        self._tree = BarnesHut(n_jobs)
        self._checks = True
        self._in_run = False
        self._passed: tuple[RadialFunction, int, float, int] | None = None

    checks_accuracy = True
    single_from = MESH_FROM

    def for_points(self, Z: FloatArray, radial: RadialFunction) -> Summation:
        summation = self._fast(Z, radial)
        if self._is_doubtful(summation, Z, radial) and not error_of_unit_charges(summation, Z, radial) <= TOLERATED:
            return self._for_crowded(Z, radial)
        return summation

    def _is_doubtful(self, summation: Summation, Z: FloatArray, radial: RadialFunction) -> bool:
        """Return whether forces must be checked, because the mesh may be too coarse for the points or the kernel."""
        return self._checks and summation is self._mesh and (is_sharp(radial) or is_crowded(Z, radial))

    def _fast(self, Z: FloatArray, radial: RadialFunction) -> Summation:
        """Return the fastest summation for this number of points and dimensions."""
        n, n_dims = Z.shape
        if n_dims <= 2 and n > MESH_FROM and self._mesh.holds(Z, radial):
            return self._mesh
        if 2 <= n_dims <= 3 and n > TREE_FROM:
            return self._tree
        return self._exact if radial.tabulated and n >= TABLE_FROM else Exact(self.n_jobs)

    def _for_crowded(self, Z: FloatArray, radial: RadialFunction) -> Summation:
        """Return a summation for points too crowded for the mesh, with a warning if none is accurate."""
        n, n_dims = Z.shape
        if n <= TREE_FROM:
            return self._exact
        fine = ParticleMesh(self.n_jobs, spacing=_FINE * self._mesh.spacing)
        errors = {}
        for summation in ([fine] if fine.holds(Z, radial) else []) + ([self._tree] if n_dims == 2 else []):
            errors[summation] = error_of_unit_charges(summation, Z, radial)
            if errors[summation] <= TOLERATED:
                return summation
        best = min(errors, key=errors.__getitem__, default=self._mesh)
        warn(
            f"forces between {n:,} points, many of which lie almost in one place, are off by "
            f"{errors.get(best, np.nan):.0%}. Use summation='exact', remove copies, or fit with unique=True.",
            AccuracyWarning,
        )
        return best

    def of_run(self) -> Auto:
        """Return a copy that checks only some of the maps of a run."""
        return changed(self, _in_run=True, _passed=None)

    def coarse(self) -> Auto:
        """Return the same choice with a coarse mesh, whose accuracy is not checked."""
        return changed(self, _mesh=self._mesh.coarse(), _checks=False)

    def total(self, Z: FloatArray, radial: RadialFunction, charges: FloatArray, weights: FloatArray) -> float:
        """Return Σ_i w_i Φ_i, or an estimate where no sum is fast; see `Summation.total`."""
        if self._estimates(Z, radial):
            return sampled_total(Z, radial, charges, weights, self.n_jobs)
        return super().total(Z, radial, charges, weights)

    def potentials(
        self, Z: FloatArray, radial: RadialFunction, charges: FloatArray, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        return self._checked_potentials(self._fast(Z, radial), Z, radial, charges, outputs)

    def low_rank(
        self, Z: FloatArray, radial: RadialFunction, left: FloatArray, right: FloatArray, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        summation = self._fast(Z, radial)
        if summation is not self._mesh:
            return summation.low_rank(Z, radial, left, right, **outputs)
        return weighed(left, *self._checked_potentials(summation, Z, radial, right, outputs))

    def _checked_potentials(
        self, summation: Summation, Z: FloatArray, radial: RadialFunction, charges: FloatArray, outputs: dict[str, bool]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the potentials by a summation, or by another if its forces are not accurate."""
        sums = summation.potentials(Z, radial, charges, **outputs)
        doubtful = outputs.get("with_gradient", True) and self._is_doubtful(summation, Z, radial)
        if not doubtful or not self._is_due(Z, radial):
            return sums
        if force_error(sums[1].sum(axis=0), Z, radial, charges, self.n_jobs) <= TOLERATED:
            return sums
        self._passed = None
        return self._for_crowded(Z, radial).potentials(Z, radial, charges, **outputs)

    def _is_due(self, Z: FloatArray, radial: RadialFunction) -> bool:
        """Return whether forces are checked: in a run only after some sums over maps of about one size."""
        if not self._in_run:
            return True
        low, high = bounds(Z)
        size = float((high - low).max())
        if self._passed is not None:
            of, n, last, left = self._passed
            if left > 0 and n == len(Z) and abs(size - last) <= _SAME_SIZE * last and of == radial:
                self._passed = (of, n, last, left - 1)
                return False
        self._passed = (radial, len(Z), size, _SUMS_A_CHECK - 1)
        return True

    def field(self, Z: FloatArray, radial: RadialFunction, charges: FloatArray) -> Field:
        """Return the field of the summation used for these points, or an estimate where totals are estimated."""
        if self._estimates(Z, radial):
            return sampled_field(Z, radial, charges, _FIELD_POINTS, self.n_jobs)
        return self.for_points(Z, radial).field(Z, radial, charges)

    def _estimates(self, Z: FloatArray, radial: RadialFunction) -> bool:
        return Z.shape[1] > 2 and len(Z) > MESH_FROM and not radial.smooth_at_zero
