"""Neighbours from the user: arrays, umap-learn's triple, or a sparse graph of distances."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import config_context

from graphcouple._support.validation import check_sparse, check_unmasked, seeded_clone, warn
from graphcouple.graphs import FloatArray, IntArray, Support, as_csr, edges_of, index_dtype
from graphcouple.neighbors.by_metric import distances_of
from graphcouple.neighbors.distances import Distances, Euclidean, nearest_edges, squares_of
from graphcouple.neighbors.points import check_scale
from graphcouple.neighbors.precomputed import ForgottenDistances

# Rows read at once: with 100 neighbours, 7 MB of indices.
_ROWS_AT_ONCE = 2**13


def neighbor_distances(neighbors: Any, n_points: int) -> tuple[Support, FloatArray]:
    """Return the edges of given neighbours, without loops, and their distances.

    Neighbours are ``(indices, distances)``, each of shape (n_points, k), where -1 stands for no neighbour; a third
    entry, as in umap-learn's ``precomputed_knn``, is ignored. Or a sparse matrix of shape (n_points, n_points) that
    stores the distances, such as scanpy's ``obsp["distances"]`` or the result of scikit-learn's
    ``KNeighborsTransformer``.
    """
    if sp.issparse(neighbors):
        graph = as_csr(neighbors, "neighbors", n_points)
        if neighbors.format in ("coo", "csr", "csc") and graph.nnz < neighbors.nnz:
            raise ValueError("neighbors stores the distance of a pair twice; store it once.")
        support, distances = edges_of(graph)
    elif isinstance(neighbors, (tuple, list)) and len(neighbors) in (2, 3):
        support, distances = _from_arrays(neighbors[0], neighbors[1], n_points)
    else:
        raise TypeError(
            "neighbors must be (indices, distances), each of shape (n_samples, k), or a sparse matrix of distances, "
            f"got {type(neighbors).__name__}."
        )
    counts = np.diff(support.indptr)
    if (counts == 0).any():
        raise ValueError(f"neighbors gives row {int(np.argmin(counts))} no neighbor but itself; give it at least one.")
    if not np.isfinite(distances).all():
        raise ValueError("neighbors holds NaN or infinite distances; leave those pairs out.")
    check_scale(distances, "neighbors")
    # In a fuzzy graph every node has an edge of weight 1, and no weight is larger.
    largest = np.maximum.reduceat(distances, support.indptr[:-1])
    if np.allclose(largest, 1.0, rtol=0.0, atol=1e-6) and distances.min() < 1.0:
        warn(
            "neighbors looks like a graph of weights, such as scanpy's connectivities: the largest entry of each row "
            "is 1. It must hold distances, such as obsp['distances']."
        )
    return support, distances


def _from_arrays(indices: Any, distances: Any, n_points: int) -> tuple[Support, FloatArray]:
    """Return the edges and their distances; arrays may be larger than memory, and are read some rows at a time."""
    ends, dist = np.asanyarray(indices), np.asanyarray(distances)
    for array, name in ((ends, "the indices of neighbors"), (dist, "the distances of neighbors")):
        check_unmasked(array, name)
    if ends.dtype.kind not in "iu":
        raise TypeError(f"the indices of neighbors must be integers, got dtype {ends.dtype}.")
    if dist.dtype.kind not in "iufb":
        raise TypeError(f"the distances of neighbors must be numbers, got dtype {dist.dtype}.")
    if ends.ndim != 2 or ends.shape != dist.shape or ends.shape[0] != n_points:
        raise ValueError(f"neighbors must be two arrays of shape ({n_points}, k), got {ends.shape} and {dist.shape}.")
    if ends.size and not (ends.min() >= -1 and ends.max() < n_points):
        worst = int(ends.min() if ends.min() < -1 else ends.max())
        raise ValueError(f"neighbors names row {worst}, but X has {n_points} rows, and -1 stands for no neighbor.")
    columns = np.empty(ends.size, dtype=index_dtype(n_points))
    values = np.empty(ends.size, dtype=dist.dtype if dist.dtype == np.float32 else np.float64)
    starts = np.zeros(n_points + 1, dtype=np.int64)
    for a in range(0, n_points, _ROWS_AT_ONCE):
        of_rows = slice(a, min(a + _ROWS_AT_ONCE, n_points))
        counts = _fill_rows(ends[of_rows], dist[of_rows], a, columns[starts[a] :], values[starts[a] :])
        starts[a + 1 : of_rows.stop + 1] = starts[a] + np.cumsum(counts)
    return Support(starts, columns[: starts[-1]]), values[: starts[-1]]


def _fill_rows(ends: IntArray, dist: FloatArray, first: int, columns: IntArray, values: FloatArray) -> IntArray:
    """Write the edges of some rows, without loops and by ascending ends, and return their numbers."""
    rows = first + np.arange(len(ends))
    is_edge = (ends >= 0) & (ends != rows[:, None])
    order = np.argsort(np.where(is_edge, ends, np.iinfo(ends.dtype).max), axis=1, kind="stable")
    ends, dist, is_edge = (np.take_along_axis(array, order, axis=1) for array in (ends, dist, is_edge))
    repeated = ((ends[:, 1:] == ends[:, :-1]) & is_edge[:, 1:]).any(axis=1)
    if repeated.any():
        raise ValueError(f"neighbors names a neighbor of row {first + int(np.argmax(repeated))} twice.")
    n_edges = int(is_edge.sum())
    columns[:n_edges], values[:n_edges] = ends[is_edge], dist[is_edge]
    return is_edge.sum(axis=1)


def as_distances(graph: Any, n_rows: int, n_points: int) -> sp.csr_array:
    """Return a transformer's distances to the neighbours of new points as a csr matrix with sorted indices."""
    if not sp.issparse(graph) or graph.shape != (n_rows, n_points):
        raise ValueError(
            f"the search must return a sparse matrix of shape ({n_rows}, {n_points}), got {type(graph).__name__} of "
            f"shape {getattr(graph, 'shape', None)}."
        )
    check_sparse(graph, "the result of the search")
    matrix = sp.csr_array(graph)
    matrix.sort_indices()
    return matrix


