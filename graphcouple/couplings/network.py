"""Maps that are networks of the points: multi-layer perceptrons, and their gradients.

With layers a_0 = x, a_l = h(a_{l−1} W_l + b_l) and z = a_L without h, the gradient of a loss H(Z) in the parameters is
found backwards, ∂H/∂W_l = a_{l−1}ᵀ δ_l, with δ_L = ∂H/∂Z and δ_{l−1} = (δ_l W_lᵀ) h'(a_{l−1}).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from graphcouple._numba.threads import one_blas_thread
from graphcouple.couplings.anchors import AnchorEnergy
from graphcouple.couplings.base import Objective
from graphcouple.couplings.kinds import Through
from graphcouple.couplings.parametric import features_of
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.neighbors.projection import row_by_row

# h, and h' as a function of h.
_ACTIVATIONS: dict[str, tuple[Callable[[FloatArray], Any], Callable[[FloatArray], Any]]] = {
    "identity": (lambda a: a, np.ones_like),
    "logistic": (expit, lambda h: h * (1.0 - h)),
    "relu": (lambda a: np.maximum(a, 0.0), lambda h: h > 0.0),
    "tanh": (np.tanh, lambda h: 1.0 - h * h),
}

# Rows whose layers are in memory at once: a layer of 100 units takes 52 MB in double precision.
_ROWS = 2**16

# Rows of the regression that starts the weights: the descent that follows sees all rows, so more would only cost time.
_REGRESSED = 10_000


@dataclass(frozen=True, eq=False)
class Network:
    """A multi-layer perceptron of points.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
    scale : float
        Points are centred by `mean` and divided by `scale` first.
    weights : tuple of ndarrays
        W_l of each layer, of shape (units before, units).
    biases : tuple of ndarrays
    activation : {"identity", "logistic", "relu", "tanh"}
        h, of all layers but the last.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import Network
    >>> weights, biases = (np.ones((1, 1)), np.full((1, 1), 2.0)), (np.zeros(1), np.ones(1))
    >>> Network(np.zeros(1), 1.0, weights, biases, "relu")(np.array([[-3.0], [4.0]])).tolist()
    [[1.0], [9.0]]
    """

    mean: FloatArray
    scale: float
    weights: tuple[FloatArray, ...]
    biases: tuple[FloatArray, ...]
    activation: str

    features: ClassVar[None] = None

    @classmethod
    def like(cls, wanted: Any, X: Any, Z: FloatArray, seed: int) -> Network:
        """Return a network that maps points X, of shape (n, n_features), to places about as in Z, by regression.

        `wanted`, an `MLPRegressor`, has the layers, the activation and the regression's options; "network" has two
        layers of 100 units with tanh. Another regressor, or another loss than the square, raises `ValueError`.
        """
        from sklearn.base import clone
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        default = MLPRegressor(hidden_layer_sizes=(100, 100), activation="tanh", solver="lbfgs")
        regressor = default if isinstance(wanted, str) else clone(wanted)
        if not isinstance(regressor, MLPRegressor) or getattr(regressor, "loss", "squared_error") != "squared_error":
            raise ValueError(f"features={wanted!r} must be a transformer, or an MLPRegressor of loss='squared_error'.")
        if regressor.random_state is None:
            regressor.set_params(random_state=seed)
        points = features_of(X, None)
        mean, middle = points.mean(axis=0), Z.mean(axis=0)
        scale = float((points - mean).std()) or 1.0
        rows = np.random.default_rng(seed).permutation(len(points))[:_REGRESSED]
        # Places keep their size: with unit variance, the weights ended at a higher loss, after twice the iterations.
        targets = (Z - middle)[rows]
        with warnings.catch_warnings(), one_blas_thread():
            # Descent goes on where regression ends.
            warnings.filterwarnings("ignore", category=ConvergenceWarning)
            regressor.fit((points[rows] - mean) / scale, targets if targets.shape[1] > 1 else targets.ravel())
        *biases, last = regressor.intercepts_
        return cls(mean, scale, tuple(regressor.coefs_), (*biases, last + middle), regressor.activation)

    def __call__(self, X: Any) -> FloatArray:
        """Return the places of points, of shape (n, n_components)."""
        points = self.standardized(X)
        with one_blas_thread():
            return row_by_row(self.places, points, np.empty((len(points), self.biases[-1].size)))

    def standardized(self, X: Any) -> FloatArray:
        """Return centred and scaled points."""
        return (features_of(X, None) - self.mean) / self.scale

    @property
    def parameters(self) -> FloatArray:
        """All weights and biases in one column, layer by layer."""
        parts = [part.ravel() for layer in zip(self.weights, self.biases, strict=True) for part in layer]
        return np.concatenate(parts)[:, None]

    @property
    def weight_rows(self) -> IntArray:
        """Which rows of `parameters` are weights, not biases."""
        layers = zip(self.weights, self.biases, strict=True)
        return np.flatnonzero(np.concatenate([np.repeat([True, False], [W.size, b.size]) for W, b in layers]))

    def with_parameters(self, theta: FloatArray) -> Network:
        """Return the network with other weights and biases."""
        weights, biases, at = [], [], 0
        for W, b in zip(self.weights, self.biases, strict=True):
            weights.append(theta[at : at + W.size].reshape(W.shape))
            biases.append(theta[at + W.size : at + W.size + b.size, 0])
            at += W.size + b.size
        return replace(self, weights=tuple(weights), biases=tuple(biases))

    def _layers(self, points: FloatArray) -> list[FloatArray]:
        """Return the standardised points, each hidden layer and the places."""
        layers, last = [points], len(self.weights) - 1
        for k, (W, b) in enumerate(zip(self.weights, self.biases, strict=True)):
            value = layers[-1] @ W + b
            layers.append(value if k == last else _ACTIVATIONS[self.activation][0](value))
        return layers

    def places(self, points: FloatArray) -> FloatArray:
        """Return the places of standardised points."""
        return np.concatenate([layers[-1] for layers in self._in_blocks(points)])

    def _in_blocks(self, points: FloatArray) -> Iterator[list[FloatArray]]:
        for a in range(0, len(points), _ROWS):
            yield self._layers(points[a : a + _ROWS])

    def forward(self, points: FloatArray) -> tuple[FloatArray, Iterable[list[FloatArray]]]:
        """Return the places of standardised points, and their layers for `pulled`, computed again if they are many."""
        if len(points) > _ROWS:
            return self.places(points), self._in_blocks(points)
        layers = self._layers(points)
        return layers[-1], [layers]

    def pulled(
        self, blocks: Iterable[list[FloatArray]], gradient: FloatArray, to_points: bool = False
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return the gradient in `parameters` of a loss with this gradient in places, for the layers from `forward`.

        With `to_points`, the second array is the gradient in the standardised points; otherwise it is None.
        """
        total, in_points, first = np.zeros_like(self.parameters), [], 0
        for layers in blocks:
            at, delta = len(total), gradient[first : first + len(layers[0])]
            first += len(layers[0])
            for k in range(len(self.weights) - 1, -1, -1):
                W, before = self.weights[k], layers[k]
                at -= W.size + W.shape[1]
                total[at : at + W.size, 0] += (before.T @ delta).ravel()
                total[at + W.size : at + W.size + W.shape[1], 0] += delta.sum(axis=0)
                if k:
                    delta = (delta @ W.T) * _ACTIVATIONS[self.activation][1](before)
            if to_points:
                in_points.append(delta @ self.weights[0].T)
        return total, np.concatenate(in_points) if to_points else None


