"""Objectives and their attraction, and sums and multiples of objectives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.html import html_table
from graphcouple.graphs import FloatArray
from graphcouple.summation.curved import Space


@dataclass(frozen=True, kw_only=True)
class Attraction:
    """How an objective draws points together.

    Parameters
    ----------
    source : Objective
        The objective without the terms that have no attraction.
    times : callable
        ``times(factor)`` returns the objective with its attraction `factor` times as strong, for early exaggeration.
        Terms that wait until exaggeration ends are left out.
    edges : callable, optional
        Returns the edges that attract, as a symmetric array or csr matrix of weights, or as a list of matrices to add;
        None, the default, if there are no edges. `Descent` smooths a rough start along the edges, and `LBFGS` begins
        with their stiffness.
    limit : callable, optional
        ``limit(Z)`` returns the factor from which the exaggerated loss has no lower bound near `Z`; inf by default.
    confinement : callable, optional
        Returns the objective that `Descent` adds to bound the size of the map, where the attraction leaves components
        free to move apart; None, the default, if the map needs no bound.
    shrinks_noise : bool, default=False
        Whether noise shrinks even without exaggeration, so that it cannot show how much attraction a start tolerates.
    fades : bool, default=False
        Whether the loss has an upper bound, so that points far apart feel no pull.
    shares_edges : bool, default=False
        Whether the embedding's graphs share out a fixed number of edges, as under priors D and E. While a small map
        grows, points far apart then repel each other most.
    raised : callable, optional
        ``raised(forces, Z)`` returns the product with the inverse metric of a curved map. `LBFGS` takes it in place of
        the edges' stiffness.
    space : Space, optional
        The space of a curved map; None, the default, for a flat one.
    n_jobs : int or None, default=1
        Threads for products with the edges.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.extend import Attraction, Objective
    >>> class Pull(Objective):
    ...     def __init__(self, strength=1.0):
    ...         self.n_points, self.strength = 3, strength
    ...     def value_and_grad(self, Z):
    ...         return self.strength * float((Z**2).sum()), 2.0 * self.strength * Z
    ...     @property
    ...     def attracting(self):
    ...         return Attraction(source=self, times=Pull)
    >>> Pull().attracting.times(12.0).value(np.ones((3, 2)))
    72.0
    """

    source: Objective
    times: Callable[[float], Objective]
    edges: Callable[[], Any] = lambda: None
    limit: Callable[[FloatArray], float] = lambda Z: np.inf
    confinement: Callable[[], Objective | None] = lambda: None
    shrinks_noise: bool = False
    fades: bool = False
    shares_edges: bool = False
    raised: Callable[[FloatArray, FloatArray], FloatArray] | None = None
    space: Space | None = None
    n_jobs: int | None = 1

    @property
    def matrices(self) -> list[Any]:
        """The matrices whose sum is the edges; not added here, because the edges of many points take gigabytes."""
        edges = self.edges()
        return edges if isinstance(edges, list) else [] if edges is None else [edges]


# Steps of power iteration for a curvature, which only sets the size of steps.
_POWER_STEPS = 10

# Distance between compared gradients: root mean square per point, relative to the size of the embedding.
_NEARBY = 1e-5


class Objective(ABC):
    """A function of the embedding to be minimised.

    Every part of a method has this interface: a cross-entropy, the log-partition and the
    edge energy it consists of, and any added term. Objectives can be added and scaled:
    ``coupling + 0.1 * other`` is an objective, and curvatures add too.

    An objective is pure: the same `Z` gives the same bits, whatever was computed before, except
    under latent prior S (see `GraphPrior.for_run`). If it changes from iteration to iteration (freshly
    drawn graphs, a mini-batch, a frozen eigenbasis), `at` returns a pure objective for each iteration.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> class ToCircle(gc.extend.Objective):
    ...     n_points = 5
    ...     lower_bound = 0.0
    ...     def value_and_grad(self, Z):
    ...         excess = (Z**2).sum(axis=1) - 1.0
    ...         return float((excess**2).sum()), 4.0 * excess[:, None] * Z
    >>> Z = gc.solve(ToCircle(), np.random.default_rng(0).normal(size=(5, 2)), gc.LBFGS()).Z
    >>> np.linalg.norm(Z, axis=1).round(3).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """

    @property
    def held_points(self) -> NDArray[np.bool_] | None:
        """Which points stay in place, of shape (n_points,), which forbids rescaling; None if all points move."""
        return None

    n_points: int
    """The number of points of the embedding."""

    def value(self, Z: FloatArray) -> float:
        """Return the objective at `Z`, of shape (n_points, n_components)."""
        return self._parts(Z)[0]

    @abstractmethod
    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective at `Z` and its gradient, of the shape of `Z`."""

    def gradient(self, Z: FloatArray) -> FloatArray:
        """Return the gradient alone; for some objectives it is cheaper than `value_and_grad`."""
        return self._parts(Z)[1]

    def _parts(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient; raise unless they are a number and an array of the shape of `Z`."""
        parts, name = self.value_and_grad(Z), f"{type(self).__name__}.value_and_grad"
        if not (isinstance(parts, tuple) and len(parts) == 2 and np.ndim(parts[0]) == 0):
            raise TypeError(f"{name} must return a number and a gradient, got {parts!r}.")
        if (shape := np.shape(parts[1])) != np.shape(Z):
            raise ValueError(f"{name} must return a gradient of the shape of Z, {np.shape(Z)}, got {shape}.")
        return parts[0], _as_floats(parts[1])

    def curvature(self, Z: FloatArray) -> float:
        """Return how fast the gradient changes along the stiffest direction at `Z`, by power iteration.

        Gradient descent is stable at rates below 2/curvature. Ten steps of the iteration take eleven gradients, so
        override this where a formula is known.
        """
        points = np.asarray(Z, dtype=np.float64)
        size = deviation(points) or 1.0
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
        """Return the pure objective of one iteration, which starts from `Z`; self if it never changes."""
        return self

    @property
    def basis_span(self) -> int:
        """How many iterations of `LBFGS` one basis serves; see `basis`."""
        return 10

    def basis(self, Z: FloatArray, previous: Any = None) -> Any:
        """Return arrays with which `with_basis` bounds the objective from above, tightly at `Z`; None if it has none.

        `previous` is the basis at a similar embedding, which may help to find this one.
        """
        return None

    def with_basis(self, basis: Any) -> Objective:
        """Return a cheaper objective that bounds this one from above; unchanged if `basis` is None.

        It is pure. Since it is tight where the basis was made, steps from there that lower it lower this objective at
        least as much. If pairs are drawn at random, it is the objective of the drawn pairs instead.
        """
        return self

    @property
    def attracting(self) -> Attraction | None:
        """The part that early exaggeration strengthens; None, the default, if there is none."""
        return None

    def exaggerated(self, factor: float) -> Objective:
        """Return the objective with its attraction `factor` times as strong; unchanged for 1, or without attraction."""
        if factor == 1.0 or (attraction := self.attracting) is None:
            return self
        return attraction.times(factor)

    def _repr_html_(self) -> str:
        kind, bound = type(self).__name__, f"{self.lower_bound:.6g}"
        return html_table([], [["objective", kind], ["points", f"{self.n_points:,}"], ["lower bound", bound]])

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


def _as_floats(gradient: Any) -> FloatArray:
    array = np.asarray(gradient)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def balanced(forces: FloatArray) -> FloatArray:
    """Return forces between points minus their mean, which would be 0 if sums over all pairs had no errors.

    A shift of all points does not change the objective, so its curvature along a shift is 0. A step that follows
    curvature would turn even a tiny mean force into one long shift of all points.
    """
    return forces - forces.mean(axis=0)


def deviation(Z: FloatArray) -> float:
    """Return the root mean square of the coordinates from their means, wherever the map lies."""
    return float((Z - Z.mean(axis=0)).std())


def parts_of(objective: Objective) -> Iterator[Any]:
    """Yield an objective and, if it is a sum, its parts."""
    yield objective
    for _, part in objective.terms if isinstance(objective, WeightedSum) else ():
        yield from parts_of(part)


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

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import AnchorEnergy
    >>> first, second = (AnchorEnergy(2, np.array([i]), np.zeros((1, 1))) for i in range(2))
    >>> (first + 10.0 * second).value(np.array([[1.0], [2.0]]))
    41.0
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
        object.__setattr__(self, "n_points", sizes[0])

    def value(self, Z: FloatArray) -> float:
        # From Python 3.12 on, `sum` rounds floats otherwise than NumPy's scalars.
        return float(np.sum([weight * term.value(Z) for weight, term in self.terms]))

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        results = [term.value_and_grad(Z) for _, term in self.terms]
        values = [weight * value for (weight, _), (value, _) in zip(self.terms, results, strict=True)]
        return float(np.sum(values)), self._weighted([gradient for _, gradient in results])

    def gradient(self, Z: FloatArray) -> FloatArray:
        return self._weighted([term.gradient(Z) for _, term in self.terms])

    def _weighted(self, gradients: list[FloatArray]) -> FloatArray:
        total = np.zeros_like(_as_floats(gradients[0]))
        for (weight, _), gradient in zip(self.terms, gradients, strict=True):
            total += weight * _as_floats(gradient)
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
        return WeightedSum(tuple((weight, term.at(iteration, Z)) for weight, term in self.terms))

    @property
    def basis_span(self) -> int:
        """The shortest span of a term."""
        return min((term.basis_span for weight, term in self.terms if weight > 0), default=super().basis_span)

    def basis(self, Z: FloatArray, previous: Any = None) -> Any:
        """Return the bases of the terms of positive weight, as a tuple; None if no term has one."""
        last_bases = (None,) * len(self.terms) if previous is None else previous
        pairs = zip(self.terms, last_bases, strict=True)
        bases = tuple(term.basis(Z, last) if weight > 0 else None for (weight, term), last in pairs)
        return None if all(basis is None for basis in bases) else bases

    def with_basis(self, basis: Any) -> WeightedSum:
        if basis is None:
            return self
        pairs = zip(self.terms, basis, strict=True)
        return WeightedSum(tuple((weight, term.with_basis(own)) for (weight, term), own in pairs))

    @property
    def held_points(self) -> NDArray[np.bool_] | None:
        masks = [mask for _, term in self.terms if (mask := term.held_points) is not None]
        return np.logical_or.reduce(masks) if masks else None

    @property
    def attracting(self) -> Attraction | None:
        """The attraction of all terms.

        During exaggeration, a term without an attraction is multiplied by the same factor, to keep its share.
        """
        parts = [(weight, term, term.attracting) for weight, term in self.terms]
        pulls = [(weight, term, pull) for weight, term, pull in parts if pull is not None]
        if not pulls:
            return None

        def times(factor: float) -> WeightedSum:
            stronger = ((w * factor, term) if pull is None else (w, pull.times(factor)) for w, term, pull in parts)
            return WeightedSum(tuple(stronger))

        def edges() -> list[Any]:
            return [w * part if w != 1.0 else part for w, _, pull in pulls if w > 0 for part in pull.matrices]

        def confinement() -> Objective | None:
            bounds = tuple((w, bound) for w, _, pull in pulls if w > 0 and (bound := pull.confinement()) is not None)
            return WeightedSum(bounds) if bounds else None

        return Attraction(
            source=self if len(pulls) == len(parts) else WeightedSum(tuple((w, term) for w, term, _ in pulls)),
            times=times,
            edges=edges,
            limit=lambda Z: min(pull.limit(Z) for _, _, pull in pulls),
            confinement=confinement,
            raised=next((pull.raised for _, _, pull in pulls), None),
            space=next((pull.space for _, _, pull in pulls if pull.space is not None), None),
            shrinks_noise=any(w > 0 and pull.shrinks_noise for w, _, pull in pulls),
            fades=all(pull is not None and pull.fades for _, _, pull in parts),
            shares_edges=any(w > 0 and pull.shares_edges for w, _, pull in pulls),
            n_jobs=pulls[0][2].n_jobs,
        )
