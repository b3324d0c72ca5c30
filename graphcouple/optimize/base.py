"""Optimizers, the settings of a run that they see, and the solution that it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.html import html_table
from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray
from graphcouple.laws.priors import RandomGraph
from graphcouple.optimize.exaggeration import NO_EXAGGERATION, Exaggeration

Callback = Callable[[int, float, FloatArray], Any]

# Numbers in `Optimizer.suited_iterations`. No comparison is recorded.
_POINT_ITERATIONS, _FEWEST, _MOST = 2_000_000, 100, 5000


class Run(NamedTuple):
    """The settings of a run that an optimizer sees.

    Attributes
    ----------
    max_iter : int
        Maximum number of iterations.
    n_jobs : int or None
        Threads; None means every core.

    Examples
    --------
    >>> import graphcouple as gc
    >>> gc.extend.Run(max_iter=500, n_jobs=2)
    Run(max_iter=500, n_jobs=2)
    """

    max_iter: int
    n_jobs: int | None = None


@dataclass(frozen=True)
class Solution:
    """The result of `solve`.

    Attributes
    ----------
    Z : ndarray of shape (n_points, n_components)
        The best embedding seen, in the dtype of the start.
    loss : float
        The objective at `Z`.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether a convergence test ended the run, rather than `max_iter` or the callback.
    message : str
        Why the run ended: "settled: ...", "all ... steps taken", "stopped at max_iter=...", "stopped by the
        callback ...", "stopped: no lower loss ...", "interrupted ...", or "collapsed: ...".
    loss_history : ndarray of shape (n_checks,)
        The objective (not exaggerated) at the start, at every check, and at the end of the run.
    iterations : ndarray of shape (n_checks,)
        The iteration each entry of `loss_history` belongs to.
    collapsed : bool
        Whether all points are in one place.
    start_losses : ndarray of shape (n_starts,)
        The loss at which each start ended.
    stopped : bool
        Whether the callback or Ctrl-C ended the run.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, _ = gc.datasets.load("iris")
    >>> objective = gc.PrecisionCrossEntropy(X - X.mean(axis=0))
    >>> solution = gc.solve(objective, X[:, :2] - X[:, :2].mean(axis=0), gc.LBFGS(), max_iter=500)
    >>> solution.Z.shape, solution.loss == objective.value(solution.Z)
    ((150, 2), True)
    """

    Z: FloatArray
    loss: float
    n_iter: int
    converged: bool
    message: str
    loss_history: NDArray[np.float64] = field(repr=False)
    iterations: NDArray[np.int64] = field(repr=False)
    collapsed: bool = False
    start_losses: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), repr=False)
    stopped: bool = False

    def _repr_html_(self) -> str:
        shape = f"{self.Z.shape[0]:,} points in {self.Z.shape[1]} dimensions"
        rows = [["embedding", shape], ["loss", f"{self.loss:.6g}"], ["iterations", str(self.n_iter)]]
        return html_table([], [*rows, ["end", self.message]])


class Optimizer(ABC):
    """How `solve` moves from a start to a minimum.

    `init` returns the first state and `step` the next; `solve` has the loop. Optimizers are
    inert: frozen dataclasses that hold their settings. Only `init` and `step` must be defined.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> @dataclass(frozen=True)
    ... class Steady(gc.extend.Optimizer):
    ...     rate: float = 0.1
    ...     def init(self, objective, Z0, run):
    ...         return gc.optimize.MomentumState(Z0, np.zeros_like(Z0), np.ones_like(Z0))
    ...     def step(self, objective, state, iteration, run):
    ...         gradient = objective.gradient(state.Z)
    ...         size = float(np.linalg.norm(gradient)) / objective.n_points
    ...         return state._replace(Z=state.Z - self.rate * gradient, grad_norm=size)
    >>> anchors = gc.couplings.AnchorEnergy(2, np.array([0, 1]), np.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> gc.solve(anchors, np.zeros((2, 2)), Steady(), max_iter=100).Z.round(3).tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """

    noisy: ClassVar[bool] = False
    """Whether intermediate losses mean little, as of random steps: the last embedding is the result, settled or not."""

    @property
    def exaggeration(self) -> Exaggeration:
        """The schedule of the attraction's weight; nothing counts as converged until it ends. None by default."""
        return NO_EXAGGERATION

    def check(self, objective: Objective) -> None:  # noqa: B027  most need nothing but a gradient
        """Raise `TypeError` or `ValueError`, with the reason, if the objective lacks what the optimizer needs."""

    @abstractmethod
    def init(self, objective: Objective, Z0: FloatArray, run: Run) -> Any:
        """Return the first state, a NamedTuple with fields `Z` and `grad_norm`.

        This is the norm of the gradient of objective/n at the start of the last step; inf if unknown.
        """

    @abstractmethod
    def step(self, objective: Objective, state: Any, iteration: int, run: Run) -> Any:
        """Return the state after one step on the objective of this iteration."""

    def for_iteration(self, objective: Objective, iteration: int, Z: FloatArray) -> Objective:
        """Return the objective of one iteration, which starts from `Z`: a fresh sample if the objective is sampled."""
        return objective.at(iteration, Z)

    def exhausted(self, state: Any) -> str:
        """Return why no further step is possible; empty if one is possible."""
        return ""

    def remembered(self, state: Any) -> dict[str, Any]:
        """Return a state as numbers, arrays and tuples by name, for a file; its fields by default."""
        return dict(state._asdict())

    def recalled(self, objective: Objective, run: Run, remembered: dict[str, Any]) -> Any:
        """Return the state that was `remembered`."""
        return self.init(objective, remembered["Z"], run)._replace(**remembered)

    def suited_iterations(self, n_points: int) -> int:
        """Return the limit that ``max_iter="auto"`` stands for.

        5,000 iterations for 400 points or fewer, then 2,000,000 divided by their number, and at least 100.
        """
        return min(max(_POINT_ITERATIONS // n_points, _FEWEST), _MOST)

    def seeded(self, seed: Callable[[], int]) -> Self:
        """Return the optimizer with a seed, if it has a field `random_state` that is None."""
        return replace(self, random_state=seed()) if getattr(self, "random_state", 0) is None else self  # type: ignore[type-var]

    def with_graph(self, posterior: RandomGraph) -> Self:
        """Return the optimizer with the parts of the input's graph that it needs."""
        return self
