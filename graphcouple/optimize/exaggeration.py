"""Early exaggeration: a schedule of the attraction's weight, and how much attraction a graph tolerates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphcouple._support.validation import check_integer, check_positive
from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray

EXAGGERATION_ITERATIONS = 150
"""The usual number of iterations with exaggerated attraction."""


@dataclass(frozen=True)
class Exaggeration:
    """Early exaggeration: the attraction has weight `factor` at first, and 1 after `n_iter` iterations.

    Parameters
    ----------
    factor : float, default=12.0
    n_iter : int, default=150
        Other programs use 250.
    n_stages : int, default=1
        The weight falls to 1 in this many equal steps of its logarithm, each after n_iter / n_stages iterations. With
        one stage it keeps the value `factor` until the end.
    start_weight : float, optional
        A start that may be rescaled gets its best size under this weight. None is `factor`.

    Raises
    ------
    TypeError, ValueError
        When `factor` or `start_weight` is not above 0, `n_iter` is no integer from 0 on, or `n_stages` none from 1 on.

    Examples
    --------
    >>> import graphcouple as gc
    >>> schedule = gc.Exaggeration(12.0, 150)
    >>> schedule(0), schedule(149), schedule(150)
    (12.0, 12.0, 1.0)
    >>> falling = gc.Exaggeration(16.0, 100, n_stages=4)
    >>> [falling(iteration) for iteration in (0, 25, 50, 75, 100)]
    [16.0, 8.0, 4.0, 2.0, 1.0]
    """

    factor: float = 12.0
    n_iter: int = EXAGGERATION_ITERATIONS
    n_stages: int = 1
    start_weight: float | None = None

    def __post_init__(self) -> None:
        check_positive("factor", self.factor)
        if self.start_weight is not None:
            check_positive("start_weight", self.start_weight)
        check_integer("n_iter", self.n_iter, 0)
        check_integer("n_stages", self.n_stages, 1)

    @property
    def sizing_weight(self) -> float:
        """The attraction's weight under which the start gets its best size."""
        return self(0) if self.start_weight is None else float(self.start_weight)

    def __call__(self, iteration: int) -> float:
        """Return the attraction's weight at an iteration."""
        if iteration >= self.n_iter:
            return 1.0
        stage = iteration * self.n_stages // self.n_iter
        return float(self.factor) ** (1.0 - stage / self.n_stages)


NO_EXAGGERATION = Exaggeration(1.0, 0)
USUAL_EXAGGERATION = Exaggeration()


def push_over_pull(objective: Objective, Z: FloatArray) -> float:
    """Return the weight of the attraction at which it balances the repulsion at `Z`.

    It is <∇repulsion, Z> / <−∇attraction, Z>, the ratio of the rates at which both change the size of the embedding;
    inf if nothing attracts. Terms without an attraction are left out (`Attraction.source`): they keep their share of
    the loss, whether they push or pull.
    """
    if (attraction := objective.attracting) is None:
        return np.inf
    points, objective = Z.astype(np.float64), attraction.source
    # Exaggerated objectives can have a coarse repulsion, which cancels in the difference of two of them.
    stated, double, triple = (
        float((weighted.gradient(Z) * points).sum(dtype=np.float64))
        for weighted in (objective, objective.exaggerated(2.0), objective.exaggerated(3.0))
    )
    pull = triple - double
    return (pull - stated) / pull if pull > 0 else np.inf
