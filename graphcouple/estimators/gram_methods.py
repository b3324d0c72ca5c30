"""Methods whose embedding is V Λ^½ of a Gram matrix: classical scaling and kernel PCA."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.embedding import EmbeddingEstimator
from graphcouple.estimators.rows import with_others
from graphcouple.estimators.spectral import choose_landmarks, kernel_values, placed, squared_distances, warn_of_missing
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.kernels import Kernel
from graphcouple.neighbors import distances_of, is_precomputed, product_of_rows
from graphcouple.neighbors.by_metric import symmetric_distances
from graphcouple.neighbors.distances import squares_of
from graphcouple.spectral import GramMatrix


class SimilarityEstimator(EmbeddingEstimator):
    """Base class of methods that place points by their similarities to the fitted points."""

    landmarks_: IntArray | None = None

    _remembered: ClassVar[tuple[str, ...]] = ("_fixed",)
    _fixed: dict[str, Any]

    _measured_by: ClassVar[tuple[str, str, str]]
    """The parameters with the kernel or metric and with its arguments, and the one that takes scalar products."""

    @property
    def _measure(self) -> tuple[Any, dict[str, Any]]:
        """The kernel or metric of the similarities, and its arguments."""
        name, arguments, _ = self._measured_by
        return getattr(self, name), dict(getattr(self, arguments) or {})

    @property
    def _linear(self) -> bool:
        """Whether the similarities are scalar products of the points, so that no matrix of pairs is needed."""
        measure, arguments = self._measure
        return isinstance(measure, str) and measure == self._measured_by[2] and not arguments

    @abstractmethod
    def _similarities(self, X: Any, fitted: Any = None, measure: Any = None) -> FloatArray:
        """Return the similarities of points to the fitted points, of shape (n, n_fitted), by `_measure` or another."""

    def _columns(self, X: Any) -> Any:
        """Return the columns that belong to the landmarks, of numbers for pairs."""
        return X[:, self.landmarks_] if self.takes_distances and self.landmarks_ is not None else X

    def _placed(self, X: Any) -> FloatArray:
        known = self._fixed
        if "mean" in known:
            features = self._of_chosen(known, X) if "chosen" in known else X
            return product_of_rows(features, known["onto"], known["mean"])
        # In older files of AttractionRepulsionPCA they are called X.
        points, measure = known.get("points", known.get("X")), tuple(known.get("measure", self._measure))
        return placed(X.shape[0], known, lambda rows: self._similarities(X[rows], points, measure))

    def _of_chosen(self, known: dict[str, Any], X: Any) -> FloatArray:
        """Return the similarities to the fitted points whose columns were chosen."""
        points = known.get("points")
        return self._similarities(X[:, known["chosen"]] if points is None else X, points, tuple(known["measure"]))

    def transform(self, X: Any) -> FloatArray:
        """Place new points by Nyström's formula: fitted points get their own places.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            Or, for "precomputed", one number for each of the points of `fit`.

        Returns
        -------
        ndarray of shape (n_new, n_components)
            No row depends on another, except for the last bits with a kernel of scikit-learn.
        """
        X = self._checked_new(X)
        # Whether the fit took numbers of pairs; parameters may have been set since.
        known = self._fixed
        of_pairs = self.landmarks_ is not None and "rows" in known and known.get("points", known.get("X")) is None
        return self._placed(X[:, self.landmarks_] if of_pairs else X).astype(X.dtype, copy=False)


@estimator
class ByKernel(SimilarityEstimator):
    """Base class of methods whose similarities are the values of a kernel."""

    n_components: int = parameter(default=2, kw_only=False)
    kernel: Any = parameter(
        default="linear",
        kind='str, Kernel, callable or "precomputed"',
        doc='The similarities: "linear" for PCA; any kernel of `sklearn.metrics.pairwise.pairwise_kernels`; a kernel '
        'of graphcouple, such as Gaussian(); a function of two rows; "precomputed" if X holds their symmetric matrix.',
        checks=[StrOptions({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}), Kernel, callable],
    )
    kernel_params: dict[str, Any] | None = parameter(default=None)

    @property
    def takes_distances(self) -> bool:
        """Whether `X` holds similarities."""
        return is_precomputed(self.kernel)

    _measured_by = ("kernel", "kernel_params", "linear")

    def _similarities(self, X: Any, fitted: Any = None, measure: Any = None) -> FloatArray:
        kernel, params = measure or self._measure
        return kernel_values(kernel, params, X, fitted)


@estimator
class GramEstimator(SimilarityEstimator):
    """Base class of methods that decompose a centred matrix of similarities."""

    n_components: int = parameter(default=2, kw_only=False)
    n_landmarks: Any = parameter(default="auto", like="landmarks of pairs")
    random_state: Any = parameter(default=None, doc="Seed of the landmarks.")

    def _fit(self, X: Any) -> None:
        n = X.shape[0]
        if self.takes_distances and X.shape[0] != X.shape[1]:
            raise ValueError(f"X holds one number for each pair, so it must be square, got shape {X.shape}.")
        if self.n_components >= n:
            raise ValueError(f"n_components={self.n_components} must be below n_samples = {n}.")
        if self._linear:
            self.landmarks_ = None
            gram = GramMatrix(X)
        else:
            rng = check_random_state(self.random_state)
            self.landmarks_ = choose_landmarks(X, self.n_landmarks, rng, points=not self.takes_distances)
            base = X if self.landmarks_ is None else X[self.landmarks_]
            points = None if self.takes_distances else base
            gram = GramMatrix(matrix=self._similarities(self._columns(base), points))
        if self.n_components >= gram.n_points:
            raise ValueError(f"n_components={self.n_components} must be below the {gram.n_points} landmarks.")
        placement = gram.placement(self.n_components)
        warn_of_missing(int((placement.onto != 0).any(axis=0).sum()), self.n_components, "the similarities have")
        self.eigenvalues_: FloatArray = placement.eigenvalues
        self.strain_ = gram.strain(placement.eigenvalues[(placement.onto != 0).any(axis=0)])
        if self._linear:
            mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
            self._fixed = {"mean": mean, "onto": gram.directions(placement)}
        else:
            self._fixed = {"points": points, "rows": gram.rows, "onto": placement.onto, "measure": self._measure}
        Z = placement.Z
        if self.landmarks_ is not None:
            Z = with_others(n, self.landmarks_, Z, lambda rows: self._placed(self._columns(X[rows])))
        self.embedding_ = Z.astype(X.dtype)

    def report(self) -> list[tuple[str, str]]:
        """Return the eigenvalues and the strain, as names and texts."""
        return [*super().report(), *([] if self.strain_ is None else [("strain", f"{self.strain_:.4f}")])]


@estimator
class ClassicalMDS(GramEstimator):
    """Classical multidimensional scaling: V Λ^½ of −½ C D² C, with D the distances.

    For Euclidean distances it is PCA, computed without a matrix of pairs. Other distances may have no Euclidean
    embedding at all: negative eigenvalues show this, and are left out.

    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    eigenvalues_ : ndarray of shape (n_components,)
        Λ, the squared lengths of the embedding's columns (on the landmarks).
    strain_ : float or None
        (Σ_ij (s_ij − z_i · z_j)² / Σ_ij s_ij²)^½, S = −½ C D² C (on the landmarks): 0 is perfect. None for more
        than 5,000 points with more than 5,000 columns.
    landmarks_ : ndarray or None
        The rows that were fitted; None if all.

    References
    ----------
    Lecture notes, section 1.1. Torgerson (1952), Multidimensional scaling. De Silva and Tenenbaum (2004), Sparse
    multidimensional scaling using landmark points.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> by_streets = gc.ClassicalMDS(metric="manhattan").fit(X)
    >>> by_streets.transform(X[:3]).shape
    (3, 2)
    """

    metric: Any = parameter(default="euclidean")
    metric_params: dict[str, Any] | None = parameter(default=None)

    def _fit(self, X: Any) -> None:
        if self.takes_distances and issparse(X):
            raise ValueError("all distances are needed, and a sparse graph of distances stores some; see Isomap.")
        super()._fit(symmetric_distances(X) if self.takes_distances else X)

    _measured_by = ("metric", "metric_params", "euclidean")

    def _similarities(self, X: Any, fitted: Any = None, measure: Any = None) -> FloatArray:
        if fitted is None:
            return -0.5 * squares_of(np.asarray(X.toarray() if issparse(X) else X, dtype=np.float64))
        return -0.5 * squared_distances(distances_of(fitted, *(measure or self._measure)), X)


@estimator
class KernelPCA(ByKernel, GramEstimator):
    """Kernel PCA: V Λ^½ of the centred kernel matrix C K C.

    The kernel −½ d² gives classical scaling, and with geodesic distances Isomap; see `GramMatrix.of_distances`.

    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    eigenvalues_ : ndarray of shape (n_components,)
        Λ, the squared lengths of the embedding's columns (on the landmarks).
    strain_ : float or None
        (Σ_ij (s_ij − z_i · z_j)² / Σ_ij s_ij²)^½ of the centred kernel matrix S (on the landmarks): 0 is perfect. None
        for more than 5,000 points with more than 5,000 columns.
    landmarks_ : ndarray or None
        The rows that were fitted; None if all.

    References
    ----------
    Lecture notes, section 2. Schölkopf, Smola and Müller (1998), Nonlinear component analysis as a kernel eigenvalue
    problem.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.KernelPCA(kernel="rbf", kernel_params={"gamma": 0.5}).fit_transform(X).shape
    (150, 2)
    >>> gc.KernelPCA(kernel=gc.Student()).fit_transform(X).shape
    (150, 2)
    """
