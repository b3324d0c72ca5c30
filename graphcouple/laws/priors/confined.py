"""The log-partition of a prior whose edge prior π allows only some edges."""

from __future__ import annotations

import numpy as np

from graphcouple.graphs import FloatArray, Support
from graphcouple.kernels import Kernel
from graphcouple.laws.priors.base import GraphPrior
from graphcouple.neighbors import distances_of
from graphcouple.summation import EdgeSum, LogKernel


class ConfinedPartition:
    """A(η_Z), η = log π + log k(d²) on given edges and −∞ elsewhere; ∂A/∂η is the law's own mean.

    Parameters
    ----------
    prior : GraphPrior
    support : Support
        The edges that π allows.
    log_prior : ndarray of shape (n_edges,)
        log π.
    kernel : Kernel
    n_jobs : int or None, default=None
    """

    def __init__(
        self,
        prior: GraphPrior,
        support: Support,
        log_prior: FloatArray,
        kernel: Kernel,
        n_jobs: int | None = None,
    ) -> None:
        self.prior, self.support, self.log_prior = prior, support, log_prior
        self.kernel, self.n_jobs = kernel, n_jobs

    def evaluate(
        self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True
    ) -> tuple[float, FloatArray | None]:
        """Return A and its gradient in `Z`; without a flag, the value may be nan and the gradient None."""
        eta = self.log_prior + self.kernel.log(distances_of(Z).along(self.support, self.n_jobs))
        law = self.prior.posterior_class(self.support, eta)
        value = law.log_partition() if with_value else np.nan
        if not with_gradient:
            return value, None
        forces = EdgeSum(self.support, law.edge_means, LogKernel(self.kernel), self.n_jobs)
        return value, forces.evaluate(Z, with_value=False)[1]
