"""Distances between points: of all pairs, nearest neighbours, single edges and new points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist, squareform

from graphcouple._numba.threads import effective_n_jobs, over_rows
from graphcouple._support.validation import check_integer
from graphcouple.graphs import MANY_EDGES, FloatArray, IntArray, Support, largest_of_rows, off_diagonal
from graphcouple.neighbors.brute_force import nearest_exactly, search_lost
from graphcouple.neighbors.inverted_file import InvertedFile
from graphcouple.neighbors.points import DENSE_ENTRIES, dense_if_far, fits_in_single, shift_of, shifted

SEARCHES = ("auto", "exact", "approximate")
"""The ways to search nearest neighbours."""

# In up to this many dimensions, scikit-learn's trees search fast, so the search stays exact.
_TREE_DIMS = 4

# In more dimensions, or for half of the points, scikit-learn compares all pairs by expanding the square.
_MOST_TREE_DIMS = 15

# Entries of the differences of edges held at once: 128 MB in double precision.
_CHUNK_ENTRIES = 2**24

# Squared distances below this share of the largest count as 0, because of rounding.
_COINCIDENT = 1e-24

# Squared distances below this share of the squared norms lose digits when the square is expanded.
CANCELLED = 1e-6

# Attributes that a search computes again if they are missing.
_CACHES = {"_index", "_directions", "_shift"}


class Distances(ABC):
    """Squared distances between points, for one metric.

    Parameters
    ----------
    X : array or sparse matrix
        The points, or distances between them.
    n_points : int, optional
        The number of points, if `X` is not kept.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.neighbors import distances_of
    >>> distances = distances_of(np.array([[0.0], [1.0], [3.0]]), "manhattan")
    >>> distances.n_points, distances.all_pairs()[1].tolist()
    (3, [1.0, 9.0, 1.0, 4.0, 9.0, 4.0])
    """

    searched: ClassVar[bool] = True
    """Whether neighbours are searched for, rather than given."""

    knows_all: bool = True
    """Whether the distances of all pairs are known, or can be computed."""

    neighbors_given: bool = False
    """Whether the nearest points were given instead of searched."""

    metric: Any = "euclidean"
    params: dict[str, Any] | None = None
    """Further arguments of the metric."""

    def __init__(self, X: Any, n_points: int | None = None) -> None:
        self.X, self.n_points = X, X.shape[0] if n_points is None else n_points

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the attributes that a search computes again."""
        return {name: value for name, value in self.__dict__.items() if name not in _CACHES}

    @property
    def order(self) -> IntArray | None:
        """An order of the points in which near points are close together, if a search has put them into lists."""
        return None

    def remembered(self) -> dict[str, Any]:
        """Return the arrays and plain values that new points need; `remembered_distances` reads them."""
        return {"X": self.X, "metric": self.metric, "params": self.params}

    @abstractmethod
    def all_pairs(self) -> tuple[Support, FloatArray]:
        """Return all ordered pairs with a known distance, and their squared distances, float64."""

    @abstractmethod
    def nearest(self, n_neighbors: int, n_jobs: int | None = None, search: str = "auto") -> tuple[Support, FloatArray]:
        """Return the graph of each point's nearest other points, with squared distances; see `nearest_neighbors`."""

    @abstractmethod
    def of_edges(self, support: Support, n_jobs: int | None = None) -> FloatArray:
        """Return the squared distances of the edges of a support."""

    @abstractmethod
    def to(
        self, X_new: Any, n_neighbors: int | None, n_jobs: int | None = None, search: str = "auto"
    ) -> tuple[Support, FloatArray]:
        """Return the points nearest to each new point; see `neighbors_among`."""

    def _check_count(self, n_neighbors: int) -> int:
        k = check_integer("n_neighbors", n_neighbors, 1)
        if k >= self.n_points:
            raise ValueError(f"n_neighbors={k} must be below the number of points, n_samples = {self.n_points}.")
        return k


