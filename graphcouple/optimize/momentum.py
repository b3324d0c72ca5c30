"""Gradient descent with momentum and per-coordinate gains: the optimizer of t-SNE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from graphcouple._numba.descent import momentum_rows
from graphcouple._numba.threads import over_rows
from graphcouple._support.validation import check_fraction, check_positive, is_word
from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Optimizer, Run
from graphcouple.optimize.exaggeration import USUAL_EXAGGERATION, Exaggeration
from graphcouple.optimize.monitor import check_finite

# Iterations between measurements of the curvature, each of which costs several gradients.
_MEASURE_EVERY = 50


class MomentumState(NamedTuple):
    """The embedding, the last step and the gains, and the norm of the gradient of objective/n that the step followed.

    `rate` is the learning rate, and `weight` the attraction's weight for which it was measured.
    """

    Z: FloatArray
    update: FloatArray
    gains: FloatArray
    grad_norm: float = np.inf
    rate: float = np.nan
    weight: float = np.nan


@dataclass(frozen=True)
class MomentumGains(Optimizer):
    """Gradient descent with momentum, and gains that grow while the direction persists (delta-bar-delta).

    The step is ``momentum * last step − learning_rate * gains * gradient of objective/n``. For t-SNE objective/n is the
    Kullback–Leibler divergence up to a constant and its gradient carries the factor 4, so learning rates mean the same
    as in scikit-learn. openTSNE's gradient lacks the factor, so its rates are four times larger.

    Parameters
    ----------
    learning_rate : float or "auto", default="auto"
        "auto" is n over the objective's own curvature, measured every 50 iterations (`Objective.curvature`).
    momentum : float, default=0.8
        Used after the exaggeration; in [0, 1).
    initial_momentum : float, default=0.5
        Used during the exaggeration; in [0, 1).
    exaggeration : Exaggeration, optional
        The schedule of the attraction's weight; ``Exaggeration(1.0, 0)`` for none.
    max_step : float, default=5.0
        No point moves further than this in one step.

    Raises
    ------
    TypeError, ValueError
        When a number is out of range.

    References
    ----------
    Jacobs (1988), Increased rates of convergence through learning rate adaptation; constants as in
    van der Maaten's t-SNE: gains +0.2 and ×0.8, at least 0.01.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, _ = gc.datasets.load("iris")
    >>> objective = gc.PrecisionCrossEntropy(X - X.mean(axis=0))
    >>> start = X[:, :2] - X[:, :2].mean(axis=0)
    >>> gc.solve(objective, start, gc.MomentumGains(), max_iter=100).loss < objective.value(start)
    True
    """

    learning_rate: float | str = "auto"
    momentum: float = 0.8
    initial_momentum: float = 0.5
    exaggeration: Exaggeration = USUAL_EXAGGERATION
    max_step: float = 5.0

    def __post_init__(self) -> None:
        if not is_word("learning_rate", self.learning_rate, "auto", "a number above 0"):
            check_positive("learning_rate", self.learning_rate)
        check_fraction("momentum", self.momentum)
        check_fraction("initial_momentum", self.initial_momentum)
        if not isinstance(self.exaggeration, Exaggeration):
            raise TypeError(f"exaggeration must be an Exaggeration, got {self.exaggeration!r}.")
        check_positive("max_step", self.max_step)

    def rate(self, objective: Objective, Z: FloatArray) -> float:
        """Return the learning rate for an iteration's objective at the embedding `Z`."""
        if isinstance(self.learning_rate, str):
            curvature = objective.curvature(Z)
            # An objective with no curvature sets no scale, so the rate is n over 1.
            return objective.n_points / curvature if curvature > 0 else float(objective.n_points)
        return float(self.learning_rate)

    def init(self, objective: Objective, Z0: FloatArray, run: Run) -> MomentumState:
        return MomentumState(Z0, np.zeros_like(Z0), np.ones_like(Z0))

    def step(self, objective: Objective, state: MomentumState, iteration: int, run: Run) -> MomentumState:
        weighted = objective.exaggerated(self.exaggeration(iteration))
        # Parts may return gradients in a higher precision than the embedding's.
        gradient = (weighted.gradient(state.Z) / objective.n_points).astype(state.Z.dtype, copy=False)
        norm = float(np.linalg.norm(gradient))
        check_finite(iteration, norm)
        warming_up = iteration < self.exaggeration.n_iter
        momentum = self.initial_momentum if warming_up else self.momentum
        rate, weight = state.rate, self.exaggeration(iteration)
        if weight != state.weight or iteration % _MEASURE_EVERY == 0:
            rate = self.rate(weighted, state.Z)
        after = self.move(state, gradient, rate, momentum, run.n_jobs)
        # The gradient of the exaggerated objective says nothing about convergence of the objective itself.
        return after._replace(grad_norm=np.inf if warming_up else norm, rate=rate, weight=weight)

    def move(
        self, state: MomentumState, gradient: FloatArray, rate: float, momentum: float, n_jobs: int | None = None
    ) -> MomentumState:
        """Return the state after one step along the gradient of objective/n."""
        arrays = state.Z, state.update, state.gains
        Z, update, gains = (np.empty_like(part) for part in arrays)
        rates = (float(rate), float(momentum), float(self.max_step))
        over_rows(state.Z.shape[0], n_jobs, momentum_rows, gradient, *rates, *arrays, Z, update, gains)
        return MomentumState(Z, update, gains)
