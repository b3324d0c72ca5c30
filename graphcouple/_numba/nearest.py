"""The nearest of many points, from given distances, and their exact distances."""

import numpy as np

from graphcouple._numba.jit import jit

# Columns counted at once: in longer steps, fewer would contain no near point; shorter ones would branch more often.
_STEP = 64


@jit
def _replace_farthest(distances, candidates, d2, j):
    """Replace the farthest point, which is the root of a heap, by point j."""
    size = distances.size
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and distances[child + 1] > distances[child]:
            child += 1
        if distances[child] <= d2:
            break
        distances[at] = distances[child]
        candidates[at] = candidates[child]
        at = child
    distances[at] = d2
    candidates[at] = j


@jit
def keep_nearest(block, names, rows, offsets, distances, candidates):
    """Keep the nearest points of some rows, among the points kept so far and the columns of a block.

    Row r of `distances` is a heap with the farthest first. Row s of the block plus ``offsets[s]`` has the distances of
    row ``rows[s]`` to the points in `names`.
    """
    n_columns = block.shape[1]
    in_steps = n_columns - n_columns % _STEP
    for s in range(rows.size):
        row, heap, points, offset = block[s], distances[rows[s]], candidates[rows[s]], offsets[s]
        farthest = heap[0] - offset
        for a in range(0, in_steps, _STEP):
            # Most steps contain no near point, and counting them vectorises, unlike searching.
            near = 0
            for c in range(_STEP):
                near += row[a + c] < farthest
            if near:
                for c in range(a, a + _STEP):
                    if row[c] < farthest:
                        _replace_farthest(heap, points, row[c] + offset, names[c])
                        farthest = heap[0] - offset
        for c in range(in_steps, n_columns):
            if row[c] < farthest:
                _replace_farthest(heap, points, row[c] + offset, names[c])
                farthest = heap[0] - offset


@jit
def fill_seeking(rows, points, centre, seeking, sq_norms):
    """Fill −2 times some rows of points relative to a centre, and their squared norms."""
    for s in range(rows.size):
        total = 0.0
        for a in range(points.shape[1]):
            difference = points[rows[s], a] - centre[a]
            seeking[s, a] = -2.0 * difference
            total += difference * difference
        sq_norms[s] = total


@jit
def sq_dist_between(left, i, right, j):
    """Return the squared distance of a row on the left and a row on the right, in double precision."""
    total = 0.0
    for a in range(left.shape[1]):
        difference = np.float64(left[i, a]) - np.float64(right[j, a])
        total += difference * difference
    return total


@jit
def candidate_sq_dists(rows, left, right, candidates, sq_dist):
    """Fill the squared distances between rows on the left and their candidates on the right, in double precision."""
    for s in range(rows.size):
        for e in range(candidates.shape[1]):
            sq_dist[s, e] = sq_dist_between(left, rows[s], right, candidates[s, e])


@jit
def sparse_candidate_sq_dists(
    rows, indptr, columns, entries, right_indptr, right_columns, right_entries, candidates, sq_dist
):
    """Like `candidate_sq_dists`, for the rows of csr matrices with sorted columns."""
    for s in range(rows.size):
        i = rows[s]
        for e in range(candidates.shape[1]):
            j = candidates[s, e]
            a, b = np.int64(indptr[i]), np.int64(right_indptr[j])
            a_end, b_end = np.int64(indptr[i + 1]), np.int64(right_indptr[j + 1])
            total = 0.0
            while a < a_end or b < b_end:
                if b >= b_end or (a < a_end and columns[a] < right_columns[b]):
                    difference = np.float64(entries[a])
                    a += 1
                elif a >= a_end or right_columns[b] < columns[a]:
                    difference = np.float64(right_entries[b])
                    b += 1
                else:
                    difference = np.float64(entries[a]) - np.float64(right_entries[b])
                    a += 1
                    b += 1
                total += difference * difference
            sq_dist[s, e] = total
