"""L-BFGS, by scipy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcouple._validation import check_integer
from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Optimizer, Run
from graphcouple.optimize.monitor import Monitor

# scipy's statuses for a passed test and a failed line search: both mean a minimum, up to rounding.
_NOTHING_LOWER = (0, 2)


@dataclass(frozen=True)
class LBFGS(Optimizer):
    """Limited-memory BFGS with a line search (`scipy.optimize.minimize`, method "L-BFGS-B").

    Needs no learning rate and decreases the loss at every iteration. Use it to reach
    a precise minimum, or for objectives with no attraction to exaggerate. From a poor
    start `MomentumGains` is usually faster. For a stochastic objective it minimises
    the average that `Objective.value` returns, not one sample per iteration.

    Parameters
    ----------
    memory : int, default=10
        Number of corrections kept.

    Raises
    ------
    TypeError, ValueError
        When `memory` is not an integer of at least 1.
    """

    memory: int = 10

    def __post_init__(self) -> None:
        check_integer("memory", self.memory, 1)

    def init(self, objective: Objective, Z0: FloatArray, run: Run) -> Any:
        """Raise: scipy has the loop; see `minimize`."""
        raise NotImplementedError("LBFGS takes no single steps; call solve.")

    def step(self, objective: Objective, state: Any, iteration: int, run: Run) -> Any:
        """Raise: scipy has the loop; see `minimize`."""
        raise NotImplementedError("LBFGS takes no single steps; call solve.")

    def minimize(self, objective: Objective, Z0: FloatArray, run: Run, monitor: Monitor) -> tuple[FloatArray, int]:
        """Return the final embedding and the number of iterations."""
        from scipy.optimize import minimize

        n, shape = objective.n_points, Z0.shape
        iteration = 0
        gradient_at: dict[str, Any] = {}

        def evaluate(flat: FloatArray) -> tuple[float, FloatArray]:
            loss, gradient = objective.value_and_grad(flat.reshape(shape))
            monitor.check_finite(iteration, loss, gradient)
            gradient_at["norm"] = float(np.linalg.norm(gradient)) / n
            return loss / n, gradient.ravel() / n

        def after(intermediate_result: Any) -> None:
            nonlocal iteration
            iteration += 1
            Z = intermediate_result.x.reshape(shape).astype(Z0.dtype)
            due = monitor.due(iteration)
            if due and monitor.record(iteration, intermediate_result.fun * n, Z, gradient_at["norm"]):
                raise StopIteration

        start = Z0.astype(np.float64)
        loss, gradient = objective.value_and_grad(start)
        if monitor.record(0, loss, Z0, float(np.linalg.norm(gradient)) / n):
            return Z0, 0
        # The monitor decides on convergence, so scipy's own tests are switched off.
        options = {
            "maxiter": run.max_iter,
            "maxfun": 20 * run.max_iter,
            "maxcor": self.memory,
            "ftol": 0.0,
            "gtol": 0.0,
            "maxls": 40,
        }
        result = minimize(evaluate, start.ravel(), jac=True, method="L-BFGS-B", callback=after, options=options)
        if result.status in _NOTHING_LOWER:
            monitor.converged, monitor.message = True, "no lower loss along the search direction"
        return result.x.reshape(shape).astype(Z0.dtype), iteration
