"""Checks of points, and shifts that keep the digits of distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._support.validation import check_sparse, check_unmasked, warn
from graphcouple.graphs import FloatArray, without_duplicates

# Sparse matrices of up to this many entries (0.4 GB in double precision) are made dense for all pairs, for metrics that
# need it, or if the points lie far from the origin.
DENSE_ENTRIES = 50_000_000

# Entries above this have squares, and sums of squares, that overflow in single precision.
_MOST_IN_SINGLE = 1e15

# Share of the largest distance by which the two directions may differ, and rows that are compared at once.
_ASYMMETRY, _ROWS_AT_ONCE = 1e-5, 2048


def as_points(X: Any, name: str = "X", at_least: int = 2) -> Any:
    """Return `X` as a finite 2-D array or csr matrix, in double precision, or in single if it has single or half.

    Other `X`, and fewer rows than `at_least`, raise `TypeError` or `ValueError`.
    """
    check_unmasked(X, name)
    if sp.issparse(X):
        check_sparse(X, name)
        X = without_duplicates(X.tocsr())
        if X.dtype.kind not in "iufb":
            raise TypeError(f"{name} must hold real numbers, got dtype {X.dtype}.")
    else:
        try:
            X = np.asarray(X)
            if X.dtype.kind in "cmM":
                raise TypeError
            if X.dtype.kind not in "iufb":
                X = X.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be numeric; encode or drop its other columns first.") from None
    if X.ndim != 2 or X.shape[1] < 1:
        raise ValueError(f"{name} must have shape (n_samples, n_features), got {X.shape}.")
    if X.shape[0] < at_least:
        raise ValueError(f"{name} must have at least {at_least} rows to relate, got n_samples = {X.shape[0]}.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float32 if X.dtype.kind == "f" and X.dtype.itemsize <= 4 else np.float64)
    entries = X.data if sp.issparse(X) else X
    if not np.isfinite(entries).all():
        raise ValueError(f"{name} holds NaN or infinity; impute or drop those entries first.")
    check_scale(entries, name)
    if X.dtype == np.float32 and entries.size and max(-float(entries.min()), float(entries.max())) > _MOST_IN_SINGLE:
        X = X.astype(np.float64)
    # Compiled loops round differently if rows are not contiguous.
    return X if sp.issparse(X) else np.ascontiguousarray(X)


def looks_like_distances(X: Any) -> bool:
    """Return whether points are a full, symmetric array of numbers of at least 0, with zeros on its diagonal alone."""
    n = X.shape[0]
    if sp.issparse(X) or n < 3 or X.shape[1] != n or np.diagonal(X).any():
        return False
    if not (X >= 0).all() or 2 * np.count_nonzero(X) <= n * (n - 1):
        return False
    # Distances by products of points are symmetric but for rounding.
    most = _ASYMMETRY * float(X.max())
    blocks = (slice(a, a + _ROWS_AT_ONCE) for a in range(0, n, _ROWS_AT_ONCE))
    return all((np.abs(X[rows] - X[:, rows].T) <= most).all() for rows in blocks)


def check_scale(entries: FloatArray, name: str) -> None:
    """Raise if squared distances would overflow, or vanish although the points differ."""
    if not entries.size:
        return
    low, high = float(entries.min()), float(entries.max())
    if max(-low, high) > 1e150:
        raise ValueError(f"{name} has entries of up to {max(-low, high):.3g}, whose squares overflow; rescale it.")
    if 0.0 < high - low < 1e-150:
        raise ValueError(f"{name} has a range of only {high - low:.3g}, whose square underflows; rescale it.")


def shift_of(X: Any) -> FloatArray:
    """Return the vector to subtract from points far from the origin; zeros for other points.

    Far from the origin, expanding the square would lose the points' differences. The shift is a multiple of a
    power of two below their spread, so integers keep their exact distances and ties.
    """
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    # Use some rows, or entries, at a time: all deviations would take as much memory as the points, or twice as much.
    if sp.issparse(X):
        entries = (slice(a, a + 2**22) for a in range(0, X.nnz, 2**22))
        parts = (X.data[part] - mean[X.indices[part]] for part in entries)
        of_zeros = float((X.shape[0] - np.bincount(X.indices, minlength=X.shape[1])) @ mean**2)
    else:
        parts, of_zeros = (X[a : a + 2048] - mean for a in range(0, X.shape[0], 2048)), 0.0
    variance = (sum(float(np.vdot(part, part)) for part in parts) + of_zeros) / X.shape[0]
    if float(mean @ mean) <= 1e4 * variance:
        return np.zeros_like(mean)
    spread = np.sqrt(variance / X.shape[1])
    unit = 2.0 ** np.floor(np.log2(spread)) if spread > 0 else 0.0
    return np.rint(mean / unit) * unit if 0 < unit < np.inf else mean


def dense_if_far(X: Any) -> Any:
    """Return sparse points far from the origin as an array; they stay sparse, with a warning, if they are many."""
    if not sp.issparse(X) or not (shift := shift_of(X)).any():
        return X
    if X.shape[0] * X.shape[1] <= DENSE_ENTRIES:
        return X.toarray()
    warn(
        f"the sparse X lies far from 0, most in column {np.argmax(np.abs(shift))}, so differences of its rows lose "
        "digits; subtract the column's mean from it, or pass X.toarray()."
    )
    return X


def shifted(X: FloatArray, shift: FloatArray) -> FloatArray:
    """Return points minus a shift, in their precision; the points themselves if it is 0."""
    return X - shift.astype(X.dtype) if shift.any() else X


def near_origin(X: FloatArray) -> FloatArray:
    """Return points minus their shift."""
    return shifted(X, shift_of(X))


def workable(X: Any, dtype: Any = None) -> Any:
    """Return points without duplicate entries, in a precision in which squares neither overflow nor vanish."""
    X = without_duplicates(X) if sp.issparse(X) else X
    if dtype is not None:
        return X.astype(dtype, copy=False)
    return X.astype(np.float64) if X.dtype == np.float32 and not fits_in_single(X) else X


def with_short_indices(X: Any) -> Any:
    """Return a sparse matrix with indices of 32 bits, if they fit: scikit-learn's loops accept no others."""
    if X.nnz >= np.iinfo(np.int32).max:
        return X
    # In a matrix, unlike an array, `*` is a product of matrices, which kernels of one's own would meet.
    kind = sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix
    indices, indptr = (part.astype(np.int32, copy=False) for part in (X.indices, X.indptr))
    return kind((X.data, indices, indptr), shape=X.shape)


