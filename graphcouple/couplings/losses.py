"""Losses of two numbers, with which a matching compares means of edges, or distances."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphcouple._numba.base import Formula
from graphcouple._support.registry import Registry


class MatchingLoss(Formula):
    """A loss F̂ of an edge's mean e in the input's graph and p in the embedding's.

    Subclasses are frozen dataclasses of floats with ``cost(e, p)`` and its derivative in p, ``grad_cost(e, p)``,
    written with arithmetic and NumPy ufuncs: they run on arrays and, compiled, on numbers. For every e the cost must be
    least at p = e.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import graphcouple as gc
    >>> @dataclass(frozen=True)
    ... class Fourth(gc.MatchingLoss):
    ...     def cost(self, e, p):
    ...         return (e - p) ** 4
    ...     def grad_cost(self, e, p):
    ...         return 4.0 * (p - e) ** 3
    >>> X, y = gc.datasets.load("iris")
    >>> gc.PairwiseMatching(loss=Fourth(), random_state=0, max_iter=50).fit_transform(X).shape
    (150, 2)
    """

    linear: ClassVar[bool] = False
    """Whether the cost is linear in e, up to terms that do not depend on p; sums over edges are then faster."""

    largest: ClassVar[float] = np.inf
    """The largest mean e of an edge: 1 if the loss compares probabilities."""

    def cost(self, e: Any, p: Any) -> Any:
        """Return F̂(e, p)."""
        raise NotImplementedError(f"{type(self).__name__} must give cost(e, p).")

    def grad_cost(self, e: Any, p: Any) -> Any:
        """Return ∂F̂/∂p."""
        raise NotImplementedError(f"{type(self).__name__} must give grad_cost(e, p), the derivative of cost in p.")


LOSSES: Registry[type[MatchingLoss]] = Registry("loss", "a MatchingLoss such as SquareLoss()")


@LOSSES.register("square")
@dataclass(frozen=True)
class SquareLoss(MatchingLoss):
    """(e − p)².

    Examples
    --------
    >>> import graphcouple as gc
    >>> gc.SquareLoss().cost(1.0, 0.5)
    0.25
    """

    linear: ClassVar[bool] = True

    def cost(self, e: Any, p: Any) -> Any:
        return (e - p) * (e - p)

    def grad_cost(self, e: Any, p: Any) -> Any:
        return 2.0 * (p - e)


@LOSSES.register("kl")
@dataclass(frozen=True)
class BinaryKL(MatchingLoss):
    """The cross-entropy −e log p − (1 − e) log(1 − p) of two coins: their KL divergence plus the entropy of e.

    Below 1e-300, p counts as 1e-300: edges between points so far apart no longer attract.

    Examples
    --------
    >>> import graphcouple as gc
    >>> round(float(gc.BinaryKL().cost(1.0, 0.5)), 4)
    0.6931
    """

    linear: ClassVar[bool] = True
    largest: ClassVar[float] = 1.0

    def cost(self, e: Any, p: Any) -> Any:
        return -e * np.log(np.maximum(p, 1e-300)) - (1.0 - e) * np.log1p(-np.minimum(p, 1.0 - 1e-15))

    def grad_cost(self, e: Any, p: Any) -> Any:
        """Return (p − e) / (p (1 − p))."""
        return (1.0 - e) / (1.0 - np.minimum(p, 1.0 - 1e-15)) - e / np.maximum(p, 1e-300)


def as_loss(loss: Any) -> MatchingLoss:
    """Return `loss` itself, or the loss registered under that name."""
    return loss if isinstance(loss, MatchingLoss) else LOSSES[loss]()


def curved_part(loss: MatchingLoss, e: Any) -> Any:
    """Return the part of F̂(e, p) that is not linear in e, for a loss that is `linear` but for it."""
    half = 0.5
    absent, sure = loss.cost(0.0, half), loss.cost(1.0, half)
    return loss.cost(e, half) - absent - e * (sure - absent)
