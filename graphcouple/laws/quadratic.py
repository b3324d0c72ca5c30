"""Optimal transport with a quadratic penalty: symmetric, doubly stochastic affinities, most of which are zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from graphcouple._support.validation import warn
from graphcouple.graphs import FloatArray, Support, largest_of_rows
from graphcouple.laws.bandwidths import DistanceRows
from graphcouple.laws.given_model import ConditionedModel
from graphcouple.laws.priors.posterior import sum_x_log_x
from graphcouple.laws.symmetric_entropic import ConditionedAffinities, SymmetricEntropic

# The largest difference between a row's sum and 1; steps of Newton's method, steps of conjugate gradients for each, and
# halvings of a step, at most.
_TOLERANCE = 1e-9
_MOST_STEPS, _MOST_OF_STEP, _MOST_HALVINGS = 100, 100, 30

# Relative accuracy of the penalty; the perplexity is about as accurate.
_ACCURACY = 1e-4

# Factor of the first step that widens a search's bracket; later steps are twice as long, and each fits the law once.
_FACTOR = 2.0

# The shortest step of the logarithm of a penalty before the search gives up.
_LEAST_STEP = 0.1

# Rows have about 1.6 times as many edges as their perplexity; the search begins with this many times.
_EDGES = 5


class _ConditionedTransport(ConditionedAffinities):
    """Quadratic transport given its points."""

    def _affinities(self, edges: Support, cost: FloatArray, rows: DistanceRows) -> FloatArray:
        means = _of_perplexity(edges, cost, self.model.bandwidth.perplexity)
        if means is None:
            cause, remedy = "a point may lie too far from all others", "Remove outliers"
            if not edges.complete:
                cause, remedy = f"{cause}, or the edges allow no symmetric mean", "Remove outliers, raise n_neighbors"
            warn(
                f"no quadratic transport of this perplexity was found: it may be too low, as where more neighbours are "
                f"tied, or {cause}. The law has symmetric entropic affinities instead. {remedy}, or try another "
                "perplexity.",
                ConvergenceWarning,
            )
            return super()._affinities(edges, cost, rows)
        with np.errstate(divide="ignore"):
            return np.log(means)


@dataclass(frozen=True, eq=False)
class QuadraticTransport(SymmetricEntropic):
    """The law whose mean is the optimal transport of the points to themselves, with a quadratic penalty.

    P minimises Σ_ij P_ij d²_ij + ½ ε Σ_ij P_ij² among symmetric non-negative matrices whose rows sum to 1.
    So P_ij = max(f_i + f_j − d²_ij, 0)/ε, which is zero for all but near pairs, without a number of neighbours to
    choose. ε is such that the mean entropy of the rows is log(perplexity): sparse regions have fewer and longer edges.
    Semismooth Newton steps find f, n variables of a convex dual. New points get the edges of prior D.

    Parameters
    ----------
    kernel, prior, bandwidth, n_neighbors, symmetrize, metric, search, metric_params, target_weight
        See `SymmetricEntropic`.

    Raises
    ------
    TypeError, ValueError
        When an argument has the wrong type or value.

    References
    ----------
    Zhang, Mordant, Matsumoto and Schiebinger (2023), Manifold learning with sparse regularised optimal transport.
    Lorenz, Manns and Meyer (2021), Quadratically regularized optimal transport, for Newton's steps.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> P = gc.laws.QuadraticTransport(bandwidth=gc.Perplexity(10)).posterior(X).mean().toarray()
    >>> bool(np.allclose(P, P.T)), bool(np.allclose(P.sum(axis=1), 1.0)), int((P > 0).sum(axis=1).max())
    (True, True, 23)
    """

    _conditioned: ClassVar[type[ConditionedModel]] = _ConditionedTransport


def _of_perplexity(edges: Support, cost: FloatArray, perplexity: float) -> FloatArray | None:
    """Return P of this perplexity, or None if there is none; far edges are used only if near ones do not suffice."""
    rows, columns = edges.rows, edges.indices
    near = largest_of_rows(edges, -cost, int(_EDGES * perplexity))
    near |= near[edges.find(columns, rows)]
    transport = _search(edges.select(near), cost[near], perplexity)
    if transport is not None and (transport[0][rows] + transport[0][columns] <= cost)[~near].all():
        means = np.zeros(cost.size)
        means[near] = transport[1]
        return means
    transport = None if near.all() else _search(edges, cost, perplexity)
    return None if transport is None else transport[1]


def _search(edges: Support, cost: FloatArray, perplexity: float) -> tuple[FloatArray, FloatArray] | None:
    """Return f and P with the penalty of this perplexity, or None."""
    problem = _Transport(edges, cost)
    goal = edges.n_nodes * np.log(perplexity)
    solved: dict[float, FloatArray] = {}

    def means(log_penalty: float) -> FloatArray:
        # Newton's steps begin at the nearest penalty, and where they fail from there, at one between.
        nearest = min(solved, key=lambda other: abs(other - log_penalty), default=None)
        if nearest is not None:
            problem.shifts = solved[nearest]
        try:
            found = problem.means(np.exp(log_penalty))
        except _NoTransport:
            if nearest is None or abs(nearest - log_penalty) < _LEAST_STEP:
                raise
            means(0.5 * (nearest + log_penalty))
            return means(log_penalty)
        solved[log_penalty] = problem.shifts
        return found

    def excess(log_penalty: float) -> float:
        return -sum_x_log_x(means(log_penalty))[0] - goal

    low = high = np.log(problem.penalty_of_rows(perplexity))
    step = np.log(_FACTOR)
    try:
        while excess(low) > 0.0:
            low, step = low - step, 2.0 * step
        while excess(high) < 0.0:
            high, step = high + step, 2.0 * step
        # The means of a penalty set its shifts.
        of_perplexity = means(brentq(excess, low, high, xtol=_ACCURACY) if low < high else low)
        return problem.shifts, of_perplexity
    except _NoTransport:
        return None


class _NoTransport(Exception):
    """Raised when Newton's method finds no transport."""


