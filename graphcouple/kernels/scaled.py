"""A kernel times a constant."""

import math
from dataclasses import dataclass
from typing import Any

from graphcouple.kernels.base import Assumptions, Kernel


@dataclass(frozen=True)
class ScaledKernel(Kernel):
    """A kernel times a positive constant, which is the effect of a scalar edge prior π.

    Parameters
    ----------
    kernel : Kernel
    log_weight : float
        log π.

    Examples
    --------
    >>> import graphcouple as gc
    >>> float(gc.kernels.ScaledKernel(gc.Gaussian(), log_weight=1.0).log(2.0))
    0.0
    """

    kernel: Kernel
    log_weight: float

    def log(self, sq_dist: Any) -> Any:
        """Return log π + log k."""
        return self.log_weight + self.kernel.log(sq_dist)

    def grad_log(self, sq_dist: Any) -> Any:
        return self.kernel.grad_log(sq_dist)

    def value(self, sq_dist: Any) -> Any:
        """Return π k."""
        return math.exp(self.log_weight) * self.kernel.value(sq_dist)

    @property
    def quick(self) -> bool:
        """The unscaled kernel's; noise-contrastive fits try hundreds of factors, each of which would need a table."""
        return self.kernel.quick

    @property
    def length(self) -> float:
        """The unscaled kernel's."""
        return self.kernel.length

    @property
    def order_at_zero(self) -> float:
        """The unscaled kernel's."""
        return self.kernel.order_at_zero

    def assumptions(self, dim: int) -> Assumptions:
        """Return the unscaled kernel's."""
        return self.kernel.assumptions(dim)
