"""Pairs of near and far points at the scale of the whole embedding, row by row."""

from __future__ import annotations

import numpy as np

from graphcouple._numba.jit import jit


@jit
def shares_nearer(start, stop, references, indptr, sq_dist, tie, share):
    """Fill, for each pair of a row, the share of the row's ascending `references` below it; ties count as half.

    Distances that differ by less than the share `tie` are equal.
    """
    n_references = references.shape[1]
    for i in range(start, stop):
        for e in range(indptr[i], indptr[i + 1]):
            below = np.searchsorted(references[i], sq_dist[e] * (1.0 - tie), side="left")
            up_to = np.searchsorted(references[i], sq_dist[e] * (1.0 + tie), side="right")
            share[e] = 0.5 * (below + up_to) / n_references


@jit
def near_or_far(start, stop, Z, spread, indptr, indices, near, softening, with_value, value, gradient, pull):
    """Fill Σ_j log(1 + u_ij) − (1 − p_ij) log(u_ij + softening) over a row's pairs, with u = d²/T.

    T_ij is the mean of both ends' `spread`. Also its gradient with the spreads held, and the derivative in the row's
    own spread; both are those of the sum over unordered pairs.
    """
    n_dims = Z.shape[1]
    force = np.empty(n_dims)
    for i in range(start, stop):
        total = 0.0
        slope = 0.0
        force[:] = 0.0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            sq_dist = 0.0
            for a in range(n_dims):
                sq_dist += (Z[i, a] - Z[j, a]) * (Z[i, a] - Z[j, a])
            scale = 2.0 / (spread[i] + spread[j])
            u = sq_dist * scale
            far = 1.0 - near[e]
            steep = (1.0 / (1.0 + u) - far / (u + softening)) * scale
            if with_value:
                total += np.log(1.0 + u) - far * np.log(u + softening)
            slope -= 0.5 * steep * u
            for a in range(n_dims):
                force[a] += 2.0 * steep * (Z[i, a] - Z[j, a])
        value[i] = total
        pull[i] = slope
        for a in range(n_dims):
            gradient[i, a] = force[a]