def squares_of(values: FloatArray) -> FloatArray:
    """Return the squares of precomputed distances, which must not be negative."""
    if (values < 0).any():
        raise ValueError("precomputed distances must not be negative; pass distances, not similarities.")
    single = values.dtype == np.float32 and values.size > MANY_EDGES and fits_in_single(values)
    return np.square(values, dtype=np.float32 if single else np.float64)


def regular_support(indices: IntArray) -> Support:
    """Return the support of a graph with equally many edges in each row, from their sorted ends."""
    n, k = indices.shape
    return Support(np.arange(0, n * k + 1, k), indices.ravel())


class Searched(Distances):
    """Distances that scikit-learn's `NearestNeighbors` can search."""

    approximate: bool = False
    """Whether there is an approximate search."""

    exact_work: float = 2e10
    """n² p, about the multiplications of an exact search, above which the search is approximate."""

    def _points(self) -> Any:
        return self.X

    def nearest(self, n_neighbors: int, n_jobs: int | None = None, search: str = "auto") -> tuple[Support, FloatArray]:
        k = self._check_count(n_neighbors)
        if self._is_approximate(search):
            return self._approximate_nearest(k, n_jobs)
        indices, dist = self._search(self._points(), None, k, n_jobs)
        return regular_support(indices), np.square(dist.ravel(), dtype=np.float64)

    def _is_approximate(self, search: str) -> bool:
        if search not in SEARCHES:
            raise ValueError(f"search must be one of {sorted(SEARCHES)}, got {search!r}.")
        if search == "approximate" and not self.approximate:
            raise ValueError(
                f"there is no approximate search for metric={self.metric!r}, or X is too far from 0 for it; use "
                "search='auto', subtract the columns' means, or pass metric='precomputed' with a graph of distances."
            )
        if search != "auto":
            return search == "approximate"
        n, n_features = self.X.shape
        return self.approximate and n_features > _TREE_DIMS and n * n * n_features > self.exact_work

    def _approximate_nearest(self, k: int, n_jobs: int | None) -> tuple[Support, FloatArray]:
        raise NotImplementedError

    def to(
        self, X_new: Any, n_neighbors: int | None, n_jobs: int | None = None, search: str = "auto"
    ) -> tuple[Support, FloatArray]:
        k = min(check_integer("n_neighbors", self.n_points if n_neighbors is None else n_neighbors, 1), self.n_points)
        self._check_new(X_new)
        return self._to_nearest(X_new, k, n_jobs, search)

    def _to_nearest(self, X_new: Any, k: int, n_jobs: int | None, search: str) -> tuple[Support, FloatArray]:
        indices, dist = self._search(self._points(), X_new, k, n_jobs)
        sq_dist = np.square(dist, dtype=np.float64)
        sq_dist[sq_dist <= _COINCIDENT * sq_dist.max(axis=1, keepdims=True)] = 0.0
        return regular_support(indices), sq_dist.ravel()

    def _check_new(self, X_new: Any) -> None:
        if X_new.shape[1] != self.X.shape[1]:
            raise ValueError(f"X_new has {X_new.shape[1]} columns, but X has {self.X.shape[1]}.")

    def _search(self, X: Any, X_new: Any, k: int, n_jobs: int | None) -> tuple[IntArray, FloatArray]:
        """Return each row's nearest points, ordered by index, and the distances."""
        from sklearn import config_context
        from sklearn.neighbors import NearestNeighbors

        params = dict(self.params or {})
        of_powers = self.metric == "minkowski"
        # A ball tree loses neighbours where the triangle inequality fails, as it may for a function. For negative
        # entries, scikit-learn's own loops have another Bray-Curtis distance than SciPy. Most of its trees refuse
        # weights.
        p = params.pop("p", 2) if of_powers else None
        refused = "w" in params and (not of_powers or p == np.inf)
        plain = callable(self.metric) or self.metric == "braycurtis" or refused
        options = {"metric": self.metric, "p": p, "metric_params": params}
        options |= {"algorithm": "brute" if plain else "auto", "n_jobs": effective_n_jobs(n_jobs)}
        finder = NearestNeighbors(n_neighbors=k, **options).fit(X)
        with config_context(enable_cython_pairwise_dist=False if plain else None):
            dist, indices = finder.kneighbors(X_new)
        order = np.argsort(indices, axis=1)
        return np.take_along_axis(indices, order, axis=1), np.take_along_axis(dist, order, axis=1)


