"""The points of an inverted file: projected on leading principal components, or centred, in a common unit.

The components leave out a part of each point. The length of this part is an extra coordinate of the searched points.
Query points have 0 for this coordinate, so distances are right on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.extmath import randomized_svd

# Axes are added up to this share of the variance, and at most 96. The length of the remainder is a coordinate too, so
# more axes add little recall; fewer axes need more candidates.
_EXPLAINED = 0.9
_MOST_COMPONENTS = 96

# Rows from which axes are computed, and columns above which the decomposition is randomized: a Gram matrix of 8,000²
# doubles already takes 0.5 GB.
_TRAINING_ROWS = 20_000
_WIDE = 8000

# Matrix products of this many rows, padded with zeros, give each row the same bits whatever the others are.
ROWS_TOGETHER = 128


@dataclass(frozen=True)
class Projection:
    """The map from points to the space of the search."""

    mean: NDArray[Any]
    unit: float
    """The divisor of the coordinates."""
    axes: NDArray[Any] | None = None
    """Of shape (n_features, n_components); None if points keep all their coordinates.

    If some are dropped, the last coordinate is the length of these.
    """

    def apply(self, X: Any) -> NDArray[Any]:
        """Return the projected points; each row has the same bits whatever the other rows are."""
        if self.axes is None:
            dense = X.toarray() if sp.issparse(X) else X
            return np.ascontiguousarray((dense - self.mean) / self.unit)
        points = np.empty((X.shape[0], self.axes.shape[1] + 1), dtype=np.float32)
        on_axes, sq_lengths = self._on_axes(X, self.axes)
        sq_remainder = np.maximum(sq_lengths - np.einsum("ij,ij->i", on_axes, on_axes), 0.0)
        points[:, :-1] = on_axes / self.unit
        points[:, -1] = np.sqrt(sq_remainder) / self.unit
        return points

    def _on_axes(self, X: Any, axes: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the coordinates on the axes, and the squared distances from the mean."""
        columns = np.column_stack([axes, self.mean])
        products = product_of_rows(X, columns) - self.mean @ columns
        norms = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
        return products[:, :-1], norms - 2.0 * products[:, -1] - float(self.mean @ self.mean)

    @classmethod
    def principal(cls, X: Any) -> Projection:
        """Return the projection on leading axes that explain most of the variance; narrow points keep all columns."""
        if X.shape[1] <= _MOST_COMPONENTS:
            return cls.none(X)
        mean, axes = _principal_axes(X)
        # Divided by their typical length, points in any units fit in single precision.
        sq_lengths = cls(mean, 1.0, axes)._on_axes(X, axes[:, :0])[1]
        return cls(mean, float(np.sqrt(sq_lengths.mean())) or 1.0, axes)

    @classmethod
    def none(cls, X: Any) -> Projection:
        """Return the projection that keeps all coordinates."""
        dense = X.toarray() if sp.issparse(X) else X
        mean = dense.mean(axis=0)
        return cls(mean, float(np.abs(dense - mean).max()) or 1.0)


def product_of_rows(
    X: Any, matrix: NDArray[Any], mean: NDArray[Any] | None = None, together: int = ROWS_TOGETHER
) -> NDArray[Any]:
    """Return (X − mean) @ matrix; a row's result does not depend on the other rows."""
    if sp.issparse(X):
        return np.asarray(X @ matrix) if mean is None else np.asarray(X @ matrix) - mean @ matrix
    shape, dtype = (X.shape[0], matrix.shape[1]), np.result_type(X, matrix)
    function = (lambda rows: rows @ matrix) if mean is None else (lambda rows: (rows - mean) @ matrix)
    return row_by_row(function, X, np.empty(shape, dtype=dtype), together)


def row_by_row(function: Any, X: Any, result: NDArray[Any], together: int = ROWS_TOGETHER) -> NDArray[Any]:
    """Fill the function of rows, in blocks of one size: a row's result does not depend on the other rows."""
    for a in range(0, X.shape[0], together):
        rows = X[a : a + together]
        n_rows = len(rows)
        if n_rows < together:
            rows = np.vstack([rows, np.zeros((together - n_rows, X.shape[1]), dtype=X.dtype)])
        result[a : a + n_rows] = function(rows)[:n_rows]
    return result


def _principal_axes(X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the mean, zero for sparse points, and the leading axes that explain most of the variance."""
    n = X.shape[0]
    part = X[np.sort(np.random.default_rng(0).choice(n, min(_TRAINING_ROWS, n), replace=False))]
    if sp.issparse(X):
        from sklearn.decomposition import TruncatedSVD

        svd = TruncatedSVD(_MOST_COMPONENTS, random_state=0).fit(part)
        return np.zeros(X.shape[1], dtype=X.dtype), np.ascontiguousarray(svd.components_.T.astype(X.dtype))
    mean = part.mean(axis=0, dtype=np.float64).astype(X.dtype)
    part = part - mean
    if X.shape[1] > _WIDE:
        _, lengths, rows_of_axes = randomized_svd(part, _MOST_COMPONENTS, random_state=0)
        values, axes, total = np.square(lengths), rows_of_axes.T, float(np.square(part).sum())
    else:
        values, axes = np.linalg.eigh(part.T @ part)
        values, axes, total = values[::-1], axes[:, ::-1], float(values.sum())
    share = np.cumsum(values[:_MOST_COMPONENTS]) / (total or 1.0)
    n_components = min(int(np.searchsorted(share, _EXPLAINED)) + 1, _MOST_COMPONENTS)
    return mean, np.ascontiguousarray(axes[:, :n_components].astype(X.dtype))
