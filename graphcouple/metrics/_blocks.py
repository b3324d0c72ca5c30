"""Blocks of distances, and the ranks of points by distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple.graphs import FloatArray
from graphcouple.neighbors import is_precomputed, near_origin
from graphcouple.neighbors.by_metric import as_compared
from graphcouple.neighbors.points import dense_if_far, unit_rows

Distances = Callable[..., FloatArray]

# Up to this many columns, distances are sums of squared differences, which lose no digits; beyond, products are faster.
_NARROW = 16


def distances_of(points: Any, metric: str, dtype: Any) -> Distances:
    """Return a function from rows to their distances to all points, or to the columns in its second argument.

    Euclidean distances are in `dtype`. Their unit depends on the points; no score depends on the unit.
    """
    if is_precomputed(metric):
        D = _complete(points)
        return lambda rows, columns=None: _check_block(D[rows] if columns is None else D[np.ix_(rows, columns)])
    if metric == "cosine":
        # Half the squared distances of directions are 0 for copies, and lose no digits unless rows are sparse.
        rounding = 8.0 * np.finfo(points.dtype).eps
        least = np.sqrt(rounding) if sp.issparse(points) else rounding
        directions = unit_rows(points.astype(dtype, copy=False) if dtype == np.float64 else points)
        between = _between(directions, "euclidean", dtype, scaled=False)

        def cosine(rows: NDArray[Any], columns: NDArray[Any] | None = None) -> FloatArray:
            lengths = between(rows, columns)
            lengths[lengths <= least] = 0.0
            return 0.5 * np.square(lengths)

        return cosine
    return _between(dense_if_far(points) if metric == "euclidean" else points, metric, dtype)


def _between(points: Any, metric: str, dtype: Any, scaled: bool = True) -> Distances:
    if metric != "euclidean" or sp.issparse(points):
        points = as_compared(points.astype(dtype, copy=False) if dtype == np.float64 else points, metric)
        _check_metric(points, metric)
        return lambda rows, columns=None: _check_block(
            _pairwise(points[rows], points if columns is None else points[columns], metric)
        )
    narrow = points.shape[1] <= _NARROW
    points = near_origin(points.astype(np.float64, copy=False) if narrow or dtype == np.float64 else points)
    points = of_unit_size(points) if scaled else points
    return _by_differences(points, dtype) if narrow else _by_products(points.astype(dtype, copy=False))


def of_unit_size(points: FloatArray) -> FloatArray:
    """Return points divided by a power of two, so that equal distances stay equal, whose largest entry is about 1."""
    largest = max(float(points.max()), -float(points.min()))
    return np.ldexp(points, -int(np.frexp(largest)[1])) if largest > 0 else points


def _pairwise(left: Any, right: Any, metric: str) -> FloatArray:
    from sklearn.metrics import pairwise_distances

    return pairwise_distances(left, right, metric=metric)


def _check_metric(points: Any, metric: Any) -> None:
    if not isinstance(metric, str):
        raise TypeError(f"metric must be the name of a distance, got {metric!r} of type {type(metric).__name__}.")
    try:
        _pairwise(points[:2], points[:2], metric)
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        cause = "" if "must be a str among" in reason else f" ({reason.rstrip('.')})"
        raise ValueError(
            f"metric={metric!r} cannot be used{cause}; name a distance of sklearn.metrics.pairwise_distances that "
            "takes no parameters, or pass metric='precomputed' and a square array of distances."
        ) from None


def _complete(distances: Any) -> FloatArray:
    n = distances.shape[0]
    if distances.shape[1] != n:
        raise ValueError(f"metric='precomputed' takes a square array of distances, got shape {distances.shape}.")
    if not sp.issparse(distances):
        return distances
    stored = distances.tocoo()
    if np.count_nonzero(stored.row != stored.col) < n * (n - 1):
        raise ValueError(
            "metric='precomputed' needs the distances of all pairs, but the sparse matrix lacks some; "
            "pass a full matrix, not a graph of neighbors."
        )
    return distances.toarray()


def _check_block(block: FloatArray) -> FloatArray:
    if not np.isfinite(block).all():
        raise ValueError("the metric gives NaN or infinite distances, as for rows of zeros; drop or fix those rows.")
    if block.min() < 0:
        raise ValueError(f"distances must not be negative, got {block.min():g}; check the metric or its matrix.")
    return block.astype(np.float64, copy=True)


def _by_differences(points: FloatArray, dtype: Any) -> Distances:
    from graphcouple._numba.ranks import sq_dists_by_differences

    coordinates = np.ascontiguousarray(points.T)

    def distances(rows: NDArray[Any], columns: NDArray[Any] | None = None) -> FloatArray:
        targets = coordinates if columns is None else np.ascontiguousarray(coordinates[:, columns])
        block = np.empty((rows.size, targets.shape[1]), dtype=points.dtype)
        sq_dists_by_differences(points[rows], targets, block)
        return np.sqrt(block, out=block).astype(dtype, copy=False)

    return distances


def _by_products(points: FloatArray) -> Distances:
    from graphcouple._numba.ranks import sq_dists_from_products

    sq_norms = np.einsum("ij,ij->i", points, points)
    tol = points.dtype.type(np.sqrt(np.finfo(points.dtype).eps))

    def distances(rows: NDArray[Any], columns: NDArray[Any] | None = None) -> FloatArray:
        sources = points[rows]
        targets, target_sq_norms = (points, sq_norms) if columns is None else (points[columns], sq_norms[columns])
        block = sources @ targets.T
        sq_dists_from_products(sources, sq_norms[rows], targets, target_sq_norms, tol, block)
        return np.sqrt(block, out=block)

    return distances


def orders_of(distances: FloatArray, own: NDArray[np.bool_] | tuple[Any, ...]) -> NDArray[np.int32]:
    """Return the columns of each row from near to far, ties by column number, the entries selected by `own` last.

    In double precision, distances that differ by less than 2e-13 of their size are ties, but for one in a thousand.
    """
    from graphcouple._numba.ranks import order_rows

    # The bits of non-negative floats sort like the floats; adding zero turns −0 into 0.
    away = distances + distances.dtype.type(0.0)
    away[own] = np.inf
    orders = np.empty(away.shape, dtype=np.int32)
    order_rows(away.view(f"u{away.itemsize}"), orders)
    return orders


def ranks_of(orders: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the rank, from 1, of each column in its row."""
    from graphcouple._numba.ranks import ranks_of_orders

    ranks = np.empty(orders.shape, dtype=np.int32)
    ranks_of_orders(orders, ranks)
    return ranks