class Euclidean(Searched):
    """Euclidean distances of points, dense or sparse. Differences are squared, so duplicates are at exactly 0."""

    metric = "euclidean"
    approximate = True
    _index: InvertedFile | None = None
    lists: dict[str, Any] | None = None
    """The lists of an approximate search, from which a file makes it again."""

    def __init__(self, X: Any) -> None:
        # A search among sparse points expands the square, which loses the digits of points far from the origin.
        super().__init__(dense_if_far(X))

    def remembered(self) -> dict[str, Any]:
        return super().remembered() | ({} if self.lists is None else {"lists": self.lists})

    @property
    def order(self) -> IntArray | None:
        return None if self._index is None else self._index.order

    def all_pairs(self) -> tuple[Support, FloatArray]:
        X = self.X
        support = Support.all_pairs(self.n_points)
        if not sp.issparse(X) or X.shape[0] * X.shape[1] <= DENSE_ENTRIES:
            dense = X.toarray() if sp.issparse(X) else X
            return support, off_diagonal(squareform(pdist(dense, "sqeuclidean"), checks=False))
        from sklearn.metrics import pairwise_distances

        return support, np.square(off_diagonal(pairwise_distances(X)), dtype=np.float64)

    @cached_property
    def _shift(self) -> FloatArray:
        return shift_of(self.X)

    def _points(self) -> Any:
        return self.X if sp.issparse(self.X) else shifted(self.X, self._shift)

    def nearest(self, n_neighbors: int, n_jobs: int | None = None, search: str = "auto") -> tuple[Support, FloatArray]:
        support, sq_dist = super().nearest(n_neighbors, n_jobs, search)
        if self._is_approximate(search):
            return support, sq_dist
        # The search expands the square, which loses the digits of short distances, also between duplicates.
        if sp.issparse(self.X):
            sq_norms = np.asarray(self.X.multiply(self.X).sum(axis=1)).ravel()
            short = sq_dist <= CANCELLED * (sq_norms[support.rows] + sq_norms[support.indices])
            sq_dist[short] = self.of_edges(support.select(short), n_jobs)
            # If all distances of a row lost their digits, its nearest points may have been lost too, unless all are 0.
            lost = short.reshape(-1, n_neighbors).all(axis=1) & sq_dist.reshape(-1, n_neighbors).any(axis=1)
            if lost.any() and np.prod(self.X.shape) <= DENSE_ENTRIES:
                self.X = self.X.toarray()
                return self.nearest(n_neighbors, n_jobs, search)
            return support, sq_dist
        sq_dist = self.of_edges(support, n_jobs)
        if self.X.shape[1] <= _MOST_TREE_DIMS and n_neighbors < self.n_points // 2:
            return support, sq_dist
        points, indices = self._points(), support.indices.reshape(self.n_points, n_neighbors)
        search_lost(points, points, indices, sq_dist.reshape(indices.shape), n_jobs, others_only=True)
        return regular_support(indices), sq_dist

    def _approximate_nearest(self, k: int, n_jobs: int | None) -> tuple[Support, FloatArray]:
        indices, sq_dist = self._file(k, n_jobs).of_each_other()
        return regular_support(indices), sq_dist.ravel()

    def _file(self, k: int, n_jobs: int | None) -> InvertedFile:
        """Return the inverted file, and keep it for new points."""
        if self._index is None and self.lists is not None and self.lists["n_neighbors"] == k:
            self._index = InvertedFile.from_lists(self._points(), self.lists, n_jobs)
        if self._index is None or self._index.n_neighbors != k:
            self._index = InvertedFile(self._points(), k, n_jobs)
            self.lists = self._index.lists
        self._index.n_jobs = n_jobs
        return self._index

    def of_edges(self, support: Support, n_jobs: int | None = None) -> FloatArray:
        if sp.issparse(self.X):
            return in_chunks(self.X, self.X, support, sq_differences)
        from graphcouple._numba.pairs import edge_sq_dists

        out = np.empty(support.n_edges)
        points = np.ascontiguousarray(self.X)
        over_rows(support.n_nodes, n_jobs, edge_sq_dists, points, support.indptr, support.indices, out)
        return out

    def _to_nearest(self, X_new: Any, k: int, n_jobs: int | None, search: str) -> tuple[Support, FloatArray]:
        # Apply to new points the shift and the format of the fitted points.
        if sp.issparse(self.X):
            X_new = X_new if sp.issparse(X_new) else sp.csr_array(X_new)
        else:
            X_new = shifted(X_new.toarray() if sp.issparse(X_new) else X_new, self._shift)
        if k < self.n_points and self._is_approximate(search):
            indices, sq_dist = self._file(k, n_jobs).of_new(X_new)
            return regular_support(indices), sq_dist.ravel()
        X, to_all = self._points(), k == self.n_points
        if not to_all and not sp.issparse(X):
            indices, sq_dist = nearest_exactly(X, X_new, k, n_jobs)
            return regular_support(indices), sq_dist.ravel()
        ends = np.broadcast_to(np.arange(k), (X_new.shape[0], k)) if to_all else self._search(X, X_new, k, n_jobs)[0]
        support = regular_support(ends)
        if sp.issparse(X):
            found = in_chunks(X_new, X, support, sq_differences)
            short = found <= CANCELLED * np.asarray(X_new.multiply(X_new).sum(axis=1)).ravel()[support.rows]
            # Copies, all at distance 0, were found.
            lost = np.flatnonzero(short.reshape(ends.shape).all(axis=1) & found.reshape(ends.shape).any(axis=1))
            if to_all or not lost.size or np.prod(X.shape) > DENSE_ENTRIES:
                return support, found
            # As in `nearest`, the nearest points of these rows may have been lost.
            ends[lost] = nearest_exactly(X.toarray(), X_new[lost].toarray(), k, n_jobs)[0]
            support = regular_support(ends)
            return support, in_chunks(X_new, X, support, sq_differences)
        return support, cdist(X_new, X, "sqeuclidean").ravel()


