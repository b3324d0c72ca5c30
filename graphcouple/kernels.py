"""Kernels: how strongly two points call for an edge, as a function of their squared distance.

Every kernel is written in the log and in terms of s = d², so that one pair of
formulas, log k(s) and its derivative ψ(s) = d log k / ds, serves densities,
posteriors and forces: the force along an edge is 2 ψ(d²_ij) (z_i − z_j).

========================  ==================================  =========================
kernel                    log k(d²)                           where it is used
========================  ==================================  =========================
Gaussian                  −d²/2                               SNE, the input side
Exponential               −d                                  UMAP's input side
Student(dof=ν)            −(ν+1)/2 · log(1 + d²/ν)            t-SNE's embedding (ν = 1)
RationalPower(a, b)       −log(1 + a d^{2b})                  UMAP's embedding
Odds(k)                   log k − log(1 − k)                  edge probabilities k
========================  ==================================  =========================

A new kernel is a frozen dataclass with ``log``, ``grad_log``, ``assumptions``
(and ``order_at_zero``, if its odds are wanted). It works at once with every
prior, summation and estimator: compiled loops run these very methods.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from graphcouple._formula import Formula
from graphcouple._validation import check_integer, check_positive

# A positive normal number of float32 too: distances are kept off an exact zero where a formula is singular there.
TINY = 1e-37
HUGE = 1e37


class Assumptions(NamedTuple):
    """Whether a kernel meets the two assumptions of theorem 1 of the graph-coupling paper on R^q.

    A shift-invariant graph density is normalisable on the centred subspace
    when the kernel is bounded above and integrable.
    """

    bounded: bool
    integrable: bool


@dataclass(frozen=True)
class Kernel(Formula, ABC):
    """Base of all kernels.

    Subclasses give ``log``, ``grad_log`` and ``assumptions``; the rest follows,
    and may be given too where a direct formula is faster or more accurate.
    Formulas use arithmetic and NumPy ufuncs only, and take the argument
    ``sq_dist``, because the compiled loops run them on scalars.
    """

    @abstractmethod
    def log(self, sq_dist: Any) -> Any:
        """Return log k at squared distances `sq_dist`, in their dtype."""

    @abstractmethod
    def grad_log(self, sq_dist: Any) -> Any:
        """Return ψ = d log k / d(d²) at squared distances `sq_dist`, in their dtype."""

    @abstractmethod
    def assumptions(self, dim: int) -> Assumptions:
        """Return whether k is bounded, and integrable on R^dim (graph-coupling paper, theorem 1)."""

    @property
    def order_at_zero(self) -> float:
        """The exponent m for which 1 − k behaves like d^m near d = 0."""
        return 2.0

    @property
    def membership(self) -> Kernel:
        """The kernel whose values are edge strengths in [0, 1]: itself, or what an `Odds` was made of."""
        return self

    def value(self, sq_dist: Any) -> Any:
        """Return k at squared distances `sq_dist`."""
        return np.exp(self.log(sq_dist))

    def log1p(self, sq_dist: Any) -> Any:
        """Return log(1 + k), a pair's share of the binary prior's log-partition."""
        return np.log1p(self.value(sq_dist))

    def edge_probability(self, sq_dist: Any) -> Any:
        """Return k / (1 + k), a pair's edge probability under the binary prior."""
        odds = np.minimum(self.value(sq_dist), HUGE)
        return odds / (1.0 + odds)

    def log_probability(self, sq_dist: Any) -> Any:
        """Return log(k / (1 + k)), of a pair's edge probability under the binary prior."""
        return self.log(sq_dist) - self.log1p(sq_dist)

    def grad_log_probability(self, sq_dist: Any) -> Any:
        """Return the derivative of `log_probability` in d², ψ / (1 + k)."""
        return self.grad_log(sq_dist) / (1.0 + np.minimum(self.value(sq_dist), HUGE))

    def log_complement(self, sq_dist: Any) -> Any:
        """Return log(1 − k), accurate near d = 0."""
        return np.log(-np.expm1(self.log(np.maximum(sq_dist, TINY))))

    def log_odds(self, sq_dist: Any) -> Any:
        """Return log k − log(1 − k)."""
        return self.log(sq_dist) - self.log_complement(sq_dist)

    def grad_log_odds(self, sq_dist: Any) -> Any:
        """Return the derivative of `log_odds` in d²."""
        away = np.maximum(sq_dist, TINY)
        return -self.grad_log(away) / np.expm1(self.log(away))


