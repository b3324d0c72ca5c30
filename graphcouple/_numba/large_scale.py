"""Near and far points and groups of points, at the scale of the whole embedding."""

import numpy as np

from graphcouple._numba.jit import jit


@jit
def fill_near(start, stop, sq_dist, sizes, width, near):
    """Fill p = 1/(1 + e^{(r − ½)/width}) for rows of distances to groups.

    r is the share of points in nearer groups, plus half the share of points in groups equally far up to rounding.
    """
    n_groups = sizes.size
    total = sizes.sum()
    for i in range(start, stop):
        order = np.argsort(sq_dist[i])
        first, nearer = 0, 0.0
        while first < n_groups:
            last, mass = first + 1, float(sizes[order[first]])
            limit = sq_dist[i, order[first]] * (1.0 + 1e-9) + 1e-20 * sq_dist[i, order[n_groups - 1]]
            while last < n_groups and sq_dist[i, order[last]] <= limit:
                mass += sizes[order[last]]
                last += 1
            share = (nearer + 0.5 * mass) / total
            for g in order[first:last]:
                near[i, g] = 1.0 / (1.0 + np.exp((share - 0.5) / width))
            first, nearer = last, nearer + mass


@jit
def near_or_far(
    start, stop, block, Z, spread, centres, spread_of, weights, near, softening, with_value,
    value, gradient, pull, force_on, pull_on,
):  # fmt: skip
    """Fill Σ_g w_g [log(1 + u_ig) − (1 − p_ig) log(u_ig + softening)] for each row, with u = d²/T.

    T_ig is the sum of both `spread`s. Also fills half the gradients in the rows and, summed over each block of rows, in
    the centres (of shape (q, n_groups)), at fixed spreads; and the derivatives in the spreads. Sums have the precision
    of `Z`.
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
                    component = steep[g] * (Z[i, a] - centres[a, g])
                    force += component
                    force_on[b, a, g] -= component
                gradient[i, a] = force
