"""Points that are drawn to given places, and points that are held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import check_embedding, check_positive
from graphcouple.couplings.base import Attraction, Objective
from graphcouple.couplings.kinds import Through
from graphcouple.couplings.recipes import Problem, Term
from graphcouple.graphs import FloatArray, IntArray


class AnchorEnergy(Objective):
    """Σ_i ‖z_i − a_i‖² over some points, as a function of the embedding.

    Parameters
    ----------
    n_points : int
    indices : ndarray of shape (n_anchors,)
    places : ndarray of shape (n_anchors, n_components)
        The places a_i.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import AnchorEnergy
    >>> AnchorEnergy(3, np.array([2]), np.array([[0.0, 3.0]])).value(np.array([[0.0, 0.0], [1.0, 1.0], [4.0, 0.0]]))
    25.0
    """

    lower_bound = 0.0

    def __init__(self, n_points: int, indices: IntArray, places: FloatArray) -> None:
        self.n_points, self.indices, self.places = n_points, indices, places

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return the energy at `Z` and its gradient, 2 (z_i − a_i) for the points with a place."""
        away, gradient = Z[self.indices] - self.places, np.zeros_like(Z)
        np.add.at(gradient, self.indices, 2.0 * away)
        return float(np.square(away, dtype=np.float64).sum()), gradient

    def curvature(self, Z: FloatArray) -> float:
        """Return 2, times the most places of a point."""
        return 2.0 * float(np.bincount(self.indices).max(initial=1))


@dataclass(frozen=True, eq=False)
class Anchors(Term):
    """The term that draws some points to given places: weight · Σ_i ‖z_i − a_i‖².

    Any number of points can have a place, and the others arrange themselves around them. The larger the weight, the
    nearer these points stay to them. Give places at the scale of the embedding without anchors, or start from an array.

    Parameters
    ----------
    indices : array of shape (n_anchors,)
        Rows of X.
    places : array of shape (n_anchors, n_components)
    weight : float, default=1.0
        In nats for each unit of squared distance in the embedding.

    Raises
    ------
    TypeError, ValueError
        When an array is not numeric, a row occurs twice, the arrays differ in length, or the weight is not above 0;
        when fitted, if a row does not exist or the places have another dimension than the embedding.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> corners = gc.Anchors([0, 60, 140], [[-20, 0], [20, 0], [0, 30]], weight=10.0)
    >>> Z = gc.TSNE(terms=[corners], random_state=0).fit_transform(X)
    >>> bool(np.abs(Z[[0, 60, 140]] - corners.places).max() < 1)
    True
    """

    indices: Any
    places: Any
    weight: float = 1.0

    names_rows = True

    def __post_init__(self) -> None:
        indices = np.asarray(self.indices)
        if indices.ndim != 1 or indices.dtype.kind not in "iu":
            raise TypeError(f"indices must hold row numbers, got dtype {indices.dtype} and shape {indices.shape}.")
        places = check_embedding(self.places, "places", len(indices))
        if len(np.unique(indices)) != len(indices):
            raise ValueError("indices names a row twice; each point can have one place.")
        check_positive("weight", self.weight)
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "places", places)

    def __str__(self) -> str:
        return f"{self.weight:g} × {len(self.indices)} anchors"

    def bind(self, problem: Problem) -> AnchorEnergy:
        n, q = problem.posterior.n_nodes, problem.n_components
        if len(self.indices) and not (self.indices.min() >= 0 and self.indices.max() < n):
            worst = int(self.indices.min() if self.indices.min() < 0 else self.indices.max())
            raise ValueError(f"indices names row {worst}, but X has {n} rows.")
        if self.places.shape[1] != q:
            raise ValueError(f"places has {self.places.shape[1]} columns, but n_components={q}.")
        return AnchorEnergy(n, self.indices, self.places)


class Held(Through):
    """An objective in which some points stay where they are: their gradient is zero.

    Parameters
    ----------
    objective : Objective
    held : ndarray of shape (n_points,)
        Which points stay.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import AnchorEnergy, Held
    >>> anchors = AnchorEnergy(2, np.array([0, 1]), np.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> Held(anchors, np.array([True, False])).gradient(np.ones((2, 2))).tolist()
    [[0.0, 0.0], [-2.0, 2.0]]
    """

    def __init__(self, objective: Objective, held: Any) -> None:
        chosen: NDArray[Any] = np.asarray(held)
        if chosen.dtype != bool or chosen.shape != (objective.n_points,):
            raise ValueError(
                f"held must have True or False for each of {objective.n_points} points, got an array of shape "
                f"{chosen.shape} and dtype {chosen.dtype}."
            )
        inner = objective.held_points
        self.objective, self.held = objective, chosen if inner is None else chosen | inner
        self.n_points = objective.n_points

    @property
    def held_points(self) -> NDArray[np.bool_] | None:
        return self.held if self.held.any() else None

    def _inner(self, Z: FloatArray) -> FloatArray:
        return Z

    def _pulled(self, gradient: FloatArray, Z: FloatArray) -> FloatArray:
        return np.where(self.held[:, None], np.zeros((), dtype=gradient.dtype), gradient)

    def _own(self, attraction: Attraction) -> dict[str, Any]:
        return {}
