"""The accuracy of a fast summation on given points, measured on some of them.

A grid resolves a function that varies over one length. If thousands of points lie in one cell of the grid, the forces
between these points are far smaller than usual, and may be smaller than the grid's error.
"""

from __future__ import annotations

import numpy as np

from graphcouple._numba.pairs import sum_rows
from graphcouple._support.validation import warn
from graphcouple.graphs import FloatArray
from graphcouple.kernels import measured
from graphcouple.summation.base import Summation
from graphcouple.summation.near_cells import bounds
from graphcouple.summation.near_pairs import crowding
from graphcouple.summation.radials import KernelFunction, RadialFunction

# Side of the cells in which points are counted, relative to the radial function's length; points are crowded if more
# than the second number share the cell of a typical point.
_CELL, _CROWDED = 1.0 / 3.0, 100.0

# Steepness of kernels whose grid must be checked. At 6, forces on normal points are off by 4 %; presets have at most 3.
_SHARP = 4.0

# Number of points in the count; more would take as long as a coarse sum.
_COUNTED = 5000

# Forces in an embedding smaller than this many lengths are rounding error, in larger ones if the kernel is flatter at 0
# than d².
_TINY = 4e-6

# Rows whose forces are also summed exactly: more rows judge the error better, each for n pairs.
_ROWS = 32

TOLERATED = 1e-2
"""Error of forces, relative to their size, up to which no warning is needed."""


class AccuracyWarning(UserWarning):
    """Sums over all pairs are less accurate than promised."""


def is_sharp(radial: RadialFunction) -> bool:
    """Return whether a kernel falls within a fraction of its length, which a grid may not resolve."""
    return isinstance(radial, KernelFunction) and measured.steepness(radial.kernel) > _SHARP


def is_crowded(Z: FloatArray, radial: RadialFunction) -> bool:
    """Return whether a grid may be too coarse for the points: many share a cell, or all lie almost in one place."""
    low, high = bounds(Z)
    extent, length = float((high - low).max()), float(radial.length)
    if extent <= 0:
        return False
    order = radial.kernel.order_at_zero if isinstance(radial, KernelFunction) else 2.0
    if extent < length * _TINY ** (2.0 / np.clip(order, 2.0, 6.0)):
        return True
    # Small embeddings get a finer grid.
    side = min(_CELL * length, extent / 64.0)
    return crowding(Z, low, side, _COUNTED) > _CROWDED


def force_error(
    forces: FloatArray, Z: FloatArray, radial: RadialFunction, charges: FloatArray, n_jobs: int | None
) -> float:
    """Return the error of the forces on 32 points, relative to the size of the exact forces.

    Forces are summed over the sets of `charges`, of shape (n_sets, n).
    """
    rows = np.unique(np.linspace(0, len(Z) - 1, _ROWS).astype(np.intp))
    order = np.concatenate([rows, np.delete(np.arange(len(Z)), rows)])
    _, sums = sum_rows(Z[rows], Z[order], radial, charges[:, order], n_jobs, with_potential=False)
    exact = sums.sum(axis=0)
    size = float(np.linalg.norm(exact))
    return float(np.linalg.norm(forces[rows] - exact)) / size if size > 0 else 0.0


def error_of_unit_charges(summation: Summation, Z: FloatArray, radial: RadialFunction) -> float:
    """Return the error of the forces of unit charges on 32 points, relative to the size of the exact forces."""
    forces = summation.potential(Z, radial, with_potential=False)[1]
    return force_error(forces, Z, radial, np.ones((1, len(Z))), summation.n_jobs)


def warn_if_inaccurate(summation: Summation, Z: FloatArray, radial: RadialFunction) -> None:
    """Warn if forces at these points are less accurate than 1e-2, unless the summation itself checks."""
    remedy = "summation='auto', which looks for a better one, or 'exact'"
    if Z.shape[1] == 3:
        # In three dimensions, auto's summation of many points is a tree, which it does not check.
        summation = summation.for_points(Z, radial)
        remedy = "summation='exact', or BarnesHut with a smaller angle"
    if summation.checks_accuracy:
        # It checks only some of the maps of a run.
        summation.for_points(Z, radial)
        return
    error = error_of_unit_charges(summation, Z, radial)
    if not error <= TOLERATED:
        warn(
            f"forces by summation={summation!r} are off by {error:.0%} at the embedding that was found: its "
            f"scales differ too much for it, or the kernel falls too fast. Use {remedy}.",
            AccuracyWarning,
        )
