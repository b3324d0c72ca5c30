"""Laplacians of graphs: their eigenvectors place nodes, and their eigenvalues indicate clusters.

    L = D − A,   Tr(Zᵀ L Z) = ½ Σ_ij a_ij ‖z_i − z_j‖²

with a symmetric matrix A of weights and its row sums D. Laplacian eigenmaps minimise this sum over all Z of unit
covariance, with nodes weighted by their degrees (Zᵀ D Z, the normalised problem) or equally (Zᵀ Z). Locally linear
embedding is the second problem for A = W + Wᵀ − Wᵀ W, with W the weights that reconstruct each point: rows of W sum to
1, so D is the identity, and L is M = (I − W)ᵀ (I − W).

References
----------
Lecture notes, sections 1.3 and 1.4. Belkin and Niyogi (2003), Laplacian eigenmaps for dimensionality reduction and data
representation. Roweis and Saul (2000), Nonlinear dimensionality reduction by locally linear embedding.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from graphcouple._support.validation import check_integer
from graphcouple.graphs import FloatArray, IntArray, Support, as_csr
from graphcouple.spectral.eigen import SYMMETRIC, smallest

# A gap is large if it is at least this share of the largest gap.
_LARGE_GAP = 0.75

# Edges of a normalised graph below this are lost to rounding.
_NEGLIGIBLE = 1e-12


class Parts(NamedTuple):
    """The connected components of a graph: how many there are, and the component of each node, of shape (n,)."""

    n_parts: int
    labels: IntArray

    @property
    def sizes(self) -> IntArray:
        """The number of nodes of each component."""
        return np.bincount(self.labels, minlength=self.n_parts)

    def members(self) -> list[IntArray]:
        """Return the nodes of each component, in ascending order."""
        return np.split(np.argsort(self.labels, kind="stable"), np.cumsum(self.sizes)[:-1])

    def means(self, X: Any) -> FloatArray:
        """Return the mean of each component's points, of shape (n_parts, n_features)."""
        n = self.labels.size
        member = sp.csr_array((np.ones(n), (self.labels, np.arange(n))), shape=(self.n_parts, n))
        sums = member @ (sp.csr_array(X) if sp.issparse(X) else np.asarray(X, dtype=np.float64))
        return np.asarray(sums.toarray() if sp.issparse(sums) else sums) / self.sizes[:, None]


