"""Scales that give every row the same entropy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphcouple._numba.calibration import perplexity_rows
from graphcouple._numba.threads import over_rows
from graphcouple._support.validation import check_positive, warn
from graphcouple.graphs import FloatArray
from graphcouple.kernels import Kernel
from graphcouple.laws.bandwidths.base import Bandwidth, ConstantBandwidth, DistanceRows

ENTROPY_TOLERANCE = 1e-5
"""Nats; a row whose entropy is further off is reported."""

# Nats; the search is more accurate than the report, so that rounding reports no row.
_SEARCH_TOLERANCE = 1e-10

# Without an edge of this strength, a row is almost without edges: a tolerance.
_FAINT = 1e-2


@dataclass(frozen=True)
class Perplexity(Bandwidth):
    """Scales that give every row of the D-posterior the entropy log(perplexity).

    τ_i solves −Σ_j p_ij log p_ij = log(perplexity) with p_ij ∝ k(d²_ij/τ_i²), for any kernel whose rows sharpen as τ
    shrinks; under prior B, k is the probability inside an `Odds`. If more than `perplexity` neighbours are tied at
    the smallest distance, no scale reaches the target; the row then gets its limit, the uniform law over the ties,
    and a warning says for how many rows. Under priors B and E, such rows may lose their edges. Kernels whose tail is a
    power have another limit, and raise an error. An edge prior's zeros restrict the rows; its weights are applied after
    the scales are chosen.

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
        """Lower a perplexity that is not below the number of other points to a third of that number.

        Two points get a constant bandwidth: each has one edge, whatever its length.
        """
        n_others = n_points - 1
        if self.perplexity < n_others:
            return self
        reduced = n_others / 3.0 if n_others > 3 else 0.5 * (1.0 + n_others)
        warn(
            f"perplexity={self.perplexity:g} is lowered to {reduced:.3g}: it must be below {n_others}, the number of "
            f"other points (n_samples = {n_points}), and usually is a third of it."
        )
        return Perplexity(reduced) if n_others > 1 else ConstantBandwidth()

    def for_neighbors(self, fewest: int, most: int) -> Bandwidth:
        """Lower a perplexity that is not below the number of neighbours of a row to a third of that number."""
        if self.perplexity < fewest or fewest < 2:
            return self
        reduced = max(fewest / 3.0, 0.5 * (1.0 + fewest) if fewest < 4 else 1.0)
        warn(
            f"perplexity={self.perplexity:g} is lowered to {reduced:.3g}, since {fewest} neighbors of a point are "
            f"given. Give at least {self.suited_neighbors}, with scanpy by "
            f"sc.pp.neighbors(adata, n_neighbors={self.suited_neighbors + 1})."
        )
        return Perplexity(reduced)

    def fit_rows(self, rows: DistanceRows) -> tuple[FloatArray, FloatArray]:
        """Return no shift and the calibrated scales."""
        n, (indptr, sq_dist, counts) = rows.support.n_nodes, rows.counted()
        totals = np.diff(indptr) if counts is None else np.add.reduceat(counts, indptr[:-1])
        self._check_enough(totals, n)
        scale, error, tied = np.empty(n), np.empty(n), np.empty(n)
        equation = (rows.kernel, float(np.log(self.perplexity)), _SEARCH_TOLERANCE)
        over_rows(n, rows.n_jobs, perplexity_rows, sq_dist, indptr, *equation, scale, error, tied, counts)
        self._check_reached(rows.kernel, error, tied)
        if rows.drawn_by in ("pair", "graph"):
            present = sq_dist if counts is None else np.where(counts > 0.0, sq_dist, np.inf)
            nearest = np.minimum.reduceat(present, indptr[:-1])
            log_strength = rows.kernel.log(nearest / scale**2)
            # If the whole graph shares the edges, only ratios of the kernel's values count.
            log_strength -= log_strength.max() if rows.drawn_by == "graph" else 0.0
            self._warn_of_faint(np.exp(log_strength), tied)
        # Rows of new points, and of copies, do not tell how many points there are.
        known = rows.places is None and counts is None and rows.support.indices.max(initial=0) < n
        self._warn_of_ties(tied, totals, n - 1.0 if known else np.inf)
        return np.zeros(n), scale

    def _check_enough(self, totals: FloatArray, n: int) -> None:
        fewest = float(totals.min())
        if self.perplexity < fewest:
            return
        if fewest == 1:
            raise ValueError(f"row {np.argmin(totals)} has 1 neighbor, whose perplexity is always 1; give at least 2.")
        all_pairs = fewest == n - 1
        remedy = "lower it" if all_pairs else "lower it, or raise n_neighbors, or allow more edges"
        size = f" here with n_samples = {n}" if all_pairs else ""
        raise ValueError(
            f"perplexity={self.perplexity} must be below the number of neighbors every point has, {fewest:g}{size}; "
            f"{remedy}."
        )

    def _check_reached(self, kernel: Kernel, error: FloatArray, tied: FloatArray) -> None:
        rows = np.flatnonzero(np.abs(error) > ENTROPY_TOLERANCE)
        if rows.size:
            i = int(rows[0])
            side = "high" if error[i] > 0 else "low"
            reach = (tied[i] or self.perplexity) * float(np.exp(error[i]))
            raise ValueError(
                f"no bandwidth gives row {i} the perplexity {self.perplexity} with {kernel!r}: its entropy stays too "
                f"{side}, the nearest perplexity it reaches is {reach:.4g}. Choose another perplexity or a kernel with "
                "a faster decay."
            )

    def _warn_of_faint(self, strength: FloatArray, tied: FloatArray) -> None:
        """Warn of tied rows without a strong edge, and set `tied` to 0 there."""
        rows = np.flatnonzero((tied > 0.0) & (strength < _FAINT))
        if rows.size:
            warn(
                f"perplexity={self.perplexity:g} leaves {rows.size} of {tied.size} rows almost without edges, the "
                f"first row {rows[0]}: {tied[rows[0]]:g} neighbors are tied at its smallest distance, and the kernel "
                f"is {strength[rows[0]]:.1g} there. Raise the perplexity well above {tied.max():g}, or use prior D, "
                "under which ties share equally."
            )
        tied[rows] = 0.0

    def _warn_of_ties(self, tied: FloatArray, totals: FloatArray, others: float) -> None:
        """Warn of rows whose ties exceed the perplexity; only more neighbours help if a row has no others."""
        rows = np.flatnonzero(tied > self.perplexity * (1.0 + _SEARCH_TOLERANCE))
        if rows.size:
            remedy = f"perplexity above {tied.max():g}, to tell ties from others"
            if tied.max() < totals.min():
                remedy = f"Give a {remedy}."
            elif tied.max() < others:
                remedy = f"Give more neighbors, and a {remedy}; if ties grow with them, look at the metric."
            else:
                remedy = (
                    "A point that is equally far from all others has no nearest neighbors; look at the data and the "
                    "metric."
                )
            warn(
                f"perplexity={self.perplexity:g} is not reached in {rows.size} of {tied.size} rows, the first row "
                f"{rows[0]}: {tied[rows[0]]:g} neighbors are tied at its smallest distance, and share equally. "
                f"{remedy}"
            )
