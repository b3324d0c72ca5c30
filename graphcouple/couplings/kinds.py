"""Kinds of objectives: with one method for value and gradient; absent; delayed until exaggeration ends."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

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
        return Attraction(source=self, times=lambda factor: Absent(self.n_points))
