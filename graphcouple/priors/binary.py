"""Prior B: every ordered pair carries an edge or not, independently."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.special import expit

from graphcouple.graphs import FloatArray, IntArray, Support
from graphcouple.kernels import Kernel
from graphcouple.priors._base import GraphPosterior, GraphPrior, PotentialSum, register
from graphcouple.radials import EdgeLogPartition

BINARY = "at most one edge per pair"


class BinaryPosterior(GraphPosterior):
    """Independent Bernoulli edges with probability e^η/(1 + e^η).

    With ``unordered=True`` it is a law of undirected graphs: the support is
    symmetric, each pair {i, j} is one Bernoulli variable, and all sums run over
    pairs i < j.
    """

    code = "B"
    prior_name = "Binary"
    constraints = frozenset({BINARY})

    def __init__(self, support: Support, log_weights: FloatArray, unordered: bool = False) -> None:
        super().__init__(support, log_weights)
        self._unordered = unordered

    @property
    def unordered(self) -> bool:
        """True for a law of undirected graphs, whose sums run over pairs i < j."""
        return self._unordered

    @property
    def _share(self) -> float:
        return 0.5 if self._unordered else 1.0

    def log_partition(self) -> float:
        """Return Σ log(1 + e^η), in nats."""
        return self._share * float(np.logaddexp(0.0, self.log_weights).sum())

    @cached_property
    def edge_means(self) -> FloatArray:
        """Edge probabilities e^η/(1 + e^η) on the edges of `support`."""
        return expit(self.log_weights)

    def entropy(self) -> float:
        """Return the sum of the edges' entropies, in nats."""
        # Per edge log(1 + e^η) − p η, written in |η| so that a sure edge has entropy 0 exactly.
        size = np.abs(self.log_weights)
        return self._share * float((np.log1p(np.exp(-size)) + size * expit(-size)).sum())

    def _draw(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        if not self._unordered:
            at = np.flatnonzero(rng.random(self.n_edges) < self.edge_means)
            return at, np.ones(at.size, dtype=np.int32)
        upper = np.flatnonzero(self.support.rows < self.support.indices)
        drawn = upper[rng.random(upper.size) < self.edge_means[upper]]
        mirrored = self.support.find(self.support.indices[drawn], self.support.rows[drawn])
        at = np.sort(np.concatenate([drawn, mirrored]))
        return at, np.ones(at.size, dtype=np.int32)

    def _log_base_measure(self, rows: IntArray, counts: FloatArray) -> float:
        return 0.0 if (counts <= 1).all() else -np.inf

    def thresholded(self) -> BinaryPosterior:
        """Return the law of the undirected graph W̃ = 1{W + Wᵀ ≥ 1}.

        Its edges are independent over unordered pairs with probability
        P̃ = P + Pᵀ − P∘Pᵀ (UMAP's fuzzy union; graph-coupling paper, section 3.1).

        Raises
        ------
        ValueError
            When the law is of undirected graphs already.
        """
        if self._unordered:
            raise ValueError("the law is thresholded already: it is over unordered pairs.")
        # 1 − P̃ = (1 − P)(1 − Pᵀ): the pair's log(1 + e^η̃) is the sum of its two directions'.
        softplus = np.logaddexp(0.0, self.log_weights)
        if self.support.complete:
            support = self.support
            mirrored = support.to_csr(softplus).T.tocsr().data
            total = softplus + mirrored
        else:
            # Stored zeros survive neither sparse addition nor subtraction, so positions are kept as i·n + j.
            n = np.int64(self.n_nodes)
            keys = self.support.keys
            swapped = self.support.indices.astype(np.int64) * n + self.support.rows
            union, inverse = np.unique(np.concatenate([keys, swapped]), return_inverse=True)
            total = np.bincount(inverse, weights=np.concatenate([softplus, softplus]), minlength=union.size)
            dtype = self.support.indices.dtype if union.size <= np.iinfo(np.int32).max else np.int64
            indptr = np.searchsorted(union, np.arange(n + 1) * n).astype(dtype)
            support = Support(indptr, (union % n).astype(dtype))
        log_odds = total + np.log(-np.expm1(-np.maximum(total, np.finfo(np.float64).tiny)))
        return BinaryPosterior(support, log_odds, unordered=True)


@register
@dataclass(frozen=True, eq=False, repr=False)
class Binary(GraphPrior):
    """Prior B: W_ij ∈ {0, 1}, independently.

    The posterior has edge probabilities k/(1 + k), so a kernel with k ≤ 1 never
    gives an edge a probability above ½: wrap a kernel that states probabilities
    in `Odds`. The prior of UMAP (either side) and of LargeVis (embedding).

    Parameters
    ----------
    edge_prior : float, array, sparse matrix, networkx or igraph graph, optional
        π; None favours all pairs alike.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> gc.Binary().posterior(np.zeros((2, 2))).mean()
    array([[0. , 0.5],
           [0.5, 0. ]])
    """

    code: ClassVar[str] = "B"
    constraints: ClassVar[frozenset[str]] = frozenset({BINARY})
    posterior_class: ClassVar[type[GraphPosterior]] = BinaryPosterior
    start_scale: ClassVar[float] = 10.0
    momentum: ClassVar[float] = 0.8

    def learning_rate(self, n_points: int, attraction: float) -> float:
        """Return n/36, whatever the attraction's weight.

        The repulsion is not normalised, so its stiffness does not follow the attraction; n/36 is the best
        of a geometric grid on iris, digits and MNIST (150 to 4,000 points), for LargeVis and UMAP alike.
        """
        return n_points / 36.0

    def log_partition_and_grad(
        self,
        kernel: Kernel,
        Z: FloatArray,
        summation: PotentialSum,
        *,
        with_value: bool = True,
        with_gradient: bool = True,
    ) -> tuple[float, FloatArray | None]:
        """Return Σ_{i≠j} log(1 + k(d²_ij)) and its gradient 2 ∇Φ_i[log(1 + k); 1]."""
        potential, gradient = summation.potential(
            Z, EdgeLogPartition(kernel), with_potential=with_value, with_gradient=with_gradient
        )
        value = float(potential.sum()) if with_value else np.nan
        return value, 2.0 * gradient if with_gradient else None


def threshold(posterior: GraphPosterior) -> BinaryPosterior:
    """Return the thresholded law of a posterior with independent edges.

    Raises
    ------
    ValueError
        When the posterior's edges are not independent (priors D and E).
    """
    if not isinstance(posterior, BinaryPosterior):
        raise ValueError(
            f"symmetrize='threshold' needs prior B, whose edges are independent; got {posterior.prior_name}."
        )
    return posterior.thresholded()


__all__ = ["Binary", "BinaryPosterior", "threshold"]
