"""PCA as a coupling of precisions, with shrinkage and automatic dimension."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn import config_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from graphcouple.couplings.precision import shrunk_eigenvalues
from graphcouple.estimators._base import EmbeddingEstimator
from graphcouple.graphs import FloatArray


class PrecisionCoupling(EmbeddingEstimator):
    """Couple Wishart laws of the rows' precisions: PCA at γ = 1, PCA with shrinkage below.

    The embedding is V_q diag(λ)^½ with λ_i = max(0, γ(1 + d_i) − 1), d_i the squared singular values of X and
    γ = (ν_Z + q)/(ν_X + p): the closed-form minimiser of the coupling (see `PrecisionCrossEntropy`). With γ < 1 every
    component with d_i ≤ 1/γ − 1 is dropped. Computed from a truncated SVD; nothing is n×n.

    Parameters
    ----------
    n_components : int or "auto", default=2
        q. "auto" keeps the components with λ_i > 0: with γ = 1 that is the rank of X.
    nu_x : float, optional
        ν_X, at least n; n by default.
    nu_z : float, optional
        ν_Z, at least n; ν_X + p − q by default, which makes γ = 1.
    center : bool, default=True
        Subtract the columns' means first (implicitly, for sparse X).
    svd_solver : {"auto", "full", "covariance_eigh", "arpack", "randomized"}, default="auto"
        As scikit-learn's PCA has it.
    random_state : int, RandomState or None, default=None
        For "arpack" and "randomized".

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components_)
    components_ : ndarray of shape (n_components_, n_features)
        Right singular vectors of X.
    singular_values_ : ndarray of shape (n_components_,)
        Of X, centred if asked.
    eigenvalues_ : ndarray of shape (n_components_,)
        λ, the squared singular values of the embedding.
    gamma_ : float
    mean_ : ndarray of shape (n_features,)
    n_components_ : int

    Raises
    ------
    ValueError
        When a ν is below n, `n_components` above min(n, p), or γ > 1 with `n_components` above the rank of X,
        where the minimiser is not determined.

    References
    ----------
    Graph-coupling paper, theorem 2 and appendix A.3.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> pca = gc.PrecisionCoupling(n_components=2).fit(X)
    >>> pca.gamma_
    1.0
    >>> pca.transform(X[:3]).shape
    (3, 2)
    >>> gc.PrecisionCoupling(n_components="auto", nu_x=15000, nu_z=150).fit(X).n_components_
    1
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "nu_x": [None, Interval(Real, 0, None, closed="neither")],
        "nu_z": [None, Interval(Real, 0, None, closed="neither")],
        "center": ["boolean"],
        "svd_solver": [StrOptions({"auto", "full", "covariance_eigh", "arpack", "randomized"})],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: Any = 2,
        *,
        nu_x: float | None = None,
        nu_z: float | None = None,
        center: bool = True,
        svd_solver: str = "auto",
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.nu_x = nu_x
        self.nu_z = nu_z
        self.center = center
        self.svd_solver = svd_solver
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Compute the coupling's minimiser.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : None
            Ignored.
        """
        self._fit(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Compute the coupling's minimiser and return it, of shape (n_samples, n_components_)."""
        return self._fit(X)

    def _fit(self, X: Any) -> FloatArray:
        self._validate_params()
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
        n, p = X.shape
        nu_x = float(n if self.nu_x is None else self.nu_x)
        for name, value in (("nu_x", nu_x), ("nu_z", self.nu_z)):
            if value is not None and value < n:
                raise ValueError(f"{name}={value} must be at least n_samples = {n}, for the Wishart law to exist.")
        wanted = min(n, p) if self.n_components == "auto" else int(self.n_components)
        if wanted > min(n, p):
            raise ValueError(
                f"n_components={wanted} must be at most min(n_samples, n_features)={min(n, p)}; "
                "lower it, or use 'auto'."
            )
        scores, singular, components, squared = self._svd(X, wanted)
        # Through a Gram matrix singular values are known to the square root of the precision only.
        eps = float(np.finfo(X.dtype).eps)
        tolerance = (10.0 * eps) ** 0.5 if squared else max(n, p) * eps
        rank = int(np.count_nonzero(singular > tolerance * float(singular[0])))
        kept = self._choose(singular, rank, nu_x, p) if self.n_components == "auto" else wanted
        self.gamma_ = self._gamma(nu_x, p, kept)
        if self.gamma_ > 1 and kept > rank:
            raise ValueError(
                f"n_components={kept} exceeds the rank of X, {rank}: with gamma = {self.gamma_:.4g} > 1 the coupling "
                "asks for directions that X does not determine. Lower n_components, or nu_z."
            )
        self.n_components_ = kept
        self.components_ = components[:kept]
        self.singular_values_ = singular[:kept].astype(X.dtype)
        self.eigenvalues_ = shrunk_eigenvalues(self.singular_values_**2, self.gamma_).astype(X.dtype)
        ratio = np.sqrt(self.eigenvalues_) / np.where(self.singular_values_ > 0, self.singular_values_, 1.0)
        self._ratio = ratio.astype(X.dtype)
        self.embedding_ = scores[:, :kept] * self._ratio
        return self.embedding_

    def _gamma(self, nu_x: float, p: int, q: int) -> float:
        return 1.0 if self.nu_z is None else (self.nu_z + q) / (nu_x + p)

    def _choose(self, singular: FloatArray, rank: int, nu_x: float, p: int) -> int:
        """Return the largest q whose q-th component is kept under its own γ; at least 1."""
        for q in range(rank, 1, -1):
            if self._gamma(nu_x, p, q) * (1.0 + float(singular[q - 1]) ** 2) > 1.0:
                return q
        return 1

    def _svd(self, X: Any, k: int) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
        """Return the leading scores X B, singular values, right singular vectors, and whether by a Gram matrix.

        Sets `mean_`.
        """
        rng = check_random_state(self.random_state)
        if self.center:
            from sklearn.decomposition import PCA

            solver = self.svd_solver
            if sp.issparse(X) and k >= min(X.shape):
                solver = "covariance_eigh"
            pca = PCA(k, svd_solver=solver, random_state=rng)
            # X is known to be finite by now, and constant data have no variance to take a ratio of.
            with np.errstate(invalid="ignore", divide="ignore"), config_context(assume_finite=True):
                scores = pca.fit_transform(X)
            self.mean_ = pca.mean_
            return scores, pca.singular_values_, pca.components_, pca._fit_svd_solver == "covariance_eigh"
        self.mean_ = np.zeros(X.shape[1], dtype=X.dtype)
        if k < min(X.shape) and (self.svd_solver in ("arpack", "randomized") or sp.issparse(X)):
            from sklearn.decomposition import TruncatedSVD

            algorithm = "randomized" if self.svd_solver == "randomized" else "arpack"
            svd = TruncatedSVD(k, algorithm=algorithm, random_state=rng)
            scores = svd.fit_transform(X)
            return scores, svd.singular_values_, svd.components_, False
        tall = self.svd_solver == "auto" and X.shape[0] >= 10 * X.shape[1]
        if sp.issparse(X) or tall or self.svd_solver == "covariance_eigh":
            return *self._gram_svd(X), True
        left, singular, components = np.linalg.svd(X, full_matrices=False)
        return left[:, :k] * singular[:k], singular[:k], components[:k], False

    def _gram_svd(self, X: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the whole SVD through the smaller of the two Gram matrices."""
        tall = X.shape[0] >= X.shape[1]
        gram = X.T @ X if tall else X @ X.T
        values, vectors = np.linalg.eigh(gram.toarray() if sp.issparse(gram) else gram)
        singular = np.sqrt(np.maximum(values[::-1], 0.0)).astype(X.dtype)
        vectors = vectors[:, ::-1]
        if tall:
            return X @ vectors, singular, vectors.T
        inverse = np.where(singular > 0, 1.0 / np.where(singular > 0, singular, 1.0), 0.0).astype(X.dtype)
        return vectors * singular, singular, inverse[:, None] * (vectors.T @ X)

    def transform(self, X: Any) -> FloatArray:
        """Embed new points: (x − mean) B diag(λ^½ / s), of shape (n_samples, n_components_)."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        scores = X @ self.components_.T - self.mean_ @ self.components_.T
        return np.asarray(scores * self._ratio)

    def inverse_transform(self, Z: Any) -> FloatArray:
        """Return the points of the data's space that embed at `Z`, in the span of the components kept."""
        check_is_fitted(self)
        points = np.asarray(Z)
        if points.ndim != 2 or points.shape[1] != self.n_components_:
            raise ValueError(f"Z must have {self.n_components_} columns, got shape {points.shape}.")
        back = np.where(self._ratio > 0, 1.0 / np.where(self._ratio > 0, self._ratio, 1.0), 0.0)
        return (points * back.astype(self._ratio.dtype)) @ self.components_ + self.mean_
