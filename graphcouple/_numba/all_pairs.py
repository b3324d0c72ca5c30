"""Exact sums over all pairs of points, each pair visited once."""

import numpy as np

from graphcouple._numba.blocks import BLOCK, fill, in_blocks
from graphcouple._numba.jit import jit
from graphcouple._numba.pairs import fill_distances, worth_threads
from graphcouple._numba.threads import over_rows

# Number of parts of the pairs; each has its own sums, so that results do not depend on the number of threads.
_PARTS = 8

NO_CHARGES = np.zeros((0, 0))


@jit
def fill_charges(left, right, b, m, c):
    c[:m] = 0.0
    for s in range(right.shape[0]):
        own = left[s]
        others = right[s, b : b + m]
        for j in range(m):
            c[j] += own * others[j]


def sum_pairs(Z, radial, n_jobs, charges, with_potential=True, with_gradient=True):
    """Return Φ_i = Σ_{j≠i} c_ij φ(d²_ij), of shape (n,), and ∇Φ_i, of shape (n, q), in float64.

    `charges` is symmetric and of shape (n, n), or of shape (1, n) where c_ij = c_j. Without its flag, an array holds
    arbitrary values.
    """
    c = np.ascontiguousarray(charges, dtype=np.float64)
    if Z.shape[1] <= 3 and not radial.tabulated:
        return _in_registers(Z, False, n_jobs, radial, c, with_potential, with_gradient)
    factors = (NO_CHARGES, NO_CHARGES, c) if len(c) > 1 else (np.ones(c.shape), c, NO_CHARGES)
    return sum_low_rank(Z, (radial, radial), *factors, n_jobs, with_potential, with_gradient)


def sum_low_rank(Z, sources, left, right, dense, n_jobs, with_potential=True, with_gradient=True):
    """Return the sums of `sum_pairs` with c_ij = Σ_s left_si right_sj, or with the charges in `dense` if it has rows.

    `sources` give the slopes and the values, each by a formula or from a table of cubics.
    """
    n_dims, radial = Z.shape[1], sources[0]
    by_formula = not isinstance(radial, np.ndarray)
    if by_formula and len(dense) == 0 and len(left) == 2 and n_dims <= 3 and not radial.tabulated:
        return _in_registers(Z, True, n_jobs, radial, np.vstack([left, right]), with_potential, with_gradient)
    coords = np.ascontiguousarray(Z.T, dtype=np.float64)
    sources = [in_blocks(radial)] * 2 if by_formula else sources
    return _by_parts(pairs_once, n_jobs, coords, n_dims, *sources, left, right, dense, with_potential, with_gradient)


def _in_registers(Z, crossed, n_jobs, *arrays):
    n, n_dims = Z.shape
    coords = np.zeros((max(n_dims, 2), n))
    coords[:n_dims] = Z.T
    return _by_parts(IN_REGISTERS[n_dims == 3, crossed], n_jobs, coords, n_dims, *arrays)


def _by_parts(loop, n_jobs, coords, n_dims, *arrays):
    n_coords, n = coords.shape
    bounds = _parts(n)
    potential, gradient = np.empty((len(bounds) - 1, n)), np.empty((len(bounds) - 1, n_coords, n))
    over_rows(len(bounds) - 1, n_jobs, loop, bounds, coords, *arrays, potential, gradient, at_least=2)
    return potential.sum(axis=0), 2.0 * gradient[:, :n_dims].sum(axis=0).T


def _parts(n_points):
    """Return the bounds of parts of the rows with about equally many pairs (i, j), j > i."""
    if n_points < worth_threads(n_points):
        return np.array([0, n_points])
    remainder = np.arange(_PARTS, -1, -1) / _PARTS
    return n_points - np.round(n_points * np.sqrt(remainder)).astype(np.int64)


