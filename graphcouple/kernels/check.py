"""Checks of user-defined kernels, with a report in words."""

from dataclasses import dataclass, fields
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np

from graphcouple._numba.base import FORMULA_METHODS
from graphcouple.kernels import measured
from graphcouple.kernels.base import Assumptions, Kernel, require_kernel

# The formulas that follow from log and grad_log, and that a kernel may state itself.
_FOLLOWING = [name for name in FORMULA_METHODS if hasattr(Kernel, name) and name not in ("log", "grad_log")]

_FAILS = (
    "{} fails on an array of squared distances ({}): write it with arithmetic and NumPy functions of sq_dist, with "
    "np.where in the place of if."
)

# Distances at which a kernel is checked, relative to its length.
_RELATIVE_DISTANCES = 10.0 ** np.linspace(-4.0, 3.0, 29)

# Relative step of the differences that slopes are compared with, and the tolerated relative difference: the error of
# the differences is 1e-8, the error of a wrong formula mostly above 1e-2.
_STEP, _SLOPE_TOLERANCE = 1e-4, 1e-3

# Tolerated difference between a stated and a measured power at zero, and factor between a stated and a measured length:
# a grid follows the length, and sums stay right within this factor.
_ORDER_TOLERANCE, _LENGTH_FACTOR = 0.05, 1e3


@dataclass(frozen=True)
class KernelReport:
    """The properties of a sound kernel, as `check_kernel` reports them.

    Attributes
    ----------
    kernel : Kernel
    order_at_zero : float
        The m for which 1 − k/k(0) behaves like d^m near zero; 0 if k is infinite there.
    length : float
        The distance over which k varies.
    plane : Assumptions
        Whether k is bounded, and integrable in two dimensions.
    reach : float
        About the distance beyond which k is 0, so that it cannot draw the points of a map together; inf for most.

    Examples
    --------
    >>> import graphcouple as gc
    >>> report = gc.check_kernel(gc.Gaussian())
    >>> report.order_at_zero, report.plane.integrable
    (2.0, True)
    """

    kernel: Kernel
    order_at_zero: float
    length: float
    plane: Assumptions
    reach: float = np.inf

    def __str__(self) -> str:
        shapes = {0.0: "infinite", 1.0: "a cusp", 2.0: "smooth", np.inf: "flat"}
        near = shapes.get(self.order_at_zero, f"1 − k like d^{self.order_at_zero:.3g}")
        bounded = "bounded" if self.plane.bounded else "unbounded"
        integrable = "integrable" if self.plane.integrable else "not integrable"
        return (
            f"{self.kernel!r} is sound: {near} at distance 0, varies over a length of {self.length:.4g}, "
            f"{bounded} and {integrable} in the plane"
            + (f", and 0 beyond a distance of {self.reach:.3g}: for the input's law only" * (self.reach < np.inf))
        )


def check_kernel(kernel: Any) -> KernelReport:
    """Check a kernel: its fields, its derivative in d², its dtype, its compilation, and the properties it states.

    Parameters
    ----------
    kernel : Kernel
        An instance of a frozen dataclass derived from `Kernel`.

    Returns
    -------
    KernelReport
        Prints as one sentence.

    Raises
    ------
    TypeError, ValueError
        When the kernel is unsound. The message says how to fix it; estimators raise the same error.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> @dataclass(frozen=True)
    ... class Laplace(gc.Kernel):
    ...     width: float = 1.0
    ...     def log(self, sq_dist):
    ...         return -np.sqrt(sq_dist) / self.width
    ...     def grad_log(self, sq_dist):
    ...         return -0.5 / (self.width * np.sqrt(np.maximum(sq_dist, 1e-30)))
    >>> print(gc.check_kernel(Laplace(0.1)))
    Laplace(width=0.1) is sound: a cusp at distance 0, varies over a length of 0.1, bounded and integrable in the plane
    """
    _check_values(kernel)
    _check_forces(kernel)
    plane, reach = Assumptions(*kernel.assumptions(2)), measured.reach(kernel)
    return KernelReport(kernel, float(kernel.order_at_zero), float(kernel.length), plane, reach)


