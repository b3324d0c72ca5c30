"""Regressors that learn a map from its points, to place new ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._support.validation import seeded_clone, warn
from graphcouple.graphs import FloatArray

# Layer sizes of the network of Sun, Han and Fan (2022), as shares of the number of features. With layers of a few
# units most networks die; with 12, in ten runs each, they explain .97 of the maps of iris, wine and a swiss roll.
_LAYERS, _LEAST_WIDTH = (2 / 3, 1 / 2, 1 / 3, 1 / 5), 12

# A regressor that explains a smaller share of the variance of the fitted places is reported. So is one that does so
# without the few places that have most of the variance: at most this share of them, with at least that share.
_LEAST_EXPLAINED = 0.5
_FEW_PLACES, _MOST_VARIANCE, _SPECK = 0.1, 0.9, 1e-12


def trained_regressor(wanted: Any, X: Any, places: FloatArray, seed: int) -> Any:
    """Return a regressor from points to their places: the paper's network on standardised values, or a clone.

    A regressor that predicts a single number is trained for each coordinate.
    """
    if isinstance(wanted, str) and wanted != "mlp":
        raise ValueError(f"transform_method must be 'law', 'mlp' or a regressor, got {wanted!r}.")
    trained = _network(X, seed) if isinstance(wanted, str) else _copy_of(wanted, np.random.RandomState(seed))
    trained.fit(X, places)
    share, of = _explained(places, trained.predict(X).reshape(places.shape))
    if share < _LEAST_EXPLAINED:
        warn(
            f"transform_method={wanted!r} explains only {max(share, 0.0):.2f} of the variance of {of}, so new points "
            "are placed badly. Use transform_method='law' where the method has a law, remove rows far from all others, "
            "or pass another regressor."
        )
    return trained


def _explained(places: FloatArray, fitted: FloatArray) -> tuple[float, str]:
    """Return the share of the variance of the places that is explained, or of all but a few far ones, and of which."""
    from sklearn.metrics import r2_score

    def share(rows: Any) -> float:
        return float(r2_score(places[rows], fitted[rows], multioutput="variance_weighted"))

    whole = share(slice(None))
    sq_dist = np.square(places - np.median(places, axis=0)).sum(axis=1)
    near = np.argsort(sq_dist)[: len(places) - int(_FEW_PLACES * len(places))]
    # Places that are one but for rounding have no variance to explain.
    of_near = np.square(places[near] - places[near].mean(axis=0)).sum() / (sq_dist.sum() or 1.0)
    if _SPECK < of_near < 1.0 - _MOST_VARIANCE and (rest := share(near)) < whole:
        return rest, "the fitted places that are not far away"
    return whole, "the fitted places"


def _copy_of(wanted: Any, rng: np.random.RandomState) -> Any:
    from sklearn.base import is_classifier
    from sklearn.multioutput import MultiOutputRegressor
    from sklearn.utils import get_tags

    if not hasattr(wanted, "__sklearn_tags__"):
        return seeded_clone(wanted, rng)
    if is_classifier(wanted):
        raise TypeError(f"transform_method={wanted!r} predicts classes; pass a regressor.")
    copy = seeded_clone(wanted, rng)
    return copy if get_tags(wanted).target_tags.multi_output else MultiOutputRegressor(copy)


def _network(X: Any, seed: int) -> Any:
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    sizes = tuple(max(_LEAST_WIDTH, int(share * X.shape[1])) for share in _LAYERS)
    network = MLPRegressor(hidden_layer_sizes=sizes, max_iter=1000, random_state=seed)
    # Sparse points stay sparse if their means are not subtracted.
    scaled = make_pipeline(StandardScaler(with_mean=not sp.issparse(X)), network)
    return TransformedTargetRegressor(scaled, transformer=StandardScaler())
