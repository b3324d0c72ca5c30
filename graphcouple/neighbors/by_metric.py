"""Distances by metrics other than the Euclidean."""

from __future__ import annotations

from functools import cache, cached_property, partial
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._support.validation import warn
from graphcouple.graphs import FloatArray, IntArray, Support, off_diagonal
from graphcouple.neighbors.distances import Distances, Euclidean, Searched, in_chunks, regular_support
from graphcouple.neighbors.neighbor_graph import NeighborGraph, suits
from graphcouple.neighbors.points import DENSE_ENTRIES, check_scale, largest_of_rows, unit_rows, with_short_indices
from graphcouple.neighbors.precomputed import SquareDistances, StoredDistances, is_precomputed

# Metrics for which scikit-learn takes sparse points, and metrics of truth values.
_OF_SPARSE = ("cityblock", "cosine", "euclidean", "l1", "l2", "manhattan")
_WITHOUT_PARAMETERS = ("cosine", "euclidean", "l2", "manhattan")
_OF_TRUTH = ("dice", "jaccard", "rogerstanimoto", "russellrao", "sokalmichener", "sokalsneath", "yule")

# Names and parameters of the Euclidean distance.
_EUCLIDEAN: tuple[Any, ...] = (("euclidean", {}), ("l2", {}), ("minkowski", {}), ("minkowski", {"p": 2}))

# n² p above which PyNNDescent searches neighbours, which takes about 20 s to compile.
_EXACT_WORK = 1e11

# Distances that differ by less than this share of the largest count as equal.
_ROUNDING = 1e-5

# The inverse of correlations with a larger condition number has fewer than four digits.
_MOST_CONDITION = 1e12

# The symmetry of a user's metric is checked on this many rows.
_ROWS_TRIED = 10

# Squared distances below this share of a row's largest count as 0, because of rounding in single precision.
_SINGLE_COINCIDENT = 1e-12

# No metrics of points, metrics of missing values, and other names for metrics, which only searches accept.
_NOT_OFFERED = {"precomputed", "pyfunc", "nan_euclidean", "infinity", "p", "sokalmichener"}

# Metrics of umap-learn, and the way to them here.
_INSTEAD = {"hellinger": "; take 'euclidean' of the roots of shares, np.sqrt(X / X.sum(axis=1, keepdims=True))"}


@cache
def metric_names() -> list[str]:
    """Return the names of scikit-learn's metrics of points."""
    from sklearn.metrics.pairwise import PAIRWISE_DISTANCE_FUNCTIONS
    from sklearn.neighbors import VALID_METRICS

    neighbor_metrics = {name for names in VALID_METRICS.values() for name in names if isinstance(name, str)}
    return sorted((neighbor_metrics | set(PAIRWISE_DISTANCE_FUNCTIONS)) - _NOT_OFFERED)


