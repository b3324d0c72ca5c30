"""`solve` minimises an objective from a start, with an optimizer and an optional callback."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from graphcouple._numba.threads import threads_kept
from graphcouple._support.validation import check_embedding, check_integer, is_word, warn
from graphcouple.couplings import Objective
from graphcouple.couplings.base import deviation
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Callback, Optimizer, Run, Solution
from graphcouple.optimize.descent import Descent
from graphcouple.optimize.exaggeration import NO_EXAGGERATION
from graphcouple.optimize.lbfgs import LBFGS
from graphcouple.optimize.monitor import SETTLE_SPAN, Monitor, Stopping, check_finite, is_collapsed
from graphcouple.optimize.rays import best_scale, shrink_within, starting_objective
from graphcouple.optimize.snapshots import NoSnapshots, Snapshots, check_state
from graphcouple.optimize.verdict import resized, restarted, warn_if_bad, warn_if_far

# A bounded loss does not pull torn parts together again, so the attraction that `Descent` adds must fade slowly.
# No comparison is recorded.
_FEWEST_IF_BOUNDED = 400

# With max_iter="auto", a run may become this many times longer, in steps of half its first length.
# No comparison is recorded.
_MOST_EXTENDED = 3

# It is extended if the last tenth lowered the loss by more than this share of its height. With twice this share, UMAP
# of 40,000 points in 50 clusters ends 5 % higher, after half of the iterations (benchmarks/scaling.py).
_FALLING = 0.01

# Sampled steps of few points on a line end no lower after more iterations.
_MOST_SAMPLED = 1000

# Three runs of at most 100 points take a third of a second, and find the lowest of several minima.
_SEVERAL_RUNS, _SEVERAL_UP_TO = 3, 100

# Weight of the bound on the size for a start: the bound then costs half a nat per point at D = L/2, and 23 at D = L.
_START_WEIGHT = 100.0

# Noise of further starts, relative to the first one's standard deviation: more searches further, less keeps its order.
_JITTER = 0.5


def solve(
    objective: Objective,
    Z0: Any,
    optimizer: Optimizer | Descent | None = None,
    *,
    max_iter: int | str = "auto",
    callback: Callback | None = None,
    n_starts: int | str = "auto",
    rescale: bool | None = False,
    n_jobs: int | None = None,
    on_interrupt: str = "raise",
    snapshots: Snapshots | None = None,
    **stopping: Any,
) -> Solution:
    """Minimise an objective over embeddings.

    Parameters
    ----------
    objective : Objective
        For example a `CrossEntropy`, or a weighted sum of objectives.
    Z0 : array of shape (n_points, n_components)
        The start; it is not modified.
    optimizer : Optimizer or Descent, optional
        `Descent()` by default, as in the estimators.
    max_iter : int or "auto", default="auto"
        Maximum number of iterations. "auto" is `Optimizer.suited_iterations` (at least 400 for a bounded objective
        that does not shrink noise), and half as many more, up to three times that number, as long as three quarters
        of the run were exaggerated or the last tenth lowered the loss by more than 1 % of its height. With "auto" and
        `Descent`, a second run, of at most as many iterations, starts at the best size if the first ends far from it.
    callback : callable, optional
        Called as ``callback(iteration, loss, Z)`` at every check and at the end; a true return value
        stops the run. `Z` is read-only and not reused, so you can keep it.
    n_starts : int or "auto", default="auto"
        Number of runs, of which the best is returned. The first is from `Z0`; the second too, but without exaggeration
        if `Descent` chose one; the others are from `Z0` plus Gaussian noise of half its standard deviation, and the
        k-th is exaggerated by the (k − 1)-th root of the first one's factor. The callback sees every run. "auto" is 3
        for at most 100 points, with `Descent` and ``max_iter="auto"``; else 1, as where points are held.
    rescale : bool, default=False
        Start from the multiple of `Z0` at which the (exaggerated) objective is least; `Descent` also smooths a start
        as rough as noise. If the steps are sampled, the confinement of `Descent` bounds this size. Estimators set it
        unless `init` is an array. None keeps the size, and does not warn about it.
    n_jobs : int or None, default=None
        Threads for the optimizer's own steps; None means every core. Results do not depend on it.
    on_interrupt : {"raise", "return"}, default="raise"
        What Ctrl-C does: raise `KeyboardInterrupt`, or return the best embedding so far, with a warning.
    snapshots : Snapshots, optional
        Where the state of the run is kept, so that a killed run can continue.
    **stopping
        The convergence tests: `tol`, `patience`, `settled_within` and `check_every`; see `Stopping`.

    Returns
    -------
    Solution
        The embedding of the lowest loss at a check, at the start or at the end; the last one if the optimizer is noisy.
        With a callback, as without, only checks at multiples of 20 iterations count, unless `check_every` is not a
        divisor of 20. The history belongs to the run that found it.

    Warns
    -----
    ConvergenceWarning
        When all points ended in one place, the loss was still falling at `max_iter`, no loss below the start's
        was found, the loss is lower by half a percent of its height at 4 or more times the size, or at a quarter of it
        or less, a given early exaggeration is too strong for the graph, or Ctrl-C ended the run.
    UserWarning
        When the start is used as given and is 16 or more times larger or smaller than is best along the ray through it.

    Raises
    ------
    ValueError
        When `Descent` finds nothing better than all points in one place, from any start.
    FloatingPointError
        When the loss, the gradient or the embedding stops being finite; the message names the iteration.
    TypeError, ValueError
        When an argument has the wrong type, or `Z0` does not fit the objective or is not finite.

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
    _check(objective, optimizer, on_interrupt, stopping)
    tests = Stopping(**stopping)
    start = check_embedding(Z0, "Z0", objective.n_points).copy()
    optimizer = Descent() if optimizer is None else optimizer
    n_runs = _runs(n_starts, optimizer, max_iter, objective)
    most = 1
    if is_word("max_iter", max_iter, "auto", "an integer of at least 1"):
        most, max_iter = _MOST_EXTENDED, _iterations(optimizer, objective)
    max_iter = check_integer("max_iter", max_iter, 1)
    if isinstance(optimizer, Optimizer):
        first = optimizer
    else:
        start, first = optimizer.plan(objective, start, max_iter, most * max_iter, smooth=bool(rescale))
    if most > 1 and first.noisy:
        max_iter = min(max_iter, _MOST_SAMPLED)
    bound = (Descent() if isinstance(optimizer, Optimizer) else optimizer).bound(objective)
    # Sampled steps ignore the size of the map, so their start is bounded instead. Other given optimizers have no bound.
    start_bound = bound and _START_WEIGHT * bound if first.noisy else None
    bound = None if first.noisy or isinstance(optimizer, Optimizer) else bound
    stated, objective = objective, objective if bound is None else objective + bound

    raises, store = on_interrupt == "raise", NoSnapshots() if snapshots is None else snapshots
    attempt = _Attempts(objective, bound, start_bound, max_iter, most, tests, callback, n_jobs, raises, store)
    factor, derived = 1.0, not isinstance(optimizer, Optimizer)
    with threads_kept():
        runs = attempt.each(_attempts(objective, start, first, derived, n_runs), rescale)
        solution, monitor = min(runs, key=lambda run: run[0].loss)
        if solution.collapsed and derived and objective.held_points is None and not monitor.stopped:
            solution, monitor = restarted(start, attempt)
        if not (solution.collapsed or monitor.stopped or first.noisy):
            further = attempt if derived and most > 1 else None
            solution, monitor, factor = resized(objective, solution, monitor, further, raises)
    if solution.collapsed or monitor.stopped or not first.noisy:
        warn_if_bad(solution, monitor, factor)
    if bound is None:
        return replace(solution, start_losses=np.array([run.loss for run, _ in runs]))
    losses = np.array([run.loss - bound.value(run.Z) for run, _ in runs])
    return replace(solution, loss=stated.value(solution.Z), start_losses=losses)


