"""The size of an embedding: where the objective is least along the ray through it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray

# A walk in steps of this factor brackets the minimum.
_STRIDE = 4.0
_LONGEST_WALK = 16

# Differences below this share of the loss are rounding.
_ROUNDING = 1e-9

# Where the loss falls forever, a size is large enough if this share of the fall is left.
_LEFT = 1e-3

# Multiple of the embedding at which a bound is steepest, and the share of that slope at the largest size allowed.
_FAR, _WALL = 1e6, 1.0 / 6.0

# The first and the last exponent that is tried, each twice the one before: sizes grow by 1.2 at least, by 18 at most.
# A slope counts as level if a tenth of the first is left.
_FIRST_EXPONENT, _LAST_EXPONENT = 0.18, 2.8
_LEVEL, _INTERPOLATIONS = 0.1, 2

# Accuracy of the logarithm of the scale, to the base `_STRIDE`: 8 % of the size.
_TOLERANCE = 0.06


def sets_a_size(objective: Objective) -> bool:
    """Return whether the size of an embedding may be changed for a lower loss.

    Under a bounded loss points far apart feel no pull, so a larger embedding may be better for no good reason.
    """
    return objective.held_points is None and not (objective.attracting is not None and objective.attracting.fades)


def best_scale(objective: Objective, Z: FloatArray, *, precise: bool = True) -> float:
    """Return the s > 0 for which the objective is least at s·Z; 1 if it is the same for every s.

    The objective is taken to fall and then to rise along the ray. If it falls with every size, as where a
    kernel's tail is the same at all of them, s is the least at which all but a thousandth of the fall is done. If the
    result need not be precise, it is within a factor of 4.
    """
    known: dict[float, float] = {}

    def loss(exponent: float) -> float:
        if exponent not in known:
            value = objective.value((Z * _STRIDE**exponent).astype(Z.dtype))
            known[exponent] = value if np.isfinite(value) else np.inf
        return known[exponent]

    def lower(a: float, b: float) -> bool:
        return loss(a) < loss(b) - _ROUNDING * abs(loss(b)) if loss(b) < np.inf else loss(a) < np.inf

    # If no step changes the loss, as when all points nearly coincide or lie in the kernel's tail, try both ways.
    first = -1.0 if lower(-1.0, 0.0) and not lower(1.0, 0.0) else 1.0
    for step in (first, -first):
        at = 0.0
        while abs(at) < _LONGEST_WALK and not lower(at, at + step):
            at += step
        if abs(at) < _LONGEST_WALK and (at or lower(0.0, -step)):
            break
    else:
        return _where_level(known)
    if not precise:
        return float(_STRIDE**at)
    low, high = at - 1.0, at + 1.0
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": _TOLERANCE})
    exponent = float(found.x) if found.fun <= loss(at) else at
    return float(_STRIDE**exponent)


def level_exponent(slope: Callable[[float], float]) -> float:
    """Return an exponent near which a slope changes its sign, of those tried; the last if it does not.

    `slope` is the derivative of a loss along the ray by the logarithm of the size. Each call costs a gradient, so it is
    interpolated at most twice.
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


def at_first(objective: Objective, factor: float = 1.0) -> Objective:
    """Return the objective with its attraction exaggerated, and without the terms that wait until that ends."""
    return objective if objective.attracting is None else objective.attracting.times(factor)


def within(bound: Objective, Z: FloatArray) -> FloatArray:
    """Return the embedding, halved in size while this lowers the bound by more than a sixth of the most that it can.

    It is not made smaller than that: components that start as dots would push each other, and their own points, far
    out, where the bound hardly pulls.
    """
    most = bound.value(_FAR * Z) - bound.value(0.5 * _FAR * Z)
    while bound.value(Z) - bound.value(0.5 * Z) > _WALL * most > 0:
        Z = (0.5 * Z).astype(Z.dtype)
    return Z


def _where_level(known: dict[float, float]) -> float:
    """Return the least scale of at least 1 at which the loss is nearly the lowest known; 1 if that is below 1."""
    finite = {exponent: loss for exponent, loss in known.items() if loss < np.inf}
    if not finite:
        return 1.0
    least, most = min(finite.values()), max(finite.values())
    enough = least + max(_LEFT * (most - least), _ROUNDING * abs(least))
    # A loss that falls all the way to size 0 is that of an attraction too strong, and a dot would be a saddle.
    return float(
        _STRIDE ** min((exponent for exponent, loss in finite.items() if loss <= enough and exponent >= 0), default=0.0)
    )
