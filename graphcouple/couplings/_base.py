"""What an objective is, and how objectives add and scale."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from graphcouple.graphs import FloatArray


class Objective(ABC):
    """A function of the embedding to be minimised.

    Objectives add and scale: ``coupling + 0.1 * other`` is an objective.
    """

    @property
    @abstractmethod
    def n_points(self) -> int:
        """The number of points of the embedding."""

    @abstractmethod
    def value(self, Z: FloatArray) -> float:
        """Return the objective at `Z`, of shape (n_points, n_components)."""

    @abstractmethod
    def value_and_grad(self, Z: FloatArray, attraction: float = 1.0) -> tuple[float, FloatArray]:
        """Return the objective at `Z` and its gradient, of the shape and dtype of `Z`.

        Parameters
        ----------
        Z : ndarray of shape (n_points, n_components)
        attraction : float, default=1.0
            Weight of the attractive term (early exaggeration); both results are
            those of the objective with its attraction so weighted.
        """

    def gradient(self, Z: FloatArray, attraction: float = 1.0) -> FloatArray:
        """Return the gradient alone; cheaper than `value_and_grad` where an objective can make it so."""
        return self.value_and_grad(Z, attraction)[1]

    @property
    def lower_bound(self) -> float:
        """A number no embedding has a lower objective than; −inf when none is known."""
        return -np.inf

    def learning_rate(self, attraction: float = 1.0, Z: FloatArray | None = None) -> float:
        """Return a good rate for gradient descent on objective/n_points, the attraction so weighted.

        At the embedding `Z` where the rate depends on it.
        """
        return max(self.n_points / (4.0 * attraction), 25.0)

    def __add__(self, other: Any) -> Objective:
        if not isinstance(other, Objective):
            return NotImplemented
        return WeightedSum((*_terms(self), *_terms(other)))

    def __mul__(self, factor: Any) -> Objective:
        if not isinstance(factor, Real):
            return NotImplemented
        if not np.isfinite(float(factor)):
            raise ValueError(f"an objective can only be scaled by a finite number, got {factor!r}.")
        return WeightedSum(tuple((float(factor) * weight, term) for weight, term in _terms(self)))

    __rmul__ = __mul__


def _terms(objective: Objective) -> tuple[tuple[float, Objective], ...]:
    return objective.terms if isinstance(objective, WeightedSum) else ((1.0, objective),)


@dataclass(frozen=True)
class WeightedSum(Objective):
    """A weighted sum of objectives on the same points.

    Parameters
    ----------
    terms : tuple of (float, Objective)

    Raises
    ------
    ValueError
        When the objectives are on different numbers of points.
    """

    terms: tuple[tuple[float, Objective], ...]

    def __post_init__(self) -> None:
        sizes = sorted({term.n_points for _, term in self.terms})
        if len(sizes) != 1:
            raise ValueError(f"objectives on different numbers of points cannot be added: {sizes}.")

    @property
    def n_points(self) -> int:
        """The number of points of the embedding."""
        return self.terms[0][1].n_points

    def value(self, Z: FloatArray) -> float:
        """Return the weighted sum of the values."""
        return sum(weight * term.value(Z) for weight, term in self.terms)

    def value_and_grad(self, Z: FloatArray, attraction: float = 1.0) -> tuple[float, FloatArray]:
        """Return the weighted sums of the values and of the gradients."""
        results = [term.value_and_grad(Z, attraction) for _, term in self.terms]
        value = sum(weight * value for (weight, _), (value, _) in zip(self.terms, results, strict=True))
        return value, self._weighted([gradient for _, gradient in results])

    def gradient(self, Z: FloatArray, attraction: float = 1.0) -> FloatArray:
        """Return the weighted sum of the gradients."""
        return self._weighted([term.gradient(Z, attraction) for _, term in self.terms])

    def _weighted(self, gradients: list[FloatArray]) -> FloatArray:
        total = np.zeros_like(gradients[0])
        for (weight, _), gradient in zip(self.terms, gradients, strict=True):
            total += weight * gradient
        return total

    @property
    def lower_bound(self) -> float:
        """The weighted sum of the terms' lower bounds; −inf where a weight is negative."""
        if any(weight < 0 for weight, _ in self.terms):
            return -np.inf
        return sum(weight * term.lower_bound for weight, term in self.terms if weight)

    def learning_rate(self, attraction: float = 1.0, Z: FloatArray | None = None) -> float:
        """Return the smallest rate of the terms, each over its weight; terms of weight 0 have no say."""
        rates = [term.learning_rate(attraction, Z) / abs(weight) for weight, term in self.terms if weight]
        return min(rates, default=super().learning_rate(attraction))
