"""The base class of kernels, and the two assumptions of theorem 1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from graphcouple._numba.base import Formula
from graphcouple._support.registry import Registry
from graphcouple._support.validation import check_integer
from graphcouple.kernels import measured

# Formulas that are singular at zero use at least this squared distance. It is a normal number in float32 too.
TINY = 1e-37
HUGE = 1e37


class Assumptions(NamedTuple):
    """Whether a kernel meets the two assumptions of theorem 1 of the graph-coupling paper on R^q.

    A shift-invariant graph density is normalisable on the centred subspace
    when the kernel is bounded above and integrable.

    Examples
    --------
    >>> import graphcouple as gc
    >>> gc.Student(dof=1.0).assumptions(2)
    Assumptions(bounded=True, integrable=False)
    >>> gc.Student(dof=3.0).assumptions(2)
    Assumptions(bounded=True, integrable=True)
    """

    bounded: bool
    integrable: bool


@dataclass(frozen=True)
class Kernel(Formula, ABC):
    """Base class of all kernels.

    Subclasses define ``log`` and ``grad_log``. The other methods follow from these; override them where a direct
    formula is faster or more accurate. `order_at_zero`, `length` and `assumptions` are measured from the formulas
    unless a subclass states them. Formulas use arithmetic and NumPy ufuncs only, and take the argument ``sq_dist``,
    because the compiled loops run them on scalars. `graphcouple.check_kernel` reports whether a kernel is sound.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import graphcouple as gc
    >>> @dataclass(frozen=True)
    ... class Quartic(gc.extend.Kernel):
    ...     def log(self, sq_dist):
    ...         return -(sq_dist**2)
    ...     def grad_log(self, sq_dist):
    ...         return -2.0 * sq_dist
    >>> float(Quartic().log(2.0)), gc.check_kernel(Quartic()).order_at_zero
    (-4.0, 4.0)
    """

    @abstractmethod
    def log(self, sq_dist: Any) -> Any:
        """Return log k at squared distances `sq_dist`, in their dtype."""

    @abstractmethod
    def grad_log(self, sq_dist: Any) -> Any:
        """Return ψ = d log k / d(d²) at squared distances `sq_dist`, in their dtype."""

    def assumptions(self, dim: int) -> Assumptions:
        """Return whether k is bounded, and integrable on R^dim (graph-coupling paper, theorem 1)."""
        return Assumptions(*measured.assumptions(self, check_integer("dim", dim, 1)))

    @property
    def order_at_zero(self) -> float:
        """The exponent m for which 1 − k/k(0) behaves like d^m near d = 0; 0 if k is infinite there."""
        return measured.order_at_zero(self)

    @property
    def length(self) -> float:
        """The distance over which k varies: abs(ψ(0))^(−1/2) if k is smooth, else where k has fallen by a factor e."""
        return measured.length(self)

    @property
    def tail(self) -> float:
        """The exponent t for which k falls like d^(−t) far away; inf if it falls faster than any power."""
        return measured.tail(self)

    @property
    def quick(self) -> bool:
        """Whether the formulas are as fast as an interpolated table; formulas with powers are not."""
        return False

    @property
    def quick_odds(self) -> bool:
        """Whether the formulas of k/(1 − k) are as fast, too."""
        return False

    @property
    def membership(self) -> Kernel:
        """The kernel whose values are edge strengths in [0, 1]: itself, or the kernel inside an `Odds`."""
        return self

    def value(self, sq_dist: Any) -> Any:
        """Return k at squared distances `sq_dist`."""
        return np.exp(self.log(sq_dist))

    def log1p(self, sq_dist: Any) -> Any:
        """Return log(1 + k), a pair's share of the binary prior's log-partition."""
        return np.log1p(self.value(sq_dist))

    def edge_probability(self, sq_dist: Any) -> Any:
        """Return k / (1 + k), a pair's edge probability under the binary prior."""
        odds = np.minimum(self.value(sq_dist), HUGE)
        return odds / (1.0 + odds)

    def log_probability(self, sq_dist: Any) -> Any:
        """Return log(k / (1 + k)), a pair's log edge probability under the binary prior."""
        return self.log(sq_dist) - self.log1p(sq_dist)

    def grad_log_probability(self, sq_dist: Any) -> Any:
        """Return the derivative of `log_probability` in d², ψ / (1 + k)."""
        return self.grad_log(sq_dist) / (1.0 + np.minimum(self.value(sq_dist), HUGE))

    def log_complement(self, sq_dist: Any) -> Any:
        """Return log(1 − k), accurate near d = 0."""
        return np.log(-np.expm1(self.log(np.maximum(sq_dist, TINY))))

    def log_odds(self, sq_dist: Any) -> Any:
        """Return log k − log(1 − k)."""
        return self.log(sq_dist) - self.log_complement(sq_dist)

    def grad_log_odds(self, sq_dist: Any) -> Any:
        """Return the derivative of `log_odds` in d²."""
        away = np.maximum(sq_dist, TINY)
        return -self.grad_log(away) / np.expm1(self.log(away))


def require_kernel(kernel: Any) -> None:
    """Raise unless the argument is a kernel."""
    if not isinstance(kernel, Kernel):
        raise TypeError(f"kernel must be an instance of a graphcouple kernel such as Student(), got {kernel!r}.")


KERNELS: Registry[type[Kernel]] = Registry("kernel", "a Kernel")


def register(name: str) -> Any:
    """Register a kernel under a name for the command, which reads its fields after colons; decorates a class.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import graphcouple as gc
    >>> @gc.extend.register_kernel("steep")
    ... @dataclass(frozen=True)
    ... class Steep(gc.Student):
    ...     dof: float = 9.0
    >>> gc.GraphModel("steep", "E").kernel
    Steep(dof=9.0)
    """
    return KERNELS.register(name)
