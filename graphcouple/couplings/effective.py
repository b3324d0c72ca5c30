"""The expected loss of methods with sampled repulsion, as a deterministic objective.

UMAP and LargeVis draw an edge {i, j} of the input's graph with a probability proportional to its weight μ_ij, pull its
ends together, and push an end away from m points drawn from a noise law P. In expectation that is descent on

    E(Z) = −Σ_{i<j} μ_ij log v_ij − γ Σ_{i<j} c_ij log(1 − v_ij),   c_ij = m (d_i P_j + d_j P_i) / 2

where v = k/(1 + k) is the edge probability of the embedding and d_i = Σ_j μ_ij. As in the cross-entropy, all pairs
repel, but with weight c_ij instead of 1; for uniform noise, c_ij = (d_i + d_j) m / (2n).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import xlogy

from graphcouple._support.validation import changed, check_positive
from graphcouple.couplings.fixed_map import ChargedMap, noise_of
from graphcouple.couplings.kinds import InParts
from graphcouple.couplings.pair import EdgeEnergy, PairCoupling
from graphcouple.couplings.recipes import Coupling, Problem, register
from graphcouple.graphs import FloatArray, IntArray, Support
from graphcouple.kernels import Kernel
from graphcouple.laws import GraphModel
from graphcouple.laws.priors import RandomGraph
from graphcouple.laws.priors.base import at_zero, with_copies
from graphcouple.summation import LogOnePlusKernel, RadialFunction, Summation


class EffectiveCrossEntropy(PairCoupling):
    """The expected loss of a method that samples its repulsion, with charges instead of samples.

    Parameters
    ----------
    posterior : RandomGraph
        The law of the input's graph; only M + Mᵀ matters (M itself if graphs are undirected).
    latent_model : GraphModel
        A kernel, and prior B; its edge prior, if any, must be a number.
    negative_sample_rate : float, default=5.0
        m, the number of repelling points for each attracting edge.
    repulsion_strength : float, default=1.0
        γ; 7 in LargeVis.
    noise_exponent : float, default=0.0
        The noise law is P_i ∝ d_i to this power: 0 in UMAP, ¾ in LargeVis. Points without edges have P_i = 0 if the
        exponent is above 0, and count as points of degree 1 if it is negative.
    summation : str or Summation, default="auto"
        How sums over all pairs are computed.
    n_jobs : int or None, default=None
        Threads; None means every core. Results do not depend on it.

    Raises
    ------
    TypeError, ValueError
        When an argument has the wrong type, or the latent prior is not B or has a graph as its edge prior.

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

    drawable: ClassVar[bool] = True
    """Whether `NegativeSampling` descends on it."""

    partition: ChargedPartition

    def __init__(
        self,
        posterior: RandomGraph,
        latent_model: GraphModel,
        negative_sample_rate: float = 5.0,
        *,
        repulsion_strength: float = 1.0,
        noise_exponent: float = 0.0,
        summation: str | Summation = "auto",
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(posterior, latent_model, summation, n_jobs)
        prior = latent_model.prior
        if not prior.independent_edges or prior.edges(posterior.n_nodes) is not None:
            raise ValueError(
                f"latent_model must have prior B without a graph as its edge prior, got {prior!r}: edges are sampled "
                "against non-edges only if they are independent and all pairs alike; use coupling='cross-entropy'."
            )
        self.negative_sample_rate = check_positive("negative_sample_rate", negative_sample_rate)
        self.repulsion_strength = check_positive("repulsion_strength", repulsion_strength)
        self.noise_exponent = _check_exponent(noise_exponent)
        # Each edge pulls once and brings γm pushes in each direction, shared among all n points.
        self.crowd = self.n_points / (2.0 * self.repulsion_strength * self.negative_sample_rate)
        radial = prior.edge_strength(latent_model.kernel)
        means = self._take_means()
        edges = self.summation.edge_sum(posterior.support, means, radial, n_jobs, posterior.unordered, overwrite=True)
        self.energy = self.strength = EdgeEnergy(edges, self.n_points)
        self.degrees: FloatArray = np.zeros(self.n_points)
        for rows, _, mu in self._edge_blocks():
            self.degrees += np.bincount(rows, weights=mu, minlength=self.n_points)
        weights = posterior.node_weights
        among_copies = 2.0 * self._share * posterior.own_means
        self.among_copies = 0.5 * float(among_copies.sum())
        self.degrees += among_copies
        noise = noise_of(self.degrees, noise_exponent, weights)
        self.noise: FloatArray = noise / (noise.sum() or 1.0)
        strength = 0.5 * self.repulsion_strength * self.negative_sample_rate
        self.partition = ChargedPartition(self.kernel, self.degrees, self.noise, strength, self.summation, weights)
        self.energy.constant = self.among_copies * at_zero(radial)

    @property
    def edges(self) -> tuple[IntArray, IntArray, FloatArray]:
        """μ as the row pointers, column indices and entries of a symmetric csr matrix."""
        return self.energy.edges.symmetric_edges

    def _edge_blocks(self) -> Iterator[tuple[IntArray, IntArray, FloatArray]]:
        """Yield the rows, columns and entries of μ, in parts, because μ may have tens of millions."""
        for indptr, indices, weights in self.energy.edges.parts:
            for rows, edges, part in Support(indptr, indices).in_parts():
                yield part.rows + rows.start, part.indices, weights[edges]

    curved = True

    def _fixed_map(self, Z: FloatArray) -> ChargedMap:
        charged = (self.degrees, self.noise_exponent, self.partition.strength, self.posterior.node_weights)
        return ChargedMap(self._points(Z), self.energy.edges.radial, self.kernel, self.summation, *charged)

    @property
    def lower_bound(self) -> float:
        """The sum of each edge's minimal loss, at v = μ/(μ + γ c); pairs without an edge cost nothing far apart."""
        return self._least - self.energy.constant + self.partition.constant

    @cached_property
    def _least(self) -> float:
        """The lower bound without the edges among copies, which is the same for every edge prior."""
        total = 0.0
        for rows, columns, mu in self._edge_blocks():
            against = self.degrees[rows] * self.noise[columns] + self.noise[rows] * self.degrees[columns]
            against *= self.partition.strength
            best = np.divide(mu, mu + against, out=np.zeros(mu.size), where=mu > 0)
            total += float((xlogy(mu, best) + xlogy(against, 1.0 - best)).sum())
        return -0.5 * total


class ChargedPartition(InParts):
    """½ γ m Σ_i d_i Φ_i[log(1 + k); P], the repulsion of all pairs, with charges instead of samples.

    Parameters
    ----------
    kernel : Kernel
    degrees, noise : ndarray of shape (n,)
        d and P.
    strength : float
        ½ γ m.
    summation : Summation
    weights : ndarray of shape (n,), optional
        How many points each point stands for; `degrees` and `noise` are sums over them.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> ones = np.ones(2)
    >>> repulsion = gc.couplings.ChargedPartition(gc.Student(), ones, ones, 1.0, gc.summation.Exact())
    >>> bool(np.isclose(repulsion.value(np.array([[0.0], [1.0]])), 2 * np.log(1.5)))
    True
    """

    def __init__(
        self,
        kernel: Kernel,
        degrees: FloatArray,
        noise: FloatArray,
        strength: float,
        summation: Summation,
        weights: FloatArray | None = None,
    ) -> None:
        self.degrees, self.noise, self.strength, self.summation = degrees, noise, strength, summation
        self.weights, self.n_points = weights, self.degrees.size
        self._charges = np.stack([noise, degrees])
        self._take(LogOnePlusKernel(kernel))

    def _take(self, radial: RadialFunction) -> None:
        self.radial = radial
        # The repulsion among the copies of weighted points does not depend on the embedding.
        others = with_copies(np.zeros(self.n_points), radial, self.weights, self.noise)
        copies = 0.0 if self.weights is None else float(self.degrees @ (others / self.weights))
        self.constant = self.strength * copies

    def of(self, radial: RadialFunction) -> ChargedPartition:
        """Return the sum of another radial function with the same charges."""
        other = changed(self)
        other._take(radial)
        return other

    def _evaluate(self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True) -> tuple[float, Any]:
        """Return the repulsion at `Z` and its gradient ½ γ m Σ_j (d_i P_j + P_i d_j) 2 φ'(d²_ij) (z_i − z_j)."""
        if not with_gradient:
            return self.strength * self.summation.total(Z, self.radial, self.noise, self.degrees) + self.constant, None
        charges = self._charges
        potential, forces = self.summation.low_rank(Z, self.radial, charges[::-1], charges, with_potential=with_value)
        value = 0.5 * self.strength * float(potential.sum()) + self.constant if with_value else np.nan
        return value, self.strength * forces


@register("effective")
@dataclass(frozen=True)
class EffectiveCoupling(Coupling):
    """The loss that sampled repulsion minimises in expectation; see `EffectiveCrossEntropy`.

    Parameters
    ----------
    negative_sample_rate : float, default=5.0
        Number of repelling points for each attracting edge.
    repulsion_strength : float, default=1.0
        Weight of the repulsion.
    noise_exponent : float, default=0.0
        Points repel in proportion to this power of their degree; 0 in UMAP, ¾ in LargeVis.

    Examples
    --------
    >>> import graphcouple as gc
    >>> weaker = gc.UMAP().sentence.replace(coupling=gc.EffectiveCoupling(negative_sample_rate=2.0))
    >>> gc.GraphCoupling(**weaker).coupling
    EffectiveCoupling(negative_sample_rate=2.0, repulsion_strength=1.0, noise_exponent=0.0)
    """

    reads_points: ClassVar[bool] = False
    any_space: ClassVar[bool] = True
    loss: ClassVar[type[EffectiveCrossEntropy]] = EffectiveCrossEntropy

    negative_sample_rate: float = 5.0
    repulsion_strength: float = 1.0
    noise_exponent: float = 0.0

    def __post_init__(self) -> None:
        check_positive("negative_sample_rate", self.negative_sample_rate)
        check_positive("repulsion_strength", self.repulsion_strength)
        _check_exponent(self.noise_exponent)

    def latex(self, latent: GraphModel) -> str:
        """Return the loss; see `Coupling.latex`. `EffectiveCrossEntropy` defines the weights c_ij."""
        attraction = r"- \sum_{i < j} w_{ij} \log \frac{k_{ij}}{1 + k_{ij}}"
        strength = "" if self.repulsion_strength == 1 else rf"{self.repulsion_strength:g} "
        return rf"{attraction} + {strength}\sum_{{i < j}} c_{{ij}} \log(1 + k_{{ij}})"

    def bind(self, problem: Problem) -> EffectiveCrossEntropy:
        options: dict[str, Any] = {"summation": problem.summation, "n_jobs": problem.n_jobs}
        options |= {"repulsion_strength": self.repulsion_strength, "noise_exponent": self.noise_exponent}
        return self.loss(problem.posterior, problem.latent, self.negative_sample_rate, **options)

    def __str__(self) -> str:
        strength = "" if self.repulsion_strength == 1.0 else f", weighing {self.repulsion_strength:g}"
        noise = f" of law degree^{self.noise_exponent:g}" if self.noise_exponent else ""
        return f"effective cross-entropy of {self.negative_sample_rate:g} negative samples{noise}{strength}"


def _check_exponent(value: Any) -> float:
    if not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"noise_exponent must be a finite number, got {value!r}.")
    return float(value)
