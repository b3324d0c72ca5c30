"""The loop over iterations, its optimizers and its schedules."""

from graphcouple.optimize.base import Callback, Optimizer, Run, Solution, State
from graphcouple.optimize.defaults import Descent, start_scale
from graphcouple.optimize.lbfgs import LBFGS
from graphcouple.optimize.momentum import EXAGGERATION_ITERATIONS, Exaggeration, MomentumGains, MomentumState
from graphcouple.optimize.monitor import is_collapsed
from graphcouple.optimize.sampling import NegativeSampling
from graphcouple.optimize.solve import solve

__all__ = [
    "EXAGGERATION_ITERATIONS",
    "LBFGS",
    "Callback",
    "Descent",
    "Exaggeration",
    "MomentumGains",
    "MomentumState",
    "NegativeSampling",
    "Optimizer",
    "Run",
    "Solution",
    "State",
    "is_collapsed",
    "solve",
    "start_scale",
]
