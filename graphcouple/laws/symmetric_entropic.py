"""Symmetric entropic affinities: each row has a given perplexity, in a symmetric matrix whose rows sum to 1."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from graphcouple._numba.entropic import affinity_rows, curvature_rows, log_sum_rows, multiply_curvature_rows
from graphcouple._numba.threads import over_rows
from graphcouple._support.validation import warn
from graphcouple.graphs import FloatArray, Support
from graphcouple.kernels import Gaussian, Kernel
from graphcouple.kernels.base import TINY
from graphcouple.laws.bandwidths import Bandwidth, DistanceRows, Perplexity
from graphcouple.laws.given_model import ConditionedModel
from graphcouple.laws.model import GraphModel
from graphcouple.laws.priors import DoublyStochastic, GraphPrior
from graphcouple.summation.directions import mean_of_directions

# The largest error of a row's sum and of its entropy.
_TOLERANCE = 1e-6

# Newton steps, and steps of conjugate gradients for each.
_MOST_STEPS, _MOST_OF_STEP = 100, 60

# The least γ, in units of its start. It keeps Newton's equations regular and raises the cost by less than 1e-5.
_LEAST = 0.05

# Halvings of a Newton step, and rounds that balance rows before each step.
_MOST_HALVINGS, _MOST_BALANCING = 30, 8

# Share of the diagonal that keeps Newton's equations regular.
_RIDGE = 1e-9


class ConditionedAffinities(ConditionedModel):
    """Symmetric entropic affinities given their points."""

    def _log_kernel(self, rows: DistanceRows) -> FloatArray:
        support = rows.support
        if not isinstance(self.model.bandwidth, Perplexity):
            return super()._log_kernel(rows)
        edges, cost = mean_of_directions(support, rows.sq_dist)
        law = self._affinities(edges, cost, rows)
        return law if edges.n_edges == support.n_edges else law[edges.find(support.rows, support.indices)]

    def _affinities(self, edges: Support, cost: FloatArray, rows: DistanceRows) -> FloatArray:
        """Return log P on symmetric edges with this cost, for rows of distances along the edges or part of them."""
        bandwidth = self.model.bandwidth
        return _Dual(edges, cost, bandwidth.perplexity, rows.n_jobs).solve(2.0 * bandwidth.fit_rows(rows)[1] ** 2)


@dataclass(frozen=True, eq=False)
class SymmetricEntropic(GraphModel):
    """The law of SNEkhorn's input: the doubly stochastic, symmetric mean of least cost with one perplexity in all rows.

    P minimises Σ_ij P_ij d²_ij among symmetric matrices whose rows sum to 1 and have an entropy of at least
    log(perplexity). So P_ij = exp((λ_i + λ_j − 2 d²_ij)/(γ_i + γ_j)), where Newton's method finds λ and γ, the 2n
    variables of the concave dual. Some rows have a larger entropy than log(perplexity) for every γ, and keep it: almost
    none at a perplexity of 30, about 7 % of the rows at 5. New points get the edges of prior D with the same
    perplexity.

    Parameters
    ----------
    kernel : Gaussian
    prior : DoublyStochastic
    bandwidth : Perplexity, default=Perplexity(30)
        The perplexity of each row.
    n_neighbors, metric, search, metric_params, target_weight
        See `GraphModel`. With `n_neighbors`, edges join near neighbours, in both directions.
    symmetrize : None
        Must be None.

    Raises
    ------
    TypeError, ValueError
        When an argument has the wrong type or value.

    References
    ----------
    Van Assel, Vayer, Flamary and Courty (2023), SNEkhorn: dimension reduction with symmetric entropic affinities,
    section 3, equations (SEA) and (Dual-SEA).

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> P = gc.laws.SymmetricEntropic(bandwidth=gc.Perplexity(10)).posterior(X).mean()
    >>> bool(np.allclose(P, P.T)), bool(np.allclose(P.sum(axis=1), 1.0))
    (True, True)
    >>> entropies = -(P * np.log(P, out=np.zeros_like(P), where=P > 0)).sum(axis=1)
    >>> round(float(np.exp(np.median(entropies))), 3)
    10.0
    """

    kernel: Kernel = field(default_factory=Gaussian)
    prior: GraphPrior = field(default_factory=DoublyStochastic)
    bandwidth: Bandwidth | None = field(default_factory=lambda: Perplexity(30.0))

    _conditioned: ClassVar[type[ConditionedModel]] = ConditionedAffinities

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, kind in (("kernel", Gaussian), ("prior", DoublyStochastic), ("bandwidth", Perplexity)):
            if not isinstance(getattr(self, name), kind):
                raise ValueError(
                    f"{name} must be a {kind.__name__} in symmetric entropic affinities, got {getattr(self, name)!r}; "
                    "for other kernels and bandwidths, use GraphModel with prior S."
                )

    def within(self, n_points: int, n_copies: float | None = None) -> GraphModel:
        """Lower perplexity and number of neighbours; two points have a single law, whatever the perplexity."""
        if n_points == 2:
            return GraphModel(**self.get_params(deep=False)).within(n_points, n_copies)
        return super().within(n_points, n_copies)


class _Dual:
    """The dual of symmetric entropic affinities, as the minimum of ½ Σ_ij (γ_i + γ_j) P_ij − Σ λ_i − h Σ γ_i."""

    def __init__(self, edges: Support, cost: FloatArray, perplexity: float, n_jobs: int | None) -> None:
        self.edges, self.cost, self.n_jobs = edges, cost, n_jobs
        self.goal = np.log(perplexity) + 1.0

    def _over_rows(self, loop: Any, *args: Any) -> None:
        over_rows(self.edges.n_nodes, self.n_jobs, loop, self.edges.indptr, self.edges.indices, *args)

    def evaluate(self, lam: FloatArray, gamma: FloatArray) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """Return the value, its derivatives in λ and γ, and log P."""
        log_p, sums, mixed = np.empty_like(self.cost), np.empty_like(lam), np.empty_like(lam)
        self._over_rows(affinity_rows, self.cost, lam, gamma, log_p, sums, mixed)
        value = float(gamma @ sums - lam.sum() - self.goal * gamma.sum())
        return value, sums - 1.0, sums - mixed - self.goal, log_p

    def solve(self, scale: FloatArray) -> FloatArray:
        """Return log P; `scale` is the least γ over `_LEAST`: the scale of the distances around each point.

        Newton's method starts from these scales or, if it fails, from the largest of them for all points.
        """
        for start in (scale, np.full_like(scale, scale.max())):
            log_p = self._descend(start, _LEAST * scale)
            if log_p is not None:
                return log_p
        warn(
            f"no symmetric entropic affinities of this perplexity were found in {2 * _MOST_STEPS} steps: the law is "
            "the balanced mean of both directions' affinities instead, whose rows have other perplexities. Raise the "
            "perplexity, or use prior D.",
            ConvergenceWarning,
        )
        rows, columns = self.edges.rows, self.edges.indices
        return -2.0 * self.cost / (scale[rows] + scale[columns])

    def _descend(self, gamma: FloatArray, least: FloatArray) -> FloatArray | None:
        """Return log P, or None if it has not converged."""
        lam = np.zeros_like(gamma)
        self._balance_roughly(lam, gamma)
        value, by_lam, by_gamma, log_p = self.evaluate(lam, gamma)
        for _ in range(_MOST_STEPS):
            pinned = (gamma <= least) & (by_gamma > 0.0)
            worst = float(max(np.abs(by_lam).max(), np.abs(by_gamma[~pinned]).max(initial=0.0)))
            if worst <= _TOLERANCE:
                return log_p
            d_lam, d_gamma = self._step(log_p, gamma, by_lam, by_gamma, pinned, min(0.1, worst))
            for _ in range(_MOST_HALVINGS):
                there = lam + d_lam, np.clip(gamma + d_gamma, np.maximum(0.1 * gamma, least), 10.0 * gamma)
                self._balance_roughly(*there)
                trial = self.evaluate(*there)
                if trial[0] <= value + 1e-12 * abs(value):
                    break
                d_lam, d_gamma = 0.5 * d_lam, 0.5 * d_gamma
            else:
                return None
            (lam, gamma), (value, by_lam, by_gamma, log_p) = there, trial
        return None

    def _balance_roughly(self, lam: FloatArray, gamma: FloatArray) -> None:
        """Change λ until the rows sum to about 1; works in logarithms, because the sums of far points underflow."""
        log_sums = np.empty_like(lam)
        for _ in range(_MOST_BALANCING):
            self._over_rows(log_sum_rows, self.cost, lam, gamma, log_sums)
            if np.abs(log_sums).max() < 1.0:
                return
            lam -= gamma * log_sums

    def _step(
        self, log_p: FloatArray, gamma: FloatArray, by_lam: FloatArray, by_gamma: FloatArray, pinned: Any, rtol: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return Newton's step, with the γ of pinned points unchanged."""
        n = len(gamma)
        own, product = np.empty((n, 3)), np.empty((n, 2))
        self._over_rows(curvature_rows, log_p, gamma, own)
        twice, mixed, both = np.maximum(own[:, 0], TINY), own[:, 1], np.maximum(own[:, 2], TINY)
        determinant = np.maximum(twice * both - mixed**2, _RIDGE * twice * both)

        # If all edges of a row have the same probability, λ and γ have the same effect.
        ridge = _RIDGE * np.concatenate([twice, np.where(pinned, 0.0, both)])

        def times(v: FloatArray) -> FloatArray:
            d_gamma = np.where(pinned, 0.0, v[n:])
            self._over_rows(multiply_curvature_rows, log_p, gamma, v[:n], d_gamma, product)
            return np.concatenate([product[:, 0], np.where(pinned, v[n:], product[:, 1])]) + ridge * v

        def divide(v: FloatArray) -> FloatArray:
            u, g = v[:n], v[n:]
            first = np.where(pinned, u / twice, (both * u - mixed * g) / determinant)
            return np.concatenate([first, np.where(pinned, g, (twice * g - mixed * u) / determinant)])

        shape, down = (2 * n, 2 * n), -np.concatenate([by_lam, np.where(pinned, 0.0, by_gamma)])
        operator = LinearOperator(shape, matvec=times, dtype=np.float64)
        inverse = LinearOperator(shape, matvec=divide, dtype=np.float64)
        # A step that is not finite does not lower the value, so it is rejected.
        with np.errstate(invalid="ignore", divide="ignore"):
            step, _ = cg(operator, down, rtol=rtol, maxiter=_MOST_OF_STEP, M=inverse)
        return step[:n], step[n:]
