"""Principal components of dense, sparse and constant points."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple.graphs import FloatArray

# Sparse matrices of up to this many entries (160 MB in double precision) are made dense.
_DENSE_ENTRIES = 20_000_000


def principal_components(X: Any, n_components: int, rng: np.random.RandomState) -> FloatArray:
    """Return the coordinates of `X` along its first principal components, zero-padded when it has fewer.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    n_components : int
    rng : numpy.random.RandomState

    Returns
    -------
    Y : ndarray of shape (n, n_components)

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.spectral import principal_components
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    >>> np.abs(principal_components(X, 1, np.random.RandomState(0)).ravel()).round(12)
    array([5., 0., 5.])
    """
    from sklearn.decomposition import PCA

    k = min(n_components, *X.shape)
    if sp.issparse(X) and (X.shape[0] * X.shape[1] <= _DENSE_ENTRIES or min(X.shape) <= n_components + 1):
        # ARPACK finds at most all components but one, and at low rank it goes on from noise that no seed fixes.
        X = X.toarray()
    if sp.issparse(X):
        X, k = sp.csr_matrix(X), min(k, min(X.shape) - 1) or 1
        if not abs(X - sp.csr_matrix(X[[0] * X.shape[0]])).max():
            # Without variance, ARPACK has no vector to start from.
            return np.zeros((X.shape[0], n_components))
    with warnings.catch_warnings():
        # Constant data have zero variance, which PCA divides by; the caller handles a zero result.
        warnings.filterwarnings("ignore", message="invalid value encountered", category=RuntimeWarning)
        Z = PCA(k, random_state=rng).fit_transform(X)
    return np.pad(Z, ((0, 0), (0, n_components - k)))