@dataclass(frozen=True)
class Gaussian(Kernel):
    """Gaussian kernel, log k = −d²/2.

    Bounded and integrable in every dimension.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> gc.Gaussian().log(np.array([0.0, 2.0]))
    array([-0., -1.])
    """

    def log(self, sq_dist: Any) -> Any:
        """Return −d²/2."""
        return -0.5 * sq_dist

    def grad_log(self, sq_dist: Any) -> Any:
        """Return −1/2 everywhere."""
        # min(d², 0) is a zero of the argument's shape and dtype, also for an infinite distance.
        return np.minimum(sq_dist, 0.0) - 0.5

    def assumptions(self, dim: int) -> Assumptions:
        """Bounded and integrable for every `dim`."""
        check_integer("dim", dim, 1)
        return Assumptions(bounded=True, integrable=True)


@dataclass(frozen=True)
class Exponential(Kernel):
    """Exponential kernel, log k = −d.

    Bounded and integrable in every dimension. Its derivative in d² is singular
    at 0; there the force, a multiple of z_i − z_j, is zero.

    Examples
    --------
    >>> import graphcouple as gc
    >>> float(gc.Exponential().log(4.0))
    -2.0
    """

    def log(self, sq_dist: Any) -> Any:
        """Return −d."""
        return -np.sqrt(sq_dist)

    def grad_log(self, sq_dist: Any) -> Any:
        """Return −1/(2d)."""
        return -0.5 / np.sqrt(np.maximum(sq_dist, TINY))

    def assumptions(self, dim: int) -> Assumptions:
        """Bounded and integrable for every `dim`."""
        check_integer("dim", dim, 1)
        return Assumptions(bounded=True, integrable=True)

    @property
    def order_at_zero(self) -> float:
        """1 − k behaves like d."""
        return 1.0


@dataclass(frozen=True)
class Student(Kernel):
    """Student kernel with ν degrees of freedom, k = (1 + d²/ν)^(−(ν+1)/2).

    ν = 1 is t-SNE's 1/(1 + d²). The tail falls like d^(−ν−1): the kernel is
    integrable on R^q only for q < ν + 1, so t-SNE's own kernel in two dimensions
    is not.

    Parameters
    ----------
    dof : float, default=1.0
        Degrees of freedom ν > 0.

    Raises
    ------
    ValueError
        When `dof` is not a finite number above 0.

    Examples
    --------
    >>> import graphcouple as gc
    >>> float(gc.Student().value(3.0))
    0.25
    >>> gc.Student().assumptions(dim=2)
    Assumptions(bounded=True, integrable=False)
    """

    dof: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "dof", check_positive("dof", self.dof))

    @property
    def compile_time_fields(self) -> tuple[str, ...]:
        """`dof` where a formula has a shortcut for its value."""
        return ("dof",) if self.dof in (0.5, 1.0, 2.0, 3.0) else ()

    def log(self, sq_dist: Any) -> Any:
        """Return −(ν+1)/2 · log(1 + d²/ν)."""
        return -0.5 * (self.dof + 1.0) * np.log1p(sq_dist / self.dof)

    def grad_log(self, sq_dist: Any) -> Any:
        """Return −(ν+1)/2 / (ν + d²)."""
        if self.dof == 1.0:
            return -1.0 / (1.0 + sq_dist)
        return -0.5 * (self.dof + 1.0) / (self.dof + sq_dist)

    def value(self, sq_dist: Any) -> Any:
        """Return k; by roots and products alone for ν = ½, 1, 2 and 3, which vectorise."""
        if self.dof == 1.0:
            return 1.0 / (1.0 + sq_dist)
        if self.dof == 0.5:
            root = np.sqrt(1.0 + 2.0 * sq_dist)
            return 1.0 / (root * np.sqrt(root))
        if self.dof == 2.0:
            base = 1.0 + 0.5 * sq_dist
            return 1.0 / (base * np.sqrt(base))
        if self.dof == 3.0:
            base = 1.0 + sq_dist / 3.0
            return 1.0 / (base * base)
        return np.exp(self.log(sq_dist))

    def log_complement(self, sq_dist: Any) -> Any:
        """Return log(1 − k); for ν = 1 it is −log(1 + 1/d²)."""
        away = np.maximum(sq_dist, TINY)
        if self.dof == 1.0:
            return -np.log1p(1.0 / away)
        return np.log(-np.expm1(self.log(away)))

    def log_odds(self, sq_dist: Any) -> Any:
        """Return log k − log(1 − k); for ν = 1 it is −log d²."""
        if self.dof == 1.0:
            return -np.log(np.maximum(sq_dist, TINY))
        return self.log(sq_dist) - self.log_complement(sq_dist)

    def grad_log_odds(self, sq_dist: Any) -> Any:
        """Return the derivative of log k − log(1 − k); for ν = 1 it is −1/d²."""
        away = np.maximum(sq_dist, TINY)
        if self.dof == 1.0:
            return -1.0 / away
        return -self.grad_log(away) / np.expm1(self.log(away))

    def assumptions(self, dim: int) -> Assumptions:
        """Bounded; integrable on R^dim for dim < ν + 1."""
        check_integer("dim", dim, 1)
        return Assumptions(bounded=True, integrable=dim < self.dof + 1.0)


