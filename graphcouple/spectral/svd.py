"""Singular value decompositions: for the precision coupling, and for principal components."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import ArpackError
from sklearn import config_context
from sklearn.utils.sparsefuncs import csc_median_axis_0

from graphcouple._numba.threads import one_blas_thread
from graphcouple.graphs import FloatArray
from graphcouple.neighbors.points import dense_if_far, shift_of, shifted, workable


class LeadingSVD(NamedTuple):
    """Leading singular vectors of X − 1 meanᵀ.

    `components` holds Bᵀ, the right vectors, of shape (k, p), and `scores` (X − 1 meanᵀ)B, of shape (n, k). `squared`
    says whether they come from a Gram matrix, which halves the correct digits of small singular values.
    """

    scores: FloatArray
    singular_values: FloatArray
    components: FloatArray
    mean: FloatArray
    squared: bool


def leading_svd(X: Any, k: int, *, center: bool, svd_solver: str, rng: np.random.RandomState) -> LeadingSVD:
    """Return the leading singular vectors of an array or sparse matrix, centred if `center`."""
    if center:
        from sklearn.decomposition import PCA

        X = dense_if_far(X)
        shift = np.zeros(X.shape[1]) if sp.issparse(X) else shift_of(X)
        X = X if sp.issparse(X) else shifted(X, shift)
        if k >= min(X.shape) and (sp.issparse(X) or svd_solver == "arpack"):
            # ARPACK finds at most all components but one.
            svd_solver = "covariance_eigh" if sp.issparse(X) else "full"
        if sp.issparse(X) and svd_solver in ("full", "randomized"):
            raise TypeError(
                f"svd_solver={svd_solver!r} needs dense points, but X is sparse; use svd_solver='auto', or X.toarray()."
            )
        pca = PCA(k, svd_solver=svd_solver, random_state=rng)
        # X is finite. Constant data have zero variance, and PCA divides by it.
        with np.errstate(invalid="ignore", divide="ignore"), config_context(assume_finite=True):
            try:
                scores = pca.fit_transform(X)
            except ArpackError:
                # Without variance, ARPACK has no vector to start from.
                pca = PCA(k, svd_solver="full")
                scores = pca.fit_transform(X.toarray() if sp.issparse(X) else X)
        squared = pca._fit_svd_solver == "covariance_eigh"
        mean = (pca.mean_ + shift).astype(X.dtype)
        return LeadingSVD(scores, pca.singular_values_, pca.components_, mean, squared)
    mean = np.zeros(X.shape[1], dtype=X.dtype)
    if sp.issparse(X) and svd_solver == "auto":
        svd_solver = "arpack"
    if k < min(X.shape) and svd_solver in ("arpack", "randomized"):
        from sklearn.decomposition import TruncatedSVD

        svd = TruncatedSVD(k, algorithm=svd_solver, random_state=rng)
        # TruncatedSVD divides by the variance too.
        try:
            with np.errstate(invalid="ignore", divide="ignore"):
                scores = svd.fit_transform(X)
        except ArpackError:
            return LeadingSVD(*_gram_svd(X), mean, True)
        return LeadingSVD(scores, svd.singular_values_, svd.components_, mean, False)
    tall = svd_solver == "auto" and X.shape[0] >= 10 * X.shape[1]
    if sp.issparse(X) or tall or svd_solver == "covariance_eigh":
        return LeadingSVD(*_gram_svd(X), mean, True)
    left, singular, components = np.linalg.svd(X, full_matrices=False)
    return LeadingSVD(left[:, :k] * singular[:k], singular[:k], components[:k], mean, False)


def _gram_svd(X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the full SVD, from the smaller of the two Gram matrices."""
    tall = X.shape[0] >= X.shape[1]
    gram = X.T @ X if tall else X @ X.T
    values, vectors = np.linalg.eigh(gram.toarray() if sp.issparse(gram) else gram)
    singular = np.sqrt(np.maximum(values[::-1], 0.0)).astype(X.dtype)
    vectors = vectors[:, ::-1]
    if tall:
        return X @ vectors, singular, vectors.T
    inverse = np.where(singular > 0, 1.0 / np.where(singular > 0, singular, 1.0), 0.0).astype(X.dtype)
    return vectors * singular, singular, inverse[:, None] * (vectors.T @ X)


# The centre is the median of this many rows. Rows are pulled in if they lie further from it than three times the
# 0.9-quantile of the distances. No comparison is recorded.
_MIDDLE, _MOST_ROWS, _FAR = 1000, 0.9, 3.0

# Rows of which the distances to the centre are computed at once.
_ROWS_AT_ONCE = 2048

# Sparse matrices of up to this many entries (160 MB in double precision) are made dense.
_DENSE_ENTRIES = 20_000_000


def principal_components(X: Any, n_components: int, rng: np.random.RandomState) -> FloatArray:
    """Return the coordinates of points along their first principal components, zero-padded if there are fewer."""
    k = min(n_components, *X.shape)
    if sp.issparse(X) and (X.shape[0] * X.shape[1] <= _DENSE_ENTRIES or min(X.shape) <= n_components + 1):
        # At low rank, ARPACK continues from unseeded noise.
        X = X.toarray()
    elif sp.issparse(X):
        X = sp.csr_matrix(X)
        if not abs(X - sp.csr_matrix(X[[0] * X.shape[0]])).max():
            # Without variance, ARPACK has no vector to start from, and a full decomposition would be dense.
            return np.zeros((X.shape[0], n_components))
    # Squares of tiny numbers in single precision would vanish.
    X = workable(X)
    with one_blas_thread(int(np.prod(X.shape))):
        Z = leading_svd(X, k, center=True, svd_solver="auto", rng=rng).scores
    return np.pad(Z, ((0, 0), (0, n_components - k)))


def far_rows_drawn_in(X: Any) -> Any:
    """Pull outliers towards the centre, because they would dominate the principal components."""
    X = sp.csr_array(X) if sp.issparse(X) else X
    sample = X[:: max(X.shape[0] // _MIDDLE, 1)]
    if sp.issparse(X):
        middle = csc_median_axis_0(sp.csc_matrix(sample))
        sq_dist = X.multiply(X).sum(axis=1) - 2.0 * (X @ middle) + float(middle @ middle)
    else:
        middle = np.median(sample, axis=0)
        parts = (X[a : a + _ROWS_AT_ONCE] - middle for a in range(0, len(X), _ROWS_AT_ONCE))
        sq_dist = np.concatenate([np.einsum("ij,ij->i", away, away, dtype=np.float64) for away in parts])
    distances = np.sqrt(np.maximum(sq_dist, 0.0))
    reach = _FAR * float(np.quantile(distances, _MOST_ROWS))
    # If nearly all rows are in one place, the other rows are not outliers: they hold all the structure.
    if not 0.0 < reach < distances.max():
        return X
    share = reach / np.maximum(distances, reach)
    if not sp.issparse(X):
        away = X - middle
        away *= share[:, None]
        return away
    return sp.csr_array(sp.diags_array(share) @ X + sp.csr_array(1.0 - share[:, None]) @ sp.csr_array(middle[None, :]))
