"""Places for new points in an embedding that stays as it is: each descends by itself."""

from __future__ import annotations

import numpy as np

from graphcouple._numba.places import first_steps, judge, starts_at
from graphcouple._numba.threads import over_blocks, over_rows, threads_kept
from graphcouple.couplings.fixed_map import DrawnEdges, FixedMap
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.laws import NewEdges

# Starts are the mean and the median of the edges' ends, and places beside the eight heaviest. The two best descend: a
# map of clusters has many minima, and a mean lies between clusters.
_BESIDE, _DESCENDING = 8, 2

# How far beside a point, relative to the map: forces are infinite at the point itself under some kernels.
_ASIDE = 1e-3

# The first step is at least this share of the spread of the starts. Under a kernel without bound, each point is a
# barrier of about 80 nats, and only a long step leaves its surroundings.
_SHORTEST, _AMONG_BARRIERS, _BARRIER = 0.05, 0.5, 10.0

# Iterations of a place at most.
_MOST_ITERATIONS = 100

# A thread places this many points at a time, so that their data stay in its cache.
_TOGETHER = 512


def place_new(fixed: FixedMap, edges: NewEdges, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
    """Return a place for each new point, of shape (n_new, q), and its loss there.

    Each point descends alone, by BFGS with a backtracking line search from the best two of ten starts. So its bits do
    not depend on the other new points, nor on the number of threads.
    """
    m = edges.support.n_nodes
    places, loss = np.empty((m, fixed.points.shape[1])), np.empty(m)
    # Computes the field before threads need it.
    _ = fixed.field

    def place(rows: slice) -> None:
        places[rows], loss[rows] = _best(fixed, fixed.drawn(edges, rows.start, rows.stop), n_jobs)

    with threads_kept():
        over_blocks(m, _TOGETHER, n_jobs, place)
    return places, loss + fixed.constants(edges.to_csr())


def _best(fixed: FixedMap, edges: DrawnEdges, n_jobs: int | None) -> tuple[FloatArray, FloatArray]:
    """Return the best place from several starts, and its loss."""
    m, q = edges.mass.size, fixed.points.shape[1]
    starts = np.empty((2 + _BESIDE, m, q))
    over_rows(m, n_jobs, starts_at, edges.ends, edges.indptr, edges.means, _ASIDE * fixed.size, starts)
    # One start after another: NumPy adds a single column in another order than the columns of a matrix.
    spread = np.sqrt(sum(np.square(start - starts[0]).sum(axis=1) for start in starts) / len(starts))
    barrier = float(fixed.repulsion.potential(np.zeros(1))[0])
    shortest = (_SHORTEST if barrier < _BARRIER else _AMONG_BARRIERS) * spread
    rows = np.arange(m)
    losses = np.stack([fixed.evaluate(start, edges, rows)[0] for start in starts])
    ranked = np.argsort(np.where(np.isfinite(losses), losses, np.inf), axis=0, kind="stable")
    chosen = starts[ranked[:_DESCENDING], rows].reshape(-1, q)
    ends, loss = _descend(fixed, edges, chosen, np.tile(rows, _DESCENDING), np.tile(shortest, _DESCENDING), n_jobs)
    best = np.where(np.isfinite(loss), loss, np.inf).reshape(_DESCENDING, m).argmin(axis=0) * m + rows
    return ends[best], loss[best]


def _descend(
    fixed: FixedMap, edges: DrawnEdges, starts: FloatArray, rows: IntArray, shortest: FloatArray, n_jobs: int | None
) -> tuple[FloatArray, FloatArray]:
    """Return where each place ends, and its loss; `rows` are the new points that the starts are for."""
    m, q = starts.shape
    places, size = starts.copy(), fixed.size
    loss, gradient, stiffness = fixed.evaluate(places, edges, rows)
    inverse, direction, length = np.empty((m, q, q)), np.empty((m, q)), np.ones(m)
    settled, at = np.zeros(m, dtype=bool), np.arange(m)
    over_rows(m, n_jobs, first_steps, size, shortest, stiffness, gradient, inverse, direction)
    final, least = places.copy(), loss.copy()
    for _ in range(_MOST_ITERATIONS):
        trial = places + length[:, None] * direction
        loss_and_slope = fixed.evaluate(trial, edges, rows[at])[:2]
        state = (places, loss, gradient, inverse, direction, length, settled)
        over_rows(len(at), n_jobs, judge, size, trial, *loss_and_slope, *state)
        if settled.any():
            final[at[settled]], least[at[settled]] = places[settled], loss[settled]
            active = np.flatnonzero(~settled)
            at, places, loss, gradient = at[active], places[active], loss[active], gradient[active]
            inverse, direction, length = inverse[active], direction[active], length[active]
            settled = settled[active]
        if not at.size:
            break
    final[at], least[at] = places, loss
    return final, least
