"""Sums over pairs of points, row by row: over the stored edges of a sparse graph, or over all pairs of some points."""

import numpy as np

from graphcouple._numba.blocks import BLOCK, evaluate, fill, in_blocks
from graphcouple._numba.jit import jit
from graphcouple._numba.nearest import sq_dist_between
from graphcouple._numba.tables import Linear
from graphcouple._numba.threads import over_rows

# Starting threads takes 0.3 ms, as long as the sums of this many pairs.
_PAIRS_WORTH_THREADS = 400_000


def worth_threads(pairs_per_row):
    """Return the number of rows above which threads save time, given the number of pairs in a row."""
    return max(64, _PAIRS_WORTH_THREADS // max(pairs_per_row, 1))


def sum_rows(places, Z, radial, charges, n_jobs, with_potential=True, with_gradient=True, itself=True):
    """Return Σ_{j≠i} c_j φ(d²) and its gradient at places, for sets of charges over the points Z.

    With `itself`, place i is point i of Z, which adds nothing to its own sum. Results have shapes (n_sets, n_places)
    and (n_sets, n_places, q); without its flag, an array holds zeros. Memory beyond the arguments is O(nq).
    """
    here, coords = (np.ascontiguousarray(points, dtype=np.float64) for points in (places, Z.T))
    c = np.ascontiguousarray(charges, dtype=np.float64)
    potential, gradient = np.empty((len(c), len(here))), np.empty((len(c), *here.shape))
    arrays = (here, coords, in_blocks(radial), c, itself, with_potential, with_gradient, potential, gradient)
    over_rows(len(here), n_jobs, potential_rows, *arrays, at_least=worth_threads(len(Z)))
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
def fill_distances(place, coords, b, m, sq_dist):
    """Fill the squared distances of a place to m points from the b-th; `coords` has shape (q, n)."""
    sq_dist[:m] = 0.0
    for a in range(coords.shape[0]):
        here = place[a]
        there = coords[a, b : b + m]
        for j in range(m):
            sq_dist[j] += (here - there[j]) * (here - there[j])


@jit
def potential_rows(
    start, stop, places, coords, radial, charges, itself, with_potential, with_gradient, potential, gradient
):
    """Fill Σ_j c_j φ(d²) and Σ_j c_j 2 φ'(d²) (z − z_j), for each set of charges over points of `coords`, (q, n).

    The values of one coordinate are contiguous, and distances are handled one block at a time, for any dimension q.
    """
    n_dims, n_points = coords.shape
    sq_dist, value, slope = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for i in range(start, stop):
        for k in range(charges.shape[0]):
            potential[k, i] = 0.0
            gradient[k, i] = 0.0
        for b in range(0, n_points, BLOCK):
            m = min(BLOCK, n_points - b)
            fill_distances(places[i], coords, b, m, sq_dist)
            evaluate(radial, sq_dist[:m], value, slope, with_potential, with_gradient)
            if itself and b <= i < b + m:
                value[i - b] = 0.0
                slope[i - b] = 0.0
            for k in range(charges.shape[0]):
                c = charges[k, b : b + m]
                if with_potential:
                    total = 0.0
                    for j in range(m):
                        total += c[j] * value[j]
                    potential[k, i] += total
                for a in range(n_dims if with_gradient else 0):
                    here = places[i, a]
                    there = coords[a, b : b + m]
                    pull = 0.0
                    for j in range(m):
                        pull += c[j] * slope[j] * (here - there[j])
                    gradient[k, i, a] += 2.0 * pull


@jit
def edge_rows(
    start, stop, coords, radial, indptr, indices, weights, with_potential, with_gradient, potential, gradient
):
    """Fill Φ_i = Σ_j w_ij φ(d²_ij) and ∇Φ_i = Σ_j w_ij 2 φ'(d²_ij) (z_i − z_j) over the stored edges.

    `coords` has shape (q, n). Unsigned `indptr` and `indices` let the compiler use
    gather instructions; edges are handled one block at a time, for any dimension q.
    """
    n_dims = coords.shape[0]
    sq_dist, value, weight = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for i in range(start, stop):
        total = 0.0
        gradient[i] = 0.0
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
                    gradient[i, a] += 2.0 * pull
        if with_potential:
            potential[i] = total


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
        total, fx, fy = 0.0, 0.0, 0.0
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
                fill(source, False, sq_dist[:m], value)
                for e in range(m):
                    total += weights[b + e] * value[e]
            if with_gradient:
                fill(source, True, sq_dist[:m], value)
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
            sq_dist[e] = sq_dist_between(points, i, points, indices[e])


@jit
def probe(kernel, sq_dist, log, slope):
    """Fill log k and ψ."""
    for i in range(sq_dist.size):
        log[i] = kernel.log(sq_dist[i])
        slope[i] = kernel.grad_log(sq_dist[i])
