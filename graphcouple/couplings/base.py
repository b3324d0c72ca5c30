"""What an objective is, and how objectives add and scale."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple.graphs import FloatArray

_POWER_STEPS = 10

# How far gradients are compared, in root mean square distances per point, relative to the size of the embedding.
_NEARBY = 1e-5


class Objective(ABC):
    """A function of the embedding to be minimised.

    Every part of a method has this interface: a cross-entropy, the log-partition and the
    edge energy it consists of, and any added term. Objectives can be added and scaled:
    ``coupling + 0.1 * other`` is an objective, and curvatures add too.

    An objective is pure: the same `Z` gives the same bits, whatever was computed before. If
    it changes from iteration to iteration (freshly drawn graphs, a mini-batch, a frozen
    eigenbasis), `at` returns a pure objective for each iteration.
    """

    @property
    def shrinks_noise(self) -> bool:
        """Whether noise shrinks under the objective itself, and so cannot measure how much attraction it bears."""
        return False

    @property
    def is_bounded(self) -> bool:
        """Whether the loss has an upper bound, so that points far apart feel no pull, whatever joins them."""
        return False

    @property
    def held_points(self) -> NDArray[np.bool_] | None:
        """Which points stay in their places, of shape (n_points,), so that the whole cannot be scaled; None if none."""
        return None

    @property
    @abstractmethod
    def n_points(self) -> int:
        """The number of points of the embedding."""

    @abstractmethod
    def value(self, Z: FloatArray) -> float:
        """Return the objective at `Z`, of shape (n_points, n_components)."""

    @abstractmethod
    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective at `Z` and its gradient, of the shape of `Z`."""

    def gradient(self, Z: FloatArray) -> FloatArray:
        """Return the gradient alone; for some objectives it is cheaper than `value_and_grad`."""
        return self.value_and_grad(Z)[1]

    def curvature(self, Z: FloatArray) -> float:
        """Return how fast the gradient changes along the stiffest direction at `Z`, as gradients nearby show it.

        Gradient descent is stable at rates below twice the inverse. Eleven gradients give ten steps of the power
        iteration, so override this where a formula is known.
        """
        points = np.asarray(Z, dtype=np.float64)
        size = float((points - points.mean(axis=0)).std()) or 1.0
        here = self.gradient(points)
        direction = np.random.default_rng(0).normal(size=points.shape)
        stiffness = 0.0
        for _ in range(_POWER_STEPS):
            direction *= _NEARBY * size * len(points) ** 0.5 / float(np.linalg.norm(direction))
            change = self.gradient(points + direction) - here
            stiffness = float(np.linalg.norm(change) / np.linalg.norm(direction))
            if not stiffness > 0:
                break
            direction = change
        return stiffness

    @property
    def lower_bound(self) -> float:
        """A lower bound of the objective over all embeddings; −inf if none is known."""
        return -np.inf

    def at(self, iteration: int, Z: FloatArray) -> Objective:
        """Return the pure objective of one iteration, which starts from `Z`; itself if it never changes."""
        return self

    @property
    def is_majorized(self) -> bool:
        """Whether `majorizer` returns something else than the objective, which is cheaper to descend on."""
        return False

    def majorizer(self, Z: FloatArray, previous: Objective | None = None) -> Objective:
        """Return a pure objective that equals this one at `Z` and is nowhere below it; itself by default.

        Whatever lowers the majorizer lowers the objective at least as much.

        Parameters
        ----------
        Z : ndarray of shape (n_points, n_components)
        previous : Objective, optional
            A majorizer of the same objective at a similar embedding, which may help to find this one.
        """
        return self

    def remembered(self) -> Any:
        """Return arrays or tuples from which the objective's `recalled` makes this majorizer again."""
        return None

    def recalled(self, remembered: Any) -> Objective:
        """Return the majorizer of this objective that was `remembered`; itself by default."""
        return self

    def most_attraction(self, Z: FloatArray) -> float:
        """Return the weight of the attraction from which the exaggerated loss is unbounded below; inf if none is.

        Parameters
        ----------
        Z : ndarray of shape (n_points, n_components)
            Where to look.
        """
        return np.inf

    @property
    def attracting(self) -> Objective:
        """The parts that `exaggerated` changes, which tell what attraction can be borne; itself by default."""
        return self

    @property
    def springs(self) -> Any:
        """The edges that attract, as a symmetric array or csr matrix of weights; None, the default, if there are none.

        `Descent` smooths a start that is as rough as noise by them, and `LBFGS` starts from their stiffness.
        """
        return None

    @property
    def confinement(self) -> Objective | None:
        """What `Descent` adds to bound the size of a map; None, the default, if the objective bounds it itself."""
        return None

    def exaggerated(self, factor: float) -> Objective:
        """Return the objective with its attraction to the data `factor` times as strong; itself if it has none."""
        return self

    def __add__(self, other: Any) -> Objective:
        if not isinstance(other, Objective):
            return NotImplemented
        return WeightedSum((*_parts(self), *_parts(other)))

    def __mul__(self, factor: Any) -> Objective:
        if not isinstance(factor, Real):
            return NotImplemented
        if not np.isfinite(float(factor)):
            raise ValueError(f"an objective can only be scaled by a finite number, got {factor!r}.")
        return WeightedSum(tuple((float(factor) * weight, term) for weight, term in _parts(self)))

    __rmul__ = __mul__


