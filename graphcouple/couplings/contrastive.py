"""InfoNCE: each edge of the input's graph is distinguished from points drawn at random.

For every end i of an edge {i, j}, m points n_1 … n_m are drawn from all others. The loss is the mean surprise at seeing
that j is the neighbour:

    E(Z) = −Σ_ij M_ij E log(k_ij / (k_ij + S_i)),   S_i = Σ_s k(‖z_i − z_{n_s}‖²),

M the symmetrised mean of the input's graph. It is a cross-entropy in which i's edge can end in m + 1 places only: the
more are drawn, the closer to prior D, whose edge can end anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcouple._numba.threads import over_rows
from graphcouple._support.validation import changed, check_integer
from graphcouple.couplings.kinds import InParts
from graphcouple.couplings.pair import EdgeEnergy, PairCoupling
from graphcouple.couplings.recipes import Coupling, Problem
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.kernels import Kernel
from graphcouple.laws import GraphModel
from graphcouple.laws.copies import refuse_weights
from graphcouple.laws.priors import RandomGraph
from graphcouple.laws.priors.base import ONE_EACH
from graphcouple.summation import EdgeSum, KernelValue, LogKernel, Summation
from graphcouple.summation.directions import Edges

# The stated loss is the mean of draws with this many points in all, so that its standard error is about 0.1 %; with few
# points, this takes many draws.
_DRAWN_IN_ALL, _MOST_DRAWS = 100_000, 50


class ContrastiveCrossEntropy(PairCoupling):
    """The InfoNCE loss of the embedding; `at` draws points anew for each iteration.

    The value itself is a mean over fixed draws, of 100,000 points in all, but at most 50 draws.

    Parameters
    ----------
    posterior : RandomGraph
        The law of the input's graph; only M + Mᵀ matters.
    latent_model : GraphModel
        A kernel, and prior D without a graph as its edge prior.
    negative_sample_rate : int, default=5
        m, at most n − 1.
    seed : int, default=0
        Seed of the draws.
    summation : str or Summation, default="auto"
        How sums over all pairs are computed when new points are placed.
    n_jobs : int or None, default=None
        Threads; None means every core. Results do not depend on it.

    Raises
    ------
    TypeError, ValueError
        When an argument has the wrong type, the latent prior is another, or points have sample weights.

    References
    ----------
    Van den Oord, Li and Vinyals (2018), Representation learning with contrastive predictive coding. Damrich, Böhm,
    Hamprecht and Kobak (2023), From t-SNE to UMAP with contrastive learning, section 6.

    Examples
    --------
    The more points are drawn, the larger the surprise:

    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20)).posterior(X)
    >>> latent = gc.GraphModel(gc.Student(), "D")
    >>> few, many = (gc.couplings.ContrastiveCrossEntropy(posterior, latent, m).value(X[:, :2]) for m in (1, 20))
    >>> few < many
    True
    """

    lower_bound = 0.0

    partition: SampledPartition

    def __init__(
        self,
        posterior: RandomGraph,
        latent_model: GraphModel,
        negative_sample_rate: int = 5,
        *,
        seed: int = 0,
        summation: str | Summation = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(posterior, latent_model, summation, n_jobs)
        prior, n = latent_model.prior, posterior.n_nodes
        if prior.drawn_by != "row" or ONE_EACH not in prior.constraints or prior.edges(n) is not None:
            raise ValueError(
                f"latent_model must have prior D without a graph as its edge prior, got {prior!r}: an edge is compared "
                "with others of the same point; use coupling='cross-entropy'."
            )
        refuse_weights(posterior.node_weights, "InfoNCE")
        check_integer("negative_sample_rate", negative_sample_rate, 1)
        means = self._take_means()
        edges = EdgeSum(posterior.support, means, LogKernel(self.kernel), n_jobs, posterior.unordered, overwrite=True)
        self.energy = self.strength = EdgeEnergy(edges, n)
        drawn = min(negative_sample_rate, n - 1)
        self.crowd = n / (2.0 * drawn)
        self.partition = SampledPartition(edges.symmetric_edges, n, self.kernel, drawn, seed, n_jobs)

    def at(self, iteration: int, Z: FloatArray) -> ContrastiveCrossEntropy:
        """Return the loss with points drawn for this iteration, whose mean over iterations is the stated loss."""
        return changed(self, partition=self.partition.at(iteration, Z))


class SampledPartition(InParts):
    """Σ_ij M_ij log(k_ij + S_i), the repulsion, for given draws of m = `n_drawn` points.

    `edges` are M + Mᵀ, as the row pointers, column indices and entries of a csr matrix.
    """

    def __init__(self, edges: Edges, n: int, kernel: Kernel, n_drawn: int, seed: int, n_jobs: int | None) -> None:
        self.edges, self.n_points, self.kernel, self.n_drawn = edges, n, kernel, n_drawn
        self.seed, self.n_jobs = seed, n_jobs
        n_draws = min(-(-_DRAWN_IN_ALL // (n * n_drawn)), _MOST_DRAWS)
        self._draws = [(seed, 0, k) for k in range(n_draws)]

    def at(self, iteration: int, Z: FloatArray) -> SampledPartition:
        return changed(self, _draws=[(self.seed, 1, iteration)])

    def _evaluate(self, Z: FloatArray, **parts: Any) -> tuple[float, FloatArray]:
        value, gradient = 0.0, np.zeros(Z.shape)
        for draw in self._draws:
            own, forces = self.drawn(Z, *drawn_points(self.n_points, self.n_drawn, draw), **parts)
            value, gradient = value + own / len(self._draws), gradient + forces / len(self._draws)
        return value, gradient

    def drawn(
        self, Z: FloatArray, order: IntArray, shifts: IntArray, with_value: bool = True, with_gradient: bool = True
    ) -> tuple[float, FloatArray]:
        """Return the sum and its gradient if the points drawn for i are `shifts` places behind it in `order`."""
        from graphcouple._numba.contrastive import add_drawn, contrast_edges, contrast_values, drawn_rows

        points, n, place = np.ascontiguousarray(Z), self.n_points, np.empty_like(order)
        log_kernel, kernel = LogKernel(self.kernel), KernelValue(self.kernel)
        place[order] = np.arange(n, dtype=order.dtype)
        total, log_total, rows = np.empty(n), np.empty(n), np.empty(n)
        over_rows(n, self.n_jobs, drawn_rows, points, log_kernel, order, place, shifts, total, log_total)
        gradient = np.zeros(points.shape)
        if with_value:
            over_rows(n, self.n_jobs, contrast_values, points, log_kernel, log_total, *self.edges, rows)
        value = 0.5 * float(rows.sum()) if with_value else np.nan
        if with_gradient:
            sums = (total, log_total, *self.edges, rows, gradient)
            over_rows(n, self.n_jobs, contrast_edges, points, log_kernel, kernel, *sums)
            over_rows(n, self.n_jobs, add_drawn, points, log_kernel, order, place, shifts, log_total, rows, gradient)
        return value, 0.5 * gradient


def drawn_points(n_points: int, n_drawn: int, seed: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Return a random order of the points, and distinct shifts: each point draws every set of others equally often."""
    rng = np.random.default_rng(seed)
    shifts = 1 + rng.choice(n_points - 1, n_drawn, replace=False, shuffle=False)
    return rng.permutation(n_points).astype(np.int64), shifts.astype(np.int64)


