"""Wishart laws of precisions Θ given a thin X: log-densities need log det Θ and tr Θ + tr XᵀΘX, not the n×n scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import multigammaln, psi
from scipy.stats import wishart

from graphcouple.graphs import FloatArray
from graphcouple.laws.priors.random_graph import Rng


@dataclass(frozen=True, eq=False)
class PrecisionPosterior:
    """The law W(ν + p, (I + XXᵀ)⁻¹) of the rows' precision given X, under the prior W(ν, I).

    Parameters
    ----------
    X : array of shape (n, p)
    dof : float
        ν of the prior; at least n.

    Raises
    ------
    ValueError
        When `X` is not a finite 2-D array or `dof` is below n.

    References
    ----------
    Graph-coupling paper, appendix A.3.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.theory.wishart import PrecisionPosterior
    >>> law = PrecisionPosterior(np.array([[1.0], [0.0]]), dof=2)
    >>> law.mean()
    array([[1.5, 0. ],
           [0. , 3. ]])
    """

    X: FloatArray
    dof: float

    def __post_init__(self) -> None:
        points = np.array(self.X, dtype=np.float64)
        if points.ndim != 2 or not np.isfinite(points).all():
            raise ValueError(f"X must be a finite array of shape (n, p), got shape {points.shape}.")
        if not (n := points.shape[0]) <= self.dof < np.inf:
            raise ValueError(f"dof={self.dof} must be finite and at least n = {n} for a density to exist.")
        object.__setattr__(self, "X", points)

    @property
    def n_nodes(self) -> int:
        """n."""
        return self.X.shape[0]

    @property
    def posterior_dof(self) -> float:
        """ν + p."""
        return float(self.dof + self.X.shape[1])

    @cached_property
    def _axes(self) -> tuple[FloatArray, FloatArray]:
        """The left singular vectors of X, and the eigenvalues of I + XXᵀ along them; across them it is I."""
        vectors, values, _ = np.linalg.svd(self.X, full_matrices=False)
        return vectors, 1.0 + values**2

    def _log_det_inverse_scale(self) -> float:
        return float(np.log(self._axes[1]).sum())

    def _log_normalizer(self) -> float:
        n, nu = self.n_nodes, self.posterior_dof
        gamma = float(multigammaln(0.5 * nu, n))
        return 0.5 * nu * n * math.log(2.0) + gamma - 0.5 * nu * self._log_det_inverse_scale()

    def log_prob(self, theta: Any) -> float:
        """Return the log-density at a symmetric matrix, in nats; −inf if it is not positive definite."""
        precision = np.asarray(theta, dtype=np.float64)
        if precision.shape != (self.n_nodes,) * 2:
            raise ValueError(f"theta must have shape {(self.n_nodes,) * 2}, got {precision.shape}.")
        # The Cholesky decomposition reads one triangle only.
        if not abs(precision - precision.T).max() <= 1e-8 * abs(precision).max():
            raise ValueError("theta must be finite and symmetric; take (theta + theta.T) / 2.")
        try:
            log_det = 2.0 * float(np.log(np.diag(np.linalg.cholesky(precision))).sum())
        except np.linalg.LinAlgError:
            return -math.inf
        trace = float(np.trace(precision)) + float((self.X * (precision @ self.X)).sum())
        return 0.5 * (self.posterior_dof - self.n_nodes - 1) * log_det - 0.5 * trace - self._log_normalizer()

    def _scale(self, power: float = 1.0) -> FloatArray:
        """Return a power of (I + XXᵀ)⁻¹."""
        vectors, values = self._axes
        along = (vectors * values**-power) @ vectors.T
        return along if len(values) == self.n_nodes else along + np.eye(self.n_nodes) - vectors @ vectors.T

    def mean(self) -> FloatArray:
        """Return (ν + p)(I + XXᵀ)⁻¹, of shape (n, n)."""
        return self.posterior_dof * self._scale()

    def cross_entropy(self, other: PrecisionPosterior) -> float:
        """Return −E[log q(Θ)] in nats, where Θ follows this law and q is the density of the other."""
        if other.n_nodes != self.n_nodes:
            raise ValueError(f"other has {other.n_nodes} rows, but this law has {self.n_nodes}.")
        # tr E[Θ] + tr YᵀE[Θ]Y, by n×p products only.
        vectors, values = self._axes
        along = vectors.T @ other.X
        trace = self.n_nodes - len(values) + float(((1.0 + (along**2).sum(axis=1)) / values).sum())
        trace += float(((other.X - vectors @ along) ** 2).sum())
        n, nu = self.n_nodes, self.posterior_dof
        log_det = float(psi(0.5 * (nu - np.arange(n))).sum()) + n * math.log(2.0) - self._log_det_inverse_scale()
        slope = 0.5 * (other.posterior_dof - n - 1)
        return 0.5 * nu * trace - slope * log_det + other._log_normalizer()

    def entropy(self) -> float:
        """Return the differential entropy, in nats."""
        return self.cross_entropy(self)

    def sample(self, rng: Rng = None) -> FloatArray:
        """Draw a precision matrix (`scipy.stats.wishart`), of shape (n, n); raise if rounding spoils it."""
        drawn = wishart(self.posterior_dof, np.eye(self.n_nodes)).rvs(random_state=np.random.default_rng(rng))
        # A scale of numbers of many magnitudes has no Cholesky decomposition in double precision.
        root = self._scale(0.5)
        precision = root @ np.reshape(drawn, root.shape) @ root
        precision = 0.5 * (precision + precision.T)
        if not np.isfinite(self.log_prob(precision)):
            largest = math.sqrt(self._axes[1].max())
            raise ValueError(f"X has a singular value of {largest:.2g}, so rounding spoils precisions; scale X down.")
        return precision