def _loop_over_pairs(spatial, crossed):
    """Return the loop over pairs for three coordinates if `spatial`, and else for two, in registers.

    If `crossed`, c_ij = a_i c_j + b_i d_j, for the four rows of `charges`; else `charges` is symmetric, or one row for
    all points.
    """

    def pairs(start, stop, bounds, coords, radial, charges, with_potential, with_gradient, potential, gradient):
        """Add Φ_i = Σ_{j≠i} c_ij φ(d²_ij) and ½∇Φ_i by parts, as `pairs_once`."""
        dense, last = not crossed and charges.shape[0] > 1, coords.shape[0] - 1
        xs, ys, zs = coords[0], coords[1], coords[last]
        for part in range(start, stop):
            potential[part] = 0.0
            gradient[part] = 0.0
            px, py, pz = gradient[part, 0], gradient[part, 1], gradient[part, last]
            for i in range(bounds[part], bounds[part + 1]):
                k, x, y, z = i + 1, xs[i], ys[i], zs[i]
                xj, yj, zj, others = xs[k:], ys[k:], zs[k:], potential[part, k:]
                gx, gy, gz = px[k:], py[k:], pz[k:]
                own = charges[0 if crossed or not dense else i]
                if crossed:
                    ai, bi, ci, di = charges[0, i], charges[1, i], charges[2, i], charges[3, i]
                    a, b, c, d = charges[0, k:], charges[1, k:], charges[2, k:], charges[3, k:]
                else:
                    ai, bi, ci, di = 1.0, 0.0, own[i], 0.0
                    a, b, c, d = own[k:], own[k:], own[k:], own[k:]
                if with_potential:
                    total = 0.0
                    for j in range(xj.size):
                        dx, dy, dz = x - xj[j], y - yj[j], z - zj[j] if spatial else 0.0
                        value = radial.potential(dx * dx + dy * dy + dz * dz)
                        total += (ai * c[j] + bi * d[j] if crossed else c[j]) * value
                        others[j] += (ci * a[j] + di * b[j] if crossed else c[j] if dense else ci) * value
                    potential[part, i] += total
                if with_gradient:
                    fx, fy, fz = 0.0, 0.0, 0.0
                    for j in range(xj.size):
                        dx, dy, dz = x - xj[j], y - yj[j], z - zj[j] if spatial else 0.0
                        slope = radial.slope(dx * dx + dy * dy + dz * dz)
                        there = (ai * c[j] + bi * d[j] if crossed else c[j]) * slope
                        back = (ci * a[j] + di * b[j] if crossed else c[j] if dense else ci) * slope
                        fx += there * dx
                        fy += there * dy
                        gx[j] -= back * dx
                        gy[j] -= back * dy
                        if spatial:
                            fz += there * dz
                            gz[j] -= back * dz
                    px[i] += fx
                    py[i] += fy
                    if spatial:
                        pz[i] += fz

    # The name of the file with the machine code.
    pairs.__qualname__ = f"pairs_in_{'space' if spatial else 'plane'}{'_crossed' if crossed else ''}"
    return jit(pairs)


IN_REGISTERS = {(s, c): _loop_over_pairs(s, c) for s in (False, True) for c in (False, True)}


@jit
def _fill_both(i, b, m, left, right, dense, c, back):
    if dense.shape[0] > 0:
        # Assigning slices takes two seconds to compile, for the text of its error.
        for j in range(m):
            c[j] = back[j] = dense[i, b + j]
    else:
        fill_charges(left[:, i], right, b, m, c)
        fill_charges(right[:, i], left, b, m, back)


@jit
def _add_values(c, back, value, others):
    total = 0.0
    for j in range(c.size):
        total += c[j] * value[j]
    for j in range(c.size):
        others[j] += back[j] * value[j]
    return total


@jit
def _add_slopes(i, b, m, coords, c, back, slope, gradient):
    for j in range(m):
        c[j] *= slope[j]
        back[j] *= slope[j]
    for a in range(coords.shape[0]):
        here = coords[a, i]
        there, others = coords[a, b : b + m], gradient[a, b : b + m]
        pull = 0.0
        for j in range(m):
            pull += c[j] * (here - there[j])
            others[j] += back[j] * (there[j] - here)
        gradient[a, i] += pull


@jit
def pairs_once(
    start, stop, bounds, coords, slopes, values, left, right, dense, with_potential, with_gradient, potential, gradient
):
    """Add Φ_i = Σ_{j≠i} c_ij φ(d²_ij) and ½∇Φ_i, with c_ij = Σ_s left_si right_sj, comparing the points of a pair once.

    Part p, from `start` to `stop`, compares the points from `bounds[p]` to `bounds[p + 1]` with all later ones, and
    fills its own `potential[p]`, of shape (n,), and `gradient[p]`, of shape (q, n). `coords` has shape (q, n).
    If the symmetric matrix `dense` has rows, it holds the charges.
    """
    n_points = coords.shape[1]
    sq_dist, c, back, value = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for part in range(start, stop):
        potential[part] = 0.0
        gradient[part] = 0.0
        for i in range(bounds[part], bounds[part + 1]):
            for b in range(i + 1, n_points, BLOCK):
                m = min(BLOCK, n_points - b)
                fill_distances(coords[:, i], coords, b, m, sq_dist)
                _fill_both(i, b, m, left, right, dense, c, back)
                if with_potential:
                    fill(values, False, sq_dist[:m], value)
                    potential[part, i] += _add_values(c[:m], back[:m], value[:m], potential[part, b : b + m])
                if with_gradient:
                    fill(slopes, True, sq_dist[:m], value)
                    _add_slopes(i, b, m, coords, c, back, value, gradient[part])
