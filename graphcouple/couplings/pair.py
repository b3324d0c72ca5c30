"""A law of the input's graph against a law of the embedding's: a log-partition repels, an edge energy attracts.

Every coupling of two graph laws is repulsion minus attraction, and both are objectives themselves. Only the
attraction depends on X. Early exaggeration counts the input's edges several times.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from graphcouple._support.validation import changed
from graphcouple.couplings.base import Attraction, balanced, deviation
from graphcouple.couplings.confinement import Confinement
from graphcouple.couplings.fixed_map import AdditiveMap, FixedMap, NormalizedMap, Placing
from graphcouple.couplings.kinds import InParts
from graphcouple.graphs import FloatArray
from graphcouple.kernels import Kernel
from graphcouple.kernels.measured import reach
from graphcouple.laws import ConstantBandwidth, GraphModel
from graphcouple.laws.priors import GraphPrior, RandomGraph, confined_partition
from graphcouple.summation import EdgeSum, Summation, as_summation
from graphcouple.summation.curved import Hyperbolic, Space, Spherical, in_space

# Two distances, relative to the embedding's size. If a kernel grows from one to the other, it counts as unbounded.
_TOGETHER = np.array([1e-4, 1e-7])


class EdgeEnergy(InParts):
    """<M, φ(d²)>, the mean of a radial function over the input's edges, as a function of the embedding.

    Gradients are in double precision, whatever the dtype of `Z`.

    Parameters
    ----------
    edges : EdgeSum
        The weights M and φ.
    n_points : int
    constant : float, default=0.0
        Added to the value.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> coupling = gc.CrossEntropy(gc.GraphModel("gaussian", "D").posterior(X), gc.GraphModel("student", "E"))
    >>> type(coupling.energy).__name__, round(coupling.energy.value(X), 3)
    ('EdgeEnergy', -3.244)
    """

    def __init__(self, edges: EdgeSum, n_points: int, constant: float = 0.0) -> None:
        self.edges, self.n_points, self.constant = edges, n_points, constant

    def _evaluate(self, Z: FloatArray, **parts: bool) -> tuple[float, Any]:
        value, gradient = self.edges.evaluate(Z, **parts)
        return value + self.constant, gradient


class LogPartition(InParts):
    """A(η_Z), the log-partition of the embedding's graph law, as a function of the embedding.

    Gradients are in double precision, whatever the dtype of `Z`.

    Parameters
    ----------
    prior : GraphPrior
    kernel : Kernel
        The kernel without the edge prior.
    n_points : int
    summation : Summation
    share : float, default=1.0
        ½ for laws of undirected graphs.
    n_jobs : int or None, default=None
    weights : ndarray of shape (n_points,), optional
        How many points each point of the embedding stands for.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> repulsion = gc.couplings.LogPartition(gc.UnitOutDegree(), gc.Student(), 3, gc.summation.Exact())
    >>> bool(np.isclose(repulsion.value(np.zeros((3, 2))), 3 * np.log(2)))
    True
    """

    def __init__(
        self,
        prior: GraphPrior,
        kernel: Kernel,
        n_points: int,
        summation: Summation,
        share: float = 1.0,
        n_jobs: int | None = None,
        weights: FloatArray | None = None,
    ) -> None:
        self.prior, self.summation, self.share = prior.for_run(), summation, share
        self.kernel = prior.latent_kernel(kernel)
        self.n_points, self.weights = n_points, weights
        self.allowed, self.n_jobs = prior.edges(n_points), n_jobs
        """The edges that π allows, and log π on them; None if all."""
        if weights is not None and (self.allowed is not None or prior.drawn_by is None):
            raise ValueError(
                f"points with sample weights cannot be coupled to {prior!r}: the embedding's prior must say how "
                "its edges are drawn (drawn_by), and have no graph as its edge prior."
            )
        if weights is not None and prior.normalized and (weights > 1.0).any():
            check_shared_places(kernel)

    def _evaluate(self, Z: FloatArray, **parts: bool) -> tuple[float, Any]:
        if self.allowed is not None:
            value, gradient = confined_partition(self.prior, self.allowed, self.kernel, Z, self.n_jobs, **parts)
        else:
            options: dict[str, Any] = parts if self.weights is None else {"weights": self.weights, **parts}
            value, gradient = self.prior.log_partition_and_grad(self.kernel, Z, self.summation, **options)
        return self.share * value, None if gradient is None else self.share * gradient


class PairCoupling(InParts, Placing):
    """Base class of couplings of an input's posterior and an embedding's law: repulsion minus attraction.

    Attributes
    ----------
    posterior : RandomGraph
    latent : GraphModel
    partition : Objective
        The repulsion, at distances divided by `scale`.
    energy : EdgeEnergy
        The attraction.
    strength : EdgeEnergy
        <M, log s>, s = `GraphPrior.edge_strength`; early exaggeration adds multiples of it.
    summation : Summation
    crowd : float
        How many points in one place push a point as much as its edges pull it.
    scale : float
        The bandwidth of the embedding's graph; distances are divided by it before kernels are evaluated.
    stated_exaggeration : float
        How many times attraction counts in the stated loss; `exaggeration` is larger at the beginning of a run.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> coupling = gc.CrossEntropy(gc.GraphModel("gaussian", "D").posterior(X), gc.GraphModel("student", "E"))
    >>> isinstance(coupling, gc.couplings.PairCoupling)
    True
    >>> bool(np.isclose(coupling.value(X), coupling.partition.value(X) - coupling.energy.value(X)))
    True
    """

    partition: InParts
    energy: EdgeEnergy
    strength: EdgeEnergy
    crowd: float

    curved: ClassVar[bool] = False
    """Whether all distances are measured by the summation, so that the embedding may lie in a curved `Space`."""

    def __init__(
        self, posterior: RandomGraph, latent_model: GraphModel, summation: str | Summation, n_jobs: int | None
    ) -> None:
        check_laws(posterior, latent_model, self.curved)
        check_feasible(posterior, latent_model)
        self.posterior, self.latent, self.n_jobs = posterior, latent_model, n_jobs
        self._share = 0.5 if posterior.unordered else 1.0
        self.summation = in_space(latent_model, as_summation(summation, n_jobs))
        self._space = latent_model.metric if isinstance(latent_model.metric, Space) else None
        self.scale = 1.0 if latent_model.bandwidth is None else float(latent_model.bandwidth.scale)  # type: ignore[attr-defined]
        self.exaggeration = self.stated_exaggeration = 1.0
        self.n_points = self.posterior.n_nodes

    @property
    def kernel(self) -> Kernel:
        """The embedding's kernel, including a scalar edge prior."""
        return self.latent.prior.latent_kernel(self.latent.kernel)

    def _take_means(self) -> FloatArray:
        """Return the expected edges that attract, for overwriting; an unordered edge counts half each way."""
        means = self.posterior.take_means()
        return np.multiply(means, self._share, out=means)

    @property
    def attracting(self) -> Attraction:
        """The attraction of the input's edges, which bounds a map only if the edges connect it."""
        return Attraction(
            source=self,
            times=self._times,
            edges=lambda: self.energy.edges.matrices,
            limit=self._most_attraction,
            confinement=self._confinement,
            shares_edges=not self.latent.prior.independent_edges,
            raised=self._space.raised if isinstance(self._space, Hyperbolic) else None,
            space=self._space,
            n_jobs=self.n_jobs,
        )

    def _times(self, factor: float) -> Self:
        """Return the coupling in which each edge of the input's graph counts `factor` times.

        It is E(Z) − (α − 1) <M, log s>, where s is the strength of an edge under the embedding's prior: k for priors D
        and E, whose attraction is thus α times as strong, and k/(1 + k) for prior B. For many points, near pairs are
        softened (`Summation.coarse`): the exaggerated loss only leads to a start for the stated one.
        """
        if factor == 1.0:
            return self
        partition = changed(self.partition, summation=self.summation.coarse())
        return changed(self, exaggeration=self.exaggeration * factor, partition=partition)

    def _most_attraction(self, Z: FloatArray) -> float:
        """Return push/pull between the ends of the heaviest edge as they come together, under an unbounded kernel.

        There, attraction is a multiple of the logarithm of the distance. If it is exaggerated by more, the loss has no
        lower bound. Under prior B an edge's probability is at most 1, and there is a bound at any weight.

        On a line, points under an unbounded kernel cannot pass each other. More attraction than in the stated loss
        would scramble their order permanently, so the factor is 1 there.
        """
        near_sq_dist = np.square(_TOGETHER * (deviation(Z) or 1.0) / self.scale)
        if Z.shape[1] == 1 and np.diff(self.kernel.log(near_sq_dist))[0] > 1.0:
            return 1.0
        logs = self.strength.edges.radial.potential(near_sq_dist)
        if not logs[1] - logs[0] > 1.0:
            return np.inf
        largest = [weights.max(initial=-np.inf) for *_, weights in self.strength.edges.parts]
        indptr, indices, weights = self.strength.edges.parts[int(np.argmax(largest))]
        if not weights.size:
            return np.inf
        e = int(np.argmax(weights))
        i, j = int(np.searchsorted(indptr, e, side="right")) - 1, int(indices[e])
        pushes, pulls = [], []
        for sq_dist in near_sq_dist:
            points = self._points(Z).astype(np.float64)
            points[j] = points[i]
            points[j, 0] += np.sqrt(sq_dist)
            pushes.append(self.partition.value(points))
            pulls.append(self.strength.value(points))
        pull = pulls[1] - pulls[0]
        return (pushes[1] - pushes[0]) / pull if pull > 0 else np.inf

    def _confinement(self) -> Confinement | None:
        if isinstance(self._space, Spherical):
            return None
        kernel, weights = self.kernel, self.posterior.node_weights
        # With sampled repulsion n/κ is a constant, 5 for UMAP, and UMAP's tail of 1.8 would only make its maps sparser.
        tail = 2.0 if self.latent.prior.independent_edges else kernel.tail
        crowd = self.crowd * self.stated_exaggeration
        return Confinement(self.n_points, self.scale * kernel.length, crowd, weights, tail=tail, n_jobs=self.n_jobs)

    def _bound(self, Z: FloatArray) -> PairCoupling:
        """Return the coupling to evaluate at `Z`."""
        return self

    def repulsion(self, Z: FloatArray) -> float:
        """Return the repulsive part at `Z`, for the cross-entropy A_Z(η_Z), which does not depend on the data."""
        return self._bound(Z).partition.value(self._points(Z))

    def attraction(self, Z: FloatArray) -> float:
        """Return the attractive part at `Z`, for the cross-entropy <M_X, η_Z>."""
        return self._bound(Z).energy.value(self._points(Z))

    def _evaluate(self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True) -> tuple[float, Any]:
        bound, points = self._bound(Z), self._points(Z)
        parts = {"with_value": with_value, "with_gradient": with_gradient}
        value, gradient = bound.partition._evaluate(points, **parts)
        for weight, energy in bound._weighted_energies:
            attraction, pull = energy._evaluate(points, **parts)
            value = value - weight * attraction
            if with_gradient:
                gradient = gradient - weight * pull
        if not with_gradient:
            return value, None
        # Only in flat space do forces between points add up to 0.
        forces = balanced(gradient / self.scale) if self._space is None else gradient
        return value, forces.astype(points.dtype, copy=False)

    @property
    def _weighted_energies(self) -> list[tuple[float, EdgeEnergy]]:
        if self.strength is self.energy or self.exaggeration == 1.0:
            return [(self.exaggeration, self.energy)]
        return [(1.0, self.energy), (self.exaggeration - 1.0, self.strength)]

    def fixed_map(self, Z: FloatArray) -> FixedMap | None:
        """Return the embedding as it attracts and repels new points, if it lies in flat space; see `FixedMap`."""
        return None if self._space is not None else self._bound(Z)._fixed_map(Z)

    def _fixed_map(self, Z: FloatArray) -> FixedMap:
        weights, points = self.posterior.node_weights, self._points(Z)
        laws = (self.energy.edges.radial, self.kernel, self.summation)
        kind = NormalizedMap if self.latent.prior.normalized else AdditiveMap
        return kind(points, *laws, weights, self.stated_exaggeration)

    @property
    @abstractmethod
    def lower_bound(self) -> float:
        """A lower bound of the coupling."""


