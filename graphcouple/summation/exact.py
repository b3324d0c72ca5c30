"""Exact sums by formulas, or by tables with each pair visited once. O(n) memory, any kernel, any dimension."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from graphcouple._numba.pairs import worth_threads
from graphcouple._numba.threads import over_rows
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.summation.base import Summation, register
from graphcouple.summation.radials import RadialFunction


@register("exact")
class Exact(Summation):
    """Exact summation in compiled, vectorised, parallel loops.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; None means every core.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> from graphcouple.summation.radials import KernelValue
    >>> from graphcouple.summation import Exact
    >>> potential, gradient = Exact().potential(np.array([[0.0], [1.0], [3.0]]), KernelValue(gc.Student()))
    >>> potential
    array([0.6, 0.7, 0.3])
    """

    checks_accuracy = True

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
        from graphcouple._numba.pairs import sum_pairs

        c = np.ones(Z.shape[0]) if charges is None else np.ascontiguousarray(charges, dtype=np.float64)
        return sum_pairs(Z, radial, c[None], self.n_jobs, with_potential, with_gradient)

    def potentials(
        self, Z: FloatArray, radial: RadialFunction, charges: FloatArray, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the potentials of several sets of charges; without gradients, in one pass over the pairs."""
        if outputs.get("with_gradient", True) or len(charges) == 1:
            return super().potentials(Z, radial, charges, **outputs)
        from graphcouple._numba.low_rank import charge_rows

        potential = np.empty((len(Z), len(charges)))
        arrays = (coordinates(Z), radial, np.ascontiguousarray(charges, dtype=np.float64))
        over_rows(len(Z), self.n_jobs, charge_rows, *arrays, potential, at_least=worth_threads(len(Z)))
        return potential.T, np.empty((len(charges), *Z.shape))

    def low_rank(
        self,
        Z: FloatArray,
        radial: RadialFunction,
        left: FloatArray,
        right: FloatArray,
        *,
        with_potential: bool = True,
        with_gradient: bool = True,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the potential of charges of pairs, in one pass over the pairs; see `Summation.low_rank`."""
        from graphcouple._numba.low_rank import low_rank_rows

        potential, gradient = np.empty(len(Z)), np.empty(Z.shape)
        factors = (np.ascontiguousarray(left.T, dtype=np.float64), np.ascontiguousarray(right, dtype=np.float64))
        arrays = (coordinates(Z), radial, *factors)
        outputs = (with_potential, with_gradient, potential, gradient)
        over_rows(len(Z), self.n_jobs, low_rank_rows, *arrays, *outputs, at_least=worth_threads(len(Z)))
        return potential, gradient


def coordinates(Z: FloatArray) -> FloatArray:
    """Return the coordinates, one per row, in double precision."""
    return np.ascontiguousarray(Z.T, dtype=np.float64)


# Building the tables takes 4 ms, as long as the formulas for this many points.
TABLE_FROM = 200

# Number of parts of the pairs; each has its own sums, so that results do not depend on the number of threads.
_PARTS = 8


class Tabulated(Exact):
    """Exact sums that interpolate expensive formulas in tables, accurate to 1e-8.

    A pair takes 2 ns of a core for every kernel; the formula of a power takes 14 ns, with a logarithm 21.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; None means every core.
    """

    def low_rank(
        self, Z: FloatArray, radial: RadialFunction, left: FloatArray, right: FloatArray, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the potential of charges of pairs, in one pass over the pairs; see `Summation.low_rank`."""
        forces, energies = (outputs.get(name, True) for name in ("with_gradient", "with_potential"))
        slopes, values = _tables(radial) if self._reads(Z, radial) else (None, None)
        if (forces and slopes is None) or (energies and values is None):
            return super().low_rank(Z, radial, left, right, **outputs)
        from graphcouple._numba.tables import pairs_once

        n, n_dims = Z.shape
        bounds = _parts(n)
        potential, gradient = np.empty((len(bounds) - 1, n)), np.empty((len(bounds) - 1, n_dims, n))
        unused = np.zeros((1, 4))
        tables = (unused if slopes is None else slopes, unused if values is None else values)
        charges = (np.ascontiguousarray(factor, dtype=np.float64) for factor in (left, right))
        arrays = (coordinates(Z), *tables, *charges, energies, forces, potential, gradient)
        over_rows(len(bounds) - 1, self.n_jobs, pairs_once, bounds, *arrays, at_least=2)
        return potential.sum(axis=0), 2.0 * gradient.sum(axis=0).T

    def potential(
        self, Z: FloatArray, radial: RadialFunction, charges: FloatArray | None = None, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the potential of charges at the points, and its gradient; see `Summation.potential`."""
        if not self._reads(Z, radial):
            return super().potential(Z, radial, charges, **outputs)
        right = np.ones(len(Z)) if charges is None else charges
        return self.low_rank(Z, radial, np.ones((1, len(Z))), right[None], **outputs)

    def _reads(self, Z: FloatArray, radial: RadialFunction) -> bool:
        return radial.tabulated and len(Z) >= TABLE_FROM


def _parts(n_points: int) -> IntArray:
    """Return the bounds of parts of the rows with about equally many pairs (i, j), j > i."""
    if n_points < worth_threads(n_points):
        return np.array([0, n_points])
    remainder = np.arange(_PARTS, -1, -1) / _PARTS
    return n_points - np.round(n_points * np.sqrt(remainder)).astype(np.int64)


@lru_cache(maxsize=8)
def _tables(radial: RadialFunction) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the tables of a radial function's slope and value, each None if not finite or not exact."""
    from graphcouple._numba.tables import cubics

    with np.errstate(all="ignore"):
        return cubics(radial.slope), cubics(radial.potential)
