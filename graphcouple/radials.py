"""Radial functions: what is summed over all pairs to get a prior's log-partition and its gradient.

A prior says which radial functions and charges it needs; a summation knows how
to sum any of them: Φ_i = Σ_{j≠i} c_j φ(d²_ij).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcouple._formula import Formula
from graphcouple.kernels import Assumptions, Kernel


@dataclass(frozen=True)
class Weighted(Kernel):
    """A kernel times a positive constant: what a scalar edge prior π makes of it.

    Parameters
    ----------
    kernel : Kernel
    log_weight : float
        log π.

    Examples
    --------
    >>> import graphcouple as gc
    >>> from graphcouple.radials import Weighted
    >>> float(Weighted(gc.Gaussian(), log_weight=1.0).log(2.0))
    0.0
    """

    kernel: Kernel
    log_weight: float

    def log(self, sq_dist: Any) -> Any:
        """Return log π + log k."""
        return self.log_weight + self.kernel.log(sq_dist)

    def grad_log(self, sq_dist: Any) -> Any:
        """Return the derivative of log k."""
        return self.kernel.grad_log(sq_dist)

    def value(self, sq_dist: Any) -> Any:
        """Return π k."""
        return math.exp(self.log_weight) * self.kernel.value(sq_dist)

    @property
    def order_at_zero(self) -> float:
        """That of the kernel."""
        return self.kernel.order_at_zero

    def assumptions(self, dim: int) -> Assumptions:
        """Those of the kernel."""
        return self.kernel.assumptions(dim)


class _OfKernel(Formula):
    """What the radial functions of a kernel share."""

    kernel: Kernel

    @property
    def smooth_at_zero(self) -> bool:
        """Whether the function is smooth in z, as 1 − k ~ d² makes it; not where it has a cusp or is infinite."""
        return self.kernel.order_at_zero == 2.0

    @property
    def length(self) -> float:
        """The distance over which the function varies: |ψ(0)|^(−1/2) where it is smooth, else 1."""
        if not self.smooth_at_zero:
            return 1.0
        return float(abs(self.kernel.grad_log(np.zeros(1))[0])) ** -0.5


@dataclass(frozen=True)
class LogWeight(_OfKernel):
    """The radial function log k: weighted by expected edges it sums to the attraction <M, log k>."""

    kernel: Kernel

    def potential(self, sq_dist: Any) -> Any:
        """Return log k."""
        return self.kernel.log(sq_dist)

    def slope(self, sq_dist: Any) -> Any:
        """Return ψ."""
        return self.kernel.grad_log(sq_dist)


@dataclass(frozen=True)
class EdgeWeight(_OfKernel):
    """The radial function k: its potential is S_i = Σ_j k(d²_ij), whence the priors D and E."""

    kernel: Kernel

    def potential(self, sq_dist: Any) -> Any:
        """Return k."""
        return self.kernel.value(sq_dist)

    def slope(self, sq_dist: Any) -> Any:
        """Return dk/d(d²) = k ψ."""
        return self.kernel.value(sq_dist) * self.kernel.grad_log(sq_dist)


@dataclass(frozen=True)
class EdgeLogPartition(_OfKernel):
    """The radial function log(1 + k): its potential sums to the log-partition of prior B."""

    kernel: Kernel

    def potential(self, sq_dist: Any) -> Any:
        """Return log(1 + k)."""
        return self.kernel.log1p(sq_dist)

    def slope(self, sq_dist: Any) -> Any:
        """Return ψ k/(1 + k)."""
        return self.kernel.edge_probability(sq_dist) * self.kernel.grad_log(sq_dist)


@dataclass(frozen=True)
class LogEdgeProbability(_OfKernel):
    """The radial function log(k / (1 + k)): what an observed edge says of its ends under prior B."""

    kernel: Kernel

    def potential(self, sq_dist: Any) -> Any:
        """Return log(k / (1 + k))."""
        return self.kernel.log_probability(sq_dist)

    def slope(self, sq_dist: Any) -> Any:
        """Return ψ / (1 + k)."""
        return self.kernel.grad_log_probability(sq_dist)
