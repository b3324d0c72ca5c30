"""All pairs, one by one, with forces read from a table, which costs the same for every kernel."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from graphcouple._numba.pairs import worth_threads
from graphcouple._numba.threads import over_rows
from graphcouple.graphs import FloatArray
from graphcouple.summation.exact import Exact, coordinates
from graphcouple.summation.radials import RadialFunction

# A table takes 2 ms, as long as the forces of this many points.
TABLE_FROM = 200


class Tabulated(Exact):
    """Exact sums, but where only forces are asked for, the slope of an expensive formula is read from a table.

    Slopes are then accurate to about 1e-5 of themselves. A pair takes 1.5 ns, whatever the kernel; a power takes 7.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; None means every core.
    """

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
        table = None if with_potential or not radial.tabulated or len(Z) < TABLE_FROM else _slopes(radial)
        if table is None:
            return super().low_rank(Z, radial, left, right, with_potential=with_potential, with_gradient=with_gradient)
        from graphcouple._numba.tables import force_rows

        gradient = np.empty(Z.shape)
        factors = (np.ascontiguousarray(left.T, dtype=np.float64), np.ascontiguousarray(right, dtype=np.float64))
        arrays = (coordinates(Z), table, *factors, gradient)
        over_rows(len(Z), self.n_jobs, force_rows, *arrays, at_least=worth_threads(len(Z)))
        return np.empty(len(Z)), gradient

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
        wanted = {"with_potential": with_potential, "with_gradient": with_gradient}
        if with_potential or not radial.tabulated or len(Z) < TABLE_FROM:
            return super().potential(Z, radial, charges, **wanted)
        right = np.ones(len(Z)) if charges is None else charges
        return self.low_rank(Z, radial, np.ones((1, len(Z))), right[None], **wanted)


@lru_cache(maxsize=8)
def _slopes(radial: RadialFunction) -> FloatArray | None:
    """Return the table of a radial function's slope; None if it is not finite everywhere."""
    from graphcouple._numba.tables import places, tabulate

    with np.errstate(all="ignore"):
        table = tabulate(np.asarray(radial.slope(places()), dtype=np.float64))
    return table if np.isfinite(table).all() else None
