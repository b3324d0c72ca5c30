"""Pairwise matching: the means of the two graph laws compared edge by edge, by any loss of two numbers.

    F(X, Y) = Σ_{i≠j} F̂(E^X_ij, E^Y_ij),   E = S(M, Mᵀ)

where M holds the means of a law's edges. Under prior B they are probabilities of edges that do not depend on each other
(the Bernoulli reading); under prior D each row sums to 1 (the neighbourhood reading); under prior E all of them sum to
n. S makes the means of directed graphs symmetric: the input's unless its graph is thresholded, and the embedding's
under prior D. Under priors B and E the embedding's means are symmetric, and E^Y = M. The binary KL divergence and the
square are losses of the library; with UMAP's laws, the first is UMAP's stated loss and the second two-kernel PCA.

A pair without an edge in the input costs F̂(0, E^Y). So under prior B, F is a radial function summed over all pairs, by
any summation, plus a correction along the input's edges. Under priors D and E a mean depends on many distances:
a_ij = k_ij / Z_i, with Z_i a row's sum, or Z/n for all pairs. Then all pairs are compared, some rows at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from graphcouple.couplings.base import Attraction, Objective, balanced
from graphcouple.couplings.confinement import Confinement, crowd_of
from graphcouple.couplings.fixed_map import MatchedMap, Placing
from graphcouple.couplings.kinds import InParts, Rescaled
from graphcouple.couplings.losses import MatchingLoss, as_loss, curved_part
from graphcouple.couplings.pair import EdgeEnergy, check_laws
from graphcouple.couplings.recipes import Coupling, Problem, register
from graphcouple.graphs import FloatArray, Support
from graphcouple.kernels import Kernel
from graphcouple.laws import GraphModel
from graphcouple.laws.copies import refuse_weights
from graphcouple.laws.priors import BINARY, RandomGraph
from graphcouple.laws.priors.log_domain import add_forces, blocks_of_rows, row_log_sums
from graphcouple.summation import EdgeSum, Summation, as_summation
from graphcouple.summation.radials import KernelFunction

_SYMMETRIZATIONS = ("mean", "or", "first")
"""How the two directions of a pair become one number: (a + b)/2, a + b − ab, or a."""

# Pairs held at once: ten arrays of 8 MB.
_PAIRS_AT_ONCE = 2**20

# A sure edge's costs at these two probabilities show whether the loss is bounded: a logarithm grows tenfold.
_IMPROBABLE = (1e-20, 1e-200)

# Probabilities of a law under prior S may be above 1 by this much.
_ROUNDING = 1e-2


@dataclass(frozen=True)
class _LossRadial(KernelFunction):
    """Base class of the radial functions of a loss of p = k/(1 + k)."""

    loss: MatchingLoss

    tabulated: ClassVar[bool] = True  # Losses take longer to evaluate than any kernel.


@dataclass(frozen=True)
class EdgeGain(_LossRadial):
    """F̂(0, p(d²)) − F̂(1, p(d²)): the saving of a pair whose edge in the input's graph is sure."""

    def potential(self, sq_dist: Any) -> Any:
        p = self.kernel.edge_probability(sq_dist)
        return self.loss.cost(0.0, p) - self.loss.cost(1.0, p)

    def slope(self, sq_dist: Any) -> Any:
        p = self.kernel.edge_probability(sq_dist)
        change = self.loss.grad_cost(0.0, p) - self.loss.grad_cost(1.0, p)
        return change * p * self.kernel.grad_log_probability(sq_dist)


@dataclass(frozen=True)
class AbsentCost(_LossRadial):
    """F̂(0, p(d²)): the cost of a pair without an edge in the input's graph."""

    def potential(self, sq_dist: Any) -> Any:
        return self.loss.cost(0.0, self.kernel.edge_probability(sq_dist))

    def slope(self, sq_dist: Any) -> Any:
        """Return ∂F̂/∂p · p ψ/(1 + k)."""
        p = self.kernel.edge_probability(sq_dist)
        return self.loss.grad_cost(0.0, p) * p * self.kernel.grad_log_probability(sq_dist)


def _check_symmetrization(how: str) -> None:
    if how not in _SYMMETRIZATIONS:
        raise ValueError(f"symmetrize must be one of {list(_SYMMETRIZATIONS)}, got {how!r}.")


