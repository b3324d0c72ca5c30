"""Approximate neighbours by any metric: PyNNDescent's search in a graph of neighbours.

PyNNDescent has many metrics of dense and sparse points, and finds about 99 % of the true neighbours. Its results depend
on the number of threads and, in a batch, on the order of rows. So one thread builds the graph and searches new rows one
at a time: the same points then have the same neighbours on every machine and in every batch.
"""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple.neighbors.points import largest_of_rows

_ALIKE = ("braycurtis", "canberra", "chebyshev", "correlation", "dice", "hamming", "jaccard", "manhattan")
# PyNNDescent's "russellrao" gives equal rows a distance of 0, and its "yule" takes no sparse points.
_OTHER = ("minkowski", "rogerstanimoto", "sokalmichener")

METRICS = {name: name for name in (*_ALIKE, *_OTHER)} | {"cityblock": "manhattan", "l1": "manhattan"}
"""Metrics by their names in scikit-learn, with PyNNDescent's names."""

# Largest entry for PyNNDescent, which works in single precision.
_LARGEST = 1e30

# Entries far from 0 lose digits in single precision. Up to this share of a column's deviation, neighbours stay.
_LOST = 1e-3

# Powers of single precision beyond this range overflow or are 0, and PyNNDescent sums differences to the power p.
_LARGEST_POWER, _SAFE_POWERS = 4.0, (1e-20, 1e30)

# Two threads must not use numba's default threading layer at once.
_LOCK = threading.Lock()


class NeighborGraph:
    """PyNNDescent's index: a neighbour graph in which it searches the neighbours of its points and of new points.

    The metric is one of `METRICS`, and `params` are its further arguments. See Dong, Moses and Li (2011), Efficient
    k-nearest neighbor graph construction for generic similarity measures.
    """

    def __init__(self, X: Any, metric: str, params: dict[str, Any] | None, n_neighbors: int) -> None:
        from pynndescent import NNDescent

        self.n_neighbors = n_neighbors
        with _LOCK, warnings.catch_warnings():
            # The caller completes rows with too few neighbours.
            warnings.simplefilter("ignore")
            options: Any = {"metric": METRICS[metric], "metric_kwds": params or {}, "random_state": 0, "n_jobs": 1}
            self.index = NNDescent(_single(X), n_neighbors=n_neighbors + 1, **options)

    def of_each_other(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return each point's nearest other points, −1 where too few were found, and their distances."""
        indices, dist = self.index.neighbor_graph
        # A point usually finds itself first, but may miss itself if many points coincide with it.
        own = indices == np.arange(len(indices))[:, None]
        own[~own.any(axis=1), -1] = True
        others, dist = (array[~own].reshape(len(indices), -1) for array in (indices, dist))
        return others.astype(np.int32), dist.astype(np.float64)

    def of_new(self, X_new: Any) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the points nearest to each new point, −1 where too few were found, and their distances."""
        with np.errstate(over="ignore"):
            queries = _single(X_new)
        shape = (queries.shape[0], self.n_neighbors)
        indices, dist = np.empty(shape, dtype=np.int32), np.empty(shape)
        with _LOCK:
            for row in range(len(indices)):
                neighbors = self.index.query(queries[row : row + 1], k=self.n_neighbors)
                indices[row], dist[row] = neighbors[0][0], neighbors[1][0]
        # Where none was found, PyNNDescent names the last point of its own order.
        last = getattr(self.index, "_vertex_order", [-1])[-1]
        repeated = (np.diff(np.sort(indices, axis=1), axis=1) == 0).any(axis=1)
        indices[repeated | (indices[:, -1] == last) | ~(largest_of_rows(queries) < _LARGEST)] = -1
        return indices, dist


def suits(X: Any, metric: Any, params: dict[str, Any] | None) -> bool:
    """Return whether PyNNDescent has the metric with these arguments, and the points fit in single precision."""
    if not isinstance(metric, str) or metric not in METRICS or set(params or ()) - {"p"}:
        return False
    entries, p = X.data if sp.issparse(X) else X, (params or {}).get("p", 2.0)
    largest = float(max(abs(entries.min()), abs(entries.max()))) if entries.size else 1.0
    if not largest < _LARGEST or (metric == "hamming" and (entries != entries.astype(np.float32)).any()):
        return False
    if metric == "minkowski" and not (p <= _LARGEST_POWER and _SAFE_POWERS[0] < largest**p < _SAFE_POWERS[1]):
        return False
    return sp.issparse(X) or X.dtype.kind == "b" or not _loses_digits(X)


def _loses_digits(X: NDArray[Any]) -> bool:
    """Return whether rounding to single precision moves entries by much of a column's deviation."""
    # Rounding moves a constant column as a whole.
    lost = np.ptp(X - X.astype(np.float32), axis=0)
    return bool((lost > _LOST * X.std(axis=0, dtype=np.float64)).any())


def _single(X: Any) -> Any:
    if not sp.issparse(X):
        return np.ascontiguousarray(X, dtype=np.float32)
    matrix = sp.csr_matrix(X, dtype=np.float32, copy=True)
    # An entry of 0 that is stored would count as true.
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix
