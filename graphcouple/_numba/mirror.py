"""m + mᵀ of a sparse matrix m, in place: the sums of edges with a reverse, and the reverses of the others.

Also the product of a sparse matrix with points.
"""

import numpy as np

from graphcouple._numba.blocks import BLOCK
from graphcouple._numba.jit import jit


@jit
def add_reverses(start, stop, indptr, indices, weights, one_way):
    """Give both directions of a pair the sum of their weights, and mark the edges that have no reverse.

    The columns of a row are sorted. A pair is added by its smaller row alone, so rows can be processed in parallel. An
    edge from a point to itself is its own reverse.
    """
    for i in range(start, stop):
        for e in range(np.int64(indptr[i]), np.int64(indptr[i + 1])):
            j = np.int64(indices[e])
            end = np.int64(indptr[j + 1])
            low, high = np.int64(indptr[j]), end
            while low < high:
                middle = (low + high) >> 1
                if np.int64(indices[middle]) < i:
                    low = middle + 1
                else:
                    high = middle
            one_way[e] = low == end or np.int64(indices[low]) != i
            if i <= j and not one_way[e]:
                weights[e] += weights[low]
                weights[low] = weights[e]


@jit
def count_reverses(indices, one_way, counts):
    """Count the edges without a reverse that lead to each column."""
    for e in range(indices.size):
        if one_way[e]:
            counts[indices[e]] += 1


@jit
def fill_reverses(indptr, indices, weights, one_way, place, columns, entries):
    """Fill the reverses of one-way edges; their row j begins at `place[j]`, which moves to the row's end."""
    for i in range(indptr.size - 1):
        for e in range(np.int64(indptr[i]), np.int64(indptr[i + 1])):
            if one_way[e]:
                at = place[indices[e]]
                columns[at] = i
                entries[at] = weights[e]
                place[indices[e]] = at + 1


@jit
def merge_rows(starts, columns, entries, more_starts, more_columns, more_entries, indptr, merged, values):
    """Fill rows with the entries of two csr matrices that share no position, in the order of columns."""
    for i in range(indptr.size - 1):
        a, end = np.int64(starts[i]), np.int64(starts[i + 1])
        b, last = np.int64(more_starts[i]), np.int64(more_starts[i + 1])
        for at in range(indptr[i], indptr[i + 1]):
            if b == last or (a < end and columns[a] < more_columns[b]):
                merged[at], values[at] = columns[a], entries[a]
                a += 1
            else:
                merged[at], values[at] = more_columns[b], more_entries[b]
                b += 1


@jit
def gather_rows(start, stop, order, indptr, values, starts, gathered):
    """Fill row i of a csr matrix with the entries of row `order[i]` of another."""
    for i in range(start, stop):
        first, at = np.int64(indptr[order[i]]), np.int64(starts[i])
        for e in range(np.int64(starts[i + 1]) - at):
            gathered[at + e] = values[first + e]


@jit
def relabel_rows(start, stop, indptr, rank, indices, values):
    """Replace each column by its rank, and sort each row by rank."""
    for i in range(start, stop):
        a, b = np.int64(indptr[i]), np.int64(indptr[i + 1])
        # The column in the upper half and the position in the lower one are sorted together.
        keys, row = np.empty(b - a, dtype=np.int64), values[a:b].copy()
        for e in range(b - a):
            keys[e] = np.int64(rank[indices[a + e]]) << 32 | e
        keys.sort()
        for e in range(b - a):
            indices[a + e] = keys[e] >> 32
            values[a + e] = row[keys[e] & 0xFFFFFFFF]


@jit
def multiply_rows(start, stop, indptr, indices, weights, points, product):
    """Fill rows of Σ_j w_ij z_j; as in `edge_rows_2d`, a block of points is read in a loop of its own."""
    n_dims = points.shape[1]
    block = np.empty((n_dims, BLOCK), dtype=points.dtype)
    for i in range(start, stop):
        product[i] = 0.0
        end = np.int64(indptr[i + 1])
        for b in range(np.int64(indptr[i]), end, BLOCK):
            m = min(BLOCK, end - b)
            for e in range(m):
                j = indices[b + e]
                for a in range(n_dims):
                    block[a, e] = points[j, a]
            for a in range(n_dims):
                total = 0.0
                for e in range(m):
                    total += np.float64(weights[b + e]) * block[a, e]
                product[i, a] += total
