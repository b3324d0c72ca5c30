"""What the methods with sampled repulsion minimise in expectation, as a deterministic objective.

UMAP and LargeVis draw an edge {i, j} of the input's graph with a probability
proportional to its weight μ_ij, pull its ends together, and push an end away from m
points drawn from a noise law P. In expectation that is descent on

    E(Z) = −Σ_{i<j} μ_ij log v_ij − γ Σ_{i<j} c_ij log(1 − v_ij),   c_ij = m (d_i P_j + d_j P_i) / 2

with v = k/(1 + k) the edge probability of the embedding and d_i = Σ_j μ_ij. All pairs
repel, as in the cross-entropy, but by c_ij, which for uniform noise is (d_i + d_j) m / (2n), and not by 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import xlogy

from graphcouple._formula import Formula
from graphcouple._validation import check_positive
from graphcouple.couplings.cross_entropy import CrossEntropy
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.kernels import Kernel
from graphcouple.models import GraphModel
from graphcouple.priors import GraphPosterior
from graphcouple.radials import EdgeLogPartition, LogEdgeProbability
from graphcouple.summation import Auto, Summation

_BLOCK_EDGES = 2**20


class EffectiveCrossEntropy(CrossEntropy):
    """The expected loss of a method that samples its repulsion: no sampling, and charges in the place of samples.

    Parameters
    ----------
    posterior : GraphPosterior
        The law of the input's graph; only M + Mᵀ enters (M itself where graphs are undirected).
    latent_model : GraphModel
        A kernel and prior B, which treats all pairs alike.
    negative_sample_rate : float, default=5.0
        m: how many points repel for each edge that attracts.
    repulsion_strength : float, default=1.0
        γ: LargeVis has 7.
    noise_exponent : float, default=0.0
        The noise law is P_i ∝ d_i to this power: 0 in UMAP, ¾ in LargeVis.
    summation : str or Summation, default="auto"
        How sums over all pairs are done. "auto" softens, for many points, the repulsion of the very near, who are of
        no account among all that repel a point.
    n_jobs : int or None, default=None
        Threads; None means every core. Results do not depend on it.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind, or the latent prior is not B or has an edge prior.

    References
    ----------
    Damrich and Hamprecht (2021), On UMAP's true loss function, for uniform noise; Tang et al. (2016) for LargeVis.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> posterior = gc.GraphModel(gc.Odds(gc.Exponential()), "B", n_neighbors=5, symmetrize="threshold").posterior(X)
    >>> latent = gc.GraphModel(gc.Odds(gc.Student()), "B")
    >>> few, many = (gc.EffectiveCrossEntropy(posterior, latent, m).repulsion(X[:, :2]) for m in (1, 2))
    >>> round(many / few, 6)
    2.0
    """

    def __init__(
        self,
        posterior: GraphPosterior,
        latent_model: GraphModel,
        negative_sample_rate: float = 5.0,
        *,
        repulsion_strength: float = 1.0,
        noise_exponent: float = 0.0,
        summation: str | Summation = "auto",
        n_jobs: int | None = None,
    ) -> None:
        soft = isinstance(summation, str) and summation == "auto"
        super().__init__(posterior, latent_model, Auto(n_jobs, soften=True) if soft else summation, n_jobs)
        prior = latent_model.prior
        if prior.code != "B" or prior.edge_prior is not None:
            raise ValueError(
                f"latent_model must have prior B without an edge prior, got {prior!r}: edges are sampled against "
                "non-edges only where they are independent and all pairs alike."
            )
        self.negative_sample_rate = check_positive("negative_sample_rate", negative_sample_rate)
        self.repulsion_strength = check_positive("repulsion_strength", repulsion_strength)
        if not np.isfinite(noise_exponent):
            raise ValueError(f"noise_exponent must be a finite number, got {noise_exponent!r}.")
        self.degrees: FloatArray = np.zeros(self.n_points)
        for rows, _, weights in _edge_blocks(*self.edges):
            self.degrees += np.bincount(rows, weights=weights, minlength=self.n_points)
        noise = np.where(self.degrees > 0, self.degrees, 1.0) ** noise_exponent
        self.noise: FloatArray = noise / noise.sum()

    @staticmethod
    def _attracting(kernel: Kernel) -> Formula:
        return LogEdgeProbability(kernel)

    @property
    def edges(self) -> tuple[IntArray, IntArray, FloatArray]:
        """μ as the row pointers, column indices and entries of a symmetric csr matrix."""
        return self._attraction.symmetric_edges

    def _repulsion(
        self, points: FloatArray, with_value: bool = True, with_gradient: bool = True
    ) -> tuple[float, FloatArray | None]:
        """Return ½ γ m Σ_i d_i Φ_i[log(1 + k); P] and its gradient ½ γ m (d_i ∇Φ_i[·; P] + P_i ∇Φ_i[·; d])."""
        radial = EdgeLogPartition(self._kernel)
        share = 0.5 * self.repulsion_strength * self.negative_sample_rate
        potential, pull = self.summation.potential(
            points, radial, self.noise, with_potential=with_value, with_gradient=with_gradient
        )
        value = share * float(self.degrees @ potential) if with_value else np.nan
        if not with_gradient:
            return value, None
        _, push = self.summation.potential(points, radial, self.degrees, with_potential=False)
        return value, share * (self.degrees[:, None] * pull + self.noise[:, None] * push)

    @cached_property
    def lower_bound(self) -> float:
        """The sum of every edge's least loss, at v = μ/(μ + γ c); pairs without an edge lose nothing far apart."""
        share, total = 0.5 * self.repulsion_strength * self.negative_sample_rate, 0.0
        for rows, columns, weights in _edge_blocks(*self.edges):
            against = self.degrees[rows] * self.noise[columns] + self.noise[rows] * self.degrees[columns]
            against *= share
            best = weights / (weights + against)
            total += float((xlogy(weights, best) + xlogy(against, 1.0 - best)).sum())
        return -0.5 * total


def _edge_blocks(indptr: IntArray, columns: IntArray, weights: FloatArray) -> Iterator[tuple[Any, ...]]:
    """Yield the rows, columns and weights of a csr matrix, some at a time: there may be tens of millions."""
    starts = indptr.astype(np.int64)
    for a in range(0, columns.size, _BLOCK_EDGES):
        b = min(a + _BLOCK_EDGES, columns.size)
        first, last = np.searchsorted(starts, a, side="right") - 1, np.searchsorted(starts, b)
        bounds = np.clip(starts[first : last + 1], a, b)
        yield np.repeat(np.arange(first, last), bounds[1:] - bounds[:-1]), columns[a:b], weights[a:b]
