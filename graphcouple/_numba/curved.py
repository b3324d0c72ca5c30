"""Sums over pairs of points of a curved space, row by row: over all pairs, or over the edges of a sparse graph.

The squared chord of a pair is s_ij = ‖p_i − p_j‖² b_i b_j, for coordinates p and scales b of the points.
"""

import numpy as np

from graphcouple._numba.blocks import BLOCK, evaluate
from graphcouple._numba.jit import jit
from graphcouple._numba.pairs import fill_distances


@jit
def curved_rows(
    start, stop, coords, scales, radial, charges, indptr, indices, with_potential, with_gradient,
    potential, pulls, bends,
):  # fmt: skip
    """Fill Φ_i = Σ_j c_ij φ(s_ij) and its derivatives in p_i and b_i, in `pulls` and `bends`.

    `coords` has shape (q, n), and `pulls` (n, q). With `indptr`, the pairs are the edges of a csr matrix, and `charges`
    of shape (1, n_edges) its entries. Without, they are all pairs of different points, and `charges` has one row for
    each point, or a single row for all.
    """
    n_dims, n_points = coords.shape
    there, near, chord = np.empty((n_dims, BLOCK)), np.empty(BLOCK), np.empty(BLOCK)
    scale, c, value, weight = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    force = np.empty(n_dims)
    sparse = indptr.size > 0
    for i in range(start, stop):
        row = charges[i if charges.shape[0] > 1 else 0]
        first = np.int64(indptr[i]) if sparse else 0
        last = np.int64(indptr[i + 1]) if sparse else n_points
        total, bend = 0.0, 0.0
        force[:] = 0.0
        for b in range(first, last, BLOCK):
            m = min(BLOCK, last - b)
            for e in range(m):
                j = np.int64(indices[b + e]) if sparse else b + e
                scale[e] = scales[j]
                c[e] = row[b + e]
                for a in range(n_dims):
                    there[a, e] = coords[a, j]
            fill_distances(coords[:, i], there, 0, m, near)
            for e in range(m):
                chord[e] = near[e] * scales[i] * scale[e]
            evaluate(radial, chord[:m], value, weight, with_potential, with_gradient)
            if not sparse and b <= i < b + m:
                value[i - b] = 0.0
                weight[i - b] = 0.0
            if with_potential:
                for e in range(m):
                    total += c[e] * value[e]
            if with_gradient:
                for e in range(m):
                    weight[e] *= c[e] * scale[e]
                    bend += weight[e] * near[e]
                for a in range(n_dims):
                    here = coords[a, i]
                    pull = 0.0
                    for e in range(m):
                        pull += weight[e] * (here - there[a, e])
                    force[a] += pull
        potential[i] = total
        bends[i] = bend
        for a in range(n_dims):
            pulls[i, a] = 2.0 * scales[i] * force[a]