@dataclass(frozen=True)
class ContrastiveCoupling(Coupling):
    """InfoNCE, the surprise at an input's edge among points drawn at random; see `ContrastiveCrossEntropy`.

    Parameters
    ----------
    negative_sample_rate : int, default=5
        Points drawn for each edge and end; at most n − 1.

    Raises
    ------
    TypeError, ValueError
        When `negative_sample_rate` is not an integer of at least 1.

    Examples
    --------
    >>> import graphcouple as gc
    >>> print(gc.InfoNCTSNE().sentence.coupling)
    InfoNCE with 5 negative samples
    """

    negative_sample_rate: int = 5

    def __post_init__(self) -> None:
        check_integer("negative_sample_rate", self.negative_sample_rate, 1)

    def __str__(self) -> str:
        return f"InfoNCE with {self.negative_sample_rate} negative samples"

    def bind(self, problem: Problem) -> ContrastiveCrossEntropy:
        options: dict[str, Any] = {"seed": problem.seed(), "summation": problem.summation, "n_jobs": problem.n_jobs}
        return ContrastiveCrossEntropy(problem.posterior, problem.latent, self.negative_sample_rate, **options)

    def latex(self, latent: GraphModel) -> str:
        """Return the loss; n_s are the points drawn for i."""
        return r"- \sum_{i \neq j} w_{ij} \, \mathbb{E} \log \frac{k_{ij}}{k_{ij} + \sum_s k_{i n_s}}"
