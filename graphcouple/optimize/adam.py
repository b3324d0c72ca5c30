"""Adam: steps that adapt to the size of each coordinate's gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from graphcouple._support.validation import check_fraction, check_positive
from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Optimizer, Run

# Adam's ε as in Keras; Kingma and Ba (2015) suggest 1e-8. It matters only where gradients have vanished.
_TINY = 1e-7


class AdamState(NamedTuple):
    """The embedding, running means of gradients and their squares, and the basis of steps; see `Objective.basis`."""

    Z: FloatArray
    mean: FloatArray
    square: FloatArray
    grad_norm: float = np.inf
    basis: Any = None


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam: the running mean of the gradients, divided by the root of the running mean of their squares.

    Steps keep their length near a minimum unless annealed, so all are taken, and the last embedding is the result.

    Parameters
    ----------
    learning_rate : float, default=1.0
        About the length of a step in each coordinate.
    decay, square_decay : float, default=0.9, 0.999
        How much of the running means is kept at each step, in [0, 1).
    annealed : bool, default=False
        Whether the rate falls linearly to 0 at ``max_iter``, so that steps on random samples come to rest.

    Raises
    ------
    ValueError
        When a number is out of range.

    References
    ----------
    Kingma and Ba (2015), Adam: a method for stochastic optimization.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20)).posterior(X)
    >>> objective = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E"))
    >>> solution = gc.solve(objective, X[:, :2], gc.optimize.Adam(0.2), max_iter=100)
    >>> bool(solution.loss < objective.value(X[:, :2]))
    True
    """

    learning_rate: float = 1.0
    decay: float = 0.9
    square_decay: float = 0.999
    annealed: bool = False
    noisy: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("learning_rate", self.learning_rate)
        check_fraction("decay", self.decay)
        check_fraction("square_decay", self.square_decay)

    def init(self, objective: Objective, Z0: FloatArray, run: Run) -> AdamState:
        return AdamState(Z0, np.zeros_like(Z0), np.zeros_like(Z0))

    def step(self, objective: Objective, state: AdamState, iteration: int, run: Run) -> AdamState:
        basis = state.basis
        if iteration % objective.basis_span == 0:
            basis = objective.basis(state.Z, basis)
        gradient = objective.with_basis(basis).gradient(state.Z)
        mean = state.mean + (1.0 - self.decay) * (gradient - state.mean)
        square = state.square + (1.0 - self.square_decay) * (gradient**2 - state.square)
        unbiased = np.sqrt(1.0 - self.square_decay ** (iteration + 1)) / (1.0 - self.decay ** (iteration + 1))
        rate = self.learning_rate * (1.0 - iteration / run.max_iter if self.annealed else 1.0)
        Z = state.Z - rate * unbiased * mean / (np.sqrt(square) + _TINY)
        norm = float(np.linalg.norm(gradient)) / objective.n_points
        return AdamState(Z.astype(state.Z.dtype, copy=False), mean, square, norm, basis)
