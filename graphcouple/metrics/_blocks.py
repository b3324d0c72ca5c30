"""Blocks of distances, and the orders of points in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple.graphs import FloatArray
from graphcouple.neighbors import near_origin

Distances = Callable[..., FloatArray]

_NARROW = 16


def distances_of(points: Any, metric: str, dtype: Any) -> Distances:
    """Return what computes the distances of rows to all points, or to the points named as its second argument."""
    from sklearn.metrics import pairwise_distances

    if metric == "precomputed":
        if points.shape[0] != points.shape[1]:
            raise ValueError(f"metric='precomputed' takes a square array of distances, got shape {points.shape}.")
        given = points.toarray() if sp.issparse(points) else points
        return lambda rows, columns=None: _checked(
            given[rows] if columns is None else given[np.ix_(rows, columns)], dtype
        )
    if metric != "euclidean" or sp.issparse(points):
        return lambda rows, columns=None: _checked(
            pairwise_distances(points[rows], points if columns is None else points[columns], metric=metric), dtype
        )
    points = near_origin(points).astype(dtype, copy=False)
    return _by_differences(points) if points.shape[1] <= _NARROW else _by_products(points)


def _checked(block: FloatArray, dtype: Any) -> FloatArray:
    if block.min() < 0:
        raise ValueError(f"distances must not be negative, got {block.min():g}; check the metric or its matrix.")
    return block.astype(dtype)


def _by_differences(points: FloatArray) -> Distances:
    from graphcouple._numba.ranks import sq_dists_by_differences

    coordinates = np.ascontiguousarray(points.T)

    def distances(rows: NDArray[Any], columns: NDArray[Any] | None = None) -> FloatArray:
        others = coordinates if columns is None else np.ascontiguousarray(coordinates[:, columns])
        block = np.empty((rows.size, others.shape[1]), dtype=points.dtype)
        sq_dists_by_differences(points[rows], others, block)
        return np.sqrt(block, out=block)

    return distances


def _by_products(points: FloatArray) -> Distances:
    from graphcouple._numba.ranks import sq_dists_from_products

    sq_norms = np.einsum("ij,ij->i", points, points)
    tol = points.dtype.type(np.sqrt(np.finfo(points.dtype).eps))

    def distances(rows: NDArray[Any], columns: NDArray[Any] | None = None) -> FloatArray:
        mine = points[rows]
        others, others_sq_norms = (points, sq_norms) if columns is None else (points[columns], sq_norms[columns])
        block = mine @ others.T
        sq_dists_from_products(mine, sq_norms[rows], others, others_sq_norms, tol, block)
        return np.sqrt(block, out=block)

    return distances


def orders_of(distances: FloatArray, own: NDArray[np.bool_] | tuple[Any, ...]) -> NDArray[np.int32]:
    """Return the columns of each row from near to far, ties by their number, where `own` selects put last."""
    from graphcouple._numba.ranks import order_rows

    # The bits of floats that are not negative are in the order of the floats; adding zero makes −0 a zero.
    away = distances + distances.dtype.type(0.0)
    away[own] = np.inf
    orders = np.empty(away.shape, dtype=np.int32)
    order_rows(away.view(f"u{away.itemsize}"), orders)
    return orders


def ranks_of(orders: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the place, from 1, of each column in its row's order."""
    from graphcouple._numba.ranks import ranks_of_orders

    ranks = np.empty(orders.shape, dtype=np.int32)
    ranks_of_orders(orders, ranks)
    return ranks