def symmetrized_means(posterior: RandomGraph, how: str) -> tuple[Support, FloatArray, FloatArray]:
    """Return the edges in either direction, with S(m_ij, m_ji) and S(m_ji, m_ij) of each."""
    _check_symmetrization(how)
    means = posterior.support.to_csr(np.asarray(posterior.edge_means, dtype=np.float64))
    either = sp.csr_array(abs(means) + abs(means).T)
    either.sort_indices()
    support = Support(either.indptr, either.indices)
    pairs = ((support.rows, support.indices), (support.indices, support.rows))
    ahead, back = (np.where(at >= 0, means.data[at], 0.0) for at in (posterior.support.find(*ends) for ends in pairs))
    if posterior.unordered:
        return support, ahead, back
    return support, _symmetric(ahead, back, how)[0], _symmetric(back, ahead, how)[0]


class MatchedMeans(InParts, Placing):
    """F(X, Y) = Σ_{i≠j} F̂(E^X_ij, E^Y_ij), as a function of the embedding.

    Parameters
    ----------
    posterior : RandomGraph
        The law of the input's graph.
    latent_model : GraphModel
        The law of the embedding's graph; prior B, D or E without a graph as its edge prior.
    loss : MatchingLoss or str, default="square"
        "square", "kl", or your own.
    symmetrize : {"mean", "or", "first"}, default="mean"
        S, for the input's means unless its graph is undirected, and for the embedding's under prior D.
    summation : str or Summation, default="auto"
        How sums over all pairs are computed under prior B. Under priors D and E, whose means depend on many distances,
        all pairs are compared, in O(n²) time.
    n_jobs : int or None, default=None

    Raises
    ------
    TypeError, ValueError
        When an argument has the wrong type or value, or a mean of the input's edges is above the loss's largest.

    References
    ----------
    Draganov (2021), Towards a common dimensionality reduction approach, chapter 3; Draganov and Dohn (2023),
    Unexplainable explanations, equation 3.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> laws = gc.UMAP(n_neighbors=8).sentence
    >>> objective = gc.MatchedMeans(laws.input.posterior(X), laws.latent)
    >>> value, gradient = objective.value_and_grad(X[:, :2])
    >>> gradient.shape
    (40, 2)
    """

    def __init__(
        self,
        posterior: RandomGraph,
        latent_model: GraphModel,
        loss: MatchingLoss | str = "square",
        symmetrize: str = "mean",
        summation: str | Summation = "auto",
        n_jobs: int | None = None,
    ) -> None:
        check_laws(posterior, latent_model)
        prior = latent_model.prior
        if prior.edges(posterior.n_nodes) is not None or prior.drawn_by is None or prior.draws != 1:
            raise ValueError(f"latent_model must have prior B, D or E without a graph as edge prior, got {prior!r}.")
        refuse_weights(posterior.node_weights, "pairwise matching")
        self.posterior, self.latent, self.loss, self.symmetrize = posterior, latent_model, as_loss(loss), symmetrize
        above = posterior.edge_means > self.loss.largest + _ROUNDING
        if above.any():
            raise ValueError(
                f"loss={self.loss!r} compares probabilities, but {above.sum()} means of the input's edges are above "
                f"{self.loss.largest:g}. Use loss='square', or an input of prior B or D."
            )
        if symmetrize == "or" and (posterior.edge_means > 1.0 + _ROUNDING).any():
            raise ValueError(
                "symmetrize='or' joins probabilities, but means of the input's edges are up to "
                f"{posterior.edge_means.max():.3g}. Use symmetrize='mean', or an input of prior B or D."
            )
        self.summation, self.n_jobs = as_summation(summation, n_jobs), n_jobs
        self.kernel = prior.latent_kernel(latent_model.kernel)
        self._absent = AbsentCost(self.kernel, self.loss)
        self.scale = 1.0 if latent_model.bandwidth is None else float(latent_model.bandwidth.scale)  # type: ignore[attr-defined]
        self.support, self.ahead, self.back = symmetrized_means(posterior, symmetrize)
        self.n_points = self.posterior.n_nodes

    def _evaluate(self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True) -> tuple[float, Any]:
        """Return F and its gradient Σ_j (F̂'(E^X_ij, ·) + F̂'(E^X_ji, ·)) ∂E^Y/∂d² 2 (z_i − z_j)."""
        points = self._points(Z)
        if not self.latent.prior.independent_edges:
            total = float(self.n_points) if self.latent.prior.drawn_by == "graph" else None
            laws = (self.loss, self.kernel, points, (self.support, self.ahead), self.symmetrize, total)
            value, gradient = match_latent_means(*laws)
        elif self.loss.linear:
            edges, constant = self._present
            potential, push = self.summation.potential(points, self._absent, with_potential=with_value)
            saved, pull = edges.evaluate(points, with_value=with_value)
            value = float(potential.sum()) - saved + constant if with_value else np.nan
            gradient = 2.0 * push - pull
        else:
            value, gradient = self._edge_by_edge(points)
        return value, balanced(gradient / self.scale).astype(points.dtype, copy=False)

    @cached_property
    def _present(self) -> tuple[EdgeSum, float]:
        """The sum over edges for a linear loss, and the constant that the sum leaves out."""
        edges = EdgeSum(self.support, self.ahead, EdgeGain(self.kernel, self.loss), self.n_jobs)
        return edges, float(curved_part(self.loss, self.ahead).sum())

    def fixed_map(self, Z: FloatArray) -> MatchedMap | None:
        """Return the embedding as it attracts and repels new points.

        None unless pairs are independent and the loss is linear: otherwise means depend on all points.
        """
        if not (self.loss.linear and self.latent.prior.independent_edges):
            return None
        gain = EdgeGain(self.kernel, self.loss)
        return MatchedMap(self._points(Z), gain, self._absent, 1.0, self.summation, self.loss)

    def _edge_by_edge(self, points: FloatArray) -> tuple[float, FloatArray]:
        from graphcouple._numba.matching import matched_edges
        from graphcouple._numba.threads import over_rows

        potential, gradient = self.summation.potential(points, self._absent)
        total, force = np.empty(self.n_points), np.empty(points.shape)
        places = np.ascontiguousarray(points, dtype=np.float64)
        arrays = (places, self.support.indptr, self.support.indices, self.ahead, self.back, self.loss, self.kernel)
        over_rows(self.n_points, self.n_jobs, matched_edges, *arrays, total, force)
        return float(potential.sum()) + float(total.sum()), 2.0 * gradient + force

    @cached_property
    def strength(self) -> EdgeEnergy:
        """Σ E^X_ij log s, s = `GraphPrior.edge_strength`; early exaggeration adds multiples of it."""
        radial = self.latent.prior.edge_strength(self.latent.kernel)
        return EdgeEnergy(EdgeSum(self.support, self.ahead, radial, self.n_jobs), self.n_points)

    @property
    def attracting(self) -> Attraction:
        return Attraction(
            source=self,
            times=self._times,
            edges=lambda: self.strength.edges.matrices,
            confinement=self._confinement,
            fades=self._fades,
            n_jobs=self.n_jobs,
        )

    @cached_property
    def _fades(self) -> bool:
        """Whether a sure edge's cost is bounded as its probability falls."""
        sure, *absent = (float(self.loss.cost(1.0, p)) for p in (1.0, *_IMPROBABLE))
        return absent[1] - sure < 2.0 * (absent[0] - sure)

    def _confinement(self) -> Objective:
        """Return the bound on the size of the map; for a bounded loss, scaled by the loss's range per point.

        Both directions of a pair are stored, so κ is twice the mean degree. With once the degree, three separated
        clusters ended far apart; with 15 times, the loss of noise rose by 7 %.
        """
        n, crowd = self.n_points, crowd_of(self.support, self.ahead, normalized=self.latent.prior.normalized)
        length, tail = self.scale * self.kernel.length, self.kernel.tail
        bound = Confinement(n, length, crowd, tail=tail, n_jobs=self.n_jobs)
        height = float(self.loss.cost(self.ahead, _IMPROBABLE[1]).sum()) - self.lower_bound if self._fades else n
        return height / n * bound

    def _times(self, factor: float) -> Objective:
        """Return F − (α − 1) Σ E^X_ij log s: edges attract by the logarithm of their strength too, at any distance.

        A bounded loss such as the square has no force between ends that are far apart, so a random start would stay
        torn without the second term.
        """
        return self if factor == 1.0 else self + (1.0 - factor) * Rescaled(self.strength, self.scale)

    @cached_property
    def lower_bound(self) -> float:
        """Σ F̂(e, e): every pair at its minimum."""
        n = self.n_points
        with np.errstate(divide="ignore", invalid="ignore"):
            # Where pairs are independent, or rows sum to 1, no mean of the embedding is above 1.
            reached = np.minimum(self.ahead, 1.0) if BINARY in self.latent.prior.constraints else self.ahead
            edges = float(np.nansum(self.loss.cost(self.ahead, reached)))
            return edges + (n * (n - 1) - self.support.n_edges) * float(self.loss.cost(0.0, 0.0))


