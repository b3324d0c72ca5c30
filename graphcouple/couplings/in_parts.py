"""Objectives that save time if only their value, or only their gradient, is asked for."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from graphcouple.couplings.base import Objective
from graphcouple.graphs import FloatArray


class InParts(Objective):
    """An objective with one method for its value and its gradient, each by a flag."""

    @abstractmethod
    def _evaluate(self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True) -> tuple[float, Any]:
        """Return the value and the gradient; either may be arbitrary without its flag."""

    def value(self, Z: FloatArray) -> float:
        """Return the value at `Z`."""
        return self._evaluate(Z, with_gradient=False)[0]

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return the value at `Z` and its gradient."""
        return self._evaluate(Z)

    def gradient(self, Z: FloatArray) -> FloatArray:
        """Return the gradient alone."""
        return self._evaluate(Z, with_value=False)[1]
