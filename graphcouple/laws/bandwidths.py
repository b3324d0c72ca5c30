"""Bandwidths: how each point rescales its distances before a kernel sees them.

A bandwidth gives every node a shift ρ_i and a scale τ_i, and the kernel is
evaluated at ((d_ij − ρ_i)₊ / τ_i)² (graph-coupling paper, remark 1; UMAP's shift).
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._validation import check_integer, check_positive
from graphcouple.graphs import FloatArray, Support, as_csr, edges_of, off_diagonal
from graphcouple.kernels import Gaussian, Kernel

ENTROPY_TOLERANCE = 1e-5
_SEARCH_TOLERANCE = 1e-10


def _split(sq_dist_graph: Any) -> tuple[Support, FloatArray]:
    if sp.issparse(sq_dist_graph):
        support, sq_dist = edges_of(as_csr(sq_dist_graph, "sq_dist_graph"))
    else:
        matrix = np.asarray(sq_dist_graph, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"sq_dist_graph must be square, got shape {matrix.shape}.")
        support, sq_dist = Support.all_pairs(matrix.shape[0]), off_diagonal(matrix)
    if support.n_nodes < 2 or (np.diff(support.indptr) == 0).any():
        raise ValueError("sq_dist_graph must give every node at least one neighbor.")
    if not (np.isfinite(sq_dist).all() and (sq_dist >= 0).all()):
        raise ValueError("sq_dist_graph must hold finite squared distances of at least 0.")
    return support, sq_dist.astype(np.float64, copy=False)


@dataclass(frozen=True)
class Bandwidth(ABC):
    """Base of all bandwidths."""

    def fit(self, sq_dist_graph: Any, kernel: Kernel | None = None) -> tuple[FloatArray, FloatArray]:
        """Choose every node's shift and scale.

        Parameters
        ----------
        sq_dist_graph : array or sparse matrix of shape (n, n)
            Squared distances: all pairs, or the stored edges only. The diagonal
            is ignored.
        kernel : Kernel, optional
            The kernel that will see the rescaled distances; Gaussian by default.

        Returns
        -------
        shift, scale : ndarray of shape (n,)
            In units of distance.
        """
        support, sq_dist = _split(sq_dist_graph)
        return self.fit_edges(support, sq_dist, Gaussian() if kernel is None else kernel)

    @abstractmethod
    def fit_edges(
        self, support: Support, sq_dist: FloatArray, kernel: Kernel, n_jobs: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Choose every node's shift and scale from the flat squared distances of a support."""

    @property
    def suited_neighbors(self) -> int | None:
        """How many neighbours of each point it needs, if there are too many points for all pairs."""
        return None

    def within(self, n_points: int) -> Bandwidth:
        """Return the bandwidth with what so few points cannot have lowered, with a warning."""
        return self

    pairs_scales: ClassVar[bool] = False
    """Whether rescaling an edge needs the scale of its end node, besides that of its row."""

    def rescale(
        self,
        support: Support,
        sq_dist: FloatArray,
        shift: FloatArray,
        scale: FloatArray,
        scale_ahead: FloatArray | None = None,
    ) -> FloatArray:
        """Return ((d_ij − ρ_i)₊ / τ_i)² on the edges of `support`.

        `scale_ahead` holds the scales of the end nodes, if these are not the nodes of the rows.
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

    def fit_edges(
        self, support: Support, sq_dist: FloatArray, kernel: Kernel, n_jobs: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return no shift and the constant scale."""
        return np.zeros(support.n_nodes), np.full(support.n_nodes, float(self.scale))