class GraphLaplacian:
    """The Laplacian D − A of a graph with symmetric weights A of at least 0; the diagonal is ignored.

    Edges so weak that rounding hides them (below 1e-12 of both ends' degrees) are left out. If `normalized`, the weight
    of a node, its `mass`, is its degree, which gives the eigenvectors of D⁻¹ L; else it is 1. Other weights raise
    `ValueError`.
    """

    squared = False
    """Whether the matrix is a square, so that its smallest eigenvalues lie close to 0, and to each other."""

    def __init__(self, affinity: Any, normalized: bool = True) -> None:
        A = as_csr(affinity, "affinity").astype(np.float64)
        if not np.isfinite(A.data).all() or (A.data < 0).any():
            raise ValueError(
                f"the graph's weights must be finite and at least 0, got {float(A.data.min(initial=0.0)):.3g} to "
                f"{float(A.data.max(initial=0.0)):.3g}; pass similarities, not distances or correlations below 0."
            )
        others = A - sp.diags_array(A.diagonal(), format="csr")
        gap, heaviest = sp.coo_array(abs(A - A.T)), others.max(axis=1).toarray().ravel()
        if (gap.data > SYMMETRIC * np.maximum(heaviest[gap.row], heaviest[gap.col])).any():
            raise ValueError("affinity must be symmetric; take A + A.T.")
        self._take(_without_weak_edges(A), normalized)

    @classmethod
    def of_symmetric(cls, affinity: sp.csr_array, normalized: bool = True) -> GraphLaplacian:
        """Return the Laplacian of a matrix known to be symmetric, of finite weights of at least 0: checks take long."""
        self = cls.__new__(cls)
        self._take(_without_weak_edges(affinity), normalized)
        return self

    def _take(self, A: sp.csr_array, normalized: bool) -> None:
        self.affinity, self.normalized = A, normalized
        self.degrees = np.asarray(A.sum(axis=1)).ravel()
        self.mass = np.where(self.degrees > 0, self.degrees, 1.0) if normalized else np.ones(A.shape[0])

    @property
    def n_nodes(self) -> int:
        """n."""
        return self.mass.size

    @cached_property
    def components(self) -> Parts:
        """The connected components."""
        return Parts(*connected_components(self.affinity, directed=False))

    def among(self, members: IntArray) -> GraphLaplacian:
        """Return the Laplacian of some of the nodes."""
        return GraphLaplacian.of_symmetric(self.affinity[members][:, members], self.normalized)

    def times(self, V: FloatArray) -> FloatArray:
        """Return D^{-½} L D^{-½} V if normalised, else L V, for V of shape (n,) or (n, m)."""
        diagonal = self._diagonal if V.ndim == 1 else self._diagonal[:, None]
        return np.asarray(diagonal * V - self._similarity @ V)

    def flipped(self, v: FloatArray) -> FloatArray:
        """Return D^{-½} A D^{-½} v if normalised, else (bound − L) v, for v of shape (n,)."""
        return np.asarray(self._similarity @ v if self.normalized else self.bound * v - self.times(v))

    @cached_property
    def _similarity(self) -> sp.csr_array:
        """D^{-½} A D^{-½} if normalised, else A."""
        return normalized_similarity(self.affinity) if self.normalized else self.affinity

    @property
    def _diagonal(self) -> FloatArray:
        return (self.degrees > 0).astype(np.float64) if self.normalized else self.degrees

    @property
    def matrix(self) -> sp.csr_array:
        """D^{-½} L D^{-½} if normalised, else L."""
        return sp.csr_array(sp.diags_array(self._diagonal) - self._similarity)

    @property
    def bound(self) -> float:
        """An upper bound of the eigenvalues of `matrix`."""
        return 2.0 if self.normalized else 2.0 * float(self.degrees.max())

    def value(self, Z: FloatArray) -> float:
        """Return Tr(Zᵀ L Z) = ½ Σ_ij a_ij ‖z_i − z_j‖²."""
        points = np.asarray(Z, dtype=np.float64)
        V = (points - points.mean(axis=0)) * np.sqrt(self.mass)[:, None]
        return float((V * self.times(V)).sum())

    def embedding(self, n_components: int, tol: float = 1e-10) -> tuple[FloatArray, FloatArray]:
        """Return the smallest eigenvalues above the first, and coordinates of shape (n, n_components).

        The coordinates have mean 0 and unit covariance, with each node weighed by `mass`. The graph must be connected.
        `tol` is the residual of the eigenvectors, relative to `bound`.
        """
        if not 1 <= n_components < self.n_nodes:
            raise ValueError(f"n_components={n_components} must be below the number of nodes, {self.n_nodes}.")
        roots = np.sqrt(self.mass)
        norm = float(np.linalg.norm(roots))
        pairs = smallest(self, n_components, roots / norm, tol)
        return pairs.values, pairs.vectors * (norm / roots)[:, None]


class ReconstructionLaplacian(GraphLaplacian):
    """M = (I − W)ᵀ (I − W) for sparse W whose rows sum to 1: the Laplacian of W + Wᵀ − Wᵀ W, which can be negative."""

    squared = True

    def __init__(self, weights: Any) -> None:
        self.affinity = sp.csr_array(weights, dtype=np.float64)
        self.normalized = False
        self.mass = np.ones(self.affinity.shape[0])

    @cached_property
    def _residual(self) -> tuple[sp.csr_array, sp.csr_array]:
        residual = sp.csr_array(sp.eye_array(self.n_nodes) - self.affinity)
        return residual, sp.csr_array(residual.T)

    def among(self, members: IntArray) -> ReconstructionLaplacian:
        return ReconstructionLaplacian(self.affinity[members][:, members])

    def times(self, V: FloatArray) -> FloatArray:
        """Return M V; products with W and Wᵀ take a fraction of the time of a product with M."""
        residual, transpose = self._residual
        return np.asarray(transpose @ (residual @ V))

    @cached_property
    def matrix(self) -> sp.csr_array:
        """M."""
        residual, transpose = self._residual
        return sp.csr_array(transpose @ residual)

    @cached_property
    def bound(self) -> float:
        """An upper bound of the eigenvalues of M: the product of the largest row and column sums of abs(I − W)."""
        residual = abs(self._residual[0])
        return float(residual.sum(axis=0).max() * residual.sum(axis=1).max())


