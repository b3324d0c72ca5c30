"""The shared part of the named methods: parameters of the start and of the descent."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from graphcouple.couplings import Coupling, CrossEntropyCoupling
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.sentence import Sentence
from graphcouple.kernels import Gaussian
from graphcouple.laws import GraphLaw, GraphMixture, GraphModel, Perplexity
from graphcouple.laws.priors import UnitOutDegree
from graphcouple.optimize import Descent


@estimator
class Preset(CouplingEstimator):
    """Base of the named methods.

    Parameters
    ----------
    {parameters}
    """

    n_components: int = parameter(default=2, kw_only=False)
    metric: Any = parameter(default="euclidean")
    metric_params: dict[str, Any] | None = parameter(default=None)
    target_weight: float = parameter(default=0.0)
    early_exaggeration: Any = parameter(default="auto")
    learning_rate: Any = parameter(default="auto")
    max_iter: Any = parameter(default="auto")
    init: Any = parameter(default="pca")

    @abstractmethod
    def _input_law(self) -> GraphLaw:
        """Return the law of the input's graph."""

    @abstractmethod
    def _latent_law(self) -> GraphModel:
        """Return the law of the embedding's graph."""

    def _coupling(self) -> Coupling:
        return CrossEntropyCoupling()

    def _optimizer(self) -> Any:
        return Descent(self.learning_rate, self.early_exaggeration)

    @property
    def sentence(self) -> Sentence:
        """The method as parameters of `GraphCoupling`."""
        return Sentence(
            input=self._input_law(),
            latent=self._latent_law(),
            coupling=self._coupling(),
            terms=self.terms,
            optimizer=self._optimizer(),
            init=self.init,
            max_iter=self.max_iter,
            n_components=self.n_components,
            **self._run_options(),
        )


@estimator
class PerplexityPreset(Preset):
    """Base of the methods with prior D and a perplexity given the input.

    Parameters
    ----------
    {parameters}
    """

    perplexity: Any = parameter(default=30.0)
    n_neighbors: Any = parameter(default="auto")

    def _input_law(self) -> GraphLaw:
        return perplexity_law(self)


def perplexity_law(estimator: Any, *, sparse: bool = False) -> GraphLaw:
    """Return the law of an estimator with a perplexity: Gaussian with prior D, mixed if there are several.

    If `sparse`, "auto" neighbours are three times the perplexity for few points too.
    """
    sparse = sparse and estimator.n_neighbors == "auto"
    laws = [
        GraphModel(
            Gaussian(),
            UnitOutDegree(),
            Perplexity(perplexity),
            Perplexity(perplexity).suited_neighbors if sparse else estimator.n_neighbors,
            metric=estimator.metric,
            metric_params=estimator.metric_params,
            target_weight=estimator.target_weight,
        )
        for perplexity in np.atleast_1d(estimator.perplexity).tolist()
    ]
    return laws[0] if len(laws) == 1 else GraphMixture(laws)
