"""Isomap: classical scaling of distances along a neighbour graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from graphcouple._support.validation import at_most_others
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.embedding import EmbeddingEstimator
from graphcouple.estimators.spectral import choose_landmarks, in_blocks, placed, warn_of_missing, warn_of_parts
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.neighbors import coordinates_of, distances_of
from graphcouple.neighbors.points import fits_in_single
from graphcouple.spectral import GramMatrix, Parts, places_of

# A component has at least 30 landmarks, or all of its nodes: few landmarks leave few dimensions to choose from.
_FEWEST = 30


@estimator
class Isomap(EmbeddingEstimator):
    """Isomap: V Λ^½ of −½ C D² C, with D the lengths of shortest paths in the graph of nearest neighbours.

    It is kernel PCA of that kernel, and classical scaling of D. If the graph is disconnected, there are no paths
    between components: each is embedded by itself, and lies around the place of its mean.

    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    eigenvalues_ : ndarray of shape (n_components,)
        Λ, the squared lengths of the columns, on the landmarks of the largest component.
    geodesics_ : ndarray of shape (n_samples, n_samples) or (n_landmarks, n_samples)
        D; infinite between components. From landmarks, in single precision.
    landmarks_ : ndarray or None
        The rows of `geodesics_`; None if all.
    component_labels_ : ndarray of shape (n_samples,)
        The connected component of each point.

    Warns
    -----
    UserWarning
        When the graph is disconnected, or there are fewer directions than `n_components`.

    References
    ----------
    Lecture notes, section 1.2. Tenenbaum, de Silva and Langford (2000), A global geometric framework for nonlinear
    dimensionality reduction. De Silva and Tenenbaum (2003), Global versus local methods in nonlinear dimensionality
    reduction, for landmarks.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("swiss_roll")
    >>> isomap = gc.Isomap(n_neighbors=10).fit(X)
    >>> isomap.transform(X[:3]).shape
    (3, 2)
    """

    n_components: int = parameter(default=2, kw_only=False)
    n_neighbors: int = parameter(default=12, like="neighbors searched")
    metric: Any = parameter(default="euclidean")
    metric_params: dict[str, Any] | None = parameter(default=None)
    n_landmarks: Any = parameter(default="auto", like="landmarks of pairs")
    random_state: Any = parameter(default=None, doc="Seed of the landmarks.")
    n_jobs: int | None = parameter(default=None)

    _remembered = ("_distances", "_n_neighbors", "_formulas", "_origins")

    def _fit(self, X: Any) -> None:
        n = X.shape[0]
        if self.n_components >= n:
            raise ValueError(f"n_components={self.n_components} must be below n_samples = {n}.")
        self._distances = distances_of(X, self.metric, self.metric_params)
        self._n_neighbors = self.n_neighbors
        graph = self._graph()
        parts = Parts(*sp.csgraph.connected_components(graph, directed=False))
        warn_of_parts(parts.n_parts, "More neighbors may connect them.")
        rng = check_random_state(self.random_state)
        coordinates = coordinates_of(X, self.metric)
        self.landmarks_: IntArray | None = choose_landmarks(
            X if coordinates is None else coordinates, self.n_landmarks, rng, points=not self.takes_distances
        )
        if self.landmarks_ is not None:
            self.landmarks_ = _some_of_each(parts, self.landmarks_)
        self.component_labels_: IntArray = parts.labels
        rows = np.arange(n) if self.landmarks_ is None else self.landmarks_
        dtype = np.float32 if self.landmarks_ is not None and fits_in_single(graph.data) else np.float64
        self.geodesics_ = _geodesics(graph, rows, dtype)
        Z = self._of_components(parts, rows)
        radii = np.array([Z[members].std() for members in parts.members()])
        means = None if coordinates is None or parts.n_parts == 1 else parts.means(coordinates)
        self._origins = places_of(means, radii, self.n_components, shrink=False)
        self.embedding_ = (Z + self._origins[parts.labels]).astype(X.dtype)
        # The places of components may fill columns that each leaves at 0.
        n_found = int(np.ptp(self.embedding_, axis=0).astype(bool).sum())
        warn_of_missing(n_found, self.n_components, "the geodesic distances have")

    def _graph(self) -> sp.csr_array:
        """Return the distances of nearest neighbours, in both directions."""
        n = self._distances.n_points
        support, sq_dist = self._distances.nearest(at_most_others(self.n_neighbors, n), self.n_jobs)
        rows, columns, lengths = support.rows, support.indices, np.sqrt(sq_dist)
        # Sparse sums would drop edges of length 0 between copies, so lengths are put in place one by one.
        both = np.concatenate([rows * np.int64(n) + columns, columns * np.int64(n) + rows])
        places, first = np.unique(both, return_index=True)
        values = np.concatenate([lengths, lengths])[first]
        return sp.csr_array((values, (places // n, places % n)), shape=(n, n))

    def _of_components(self, parts: Parts, rows: IntArray) -> FloatArray:
        """Return each component's embedding by itself, and keep what places new points."""
        Z = np.zeros((parts.labels.size, self.n_components))
        self._formulas: list[dict[str, Any]] = []
        largest = int(np.argmax(parts.sizes))
        for k, members in enumerate(parts.members()):
            own = np.flatnonzero(parts.labels[rows] == k)
            q = min(self.n_components, own.size)
            similarities = -0.5 * np.square(self.geodesics_[np.ix_(own, rows[own])].astype(np.float64))
            gram = GramMatrix(matrix=0.5 * (similarities + similarities.T))
            placement = gram.placement(q)
            self._formulas.append({"own": own, "rows": gram.rows, "onto": placement.onto})
            Z[members, :q] = self._placed(k, self.geodesics_[own][:, members].T)
            if k == largest:
                self.eigenvalues_ = np.pad(placement.eigenvalues, (0, self.n_components - q))
        return Z

    def _placed(self, part: int, geodesics: FloatArray) -> FloatArray:
        """Return the places, around 0, of points with these geodesic distances to a component's landmarks."""
        known = self._formulas[part]
        return placed(len(geodesics), known, lambda rows: -0.5 * np.square(geodesics[rows].astype(np.float64)))

    def transform(self, X: Any) -> FloatArray:
        """Place new points by their geodesic distances, which lead through their nearest fitted points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            Or distances to the points of `fit`, for ``metric="precomputed"``.

        Returns
        -------
        ndarray of shape (n_new, n_components)
            No row depends on another. Copies of fitted points get their places.
        """
        X = self._checked_new(X)
        support, sq_dist = self._distances.to(X, self._n_neighbors, self.n_jobs)
        near, lengths = support.indices.reshape(X.shape[0], -1), np.sqrt(sq_dist).reshape(X.shape[0], -1)
        part = self.component_labels_[near[np.arange(len(near)), lengths.argmin(axis=1)]]
        Z = self._origins[part].copy()
        for k in np.unique(part):
            own, known = np.flatnonzero(part == k), self._formulas[k]
            paths = np.full((own.size, known["own"].size), np.inf)
            for a in range(near.shape[1]):
                through = self.geodesics_[known["own"]][:, near[own, a]].T
                paths = np.minimum(paths, lengths[own, a, None] + through)
            Z[own, : known["onto"].shape[1]] += self._placed(k, paths)
        # Where distances tie, the search may give a copy other neighbours than it gave the fitted point.
        same = lengths.min(axis=1) == 0
        Z[same] = self.embedding_[near[same, lengths[same].argmin(axis=1)]]
        return Z.astype(X.dtype, copy=False)

    def _recall(self, remembered: dict[str, Any]) -> None:
        # Older files lack the number of neighbours.
        super()._recall({"n_neighbors": self.n_neighbors, **remembered})


def _some_of_each(parts: Parts, landmarks: IntArray) -> IntArray:
    """Return the landmarks, and enough nodes of components that have too few to place the others."""
    others = [np.setdiff1d(own, landmarks) for own in parts.members()]
    added = [rest[: max(_FEWEST - size + len(rest), 0)] for rest, size in zip(others, parts.sizes, strict=True)]
    return np.unique(np.concatenate([landmarks, *added]))


def _geodesics(graph: sp.csr_array, rows: IntArray, dtype: Any) -> FloatArray:
    from scipy.sparse.csgraph import dijkstra

    n = graph.shape[0]
    lengths = np.empty((rows.size, n), dtype=dtype)
    for block in in_blocks(rows.size, n):
        # The graph holds both directions: the search of a directed graph is faster.
        lengths[block] = dijkstra(graph, directed=True, indices=rows[block])
    return lengths
