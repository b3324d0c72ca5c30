"""Locally linear embedding with a kernel on the embedding.

    L(Y) = Tr(M K_Y) + (1/n) Σ_ij k(d²_ij),   M = (I − W)ᵀ(I − W)

W reconstructs each point from its neighbours, with weights that sum to 1. Tr(M K_Y) is the error of the same
reconstruction in the kernel's space, and the second term keeps points apart: it stands for LLE's constraint K_Y = n I.
A pair's force has the coefficient −w_ij − w_ji + [WᵀW]_ij + 1/n. M is sparse, so the first term is a sum over edges;
the second is a sum over all pairs.

References
----------
Draganov and Dohn (2023), Unexplainable explanations, section 5.2 and lemma 4; Roweis and Saul (2000) for W.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._support.validation import check_positive
from graphcouple.couplings.base import Attraction, Objective
from graphcouple.couplings.confinement import Confinement
from graphcouple.couplings.fixed_map import MatchedMap, Placing
from graphcouple.couplings.kinds import InParts
from graphcouple.couplings.pair import EdgeEnergy, check_latent
from graphcouple.couplings.recipes import Coupling, Problem, register
from graphcouple.graphs import FloatArray, Support, as_csr, edges_of
from graphcouple.kernels import Kernel
from graphcouple.kernels.base import require_kernel
from graphcouple.summation import EdgeSum, KernelValue, LogKernel, Summation, as_summation

# A kernel above this at distance 0 counts as infinite there, because infinite odds are capped: a tolerance.
_LARGEST = 1e6

# Attraction by the whole of log k shrinks noise before it can spread. A twentieth untangles noise equally well.
_EXAGGERATED_SHARE = 0.05

# Rows whose neighbourhoods are solved at once; scikit-learn copies the points of all neighbourhoods.
_ROWS_AT_ONCE = 4096


def reconstruction_weights(
    X: Any, support: Support, reg: float = 1e-3, X_new: Any = None, kernel: Kernel | None = None
) -> sp.csr_array:
    """Return the weights that reconstruct each point from its neighbours; each row sums to 1.

    Without a kernel, scikit-learn's routine computes them.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    support : Support
        The neighbours, equally many of each point.
    reg : float, default=1e-3
        Added to the diagonal of each neighbourhood's Gram matrix, relative to its trace.
    X_new : array or sparse matrix of shape (n_new, p), optional
        The points to reconstruct, one for each row of the support; X itself by default.
    kernel : Kernel, optional
        The kernel in whose space points are reconstructed; by default, the space of X. The unit of distances is a
        point's root mean square distance to its neighbours.

    Raises
    ------
    ValueError
        When points have different numbers of neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import reconstruction_weights
    >>> from graphcouple.neighbors import nearest_neighbors
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> reconstruction_weights(X, nearest_neighbors(X, 2)[0]).toarray().round(2).tolist()[1]
    [0.67, 0.0, 0.33]
    """
    from sklearn.manifold._locally_linear import barycenter_weights

    counts = np.diff(support.indptr)
    if (counts != counts[0]).any():
        raise ValueError("reconstruction weights need equally many neighbors of each point; set n_neighbors.")
    neighbors = support.indices.reshape(support.n_nodes, -1)
    weights = np.empty(neighbors.shape)
    for a in range(0, support.n_nodes, _ROWS_AT_ONCE):
        rows = slice(a, a + _ROWS_AT_ONCE)
        part = neighbors[rows]
        unique, positions = np.unique(part, return_inverse=True)
        own, ends, at = _dense((X if X_new is None else X_new)[rows]), _dense(X[unique]), positions.reshape(part.shape)
        if kernel is None:
            weights[rows] = barycenter_weights(own, ends, at, reg=reg)
        else:
            weights[rows] = _weights_by_kernel(own, ends[at], kernel, reg)
    return sp.csr_array((weights.ravel(), support.indices, support.indptr), shape=(support.n_nodes, X.shape[0]))


def _weights_by_kernel(points: FloatArray, neighbors: FloatArray, kernel: Kernel, reg: float) -> FloatArray:
    """Return the weights that reconstruct points from their neighbours, of shape (n, k, p), in a kernel's space.

    The Gram matrix around x, with neighbours x_j, is k(0) − k(x, x_j) − k(x, x_l) + k(x_j, x_l).
    """
    to_own = np.square(neighbors - points[:, None]).sum(axis=2)
    unit = to_own.mean(axis=1, keepdims=True)
    unit = np.where(unit > 0, unit, 1.0)
    between = np.square(neighbors[:, :, None] - neighbors[:, None]).sum(axis=3) / unit[:, :, None]
    near, top = np.exp(kernel.log(to_own / unit)), float(np.exp(kernel.log(np.zeros(1)))[0])
    gram = top - near[:, :, None] - near[:, None] + np.exp(kernel.log(between))
    added = reg * np.trace(gram, axis1=1, axis2=2)
    gram += np.where(added > 0, added, reg)[:, None, None] * np.eye(neighbors.shape[1])
    weights = np.linalg.solve(gram, np.ones((*near.shape, 1)))[:, :, 0]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _dense(X: Any) -> FloatArray:
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


class ReconstructionEnergy(InParts, Placing):
    """Tr(M K_Y) + (1/n) Σ_ij k(d²_ij), as a function of the embedding.

    Parameters
    ----------
    weights : sparse matrix of shape (n, n)
        W; see `reconstruction_weights`.
    kernel : Kernel
        k, largest at distance 0.
    summation : str or Summation, default="auto"
        How the sum over all pairs is computed.
    n_jobs : int or None, default=None

    Raises
    ------
    TypeError, ValueError
        When an argument has the wrong type, or the kernel is infinite at distance 0.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(40, 5))
    >>> support, _ = gc.neighbors.nearest_neighbors(X, 6)
    >>> energy = gc.couplings.ReconstructionEnergy(gc.couplings.reconstruction_weights(X, support), gc.Student())
    >>> energy.value_and_grad(X[:, :2])[1].shape
    (40, 2)
    """

    def __init__(
        self, weights: Any, kernel: Kernel, summation: str | Summation = "auto", n_jobs: int | None = None
    ) -> None:
        require_kernel(kernel)
        W = as_csr(weights, "weights")
        self.kernel, self.radial, self.n_points = kernel, KernelValue(kernel), W.shape[0]
        self.summation = as_summation(summation, n_jobs)
        with np.errstate(divide="ignore"):
            self._at_zero = float(kernel.value(np.zeros(1))[0])
        if not self._at_zero < _LARGEST:
            raise ValueError(f"{kernel!r} is infinite at distance 0, and so would be Tr(M K_Y); take a bounded kernel.")
        residual = sp.csr_array(sp.eye_array(self.n_points, format="csr") - W)
        M = sp.csr_array(residual.T @ residual)
        M.sort_indices()
        support, entries = edges_of(M)
        self._least_edges = float(np.minimum(entries, 0.0).sum())
        self._constant = (float(M.diagonal().sum()) + 1.0) * self._at_zero
        self.edges = EdgeSum(support, entries, self.radial, n_jobs)
        near, weight = edges_of(W)
        self._crowd, attracts = near.n_edges / self.n_points, weight > 0
        attraction = EdgeSum(near.select(attracts), weight[attracts], LogKernel(kernel), n_jobs)
        self.strength = EdgeEnergy(attraction, self.n_points)

    @property
    def attracting(self) -> Attraction:
        """The attraction by positive weights, at any distance; the pull of the energy fades with the kernel's values.

        Noise, in which neighbours reconstruct nothing, has a higher energy than all points in one place; smooth maps
        have the lowest energy of the three.
        """
        return Attraction(source=self, times=self._times, confinement=self._confinement, shrinks_noise=True, fades=True)

    def _confinement(self) -> Objective:
        """Return the bound on the size of the map, times the height of the loss.

        The maps of connected data then end at D of 0.07 to 0.3 L (noise, digits, a swiss roll).
        """
        length, tail = self.kernel.length, self.kernel.tail
        bound = Confinement(self.n_points, length, self._crowd, tail=tail, n_jobs=self.edges.n_jobs)
        return -self._least_edges * self._at_zero / self.n_points * bound

    def _times(self, factor: float) -> Objective:
        """Return the energy − (α − 1)/20 Σ max(w_ij, 0) log k: neighbours attract at any distance."""
        return self if factor == 1.0 else self + (1.0 - factor) * _EXAGGERATED_SHARE * self.strength

    def _evaluate(self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True) -> tuple[float, Any]:
        """Return the energy and its gradient Σ_j (M_ij + 1/n) 2k'(d²_ij) · 2 (z_i − z_j)."""
        points, radial = self._points(Z), self.radial
        near, pull = self.edges.evaluate(points, with_value=with_value, with_gradient=with_gradient)
        far, push = self.summation.potential(points, radial, with_potential=with_value, with_gradient=with_gradient)
        value = near + float(far.sum()) / self.n_points + self._constant if with_value else np.nan
        if not with_gradient:
            return value, None
        return value, (pull + 2.0 / self.n_points * push).astype(points.dtype, copy=False)

    def fixed_map(self, Z: FloatArray) -> MatchedMap:
        """Return the map, in which a new point is reconstructed by the means of its edges, which also sum to 1."""
        return MatchedMap(self._points(Z), self.radial, self.radial, 1.0 / self.n_points, self.summation)

    @property
    def lower_bound(self) -> float:
        """The energy if all pairs that attract coincide and all other pairs are far apart."""
        return self._least_edges * self._at_zero + self._constant


