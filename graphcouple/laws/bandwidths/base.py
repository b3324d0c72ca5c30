"""Bandwidths: how each point rescales its distances before the kernel is applied.

A bandwidth gives every node a shift ρ_i and a scale τ_i, and the kernel is
evaluated at ((d_ij − ρ_i)₊ / τ_i)² (graph-coupling paper, remark 1; UMAP's shift).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.csgraph import connected_components

from graphcouple._support.validation import check_positive
from graphcouple.graphs import FloatArray, IntArray, Support, pairs_of
from graphcouple.kernels import Gaussian, Kernel
from graphcouple.laws.copies import Copies


@dataclass(frozen=True, eq=False)
class DistanceRows:
    """Squared distances along the edges of a graph, and the kernel of the rescaled distances.

    `copies` are the numbers of copies of weighted points. If rows are a subset of the nodes, `places` has a number for
    the place of each end node; else distances of 0 identify places. `drawn_by` is the prior's; see `GraphPrior`.
    """

    support: Support
    sq_dist: FloatArray
    kernel: Kernel
    n_jobs: int | None = None
    copies: Copies | None = None
    places: IntArray | None = None
    drawn_by: str | None = None

    def end_places(self) -> tuple[IntArray, int]:
        """Return a number for the place of each end node, and the number of places."""
        if self.places is not None:
            return self.places, int(np.unique(self.places).size)
        together = self.support.select(self.sq_dist == 0.0)
        n_places, place = connected_components(together.to_csr(np.ones(together.n_edges)), directed=False)
        return place, int(n_places)

    def counted(self) -> tuple[IntArray, FloatArray, FloatArray | None]:
        """Return row pointers, distances, and the number of points at each distance; own copies, at 0, end a row."""
        support, copies, ends = self.support, self.copies, self.support.indptr[1:]
        if copies is None:
            return support.indptr, self.sq_dist, None
        return support.with_one_more(), np.insert(self.sq_dist, ends, 0.0), np.insert(copies.edges, ends, copies.own)


@dataclass(frozen=True)
class Bandwidth(ABC):
    """Base class of all bandwidths.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> @dataclass(frozen=True)
    ... class MeanDistance(gc.extend.Bandwidth):
    ...     def fit_rows(self, rows):
    ...         graph = rows.support.to_csr(np.sqrt(rows.sq_dist))
    ...         scale = graph.sum(axis=1) / np.diff(graph.indptr)
    ...         return np.zeros(len(scale)), scale
    >>> X, y = gc.datasets.load("iris")
    >>> gc.GraphModel("gaussian", "D", MeanDistance()).posterior(X).mean().shape
    (150, 150)
    """

    def fit(self, sq_dist_graph: Any, kernel: Kernel | None = None) -> tuple[FloatArray, FloatArray]:
        """Choose every node's shift and scale.

        Parameters
        ----------
        sq_dist_graph : array or sparse matrix of shape (n, n)
            Squared distances: all pairs, or the stored edges only. The diagonal is ignored.
        kernel : Kernel, optional
            The kernel of the rescaled distances; Gaussian by default.

        Returns
        -------
        shift, scale : ndarray of shape (n,)
            In units of distance.
        """
        support, sq_dist = pairs_of(sq_dist_graph, "sq_dist_graph")
        if support.n_nodes < 2 or (np.diff(support.indptr) == 0).any():
            raise ValueError("sq_dist_graph must give every node at least one neighbor.")
        if not (np.isfinite(sq_dist).all() and (sq_dist >= 0).all()):
            raise ValueError("sq_dist_graph must hold finite squared distances of at least 0.")
        sq_dist = sq_dist.astype(np.float64, copy=False)
        return self.fit_rows(DistanceRows(support, sq_dist, Gaussian() if kernel is None else kernel))

    @abstractmethod
    def fit_rows(self, rows: DistanceRows) -> tuple[FloatArray, FloatArray]:
        """Return every node's shift and scale; see `fit`."""

    @property
    def suited_neighbors(self) -> int | None:
        """The number of neighbours to use if there are too many points for all pairs."""
        return None

    def within(self, n_points: int) -> Bandwidth:
        """Lower the bandwidth's parameters to values that `n_points` allow, with a warning."""
        return self

    def for_neighbors(self, fewest: int, most: int) -> Bandwidth:
        """Lower the parameters to values that rows of `fewest` to `most` neighbours allow, with a warning."""
        return self

    def settled(self, rows: DistanceRows, n_stored: int | None = None) -> Bandwidth:
        """Return the bandwidth with the parameters that all rows choose together; new rows use the same parameters.

        If `looks_at_all`, rows may be a sample, with distances to all points; `n_stored` is then the number of edges in
        each row.
        """
        return self

    @property
    def looks_at_all(self) -> bool:
        """Whether `settled` needs distances to all points, even if edges lead to near points only."""
        return False

    pairs_scales: ClassVar[bool] = False
    """Whether rescaling an edge needs the scales of both its nodes."""

    def rescale(
        self,
        support: Support,
        sq_dist: FloatArray,
        shift: FloatArray,
        scale: FloatArray,
        scale_ahead: FloatArray | None = None,
    ) -> FloatArray:
        """Return ((d_ij − ρ_i)₊ / τ_i)² on the edges of `support`.

        `scale_ahead` holds the scales of the end nodes, if rows are other nodes.
        """
        if not shift.any():
            return sq_dist / np.square(scale)[support.rows]
        dist = np.sqrt(sq_dist) - shift[support.rows]
        return np.square(np.maximum(dist, 0.0) / scale[support.rows])


@dataclass(frozen=True)
class ConstantBandwidth(Bandwidth):
    """The same scale for every node.

    Parameters
    ----------
    scale : float, default=1.0
        τ, in units of distance.

    Raises
    ------
    ValueError
        When `scale` is not a finite number above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> gc.ConstantBandwidth(2.0).fit(np.zeros((2, 2)))
    (array([0., 0.]), array([2., 2.]))
    """

    scale: float = 1.0

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)

    def fit_rows(self, rows: DistanceRows) -> tuple[FloatArray, FloatArray]:
        """Return no shift and the constant scale."""
        return np.zeros(rows.support.n_nodes), np.full(rows.support.n_nodes, float(self.scale))
