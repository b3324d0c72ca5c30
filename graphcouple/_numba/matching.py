"""Losses of matched edges, and stress, row by row."""

import numpy as np

from graphcouple._numba import formulas as _formulas  # noqa: F401  registers the formula type
from graphcouple._numba.jit import jit
from graphcouple._numba.nearest import sq_dist_between


@jit
def matched_edges(start, stop, Z, indptr, indices, ahead, back, loss, kernel, value, gradient):
    """Fill Σ_j F̂(e_ij, p) − F̂(0, p), p = k/(1 + k), over a row's edges, and the gradient of the sum over all rows.

    `ahead` holds e_ij and `back` e_ji. The support is symmetric.
    """
    n_dims = Z.shape[1]
    for i in range(start, stop):
        total = 0.0
        gradient[i] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            sq_dist = sq_dist_between(Z, i, Z, j)
            p = kernel.edge_probability(sq_dist)
            total += loss.cost(ahead[e], p) - loss.cost(0.0, p)
            slope = loss.grad_cost(ahead[e], p) + loss.grad_cost(back[e], p) - 2.0 * loss.grad_cost(0.0, p)
            slope *= 2.0 * p * kernel.grad_log_probability(sq_dist)
            for a in range(n_dims):
                gradient[i, a] += slope * (Z[i, a] - Z[j, a])
        value[i] = total


@jit
def matched_distances(start, stop, Z, indptr, indices, targets, weights, loss, norm, value, gradient):
    """Fill Σ_j w_ij F̂(δ_ij, ‖z_i − z_j‖_norm) over a row's pairs, and twice its gradient in z_i.

    The support is symmetric, and so are δ and w, so twice a row's gradient is the gradient of the sum over all rows.
    Points in one place have no direction in which to move apart, and feel no force.
    """
    n_dims = Z.shape[1]
    for i in range(start, stop):
        total = 0.0
        gradient[i] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            if norm == 2.0:
                distance = np.sqrt(sq_dist_between(Z, i, Z, j))
            else:
                distance = 0.0
                for a in range(n_dims):
                    distance += abs(Z[i, a] - Z[j, a]) ** norm
                distance **= 1.0 / norm
            total += weights[e] * loss.cost(targets[e], distance)
            if distance > 0.0:
                pull = 2.0 * weights[e] * loss.grad_cost(targets[e], distance) / distance
                for a in range(n_dims):
                    away = Z[i, a] - Z[j, a]
                    if norm != 2.0:
                        away = np.sign(away) * distance * (abs(away) / distance) ** (norm - 1.0)
                    gradient[i, a] += pull * away
        value[i] = total