def require_sound(kernel: Kernel, moves: bool = True) -> None:
    """Check each user-defined kernel once, and raise the errors of `check_kernel`; of forces if it `moves` points."""
    own = type(kernel).__module__.startswith("graphcouple.")
    if own and not any(isinstance(getattr(kernel, field.name), Kernel) for field in fields(kernel)):
        return
    # Only kernels of the right fields can be hashed.
    _check_fields(kernel)
    _check_once(kernel)
    if moves:
        _check_forces(kernel)


def _check_values(kernel: Any) -> None:
    checks = (_check_fields, _check_arrays, _check_derivative, _check_overrides, _check_statements, _check_compilation)
    for check in checks:
        check(kernel)


_check_once = lru_cache(maxsize=256)(_check_values)


def _name(kernel: Any) -> str:
    return type(kernel).__name__


def _check_fields(kernel: Any) -> None:
    require_kernel(kernel)
    cls = type(kernel)
    if "__dataclass_params__" not in vars(cls) or not cls.__dataclass_params__.frozen:
        raise TypeError(f"{cls.__name__} must be a frozen dataclass; decorate it with @dataclass(frozen=True).")
    for field in fields(kernel):
        value = getattr(kernel, field.name)
        if isinstance(value, Kernel):
            _check_fields(value)
        elif isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(
                f"{cls.__name__}.{field.name} must be a number or another kernel, got {value!r}: compiled loops "
                "accept nothing else. Keep arrays and names out of the fields."
            )


@np.errstate(all="ignore")
def _check_arrays(kernel: Kernel) -> None:
    for dtype in (np.float64, np.float32):
        sq_dist = np.square(_RELATIVE_DISTANCES).astype(dtype)
        for method in ("log", "grad_log"):
            try:
                values = np.asarray(getattr(kernel, method)(sq_dist))
            except Exception as error:
                raise TypeError(_FAILS.format(f"{_name(kernel)}.{method}", error)) from error
            if values.shape != sq_dist.shape:
                raise ValueError(
                    f"{_name(kernel)}.{method} must return one value for each squared distance, an array of shape "
                    f"{sq_dist.shape}, got shape {values.shape}; for a constant c return c + 0.0 * sq_dist."
                )
            if values.dtype.kind != "f" or values.dtype.itemsize < np.dtype(dtype).itemsize:
                raise ValueError(
                    f"{_name(kernel)}.{method} must keep the precision of sq_dist, {np.dtype(dtype)}, got "
                    f"{values.dtype}: compute with floating-point numbers and do not cast the result."
                )
            at_zero = np.asarray(getattr(kernel, method)(np.zeros(1, dtype=dtype)))
            # Forces are slopes times differences, which are 0 there; kernels themselves may be infinite.
            if np.isnan(at_zero).any() or (method == "grad_log" and np.isinf(at_zero).any()):
                raise ValueError(
                    f"{_name(kernel)}.{method} is {at_zero[0]} at distance 0, so copies of a point would have forces "
                    "that are NaN: use np.maximum(sq_dist, 1e-30) where it divides by the distance."
                )
            if np.isnan(values).any():
                at = float(_RELATIVE_DISTANCES[int(np.argmax(np.isnan(values)))])
                raise ValueError(f"{_name(kernel)}.{method} is NaN at distance {at:.3g}.")


@np.errstate(all="ignore")
def _check_forces(kernel: Kernel) -> None:
    dist = _RELATIVE_DISTANCES * measured.length(kernel)
    s = np.square(dist)
    forces = np.exp(kernel.log(s)) * kernel.grad_log(s)
    # Beyond the edge of a kernel, which is for the input's graph alone, any gradient will do.
    if np.isnan(forces).any() and measured.reach(kernel) == np.inf:
        raise ValueError(
            f"{_name(kernel)}.grad_log is infinite at distance {dist[int(np.argmax(np.isnan(forces)))]:.3g}, where the "
            "kernel is 0, so forces would be NaN: bound it, as by np.exp(np.minimum(sq_dist, 700))."
        )