def _without_weak_edges(A: sp.csr_array) -> sp.csr_array:
    """Return a graph without its diagonal and without edges that rounding hides from the eigenvectors."""
    edges = Support(A.indptr, A.indices)
    keep = edges.rows != edges.indices
    roots = np.sqrt(np.bincount(edges.rows, weights=np.where(keep, A.data, 0.0), minlength=A.shape[0]))
    keep &= A.data > _NEGLIGIBLE * roots[edges.rows] * roots[edges.indices]
    return A if keep.all() else edges.select(keep).to_csr(A.data[keep])


def graph_laplacian(posterior: Any, normalized: bool = True) -> GraphLaplacian:
    """Return the mean Laplacian E[L(W)] of a `RandomGraph`, whose weights are W̄ = W + Wᵀ.

    References
    ----------
    Graph-coupling paper, section 3.2: under a Gaussian latent kernel, −E[log k] of the embedding is ½ Tr(Zᵀ E[L] Z).
    """
    means = posterior.support.to_csr(np.asarray(posterior.edge_means, dtype=np.float64))
    affinity = sp.csr_array(means + means.T)
    affinity.sum_duplicates()
    if not (affinity.data >= 0.0).all() or not np.isfinite(affinity.data.max(initial=0.0)):
        raise ValueError("the law's mean edges hold NaN, infinity or numbers below 0; correct its edge_means.")
    return GraphLaplacian.of_symmetric(affinity, normalized)


def normalized_similarity(affinity: Any) -> sp.csr_array:
    """Return D^{-½} A D^{-½} for a symmetric matrix A of weights with row sums D; rows of zeros stay zero."""
    A = as_csr(affinity, "affinity").astype(np.float64, copy=False)
    degrees = np.asarray(A.sum(axis=1)).ravel()
    shrink = np.where(degrees > 0, 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0)), 0.0)
    # Products with diagonal matrices would copy the indices too.
    values = np.repeat(shrink, np.diff(A.indptr)) * A.data
    values *= shrink[A.indices]
    return sp.csr_array((values, A.indices, A.indptr), shape=A.shape)


def laplacian_eigenvalues(affinity: Any, n_eigenvalues: int) -> FloatArray:
    """Return the smallest eigenvalues of the normalised Laplacian I − D^{-½} A D^{-½} of a graph, in ascending order.

    `GraphLaplacian` says which matrices A it takes. Each component of the graph, and so a node without edges, has one
    eigenvalue 0.
    """
    graph, k = GraphLaplacian(affinity), check_integer("n_eigenvalues", n_eigenvalues, 1)
    if k > graph.n_nodes:
        raise ValueError(f"n_eigenvalues={k} must be at most the number of nodes, {graph.n_nodes}.")
    return _smallest_eigenvalues(graph, k)


def _smallest_eigenvalues(graph: GraphLaplacian, k: int) -> FloatArray:
    # Each component has its own eigenvalue 0.
    if graph.components.n_parts > 1:
        parts = [_smallest_eigenvalues(graph.among(rows), min(k, rows.size)) for rows in graph.components.members()]
        return np.sort(np.concatenate(parts))[:k]
    return np.r_[0.0, graph.embedding(k - 1)[0]] if k > 1 else np.zeros(1)


def eigengaps(eigenvalues: FloatArray) -> IntArray:
    """Return the numbers k of eigenvalues below a large gap, in ascending order.

    A gap is large if it is at least three quarters of the largest; a gap after the first eigenvalue does not count.
    """
    gaps = np.diff(np.asarray(eigenvalues, dtype=np.float64))[1:]
    return np.flatnonzero(gaps >= _LARGE_GAP * gaps.max()) + 2 if gaps.size else np.array([1])
