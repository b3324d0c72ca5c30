"""How a kernel behaves near zero and far away, measured from its formulas.

Everything follows from the logarithmic slope t(d) = −d log k / d log d = −2 d² ψ(d²): near zero a kernel with
1 − k/k(0) ~ c d^m has t ~ m c d^m, and an infinite one, k ~ d^(−m), has t = m; far away k falls like d^(−t).
"""

from functools import lru_cache
from typing import Any

import numpy as np

# Four distances for each power of ten between 1e-14 and 1e15 bracket a kernel's scale. Two near zero, relative to the
# scale, give its power there: squares of the larger, 1e-8, are the share of a smooth kernel's next term.
_DISTANCES = 10.0 ** np.arange(-14.0, 15.0, 0.25)
_NEAR = np.array([1e-5, 1e-4])
# A power below this number is a constant.
_FLAT = 1e-9
# Far away, and near zero, slopes are compared at these multiples of the length, or the length over them.
_FAR = np.array([1e6, 1e9, 1e12])
# In a tail that falls faster than any power, slopes grow by more than the first factor in both steps. In the last step
# towards 0 they fall below the second share near a cusp, of a power of .05 at least; near a logarithmic pole, to 3/4.
_GROWS, _FALLS = 1.1, 0.72
# A kernel that grows by more than a factor e in each step far away is unbounded. One that falls to 0 within this
# multiple of its scale has an edge; others may do so by rounding.
_FACTOR, _TAIL = 1.0, 10.0


def _slopes(kernel: Any, dist: Any) -> Any:
    with np.errstate(all="ignore"):
        return -2.0 * np.square(dist) * np.asarray(kernel.grad_log(np.square(dist)), dtype=np.float64)


def _log(kernel: Any, dist: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(kernel.log(np.square(dist)), dtype=np.float64)


@lru_cache(maxsize=256)
def _scale(kernel: Any) -> float:
    """Return the distance at which k has fallen to k(0)/e, or to 1 if k(0) is infinite."""
    from scipy.optimize import brentq

    level = _log(kernel, _DISTANCES)
    level = level[0] - 1.0 - level if _slopes(kernel, _DISTANCES[:1])[0] < 0.5 else -level
    below = np.flatnonzero(level > 0.0)
    if not below.size or below[0] == 0:
        return 1.0
    bounds = np.log(_DISTANCES[[below[0] - 1, below[0]]])
    at = level[below[0] - 1], level[below[0]]
    target = _log(kernel, np.exp(bounds[:1]))[0] + at[0]
    root = brentq(lambda t: float(target - _log(kernel, np.exp(np.array([t])))[0]), *bounds, xtol=1e-14)
    return float(np.exp(root))


@lru_cache(maxsize=256)
def order_at_zero(kernel: Any) -> float:
    """Return the exponent m of 1 − k/k(0) ~ d^m at zero: 0 if k is infinite there, inf if it is flat."""
    dist = _NEAR * _scale(kernel)
    slopes = np.abs(_slopes(kernel, dist))
    if not (slopes > 0).all():
        return float("inf")
    order = float(np.diff(np.log(slopes))[0] / np.diff(np.log(dist))[0])
    nearest = round(order)
    return float(nearest) if abs(order - nearest) < 2e-3 else order


@lru_cache(maxsize=256)
def length(kernel: Any) -> float:
    """Return abs(ψ(0))^(−1/2) for a smooth kernel, or the distance at which k has fallen by a factor e, if nearer."""
    if order_at_zero(kernel) == 2.0:
        slope = float(np.abs(np.asarray(kernel.grad_log(np.zeros(1)), dtype=np.float64))[0])
        if 0.0 < slope < np.inf:
            # Those of a Gaussian are equal but for rounding.
            return slope**-0.5 if slope**-0.5 < 1.01 * _scale(kernel) else _scale(kernel)
    return _scale(kernel)


@lru_cache(maxsize=256)
def steepness(kernel: Any) -> float:
    """Return the slope t where k has fallen by a factor e: 2 for a Gaussian; a kernel with a sharp edge has more."""
    return float(_slopes(kernel, _scale(kernel)))


@lru_cache(maxsize=256)
def tail(kernel: Any) -> float:
    """Return the exponent t for which k falls like d^(−t) far away; inf if it falls faster than any power."""
    slopes, log = _slopes(kernel, _FAR * _scale(kernel)), _log(kernel, _FAR[-1:] * _scale(kernel))
    vanishes = np.isnan(slopes[-1]) or (slopes[1:] > _GROWS * np.abs(slopes[:-1])).all() or log[0] == -np.inf
    return float("inf") if vanishes else float(slopes[-1])


def reach(kernel: Any) -> float:
    """Return about the distance beyond which k is 0; inf if it is positive up to `_TAIL` times its scale."""
    dist = np.geomspace(1.0, _TAIL, 400) * _scale(kernel)
    positive = np.flatnonzero(~np.isneginf(_log(kernel, dist)))
    edge = positive[-1] + 1 if positive.size else 0
    return float(dist[edge]) if edge < len(dist) else float("inf")


def assumptions(kernel: Any, dim: int) -> tuple[bool, bool]:
    """Return whether k is bounded, and integrable on R^dim."""
    middle, near = map(float, _slopes(kernel, _scale(kernel) / _FAR[1:]))
    far = _log(kernel, _FAR * _scale(kernel))
    grows = bool(((far[1:] > far[:-1] + _FACTOR) | (far[1:] == np.inf)).all())
    bounded = (near < _FLAT or near < _FALLS * middle) and not grows
    return bounded, near < dim - _FLAT and tail(kernel) > dim + _FLAT
