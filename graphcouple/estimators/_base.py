"""What every coupling estimator does: posterior, start, objective, solve."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from contextlib import nullcontext
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from graphcouple._progress import progress_bar
from graphcouple.couplings import CrossEntropy, Objective
from graphcouple.graphs import FloatArray
from graphcouple.initializations import INITIALIZERS, initialize
from graphcouple.models import GraphModel
from graphcouple.optimize import EXAGGERATED, Callback, Exaggeration, MomentumGains, Optimizer, Solution, solve
from graphcouple.priors import GraphPosterior
from graphcouple.summation import MESH_FROM, Summation, names

Extension = Callable[[CrossEntropy, Any, np.random.RandomState], Objective]

ALL_PAIRS_UP_TO = 2000
"""With ``n_neighbors="auto"``, the number of points up to which the input's graph may use every pair."""

_CHECK_EVERY = 50
_CALLBACK_EVERY = 10
_SETTLED_WITHIN = 0.004

COMMON_CONSTRAINTS: dict[str, list[Any]] = {
    "n_components": [Interval(Integral, 1, None, closed="left")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "init": [StrOptions(set(INITIALIZERS)), "array-like"],
    "summation": [StrOptions(set(names())), Summation],
    "random_state": ["random_state"],
    "n_jobs": [None, Integral],
    "verbose": ["verbose"],
    "callback": [None, callable],
}

DESCENT_CONSTRAINTS: dict[str, list[Any]] = {
    "learning_rate": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
    "early_exaggeration": [Interval(Real, 1, None, closed="left")],
}

PERPLEXITY_CONSTRAINTS: dict[str, list[Any]] = {
    "perplexity": [Interval(Real, 0, None, closed="neither")],
    "n_neighbors": [StrOptions({"auto"}), None, Interval(Integral, 1, None, closed="left")],
    "metric": [str],
}


def neighbors_for(n_neighbors: Any, perplexity: float, n_samples: int) -> int | None:
    """Return what ``n_neighbors="auto"`` stands for: all pairs of few points, else three times the perplexity."""
    if n_neighbors != "auto":
        return n_neighbors
    if n_samples <= ALL_PAIRS_UP_TO:
        return None
    return min(n_samples - 1, int(3 * perplexity))


class EmbeddingEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What scikit-learn asks of an estimator whose result is `embedding_`."""

    embedding_: FloatArray

    @abstractmethod
    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed `X`."""

    def fit_transform(self, X: Any, y: Any = None) -> FloatArray:
        """Embed `X` and return the embedding; see `fit`.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        return self.fit(X).embedding_

    @property
    def _n_features_out(self) -> int:
        return self.embedding_.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class CouplingEstimator(EmbeddingEstimator):
    """Base of the estimators that minimise the cross-entropy of two hidden graphs.

    A subclass declares its parameters and says which two laws it couples, in `models`;
    the rest is here.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = COMMON_CONSTRAINTS

    n_components: int
    init: Any
    max_iter: Any
    summation: Any
    random_state: Any
    n_jobs: int | None
    verbose: int
    callback: Callback | None

    @abstractmethod
    def models(self, n_samples: int) -> tuple[GraphModel | GraphPosterior, GraphModel]:
        """Return the laws of the input's and of the embedding's graph for this many samples."""

    @property
    def takes_distances(self) -> bool:
        """Whether `X` holds precomputed distances in the place of points."""
        return getattr(getattr(self, "input", self), "metric", None) == "precomputed"

    def _iterations(self, n_samples: int) -> int:
        """Return the most iterations for this many samples."""
        return self.max_iter

    def _exaggeration_factor(self) -> float:
        """Return the attraction's weight at first."""
        return getattr(self, "early_exaggeration", 12.0)

    def _coupling(self, posterior: GraphPosterior, latent: GraphModel) -> CrossEntropy:
        """Return the objective on the embedding, but for what a composing estimator adds."""
        return CrossEntropy(posterior, latent, self.summation, self.n_jobs)

    def _optimizer(self, latent: GraphModel, n_samples: int, rng: np.random.RandomState) -> Optimizer:
        """Return the optimizer the parameters ask for.

        Under a kernel that is flat at zero exaggerated attraction would collapse the embedding for good.
        """
        factor = 1.0 if latent.flat_at_zero else self._exaggeration_factor()
        exaggeration = Exaggeration(factor, min(EXAGGERATED, self._iterations(n_samples) // 2) if factor > 1 else 0)
        rate = getattr(self, "learning_rate", "auto")
        return MomentumGains(rate, momentum=latent.prior.momentum, exaggeration=exaggeration)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed `X`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Points; or distances, a square array or a sparse graph, for
            ``metric="precomputed"``.
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            When `X` or a parameter is not usable; the message says why.
        FloatingPointError
            When the optimisation leaves the finite numbers.
        """
        return self._fit(X)

    def _fit(self, X: Any, extend: Extension | None = None) -> Self:
        """Embed `X` by the coupling, or by what `extend` makes of it."""
        self._validate_params()
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
        rng = check_random_state(self.random_state)
        model, latent = self.models(X.shape[0])
        posterior = model if isinstance(model, GraphPosterior) else model.posterior(X, self.n_jobs)
        if posterior.n_nodes != X.shape[0]:
            raise ValueError(f"input is a graph of {posterior.n_nodes} nodes, but X has {X.shape[0]} rows.")
        coupling = self._coupling(posterior, latent)
        # Sums that are right to 1e-2 have no use for more digits of the points.
        exact = self.summation == "exact" or X.shape[0] <= MESH_FROM
        start = initialize(
            self.init,
            X,
            posterior,
            self.n_components,
            rng,
            scale=latent.start_scale,
            metric=getattr(model, "metric", "euclidean"),
            dtype=X.dtype if exact else np.float32,
            n_jobs=self.n_jobs,
        )
        objective = coupling if extend is None else extend(coupling, X, rng)
        solution = self._solve(objective, start, self._optimizer(latent, X.shape[0], rng))
        self.posterior_ = posterior
        self.embedding_ = solution.Z.astype(X.dtype, copy=False)
        self.loss_ = solution.loss
        self.loss_history_ = solution.loss_history
        self.loss_iterations_ = solution.iterations
        self.n_iter_ = solution.n_iter
        self.stop_reason_ = solution.message
        self.__dict__.pop("kl_divergence_", None)
        if coupling.has_kl_divergence:
            self.kl_divergence_ = coupling.kl_divergence(solution.Z)
        return self

    def _solve(self, objective: Objective, start: FloatArray, optimizer: Optimizer) -> Solution:
        name, n_iter = type(self).__name__, self._iterations(objective.n_points)
        with progress_bar(n_iter, name) if self.verbose else nullcontext() as update:

            def watch(iteration: int, loss: float, Z: FloatArray) -> Any:
                if update is not None:
                    update(iteration, loss)
                return self.callback(iteration, loss, Z) if self.callback is not None else False

            every = _CHECK_EVERY if self.callback is None else _CALLBACK_EVERY
            return solve(
                objective,
                start,
                optimizer,
                max_iter=n_iter,
                check_every=every,
                settled_within=_SETTLED_WITHIN,
                callback=watch,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.takes_distances
        return tags
