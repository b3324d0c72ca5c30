"""Sums over the edges of a graph with fixed weights: the attraction of every method."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._numba.all_pairs import sum_pairs
from graphcouple._numba.pairs import sum_edges
from graphcouple._numba.tables import table_of
from graphcouple._support.validation import changed
from graphcouple.graphs import MANY_EDGES, FloatArray, IntArray, Support
from graphcouple.summation.directions import Edges, both_directions, unsigned
from graphcouple.summation.radials import RadialFunction


class EdgeSum:
    """Σ_ij m_ij φ(d²_ij) and its gradient, for fixed weights m; with φ = log k it is <M, log k_Z>.

    Parameters
    ----------
    support : Support
        The edges with weights. If it holds all pairs, or more than half of them for a function that is quick, the
        weights are stored as a dense array: it takes no more memory, and is summed four times as fast.
    weights : ndarray of shape (n_edges,)
        m. Only m + mᵀ matters, since distances are symmetric.
    radial : RadialFunction
        φ.
    n_jobs : int or None
        Threads; each row is summed by one thread.
    symmetric : bool, default=False
        Whether m is symmetric.
    overwrite : bool, default=False
        Whether the array of weights may be changed, which saves a copy.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> from graphcouple.graphs import Support
    >>> edges = gc.summation.EdgeSum(Support.all_pairs(2), np.array([1.0, 2.0]), gc.summation.LogKernel(gc.Gaussian()))
    >>> edges.evaluate(np.array([[0.0], [2.0]]))[0]
    -6.0
    """

    def __init__(
        self,
        support: Support,
        weights: FloatArray,
        radial: RadialFunction,
        n_jobs: int | None = None,
        symmetric: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.radial, self.n_jobs = radial, n_jobs
        self._rounded: dict[Any, list[Edges]] = {}
        self._dense: FloatArray | None = None
        self._parts: list[Edges] = []
        if support.complete or (2 * support.n_edges > support.n_nodes**2 and not radial.tabulated):
            dense = support.to_csr(weights.astype(np.float64, copy=False)).toarray()
            self._dense = dense + dense.T
            return
        dtype = np.float32 if support.n_edges > MANY_EDGES else np.float64
        weights = weights.astype(dtype, copy=not (overwrite or symmetric))
        if symmetric:
            doubled = np.multiply(weights, 2.0, out=weights if overwrite else None)
            self._parts = [(unsigned(support.indptr), unsigned(support.indices), doubled)]
        else:
            self._parts = both_directions(support, weights, n_jobs)

    def of(self, radial: RadialFunction) -> EdgeSum:
        """Return the sum of another radial function over the same edges."""
        return changed(self, radial=radial)

    @property
    def symmetric_weights(self) -> list[FloatArray]:
        """The entries of m + mᵀ, in one array or two."""
        return [self._dense] if self._dense is not None else [weights for *_, weights in self._parts]

    @property
    def parts(self) -> list[Edges]:
        """Matrices that add up to m + mᵀ, each as the row pointers, column indices and entries of a csr matrix."""
        return self._parts if self._dense is None else [self.symmetric_edges]

    @cached_property
    def symmetric_edges(self) -> Edges:
        """m + mᵀ as the row pointers, column indices and entries of one csr matrix."""
        if len(self._parts) == 1:
            return self._parts[0]
        matrices = self.matrices
        total = sp.csr_array(sum(matrices[1:], matrices[0]))
        total.sort_indices()
        return unsigned(total.indptr), unsigned(total.indices), total.data

    @property
    def matrices(self) -> list[Any]:
        """Matrices that add up to m + mᵀ, without a copy; one dense matrix if it has all pairs."""
        return [_as_matrix(*edges) for edges in self._parts] if self._dense is None else [self._dense]

    def _edges_for(self, Z: FloatArray) -> list[Edges]:
        """Return the edges with weights in the embedding's precision, to read less memory."""
        if all(weights.dtype == Z.dtype for *_, weights in self._parts):
            return self._parts
        if Z.dtype not in self._rounded:
            self._rounded[Z.dtype] = [(starts, ends, m.astype(Z.dtype)) for starts, ends, m in self._parts]
        return self._rounded[Z.dtype]

    def evaluate(
        self, Z: FloatArray, *, with_value: bool = True, with_gradient: bool = True
    ) -> tuple[float, FloatArray]:
        """Return the sum and its gradient in `Z`, in double precision; a result without its flag is arbitrary."""
        outputs = (with_value, with_gradient)
        # Weights get the precision of the points, and would be rounded to integers.
        Z = np.asarray(Z, dtype=np.float32 if Z.dtype == np.float32 else np.float64)
        if self._dense is not None:
            value, gradient = sum_pairs(Z, self.radial, self.n_jobs, self._dense, *outputs)
            return 0.5 * float(value.sum()) if with_value else np.nan, gradient
        # The table's error is below the error of fast sums in single precision.
        source = table_of(self.radial) if Z.dtype == np.float32 and Z.shape[1] == 2 else self.radial
        own, *others = self._edges_for(Z)
        value, gradient = sum_edges(Z, source, *own, self.n_jobs, *outputs)
        for edges in others:
            more, forces = sum_edges(Z, source, *edges, self.n_jobs, *outputs)
            if with_value:
                value += more
            if with_gradient:
                gradient += forces
        return 0.5 * float(value.sum()) if with_value else np.nan, gradient


def _as_matrix(indptr: IntArray, indices: IntArray, weights: FloatArray) -> sp.csr_array:
    # scipy's indices are signed; the unsigned ones here fit, since they use less than half of their range.
    columns, starts = (index.view(index.dtype.name.removeprefix("u")) for index in (indices, indptr))
    return sp.csr_array((weights, columns, starts), shape=(indptr.size - 1,) * 2)
