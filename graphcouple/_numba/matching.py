"""Losses of matched edges, row by row."""

from __future__ import annotations

import numpy as np

from graphcouple._numba import formulas as _formulas  # noqa: F401  registers the formula type
from graphcouple._numba.jit import jit


@jit
def matched_edges(start, stop, Z, indptr, indices, ahead, back, loss, kernel, value, gradient):
    """Fill Σ_j F̂(e_ij, p) − F̂(0, p), p = k/(1 + k), over a row's edges, and the gradient of the sum over all rows.

    `ahead` holds e_ij and `back` e_ji. The support is symmetric.
    """
    n_dims = Z.shape[1]
    force = np.empty(n_dims)
    for i in range(start, stop):
        total = 0.0
        force[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            sq_dist = 0.0
            for a in range(n_dims):
                sq_dist += (Z[i, a] - Z[j, a]) * (Z[i, a] - Z[j, a])
            p = kernel.edge_probability(sq_dist)
            total += loss.cost(ahead[e], p) - loss.cost(0.0, p)
            slope = loss.grad_cost(ahead[e], p) + loss.grad_cost(back[e], p) - 2.0 * loss.grad_cost(0.0, p)
            slope *= 2.0 * p * kernel.grad_log_probability(sq_dist)
            for a in range(n_dims):
                force[a] += slope * (Z[i, a] - Z[j, a])
        value[i] = total
        for a in range(n_dims):
            gradient[i, a] = force[a]
