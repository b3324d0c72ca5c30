"""Eigenvalues of a graph's Laplacian, and how many clusters they tell of."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._validation import check_integer
from graphcouple.graphs import FloatArray, IntArray

# Up to so many nodes all eigenvalues are computed.
_DENSE = 300

# A gap counts as large from this share of the largest on.
_LARGE_GAP = 0.75


def normalized_similarity(affinity: Any) -> sp.csr_array:
    """Return D^{-½} A D^{-½} for a symmetric matrix A of weights with row sums D; rows of zeros stay so."""
    A = sp.csr_array(affinity, dtype=np.float64)
    degrees = np.asarray(A.sum(axis=1)).ravel()
    shrink = sp.diags_array(np.where(degrees > 0, 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0)), 0.0))
    return sp.csr_array(shrink @ A @ shrink)


def laplacian_eigenvalues(affinity: Any, n_eigenvalues: int) -> FloatArray:
    """Return the smallest eigenvalues of the normalised Laplacian I − D^{-½} A D^{-½} of a graph.

    Parameters
    ----------
    affinity : array or sparse matrix of shape (n, n)
        A: symmetric, weights of at least 0.
    n_eigenvalues : int
        At most n.

    Returns
    -------
    ndarray of shape (n_eigenvalues,)
        In ascending order. As many are 0 as the graph has components.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.spectral import laplacian_eigenvalues
    >>> two_pairs = np.kron(np.eye(2), [[0, 1], [1, 0]])
    >>> laplacian_eigenvalues(two_pairs, 4).round(3) + 0.0
    array([0., 0., 2., 2.])
    """
    similarity = normalized_similarity(affinity)
    n = similarity.shape[0]
    k = check_integer("n_eigenvalues", n_eigenvalues, 1)
    if k > n:
        raise ValueError(f"n_eigenvalues={k} must be at most the number of nodes, {n}.")
    if n <= _DENSE or 5 * k > n:
        return np.sort(1.0 - np.linalg.eigvalsh(similarity.toarray()))[:k]
    from scipy.sparse.linalg import eigsh

    # A vector of noise has a share of every eigenvector, also of those on single components.
    start = np.random.default_rng(0).normal(size=n)
    found = eigsh(similarity, k, which="LA", v0=start, ncv=min(n - 1, max(4 * k, 60)), tol=1e-8)[0]
    return np.sort(1.0 - found)


def eigengaps(eigenvalues: FloatArray) -> IntArray:
    """Return the numbers k of eigenvalues below a large gap, in ascending order.

    A gap is large if it is at least three quarters of the largest; a gap after the first eigenvalue does not count.

    Examples
    --------
    >>> from graphcouple.spectral import eigengaps
    >>> eigengaps([0.0, 0.01, 0.02, 0.5, 0.52, 0.9])
    array([3, 5])
    """
    gaps = np.diff(np.asarray(eigenvalues, dtype=np.float64))[1:]
    if not gaps.size:
        return np.array([1])
    return np.flatnonzero(gaps >= _LARGE_GAP * gaps.max()) + 2
