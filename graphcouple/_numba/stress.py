"""Losses of matched distances, row by row."""

from __future__ import annotations

import numpy as np

from graphcouple._numba import formulas as _formulas  # noqa: F401  registers the formula type
from graphcouple._numba.jit import jit


@jit
def matched_distances(start, stop, Z, indptr, indices, targets, weights, loss, value, gradient):
    """Fill Σ_j w_ij F̂(δ_ij, |z_i − z_j|) over a row's pairs, and twice its gradient in z_i.

    The support is symmetric, and so are δ and w, so twice a row's gradient is the gradient of the sum over all rows.
    Points in one place have no direction in which to move apart, and feel no force.
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
            distance = np.sqrt(sq_dist)
            total += weights[e] * loss.cost(targets[e], distance)
            if distance > 0.0:
                pull = 2.0 * weights[e] * loss.grad_cost(targets[e], distance) / distance
                for a in range(n_dims):
                    force[a] += pull * (Z[i, a] - Z[j, a])
        value[i] = total
        for a in range(n_dims):
            gradient[i, a] = force[a]
