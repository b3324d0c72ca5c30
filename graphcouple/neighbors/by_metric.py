"""Distances by metrics other than the Euclidean."""

from __future__ import annotations

import functools
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple.graphs import FloatArray, Support, off_diagonal
from graphcouple.neighbors.distances import Distances, Euclidean, Searched, in_chunks
from graphcouple.neighbors.points import unit_rows
from graphcouple.neighbors.precomputed import SquareDistances, StoredDistances


class ByMetric(Searched):
    """Distances by any other metric of scikit-learn, or by a function of two rows.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    metric : str or callable
    params : dict, optional
        Further arguments of the metric.
    """

    def __init__(self, X: Any, metric: Any, params: dict[str, Any] | None = None) -> None:
        super().__init__(X)
        if callable(metric) and sp.issparse(X):
            raise TypeError("a metric of your own gets two dense rows, but X is sparse; pass X.toarray().")
        self.metric, self.params = metric, params or None
        self.approximate = metric == "cosine" and not params

    def all_pairs(self) -> tuple[Support, FloatArray]:
        """Return all pairs with a known distance; see `Distances`."""
        from sklearn.metrics import pairwise_distances

        found = off_diagonal(pairwise_distances(self.X, metric=self.metric, **(self.params or {})))
        return Support.all_pairs(self.n_points), np.square(found, dtype=np.float64)

    @cached_property
    def _directions(self) -> Euclidean:
        """The rows scaled to length 1: ‖u − v‖² is twice their cosine distance."""
        return Euclidean(unit_rows(self.X))

    def _nearly(self, k: int, n_jobs: int | None) -> tuple[Support, FloatArray]:
        support, sq_dist = self._directions.nearest(k, n_jobs, "approximate")
        return support, np.square(0.5 * sq_dist)

    def _to_nearest(self, X_new: Any, k: int, n_jobs: int | None, search: str) -> tuple[Support, FloatArray]:
        if not self.approximate:
            return super()._to_nearest(X_new, k, n_jobs, search)
        way = "approximate" if self._approximately(search) else "exact"
        support, sq_dist = self._directions.to(unit_rows(X_new), k, n_jobs, way)
        return support, np.square(0.5 * sq_dist)

    def _of_two_rows(self) -> Any:
        """Return the metric with its arguments, as a function of two rows if it has any."""
        if not self.params and not callable(self.metric):
            return self.metric
        from scipy.spatial import distance

        function = self.metric if callable(self.metric) else getattr(distance, self.metric, None)
        if function is None:
            raise ValueError(f"scipy.spatial.distance has no {self.metric!r}, so it takes no metric_params here.")
        return functools.partial(function, **(self.params or {}))

    def along(self, support: Support, n_jobs: int | None = None) -> FloatArray:
        """Return the squared distances of edges; see `Distances`."""
        from sklearn.metrics.pairwise import paired_distances

        def paired(left: Any, right: Any) -> FloatArray:
            if sp.issparse(left):
                left, right = left.toarray(), right.toarray()
            return np.square(paired_distances(left, right, metric=self._of_two_rows()), dtype=np.float64)

        try:
            return in_chunks(self.X, self.X, support, paired)
        except ValueError as error:
            raise ValueError(
                f"metric={self.metric!r} is not available along the edges of an edge prior; "
                "pass metric='precomputed' distances."
            ) from error


def distances_of(X: Any, metric: Any = "euclidean", metric_params: dict[str, Any] | None = None) -> Distances:
    """Return the distances of points by a metric, or precomputed distances.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Already checked by `as_points`. For ``metric="precomputed"``, distances: a square array, or a sparse matrix
        whose stored entries are the known distances.
    metric : str or callable, default="euclidean"
        "precomputed"; any metric of `sklearn.metrics.pairwise_distances`; a function of two rows that returns their
        distance; or `Blocks`.
    metric_params : dict, optional
        Further arguments of the metric, as ``{"p": 3}`` of "minkowski".

    Raises
    ------
    TypeError, ValueError
        When precomputed distances are not square, or the metric cannot be used.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.neighbors import distances_of
    >>> support, sq_dist = distances_of(np.array([[0.0], [1.0], [3.0]])).nearest(1)
    >>> support.indices.tolist(), sq_dist.tolist()
    ([1, 0, 1], [1.0, 1.0, 4.0])
    """
    if isinstance(metric, str) and metric == "precomputed":
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"precomputed distances must be square, got shape {X.shape}.")
        return StoredDistances(X) if sp.issparse(X) else SquareDistances(X)
    if isinstance(metric, str) and metric == "euclidean" and not metric_params:
        return Euclidean(X)
    if hasattr(metric, "distances"):
        if metric_params:
            raise ValueError("metric_params has no use with blocks; give it to each Block.")
        return metric.distances(X)
    return ByMetric(X, metric, metric_params)
