"""Potentials of a sample of points, to estimate a loss where no fast sum exists."""

from __future__ import annotations

import numpy as np

from graphcouple._validation import check_integer
from graphcouple.graphs import FloatArray
from graphcouple.summation.base import Summation
from graphcouple.summation.radials import RadialFunction


class SampledRows(Summation):
    """Exact potentials of some points drawn at random; every other point gets their mean.

    Sums of potentials, as in the loss of prior B, then have a relative standard error of about
    the potentials' own coefficient of variation divided by the root of `n_rows`. Gradients are not estimated.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; None means every core. The result is bitwise the same for any number.
    n_rows : int, default=1000
        Number of points drawn. If there are no more points than this, sums are exact.
    seed : int, default=0

    Raises
    ------
    ValueError
        When gradients are asked for, or `n_rows` is not an integer of at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> from graphcouple.summation.radials import KernelValue
    >>> from graphcouple.summation.sampled import SampledRows
    >>> Z = np.random.default_rng(0).normal(size=(500, 5))
    >>> exact = gc.Exact().potential(Z, KernelValue(gc.Student()))[0].sum()
    >>> estimate = SampledRows(n_rows=100).potential(Z, KernelValue(gc.Student()), with_gradient=False)[0].sum()
    >>> bool(abs(estimate / exact - 1) < 0.1)
    True
    """

    def __init__(self, n_jobs: int | None = None, *, n_rows: int = 1000, seed: int = 0) -> None:
        super().__init__(n_jobs)
        self.n_rows, self.seed = check_integer("n_rows", n_rows, 1), check_integer("seed", seed, 0)

    def potential(
        self,
        Z: FloatArray,
        radial: RadialFunction,
        charges: FloatArray | None = None,
        *,
        with_potential: bool = True,
        with_gradient: bool = True,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the estimated potentials; see `Summation.potential`."""
        from graphcouple._numba.pairs import sum_pairs

        if with_gradient:
            raise ValueError("SampledRows estimates potentials, not gradients; use summation='exact'.")
        n = len(Z)
        c = np.ones(n) if charges is None else np.ascontiguousarray(charges, dtype=np.float64)
        rows = min(self.n_rows, n)
        # The drawn points come first, and only their rows are summed.
        order = np.random.default_rng(self.seed).permutation(n)
        sums, _ = sum_pairs(Z[order], radial, c[order][None], self.n_jobs, True, False, n_rows=rows)
        potential = np.full(n, sums[:rows].mean())
        potential[order[:rows]] = sums[:rows]
        return potential, np.full(Z.shape, np.nan)
