"""From places in an embedding back to points."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from graphcouple.estimators.embedding import HasLaw
from graphcouple.estimators.rows import EqualRows, categories_of, means_of
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.kernels import Gaussian
from graphcouple.laws import ConditionedLaw, GraphModel, NewEdges, Perplexity
from graphcouple.laws.priors import UnitOutDegree
from graphcouple.summation.curved import Space

# New points placed at once: with 90 edges each, 20 MB. Results do not depend on it.
_ROWS_AT_ONCE = 16_384

# Perplexity of the law that turns places into points: a larger one averages over more points, and blurs them.
_NEARBY = 10.0

# The perplexity for three to five points: it must be above 1, and below the number of neighbours.
_FEWEST = 1.5


class HasInverse(HasLaw):
    """Base class of estimators that turn places in their embedding into points."""

    _space: Space | None
    """The curved space that the embedding lies in; None if it is flat."""

    _rows: EqualRows | None
    """Which rows share a point; None if each row is a point of its own."""

    _landmarks: IntArray | None
    """The rows that were fitted; None if all were."""

    @property
    def _places(self) -> FloatArray:
        """The embedding's points: its rows, without repetitions of equal rows, and landmarks only."""
        if self._landmarks is not None and len(self._landmarks) < len(self.embedding_):
            return self.embedding_[self._landmarks]
        return self.embedding_ if self._rows is None else self.embedding_[self._rows.first]

    def inverse_transform(self, Z: Any) -> FloatArray:
        """Return points of the input's space for places in the embedding: means of nearby fitted points.

        The weights are the mean edges from a new point at that place to the fitted ones, under a law of prior D given
        the embedding: Gaussian kernels of perplexity 10 (or a third of the points, at least 1.5) on the 30 nearest. So
        the result lies between fitted points and is smoother than they are. At the place of a fitted point it is that
        point. Columns of categories (`Blocks`) get the category of the largest weight. Distances are measured in the
        map's space.

        Parameters
        ----------
        Z : array of shape (n_places, n_components)

        Returns
        -------
        ndarray of shape (n_places, n_features)

        Raises
        ------
        NotFittedError, TypeError, ValueError
            When `Z` is unusable, or the estimator was fitted to distances or a graph, which have no means.

        Examples
        --------
        >>> import graphcouple as gc
        >>> X, y = gc.datasets.load("iris")
        >>> tsne = gc.TSNE(random_state=0).fit(X)
        >>> tsne.inverse_transform(tsne.embedding_[:3]).shape
        (3, 4)
        """
        check_is_fitted(self)
        if self._given is None or not self._given_points:
            raise ValueError("inverse_transform takes means of points, but the estimator was fitted to none.")
        places = self._checked_places(Z)
        if not len(places):
            raise ValueError("Z has no rows; give at least one place.")
        fitted, X, weights = self._places, self._given.X, self._given.weights
        columns = categories_of(self._given)
        if (equal := EqualRows.of(fitted)) is not None and equal.first.size > 2:
            # Points that share a place count as one: their mean.
            X, fitted = means_of(equal.averages(weights), X, columns), fitted[equal.first]
            weights = None if weights is None else equal.added(weights)
        others = len(fitted) - 1
        # One neighbour has all the weight, whatever its distance.
        bandwidth = Perplexity(min(_NEARBY, max(others / 3.0, _FEWEST))) if others > 1 else None
        near = min(int(3 * _NEARBY), others)
        # Coordinates of a curved map are a chart: its places are as far apart as the space says.
        metric = "euclidean" if self._space is None else self._space
        law = GraphModel(Gaussian(), UnitOutDegree(), bandwidth, n_neighbors=near, metric=metric)
        with warnings.catch_warnings():
            # The perplexity is not the user's, and a heavy point may be all there is nearby.
            warnings.filterwarnings("ignore", "perplexity=")
            near_places = in_parts(law.given(fitted, sample_weight=weights), places, self.n_jobs)
            parts = [means_of(edges.normalized(), X, columns) for _, edges in near_places]
        inverse = sp.vstack(parts).toarray() if sp.issparse(parts[0]) else np.vstack(parts)
        return inverse.astype(self.embedding_.dtype, copy=False)


def in_parts(law: ConditionedLaw, X: Any, n_jobs: int | None) -> Iterator[tuple[slice, NewEdges]]:
    """Yield some of the rows of new points at a time, and their edges."""
    for a in range(0, X.shape[0], _ROWS_AT_ONCE):
        rows = slice(a, a + _ROWS_AT_ONCE)
        yield rows, law.new_edges(X[rows], n_jobs)
