"""Approximate nearest neighbours: candidates from an inverted file on principal components, ranked by exact distances.

Points are projected on their leading principal components; the length of what
the projection leaves out is one more coordinate of the points searched, and
zero for the point that searches, which makes distances right on average. faiss
finds candidates in the lists nearest to a point; their exact distances decide.
How many lists and candidates that takes is found on a sample of points whose
true neighbours are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._numba.threads import effective_n_jobs, over_rows

RECALL = 0.96
"""The share of true neighbours aimed at, on a sample of points."""

_EXPLAINED = 0.9
_MOST_COMPONENTS = 96
_MOST_CANDIDATES = 4
_SAMPLE = 256
_SAMPLE_ENTRIES = 2**25
_TRAINING_ROWS = 20_000
_WIDE = 8000
_POINTS_A_LIST = 256
_MOST_LISTS = 4096
_CHUNK_ENTRIES = 2**24


class _Sample(NamedTuple):
    """Some rows, their squared distances to all points (infinite to themselves), and that of the k-th nearest."""

    rows: NDArray[np.int64]
    sq_dist: NDArray[Any]
    kth: NDArray[Any]


def inverted_file_neighbors(
    X: Any, n_neighbors: int, n_jobs: int | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Return each point's nearest other points, nearly all of them right.

    Parameters
    ----------
    X : array or csr matrix of shape (n_samples, n_features)
        Points, near the origin.
    n_neighbors : int
    n_jobs : int or None, default=None
        Threads; the result does not depend on it.

    Returns
    -------
    indices : ndarray of shape (n_samples, n_neighbors)
        Ordered by index.
    sq_dist : ndarray of shape (n_samples, n_neighbors)
        Exact squared distances of these pairs.

    References
    ----------
    Douze et al. (2024), The Faiss library.
    """
    if sp.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    largest = max(float(abs(X.min())), float(abs(X.max())))
    if X.dtype == np.float32 and not 1e-12 < largest < 1e12:
        # Squares would overflow or vanish in single precision.
        X = X.astype(np.float64)
    with _faiss_threads(n_jobs):
        sample = _sample(X, n_neighbors)
        file = _InvertedFile(*_projected(X))
        n_candidates = file.candidates_needed(sample, n_neighbors)
        if n_candidates is None and sp.issparse(X):
            n_candidates = _MOST_CANDIDATES * n_neighbors
        elif n_candidates is None:
            file = _InvertedFile(_unprojected(X), projected=False)
            n_candidates = n_neighbors
        # Each point finds itself too.
        n_candidates = min(max(n_candidates, n_neighbors + 8), X.shape[0])
        file.search_enough_lists(sample, n_neighbors, n_candidates)
        del sample
        return _search(X, file, n_neighbors, n_candidates, n_jobs)


