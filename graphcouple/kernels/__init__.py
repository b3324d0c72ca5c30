"""Kernels: the strength of the edge between two points, as a function of their squared distance.

Every kernel is written in the log and in terms of s = d², so that one pair of formulas, log k(s) and its derivative
ψ(s) = d log k / ds, serves densities, posteriors and forces: the force along an edge is 2 ψ(d²_ij) (z_i − z_j).

========================  ==================================  =========================
kernel                    log k(d²)                           where it is used
========================  ==================================  =========================
Gaussian                  −d²/2                               SNE, the input side
Exponential               −d                                  UMAP's input side
Student(dof=ν)            −(ν+1)/2 · log(1 + d²/ν)            t-SNE's embedding (ν = 1)
RationalPower(a, b)       −log(1 + a d^{2b})                  UMAP's embedding
Odds(k)                   log k − log(1 − k)                  edge probabilities k
========================  ==================================  =========================

A new kernel is a frozen dataclass with ``log`` and ``grad_log``. It works with every prior, summation and estimator,
because the compiled loops run these same methods. `check_kernel` reports whether it is sound.
"""

from graphcouple.kernels.base import KERNELS, Assumptions, Kernel, register
from graphcouple.kernels.check import KernelReport, check_kernel
from graphcouple.kernels.families import Exponential, Gaussian, RationalPower, Student
from graphcouple.kernels.odds import Odds
from graphcouple.kernels.scaled import ScaledKernel

__all__ = [
    "KERNELS", "Assumptions", "Exponential", "Gaussian", "Kernel", "KernelReport", "Odds", "RationalPower",
    "ScaledKernel", "Student", "check_kernel", "register",
]  # fmt: skip
