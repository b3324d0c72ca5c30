"""How much of the input's structure an embedding keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._validation import check_integer
from graphcouple.graphs import FloatArray
from graphcouple.neighbors import as_points, near_origin

_BLOCK_ENTRIES = 8_000_000


def k_ary_preservation(X: Any, Z: Any, K: int | Sequence[int], metric: str = "euclidean") -> float | FloatArray:
    """Return R(K), the agreement of K-ary neighbourhoods, rescaled so that 1 is perfect and 0 is chance.

    With Q(K) = (1/nK) Σ_i |N_X^K(i) ∩ N_Z^K(i)| over the K nearest other points of each point in X and in Z,

        R(K) = ((n − 1) Q(K) − K) / (n − 1 − K).

    Small K asks for local structure, K = n/4 or n/2 for global structure. Exact, in O(n) memory, on every core; among
    points at the same distance, those with the smaller index count as nearer.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    Z : array of shape (n, q)
    K : int or sequence of int
        From 1 to n − 2.
    metric : str, default="euclidean"
        The distance of `X`: any of `sklearn.metrics.pairwise_distances`, or "precomputed" for a square array of
        distances. Embeddings have Euclidean distances.

    Returns
    -------
    float, or ndarray of shape (len(K),)

    Raises
    ------
    TypeError, ValueError
        When an array is not numeric or not finite, the numbers of rows differ, or K is out of range.

    References
    ----------
    Lee et al. (2013), Type 1 and 2 mixtures of Kullback–Leibler divergences as cost functions in dimensionality
    reduction; graph-coupling paper, equation 23.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.metrics.k_ary_preservation(X, 2.0 * X, K=30)
    1.0
    >>> bool(gc.metrics.k_ary_preservation(X, X[:, 2:], K=30) > 0.5)
    True
    """
    from sklearn.metrics import pairwise_distances

    points, embedding = as_points(X), near_origin(as_points(Z, "Z"))
    n = points.shape[0]
    if embedding.shape[0] != n:
        raise ValueError(f"Z has {embedding.shape[0]} rows, but X has {n}.")
    sizes = [check_integer("K", k, 1) for k in np.atleast_1d(np.asarray(K, dtype=object)).ravel()]
    if not sizes:
        raise ValueError("K must name at least one number of neighbors.")
    if max(sizes) > n - 2:
        raise ValueError(f"K={max(sizes)} must be at most n − 2 = {n - 2}: all other points are neighbors otherwise.")
    if metric == "euclidean" and not sp.issparse(points):
        points = near_origin(points)

    whole = metric == "precomputed"

    def shared_from(start: int) -> list[int]:
        rows = slice(start, min(start + step, n))
        given = points[rows].copy() if whole else pairwise_distances(points[rows], points, metric=metric)
        before = _to_others(given, start)
        after = _to_others(pairwise_distances(embedding[rows], embedding), start)
        return [int((_nearest(before, k) & _nearest(after, k)).sum()) for k in sizes]

    step = max(1, _BLOCK_ENTRIES // n)
    blocks = joblib.Parallel(n_jobs=-1, prefer="threads")(joblib.delayed(shared_from)(a) for a in range(0, n, step))
    shared = np.sum(blocks, axis=0)
    k = np.array(sizes, dtype=np.float64)
    R = ((n - 1) * shared / (n * k) - k) / (n - 1 - k)
    return float(R[0]) if np.ndim(K) == 0 else R


def _to_others(distances: FloatArray, start: int) -> FloatArray:
    """Put each point itself, row i at column start + i, out of reach."""
    rows = np.arange(distances.shape[0])
    distances[rows, start + rows] = np.inf
    return distances


def _nearest(distances: FloatArray, k: int) -> NDArray[np.bool_]:
    """Return which columns are the k nearest of each row; ties go to the smaller index."""
    furthest = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    nearest = distances <= furthest
    crowded = np.flatnonzero(np.count_nonzero(nearest, axis=1) > k)
    if crowded.size:
        inside = distances[crowded] < furthest[crowded]
        tied = distances[crowded] == furthest[crowded]
        room = k - np.count_nonzero(inside, axis=1)
        nearest[crowded] = inside | (tied & (np.cumsum(tied, axis=1) <= room[:, None]))
    return nearest