@dataclass(frozen=True)
class Perplexity(Bandwidth):
    """Scales that give every row of the D-posterior the entropy log(perplexity).

    τ_i solves −Σ_j p_ij log p_ij = log(perplexity) with p_ij ∝ k(d²_ij/τ_i²), for
    any kernel whose rows sharpen as τ shrinks. If at least `perplexity` neighbours
    are tied at the smallest distance, no scale reaches the target; the row then
    gets its limit, the uniform law over those ties. An edge prior's zeros restrict
    the rows; its weights are applied after the scales are chosen.

    Parameters
    ----------
    perplexity : float, default=30.0
        The effective number of neighbours; above 1 and below the number of
        neighbours in a row. A `GraphModel` of few points lowers it, with a warning.

    Raises
    ------
    ValueError
        When `perplexity` is at most 1; in `fit`, when it is not below the number
        of neighbours, or a row's entropy cannot reach the target with this kernel.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> points = np.array([0.0, 1.0, 3.0, 7.0])
    >>> shift, scale = gc.Perplexity(2.0).fit((points[:, None] - points) ** 2)
    >>> row = gc.Gaussian().value(points[1:] ** 2 / scale[0] ** 2)
    >>> p = row / row.sum()
    >>> round(float(np.exp(-(p * np.log(p)).sum())), 6)
    2.0
    """

    perplexity: float = 30.0

    def __post_init__(self) -> None:
        check_positive("perplexity", self.perplexity)
        if self.perplexity <= 1:
            raise ValueError(f"perplexity must be above 1, got {self.perplexity}.")

    @property
    def suited_neighbors(self) -> int:
        """Three times the perplexity."""
        return int(3 * self.perplexity)

    def within(self, n_points: int) -> Bandwidth:
        """Return the perplexity, or a third of the number of other points if there are no more than it.

        Two points have one edge each, whatever its length.
        """
        others = n_points - 1
        if self.perplexity < others:
            return self
        lowered = others / 3.0 if others > 3 else 0.5 * (1.0 + others)
        warnings.warn(
            f"perplexity={self.perplexity:g} is lowered to {lowered:.3g}: with n_samples = {n_points}, every point has "
            f"{others} others, and the perplexity must be below that.",
            UserWarning,
            stacklevel=2,
        )
        return Perplexity(lowered) if others > 1 else ConstantBandwidth()

    def fit_edges(
        self, support: Support, sq_dist: FloatArray, kernel: Kernel, n_jobs: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return no shift and the calibrated scales."""
        from graphcouple._numba.calibration import perplexity_rows
        from graphcouple._numba.threads import over_rows

        n, counts = support.n_nodes, np.diff(support.indptr)
        fewest = int(counts.min())
        if self.perplexity >= fewest:
            whole = fewest == n - 1
            remedy = "lower it" if whole else "lower it, or raise n_neighbors, or allow more edges"
            size = f" here with n_samples = {n}" if whole else ""
            raise ValueError(
                f"perplexity={self.perplexity} must be below the number of neighbors every point has, {fewest}{size}; "
                f"{remedy}."
            )
        scale, error = np.empty(n), np.empty(n)
        target = float(np.log(self.perplexity))
        over_rows(
            n,
            n_jobs,
            perplexity_rows,
            sq_dist,
            support.indptr,
            kernel,
            target,
            _SEARCH_TOLERANCE,
            scale,
            error,
        )
        self._check_reached(support, sq_dist, kernel, error)
        return np.zeros(n), scale

    def _check_reached(self, support: Support, sq_dist: FloatArray, kernel: Kernel, error: FloatArray) -> None:
        missed = np.flatnonzero(np.abs(error) > ENTROPY_TOLERANCE)
        for i in missed:
            row = sq_dist[support.indptr[i] : support.indptr[i + 1]]
            if np.count_nonzero(row <= row.min() * (1 + 1e-12)) < self.perplexity:
                side = "high" if error[i] > 0 else "low"
                reach = self.perplexity * float(np.exp(error[i]))
                raise ValueError(
                    f"no bandwidth gives row {i} the perplexity {self.perplexity} with {kernel!r}: its entropy stays "
                    f"too {side}, the nearest perplexity it reaches is {reach:.4g}. Choose another perplexity "
                    "or a kernel with a faster decay."
                )


@dataclass(frozen=True)
class LocalConnectivity(Bandwidth):
    """UMAP's bandwidth: ρ_i is the distance to the nearest distinct neighbour; σ_i sets the row's total strength.

    σ_i solves Σ_j k((d_ij − ρ_i)₊/σ_i) = log₂(n_neighbors), where k is the kernel, or
    the kernel inside an `Odds`; UMAP's is the exponential. As in UMAP,
    σ_i is at least 1e-3 times the mean distance of the row.

    Parameters
    ----------
    n_neighbors : int, default=15
        UMAP's number of neighbours, which counts the point itself: each row of the
        graph has ``n_neighbors - 1`` others.
    local_connectivity : float, default=1.0
        How many nearest distinct neighbours count as fully connected;
        interpolated if not an integer.

    Raises
    ------
    TypeError, ValueError
        When `n_neighbors` is not an integer of at least 2, or
        `local_connectivity` is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> points = np.array([0.0, 1.0, 3.0, 7.0])
    >>> shift, scale = gc.LocalConnectivity(n_neighbors=4).fit((points[:, None] - points) ** 2, gc.Exponential())
    >>> shift
    array([1., 1., 2., 4.])
    """

    n_neighbors: int = 15
    local_connectivity: float = 1.0

    def __post_init__(self) -> None:
        check_integer("n_neighbors", self.n_neighbors, 2)
        check_positive("local_connectivity", self.local_connectivity)

    @property
    def suited_neighbors(self) -> int:
        """`n_neighbors` without the point itself."""
        return self.n_neighbors - 1

    def fit_edges(
        self, support: Support, sq_dist: FloatArray, kernel: Kernel, n_jobs: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return ρ and σ."""
        from graphcouple._numba.calibration import connectivity_rows
        from graphcouple._numba.threads import over_rows

        n, counts = support.n_nodes, np.diff(support.indptr)
        dist = np.sqrt(sq_dist)
        shift = self._shift(support, dist)
        scale = np.empty(n)
        target = float(np.log2(self.n_neighbors))
        over_rows(n, n_jobs, connectivity_rows, dist, support.indptr, kernel.membership, target, shift, scale)
        # UMAP's lower bound; its means include the point itself, at distance 0.
        row_mean = np.bincount(support.rows, weights=dist, minlength=n) / (counts + 1)
        overall = float(dist.sum()) / float((counts + 1).sum())
        floor = 1e-3 * np.where(shift > 0, row_mean, overall)
        return shift, np.maximum(scale, np.where(floor > 0, floor, 1.0))

    def _shift(self, support: Support, dist: FloatArray) -> FloatArray:
        ordered = dist[np.lexsort((dist, support.rows))]
        positive = ordered > 0
        n_positive = np.bincount(support.rows, weights=positive, minlength=support.n_nodes).astype(np.int64)
        end = support.indptr[1:].astype(np.int64)
        first = end - n_positive
        whole = int(self.local_connectivity)
        part = self.local_connectivity - whole

        def nth_positive(k: int) -> NDArray[np.float64]:
            at = np.minimum(first + k, end - 1)
            return ordered[np.clip(at, 0, max(ordered.size - 1, 0))]

        if whole == 0:
            shift = part * nth_positive(0)
        else:
            shift = nth_positive(whole - 1)
            shift = shift + part * (nth_positive(whole) - shift)
        furthest = nth_positive(support.n_nodes)
        shift = np.where(n_positive >= self.local_connectivity, shift, furthest)
        return np.where(n_positive > 0, shift, 0.0)


@dataclass(frozen=True)
class SelfTuning(Bandwidth):
    """Local scaling of Zelnik-Manor and Perona (2004): d_ij² / (τ_i τ_j), τ_i the distance to the k-th neighbour.

    The only bandwidth that combines the scales of both ends, so a symmetric graph
    stays symmetric. Their kernel exp(−d²/(τ_i τ_j)) has no ½: it is the Gaussian
    kernel here, with distances larger by √2.

    Parameters
    ----------
    k : int, default=7
        Which neighbour sets the scale. Rows with fewer neighbours use their
        furthest one. A scale of 0 (duplicates) is replaced by the row's smallest
        positive distance, or by 1 if there is none.

    Raises
    ------
    TypeError, ValueError
        When `k` is not an integer of at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> points = np.array([0.0, 1.0, 3.0])
    >>> gc.SelfTuning(k=2).fit((points[:, None] - points) ** 2)
    (array([0., 0., 0.]), array([3., 2., 3.]))
    """

    k: int = 7

    def __post_init__(self) -> None:
        check_integer("k", self.k, 1)

    @property
    def suited_neighbors(self) -> int:
        """Three times k."""
        return 3 * self.k

    def fit_edges(
        self, support: Support, sq_dist: FloatArray, kernel: Kernel, n_jobs: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return no shift and the distance to the k-th neighbour."""
        n, counts = support.n_nodes, np.diff(support.indptr).astype(np.int64)
        if (counts == 0).any():
            raise ValueError(f"node {int(np.argmin(counts))} has no neighbor to set its scale; give it an edge.")
        ordered = np.sqrt(sq_dist)[np.lexsort((sq_dist, support.rows))]
        start = support.indptr[:-1].astype(np.int64)
        scale = ordered[start + np.minimum(self.k, counts) - 1]
        smallest = np.minimum.reduceat(np.where(ordered > 0, ordered, np.inf), start)
        fallback = np.where(np.isfinite(smallest), smallest, 1.0)
        return np.zeros(n), np.where(scale > 0, scale, fallback)

    pairs_scales: ClassVar[bool] = True

    def rescale(
        self,
        support: Support,
        sq_dist: FloatArray,
        shift: FloatArray,
        scale: FloatArray,
        scale_ahead: FloatArray | None = None,
    ) -> FloatArray:
        """Return d_ij² / (τ_i τ_j) on the edges of `support`."""
        ahead = scale if scale_ahead is None else scale_ahead
        return sq_dist / (scale[support.rows] * ahead[support.indices])
