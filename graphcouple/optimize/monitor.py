"""The monitor of a run: finiteness, history, callback, convergence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcouple._support.validation import check_answer, check_fraction, check_integer, check_weight
from graphcouple.couplings import Objective
from graphcouple.couplings.base import deviation
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Callback

SETTLE_SPAN = 20
"""Iterations between the losses that tell whether a run has settled. With 50, UMAP takes a fifth more iterations."""

# Iterations for which `settled_within` is stated, and the fewest after which a run can settle.
# The span was 50 at first. With 20 and 40, runs took a seventh fewer iterations, at losses 0.004 % higher.
_STATED_FOR, _UNFOLDING = 50, 40

# Attributes that snapshots keep.
_SAVED = (
    *("losses", "first", "last", "iterations", "best", "max_iter", "converged", "before_last_tenth"),
    *("_reason", "_lowest", "_lowest_at", "_judged", "_stood_still"),
)

# A map of more than this standard deviation is wide. Maps of a hundred separated clusters have 400.
_WIDE = 1e3

# A loss that changes by less than this share of its value counts as constant: rounding of sums in float64.
_SAME = 1e-9

# Share of the gap to the lower bound; points are collapsed if merging them changes the loss by less.
# Below the second share of itself, a loss is rounding. Both are tolerances.
_FLAT_SHARE, _ROUNDING = 1e-6, 1e-10

# Standard deviations at which the loss is evaluated, to see whether spreading the points lowers it: powers
# of ten around a kernel's length of about 1.
_SIZES = (1e-2, 1e-1, 1.0, 10.0)


def is_collapsed(objective: Objective, Z: FloatArray, loss: float) -> bool:
    """Return whether all points are in one place, by the objective.

    They are if moving them all to one place changes the loss by less than a millionth of its gap to the lower bound.
    That is a saddle point, which a gradient's norm cannot tell from a minimum. Points in one place at the lowest
    possible loss, such as duplicates, have not collapsed, nor have points whose loss is the same at every size.
    """
    gain, same, rounding = loss - objective.lower_bound, _SAME * abs(loss), _ROUNDING * abs(loss)
    if gain <= rounding:
        return False
    merged, size = abs(objective.value(np.zeros_like(Z)) - loss), deviation(Z)
    spread = (objective.value(Z * np.asarray(s / size, dtype=Z.dtype)) for s in _SIZES if size > 0)
    if gain < np.inf:
        return merged <= _FLAT_SHARE * gain and not (size > 0 and all(abs(value - loss) <= same for value in spread))
    # Without a lower bound, one place may be the minimum, unless spreading the points lowers the loss.
    return merged <= rounding and any(value < loss - rounding for value in spread)


def check_finite(iteration: int, *values: Any) -> None:
    """Raise `FloatingPointError`, which names the iteration, unless all values are finite."""
    if not all(np.isfinite(value).all() for value in values):
        raise FloatingPointError(
            f"the loss, gradient or embedding is no longer finite at iteration {iteration}: lower learning_rate, "
            "early_exaggeration or the weights of terms, start from a smaller embedding, or check the kernel with "
            "graphcouple.check_kernel."
        )


@dataclass(frozen=True)
class Stopping:
    """When a run counts as converged, and how often its loss is evaluated.

    Parameters
    ----------
    tol : float, default=1e-7
        Converged when the gradient of objective/n has at most this 2-norm.
    patience : int, default=300
        Converged when the loss has not fallen for this many iterations, if it ever fell below the start's.
    settled_within : float, default=2e-4
        Converged when the loss falls by at most this share of its height above `Objective.lower_bound` (of its
        absolute value plus the run's gain, if no bound is known) in 50 iterations, as estimated from those since the
        last test. Tests run at the checks whose iteration is a multiple of 20; 0 means no tests.
    check_every : int, optional
        Iterations between evaluations of the loss, for the history, the tests and the callback. The default is 1 with
        a callback and 20 without; none but the first and last if the optimizer is noisy. An evaluation can cost as
        much as several iterations, because the loss may need logarithms that the gradient does not. With a divisor of
        20, all tests run at multiples of 20, so that a callback changes neither where a run ends nor its result.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> anchors = gc.couplings.AnchorEnergy(2, np.array([0, 1]), np.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> gc.solve(anchors, np.ones((2, 2)), gc.LBFGS(), tol=gc.extend.Stopping().tol).converged
    True
    """

    tol: float = 1e-7
    patience: int = 300
    settled_within: float = 2e-4
    check_every: int | None = None

    def __post_init__(self) -> None:
        check_integer("patience", self.patience, 1)
        if self.check_every is not None:
            check_integer("check_every", self.check_every, 1)
        check_weight(self.tol, name="tol")
        check_fraction("settled_within", self.settled_within)


class Monitor:
    """Monitors a run: finiteness, the history, the best embedding, the callback and the convergence tests.

    `solve` may raise `max_iter` up to `most`, which is the same at first. `check_every` is the number of iterations
    between checks, unless `stopping` sets it. Reported losses leave out the part `aside` of the objective.
    """

    def __init__(
        self,
        objective: Objective,
        max_iter: int,
        stopping: Stopping,
        callback: Callback | None = None,
        check_every: int = SETTLE_SPAN,
        aside: Objective | None = None,
    ) -> None:
        if callback is not None and not callable(callback):
            raise TypeError(f"callback must be callable as callback(iteration, loss, Z), got {callback!r}.")
        self.objective, self.aside, self.stopping, self.callback = objective, aside, stopping, callback
        self.check_every = stopping.check_every or check_every
        self.max_iter = self.most = max_iter
        self._reason = ""
        self.converged = self.stopped = self.interrupted = self._stood_still = False
        self.losses: list[float] = []
        self.first = self.last = np.nan
        self.iterations: list[int] = []
        self.best: tuple[float, FloatArray | None] = (np.inf, None)
        self._lowest, self._lowest_at = np.inf, 0
        self.lower_bound = objective.lower_bound
        self._judged: tuple[int, float, int] | None = None
        self.before_last_tenth: float | None = None

    def note(self, iteration: int, loss: float, Z: FloatArray) -> None:
        """Add a loss to the history."""
        check_finite(iteration, loss, Z)
        self.losses.append(float(loss) - (0.0 if self.aside is None else self.aside.value(Z)))
        self.first, self.last = (self.first if self.iterations else float(loss)), float(loss)
        self.iterations.append(iteration)

    def keep(self, loss: float, Z: FloatArray) -> None:
        """Keep the embedding if it is the best so far."""
        if loss < self.best[0]:
            self.best = float(loss), Z

    def record(self, iteration: int, loss: float, Z: FloatArray, grad_norm: float, settled: bool = True) -> bool:
        """Note the loss, call the callback, and return whether the run should stop.

        `settled` is False while a schedule still exaggerates the attraction. Nothing
        then counts as converged, nor as an iteration without progress.
        """
        self.note(iteration, loss, Z)
        if self._tell(iteration, Z):
            self._reason, self.stopped = f"stopped by the callback at iteration {iteration}", True
            return True
        # A run that is watched more often than every 20 iterations ends as if it were not.
        if iteration % SETTLE_SPAN and SETTLE_SPAN % self.check_every == 0:
            return False
        self.keep(loss, Z)
        if not settled:
            self._lowest, self._lowest_at, self._judged = np.inf, iteration, None
            return False
        tol, patience = self.stopping.tol, self.stopping.patience
        # Where a kernel has no scale, gradients fall as the map grows, minimum or not.
        if grad_norm * max(1.0, deviation(Z) / _WIDE) <= tol:
            return self.converge(Z, loss, f"the gradient's norm, {grad_norm:.3g}, is at most tol={tol:.3g}")
        if loss < self._lowest:
            self._lowest, self._lowest_at = loss, iteration
        elif iteration - self._lowest_at >= patience:
            if not self._lowest < self.first and loss > self.first + _SAME * abs(self.first):
                self._reason = f"stopped: no lower loss than the start's for {patience} iterations"
                return True
            return self.converge(Z, loss, f"no lower loss for {patience} iterations")
        if span := self._settled_for(iteration, loss):
            share = f"{100.0 * self._least_fall(span):.2g} % of its height above its lower bound"
            return self.converge(Z, loss, f"{span} iterations lowered the loss by less than {share}")
        return False

    def finish(self, iteration: int, Z: FloatArray) -> None:
        """Note the end of a run, if it is no check, and call the callback unless Ctrl-C ended the run."""
        if self.iterations[-1:] != [iteration]:
            self.note(iteration, self.objective.value(Z), Z)
            if not self.stopped:
                self._tell(iteration, Z)

    def _tell(self, iteration: int, Z: FloatArray) -> bool:
        """Call the callback, and return whether it stops the run."""
        if self.callback is None:
            return False
        view = Z.view()
        view.flags.writeable = False
        return check_answer(self.callback(iteration, self.losses[-1], view))

    def height(self, loss: float) -> float:
        """Return the loss minus its lower bound or, if none is known, its absolute value plus the run's gain."""
        above = loss - self.lower_bound
        return above if above < np.inf else abs(loss) + max(self.first - loss, 0.0)

    def _least_fall(self, span: int) -> float:
        return self.stopping.settled_within * span / _STATED_FOR

    def _settled_for(self, iteration: int, loss: float) -> int:
        """Return the number of iterations in which the loss hardly fell; 0 if it still falls."""
        if not self.stopping.settled_within or iteration % SETTLE_SPAN:
            return 0
        before = self._judged
        self._judged = (iteration, loss, iteration if before is None else before[2])
        # Exaggeration draws some points together, or all. Until they unfold, slowly, the loss is above the start's.
        if before is None or loss > self.first or iteration - before[2] < _UNFOLDING:
            return 0
        span, fall = iteration - before[0], before[1] - loss
        if abs(fall) <= _SAME * abs(loss) and not self._stood_still:
            # The optimizer may have taken back steps that raised the loss, and continues with greater care.
            self._stood_still = True
            return 0
        return span if 0 <= fall <= self._least_fall(span) * self.height(loss) else 0

    def converge(self, Z: FloatArray, loss: float, message: str) -> bool:
        """End the run as settled, for this reason, and return True, unless all points are in one place."""
        # Exaggeration can leave all points in one place, from which descent escapes, slowly at first.
        if is_collapsed(self.objective, Z, loss):
            return False
        self._reason, self.converged = f"settled: {message}", True
        return True

    def interrupt(self, iteration: int) -> None:
        """End the run after Ctrl-C."""
        self._reason, self.stopped, self.interrupted = f"interrupted at iteration {iteration}", True, True

    def remembered(self) -> dict[str, Any]:
        """Return the record of the run so far, as plain values and arrays."""
        return {name: getattr(self, name) for name in _SAVED}

    def recall(self, remembered: dict[str, Any]) -> None:
        """Restore a record that `remembered` returned."""
        if set(remembered) != set(_SAVED):
            raise ValueError("the checkpoint is damaged: it lacks the record of the run. Fit without resume=True.")
        for name in _SAVED:
            setattr(self, name, remembered[name])

    @property
    def message(self) -> str:
        """Why the run ended."""
        if self._reason:
            return self._reason
        limit = f"stopped at max_iter={self.max_iter}"
        if not (fall := self.still_falling(self.last)) > 0:
            return limit
        share = f"{100.0 * fall:.2g} % of its height above its lower bound"
        return f"{limit}, while the last tenth of the iterations still lowered the loss by {share}"

    @property
    def last_tenth(self) -> int:
        """The iteration at which the last tenth of the run begins."""
        return self.max_iter - max(self.max_iter // 10, 1)

    def still_falling(self, now: float) -> float:
        """Return the share of the height by which the loss fell to `now` in the last tenth of the iterations."""
        if self.before_last_tenth is None:
            return 0.0
        height = self.height(now)
        # A run of fewer than ten iterations has no tenth: its last iteration counts in proportion.
        share = 0.1 * self.max_iter / (self.max_iter - self.last_tenth)
        # A height that has all but vanished is no measure.
        return min(share * (self.before_last_tenth - now) / height, 1.0) if height > 0 else 0.0
