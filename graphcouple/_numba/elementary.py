"""Elementary functions without branches or calls, so that loops over formulas vectorise.

A call into the C library prevents a loop from vectorising. Here exp and log are polynomials after a reduction by
powers of two, inlined into the loop and compiled without reordering, since the reductions are exact only in the order
written. Errors are a few units in the last place. Subnormal numbers are not supported, and exp is infinite above 709.
"""

import hashlib
import inspect
import math
import sys
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

from graphcouple._numba.jit import HELPER

_strict: Any = numba.njit(**HELPER, fastmath=False)


@intrinsic
def _bits(typing_context, x):
    """Read a floating-point number's bits as an integer: 32 of a single, 64 of a double."""
    integer = types.int32 if x == types.float32 else types.int64
    number = types.float32 if x == types.float32 else types.float64

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(integer))

    return integer(number), generate


@intrinsic
def _double(typing_context, bits):
    """Read 64 bits as a double."""

    def generate(context, builder, signature, arguments):
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


# ln 2 in two parts, as in fdlibm: the high part ends in zeros, so k times it is exact. Between `_EXP_LOWEST` and
# `_EXP_HIGHEST`, which are whole numbers, e^x is a normal double.
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
_SHIFTER = 6755399441055744.0  # 1.5 · 2^52: adding it rounds to an integer, which then sits in the low bits
_EXP_LOWEST = -708.0
_EXP_HIGHEST = 709.0
_SIGNIFICAND = np.int64(0x000FFFFFFFFFFFFF)
_ONE_BITS = np.int64(0x3FF0000000000000)
_SQRT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)

# Coefficients of the polynomials, of the highest power first. Their loops are unrolled.
_OF_EXP = tuple(1.0 / math.factorial(k) for k in range(13, 1, -1))
_OF_LOG = tuple(1.0 / k for k in range(23, 1, -2))


@_strict
def _exp_parts(y):
    """Return e^r − 1 and 2^k, where k ln 2 + r is y or the nearest x with a normal e^x, and abs(r) ≤ ln 2 / 2."""
    x = _EXP_LOWEST if y < _EXP_LOWEST else y
    x = _EXP_HIGHEST if x > _EXP_HIGHEST else x
    shifted = x * _LOG2_E + _SHIFTER
    k = shifted - _SHIFTER
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = 0.0
    for coefficient in _OF_EXP:
        p = p * r + coefficient
    power = _double((_bits(shifted) << 52) + _ONE_BITS)
    return r + r * r * p, power


@_strict
def exp(x):
    """Return e^x."""
    y = np.float64(x)
    fraction, power = _exp_parts(y)
    value = power + power * fraction
    value = 0.0 if y < _EXP_LOWEST else value
    return np.inf if y > _EXP_HIGHEST else value


@_strict
def expm1(x):
    """Return e^x − 1, accurate near 0."""
    y = np.float64(x)
    fraction, power = _exp_parts(y)
    value = (power - 1.0) + power * fraction
    return np.inf if y > _EXP_HIGHEST else value


@_strict
def log(x):
    """Return the natural logarithm: −inf at 0, nan below."""
    y = np.float64(x)
    # The significand is brought into [√½, √2).
    offset = _bits(y) - _SQRT_HALF_BITS
    k = np.float64(offset >> 52)
    m = _double((offset & _SIGNIFICAND) + _SQRT_HALF_BITS)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 0.0
    for coefficient in _OF_LOG:
        p = p * z + coefficient
    value = k * _LN2_HIGH + (2.0 * s + (2.0 * s * z * p + k * _LN2_LOW))
    value = -np.inf if y == 0.0 else value
    value = y if y == np.inf else value
    return value if y >= 0.0 else np.nan


@_strict
def log1p(x):
    """Return log(1 + x), accurate near 0."""
    y = np.float64(x)
    u = 1.0 + y
    value = log(u) + (y - (u - 1.0)) / u
    return y if y == np.inf else (-np.inf if y == -1.0 else value)


@_strict
def logaddexp(a, b):
    """Return log(e^a + e^b)."""
    largest = max(a, b)
    difference = -abs(np.float64(a) - np.float64(b))
    value = largest + log1p(exp(difference))
    return largest if a == b and abs(largest) == np.inf else value


@_strict
def where(condition, x, y):
    """Return x or y. numba's own function makes an array of one number, which is hundreds of times slower."""
    return x if condition else y


def _with_replacements(module):
    names = ("exp", "expm1", "log", "log1p", "logaddexp", "where")
    replacements = {name: globals()[name] for name in names if hasattr(module, name)}
    copy = ModuleType(f"{module.__name__}_for_formulas")
    copy.__dict__.update({**vars(module), **replacements})
    return copy


DIGEST = hashlib.sha256(inspect.getsource(sys.modules[__name__]).encode()).hexdigest()[:8]
"""Part of the type of every compiled formula, so that an edit here invalidates numba's disk cache."""

MODULES = {np: _with_replacements(np), math: _with_replacements(math)}
"""The modules that replace NumPy and math when a formula's source is compiled."""
