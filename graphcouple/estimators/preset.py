"""The shared part of the named methods: parameters of the start and of the descent."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from graphcouple.couplings import Coupling, CrossEntropyCoupling
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.embedding import EmbeddingEstimator
from graphcouple.estimators.sentence import Sentence
from graphcouple.kernels import Exponential, Gaussian, Odds
from graphcouple.laws import GraphLaw, GraphMixture, GraphModel, LocalConnectivity, Perplexity
from graphcouple.laws.priors import Binary, UnitOutDegree
from graphcouple.optimize import Descent


@estimator
class Preset(CouplingEstimator):
    """Base class of the named methods."""

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
        return self._stated(self._input_law(), self._latent_law(), self._coupling(), self._optimizer())


@estimator
class PerplexityPreset(Preset):
    """Base class of methods with prior D and a perplexity given the input."""

    perplexity: Any = parameter(default=30.0)
    n_neighbors: Any = parameter(default="auto")

    def _input_law(self) -> GraphLaw:
        return perplexity_law(self)


@estimator
class DescribesLaw(EmbeddingEstimator):
    """Base class of estimators with one law, which is their `input`, or which their parameters describe."""

    n_components: int = parameter(default=2, kw_only=False)
    prior: Any = parameter(default="D")
    perplexity: float = parameter(default=30.0, like="perplexity of each point")
    n_neighbors: Any = parameter(default="auto")
    metric: Any = parameter(default="euclidean")
    input: Any = parameter(default=None)

    def model(self, n_samples: int) -> GraphLaw:
        """Return the law of the graph of this many points, as the parameters describe it."""
        law = self.input
        if not isinstance(law, GraphLaw):
            options: dict[str, Any] = {name: getattr(self, name, None) for name in ("metric", "metric_params")}
            law = GraphModel(Gaussian(), self.prior, Perplexity(self.perplexity), self.n_neighbors, **options)
        return law.for_points(n_samples)


def of_points(estimator: Any) -> dict[str, Any]:
    """Return the estimator's parameters that describe how its law compares points."""
    return {name: getattr(estimator, name) for name in ("metric", "metric_params", "target_weight")}


def fuzzy_law(estimator: Any, symmetrize: str = "threshold", local_connectivity: float = 1.0) -> GraphModel:
    """Return the law of umap-learn's fuzzy graph, for an estimator with `n_neighbors`."""
    k = estimator.n_neighbors
    bandwidth = LocalConnectivity(k, local_connectivity)
    return GraphModel(Odds(Exponential()), Binary(), bandwidth, k - 1, symmetrize=symmetrize, **of_points(estimator))


def perplexity_law(estimator: Any, *, sparse: bool = False) -> GraphLaw:
    """Return the law of an estimator with a perplexity: Gaussian with prior D, mixed if there are several.

    If `sparse`, "auto" neighbours are three times the perplexity for few points too.
    """
    sparse = sparse and estimator.n_neighbors == "auto"
    if not (perplexities := np.atleast_1d(estimator.perplexity).tolist()):
        raise ValueError("perplexity must be a number or hold at least one, got none.")

    def law(bandwidth: Perplexity) -> GraphModel:
        n_neighbors = bandwidth.suited_neighbors if sparse else estimator.n_neighbors
        return GraphModel(Gaussian(), UnitOutDegree(), bandwidth, n_neighbors, **of_points(estimator))

    laws = [law(Perplexity(perplexity)) for perplexity in perplexities]
    return laws[0] if len(laws) == 1 else GraphMixture(laws)