class OfNetwork(Through):
    """An objective as a function of a network's parameters, for the embedding Z = f(X); parameters have no edges.

    Parameters
    ----------
    objective : Objective
    network : Network
    points : ndarray of shape (n_points, n_features)
        Standardised.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import AnchorEnergy, Network, OfNetwork
    >>> line = Network(np.zeros(1), 1.0, (np.ones((1, 1)),), (np.zeros(1),), "tanh")
    >>> anchors = AnchorEnergy(2, np.array([0, 1]), np.array([[1.0], [3.0]]))
    >>> OfNetwork(anchors, line, np.array([[0.0], [1.0]])).value(np.array([[2.0], [1.0]]))
    0.0
    """

    def __init__(self, objective: Objective, network: Network, points: FloatArray) -> None:
        self.objective, self.network, self.points = objective, network, points
        self.n_points = len(network.parameters)

    def _inner(self, Z: FloatArray) -> FloatArray:
        return self.network.with_parameters(Z).places(self.points)

    def _pulled(self, gradient: FloatArray, Z: FloatArray) -> FloatArray:
        network = self.network.with_parameters(Z)
        return network.pulled(network.forward(self.points)[1], gradient.astype(np.float64, copy=False))[0]

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        network = self.network.with_parameters(Z)
        places, layers = network.forward(self.points)
        value, gradient = self.objective.value_and_grad(places)
        return value, network.pulled(layers, gradient.astype(np.float64, copy=False))[0]