class ByMetric(Searched):
    """Distances by any other metric of scikit-learn, or by a function of two rows; `params` are its arguments."""

    _index: NeighborGraph | None = None

    def __init__(self, X: Any, metric: Any, params: dict[str, Any] | None = None) -> None:
        super().__init__(X)
        if callable(metric) and sp.issparse(X):
            raise TypeError("a metric of your own gets two dense rows, but X is sparse; pass X.toarray().")
        if not callable(metric) and metric not in metric_names():
            raise ValueError(
                f"metric must be a function of two rows, Blocks, or one of {metric_names()}, got {metric!r}"
                f"{_INSTEAD.get(str(metric), '')}."
            )
        if isinstance(metric, str) and metric == "haversine" and X.shape[1] != 2:
            raise ValueError(f"metric='haversine' takes latitude and longitude, in radians, but X has shape {X.shape}.")
        if params and isinstance(metric, str) and metric in _WITHOUT_PARAMETERS:
            raise ValueError(f"metric={metric!r} has no parameters, got metric_params={params!r}.")
        if callable(metric) and X.shape[0] > 1:
            _check_own(metric, X[:_ROWS_TRIED], params or {})
        self.metric, self.params = metric, _complete(X, metric, params or {}) or None
        if params and isinstance(metric, str):
            self._try_parameters(X[:2])
        of_units = metric == "cosine" or (metric == "correlation" and not sp.issparse(X))
        self._by_direction = not params and (of_units or metric == "sqeuclidean")
        if self._by_direction and of_units and (zero := largest_of_rows(self._centred(X)) == 0).any():
            kind = "zero" if metric == "cosine" else "constant"
            warn(
                f"rows of X that are {kind} throughout: {zero.sum()}, the first of them row {zero.argmax()}. "
                f"metric={metric!r} does not define which rows are near them. Drop them, or choose another metric."
            )
        self.approximate = self._by_direction or suits(X, metric, self.params)
        if not self._by_direction:
            self.exact_work = _EXACT_WORK

    def _try_parameters(self, few: Any) -> None:
        from sklearn.metrics import pairwise_distances

        try:
            pairwise_distances(self._as_searched(few), metric=self.metric, **(self.params or {}))
        except TypeError:
            raise ValueError(
                f"metric_params={self.params!r} do not fit metric={self.metric!r}; see scipy.spatial.distance."
            ) from None

    def _points(self) -> Any:
        return self._as_searched(self.X)

    def _as_searched(self, X: Any) -> Any:
        remedy = "search='approximate'" if self.approximate else "metric='precomputed' distances"
        return as_compared(X, self.metric, f"use n_neighbors and {remedy}")

    def all_pairs(self) -> tuple[Support, FloatArray]:
        from sklearn.metrics import pairwise_distances

        if self._by_direction:
            # Rows without a direction are at distance 1 from others, and at 0 from each other.
            return self._of_directions(*self._directions.all_pairs())
        dist = pairwise_distances(self._points(), metric=self.metric, **(self.params or {}))
        return Support.all_pairs(self.n_points), np.square(off_diagonal(self._check_distances(dist)), dtype=np.float64)

    def _check_distances(self, distances: FloatArray) -> FloatArray:
        """Return the distances; raise if one is NaN, or if one of a callable metric is negative or infinite."""
        if callable(self.metric) and not (valid := (distances >= 0) & (distances < np.inf)).all():
            _check_value(self.metric, float(distances[~valid][0]))
        check_scale(distances, f"the matrix of {self.metric!r} distances")
        is_nan = np.isnan(distances)
        if is_nan.any():
            row = int(np.argmax(is_nan.any(axis=tuple(range(1, distances.ndim)))))
            raise ValueError(
                f"metric={self.metric!r} gives no distance, but NaN, to row {row}: rows of zeros or without variance "
                "have none. Drop such rows, or choose another metric."
            )
        return distances

    def _search(self, X: Any, X_new: Any, k: int, n_jobs: int | None) -> tuple[IntArray, FloatArray]:
        indices, dist = super()._search(X, X_new, k, n_jobs)
        return indices, self._check_distances(dist)

    def _unit_rows(self, X: Any) -> Any:
        return X if self.metric == "sqeuclidean" else unit_rows(self._centred(X))

    def _centred(self, X: Any) -> Any:
        """Return the rows, minus their means for correlations: zeros where only rounding is left."""
        if self.metric != "correlation":
            return X
        X = X.toarray() if sp.issparse(X) else X
        centred = X - X.mean(axis=1, keepdims=True)
        rounding = 8.0 * np.finfo(X.dtype).eps * largest_of_rows(X)
        centred[largest_of_rows(centred) <= rounding] = 0.0
        return centred

    @cached_property
    def _directions(self) -> Euclidean:
        """The rows as they are for "sqeuclidean", else at length 1, where ‖u − v‖² is twice the metric's distance."""
        return Euclidean(self._unit_rows(self.X))

    def _of_directions(self, support: Support, sq_dist: FloatArray) -> tuple[Support, FloatArray]:
        """Return pairs with the metric's squared distances, which are exactly 0 if directions differ by rounding."""
        if self.metric == "sqeuclidean":
            return support, np.square(self._check_distances(sq_dist))
        sq_dist[sq_dist <= (8.0 * np.finfo(self._directions.X.dtype).eps) ** 2] = 0.0
        return support, np.square(0.5 * sq_dist)

    @property
    def order(self) -> IntArray | None:
        return self._directions.order if self._by_direction else None

    def _graph(self, k: int) -> NeighborGraph:
        """Return PyNNDescent's index, and keep it for new points."""
        if self._index is None or self._index.n_neighbors != k:
            self._index = NeighborGraph(self.X, self.metric, self.params, k)
        return self._index

    def nearest(self, n_neighbors: int, n_jobs: int | None = None, search: str = "auto") -> tuple[Support, FloatArray]:
        if not self._by_direction:
            return super().nearest(n_neighbors, n_jobs, search)
        # Products of blocks of rows, as scikit-learn computes cosines, round differently on several threads.
        way = "approximate" if self._is_approximate(search) else "exact"
        return self._of_directions(*self._directions.nearest(self._check_count(n_neighbors), n_jobs, way))

    def _approximate_nearest(self, k: int, n_jobs: int | None) -> tuple[Support, FloatArray]:
        return self._completed(*self._graph(k).of_each_other(), self.X, n_jobs, others_only=True)

    def _to_nearest(self, X_new: Any, k: int, n_jobs: int | None, search: str) -> tuple[Support, FloatArray]:
        approximate = self._is_approximate(search) and k < self.n_points
        if self._by_direction:
            units, way = self._unit_rows(X_new.astype(self.X.dtype)), "approximate" if approximate else "exact"
            return self._of_directions(*self._directions.to(units, k, n_jobs, way))
        if approximate:
            return self._completed(*self._graph(k).of_new(X_new), X_new, n_jobs)
        return super()._to_nearest(self._as_searched(X_new), k, n_jobs, search)

    def _completed(
        self, indices: IntArray, dist: FloatArray, X_new: Any, n_jobs: int | None, others_only: bool = False
    ) -> tuple[Support, FloatArray]:
        """Return neighbours ordered by index, after an exact search for rows with too few."""
        k = indices.shape[1]
        for row in np.flatnonzero((indices < 0).any(axis=1)):
            query = self._as_searched(X_new[row : row + 1])
            nearest, exact = self._search(self._points(), query, k + others_only, n_jobs)
            first = np.argsort(np.where(nearest[0] == row, np.inf, exact[0]) if others_only else exact[0])[:k]
            indices[row], dist[row] = nearest[0][first], exact[0][first]
        order = np.argsort(indices, axis=1)
        indices, dist = np.take_along_axis(indices, order, axis=1), np.take_along_axis(dist, order, axis=1)
        # In single precision, distances of points that coincide are not exactly 0.
        sq_dist = np.square(dist)
        sq_dist[sq_dist <= _SINGLE_COINCIDENT * sq_dist.max(axis=1, keepdims=True)] = 0.0
        return regular_support(indices), sq_dist.ravel()

    def _pair_metric(self) -> Any:
        """Return the metric's name if `paired_distances` accepts it without arguments, else a function of two rows."""
        from scipy.spatial import distance
        from sklearn.metrics.pairwise import PAIRED_DISTANCES

        params = self.params or {}
        if not params and not callable(self.metric) and self.metric in PAIRED_DISTANCES:
            return self.metric
        function = self.metric if callable(self.metric) else getattr(distance, self.metric, None)
        if function is None:
            raise ValueError(f"scipy.spatial.distance has no {self.metric!r}.")
        return partial(function, **params)

    def of_edges(self, support: Support, n_jobs: int | None = None) -> FloatArray:
        if self._by_direction:
            return self._of_directions(support, self._directions.of_edges(support, n_jobs))[1]
        from sklearn.metrics.pairwise import paired_distances

        def sq_dist_of_pairs(left: Any, right: Any) -> FloatArray:
            if sp.issparse(left):
                left, right = left.toarray(), right.toarray()
            if self.metric in _OF_TRUTH:
                left, right = left.astype(bool), right.astype(bool)
            return np.square(paired_distances(left, right, metric=self._pair_metric()), dtype=np.float64)

        try:
            return in_chunks(self.X, self.X, support, sq_dist_of_pairs)
        except ValueError as error:
            raise ValueError(
                f"metric={self.metric!r} is not available for single pairs, such as edges of an edge prior or random "
                "pairs; pass metric='precomputed' distances."
            ) from error


