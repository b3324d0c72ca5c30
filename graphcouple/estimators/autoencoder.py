"""The linear autoencoder."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from graphcouple._validation import check_embedding
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import AT_LEAST_0
from graphcouple.estimators.embedding import EmbeddingEstimator
from graphcouple.estimators.spectral import warn_of_missing
from graphcouple.graphs import FloatArray
from graphcouple.neighbors import product_of_rows
from graphcouple.spectral import GramMatrix


@estimator
class LinearAutoencoder(EmbeddingEstimator):
    """Linear encoder E and decoder D with the least ‖X − X E D‖² + α (‖E‖² + ‖D‖²), X centred.

    The minimum is known: with X = U Σ Vᵀ, D = Eᵀ = (I − α Σ⁻²)_+^½ Vᵀ of the leading directions. So the codes X E span
    PCA's subspace, and without a penalty are principal components. Training by gradients would only approach it.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The codes.
    encoder_ : ndarray of shape (n_features, n_components)
    decoder_ : ndarray of shape (n_components, n_features)
    mean_ : ndarray of shape (n_features,)
    loss_ : float
        The objective.
    reconstruction_error_ : float
        ‖X − X E D‖², without the penalty.

    References
    ----------
    Lecture notes, section 3. Baldi and Hornik (1989), Neural networks and principal component analysis. Kunin, Bloom,
    Goeva and Seed (2019), Loss landscapes of regularized linear autoencoders, theorem 2.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> autoencoder = gc.LinearAutoencoder(n_components=2).fit(X)
    >>> again = autoencoder.inverse_transform(autoencoder.transform(X))
    >>> round(float(((X - again) ** 2).sum()), 2), round(autoencoder.reconstruction_error_, 2)
    (15.2, 15.2)
    """

    n_components: int = parameter(default=2, kw_only=False)
    alpha: float = parameter(
        default=0.0,
        doc="α, the penalty; directions with a squared singular value below it are dropped.",
        checks=[AT_LEAST_0],
    )

    def _fit(self, X: Any) -> None:
        if self.n_components > min(X.shape):
            raise ValueError(
                f"n_components={self.n_components} must be at most min(n_samples, n_features)={min(X.shape)}."
            )
        gram = GramMatrix(X)
        placement = gram.placement(self.n_components)
        warn_of_missing(int((placement.onto != 0).any(axis=0).sum()), self.n_components, "the points have")
        squares = placement.eigenvalues
        kept = (placement.onto != 0).any(axis=0) & (squares > self.alpha)
        shrink = np.sqrt(np.where(kept, 1.0 - self.alpha / np.where(kept, squares, 1.0), 0.0))
        self.mean_ = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel().astype(X.dtype)
        directions = gram.directions(placement).T
        self.decoder_ = (shrink[:, None] * directions).astype(X.dtype)
        self.encoder_ = self.decoder_.T.copy()
        self.embedding_ = (placement.Z * shrink).astype(X.dtype)
        self.reconstruction_error_ = gram.trace - float((squares * (1.0 - (1.0 - shrink**2) ** 2)).sum())
        self.loss_ = self.reconstruction_error_ + 2.0 * self.alpha * float(np.square(shrink).sum())

    def transform(self, X: Any) -> FloatArray:
        """Return the codes (X − mean) E of points, of shape (n_new, n_components)."""
        X = self._checked_new(X)
        return np.asarray(product_of_rows(X, self.encoder_) - self.mean_ @ self.encoder_)

    def inverse_transform(self, Z: Any) -> FloatArray:
        """Return the points Z D + mean that codes stand for, of shape (n_new, n_features)."""
        check_is_fitted(self)
        codes = check_embedding(Z)
        if codes.shape[1] != self.decoder_.shape[0]:
            raise ValueError(f"Z must have {self.decoder_.shape[0]} columns, got shape {codes.shape}.")
        return codes @ self.decoder_ + self.mean_