@register("reconstruction")
@dataclass(frozen=True)
class ReconstructionCoupling(Coupling):
    """Locally linear embedding with the latent kernel; see `ReconstructionEnergy`.

    The neighbours come from the input's law, which must have equally many neighbours for each point. The law's
    probabilities and the latent prior are not used.

    Parameters
    ----------
    reg : float, default=1e-3
        Regularisation of the weights.
    input_kernel : Kernel, optional
        k_x, in whose space points are reconstructed; None for the space of X.

    Examples
    --------
    >>> import graphcouple as gc
    >>> gc.TwoKernelLLE().sentence.coupling
    ReconstructionCoupling(reg=0.001, input_kernel=None)
    """

    reg: float = 1e-3
    input_kernel: Kernel | None = None

    def __post_init__(self) -> None:
        check_positive("reg", self.reg)
        if self.input_kernel is not None:
            require_kernel(self.input_kernel)

    def bind(self, problem: Problem) -> ReconstructionEnergy:
        problem.refuse_weights(self)
        check_latent(problem.latent)
        if problem.latent.bandwidth is not None:
            raise ValueError(f"reconstruction takes no bandwidth of the embedding, got {problem.latent.bandwidth!r}.")
        support = problem.posterior.support
        weights = reconstruction_weights(problem.coordinates, support, self.reg, kernel=self.input_kernel)
        return ReconstructionEnergy(weights, problem.latent.kernel, problem.summation, problem.n_jobs)

    def __str__(self) -> str:
        return "reconstruction from neighbors, in the kernel's space"