def as_compared(X: Any, metric: Any, remedy: str = "pass metric='precomputed' distances") -> Any:
    """Return points in the form that scikit-learn takes for a metric: dense, or truth values."""
    if sp.issparse(X) and metric not in _OF_SPARSE:
        if X.shape[0] * X.shape[1] > DENSE_ENTRIES:
            raise ValueError(
                f"metric={metric!r} compares all pairs only of dense points, and X is sparse and too large to be made "
                f"dense; {remedy}."
            )
        X = X.toarray()
    X = with_short_indices(X) if sp.issparse(X) else X
    return X.astype(bool) if metric in _OF_TRUTH else X


def _check_own(metric: Any, rows: Any, params: dict[str, Any]) -> None:
    """Raise unless the user's metric gives symmetric distances for a few rows, and 0 from a row to itself."""
    name, largest = getattr(metric, "__name__", repr(metric)), 0.0
    for one, other in pairwise(rows):
        there, back = metric(one, other, **params), metric(other, one, **params)
        for value in (there, back):
            _check_value(metric, value)
        if abs(there - back) > _ROUNDING * max(there, back):
            raise ValueError(
                f"metric={name} must be symmetric, but is {there:.6g} from one row to another and {back:.6g} back; "
                "take the mean of both directions."
            )
        largest = max(largest, there) if (one != other).any() else largest
    own = max(metric(row, row, **params) for row in rows)
    if own > _ROUNDING * largest > 0:
        raise ValueError(
            f"metric={name} must be 0 from a row to itself, but is {own:.6g}; pass a distance, not a similarity."
        )


