"""Shared by all estimators: an embedding, scikit-learn's interface, and files."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted, validate_data

from graphcouple._support.storage import write
from graphcouple._support.validation import check_embedding, check_sparse, check_unmasked, warn
from graphcouple.couplings import Objective
from graphcouple.estimators._parameters import ScikitTransformer
from graphcouple.estimators._peers import why_missing
from graphcouple.estimators._progress import progress_of
from graphcouple.graphs import FloatArray
from graphcouple.laws import ConditionedLaw, GraphLaw
from graphcouple.laws.priors import RandomGraph
from graphcouple.neighbors import as_points, is_precomputed, remembered_distances
from graphcouple.neighbors.points import looks_like_distances
from graphcouple.optimize import Optimizer, Solution, solve

# Rows that are compared first: if they differ, the others need not be read.
_FIRST = 100


class EmbeddingEstimator(ScikitTransformer):
    """The scikit-learn interface of an estimator whose result is `embedding_`."""

    embedding_: FloatArray
    max_iter: Any

    _not_saved: ClassVar[frozenset[str]] = frozenset()
    """Fitted attributes that a file leaves out."""

    couples_laws: ClassVar[bool] = False
    """Whether the method couples two laws, so that it has a `sentence`."""

    @property
    def uses_classes(self) -> bool:
        """Whether a law of the estimator uses classes `y`."""
        # A mixture's laws have no parameters of their own.
        return any(
            value.uses_classes if isinstance(value, GraphLaw) else name.endswith("target_weight") and bool(value)
            for name, value in self.get_params().items()
        )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed `X`, of shape (n_samples, n_features), or square if precomputed; `y` is ignored.

        Raises
        ------
        ValueError, TypeError
            When `X` or a parameter is invalid; the message says why.

        Warns
        -----
        UserWarning
            When all rows are equal, or there are fewer directions than `n_components`.
        ConvergenceWarning
            When the iterations were not enough.
        """
        self._validate_params()
        self._fit(self._checked(X))
        return self

    def _fit(self, X: Any) -> None:
        raise NotImplementedError

    def _descend(
        self,
        objective: Objective,
        start: FloatArray,
        optimizer: Optimizer,
        *,
        unit: float = 1.0,
        measure: str = "loss",
        watch: Callable[[FloatArray], None] | None = None,
        **options: Any,
    ) -> Solution:
        """Minimise an objective with the estimator's progress bar and callback, and keep how the run went.

        One of the objective's lengths is `unit` of the user's. The bar, the callback and the history are in the user's
        unit; the solution and `watch`, which sees the embedding at every check, are in the objective's.
        """
        with progress_of(self, self.max_iter, measure) as show:

            def each(iteration: int, loss: float, Z: FloatArray) -> Any:
                if watch is not None:
                    watch(Z)
                return show(iteration, loss * unit**2, unit * Z)

            if watch is not None or not show.idle:
                options = {"callback": each, "check_every": show.every} | options
            solution = solve(objective, start, optimizer, max_iter=self.max_iter, **options)
        self._keep_run(solution, unit**2)
        return solution

    def _keep_run(self, solution: Solution, unit: float = 1.0) -> None:
        self.loss_history_, self.loss_iterations_ = solution.loss_history * unit, solution.iterations
        self.n_iter_, self.stop_reason_ = solution.n_iter, solution.message

    def __getattr__(self, name: str) -> Any:
        """Raise an error that says what other libraries' attributes are called here."""
        known = next((vars(base)[name] for base in type(self).__mro__ if name in vars(base)), None)
        if known is not None:
            # A property raised an AttributeError itself; its message is better.
            return known.__get__(self, type(self))
        if name in self._not_saved and "embedding_" in vars(self):
            raise AttributeError(f"files leave {name} out; fit again to have it.", name=None, obj=self)
        # Without a name Python adds no suggestion of its own.
        raise AttributeError(why_missing(type(self), name, "embedding_" in vars(self)), name=None, obj=self)

    def report(self) -> list[tuple[str, str]]:
        """Return the laws that were used and the result, as names and texts: what the command prints.

        Examples
        --------
        >>> import graphcouple as gc
        >>> X, y = gc.datasets.load("iris")
        >>> gc.PrecisionCoupling().fit(X).report()
        [('eigenvalues', '630.008, 36.1579')]
        """
        check_is_fitted(self)
        values = vars(self).get("eigenvalues_")
        return [] if values is None else [("eigenvalues", ", ".join(f"{value:.6g}" for value in values))]

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> FloatArray:
        """Embed `X` and return the embedding; see `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self.fit(X, y, **options).embedding_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the fitted estimator to a file, which `graphcouple.load` reads.

        The file has all that `transform` and `update` need. It leaves out the callback, which is code, requests of
        metadata, precomputed distances, given neighbours, and the law of the graph: `posterior_` computes it again from
        the points. The format has a version, and later versions of graphcouple read it. Files from others are safe to
        open: they hold arrays and JSON only.

        Parameters
        ----------
        path : str or path
            An older file is replaced.

        Raises
        ------
        NotFittedError
        TypeError
            When a parameter is code, such as a metric of your own, or a search or features of another library. A
            regressor of another library is read by ``graphcouple.load(path, classes=[TheRegressor])``.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import graphcouple as gc
        >>> X, y = gc.datasets.load("iris")
        >>> tsne = gc.TSNE(random_state=0, max_iter=100).fit(X[::2])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tsne.save(pathlib.Path(folder) / "iris.gc")
        ...     again = gc.load(pathlib.Path(folder) / "iris.gc")
        >>> bool((again.transform(X) == tsne.transform(X)).all())
        True
        """
        check_is_fitted(self)
        write(path, self._saved())

    def _checked(self, X: Any) -> Any:
        """Return the points to fit, as floats in contiguous rows, and remember their columns."""
        points = as_points(self._validated(X, ensure_min_samples=2))
        if _are_equal(points[:_FIRST]) and _are_equal(points):
            warn(f"all {points.shape[0]} rows of X are equal, so there is nothing to embed; look at how X was made.")
        elif not self.takes_distances and looks_like_distances(points):
            warn(
                f"X, of shape {points.shape}, looks like a matrix of distances, and its rows are taken as points. If "
                "they are distances, pass metric='precomputed' to a method that takes it, as TSNE or ClassicalMDS; if "
                "they are weights of a graph, pass it as the input of GraphCoupling."
            )
        return points

    def _checked_new(self, X: Any) -> Any:
        """Return new points, which must have the columns of the fitted points."""
        check_is_fitted(self)
        return as_points(self._validated(X, reset=False), at_least=1)

    def _checked_places(self, Z: Any) -> FloatArray:
        check_is_fitted(self)
        places, q = check_embedding(Z), self.embedding_.shape[1]
        if places.shape[1] != q:
            raise ValueError(f"Z must have {q} columns, as the embedding has, got shape {places.shape}.")
        return places

    def _validated(self, X: Any, **options: Any) -> Any:
        if issparse(X):
            check_sparse(X, "X")
        check_unmasked(X, "X")
        if hasattr(X, "obsm") and not hasattr(X, "columns"):
            raise TypeError("X is annotated data; pass adata.obsm['X_pca'], or use gc.scverse.embed(adata, method).")
        # A column of a frame is an attribute, too.
        if callable(getattr(X, "number_of_nodes", None)) or callable(getattr(X, "vcount", None)):
            raise TypeError(
                "X is a graph, not points; pass it as the input of a method: "
                "gc.GraphCoupling(graph, gc.GraphModel('student', 'E')).fit()."
            )
        names = list(getattr(X, "columns", ()))
        if len(set(names)) < len(names):
            twice = next(name for i, name in enumerate(names) if name in names[:i])
            raise ValueError(f"X has two columns named {twice!r}; rename one of them, or pass X.to_numpy().")
        # scikit-learn takes dates and durations for numbers of nanoseconds.
        # A slice of a frame is one of its index, if that holds floats.
        first = np.asarray(X.head(1) if hasattr(X, "head") else X[:1]) if names and not hasattr(X, "dtype") else X
        if getattr(first, "dtype", np.dtype(float)).kind in "mM":
            raise TypeError(_not_numbers(X, names))
        try:
            return validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32, np.float16], **options)
        except TypeError as error:
            if "Feature names" in str(error):
                raise
            reason = "" if "promoted" in str(error) else f" ({error})"
            raise TypeError(_not_numbers(X, names) + reason) from None
        except ValueError as error:
            # scikit-learn's message goes on to recommend other estimators.
            if "contains NaN" in str(error) or "contains infinity" in str(error):
                value, is_bad = ("NaN", np.isnan) if "contains NaN" in str(error) else ("infinity", np.isinf)
                where = _first_column(X, names, lambda values: is_bad(values).any())
                raise ValueError(f"X holds {value}{where}; impute or drop those entries first.") from None
            if "could not convert" in str(error) or "Cannot cast" in str(error):
                where = _first_column(X, names)
                blocks = ", or by codes and metric=gc.Blocks([gc.Block(columns, metric='categorical'), ...])"
                way = f"by dummy variables{blocks if hasattr(self, 'metric') else ''}"
                raise ValueError(
                    f"X must be numeric: {error}{where}. Drop those columns, or encode them: {way}."
                ) from None
            raise

    def _saved(self) -> dict[str, Any]:
        """Return what a file holds: the estimator's parameters, its fitted attributes and what it remembers."""
        fitted = {
            name: value
            for name, value in vars(self).items()
            if name.endswith("_") and not name.startswith("_") and name not in self._not_saved
        }
        parameters = {
            name: clone(value).set_params(**_unportable(value)) if isinstance(value, EmbeddingEstimator) else value
            for name, value in self._flat_params().items()
        }
        return {
            "class": type(self).__name__,
            "parameters": parameters | _unportable(self),
            "output": vars(self).get("_sklearn_output_config", {}).get("transform"),
            "fitted": fitted,
            "remembered": self._remember(),
        }

    @classmethod
    def _loaded(cls, saved: dict[str, Any]) -> Self:
        made = cls(**saved["parameters"])
        # Older files lack it.
        if (output := saved.get("output")) is not None:
            if not isinstance(output, str) or output not in ("default", "pandas", "polars"):
                raise ValueError(f"the file is damaged: scikit-learn has no output {output!r}. Fit again.")
            made.set_output(transform=output)
        vars(made).update(saved["fitted"])
        Z = getattr(made, "embedding_", None)
        if not (isinstance(Z, np.ndarray) and Z.ndim == 2 and Z.dtype.kind == "f"):
            raise ValueError("the file is damaged: its embedding is not a table of numbers. Fit again.")
        if not np.isfinite(Z).all():
            raise ValueError("the file is damaged: its embedding is not finite. Fit again.")
        made._recall(saved["remembered"])
        return made

    _remembered: ClassVar[tuple[str, ...]] = ()
    """The private attributes that new points need besides the fitted ones."""

    def _remember(self) -> dict[str, Any]:
        return {name[1:]: _held(getattr(self, name)) for name in self._remembered}

    def _recall(self, remembered: dict[str, Any]) -> None:
        """Take back what `_remember` returned."""
        for name in self._remembered:
            value = remembered[name[1:]]
            if name == "_distances":
                metric, params = getattr(self, "metric", "euclidean"), getattr(self, "metric_params", None)
                value = remembered_distances(value, metric, params)
            elif name == "_given" and value is not None:
                value = self._stated_law.loaded(value)
            setattr(self, name, value)

    @property
    def _stated_law(self) -> Any:
        """A law of the kind that the estimator was fitted with, for reading the law from a file."""
        return self.model(len(self.embedding_))

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is an embedding: an interrupted first fit leaves none."""
        return hasattr(self, "embedding_")

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    shares_places: ClassVar[bool] = False
    """Whether points share places, which the sentence does not say."""

    @property
    def takes_distances(self) -> bool:
        """Whether `X` holds one number for each pair of points instead of points."""
        law = getattr(self, "input", None)
        return is_precomputed(getattr(self if law is None else law, "metric", None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.takes_distances
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class HasLaw(EmbeddingEstimator):
    """Base class of estimators with a law of the input's graph; a posterior from points is not copied or saved."""

    _given: ConditionedLaw | None
    """The input's law with its points; None if the input is a graph or a posterior."""

    _posterior: RandomGraph | None = None

    @property
    def _given_points(self) -> bool:
        """Whether the estimator was fitted to points, and not to distances or a graph alone."""
        return self._given is not None and not is_precomputed(self._given.law.metric)

    @property
    def posterior_(self) -> RandomGraph:
        """The law of the input's graph."""
        check_is_fitted(self)
        if self._posterior is None:
            if self._given is None:
                raise AttributeError("the law of a graph of your own is not saved; it is the input of the estimator.")
            self._posterior = self._given.posterior(self.n_jobs)
        return self._posterior

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = dict(super().__getstate__())  # type: ignore[call-overload]
        if state.get("_given") is not None:
            state["_posterior"] = None
        return state