class ForgottenNeighbors(Distances):
    """Points without their given neighbours, which raise; a new point gets as many as any point had, `most`."""

    searched, neighbors_given = False, True

    def __init__(self, points: Distances, most: int) -> None:
        super().__init__(points.X, points.n_points)
        self._points, self._most = points, most

    def remembered(self) -> dict[str, Any]:
        return {**self._points.remembered(), "most": self._most}

    def all_pairs(self) -> tuple[Support, FloatArray]:
        raise ValueError("a saved model does not keep the neighbors that were given, only what new points need.")

    def nearest(self, n_neighbors: int, n_jobs: int | None = None, search: str = "auto") -> tuple[Support, FloatArray]:
        return self.all_pairs()

    def of_edges(self, support: Support, n_jobs: int | None = None) -> FloatArray:
        return self._points.of_edges(support, n_jobs)

    def to(
        self, X_new: Any, n_neighbors: int | None, n_jobs: int | None = None, search: str = "auto"
    ) -> tuple[Support, FloatArray]:
        k = self._most if n_neighbors is None else min(n_neighbors, self._most)
        return self._points.to(X_new, k, n_jobs, search)


class OwnNeighbors(ForgottenNeighbors):
    """Distances of points whose only edges lead to given neighbours.

    Parameters
    ----------
    X : array or sparse matrix
        The points, with which new points are compared.
    metric : str or callable
    neighbors : tuple of arrays, or sparse matrix
        See `neighbor_distances`.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.neighbors import OwnNeighbors
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> given = np.array([[1], [2], [1]]), np.array([[1.0], [2.0], [2.0]])
    >>> OwnNeighbors(X, "euclidean", given).nearest(1)[1].tolist()
    [1.0, 4.0, 4.0]
    """

    knows_all = False

    _finder: Any = None
    """The transformer that found the neighbours; None if they were given."""

    def __init__(self, X: Any, metric: Any, neighbors: Any, metric_params: dict[str, Any] | None = None) -> None:
        points = distances_of(X, metric, metric_params)
        self._support, distances = neighbor_distances(neighbors, X.shape[0])
        super().__init__(points, int(np.diff(self._support.indptr).max()))
        self._sq_dist = squares_of(distances)

    @classmethod
    def by_transformer(
        cls, X: Any, metric: Any, transformer: Any, n_neighbors: int | None, metric_params: dict[str, Any] | None = None
    ) -> OwnNeighbors:
        """Return points with the neighbours from a clone of a transformer, such as a `KNeighborsTransformer`.

        Its ``fit_transform`` and ``transform`` return sparse matrices of distances, by its own metric; `metric` is for
        edges that it does not find. Without `n_neighbors`, it finds its own number of neighbours.
        """
        # Laws have no generator, so a search without a seed has a fixed one.
        finder = seeded_clone(transformer, np.random.RandomState(0))
        if n_neighbors is not None:
            finder.set_params(n_neighbors=n_neighbors)
        # Scikit-learn refuses to put sparse matrices into frames.
        with config_context(transform_output="default"):
            found = finder.fit_transform(X)
        distances = cls(X, metric, found, metric_params)
        # A transformer can search again.
        distances._finder, distances.neighbors_given = finder, False
        return distances

    def remembered(self) -> dict[str, Any]:
        if self._finder is not None:
            raise TypeError(
                f"search={type(self._finder).__name__} is an object of another library, which cannot be saved; pickle "
                "the estimator, or fit it with search='auto'."
            )
        return super().remembered()

    def all_pairs(self) -> tuple[Support, FloatArray]:
        """Return the given edges."""
        return self._support, self._sq_dist

    def nearest(self, n_neighbors: int, n_jobs: int | None = None, search: str = "auto") -> tuple[Support, FloatArray]:
        """Return the nearest of the given neighbours, or all if a point has fewer."""
        return nearest_edges(self._support, self._sq_dist, n_neighbors)

    def to(
        self, X_new: Any, n_neighbors: int | None, n_jobs: int | None = None, search: str = "auto"
    ) -> tuple[Support, FloatArray]:
        if self._finder is None:
            return super().to(X_new, n_neighbors, n_jobs, search)
        k = self._most if n_neighbors is None else min(n_neighbors, self._most)
        with config_context(transform_output="default"):
            found = self._finder.transform(X_new)
        graph = as_distances(found, X_new.shape[0], self.n_points)
        fewest = int(np.diff(graph.indptr).min())
        if fewest < k:
            raise ValueError(f"the search found {fewest} neighbors of a new point, fewer than {k}.")
        support, dist = nearest_edges(Support(graph.indptr, graph.indices), graph.data, k)
        return support, squares_of(dist)


def remembered_distances(
    remembered: dict[str, Any], metric: Any = "euclidean", metric_params: dict[str, Any] | None = None
) -> Distances:
    """Return the distances that `Distances.remembered` described; a metric is for old files, which have none."""
    if "n_points" in remembered:
        points: Distances = ForgottenDistances(None, remembered["n_points"])
    else:
        X = remembered["X"]
        values = X.data if sp.issparse(X) else X
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            if not np.isfinite(values).all():
                raise ValueError("the file is damaged: its points are not finite. Fit again.")
            check_scale(values, "the file's X")
        points = distances_of(X, remembered.get("metric", metric), remembered.get("params", metric_params))
        if isinstance(points, Euclidean):
            points.lists = remembered.get("lists")
    return ForgottenNeighbors(points, remembered["most"]) if "most" in remembered else points