def _check_value(metric: Any, value: Any) -> None:
    """Raise unless a value of the user's own metric is a distance."""
    name = getattr(metric, "__name__", repr(metric))
    if isinstance(value, tuple):
        raise ValueError(f"metric={name} returns {len(value)} values; return the distance alone, without a gradient.")
    real = isinstance(value, (Real, np.number)) and not isinstance(value, np.complexfloating)
    if not real or not 0 <= float(value) < np.inf:
        raise ValueError(f"metric={name} must return a finite number of at least 0 for two rows, got {value!r}.")


def _complete(X: Any, metric: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a metric, with the variances or the inverse covariance of all points if it needs them."""
    if metric == "seuclidean" and "V" not in params:
        dense = X.toarray() if sp.issparse(X) else X
        variances = np.var(dense, axis=0, ddof=1, dtype=np.float64)
        # Constant columns, which have no scale, keep theirs; 0 / 0 would be no distance.
        return {**params, "V": np.where(np.ptp(dense, axis=0) == 0, 1.0, variances)}
    if metric == "mahalanobis" and "VI" not in params:
        # Some searches accept only the inverse covariance.
        others = {name: value for name, value in params.items() if name != "V"}
        covariance = params["V"] if "V" in params else np.atleast_2d(np.cov(X.toarray().T if sp.issparse(X) else X.T))
        try:
            return {**others, "VI": _inverse(np.asarray(covariance, dtype=np.float64))}
        except (np.linalg.LinAlgError, ValueError) as error:
            raise ValueError(f"metric_params: V must be an invertible covariance ({error}); or pass VI.") from error
    return params


def _inverse(covariance: FloatArray) -> FloatArray:
    """Return the inverse of a covariance; raise if only rounding makes it invertible."""
    widths = np.sqrt(np.abs(np.diagonal(covariance)))
    if not widths.all() or not np.linalg.cond(covariance / np.outer(widths, widths)) < _MOST_CONDITION:
        raise ValueError("columns depend on each other linearly, or are more than the rows; drop some of them")
    return np.asarray(np.linalg.inv(covariance))


def coordinates_of(X: Any, metric: Any) -> Any:
    """Return points for principal components: the points themselves, or the coordinates of `Blocks`.

    None if there are only distances, or no points.
    """
    if X is None or is_precomputed(metric):
        return None
    return metric.coordinates(X) if hasattr(metric, "coordinates") else X


def symmetric_distances(X: Any) -> FloatArray:
    """Return the means of both directions of distances that `distances_of` accepts: they may differ by rounding."""
    distances_of(X, "precomputed")
    return np.asarray(0.5 * (X + X.T))


def distances_of(X: Any, metric: Any = "euclidean", metric_params: dict[str, Any] | None = None) -> Distances:
    """Return the distances of points by a metric, or precomputed distances.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Points that `as_points` has checked. For ``metric="precomputed"``, distances: a square array, or a sparse matrix
        whose stored entries are the known distances.
    metric : str, callable or Blocks, default="euclidean"
        "precomputed"; any metric of `sklearn.metrics.pairwise_distances`; a function of two rows that returns their
        distance; or `Blocks`.
    metric_params : dict, optional
        Further arguments of the metric, as ``{"p": 3}`` for "minkowski".

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
    if is_precomputed(metric):
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"precomputed distances must be square, got shape {X.shape}.")
        if sp.issparse(X):
            return StoredDistances(X)
        if (X < 0).any():
            raise ValueError("precomputed distances must not be negative; pass distances, not similarities.")
        largest = float(np.abs(X).max(initial=0.0))
        own = float(np.abs(np.diagonal(X)).max(initial=0.0))
        if own > _ROUNDING * largest:
            similar = (np.diagonal(X) >= X.max(axis=1)).all()
            remedy = " X looks like similarities; pass distances, such as 1 - X if the diagonal is 1." * bool(similar)
            raise ValueError(f"precomputed distances of points to themselves, on the diagonal of X, must be 0.{remedy}")
        if not np.allclose(X, X.T, rtol=_ROUNDING, atol=_ROUNDING * largest):
            if not (np.triu(X, 1).any() and np.tril(X, -1).any()):
                raise ValueError(
                    "precomputed distances must be symmetric, and fill only one triangle of X; pass X + X.T."
                )
            raise ValueError("precomputed distances must be symmetric; take (X + X.T) / 2 if they should be.")
        if own > 0:
            # A point that is not nearest to itself would take another's place.
            X = X.copy()
            np.fill_diagonal(X, 0.0)
        return SquareDistances(X)
    plain = all(name == "p" and np.ndim(value) == 0 for name, value in (metric_params or {}).items())
    if isinstance(metric, str) and plain and (metric, metric_params or {}) in _EUCLIDEAN:
        return Euclidean(X)
    if hasattr(metric, "distances"):
        if metric_params:
            raise ValueError("metric_params does not apply to blocks; give it to each Block.")
        return metric.distances(X)
    return ByMetric(X, metric, metric_params)
