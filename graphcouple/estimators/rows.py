"""The rows that a method is fitted to: all, landmarks, or one of each set of equal rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from graphcouple._support.validation import UNLABELLED, warn
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.laws import ConditionedLaw
from graphcouple.laws.labels import label_array, target_codes
from graphcouple.neighbors import Blocks
from graphcouple.neighbors.points import dense_if_far, near_origin, with_short_indices, workable

# Points nearer than this share of the map's half width count as one place: a tolerance.
_ONE_PLACE = 1e-6

# If fewer than this share of the landmarks are found, copies are looked for.
_ENOUGH = 0.95


@dataclass(frozen=True, eq=False)
class Rows:
    """Points, and the values that `fit` was given for each; `weights` say how many points a row stands for.

    If only the law's own codes of the classes are left, they are `codes`, and `y` is None.
    """

    X: Any
    y: Any = None
    neighbors: Any = None
    weights: Any = None
    codes: Any = None

    @property
    def n_rows(self) -> int | None:
        """The number of rows; None if there are no points."""
        return None if self.X is None else int(self.X.shape[0])

    def at(self, chosen: IntArray) -> Rows:
        """Return some of the rows; neighbours that name rows are left out."""
        y = None if self.y is None else label_array(self.y)
        if y is not None and y.shape[:1] != self.X.shape[:1]:
            raise ValueError(f"y must have one value for each of the {self.n_rows} rows of X, got shape {y.shape}.")
        y = None if y is None else y[chosen]
        return Rows(self.X[chosen], y, weights=None if self.weights is None else self.weights[chosen])


def nearest_to_means(X: Any, n_landmarks: int, rng: np.random.RandomState) -> IntArray:
    """Return the rows nearest to the centres of k-means, ascending; fewer if centres share their nearest point.

    References: Sun, Han and Fan (2022), Laplacian-based cluster-contractive t-SNE, algorithm 2.
    """
    # Squares of points far from 0, or tiny in single precision, would lose the digits that tell the rows apart.
    X = workable(dense_if_far(X))
    if sp.issparse(X) and not all(part.flags.writeable for part in (X.data, X.indices, X.indptr)):
        # scikit-learn's loops take no read-only sparse matrices.
        X = X.copy()
    X = with_short_indices(X) if sp.issparse(X) else near_origin(X)
    found = _nearest_to_means(X, n_landmarks, rng)
    if found.size > _ENOUGH * n_landmarks or (equal := EqualRows.of(X)) is None:
        return found
    # Centres that begin at copies of a point stay together; copies that are few do not explain the missing landmarks.
    if X.shape[0] - equal.first.size < n_landmarks - found.size:
        return found
    if equal.first.size <= n_landmarks:
        return equal.first
    return equal.first[_nearest_to_means(X[equal.first], n_landmarks, rng)]


def _nearest_to_means(X: Any, n_landmarks: int, rng: np.random.RandomState) -> IntArray:
    from sklearn.cluster import MiniBatchKMeans
    from sklearn.metrics import pairwise_distances_argmin

    batch = max(1024, 3 * n_landmarks)
    means = MiniBatchKMeans(n_landmarks, batch_size=batch, n_init=1, random_state=rng, init="random")
    centres = means.fit(X).cluster_centers_
    return np.unique(pairwise_distances_argmin(centres, X))


def with_others(n: int, fitted: IntArray, Z: FloatArray, place: Callable[[IntArray], FloatArray]) -> FloatArray:
    """Return the places of all rows: `Z` for the fitted rows, `place(rows)` for the others."""
    others = np.setdiff1d(np.arange(n), fitted)
    whole = np.empty((n, Z.shape[1]), dtype=Z.dtype)
    whole[fitted], whole[others] = Z, place(others)
    return whole


@dataclass(frozen=True, eq=False)
class EqualRows:
    """Which rows are equal: the first row of each distinct point, ascending, and the number of each row's point."""

    first: IntArray
    point: IntArray

    @classmethod
    def checked(cls, first: IntArray, point: IntArray) -> EqualRows:
        """Return the equal rows of a file; raise unless both arrays fit together."""
        sound = point.ndim == 1 and point.dtype.kind == first.dtype.kind == "i" and point.size > 0
        sound = sound and point.min() == 0 and point.max() == first.size - 1
        if not sound or not np.array_equal(first, np.unique(point, return_index=True)[1]):
            raise ValueError("the file is damaged: its copies of rows do not fit together. Fit again.")
        return cls(first, point)

    @classmethod
    def of(cls, X: Any) -> EqualRows | None:
        """Return the equal rows of an array or a csr matrix; None if all differ."""
        n = X.shape[0]
        if sp.issparse(X):
            matrix = X.copy()
            matrix.sum_duplicates()
            matrix.eliminate_zeros()
            ends = pairwise(matrix.indptr)
            keys = [matrix.indices[a:b].tobytes() + b"|" + matrix.data[a:b].tobytes() for a, b in ends]
        else:
            # Adding 0 makes −0 equal to 0.
            keys = [row.tobytes() for row in np.ascontiguousarray(X + np.zeros(1, X.dtype))]
        seen: dict[bytes, int] = {}
        point = np.fromiter((seen.setdefault(key, len(seen)) for key in keys), dtype=np.int64, count=n)
        return None if len(seen) == n else cls(np.unique(point, return_index=True)[1], point)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return self.point.size

    def added(self, weights: Any) -> FloatArray:
        """Return the sums of the rows' weights, 1 each by default, for each point."""
        return np.bincount(self.point, weights).astype(np.float64)

    def averages(self, weights: Any) -> sp.csr_array:
        """Return the matrix that takes rows to the means of points, with the rows' weights, 1 each by default."""
        rows = np.ones(self.n_rows) if weights is None else weights
        return sp.csr_array((rows / self.added(weights)[self.point], (self.point, np.arange(self.n_rows))))

    def first_of(self, y: Any) -> Any:
        """Return the value of each point's first row, or `y` itself if it has no value for each row."""
        try:
            values = y if sp.issparse(y) else label_array(y)
        except ValueError:
            return y
        return values[self.first] if values.shape[:1] == self.point.shape else y

    def agreed(self, y: Any) -> Any:
        """Return the class of each point; raise if equal rows have different classes."""
        if y is None:
            return None
        labels, codes = label_array(y), target_codes(y, self.point.size)
        first = self.first_known(codes)
        differ = np.flatnonzero((codes != codes[first][self.point]) & (codes != UNLABELLED))
        if differ.size:
            row = int(differ[0])
            raise ValueError(
                f"rows {row} and {int(first[self.point[row]])} of X are equal but of different classes; with "
                "unique=True they are one point."
            )
        return labels[first]

    def first_known(self, codes: Any) -> IntArray:
        """Return each point's first row with a known class, or its first row if there is none."""
        known = np.flatnonzero(codes != UNLABELLED)
        first = self.first.copy()
        # The first of the rows is assigned last.
        first[self.point[known[::-1]]] = known[::-1]
        return first

    def and_more(self, n_more: int) -> EqualRows:
        """Return the rows followed by new rows, each a point of its own."""
        n = self.first.size
        first = np.concatenate([self.first, self.n_rows + np.arange(n_more)])
        return EqualRows(first, np.concatenate([self.point, n + np.arange(n_more)]))

    def joined(self, points: EqualRows) -> EqualRows:
        """Return the rows with those joined whose points are equal."""
        point = points.point[self.point]
        return EqualRows(np.unique(point, return_index=True)[1], point)


