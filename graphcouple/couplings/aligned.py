"""Objectives of several maps side by side, and ties between their points."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple.couplings.base import Attraction, Objective
from graphcouple.couplings.kinds import Through
from graphcouple.graphs import FloatArray, IntArray


class PartOf(Through):
    """An objective of consecutive points, as a function of more points.

    Parameters
    ----------
    objective : Objective
    n_points : int
    first : int
        The index of the objective's first point.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import AnchorEnergy, PartOf
    >>> anchor = AnchorEnergy(1, np.array([0]), np.zeros((1, 2)))
    >>> PartOf(anchor, n_points=3, first=1).gradient(np.ones((3, 2))).tolist()
    [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0]]
    """

    def __init__(self, objective: Objective, n_points: int, first: int) -> None:
        self.objective, self.n_points, self.first = objective, n_points, first
        self.points = slice(first, first + objective.n_points)

    def _inner(self, Z: FloatArray) -> FloatArray:
        return Z[self.points]

    def _pulled(self, gradient: FloatArray, Z: FloatArray) -> FloatArray:
        whole = np.zeros((self.n_points, gradient.shape[1]), dtype=gradient.dtype)
        whole[self.points] = gradient
        return whole

    def _own(self, attraction: Attraction) -> dict[str, Any]:
        return {"edges": lambda: [self._among_all(edges) for edges in attraction.matrices], "raised": None}

    @property
    def held_points(self) -> NDArray[np.bool_] | None:
        if (inner := self.objective.held_points) is None:
            return None
        held = np.zeros(self.n_points, dtype=bool)
        held[self.points] = inner
        return held

    def _among_all(self, edges: Any) -> Any:
        own, shape = sp.coo_array(edges), (self.n_points, self.n_points)
        return sp.csr_array((own.data, (own.row + self.first, own.col + self.first)), shape=shape)

    def curvature(self, Z: FloatArray) -> float:
        return self.objective.curvature(self._inner(Z))


class TieEnergy(Objective):
    """Σ ‖z_i − z_j‖² over pairs of points that are tied.

    Parameters
    ----------
    n_points : int
    starts, ends : ndarray of shape (n_ties,)
        The points i and j of each tie.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import TieEnergy
    >>> TieEnergy(3, np.array([0]), np.array([2])).value(np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 4.0]]))
    25.0
    """

    lower_bound = 0.0

    def __init__(self, n_points: int, starts: IntArray, ends: IntArray) -> None:
        self.n_points = n_points
        ties = sp.coo_array((np.ones(len(starts)), (starts, ends)), shape=(n_points, n_points))
        self.edges = sp.csr_array(ties + ties.T)
        self._laplacian = sp.csr_array(sp.csgraph.laplacian(self.edges))

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return the energy at `Z` and its gradient, 2 L Z with the Laplacian L of the ties."""
        forces = self._laplacian @ Z.astype(np.float64)
        return float((Z * forces).sum()), (2.0 * forces).astype(Z.dtype, copy=False)

    def curvature(self, Z: FloatArray) -> float:
        """Return four times the most ties of a point, which no direction exceeds."""
        return 4.0 * float(self._laplacian.diagonal().max(initial=0.0))

    @property
    def attracting(self) -> Attraction:
        """The ties, whose stiffness `LBFGS` must know if they are strong."""
        return Attraction(source=self, times=lambda factor: factor * self, edges=lambda: self.edges)
