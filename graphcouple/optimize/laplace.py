"""How certain positions are: the normal law that exp(−H/T) has around a minimum of H."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graphcouple._support.validation import check_embedding, check_integer, check_positive, warn
from graphcouple.couplings import Objective
from graphcouple.couplings.base import deviation, parts_of
from graphcouple.graphs import FloatArray, IntArray

# The Hessian has the square of this many entries: 130 MB, and a minute for 2,000 points in the plane.
_MOST_COORDINATES = 4000

# Step of the differences of gradients, relative to the root mean square distance from the middle.
_STEP = 1e-5

# Eigenvalues are rounding below this share of the largest; the Hessian is symmetric to this share if H is smooth.
_ROUNDING, _SYMMETRIC = 1e-7, 1e-3

# Curvature below this share of the objective over the squared size of the map is rounding.
_FLAT = 1e-10

# A negative eigenvalue above this share of the largest is more than an unfinished descent leaves.
_FALLING = 1e-4


@dataclass(frozen=True, eq=False, repr=False)
class PositionUncertainty:
    """A normal law of embeddings, as `position_uncertainty` returns it.

    Attributes
    ----------
    embedding : ndarray of shape (n_points, n_components)
        The mean.
    modes : ndarray of shape (n_points, n_components, n_modes)
        Independent directions, each √(T/λ) long for its eigenvalue λ of the Hessian.
    temperature : float
        T.
    n_loose : int
        Directions in which the objective does not rise, beyond moving and turning the whole map; they are left out, so
        positions are less certain than they seem.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> anchors = gc.couplings.AnchorEnergy(2, np.array([0, 1]), np.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> law = gc.optimize.position_uncertainty(anchors, anchors.places, temperature=0.02)
    >>> law.radii().round(3)
    array([0.071, 0.071])
    """

    embedding: FloatArray
    modes: FloatArray
    temperature: float
    n_loose: int

    def __repr__(self) -> str:
        n, dim, _ = self.modes.shape
        loose = f", {self.n_loose} directions left out" if self.n_loose else ""
        return f"<PositionUncertainty of {n} points in {dim}-D at temperature {self.temperature:.3g}{loose}>"

    def _at(self, rows: ArrayLike) -> PositionUncertainty:
        """Return the law of some points, or of points that occur more than once."""
        at = np.asarray(rows)
        return replace(self, embedding=self.embedding[at], modes=self.modes[at])

    def covariances(self, n_neighbors: int | None = None) -> FloatArray:
        """Return the covariance of each position, of shape (n_points, n_components, n_components).

        Parameters
        ----------
        n_neighbors : int, optional
            Measure each position against the mean of this many nearest points on the map, so that the movement of a
            group as a whole does not count; by default against the map as a whole.
        """
        modes = self.modes if n_neighbors is None else self._against(self._neighbors(n_neighbors)[1])
        return np.einsum("iam,ibm->iab", modes, modes)

    def radii(self) -> FloatArray:
        """Return the root mean square displacement of each position on the map, of shape (n_points,)."""
        return np.sqrt(np.square(self.modes).sum(axis=(1, 2)))

    def stability(self, n_neighbors: int = 10) -> FloatArray:
        """Return how well each point keeps its place among its nearest points on the map, from 0 to 1.

        It is 1/(1 + r²/d²): r is the root mean square displacement against the mean of the neighbours, and d the mean
        distance to them. The movement of a group as a whole does not lower it.

        Parameters
        ----------
        n_neighbors : int, default=10

        Returns
        -------
        ndarray of shape (n_points,)
        """
        dist, nearest = self._neighbors(n_neighbors)
        d2 = np.square(dist.mean(axis=1))
        r2 = np.square(self._against(nearest)).sum(axis=(1, 2))
        return np.divide(d2, d2 + r2, out=np.ones_like(d2), where=d2 > 0)

    def _neighbors(self, n_neighbors: int) -> tuple[FloatArray, IntArray]:
        """Return the distances of each point to the nearest other places, and a point in each of these."""
        from sklearn.neighbors import NearestNeighbors

        places, first, place = np.unique(self.embedding, axis=0, return_index=True, return_inverse=True)
        k = min(check_integer("n_neighbors", n_neighbors, 1), len(places) - 1)
        if k < 1:
            return np.zeros((place.size, 1)), np.arange(place.size)[:, None]
        dist, nearest = NearestNeighbors(n_neighbors=k).fit(places).kneighbors()
        return dist[place.ravel()], first[nearest[place.ravel()]]

    def _against(self, nearest: IntArray) -> FloatArray:
        """Return the modes of each point minus the mean of its neighbours."""
        return self.modes - np.stack([self.modes[near].mean(axis=0) for near in nearest])

    def sample(self, n_samples: int = 1, random_state: Any = None) -> FloatArray:
        """Draw embeddings, of shape (n_samples, n_points, n_components).

        Parameters
        ----------
        n_samples : int, default=1
        random_state : int, Generator or None, default=None
        """
        shape = self.modes.shape[2], check_integer("n_samples", n_samples, 1)
        noise = np.random.default_rng(random_state).normal(size=shape)
        return self.embedding + np.moveaxis(self.modes @ noise, 2, 0)


def position_uncertainty(objective: Objective, Z: ArrayLike, temperature: float = 1.0) -> PositionUncertainty:
    """Return the normal law that exp(−H/T) has around a minimum of the objective H: its Laplace approximation.

    Its covariance is T times the inverse of the Hessian, without the directions that move or turn the whole map.
    The Hessian is computed from differences of gradients, two gradients for each coordinate.

    Parameters
    ----------
    objective : Objective
        H, in nats; a cross-entropy counts the edges of one drawn graph.
    Z : array of shape (n_points, n_components)
        A minimum of H, of at most 4,000 coordinates.
    temperature : float, default=1.0
        T. At 1/m, positions are as certain as m independently drawn graphs make them.

    Returns
    -------
    PositionUncertainty

    Raises
    ------
    TypeError, ValueError
        When an argument is unusable, there are too many coordinates, the map is curved, points are held, or the
        objective is not smooth at `Z`.

    Warns
    -----
    UserWarning
        When `Z` is not a minimum: the objective falls in some directions, or, by its slope, `Z` lies more than a
        standard deviation from a minimum, on average over the modes.

    References
    ----------
    MacKay (2003), Information theory, inference and learning algorithms, chapter 27.

    Examples
    --------
    Two points on a line, tied by a spring: H = (z₁ − z₂ − 1)²/2 leaves their distance the variance T, and each of them
    moves by half of it.

    >>> import numpy as np
    >>> import graphcouple as gc
    >>> class Spring(gc.extend.Objective):
    ...     n_points = 2
    ...
    ...     def value(self, Z):
    ...         return 0.5 * float(Z[0, 0] - Z[1, 0] - 1.0) ** 2
    ...
    ...     def value_and_grad(self, Z):
    ...         return self.value(Z), (Z[0, 0] - Z[1, 0] - 1.0) * np.array([[1.0], [-1.0]])
    >>> law = gc.optimize.position_uncertainty(Spring(), [[0.5], [-0.5]], temperature=4.0)
    >>> law.radii()
    array([1., 1.])
    """
    check_positive("temperature", temperature)
    points = _checked(objective, Z)
    hessian = _hessian(objective, points)
    asymmetry = float(np.abs(hessian - hessian.T).max() / max(np.abs(hessian).max(), np.finfo(np.float64).tiny))
    if not asymmetry < _SYMMETRIC:
        raise ValueError(
            f"the objective is not smooth at Z: its second derivatives differ by {asymmetry:.2g} of the largest with "
            "their order. Use a latent kernel that is smooth at distance 0, such as Student(), keep points apart, and "
            "in an objective of your own sum all pairs exactly (Exact())."
        )
    free = _rigid_motions(points)
    hessian = 0.5 * (hessian + hessian.T)
    across = hessian @ free
    # No curvature along the rigid motions.
    hessian = hessian - across @ free.T - free @ across.T + free @ (free.T @ across) @ free.T
    eigenvalues, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
    # Values of H are known to 16 digits, so a curvature below this is rounding.
    floor = _FLAT * max(abs(float(objective.value(points))), 1.0) / (float(np.square(points).mean()) or 1.0)
    stiff = eigenvalues > max(_ROUNDING * float(np.abs(eigenvalues).max()), floor)
    modes = vectors[:, stiff] * np.sqrt(float(temperature) / eigenvalues[stiff])
    loose = points.size - int(stiff.sum()) - free.shape[1]
    slopes = modes.T @ objective.gradient(points).ravel().astype(np.float64) / temperature
    away = float(np.sqrt(np.square(slopes).mean())) if stiff.any() else 0.0
    falling = int((eigenvalues < -max(_FALLING * float(np.abs(eigenvalues).max()), floor)).sum())
    if falling or away > 1.0:
        slope = f"by its slope, it lies {away:.2g} standard deviations from a minimum"
        where = f"the objective falls in {falling} of {points.size} directions" if falling else slope
        warn(
            f"Z is not a minimum: {where}. Positions are less certain than the law says. Fit again with "
            "warm_start=True, but not a map of AlignedMaps, which is a minimum only together with its ties. Methods "
            "with a fixed number of steps, such as TriMap, may end beside a minimum each time."
        )
    return PositionUncertainty(points, modes.reshape(*points.shape, -1), float(temperature), loose)


def _checked(objective: Objective, Z: ArrayLike) -> FloatArray:
    """Return the map as numbers; raise if it has no law, or one that takes too long."""
    points = check_embedding(Z, "Z", objective.n_points).astype(np.float64)
    spaces = [getattr(part, "space", None) for part in (objective.attracting, *parts_of(objective))]
    if space := next(filter(None, spaces), None):
        # Moves of the whole plane change distances in a curved space.
        raise ValueError(f"positions in {space} have no such law here; fit a flat map.")
    if (held := objective.held_points) is not None:
        raise ValueError(
            f"the objective holds {int(held.sum())} of {points.shape[0]} points, which have no law of their own. Give "
            "an objective that holds none; AnchorEnergy ties points to their places."
        )
    if points.size > _MOST_COORDINATES:
        raise ValueError(
            f"Z has {points.size} coordinates, and at most {_MOST_COORDINATES} are possible; fit fewer points."
        )
    return points


def _hessian(objective: Objective, points: FloatArray) -> FloatArray:
    """Return the differences of gradients along each coordinate."""
    step = _STEP * (deviation(points) or 1.0)
    hessian, moved = np.empty((points.size, points.size)), points.copy()
    for at, row in enumerate(hessian):
        place = moved.reshape(-1)[at : at + 1]
        start = float(place[0])
        place[0] = start + step
        ahead = objective.gradient(moved).ravel().copy()
        place[0] = start - step
        row[:] = (ahead - objective.gradient(moved).ravel()) / (2.0 * step)
        place[0] = start
    return hessian


def _rigid_motions(points: FloatArray) -> FloatArray:
    """Return an orthonormal basis of the directions that move or turn the whole map, of shape (n_coordinates, n)."""
    n, dim = points.shape
    centred = points - points.mean(axis=0)
    # The basis does not depend on the unit.
    centred /= float(np.linalg.norm(centred)) or 1.0
    moves = [np.eye(dim)[np.full(n, axis)].ravel() for axis in range(dim)]
    for a in range(dim):
        for b in range(a):
            turn = np.zeros_like(points)
            turn[:, a], turn[:, b] = centred[:, b], -centred[:, a]
            moves.append(turn.ravel())
    basis, sizes, _ = np.linalg.svd(np.stack(moves, axis=1), full_matrices=False)
    return basis[:, sizes > _ROUNDING * sizes.max()]