def _are_equal(points: Any) -> bool:
    if issparse(points):
        return bool((points.max(axis=0) != points.min(axis=0)).nnz == 0)
    return bool((points == points[0]).all())


def _unportable(estimator: EmbeddingEstimator) -> dict[str, None]:
    """Return None for each parameter that is left out of files: code, and paths on this machine."""
    return {name: None for name in ("callback", "checkpoint") if name in estimator._flat_params()}


def _held(value: Any) -> Any:
    """Return what a file holds of a private attribute."""
    return value.saved() if isinstance(value, ConditionedLaw) else getattr(value, "remembered", lambda: value)()


def _first_column(X: Any, names: list[Any], bad: Callable[[FloatArray], Any] = lambda _: False) -> str:
    """Return words that name the first column of a frame with non-numeric or bad entries; "" if there is none."""
    for name in names:
        try:
            values = np.asarray(X[name])
            is_bad = values.dtype.kind in "mM" or bool(bad(values.astype(np.float64)))
        except (TypeError, ValueError):
            is_bad = True
        if is_bad:
            return f" in column {name!r}"
    return ""


def _not_numbers(X: Any, names: list[Any]) -> str:
    where = _first_column(X, names)
    return f"X has dates, durations or other objects{where}, which are not numbers; encode or drop such columns."
