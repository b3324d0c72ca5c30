"""Approximate nearest neighbours: candidates from an inverted file on principal components, ranked by exact distances.

Points are projected on their leading principal components (`projection.py`). k-means puts the points into lists, and
each point is compared with the lists nearest to it, among the lists around its own. All points that search a list are
compared with it together, so distances are matrix products. The nearest candidates are then ranked by exact distances.
The numbers of lists and of candidates are chosen on a sample of points whose true neighbours are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._numba.threads import effective_n_jobs, one_blas_thread, over_blocks
from graphcouple._support.validation import changed, warn
from graphcouple.graphs import MANY_EDGES
from graphcouple.neighbors.lists import lists_by_distance, trained_lists
from graphcouple.neighbors.points import fits_in_single, nearest_of, workable
from graphcouple.neighbors.projection import Projection, product_of_rows
from graphcouple.neighbors.recall import MOST_CANDIDATES, RECALL, Sample, enough_candidates, sample_of

# Extra candidates when the projection is exact, since rounding to single precision may change their order.
_SPARE_CANDIDATES = 8

# If candidates in single precision miss more than this share of the neighbours in the searched lists, the search is in
# double. Clusters that share a list are far from its middle, and a squared distance of 10^8 rounds to a multiple of 8.
_MOST_LOST = 0.02

# Lists of about 512 points are large enough for fast matrix products, and a few of them hold the neighbours.
_POINTS_A_LIST = 512
_MOST_LISTS = 8192

# The most lists that a row searches; points without structure need a large share of all lists.
_MOST_SEARCHED = 4096

# Each point searches the lists nearest to itself. Its candidates are the lists around its own list, this many times as
# many as if all points of a list searched the same lists. On the digits (128 lists), a point then searches 24 lists
# instead of 71, and finds 98.4 % of its neighbours instead of 98.0 %.
_AROUND = 2

# Rows whose distances to all centres are computed at once: 16 MB for 2,048 lists.
_ROWS_BY_CENTRE = 1024

# Points of a list whose median approximates the centre of the list.
_POINTS_A_MEDIAN = 64

# Rows that search together, and the largest block of distances: 2,048 × 2,048 singles are 16 MB.
_ROWS_AT_ONCE = 2048
_COLUMNS_AT_ONCE = 2048

# A larger copy of the points is freed after the search, to save memory, and rebuilt for new points.
KEPT_BYTES = 2**29

# New rows in a product, padded with zeros.
_NEW_TOGETHER = 32

# If projecting does not save time, sparse points of up to 2^28 entries (2 GB) are made dense.
_DENSE_ENTRIES = 2**28


class InvertedFile:
    """An inverted file: lists of points around k-means centres; each point searches the lists nearest to it.

    Parameters
    ----------
    X : array or csr matrix of shape (n_samples, n_features)
        Points, near the origin. They are kept for exact distances.
    n_neighbors : int
        Neighbours of each point.
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.
    n_rows : int, optional
        The number of points that the lists will hold; see `holding`. `X` is then a sample of them.

    References
    ----------
    Jégou, Douze, Schmid (2011), Product quantization for nearest neighbor search (section IV, inverted file).
    Douze et al. (2024), The Faiss library.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.neighbors import InvertedFile
    >>> X = np.random.default_rng(0).normal(size=(5000, 5))
    >>> indices, sq_dist = InvertedFile(X, 10).of_new(X[:3] + 1e-6)
    >>> indices[:, 0].tolist()
    [0, 1, 2]
    """

    def __init__(self, X: Any, n_neighbors: int, n_jobs: int | None = None, n_rows: int | None = None) -> None:
        if X.shape[0] < n_neighbors:
            raise ValueError(f"X must have at least n_neighbors={n_neighbors} rows, got {X.shape[0]}; pass more rows.")
        self.X, self.n_neighbors, self.n_jobs = workable(X), n_neighbors, n_jobs
        self._share = X.shape[0] / (n_rows or X.shape[0])
        sample = sample_of(self.X, n_neighbors)
        self.projection = Projection.principal(self.X)
        points = self.projection.apply(self.X)
        n_candidates = n_neighbors
        if self.projection.axes is not None:
            selection = enough_candidates(points, sample, n_neighbors)
            # More points compete for the places of candidates if X is a sample.
            if selection is not None and selection[0] <= (MOST_CANDIDATES * n_neighbors + 1) * self._share:
                n_candidates, sample = int(np.ceil(selection[0] / self._share)), selection[1]
            elif sp.issparse(X) and X.shape[0] * X.shape[1] > _DENSE_ENTRIES:
                n_candidates = MOST_CANDIDATES * n_neighbors
                warn(
                    f"a few directions in the {X.shape[1]} sparse columns do not identify the neighbors: more than "
                    f"{1 - RECALL:.0%} of them will be missed. Use search='exact' to find all, or reduce X first, for "
                    "example by TruncatedSVD."
                )
            else:
                self.projection = Projection.none(self.X)
                points = self.projection.apply(self.X)
        # Each point also finds itself.
        self.n_candidates = min(max(n_candidates, n_neighbors + _SPARE_CANDIDATES), n_rows or X.shape[0])
        n_lists = int(np.clip(2 ** round(np.log2((n_rows or X.shape[0]) / _POINTS_A_LIST)), 1, _MOST_LISTS))
        self.means, list_of = trained_lists(points, n_lists, n_jobs)
        self.is_double = False
        self._fill(points, list_of)
        self.nearest_lists = lists_by_distance(self.centres, _MOST_SEARCHED)
        in_lists = self._search_enough_lists(sample, points[sample.rows])
        if self._recall(sample, points[sample.rows]) < in_lists - _MOST_LOST:
            self.is_double = True
            self._fill(points, list_of)

    @property
    def lists(self) -> dict[str, Any]:
        """The arrays and numbers from which `from_lists` makes the file again, in a fifth of the time."""
        counts = {name: int(getattr(self, name)) for name in ("n_neighbors", "n_candidates", "n_probed", "is_double")}
        arrays = {"means": self.means, "list_of": self.list_of.astype(np.int32), "n_searched": self.n_searched}
        return {**vars(self.projection), **counts, **arrays}

    @classmethod
    def from_lists(cls, X: Any, lists: dict[str, Any], n_jobs: int | None = None) -> InvertedFile:
        """Return the file of the same points that had these `lists`; lists of other points raise `ValueError`."""
        self = cls.__new__(cls)
        self.X, self.n_jobs, self._share = workable(X), n_jobs, 1.0
        self.projection = Projection(lists["mean"], lists["unit"], lists["axes"])
        self.n_neighbors, self.n_candidates = lists["n_neighbors"], lists["n_candidates"]
        self.n_probed, self.n_searched, self.means = lists["n_probed"], lists["n_searched"], lists["means"]
        # Older files lack it.
        self.is_double = bool(lists.get("is_double", False))
        list_of, n_lists = lists["list_of"].astype(np.int64), len(self.means)
        most, axes = min(n_lists, _MOST_SEARCHED), self.projection.axes
        n_dims = X.shape[1] if axes is None else axes.shape[1] + 1
        if not (
            self.projection.mean.shape == (X.shape[1],) == (X if axes is None else axes.T).shape[1:]
            and self.means.shape == (n_lists, n_dims)
            and list_of.shape == (X.shape[0],)
            and self.n_searched.shape == (n_lists,)
            and 0 <= list_of.min() <= list_of.max() < n_lists
            and 1 <= self.n_searched.min() <= self.n_searched.max() <= most
            and 1 <= min(self.n_neighbors, self.n_probed) <= self.n_neighbors <= self.n_candidates <= X.shape[0]
        ):
            raise ValueError("the file is damaged: its search lists do not fit its points. Fit again.")
        self._fill(self.projection.apply(self.X), list_of)
        self.nearest_lists = lists_by_distance(self.centres, int(self.n_searched.max()))
        self.sizes = np.diff(self.starts).astype(float)
        return self

    def _fill(self, points: NDArray[Any], list_of: NDArray[np.int64]) -> None:
        """Put points into lists."""
        n, n_dims = points.shape
        self.list_of, self.centres = list_of, self.means.copy()
        self.order = np.argsort(list_of, kind="stable").astype(np.int32)
        self.starts = np.searchsorted(list_of[self.order], np.arange(len(self.means) + 1))
        # Single precision keeps the digits of points relative to the middle of their list. A median is robust to a
        # distant point that has no list of its own.
        self.points = np.empty((n, n_dims + 1), dtype=np.float64 if self.is_double else np.float32)
        for center, (a, b) in enumerate(zip(self.starts[:-1], self.starts[1:], strict=True)):
            if b > a:
                members = points[self.order[a:b]]
                self.centres[center] = np.median(members[:: -(-len(members) // _POINTS_A_MEDIAN)], axis=0)
                self.points[a:b, :-1] = members - self.centres[center]
        # The last column: squared norms.
        np.einsum("ij,ij->i", self.points[:, :-1], self.points[:, :-1], out=self.points[:, -1])

    def lists_of(self, X: Any) -> NDArray[np.int64]:
        """Return the list of each row, which does not depend on the other rows."""
        return self._lists_of(self.projection.apply(workable(X, self.X.dtype)))

    def _lists_of(self, points: NDArray[Any]) -> NDArray[np.int64]:
        columns, half = np.ascontiguousarray(self.means.T), 0.5 * np.einsum("ij,ij->i", self.means, self.means)
        list_of = np.empty(len(points), dtype=np.int64)

        def assign(rows: slice) -> None:
            part = points[rows].astype(np.float64, copy=False)
            list_of[rows] = (product_of_rows(part, columns) - half).argmax(axis=1)

        with one_blas_thread():
            over_blocks(len(points), _ROWS_BY_CENTRE, self.n_jobs, assign)
        return list_of

    def holding(self, X: Any) -> InvertedFile:
        """Return an inverted file of other points with the same lists; the points should fill whole lists."""
        other = changed(self, X=workable(X, self.X.dtype))
        points = self.projection.apply(other.X)
        other._fill(points, self._lists_of(points))
        return other

    def _search_enough_lists(self, sample: Sample, rows: NDArray[Any]) -> float:
        """Set how many lists around a list are candidates, and how many each point searches; return the recall so far.

        It is the share of the sample's neighbours in the searched lists.
        """
        n_lists, most = len(self.means), self.nearest_lists.shape[1]
        hits = np.zeros(most + 1)
        for row, neighbors in zip(*sample, strict=True):
            places = np.full(n_lists, most)
            places[self.nearest_lists[self.list_of[row]]] = np.arange(most)
            in_lists = np.bincount(places[self.list_of[neighbors]], minlength=most + 1)
            hits += np.minimum(np.cumsum(in_lists), self.n_neighbors)
        n_enough = np.searchsorted(hits[:most] / (self.n_neighbors * sample.rows.size), RECALL) + 1
        self.sizes = np.diff(self.starts) / self._share
        enough = [np.searchsorted(np.cumsum(self.sizes[near]), self.n_candidates) + 1 for near in self.nearest_lists]
        # A point searches the lists nearest to itself, among twice as many as its list's centre would need.
        self.n_searched = np.minimum(np.maximum(_AROUND * n_enough, enough), most)
        self.nearest_lists = self.nearest_lists[:, : self.n_searched.max()].copy()
        hits = np.zeros(self.n_searched.max() + 1)
        for row, point, neighbors in zip(sample.rows, self._seeking(rows), sample.neighbors, strict=True):
            near = self.nearest_lists[self.list_of[row], : self.n_searched[self.list_of[row]]]
            places = np.full(n_lists, hits.size - 1)
            places[near[np.argsort(self._from_means(point[None], near)[0], kind="stable")]] = np.arange(near.size)
            in_lists = np.bincount(places[self.list_of[neighbors]], minlength=hits.size)[: hits.size]
            hits += np.minimum(np.cumsum(in_lists), self.n_neighbors)
        recall = hits[:-1] / (self.n_neighbors * sample.rows.size)
        self.n_probed = int(np.searchsorted(recall, RECALL)) + 1
        return float(recall[min(self.n_probed, recall.size) - 1])

    def _recall(self, sample: Sample, rows: NDArray[Any]) -> float:
        """Return the share of the sample's neighbours that are candidates."""
        lists = self.list_of[sample.rows]
        order = np.argsort(lists, kind="stable")
        with one_blas_thread():
            candidates = self._candidates(rows[order].astype(np.float64), lists[order], None)
        found = [np.isin(sample.neighbors[row], names).sum() for row, names in zip(order, candidates, strict=True)]
        return float(np.minimum(found, self.n_neighbors).mean() / self.n_neighbors)

    def _seeking(self, points: NDArray[Any]) -> NDArray[Any]:
        """Return query points; their last coordinate, the length of the dropped components, is 0."""
        return points if self.projection.axes is None else np.column_stack([points[:, :-1], np.zeros(len(points))])

    def _from_means(self, points: NDArray[Any], lists: NDArray[Any], together: int | None = None) -> NDArray[Any]:
        """Return the squared distances to the lists' centres, minus ‖point‖²; −inf for the first list.

        With `together` rows in each product, a point's bits do not depend on the other points.
        """
        means = self.means[lists]
        products = product_of_rows(points, means.T, together=together or max(len(points), 1))
        sq_dist = np.einsum("ij,ij->i", means, means) - 2.0 * products
        sq_dist[:, 0] = -np.inf
        return sq_dist

    def of_each_other(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return each point's approximate nearest neighbours, by index, and exact squared distances.

        Both have the shape (n_samples, n_neighbors).
        """
        neighbors = self._search(self.X, None, self.order, self.list_of[self.order], np.arange(self.order.size))
        if self.points.nbytes > KEPT_BYTES:
            self.points = self.points[:0].copy()
        return neighbors

    def of_new(self, X_new: Any, own: NDArray[np.int64] | None = None) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the points nearest to each new point, ordered by index; a row's result depends on no other row.

        Parameters
        ----------
        X_new : array or csr matrix of shape (n_new, n_features)
        own : ndarray of shape (n_new,), optional
            The fitted point that each new point equals, which is left out of its neighbours; −1 for none.

        Returns
        -------
        indices : ndarray of shape (n_new, n_neighbors)
            −1 if the searched lists hold fewer points.
        sq_dist : ndarray of shape (n_new, n_neighbors)
        """
        X_new = workable(X_new, self.X.dtype)
        points = self.projection.apply(X_new).astype(np.float64)
        list_of = self._lists_of(points)
        order = np.argsort(list_of, kind="stable").astype(np.int32)
        return self._search(X_new, points, order, list_of[order], own)

    def _search(
        self,
        X: Any,
        new: NDArray[np.float64] | None,
        order: NDArray[np.int32],
        lists: NDArray[np.int64],
        own: NDArray[np.int64] | None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the neighbours of rows of X, without the point `own` of each row.

        `new` are projected new rows, None for the points themselves; `order` has the rows by their lists, `lists` these
        lists.
        """
        if len(self.points) < len(self.order):
            self._fill(self.projection.apply(self.X), self.list_of)
        shape = (order.size, self.n_neighbors)
        # Distances of new rows are the same for any number of them.
        single = new is None and order.size * self.n_neighbors > MANY_EDGES and fits_in_single(self.X)
        indices, sq_dist = np.empty(shape, dtype=np.int32), np.empty(shape, dtype=np.float32 if single else np.float64)

        # New rows are few and far apart: the more search together, the fuller are the products with a list.
        together = _ROWS_AT_ONCE if new is None else max(_ROWS_AT_ONCE, -(-order.size // effective_n_jobs(self.n_jobs)))

        def search(part: slice) -> None:
            rows, list_numbers = order[part], lists[part]
            points = self.points[part, :-1] + self.centres[list_numbers] if new is None else new[rows]
            # Products of a fixed number of rows give a row the same bits, whatever the other rows are.
            candidates = self._candidates(points, list_numbers, None if new is None else _NEW_TOGETHER)
            itself = None if own is None else own[rows]
            indices[rows], sq_dist[rows] = nearest_of(X, rows, self.X, candidates, self.n_neighbors, itself)

        # One thread searches a block of rows, so the bits are the same for any number of threads.
        with one_blas_thread():
            over_blocks(order.size, together, self.n_jobs, search)
        return indices, sq_dist

    def _candidates(
        self, points: NDArray[np.float64], lists: NDArray[np.int64], together: int | None
    ) -> NDArray[np.int32]:
        """Return candidate neighbours of points in lists; a product with a list has `together` rows, or all if None.

        ‖b − q‖² is computed from squared norms and products relative to the list's centre, where few digits cancel.
        """
        from graphcouple._numba.nearest import fill_seeking, keep_nearest

        points, dtype = self._seeking(points), self.points.dtype
        distances = np.full((len(points), self.n_candidates), np.inf, dtype=dtype)
        candidates = np.full(distances.shape, -1, dtype=np.int32)
        height = len(points) if together is None else together
        queries = np.zeros((height, points.shape[1] + 1), dtype=dtype)
        sq_norms = np.empty(height, dtype=dtype)
        queries[:, -1] = 1.0
        for k, rows in self._by_searched_list(points, lists, together):
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

    def _by_searched_list(
        self, points: NDArray[np.float64], lists: NDArray[np.int64], together: int | None
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield each list with the rows that search it: first the rows' own lists in ascending order, then others."""
        own, first, counts = np.unique(lists, return_index=True, return_counts=True)
        targets, rows = [], []
        for k, a, count in zip(own, first, counts, strict=True):
            yield int(k), np.arange(a, a + count)
            near = self.nearest_lists[k, : self.n_searched[k]]
            at, row = np.nonzero(self._nearest(points[a : a + count], near, together)[:, 1:].T)
            targets.append(near[1:][at])
            rows.append(a + row)
        others, searching = np.concatenate(targets), np.concatenate(rows)
        order = np.argsort(others, kind="stable")
        bounds = np.flatnonzero(np.diff(others[order], prepend=-1, append=-1))
        for a, b in pairwise(bounds.tolist()):
            yield int(others[order[a]]), searching[order[a:b]]

    def _nearest(self, points: NDArray[Any], near: NDArray[np.int32], together: int | None) -> NDArray[np.bool_]:
        """Return the lists that each point searches: the nearest ones that hold enough candidates."""
        if near.size <= self.n_probed:
            return np.ones((len(points), near.size), dtype=bool)
        sq_dist = self._from_means(points, near, together)
        searched = sq_dist <= np.partition(sq_dist, self.n_probed - 1, axis=1)[:, self.n_probed - 1 : self.n_probed]
        for row in np.flatnonzero(searched @ self.sizes[near] < self.n_candidates):
            order = np.argsort(sq_dist[row], kind="stable")
            n_enough = np.searchsorted(np.cumsum(self.sizes[near[order]]), self.n_candidates) + 1
            searched[row, order[:n_enough]] = True
        return searched
