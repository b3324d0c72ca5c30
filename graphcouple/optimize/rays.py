"""The size of an embedding: where the objective is least along the ray through it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray

# A walk in steps of this factor brackets the minimum, over sizes up to 4e9 times as large or small: a safeguard.
_STRIDE, _LONGEST_WALK = 4.0, 16

# Differences below this share of the loss are rounding error of sums in float64.
_ROUNDING = 1e-9

# If the loss falls for every size, a size is large enough when this share of the fall is left: a tolerance.
_REMAINDER = 1e-3

# Multiple of the embedding at which a bound is steepest, and the share of that slope at the largest size allowed.
# No comparison is recorded.
_FAR, _WALL = 1e6, 1.0 / 6.0

# First and last exponent to try, each twice the one before: sizes change by factors of 1.2 to 18. A slope counts as
# level at a tenth of the first. No comparison is recorded.
_FIRST_EXPONENT, _LAST_EXPONENT = 0.18, 2.8
_LEVEL, _INTERPOLATIONS = 0.1, 2

# Accuracy of the logarithm of the scale, to the base `_STRIDE`: 8 % of the size. No comparison is recorded.
_TOLERANCE = 0.06


def sets_a_size(objective: Objective) -> bool:
    """Return whether the size of an embedding may be changed for a lower loss.

    Under a bounded loss, points far apart feel no pull, so a larger map may have a lower loss but no better shape.
    """
    return objective.held_points is None and not (objective.attracting is not None and objective.attracting.fades)


def best_scale(objective: Objective, Z: FloatArray, *, precise: bool = True) -> float:
    """Return the s > 0 for which the objective is least at s·Z; 1 if it is the same for every s.

    The objective is taken to fall and then to rise along the ray. If it falls for every size, as under a scale-free
    tail of a kernel, s is the smallest scale with all but a thousandth of the fall. Unless `precise`, the result is
    within a factor of 4.
    """
    losses: dict[float, float] = {}

    def loss(exponent: float) -> float:
        if exponent not in losses:
            value = objective.value((Z * _STRIDE**exponent).astype(Z.dtype))
            losses[exponent] = value if np.isfinite(value) else np.inf
        return losses[exponent]

    def lower(a: float, b: float) -> bool:
        return loss(a) < loss(b) - _ROUNDING * abs(loss(b)) if loss(b) < np.inf else loss(a) < np.inf

    # If no step changes the loss, as when all points nearly coincide or lie in the kernel's tail, try both ways.
    first = -1.0 if lower(-1.0, 0.0) and not lower(1.0, 0.0) else 1.0
    for step in (first, -first):
        at = 0.0
        while abs(at) < _LONGEST_WALK and not lower(at, at + step):
            at += step
        # A start in a kernel's tail shrinks to where the loss rises. It grows only for a lower loss, since
        # the loss is constant beyond a table's end.
        if abs(at) < _LONGEST_WALK and (at < 0 or lower(at, 0.0 if at else -step)):
            break
    else:
        return _where_level(losses)
    if not precise:
        return float(_STRIDE**at)
    bounds = (at - 1.0, at + 1.0)
    minimum = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": _TOLERANCE})
    return float(_STRIDE ** (float(minimum.x) if minimum.fun <= loss(at) else at))


def level_exponent(slope: Callable[[float], float]) -> float:
    """Return a tried exponent near a sign change of the slope; the last one if the sign does not change.

    `slope` is the derivative of a loss along the ray in the logarithm of the size. Each call costs a gradient, so there
    are at most two interpolations.
    """
    here = slope(0.0)
    low, high = 0.0, -math.copysign(_FIRST_EXPONENT, here)
    while slope(high) * here > 0.0 and abs(high) < _LAST_EXPONENT:
        low, high = high, 2.0 * high
    if not slope(high) * here <= 0.0:
        return high if np.isfinite(slope(high)) else low
    for _ in range(_INTERPOLATIONS):
        if abs(slope(high)) <= _LEVEL * abs(here):
            break
        between = low + (high - low) * slope(low) / (slope(low) - slope(high))
        low, high = (between, high) if slope(between) * here > 0.0 else (low, between)
    return min((low, high), key=lambda exponent: abs(slope(exponent)))


def starting_objective(objective: Objective, Z: FloatArray, factor: float = 1.0) -> Objective:
    """Return the objective of the first iteration, without the terms that wait until exaggeration ends."""
    return objective.at(0, Z) if objective.attracting is None else objective.attracting.times(factor)


def shrink_within(bound: Objective, Z: FloatArray) -> FloatArray:
    """Return the embedding, halved in size while a halving lowers the bound by over a sixth of the most possible.

    It is not shrunk further: components that start as dots would push each other, and their own points, far out, where
    the bound pulls little.
    """
    most = bound.value(_FAR * Z) - bound.value(0.5 * _FAR * Z)
    while bound.value(Z) - bound.value(0.5 * Z) > _WALL * most > 0:
        Z = (0.5 * Z).astype(Z.dtype)
    return Z


def _where_level(losses: dict[float, float]) -> float:
    """Return the least scale of at least 1 at which the loss is nearly the lowest in `losses`; 1 if there is none."""
    finite = {exponent: loss for exponent, loss in losses.items() if loss < np.inf}
    if not finite:
        return 1.0
    least, most = min(finite.values()), max(finite.values())
    enough = least + max(_REMAINDER * (most - least), _ROUNDING * abs(least))
    # If the loss falls all the way to size 0, attraction is too strong, and the size is kept: a dot would be a saddle.
    exponents = (exponent for exponent, loss in finite.items() if loss <= enough and exponent >= 0)
    return float(_STRIDE ** min(exponents, default=0.0))
