"""The interface of a law of a hidden graph, before the points are known."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import scipy.sparse as sp

from graphcouple.kernels import Kernel
from graphcouple.laws.given import ConditionedLaw
from graphcouple.laws.priors import RandomGraph


class GraphLaw(ABC):
    """A law of a hidden graph whose points are not known yet: a `GraphModel`, or a `GraphMixture` of them.

    Attributes
    ----------
    metric : str or callable
        The distance between points; "precomputed" if `X` holds distances.
    """

    metric: Any

    @property
    @abstractmethod
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that the law uses."""

    @property
    @abstractmethod
    def uses_classes(self) -> bool:
        """Whether the law depends on classes `y`."""

    @abstractmethod
    def for_points(self, n_points: int) -> Self:
        """Return the law with "auto" replaced by its value for this many points."""

    @abstractmethod
    def given(self, X: Any, neighbors: Any = None, sample_weight: Any = None, y: Any = None) -> ConditionedLaw:
        """Return the law given its points, and optionally their neighbours, weights and classes."""

    @abstractmethod
    def recall(self, remembered: dict[str, Any]) -> ConditionedLaw:
        """Return the law given its points, from the state that `ConditionedLaw.remembered` returned."""

    def posterior(self, X: Any, n_jobs: int | None = None, sample_weight: Any = None, y: Any = None) -> RandomGraph:
        """Return the law of the graph given the points `X`; laws of one metric share one search for neighbours.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Or distances, for ``metric="precomputed"``.
        n_jobs : int or None, default=None
            Threads; None means every core.
        sample_weight : array of shape (n_samples,), optional
            How many points in one place each row stands for, above 0. The graph has all of these points,
            but one node for each row; see `RepeatedPosterior`.
        y : array of shape (n_samples,), optional
            The classes, if `target_weight` is above 0; −1, None or NaN where unknown.

        Returns
        -------
        GraphPosterior, RepeatedPosterior or MixturePosterior

        Raises
        ------
        TypeError, ValueError
            When `X` is not numeric, not finite, has a single row, or has fewer rows
            than the model's neighbours or perplexity need.
        """
        return self.given(X, sample_weight=sample_weight, y=y).posterior(n_jobs)

    @abstractmethod
    def new_edges(self, X: Any, X_new: Any, n_jobs: int | None = None) -> sp.csr_array:
        """Return the mean edges from new points to the points of `X`, divided by each row's sum."""
