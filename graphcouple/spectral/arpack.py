"""Lanczos iteration by ARPACK, to the same bits every time."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import numpy as np

from graphcouple.graphs import FloatArray

# A residual this small, relative to the eigenvalue, is rounding error. ARPACK's own limit, 1.1e-16, is never reached
# where eigenvalues coincide.
_ROUNDING = 1e-15


def lanczos(matrix: Any, k: int, start: FloatArray, tol: float = 0.0, **options: Any) -> tuple[FloatArray, FloatArray]:
    """Return the k largest eigenvalues of a symmetric matrix, and their vectors, from a start.

    Where the start spans too small a space, as when many eigenvalues coincide, ARPACK goes on from random vectors,
    which are the same in every call.

    Parameters
    ----------
    matrix : array, sparse matrix or LinearOperator
    k : int
        Below the number of rows.
    start : ndarray of shape (n,)
    tol : float, default=0.0
        Residual of the eigenvectors, relative to their eigenvalues; at least rounding error.
    **options : any
        Other arguments of `scipy.sparse.linalg.eigsh`.
    """
    from scipy.sparse.linalg import eigsh

    if not np.any(matrix @ start):
        # The start has a share of every eigenvector, so only the zero matrix maps it to 0. ARPACK refuses that matrix.
        columns = np.random.default_rng(0).normal(size=(start.size, k))
        return np.zeros(k), np.linalg.qr(columns)[0]
    generator = {"rng": np.random.default_rng(0)} if _takes_rng() else {}
    pairs: tuple[FloatArray, FloatArray] = eigsh(
        matrix, k, which="LA", v0=start, tol=max(tol, _ROUNDING), **generator, **options
    )
    return pairs


@cache
def _takes_rng() -> bool:
    """Return whether this SciPy takes a generator; without one, its random vectors differ from call to call."""
    from scipy.sparse.linalg import eigsh

    return "rng" in inspect.signature(eigsh).parameters
