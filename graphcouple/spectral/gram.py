"""Centred Gram matrices: their eigenvectors place points, and Nyström's formula places new points.

    C S C = V Λ Vᵀ,   Z = V_q Λ_q^½,   C = I − 11ᵀ/n

For S = X Xᵀ this is PCA, for a kernel matrix kernel PCA, for −½ D² with distances D classical multidimensional scaling,
and with geodesic distances Isomap. A new point with similarities s to the fitted ones is put at Λ_q^{-½} V_qᵀ s̃, where
s̃ is centred like S (Nyström's formula), so that a fitted point gets its own place.

References
----------
Lecture notes, sections 1.1, 1.2 and 2. Bengio et al. (2004), Out-of-sample extensions for LLE, Isomap, MDS, eigenmaps,
and spectral clustering.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from graphcouple._numba.threads import one_blas_thread
from graphcouple.graphs import FloatArray
from graphcouple.neighbors import as_points, product_of_rows
from graphcouple.neighbors.points import DENSE_ENTRIES, dense_if_far
from graphcouple.spectral.eigen import SYMMETRIC, fixed_signs, in_full, largest

# Eigenvalues below this share of the largest are rounding, if they are found by iteration. In full
# decompositions of matrices, rounding was at most 2.6 n eps times the largest entry before it was centred.
_NEGLIGIBLE, _IN_FULL = 1e-10, 10.0

_EPS = float(np.finfo(np.float64).eps)

# Factors with at most 500 rows or columns, also sparse ones, are decomposed in full; with at most 2,000 columns, by
# FᵀF.
_NARROW, _SQUARED = 500, 2000

# Strain needs the smaller product of a factor with itself, of at most this many rows.
_PAIRS_OF = 5000


class Placement(NamedTuple):
    """Places Z of points by a Gram matrix, and the matrix V Λ^{-½}, `onto`, that maps centred similarities to places.

    Eigenvalues descend. A column of `Z` is zero where its eigenvalue is not above 0.
    """

    eigenvalues: FloatArray
    Z: FloatArray
    onto: FloatArray


class GramMatrix:
    """A centred symmetric matrix C S C, from a `factor` F of S = F Fᵀ (points, or a low-rank approximation) or from
    S itself, `matrix`; without `centred`, C is the identity.
    """

    def __init__(self, factor: Any = None, matrix: Any = None, centred: bool = True) -> None:
        if (factor is None) == (matrix is None):
            raise ValueError("give either a factor or a matrix of similarities.")
        self.centred = centred
        self.factor: Any = None
        self.matrix: FloatArray | None = None
        if matrix is not None:
            S = np.asarray(matrix, dtype=np.float64)
            if S.ndim != 2 or S.shape[0] != S.shape[1]:
                raise ValueError(f"similarities must be a square array, got shape {S.shape}.")
            if not np.isfinite(S).all():
                raise ValueError(
                    "similarities must be finite, and hold NaN or infinity; divide X if it has huge entries."
                )
            self._largest = float(np.abs(S).max(initial=0.0))
            if np.abs(S - S.T).max(initial=0.0) > SYMMETRIC * max(self._largest, 1e-300):
                raise ValueError("similarities must be symmetric; take (S + S.T) / 2.")
            self.rows = S.mean(axis=0) if centred else np.zeros(len(S))
            self.matrix = S - self.rows - self.rows[:, None] + self.rows.mean()
            return
        points = as_points(factor, "factor")
        if sp.issparse(points) and min(points.shape) <= _NARROW and points.shape[0] * points.shape[1] <= DENSE_ENTRIES:
            points = points.toarray()
        points = dense_if_far(points) if centred else points
        self.factor = sp.csr_array(points, dtype=np.float64) if sp.issparse(points) else points.astype(np.float64)
        self.mean = np.asarray(self.factor.mean(axis=0)).ravel() if centred else np.zeros(points.shape[1])
        # Products subtract the mean of a sparse factor.
        if not sp.issparse(self.factor):
            self.factor = self.factor - self.mean
            self.mean = np.zeros_like(self.mean)

    @classmethod
    def of_distances(cls, distances: Any) -> GramMatrix:
        """Return −½ C D² C for distances D, an array of shape (n, n)."""
        return cls(matrix=-0.5 * np.square(np.asarray(distances, dtype=np.float64)))

    @property
    def n_points(self) -> int:
        """n."""
        return int((self.factor if self.matrix is None else self.matrix).shape[0])

    def less_mean(self, Y: FloatArray) -> FloatArray:
        """Return C Y."""
        return Y - Y.mean(axis=0) if self.centred else Y

    def times(self, Y: FloatArray) -> FloatArray:
        """Return C S C Y, for Y of shape (n,) or (n, m), centred if S is."""
        if self.matrix is not None:
            return self.matrix @ Y
        inner = self.factor.T @ Y - np.multiply.outer(self.mean, Y.sum(axis=0))
        return np.asarray(self.factor @ inner) - np.asarray(self.mean @ inner)

    @property
    def _of_same_norm(self) -> FloatArray:
        """The smaller of C S C and FᵀF, for S = F Fᵀ, which have the same norm."""
        if self.matrix is not None:
            return self.matrix
        n, p = self.factor.shape
        gram = self.factor @ self.factor.T if n < p else self.factor.T @ self.factor
        if not sp.issparse(gram):
            return np.asarray(gram)
        dense = gram.toarray()
        return self.less_mean(self.less_mean(dense).T) if n < p else dense - n * np.outer(self.mean, self.mean)

    @cached_property
    def sq_norm(self) -> float:
        """‖C S C‖²_F."""
        return float(np.square(self._of_same_norm).sum())

    def strain(self, eigenvalues: FloatArray) -> float | None:
        """Return ‖C S C − Z Zᵀ‖_F / ‖C S C‖_F for places Z with these eigenvalues; 0 if C S C is 0.

        It is None if the points and the columns are more than 5,000 each, for which no matrix of pairs is made.
        """
        if self.factor is not None and min(self.factor.shape) > _PAIRS_OF:
            return None
        gram = self._of_same_norm
        unit = float(np.abs(gram).max()) or 1.0
        total = float(np.square(gram / unit).sum())
        left = total - float(np.square(eigenvalues / unit).sum())
        return float(np.sqrt(max(left, 0.0) / (total or 1.0)))

    def placement(self, n_components: int) -> Placement:
        """Return the points' places Z = V Λ^½, from the largest eigenvalues; see `largest` for the warning."""
        width = self.n_points if self.factor is None else self.factor.shape[1]
        with one_blas_thread(self.n_points * width):
            values, vectors, rounding = self._leading(n_components)
        positive = values > rounding
        roots = np.sqrt(np.where(positive, values, 0.0))
        inverse_roots = np.divide(1.0, roots, out=np.zeros_like(roots), where=positive)
        return Placement(values, vectors * roots, vectors * inverse_roots)

    def directions(self, placement: Placement) -> FloatArray:
        """Return Fᵀ V Λ^{-½} with F centred, of shape (p, q): it maps centred points to places."""
        onto = np.asarray(self.factor.T @ placement.onto)
        return onto - np.multiply.outer(self.mean, placement.onto.sum(axis=0))

    @cached_property
    def trace(self) -> float:
        """Tr C S C."""
        if self.matrix is not None:
            return float(np.trace(self.matrix))
        entries = self.factor.data if sp.issparse(self.factor) else self.factor
        return float(np.square(entries).sum()) - self.n_points * float(np.square(self.mean).sum())

    def _leading(self, k: int) -> tuple[FloatArray, FloatArray, float]:
        """Return the largest eigenvalues, their vectors, and the size of eigenvalues that are rounding errors."""
        n, factor, scale = self.n_points, self.factor, 0.0
        if factor is not None and not sp.issparse(factor) and min(factor.shape) <= _NARROW:
            left, singular, _ = np.linalg.svd(factor, full_matrices=False)
            values, vectors, negligible = np.square(singular[:k]), left[:, :k], (max(factor.shape) * _EPS) ** 2
        elif factor is not None and not sp.issparse(factor) and factor.shape[1] <= min(_SQUARED, n):
            values, right = np.linalg.eigh(factor.T @ factor)
            values, right = np.maximum(values[: -k - 1 : -1], 0.0), right[:, : -k - 1 : -1]
            vectors = factor @ (right / np.sqrt(np.where(values > 0, values, 1.0)))
            negligible = max(factor.shape) * _EPS
        else:
            values, vectors = largest(lambda V: self.less_mean(self.times(self.less_mean(V))), n, k)
            negligible = _NEGLIGIBLE
            if self.matrix is not None and in_full(n, k):
                negligible, scale = _IN_FULL * n * _EPS, self._largest
            elif self.matrix is not None:
                scale = float(np.abs(self.matrix).max())
        # The matrix's largest entry bounds the rounding error of an eigenvalue 0.
        rounding = negligible * max(float(values[0]), scale)
        missing = k - values.size
        return np.pad(values, (0, missing)), np.pad(fixed_signs(vectors), ((0, 0), (0, missing))), rounding


def nystroem_places(similarities: FloatArray, rows: FloatArray, onto: FloatArray) -> FloatArray:
    """Return the places of points with these similarities to the fitted ones, of shape (n_new, n): Nyström's formula.

    `rows` are the mean similarities of the fitted points to all, and `onto` is from `Placement`. No row depends on
    another.
    """
    centred = similarities - similarities.mean(axis=1, keepdims=True) - rows + rows.mean()
    return product_of_rows(centred, onto)
