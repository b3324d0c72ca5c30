"""Points drawn from nearby points on the map, with the same bits for any number of threads.

The candidates of i are the points `shifts` places behind it in a random order, so that i also knows whose candidate it
is.
"""

import numpy as np

from graphcouple._numba.jit import jit
from graphcouple._numba.nearest import sq_dist_between


@jit
def _is_near(indptr, indices, i, j):
    linked = False
    for e in range(indptr[i], indptr[i + 1]):
        linked |= indices[e] == j
    return linked


@jit
def draw_nearby(start, stop, points, order, shifts, sq_reach, n_drawn, indptr, indices, drawn):
    """Mark the first `n_drawn` candidates of each point that lie within reach and are none of its near pairs.

    If too few are within reach, the first candidates beyond it make up the number. `points` have the random order, so
    that memory is read in one direction; `drawn` has a row for each shift.
    """
    n = points.shape[0]
    left = np.full(stop - start, n_drawn)
    for in_reach in (True, False):
        for s in range(shifts.size):
            for p in range(start, stop):
                if not left[p - start]:
                    continue
                # The operator % takes longer than the distance.
                other = p + shifts[s] - (n if p + shifts[s] >= n else 0)
                fits = (sq_dist_between(points, p, points, other) <= sq_reach) == in_reach
                if fits and not _is_near(indptr, indices, order[p], order[other]):
                    drawn[s, p] = True
                    left[p - start] -= 1