class Absent(Objective):
    """An objective that is 0 everywhere, in the place of one that waits for its turn.

    Parameters
    ----------
    n_points : int
    """

    lower_bound = 0.0

    def __init__(self, n_points: int) -> None:
        self._n_points = n_points

    @property
    def n_points(self) -> int:
        """The number of points of the embedding."""
        return self._n_points

    def value(self, Z: FloatArray) -> float:
        """Return 0."""
        return 0.0

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return 0 and zeros."""
        return 0.0, np.zeros_like(Z)


class Rescaled(Objective):
    """An objective of the embedding divided by a length.

    Parameters
    ----------
    objective : Objective
    scale : float
    """

    def __init__(self, objective: Objective, scale: float) -> None:
        self.objective, self.scale = objective, scale

    @property
    def n_points(self) -> int:
        """The number of points of the embedding."""
        return self.objective.n_points

    def value(self, Z: FloatArray) -> float:
        """Return the objective at Z / scale."""
        return self.objective.value(Z / np.asarray(self.scale, Z.dtype))

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective at Z / scale and its gradient in Z."""
        value, gradient = self.objective.value_and_grad(Z / np.asarray(self.scale, Z.dtype))
        return value, (gradient / self.scale).astype(Z.dtype, copy=False)

    def gradient(self, Z: FloatArray) -> FloatArray:
        """Return the gradient alone."""
        return (self.objective.gradient(Z / np.asarray(self.scale, Z.dtype)) / self.scale).astype(Z.dtype, copy=False)


def balanced(forces: FloatArray) -> FloatArray:
    """Return forces between points less their mean, which is 0 but for the errors of sums over all pairs.

    The objective is level along a shift of all points, so descent by curvature would make even a tiny mean force a
    long step, and no other.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings.base import balanced
    >>> balanced(np.array([[1.0], [-3.0]]))
    array([[ 2.],
           [-2.]])
    """
    return forces - forces.mean(axis=0)


def _parts(objective: Objective) -> tuple[tuple[float, Objective], ...]:
    return objective.terms if isinstance(objective, WeightedSum) else ((1.0, objective),)


