"""The end of a run: a further run from a better size, and warnings about a bad start or end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from graphcouple._support.validation import warn
from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Solution
from graphcouple.optimize.lbfgs import LBFGS
from graphcouple.optimize.monitor import Monitor
from graphcouple.optimize.rays import best_scale, sets_a_size

UNSETTLED = 0.02
"""A run has not settled if its last tenth lowered the loss by more than this share of its height: a tolerance."""

# A start this many times larger or smaller than the best size along its ray gets a warning: two steps of `best_scale`.
_FAR_FROM_BEST = 16.0

# A loss is clearly lower if it is lower by this share of its height: under heavy tails, sizes far apart differ by less.
_CLEARLY = 5e-3

# A loss this near its lower bound, as a share of itself, is least. Under prior S, losses are no more accurate.
_AT_BOUND = 1e-7


def warn_if_far(factor: float) -> None:
    """Warn if a start that is used as given is far from its best size, `factor` times its own."""
    if 1.0 / _FAR_FROM_BEST < factor < _FAR_FROM_BEST:
        return
    size = f"{factor:.0f} times too small" if factor > 1.0 else f"{1.0 / factor:.0f} times too large"
    warn(
        f"the start is used as given, but is about {size}: along the ray through it, the loss is least at {factor:.2g} "
        "times its size, and runs from elsewhere often end higher. Multiply it by that, use solve(..., rescale=True), "
        "or give an estimator a named init."
    )


def far_off(objective: Objective, solution: Solution) -> float:
    """Return roughly the best multiple of the embedding, a power of 4; 1 unless the loss is clearly lower there."""
    if not sets_a_size(objective):
        return 1.0
    factor = best_scale(objective, solution.Z, precise=False)
    bound = objective.lower_bound
    clearly = _CLEARLY * (solution.loss - bound if np.isfinite(bound) else abs(solution.loss))
    lower = factor != 1.0 and objective.value((factor * solution.Z).astype(solution.Z.dtype)) < solution.loss - clearly
    return factor if lower else 1.0


def warn_if_bad(solution: Solution, monitor: Monitor, factor: float) -> None:
    """Warn, with the remedy, if the run ended badly; `factor` is from `far_off`."""
    reason, exaggerates = "", monitor.objective.attracting is not None
    if solution.collapsed:
        lower = "Lower early_exaggeration (1 for none), the perplexity or n_neighbors, or start"
        remedy = f"{lower if exaggerates else 'Start'} from a wider embedding."
        reason = f"the embedding has collapsed: all points are in one place, not at a minimum. {remedy}"
    elif monitor.interrupted:
        reason = f"the run was {solution.message}; the best embedding so far is returned."
    elif monitor.stopped or monitor.height(solution.loss) <= _AT_BOUND * abs(solution.loss):
        return
    elif len(monitor.losses) > 1 and solution.loss >= monitor.first and not solution.converged:
        reason = (
            f"no embedding with a lower loss than the start's, {monitor.losses[0]:.6g}, was found, so the start is "
            f"returned. Lower {'early_exaggeration or ' * exaggerates}learning_rate, or take the default optimizer."
        )
    elif not solution.converged and (fall := monitor.still_falling(monitor.last)) > UNSETTLED:
        reason = (
            f"the embedding has not settled: at max_iter={monitor.max_iter} the last tenth of the iterations "
            f"lowered the loss by {fall:.1%} of its height above its lower bound. Raise max_iter."
        )
    elif factor != 1.0:
        reason = (
            f"the embedding is far from its size: the loss is lower at {factor:.3g} times it. Raise max_iter, try "
            f"another init, or lower {'early_exaggeration (1 for none) or ' * exaggerates}the weights of terms."
        )
    if reason:
        warn(reason, ConvergenceWarning)


# A function of a start, an optimizer, and whether to rescale the start to its best size; returns where the run ends.
Attempt = Any


def restarted(start: FloatArray, attempt: Attempt) -> tuple[Solution, Monitor]:
    """Return a run from the best size of the start without exaggeration or, if that collapses too, from noise."""
    noise = np.random.default_rng(0).normal(size=start.shape).astype(start.dtype)
    for Z in (start, noise):
        solution, monitor = attempt(Z, LBFGS(), True)
        if not solution.collapsed:
            return solution, monitor
    raise ValueError(
        "no start ends in anything better than all points in one place: the input's graph is nearly uniform, or the "
        "embedding's kernel cannot show what it holds. Lower the perplexity or the exaggeration, choose another "
        "kernel, or raise an edge_prior that is a number."
    )


def resized(
    objective: Objective, solution: Solution, monitor: Monitor, attempt: Attempt, raises: bool
) -> tuple[Solution, Monitor, float]:
    """Return the better of a run and a second run from a far better size, with `far_off` of the returned solution.

    Where points are too near or too far for kernels to vary, descent moves little. If the second run fails, the first
    one's result is kept. Without an `attempt` there is no second run; `raises` says whether Ctrl-C raises.
    """
    factor = 1.0
    try:
        factor = far_off(objective, solution)
        if factor == 1.0 or attempt is None:
            return solution, monitor, factor
        second, second_monitor = attempt((factor * solution.Z).astype(solution.Z.dtype), LBFGS(), False)
        better = second.loss < solution.loss and not second.collapsed
        if second_monitor.stopped:
            end = second if better else replace(solution, message=second.message, converged=False)
            return end, second_monitor, 1.0
        if better:
            return second, second_monitor, far_off(objective, second)
    except FloatingPointError:
        pass
    except KeyboardInterrupt:
        if raises:
            raise
        monitor.interrupt(solution.n_iter)
        return replace(solution, message=monitor.message, converged=False), monitor, 1.0
    return solution, monitor, factor
