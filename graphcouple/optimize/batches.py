"""Descent on a batch of points at a time, with the others held."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import check_integer
from graphcouple.couplings import Held, Objective
from graphcouple.graphs import FloatArray, Support, largest_of_rows
from graphcouple.laws.priors import RandomGraph
from graphcouple.optimize.base import Optimizer, Run
from graphcouple.optimize.exaggeration import Exaggeration
from graphcouple.optimize.momentum import MomentumGains, MomentumState

# Iterations on one bound of an objective that has bases: a new bound is tighter, but costs a pass over all points.
_BASIS_ITERATIONS = 20


class BatchState(NamedTuple):
    """The embedding, the state of `descent`, and the basis of the bound that is minimised; see `Objective.basis`."""

    Z: FloatArray
    grad_norm: float  # inf: the gradient of a batch says nothing about the other points.
    inner: MomentumState
    basis: Any = None


@dataclass(frozen=True)
class MiniBatches(Optimizer):
    """Gradient descent with momentum in which each step moves a batch of points and their neighbours only.

    Each epoch goes through all points once, in random order. A step moves `batch_size` points, and the `n_neighbors`
    strongest neighbours of each in the input's graph. This is the paper's LaptSNE-Mini, for any objective.
    A step takes as long as a step of all points, because sums over all pairs are fast here. So mini-batches save no
    time; they are useful for comparisons, or to see fewer points move at a time.

    Parameters
    ----------
    batch_size : int, default=256
    n_neighbors : int, default=5
        κ in the paper; 0 moves the batch alone. `solve` has no graph, so it always moves the batch alone.
    descent : MomentumGains, optional
        The steps.
    random_state : int, optional
        Seed of the batches; estimators choose one.

    Raises
    ------
    TypeError, ValueError
        When a number is out of range.

    References
    ----------
    Sun, Han and Fan (2022), Laplacian-based cluster-contractive t-SNE, equation 27.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.LaptSNE(n_clusters=3, batch_size=50, max_iter=300, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    batch_size: int = 256
    n_neighbors: int = 5
    descent: MomentumGains = field(default_factory=MomentumGains)
    random_state: int | None = None
    strongest: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_integer("batch_size", self.batch_size, 1)
        check_integer("n_neighbors", self.n_neighbors, 0)
        if self.random_state is not None:
            check_integer("random_state", self.random_state, 0)
        if not isinstance(self.descent, MomentumGains):
            raise TypeError(f"descent must be MomentumGains, got {self.descent!r}.")

    def with_graph(self, posterior: RandomGraph) -> MiniBatches:
        if self.n_neighbors == 0:
            return self
        means = posterior.support.to_csr(posterior.edge_means)
        means = (means + means.T).tocsr()
        edges = Support(means.indptr, means.indices)
        near = edges.select(largest_of_rows(edges, means.data, self.n_neighbors))
        strongest = np.repeat(np.arange(near.n_nodes)[:, None], self.n_neighbors, axis=1)
        strongest[near.rows, np.arange(near.n_edges) - near.indptr[near.rows]] = near.indices
        return replace(self, strongest=strongest)

    def suited_iterations(self, n_points: int) -> int:
        """Return the limit that ``max_iter="auto"`` stands for: the limit of `descent` times the batches of an epoch.

        Neighbours move too, up to 1 + `n_neighbors` times as many points, but most of them are in the batch already.
        """
        return self.descent.suited_iterations(n_points) * -(-n_points // self.batch_size)

    @property
    def exaggeration(self) -> Exaggeration:
        return self.descent.exaggeration

    def for_iteration(self, objective: Objective, iteration: int, Z: FloatArray) -> Objective:
        """Return the objective itself: `step` holds the points outside the batch."""
        return objective

    def moving(self, iteration: int, n_points: int) -> NDArray[np.bool_]:
        """Return which points an iteration moves."""
        size = min(self.batch_size, n_points)
        epoch, at = divmod(iteration, -(-n_points // size))
        order = np.random.default_rng((self.random_state or 0, epoch)).permutation(n_points)
        batch = order[at * size : (at + 1) * size]
        moves = np.zeros(n_points, dtype=bool)
        moves[batch] = True
        if self.strongest is not None:
            moves[self.strongest[batch]] = True
        return moves

    def init(self, objective: Objective, Z0: FloatArray, run: Run) -> BatchState:
        return BatchState(Z0, np.inf, self.descent.init(objective, Z0, run))

    def remembered(self, state: BatchState) -> dict[str, Any]:
        return {"Z": state.Z, "inner": self.descent.remembered(state.inner), "basis": state.basis}

    def recalled(self, objective: Objective, run: Run, remembered: dict[str, Any]) -> BatchState:
        inner = self.descent.recalled(objective, run, remembered["inner"])
        return BatchState(remembered["Z"], np.inf, inner, remembered["basis"])

    def step(self, objective: Objective, state: BatchState, iteration: int, run: Run) -> BatchState:
        basis = state.basis
        if iteration % _BASIS_ITERATIONS == 0:
            basis = objective.basis(state.Z, basis)
        moves = self.moving(iteration, objective.n_points)
        before = state.inner
        # The momentum of the other points is kept until their next turn.
        masked = before._replace(update=np.where(moves[:, None], before.update, np.zeros((), before.update.dtype)))
        after = self.descent.step(Held(objective.with_basis(basis), ~moves), masked, iteration, run)
        arrays = zip(after[:3], before[:3], strict=True)
        Z, update, gains = (np.where(moves[:, None], new, old) for new, old in arrays)
        return BatchState(Z, np.inf, after._replace(Z=Z, update=update, gains=gains, grad_norm=np.inf), basis)
