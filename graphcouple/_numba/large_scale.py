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

    T_ig is the mean of both `spread`s. Also the gradients in the rows and, summed over each block of rows, in the
    centres (of shape (q, n_groups)), with the spreads held; and the derivatives in the spreads.
    """
    n_dims, n_groups = centres.shape
    scale, steep = np.empty(n_groups), np.empty(n_groups)
    for b in range(start, stop):
        force_on[b] = 0.0
        pull_on[b] = 0.0
        for i in range(b * block, min((b + 1) * block, Z.shape[0])):
            steep[:] = 0.0
            for a in range(n_dims):
                for g in range(n_groups):
                    steep[g] += (Z[i, a] - centres[a, g]) * (Z[i, a] - centres[a, g])
            total = 0.0
            slope = 0.0
            if with_value:
                for g in range(n_groups):
                    u = 2.0 * steep[g] / (spread[i] + spread_of[g])
                    total += weights[g] * (np.log(1.0 + u) - (1.0 - near[i, g]) * np.log(u + softening))
            for g in range(n_groups):
                scale[g] = 2.0 / (spread[i] + spread_of[g])
                u = steep[g] * scale[g]
                steep[g] = weights[g] * scale[g] * (1.0 / (1.0 + u) - (1.0 - near[i, g]) / (u + softening))
                along = 0.5 * steep[g] * u
                slope -= along
                pull_on[b, g] -= along
            value[i] = total
            pull[i] = slope
            for a in range(n_dims):
                total = 0.0
                for g in range(n_groups):
                    force = 2.0 * steep[g] * (Z[i, a] - centres[a, g])
                    total += force
                    force_on[b, a, g] -= force
                gradient[i, a] = total
