"""L-BFGS that rarely evaluates the loss, because gradients are cheaper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from graphcouple._numba.threads import POINTS_OF_BLOCK, over_blocks
from graphcouple._support.validation import check_integer, check_positive
from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Optimizer, Run
from graphcouple.optimize.exaggeration import NO_EXAGGERATION, Exaggeration
from graphcouple.optimize.monitor import check_finite
from graphcouple.optimize.rays import level_exponent, sets_a_size
from graphcouple.optimize.stiffness import inverse_stiffness
from graphcouple.optimize.two_loops import newton_direction

# A step is short enough if the loss falls by this share of the first slope's prediction, and long enough if the
# slope has lost a tenth. Without the loss, a step is short enough unless the slope at its end is uphill and steeper
# than 0.8 of the first slope. The first two numbers are scipy's in `line_search`.
_ENOUGH_FALL, _ENOUGH_SLOPE, _UPHILL = 1e-4, 0.9, 0.8

# Rounding of a loss, relative to the loss, in double and single precision. Sums round more than single numbers.
_NOISE, _NOISE_IF_SINGLE = 1e-9, 1e-6

# Iterations between comparisons of the loss, as long as slopes can be trusted: a loss costs logarithms, slopes none.
_COMPARE_EVERY = 20

# The first step moves a typical point by this share of `reach`. The number of trials is a safeguard.
_FIRST_STEP, _MOST_TRIALS = 0.1, 30

# A pair is useful if the cosine between its step and its change of the gradient is above this: a tolerance.
_LEAST_COSINE = 1e-10

# Sums of products below this multiple of the smallest normal number, as on a level loss, have lost their digits.
_SMALLEST = 1e4


class LBFGSState(NamedTuple):
    """The state of a run.

    `gradient` is of objective/n at the attraction's `weight`, and `grad_norm` its norm, inf while attraction is
    exaggerated. `pairs` are recent steps s with the changes y of the gradient, as (s, y, 1/sᵀy). `loss` is objective/n
    at `Z`, nan if not needed; `careful` says whether every step evaluates it. `compared` is the embedding and its loss
    at the last comparison, `message` why no further step is possible. For `basis` see `Objective.basis`, for `soften`
    `inverse_stiffness`.
    """

    Z: FloatArray
    gradient: FloatArray
    grad_norm: float = np.inf
    pairs: tuple[tuple[FloatArray, FloatArray, float], ...] = ()
    weight: float = np.nan
    loss: float = np.nan
    careful: bool = False
    compared: tuple[FloatArray, float] | None = None
    message: str = ""
    basis: Any = None
    soften: Callable[..., FloatArray] | None = None


class _Trial(NamedTuple):
    Z: FloatArray
    gradient: FloatArray
    loss: float
    slope: float


@dataclass(frozen=True)
class LBFGS(Optimizer):
    """Limited-memory BFGS with a line search: steps that follow the objective's own curvature.

    It needs no learning rate, and its steps do not depend on units. Where recent steps show no curvature, it takes the
    stiffness of the input's edges, for up to 2,000 points in at least two dimensions (`inverse_stiffness`). No point
    moves further in one step than `reach` times the size of the embedding, so no step throws a point far out.

    The line search uses slopes alone as long as the loss falls, because a gradient costs less without the loss. Losses
    are compared every 20 iterations. If the loss has risen, as it can where points jump past each other under an
    unbounded kernel, the run goes back to the last comparison and evaluates the loss from then on. If the objective
    changes from iteration to iteration, the average that `Objective.value` returns is minimised. If the objective has
    bases, `Objective.basis_span` steps are taken on the upper bound of each. At a comparison, and when exaggeration
    ends, the embedding takes its best size if that lowers the loss by more than the last 20 iterations did.

    Parameters
    ----------
    memory : int, default=10
        Number of recent steps that show the curvature.
    exaggeration : Exaggeration, optional
        The schedule of the attraction's weight; ``Exaggeration(1.0, 0)``, the default, for none.
    reach : float, default=0.1
        The longest step of a point, relative to the root mean square distance of all points from their mean.

    Raises
    ------
    TypeError, ValueError
        When `memory` is not an integer of at least 1, or `reach` not above 0.

    References
    ----------
    Nocedal and Wright (2006), Numerical optimization, algorithms 7.4 and 7.5. Hager and Zhang (2005), A new conjugate
    gradient method, for the test of slopes.

    Examples
    --------
    >>> import graphcouple as gc
    >>> gc.GraphCoupling(**gc.TSNE().sentence.replace(optimizer=gc.LBFGS(memory=20))).optimizer.memory
    20
    """

    memory: int = 10
    exaggeration: Exaggeration = NO_EXAGGERATION
    reach: float = 0.1

    def __post_init__(self) -> None:
        check_integer("memory", self.memory, 1)
        check_positive("reach", self.reach)
        if not isinstance(self.exaggeration, Exaggeration):
            raise TypeError(f"exaggeration must be an Exaggeration, got {self.exaggeration!r}.")

    def for_iteration(self, objective: Objective, iteration: int, Z: FloatArray) -> Objective:
        """Return the objective itself, so that gradients of different iterations can be compared."""
        return objective

    def exhausted(self, state: LBFGSState) -> str:
        return state.message

    def init(self, objective: Objective, Z0: FloatArray, run: Run) -> LBFGSState:
        return LBFGSState(Z0, np.zeros_like(Z0), soften=inverse_stiffness(objective, Z0.shape[1]))

    def remembered(self, state: LBFGSState) -> dict[str, Any]:
        """Return the state without the stiffness, which `init` computes again from the objective."""
        return {name: value for name, value in state._asdict().items() if name != "soften"}

    def recalled(self, objective: Objective, run: Run, remembered: dict[str, Any]) -> Any:
        """Return the state that was `remembered`; older files hold an empty stiffness."""
        return super().recalled(objective, run, {name: v for name, v in remembered.items() if name != "soften"})

    def step(self, objective: Objective, state: LBFGSState, iteration: int, run: Run) -> LBFGSState:
        weight = self.exaggeration(iteration)
        weighted = objective.exaggerated(weight)
        if iteration % weighted.basis_span and weight == state.weight:
            after = self._step(weighted.with_basis(state.basis), weight, state, iteration, run)
            if state.basis is None or not after.message:
                return after
        fresh = weighted.basis(state.Z, state.basis)
        state = state._replace(basis=fresh, weight=state.weight if fresh is None else np.nan)
        return self._step(weighted.with_basis(fresh), weight, state, iteration, run)

    def _step(self, objective: Objective, weight: float, state: LBFGSState, iteration: int, run: Run) -> LBFGSState:
        if weight != state.weight:
            loss, gradient = _evaluate(objective, state.Z, state.careful)
            check_finite(iteration, gradient)
            ends = weight == 1.0 < state.weight
            state = state._replace(gradient=gradient, weight=weight, loss=loss, compared=None, message="")
            state = _resized(objective, state) if ends else state
        if state.message:
            return state
        if not state.careful and state.compared is None and iteration % _COMPARE_EVERY == 0:
            state = _compared(objective, state)
        after = self._search(objective, state, iteration, run)
        if not after.careful and after.compared is not None and (iteration + 1) % _COMPARE_EVERY == 0:
            before = after.compared[1]
            after = _compared(objective, after)
            if after.compared is not None:
                after = _resized(objective, after, before - after.compared[1])
        norm = np.inf if iteration < self.exaggeration.n_iter else float(np.linalg.norm(after.gradient))
        return after._replace(grad_norm=norm)

    def _search(self, objective: Objective, state: LBFGSState, iteration: int, run: Run) -> LBFGSState:
        """Return the state at the end of a line search, from the steepest direction if the first one fails."""
        # Points in one place set no scale.
        longest = self.reach * (_size(state.Z, run.n_jobs) or 1.0)
        any_finite = False
        # Limiting the steps of single points may turn a softened direction uphill, but never the steepest.
        soft = None if state.soften is None else partial(state.soften, Z=state.Z)
        ways = [(state.pairs, soft), ((), soft), ((), None)]
        for pairs, soften in ways[0 if state.pairs else 1 : 3 if state.soften else 2]:
            direction = newton_direction(state.gradient, pairs, run.n_jobs, soften)
            rows = np.sqrt(np.einsum("ij,ij->i", direction, direction))
            typical = float(np.sqrt(np.square(rows).mean()))
            # A direction softened by the stiffness of edges is infinite if there are none.
            if not np.isfinite(typical):
                continue
            if typical == 0:
                return state._replace(message="the gradient is zero")
            if not pairs:
                direction *= _FIRST_STEP * longest / typical
                rows *= _FIRST_STEP * longest / typical
            direction *= np.minimum(1.0, longest / np.maximum(rows, longest))[:, None]
            slope = float((direction * state.gradient).sum())
            if not slope < 0:
                continue
            most = max(1.0, longest / float(min(rows.max(), longest)))
            trial, is_finite = _line_search(objective, state, direction, slope, most)
            any_finite |= is_finite
            if trial is not None:
                return self._accepted(state, trial, pairs)
        if not any_finite:
            check_finite(iteration, np.nan)
        return state._replace(pairs=(), message="no lower loss along the search direction")

    def _accepted(self, state: LBFGSState, trial: _Trial, pairs: Any) -> LBFGSState:
        s, y = (trial.Z - state.Z).ravel(), (trial.gradient - state.gradient).ravel()
        sy, sq_s, sq_y = (float((a * b).sum(dtype=np.float64)) for a, b in ((s, y), (s, s), (y, y)))
        if min(sy, sq_y) > _SMALLEST * np.finfo(s.dtype).tiny and sy > _LEAST_COSINE * (sq_s * sq_y) ** 0.5:
            pairs = (*pairs, (s, y, 1.0 / sy))[-self.memory :]
        return state._replace(Z=trial.Z, gradient=trial.gradient, loss=trial.loss, pairs=pairs, message="")


def _size(Z: FloatArray, n_jobs: int | None) -> float:
    """Return the root mean square distance of the points from their mean."""
    blocks = partial(over_blocks, len(Z), POINTS_OF_BLOCK, n_jobs)
    mean = np.sum(blocks(lambda rows: Z[rows].sum(axis=0, dtype=np.float64)), axis=0) / len(Z)
    squares = np.sum(blocks(lambda rows: np.square(Z[rows] - mean).sum(axis=0)), axis=0) / len(Z)
    return float(np.sqrt(squares.sum()))


def _evaluate(objective: Objective, Z: FloatArray, with_loss: bool) -> tuple[float, FloatArray]:
    """Return objective/n, or nan without the loss, and its gradient."""
    n = objective.n_points
    if not with_loss:
        return np.nan, (objective.gradient(Z) / n).astype(Z.dtype, copy=False)
    loss, gradient = objective.value_and_grad(Z)
    return loss / n, (gradient / n).astype(Z.dtype, copy=False)


def _compared(objective: Objective, state: LBFGSState) -> LBFGSState:
    """Return the state with its loss compared; if the loss has risen, the state of the last comparison."""
    loss = objective.value(state.Z) / objective.n_points
    noise = (_NOISE if state.Z.dtype == np.float64 else _NOISE_IF_SINGLE) * abs(loss) if np.isfinite(loss) else 0.0
    if state.compared is None or loss <= state.compared[1] + noise:
        return state._replace(compared=(state.Z, loss))
    Z = state.compared[0]
    loss, gradient = _evaluate(objective, Z, True)
    return state._replace(Z=Z, gradient=gradient, loss=loss, pairs=(), careful=True)


def _resized(objective: Objective, state: LBFGSState, least: float = 0.0) -> LBFGSState:
    """Return the state at the best size of the embedding, if the loss changes with its logarithm by more than `least`.

    Steps find the size of tight clusters last, because all else is steeper. `least` is the fall of the last 20
    iterations. Like a change of units, resizing does not change the product of each pair.
    """
    if not sets_a_size(objective):
        return state
    centre = state.Z.mean(axis=0, dtype=np.float64)
    ray = state.Z - centre
    trials: dict[float, tuple[FloatArray, float, float]] = {}

    def at(exponent: float) -> FloatArray:
        return state.Z if exponent == 0.0 else (centre + np.exp(exponent) * ray).astype(state.Z.dtype)

    def slope(exponent: float) -> float:
        if exponent not in trials:
            at_start = (state.loss, state.gradient)
            loss, gradient = at_start if exponent == 0.0 else _evaluate(objective, at(exponent), state.careful)
            trials[exponent] = (gradient, loss, float(np.exp(exponent) * (ray * gradient).sum()))
        return trials[exponent][-1]

    if not abs(slope(0.0)) > least or (exponent := level_exponent(slope)) == 0.0:
        return state
    # A Python number keeps the precision of the pairs.
    factor, Z, (gradient, loss, _) = float(np.exp(exponent)), at(exponent), trials[exponent]
    after = objective.value(Z) / objective.n_points
    if not after < (objective.value(state.Z) / objective.n_points if state.compared is None else state.compared[1]):
        return state
    pairs = tuple((factor * s, y / factor, inverse) for s, y, inverse in state.pairs)
    compared = None if state.careful else (Z, after)
    return state._replace(Z=Z, gradient=gradient, loss=loss, pairs=pairs, compared=compared)


def _line_search(
    objective: Objective, state: LBFGSState, direction: FloatArray, slope: float, most: float
) -> tuple[_Trial | None, bool]:
    """Return a point further down along the direction, or None, and whether any trial was finite."""
    t, low, high, any_finite = 1.0, 0.0, np.inf, False
    for k in range(_MOST_TRIALS):
        Z = (state.Z + t * direction).astype(state.Z.dtype, copy=False)
        loss, gradient = _evaluate(objective, Z, state.careful)
        trial = _Trial(Z, gradient, loss, float((gradient * direction).sum()))
        finite = bool(np.isfinite(trial.slope))
        any_finite |= finite
        if not finite or not _is_lower(state, trial, t, slope):
            high = t
            secant = low + (t - low) * slope / (slope - trial.slope) if finite and trial.slope > 0 else low
            t = float(np.clip(secant, low + 0.1 * (high - low), low + 0.5 * (high - low)))
            continue
        low = t
        if trial.slope >= _ENOUGH_SLOPE * slope:
            return trial, True
        if high == np.inf and t < most:
            t = min(4.0 * t, most)
        elif high < np.inf and k < _MOST_TRIALS // 2 and high - low > 1e-3 * high:
            t = 0.5 * (low + high)
        else:
            return trial, True
    return None, any_finite


def _is_lower(state: LBFGSState, trial: _Trial, t: float, slope: float) -> bool:
    uphill = trial.slope > -_UPHILL * slope
    if not state.careful:
        return not uphill
    if trial.loss <= state.loss + _ENOUGH_FALL * t * slope:
        return True
    return not uphill and trial.loss <= state.loss + _NOISE * abs(state.loss)
