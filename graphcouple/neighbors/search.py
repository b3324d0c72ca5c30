"""Functions of points and a metric; see `Distances` for the object behind them."""

from __future__ import annotations

from typing import Any

from graphcouple.graphs import FloatArray, Support
from graphcouple.neighbors.by_metric import distances_of
from graphcouple.neighbors.distances import Distances
from graphcouple.neighbors.points import as_points


def all_pairs(X: Any, metric: str = "euclidean") -> tuple[Support, FloatArray]:
    """Return the support of all n(n − 1) ordered pairs and their squared distances; see `nearest_neighbors`.

    The metric is any of `sklearn.metrics.pairwise_distances`.

    Raises
    ------
    ValueError
        When precomputed distances are negative or not square.
    """
    return _distances(X, metric).all_pairs()


def nearest_neighbors(
    X: Any, n_neighbors: int, metric: str = "euclidean", n_jobs: int | None = None, search: str = "auto"
) -> tuple[Support, FloatArray]:
    """Return the graph of each point's nearest other points, with squared distances.

    Few points are searched exactly. For many points and the Euclidean or cosine metric, an inverted file on principal
    components finds about 99 % of the true neighbours (and others nearly as near), with exact distances.
    Points of at most four columns are always searched exactly; other metrics may be searched by PyNNDescent.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Or distances for ``metric="precomputed"``: a square array, or a sparse
        matrix whose stored entries are the known distances.
    n_neighbors : int
        Neighbours of each point, without the point itself.
    metric : str, default="euclidean"
        Any metric of `sklearn.neighbors.NearestNeighbors`.
    n_jobs : int or None, default=None
        Threads; None means every core. The result does not depend on it.
    search : {"auto", "exact", "approximate"}, default="auto"
        "auto" is exact unless n² · n_features exceeds 2e10; 1e11 for other metrics than Euclidean, "sqeuclidean",
        cosine and correlation.

    Returns
    -------
    support : Support
        `n_neighbors` edges per row.
    sq_dist : ndarray of shape (n_samples * n_neighbors,)
        Squared distances, float64; float32 from an approximate search with more than five million edges.

    Raises
    ------
    ValueError
        When `n_neighbors` is not below the number of points, or `search` is "approximate" and the metric has no
        such search.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.neighbors import nearest_neighbors
    >>> support, sq_dist = nearest_neighbors(np.array([[0.0], [1.0], [3.0]]), 1)
    >>> support.indices.tolist(), sq_dist.tolist()
    ([1, 0, 1], [1.0, 1.0, 4.0])
    """
    return _distances(X, metric).nearest(n_neighbors, n_jobs, search)


def neighbors_among(
    X_new: Any, X: Any, n_neighbors: int | None, metric: str = "euclidean", n_jobs: int | None = None
) -> tuple[Support, FloatArray]:
    """Return the points of `X` nearest to each new point, with squared distances.

    Parameters
    ----------
    X_new : array or sparse matrix of shape (n_new, n_features)
        Or their distances to the points of `X`, for ``metric="precomputed"``.
    X : array or sparse matrix of shape (n_samples, n_features)
    n_neighbors : int or None
        None means all of `X`.

    Returns
    -------
    support : Support
        One row for each new point; its columns are points of `X`.
    sq_dist : ndarray of shape (n_edges,)
        Zero where two points coincide; for other metrics than the Euclidean, below 1e-12 of the largest distance, or
        1e-6 if PyNNDescent finds them.
    """
    return _distances(X, metric).to(as_points(X_new, "X_new", at_least=1), n_neighbors, n_jobs)


def _distances(X: Any, metric: str) -> Distances:
    return distances_of(as_points(X, at_least=1), metric)
