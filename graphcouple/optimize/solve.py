"""`solve` minimises an objective from a start, with an optimizer and an optional callback."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from graphcouple._validation import check_embedding
from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Callback, Optimizer, Run, Solution
from graphcouple.optimize.lbfgs import LBFGS
from graphcouple.optimize.monitor import Monitor, is_collapsed


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
    n_jobs: int | None = None,
) -> Solution:
    """Minimise an objective over embeddings.

    Parameters
    ----------
    objective : Objective
        For example a `CrossEntropy`, or a weighted sum of objectives.
    Z0 : array of shape (n_points, n_components)
        The start; it is not modified.
    optimizer : Optimizer, optional
        `LBFGS()` by default. `MomentumGains()` is the optimizer of t-SNE.
    max_iter : int, default=1000
        Maximum number of iterations.
    tol : float, default=1e-7
        Converged when the gradient of objective/n has at most this 2-norm.
    patience : int, default=300
        Converged when the loss has not fallen for this many iterations.
    check_every : int, optional
        Iterations between evaluations of the loss, for the history, the convergence tests and
        the callback. The default is 1 with a callback and 50 without. An evaluation can cost as
        much as several iterations, because the loss may need logarithms that the gradient does not.
    settled_within : float, default=0.0
        Converged when the remaining iterations, each lowering the loss as fast as recent ones, would lower it by at
        most this share of its gap to `Objective.lower_bound`; 0 for no such test. The test runs at the checks
        whose iteration is a multiple of 50.
    n_jobs : int or None, default=None
        Threads for the optimizer's own steps; None means every core. Results do not depend on it.
    callback : callable, optional
        Called as ``callback(iteration, loss, Z)`` at every check; a true return value
        stops the run. `Z` is read-only and not reused, so you can keep it.

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
        When an argument has the wrong type, or `Z0` does not fit the objective
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
    if not isinstance(objective, Objective):
        raise TypeError(f"objective must be an Objective such as CrossEntropy, got {type(objective).__name__}.")
    if optimizer is not None and not isinstance(optimizer, Optimizer):
        raise TypeError(f"optimizer must be LBFGS(), MomentumGains() or another Optimizer, got {optimizer!r}.")
    start = check_embedding(Z0, "Z0", objective.n_points).copy()
    if check_every is None:
        check_every = 50 if callback is None else 1
    monitor = Monitor(objective, max_iter, tol, patience, check_every, callback, settled_within)
    chosen = LBFGS() if optimizer is None else optimizer
    chosen.check(objective)
    run = Run(monitor.max_iter, n_jobs)
    # scipy's L-BFGS has its own loop.
    descend = chosen.minimize if isinstance(chosen, LBFGS) else partial(_descend, chosen)
    return _solution(objective, *descend(objective, start, run, monitor), monitor)


def _descend(
    optimizer: Optimizer, objective: Objective, start: FloatArray, run: Run, monitor: Monitor
) -> tuple[FloatArray, int]:
    """Return the final embedding and the number of iterations. This is the only loop."""
    state = optimizer.init(objective, start, run)
    for iteration in range(run.max_iter):
        if monitor.due(iteration):
            # Record the objective's own loss, not the exaggerated one and not that of this iteration's sample.
            loss, settled = objective.value(state.Z), not optimizer.warming_up(iteration)
            if monitor.record(iteration, loss, state.Z, state.grad_norm, settled):
                return state.Z, iteration
        state = optimizer.step(objective.at(iteration, state.Z), state, iteration, run)
        monitor.check_finite(iteration + 1, state.Z)
    return state.Z, run.max_iter


def _solution(objective: Objective, Z: FloatArray, n_iter: int, monitor: Monitor) -> Solution:
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
            stacklevel=3,
        )
    history = np.array(monitor.losses)
    return Solution(Z, loss, n_iter, monitor.converged, monitor.message, history, np.array(monitor.iterations))