def nearest_edges(support: Support, sq_dist: FloatArray, n_neighbors: int) -> tuple[Support, FloatArray]:
    """Return the nearest edges of each row; all its edges where it has fewer."""
    if np.diff(support.indptr).max(initial=0) <= n_neighbors:
        return support, sq_dist
    keep = np.zeros(support.n_edges, dtype=bool)
    for _, edges, part in support.in_parts():
        keep[edges] = largest_of_rows(part, -sq_dist[edges], n_neighbors)
    return support.select(keep), sq_dist[keep]


def in_chunks(left: Any, right: Any, support: Support, distance: Any) -> FloatArray:
    """Apply `distance` to the rows at the two ends of all edges, some edges at a time."""
    out = np.empty(support.n_edges)
    chunk = max(1, _CHUNK_ENTRIES // right.shape[1])
    for a in range(0, support.n_edges, chunk):
        part = slice(a, a + chunk)
        out[part] = distance(left[support.rows[part]], right[support.indices[part]])
    return out


def sq_differences(left: Any, right: Any) -> FloatArray:
    """Return the squared distances of rows, pair by pair."""
    difference = left - right
    if not sp.issparse(difference):
        return np.einsum("ij,ij->i", difference, difference, dtype=np.float64)
    return np.asarray(difference.multiply(difference).sum(axis=1), dtype=np.float64).ravel()
