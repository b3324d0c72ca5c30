"""The coupling of two hidden graphs by cross-entropy: attraction from the data, repulsion from the latent prior.

    H(P_X, P_Z) = −E_{W ~ P_X} log P_Z(W) = A_Z(η_Z) − <M_X, η_Z> − E[log h_Z(W)]

where M_X is the posterior mean of the input's graph and A_Z the log-partition of the embedding's. Since ∂A/∂η is the
mean, every method has the gradient ∂H/∂η_Z = M_Z − M_X: mean minus mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from graphcouple._support.validation import changed, check_positive
from graphcouple.couplings.confinement import crowd_of
from graphcouple.couplings.pair import EdgeEnergy, LogPartition, PairCoupling
from graphcouple.couplings.recipes import Coupling, Problem, register
from graphcouple.graphs import FloatArray, Support
from graphcouple.laws import GraphModel
from graphcouple.laws.priors import N_EDGES, RandomGraph
from graphcouple.laws.priors.base import at_zero
from graphcouple.summation import Exact, LogKernel, Summation

# Below this, a divergence is summed exactly: a fast sum's error is about 1e-5.
_SMALL_DIVERGENCE = 0.05


class CrossEntropy(PairCoupling):
    """Cross-entropy from the input's graph posterior to the embedding's, as a function of the embedding.

    ``value(Z)`` is A_Z(η_Z) − <M_X, η_Z> in nats. The constant −E[log h_Z(W)] is left out; it is zero for the latent
    priors B and D, and −log n! + E[Σ log W_ij!] for E. Sums run over ordered pairs, or over unordered pairs if the
    input graph is thresholded. The value is not divided by n: for t-SNE it is n times the cross-entropy of joint
    probabilities. The gradient at z_i is Σ_j [(M_Z − M_X)_ij + (M_Z − M_X)_ji] · 2 ψ(d²_ij) (z_i − z_j), for t-SNE n
    times scikit-learn's, whose 4 is this 2 times the two directions of a pair.

    Parameters
    ----------
    posterior : RandomGraph
        The law of the input's graph.
    latent_model : GraphModel
        The law of the embedding's graph: a kernel and a prior. A `ConstantBandwidth` is allowed; neighbours,
        thresholding and other bandwidths are not.
    summation : str or Summation, default="exact"
        How sums over all pairs are computed.
    n_jobs : int or None, default=None
        Threads; None means every core. Results do not depend on it.
    exaggeration : float, default=1.0
        ρ ≥ 1: the value is A_Z(η_Z) − ρ <M_X, η_Z>, and attraction prevails. Needs a fixed number of edges (a latent
        prior such as D or E) and a bounded kernel.

    Raises
    ------
    TypeError
        When an argument has the wrong type.
    ValueError
        When `exaggeration` is below 1 or does not suit the latent law, the pair of priors is infeasible (supp P_X not
        within supp P_Z), the latent edge prior forbids an edge of the input's graph, or the latent model sets
        parameters that a latent model cannot have.

    References
    ----------
    Graph-coupling paper, section 3; the pairs B–B, D–B, D–D, D–E, E–E, and S with each prior are feasible.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    >>> objective = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E"))
    >>> loss, gradient = objective.value_and_grad(X[:, :2])
    >>> gradient.shape
    (40, 2)
    """

    partition: LogPartition
    curved = True

    def __init__(
        self,
        posterior: RandomGraph,
        latent_model: GraphModel,
        summation: str | Summation = "exact",
        n_jobs: int | None = None,
        exaggeration: float = 1.0,
    ) -> None:
        super().__init__(posterior, latent_model, summation, n_jobs)
        self.exaggeration = self.stated_exaggeration = check_exaggeration(exaggeration)
        prior, kernel, n = latent_model.prior, latent_model.kernel, posterior.n_nodes
        # Else the loss has no lower bound, or the latent law no plain attraction to multiply.
        plain = prior.normalized and not prior.latent_log_scalar
        if exaggeration > 1.0 and not (plain and kernel.assumptions(1).bounded):
            raise ValueError(
                f"exaggeration={exaggeration:g} needs a latent prior with a fixed number of edges, such as D or E, and "
                f"a bounded kernel; got {latent_model}. For prior B use its edge prior, or the repulsion_strength of "
                "EffectiveCoupling."
            )
        weights = posterior.node_weights
        self.partition = LogPartition(prior, kernel, n, self.summation, self._share, n_jobs, weights)
        radial = LogKernel(kernel)
        if not self._is_symmetric:
            # The bound needs the law's parameters, which may be dropped once its means are taken.
            _ = self._plain_bound
        means = self._take_means()
        log_prior_energy = self._log_prior_energy(means)
        own = self._share * float(posterior.own_means.sum())
        self.crowd = crowd_of(posterior.support, means, normalized=prior.normalized, own=own, weights=weights)
        most_energy = 0.0 if exaggeration == 1.0 else at_zero(radial) * float(means.sum())
        edges = self.summation.edge_sum(posterior.support, means, radial, n_jobs, posterior.unordered, overwrite=True)
        among_copies = 0.0 if weights is None else own * at_zero(radial)
        self.energy = self.strength = EdgeEnergy(edges, n, log_prior_energy + among_copies)
        # All points in one place, which only exaggeration needs.
        self._most_energy = most_energy + self.energy.constant
        strength = prior.edge_strength(kernel)
        if strength != radial:
            self.strength = EdgeEnergy(edges.of(strength), n)

    def _log_prior_energy(self, means: FloatArray) -> float:
        """Return <M_X, log π_Z>, M_X given by its means."""
        prior, posterior = self.latent.prior, self.posterior
        if self.partition.allowed is None:
            return prior.latent_log_scalar * (float(means.sum()) + self._share * float(posterior.own_means.sum()))
        support, log_prior = self.partition.allowed
        at = support.find(posterior.support.rows, posterior.support.indices)
        forbidden = (at < 0) & (means > 0)
        if forbidden.any():
            e = int(np.argmax(forbidden))
            raise ValueError(
                f"the latent edge_prior forbids {int(forbidden.sum())} edges that the input's graph "
                f"({posterior.prior_name}) can have, the first from node {posterior.support.rows[e]} to "
                f"{posterior.support.indices[e]}: the support of {posterior.prior_name} is not contained in that of "
                f"{prior!r}. Restrict the input's graph by the same edge_prior."
            )
        if posterior.unordered:
            behind = support.find(support.indices, support.rows)
            if (behind < 0).any() or not np.allclose(log_prior, log_prior[behind], rtol=0.0, atol=1e-9):
                raise ValueError("the latent edge_prior must be symmetric when the input's graph is thresholded.")
        return float(means @ np.where(at < 0, 0.0, log_prior[at]))

    @property
    def has_kl_divergence(self) -> bool:  # type: ignore[override]
        """Whether both graphs have n edges (pairs D–D, D–E, E–E), so means divided by n are probabilities."""
        return N_EDGES in self.posterior.constraints & self.latent.prior.constraints

    def kl_divergence(self, Z: FloatArray) -> float:
        """Return KL(M_X/n ‖ M_Z/n), in nats, on the scale t-SNE users know.

        M_X is symmetrised, (M_X + M_Xᵀ)/2, if M_Z is symmetric (latent prior E without its own edge prior). For t-SNE
        this is the divergence of joint probabilities, for SNE the mean of the rows' divergences. The divergence is a
        difference of two large numbers: below 0.05 it is summed exactly, in O(n²) time; above, its error is about 1e-4.
        Pairs with prior B, whose graphs have no fixed number of edges, raise `ValueError`.
        """
        if not self.has_kl_divergence:
            raise ValueError(
                f"the KL divergence of edge probabilities needs priors D or E on both sides, got "
                f"{self.posterior.code}–{self.latent.prior.code}; use value(Z)."
            )
        weights = self.posterior.node_weights
        n = self.n_points if weights is None else float(weights.sum())
        plain = self if self.stated_exaggeration == 1.0 else changed(self, exaggeration=1.0)
        divergence = float((plain.value(Z) - self._plain_bound) / n)
        if divergence < _SMALL_DIVERGENCE and not isinstance(self.summation, Exact):
            exact = CrossEntropy(self.posterior, self.latent, Exact(self.n_jobs), self.n_jobs)
            return float((exact.value(Z.astype(np.float64)) - self._plain_bound) / n)
        return divergence

    @property
    def _is_symmetric(self) -> bool:
        """Whether the embedding's mean graph is symmetric, and comparable with the input's."""
        return self.has_kl_divergence and self.latent.prior.symmetric_mean and self.partition.allowed is None

    @property
    def lower_bound(self) -> float:
        """The least cross-entropy of any embedding law of this prior, and at least the entropy of the input's law.

        With n edges on both sides, it is the entropy of the mean graph divided by n, symmetrised if the embedding's is.
        At this value the KL divergence would be 0. With an exaggeration ρ, it is lower by ρ − 1 times the most
        attraction, of all points in one place.
        """
        return self._plain_bound - (self.stated_exaggeration - 1.0) * self._most_energy

    @cached_property
    def _plain_bound(self) -> float:
        if not self.has_kl_divergence:
            return max(self._share * self._least(False), self.posterior.least_entropy())
        return self._least(self._is_symmetric)

    def _least(self, symmetric: bool) -> float:
        """Return the least cross-entropy for the input's means, or for their symmetric part."""
        prior, posterior, share = self.latent.prior, self.posterior, 0.5 if symmetric else 1.0
        weights = posterior.node_weights
        if weights is None:
            parts = self.energy.edges.symmetric_weights if symmetric else [posterior.edge_means]
            return sum(prior.least_cross_entropy(means, self.n_points, share) for means in parts)
        support, means = posterior.support, posterior.edge_means
        if symmetric:
            indptr, indices, means = self.energy.edges.symmetric_edges
            support = Support(indptr, indices)
        pairs = np.concatenate([weights[support.rows] * weights[support.indices], weights * (weights - 1.0)])
        means = np.concatenate([means, posterior.own_means / share])
        return prior.least_cross_entropy(means, float(weights.sum()), share, np.maximum(pairs, 0.0))


