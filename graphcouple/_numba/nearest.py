"""The nearest of candidate neighbours, by exact distances."""

from __future__ import annotations

import numpy as np

from graphcouple._numba.jit import jit


@jit
def _insert(found, distances, count, k, j, d2):
    """Put candidate j among the k nearest so far, in order of distance and then of index; return their number."""
    if count == k and (d2 > distances[k - 1] or (d2 == distances[k - 1] and j > found[k - 1])):
        return count
    for b in range(count):
        if found[b] == j:
            return count
    at = count if count < k else k - 1
    while at > 0 and (distances[at - 1] > d2 or (distances[at - 1] == d2 and found[at - 1] > j)):
        distances[at] = distances[at - 1]
        found[at] = found[at - 1]
        at -= 1
    distances[at] = d2
    found[at] = j
    return min(count + 1, k)


@jit
def _by_index(found, distances):
    for b in range(1, found.size):
        j, d2, at = found[b], distances[b], b
        while at > 0 and found[at - 1] > j:
            found[at] = found[at - 1]
            distances[at] = distances[at - 1]
            at -= 1
        found[at] = j
        distances[at] = d2


@jit
def nearest_candidates(start, stop, order, points, candidates, indices, sq_dist, counts):
    """Fill each row with the nearest of its candidates, ordered by index, and the number of them that there are.

    Rows are those of `order`, one for each row of candidates: where rows near in space follow each other, points are
    still in the cache. Candidates may repeat, be the row itself or be negative; none of these count.
    """
    k = indices.shape[1]
    n_dims = points.shape[1]
    for s in range(start, stop):
        i = order[s]
        found = indices[i]
        distances = sq_dist[i]
        count = 0
        for e in range(candidates.shape[1]):
            j = candidates[s, e]
            if j < 0 or j == i:
                continue
            total = 0.0
            for a in range(n_dims):
                difference = np.float64(points[i, a]) - np.float64(points[j, a])
                total += difference * difference
            count = _insert(found, distances, count, k, j, total)
        _by_index(found[:count], distances[:count])
        counts[i] = count


@jit
def nearest_sparse_candidates(start, stop, order, indptr, columns, entries, candidates, indices, sq_dist, counts):
    """Do what `nearest_candidates` does for the rows of a csr matrix with sorted columns."""
    k = indices.shape[1]
    for s in range(start, stop):
        i = order[s]
        found = indices[i]
        distances = sq_dist[i]
        count = 0
        for e in range(candidates.shape[1]):
            j = candidates[s, e]
            if j < 0 or j == i:
                continue
            a, b = np.int64(indptr[i]), np.int64(indptr[j])
            a_end, b_end = np.int64(indptr[i + 1]), np.int64(indptr[j + 1])
            total = 0.0
            while a < a_end or b < b_end:
                if b >= b_end or (a < a_end and columns[a] < columns[b]):
                    total += entries[a] * entries[a]
                    a += 1
                elif a >= a_end or columns[b] < columns[a]:
                    total += entries[b] * entries[b]
                    b += 1
                else:
                    difference = entries[a] - entries[b]
                    total += difference * difference
                    a += 1
                    b += 1
            count = _insert(found, distances, count, k, j, total)
        _by_index(found[:count], distances[:count])
        counts[i] = count
