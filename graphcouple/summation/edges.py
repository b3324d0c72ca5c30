"""Sums over the edges of a graph with fixed weights: the attraction of every method."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._numba.pairs import sum_edges, sum_pairs, worth_threads
from graphcouple.graphs import MOST_INT32, FloatArray, IntArray, Support
from graphcouple.summation.radials import RadialFunction

# Edges symmetrised at once: with their mirror images and the sums, 8 million entries of 12 bytes, or 100 MB.
_PART_EDGES = 2_000_000

# Above this many edges, weights are kept in single precision: reading memory sets the time of a sum.
_SINGLE_FROM = 5_000_000


def _unsigned(index: IntArray) -> IntArray:
    return index.astype(np.uint32 if index.size == 0 or index.max() < 2**32 else np.uint64)


def _symmetrised(support: Support, weights: FloatArray) -> tuple[IntArray, IntArray, FloatArray]:
    """Return m + mᵀ, without zeros, as unsigned row pointers and column indices, and entries.

    It works on some rows at a time: done at once, the sum would take several times the memory of its result.
    """
    n, many = support.n_nodes, support.n_edges > _SINGLE_FROM
    weights = weights.astype(np.float32 if many else np.float64, copy=False)
    # Rows with so few edges together that their indices fit in 32 bits.
    bounds = np.unique(np.r_[np.searchsorted(support.indptr, np.arange(0, support.n_edges, MOST_INT32)), n])
    bounds[0] = 0
    mirrored = [sp.csr_array(support.part(weights, a, b).T) for a, b in pairwise(bounds.tolist())]
    step = max(1, n * _PART_EDGES // max(support.n_edges, 1))
    columns, entries = [], []
    counts = np.zeros(n + 1, dtype=np.int64)
    for a in range(0, n, step):
        beside = [block[a : a + step] for block in mirrored]
        back = beside[0] if len(beside) == 1 else sp.hstack(beside, format="csr")
        part = sp.csr_array(support.part(weights, a, min(a + step, n)) + back)
        part.eliminate_zeros()
        part.sort_indices()
        columns.append(_unsigned(part.indices))
        entries.append(part.data)
        counts[a + 1 : a + 1 + part.shape[0]] = np.diff(part.indptr)
    del mirrored
    all_columns = np.concatenate(columns)
    del columns
    return _unsigned(np.cumsum(counts)), all_columns, np.concatenate(entries)


class EdgeSum:
    """Σ_ij m_ij φ(d²_ij) and its gradient, for fixed weights m; with φ = log k it is <M, log k_Z>.

    Parameters
    ----------
    support : Support
        The edges with weights. If it holds all pairs, the weights are stored as a dense array.
    weights : ndarray of shape (n_edges,)
        m. Only m + mᵀ matters, since distances are symmetric.
    radial : RadialFunction
        φ.
    n_jobs : int or None
        Threads; each row is summed by one thread.
    """

    def __init__(
        self, support: Support, weights: FloatArray, radial: RadialFunction, n_jobs: int | None = None
    ) -> None:
        self.radial = radial
        self.n_jobs = n_jobs
        self._rounded: dict[Any, tuple[Any, ...]] = {}
        self._table: FloatArray | None = None
        if support.complete:
            dense = support.to_array(weights.astype(np.float64, copy=False))
            self._sum: Callable[..., tuple[FloatArray, FloatArray]] = sum_pairs
            self._exact: tuple[Any, ...] = (dense + dense.T,)
            return
        self._sum = sum_edges
        self._exact = _symmetrised(support, weights)

    def of(self, radial: RadialFunction) -> EdgeSum:
        """Return the sum of another radial function over the same edges."""
        other = copy.copy(self)
        other.radial, other._table = radial, None
        return other

    @property
    def symmetric_weights(self) -> FloatArray:
        """The entries of m + mᵀ."""
        return self._exact[-1]

    @property
    def symmetric_edges(self) -> tuple[IntArray, IntArray, FloatArray]:
        """m + mᵀ as the row pointers, column indices and entries of a csr matrix."""
        return self._exact if self._sum is sum_edges else self._sparse

    @cached_property
    def _sparse(self) -> tuple[IntArray, IntArray, FloatArray]:
        matrix = sp.csr_array(self._exact[0])
        return _unsigned(matrix.indptr), _unsigned(matrix.indices), matrix.data

    def _charges_for(self, Z: FloatArray) -> tuple[Any, ...]:
        """Return the weights in the precision of the embedding, so that a sum reads no more memory than it needs."""
        if self._sum is sum_pairs or Z.dtype == self._exact[-1].dtype:
            return self._exact
        if Z.dtype not in self._rounded:
            self._rounded[Z.dtype] = (*self._exact[:-1], self._exact[-1].astype(Z.dtype))
        return self._rounded[Z.dtype]

    @property
    def symmetric_matrix(self) -> Any:
        """m + mᵀ as a matrix, dense if it has all pairs, which shares its memory."""
        if self._sum is sum_pairs:
            return self._exact[0]
        # scipy's indices are signed; fewer than half of the unsigned ones are in use.
        indptr, indices = (of.view(of.dtype.name.removeprefix("u")) for of in self._exact[:2])
        n = len(indptr) - 1
        return sp.csr_array((self._exact[2], indices, indptr), shape=(n, n))

    def evaluate(
        self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True
    ) -> tuple[float, FloatArray]:
        """Return the sum and its gradient in `Z`, in double precision; what was not asked for is arbitrary."""
        charges = self._charges_for(Z)
        if self._sum is sum_edges and Z.dtype == np.float32 and Z.shape[1] == 2:
            value, gradient = self._from_table(Z, charges, with_value, with_gradient)
        else:
            value, gradient = self._sum(Z, self.radial, *charges, self.n_jobs, with_value, with_gradient)
        return 0.5 * float(value.sum()) if with_value else np.nan, gradient

    def _from_table(self, Z: FloatArray, charges: Any, *wanted: bool) -> tuple[FloatArray, FloatArray]:
        """Return the sums with a tabulated function, whose error is below that of fast sums in single precision."""
        from graphcouple._numba.tables import edge_rows_from_table, table_of
        from graphcouple._numba.threads import over_rows

        if self._table is None:
            self._table = table_of(self.radial)
        value, gradient = np.empty(len(Z)), np.empty(Z.shape)
        arrays = (np.ascontiguousarray(Z), self._table, *charges, *wanted, value, gradient)
        at_least = worth_threads(charges[1].size // len(Z))
        over_rows(len(Z), self.n_jobs, edge_rows_from_table, *arrays, at_least=at_least)
        return value, gradient
