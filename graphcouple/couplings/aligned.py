"""Objectives of several maps side by side, and ties between their points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple.couplings.base import Attraction, Objective
from graphcouple.graphs import FloatArray, IntArray


class PartOf(Objective):
    """An objective of consecutive points, as a function of more points.

    Parameters
    ----------
    objective : Objective
    n_points : int
    first : int
        The number of points before those of the objective.
    """

    def __init__(self, objective: Objective, n_points: int, first: int) -> None:
        self.objective, self.n_points, self.first = objective, n_points, first
        self.points = slice(first, first + objective.n_points)

    def _with(self, objective: Objective) -> PartOf:
        return PartOf(objective, self.n_points, self.first)

    def _spread(self, gradient: FloatArray) -> FloatArray:
        whole = np.zeros((self.n_points, gradient.shape[1]), dtype=gradient.dtype)
        whole[self.points] = gradient
        return whole

    def value(self, Z: FloatArray) -> float:
        """Return the objective at its points."""
        return self.objective.value(Z[self.points])

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient, which is 0 for all other points."""
        value, gradient = self.objective.value_and_grad(Z[self.points])
        return value, self._spread(gradient)

    def gradient(self, Z: FloatArray) -> FloatArray:
        """Return the gradient alone."""
        return self._spread(self.objective.gradient(Z[self.points]))

    def curvature(self, Z: FloatArray) -> float:
        """Return the curvature of the objective."""
        return self.objective.curvature(Z[self.points])

    @property
    def lower_bound(self) -> float:
        """The lower bound of the objective."""
        return self.objective.lower_bound

    def at(self, iteration: int, Z: FloatArray) -> PartOf:
        """Return the objective of an iteration, of the same points."""
        return self._with(self.objective.at(iteration, Z[self.points]))

    def basis(self, Z: FloatArray, previous: Any = None) -> Any:
        """Return the basis of the objective."""
        return self.objective.basis(Z[self.points], previous)

    def with_basis(self, basis: Any) -> PartOf:
        """Return the objective with this basis, of the same points."""
        return self._with(self.objective.with_basis(basis))

    @property
    def attracting(self) -> Attraction | None:
        """The attraction of the objective, among the same points."""
        inner = self.objective.attracting
        if inner is None:
            return None

        def confinement() -> Objective | None:
            bound = inner.confinement()
            return None if bound is None else self._with(bound)

        return replace(
            inner,
            source=self._with(inner.source),
            times=lambda factor: self._with(inner.times(factor)),
            edges=lambda: [self._among_all(matrix) for matrix in inner.matrices],
            limit=lambda Z: inner.limit(Z[self.points]),
            confinement=confinement,
        )

    def _among_all(self, edges: Any) -> Any:
        """Return a matrix of edges among the points as one among all points."""
        own = sp.coo_array(edges)
        shape = self.n_points, self.n_points
        return sp.csr_array((own.data, (own.row + self.first, own.col + self.first)), shape=shape)


class TieEnergy(Objective):
    """Σ ‖z_i − z_j‖² over pairs of points that are tied.

    Parameters
    ----------
    n_points : int
    starts, ends : ndarray of shape (n_ties,)
        The points i and j of each tie.
    """

    lower_bound = 0.0

    def __init__(self, n_points: int, starts: IntArray, ends: IntArray) -> None:
        self.n_points = n_points
        ties = sp.coo_array((np.ones(len(starts)), (starts, ends)), shape=(n_points, n_points))
        self._laplacian = sp.csr_array(sp.csgraph.laplacian(ties + ties.T))

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return the energy at `Z` and its gradient, 2 L Z with the Laplacian L of the ties."""
        forces = self._laplacian @ Z.astype(np.float64)
        return float((Z * forces).sum()), (2.0 * forces).astype(Z.dtype, copy=False)

    def curvature(self, Z: FloatArray) -> float:
        """Return four times the most ties of a point, which no direction exceeds."""
        return 4.0 * float(self._laplacian.diagonal().max(initial=0.0))
