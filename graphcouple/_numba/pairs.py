"""Sums over pairs of points, row by row: over the stored edges of a sparse graph, or over all pairs of some points."""

from __future__ import annotations

import numpy as np

from graphcouple._numba.blocks import BLOCK, evaluate, fill_slopes, fill_values, in_blocks
from graphcouple._numba.jit import jit
from graphcouple._numba.tables import Linear
from graphcouple._numba.threads import over_rows

# Starting threads takes 0.3 ms, as long as the sums of this many pairs.
_PAIRS_WORTH_THREADS = 400_000


def worth_threads(pairs_per_row):
    """Return the number of rows above which threads save time, given the number of pairs in a row."""
    return max(64, _PAIRS_WORTH_THREADS // max(pairs_per_row, 1))


def sum_rows(Z, radial, charges, n_rows, n_jobs, with_potential=True, with_gradient=True):
    """Return Φ_i = Σ_{j≠i} c_j φ(d²_ij), of shape (n_rows,), and ∇Φ_i, of shape (n_rows, q), of the first points.

    Without its flag, an array holds arbitrary values. Memory beyond the arguments is O(nq).
    """
    potential, gradient = np.empty(n_rows), np.empty((n_rows, Z.shape[1]))
    coords = np.ascontiguousarray(Z.T, dtype=np.float64)
    arrays = (coords, in_blocks(radial), charges, with_potential, with_gradient, potential, gradient)
    over_rows(n_rows, n_jobs, potential_rows, *arrays, at_least=worth_threads(len(Z)))
    return potential, gradient


def sum_edges(Z, source, indptr, indices, weights, n_jobs, with_potential=True, with_gradient=True):
    """Return Φ_i = Σ_j c_ij φ(d²_ij) over the stored edges of a csr matrix of charges, and ∇Φ_i, in double precision.

    `source` is a radial function, or for two dimensions its `Linear` table. Points and weights in single precision
    halve the memory traffic; sums are always in double precision.
    """
    n_points, n_dims = Z.shape
    potential, gradient = np.empty(n_points), np.empty(Z.shape)
    source = source if isinstance(source, Linear) else in_blocks(source)
    arrays = (indptr, indices, weights, with_potential, with_gradient, potential, gradient)
    points, loop = (Z, edge_rows_2d) if n_dims == 2 else (Z.T, edge_rows)
    at_least = worth_threads(max(indices.size // max(n_points, 1), 1))
    over_rows(n_points, n_jobs, loop, np.ascontiguousarray(points), source, *arrays, at_least=at_least)
    return potential, gradient


@jit
def potential_rows(start, stop, coords, radial, charges, with_potential, with_gradient, potential, gradient):
    """Fill Φ_i = Σ_{j≠i} c_j φ(d²_ij) and ∇Φ_i = Σ_{j≠i} c_j 2 φ'(d²_ij) (z_i − z_j).

    `coords` has shape (q, n), so the values of one coordinate are contiguous.
    Distances are handled one block at a time, for any dimension q.
    """
    n_dims, n_points = coords.shape
    sq_dist = np.empty(BLOCK)
    value = np.empty(BLOCK)
    weight = np.empty(BLOCK)
    force = np.empty(n_dims)
    for i in range(start, stop):
        total = 0.0
        force[:] = 0.0
        for b in range(0, n_points, BLOCK):
            m = min(BLOCK, n_points - b)
            sq_dist[:m] = 0.0
            for a in range(n_dims):
                here = coords[a, i]
                there = coords[a, b : b + m]
                for j in range(m):
                    sq_dist[j] += (here - there[j]) * (here - there[j])
            evaluate(radial, sq_dist[:m], value, weight, with_potential, with_gradient)
            c = charges[b : b + m]
            own = i - b if b <= i < b + m else -1
            if with_potential:
                if own >= 0:
                    value[own] = 0.0
                for j in range(m):
                    total += c[j] * value[j]
            if with_gradient:
                if own >= 0:
                    weight[own] = 0.0
                for j in range(m):
                    weight[j] *= c[j]
                for a in range(n_dims):
                    here = coords[a, i]
                    there = coords[a, b : b + m]
                    pull = 0.0
                    for j in range(m):
                        pull += weight[j] * (here - there[j])
                    force[a] += pull
        if with_potential:
            potential[i] = total
        if with_gradient:
            for a in range(n_dims):
                gradient[i, a] = 2.0 * force[a]


@jit
def edge_rows(
    start, stop, coords, radial, indptr, indices, weights, with_potential, with_gradient, potential, gradient
):
    """Fill Φ_i = Σ_j w_ij φ(d²_ij) and ∇Φ_i = Σ_j w_ij 2 φ'(d²_ij) (z_i − z_j) over the stored edges.

    `coords` has shape (q, n). Unsigned `indptr` and `indices` let the compiler use
    gather instructions; edges are handled one block at a time, for any dimension q.
    """
    n_dims = coords.shape[0]
    sq_dist = np.empty(BLOCK)
    value = np.empty(BLOCK)
    weight = np.empty(BLOCK)
    force = np.empty(n_dims)
    for i in range(start, stop):
        total = 0.0
        force[:] = 0.0
        for b in range(indptr[i], indptr[i + 1], BLOCK):
            m = min(BLOCK, np.int64(indptr[i + 1]) - b)
            ends = indices[b : b + m]
            w = weights[b : b + m]
            sq_dist[:m] = 0.0
            for a in range(n_dims):
                here = coords[a, i]
                there = coords[a]
                for e in range(m):
                    sq_dist[e] += (here - there[ends[e]]) * (here - there[ends[e]])
            evaluate(radial, sq_dist[:m], value, weight, with_potential, with_gradient)
            if with_potential:
                for e in range(m):
                    total += w[e] * value[e]
            if with_gradient:
                for e in range(m):
                    weight[e] *= w[e]
                for a in range(n_dims):
                    here = coords[a, i]
                    there = coords[a]
                    pull = 0.0
                    for e in range(m):
                        pull += weight[e] * (here - there[ends[e]])
                    force[a] += pull
        if with_potential:
            potential[i] = total
        if with_gradient:
            for a in range(n_dims):
                gradient[i, a] = 2.0 * force[a]


@jit
def edge_rows_2d(
    start, stop, points, source, indptr, indices, weights, with_potential, with_gradient, potential, gradient
):
    """Like `edge_rows`, for points of shape (n, 2), and a radial function or its table.

    The ends of a block of edges are read in a loop of its own. A processor then waits for many loads at once, which
    takes a third of the time where points do not fit in its caches.
    """
    dx, dy, sq_dist, value = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for i in range(start, stop):
        total = 0.0
        fx = 0.0
        fy = 0.0
        end = np.int64(indptr[i + 1])
        for b in range(np.int64(indptr[i]), end, BLOCK):
            m = min(BLOCK, end - b)
            for e in range(m):
                j = indices[b + e]
                dx[e] = np.float64(points[i, 0] - points[j, 0])
                dy[e] = np.float64(points[i, 1] - points[j, 1])
            for e in range(m):
                sq_dist[e] = dx[e] * dx[e] + dy[e] * dy[e]
            if with_potential:
                fill_values(source, sq_dist[:m], value)
                for e in range(m):
                    total += weights[b + e] * value[e]
            if with_gradient:
                fill_slopes(source, sq_dist[:m], value)
                for e in range(m):
                    weight = weights[b + e] * value[e]
                    fx += weight * dx[e]
                    fy += weight * dy[e]
        if with_potential:
            potential[i] = total
        if with_gradient:
            gradient[i, 0] = 2.0 * fx
            gradient[i, 1] = 2.0 * fy


@jit
def edge_sq_dists(start, stop, points, indptr, indices, sq_dist):
    """Fill the squared distance of each stored edge, from differences, in double precision."""
    for i in range(start, stop):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            total = 0.0
            for a in range(points.shape[1]):
                difference = np.float64(points[i, a]) - np.float64(points[j, a])
                total += difference * difference
            sq_dist[e] = total


@jit
def probe(kernel, sq_dist, log, slope):
    """Fill log k and ψ."""
    for i in range(sq_dist.size):
        log[i] = kernel.log(sq_dist[i])
        slope[i] = kernel.grad_log(sq_dist[i])
