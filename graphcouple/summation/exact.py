"""All pairs, one by one: O(n²) time, O(n) memory, any kernel, any dimension."""

from __future__ import annotations

import numpy as np

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
