"""`solve`: minimise an objective from a start, with an optimizer, watched by a callback."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from graphcouple._validation import check_embedding, check_integer
from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray

_SETTLE_SPAN = 50
_FLAT_SHARE = 1e-6
_ROUNDING = 1e-10

Callback = Callable[[int, float, FloatArray], Any]


@dataclass(frozen=True)
class Solution:
    """What `solve` found.

    Attributes
    ----------
    Z : ndarray of shape (n_points, n_components)
        The embedding, in the dtype of the start.
    loss : float
        The objective at `Z`.
    n_iter : int
        Iterations done.
    converged : bool
        Whether a convergence test ended the run, rather than `max_iter` or the callback.
    message : str
        Why the run ended.
    loss_history : ndarray of shape (n_checks,)
        The objective (attraction weighing 1) at the start, at every check, and at the end.
    iterations : ndarray of shape (n_checks,)
        The iteration each entry of `loss_history` belongs to.
    """

    Z: FloatArray
    loss: float
    n_iter: int
    converged: bool
    message: str
    loss_history: NDArray[np.float64] = field(repr=False)
    iterations: NDArray[np.int64] = field(repr=False)


def is_collapsed(objective: Objective, Z: FloatArray, loss: float) -> bool:
    """Return whether all points are in one place, as far as the objective can tell.

    They are when moving them into one place changes the loss by less than a millionth of what there is to gain. That
    is a saddle point, which a gradient's norm cannot tell from a minimum. Points that lie in one place at the lowest
    loss there is, as duplicates do, have not collapsed.
    """
    gain = loss - objective.lower_bound
    if not _ROUNDING * abs(loss) < gain < np.inf:
        return False
    return abs(objective.value(np.zeros_like(Z)) - loss) <= _FLAT_SHARE * gain


class Monitor:
    """What every run is watched by: finiteness, the history, the callback and the convergence tests.

    Parameters
    ----------
    max_iter : int
    tol : float
        Converged when the gradient of objective/n has at most this norm.
    patience : int
        Converged when the loss has not improved for this many iterations.
    check_every : int
        Iterations between checks.
    callback : callable or None
    settled_within : float, default=0.0
        Converged when the iterations left can hardly lower the loss by this share of its height above `lower_bound`.
    objective : Objective
        What is minimised.
    """

    def __init__(
        self,
        objective: Objective,
        max_iter: int,
        tol: float,
        patience: int,
        check_every: int,
        callback: Callback | None,
        settled_within: float = 0.0,
    ) -> None:
        self.objective = objective
        self.max_iter = check_integer("max_iter", max_iter, 1)
        self.check_every = check_integer("check_every", check_every, 1)
        self.patience = check_integer("patience", patience, 1)
        if not tol >= 0:
            raise ValueError(f"tol must be at least 0, got {tol!r}.")
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable as callback(iteration, loss, Z), got {callback!r}.")
        self.tol = tol
        self.callback = callback
        self.message = f"max_iter={max_iter} reached"
        self.converged = False
        self.losses: list[float] = []
        self.iterations: list[int] = []
        self._best = np.inf
        self._best_iteration = 0
        if not 0 <= settled_within < 1:
            raise ValueError(f"settled_within must lie in [0, 1), got {settled_within!r}.")
        self.settled_within = settled_within
        self.lower_bound = objective.lower_bound
        self._falls: list[tuple[int, float]] = []

    def due(self, iteration: int) -> bool:
        """Return whether the loss is wanted at this iteration."""
        return iteration % self.check_every == 0

    def check_finite(self, iteration: int, *values: Any) -> None:
        """Raise `FloatingPointError` naming the iteration unless everything is finite."""
        if not all(np.isfinite(value).all() for value in values):
            raise FloatingPointError(
                f"the loss, gradient or embedding is no longer finite at iteration {iteration}: lower learning_rate "
                "or early_exaggeration, or start from a smaller embedding."
            )

    def record(self, iteration: int, loss: float, Z: FloatArray, grad_norm: float, settled: bool = True) -> bool:
        """Note the loss, call the callback, and return whether the run shall stop.

        `settled` is False while a schedule still weighs the attraction: then
        nothing counts as converged, or as progress missed.
        """
        self.check_finite(iteration, loss, Z)
        self.losses.append(float(loss))
        self.iterations.append(iteration)
        if self.callback is not None:
            view = Z.view()
            view.flags.writeable = False
            if self.callback(iteration, float(loss), view):
                self.message = f"stopped by the callback at iteration {iteration}"
                return True
        if not settled:
            self._best, self._best_iteration = np.inf, iteration
            self._falls = []
            return False
        if grad_norm <= self.tol:
            return self._converge(Z, loss, f"gradient norm {grad_norm:.3g} at most tol={self.tol:.3g}")
        if loss < self._best:
            self._best, self._best_iteration = loss, iteration
        elif iteration - self._best_iteration >= self.patience:
            return self._converge(Z, loss, f"no lower loss for {self.patience} iterations")
        if self._has_settled(iteration, loss):
            left = f"settled: to iteration {self.max_iter} less than {self.settled_within:.1%} to gain"
            return self._converge(Z, loss, left)
        return False

    def _has_settled(self, iteration: int, loss: float) -> bool:
        """Return whether the iterations left, each lowering the loss as much as the last ones, would change little."""
        if not self.settled_within or iteration % _SETTLE_SPAN:
            return False
        self._falls.append((iteration, loss))
        recent = self._falls[-3:]
        if len(recent) < 3:
            return False
        falls = [(before - after) / (b - a) for (a, before), (b, after) in pairwise(recent)]
        left = max(falls) * (self.max_iter - iteration)
        return min(falls) >= 0 and left <= self.settled_within * (loss - self.lower_bound) < np.inf

    def _converge(self, Z: FloatArray, loss: float, message: str) -> bool:
        # Early exaggeration can leave all points in one place. Descent leaves it again, slowly at first.
        if is_collapsed(self.objective, Z, loss):
            return False
        self.message, self.converged = message, True
        return True


class Optimizer(ABC):
    """How `solve` moves from a start to a minimum."""

    @abstractmethod
    def run(self, objective: Objective, Z0: FloatArray, monitor: Monitor) -> tuple[FloatArray, int]:
        """Return the final embedding and the number of iterations done."""


def solve(
    objective: Objective,
    Z0: Any,
    optimizer: Optimizer | None = None,
    *,
    max_iter: int = 1000,
    tol: float = 1e-7,
    patience: int = 300,
    check_every: int | None = None,
    settled_within: float = 0.0,
    callback: Callback | None = None,
) -> Solution:
    """Minimise an objective over embeddings.

    Parameters
    ----------
    objective : Objective
        For example a `CrossEntropy`, or a weighted sum of objectives.
    Z0 : array of shape (n_points, n_components)
        The start; not changed.
    optimizer : Optimizer, optional
        `LBFGS()` by default. `MomentumGains()` is the optimizer of t-SNE.
    max_iter : int, default=1000
        Iterations at most.
    tol : float, default=1e-7
        Converged when the gradient of objective/n has at most this 2-norm.
    patience : int, default=300
        Converged when the loss has not fallen for this many iterations.
    check_every : int, optional
        Iterations between two looks at the loss, for the history, the convergence tests and the
        callback: 1 when there is a callback and 50 when there is none. A look costs up to
        several iterations' time where the loss takes logarithms that the gradient does not.
    settled_within : float, default=0.0
        Converged when the loss has settled: if every iteration left lowered it as much as those before the last checks
        did, it would fall by at most this share of its height above `Objective.lower_bound`; 0 for no such test. It
        is made every 50 iterations, and needs checks that fall on them.
    callback : callable, optional
        Called as ``callback(iteration, loss, Z)`` at every check; a true return value
        stops the run. `Z` is read-only and not reused: keep it if you like.

    Returns
    -------
    Solution

    Warns
    -----
    ConvergenceWarning
        When all points ended in one place.

    Raises
    ------
    FloatingPointError
        When the loss, the gradient or the embedding stops being finite; the message
        names the iteration.
    TypeError, ValueError
        When an argument is of the wrong kind, or `Z0` does not fit the objective
        or is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    >>> objective = gc.CrossEntropy(posterior, gc.GraphModel(gc.Gaussian(), "D"))
    >>> solution = gc.solve(objective, X[:, :2], max_iter=50)
    >>> solution.loss < objective.value(X[:, :2])
    True
    """
    from graphcouple.optimize.lbfgs import LBFGS

    if not isinstance(objective, Objective):
        raise TypeError(f"objective must be an Objective such as CrossEntropy, got {type(objective).__name__}.")
    if optimizer is not None and not isinstance(optimizer, Optimizer):
        raise TypeError(f"optimizer must be LBFGS(), MomentumGains() or another Optimizer, got {optimizer!r}.")
    start = check_embedding(Z0, "Z0", objective.n_points)
    if check_every is None:
        check_every = 50 if callback is None else 1
    monitor = Monitor(objective, max_iter, tol, patience, check_every, callback, settled_within)
    Z, n_iter = (optimizer or LBFGS()).run(objective, start.copy(), monitor)
    if monitor.iterations and monitor.iterations[-1] == n_iter:
        loss = monitor.losses[-1]
    else:
        loss = objective.value(Z)
        monitor.check_finite(n_iter, loss, Z)
        monitor.losses.append(loss)
        monitor.iterations.append(n_iter)
    if is_collapsed(objective, Z, loss):
        monitor.converged, monitor.message = False, f"collapsed: all points are in one place ({monitor.message})"
        warnings.warn(
            "the embedding has collapsed: all points are in one place, which is no minimum. Lower early_exaggeration "
            "(1 for none) or the perplexity, or start from a wider embedding.",
            ConvergenceWarning,
            stacklevel=2,
        )
    history = np.array(monitor.losses)
    return Solution(Z, loss, n_iter, monitor.converged, monitor.message, history, np.array(monitor.iterations))
