"""The kernels of the named methods."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcouple._support.validation import check_integer, check_positive, check_weight
from graphcouple.kernels.base import TINY, Assumptions, Kernel, register


@register("gaussian")
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
        # min(d², 0) is a zero of the argument's shape and dtype, even for an infinite distance.
        return np.minimum(sq_dist, 0.0) - 0.5

    quick = True


@register("exponential")
@dataclass(frozen=True)
class Exponential(Kernel):
    """Exponential kernel, log k = −d.

    Bounded and integrable in every dimension. Its derivative in d² is singular
    at 0, but the force there, a multiple of z_i − z_j, is zero.

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

    length = 1.0


@register("student")
@dataclass(frozen=True)
class Student(Kernel):
    """Student kernel with ν degrees of freedom, k = (1 + d²/ν)^(−(ν+1)/2).

    ν = 1 is t-SNE's 1/(1 + d²). The tail falls like d^(−ν−1): the kernel is
    integrable on R^q only for q < ν + 1, so t-SNE's kernel is not integrable in two dimensions.

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
    def quick(self) -> bool:
        """Whether a formula has a special case for `dof`."""
        return bool(self.compile_time_fields)

    @property
    def quick_odds(self) -> bool:
        """Whether k/(1 − k) is 1/d²."""
        return self.dof == 1.0

    @property
    def compile_time_fields(self) -> tuple[str, ...]:
        """`dof`, if a formula has a special case for its value."""
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
        """Return k; for ν = ½, 1, 2 and 3 by roots and products alone, which vectorise."""
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
        return Assumptions(bounded=True, integrable=check_integer("dim", dim, 1) < self.dof + 1.0)

    @property
    def length(self) -> float:
        """(2ν / (ν + 1))^(1/2)."""
        return (0.5 * (self.dof + 1.0) / self.dof) ** -0.5


@register("rational")
@dataclass(frozen=True)
class RationalPower(Kernel):
    """Rational power kernel, k = 1 / (1 + a d^{2b}): UMAP's membership strength in the embedding.

    Evaluated as log k = −log(1 + eᵗ) with t = log a + b log d², so that no
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

        Least squares on 300 distances in [0, 3·spread], as in umap-learn.

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
        check_weight(min_dist, name="min_dist")
        if min_dist > spread:
            raise ValueError(f"min_dist must lie between 0 and spread={spread}, got {min_dist!r}.")
        # In units of the spread, so that the fit does not depend on the scale.
        dist, plateau = np.linspace(0.0, 3.0, 300), min_dist / spread
        target = np.where(dist < plateau, 1.0, np.exp(-(dist - plateau)))
        why = f"no rational power kernel fits min_dist={min_dist}, spread={spread}; give RationalPower(a, b) directly."
        try:
            with np.errstate(all="ignore"):
                (a, b), _ = curve_fit(lambda d, a, b: 1.0 / (1.0 + a * d ** (2.0 * b)), dist, target)
        except RuntimeError as error:
            raise ValueError(why) from error
        if not (a > 0 and b > 0):
            raise ValueError(why)
        return cls(float(a * spread ** (-2.0 * b)), float(b))

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
        return Assumptions(bounded=True, integrable=check_integer("dim", dim, 1) < 2.0 * self.b)

    @property
    def order_at_zero(self) -> float:
        """1 − k behaves like d^{2b}."""
        return 2.0 * self.b

    @property
    def length(self) -> float:
        """The distance at which k is ½: a^(−1/(2b))."""
        return self.a ** (-0.5 / self.b)
