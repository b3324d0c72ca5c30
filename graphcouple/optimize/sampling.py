"""Stochastic descent by edge sampling and negative sampling: the optimizer of UMAP and LargeVis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from graphcouple._numba.sampling import alias_table, sampled_rows
from graphcouple._numba.threads import over_rows
from graphcouple._support.validation import check_integer, check_positive, check_weight
from graphcouple.couplings import EffectiveCrossEntropy, Objective
from graphcouple.graphs import FloatArray
from graphcouple.laws import Space
from graphcouple.optimize.base import Optimizer, Run
from graphcouple.summation import LogEdgeProbability, LogOnePlusKernel


class SamplingState(NamedTuple):
    """The points, and a function that runs an epoch at a given rate, from one array of points into another."""

    Z: FloatArray
    run_epoch: Callable[[int, float, FloatArray, FloatArray], None]
    grad_norm: float = np.inf


@dataclass(frozen=True)
class NegativeSampling(Optimizer):
    """Sample edges that attract and pairs that repel, with a step that falls linearly to zero.

    In an epoch, every edge is drawn in proportion to its weight μ. For each draw, both ends move towards each other
    along the gradient of log v, and away from m points of the noise law along the gradient of log(1 − v). As in
    umap-learn, a drawn edge counts in both directions, an end is pulled `n_pulls` = 2 times for its m repelling points,
    and only the end that draws a point moves away from it. A push is γ · `n_pulls` times the force, so that where
    degrees are equal the mean step is the gradient of the objective. umap-learn's own steps have γ = ½. In an epoch,
    every point moves as if the other points had stayed where the last epoch left them, with its own stream of random
    numbers. So the embedding has the same bits for any number of threads.

    Parameters
    ----------
    learning_rate : float, default=1.0
        Rate of the first epoch, in units of the embedding's forces; it falls linearly to 0 at ``max_iter``.
    samples_per_point : float, optional
        Number of edges drawn per epoch and point. By default the heaviest edge is drawn once per epoch, and an edge of
        weight μ with frequency μ/max μ, as in UMAP.
    clip : float, default=4.0
        Largest force on a coordinate; 5 in LargeVis.
    softening : float, default=0.001
        Added to d² between repelling points, as in UMAP, so that forces that are infinite at 0 stay finite. As long as
        no force is clipped, the steps minimise in expectation the objective with log(1 − v) taken at d² + softening.
        The loss that `solve` reports is the objective without softening.
    n_pulls : int, default=2
        Number of times a drawn edge pulls an end, and the factor of its pushes; 1 in LargeVis.
    random_state : int or None, default=0
        The seed; None takes one from the estimator that uses the optimizer.

    Raises
    ------
    TypeError, ValueError
        When a number is out of range; in `solve`, when the objective is not an `EffectiveCrossEntropy`, or its
        negative_sample_rate is not an integer.

    References
    ----------
    McInnes, Healy and Melville (2018), UMAP, algorithm 5; Tang et al. (2016), Visualizing large-scale and
    high-dimensional data.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> posterior = gc.GraphModel(gc.Odds(gc.Exponential()), "B", n_neighbors=5, symmetrize="threshold").posterior(X)
    >>> objective = gc.EffectiveCrossEntropy(posterior, gc.GraphModel(gc.Odds(gc.Student()), "B"))
    >>> solution = gc.solve(objective, 10 * X[:, :2], gc.NegativeSampling(), max_iter=100)
    >>> solution.loss < objective.value(10 * X[:, :2])
    True
    """

    noisy: ClassVar[bool] = True

    learning_rate: float = 1.0
    samples_per_point: float | None = None
    clip: float = 4.0
    softening: float = 1e-3
    n_pulls: int = 2
    random_state: int | None = 0

    def __post_init__(self) -> None:
        check_positive("learning_rate", self.learning_rate)
        if self.samples_per_point is not None:
            check_positive("samples_per_point", self.samples_per_point)
        check_positive("clip", self.clip)
        check_weight(self.softening, name="softening")
        check_integer("n_pulls", self.n_pulls, 1)
        if self.random_state is not None:
            check_integer("random_state", self.random_state, 0)

    def check(self, objective: Objective) -> None:
        if error := self.refusal(objective):
            raise error

    @staticmethod
    def refusal(objective: Objective) -> TypeError | ValueError | None:
        """Return the error that `check` raises; None if the objective can be sampled."""
        if not (isinstance(objective, EffectiveCrossEntropy) and objective.drawable):
            return TypeError(
                f"NegativeSampling needs an EffectiveCrossEntropy and no terms, the loss that it minimises, got "
                f"{type(objective).__name__}; use MomentumGains() or LBFGS(), or an estimator's repulsion='effective'."
            )
        if isinstance(space := objective.latent.metric, Space):
            return ValueError(f"NegativeSampling measures Euclidean distances, not {space}; use LBFGS().")
        if not float(objective.negative_sample_rate).is_integer():
            return ValueError(
                f"NegativeSampling draws whole points: negative_sample_rate={objective.negative_sample_rate!r} must be "
                "an integer; other optimizers take any number."
            )
        return None

    def suited_iterations(self, n_points: int) -> int:
        """Return 500 epochs up to 10,000 points and 200 beyond, as umap-learn does."""
        return 500 if n_points <= 10_000 else 200

    def init(self, objective: Objective, Z0: FloatArray, run: Run) -> SamplingState:
        assert isinstance(objective, EffectiveCrossEntropy)
        return SamplingState(np.ascontiguousarray(Z0), self._epochs(objective))

    def remembered(self, state: SamplingState) -> dict[str, Any]:
        """Return the points; an epoch needs nothing else."""
        return {"Z": state.Z}

    def step(self, objective: Objective, state: SamplingState, iteration: int, run: Run) -> SamplingState:
        assert isinstance(objective, EffectiveCrossEntropy)
        scale = np.asarray(objective.scale, dtype=state.Z.dtype)
        points = state.Z if objective.scale == 1.0 else state.Z / scale
        after = np.empty_like(points)
        state.run_epoch(iteration, self.learning_rate * (1.0 - iteration / run.max_iter), points, after)
        return state._replace(Z=after if objective.scale == 1.0 else after * scale)

    def _epochs(self, objective: EffectiveCrossEntropy) -> Any:
        n = objective.n_points
        indptr, indices, weights = objective.edges
        # The weight of an edge that is drawn once per epoch.
        once = float(weights.max())
        if self.samples_per_point is not None:
            once = float(weights.sum()) / (2.0 * self.samples_per_point * n)
        frequency = (weights / once).astype(np.float32)
        own = np.zeros(n)
        if objective.among_copies:
            own = np.maximum(objective.degrees - np.bincount(np.repeat(np.arange(n), np.diff(indptr)), weights, n), 0.0)
        keep, other = np.empty(n), np.empty(n, dtype=np.int64)
        alias_table(objective.noise, keep, other)
        forces = (LogEdgeProbability(objective.kernel), LogOnePlusKernel(objective.kernel))
        law = (*forces, float(objective.repulsion_strength), int(objective.negative_sample_rate), self.n_pulls)
        graph = (indptr, indices, frequency, own / once, keep, other)
        seed = np.uint64(self.random_state or 0)

        def run_epoch(epoch: int, rate: float, old: FloatArray, new: FloatArray) -> None:
            step = (float(rate), float(self.clip), float(self.softening))
            over_rows(n, objective.n_jobs, sampled_rows, epoch, seed, *step, *law, *graph, old, new)

        return run_epoch