class _InvertedFile:
    """Points in lists around centres found by k-means; a search looks into the lists of the nearest centres.

    Of projected points the last coordinate is the length of what the projection leaves out.
    """

    def __init__(self, points: NDArray[np.float32], projected: bool) -> None:
        import faiss

        n, n_dims = points.shape
        n_lists = int(np.clip(2 ** round(np.log2(n / _POINTS_A_LIST)), 1, _MOST_LISTS))
        self.points = points
        self.projected = projected
        self.index = faiss.IndexIVFFlat(faiss.IndexFlatL2(n_dims), n_dims, n_lists)
        self.index.cp.niter = 8
        self.index.cp.max_points_per_centroid = 64
        self.index.cp.min_points_per_centroid = 1
        self.index.train(points)
        self.index.add(points)

    def by_list(self) -> NDArray[np.int64]:
        """Return all points, list by list."""
        return np.argsort(self.index.quantizer.search(self.points, 1)[1][:, 0], kind="stable")

    def candidates(self, rows: NDArray[np.int64], n_candidates: int) -> NDArray[np.int64]:
        """Return the candidate neighbours of some points, nearest first; −1 where there are no more."""
        seeking = self.points[rows]
        if self.projected:
            seeking[:, -1] = 0.0
        return self.index.search(seeking, n_candidates)[1]

    def candidates_needed(self, sample: _Sample, n_neighbors: int) -> int | None:
        """Return how many candidates hold the true neighbours if every list is searched; None when too many would."""
        self.index.nprobe = self.index.nlist
        found = self.candidates(sample.rows, _MOST_CANDIDATES * n_neighbors)
        enough = np.flatnonzero(_recall(sample, found, n_neighbors) >= 0.5 * (1.0 + RECALL))
        return int(enough[0]) + 1 if enough.size else None

    def search_enough_lists(self, sample: _Sample, n_neighbors: int, n_candidates: int) -> None:
        """Set how many lists to search, so that the sample's neighbours are found."""
        n_lists = 4
        while n_lists < self.index.nlist:
            self.index.nprobe = n_lists
            if _recall(sample, self.candidates(sample.rows, n_candidates), n_neighbors)[-1] >= RECALL:
                return
            n_lists += max(1, n_lists // 5)
        self.index.nprobe = self.index.nlist


def _search(
    X: Any, file: _InvertedFile, n_neighbors: int, n_candidates: int, n_jobs: int | None
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    n = X.shape[0]
    indices, sq_dist = np.empty((n, n_neighbors), dtype=np.int32), np.empty((n, n_neighbors))
    counts = np.empty(n, dtype=np.int32)
    # Points of one list have much the same neighbours: taken together, they find them in the cache.
    order = file.by_list()
    chunk = max(1, _CHUNK_ENTRIES // n_candidates)
    for a in range(0, n, chunk):
        rows = order[a : a + chunk]
        candidates = file.candidates(rows, n_candidates).astype(np.int32)
        _rank(X, rows, candidates, indices, sq_dist, counts, n_jobs)
    short = np.flatnonzero(counts < n_neighbors)
    for a in range(0, short.size, _SAMPLE):
        rows = short[a : a + _SAMPLE]
        exact = _sq_dists(X, rows)
        nearest = np.argpartition(exact, n_neighbors - 1, axis=1)[:, :n_neighbors].astype(np.int32)
        _rank(X, rows, nearest, indices, sq_dist, counts, n_jobs)
    return indices, sq_dist


def _rank(
    X: Any,
    rows: NDArray[np.int64],
    candidates: NDArray[np.int32],
    indices: NDArray[np.int32],
    sq_dist: NDArray[np.float64],
    counts: NDArray[np.int32],
    n_jobs: int | None,
) -> None:
    """Fill the nearest candidates of some rows, their exact squared distances, and how many there are."""
    from graphcouple._numba.nearest import nearest_candidates, nearest_sparse_candidates

    if sp.issparse(X):
        csr = (X.indptr, X.indices, X.data)
        over_rows(rows.size, n_jobs, nearest_sparse_candidates, rows, *csr, candidates, indices, sq_dist, counts)
    else:
        over_rows(rows.size, n_jobs, nearest_candidates, rows, X, candidates, indices, sq_dist, counts)


@contextmanager
def _faiss_threads(n_jobs: int | None) -> Iterator[None]:
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(effective_n_jobs(n_jobs))
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def _sq_dists(X: Any, rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return the squared distances of some rows to all points, infinite to themselves."""
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    product = X[rows] @ X.T
    product = product.toarray() if sp.issparse(product) else product
    product *= -2.0
    product += norms[rows][:, None]
    product += norms
    product[np.arange(rows.size), rows] = np.inf
    return product


def _sample(X: Any, n_neighbors: int) -> _Sample:
    n = X.shape[0]
    size = min(n, int(np.clip(_SAMPLE_ENTRIES // n, 64, _SAMPLE)))
    rows = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
    sq_dist = _sq_dists(X, rows)
    kth = np.partition(sq_dist, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    # Ties, and distances that expanding the square cannot tell apart, are as good as each other.
    return _Sample(rows, sq_dist, kth + 1e-5 * np.abs(kth) + 1e-6 * float(np.abs(kth).mean()))


def _recall(sample: _Sample, found: NDArray[Any], n_neighbors: int) -> NDArray[np.float64]:
    """Return the mean share of true neighbours among each row's first candidates, for every number of them."""
    sq_dist = np.take_along_axis(sample.sq_dist, np.maximum(found, 0), axis=1)
    right = (sq_dist <= sample.kth[:, None]) & (found >= 0)
    return np.minimum(np.cumsum(right, axis=1), n_neighbors).mean(axis=0) / n_neighbors


def _projected(X: Any) -> tuple[NDArray[np.float32], bool]:
    """Return points on their leading principal components with the length of the rest, or as they are if narrow."""
    if X.shape[1] <= _MOST_COMPONENTS:
        return _unprojected(X), False
    mean, axes = _principal_axes(X)
    n_components = axes.shape[1]
    points = np.empty((X.shape[0], n_components + 1), dtype=np.float32)
    on_axes = np.asarray(X @ axes) - mean @ axes
    norms = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    lengths = norms - 2.0 * np.asarray(X @ mean) + float(mean @ mean)
    left = np.maximum(lengths - np.einsum("ij,ij->i", on_axes, on_axes), 0.0)
    # Single precision holds any unit of length once it is gone.
    unit = float(np.sqrt(lengths.mean())) or 1.0
    points[:, :n_components] = on_axes / unit
    points[:, n_components] = np.sqrt(left) / unit
    return points, True


def _principal_axes(X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a mean and as many leading axes as explain most of the variance; none is subtracted from sparse points."""
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(X.shape[0], min(_TRAINING_ROWS, X.shape[0]), replace=False))
    part = X[rows]
    if sp.issparse(X):
        from sklearn.decomposition import TruncatedSVD

        svd = TruncatedSVD(_MOST_COMPONENTS, random_state=0).fit(part)
        return np.zeros(X.shape[1], dtype=X.dtype), np.ascontiguousarray(svd.components_.T.astype(X.dtype))
    mean = part.mean(axis=0, dtype=np.float64).astype(X.dtype)
    part = part - mean
    if X.shape[1] > _WIDE:
        from sklearn.utils.extmath import randomized_svd

        _, lengths, rows_of_axes = randomized_svd(part, _MOST_COMPONENTS, random_state=0)
        values, axes, total = np.square(lengths), rows_of_axes.T, float(np.square(part).sum())
    else:
        values, axes = np.linalg.eigh(part.T @ part)
        values, axes, total = values[::-1], axes[:, ::-1], float(values.sum())
    explained = np.cumsum(values[:_MOST_COMPONENTS]) / (total or 1.0)
    n_components = min(int(np.searchsorted(explained, _EXPLAINED)) + 1, _MOST_COMPONENTS)
    return mean, np.ascontiguousarray(axes[:, :n_components].astype(X.dtype))


def _unprojected(X: Any) -> NDArray[np.float32]:
    dense = X.toarray() if sp.issparse(X) else X
    centred = dense - dense.mean(axis=0)
    unit = float(np.abs(centred).max()) or 1.0
    return np.ascontiguousarray(centred / unit, dtype=np.float32)
