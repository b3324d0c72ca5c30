"""Ranks of all points by their distance, and the agreement of two rankings."""

import numpy as np

from graphcouple._numba.jit import jit

# Bits of a digit: three digits sort single precision, six double precision, and 2^11 counts take 16 kB.
_DIGIT = 11


@jit
def _sq_dist(x, y):
    total = x[0] - x[0]
    for a in range(x.size):
        difference = x[a] - y[a]
        total += difference * difference
    return total


@jit
def sq_dists_from_products(points, sq_norms, others, others_sq_norms, tol, block):
    """Turn inner products of points with others into squared distances.

    If nearly all digits cancel, as for duplicates, the coordinates are subtracted first.
    """
    for s in range(points.shape[0]):
        for j in range(others.shape[0]):
            sq_norm = sq_norms[s] + others_sq_norms[j]
            d2 = sq_norm - (block[s, j] + block[s, j])
            if d2 < tol * sq_norm:
                d2 = _sq_dist(points[s], others[j])
            block[s, j] = d2


@jit
def sq_dists_by_differences(points, others, block):
    """Fill the squared distances of points to others, given with one coordinate per row."""
    block[:] = 0.0
    for s in range(points.shape[0]):
        row = block[s]
        for a in range(others.shape[0]):
            origin = points[s, a]
            for j in range(others.shape[1]):
                difference = others[a, j] - origin
                row[j] += difference * difference


@jit
def _order(keys, order, spare_keys, spare_order, counts):
    """Sort stably by radix; return the order, in `order` or `spare_order`.

    Keys of double precision are rounded to all but their last digit, 42 bits, so that rounding seldom breaks a tie.
    """
    n, size = keys.size, counts.size
    mask = np.uint64(size - 1)
    first = _DIGIT if keys.itemsize == 8 else 0
    half = np.uint64((1 << first) >> 1)
    for i in range(n):
        order[i] = i
        keys[i] += half
    for shift in range(first, 8 * keys.itemsize, _DIGIT):
        counts[:] = 0
        for i in range(n):
            counts[np.int64((np.uint64(keys[i]) >> np.uint64(shift)) & mask)] += 1
        total = 0
        for digit in range(size):
            count = counts[digit]
            counts[digit] = total
            total += count
        for i in range(n):
            digit = np.int64((np.uint64(keys[i]) >> np.uint64(shift)) & mask)
            at = counts[digit]
            counts[digit] = at + 1
            spare_keys[at] = keys[i]
            spare_order[at] = order[i]
        keys, spare_keys = spare_keys, keys
        order, spare_order = spare_order, order
    return order


@jit
def order_rows(keys, orders):
    """Fill the order of the columns of each row; equal keys keep their order. Overwrites the keys."""
    n = keys.shape[1]
    spare_keys = np.empty_like(keys[0])
    order, spare_order = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    counts = np.empty(1 << _DIGIT, dtype=np.int64)
    for s in range(keys.shape[0]):
        orders[s] = _order(keys[s], order, spare_keys, spare_order, counts)


@jit
def ranks_of_orders(orders, ranks):
    """Fill the rank, from 1, of each column in its row's order."""
    for s in range(orders.shape[0]):
        for r in range(orders.shape[1]):
            ranks[s, orders[s, r]] = r + 1


@jit
def agreement(ranks, orders, sizes, curves, sums, squares):
    """Fill each row's number of shared neighbors, its intrusions and its extrusions, for all sizes K of neighborhoods.

    `ranks` are from the data, `orders` from the embedding; the last entry of an order does not count.
    Intrusions are Σ (ρ − K) over points among the K nearest in the embedding with rank ρ > K in the data; extrusions
    the other way round. `curves` has shape (n_rows, 3, n_sizes), for a few sizes in increasing order. Sums and squares
    over rows, for all sizes, are added to `sums` and `squares`, of shape (3, n).
    """
    n = orders.shape[1]
    # A row that is not among the columns has ranks up to n.
    shared, intrusions, extrusions = np.empty((3, n + 1), np.int64)
    for s in range(orders.shape[0]):
        shared[:] = intrusions[:] = extrusions[:] = 0
        for r in range(1, n):
            rho = np.int64(ranks[s, orders[s, r - 1]])
            if rho > r:
                shared[rho] += 1
                intrusions[r] += rho
                intrusions[rho] -= rho
            else:
                shared[r] += 1
                extrusions[rho] += r
                extrusions[r] -= r
        n_shared, intrusion, extrusion, at = 0, 0, 0, 0
        for k in range(n):
            n_shared += shared[k]
            intrusion += intrusions[k]
            extrusion += extrusions[k]
            outside = k * (k - n_shared)
            values = (np.float64(n_shared), np.float64(intrusion - outside), np.float64(extrusion - outside))
            for a in range(3):
                sums[a, k] += values[a]
                squares[a, k] += values[a] ** 2
            if at < sizes.size and sizes[at] == k:
                for a in range(3):
                    curves[s, a, at] = values[a]
                at += 1