def check_exaggeration(exaggeration: float) -> float:
    """Return ρ as a float; below 1, the loss has no lower bound."""
    if check_positive("exaggeration", exaggeration) < 1.0:
        raise ValueError(f"exaggeration must be at least 1, got {exaggeration}: points would fly apart.")
    return float(exaggeration)


@register("cross-entropy")
@dataclass(frozen=True)
class CrossEntropyCoupling(Coupling):
    """The cross-entropy, with equal weights for all pairs of points; see `CrossEntropy`.

    Parameters
    ----------
    exaggeration : float, default=1.0
        How many times attraction counts, at least 1; see `CrossEntropy`.

    Examples
    --------
    >>> import graphcouple as gc
    >>> gc.TSNE().sentence.coupling
    CrossEntropyCoupling(exaggeration=1.0)
    """

    reads_points: ClassVar[bool] = False
    any_space: ClassVar[bool] = True

    exaggeration: float = 1.0

    def __post_init__(self) -> None:
        check_exaggeration(self.exaggeration)

    def bind(self, problem: Problem) -> CrossEntropy:
        return CrossEntropy(problem.posterior, problem.latent, problem.summation, problem.n_jobs, self.exaggeration)

    def latex(self, latent: GraphModel) -> str:
        times = "" if self.exaggeration == 1 else rf"{self.exaggeration:g} "
        return rf"{latent.prior.log_partition_latex} - {times}\sum_{{i \neq j}} w_{{ij}} \log k_{{ij}}"

    def __str__(self) -> str:
        return "cross-entropy" + ("" if self.exaggeration == 1 else f", attraction × {self.exaggeration:g}")
