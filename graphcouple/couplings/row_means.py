"""Matching of means that depend on many distances: the means of a row sum to 1, or the means of all pairs sum to n.

With a_ij = k_ij / Z_i (Z_i a row's sum, or Z/n for all pairs) and E_ij = S(a_ij, a_ji) for rows and a_ij for all pairs,
the matching is Σ F̂(e_ij, E_ij). All pairs are compared, some rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from graphcouple.graphs import FloatArray, Support
from graphcouple.kernels import Kernel

# Pairs held at once: ten arrays of 8 MB.
_PAIRS_AT_ONCE = 2**20


def match_latent_means(
    loss: Any, kernel: Kernel, Z: FloatArray, edges: tuple[Support, FloatArray], symmetrize: str, total: float | None
) -> tuple[float, FloatArray]:
    """Return Σ_{i≠j} F̂(e_ij, S(a_ij, a_ji)) and its gradient in the embedding.

    Parameters
    ----------
    loss : MatchingLoss
    kernel : Kernel
    Z : ndarray of shape (n, q)
    edges : (Support, ndarray of shape (n_edges,))
        Where e is not 0, and its values; symmetric unless `symmetrize` is "first".
    symmetrize : {"mean", "or", "first"}
    total : float or None
        The sum of all means; None if the means of each row sum to 1.
    """
    points = np.asarray(Z, dtype=np.float64)
    n = len(points)
    sums = np.concatenate([np.exp(log_kernel).sum(axis=1) for _, _, log_kernel in _blocks(kernel, points)])
    norms = sums if total is None else np.full(n, float(sums.sum()) / total)
    value, gradient, common, spread = 0.0, np.zeros_like(points), 0.0, np.zeros_like(points)
    for rows, sq_dist, log_kernel in _blocks(kernel, points):
        strength = np.exp(log_kernel)
        ahead, back = strength / norms[rows, None], strength / norms
        targets = _dense_rows(*edges, rows)
        others = np.ones(strength.shape, dtype=bool)
        others[np.arange(len(strength)), np.arange(rows.start, rows.stop)] = False
        mean, slope_of = _symmetric(ahead, back, symmetrize) if total is None else (ahead, 1.0)
        value += float(loss.cost(targets, mean)[others].sum())
        slope = np.where(others, loss.grad_cost(targets, mean), 0.0) * slope_of
        # a_ij depends on k_ij and, through the sum, on all kernel values of the row (or of all pairs).
        row_sums = (slope * strength).sum(axis=1)
        own = slope / norms[rows, None]
        if total is None:
            own -= (row_sums / norms[rows] ** 2)[:, None]
        else:
            common += float(row_sums.sum())
        stretch = 2.0 * strength * kernel.grad_log(sq_dist)
        stretch[~others] = 0.0
        _add_forces(gradient, points, rows, own * stretch)
        if total is not None:
            _add_forces(spread, points, rows, stretch)
    if total is not None:
        gradient -= spread * (common / norms[0] / float(sums.sum()))
    return value, gradient


def _symmetric(ahead: FloatArray, back: FloatArray, how: str) -> tuple[FloatArray, FloatArray | float]:
    """Return S(a, b), and twice its derivative in a (once for "first"), since a pair counts in both directions."""
    if how == "mean":
        return 0.5 * (ahead + back), 1.0
    if how == "or":
        return ahead + back - ahead * back, 2.0 * (1.0 - back)
    return ahead, 1.0


def _blocks(kernel: Kernel, points: FloatArray) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    n = len(points)
    height = max(1, _PAIRS_AT_ONCE // n)
    for a in range(0, n, height):
        rows = slice(a, min(a + height, n))
        sq_dist = cdist(points[rows], points, "sqeuclidean")
        log_kernel = kernel.log(sq_dist)
        log_kernel[np.arange(rows.stop - a), np.arange(a, rows.stop)] = -np.inf
        yield rows, sq_dist, log_kernel


def _dense_rows(support: Support, values: FloatArray, rows: slice) -> FloatArray:
    dense = np.zeros((rows.stop - rows.start, support.n_nodes))
    part = slice(support.indptr[rows.start], support.indptr[rows.stop])
    dense[support.rows[part] - rows.start, support.indices[part]] = values[part]
    return dense


def _add_forces(gradient: FloatArray, points: FloatArray, rows: slice, weight: FloatArray) -> None:
    """Add w_ij (z_i − z_j) to the gradient of i, and subtract it from the gradient of j."""
    for a in range(points.shape[1]):
        force = weight * (points[rows, a, None] - points[:, a])
        gradient[rows, a] += force.sum(axis=1)
        gradient[:, a] -= force.sum(axis=0)