class CodingError(Objective):
    """‖X − g(f(X))‖² + β ‖f(X)‖² of standardised points, as a function of the parameters of f and then of g.

    Parameters
    ----------
    points : ndarray of shape (n_points, n_features)
        Standardised.
    encoder, decoder : Network
        f and g.
    beta : float, default=0.0

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import CodingError, Network
    >>> half = Network(np.zeros(1), 1.0, (np.full((1, 1), 0.5),), (np.zeros(1),), "tanh")
    >>> error = CodingError(np.array([[1.0], [2.0]]), half, half, beta=1.0)
    >>> error.value(np.concatenate([half.parameters, half.parameters]))  # (1 + 4) (0.75² + 0.5²)
    4.0625
    """

    lower_bound = 0.0

    def __init__(self, points: FloatArray, encoder: Network, decoder: Network, beta: float = 0.0) -> None:
        self.points, self.encoder, self.decoder, self.beta = points, encoder, decoder, beta
        self._n_first = len(encoder.parameters)
        self.n_points = self._n_first + len(decoder.parameters)

    def networks(self, theta: FloatArray) -> tuple[Network, Network]:
        """Return f and g with these parameters."""
        first, last = theta[: self._n_first], theta[self._n_first :]
        return self.encoder.with_parameters(first), self.decoder.with_parameters(last)

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return the error at the parameters `Z`, of shape (n_parameters, 1), and its gradient."""
        encoder, decoder = self.networks(Z)
        codes, first = encoder.forward(self.points)
        decoded, last = decoder.forward(codes)
        error = decoded - self.points
        in_decoder, in_codes = decoder.pulled(last, 2.0 * error, to_points=True)
        assert in_codes is not None
        in_encoder, _ = encoder.pulled(first, in_codes + 2.0 * self.beta * codes)
        value = float(np.square(error).sum() + self.beta * np.square(codes).sum())
        return value, np.concatenate([in_encoder, in_decoder])


def weight_decay(*networks: Network) -> Objective:
    """Return ‖W‖², summed over all weights of networks whose parameters follow each other.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import Network, weight_decay
    >>> line = Network(np.zeros(1), 1.0, (np.full((1, 1), 3.0),), (np.ones(1),), "tanh")
    >>> weight_decay(line).value(line.parameters)
    9.0
    """
    sizes = np.cumsum([0, *(len(network.parameters) for network in networks)])
    rows = np.concatenate([at + network.weight_rows for at, network in zip(sizes, networks, strict=False)])
    return AnchorEnergy(int(sizes[-1]), rows, np.zeros((rows.size, 1)))