def warn_if_places_are_shared(X: Any, Z: FloatArray, neighbors: str | None = "the perplexity") -> None:
    """Warn if three or more points of the map `Z` share a place and their rows of `X` differ.

    `neighbors` is the parameter with the number of neighbours, or None for a map that has no law.
    """
    size = np.abs(Z - Z.mean(axis=0)).max()
    if not size > 0:
        return
    _, place, counts = np.unique(np.round(Z / (_ONE_PLACE * size)), axis=0, return_inverse=True, return_counts=True)
    shared = np.flatnonzero(counts[place.ravel()] > 2)
    equal = EqualRows.of(X[shared])
    rows = shared if equal is None else shared[equal.first]
    places = np.unique(place.ravel()[rows])
    # Two rows that are nearly equal may share a place.
    if rows.size > 2 * places.size:
        remedy = (
            f"Lower {neighbors} below the number of points in the smallest group, or the exaggeration, raise "
            "max_iter, or use a kernel with a heavier tail in the embedding."
            if neighbors
            else "Raise max_iter, or, if rows of X lie far from all others, use init='random' or remove them."
        )
        warn(
            f"{rows.size} points lie in {places.size} place{'s' if places.size > 1 else ''} although their rows "
            f"differ: the map does not tell them apart. {remedy}",
            ConvergenceWarning,
        )


def categories_of(law: ConditionedLaw) -> list[int]:
    """Return the columns of a law's points that hold codes of categories."""
    metric = law.law.metric
    return metric.categories(law.X.shape[1]) if isinstance(metric, Blocks) else []


def means_of(weights: sp.csr_array, X: Any, categories: list[int]) -> Any:
    """Return means of points, one for each row of weights; in columns of categories, the one of the largest weight."""
    means = weights @ X
    for column in categories:
        values, codes = np.unique(X[:, column], return_inverse=True)
        votes = weights @ sp.csr_array((np.ones(len(codes)), (np.arange(len(codes)), codes)))
        means[:, column] = values[votes.toarray().argmax(axis=1)]
    return means
