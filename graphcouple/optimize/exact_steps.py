"""Descent with exact steps, for objectives that are polynomials along lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from graphcouple.couplings import Objective
from graphcouple.couplings.gram import Polynomial
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Optimizer, Run


class _Line(NamedTuple):
    Z: FloatArray
    grad_norm: float
    gradient: FloatArray | None
    direction: FloatArray | None
    stuck: bool


@dataclass(frozen=True)
class ExactSteps(Optimizer):
    """Gradient descent, or conjugate gradients, with each step to the minimum along its line: the loss never rises.

    The objective must have a method ``along(Z, direction)`` that returns the coefficients of a polynomial.

    Parameters
    ----------
    conjugate : bool, default=True
        Directions of Polak and Ribière, restarted where they do not descend. False takes the gradients alone, as the
        paper does, and needs more steps.

    References
    ----------
    Nocedal and Wright (2006), Numerical Optimization, section 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(30, 5))
    >>> solution = gc.solve(gc.GramMatching(X), X[:, :2], gc.ExactSteps(), max_iter=50, check_every=1)
    >>> bool((np.diff(solution.loss_history) <= 1e-9 * solution.loss_history[0]).all())
    True
    """

    conjugate: bool = True

    def check(self, objective: Objective) -> None:
        if not isinstance(objective, Polynomial):
            raise TypeError(
                f"ExactSteps needs an objective that is a polynomial along lines (a Polynomial), got "
                f"{type(objective).__name__}; use LBFGS()."
            )

    def init(self, objective: Objective, Z0: FloatArray, run: Run) -> _Line:
        return _Line(Z0, np.inf, None, None, False)

    def step(self, objective: Objective, state: Any, iteration: int, run: Run) -> _Line:
        assert isinstance(objective, Polynomial)
        gradient = objective.gradient(state.Z).astype(np.float64)
        norm = float(np.linalg.norm(gradient)) / objective.n_points
        direction = -gradient
        if self.conjugate and state.gradient is not None:
            sq_norm = float(np.vdot(state.gradient, state.gradient))
            beta = max(0.0, float(np.vdot(gradient, gradient - state.gradient)) / sq_norm) if sq_norm > 0 else 0.0
            conjugate = direction + beta * state.direction
            if float(np.vdot(conjugate, gradient)) < 0.0:
                direction = conjugate
        length = _minimizer(objective.along(state.Z, direction))
        if length == 0.0:
            return _Line(state.Z, norm, None, None, True)
        Z = (state.Z + length * direction).astype(state.Z.dtype)
        return _Line(Z, norm, gradient, direction, bool((Z == state.Z).all()))

    def exhausted(self, state: Any) -> str:
        return "no step along the gradient lowers the loss" if state.stuck else ""


def _minimizer(coefficients: FloatArray) -> float:
    """Return the t > 0 that minimises a polynomial; 0 if no t lowers it below its value at 0."""
    slopes = np.arange(1, coefficients.size) * coefficients[1:]
    scale = np.abs(slopes).max()
    if not scale > 0:
        return 0.0
    roots = np.roots(slopes[::-1] / scale)
    real = roots.real[(np.abs(roots.imag) <= 1e-9 * np.abs(roots)) & (roots.real > 0)]
    values = np.polynomial.polynomial.polyval(real, coefficients)
    lower = values < coefficients[0]
    return float(real[lower][np.argmin(values[lower])]) if lower.any() else 0.0
