"""The loop over iterations, its optimizers and its schedules."""

from graphcouple.optimize.adam import Adam
from graphcouple.optimize.base import Callback, Optimizer, Run, Solution
from graphcouple.optimize.batches import MiniBatches
from graphcouple.optimize.descent import Descent
from graphcouple.optimize.exact_steps import ExactSteps
from graphcouple.optimize.exaggeration import EXAGGERATION_ITERATIONS, Exaggeration, push_over_pull
from graphcouple.optimize.laplace import PositionUncertainty, position_uncertainty
from graphcouple.optimize.lbfgs import LBFGS
from graphcouple.optimize.momentum import MomentumGains, MomentumState
from graphcouple.optimize.monitor import Stopping, is_collapsed
from graphcouple.optimize.rays import best_scale
from graphcouple.optimize.sampling import NegativeSampling
from graphcouple.optimize.snapshots import Snapshots
from graphcouple.optimize.solve import solve

__all__ = [
    "EXAGGERATION_ITERATIONS", "LBFGS", "Adam", "Callback", "Descent", "ExactSteps", "Exaggeration", "MiniBatches",
    "MomentumGains", "MomentumState", "NegativeSampling", "Optimizer", "PositionUncertainty", "Run", "Snapshots",
    "Solution", "Stopping", "best_scale", "is_collapsed", "position_uncertainty", "push_over_pull", "solve",
]  # fmt: skip
