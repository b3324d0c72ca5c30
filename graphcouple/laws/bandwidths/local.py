"""Scales from the distances to the nearest neighbours: UMAP's, and self-tuning."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from graphcouple._numba.calibration import connectivity_rows, neighbor_rows
from graphcouple._numba.threads import over_rows
from graphcouple._support.validation import check_integer, check_positive, warn
from graphcouple.graphs import FloatArray, Support
from graphcouple.laws.bandwidths.base import Bandwidth, DistanceRows


@dataclass(frozen=True)
class LocalConnectivity(Bandwidth):
    """UMAP's bandwidth: ρ_i is the distance to the nearest distinct neighbour; σ_i normalises the row's total strength.

    σ_i solves Σ_j k((d_ij − ρ_i)₊/σ_i) = log₂(n_neighbors), where k is the kernel, or the kernel inside an `Odds`;
    UMAP's is the exponential. As in UMAP, σ_i is at least 1e-3 times the mean distance of the row.

    Parameters
    ----------
    n_neighbors : int, default=15
        UMAP's number of neighbours, which counts the point itself: each row of the
        graph has ``n_neighbors - 1`` others.
    local_connectivity : float, default=1.0
        How many nearest distinct neighbours count as fully connected; fractions interpolate between distances.

    Raises
    ------
    TypeError, ValueError
        When `n_neighbors` is not an integer of at least 2, or `local_connectivity` is not above 0.

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

    def within(self, n_points: int) -> Bandwidth:
        """Lower `n_neighbors` to the number of points."""
        return self._at_most(n_points, f"there are {n_points} points")

    def for_neighbors(self, fewest: int, most: int) -> Bandwidth:
        """Lower `n_neighbors` to the point itself and the neighbours of the longest row."""
        return self._at_most(most + 1, f"at most {most} neighbors of a point are given")

    def _at_most(self, n_neighbors: int, why: str) -> Bandwidth:
        if self.n_neighbors <= n_neighbors or n_neighbors < 2:
            return self
        warn(f"n_neighbors={self.n_neighbors} is lowered to {n_neighbors}, the point itself included, since {why}.")
        return replace(self, n_neighbors=n_neighbors)

    def fit_rows(self, rows: DistanceRows) -> tuple[FloatArray, FloatArray]:
        """Return ρ and σ."""
        n, (indptr, sq_dist, counts) = rows.support.n_nodes, rows.counted()
        totals = np.diff(indptr).astype(np.float64) if counts is None else np.add.reduceat(counts, indptr[:-1])
        weights = np.ones(n) if rows.copies is None else rows.copies.weights
        shift, scale, sums = np.empty(n), np.empty(n), np.empty(n)
        target, connectivity = float(np.log2(self.n_neighbors)), float(self.local_connectivity)
        equation = (rows.kernel.membership, target, connectivity)
        over_rows(n, rows.n_jobs, connectivity_rows, sq_dist, indptr, *equation, shift, scale, sums, counts)
        short = np.flatnonzero((totals > 0) & (totals < target))
        if short.size:
            remedy = "Lower it, or raise n_neighbors of the model."
            if float(totals[short].min()) < 1.0:
                remedy = "Give larger sample weights, each of which says how many points its row stands for."
            warn(
                f"n_neighbors={self.n_neighbors} of LocalConnectivity is too many for {short.size} of {n} rows, the "
                f"first row {short[0]} with {totals[short[0]]:g} neighbors: all their edges get the largest weight. "
                f"{remedy}"
            )
        # UMAP's lower bound; its means include the point itself, at distance 0.
        overall = float(weights @ sums) / float(weights @ (totals + 1.0))
        floor = 1e-3 * np.where(shift > 0, sums / (totals + 1.0), overall)
        return shift, np.maximum(scale, np.where(floor > 0, floor, 1.0))


@dataclass(frozen=True)
class SelfTuning(Bandwidth):
    """Local scaling of Zelnik-Manor and Perona (2004): d_ij² / (τ_i τ_j), τ_i the distance to the k-th neighbour.

    The only bandwidth that combines the scales of both ends, so a symmetric graph stays symmetric. Their kernel
    exp(−d²/(τ_i τ_j)) has no ½: it is the Gaussian kernel here, with distances larger by √2.

    Parameters
    ----------
    k : int, default=7
        Which neighbour sets the scale. Rows with fewer neighbours use their furthest one. A scale of 0 (duplicates) is
        replaced by the row's smallest positive distance, or by 1 if there is none.
    suited : int, optional
        Number of neighbours in a graph of many points; three times k by default.

    Raises
    ------
    TypeError, ValueError
        When a number is not an integer of at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> points = np.array([0.0, 1.0, 3.0])
    >>> gc.SelfTuning(k=2).fit((points[:, None] - points) ** 2)
    (array([0., 0., 0.]), array([3., 2., 3.]))
    """

    k: int = 7
    suited: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_integer("k", self.k, 1)
        if self.suited is not None:
            check_integer("suited", self.suited, 1)

    @property
    def suited_neighbors(self) -> int:
        """`suited`, or three times k."""
        return 3 * self.k if self.suited is None else self.suited

    def fit_rows(self, rows: DistanceRows) -> tuple[FloatArray, FloatArray]:
        """Return no shift and the distance to the k-th neighbour."""
        n_edges = np.diff(rows.support.indptr)
        if (n_edges == 0).any():
            raise ValueError(f"node {int(np.argmin(n_edges))} has no neighbor to set its scale; give it an edge.")
        n, (indptr, sq_dist, counts) = n_edges.size, rows.counted()
        scale = np.empty(n)
        over_rows(n, rows.n_jobs, neighbor_rows, sq_dist, indptr, self.k - 1.0, scale, counts)
        return np.zeros(n), scale

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
