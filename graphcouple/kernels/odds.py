"""The odds of an edge whose probability is a kernel."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcouple.kernels.base import Assumptions, Kernel, require_kernel

# A logarithm nearer to 0 is the logarithm of 1, up to rounding.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Odds(Kernel):
    """Odds of a kernel read as an edge probability: k / (1 − k).

    Under the binary prior the edge probability of `Odds(k)` is k itself, which is how UMAP and LargeVis state it, and
    log(1 + Odds(k)) = −log(1 − k). With the Student kernel (ν = 1) the odds are 1/d², with the rational power
    1/(a d^{2b}): unbounded at 0, as for all kernels that are 1 there. Below d² = 1e-37 the odds are constant, so
    coincident points have a finite loss and no force.

    Parameters
    ----------
    kernel : Kernel
        A kernel with values in [0, 1].

    Raises
    ------
    TypeError
        When `kernel` is not a kernel.
    ValueError
        When `kernel` is above 1 at distance 0, or itself an `Odds`, whose values exceed 1.

    Examples
    --------
    >>> import graphcouple as gc
    >>> float(gc.Odds(gc.Student()).value(4.0))
    0.25
    >>> gc.Odds(gc.Student()).assumptions(dim=2)
    Assumptions(bounded=False, integrable=False)
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        require_kernel(self.kernel)
        if isinstance(self.kernel, Odds):
            raise ValueError("kernel must have values in [0, 1]; the odds of odds are not defined.")
        with np.errstate(all="ignore"):
            log_largest = float(self.kernel.log(np.float64(0.0)))
            if log_largest > _ROUNDING:
                raise ValueError(
                    f"kernel must have values in [0, 1], got {self.kernel!r}, which is {np.exp(log_largest):.4g} at "
                    "distance 0; leave out Odds, or divide by that value if it is finite."
                )

    @property
    def membership(self) -> Kernel:
        """The kernel that is read as an edge probability."""
        return self.kernel

    @property
    def _is_infinite(self) -> bool:
        """Whether the odds are infinite at distance 0: the kernel is 1 there, up to rounding."""
        return float(self.kernel.log(0.0)) > -_ROUNDING

    @property
    def order_at_zero(self) -> float:
        """0 where k is 1 at distance 0; see `Kernel`."""
        return 0.0 if self._is_infinite else super().order_at_zero

    @property
    def length(self) -> float:
        """1 where k is 1 at distance 0, since odds such as 1/d² have no length; see `Kernel`."""
        return 1.0 if self._is_infinite else super().length

    @property
    def tail(self) -> float:
        """The kernel's exponent."""
        return self.kernel.tail

    @property
    def quick(self) -> bool:
        """Whether k/(1 − k) has formulas as fast as k's."""
        return self.kernel.quick_odds

    def log(self, sq_dist: Any) -> Any:
        """Return log k − log(1 − k)."""
        return self.kernel.log_odds(sq_dist)

    def grad_log(self, sq_dist: Any) -> Any:
        """Return ψ / (1 − k)."""
        return self.kernel.grad_log_odds(sq_dist)

    def log1p(self, sq_dist: Any) -> Any:
        """Return −log(1 − k)."""
        return -self.kernel.log_complement(sq_dist)

    def edge_probability(self, sq_dist: Any) -> Any:
        """Return k."""
        return self.kernel.value(sq_dist)

    def log_probability(self, sq_dist: Any) -> Any:
        """Return log k."""
        return self.kernel.log(sq_dist)

    def grad_log_probability(self, sq_dist: Any) -> Any:
        """Return ψ."""
        return self.kernel.grad_log(sq_dist)

    def assumptions(self, dim: int) -> Assumptions:
        """Unbounded if k is 1 at 0; integrable if k is, and if d^(−m) is at 0 (m is the kernel's `order_at_zero`)."""
        if not self._is_infinite:
            return super().assumptions(dim)
        tail = self.kernel.assumptions(dim).integrable
        return Assumptions(bounded=False, integrable=tail and self.kernel.order_at_zero < dim)
