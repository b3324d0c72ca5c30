"""A scikit-learn transformer from points to the sparse graph of distances to their neighbours."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from graphcouple.graphs import FloatArray, Support
from graphcouple.neighbors.by_metric import distances_of
from graphcouple.neighbors.distances import Distances
from graphcouple.neighbors.points import as_points


class NeighborsTransformer(TransformerMixin, BaseEstimator):
    """Replace points by their distances to neighbours, like scikit-learn's `KNeighborsTransformer`, but searched here.

    Use it before an estimator with ``metric="precomputed"``, or in scanpy, as
    ``sc.pp.neighbors(adata, transformer=NeighborsTransformer(15))``.

    Parameters
    ----------
    n_neighbors : int, default=15
        Neighbours of each row besides the row itself, which is stored at distance 0. scanpy counts the row too.
    metric : str or callable, default="euclidean"
    metric_params : dict, optional
    search : {"auto", "exact", "approximate"}, default="auto"
        See `nearest_neighbors`.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> graph = gc.neighbors.NeighborsTransformer(5).fit_transform(X)
    >>> graph.shape, graph.nnz
    ((150, 150), 900)
    """

    def __init__(
        self,
        n_neighbors: int = 15,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        search: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        self.n_neighbors, self.metric, self.metric_params = n_neighbors, metric, metric_params
        self.search, self.n_jobs = search, n_jobs

    _distances: Distances

    def fit(self, X: Any, y: Any = None) -> Self:
        """Keep the points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : ignored
        """
        points = as_points(X)
        self._distances = distances_of(points, self.metric, self.metric_params)
        self.n_features_in_ = points.shape[1]
        _check_feature_names(self, X, reset=True)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> sp.csr_matrix:
        """Return the graph of the points: their neighbours' distances, ascending in each row.

        Returns
        -------
        csr matrix of shape (n_samples, n_samples)
        """
        edges = self.fit(X)._distances.nearest(self.n_neighbors, self.n_jobs, self.search)
        return self._graph(*edges, own=np.arange(self._distances.n_points))

    def transform(self, X: Any) -> sp.csr_matrix:
        """Return the distances of new points to their `n_neighbors` + 1 neighbours among the fitted ones.

        Returns
        -------
        csr matrix of shape (n_new, n_samples)
        """
        check_is_fitted(self, "n_features_in_")
        _check_feature_names(self, X, reset=False)
        points = as_points(X, at_least=1)
        return self._graph(*self._distances.to(points, self.n_neighbors + 1, self.n_jobs, self.search))

    def _graph(self, support: Support, sq_dist: FloatArray, own: Any = None) -> sp.csr_matrix:
        shape = (support.n_nodes, -1)
        columns, distances = support.indices.reshape(shape), np.sqrt(sq_dist).reshape(shape)
        order = np.argsort(distances, axis=1, kind="stable")
        columns, distances = np.take_along_axis(columns, order, axis=1), np.take_along_axis(distances, order, axis=1)
        if own is not None:
            columns = np.column_stack([own, columns])
            distances = np.column_stack([np.zeros(len(own), distances.dtype), distances])
        starts = np.arange(len(columns) + 1) * columns.shape[1]
        # Explicit zeros stay: the row itself, and its copies.
        shape = (len(columns), self._distances.n_points)
        return sp.csr_matrix((distances.ravel(), columns.ravel().astype(np.int32), starts), shape=shape)