def check_shared_places(kernel: Kernel) -> None:
    """Raise if a kernel is infinite at distance 0, where the edges among points of one place would be all there are."""
    if not kernel.assumptions(1).bounded:
        raise ValueError(
            f"{kernel} is infinite at distance 0, so points cannot share a place, but a sample_weight above 1, "
            "unique=True and prototypes put several in one; use Student, or repeat rows, with unique=False."
        )


def check_laws(posterior: Any, latent: Any, curved: bool = False) -> None:
    """Raise unless the arguments are the law of a graph and a law that an embedding can have; see `check_latent`."""
    if not isinstance(posterior, RandomGraph):
        raise TypeError(
            f"posterior must be a RandomGraph, the law of a graph, got {type(posterior).__name__}; a GraphModel "
            "computes one with model.posterior(X)."
        )
    if not isinstance(latent, GraphModel):
        raise TypeError(f"latent_model must be a GraphModel, got {type(latent).__name__}.")
    check_latent(latent, curved)


def check_latent(latent: GraphModel, curved: bool = False) -> None:
    """Raise if a law of the embedding sets a parameter of the input's law alone, or a space without `curved`."""
    if latent.n_neighbors is not None or latent.symmetrize is not None:
        raise ValueError(
            "latent_model must leave n_neighbors and symmetrize at None: the embedding has no neighbors before it "
            "is found, and a thresholded input graph is coupled over unordered pairs with a plain Binary latent."
        )
    flat = not isinstance(latent.metric, Space)
    if (flat and latent.metric != "euclidean") or latent.metric_params or latent.search != "auto":
        raise ValueError(
            f"latent_model must leave metric and search at their defaults, got metric={latent.metric!r}, "
            f"search={latent.search!r}: embeddings use all distances, Euclidean or of a `Space`."
        )
    if not flat and not curved:
        raise ValueError(f"this coupling measures Euclidean distances, but the latent law is of {latent.metric}.")
    if (edge := reach(latent.kernel)) < np.inf:
        raise ValueError(
            f"the embedding's kernel, {latent.kernel}, is 0 beyond a distance of {edge:.3g}, so nothing draws farther "
            "points together. Take it for the input's graph alone, and a kernel that is positive everywhere here."
        )
    if latent.target_weight:
        raise ValueError(
            f"latent_model must leave target_weight at 0, got {latent.target_weight!r}: classes belong to the input."
        )
    if latent.bandwidth is not None and not isinstance(latent.bandwidth, ConstantBandwidth):
        raise ValueError(
            f"latent_model.bandwidth must be None or ConstantBandwidth, got {latent.bandwidth!r}: "
            "distances in the embedding are not known before it is found."
        )


def check_feasible(posterior: RandomGraph, latent: GraphModel) -> None:
    """Raise unless every graph the posterior can produce is possible under the latent prior."""
    if missing := latent.prior.constraints - posterior.constraints:
        raise ValueError(
            f"the cross-entropy from prior {posterior.code} ({posterior.prior_name}) to prior {latent.prior.code} "
            f"({type(latent.prior).__name__}) is undefined: the embedding's graphs have "
            f"{' and '.join(sorted(missing))}, which the input's graphs need not have, so their support is not "
            "contained. Feasible pairs (input, embedding) are B–B, D–B, D–D, D–E, E–E, and S with each."
        )