def match_latent_means(
    loss: Any, kernel: Kernel, Z: FloatArray, edges: tuple[Support, FloatArray], symmetrize: str, total: float | None
) -> tuple[float, FloatArray]:
    """Return Σ_{i≠j} F̂(e_ij, S(a_ij, a_ji)) and its gradient in the embedding, if a are means of prior D or E.

    `edges` are where e is not 0, and its values; symmetric unless `symmetrize` is "first". `total` is the sum of all
    means, None if the means of each row sum to 1.
    """
    points = np.asarray(Z, dtype=np.float64)
    n, graph = len(points), edges[0].to_csr(edges[1])
    blocks = partial(blocks_of_rows, kernel, points, entries=_PAIRS_AT_ONCE)
    # Kernel values of a point far from all others may underflow, so sums are in logarithms.
    log_sums = row_log_sums(kernel, points, np.zeros(n))
    log_norms = log_sums if total is None else np.full(n, float(logsumexp(log_sums)) - np.log(total))
    value, gradient, common, spread = 0.0, np.zeros_like(points), 0.0, np.zeros_like(points)
    for rows, sq_dist, log_kernel in blocks():
        ahead = np.exp(log_kernel - log_norms[rows, None])
        targets = graph[rows].toarray()
        others = np.ones(ahead.shape, dtype=bool)
        others[np.arange(rows.size), rows] = False
        back = np.exp(log_kernel - log_norms) if total is None else ahead
        mean, slope_of = _symmetric(ahead, back, symmetrize) if total is None else (ahead, 1.0)
        value += float(loss.cost(targets, mean)[others].sum())
        slope = np.where(others, loss.grad_cost(targets, mean), 0.0) * slope_of
        # log a_ij depends on log k_ij and, through the sum, on all kernel values of the row (or of all pairs).
        row_sums = (slope * ahead).sum(axis=1)
        own = slope - row_sums[:, None] if total is None else slope
        stretch = 2.0 * ahead * kernel.grad_log(sq_dist)
        stretch[~others] = 0.0
        add_forces(gradient, points, rows, own * stretch)
        if total is not None:
            common += float(row_sums.sum()) / total
            add_forces(spread, points, rows, stretch)
    return value, gradient - common * spread


