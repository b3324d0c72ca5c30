"""Kinds of objectives: with one method for value and gradient; absent; delayed; of a function of the embedding."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import changed
from graphcouple.couplings.base import Attraction, Objective
from graphcouple.graphs import FloatArray


class InParts(Objective):
    """An objective that saves time if only its value, or only its gradient, is asked for."""

    @abstractmethod
    def _evaluate(self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True) -> tuple[float, Any]:
        """Return the value and the gradient; either may be arbitrary without its flag."""

    def value(self, Z: FloatArray) -> float:
        return self._evaluate(Z, with_gradient=False)[0]

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        return self._evaluate(Z)

    def gradient(self, Z: FloatArray) -> FloatArray:
        return self._evaluate(Z, with_value=False)[1]


class Absent(Objective):
    """An objective that is 0 everywhere, in place of a term that waits until exaggeration ends."""

    lower_bound = 0.0

    def __init__(self, n_points: int) -> None:
        self.n_points = n_points

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        return 0.0, np.zeros_like(Z)


class Delayed(Objective):
    """An objective that is absent until exaggeration ends, so that the edges find the clusters first.

    If a term contracted clusters from the start, parts of a cluster that are separate by chance would stay separate.
    """

    @property
    def attracting(self) -> Attraction:
        """An attraction that is absent while the attraction of edges is exaggerated."""
        return Attraction(source=self, times=lambda factor: Absent(self.n_points))


class Through(Objective):
    """An objective of a function A of the embedding, H(A(Z)), whose gradient is A'ᵀ ∇H.

    Subclasses define A and the transpose of its derivative.
    """

    objective: Objective

    @abstractmethod
    def _inner(self, Z: FloatArray) -> FloatArray:
        """Return A(Z)."""

    @abstractmethod
    def _pulled(self, gradient: FloatArray, Z: FloatArray) -> FloatArray:
        """Return A'ᵀ at `Z` times a gradient in A(Z)."""

    def _with(self, objective: Objective) -> Self:
        return changed(self, objective=objective)

    def _own(self, attraction: Attraction) -> dict[str, Any]:
        """Return the parts of the attraction that differ between the points of `Z`; by default it has no edges."""
        return {"edges": lambda: None, "raised": None}

    def value(self, Z: FloatArray) -> float:
        return self.objective.value(self._inner(Z))

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = self.objective.value_and_grad(self._inner(Z))
        return value, self._pulled(gradient, Z)

    def gradient(self, Z: FloatArray) -> FloatArray:
        return self._pulled(self.objective.gradient(self._inner(Z)), Z)

    @property
    def lower_bound(self) -> float:
        return self.objective.lower_bound

    def at(self, iteration: int, Z: FloatArray) -> Through:
        return self._with(self.objective.at(iteration, self._inner(Z)))

    @property
    def basis_span(self) -> int:
        return self.objective.basis_span

    def basis(self, Z: FloatArray, previous: Any = None) -> Any:
        return self.objective.basis(self._inner(Z), previous)

    def with_basis(self, basis: Any) -> Through:
        return self._with(self.objective.with_basis(basis))

    @property
    def attracting(self) -> Attraction | None:
        if (inner := self.objective.attracting) is None:
            return None
        return replace(
            inner,
            source=self._with(inner.source),
            times=lambda factor: self._with(inner.times(factor)),
            limit=lambda Z: inner.limit(self._inner(Z)),
            confinement=lambda: (bound := inner.confinement()) and self._with(bound),
            **self._own(inner),
        )


class Rescaled(Through):
    """An objective of the embedding divided by a length."""

    def __init__(self, objective: Objective, scale: float) -> None:
        self.objective, self.scale, self.n_points = objective, scale, objective.n_points

    @property
    def held_points(self) -> NDArray[np.bool_] | None:
        return self.objective.held_points

    def _inner(self, Z: FloatArray) -> FloatArray:
        return Z / np.asarray(self.scale, Z.dtype)

    def _pulled(self, gradient: FloatArray, Z: FloatArray) -> FloatArray:
        return (gradient / self.scale).astype(gradient.dtype, copy=False)
