"""Precomputed distances of all pairs or of a sparse graph; a saved estimator keeps none of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple.graphs import FloatArray, Support, as_csr, edges_of, off_diagonal
from graphcouple.neighbors.distances import Searched, nearest_edges, regular_support, squares_of


def is_precomputed(metric: Any) -> bool:
    """Return whether a metric, or a kernel, says that X holds a number for each pair instead of points."""
    return isinstance(metric, str) and metric == "precomputed"


class SquareDistances(Searched):
    """Precomputed distances in a square array."""

    metric = "precomputed"

    def all_pairs(self) -> tuple[Support, FloatArray]:
        return Support.all_pairs(self.n_points), squares_of(off_diagonal(self.X))

    def remembered(self) -> dict[str, Any]:
        """Return the number of points; new points come with their distances to them."""
        return {"n_points": self.n_points}

    def _to_nearest(self, X_new: Any, k: int, n_jobs: int | None, search: str) -> tuple[Support, FloatArray]:
        if sp.issparse(X_new):
            graph = sp.csr_array(X_new)
            graph.sort_indices()
            support, sq_dist = Support(graph.indptr, graph.indices), squares_of(graph.data)
            if k < self.n_points:
                return _k_nearest(support, sq_dist, k)
            # A graph of neighbours stores few of all pairs.
            if not (counts := np.diff(graph.indptr)).all():
                raise ValueError(f"row {int(np.argmin(counts))} of X_new stores no distance; store at least one.")
            return support, sq_dist
        indices = np.sort(np.argsort(X_new, axis=1, kind="stable")[:, :k], axis=1)
        return regular_support(indices), squares_of(np.take_along_axis(X_new, indices, axis=1)).ravel()

    def of_edges(self, support: Support, n_jobs: int | None = None) -> FloatArray:
        return squares_of(self.X[support.rows, support.indices])

    def _check_new(self, X_new: Any) -> None:
        if X_new.shape[1] != self.n_points:
            raise ValueError(
                f"X_new has {X_new.shape[1]} columns of distances, but X has {self.n_points} points; give one for each."
            )


def _k_nearest(support: Support, sq_dist: FloatArray, k: int) -> tuple[Support, FloatArray]:
    """Return the k nearest edges of each row; raise if a row has fewer."""
    counts = np.diff(support.indptr)
    if (counts < k).any():
        row = int(np.argmax(counts < k))
        raise ValueError(
            f"row {row} of the precomputed graph stores {counts[row]} distances, fewer than n_neighbors={k}; store "
            "more of them or lower n_neighbors."
        )
    return nearest_edges(support, sq_dist, k)


class StoredDistances(SquareDistances):
    """Precomputed distances in the stored entries of a sparse matrix; other pairs carry no edge."""

    knows_all = False

    def all_pairs(self) -> tuple[Support, FloatArray]:
        support, dist = edges_of(as_csr(self.X, "X"))
        return support, squares_of(dist)

    def nearest(self, n_neighbors: int, n_jobs: int | None = None, search: str = "auto") -> tuple[Support, FloatArray]:
        k = self._check_count(n_neighbors)
        return _k_nearest(*self.all_pairs(), k)

    def of_edges(self, support: Support, n_jobs: int | None = None) -> FloatArray:
        edges, dist = edges_of(as_csr(self.X, "X"))
        at = edges.find(support.rows, support.indices)
        # A point may be among the neighbours of its neighbour only.
        at = np.where(at < 0, edges.find(support.indices, support.rows), at)
        if (at < 0).any():
            e = int(np.argmax(at < 0))
            raise ValueError(
                f"the sparse graph stores no distance between points {support.rows[e]} and {support.indices[e]}, which "
                "is needed; store it, leave it out of the edge prior, or pass a square array of distances."
            )
        return squares_of(dist[at])


class ForgottenDistances(SquareDistances):
    """Precomputed distances that were not kept: new points come with their own, and distances between others raise."""

    def all_pairs(self) -> tuple[Support, FloatArray]:
        raise ValueError("a saved model does not keep precomputed distances, only what new points need; fit it again.")

    def nearest(self, n_neighbors: int, n_jobs: int | None = None, search: str = "auto") -> tuple[Support, FloatArray]:
        return self.all_pairs()

    def of_edges(self, support: Support, n_jobs: int | None = None) -> FloatArray:
        return self.all_pairs()[1]