def _symmetric(ahead: FloatArray, back: FloatArray, how: str) -> tuple[FloatArray, FloatArray | float]:
    """Return S(a, b), and twice its derivative in a (once for "first"), since a pair counts in both directions."""
    if how == "mean":
        return 0.5 * (ahead + back), 1.0
    if how == "or":
        return ahead + back - ahead * back, 2.0 * (1.0 - back)
    return ahead, 1.0


@register("matching")
@dataclass(frozen=True)
class MatchingCoupling(Coupling):
    """The means of the two laws, compared edge by edge; see `MatchedMeans`.

    Parameters
    ----------
    loss : {"square", "kl"} or MatchingLoss, default="square"
    symmetrize : {"mean", "or", "first"}, default="mean"

    Raises
    ------
    TypeError, ValueError
        When a loss or a symmetrization is unknown.

    Examples
    --------
    >>> import graphcouple as gc
    >>> law, latent = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20)), gc.GraphModel(gc.Student(), "D")
    >>> gc.GraphCoupling(law, latent, coupling=gc.MatchingCoupling("kl")).coupling
    MatchingCoupling(loss='kl', symmetrize='mean')
    """

    reads_points: ClassVar[bool] = False

    loss: Any = "square"
    symmetrize: str = "mean"

    def __post_init__(self) -> None:
        as_loss(self.loss)
        _check_symmetrization(self.symmetrize)

    def places(self, latent: GraphModel) -> bool:
        """Return whether means depend on one pair each, and the loss is linear; see `Coupling.places`."""
        return as_loss(self.loss).linear and latent.prior.independent_edges

    def latex(self, latent: GraphModel) -> str:
        return r"\sum_{i \neq j} \ell(w_{ij}, \hat w_{ij})"

    def bind(self, problem: Problem) -> MatchedMeans:
        laws = (problem.posterior, problem.latent)
        return MatchedMeans(*laws, self.loss, self.symmetrize, problem.summation, problem.n_jobs)

    def __str__(self) -> str:
        return f"{self.loss if isinstance(self.loss, str) else type(self.loss).__name__} of means, {self.symmetrize}"
