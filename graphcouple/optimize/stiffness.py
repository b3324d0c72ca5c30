"""The stiffness of a graph's edges, by which a step moves points far along the graph's slow directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from graphcouple._numba.threads import one_blas_thread
from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray

# With more points the factors fill up, and solving with them takes too long compared with gradients by a mesh.
_MOST_POINTS = 2000

# On a line, points that move far with their neighbours do not pass each other, and end in worse minima.
_LEAST_DIMS = 2

# Ten edges per point have the slow directions of all edges, and their factors are sparse.
_STRONGEST = 10

# If ties leave more edges per point than this, no direction is slow, and the factors are full.
_MOST_EDGES = 60

# Repulsion limits how soft a direction can be. Of 0.001 to 0.1, 0.01 settles soonest on walks, moons and digits.
_LEAST = 0.01


def inverse_stiffness(objective: Objective, n_dims: int) -> Callable[..., FloatArray] | None:
    """Return the product with (L + 0.01 d̄ I)⁻¹, L the Laplacian of the strongest edges and d̄ their mean degree.

    L is the curvature of the attraction where it is quadratic, the same for every dimension of the embedding. With this
    matrix, L-BFGS knows the stiff displacements from the first step: Vladymyrov and Carreira-Perpiñán (2012),
    Partial-Hessian strategies for fast learning of nonlinear embeddings. Held points are left out of the matrix, so
    that no product moves them. A hyperbolic map has the inverse of its metric instead, so that steps are equally long
    in every direction (natural gradient): a tree then takes 400 steps, not 3,800.

    The product is a function of an array of shape (n_points, n_dims) or several side by side, and of the embedding. It
    is None on a line, for more than 2,000 points, or if the objective has no edges or too many equally strong edges.
    """
    if objective.attracting is None:
        return None
    if objective.attracting.raised is not None:
        return objective.attracting.raised
    if objective.n_points > _MOST_POINTS or n_dims < _LEAST_DIMS or not (matrices := objective.attracting.matrices):
        return None
    edges = strongest_edges(sum(matrices[1:], matrices[0]))
    if edges.nnz > _MOST_EDGES * objective.n_points:
        return None
    degrees = np.asarray(edges.sum(axis=1)).ravel()
    least = _LEAST * float(degrees.mean())
    if not (np.isfinite(least) and least > 0):
        return None
    held = objective.held_points
    free = slice(None) if held is None else np.flatnonzero(~held)
    stiffness = sp.csc_matrix(sp.diags_array(degrees + least) - edges)[free][:, free]
    factors = splu(stiffness, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def product(forces: FloatArray, Z: FloatArray | None = None) -> FloatArray:
        displacements = np.zeros(forces.shape)
        # A solve takes 3 ms. On a busy core, a second thread of BLAS waits for its turn: 30 ms.
        with one_blas_thread():
            displacements[free] = factors.solve(forces[free].astype(np.float64))
        return displacements

    return product


def strongest_edges(edges: Any) -> Any:
    """Return the edges at least as strong as the tenth of either end, as a symmetric csr array."""
    if sp.issparse(edges):
        half = sp.csr_array(edges, dtype=np.float64, copy=True)
        n_edges = np.diff(half.indptr)
        rows = np.repeat(np.arange(n_edges.size), n_edges)
        half.data[half.indices == rows] = 0.0
        # One line for each row, without the zeros between its edges, which would take most of the time.
        lines = np.zeros((n_edges.size, n_edges.max(initial=0)))
        lines[rows, np.arange(rows.size) - half.indptr[rows]] = half.data
        half.data[half.data < _tenth(lines)[rows]] = 0.0
        half.eliminate_zeros()
    else:
        lines = np.array(edges, dtype=np.float64)
        np.fill_diagonal(lines, 0.0)
        half = sp.csr_array(np.where(lines >= _tenth(lines)[:, None], lines, 0.0))
    return half.maximum(half.T)


def _tenth(lines: FloatArray) -> FloatArray:
    """Return the tenth largest entry of each line, or the least if there are fewer."""
    at = max(lines.shape[1] - _STRONGEST, 0)
    return np.partition(lines, at, axis=1)[:, at]
