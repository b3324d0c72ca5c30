"""All pairs, one by one: O(n²) time, O(n) memory, any kernel, any dimension."""

from __future__ import annotations

import numpy as np

from graphcouple._numba.pairs import worth_threads
from graphcouple._numba.threads import over_rows
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
