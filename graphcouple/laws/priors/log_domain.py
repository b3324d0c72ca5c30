"""Log-partitions of the priors D and E in logarithms throughout, for kernels that underflow.

For points far apart, exp(log k) is zero in double precision, but the law itself is not degenerate: only ratios of
kernels matter. The fast sums add k; where they underflow, this module adds in logarithms, one block of rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

from graphcouple.graphs import FloatArray, IntArray
from graphcouple.kernels import Kernel

UNDERFLOW = 1e-280
"""Potentials below this have lost digits in double precision, and are computed in logarithms."""

# Pairs at once: 32 MB.
_BLOCK_ENTRIES = 2**22


def isolated_terms(
    kernel: Kernel, Z: FloatArray, isolated: IntArray, with_gradient: bool, w: FloatArray
) -> tuple[FloatArray, FloatArray | None]:
    """Return log S_i of some points, S_i = Σ_{j≠i} w_j k(d²_ij), and the gradient of Σ w_i log S_i in all points."""
    gradient = np.zeros(Z.shape) if with_gradient else None
    logs = []
    for rows, sq_dist, log_kernel in blocks_of_rows(kernel, Z, np.log(w), chosen=isolated):
        logs.append(logsumexp(log_kernel, axis=1))
        if gradient is None:
            continue
        # Squared distances that overflow give nan, which solvers report.
        with np.errstate(invalid="ignore", over="ignore"):
            mean = np.exp(log_kernel - logs[-1][:, None])
            weight = 2.0 * w[rows, None] * mean * kernel.grad_log(sq_dist)
        add_forces(gradient, Z, rows, weight)
    return np.concatenate(logs), gradient


def add_forces(gradient: FloatArray, Z: FloatArray, rows: Any, weight: FloatArray) -> None:
    """Add w_ij (z_i − z_j) to the gradient of i, and subtract it from the gradient of j."""
    for a in range(Z.shape[1]):
        force = weight * (Z[rows, a, None] - Z[:, a])
        gradient[rows, a] += force.sum(axis=1)
        gradient[:, a] -= force.sum(axis=0)


def blocks_of_rows(
    kernel: Kernel,
    Z: FloatArray,
    log_weights: FloatArray | float = 0.0,
    entries: int = _BLOCK_ENTRIES,
    chosen: IntArray | None = None,
) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Yield rows, all or the chosen ones, with their squared distances to all points and log w_j k; −inf to itself."""
    chosen = np.arange(Z.shape[0]) if chosen is None else chosen
    height = max(1, entries // Z.shape[0])
    for start in range(0, chosen.size, height):
        rows = chosen[start : start + height]
        sq_dist = cdist(Z[rows], Z, "sqeuclidean")
        log_kernel = kernel.log(sq_dist) + log_weights
        log_kernel[np.arange(rows.size), rows] = -np.inf
        yield rows, sq_dist, log_kernel


def row_log_sums(kernel: Kernel, Z: FloatArray, log_weights: FloatArray) -> FloatArray:
    """Return log Σ_{j≠i} w_j k(d²_ij) for every i."""
    blocks = blocks_of_rows(kernel, Z, log_weights)
    return np.concatenate([logsumexp(log_kernel, axis=1) for _, _, log_kernel in blocks])


def mean_forces(kernel: Kernel, Z: FloatArray, shift: FloatArray, log_weights: FloatArray) -> FloatArray:
    """Return Σ_j m_ij 2 ψ(d²_ij) (z_i − z_j), log m_ij = s_i + log w_j k(d²_ij), where s is the shift."""
    gradient = np.empty(Z.shape)
    for rows, sq_dist, log_kernel in blocks_of_rows(kernel, Z, log_weights):
        # Squared distances that overflow give nan, which solvers report.
        with np.errstate(invalid="ignore", over="ignore"):
            weight = 2.0 * np.exp(log_kernel + shift[rows, None]) * kernel.grad_log(sq_dist)
            # Subtract first: where ψ is singular, a product of matrices would lose near pairs to cancellation.
            for a in range(Z.shape[1]):
                gradient[rows, a] = (weight * (Z[rows, a, None] - Z[:, a])).sum(axis=1)
    return gradient
