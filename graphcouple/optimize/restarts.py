"""What follows a run that ended where no minimum is: with all points in one place, or far from its best size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Solution
from graphcouple.optimize.lbfgs import LBFGS
from graphcouple.optimize.monitor import Monitor
from graphcouple.optimize.verdict import far_off

# A function of a start, an optimizer, and whether to rescale the start to its best size; returns where the run ends.
Attempt = Any


def restarted(objective: Objective, start: FloatArray, attempt: Attempt) -> tuple[Solution, Monitor]:
    """Return a run from the best size of the start without exaggeration or, if that collapses too, from noise."""
    noise = np.random.default_rng(0).normal(size=start.shape).astype(start.dtype)
    solution: Solution
    monitor: Monitor
    for Z in (start, noise):
        solution, monitor = attempt(Z, LBFGS(), True)
        if not solution.collapsed:
            return solution, monitor
    raise ValueError(
        "no start ends in anything better than all points in one place: the input's graph is nearly uniform, or the "
        "embedding's kernel cannot show what it holds. Lower the perplexity, or choose another kernel."
    )


def resized(
    objective: Objective, solution: Solution, monitor: Monitor, attempt: Attempt, raises: bool
) -> tuple[Solution, Monitor, float]:
    """Return the better of a run and one that goes on from a far better size, with `far_off` of what is returned.

    Where points are too near or too far for kernels to vary, descent moves little. If the second run fails, the first
    one's result is kept.

    Parameters
    ----------
    objective : Objective
    solution, monitor : Solution, Monitor
        Where the run ended.
    attempt : callable or None
        None for no further run.
    raises : bool
        Whether Ctrl-C raises `KeyboardInterrupt`.
    """
    factor = 1.0
    try:
        factor = far_off(objective, solution)
        if factor == 1.0 or attempt is None:
            return solution, monitor, factor
        again, watched = attempt((factor * solution.Z).astype(solution.Z.dtype), LBFGS(), False)
        better = again.loss < solution.loss and not again.collapsed
        if watched.stopped:
            return again if better else replace(solution, message=again.message, converged=False), watched, 1.0
        if better:
            return again, watched, far_off(objective, again)
    except FloatingPointError:
        pass
    except KeyboardInterrupt:
        if raises:
            raise
        monitor.interrupt(solution.n_iter)
        return replace(solution, message=monitor.message, converged=False), monitor, 1.0
    return solution, monitor, factor
