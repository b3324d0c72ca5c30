"""Locally linear embedding: the smallest eigenvectors of a Laplacian of reconstruction weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcouple._support.validation import at_most_others
from graphcouple.couplings import reconstruction_weights
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.laplacian_methods import LaplacianEstimator
from graphcouple.graphs import FloatArray
from graphcouple.neighbors import distances_of
from graphcouple.spectral import ReconstructionLaplacian


@estimator
class LocallyLinearEmbedding(LaplacianEstimator):
    """Locally linear embedding: the least of Σ_i ‖z_i − Σ_j w_ij z_j‖² at unit covariance, with the weights of X.

    The weights W reconstruct each point from its neighbours. The sum is Tr(Zᵀ M Z) with M = (I − W)ᵀ(I − W), a graph's
    Laplacian with some negative weights.

    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of mean 0 and unit covariance. If the neighbourhoods are disconnected, this holds for each
        component, up to its place and size.
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of M, on the largest component.
    reconstruction_error_ : float
        The sum above.
    component_labels_ : ndarray of shape (n_samples,)
        The connected component of each point.

    Warns
    -----
    UserWarning
        When neighbourhoods are disconnected: each component is embedded by itself, around the place of its mean.
    ConvergenceWarning
        When eigenvectors have not converged.

    References
    ----------
    Lecture notes, section 1.3. Roweis and Saul (2000), Nonlinear dimensionality reduction by locally linear embedding.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("swiss_roll")
    >>> lle = gc.LocallyLinearEmbedding(n_neighbors=12).fit(X)
    >>> lle.transform(X[:3]).shape
    (3, 2)
    """

    n_components: int = parameter(default=2, kw_only=False)
    n_neighbors: int = parameter(default=12, like="neighbors searched")
    reg: float = parameter(default=1e-3)
    tol: float = parameter(default=1e-10, like="residual")
    n_jobs: int | None = parameter(default=None)

    _remembered = ("_fixed", "_distances", "_used")
    _remedy = "More neighbors may connect them."

    def _fit(self, X: Any) -> None:
        self._distances, self._used = distances_of(X), (self.n_neighbors, self.reg)
        support, _ = self._distances.nearest(at_most_others(self.n_neighbors, X.shape[0]), self.n_jobs)
        laplacian = ReconstructionLaplacian(reconstruction_weights(X, support, self.reg))
        self._keep(laplacian, X, X.dtype)
        self.reconstruction_error_ = laplacian.value(self.embedding_)

    def transform(self, X: Any) -> FloatArray:
        """Place new points at the means of their neighbours, with the weights that reconstruct them.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)

        Returns
        -------
        ndarray of shape (n_new, n_components)
            No row depends on another. Copies of fitted points get their places.
        """
        X = self._checked_new(X)
        n_neighbors, reg = self._used
        support, sq_dist = self._distances.to(X, n_neighbors, self.n_jobs)
        weights = reconstruction_weights(self._distances.X, support, reg, X)
        inside, _ = self._own_part(weights)
        mass = np.asarray(inside.sum(axis=1))
        distances = sq_dist.reshape(X.shape[0], -1)
        nearest = support.indices.reshape(distances.shape)[np.arange(len(distances)), distances.argmin(axis=1)]
        # Weights may cancel within a component, and copies have a place.
        alone = (np.abs(mass) < 0.5) | (distances.min(axis=1) == 0)
        Z = np.asarray(inside @ self.embedding_.astype(np.float64)) / np.where(alone, 1.0, mass)[:, None]
        Z[alone] = self.embedding_[nearest[alone]]
        return Z.astype(X.dtype, copy=False)

    def _recall(self, remembered: dict[str, Any]) -> None:
        # Older files lack the parameters in use.
        super()._recall({"used": (self.n_neighbors, self.reg), **remembered})
