"""The coupling of two hidden graphs by cross-entropy: attraction from the data, repulsion from the latent prior.

    H(P_X, P_Z) = −E_{W ~ P_X} log P_Z(W) = A_Z(η_Z) − <M_X, η_Z> − E[log h_Z(W)]

with M_X the posterior mean of the input's graph and A_Z the log-partition of the
embedding's. Since ∂A/∂η is the mean, every method has the gradient
∂H/∂η_Z = M_Z − M_X: mean minus mean.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import xlogy

from graphcouple._formula import Formula
from graphcouple._validation import check_embedding
from graphcouple.bandwidths import ConstantBandwidth
from graphcouple.couplings._base import Objective
from graphcouple.couplings._edges import EdgeEnergy, EdgePartition
from graphcouple.graphs import FloatArray
from graphcouple.kernels import Kernel
from graphcouple.models import GraphModel
from graphcouple.priors import GraphPosterior
from graphcouple.radials import LogWeight
from graphcouple.summation import Summation, as_summation

_PART_EDGES = 2**22


def check_feasible(posterior: GraphPosterior, latent: GraphModel) -> None:
    """Raise unless every graph the posterior can produce is possible under the latent prior.

    Raises
    ------
    ValueError
        Naming both priors and the part of the support that is not contained.
    """
    missing = latent.prior.constraints - posterior.constraints
    if missing:
        raise ValueError(
            f"the cross-entropy from prior {posterior.code} ({posterior.prior_name}) to prior {latent.prior.code} "
            f"({type(latent.prior).__name__}) is undefined: the embedding's graphs have "
            f"{' and '.join(sorted(missing))}, which the input's graphs need not have, so their support is not "
            "contained. Feasible pairs (input, embedding) are B–B, D–B, D–D, D–E and E–E."
        )


def _latent_scale(latent: GraphModel) -> float:
    if latent.bandwidth is None:
        return 1.0
    if isinstance(latent.bandwidth, ConstantBandwidth):
        return float(latent.bandwidth.scale)
    raise ValueError(
        f"latent_model.bandwidth must be None or ConstantBandwidth, got {latent.bandwidth!r}: "
        "distances in the embedding are what is being found."
    )


class CrossEntropy(Objective):
    """Cross-entropy from the input's graph posterior to the embedding's, as a function of the embedding.

    ``value(Z)`` is A_Z(η_Z) − <M_X, η_Z> in nats. The constant −E[log h_Z(W)] is left
    out; it is zero for the latent priors B and D, and −log n! + E[Σ log W_ij!] for E.
    Sums run over ordered pairs, and over unordered ones for a thresholded input
    graph. There is no normalisation by n: for t-SNE the value is n times the cross-entropy
    of joint probabilities.

    Parameters
    ----------
    posterior : GraphPosterior
        The law of the input's graph.
    latent_model : GraphModel
        The law of the embedding's graph: a kernel and a prior. A
        `ConstantBandwidth` is allowed; neighbours, thresholding and other
        bandwidths are not.
    summation : str or Summation, default="exact"
        How sums over all pairs are done.
    n_jobs : int or None, default=None
        Threads; None means every core. Results do not depend on it.

    Raises
    ------
    TypeError
        When an argument is of the wrong kind.
    ValueError
        When the pair of priors is infeasible (supp P_X not within supp P_Z), the
        latent edge prior forbids an edge of the input's graph, or the latent
        model asks for what a latent model cannot have.

    References
    ----------
    Graph-coupling paper, section 3; the pairs B–B, D–B, D–D, D–E and E–E are feasible.

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

    def __init__(
        self,
        posterior: GraphPosterior,
        latent_model: GraphModel,
        summation: str | Summation = "exact",
        n_jobs: int | None = None,
    ) -> None:
        if not isinstance(posterior, GraphPosterior):
            raise TypeError(
                f"posterior must be a GraphPosterior, got {type(posterior).__name__}; "
                "a GraphModel gives one by model.posterior(X)."
            )
        if not isinstance(latent_model, GraphModel):
            raise TypeError(f"latent_model must be a GraphModel, got {type(latent_model).__name__}.")
        if latent_model.n_neighbors is not None or latent_model.symmetrize is not None:
            raise ValueError(
                "latent_model must leave n_neighbors and symmetrize at None: the embedding has no neighbors before it "
                "is found, and a thresholded input graph is coupled over unordered pairs with a plain Binary latent."
            )
        check_feasible(posterior, latent_model)
        self.posterior = posterior
        self.latent = latent_model
        self.summation = as_summation(summation, n_jobs)
        self.n_jobs = n_jobs
        self._scale = _latent_scale(latent_model)
        self._share = 0.5 if posterior.unordered else 1.0
        self._kernel = latent_model.prior.latent_kernel(latent_model.kernel)
        weights = posterior.edge_means if self._share == 1.0 else self._share * posterior.edge_means
        self._attraction = EdgeEnergy(posterior.support, weights, self._attracting(latent_model.kernel), n_jobs)
        self._log_prior_energy, self._partition = self._confine(n_jobs)

    @staticmethod
    def _attracting(kernel: Kernel) -> Formula:
        """Return the radial function whose mean over the input's edges attracts."""
        return LogWeight(kernel)

    def _confine(self, n_jobs: int | None) -> tuple[float, EdgePartition | None]:
        """Return <M_X, log π_Z>, and the partition over π_Z's edges when π_Z names them."""
        prior, posterior = self.latent.prior, self.posterior
        allowed = prior.edges(posterior.n_nodes)
        if allowed is None:
            return prior.log_scalar * self._share * float(posterior.edge_means.sum()), None
        support, log_prior = allowed
        at = support.find(posterior.support.rows, posterior.support.indices)
        lost = (at < 0) & (posterior.edge_means > 0)
        if lost.any():
            e = int(np.argmax(lost))
            raise ValueError(
                f"the latent edge_prior forbids {int(lost.sum())} edges that the input's graph "
                f"({posterior.prior_name}) can have, the first from node {posterior.support.rows[e]} to "
                f"{posterior.support.indices[e]}: the support of {posterior.prior_name} is not contained in that of "
                f"{prior!r}. Restrict the input's graph by the same edge_prior."
            )
        if posterior.unordered:
            weights = support.to_csr(np.exp(log_prior))
            if abs(weights - weights.T).max() > 1e-12 * weights.max():
                raise ValueError("the latent edge_prior must be symmetric when the input's graph is thresholded.")
        energy = float(posterior.edge_means @ np.where(at < 0, 0.0, log_prior[at])) * self._share
        return energy, EdgePartition(prior, support, log_prior, self.latent.kernel, n_jobs)

    @property
    def n_points(self) -> int:
        """The number of points of the embedding."""
        return self.posterior.n_nodes

    @property
    def scale(self) -> float:
        """The bandwidth of the embedding's graph: kernels see distances divided by it."""
        return self._scale

    @property
    def kernel(self) -> Kernel:
        """The embedding's kernel, with a scalar edge prior in it."""
        return self._kernel

    def _points(self, Z: Any) -> FloatArray:
        Z = check_embedding(Z, n_points=self.n_points)
        return Z if self._scale == 1.0 else Z / np.asarray(self._scale, dtype=Z.dtype)

    def _repulsion(
        self, points: FloatArray, with_value: bool = True, with_gradient: bool = True
    ) -> tuple[float, FloatArray | None]:
        if self._partition is not None:
            value, gradient = self._partition.terms(points, with_gradient=with_gradient)
        else:
            value, gradient = self.latent.prior.log_partition_and_grad(
                self._kernel, points, self.summation, with_value=with_value, with_gradient=with_gradient
            )
        return self._share * value, None if gradient is None else self._share * gradient

    def repulsion(self, Z: FloatArray) -> float:
        """Return A_Z(η_Z), the log-partition of the embedding's graph law; the data do not enter."""
        return self._repulsion(self._points(Z), with_gradient=False)[0]

    def attraction(self, Z: FloatArray) -> float:
        """Return <M_X, η_Z>, the expected log-density of the embedding given the input's graph."""
        return self._attraction.terms(self._points(Z), with_gradient=False)[0] + self._log_prior_energy

    def value(self, Z: FloatArray) -> float:
        """Return A_Z(η_Z) − <M_X, η_Z>, in nats.

        Parameters
        ----------
        Z : array of shape (n_points, n_components)

        Raises
        ------
        TypeError, ValueError
            When `Z` is not numeric or has another shape.
        """
        return self.repulsion(Z) - self.attraction(Z)

    def value_and_grad(self, Z: FloatArray, attraction: float = 1.0) -> tuple[float, FloatArray]:
        """Return A_Z(η_Z) − α <M_X, η_Z>, α the attraction's weight, and its gradient in Z.

        The gradient at z_i is Σ_j [(M_Z − α M_X)_ij + (M_Z − α M_X)_ji] · 2 ψ(d²_ij) (z_i − z_j),
        with the factor that follows from the definition: for t-SNE it is n times
        scikit-learn's gradient, whose factor 4 comes out of the 2 here and the two
        directions of each pair.

        Parameters
        ----------
        Z : array of shape (n_points, n_components)
        attraction : float, default=1.0
            α: early exaggeration, without touching M_X.

        Returns
        -------
        value : float
        gradient : ndarray of the shape and dtype of `Z`
        """
        points = self._points(Z)
        held, pull = self._attraction.terms(points)
        spread, push = self._repulsion(points)
        assert push is not None
        return spread - attraction * (held + self._log_prior_energy), self._combine(points, push, pull, attraction)

    def gradient(self, Z: FloatArray, attraction: float = 1.0) -> FloatArray:
        """Return the gradient alone, without the logarithms that only the value needs."""
        points = self._points(Z)
        pull = self._attraction.terms(points, with_value=False)[1]
        push = self._repulsion(points, with_value=False)[1]
        assert push is not None
        return self._combine(points, push, pull, attraction)

    def learning_rate(self, attraction: float = 1.0, Z: FloatArray | None = None) -> float:
        """Return the rate that suits the latent prior."""
        return self.latent.prior.learning_rate(self.n_points, attraction)

    def _combine(self, points: FloatArray, push: FloatArray, pull: FloatArray, attraction: float) -> FloatArray:
        return ((push - attraction * pull) / self._scale).astype(points.dtype, copy=False)

    @property
    def has_kl_divergence(self) -> bool:
        """Whether both graphs have n edges (pairs D–D, D–E, E–E), so that means divided by n are probabilities."""
        return self.posterior.code in "DE" and self.latent.prior.code in "DE"

    def kl_divergence(self, Z: FloatArray) -> float:
        """Return KL(M_X/n ‖ M_Z/n), in nats, on the scale t-SNE users know.

        M_X is symmetrised, (M_X + M_Xᵀ)/2, when M_Z is symmetric (latent prior E
        without an edge prior of its own): for t-SNE this is the divergence of joint
        probabilities, for SNE the mean of the rows' divergences.

        Raises
        ------
        ValueError
            For pairs with prior B, whose graphs have no fixed number of edges.
        """
        if not self.has_kl_divergence:
            raise ValueError(
                f"the KL divergence of edge probabilities needs priors D or E on both sides, got "
                f"{self.posterior.code}–{self.latent.prior.code}; use value(Z)."
            )
        return float((self.value(Z) - self.lower_bound) / self.n_points)

    @cached_property
    def lower_bound(self) -> float:
        """What a cross-entropy is at least: the entropy of the input's law.

        With n edges on both sides, that of its mean graph divided by n, symmetrised where the embedding's is, which
        is the value at which the KL divergence would be 0.
        """
        if not self.has_kl_divergence:
            return self.posterior.entropy()
        joint = self.latent.prior.code == "E"
        symmetric = joint and self._partition is None
        means, share = self.posterior.edge_means, 1.0
        if symmetric:
            means, share = self._attraction.symmetric_weights, 0.5
        total, mass = 0.0, 0.0
        flat = means.reshape(-1)
        # A part at a time: there may be far more edges than memory for three more arrays of them.
        for a in range(0, flat.size, _PART_EDGES):
            part = share * flat[a : a + _PART_EDGES].astype(np.float64)
            total += float(xlogy(part, part).sum())
            mass += float(part.sum())
        # Logarithms are taken before dividing by n, which would round the smallest means to zero.
        return -total + (mass * np.log(self.n_points) if joint else 0.0)
