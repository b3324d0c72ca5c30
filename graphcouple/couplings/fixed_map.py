"""New points in a fixed embedding: each has its own objective, which does not depend on the other new points.

Given X, a new point has a law of its edges to the points of the embedding. Its place is where the embedding's law of
these edges agrees best with the law given X. For priors with a fixed number of edges, one row has the law of prior D,

    E_i(y) = m_i+ log Σ_j k(‖y − z_j‖²) − Σ_j m_ij log k(‖y − z_j‖²),

and for prior B, whose edges are independent, E_i(y) = Σ_j log(1 + k) − Σ_j m_ij log k: the terms of the cross-entropy
that contain the new point's own edges.
"""

from __future__ import annotations

import inspect
from abc import abstractmethod
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import logsumexp

from graphcouple._numba.threads import over_rows
from graphcouple._support.validation import changed, check_embedding
from graphcouple.couplings.base import Objective
from graphcouple.couplings.losses import MatchingLoss, curved_part
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.kernels import Kernel
from graphcouple.laws import NewEdges
from graphcouple.laws.priors.base import at_zero, with_copies
from graphcouple.laws.priors.log_domain import UNDERFLOW
from graphcouple.summation import Field, KernelValue, LogOnePlusKernel, RadialFunction, Summation

# Points whose edges are summed at once: with 90 edges of two coordinates, 6 MB for each array.
_ROWS_AT_ONCE = 4096


class DrawnEdges(NamedTuple):
    """Edges of new points, with the places of their ends, of shape (q, n_edges).

    `indptr` tells where each new point's edges begin, and `mass` is the sum of its means.
    """

    ends: FloatArray
    indptr: IntArray
    means: FloatArray
    mass: FloatArray


class Placing(Objective):
    """Base class of couplings whose embedding can take new points, by a `FixedMap`."""

    scale: float = 1.0
    """Distances are divided by it before kernels are evaluated."""

    has_kl_divergence: bool = False
    """Whether `kl_divergence` is defined."""

    def _points(self, Z: Any) -> FloatArray:
        Z = check_embedding(Z, n_points=self.n_points)
        return Z if self.scale == 1.0 else Z / np.asarray(self.scale, dtype=Z.dtype)

    @abstractmethod
    def fixed_map(self, Z: FloatArray) -> FixedMap | None:
        """Return the embedding as it attracts and repels new points; None if it cannot."""

    def kl_divergence(self, Z: FloatArray) -> float:
        """Return the Kullback-Leibler divergence of edge probabilities; only if `has_kl_divergence`."""
        raise ValueError(f"{type(self).__name__} has no KL divergence; use value(Z).")


