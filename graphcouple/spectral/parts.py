"""Embeddings of disconnected graphs: each connected component by itself, around its own place.

The first eigenvectors of a disconnected graph only indicate its components, so their embedding would put all points of
a component in one place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from graphcouple.graphs import FloatArray, IntArray
from graphcouple.spectral.gram import GramMatrix
from graphcouple.spectral.laplacian import GraphLaplacian, Parts

# Up to this number of components, distances are compared pair by pair.
_MANY_PARTS = 2000


class Eigenmaps(NamedTuple):
    """An embedding by a Laplacian's eigenvectors, each component of the graph by its own.

    Rows of `eigenvalues` and of `origins`, the means of coordinates, are components; an eigenvalue is NaN where a
    component has too few nodes. `radii` are the factors of each component's coordinates of unit covariance.
    """

    Z: FloatArray
    eigenvalues: FloatArray
    parts: Parts
    origins: FloatArray
    radii: FloatArray


def embed_parts(
    laplacian: GraphLaplacian,
    n_components: int,
    X: Any = None,
    embed: Callable[[GraphLaplacian, int], tuple[FloatArray, FloatArray]] = GraphLaplacian.embedding,
    of_points: bool = True,
) -> Eigenmaps:
    """Return the eigenmaps of a graph, which may be disconnected.

    A connected graph's coordinates have unit covariance (see `GraphLaplacian.embedding`). In a disconnected graph, each
    component has coordinates of unit covariance, multiplied by (its share of the nodes)^(1/q), and lies around its own
    place; see `places_of`. Components of equal points stay in one place, if the graph is `of_points`. `embed` returns
    eigenvalues and coordinates of a connected graph, for their number q; coordinates of other methods are scaled and
    placed in the same way.
    """
    n = laplacian.n_nodes
    parts = laplacian.components
    if parts.n_parts == 1 and n_components < n:
        values, Z = embed(laplacian, n_components)
        return Eigenmaps(Z, values[None], parts, np.zeros((1, n_components)), np.ones(1))
    radii = (parts.sizes / n) ** (1.0 / n_components)
    origins = places_of(None if X is None else parts.means(X), radii, n_components)
    Z = origins[parts.labels]
    eigenvalues = np.full((parts.n_parts, n_components), np.nan)
    for k, members in enumerate(parts.members()):
        n_dims = min(n_components, len(members) - 1)
        if n_dims < 1 or (of_points and X is not None and _equal(X, members)):
            continue
        eigenvalues[k, :n_dims], coordinates = embed(laplacian.among(members), n_dims)
        Z[members, :n_dims] += radii[k] * coordinates
    return Eigenmaps(Z, eigenvalues, parts, origins, radii)


def _equal(X: Any, members: IntArray) -> bool:
    """Return whether the rows of all members are equal."""
    if issparse(X):
        return not abs(X[members[1:]] - X[np.repeat(members[:1], len(members) - 1)]).max()
    return bool((X[members] == X[members[0]]).all())


def places_of(means: FloatArray | None, radii: FloatArray, n_components: int, shrink: bool = True) -> FloatArray:
    """Return a place for each component, far enough from its nearest neighbour that most pairs do not overlap.

    Principal components of the components' `means` are the places, at a scale that keeps most pairs apart; without
    means, places lie on a spiral. `radii` are the standard deviations of the components' coordinates. Unless `shrink`,
    places do not move together where they are further apart than needed.
    """
    n_parts = len(radii)
    if n_parts == 1:
        return np.zeros((1, n_components))
    if means is None:
        return _spiral(radii, n_components)
    places = GramMatrix(means).placement(min(n_components, n_parts)).Z
    places = np.pad(places, ((0, 0), (0, n_components - places.shape[1])))
    if not np.isfinite(places).all() or not places.any():
        return _spiral(radii, n_components)
    if n_parts > _MANY_PARTS:
        scale = float(places.std()) / 2.0
        return places / (scale if shrink else min(scale, 1.0))
    distances = np.sqrt(np.square(places[:, None] - places).sum(axis=-1))
    ratios = distances / np.maximum(2.0 * (radii[:, None] + radii), 1e-300)
    nearest = np.min(ratios + np.diag(np.full(n_parts, np.inf)), axis=1)
    scale = max(float(np.median(nearest)), 1e-3 * float(ratios.max()))
    return places / (scale if shrink else min(scale, 1.0))


def _spiral(radii: FloatArray, n_components: int) -> FloatArray:
    """Return places on a spiral, or on a line, each as far from the others as their radii require."""
    if n_components == 1:
        return 4.0 * (np.cumsum(radii) - 0.5 * radii)[:, None]
    reach = np.sqrt(np.cumsum(np.square(radii)) * 8.0)
    angle = np.pi * (3.0 - 5.0**0.5) * np.arange(len(radii))
    spiral = reach[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return np.pad(spiral, ((0, 0), (0, n_components - 2)))
