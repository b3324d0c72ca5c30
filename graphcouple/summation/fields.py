"""Fields: the potentials of fixed charges at any place."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from graphcouple._numba.mesh import gather
from graphcouple._numba.pairs import sum_rows
from graphcouple._numba.threads import over_rows
from graphcouple.graphs import FloatArray
from graphcouple.summation.near_cells import NearCells, bounds
from graphcouple.summation.radials import RadialFunction
from graphcouple.summation.tiles import TileField

# Number of points whose potentials estimate a sum over all points.
_SAMPLED_ROWS = 1000


class Field(ABC):
    """The potentials of sets of charges at the points of a fixed embedding, for any place.

    The values at one place do not depend on the other places.
    """

    resolution: float = 0.0
    """Absolute error of the potential of unit charges; see `Summation.resolution`."""

    @abstractmethod
    def at(self, places: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Σ_j c_j φ(‖y − z_j‖²), of shape (n_sets, m), and its gradient in y, of shape (n_sets, m, q).

        The places y are doubles of shape (m, q).
        """


class ExactField(Field):
    """The sum over all points `Z` with charges of shape (n_sets, n), in O(n) time for each place."""

    def __init__(self, Z: FloatArray, radial: RadialFunction, charges: FloatArray, n_jobs: int | None = None) -> None:
        self.points = np.ascontiguousarray(Z, dtype=np.float64)
        self.radial, self.charges, self.n_jobs = radial, np.ascontiguousarray(charges, dtype=np.float64), n_jobs

    def at(self, places: FloatArray) -> tuple[FloatArray, FloatArray]:
        return sum_rows(places, self.points, self.radial, self.charges, self.n_jobs, itself=False)


def sampled_field(
    Z: FloatArray, radial: RadialFunction, charges: FloatArray, n_sampled: int, n_jobs: int | None
) -> ExactField:
    """Return an estimate of the field from a fixed random sample of the points, with charges scaled up."""
    sample = np.sort(np.random.default_rng(0).choice(len(Z), min(n_sampled, len(Z)), replace=False))
    return ExactField(Z[sample], radial, charges[:, sample] * (len(Z) / len(sample)), n_jobs)


def sampled_total(
    Z: FloatArray, radial: RadialFunction, charges: FloatArray, weights: FloatArray, n_jobs: int | None
) -> float:
    """Estimate Σ_i w_i Φ_i from the exact potentials of 1,000 random points, with their weighted mean for all others.

    Their plain mean would be too low, because points of many edges are repelled more than others. The relative standard
    error is about the potentials' coefficient of variation over the root of 1,000.
    """
    n_rows, c = min(_SAMPLED_ROWS, len(Z)), np.ascontiguousarray(charges, dtype=np.float64)
    # The drawn points come first, and only their rows are summed.
    order = np.random.default_rng(0).permutation(len(Z))
    points = Z[order]
    (sums,), _ = sum_rows(points[:n_rows], points, radial, c[None, order], n_jobs, with_gradient=False)
    drawn = weights[order[:n_rows]]
    potential = np.full(len(Z), np.average(sums, weights=drawn) if drawn.any() else sums.mean())
    potential[order[:n_rows]] = sums
    return float(weights @ potential)


class MeshField(Field):
    """Potentials interpolated on a grid and corrected for near points; exact sums outside the points' bounding box.

    `fields`, of shape (n_sets, n_rows, n_columns), are the spline coefficients at the nodes. `near` corrects
    them for near points, and `tiles` are finer grids near the points.
    """

    def __init__(
        self,
        exact: ExactField,
        origin: FloatArray,
        spacing: float,
        fields: FloatArray,
        near: NearCells | None,
        resolution: float,
        tiles: Sequence[TileField] = (),
    ) -> None:
        self._exact, self._origin, self._spacing, self._tiles = exact, origin, spacing, tiles
        self._fields, self._near, self.resolution = fields, near, resolution
        self._low, self._high = bounds(exact.points)

    def at(self, places: FloatArray) -> tuple[FloatArray, FloatArray]:
        n_jobs = self._exact.n_jobs
        outside = np.any((places < self._low) | (places > self._high), axis=1)
        queries = np.where(outside[:, None], self._low, places)
        potential = np.empty((len(self._fields), len(places)))
        gradient = np.empty((*potential.shape, places.shape[1]))
        # Places have no charge, so there is no own potential to subtract.
        own, no_charges = np.zeros((4, 4)), np.zeros(len(places))
        for k, field in enumerate(self._fields):
            arrays = (queries, self._origin, self._spacing, no_charges, field, own, potential[k], gradient[k])
            over_rows(len(places), n_jobs, gather, *arrays)
        for tiles in self._tiles:
            tiles.add(queries, n_jobs, potential, gradient)
        if self._near is not None:
            self._near.add(queries, n_jobs, potential, gradient)
        if outside.any():
            potential[:, outside], gradient[:, outside] = self._exact.at(np.ascontiguousarray(places[outside]))
        return potential, gradient