@np.errstate(all="ignore")
def _check_derivative(kernel: Kernel) -> None:
    dist = _RELATIVE_DISTANCES * measured.length(kernel)
    s = np.square(dist)
    up, down = kernel.log(s * (1.0 + _STEP)), kernel.log(s * (1.0 - _STEP))
    # Compare in units of 1/d², so that the scale of a formula does not matter.
    slope = (up - down) / (2.0 * _STEP)
    derivative = s * kernel.grad_log(s)
    inside = [s * kernel.grad_log(s * (1.0 + share * _STEP)) for share in (-1.0, -0.64, -0.27, 0.41, 0.83)]
    rounding = 8.0 * np.finfo(np.float64).eps * np.maximum(np.abs(up), np.abs(down)) / _STEP
    usable = np.isfinite(slope) & np.isfinite(derivative) & (rounding < 0.1 * _SLOPE_TOLERANCE * np.abs(slope))
    # A difference says nothing of the derivative of a wave that is shorter than the step.
    usable &= np.ptp(inside, axis=0) < 10.0 * _SLOPE_TOLERANCE * np.abs(derivative)
    wrong = usable & (np.abs(derivative - slope) > _SLOPE_TOLERANCE * np.abs(slope))
    if not wrong.any():
        return
    at = int(np.flatnonzero(wrong)[len(np.flatnonzero(wrong)) // 2])
    in_d = np.allclose(derivative[usable], 2.0 * dist[usable] * slope[usable], rtol=1e-2)
    hint = " It is the derivative in d: divide it by 2 d." if in_d else ""
    raise ValueError(
        f"{_name(kernel)}.grad_log is not the derivative of log in the squared distance: at d = {dist[at]:.4g} it is "
        f"{derivative[at] / s[at]:.6g}, and log changes by {slope[at] / s[at]:.6g}.{hint}"
    )


@np.errstate(all="ignore")
def _check_overrides(kernel: Kernel) -> None:
    dist = _RELATIVE_DISTANCES * measured.length(kernel)
    s = np.square(dist)
    for method in _FOLLOWING:
        usual = np.asarray(getattr(Kernel, method)(kernel, s))
        try:
            found = np.broadcast_to(getattr(kernel, method)(s), usual.shape)
        except Exception as error:
            raise TypeError(_FAILS.format(f"{_name(kernel)}.{method}", error)) from error
        wrong = np.isfinite(usual) & ~(np.abs(found - usual) <= _SLOPE_TOLERANCE * np.abs(usual) + 1e-6)
        if wrong.any():
            raise ValueError(
                f"{_name(kernel)}.{method} does not follow from log and grad_log: at d = {dist[wrong][0]:.4g} it is "
                f"{found[wrong][0]:.6g} in place of {usual[wrong][0]:.6g}; mend it, or leave it out."
            )


def _check_statements(kernel: Kernel) -> None:
    order, power = float(kernel.order_at_zero), measured.order_at_zero(kernel)
    if np.isfinite(power) and abs(order - power) > _ORDER_TOLERANCE:
        raise ValueError(
            f"{_name(kernel)}.order_at_zero is {order:g}, but 1 − k behaves like d^{power:.3g} near zero; state that, "
            "or leave it out to have it measured."
        )
    length, scale = float(kernel.length), measured.length(kernel)
    if order > 0 and not scale / _LENGTH_FACTOR < length < scale * _LENGTH_FACTOR:
        raise ValueError(
            f"{_name(kernel)}.length is {length:g}, but the kernel varies over {scale:.3g}; state that, or leave it "
            "out and it is measured."
        )


def _check_compilation(kernel: Kernel) -> None:
    from numba.core.errors import NumbaError

    from graphcouple._numba.pairs import probe

    s = np.square(_RELATIVE_DISTANCES * measured.length(kernel))
    log, slope = np.empty_like(s), np.empty_like(s)
    try:
        probe(kernel, s, log, slope)
    except NumbaError as error:
        reason = next((line for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
        raise TypeError(
            f"{_name(kernel)} cannot be compiled: its formulas may use arithmetic, comparisons and NumPy functions of "
            f"one number, its own numeric fields, and plain functions of the same kind. (numba: {reason.strip()})"
        ) from error
    for method, compiled in (("log", log), ("grad_log", slope)):
        with np.errstate(all="ignore"):
            reference = getattr(kernel, method)(s)
        if not np.allclose(compiled, reference, rtol=1e-6, atol=1e-12, equal_nan=True):
            raise ValueError(
                f"{_name(kernel)}.{method} differs between NumPy and compiled code: it must depend only on its fields "
                "and sq_dist, and treat each squared distance separately."
            )
