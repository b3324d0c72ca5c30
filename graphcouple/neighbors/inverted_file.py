"""Approximate nearest neighbours: candidates from an inverted file on principal components, ranked by exact distances.

Points are projected on their leading principal components (`projection.py`). k-means puts the points into lists, and
each point is compared with the lists nearest to its own. All points that search a list are compared with it together,
so distances are matrix products. The nearest candidates are then ranked by exact distances. The numbers of lists and of
candidates are chosen on a sample of points whose true neighbours are known.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._numba.threads import effective_n_jobs, over_rows
from graphcouple.graphs import MANY_EDGES
from graphcouple.neighbors.projection import Projection

RECALL = 0.99
"""Target share of true neighbours, on a sample of points."""

# If more candidates per neighbour are needed, the projection does not pay, and the points themselves are searched.
_MOST_CANDIDATES = 4

# Extra candidates when the projection is exact, since rounding to single precision may change their order.
_SPARE_CANDIDATES = 8

# Rows whose true neighbours are found by brute force, with at most 2^25 distances. 256 rows of 90 neighbours measure a
# recall of 0.99 to within 0.002, three binomial standard errors.
_SAMPLE = 256
_SAMPLE_ENTRIES = 2**25

# Lists of about 512 points are large enough for fast matrix products, and a few of them hold the neighbours. faiss
# recommends k-means with few iterations on a sample of at least 39 points per list.
_POINTS_A_LIST = 512
_MOST_LISTS = 4096
_ITERATIONS = 8
_TRAINING_POINTS_A_LIST = 64

# Points of a list whose median is its middle, which need not be exact.
_POINTS_A_MEDIAN = 64

# Rows that search together, and the largest block of distances: 2,048 × 2,048 singles are 16 MB.
_ROWS_AT_ONCE = 2048
_COLUMNS_AT_ONCE = 2048

# New rows in a product, filled up with zeros.
_NEW_TOGETHER = 32

# If a projection does not pay, sparse points of up to 2^28 entries (2 GB) are made dense.
_DENSE_ENTRIES = 2**28


class _Sample(NamedTuple):
    """Some rows, and the true neighbours of each, including points tied with the last one."""

    rows: NDArray[np.int64]
    neighbors: list[NDArray[np.int64]]


class InvertedFile:
    """Points in lists around k-means centres; the points of a list are searched for in the lists nearest to it.

    Parameters
    ----------
    X : array or csr matrix of shape (n_samples, n_features)
        Points, near the origin. They are kept for exact distances.
    n_neighbors : int
        Neighbours of each point.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.

    References
    ----------
    Jégou, Douze, Schmid (2011), Product quantization for nearest neighbor search (section IV, inverted file).
    Douze et al. (2024), The Faiss library.
    """

    def __init__(self, X: Any, n_neighbors: int, n_jobs: int | None = None) -> None:
        self.X, self.n_neighbors, self.n_jobs = _workable(X), n_neighbors, n_jobs
        sample = _sample(self.X, n_neighbors)
        self.projection = Projection.principal(self.X)
        points = self.projection.apply(self.X)
        n_candidates = n_neighbors
        if self.projection.reduces:
            selection = _enough_candidates(points, sample, n_neighbors)
            if selection is not None:
                n_candidates, sample = selection
            elif sp.issparse(X) and X.shape[0] * X.shape[1] > _DENSE_ENTRIES:
                n_candidates = _MOST_CANDIDATES * n_neighbors
                warnings.warn(
                    f"the {X.shape[1]} sparse columns of X have no few directions that identify neighbors: more than "
                    f"{1 - RECALL:.0%} of them will be missed. Use search='exact' to find all, or reduce X first, for "
                    "example by TruncatedSVD.",
                    UserWarning,
                    stacklevel=2,
                )
            else:
                self.projection = Projection.none(self.X)
                points = self.projection.apply(self.X)
        # Each point also finds itself.
        self.n_candidates = min(max(n_candidates, n_neighbors + _SPARE_CANDIDATES), X.shape[0])
        self._put_in_lists(points)
        self._search_enough_lists(sample)

    def _put_in_lists(self, points: NDArray[Any]) -> None:
        import faiss

        n, n_dims = points.shape
        n_lists = int(np.clip(2 ** round(np.log2(n / _POINTS_A_LIST)), 1, _MOST_LISTS))
        clustering = faiss.Kmeans(
            n_dims,
            n_lists,
            niter=_ITERATIONS,
            max_points_per_centroid=_TRAINING_POINTS_A_LIST,
            min_points_per_centroid=1,
        )
        with _faiss_threads(self.n_jobs):
            single = points.astype(np.float32, copy=False)
            clustering.train(single)
            self.list_of = clustering.assign(single)[1]
        self.means: NDArray[np.float64] = np.asarray(clustering.centroids, dtype=np.float64)
        self.centres = self.means.copy()
        self.order = np.argsort(self.list_of, kind="stable").astype(np.int32)
        self.starts = np.searchsorted(self.list_of[self.order], np.arange(n_lists + 1))
        # Single precision keeps the digits of points relative to the middle of their list. A median is robust to a
        # distant point that has no list of its own.
        self.points = np.empty((n, n_dims + 1), dtype=np.float32)
        for center, (a, b) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            if b > a:
                members = points[self.order[a:b]]
                self.centres[center] = np.median(members[:: -(-len(members) // _POINTS_A_MEDIAN)], axis=0)
                self.points[a:b, :-1] = members - self.centres[center]
        # The last column: squared norms.
        np.einsum("ij,ij->i", self.points[:, :-1], self.points[:, :-1], out=self.points[:, -1])
        sq_norms = np.einsum("ij,ij->i", self.centres, self.centres)
        sq_dist = sq_norms[:, None] + sq_norms - 2.0 * self.centres @ self.centres.T
        np.fill_diagonal(sq_dist, -np.inf)
        self.nearest_lists = np.argsort(sq_dist, axis=1, kind="stable")

    def _search_enough_lists(self, sample: _Sample) -> None:
        """Set how many lists to search: enough to hold the sample's neighbours and the required candidates."""
        n_lists, n_neighbors = self.starts.size - 1, self.n_neighbors
        places = np.empty(n_lists, dtype=np.int64)
        hits = np.zeros(n_lists)
        for row, neighbors in zip(*sample, strict=True):
            places[self.nearest_lists[self.list_of[row]]] = np.arange(n_lists)
            in_lists = np.bincount(places[self.list_of[neighbors]], minlength=n_lists)
            hits += np.minimum(np.cumsum(in_lists), n_neighbors)
        n_enough = np.searchsorted(hits / (n_neighbors * sample.rows.size), RECALL) + 1
        n_points = np.cumsum(np.diff(self.starts)[self.nearest_lists], axis=1)
        self.n_searched = np.maximum(n_enough, 1 + (n_points < self.n_candidates).sum(axis=1))

    def of_each_other(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return each point's nearest other points, nearly all of them correct.

        Returns
        -------
        indices : ndarray of shape (n_samples, n_neighbors)
            Ordered by index.
        sq_dist : ndarray of shape (n_samples, n_neighbors)
            Exact squared distances of these pairs.
        """
        return self._search(self.X, None, self.order, self.list_of[self.order])

    def of_new(self, X_new: Any) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the points nearest to each new point, ordered by index; a row's result depends on no other row."""
        from graphcouple._numba.nearest import nearest_centres

        X_new = _workable(X_new, self.X.dtype)
        points = self.projection.apply(X_new).astype(np.float64)
        list_of = np.empty(len(points), dtype=np.int64)
        over_rows(len(points), self.n_jobs, nearest_centres, points, self.means, list_of)
        order = np.argsort(list_of, kind="stable").astype(np.int32)
        return self._search(X_new, points, order, list_of[order])

    def _search(
        self, X: Any, new: NDArray[np.float64] | None, order: NDArray[np.int32], lists: NDArray[np.int64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the neighbours of rows of X.

        Parameters
        ----------
        X : array or csr matrix of shape (n_rows, n_features)
        new : ndarray of shape (n_rows, n_dims) or None
            Projected new rows; None for the points themselves, which are not their own neighbours.
        order, lists : ndarray of shape (n_rows,)
            The rows by their lists, and these lists.
        """
        from threadpoolctl import threadpool_limits

        shape = (order.size, self.n_neighbors)
        single = order.size * self.n_neighbors > MANY_EDGES and _fits_in_single(self.X)
        indices, sq_dist = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.float32 if single else np.float64)

        def search(first: int, last: int) -> None:
            for a in range(first * _ROWS_AT_ONCE, min(last * _ROWS_AT_ONCE, order.size), _ROWS_AT_ONCE):
                part = slice(a, min(a + _ROWS_AT_ONCE, order.size))
                rows, list_numbers = order[part], lists[part]
                points = self.points[part, :-1] + self.centres[list_numbers] if new is None else new[rows]
                # Products of a fixed number of rows give a row the same bits, whatever the other rows are.
                candidates = self._candidates(points, list_numbers, None if new is None else _NEW_TOGETHER)
                neighbors = nearest_of(X, rows, self.X, candidates, self.n_neighbors, others_only=new is None)
                indices[rows], sq_dist[rows] = neighbors

        # One thread searches a block of rows, so the bits are the same for any number of threads.
        with threadpool_limits(1, "blas"):
            over_rows(-(-order.size // _ROWS_AT_ONCE), self.n_jobs, search, at_least=2)
        return indices, sq_dist

    def _candidates(
        self, points: NDArray[np.float64], lists: NDArray[np.int64], together: int | None
    ) -> NDArray[np.int32]:
        """Return candidate neighbours of points in lists; a product with a list has `together` rows, or all if None.

        ‖b − q‖² is the sum of squared norms, relative to the list's centre, less twice a product. Near the centre, few
        digits cancel.
        """
        from graphcouple._numba.nearest import fill_seeking, keep_nearest

        if self.projection.reduces:
            # The length of the dropped components is a coordinate of the searched points, and 0 for queries.
            points = np.column_stack([points[:, :-1], np.zeros(len(points))])
        distances = np.full((len(points), self.n_candidates), np.inf, dtype=np.float32)
        candidates = np.empty(distances.shape, dtype=np.int32)
        height = len(points) if together is None else together
        queries = np.zeros((height, points.shape[1] + 1), dtype=np.float32)
        sq_norms = np.empty(height, dtype=np.float32)
        queries[:, -1] = 1.0
        for k, rows in self._by_searched_list(lists):
            starts = range(self.starts[k], self.starts[k + 1], _COLUMNS_AT_ONCE)
            for a in range(0, rows.size, height):
                part = rows[a : a + height]
                fill_seeking(part, points, self.centres[k], queries, sq_norms)
                factor = queries[: part.size if together is None else height]
                for c in starts:
                    columns = slice(c, min(c + _COLUMNS_AT_ONCE, self.starts[k + 1]))
                    block, names = factor @ self.points[columns].T, self.order[columns]
                    keep_nearest(block, names, part, sq_norms, distances, candidates)
        return candidates

    def _by_searched_list(self, lists: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield each list with the rows that search it: first the rows' own lists in ascending order, then others."""
        own, first, sizes = np.unique(lists, return_index=True, return_counts=True)
        ranges = [np.arange(a, a + size) for a, size in zip(first, sizes, strict=True)]
        yield from zip(own.tolist(), ranges, strict=True)
        n_others = self.n_searched[own] - 1
        targets = np.concatenate([self.nearest_lists[k, 1 : 1 + m] for k, m in zip(own, n_others, strict=True)])
        order = np.argsort(targets, kind="stable")
        owners = np.repeat(np.arange(own.size), n_others)[order]
        bounds = np.flatnonzero(np.diff(targets[order], prepend=-1, append=-1))
        for a, b in pairwise(bounds.tolist()):
            yield int(targets[order[a]]), np.concatenate([ranges[k] for k in owners[a:b]])


def nearest_of(
    left: Any,
    rows: NDArray[np.int32],
    right: Any,
    candidates: NDArray[np.int32],
    n_neighbors: int,
    others_only: bool = False,
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return the candidates on the right nearest to rows on the left, ordered by index, and exact squared distances.

    With `others_only`, both sides hold the same points, and no point is its own neighbour.
    """
    from graphcouple._numba.nearest import candidate_sq_dists, sparse_candidate_sq_dists

    candidates.sort(axis=1)
    sq_dist = np.empty(candidates.shape)
    if sp.issparse(left):
        parts = (left.indptr, left.indices, left.data, right.indptr, right.indices, right.data)
        sparse_candidate_sq_dists(rows, *parts, candidates, sq_dist)
    else:
        candidate_sq_dists(rows, left, right, candidates, sq_dist)
    if others_only:
        sq_dist[candidates == rows[:, None]] = np.inf
    nearest = np.sort(np.argsort(sq_dist, axis=1, kind="stable")[:, :n_neighbors], axis=1)
    return np.take_along_axis(candidates, nearest, axis=1), np.take_along_axis(sq_dist, nearest, axis=1)


def _workable(X: Any, dtype: Any = None) -> Any:
    """Return points without duplicate entries, in a precision in which squares neither overflow nor vanish."""
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if dtype is not None:
        return X.astype(dtype, copy=False)
    return X.astype(np.float64) if X.dtype == np.float32 and not _fits_in_single(X) else X


def _fits_in_single(X: Any) -> bool:
    """Return whether squares of entries neither overflow nor vanish in single precision."""
    return 1e-12 < max(float(abs(X.min())), float(abs(X.max()))) < 1e12


@contextmanager
def _faiss_threads(n_jobs: int | None) -> Iterator[None]:
    import faiss

    n_threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(effective_n_jobs(n_jobs))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(n_threads)


def _sample(X: Any, n_neighbors: int) -> _Sample:
    n = X.shape[0]
    size = min(n, int(np.clip(_SAMPLE_ENTRIES // n, 64, _SAMPLE)))
    rows = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
    sq_norms = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    product = X[rows] @ X.T
    product = product.toarray() if sp.issparse(product) else product
    product *= -2.0
    product += sq_norms[rows][:, None]
    product += sq_norms
    product[np.arange(size), rows] = np.inf
    kth = np.partition(product, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    # Ties count as neighbours, and so do distances that the expanded square cannot distinguish.
    farthest = kth + 1e-5 * np.abs(kth) + 1e-6 * float(np.median(np.abs(kth)))
    return _Sample(rows, [np.flatnonzero(near <= far) for near, far in zip(product, farthest, strict=True)])


def _enough_candidates(points: NDArray[Any], sample: _Sample, n_neighbors: int) -> tuple[int, _Sample] | None:
    """Return how many nearest projected points include a row's true neighbours, and the sample's neighbours among them.

    None if too many are needed.
    """
    most = min(_MOST_CANDIDATES * n_neighbors, points.shape[0] - 1)
    queries = points[sample.rows]
    queries[:, -1] = 0.0
    sq_norms = np.einsum("ij,ij->i", points, points)
    hits, places = np.zeros(most + 1), []
    for row, neighbors, distances in zip(*sample, sq_norms - 2.0 * queries @ points.T, strict=True):
        distances[row] = -np.inf
        nearest = np.sort(np.partition(distances, most)[: most + 1])
        places.append(np.searchsorted(nearest, distances[neighbors]))
        hits += np.minimum(np.cumsum(np.bincount(places[-1], minlength=most + 2)[: most + 1]), n_neighbors)
    # Half of the allowed loss is for missed candidates, half for lists that are not searched.
    sufficient = np.flatnonzero(hits >= 0.5 * (1.0 + RECALL) * n_neighbors * sample.rows.size)
    if not sufficient.size:
        return None
    n_candidates = int(sufficient[0]) + 1
    included = [near[at < n_candidates] for near, at in zip(sample.neighbors, places, strict=True)]
    return n_candidates, _Sample(sample.rows, included)
