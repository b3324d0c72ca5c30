"""One loop, its optimizers and its schedules."""

from graphcouple.optimize._solve import Callback, Optimizer, Solution, solve
from graphcouple.optimize.lbfgs import LBFGS
from graphcouple.optimize.momentum import EXAGGERATED, Exaggeration, MomentumGains, MomentumState
from graphcouple.optimize.sampling import NegativeSampling

__all__ = [
    "EXAGGERATED",
    "LBFGS",
    "Callback",
    "Exaggeration",
    "MomentumGains",
    "MomentumState",
    "NegativeSampling",
    "Optimizer",
    "Solution",
    "solve",
]
