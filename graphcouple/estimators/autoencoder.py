"""Autoencoders: linear ones in closed form, and networks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions

from graphcouple._numba.threads import one_blas_thread
from graphcouple._support.validation import check_integer
from graphcouple.couplings.network import CodingError, Network, weight_decay
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import AT_LEAST_0, AT_LEAST_1
from graphcouple.estimators.embedding import EmbeddingEstimator
from graphcouple.estimators.spectral import check_directions, warn_of_missing
from graphcouple.graphs import FloatArray
from graphcouple.neighbors import product_of_rows
from graphcouple.optimize import LBFGS, solve
from graphcouple.spectral import GramMatrix
from graphcouple.spectral.svd import principal_components


@estimator
class LinearAutoencoder(EmbeddingEstimator):
    """Linear encoder E and decoder D with the least ‖X − X E D‖² + α (‖E‖² + ‖D‖²), X centred.

    The minimum is known: with X = U Σ Vᵀ, D = Eᵀ = (I − α Σ⁻²)_+^½ Vᵀ of the leading directions. So the codes X E span
    PCA's subspace, and without a penalty are principal components. Training by gradients would only approach it.

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
        check_directions(self.n_components, X.shape)
        gram = GramMatrix(X)
        placement = gram.placement(self.n_components)
        warn_of_missing(int((placement.onto != 0).any(axis=0).sum()), self.n_components, "the points have")
        squares = placement.eigenvalues
        above = (placement.onto != 0).any(axis=0) & (squares > self.alpha)
        shrink = np.sqrt(np.where(above, 1.0 - self.alpha / np.where(above, squares, 1.0), 0.0))
        self.mean_ = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel().astype(X.dtype)
        directions = gram.directions(placement).T
        self.decoder_ = (shrink[:, None] * directions).astype(X.dtype)
        self.encoder_ = self.decoder_.T.copy()
        self.embedding_ = (placement.Z * shrink).astype(X.dtype)
        kept = float((squares * (1.0 - (1.0 - shrink**2) ** 2)).sum())
        # The difference of equal numbers may round below 0.
        self.reconstruction_error_ = max(gram.trace - kept, 0.0)
        self.loss_ = self.reconstruction_error_ + 2.0 * self.alpha * float(np.square(shrink).sum())

    def transform(self, X: Any) -> FloatArray:
        """Return the codes (X − mean) E of points, of shape (n_new, n_components)."""
        return product_of_rows(self._checked_new(X), self.encoder_, self.mean_)

    def inverse_transform(self, Z: Any) -> FloatArray:
        """Return the points Z D + mean that codes stand for, of shape (n_new, n_features)."""
        return product_of_rows(self._checked_places(Z), self.decoder_) + self.mean_


@estimator
class Autoencoder(EmbeddingEstimator):
    """Networks f and g with the least ‖X − g(f(X))‖² + β ‖f(X)‖² + α (‖W_f‖² + ‖W_g‖²), on standardised points.

    The codes f(X) are the embedding. β is the regularisation by a prior: −log p_Z(f(X)) for a normal law p_Z, up to its
    variance. Weights start from regressions of f to principal components and of g to the points, and all descend
    together, by L-BFGS on all points.

    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        The codes.
    encoder_, decoder_ : Network
        f and g; `encoder_` also centres points and divides them by their standard deviation.
    loss_ : float
        The objective.
    reconstruction_error_ : float
        ‖X − g(f(X))‖², in the units of X.
    n_iter_ : int
    stop_reason_ : str

    Warns
    -----
    ConvergenceWarning
        When the loss still fell at `max_iter`.

    References
    ----------
    Lecture notes, section 3. Ghosh, Sajjadi, Vergari, Black and Schölkopf (2020), From variational to deterministic
    autoencoders, for the penalty of the codes.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> curved, flat = gc.Autoencoder(1, random_state=0).fit(X), gc.LinearAutoencoder(1).fit(X)
    >>> bool(curved.reconstruction_error_ < 0.5 * flat.reconstruction_error_)
    True
    """

    n_components: int = parameter(default=2, kw_only=False)
    hidden_layer_sizes: tuple[int, ...] = parameter(
        default=(100,),
        kind="tuple of int",
        doc="Units of the hidden layers of f; g has them in reverse. Without any, f and g are linear.",
        checks=["array-like"],
    )
    activation: str = parameter(
        default="tanh",
        kind='{"identity", "logistic", "relu", "tanh"}',
        doc="The activation of hidden layers.",
        checks=[StrOptions({"identity", "logistic", "relu", "tanh"})],
    )
    alpha: float = parameter(default=1e-4, doc="α, the penalty of the weights.", checks=[AT_LEAST_0])
    beta: float = parameter(default=0.0, doc="β, the penalty of the codes.", checks=[AT_LEAST_0])
    max_iter: int = parameter(default=500, kind="int", doc="Maximum number of iterations.", checks=[AT_LEAST_1])
    random_state: Any = parameter(default=None, doc="Seed of the weights.")

    def _fit(self, X: Any) -> None:
        from sklearn.neural_network import MLPRegressor

        rng = check_random_state(self.random_state)
        codes = principal_components(X, self.n_components, rng).astype(np.float64)
        codes /= codes.std() or 1.0
        # A rough start suffices: more than 50 iterations of the regressions take longer than they save.
        layers = {"activation": self.activation, "solver": "lbfgs", "alpha": self.alpha, "max_iter": 50}
        sizes = tuple(check_integer("hidden_layer_sizes", size, 1) for size in self.hidden_layer_sizes)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        encoder = Network.like(MLPRegressor(hidden_layer_sizes=sizes, **layers), X, codes, seed)
        points = encoder.standardized(X)
        decoder = Network.like(MLPRegressor(hidden_layer_sizes=sizes[::-1], **layers), codes, points, seed)
        # Principal components were standardised; the codes of f need not be.
        decoder = replace(decoder, mean=np.zeros(self.n_components), scale=1.0)
        error = CodingError(points, encoder, decoder, self.beta)
        loss = error if self.alpha == 0 else error + self.alpha * weight_decay(encoder, decoder)
        start = np.concatenate([encoder.parameters, decoder.parameters])
        with one_blas_thread():
            solution = solve(loss, start, LBFGS(), max_iter=self.max_iter)
            self.encoder_, self.decoder_ = error.networks(solution.Z)
            self.embedding_ = self.encoder_.places(points).astype(X.dtype)
        self.loss_, self.n_iter_, self.stop_reason_ = solution.loss, solution.n_iter, solution.message
        rest = error.value(solution.Z) - self.beta * float(np.square(self.encoder_.places(points)).sum())
        self.reconstruction_error_ = encoder.scale**2 * rest

    def transform(self, X: Any) -> FloatArray:
        """Return the codes f(X) of points, of shape (n_new, n_components)."""
        return self.encoder_(self._checked_new(X)).astype(self.embedding_.dtype)

    def inverse_transform(self, Z: Any) -> FloatArray:
        """Return the points g(Z) that codes stand for, of shape (n_new, n_features)."""
        return self.encoder_.scale * self.decoder_(self._checked_places(Z)) + self.encoder_.mean
