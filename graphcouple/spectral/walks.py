"""Random walks on a graph: their powers, entropies and potentials, and the cells of landmarks."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from graphcouple.graphs import FloatArray, IntArray

# Added to each probability, as in the original, so that its logarithm is finite.
_FLOOR = 1e-7


def lazy_walk(affinity: sp.csr_array) -> sp.csr_array:
    """Return the matrix of a walk that stays with probability ½, and else follows an edge in proportion to its weight.

    A lazy walk has no negative eigenvalue, even on a bipartite graph. On a node without edges it stays.
    """
    degrees = np.asarray(affinity.sum(axis=1)).ravel()
    half = sp.diags_array(np.where(degrees > 0, 0.5 / np.where(degrees > 0, degrees, 1.0), 0.0))
    return sp.csr_array(half @ affinity + sp.diags_array(np.where(degrees > 0, 0.5, 1.0)))


def cells(affinity: sp.csr_array, landmarks: IntArray) -> IntArray:
    """Return the landmark with the most likely path to each node; each component needs a landmark.

    The length of a path is the sum of −log a_ij/√(d_i d_j) over its edges.
    """
    degrees = np.asarray(affinity.sum(axis=1)).ravel()
    edges = sp.coo_array(affinity)
    # A shift keeps edges of length 0, which SciPy reads as absent.
    lengths = 1e-12 - np.log(np.minimum(edges.data / np.sqrt(degrees[edges.row] * degrees[edges.col]), 1.0))
    graph = sp.csr_array((lengths, (edges.row, edges.col)), shape=affinity.shape)
    _, _, sources = sp.csgraph.dijkstra(graph, indices=landmarks, min_only=True, return_predecessors=True)
    return np.searchsorted(landmarks, sources)


def between_cells(walk: sp.csr_array, mass: FloatArray, cell: IntArray) -> tuple[sp.csr_array, FloatArray]:
    """Return a walk between cells of nodes, and the mass of each cell.

    Within a cell, the walk's distribution over nodes is proportional to `mass`.
    """
    n = cell.size
    member = sp.csr_array((np.ones(n), (np.arange(n), cell)), shape=(n, int(cell.max()) + 1))
    total = np.asarray(member.T @ mass)
    return sp.csr_array(sp.diags_array(1.0 / total) @ member.T @ sp.diags_array(mass) @ walk @ member), total


def entropies(eigenvalues: FloatArray, most: int) -> FloatArray:
    """Return the von Neumann entropy of the powers 1 to `most` of a walk: −Σ p log p, p = λᵗ/Σ λᵗ."""
    powers = np.maximum(eigenvalues, 0.0)[None, :] ** np.arange(1, most + 1)[:, None]
    shares = powers / powers.sum(axis=1, keepdims=True)
    return -np.where(shares > 0, shares * np.log(np.where(shares > 0, shares, 1.0)), 0.0).sum(axis=1)


def knee(values: FloatArray) -> int:
    """Return the index that splits a curve for the best least-squares fit of two lines."""
    at = np.arange(values.size)

    def residual(part: slice) -> float:
        line = np.polynomial.Polynomial.fit(at[part], values[part], 1)
        return float(np.square(line(at[part]) - values[part]).sum())

    breaks = range(1, values.size - 1)
    return min(breaks, key=lambda k: residual(slice(0, k + 1)) + residual(slice(k, None)), default=0)


def potentials(walk: FloatArray, gamma: float = 1.0) -> FloatArray:
    """Return −log(P + 10⁻⁷) for γ = 1, else 2/(1 − γ) P^((1 − γ)/2), of probabilities of a walk."""
    return -np.log(walk + _FLOOR) if gamma == 1.0 else (2.0 / (1.0 - gamma)) * walk ** (0.5 * (1.0 - gamma))
