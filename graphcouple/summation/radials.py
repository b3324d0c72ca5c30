"""Radial functions: summed over all pairs, they give a prior's log-partition and its gradient.

A prior states the radial functions and charges that it needs; a summation sums any of them: Φ_i = Σ_{j≠i} c_j φ(d²_ij).
"""

from dataclasses import dataclass
from typing import Any

from graphcouple._numba.base import Formula
from graphcouple.kernels import Kernel


class RadialFunction(Formula):
    """A function φ of the squared distance, which a summation adds over pairs.

    Subclasses are frozen dataclasses with ``potential(sq_dist)`` = φ and ``slope(sq_dist)`` = φ', written like the
    formulas of kernels. They also state whether φ is smooth, and its length.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> @dataclass(frozen=True)
    ... class Square(gc.extend.RadialFunction):
    ...     smooth_at_zero = True
    ...     length = 1.0
    ...     def potential(self, sq_dist):
    ...         return sq_dist
    ...     def slope(self, sq_dist):
    ...         return 1.0 + 0.0 * sq_dist
    >>> gc.summation.Exact().potential(np.array([[0.0], [1.0], [3.0]]), Square())[0].tolist()
    [10.0, 5.0, 13.0]
    """

    def potential(self, sq_dist: Any) -> Any:
        """Return φ."""
        raise NotImplementedError(f"{type(self).__name__} must give potential, φ of the squared distance.")

    def slope(self, sq_dist: Any) -> Any:
        """Return φ'."""
        raise NotImplementedError(f"{type(self).__name__} must give slope, the derivative of φ.")

    @property
    def smooth_at_zero(self) -> bool:
        """Whether φ is smooth in z at distance 0: no cusp, and not infinite."""
        raise NotImplementedError(f"{type(self).__name__} must state smooth_at_zero, whether it is smooth at d = 0.")

    @property
    def length(self) -> float:
        """The distance over which φ varies."""
        raise NotImplementedError(f"{type(self).__name__} must state length, the distance over which it varies.")

    @property
    def tabulated(self) -> bool:
        """Whether interpolating the slope in a table is faster than computing it."""
        return True


@dataclass(frozen=True)
class KernelFunction(RadialFunction):
    """Base class of the radial functions of a kernel."""

    kernel: Kernel

    @property
    def smooth_at_zero(self) -> bool:
        """Whether the function is smooth in z: yes if 1 − k ~ d², no if it has a cusp or is infinite."""
        return self.kernel.order_at_zero == 2.0

    @property
    def length(self) -> float:
        """The kernel's length."""
        return self.kernel.length

    @property
    def tabulated(self) -> bool:
        """Whether interpolating a table is faster than the kernel's formulas."""
        return not self.kernel.quick


class LogKernel(KernelFunction):
    """The radial function log k; weighted by expected edges, it sums to the attraction <M, log k>.

    Examples
    --------
    >>> import graphcouple as gc
    >>> round(float(gc.summation.LogKernel(gc.Student()).potential(3.0)), 3)
    -1.386
    """

    def potential(self, sq_dist: Any) -> Any:
        """Return log k."""
        return self.kernel.log(sq_dist)

    def slope(self, sq_dist: Any) -> Any:
        """Return ψ."""
        return self.kernel.grad_log(sq_dist)


class KernelValue(KernelFunction):
    """The radial function k: its potential S_i = Σ_j k(d²_ij) gives the log-partitions of priors D and E.

    Examples
    --------
    >>> import graphcouple as gc
    >>> round(float(gc.summation.KernelValue(gc.Student()).potential(3.0)), 3)
    0.25
    """

    def potential(self, sq_dist: Any) -> Any:
        """Return k."""
        return self.kernel.value(sq_dist)

    def slope(self, sq_dist: Any) -> Any:
        """Return dk/d(d²) = k ψ."""
        return self.kernel.value(sq_dist) * self.kernel.grad_log(sq_dist)


class LogOnePlusKernel(KernelFunction):
    """The radial function log(1 + k): its potential sums to the log-partition of prior B.

    Examples
    --------
    >>> import graphcouple as gc
    >>> round(float(gc.summation.LogOnePlusKernel(gc.Student()).potential(3.0)), 3)
    0.223
    """

    def potential(self, sq_dist: Any) -> Any:
        """Return log(1 + k)."""
        return self.kernel.log1p(sq_dist)

    def slope(self, sq_dist: Any) -> Any:
        """Return ψ k/(1 + k)."""
        return self.kernel.edge_probability(sq_dist) * self.kernel.grad_log(sq_dist)


class EdgeProbability(KernelFunction):
    """The radial function k / (1 + k): the probability of an edge under prior B.

    Examples
    --------
    >>> import graphcouple as gc
    >>> round(float(gc.summation.EdgeProbability(gc.Student()).potential(3.0)), 3)
    0.2
    """

    def potential(self, sq_dist: Any) -> Any:
        """Return k/(1 + k)."""
        return self.kernel.edge_probability(sq_dist)

    def slope(self, sq_dist: Any) -> Any:
        """Return v times the derivative of log v, with v = k/(1 + k)."""
        return self.kernel.edge_probability(sq_dist) * self.kernel.grad_log_probability(sq_dist)


class LogEdgeProbability(KernelFunction):
    """The radial function log(k / (1 + k)): the log-likelihood of an edge under prior B.

    Examples
    --------
    >>> import graphcouple as gc
    >>> round(float(gc.summation.LogEdgeProbability(gc.Student()).potential(3.0)), 3)
    -1.609
    """

    def potential(self, sq_dist: Any) -> Any:
        """Return log(k / (1 + k))."""
        return self.kernel.log_probability(sq_dist)

    def slope(self, sq_dist: Any) -> Any:
        """Return ψ / (1 + k)."""
        return self.kernel.grad_log_probability(sq_dist)