@dataclass(frozen=True)
class RationalPower(Kernel):
    """Rational power kernel, k = 1 / (1 + a d^{2b}): UMAP's membership strength in the embedding.

    Evaluated through t = log a + b log d², as log k = −log(1 + eᵗ), so that no
    power overflows. Integrable on R^q for 2b > q.

    Parameters
    ----------
    a, b : float
        Both above 0. `RationalPower.from_min_dist` fits them as UMAP does.

    Raises
    ------
    ValueError
        When `a` or `b` is not a finite number above 0.

    Examples
    --------
    >>> import graphcouple as gc
    >>> float(gc.RationalPower(a=1.0, b=1.0).value(3.0))
    0.25
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "a", check_positive("a", self.a))
        object.__setattr__(self, "b", check_positive("b", self.b))

    @classmethod
    def from_min_dist(cls, min_dist: float = 0.1, spread: float = 1.0) -> RationalPower:
        """Fit a and b to UMAP's target: 1 up to `min_dist`, then exp(−(d − min_dist)/spread).

        Least squares on 300 distances in [0, 3·spread], as the original does.

        Parameters
        ----------
        min_dist : float, default=0.1
            Distance below which points count as fully connected; in [0, spread].
        spread : float, default=1.0
            Scale of the embedding's distances; above 0.

        Returns
        -------
        RationalPower

        Raises
        ------
        ValueError
            When `min_dist` is negative or above `spread`, or the fit fails.

        Examples
        --------
        >>> import graphcouple as gc
        >>> kernel = gc.RationalPower.from_min_dist(0.1, 1.0)
        >>> round(kernel.a, 3), round(kernel.b, 3)
        (1.577, 0.895)
        """
        from scipy.optimize import curve_fit

        check_positive("spread", spread)
        if not 0.0 <= min_dist <= spread:
            raise ValueError(f"min_dist must lie between 0 and spread={spread}, got {min_dist!r}.")
        dist = np.linspace(0.0, 3.0 * spread, 300)
        target = np.where(dist < min_dist, 1.0, np.exp(-(dist - min_dist) / spread))
        remedy = (
            f"no rational power kernel fits min_dist={min_dist}, spread={spread}; give RationalPower(a, b) directly."
        )
        try:
            with np.errstate(all="ignore"):
                (a, b), _ = curve_fit(lambda d, a, b: 1.0 / (1.0 + a * d ** (2.0 * b)), dist, target)
        except RuntimeError as error:
            raise ValueError(remedy) from error
        if not (a > 0 and b > 0):
            raise ValueError(remedy)
        return cls(float(a), float(b))

    def log(self, sq_dist: Any) -> Any:
        """Return −log(1 + a d^{2b})."""
        return -np.logaddexp(0.0, math.log(self.a) + self.b * np.log(np.maximum(sq_dist, TINY)))

    def grad_log(self, sq_dist: Any) -> Any:
        """Return −(b/d²) · a d^{2b} / (1 + a d^{2b})."""
        away = np.maximum(sq_dist, TINY)
        return -self.b / away / (1.0 + np.exp(-math.log(self.a) - self.b * np.log(away)))

    def value(self, sq_dist: Any) -> Any:
        """Return 1 / (1 + a d^{2b})."""
        return 1.0 / (1.0 + np.exp(math.log(self.a) + self.b * np.log(np.maximum(sq_dist, TINY))))

    def log_complement(self, sq_dist: Any) -> Any:
        """Return log(1 − k) = −log(1 + 1/(a d^{2b}))."""
        return -np.logaddexp(0.0, -math.log(self.a) - self.b * np.log(np.maximum(sq_dist, TINY)))

    def log_odds(self, sq_dist: Any) -> Any:
        """Return −log(a d^{2b})."""
        return -math.log(self.a) - self.b * np.log(np.maximum(sq_dist, TINY))

    def grad_log_odds(self, sq_dist: Any) -> Any:
        """Return −b/d²."""
        return -self.b / np.maximum(sq_dist, TINY)

    def assumptions(self, dim: int) -> Assumptions:
        """Bounded; integrable on R^dim for dim < 2b."""
        check_integer("dim", dim, 1)
        return Assumptions(bounded=True, integrable=dim < 2.0 * self.b)

    @property
    def order_at_zero(self) -> float:
        """1 − k behaves like d^{2b}."""
        return 2.0 * self.b


@dataclass(frozen=True)
class Odds(Kernel):
    """Odds of a kernel read as an edge probability: k / (1 − k).

    Under the binary prior the edge probability of `Odds(k)` is k itself, which is
    how UMAP and LargeVis state it, and log(1 + Odds(k)) = −log(1 − k). With the
    Student kernel (ν = 1) the odds are 1/d², with the rational power 1/(a d^{2b}):
    unbounded at 0. Below d² = 1e-37 they are held constant, so that coincident
    points keep a finite loss and no force.

    Parameters
    ----------
    kernel : Kernel
        A kernel with values in [0, 1].

    Raises
    ------
    TypeError
        When `kernel` is not a kernel.
    ValueError
        When `kernel` is itself an `Odds`, whose values exceed 1.

    Examples
    --------
    >>> import graphcouple as gc
    >>> float(gc.Odds(gc.Student()).value(4.0))
    0.25
    >>> gc.Odds(gc.Student()).assumptions(dim=2)
    Assumptions(bounded=False, integrable=False)
    """

    kernel: Kernel

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a graphcouple kernel, got {self.kernel!r}.")
        if isinstance(self.kernel, Odds):
            raise ValueError("kernel must have values in [0, 1]; the odds of odds are not defined.")

    @property
    def membership(self) -> Kernel:
        """The kernel that is read as an edge probability."""
        return self.kernel

    @property
    def order_at_zero(self) -> float:
        """Odds are singular, never flat, at zero."""
        return 0.0

    def log(self, sq_dist: Any) -> Any:
        """Return log k − log(1 − k)."""
        return self.kernel.log_odds(sq_dist)

    def grad_log(self, sq_dist: Any) -> Any:
        """Return ψ / (1 − k)."""
        return self.kernel.grad_log_odds(sq_dist)

    def log1p(self, sq_dist: Any) -> Any:
        """Return −log(1 − k)."""
        return -self.kernel.log_complement(sq_dist)

    def edge_probability(self, sq_dist: Any) -> Any:
        """Return k."""
        return self.kernel.value(sq_dist)

    def log_probability(self, sq_dist: Any) -> Any:
        """Return log k."""
        return self.kernel.log(sq_dist)

    def grad_log_probability(self, sq_dist: Any) -> Any:
        """Return ψ."""
        return self.kernel.grad_log(sq_dist)

    def assumptions(self, dim: int) -> Assumptions:
        """Never bounded; integrable when k is, and d^(−m) is at 0 (m from `order_at_zero`)."""
        tail = self.kernel.assumptions(dim).integrable
        return Assumptions(bounded=False, integrable=tail and self.kernel.order_at_zero < dim)
