"""Points and groups of them, near and far, at the scale of the whole embedding."""

from __future__ import annotations

import numpy as np

from graphcouple._numba.jit import jit


@jit
def near_or_far(
    start,
    stop,
    block,
    Z,
    spread,
    centres,
    spread_of,
    weights,
    near,
    softening,
    with_value,
    value,
    gradient,
    pull,
    force_on,
    pull_on,
):
    """Fill Σ_g w_g [log(1 + u_ig) − (1 − p_ig) log(u_ig + softening)] for each row, with u = d²/T.

    T_ig is the sum of both `spread`s. Also half the gradients in the rows and, summed over each block of rows, in the
    centres (of shape (q, n_groups)), with the spreads held; and the derivatives in the spreads. Sums have the
    precision of `Z`.
    """
    n_dims, n_groups = centres.shape
    steep = np.empty(n_groups, Z.dtype)
    one, soft = Z.dtype.type(1.0), Z.dtype.type(softening)
    for b in range(start, stop):
        force_on[b] = 0
        pull_on[b] = 0
        for i in range(b * block, min((b + 1) * block, Z.shape[0])):
            steep[:] = 0
            for a in range(n_dims):
                for g in range(n_groups):
                    steep[g] += (Z[i, a] - centres[a, g]) * (Z[i, a] - centres[a, g])
            if with_value:
                total = 0.0
                for g in range(n_groups):
                    u = steep[g] / (spread[i] + spread_of[g])
                    total += weights[g] * (np.log(one + u) - (one - near[i, g]) * np.log(u + soft))
                value[i] = total
            slope = Z.dtype.type(0.0)
            for g in range(n_groups):
                # With 1 + u = wide/T and u + softening = close/T, one division gives both derivatives.
                T = spread[i] + spread_of[g]
                wide, close = T + steep[g], steep[g] + soft * T
                ratio = weights[g] * (close - (one - near[i, g]) * wide) / (T * wide * close)
                slope -= ratio * steep[g]
                pull_on[b, g] -= ratio * steep[g]
                steep[g] = ratio * T
            pull[i] = slope
            for a in range(n_dims):
                force = Z.dtype.type(0.0)
                for g in range(n_groups):
                    along = steep[g] * (Z[i, a] - centres[a, g])
                    force += along
                    force_on[b, a, g] -= along
                gradient[i, a] = force
