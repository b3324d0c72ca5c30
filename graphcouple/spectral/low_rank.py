"""Low-rank approximations S ≈ F Fᵀ of positive semidefinite matrices from few of their columns."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphcouple.graphs import FloatArray, IntArray

# Eigenvalues, and diagonal entries, below this share of the largest are rounding.
_NEGLIGIBLE = 1e-12

# Eigenvalues and residuals below minus this share of the largest are no rounding: that reaches 0.007, in single
# precision.
_INDEFINITE = 0.05
_REFUSED = "a low-rank approximation needs similarities without negative eigenvalues; use approximation=None."


def nystroem(columns: Callable[[IntArray], FloatArray], n: int, rank: int, rng: np.random.RandomState) -> FloatArray:
    """Return F of shape (n, at most rank), from columns drawn uniformly: S[:, I] S[I, I]^(−½).

    `columns` returns the columns of S at given positions. A negative eigenvalue of the drawn part raises `ValueError`.
    See Williams and Seeger (2001), Using the Nyström method to speed up kernel machines.
    """
    positions = np.sort(rng.choice(n, min(rank, n), replace=False))
    part = columns(positions)
    values, vectors = np.linalg.eigh(0.5 * (part[positions] + part[positions].T))
    if values[0] < -_INDEFINITE * values[-1]:
        raise ValueError(_REFUSED)
    keep = values > _NEGLIGIBLE * values[-1]
    return part @ (vectors[:, keep] / np.sqrt(values[keep]))


def pivoted_cholesky(
    columns: Callable[[IntArray], FloatArray], diagonal: FloatArray, rank: int, rng: np.random.RandomState
) -> FloatArray:
    """Return F of shape (n, at most rank), a partial Cholesky factor with pivots drawn where the residual is large.

    `columns` returns the columns of S at given positions. A negative diagonal entry or residual raises `ValueError`,
    because S is then not positive semidefinite. See Chen, Epperly, Tropp and Webber (2022), Randomly pivoted Cholesky,
    algorithm 1.
    """
    residual = np.array(diagonal, dtype=np.float64)
    scale = float(residual.max(initial=0.0))
    if (residual < -_NEGLIGIBLE * scale).any() or not scale > 0:
        raise ValueError(_REFUSED)
    factor = np.zeros((residual.size, min(rank, residual.size)))
    for k in range(factor.shape[1]):
        residual = np.maximum(residual, 0.0)
        if residual.max() <= _NEGLIGIBLE * scale:
            return factor[:, :k]
        pivot = int(rng.choice(residual.size, p=residual / residual.sum()))
        column = columns(np.array([pivot]))[:, 0] - factor[:, :k] @ factor[pivot, :k]
        if not column[pivot] > 0:
            residual[pivot] = 0.0
            continue
        factor[:, k] = column / np.sqrt(column[pivot])
        residual -= np.square(factor[:, k])
        residual[pivot] = 0.0
        if (residual < -_INDEFINITE * scale).any():
            raise ValueError(_REFUSED)
    return factor
