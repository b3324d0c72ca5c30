"""Precision coupling: two Wishart laws of the rows' precision, with PCA, or PCA with shrinkage, as the best embedding.

With Θ_X ~ W(ν_X, I), Θ_Z ~ W(ν_Z, I) and Gaussian rows with these precisions, the cross-entropy of the posteriors
is, up to a constant,

    J(Z) = (ν_X + p)/2 · tr(Zᵀ (I + XXᵀ)⁻¹ Z) − (ν_Z + q)/2 · log det(I + ZZᵀ).

If XXᵀ = V diag(d) Vᵀ, the minimiser is Z* = V_q diag(λ)^½ R, with R orthogonal, λ_i = max(0, γ(1 + d_i) − 1) and
γ = (ν_Z + q)/(ν_X + p) (graph-coupling paper, theorem 2; its appendix exchanges p and q in γ). γ = 1 is PCA.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import cholesky, qr, solve_triangular

from graphcouple._support.validation import check_embedding
from graphcouple.couplings.base import Objective
from graphcouple.graphs import FloatArray

# Below this sum of squares, I − BBᵀ keeps ten digits.
_CANCELLING = 1e6


def _factor(gram: FloatArray) -> FloatArray:
    """Return L of I + `gram` = LLᵀ, which is overwritten."""
    gram[np.diag_indices_from(gram)] += 1.0
    return cholesky(gram, lower=True, overwrite_a=True, check_finite=False)


def shrunk_eigenvalues(sq_singular: FloatArray, gamma: float) -> FloatArray:
    """Return λ = max(0, γ(1 + d) − 1), the squared singular values of the best embedding."""
    if gamma == 1.0:
        return np.array(sq_singular, copy=True)
    return np.maximum(gamma * (1.0 + sq_singular) - 1.0, 0.0)


class PrecisionCrossEntropy(Objective):
    """J(Z), the cross-entropy of precision posteriors as a function of the embedding, in nats.

    Parameters
    ----------
    X : array of shape (n, p)
        X is not centred.
    nu_x : float, optional
        ν_X, at least n; n by default.
    nu_z : float, optional
        ν_Z, at least n; ν_X + p − q by default, which makes γ = 1: PCA.

    Raises
    ------
    ValueError
        When `X` is not a finite 2-D array, or a ν is below n.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(30, 5))
    >>> J = gc.PrecisionCrossEntropy(X)
    >>> Z = gc.solve(J, np.random.default_rng(1).normal(size=(30, 2)), rescale=True, max_iter=500).Z
    >>> singular = np.linalg.svd(X, compute_uv=False)[:2]
    >>> bool(np.allclose(np.linalg.svd(Z, compute_uv=False), singular, rtol=1e-4))
    True
    """

    def __init__(self, X: Any, nu_x: float | None = None, nu_z: float | None = None) -> None:
        points = check_embedding(X, "X").astype(np.float64)
        self.n_points, self._p = n, p = points.shape
        self.nu_x = float(n if nu_x is None else nu_x)
        self.nu_z = None if nu_z is None else float(nu_z)
        for name, value in (("nu_x", self.nu_x), ("nu_z", self.nu_z)):
            if value is not None and not n <= value < np.inf:
                raise ValueError(f"{name}={value} must be finite and at least n = {n}, for the Wishart law to exist.")
        # Iterations only multiply: solving would call SciPy's BLAS, whose threads compete with NumPy's.
        self._inverse: FloatArray | None = None
        self._whole: FloatArray | None = None
        if float(np.square(points).sum()) < _CANCELLING:
            if n <= 2 * p:
                # One product with n² numbers takes no longer than two with np.
                self._whole = np.linalg.inv(np.eye(n) + points @ points.T)
                return
            # With I + XᵀX = LLᵀ and B = XL⁻ᵀ, (I + XXᵀ)⁻¹ is I − BBᵀ.
            lower = _factor(points.T @ points)
            self._basis = np.ascontiguousarray(solve_triangular(lower, points.T, lower=True, check_finite=False).T)
            return
        # With X = BR, B orthonormal, and I + RRᵀ = LLᵀ, it is I − BBᵀ + B(LLᵀ)⁻¹Bᵀ. Both parts are positive, so nothing
        # cancels however large X is, but finding B takes longer.
        self._basis, right = qr(points, mode="economic", check_finite=False)
        self._inverse = solve_triangular(_factor(right @ right.T), np.eye(len(right)), lower=True, check_finite=False)

    def _conditional(self, Y: FloatArray) -> tuple[float, FloatArray]:
        """Return tr(Yᵀ (I + XXᵀ)⁻¹ Y), and (I + XXᵀ)⁻¹ Y."""
        if self._whole is not None:
            product = self._whole @ Y
            return float((Y * product).sum()), product
        coordinates = self._basis.T @ Y
        residual = Y - self._basis @ coordinates
        if self._inverse is None:
            return float((Y * residual).sum()), residual
        half = self._inverse @ coordinates
        trace = float(np.square(residual).sum() + np.square(half).sum())
        return trace, residual + self._basis @ (self._inverse.T @ half)

    def _weights(self, q: int) -> tuple[float, float]:
        nu_z = self.nu_x + self._p - q if self.nu_z is None else self.nu_z
        return self.nu_x + self._p, nu_z + q

    def gamma(self, n_components: int) -> float:
        """Return γ = (ν_Z + q)/(ν_X + p)."""
        input_weight, latent_weight = self._weights(n_components)
        return latent_weight / input_weight

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return J(Z) and its gradient (ν_X + p)(I + XXᵀ)⁻¹Z − (ν_Z + q) Z (I + ZᵀZ)⁻¹, for Z of shape (n, q)."""
        points = check_embedding(Z, n_points=self.n_points)
        input_weight, latent_weight = self._weights(points.shape[1])
        Y = points.astype(np.float64)
        trace, conditional = self._conditional(Y)
        # YᵀY would lose the smaller of two singular values that are eight digits apart.
        singular, axes = np.linalg.svd(np.linalg.qr(Y, mode="r"), full_matrices=False)[1:]
        sq_singular = np.square(singular)
        value = 0.5 * (input_weight * trace - latent_weight * float(np.log1p(sq_singular).sum()))
        gradient = input_weight * conditional - latent_weight * (Y @ axes.T / (1.0 + sq_singular)) @ axes
        return value, gradient.astype(points.dtype, copy=False)

    def curvature(self, Z: FloatArray) -> float:
        """Return the largest curvature of the trace term, ν_X + p."""
        return self._weights(1)[0]
