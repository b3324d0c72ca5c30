"""The log-partition of a prior whose edge prior π allows only some edges."""

from __future__ import annotations

import numpy as np

from graphcouple.graphs import FloatArray, Support
from graphcouple.kernels import Kernel
from graphcouple.laws.priors.base import GraphPrior
from graphcouple.neighbors import distances_of
from graphcouple.summation import EdgeSum, LogKernel


def confined_partition(
    prior: GraphPrior,
    allowed: tuple[Support, FloatArray],
    kernel: Kernel,
    Z: FloatArray,
    n_jobs: int | None = None,
    *,
    with_value: bool = True,
    with_gradient: bool = True,
) -> tuple[float, FloatArray | None]:
    """Return A(η_Z) and its gradient in `Z`: η = log π + log k(d²) on the edges that π allows, −∞ elsewhere.

    `allowed` holds these edges and log π. ∂A/∂η is the law's own mean. Without a flag, the value may be nan and the
    gradient None.
    """
    support, log_prior = allowed
    law = prior.posterior_class(support, log_prior + kernel.log(distances_of(Z).of_edges(support, n_jobs)))
    value = law.log_partition() if with_value else np.nan
    if not with_gradient:
        return value, None
    return value, EdgeSum(support, law.edge_means, LogKernel(kernel), n_jobs).evaluate(Z, with_value=False)[1]