class _Attempts(NamedTuple):
    """The settings that all runs of one call share.

    `bound` is the part of the objective that losses leave out; `start_bound` bounds the size of the start alone.
    """

    objective: Objective
    bound: Objective | None
    start_bound: Objective | None
    max_iter: int
    most: int
    tests: Stopping
    callback: Callback | None
    n_jobs: int | None
    raises: bool
    store: NoSnapshots

    def each(
        self, starts: Iterable[tuple[FloatArray, Optimizer]], rescale: bool | None
    ) -> list[tuple[Solution, Monitor]]:
        """Return where the run from each start ends; no run follows a stopped one."""
        runs: list[tuple[Solution, Monitor]] = []
        for Z, optimizer in starts:
            if rescale is not None and not rescale and not runs:
                near = starting_objective(self.objective, Z, optimizer.exaggeration.sizing_weight)
                warn_if_far(best_scale(near, Z, precise=False))
            try:
                runs.append(self(Z, optimizer, bool(rescale)))
            except FloatingPointError as error:
                if not runs:
                    raise
                warn(f"a further start failed, and the runs before it count: {error}", ConvergenceWarning)
                break
            if runs[-1][1].stopped:
                break
        return runs

    def __call__(self, Z: FloatArray, optimizer: Optimizer, rescale: bool) -> tuple[Solution, Monitor]:
        """Return where one run ends; a run that the snapshots have is not repeated."""
        every = 1 if self.callback else self.max_iter if optimizer.noisy else SETTLE_SPAN
        monitor = Monitor(self.objective, self.max_iter, self.tests, self.callback, every, self.bound)
        monitor.most = (1 if optimizer.noisy else self.most) * self.max_iter
        optimizer.check(self.objective)
        if (end := self.store.begin()) is not None:
            if np.shape(end.solution.Z) != Z.shape:
                raise ValueError("the checkpoint is damaged: a result has another shape. Fit without resume=True.")
            monitor.recall(end.monitor)
            return end.solution, monitor
        if rescale and self.objective.held_points is None and self.store.going is None:
            objective = starting_objective(self.objective, Z, optimizer.exaggeration.sizing_weight)
            objective = objective if self.start_bound is None else objective + self.start_bound
            Z = (Z * best_scale(objective, Z, precise=not optimizer.noisy)).astype(Z.dtype)
            Z = Z if self.bound is None else shrink_within(self.bound, Z)
        solution = self._descend(optimizer, Z, monitor)
        if not monitor.stopped:
            self.store.end(solution, monitor.remembered())
        return solution, monitor

    def _descend(self, optimizer: Optimizer, start: FloatArray, monitor: Monitor) -> Solution:
        """Return the best embedding seen. All runs of optimizers go through this loop."""
        objective, run = self.objective, Run(monitor.max_iter, self.n_jobs)
        if (going := self.store.going) is None:
            iteration, state = 0, optimizer.init(objective, start, run)
        else:
            check_state(going, start)
            monitor.recall(going["monitor"])
            iteration, state = int(going["iteration"]), optimizer.recalled(objective, run, going["state"])

        def remembered() -> dict[str, Any]:
            return {"state": optimizer.remembered(state), "monitor": monitor.remembered()}

        try:
            while True:
                over = iteration == monitor.max_iter and not _extend(monitor, objective, state, run, optimizer)
                if iteration % monitor.check_every == 0 and not over:
                    # Record the loss of the objective itself, not of its exaggeration or of this iteration's sample.
                    loss, settled = objective.value(state.Z), not _is_warming_up(optimizer, iteration)
                    if monitor.record(iteration, loss, state.Z, state.grad_norm, settled):
                        break
                if iteration == monitor.last_tenth and not optimizer.noisy:
                    monitor.before_last_tenth = objective.value(state.Z)
                # A smooth run may be able to go no further on the objective itself.
                why = "" if over or _is_warming_up(optimizer, iteration) else optimizer.exhausted(state)
                if over or (why and monitor.converge(state.Z, objective.value(state.Z), why)):
                    break
                after = optimizer.step(optimizer.for_iteration(objective, iteration, state.Z), state, iteration, run)
                _check_step(optimizer, after.Z, start)
                check_finite(iteration + 1, after.Z)
                state, iteration = after, iteration + 1
                self.store.offer(iteration, remembered)
            monitor.finish(iteration, state.Z)
        except KeyboardInterrupt:
            if self.raises:
                raise
            monitor.interrupt(iteration)
            monitor.finish(iteration, state.Z)
        monitor.keep(monitor.last, state.Z)
        return _solution(optimizer, objective, state.Z, iteration, monitor)


