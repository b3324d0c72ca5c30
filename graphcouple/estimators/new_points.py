"""New points in an embedding: placed, added, and how far they are from the fitted ones."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from graphcouple._numba.threads import one_blas_thread, threads_kept
from graphcouple._support.validation import UNLABELLED
from graphcouple.couplings.fixed_map import FixedMap
from graphcouple.couplings.network import Network
from graphcouple.couplings.parametric import FeatureMap
from graphcouple.estimators._progress import progress_of
from graphcouple.estimators.carry_out import Result, carry_out
from graphcouple.estimators.inverse import HasInverse, in_parts
from graphcouple.estimators.regressors import trained_regressor
from graphcouple.estimators.rows import EqualRows, Rows, categories_of
from graphcouple.estimators.run_control import from_places
from graphcouple.estimators.sentence import Sentence
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.laws import ConditionedLaw
from graphcouple.laws.copies import joined_weights
from graphcouple.laws.given import refuse_alone
from graphcouple.laws.labels import and_unknown
from graphcouple.optimize.placing import place_new


class PlacesNewPoints(HasInverse):
    """Base class of estimators whose law of the input's graph gives new points their edges to the fitted ones."""

    _map: FixedMap | None
    """The embedding as it attracts and repels new points; None if the coupling cannot place new points."""

    _function: FeatureMap | Network | None
    """The map as a function of the points; None if each point has its own place."""

    _scale: float
    """The bandwidth of the embedding's graph."""

    _regressor: Any
    """The `transform_method`, its trained regressor, and the places it has learnt; None if there is none yet."""

    _seed: int | None
    """The seed of the regressor; None if it is not drawn yet."""

    _laws: dict[str, Any]
    """The laws and the coupling of `fit`."""

    _described: list[tuple[str, str]]
    """The sentence of `fit`, as names and texts."""

    @property
    def landmarks_(self) -> IntArray | None:
        """The rows of X that were fitted, ascending; None if all were."""
        check_is_fitted(self)
        return self._landmarks

    def transform(self, X: Any, return_loss: bool = False) -> Any:
        """Place new points in the embedding, which stays as it is.

        A new point gets the edges that the input's law gives it among the points of `fit`. Its place is where the
        embedding's law agrees best with them: the least of the loss terms that hold its own edges, from the best of ten
        starts. It does not depend on the other new points, on their order, or on the number of threads. A point that
        coincides with one of `fit` gets its place. Terms are ignored. All this holds for ``transform_method="law"``; a
        regressor predicts the places instead. With `features`, the map itself is a function of points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            New points. For ``metric="precomputed"``, their distances to the points of `fit`.
        return_loss : bool, default=False
            Whether to return each point's loss too.

        Returns
        -------
        Z : ndarray of shape (n_new, n_components)
        loss : ndarray of shape (n_new,)
            In nats; only with `return_loss`. A copy of a point of `fit` has the loss of a new point at its best place.
            The loss is large where the embedding has no place that suits all the edges. Bandwidths adapt, so it does
            not measure how far a point is from the fitted ones: see `isolation`.

        Raises
        ------
        NotFittedError, TypeError, ValueError
            When `X` is unusable, the input was a graph or a posterior, or the coupling has no place for new points.

        References
        ----------
        Poličar, Stražar and Zupan (2023), Embedding to reference t-SNE space, for fixed maps and independent rows.

        Examples
        --------
        >>> import graphcouple as gc
        >>> X, y = gc.datasets.load("iris")
        >>> tsne = gc.TSNE(random_state=0).fit(X[::2])
        >>> tsne.transform(X[1::2]).shape
        (75, 2)
        """
        law, X = self._checked_law(), self._checked_new(X)
        if return_loss and (self._function is not None or self.transform_method != "law"):
            raise ValueError("only places by the law have a loss, not places by `features` or a transform_method.")
        Z, loss = self._placed(X, law)
        return (Z, loss) if return_loss else Z

    def _placed(self, X: Any, law: ConditionedLaw, starts: bool = False) -> tuple[FloatArray, FloatArray | None]:
        """Return the places of checked points and, if the law places them, their losses; `starts` need no edges."""
        if self._function is not None:
            return self._function(X).astype(self.embedding_.dtype), None
        if self.transform_method != "law":
            X = X.toarray() if sp.issparse(X) and not sp.issparse(law.X) else X
            return self._trained(law).predict(X).astype(self.embedding_.dtype).reshape(X.shape[0], -1), None
        if (fixed := self._fixed_map()) is None:
            remedy = "use transform_method='mlp', or fit all rows" if self._given_points else "fit all rows"
            raise ValueError(f"{type(self).__name__} has no law that places new points; {remedy}.")
        n_new, q = X.shape[0], self.embedding_.shape[1]
        Z, loss = np.empty((n_new, q), dtype=self.embedding_.dtype), np.empty(n_new)
        for rows, edges in in_parts(law, X, self.n_jobs):
            if not starts:
                refuse_alone(edges.mass == 0.0)
            places, loss[rows] = place_new(fixed, edges, self.n_jobs)
            Z[rows] = places * self._scale
            same = edges.coincident >= 0
            Z[rows][same] = self._places[edges.coincident[same]]
        return Z, loss

    def _trained(self, law: ConditionedLaw) -> Any:
        # A parameter of the same regressor may have been changed, or the embedding.
        wanted, places = (self.transform_method, repr(self.transform_method)), self._places
        if self._regressor is None or self._regressor[0] != wanted or not np.array_equal(self._regressor[2], places):
            if not self._given_points:
                remedy = "fit all rows" if self._fixed_map() is None else "use 'law'"
                raise ValueError(f"a regressor needs points, but the estimator was fitted to distances; {remedy}.")
            if columns := categories_of(law):
                raise ValueError(
                    f"columns {columns} hold codes of categories, which a regressor would read as numbers; use "
                    "transform_method='law', or a column of 0 and 1 for each category."
                )
            trained = trained_regressor(self.transform_method, law.X, places, self._seed_of_regressor())
            self._regressor = wanted, trained, places.copy()
        return self._regressor[1]

    def _seed_of_regressor(self) -> int:
        """Return the seed, drawn once, so that a saved estimator trains the same regressor."""
        if self._seed is None:
            self._seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return self._seed

    def update(self, X: Any, move: str = "none", sample_weight: Any = None) -> Self:
        """Add points to the embedding.

        The estimator then holds all points, as if fitted to them: `embedding_` has the old rows first, and `posterior_`
        and `loss_` are of all points. The laws and the coupling stay as they were at `fit`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_more, n_features)
        move : {"none", "new", "all"}, default="none"
            "none" puts new points where `transform` does, and old rows keep every byte. "new" lets the new points
            arrange themselves among each other too; old rows keep every byte. "all" moves all points, without
            exaggeration: neighbourhoods improve, and the old arrangement is kept roughly.
        sample_weight : array of shape (n_more,), optional
            How many points in one place each new row stands for; 1 by default.

        Returns
        -------
        self

        Raises
        ------
        NotFittedError, TypeError, ValueError
            When `X` is unusable, as for `transform`; when the estimator was fitted to precomputed distances, or to
            neighbours of your own.

        Examples
        --------
        >>> import graphcouple as gc
        >>> X, y = gc.datasets.load("iris")
        >>> tsne = gc.TSNE(random_state=0).fit(X[:100])
        >>> before = tsne.embedding_
        >>> after = tsne.update(X[100:]).embedding_
        >>> after.shape, bool((after[:100] == before).all())
        ((150, 2), True)
        """
        if not isinstance(move, str) or move not in ("none", "new", "all"):
            got = move if isinstance(move, str) else type(move).__name__
            raise ValueError(
                f"move must be 'none', 'new' or 'all', got {got!r}."
                + ("" if isinstance(move, str) else " New points have no classes.")
            )
        law, X = self._checked_law(), self._checked_new(X)
        if self._function is not None:
            raise ValueError("the map is a function of its points, which update would not keep; use transform.")
        if self._landmarks is not None:
            raise ValueError("update would forget the points that are not landmarks; use transform, or fit again.")
        if not self._given_points:
            raise ValueError(
                "distances to new points do not give the distances between them; fit all distances with init= an array "
                "of the old places and transform's."
            )
        if law.neighbors_given:
            raise ValueError(
                "update would search all neighbours anew, and forget those that were given; fit all points with their "
                "neighbors and init= an array of the old places and transform's."
            )
        Z = np.vstack([self._places, self._placed(X, law, starts=move != "none")[0]])
        old = np.arange(len(Z)) < len(self._places)
        if sp.issparse(law.X):
            whole = sp.vstack([law.X, sp.csr_array(X)], format="csr")
        else:
            whole = np.vstack([law.X, X.toarray() if sp.issparse(X) else X])
        weights = joined_weights(law.weights, len(self._places), sample_weight, X.shape[0])
        equal = None if self._rows is None else self._rows.and_more(X.shape[0])
        sentence = self.sentence.replace(**self._laws, n_components=Z.shape[1])
        rng = check_random_state(self.random_state)
        # New points have no target.
        codes = and_unknown(law.labels, X.shape[0])
        if self.unique and (copies := EqualRows.of(whole)) is not None:
            equal = copies if equal is None else equal.joined(copies)
            if codes is not None and law.labels is not None:
                codes = codes[copies.first_known(np.append(law.labels, np.full(X.shape[0], UNLABELLED)))]
            weights = copies.added(weights)
            Z, old, whole = Z[copies.first], old[copies.first], whole[copies.first]
        rows = Rows(whole, weights=weights, codes=codes)
        if move == "all":
            result = self._carry_out(from_places(sentence, Z), rows, rng)
        else:
            held = old if move == "new" else np.ones(len(Z), dtype=bool)
            result = self._carry_out(sentence, rows, rng, start=Z, held=held)
        self._rows = equal
        self._keep(result, Z.dtype)
        return self

    def isolation(self, X: Any = None) -> FloatArray:
        """Return how far points are from the fitted ones, whatever their places.

        It is the root mean square distance of a point to its ten nearest fitted points, divided by the root mean
        square distance of these ten to their own ten nearest: about 1 for points like the fitted ones. Laws with fewer
        than ten neighbours use them all. A row counts once, whatever its weight. If the value is large, the point's
        place says only which fitted points are least far from it.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features), optional
            New points. Without it, the fitted points are compared with each other.

        Returns
        -------
        ndarray of shape (n_new,), or (n_samples,) without `X`

        Raises
        ------
        NotFittedError, TypeError, ValueError
            See `transform`.

        Examples
        --------
        >>> import graphcouple as gc
        >>> X, y = gc.datasets.load("iris")
        >>> tsne = gc.TSNE(random_state=0).fit(X[::2])
        >>> bool(tsne.isolation(X[1:2])[0] < 3 < tsne.isolation(X[1:2] + 100)[0])
        True
        """
        if X is None:
            return self._of_rows(self._checked_law().own_isolation(self.n_jobs))
        law, X = self._checked_law(), self._checked_new(X)
        return np.concatenate([edges.isolation for _, edges in in_parts(law, X, self.n_jobs)])

    def point_losses(self) -> FloatArray:
        """Return the loss of each fitted point at its place, in nats; `transform` places new points by the same loss.

        A point of high loss lies far from where its edges pull it: between groups, or torn from its neighbours. Laws
        that join the edges of both ends, as UMAP's does, give a fitted point more edges than a new one, and a higher
        loss. A row with a sample weight stands for several copies, and gets the loss of one copy, as if the row were
        repeated; so do equal rows under ``unique=True``. Copies repel each other too, unless the repulsion of points in
        one place is infinite, as in UMAP.

        Returns
        -------
        ndarray of shape (n_samples,)

        Raises
        ------
        NotFittedError, ValueError
            When the estimator is not fitted, or its coupling cannot place new points.

        Examples
        --------
        >>> import graphcouple as gc
        >>> X, y = gc.datasets.load("iris")
        >>> gc.TSNE(random_state=0).fit(X).point_losses().shape
        (150,)
        """
        check_is_fitted(self)
        if (fixed := self._fixed_map()) is None:
            raise ValueError("the coupling of this estimator has no loss per point; use loss_.")
        posterior = self.posterior_
        return self._of_rows(fixed.own_losses(sp.csr_array(posterior.mean()), posterior.own_means))

    def _checked_law(self) -> ConditionedLaw:
        check_is_fitted(self)
        if self._given is None:
            raise ValueError(
                "new points need a law of the input's graph, but `input` is a graph or a posterior; pass a GraphModel."
            )
        return self._given

    def _fixed_map(self) -> FixedMap | None:
        """Return the map with its points where they are now: the embedding may have been turned, scaled or aligned."""
        if self._map is not None:
            self._map = self._map.at(self._places / np.asarray(self._scale, self.embedding_.dtype))
        return self._map

    def _of_rows(self, values: FloatArray) -> FloatArray:
        """Return a value for each row of X from values for the fitted points; NaN for rows that were not fitted."""
        if self._landmarks is not None:
            whole = np.full(len(self.embedding_), np.nan)
            whole[self._landmarks] = values
            return whole
        return values if self._rows is None else values[self._rows.point]

    def _carry_out(self, sentence: Sentence, rows: Rows, rng: np.random.RandomState, **options: Any) -> Result:
        one = one_blas_thread(0 if rows.X is None else int(np.prod(rows.X.shape)))
        with one, threads_kept(), progress_of(self, sentence.iterations(rows.n_rows)) as show:
            result = carry_out(sentence, rows, rng, watch=show, **options)
            if show.bar is not None:
                show.bar(result.solution.n_iter, result.solution.loss)
            return result
