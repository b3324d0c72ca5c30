"""Shared by presets that wrap another coupling estimator and add a term to its objective."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from graphcouple.couplings import Term
from graphcouple.couplings.recipes import check_terms
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.carry_out import Prepared
from graphcouple.estimators.embedding import EmbeddingEstimator
from graphcouple.estimators.sentence import Sentence
from graphcouple.estimators.sne import TSNE
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.laws.priors import RandomGraph
from graphcouple.optimize import PositionUncertainty, Solution

# Options of new points and of further runs, which a fitted method reads anew.
_OPTIONS = ("transform_method", "n_jobs", "verbose", "run", "max_iter", "random_state", "unique")


@estimator
class WithTerm(EmbeddingEstimator):
    """Base class of presets that add one term to another estimator."""

    estimator: CouplingEstimator | None = parameter(
        default=None,
        kind="GraphCoupling, TSNE, UMAP or another coupling estimator, optional",
        doc="The plain method: its laws, start, optimizer and everything else; TSNE() by default. To search "
        "over its parameters, pass it explicitly and use names such as ``estimator__perplexity``.",
        checks=[None, CouplingEstimator],
        kw_only=False,
    )
    random_state: Any = parameter(default=None, doc="Overrides the estimator's own, unless None.")
    n_jobs: int | None = parameter(default=None, doc="Overrides the estimator's own, unless None.")

    couples_laws: ClassVar[bool] = True
    plain_method: ClassVar[type[CouplingEstimator]] = TSNE
    _loss: ClassVar[str | None] = None
    """The attribute with the value of the preset's term, if it has one; `weight_` is then its weight."""

    def report(self) -> list[tuple[str, str]]:
        return self._fitted.report()

    @property
    def takes_distances(self) -> bool:
        return bool(getattr(self.estimator, "takes_distances", False))

    @property
    def landmarks_(self) -> IntArray | None:
        """The rows of X that were fitted, ascending; None if all were."""
        return self._fitted.landmarks_

    @property
    def _fitted(self) -> CouplingEstimator:
        check_is_fitted(self)
        # Users may turn the map and set options, as they may for a plain method.
        self.estimator_.embedding_ = self.embedding_
        # Older pickles lack them.
        before: dict[str, str] | None = vars(self).get("_seen")
        options, self._seen = self._options_now()
        if before is not None and self._seen != before:
            self.estimator_.set_params(**{name: options[name] for name in options if self._seen[name] != before[name]})
        return self.estimator_

    @property
    def _method(self) -> CouplingEstimator:
        return self.plain_method() if self.estimator is None else self.estimator

    def _options_now(self) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the options that a fitted method reads anew, and their texts, in which changes of parts show."""
        options = {name: getattr(self._method, name) for name in _OPTIONS} | own_options(self)
        return options, {name: repr(value) for name, value in options.items()}

    def _term(self) -> Term | None:
        """Return the term, if the objective gets one."""
        return None

    def _plain(self) -> CouplingEstimator:
        """Return the plain method with the term."""
        plain = clone(self._method).set_params(**own_options(self)).set_output(transform="default")
        check_terms(plain.terms)
        term = self._term()
        return plain if term is None else plain.set_params(terms=(*plain.terms, term))

    def set_params(self, **params: Any) -> Self:
        """Set parameters; parameters of the plain method, as ``estimator__perplexity``, need a passed `estimator`.

        Raises
        ------
        ValueError
            When a name is not known, or of an estimator that is None.
        """
        nested = next((name for name in params if name.startswith("estimator__")), None)
        if nested and params.get("estimator", self.estimator) is None:
            raise ValueError(f"{nested} is a parameter of `estimator`, which is None; pass one first, as TSNE().")
        return super().set_params(**params)

    @property
    def sentence(self) -> Sentence:
        """The method as parameters of `GraphCoupling`."""
        return self._plain().sentence

    def fit(self, X: Any = None, y: Any = None, neighbors: Any = None, *, resume: bool = False, **weights: Any) -> Self:
        """Embed `X`, of shape (n_samples, n_features); see `CouplingEstimator.fit`."""
        self._validate_params()
        plain = self._plain()
        self._check_input(plain, X)
        if plain.warm_start and self.__sklearn_is_fitted__():
            plain.embedding_ = self.embedding_
        return self._take_from(plain.fit(X, y, neighbors, resume=resume, **weights), self._term() is not None)

    # As `CouplingEstimator` has it: weights are not in the signature.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None}

    def _check_input(self, plain: CouplingEstimator, X: Any) -> None:
        """Raise `ValueError` if the preset cannot take this input."""

    def _take_from(self, plain: CouplingEstimator, has_term: bool = False) -> Self:
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            del self.__dict__[name]
        self.estimator_, (_, self._seen) = plain, self._options_now()
        vars(self).update({name: value for name, value in vars(plain).items() if name.endswith("_")})
        if self._loss is not None:
            # Terms that the method adds by itself come after the preset's.
            at = len(plain.terms) - 1
            own = (plain.term_weights_[at], plain.term_losses_[at]) if has_term else (0.0, 0.0)
            self.weight_, self.__dict__[self._loss] = own
        return self

    @property
    def posterior_(self) -> RandomGraph:
        """The law of the input's graph."""
        return self._fitted.posterior_

    _not_saved: ClassVar[frozenset[str]] = frozenset({"estimator_"})

    def _remember(self) -> dict[str, Any]:
        return {"estimator": self._fitted._saved()}

    def _recall(self, remembered: dict[str, Any]) -> None:
        from graphcouple.estimators.saved import known_classes

        # Another plain method may have been set since `fit`.
        kinds, saved = known_classes() | {type(self._method).__name__: type(self._method)}, remembered["estimator"]
        kind = kinds.get(saved["class"], object)
        if not (isinstance(kind, type) and issubclass(kind, CouplingEstimator)):
            raise ValueError(f"the file's method is a {saved['class']}, and `estimator` is another. Fit again.")
        self.estimator_, (_, self._seen) = kind._loaded(saved), self._options_now()

    def transform(self, X: Any, return_loss: bool = False) -> Any:
        """Place new points by the plain method's law of their edges; see `CouplingEstimator.transform`."""
        return self._fitted.transform(X, return_loss)

    def update(self, X: Any, move: str = "none", sample_weight: Any = None) -> Self:
        """Add points to the embedding; see `CouplingEstimator.update`."""
        has_term = bool(vars(self).get("weight_"))
        return self._take_from(copy.copy(self._fitted).update(X, move, sample_weight), has_term)

    def inverse_transform(self, Z: Any) -> FloatArray:
        """Return means of the fitted points for places in the embedding; see `CouplingEstimator.inverse_transform`."""
        return self._fitted.inverse_transform(Z)

    def isolation(self, X: Any = None) -> FloatArray:
        """Return how far points are from the fitted ones; see `CouplingEstimator.isolation`."""
        return self._fitted.isolation(X)

    def point_losses(self) -> FloatArray:
        """Return the loss of each fitted point at its place; see `CouplingEstimator.point_losses`."""
        return self._fitted.point_losses()

    def uncertainty(self, temperature: float | str = "auto") -> PositionUncertainty:
        """Return how certain the positions are; see `CouplingEstimator.uncertainty`."""
        return self._fitted.uncertainty(temperature)


def own_options(wrapper: Any) -> dict[str, Any]:
    """Return the wrapper's seed and number of threads, if set."""
    return {name: value for name in ("random_state", "n_jobs") if (value := getattr(wrapper, name)) is not None}


def keep_places(method: CouplingEstimator, part: Prepared, Z: FloatArray, solution: Solution) -> CouplingEstimator:
    """Return the method as fitted, with its map from a joint descent and its own loss."""
    loss = part.objective.value(Z)
    losses, last = np.array([loss]), np.array([solution.n_iter])
    own = replace(solution, Z=Z, loss=loss, loss_history=losses, iterations=last, start_losses=losses)
    method._rows = method._landmarks = None
    method._keep(part.result(own), np.float64 if part.problem.X is None else part.problem.X.dtype)
    return method
