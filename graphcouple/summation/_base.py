"""The contract of a summation, and the names summations go by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from graphcouple._formula import Formula
from graphcouple.graphs import FloatArray


class Summation(ABC):
    """One N-body primitive carries the repulsion of every method.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads; None means every core. The result has the same bits for any
        number of them.
    """

    resolution: float = 0.0
    """Absolute error of a potential of unit charges under a radial function of values up to 1; 0 when exact."""

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def for_points(self, Z: FloatArray, radial: Formula) -> Summation:
        """Return the summation that does the sums for these points: this one, or one of those it chooses among."""
        return self

    @abstractmethod
    def potential(
        self,
        Z: FloatArray,
        radial: Formula,
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
        radial : Formula
            With ``potential`` = φ and ``slope`` = φ', functions of d².
        charges : ndarray of shape (n,), optional
            1 for every point by default.
        with_potential, with_gradient : bool, default=True
            What to compute; the array of what is not wanted has undefined content.

        Returns
        -------
        potential : ndarray of shape (n,)
        gradient : ndarray of shape (n, q)
            Both float64, whatever the dtype of `Z`.
        """


_NAMED: dict[str, Callable[[int | None], Summation]] = {}


def register(name: str) -> Callable[[type[Summation]], type[Summation]]:
    """Make a summation known by a name; a class decorator."""

    def remember(cls: type[Summation]) -> type[Summation]:
        _NAMED[name] = cls
        return cls

    return remember


def names() -> list[str]:
    """Return what a summation may be called."""
    return sorted(_NAMED)


def as_summation(summation: Any, n_jobs: int | None = None) -> Summation:
    """Return a summation itself, or the one its name stands for.

    Raises
    ------
    TypeError, ValueError
        When it is neither a `Summation` nor a known name.
    """
    if isinstance(summation, Summation):
        return summation
    if not isinstance(summation, str):
        raise TypeError(f"summation must be a Summation or one of {names()}, got {summation!r}.")
    if summation not in _NAMED:
        raise ValueError(f"summation must be one of {names()} or a Summation, got {summation!r}.")
    return _NAMED[summation](n_jobs)