@dataclass(frozen=True)
class WeightedSum(Objective):
    """A weighted sum of objectives on the same points.

    Parameters
    ----------
    terms : tuple of (float, Objective)
        An objective that occurs twice is evaluated once, with the sum of its weights.

    Raises
    ------
    ValueError
        When the objectives are on different numbers of points.
    """

    terms: tuple[tuple[float, Objective], ...]

    def __post_init__(self) -> None:
        sizes = sorted({term.n_points for _, term in self.terms})
        if len(sizes) != 1:
            raise ValueError(f"objectives on different numbers of points cannot be added: {sizes}.")
        weights: dict[int, list[Any]] = {}
        for weight, term in self.terms:
            weights.setdefault(id(term), [0.0, term])[0] += weight
        object.__setattr__(self, "terms", tuple((weight, term) for weight, term in weights.values()))

    @property
    def n_points(self) -> int:
        """The number of points of the embedding."""
        return self.terms[0][1].n_points

    def value(self, Z: FloatArray) -> float:
        """Return the weighted sum of the values."""
        return sum(weight * term.value(Z) for weight, term in self.terms)

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return the weighted sums of the values and of the gradients."""
        results = [term.value_and_grad(Z) for _, term in self.terms]
        value = sum(weight * value for (weight, _), (value, _) in zip(self.terms, results, strict=True))
        return value, self._weighted([gradient for _, gradient in results])

    def gradient(self, Z: FloatArray) -> FloatArray:
        """Return the weighted sum of the gradients."""
        return self._weighted([term.gradient(Z) for _, term in self.terms])

    def _weighted(self, gradients: list[FloatArray]) -> FloatArray:
        total = np.zeros_like(gradients[0])
        for (weight, _), gradient in zip(self.terms, gradients, strict=True):
            total += weight * gradient
        return total

    def curvature(self, Z: FloatArray) -> float:
        """Return the sum of the terms' curvatures, times the absolute values of their weights."""
        return sum(abs(weight) * term.curvature(Z) for weight, term in self.terms if weight)

    @property
    def lower_bound(self) -> float:
        """The weighted sum of the terms' lower bounds; −inf if a weight is negative."""
        if any(weight < 0 for weight, _ in self.terms):
            return -np.inf
        return sum(weight * term.lower_bound for weight, term in self.terms if weight)

    def at(self, iteration: int, Z: FloatArray) -> WeightedSum:
        """Return the weighted sum of the terms' objectives for that iteration."""
        return WeightedSum(tuple((weight, term.at(iteration, Z)) for weight, term in self.terms))

    @property
    def is_majorized(self) -> bool:
        """Whether a term is."""
        return any(weight > 0 and term.is_majorized for weight, term in self.terms)

    def majorizer(self, Z: FloatArray, previous: Objective | None = None) -> Objective:
        """Return the weighted sum of the terms' majorizers; terms of negative weight stay as they are."""
        if not self.is_majorized:
            return self
        known: Any = previous.terms if isinstance(previous, WeightedSum) else [(0.0, None)] * len(self.terms)
        pairs = zip(self.terms, known, strict=True)
        return WeightedSum(tuple((w, term.majorizer(Z, last) if w > 0 else term) for (w, term), (_, last) in pairs))

    def remembered(self) -> Any:
        """Return what the terms remember."""
        return tuple(term.remembered() for _, term in self.terms)

    def recalled(self, remembered: Any) -> Objective:
        """Return the weighted sum of the terms' majorizers."""
        if not self.is_majorized:
            return self
        pairs = zip(self.terms, remembered, strict=True)
        return WeightedSum(tuple((w, term.recalled(known) if w > 0 else term) for (w, term), known in pairs))

    @property
    def shrinks_noise(self) -> bool:
        """Whether a term does."""
        return any(weight > 0 and term.shrinks_noise for weight, term in self.terms)

    @property
    def held_points(self) -> NDArray[np.bool_] | None:
        """The points that any term holds."""
        held = [mask for _, term in self.terms if (mask := term.held_points) is not None]
        return np.logical_or.reduce(held) if held else None

    @property
    def is_bounded(self) -> bool:
        """Whether all terms are."""
        return all(term.is_bounded for _, term in self.terms)

    def most_attraction(self, Z: FloatArray) -> float:
        """Return the least of the terms' weights."""
        return min(term.most_attraction(Z) for _, term in self.terms)

    @property
    def attracting(self) -> Objective:
        """The sum of the terms that `exaggerated` changes; itself if there are none."""
        found = tuple((weight, term) for weight, term in self.terms if term.exaggerated(2.0) is not term)
        return WeightedSum(found) if 0 < len(found) < len(self.terms) else self

    @property
    def springs(self) -> Any:
        """The weighted sum of the springs of all terms of positive weight."""
        known = [(weight, term.springs) for weight, term in self.terms if weight > 0]
        # Many points have gigabytes of edges, so they are not copied without need.
        found = [of if weight == 1.0 else weight * of for weight, of in known if of is not None]
        return sum(found[1:], found[0]) if found else None

    @property
    def confinement(self) -> Objective | None:
        """The weighted sum of the terms' own."""
        known = [(weight, term.confinement) for weight, term in self.terms if weight > 0]
        found = tuple((weight, bound) for weight, bound in known if bound is not None)
        return WeightedSum(found) if found else None

    def exaggerated(self, factor: float) -> WeightedSum:
        """Return the sum with the attraction of each term `factor` times as strong.

        A term without an attraction is weighed as much more, so that it does not fade beside the others' attraction.
        """
        if factor == 1.0:
            return self
        weighted = [(weight, term, term.exaggerated(factor)) for weight, term in self.terms]
        return WeightedSum(tuple((w * factor if found is term else w, found) for w, term, found in weighted))
