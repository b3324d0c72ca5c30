"""Stochastic descent by edge sampling and negative sampling: the optimizer of UMAP and LargeVis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcouple._validation import check_integer, check_positive
from graphcouple.couplings import EffectiveCrossEntropy, Objective
from graphcouple.graphs import FloatArray
from graphcouple.optimize._solve import Monitor, Optimizer
from graphcouple.radials import EdgeLogPartition, LogEdgeProbability


@dataclass(frozen=True)
class NegativeSampling(Optimizer):
    """Sample edges that attract and pairs that repel, with a step that falls linearly to zero.

    In an epoch every edge is drawn in proportion to its weight μ. Each time, both its ends move along the gradient of
    log v towards the other, and away from m points of the noise law along that of log(1 − v). As in umap-learn, a
    drawn edge counts in both directions, an end moves `n_pulls` = 2 times for its m repelling points, and only the
    end that draws a point moves from it. All points move against the others' places after the last epoch, each with
    its own stream of random numbers: an embedding has the same bits for any number of threads.

    Parameters
    ----------
    learning_rate : float, default=1.0
        Of the first epoch, in units of the embedding's forces; it falls to 0 at ``max_iter``.
    samples_per_point : float, optional
        How many edges are drawn in an epoch, for each point. By default the heaviest edge is drawn once an epoch, and
        an edge of weight μ with frequency μ/max μ, as in UMAP.
    clip : float, default=4.0
        Largest force on a coordinate. LargeVis has 5.
    softening : float, default=0.001
        Added to d² where points repel, as in UMAP: forces that are infinite at 0 stay below the clip.
    n_pulls : int, default=2
    random_state : int, default=0
        The seed.

    Raises
    ------
    TypeError, ValueError
        When a number is out of its range; in `solve`, when the objective is not an `EffectiveCrossEntropy`, or its
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

    learning_rate: float = 1.0
    samples_per_point: float | None = None
    clip: float = 4.0
    softening: float = 1e-3
    n_pulls: int = 2
    random_state: int = 0

    def __post_init__(self) -> None:
        check_positive("learning_rate", self.learning_rate)
        if self.samples_per_point is not None:
            check_positive("samples_per_point", self.samples_per_point)
        check_positive("clip", self.clip)
        if not 0 <= self.softening < np.inf:
            raise ValueError(f"softening must be a finite number of at least 0, got {self.softening!r}.")
        check_integer("n_pulls", self.n_pulls, 1)
        check_integer("random_state", self.random_state, 0)

    def run(self, objective: Objective, Z0: FloatArray, monitor: Monitor) -> tuple[FloatArray, int]:
        """Return the final embedding and the number of epochs done."""
        if not isinstance(objective, EffectiveCrossEntropy):
            raise TypeError(
                f"NegativeSampling needs an EffectiveCrossEntropy, the loss that it descends, got "
                f"{type(objective).__name__}; use MomentumGains() or LBFGS(), or an estimator's repulsion='effective'."
            )
        epoch_of = self._epochs(objective)
        scale = np.asarray(objective.scale, dtype=Z0.dtype)
        Z: FloatArray = np.ascontiguousarray(Z0 / scale)
        spare = np.empty_like(Z)
        for epoch in range(monitor.max_iter):
            if monitor.due(epoch) and monitor.record(epoch, objective.value(Z * scale), Z * scale, np.inf, False):
                return Z * scale, epoch
            rate = self.learning_rate * (1.0 - epoch / monitor.max_iter)
            epoch_of(epoch, rate, Z, spare)
            Z, spare = spare, Z
            monitor.check_finite(epoch + 1, Z)
        return Z * scale, monitor.max_iter

    def _epochs(self, objective: EffectiveCrossEntropy) -> Any:
        """Return a function that does an epoch at a rate, from one array of points to another."""
        from graphcouple._numba.sampling import alias_table, sampled_rows
        from graphcouple._numba.threads import over_rows

        n = objective.n_points
        if not float(objective.negative_sample_rate).is_integer():
            raise ValueError(
                f"NegativeSampling draws whole points: negative_sample_rate={objective.negative_sample_rate!r} must be "
                "an integer; other optimizers take any number."
            )
        n_negative = int(objective.negative_sample_rate)
        indptr, indices, weights = objective.edges
        frequency = (weights / self._heaviest(weights, n)).astype(np.float32)
        keep, other = np.empty(n), np.empty(n, dtype=np.int64)
        alias_table(objective.noise, keep, other)
        forces = (LogEdgeProbability(objective.kernel), EdgeLogPartition(objective.kernel))
        law = (*forces, float(objective.repulsion_strength), n_negative, self.n_pulls)
        graph = (indptr, indices, frequency, keep, other)
        seed = np.uint64(self.random_state)

        def epoch_of(epoch: int, rate: float, old: FloatArray, new: FloatArray) -> None:
            step = (float(rate), float(self.clip), float(self.softening))
            over_rows(n, objective.n_jobs, sampled_rows, epoch, seed, *step, *law, *graph, old, new)

        return epoch_of

    def _heaviest(self, weights: FloatArray, n_points: int) -> float:
        """Return the weight of an edge that is drawn once an epoch."""
        if self.samples_per_point is None:
            return float(weights.max())
        return float(weights.sum()) / (2.0 * self.samples_per_point * n_points)
