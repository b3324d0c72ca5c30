"""Maps that are functions of the points: Z = f(X), linear in features of X.

With centred features φ of the rows, Z = φ V θ. The columns of φV are orthogonal, so that no direction is stiffer than
another only because features are correlated. Descent moves θ, along the gradient (φV)ᵀ ∂H/∂Z.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from graphcouple._support.validation import fit_of, warn
from graphcouple.couplings.base import Objective
from graphcouple.couplings.kinds import Through
from graphcouple.graphs import FloatArray
from graphcouple.neighbors.projection import product_of_rows

# Features that vary less, relative to their size or to the widest, are rounding errors; so are directions, in squares.
_NO_SPREAD = 1e-12

# Dense features of more entries would take over 4 GB.
_MOST_ENTRIES = 2**29


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """A fitted function of points, f(x) = (φ(x) − mean) · weights.

    Parameters
    ----------
    features : transformer or None
        φ, fitted; None for the columns of the points themselves.
    mean : ndarray of shape (n_features,)
    weights : ndarray of shape (n_features, n_components)

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import FeatureMap
    >>> FeatureMap(None, mean=np.array([1.0, 2.0]), weights=np.array([[1.0], [10.0]]))(np.array([[2.0, 2.0]])).tolist()
    [[1.0]]
    """

    features: Any
    mean: FloatArray
    weights: FloatArray

    def __call__(self, X: Any) -> FloatArray:
        """Return the places of points, of shape (n, n_components)."""
        return product_of_rows(features_of(X, self.features), self.weights) - self.mean @ self.weights


@dataclass(frozen=True, eq=False)
class FeatureBasis:
    """Orthogonal features of the fitted points: `values` = (φ(X) − mean) · `directions`, each with mean square 1.

    Parameters
    ----------
    features : transformer or None
    mean : ndarray of shape (n_features,)
    directions : ndarray of shape (n_features, rank)
    values : ndarray of shape (n_points, rank)

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import FeatureBasis
    >>> basis = FeatureBasis.of(np.random.default_rng(0).normal(size=(50, 3)))
    >>> bool(np.allclose(basis.values.T @ basis.values / 50, np.eye(3)))
    True
    """

    features: Any
    mean: FloatArray
    directions: FloatArray
    values: FloatArray

    @classmethod
    def of(cls, X: Any, features: Any = None) -> FeatureBasis:
        """Return the basis of the features of points X, of shape (n_points, n_columns), by a clone of `features`.

        Raises `ValueError` if no feature varies, one is not finite, or dense features would not fit in memory. Warns if
        there are too many features to constrain the map.
        """
        fitted = None if features is None else fit_of(f"features={features!r}", clone(features).fit, X)
        phi = features_of(X, fitted)
        n, mean = len(phi), phi.mean(axis=0)
        spread = phi.std(axis=0)
        # A column may vary less than others because of its unit, or because it is rounding error.
        varies = spread > _NO_SPREAD * np.maximum(np.abs(phi).max(axis=0), spread.max())
        if not varies.any():
            raise ValueError("the features of all rows are equal, so no map is a function of them; choose others.")
        per_spread = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
        scaled = (phi - mean) * per_spread
        squares, vectors = np.linalg.eigh(scaled.T @ scaled / n)
        varying = squares > _NO_SPREAD * squares[-1]
        if varying.sum() >= n - 1:
            warn(f"{varying.sum()} independent features of {n} points do not constrain the map; use fewer.")
        directions = per_spread[:, None] * vectors[:, varying] / np.sqrt(squares[varying])
        return cls(fitted, mean, directions, (phi - mean) @ directions)

    def coefficients(self, Z: FloatArray) -> FloatArray:
        """Return θ of the map nearest to an embedding."""
        return self.values.T @ np.asarray(Z, dtype=np.float64) / len(Z)

    def function(self, theta: FloatArray) -> FeatureMap:
        """Return f for coefficients θ."""
        return FeatureMap(self.features, self.mean, self.directions @ theta)


def features_of(X: Any, features: Any) -> FloatArray:
    """Return the features of points as a dense array in double precision."""
    values = X if features is None else features.transform(X)
    if issparse(values):
        if values.shape[0] * values.shape[1] > _MOST_ENTRIES:
            raise ValueError(f"features of shape {values.shape} are too many to be dense; reduce them by TruncatedSVD.")
        values = values.toarray()
    phi = np.asarray(values, dtype=np.float64)
    if phi.ndim != 2 or len(phi) != X.shape[0]:
        raise ValueError(f"features={features!r} must have shape ({X.shape[0]}, n_features), got {phi.shape}.")
    finite = np.isfinite(phi).all(axis=1)
    if not finite.all():
        raise ValueError(
            f"features={features!r} hold NaN or infinity in row {int(np.argmin(finite))} (counted from 0); choose "
            "features that are finite for every row, or leave that row out."
        )
    return phi


class OfFeatures(Through):
    """An objective as a function of θ, for the embedding Z = values · θ; coefficients have no edges.

    Parameters
    ----------
    objective : Objective
    values : ndarray of shape (n_points, rank)

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import AnchorEnergy, OfFeatures
    >>> anchors = AnchorEnergy(3, np.array([0, 1, 2]), np.array([[0.0], [2.0], [4.0]]))
    >>> OfFeatures(anchors, np.array([[0.0], [1.0], [2.0]])).value(np.array([[2.0]]))
    0.0
    """

    def __init__(self, objective: Objective, values: FloatArray) -> None:
        self.objective, self.values, self.n_points = objective, values, values.shape[1]

    def _inner(self, Z: FloatArray) -> FloatArray:
        return self.values @ Z

    def _pulled(self, gradient: FloatArray, Z: FloatArray) -> FloatArray:
        return self.values.T @ gradient
