"""PCA as a coupling of precisions, with shrinkage and automatic dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from graphcouple._numba.threads import blas_threads, effective_n_jobs, one_blas_thread
from graphcouple._support.validation import warn
from graphcouple.couplings.precision import shrunk_eigenvalues
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import AT_LEAST_1
from graphcouple.estimators.embedding import EmbeddingEstimator
from graphcouple.estimators.spectral import check_directions, warn_of_missing
from graphcouple.graphs import FloatArray
from graphcouple.neighbors import product_of_rows
from graphcouple.neighbors.points import DENSE_ENTRIES, workable
from graphcouple.spectral import leading_svd

# Scores whose length is below this many eps of the largest are rounding.
_ROUNDING = 100.0


@estimator
class PrecisionCoupling(EmbeddingEstimator):
    """Couple Wishart laws of the rows' precisions: PCA at γ = 1, PCA with shrinkage for γ < 1.

    The embedding is V_q diag(λ)^½ with λ_i = max(0, γ(1 + d_i) − 1), where d_i are the squared singular values of X and
    γ = (ν_Z + q)/(ν_X + p). It is the closed-form minimiser of the coupling (see `PrecisionCrossEntropy`). If γ < 1,
    components with d_i ≤ 1/γ − 1 are dropped. It is computed from a truncated SVD, with no n×n matrix.

    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape ``(n_samples, n_components_)``
    components_ : ndarray of shape ``(n_components_, n_features)``
        Right singular vectors of X.
    singular_values_ : ndarray of shape ``(n_components_,)``
        Singular values of X, centred if `center`.
    eigenvalues_ : ndarray of shape ``(n_components_,)``
        λ, the squared singular values of the embedding.
    gamma_ : float
    mean_ : ndarray of shape (n_features,)
    n_components_ : int

    Raises
    ------
    ValueError
        When a ν is below n, `n_components` is above min(n, p), or γ > 1 and `n_components` is above the rank of X,
        so that the minimiser is not determined.

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

    n_components: Any = parameter(
        default=2,
        kind='int or "auto"',
        doc='q. "auto" keeps the components with λ_i > 0: with γ = 1 that is the rank of X.',
        checks=[AT_LEAST_1, StrOptions({"auto"})],
        kw_only=False,
    )
    nu_x: float | None = parameter(default=None)
    nu_z: float | None = parameter(default=None)
    center: bool = parameter(default=True)
    svd_solver: str = parameter(
        default="auto",
        kind='{"auto", "full", "covariance_eigh", "arpack", "randomized"}',
        doc="As in scikit-learn's PCA.",
        checks=[StrOptions({"auto", "full", "covariance_eigh", "arpack", "randomized"})],
    )
    random_state: Any = parameter(default=None, doc='Seed of the solvers "arpack" and "randomized".')
    n_jobs: int | None = parameter(
        default=None, doc="Threads of matrix products; None means every core. The last bits may depend on it."
    )

    _remembered = ("_ratio",)

    def _fit(self, X: Any) -> None:
        n, p = X.shape
        nu_x = float(n if self.nu_x is None else self.nu_x)
        for name, value in (("nu_x", nu_x), ("nu_z", self.nu_z)):
            if value is not None and value < n:
                raise ValueError(f"{name}={value} must be at least n_samples = {n}, for the Wishart law to exist.")
        wanted = min(n, p) if self.n_components == "auto" else int(self.n_components)
        check_directions(wanted, X.shape, "; lower it, or use 'auto'")
        limit = one_blas_thread(n * p) if self.n_jobs is None else blas_threads(effective_n_jobs(self.n_jobs))
        points, rng = workable(X), check_random_state(self.random_state)
        with limit:
            parts = leading_svd(points, wanted, center=self.center, svd_solver=self.svd_solver, rng=rng)
            # A Gram matrix gives singular values only to the square root of the precision.
            eps, singular = float(np.finfo(points.dtype).eps), parts.singular_values
            short = parts.squared and not singular[-1] > (10.0 * eps) ** 0.5 * float(singular[0])
            if short and self.svd_solver == "auto" and (not issparse(points) or n * p <= DENSE_ENTRIES):
                points = points.toarray() if issparse(points) else points
                parts = leading_svd(points, wanted, center=self.center, svd_solver="full", rng=rng)
        scores, singular, components, mean, squared = parts
        tolerance = (10.0 * eps) ** 0.5 if squared else min(max(n, p) * eps, (10.0 * eps) ** 0.5)
        rank = int(np.count_nonzero(singular > tolerance * float(singular[0])))
        q, squares = wanted, np.square(singular, dtype=np.float64)
        if self.n_components == "auto":
            # The largest q whose last component is kept, given the γ of that q.
            ranks = range(2, rank + 1)
            q = max((k for k in ranks if shrunk_eigenvalues(squares[k - 1], self._gamma(nu_x, p, k)) > 0), default=1)
        self.gamma_ = self._gamma(nu_x, p, q)
        if self.gamma_ > 1 and q > rank:
            raise ValueError(
                f"n_components={q} exceeds the rank of X, {rank}: with gamma = {self.gamma_:.4g} > 1 the coupling "
                "needs directions that X does not determine. Lower n_components, or nu_z."
            )
        # The Gram matrix misses short directions, but scores show them.
        n_found = int((np.linalg.norm(scores[:, :q], axis=0) > _ROUNDING * eps * singular[0]).sum())
        if n_found:
            warn_of_missing(n_found, q, "the points have")
        self.n_components_ = q
        self.mean_, self.components_ = (np.ascontiguousarray(part, X.dtype) for part in (mean, components[:q]))
        self.singular_values_ = singular[:q].astype(points.dtype)
        self.eigenvalues_ = shrunk_eigenvalues(self.singular_values_**2, self.gamma_).astype(points.dtype)
        if singular[0] > 0 and not self.eigenvalues_.any():
            warn(
                f"all components shrink to 0: the largest squared singular value, {squares[0]:.3g}, is not above "
                f"1/gamma - 1 = {1.0 / self.gamma_ - 1.0:.3g}. Raise nu_z, lower nu_x, or scale X up."
            )
        ratio = np.sqrt(self.eigenvalues_) / np.where(self.singular_values_ > 0, self.singular_values_, 1.0)
        self._ratio = ratio.astype(X.dtype)
        self.embedding_ = (scores[:, :q] * self._ratio).astype(X.dtype, copy=False)

    def _gamma(self, nu_x: float, p: int, q: int) -> float:
        return 1.0 if self.nu_z is None else (self.nu_z + q) / (nu_x + p)

    def transform(self, X: Any) -> FloatArray:
        """Embed new points: (x − mean) B diag(λ^½ / s), of shape ``(n_samples, n_components_)``."""
        return np.asarray(product_of_rows(self._checked_new(X), self.components_.T, self.mean_) * self._ratio)

    def inverse_transform(self, Z: Any) -> FloatArray:
        """Map embedded points back to the data's space, in the span of the kept components."""
        points = self._checked_places(Z)
        back = np.where(self._ratio > 0, 1.0 / np.where(self._ratio > 0, self._ratio, 1.0), 0.0)
        return product_of_rows(points * back.astype(self._ratio.dtype), self.components_) + self.mean_