def fits_in_single(X: Any) -> bool:
    """Return whether squares of entries neither overflow nor vanish in single precision."""
    return 1e-12 < max(float(abs(X.min())), float(abs(X.max()))) < 1e12


def largest_of_rows(X: Any) -> FloatArray:
    """Return the largest absolute entry of each row."""
    if sp.issparse(X):
        return np.asarray(abs(X).max(axis=1).toarray()).ravel()
    # A copy of absolute values could be larger than the free memory.
    return np.maximum(X.max(axis=1), -X.min(axis=1))


def unit_rows(X: Any) -> Any:
    """Return rows scaled to length 1, with an extra column that is 1 for rows of zeros.

    So rows of zeros are at cosine distance 1 from other rows and 0 from each other. No row depends on the others.
    """
    from sklearn.preprocessing import normalize

    # `normalize` treats very short rows as zeros.
    largest = largest_of_rows(X)
    zero = largest == 0
    shrink = 1.0 / np.where(zero, 1.0, largest).astype(X.dtype)
    if sp.issparse(X):
        # A product with a diagonal matrix would leave the entries of rows in any order, and sums depend on the order.
        X = normalize(sp.csr_array((X.data * np.repeat(shrink, np.diff(X.indptr)), X.indices, X.indptr), shape=X.shape))
        return sp.hstack([X, sp.csr_array(zero[:, None].astype(X.dtype))], format="csr")
    return np.column_stack([normalize(X * shrink[:, None]), zero.astype(X.dtype)])


def nearest_of(
    left: Any,
    rows: NDArray[np.int32],
    right: Any,
    candidates: NDArray[np.int32],
    n_neighbors: int,
    itself: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the candidates on the right nearest to rows on the left, ordered by index, and exact squared distances.

    `itself` is the excluded point on the right for each row. A candidate −1 is missing, and infinitely far.
    """
    from graphcouple._numba.nearest import candidate_sq_dists, sparse_candidate_sq_dists

    if itself is not None:
        candidates[candidates == itself[:, None]] = -1
    candidates.sort(axis=1)
    sq_dist = np.empty(candidates.shape)
    if sp.issparse(left):
        parts = (left.indptr, left.indices, left.data, right.indptr, right.indices, right.data)
        sparse_candidate_sq_dists(rows, *parts, candidates, sq_dist)
    else:
        candidate_sq_dists(rows, left, right, candidates, sq_dist)
    sq_dist[candidates < 0] = np.inf
    nearest = np.sort(np.argsort(sq_dist, axis=1, kind="stable")[:, :n_neighbors], axis=1)
    return np.take_along_axis(candidates, nearest, axis=1), np.take_along_axis(sq_dist, nearest, axis=1)
