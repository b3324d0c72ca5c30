"""The base of every coupling estimator: it runs the sentence and keeps the result."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from graphcouple._support.html import html_table
from graphcouple._support.validation import is_word
from graphcouple.couplings import Coupling
from graphcouple.couplings.fixed_map import Placing
from graphcouple.couplings.recipes import as_coupling, check_terms
from graphcouple.estimators._parameters import RUN_OPTIONS, estimator, option, parameter
from graphcouple.estimators.carry_out import Result, bounded, objective_of, posterior_of
from graphcouple.estimators.memory import warn_if_too_large
from graphcouple.estimators.new_points import PlacesNewPoints
from graphcouple.estimators.rows import EqualRows, Rows, nearest_to_means, warn_if_places_are_shared, with_others
from graphcouple.estimators.run_control import RunOptions, continued, same, snapshots_of
from graphcouple.estimators.sentence import Sentence, optimizer_of
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.initializations import given_start, is_made
from graphcouple.laws import GraphLaw, GraphModel, Space
from graphcouple.laws.copies import check_weights, effective_graphs
from graphcouple.laws.priors import RandomGraph
from graphcouple.laws.priors.base import same_weights
from graphcouple.neighbors import coordinates_of
from graphcouple.optimize import Callback, PositionUncertainty, position_uncertainty
from graphcouple.summation import Exact

# Losses that differ by more than this share are not the same function: a tolerance, since fits may sum approximately.
_SAME_LOSS = 1e-3

# The parts of a sentence that an estimator keeps from its fit, whatever parameters are set later.
_FITTED = ("input", "latent", "coupling")


@estimator
class CouplingEstimator(PlacesNewPoints):
    """Base class of estimators that minimise a coupling of two hidden graphs, plus optional terms.

    A subclass declares its parameters and translates them into a `sentence`; this class does the rest.

    {parameters}
    """

    couples_laws: ClassVar[bool] = True

    terms: Any = parameter(default=())
    unique: bool = parameter(default=False)
    n_landmarks: int | None = parameter(default=None)
    transform_method: Any = parameter(default="law")
    random_state: Any = parameter(default=None)
    n_jobs: int | None = parameter(default=None)
    verbose: int = parameter(default=0)
    run: RunOptions | None = parameter(default=None, checks=[RunOptions, None])
    summation: Any = option("run", RunOptions, default=RunOptions.summation)
    n_starts: Any = option("run", RunOptions, default=RunOptions.n_starts)
    warm_start: bool = option("run", RunOptions, default=RunOptions.warm_start)
    checkpoint: Any = option("run", RunOptions, default=RunOptions.checkpoint)
    on_interrupt: str = option("run", RunOptions, default=RunOptions.on_interrupt)
    callback: Callback | None = option("run", RunOptions, default=RunOptions.callback)

    @property
    @abstractmethod
    def sentence(self) -> Sentence:
        """The method as parameters of `GraphCoupling`: two laws, a coupling, terms, an optimizer, a start."""

    def models(self, n_samples: int) -> tuple[GraphLaw | RandomGraph, GraphModel]:
        """Return the laws of the input's and of the embedding's graph for this many samples."""
        sentence = self.sentence
        law = sentence.input if self._has_own_graph else sentence.input.for_points(n_samples)
        return law, sentence.latent

    @property
    def _has_own_graph(self) -> bool:
        """Whether the input is a graph or a posterior, so that `X` is not needed for it."""
        return not isinstance(self.sentence.input, GraphLaw)

    @property
    def posterior_(self) -> RandomGraph:
        check_is_fitted(self)
        # A file holds the graph, but not its law.
        if self._posterior is None and self._given is None and self._laws["input"] is not None:
            self._posterior = posterior_of(self.sentence.replace(**self._laws), None, None)
        return super().posterior_

    def _stated(self, input: Any, latent: GraphModel, coupling: Any, optimizer: Any) -> Sentence:
        """Return the sentence of these laws, this coupling and optimizer, with the estimator's other parameters."""
        laws = {"input": input, "latent": latent, "coupling": coupling, "terms": self.terms, "optimizer": optimizer}
        others = {name: getattr(self, name) for name in ("init", "max_iter", "n_components")}
        fields = CouplingEstimator.__dataclass_fields__ | RunOptions.__dataclass_fields__
        options = {name: getattr(self, name) for name in (*RUN_OPTIONS, *self._options) if name not in ("terms", "run")}
        changes = {name: value for name, value in options.items() if not same(value, fields[name].default)}
        return Sentence(**laws, **others, **changes)

    def _points_of(self, X: Any) -> Any:
        if X is None and not self._has_own_graph:
            raise ValueError(
                "X is None, and the input's law finds its graph among points; give points, or a graph or a posterior "
                "as the input of GraphCoupling."
            )
        return None if X is None else self._checked(X)

    def fit(self, X: Any = None, y: Any = None, neighbors: Any = None, *, resume: bool = False, **weights: Any) -> Self:
        """Embed `X`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Points; or distances, as a square array or a sparse graph, for ``metric="precomputed"``. X may be None if
            the input is your own graph, and neither the start nor a term needs points. The points are kept for
            `transform`, mostly without a copy: leave the array as it is.
        y : any
            Classes, −1 where one is not known, or numbers with fractions, if the law has a `target_weight` above 0;
            else ignored. The coupling and the terms get it too; the library's own ignore it. `update` and
            `uncertainty` give them None.
        neighbors : tuple of arrays, or sparse matrix of shape (n_samples, n_samples), optional
            Neighbours that you found, which are not searched for again: ``(indices, distances)``, each of shape
            (n_samples, k); umap-learn's triple; the matrix of scikit-learn's ``KNeighborsTransformer``; or scanpy's
            ``obsp["distances"]``. They may include the point itself. Edges lead only to these neighbours, or to the
            nearest of them if the method needs fewer.
        resume : bool, default=False
            Continue from the file `checkpoint`, if there is one, to the bits of a run that was never interrupted. Data
            and parameters must be the same.
        sample_weight : array of shape (n_samples,), optional
            How many points in one place each row stands for, above 0 (keyword-only). The loss counts them all.

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            When the run ended badly (see `solve`), or points whose rows differ lie in one place.

        Raises
        ------
        ValueError, TypeError
            When `X` or a parameter is invalid; the message says why.
        FloatingPointError
            When the loss, gradient or embedding is no longer finite.
        MemoryError
            When the fit needs over twice the memory that is free; it is then not begun.
        """
        check_terms(self.terms)
        self._validate_params()
        sample_weight = weights.pop("sample_weight", None)
        if unknown := next(iter(weights), None):
            raise TypeError(f"fit has no argument {unknown!r}; it has X, y, neighbors, resume and sample_weight.")
        self._heed(y)
        X = self._points_of(X)
        if X is not None:
            self.models(X.shape[0])
        sentence, begun = continued(self, self.sentence, X), check_random_state(self.random_state)
        snapshots, rng = snapshots_of(
            self, begun, resume, X=X, y=y, start=sentence.init, neighbors=neighbors, sample_weight=sample_weight
        )
        if sample_weight is not None and X is not None:
            sample_weight = check_weights(sample_weight, X.shape[0])
        rows, equal, landmarks = Rows(X, y, neighbors, sample_weight), None, None
        if self.n_landmarks is not None and (X is None or self.n_landmarks < X.shape[0]):
            rows, sentence, landmarks = self._of_landmarks(rows, sentence, rng)
        if self.unique and X is not None:
            rows, sentence, equal = self._gathered(rows, sentence)
        # Sparse points, distances and known neighbours have no dense copies.
        dense = X is not None and not (issparse(X) or self.takes_distances or neighbors is not None)
        if dense and self.n_landmarks is None:
            warn_if_too_large(self.sentence, rows.X.shape[0], rows.X.shape[1], rows.X.dtype.itemsize)
        result = self._carry_out(sentence, rows, rng, snapshots=snapshots)
        if X is not None and not (result.solution.stopped or self.terms):
            by_number = hasattr(self, "n_neighbors") and not hasattr(self, "perplexity")
            neighbors = "n_neighbors" if by_number else "the perplexity"
            has_law = as_coupling(sentence.coupling).places_points
            warn_if_places_are_shared(rows.X, result.solution.Z, neighbors if has_law else None)
        # An earlier fit is kept until the run has finished.
        self._rows, self._landmarks = equal, landmarks
        self._keep(result, np.float64 if X is None else X.dtype)
        if landmarks is not None:
            law = self._checked_law()
            self.embedding_ = with_others(X.shape[0], landmarks, self.embedding_, lambda i: self._placed(X[i], law)[0])
        return self

    def _heed(self, y: Any) -> None:
        """Tell users of another library, who may expect otherwise, that `y` is ignored."""

    def _of_landmarks(
        self, rows: Rows, sentence: Sentence, rng: np.random.RandomState
    ) -> tuple[Rows, Sentence, IntArray]:
        """Return the landmarks alone, the sentence for them, and their row numbers."""
        of_rows = rows.neighbors is not None or sentence.names_rows
        if of_rows or self.unique or self.takes_distances or self._has_own_graph:
            raise ValueError(
                f"n_landmarks={self.n_landmarks} fits some rows only; neighbors, graphs, distances, unique=True and "
                "terms that name rows need all of them, so leave n_landmarks out."
            )
        flat = not isinstance(sentence.latent.metric, Space)
        places = flat and as_coupling(sentence.coupling).places(sentence.latent)
        if self.transform_method == "law" and not places and sentence.get("features") is None:
            raise ValueError(
                f"{type(self).__name__} has no law that places the rows beyond n_landmarks={self.n_landmarks}; use "
                "transform_method='mlp', or leave n_landmarks out."
            )
        start = self._checked_start(sentence, rows.X.shape[0])
        # Codes of categories have no means; other blocks may have no coordinates.
        coordinates = coordinates_of(rows.X, sentence.input.metric)
        means_of = rows.X if coordinates is None else coordinates
        landmarks = nearest_to_means(means_of, int(self.n_landmarks or 0), rng)
        if landmarks.size < 2:
            raise ValueError(f"n_landmarks={self.n_landmarks} finds one point only; raise it, or leave it out.")
        if start is not None:
            sentence = sentence.replace(init=start[landmarks])
        return rows.at(landmarks), sentence, landmarks

    def _gathered(self, rows: Rows, sentence: Sentence) -> tuple[Rows, Sentence, EqualRows | None]:
        """Return one row for all equal ones, whose weights are added, the sentence for them, and which are equal."""
        equal = EqualRows.of(rows.X)
        if equal is None or equal.first.size < 2:
            return rows, sentence, None
        if rows.neighbors is not None or self.terms or not isinstance(sentence.input, GraphLaw) or self.takes_distances:
            raise ValueError(
                f"unique=True merges equal rows, {equal.n_rows - equal.first.size} of which are copies "
                "here; terms count each row once, and neighbors, graphs and distances of your own name rows, so remove "
                "the copies yourself."
            )
        labels = equal.agreed(rows.y) if sentence.input.uses_classes else equal.first_of(rows.y)
        if (start := self._checked_start(sentence, equal.n_rows)) is not None:
            sentence = sentence.replace(init=start[equal.first])
        return Rows(rows.X[equal.first], labels, weights=equal.added(rows.weights)), sentence, equal

    def _checked_start(self, sentence: Sentence, n_rows: int) -> FloatArray | None:
        """Return the start, if it is an array; raise unless it has one place for each row."""
        return None if is_made(sentence.init) else given_start(sentence.init, n_rows, sentence.n_components)

    # `sample_weight` is not in the signature, because scikit-learn's checks would then require the same embedding from
    # weights as from copies. Both have the same loss, but descent finds different minima.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None}

    def _keep(self, result: Result, dtype: Any) -> None:
        solution, part = result.solution, result.part
        places = solution.Z.astype(dtype, copy=False)
        self._regressor = self._seed = None
        self.embedding_ = places if self._rows is None else places[self._rows.point]
        self._given = part.law
        placing = part.coupling if isinstance(part.coupling, Placing) else None
        self._map, self._function = result.fixed_map(places), result.function
        self._scale = 1.0 if placing is None else placing.scale
        metric = part.problem.latent.metric
        stated = {name: part.sentence[name] for name in _FITTED}
        # Nested parameters are set in place.
        own = (GraphLaw, Coupling)
        self._laws = {name: copy.copy(part) if isinstance(part, own) else part for name, part in stated.items()}
        self._described = _described(self.sentence.replace(**stated))
        self._space = metric if isinstance(metric, Space) else None
        self._posterior = part.problem.posterior if part.order is None else None
        self._keep_run(solution)
        self.loss_, self.start_losses_ = solution.loss, solution.start_losses
        self.term_losses_ = [term.value(solution.Z) for _, term in part.terms]
        self.term_weights_ = [weight for weight, _ in part.terms]
        weighed = zip(self.term_weights_, self.term_losses_, strict=True)
        self.coupling_loss_ = solution.loss - sum(weight * loss for weight, loss in weighed)
        self.__dict__.pop("kl_divergence_", None)
        if placing is not None and placing.has_kl_divergence:
            self.kl_divergence_ = placing.kl_divergence(result.for_coupling(solution.Z))

    def uncertainty(self, temperature: float | str = "auto") -> PositionUncertainty:
        """Return how certain the positions are: the normal law that exp(−H/T) has around the map, for its loss H.

        Parameters
        ----------
        temperature : float or "auto", default="auto"
            T. At 1/m, positions are as certain as m drawn graphs make them. "auto" takes the number of graphs that have
            as many edges as the input's law has effective ones, 1/T = exp(−Σ p log p)/Σ E[W], where p are the shares of
            the edges. For t-SNE this is the perplexity.

        Returns
        -------
        PositionUncertainty
            With `covariances()`, `radii()`, `stability()` and `sample()`; `plotting.plot_uncertainty` draws it.

        Raises
        ------
        NotFittedError, TypeError, ValueError
            When the estimator is not fitted, has more than 4,000 coordinates, was fitted to landmarks, or its loss
            cannot be rebuilt, because its parameters have changed or its draws are forgotten
            (``random_state=None``). See `optimize.position_uncertainty`.

        Examples
        --------
        >>> import graphcouple as gc
        >>> X, y = gc.datasets.load("iris")
        >>> law = gc.TSNE(random_state=0).fit(X).uncertainty()
        >>> law.covariances().shape, round(law.temperature, 4)
        ((150, 2, 2), 0.0333)
        """
        check_is_fitted(self)
        if self._landmarks is not None:
            raise ValueError("the rows beyond n_landmarks were placed and not fitted; fit a sample of them alone.")
        if self._function is not None:
            raise ValueError("uncertainty() does not support maps by `features`; fit without them.")
        is_word("temperature", temperature, "auto", "a number above 0")
        X = None if self._given is None else self._given.X
        posterior = self.posterior_
        value = 1.0 / effective_graphs(posterior) if isinstance(temperature, str) else temperature
        sentence = self.sentence.replace(summation=Exact())
        rng = check_random_state(copy.deepcopy(self.random_state))
        objective = objective_of(sentence, X, posterior, rng)
        loss = objective.value(self._places.astype(np.float64))
        if abs(loss - self.loss_) > _SAME_LOSS * max(abs(loss), abs(self.loss_)):
            raise ValueError(
                f"the loss was {self.loss_:.6g}, and is {loss:.6g} now: parameters have changed since `fit`, or its "
                "random draws are forgotten. Fit again, with an integer as random_state."
            )
        law = position_uncertainty(bounded(objective, optimizer_of(sentence)), self._places, value)
        return law if self._rows is None else law._at(self._rows.point)

    def _repr_html_inner(self) -> str:
        rows = self.report() if self.__sklearn_is_fitted__() else self.sentence.shown()
        return f"{super()._repr_html_inner()}{html_table([], rows)}"

    def report(self) -> list[tuple[str, str]]:
        check_is_fitted(self)
        given = {} if self._given is None else {"input": str(self._given.law)}
        rows = [(name, given.get(name, text)) for name, text in self._described]
        rows.append(("loss", f"{self.loss_:.6g} nats"))
        if self.term_losses_:
            weighed = zip(self.term_weights_, self.term_losses_, strict=True)
            parts = ", ".join(f"{weight:.3g} × {loss:.6g}" for weight, loss in weighed)
            rows.append(("of which", f"coupling {self.coupling_loss_:.6g}; terms {parts}"))
        if "kl_divergence_" in vars(self):
            rows.append(("KL", f"{self.kl_divergence_:.4f} nats"))
        return rows

    _remembered = ("_given", "_map", "_scale", "_space", "_rows", "_landmarks", "_function", "_seed", "_described")

    def _remember(self) -> dict[str, Any]:
        if self._function is not None and self._function.features is not None:
            raise TypeError(
                f"features={self._function.features!r} is fitted by another library, which a file cannot hold; pickle "
                "the estimator."
            )
        if self.transform_method != "law":
            self._seed_of_regressor()
        now, changed = self.sentence, {}
        for name, value in self._laws.items():
            # Files hold no graphs of one's own.
            holds = isinstance(value, (GraphLaw, Coupling, str))
            if holds and (type(value) is not type(now[name]) or value != now[name]):
                changed[name] = value
            elif not holds and not _same_graph(value, now[name]):
                changed[name] = None
        return super()._remember() | {"laws": changed}

    def _recall(self, remembered: dict[str, Any]) -> None:
        # Older files lack these.
        self._laws = {name: self.sentence[name] for name in _FITTED} | remembered.get("laws", {})
        remembered = {"described": _described(self.sentence), **remembered}
        super()._recall({"space": None, "landmarks": None, "function": None, "seed": None, **remembered})
        self._posterior = self._regressor = None
        n, landmarks = len(self.embedding_), self._landmarks
        of_others = self._rows is not None and self._rows.n_rows != n
        if of_others or (landmarks is not None and not _are_rows(landmarks, n)):
            raise ValueError(f"the file is damaged: its copies or landmarks are not among its {n} rows. Fit again.")
        X = None if self._given is None else self._given.X
        if X is not None and X.shape[0] != len(self._places):
            raise ValueError(f"the file is damaged: {X.shape[0]} points and {len(self._places)} places. Fit again.")
        if (fixed := remembered["map"]) is not None:
            self._map = fixed(self._places / np.asarray(self._scale, self.embedding_.dtype))

    @property
    def _stated_law(self) -> Any:
        return self._laws["input"]


def _are_rows(landmarks: IntArray, n: int) -> bool:
    """Return whether numbers of rows ascend, from 0 to below n."""
    return landmarks.dtype.kind == "i" and bool(np.diff(landmarks, prepend=-1, append=n).min() > 0)


def _described(sentence: Sentence) -> list[tuple[str, str]]:
    """Return the rows of a report that state the method."""
    return [row for row in sentence.rows() if row[0] not in ("init", "max_iter", "n_components")]


def _same_graph(left: Any, right: Any) -> bool:
    try:
        return left is right or same_weights(left, right)
    except (TypeError, ValueError):
        return False
