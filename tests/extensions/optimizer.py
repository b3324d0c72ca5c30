"""An optimizer: gradient descent that halves its step whenever the loss rises."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphcouple import extend


class State(NamedTuple):
    Z: np.ndarray
    rate: float
    value: float
    grad_norm: float = np.inf


@dataclass(frozen=True)
class Cautious(extend.Optimizer):
    def init(self, objective, Z0, run):
        return State(Z0, 1.0 / max(objective.curvature(Z0), 1e-12), objective.value(Z0))

    def step(self, objective, state, iteration, run):
        gradient = objective.gradient(state.Z)
        moved = state.Z - (state.rate * gradient).astype(state.Z.dtype)
        value, norm = objective.value(moved), float(np.linalg.norm(gradient)) / objective.n_points
        if not value <= state.value:
            return state._replace(rate=0.5 * state.rate, grad_norm=norm)
        return State(moved, 1.2 * state.rate, value, norm)
