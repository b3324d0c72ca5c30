"""Exact sums over all pairs for several sets of charges at once, or for charges of pairs that have low rank."""

from __future__ import annotations

import numpy as np

from graphcouple._numba import formulas as _formulas  # noqa: F401  registers the formula type
from graphcouple._numba.jit import jit
from graphcouple._numba.pairs import _BLOCK, _evaluate


@jit
def fill_distances(place, coords, b, m, sq_dist):
    sq_dist[:m] = 0.0
    for a in range(coords.shape[0]):
        here = place[a]
        there = coords[a, b : b + m]
        for j in range(m):
            sq_dist[j] += (here - there[j]) * (here - there[j])


@jit
def fill_charges(left, right, b, m, c):
    rank = right.shape[0]
    c[:m] = 0.0
    s = 0
    # Four at a time: charges are then loaded and stored a quarter as often.
    while s + 4 <= rank:
        m0, m1, m2, m3 = left[s], left[s + 1], left[s + 2], left[s + 3]
        r0, r1, r2, r3 = (
            right[s, b : b + m],
            right[s + 1, b : b + m],
            right[s + 2, b : b + m],
            right[s + 3, b : b + m],
        )
        for j in range(m):
            c[j] += (m0 * r0[j] + m1 * r1[j]) + (m2 * r2[j] + m3 * r3[j])
        s += 4
    while s < rank:
        m0 = left[s]
        r0 = right[s, b : b + m]
        for j in range(m):
            c[j] += m0 * r0[j]
        s += 1


@jit
def charge_rows(start, stop, coords, radial, charges, potential):
    """Fill Φ_i of each set of charges, shape (n, n_sets); `coords` has shape (q, n) and `charges` (n_sets, n)."""
    n_sets, n_points = charges.shape
    sq_dist, value, unused = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for i in range(start, stop):
        potential[i] = 0.0
        for b in range(0, n_points, _BLOCK):
            m = min(_BLOCK, n_points - b)
            fill_distances(coords[:, i], coords, b, m, sq_dist)
            _evaluate(radial, sq_dist[:m], value, unused, True, False)
            if b <= i < b + m:
                value[i - b] = 0.0
            for s in range(n_sets):
                c = charges[s, b : b + m]
                total = 0.0
                for j in range(m):
                    total += c[j] * value[j]
                potential[i, s] += total


@jit
def low_rank_rows(start, stop, coords, radial, left, right, with_potential, with_gradient, potential, gradient):
    """Fill Φ_i = Σ_{j≠i} c_ij φ(d²_ij) and ∇Φ_i with c_ij = Σ_s left_is right_sj.

    `coords` has shape (q, n), `left` (n, rank) and `right` (rank, n).
    """
    n_dims, n_points = coords.shape
    sq_dist, value, slope, c = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for i in range(start, stop):
        total = 0.0
        gradient[i] = 0.0
        for b in range(0, n_points, _BLOCK):
            m = min(_BLOCK, n_points - b)
            fill_distances(coords[:, i], coords, b, m, sq_dist)
            _evaluate(radial, sq_dist[:m], value, slope, with_potential, with_gradient)
            fill_charges(left[i], right, b, m, c)
            if b <= i < b + m:
                c[i - b] = 0.0
                value[i - b] = 0.0
                slope[i - b] = 0.0
            if with_potential:
                for j in range(m):
                    total += c[j] * value[j]
            if with_gradient:
                for j in range(m):
                    c[j] *= slope[j]
                for a in range(n_dims):
                    here = coords[a, i]
                    there = coords[a, b : b + m]
                    pull = 0.0
                    for j in range(m):
                        pull += c[j] * (here - there[j])
                    gradient[i, a] += 2.0 * pull
        potential[i] = total