class _Transport:
    """The dual of one penalty: the minimum over f of ¼ Σ_ij max(f_i + f_j − c_ij, 0)² − ε Σ f_i, from the last f."""

    def __init__(self, edges: Support, cost: FloatArray) -> None:
        self.edges, self.cost, self.starts = edges, cost, edges.indptr[:-1]
        self.shifts: FloatArray = np.zeros(edges.n_nodes)

    def penalty_of_rows(self, perplexity: float) -> float:
        """Set f so that each row alone has about 1.6 times as many edges as the perplexity; return the mean penalty."""
        edges = self.edges.select(largest_of_rows(self.edges, -self.cost, max(2, int(1.6 * perplexity))))
        costs = self.cost[self.edges.find(edges.rows, edges.indices)]
        farthest = np.maximum.reduceat(costs, edges.indptr[:-1])
        sums = np.add.reduceat(farthest[edges.rows] - costs, edges.indptr[:-1])
        self.shifts = 0.5 * farthest
        return float(max(sums.mean(), np.finfo(float).tiny))

    def _evaluate(self, shifts: FloatArray, penalty: float) -> tuple[float, FloatArray, FloatArray]:
        """Return the value, its gradient, and ε P."""
        mass = np.maximum(shifts[self.edges.rows] + shifts[self.edges.indices] - self.cost, 0.0)
        value = 0.25 * float(mass @ mass) - penalty * float(shifts.sum())
        return value, np.add.reduceat(mass, self.starts) - penalty, mass

    def means(self, penalty: float) -> FloatArray:
        """Return P of a penalty by semismooth Newton steps; raise `_NoTransport` if they do not converge."""
        sums = self.shifts[self.edges.rows] + self.shifts[self.edges.indices]
        nearest = np.maximum.reduceat(sums - self.cost, self.starts)
        # A row without mass, as an outlier's, would rise by no more than ε in a step.
        self.shifts = self.shifts + np.where(nearest <= 0.0, penalty - nearest, 0.0)
        value, gradient, mass = self._evaluate(self.shifts, penalty)
        for _ in range(_MOST_STEPS):
            worst = np.abs(gradient).max() / penalty
            if worst <= _TOLERANCE:
                return mass / penalty
            down = self._step(mass > 0.0, gradient, min(0.1, worst))
            slope, size = float(gradient @ down), 1.0
            for _ in range(_MOST_HALVINGS):
                trial = self._evaluate(self.shifts + size * down, penalty)
                if trial[0] <= value + 1e-4 * size * slope + 1e-13 * abs(value):
                    break
                size *= 0.5
            else:
                break
            self.shifts = self.shifts + size * down
            value, gradient, mass = trial
        raise _NoTransport

    def _step(self, active: NDArray[np.bool_], gradient: FloatArray, rtol: float) -> FloatArray:
        pattern = self.edges.select(active)
        matrix = pattern.to_csr(np.ones(pattern.n_edges))
        # Rows without an edge, and the two sides of a bipartite part, would leave the step undetermined.
        own = np.maximum(np.diff(pattern.indptr), 1.0) * (1.0 + 1e-9)
        shape = (own.size, own.size)
        curvature = LinearOperator(shape, matvec=lambda v: own * v + matrix @ v, dtype=np.float64)
        inverse = LinearOperator(shape, matvec=lambda v: v / own, dtype=np.float64)
        return cg(curvature, -gradient, rtol=rtol, maxiter=_MOST_OF_STEP, M=inverse)[0]
