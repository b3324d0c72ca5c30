"""Edges against points drawn at random, with the same bits for any number of threads.

The points drawn for i lie `shifts` places behind it in a random order, so it is also known which points drew i.
"""

import numpy as np

from graphcouple._numba import formulas as _formulas  # noqa: F401  registers the formula type
from graphcouple._numba.jit import jit
from graphcouple._numba.nearest import sq_dist_between

# Kernels below this are compared by their logarithms.
_SMALL = 1e-200


@jit
def _share(log_kernel, kernel, sq_dist, total, log_total):
    """Return k/(k + S), S given with its logarithm."""
    k = kernel.potential(sq_dist)
    if k > _SMALL or total > _SMALL:
        return k / (k + total)
    return 1.0 / (1.0 + np.exp(log_total - log_kernel.potential(sq_dist)))


@jit
def drawn_rows(start, stop, points, log_kernel, order, place, shifts, total, log_total):
    """Fill S_i, the sum of k over the points drawn for i, and log S_i; `place` is the inverse of `order`."""
    n = points.shape[0]
    logs = np.empty(shifts.size)
    for i in range(start, stop):
        largest = -np.inf
        for s in range(shifts.size):
            logs[s] = log_kernel.potential(sq_dist_between(points, i, points, order[(place[i] + shifts[s]) % n]))
            largest = max(largest, logs[s])
        relative = 0.0
        for s in range(shifts.size):
            relative += np.exp(logs[s] - largest)
        log_total[i] = largest + np.log(relative)
        total[i] = np.exp(log_total[i])


@jit
def contrast_values(start, stop, points, log_kernel, log_total, indptr, indices, weights, value):
    """Fill Σ_j w_ij log(k_ij + S_i)."""
    for i in range(start, stop):
        loss = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            above = log_kernel.potential(sq_dist_between(points, i, points, indices[e])) - log_total[i]
            loss += weights[e] * (log_total[i] + max(above, 0.0) + np.log1p(np.exp(-abs(above))))
        value[i] = loss


@jit
def contrast_edges(
    start, stop, points, log_kernel, kernel, total, log_total, indptr, indices, weights, pull, gradient
):  # fmt: skip
    """Fill Σ_j w_ij S_i/(k_ij + S_i), and the edges' part of the gradient of Σ_ij w_ij log(k_ij + S_i), w symmetric."""
    n_dims = points.shape[1]
    for i in range(start, stop):
        gradient[i] = 0.0
        lost = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            sq_dist = sq_dist_between(points, i, points, j)
            own = _share(log_kernel, kernel, sq_dist, total[i], log_total[i])
            other = _share(log_kernel, kernel, sq_dist, total[j], log_total[j])
            lost += weights[e] * (1.0 - own)
            push = 2.0 * weights[e] * (own + other) * log_kernel.slope(sq_dist)
            for a in range(n_dims):
                gradient[i, a] += push * (points[i, a] - points[j, a])
        pull[i] = lost


@jit
def add_drawn(start, stop, points, log_kernel, order, place, shifts, log_total, pull, gradient):
    """Add the drawn points' part of the gradient."""
    n, n_dims = points.shape
    for i in range(start, stop):
        for s in range(shifts.size):
            for way in (1, -1):
                # First the point that i drew, then the point that drew i.
                j = order[(place[i] + way * shifts[s]) % n]
                drew = i if way == 1 else j
                sq_dist = sq_dist_between(points, i, points, j)
                share = np.exp(log_kernel.potential(sq_dist) - log_total[drew])
                push = 2.0 * pull[drew] * share * log_kernel.slope(sq_dist)
                for a in range(n_dims):
                    gradient[i, a] += push * (points[i, a] - points[j, a])
