"""Squared distances between points: all pairs, nearest neighbours, or the edges of a given graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._validation import check_integer
from graphcouple.graphs import FloatArray, IntArray, Support, as_csr, edges_of, off_diagonal

_DENSE_ENTRIES = 50_000_000
_EXACT_WORK = 2e10
_TREE_DIMS = 4
_APPROXIMATE_METRICS = ("euclidean", "cosine")

SEARCHES = ("auto", "exact", "approximate")
"""How nearest neighbours are searched."""


def as_points(X: Any, name: str = "X", at_least: int = 2) -> Any:
    """Return `X` as a finite 2-D float array, or as a finite csr matrix.

    Raises
    ------
    TypeError
        When `X` is not numeric.
    ValueError
        When `X` is not 2-D, has fewer rows than needed, no columns, or an entry that is NaN or infinite.
    """
    if sp.issparse(X):
        X = X.tocsr()
        if X.dtype.kind not in "iufb":
            raise TypeError(f"{name} must hold real numbers, got dtype {X.dtype}.")
        entries = X.data
    else:
        try:
            X = np.asarray(X)
            if X.dtype.kind in "cmM":
                raise TypeError
            if X.dtype.kind not in "iufb":
                X = X.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be numeric; encode or drop its other columns first.") from None
        entries = X
    if X.ndim != 2 or X.shape[1] < 1:
        raise ValueError(f"{name} must have shape (n_samples, n_features), got {X.shape}.")
    if X.shape[0] < at_least:
        raise ValueError(f"{name} must have at least {at_least} rows to relate, got n_samples = {X.shape[0]}.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
        entries = X.data if sp.issparse(X) else X
    if not np.isfinite(entries).all():
        raise ValueError(f"{name} holds NaN or infinity; impute or drop those entries first.")
    _check_scale(entries, name)
    return X


def _check_scale(entries: FloatArray, name: str) -> None:
    """Raise where squared distances would overflow, or vanish though the points differ."""
    if not entries.size:
        return
    low, high = float(entries.min()), float(entries.max())
    if max(-low, high) > 1e150:
        raise ValueError(f"{name} has entries of up to {max(-low, high):.3g}, whose squares overflow; rescale it.")
    if 0.0 < high - low < 1e-150:
        raise ValueError(f"{name} has a range of only {high - low:.3g}, whose square underflows; rescale it.")


def _check_distances(values: FloatArray) -> FloatArray:
    if (values < 0).any():
        raise ValueError("precomputed distances must not be negative; pass distances, not similarities.")
    return np.square(values, dtype=np.float64)


def _all_pairs(X: Any, metric: str) -> FloatArray:
    if metric == "precomputed":
        return _check_distances(off_diagonal(X))
    if metric == "euclidean" and (not sp.issparse(X) or X.shape[0] * X.shape[1] <= _DENSE_ENTRIES):
        from scipy.spatial.distance import cdist

        X = X.toarray() if sp.issparse(X) else X
        # Differences first, then squares: duplicates are at distance 0 exactly.
        return off_diagonal(cdist(X, X, "sqeuclidean"))
    from sklearn.metrics import pairwise_distances

    return np.square(off_diagonal(pairwise_distances(X, metric=metric)), dtype=np.float64)


def all_pairs(X: Any, metric: str = "euclidean") -> tuple[Support, FloatArray]:
    """Return the support of all ordered pairs and their squared distances.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Or a square array of distances for ``metric="precomputed"``.
    metric : str, default="euclidean"
        Any metric of `sklearn.metrics.pairwise_distances`.

    Returns
    -------
    support : Support
        All n(n − 1) ordered pairs.
    sq_dist : ndarray of shape (n(n − 1),)
        Squared distances, float64.

    Raises
    ------
    ValueError
        When precomputed distances are negative or not square.
    """
    if metric == "precomputed":
        if sp.issparse(X):
            return precomputed_graph(X, None)
        if X.shape[0] != X.shape[1]:
            raise ValueError(f"precomputed distances must be square, got shape {X.shape}.")
    return Support.all_pairs(X.shape[0]), _all_pairs(X, metric)


def precomputed_graph(distances: Any, n_neighbors: int | None) -> tuple[Support, FloatArray]:
    """Return the stored edges of a sparse distance graph, or each row's `n_neighbors` shortest.

    Raises
    ------
    ValueError
        When a row stores fewer edges than `n_neighbors`, or a distance is negative.
    """
    support, dist = edges_of(as_csr(distances, "X"))
    sq_dist = _check_distances(dist)
    if n_neighbors is None:
        return support, sq_dist
    counts = np.diff(support.indptr)
    if (counts < n_neighbors).any():
        short = int(np.argmax(counts < n_neighbors))
        raise ValueError(
            f"row {short} of the precomputed graph stores {counts[short]} distances, fewer than "
            f"n_neighbors={n_neighbors}; store more of them or lower n_neighbors."
        )
    by_row = np.lexsort((sq_dist, support.rows))
    rank = np.arange(support.n_edges) - np.repeat(support.indptr[:-1], counts)
    keep = np.zeros(support.n_edges, dtype=bool)
    keep[by_row[rank < n_neighbors]] = True
    return support.select(keep), sq_dist[keep]


def nearest_neighbors(
    X: Any, n_neighbors: int, metric: str = "euclidean", n_jobs: int | None = None, search: str = "auto"
) -> tuple[Support, FloatArray]:
    """Return the graph of each point's nearest other points, with squared distances.

    Few points are searched exactly. Of many, by the Euclidean or cosine metric, an inverted file on principal
    components finds about 97 % of the true neighbours (and others nearly as near); their distances are exact.
    Points of at most four columns, and other metrics, are searched exactly whatever their number.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
        Or distances for ``metric="precomputed"``: a square array, or a sparse
        matrix whose stored entries are the known distances.
    n_neighbors : int
        How many others; the point itself is not counted.
    metric : str, default="euclidean"
        Any metric of `sklearn.neighbors.NearestNeighbors`.
    n_jobs : int or None, default=None
        Threads; None means every core. The result does not depend on it.
    search : {"auto", "exact", "approximate"}, default="auto"
        "auto" is exact as long as that takes about a second.

    Returns
    -------
    support : Support
        `n_neighbors` edges a row.
    sq_dist : ndarray of shape (n_samples * n_neighbors,)
        Squared distances, float64.

    Raises
    ------
    ValueError
        When `n_neighbors` is not below the number of points, or an approximate search is asked of a metric that has
        none.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.neighbors import nearest_neighbors
    >>> support, sq_dist = nearest_neighbors(np.array([[0.0], [1.0], [3.0]]), 1)
    >>> support.indices.tolist(), sq_dist.tolist()
    ([1, 0, 1], [1.0, 1.0, 4.0])
    """
    n = X.shape[0]
    k = check_integer("n_neighbors", n_neighbors, 1)
    if k >= n:
        raise ValueError(f"n_neighbors={k} must be below the number of points, n_samples = {n}.")
    if metric == "precomputed" and sp.issparse(X):
        return precomputed_graph(X, k)
    if _approximately(X, metric, search):
        return _approximate(X, k, metric, n_jobs)
    from sklearn.neighbors import NearestNeighbors

    if metric == "precomputed":
        _check_distances(X)
    if metric == "euclidean" and not sp.issparse(X):
        X = near_origin(X)
    finder = NearestNeighbors(n_neighbors=k, metric=metric, n_jobs=-1 if n_jobs is None else n_jobs).fit(X)
    dist, found = finder.kneighbors()
    order = np.argsort(found, axis=1)
    support = _regular_support(np.take_along_axis(found, order, axis=1))
    if metric == "euclidean" and not sp.issparse(X):
        # The search expands the square, which leaves duplicates at a small distance that is not zero.
        return support, graph_distances(X, support, n_jobs=n_jobs)
    return support, np.square(np.take_along_axis(dist, order, axis=1).ravel(), dtype=np.float64)


def _regular_support(indices: IntArray) -> Support:
    """Return the support of a graph with the same number of edges in each row, from their sorted ends."""
    n, k = indices.shape
    dtype = np.int32 if n * k <= np.iinfo(np.int32).max else np.int64
    return Support(np.arange(0, n * k + 1, k, dtype=dtype), indices.ravel().astype(dtype, copy=False))


def _approximately(X: Any, metric: str, search: str) -> bool:
    if search not in SEARCHES:
        raise ValueError(f"search must be one of {sorted(SEARCHES)}, got {search!r}.")
    if search == "approximate" and metric not in _APPROXIMATE_METRICS:
        raise ValueError(
            f"search='approximate' is for the metrics {' and '.join(_APPROXIMATE_METRICS)}, got metric={metric!r}; "
            "use search='auto', or metric='precomputed' with a sparse graph of distances."
        )
    if search != "auto":
        return search == "approximate"
    n, n_features = X.shape
    return metric in _APPROXIMATE_METRICS and n_features > _TREE_DIMS and n * n * n_features > _EXACT_WORK


def _approximate(X: Any, n_neighbors: int, metric: str, n_jobs: int | None) -> tuple[Support, FloatArray]:
    from graphcouple._inverted_file import inverted_file_neighbors

    if metric == "cosine":
        X = _unit_rows(X)
    elif not sp.issparse(X):
        X = near_origin(X)
    indices, sq_dist = inverted_file_neighbors(X, n_neighbors, n_jobs)
    if metric == "cosine":
        # ‖u − v‖² of unit vectors is twice their cosine distance.
        sq_dist = np.square(0.5 * sq_dist)
    return _regular_support(indices), sq_dist.ravel()


def _unit_rows(X: Any) -> Any:
    """Return rows of length 1; rows of zeros get a direction of their own, at distance 1 of every other."""
    from sklearn.preprocessing import normalize

    # Whoever normalises takes very short rows for zeros.
    X = normalize(X / (float(abs(X).max()) or 1.0))
    zero = np.flatnonzero((np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else X.any(axis=1)) == 0)
    if not zero.size:
        return X
    aside = sp.csr_array((np.ones(zero.size, X.dtype), (zero, np.zeros_like(zero))), shape=(X.shape[0], 1))
    return sp.hstack([X, aside], format="csr") if sp.issparse(X) else np.hstack([X, aside.toarray()])


def near_origin(X: FloatArray) -> FloatArray:
    """Centre points far from the origin, where expanding the square would lose their differences.

    Others are left alone, and the shift is a multiple of a power of two below the points' spread: whole numbers keep
    their exact distances, and ties.
    """
    shift = _shift(X)
    return X - shift.astype(X.dtype) if shift.any() else X


def _shift(X: FloatArray) -> FloatArray:
    mean = X.mean(axis=0, dtype=np.float64)
    # A part at a time: whole, the deviations would take as much memory as the points, or twice as much.
    parts = (X[a : a + 2048] - mean for a in range(0, X.shape[0], 2048))
    variance = sum(float(np.vdot(part, part)) for part in parts) / X.shape[0]
    if float(mean @ mean) <= 1e4 * variance:
        return np.zeros_like(mean)
    spread = np.sqrt(variance / X.shape[1])
    unit = 2.0 ** np.floor(np.log2(spread)) if spread > 0 else 0.0
    return np.rint(mean / unit) * unit if 0 < unit < np.inf else mean


def graph_distances(X: Any, support: Support, metric: str = "euclidean", n_jobs: int | None = None) -> FloatArray:
    """Return the squared distances of the edges of a given support.

    Raises
    ------
    ValueError
        When a precomputed sparse graph lacks one of the edges.
    """
    if metric == "precomputed":
        if sp.issparse(X):
            known, dist = edges_of(as_csr(X, "X"))
            at = known.find(support.rows, support.indices)
            if (at < 0).any():
                e = int(np.argmax(at < 0))
                raise ValueError(
                    f"the precomputed graph stores no distance for the edge ({support.rows[e]}, "
                    f"{support.indices[e]}) of the edge prior; store it or drop the edge."
                )
            return _check_distances(dist[at])
        return _check_distances(X[support.rows, support.indices])
    out = np.empty(support.n_edges)
    if metric == "euclidean" and not sp.issparse(X):
        from graphcouple._numba.pairs import edge_sq_dists
        from graphcouple._numba.threads import over_rows

        over_rows(support.n_nodes, n_jobs, edge_sq_dists, np.ascontiguousarray(X), support.indptr, support.indices, out)
        return out
    from sklearn.metrics.pairwise import paired_distances

    chunk = max(1, 2**24 // X.shape[1])
    for a in range(0, support.n_edges, chunk):
        part = slice(a, a + chunk)
        out[part] = _paired(X[support.rows[part]], X[support.indices[part]], metric, paired_distances)
    return out


def neighbors_among(
    X_new: Any, X: Any, n_neighbors: int | None, metric: str = "euclidean", n_jobs: int | None = None
) -> tuple[Support, FloatArray]:
    """Return the nearest points of `X` to each of other points, with squared distances.

    Parameters
    ----------
    X_new : array or sparse matrix of shape (n_new, n_features)
        Or their distances to the points of `X`, for ``metric="precomputed"``.
    X : array or sparse matrix of shape (n_samples, n_features)
    n_neighbors : int or None
        None means all of `X`.
    metric : str, default="euclidean"
    n_jobs : int or None, default=None

    Returns
    -------
    support : Support
        One row for each new point; its columns are points of `X`.
    sq_dist : ndarray of shape (n_edges,)
        Zero where two points coincide; of metrics other than the Euclidean, below 1e-12 of the largest distance.
    """
    from sklearn.neighbors import NearestNeighbors

    if metric != "precomputed" and X_new.shape[1] != X.shape[1]:
        raise ValueError(f"X_new has {X_new.shape[1]} columns, but X has {X.shape[1]}.")
    n = X.shape[0]
    k = n if n_neighbors is None else min(n_neighbors, n)
    if metric == "euclidean" and not sp.issparse(X) and not sp.issparse(X_new):
        shift = _shift(X)
        X, X_new = X - shift.astype(X.dtype), X_new - shift.astype(X_new.dtype)
    n_new = X_new.shape[0]
    dtype = np.int32 if n_new * k <= np.iinfo(np.int32).max else np.int64
    indptr = np.arange(0, n_new * k + 1, k, dtype=dtype)
    search = NearestNeighbors(n_neighbors=k, metric=metric, n_jobs=-1 if n_jobs is None else n_jobs).fit(X)
    dist, found = search.kneighbors(X_new)
    order = np.argsort(found, axis=1)
    support = Support(indptr, np.take_along_axis(found, order, axis=1).ravel().astype(dtype))
    if metric != "euclidean":
        known = np.square(np.take_along_axis(dist, order, axis=1).ravel(), dtype=np.float64)
        return support, np.where(known > 1e-24 * known.max(), known, 0.0)
    # The search expands the square, which leaves coincident points at a small distance that is not zero.
    out = np.empty(support.n_edges)
    chunk = max(1, 2**24 // X.shape[1])
    for a in range(0, support.n_edges, chunk):
        part = slice(a, a + chunk)
        out[part] = _paired(X_new[support.rows[part]], X[support.indices[part]], metric, None)
    return support, out


def _paired(left: Any, right: Any, metric: str, paired_distances: Any) -> FloatArray:
    if metric == "euclidean":
        difference = left - right
        if not sp.issparse(difference):
            return np.einsum("ij,ij->i", difference, difference, dtype=np.float64)
        return np.asarray(difference.multiply(difference).sum(axis=1), dtype=np.float64).ravel()
    if sp.issparse(left):
        left, right = left.toarray(), right.toarray()
    try:
        return np.square(paired_distances(left, right, metric=metric), dtype=np.float64)
    except ValueError as error:
        raise ValueError(
            f"metric={metric!r} is not available along the edges of an edge prior; pass metric='precomputed' distances."
        ) from error
