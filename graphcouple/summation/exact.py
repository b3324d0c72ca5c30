"""Exact sums by formulas, or by tables with each pair visited once. O(n) memory, any kernel, any dimension."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from graphcouple._numba.all_pairs import NO_CHARGES, sum_low_rank, sum_pairs
from graphcouple._numba.pairs import sum_rows
from graphcouple._numba.tables import cubics
from graphcouple.graphs import FloatArray
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
    >>> from graphcouple.summation import KernelValue
    >>> potential, gradient = gc.summation.Exact().potential(np.array([[0.0], [1.0], [3.0]]), KernelValue(gc.Student()))
    >>> potential
    array([0.6, 0.7, 0.3])
    """

    checks_accuracy = True

    def potential(
        self, Z: FloatArray, radial: RadialFunction, charges: FloatArray | None = None, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        right = np.ones((1, len(Z))) if charges is None else charges[None]
        if not radial.tabulated:
            return sum_pairs(Z, radial, self.n_jobs, right, **outputs)
        return self.low_rank(Z, radial, np.ones((1, len(Z))), right, **outputs)

    def potentials(
        self, Z: FloatArray, radial: RadialFunction, charges: FloatArray, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the potentials of several sets of charges; without gradients, in one pass over the pairs."""
        if outputs.get("with_gradient", True) or len(charges) == 1:
            return super().potentials(Z, radial, charges, **outputs)
        return sum_rows(Z, Z, radial, charges, self.n_jobs, with_gradient=False)

    def low_rank(
        self, Z: FloatArray, radial: RadialFunction, left: FloatArray, right: FloatArray, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        first, second = (np.ascontiguousarray(factor, dtype=np.float64) for factor in (left, right))
        return sum_low_rank(Z, self._sources(Z, radial), first, second, NO_CHARGES, self.n_jobs, **outputs)

    def _sources(self, Z: FloatArray, radial: RadialFunction) -> tuple[Any, Any]:
        """Return the sources of slopes and of values, each the formula itself or a table of cubics."""
        return radial, radial


# Tables reach from squared distances of 2^−124 to 2^60.
_SHORTEST, _WIDEST = 1e-15, 2.0**29

# Building the tables takes 4 ms, as long as the formulas for this many points.
TABLE_FROM = 200


class Tabulated(Exact):
    """Exact sums that interpolate expensive formulas in tables, accurate to 1e-8.

    A pair takes 3 ns of a core for every kernel; the formula of a power takes 6 ns, with a logarithm 10.
    """

    resolution = 1e-12

    def _sources(self, Z: FloatArray, radial: RadialFunction) -> tuple[Any, Any]:
        fits = radial.tabulated and len(Z) >= TABLE_FROM and radial.length > _SHORTEST and float(np.ptp(Z)) < _WIDEST
        slopes, values = _tables(radial) if fits else (None, None)
        return (radial, radial) if slopes is None or values is None else (slopes, values)


@lru_cache(maxsize=8)
def _tables(radial: RadialFunction) -> tuple[FloatArray | None, FloatArray | None]:
    """Return the tables of a radial function's slope and value, each None if not finite or not exact."""
    with np.errstate(all="ignore"):
        return cubics(radial.slope), cubics(radial.potential)
