"""Whether an embedding tears neighbors apart."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csgraph

from graphcouple._support.html import html_table
from graphcouple._support.validation import check_integer, check_positive
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.metrics._classes import check_classes
from graphcouple.metrics._relations import as_map
from graphcouple.neighbors import as_points, nearest_neighbors

LENGTH = 0.2
"""An edge is torn beyond this share of the map's length."""

# A map's length is its range along the longest principal axis, without this share of the points at either end.
_ENDS = 0.01


class Tears(NamedTuple):
    """How much of the data an embedding tears apart; 0 is best, 1 is worst.

    Attributes
    ----------
    edges : float
        The share of edges of the data's K-nearest-neighbor graph that are long in the embedding.
    flung : float
        The share of points that lie far from most of their K nearest neighbors.
    detached : float
        The share of points outside the largest piece of their class, or of their component of the data's graph if
        there are no classes. Pieces are components of the embedding's K-nearest-neighbor graph.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> [round(gc.metrics.tears(X, Z).edges, 2) for Z in (X[:, 2:], X[:, :1])]
    [0.0, 0.01]
    """

    edges: float
    flung: float
    detached: float

    def _repr_html_(self) -> str:
        return html_table(["torn", "share"], [[name, f"{share:.1%}"] for name, share in self._asdict().items()])


def tears(
    X: Any,
    Z: Any,
    y: Any = None,
    K: int = 10,
    *,
    length: float = LENGTH,
    metric: str = "euclidean",
    n_jobs: int | None = None,
) -> Tears:
    """Return how much of the data an embedding tears apart.

    Neighborhood preservation changes little if a class splits in two, or a point is flung across the map, since most
    neighbors stay near. An edge between near points of the data is torn if it is longer than a fifth of the map.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    Z : array of shape (n, q)
    y : array of shape (n,), optional
        Classes.
    K : int, default=10
        Neighbors of each point, below n.
    length : float, default=0.2
        Edges are torn beyond this share of the map's length, which is the range of its longest principal axis without
        one point in a hundred at either end.
    metric : str, default="euclidean"
        The distance of `X`; see `evaluate`. Neighbors of many points are searched as by
        `graphcouple.neighbors.nearest_neighbors`.
    n_jobs : int, optional

    Returns
    -------
    Tears

    Raises
    ------
    TypeError, ValueError
        When an array is not numeric or not finite, the numbers of rows differ, or K or `length` is out of range.

    Examples
    --------
    >>> import graphcouple as gc
    >>> import numpy as np
    >>> X, t = gc.datasets.make_swiss_roll(500, random_state=0)
    >>> sheet = np.column_stack([t, 0.1 * X[:, 1]])
    >>> halves = sheet + [20.0, 0.0] * (t > 10.0)[:, None]
    >>> gc.metrics.tears(X, sheet).detached, round(gc.metrics.tears(X, halves).detached, 1)
    (0.0, 0.4)
    >>> gc.metrics.tears(X, halves).edges > gc.metrics.tears(X, sheet).edges
    True
    """
    points = as_points(X, at_least=3)
    Z = as_map(Z, n=points.shape[0])
    near, classes = neighbors_of(points, y, K, metric, n_jobs)
    return tears_of(near, Z, classes, check_positive("length", length), n_jobs)


def neighbors_of(points: Any, y: Any, K: int, metric: str, n_jobs: int | None) -> tuple[IntArray, IntArray]:
    """Return the K neighbors of each point, and its class, or its component of the graph where there are no classes."""
    n = points.shape[0]
    if check_integer("K", K, 1) >= n:
        raise ValueError(f"K={K} must be below the number of points, {n}.")
    support = nearest_neighbors(points, K, metric, n_jobs)[0]
    neighbors = support.indices.reshape(n, K)
    if y is not None:
        return neighbors, check_classes(y, n)
    return neighbors, csgraph.connected_components(support.to_csr(np.ones(neighbors.size)), directed=False)[1]


def tears_of(neighbors: IntArray, Z: FloatArray, classes: IntArray, length: float, n_jobs: int | None) -> Tears:
    n, K = neighbors.shape
    Z = Z.astype(np.float64, copy=False)
    centred = Z - Z.mean(axis=0)
    if (Z[0] == Z).all():
        raise ValueError("Z has all points in one place, so it has no neighbours to tear apart.")
    axis = np.linalg.eigh(centred.T @ centred)[1][:, -1]
    first, last = np.quantile(centred @ axis, (_ENDS, 1.0 - _ENDS))
    is_torn = np.linalg.norm(Z[neighbors] - Z[:, None], axis=2) > length * (last - first)
    map_graph = nearest_neighbors(Z, K, "euclidean", n_jobs)[0]
    # Remove edges between classes, since stored zeros would still connect.
    map_graph = map_graph.select(np.repeat(classes, K) == classes[map_graph.indices])
    pieces = csgraph.connected_components(map_graph.to_csr(np.ones(map_graph.n_edges)), directed=False)[1]
    sizes = np.bincount(pieces)[pieces]
    largest = np.zeros(classes.max() + 1, dtype=np.int64)
    np.maximum.at(largest, classes, sizes)
    return Tears(float(is_torn.mean()), float((is_torn.mean(axis=1) > 0.5).mean()), 1.0 - int(largest.sum()) / n)
