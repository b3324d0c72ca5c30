"""Distances between points and groups of points, for ranking the groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple.graphs import FloatArray, IntArray, Support
from graphcouple.neighbors.by_metric import ByMetric, distances_of
from graphcouple.neighbors.distances import CANCELLED, Distances, Euclidean, in_chunks, sq_differences
from graphcouple.neighbors.points import near_origin

# Members of a group whose distances are averaged, for metrics without means: more cost as many distances more.
_MEMBERS = 4

# Rows for which distances are held in double precision at once: 160 kB for each group.
_ROWS = 20_000


def sq_distances_to_points(
    X: Any,
    places: IntArray,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the squared distances of all points to the points at `places`.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    places : ndarray of shape (k,)
    metric, metric_params : default="euclidean"
        As in `distances_of`.
    n_jobs : int or None, default=None

    Returns
    -------
    sq_dist : ndarray of shape (n, k)

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.neighbors import sq_distances_to_points
    >>> sq_distances_to_points(np.array([[0.0], [3.0], [5.0]]), np.array([0, 2]))
    array([[ 0., 25.],
           [ 9.,  4.],
           [25.,  0.]])
    """
    distances = distances_of(X, metric, metric_params)
    if isinstance(distances, Euclidean):
        points = X if sp.issparse(X) else near_origin(X)
        return _by_products(points, points[places])
    return _by_metric(distances, places, n_jobs)


def mean_sq_distances_to_groups(
    X: Any,
    groups: IntArray,
    rng: np.random.RandomState,
    metric: Any = "euclidean",
    metric_params: dict[str, Any] | None = None,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the mean squared distances of all points to the members of each group.

    Euclidean distances are exact, from the groups' means; by other metrics, a few members of each group are averaged.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    groups : ndarray of shape (n,)
        The group of each point, from 0; none is empty.
    rng : numpy.random.RandomState
        Draws the members.
    metric, metric_params : default="euclidean"
        As in `distances_of`.
    n_jobs : int or None, default=None

    Returns
    -------
    sq_dist : ndarray of shape (n, n_groups)

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.neighbors import mean_sq_distances_to_groups
    >>> X = np.array([[0.0], [2.0], [10.0]])
    >>> mean_sq_distances_to_groups(X, np.array([0, 0, 1]), np.random.RandomState(0))
    array([[  2., 100.],
           [  2.,  64.],
           [ 82.,   0.]])
    """
    distances = distances_of(X, metric, metric_params)
    sizes = np.bincount(groups)
    order, starts = np.argsort(groups, kind="stable"), np.cumsum(sizes) - sizes
    if isinstance(distances, Euclidean):
        points = X if sp.issparse(X) else near_origin(X)
        members = sp.csr_array((np.repeat(1.0 / sizes, sizes), order, np.append(starts, groups.size)))
        sq_dist = _by_products(points, members @ points)
        # The mean squared distance is the squared distance to the mean, plus the variance of the members.
        return sq_dist + (members @ sq_dist[np.arange(groups.size), groups])
    total = np.zeros((groups.size, sizes.size))
    for k, chance in enumerate(rng.uniform(size=(_MEMBERS, sizes.size))):
        # One member from each quarter of the group's rows.
        sample = order[starts + ((k + chance) / _MEMBERS * sizes).astype(np.int64)]
        total += _by_metric(distances, sample, n_jobs) / _MEMBERS
    return total


def _by_products(points: Any, centres: Any) -> FloatArray:
    """Return squared Euclidean distances by a matrix product, or by differences where the product would lose digits."""
    from sklearn.metrics.pairwise import euclidean_distances
    from sklearn.utils.extmath import row_norms

    sq_dist = np.empty((points.shape[0], centres.shape[0]))
    sq_norms, centre_norms = row_norms(points, squared=True), row_norms(centres, squared=True)
    for a in range(0, len(sq_dist), _ROWS):
        part = sq_dist[a : a + _ROWS]
        part[:] = euclidean_distances(points[a : a + _ROWS], centres, squared=True)
        near = part <= CANCELLED * (sq_norms[a : a + _ROWS, None] + centre_norms)
        if near.any():
            support = Support(np.concatenate([[0], np.cumsum(near.sum(axis=1))]), np.flatnonzero(near) % near.shape[1])
            part[near] = in_chunks(points[a : a + _ROWS], centres, support, sq_differences)
    return sq_dist


def _by_metric(distances: Distances, places: IntArray, n_jobs: int | None) -> FloatArray:
    X, k = distances.X, places.size
    sq_dist = np.empty((distances.n_points, k))
    targets = ByMetric(X[places], distances.metric, distances.params) if isinstance(distances, ByMetric) else None
    for a in range(0, len(sq_dist), _ROWS):
        rows = sq_dist[a : a + _ROWS]
        if targets is None:
            # Blocks take their units from all points, so their distances are computed edge by edge.
            ends = np.broadcast_to(places, rows.shape).ravel()
            counts = np.zeros(distances.n_points, dtype=np.int64)
            counts[a : a + _ROWS] = k
            support = Support(np.concatenate([[0], np.cumsum(counts)]), ends)
            rows[:] = distances.of_edges(support, n_jobs).reshape(rows.shape)
            continue
        support, values = targets.to(X[a : a + _ROWS], None, n_jobs)
        np.put_along_axis(rows, support.indices.reshape(rows.shape), values.reshape(rows.shape), axis=1)
    return sq_dist
