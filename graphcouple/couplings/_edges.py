"""Sums over the edges of a graph: attraction, and the repulsion of a law confined to given edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._formula import Formula
from graphcouple._numba.pairs import sum_edges, sum_pairs
from graphcouple.graphs import FloatArray, IntArray, Support
from graphcouple.kernels import Kernel
from graphcouple.neighbors import graph_distances
from graphcouple.priors import GraphPrior
from graphcouple.radials import LogWeight

_PART_EDGES = 2_000_000
_SINGLE_FROM = 5_000_000


def _unsigned(index: IntArray) -> IntArray:
    return index.astype(np.uint32 if index.size == 0 or index.max() < 2**32 else np.uint64)


def _symmetrised(support: Support, weights: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return m + mᵀ, without zeros, as unsigned row pointers and column indices, and entries.

    A part of the rows at a time: whole, the sum would take several times the memory of its result.
    """
    n, many = support.n_nodes, support.n_edges > _SINGLE_FROM
    matrix = support.to_csr(weights.astype(np.float32 if many else np.float64, copy=False))
    mirrored = sp.csr_array(matrix.T)
    step = max(1, n * _PART_EDGES // max(support.n_edges, 1))
    columns, entries = [], []
    counts = np.zeros(n + 1, dtype=np.int64)
    for a in range(0, n, step):
        part = sp.csr_array(matrix[a : a + step] + mirrored[a : a + step])
        part.eliminate_zeros()
        part.sort_indices()
        columns.append(_unsigned(part.indices))
        entries.append(part.data)
        counts[a + 1 : a + 1 + part.shape[0]] = np.diff(part.indptr)
    del matrix, mirrored
    all_columns = np.concatenate(columns)
    del columns
    return _unsigned(np.cumsum(counts)), all_columns, np.concatenate(entries)


class EdgeEnergy:
    """Σ_ij m_ij φ(d²_ij) and its gradient, for fixed weights m; with φ = log k it is <M, log k_Z>.

    Parameters
    ----------
    support : Support
        The edges with weights; on all pairs the weights are held as a dense array.
    weights : ndarray of shape (n_edges,)
        m. Only m + mᵀ matters, since distances are symmetric.
    radial : Formula
        With ``potential`` = φ and ``slope`` = φ'.
    n_jobs : int or None
        Threads; each row's sum is made by one of them.
    """

    def __init__(self, support: Support, weights: FloatArray, radial: Formula, n_jobs: int | None = None) -> None:
        self.radial = radial
        self.n_jobs = n_jobs
        self._rounded: dict[Any, tuple[Any, ...]] = {}
        if support.complete:
            dense = support.to_array(weights.astype(np.float64, copy=False))
            self._sum: Callable[..., tuple[FloatArray, FloatArray]] = sum_pairs
            self._exact: tuple[Any, ...] = (dense + dense.T,)
            return
        self._sum = sum_edges
        self._exact = _symmetrised(support, weights)

    @property
    def symmetric_weights(self) -> FloatArray:
        """The entries of m + mᵀ."""
        return self._exact[-1]

    @property
    def symmetric_edges(self) -> tuple[IntArray, IntArray, FloatArray]:
        """m + mᵀ as the row pointers, column indices and entries of a csr matrix."""
        if self._sum is sum_edges:
            return self._exact
        matrix = sp.csr_array(self._exact[0])
        return _unsigned(matrix.indptr), _unsigned(matrix.indices), matrix.data

    def _charges_for(self, Z: FloatArray) -> tuple[Any, ...]:
        """Return the weights in the precision of the embedding, which sets how much memory each sum reads."""
        if self._sum is sum_pairs or Z.dtype == self._exact[-1].dtype:
            return self._exact
        if Z.dtype not in self._rounded:
            self._rounded[Z.dtype] = (*self._exact[:-1], self._exact[-1].astype(Z.dtype))
        return self._rounded[Z.dtype]

    def terms(self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True) -> tuple[float, FloatArray]:
        """Return the sum and its gradient in `Z`; what is not wanted has undefined content."""
        value, gradient = self._sum(Z, self.radial, *self._charges_for(Z), self.n_jobs, with_value, with_gradient)
        return 0.5 * float(value.sum()) if with_value else np.nan, gradient


class EdgePartition:
    """The log-partition A(η_Z) of a prior whose edge prior π confines it to given edges, and its gradient.

    η = log π + log k(d²) on the edges; ∂A/∂η is the law's own mean, whatever the
    prior.
    """

    def __init__(
        self,
        prior: GraphPrior,
        support: Support,
        log_prior: FloatArray,
        kernel: Kernel,
        n_jobs: int | None = None,
    ) -> None:
        self.prior = prior
        self.support = support
        self.log_prior = log_prior
        self.kernel = kernel
        self.n_jobs = n_jobs

    def terms(self, Z: FloatArray, *, with_gradient: bool = True) -> tuple[float, FloatArray | None]:
        """Return A and its gradient in `Z`."""
        log_weights = self.log_prior + self.kernel.log(graph_distances(Z, self.support, n_jobs=self.n_jobs))
        law = self.prior.posterior_class(self.support, log_weights)
        if not with_gradient:
            return law.log_partition(), None
        pull = EdgeEnergy(self.support, law.edge_means, LogWeight(self.kernel), self.n_jobs)
        return law.log_partition(), pull.terms(Z, with_value=False)[1]
