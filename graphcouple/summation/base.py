"""The interface of a summation, and the registry of summations."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from graphcouple._support.registry import Registry
from graphcouple.graphs import FloatArray, Support
from graphcouple.summation.edges import EdgeSum
from graphcouple.summation.fields import ExactField, Field
from graphcouple.summation.radials import RadialFunction


class Summation(ABC):
    """Base class of all summations: one N-body sum gives the repulsion of every method.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; None means every core. The result is bitwise the same for any number.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> class Plain(gc.extend.Summation):
    ...     def potential(self, Z, radial, charges=None, *, with_potential=True, with_gradient=True):
    ...         difference, others = Z[:, None] - Z, 1.0 - np.eye(len(Z))
    ...         sq_dist = (difference**2).sum(-1) + np.eye(len(Z))
    ...         c = others if charges is None else others * charges
    ...         gradient = 2.0 * np.einsum("ij,ijk->ik", c * radial.slope(sq_dist), difference)
    ...         return (c * radial.potential(sq_dist)).sum(axis=1), gradient
    >>> X, y = gc.datasets.load("iris")
    >>> gc.TSNE(summation=Plain(), max_iter=20, random_state=0).fit(X).embedding_.shape
    (150, 2)
    """

    resolution: float = 0.0
    """Absolute error of a potential of unit charges, for a radial function with values up to 1; 0 if exact."""

    checks_accuracy: bool = False
    """Whether the summation is exact, or checks its own accuracy and warns; fits check all other summations."""

    single_from: int | None = None
    """Above this many points, single precision is enough, since the sums have larger errors. None for never."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self)).parameters.values()
        values = {p.name: getattr(self, p.name, p.default) for p in parameters if p.name != "n_jobs"}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in values.items())})"

    def for_points(self, Z: FloatArray, radial: RadialFunction) -> Summation:
        """Return the summation to use for these points: itself, or another that it chooses."""
        return self

    def coarse(self) -> Summation:
        """Return a cheaper summation for use far from a minimum, or itself."""
        return self

    def points_dtype(self, n_points: int, dtype: Any) -> np.dtype[Any]:
        """Return the dtype of the embedding of this many points; `dtype` is the data's."""
        single = self.single_from is not None and n_points > self.single_from
        return np.dtype(np.float32 if single else dtype)

    @abstractmethod
    def potential(
        self,
        Z: FloatArray,
        radial: RadialFunction,
        charges: FloatArray | None = None,
        *,
        with_potential: bool = True,
        with_gradient: bool = True,
    ) -> tuple[FloatArray, FloatArray]:
        """Return the potential of charges at the points, and its gradient.

        Φ_i = Σ_{j≠i} c_j φ(d²_ij) and ∇Φ_i = Σ_{j≠i} c_j 2 φ'(d²_ij) (z_i − z_j),
        the gradient in z_i with the charges held fixed.

        Parameters
        ----------
        Z : ndarray of shape (n, q)
        radial : RadialFunction
            φ and φ', functions of d².
        charges : ndarray of shape (n,), optional
            1 for every point by default.
        with_potential, with_gradient : bool, default=True
            What to compute; the other array holds arbitrary values.

        Returns
        -------
        potential : ndarray of shape (n,)
        gradient : ndarray of shape (n, q)
            Both float64, whatever the dtype of `Z`.
        """

    def of_run(self) -> Summation:
        """Return the summation for the maps of one run, which differ little from one to the next; itself by default."""
        return self

    def edge_sum(
        self, support: Support, weights: FloatArray, radial: RadialFunction, *options: Any, **named: Any
    ) -> EdgeSum:
        """Return the sum of a radial function over edges, by the distances that this summation measures."""
        return EdgeSum(support, weights, radial, *options, **named)

    def total(self, Z: FloatArray, radial: RadialFunction, charges: FloatArray, weights: FloatArray) -> float:
        """Return Σ_i w_i Φ_i, for a loss that is linear in the potentials; charges and weights have the shape (n,)."""
        return float(weights @ self.potential(Z, radial, charges, with_gradient=False)[0])

    def potentials(
        self, Z: FloatArray, radial: RadialFunction, charges: FloatArray, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the potentials of sets of charges, (n_sets, n), and their gradients, of shape (n_sets, n, q).

        `outputs` are `with_potential` and `with_gradient`, as for `potential`.
        """
        sums = [self.potential(Z, radial, row, **outputs) for row in charges]
        return np.stack([potential for potential, _ in sums]), np.stack([gradient for _, gradient in sums])

    def low_rank(
        self, Z: FloatArray, radial: RadialFunction, left: FloatArray, right: FloatArray, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return Φ_i = Σ_{j≠i} c_ij φ(d²_ij) and ∇Φ_i for charges of pairs, c_ij = Σ_s left_si right_sj.

        `left` and `right` have the shape (rank, n); `outputs` as for `potential`.
        """
        return weighed(left, *self.potentials(Z, radial, right, **outputs))

    def field(self, Z: FloatArray, radial: RadialFunction, charges: FloatArray) -> Field:
        """Return the field of charges, of shape (n_sets, n), at the points `Z`, which has a value at any place."""
        return ExactField(Z, radial, charges, self.n_jobs)


class SummationOfSets(Summation):
    """Base class of summations with a pass over several sets of charges, `potentials`, which also sums a single one."""

    def potential(
        self, Z: FloatArray, radial: RadialFunction, charges: FloatArray | None = None, **outputs: bool
    ) -> tuple[FloatArray, FloatArray]:
        sets = np.ones((1, len(Z))) if charges is None else charges[None]
        potentials, gradients = self.potentials(Z, radial, sets, **outputs)
        return potentials[0], gradients[0]


def weighed(left: FloatArray, potentials: FloatArray, gradients: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return potential and gradient of charges of pairs from the potentials of sets; see `Summation.low_rank`."""
    return np.einsum("si,si->i", left, potentials), np.einsum("si,sia->ia", left, gradients)


SUMMATIONS: Registry[Callable[[int | None], Summation]] = Registry("summation", "a Summation")


def register(name: str) -> Callable[[Callable[[int | None], Summation]], Callable[[int | None], Summation]]:
    """Register a summation under a name, for every estimator; decorates a class.

    Parameters
    ----------
    name : str
        The value to pass as ``summation=``. The class is called with ``n_jobs``.

    Examples
    --------
    >>> import graphcouple as gc
    >>> @gc.extend.register_summation("coarse")
    ... class Coarse(gc.summation.ParticleMesh):
    ...     def __init__(self, n_jobs=None):
    ...         super().__init__(n_jobs, spacing=0.5)
    >>> X, y = gc.datasets.load("iris")
    >>> gc.TSNE(summation="coarse", max_iter=20, random_state=0).fit(X).embedding_.shape
    (150, 2)
    """
    return SUMMATIONS.register(name)


def names() -> list[str]:
    """Return the registered names."""
    return SUMMATIONS.names()


def as_summation(summation: Any, n_jobs: int | None = None) -> Summation:
    """Return `summation` itself, or the summation of this name; others raise `TypeError` or `ValueError`."""
    return summation if isinstance(summation, Summation) else SUMMATIONS[summation](n_jobs)