def _check_step(optimizer: Optimizer, Z: Any, start: FloatArray) -> None:
    """Raise unless a step keeps the embedding's shape and dtype; later steps must not change it in place."""
    if not isinstance(Z, np.ndarray) or (Z.shape, Z.dtype) != (start.shape, start.dtype):
        got = f"{Z.dtype} of shape {Z.shape}" if isinstance(Z, np.ndarray) else type(Z).__name__
        raise ValueError(
            f"{type(optimizer).__name__}.step must return an embedding like the start, an array of {start.dtype} of "
            f"shape {start.shape}, got {got}."
        )
    Z.flags.writeable = False


def _check(objective: Any, optimizer: Any, on_interrupt: str, stopping: dict[str, Any]) -> None:
    if not isinstance(objective, Objective):
        raise TypeError(f"objective must be an Objective such as CrossEntropy, got {type(objective).__name__}.")
    if not hasattr(objective, "n_points"):
        raise TypeError(f"{type(objective).__name__} needs an attribute n_points, the embedding's number of points.")
    if optimizer is not None and not isinstance(optimizer, (Optimizer, Descent)):
        raise TypeError(f"optimizer must be Descent(), LBFGS() or another Optimizer, got {optimizer!r}.")
    if on_interrupt not in ("raise", "return"):
        raise ValueError(f"on_interrupt must be 'raise' or 'return', got {on_interrupt!r}.")
    known = [field.name for field in fields(Stopping)]
    if unknown := sorted(set(stopping) - set(known)):
        raise TypeError(f"solve has no argument {unknown[0]!r}; its convergence tests are {', '.join(known)}.")


