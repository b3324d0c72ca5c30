"""Runs a kernel's formulas in compiled code, one value at a time."""

from __future__ import annotations

from graphcouple._numba import formulas as _formulas  # noqa: F401  registers the formula type
from graphcouple._numba.jit import jit


@jit
def probe(kernel, sq_dist, log, slope):
    """Fill log k and ψ."""
    for i in range(sq_dist.size):
        log[i] = kernel.log(sq_dist[i])
        slope[i] = kernel.grad_log(sq_dist[i])
