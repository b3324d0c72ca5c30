"""Landmarks, to which a method is fitted in place of all points, and regressors from points to places."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphcouple.graphs import IntArray

# Layer sizes of the paper's network, as shares of the number of features.
_LAYERS = (2 / 3, 1 / 2, 1 / 3, 1 / 5)


def nearest_to_means(X: Any, n_landmarks: int, rng: np.random.RandomState) -> IntArray:
    """Return the rows nearest to the centres of k-means, ascending; fewer if centres share their nearest point.

    Parameters
    ----------
    X : array or csr matrix of shape (n_samples, n_features)
    n_landmarks : int
    rng : numpy.random.RandomState

    References
    ----------
    Sun, Han and Fan (2022), Laplacian-based cluster-contractive t-SNE, algorithm 2.
    """
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.metrics import pairwise_distances_argmin

    means = MiniBatchKMeans(
        n_landmarks, batch_size=max(1024, 3 * n_landmarks), n_init=1, random_state=rng, init="random"
    )
    centres = means.fit(X).cluster_centers_
    return np.unique(pairwise_distances_argmin(centres, X))


def regressor(wanted: Any, n_features: int, seed: int) -> Any:
    """Return an unfitted regressor: a clone of the one wanted, or the paper's network on standardised values."""
    from sklearn.base import clone

    if not isinstance(wanted, str):
        return clone(wanted)
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    sizes = tuple(max(2, int(share * n_features)) for share in _LAYERS)
    network = MLPRegressor(hidden_layer_sizes=sizes, max_iter=1000, random_state=seed)
    # Sparse points stay sparse if their means are not subtracted.
    scaled = make_pipeline(StandardScaler(with_mean=False), network)
    return TransformedTargetRegressor(scaled, transformer=StandardScaler())