def _attempts(
    objective: Objective, start: FloatArray, first: Optimizer, derived: bool, n_runs: int
) -> Iterator[tuple[FloatArray, Optimizer]]:
    """Yield starts with their optimizers; the second differs from the first by noise, or by exaggeration alone."""
    yield start, first
    noise: Any = _JITTER * deviation(start)
    if (held := objective.held_points) is not None:
        noise = np.where(held, 0.0, noise)[:, None]
    for k in range(1, n_runs):
        optimizer = first
        if derived and isinstance(first, LBFGS) and first.exaggeration != NO_EXAGGERATION:
            weaker = replace(first.exaggeration, factor=first.exaggeration.factor ** (1.0 / k))
            optimizer = replace(first, exaggeration=NO_EXAGGERATION if k == 1 else weaker)
            if k == 1:
                yield start, optimizer
                continue
        yield (start + noise * np.random.default_rng(k).normal(size=start.shape)).astype(start.dtype), optimizer


def _runs(n_starts: int | str, optimizer: Optimizer | Descent, max_iter: int | str, objective: Objective) -> int:
    if is_word("n_starts", n_starts, "auto", "an integer of at least 1"):
        if max_iter != "auto" or not isinstance(optimizer, Descent) or objective.held_points is not None:
            return 1
        return _SEVERAL_RUNS if objective.n_points <= _SEVERAL_UP_TO else 1
    return check_integer("n_starts", n_starts, 1)


def _iterations(optimizer: Optimizer | Descent, objective: Objective) -> int:
    suited = optimizer.suited_iterations(objective.n_points)
    attraction = objective.attracting
    tears = attraction is not None and attraction.fades and not attraction.shrinks_noise
    return max(suited, _FEWEST_IF_BOUNDED) if tears and isinstance(optimizer, Descent) else suited


def _solution(optimizer: Optimizer, objective: Objective, last: FloatArray, n_iter: int, monitor: Monitor) -> Solution:
    """Return the best embedding of a run that has ended, or the last one if the optimizer is noisy."""
    loss, Z = (monitor.losses[-1], last) if optimizer.noisy else monitor.best
    assert Z is not None
    collapsed = is_collapsed(objective, Z, loss)
    complete = optimizer.noisy and not monitor.stopped
    message, converged = f"all {n_iter} steps taken" if complete else monitor.message, monitor.converged
    if collapsed:
        message, converged = f"collapsed: all points are in one place ({message})", False
    past = np.array(monitor.losses), np.array(monitor.iterations)
    # The steps' embeddings are read-only.
    return Solution(Z.copy(), loss, n_iter, converged, message, *past, collapsed=collapsed, stopped=monitor.stopped)


def _is_warming_up(optimizer: Optimizer, iteration: int) -> bool:
    """Return whether attraction is exaggerated, or steps are random and hide the progress still to come."""
    return optimizer.noisy or iteration < optimizer.exaggeration.n_iter


def _extend(monitor: Monitor, objective: Objective, state: Any, run: Run, optimizer: Optimizer) -> bool:
    """Return whether the run may continue for half its length, because it warmed up too long or is still falling."""
    if monitor.max_iter >= monitor.most:
        return False
    warmed_up = not _is_warming_up(optimizer, 3 * monitor.max_iter // 4)
    if warmed_up and monitor.still_falling(objective.value(state.Z)) <= _FALLING:
        return False
    monitor.max_iter += max(run.max_iter // 2, 1)
    return True