class FixedMap:
    """The embedding's points, and how its law attracts and repels a new point.

    The mean of `attraction` over a new point's edges attracts it, and the potentials of `repulsion` repel it, one for
    each row of `charges`. Points are divided by the bandwidth of the embedding's graph.
    """

    def __init__(
        self,
        points: FloatArray,
        attraction: RadialFunction,
        repulsion: RadialFunction,
        charges: FloatArray,
        summation: Summation,
    ) -> None:
        self.points = np.ascontiguousarray(points, dtype=np.float64)
        self.attraction, self.repulsion, self.charges, self.summation = attraction, repulsion, charges, summation

    weights: FloatArray | None = None
    """How many points each point stands for; None if one each."""

    exaggeration: float = 1.0
    """How many times attraction counts."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the field, which can be computed again."""
        return {name: value for name, value in self.__dict__.items() if name != "field"}

    def reordered(self, order: IntArray) -> Self:
        """Return the map in which point `order[i]` is the i-th."""
        weights = None if self.weights is None else self.weights[order]
        return changed(self, points=self.points[order], charges=self.charges[:, order], weights=weights)

    def remembered(self) -> partial[Any]:
        """Return a function that rebuilds the map from its points."""
        names = list(inspect.signature(type(self)).parameters)[1:]
        return partial(type(self), **{name: getattr(self, name) for name in names})

    def at(self, points: FloatArray) -> FixedMap:
        """Return the map with its points in other places; itself if these are its places."""
        return self if np.array_equal(points, self.points) else self.remembered()(points)

    @cached_property
    def field(self) -> Field:
        """The potentials, prepared for evaluation at any place."""
        return self.summation.field(self.points, self.repulsion, self.charges)

    @cached_property
    def size(self) -> float:
        """The root mean square distance of the points from their mean; 1 if they are in one place."""
        return float(np.sqrt(sum(column.var() for column in self.points.T))) or 1.0

    def drawn(self, edges: NewEdges, first: int, last: int) -> DrawnEdges:
        """Return the edges of the new points from `first` to `last`."""
        indptr = edges.support.indptr[first : last + 1]
        part = slice(indptr[0], indptr[-1])
        ends = np.ascontiguousarray(self.points[edges.support.indices[part]].T)
        return DrawnEdges(ends, indptr - indptr[0], edges.means[part], edges.mass[first:last])

    def evaluate(
        self, places: FloatArray, edges: DrawnEdges, rows: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the loss of new points at places, in nats, its gradient, and the stiffness of their edges.

        `rows` are the new points of `edges` that the places belong to.
        """
        from graphcouple._numba.blocks import in_blocks
        from graphcouple._numba.places import edge_sums_at

        attraction, pull, stiffness = np.empty(len(places)), np.empty(places.shape), np.empty(len(places))
        arrays = (rows, edges.ends, edges.indptr, edges.means, in_blocks(self.attraction), attraction, pull, stiffness)
        over_rows(len(places), self.summation.n_jobs, edge_sums_at, places, *arrays)
        repulsion, push = self._repel(self.field.at(places), edges.mass[rows], places)
        times = self.exaggeration
        return repulsion - times * attraction, push - times * pull, times * stiffness

    def own_losses(self, edges: sp.csr_array, among_copies: FloatArray | None = None) -> FloatArray:
        """Return the loss of each point of the map at its own place, for the means of its edges to the others.

        If a point stands for several copies, it is the loss of one of them. `edges` are then sums over the copies, and
        `among_copies` are the means of the edges among a point's own copies.
        """
        w = np.ones(len(self.points)) if self.weights is None else self.weights
        own = np.zeros(len(self.points)) if among_copies is None else among_copies / w
        potential, gradient = self.summation.potentials(self.points, self.repulsion, self.charges)
        # Charges are sums over copies, and a copy is repelled by the others of its place too.
        potential = with_copies(potential, self.repulsion, self.weights, self.charges / w)
        mass = edges.sum(axis=1) / w + own
        repulsion, _ = self._repel((potential, gradient), mass, None)
        attraction = np.empty(len(self.points))
        for a in range(0, len(self.points), _ROWS_AT_ONCE):
            part = edges[a : a + _ROWS_AT_ONCE]
            starts = np.repeat(self.points[a : a + _ROWS_AT_ONCE], np.diff(part.indptr), axis=0)
            sq_dist = np.square(starts - self.points[part.indices]).sum(axis=1)
            part.data = part.data * self.attraction.potential(sq_dist)
            attraction[a : a + _ROWS_AT_ONCE] = part.sum(axis=1)
        losses = repulsion - self.exaggeration * (attraction / w + own * at_zero(self.attraction))
        return self._stated(losses, mass) + self.constants(edges)

    def constants(self, edges: sp.csr_array) -> FloatArray | float:
        """Return the part of each point's loss that does not depend on its place, for the means of its edges."""
        return 0.0

    def _stated(self, losses: FloatArray, mass: FloatArray) -> FloatArray:
        """Return the losses of points of the map as they are stated, for edges that sum to `mass`."""
        return losses

    def _repel(self, at: Any, mass: FloatArray, places: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        """Return the repulsion, by the potentials and their gradients, and its gradient.

        The edges of the repelled points sum to `mass`. `places` are None for the points of the map themselves.
        """
        potential, gradient = at
        return potential[0], gradient[0]


class AdditiveMap(FixedMap):
    """A map whose law has independent edges: repulsion is a potential."""

    repelled_by: ClassVar[Any] = LogOnePlusKernel
    """The function of the kernel whose potential repels."""

    def __init__(
        self,
        points: FloatArray,
        attraction: RadialFunction,
        kernel: Kernel,
        summation: Summation,
        weights: FloatArray | None = None,
        exaggeration: float = 1.0,
    ) -> None:
        charges = np.ones((1, len(points))) if weights is None else weights[None, :]
        super().__init__(points, attraction, self.repelled_by(kernel), charges, summation)
        self.kernel, self.weights, self.exaggeration = kernel, weights, exaggeration


class NormalizedMap(AdditiveMap):
    """A map whose law has a fixed number of edges: repulsion is the logarithm of a potential."""

    repelled_by: ClassVar[Any] = KernelValue

    def _stated(self, losses: FloatArray, mass: FloatArray) -> FloatArray:
        """Return the losses as if the edges of each point summed to 1."""
        return losses / np.where(mass > 0.0, mass, 1.0)

    def _repel(self, at: Any, mass: FloatArray, places: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        potential, gradient = (part[0] for part in at)
        underflow = potential <= max(UNDERFLOW, self.field.resolution)
        safe = np.where(underflow, 1.0, potential)
        logs, slopes = np.log(safe), gradient / safe[:, None]
        for i in np.flatnonzero(underflow):
            logs[i], slopes[i] = self._in_the_log(int(i), places)
        return mass * logs, mass[:, None] * slopes

    def _in_the_log(self, i: int, places: FloatArray | None) -> tuple[float, FloatArray]:
        differences = (self.points if places is None else places)[i] - self.points
        sq_dist = np.square(differences).sum(axis=1)
        log_kernel = self.kernel.log(sq_dist)
        if self.weights is not None:
            log_kernel = log_kernel + np.log(self.weights)
        if places is None:
            log_kernel[i] = -np.inf
            if self.weights is not None and self.weights[i] > 1.0 and (beside := at_zero(self.repulsion)) > 0.0:
                log_kernel[i] = np.log(self.weights[i] - 1.0) + np.log(beside)
        total = float(logsumexp(log_kernel))
        return total, 2.0 * (np.exp(log_kernel - total) * self.kernel.grad_log(sq_dist)) @ differences


class ChargedMap(FixedMap):
    """A map of the effective loss: ½ γ m (d_i Φ[P] + P_i Φ[d]) repels a new point with the sum of edges d_i.

    P ∝ d to the power `noise_exponent`, `strength` is ½ γ m. Degrees are sums over the points each point stands for.
    """

    def __init__(
        self,
        points: FloatArray,
        attraction: RadialFunction,
        kernel: Kernel,
        summation: Summation,
        degrees: FloatArray,
        noise_exponent: float,
        strength: float,
        weights: FloatArray | None = None,
    ) -> None:
        noise = noise_of(degrees, noise_exponent, weights)
        self.noise_exponent, self.strength, self.total_noise = noise_exponent, strength, float(noise.sum()) or 1.0
        charges = np.stack([noise / self.total_noise, degrees])
        super().__init__(points, attraction, LogOnePlusKernel(kernel), charges, summation)
        self.kernel, self.weights = kernel, weights

    @property
    def degrees(self) -> FloatArray:
        """d."""
        return self.charges[1]

    def _repel(self, at: Any, mass: FloatArray, places: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        (noise_potential, degree_potential), (push, other) = at
        noise = noise_of(mass, self.noise_exponent) / self.total_noise
        repulsion = self.strength * (mass * noise_potential + noise * degree_potential)
        return repulsion, self.strength * (mass[:, None] * push + noise[:, None] * other)


class MatchedMap(FixedMap):
    """A map of a sum of losses of pairs: c Σ_j φ(‖y − z_j‖²) repels a new point, and Σ_j m_j α(‖y − z_j‖²) attracts it.

    α and φ are the attraction and the repulsion, c is the charge, and `loss` the loss of pairs, if there is one.
    """

    def __init__(
        self,
        points: FloatArray,
        attraction: RadialFunction,
        repulsion: RadialFunction,
        charge: float,
        summation: Summation,
        loss: MatchingLoss | None = None,
    ) -> None:
        super().__init__(points, attraction, repulsion, np.full((1, len(points)), charge), summation)
        self.charge, self.loss = charge, loss

    def constants(self, edges: sp.csr_array) -> FloatArray | float:
        """Return the sum of `curved_part` of each point's edges."""
        if self.loss is None:
            return 0.0
        curved = edges.copy()
        curved.data = curved_part(self.loss, edges.data)
        return np.asarray(curved.sum(axis=1)).ravel()


def noise_of(degrees: FloatArray, exponent: float, weights: FloatArray | None = None) -> FloatArray:
    """Return how much each point repels, its degree to a power, summed over the points it stands for.

    Under a negative exponent, points without edges repel like points of degree 1; the power would be infinite.
    """
    w = np.ones(degrees.size) if weights is None else weights
    return w * np.where(degrees > 0, degrees / w, exponent < 0) ** exponent
