"""Prior S: one edge out of every node, and one into it on average."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from graphcouple._support.validation import changed, warn
from graphcouple.graphs import FloatArray, IntArray, Support, cached_if_few
from graphcouple.kernels import Kernel
from graphcouple.laws.priors.base import BINARY, N_EDGES, ONE_EACH, GraphPrior, register
from graphcouple.laws.priors.log_domain import UNDERFLOW, mean_forces, row_log_sums
from graphcouple.laws.priors.posterior import GraphPosterior, sum_x_log_x
from graphcouple.laws.priors.unit_out_degree import UnitOutDegree, UnitOutDegreePosterior
from graphcouple.summation import Exact, KernelValue, Summation
from graphcouple.summation.directions import mean_of_directions

BALANCED = "one edge into every node on average"

# The largest difference between a row's sum and 1, for a posterior and in a descent, whose gradients need less.
_TOLERANCE, _TOLERANCE_OF_RUNS = 1e-9, 1e-4

# Newton steps, and steps of conjugate gradients for each. Where a fast summation fails, a few exact steps bring sums
# near 1, and the rest is done in logarithms.
_MOST_STEPS, _MOST_OF_STEP = 60, 20
_ROUGHLY, _FEW_STEPS = 0.1, 8

# Sinkhorn's rounds in logarithms; many points have fewer, because a round takes an exponential for each pair.
# Laws that Newton's method does not then finish have more.
_MOST_IN_LOGS, _MOST_PAIRS_IN_LOGS = 500, 10**9
_MORE_IN_LOGS, _MORE_PAIRS_IN_LOGS = 5000, 10**8

# Above this residual of a row's sum, a Newton step may overshoot.
_NEAR, _NEARER = 0.5, 0.05
_LONGEST_STEP = 1.0


def balance(
    times: Callable[[FloatArray], FloatArray],
    u: FloatArray,
    product: FloatArray,
    tolerance: float,
    most: int = _MOST_STEPS,
) -> tuple[FloatArray, FloatArray]:
    """Return u and the row sums of u_i K_ij u_j, for the u that makes these sums 1, up to `tolerance`.

    It minimises ½ Σ_ij u_i K_ij u_j − Σ log u_i, which is convex in log u: damped Sinkhorn steps, u ← u/√r, then Newton
    steps, solved by conjugate gradients. `times` multiplies by the symmetric K ≥ 0, and `product` is K u at the start.
    """
    for _ in range(most):
        sums = u * product
        worst = float(np.abs(sums - 1.0).max())
        if worst <= tolerance or not np.isfinite(worst):
            break
        if worst > _NEAR:
            u = u / np.sqrt(sums)
            product = times(u)
            continue
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            step, _ = cg(_curvature(times, u, sums), 1.0 - sums, rtol=min(0.1, worst), maxiter=_MOST_OF_STEP)
        if not np.isfinite(step).all():
            break
        u = u * np.exp(np.clip(step, -_LONGEST_STEP, _LONGEST_STEP))
        product = times(u)
    return u, u * product


def _curvature(times: Callable[[FloatArray], FloatArray], u: FloatArray, sums: FloatArray) -> LinearOperator:
    """Return the second derivatives of `balance`'s function in log u."""
    return LinearOperator((len(u), len(u)), matvec=lambda v: sums * v + u * times(u * v), dtype=np.float64)


class BalancedPosterior(UnitOutDegreePosterior):
    """One categorical variable per node, as under prior D, with a symmetric mean, so columns sum to 1 too.

    The means are e^(η_ij + f_i + f_j). η is averaged over both directions of an edge first. Sums of rows are 1 within
    1e-9, or within 1e-3 if some parameters are nearly infinite, as odds at the nearest neighbours are.
    """

    def __init__(self, support: Support, natural_parameters: FloatArray) -> None:
        super().__init__(*mean_of_directions(support, natural_parameters))

    @cached_property
    def shifts(self) -> FloatArray:
        """f, the logarithms of the factors that give every row of e^η a sum of 1."""
        support, eta = self.support, self.natural_parameters
        starts, f = support.indptr[:-1], np.zeros(self.n_nodes)
        ones, more = np.ones(self.n_nodes), min(_MORE_IN_LOGS, _MORE_PAIRS_IN_LOGS // support.n_edges)
        # The first steps use logarithms, because e^η may underflow; more follow if Newton's steps do not converge.
        for near, most in ((_NEAR, _MOST_IN_LOGS), (_NEARER, more)):
            for _ in range(most):
                shifted = eta + f[support.indices]
                largest = np.maximum.reduceat(shifted, starts)
                log_sums = largest + np.log(np.add.reduceat(np.exp(shifted - largest[support.rows]), starts))
                worst = float(np.abs(f + log_sums).max())
                f = 0.5 * (f - log_sums)
                if worst < near:
                    break
            matrix = support.to_csr(np.exp(eta + f[support.rows] + f[support.indices]))
            factors, sums = balance(matrix.dot, ones, matrix @ ones, _TOLERANCE)
            missed = np.abs(sums - 1.0) > 1e-3
            if not missed.any():
                break
        else:
            cause, remedy = "the edges allow no graph with one edge into every node", "Raise n_neighbors"
            if support.complete:
                cause, remedy = "balancing did not converge", "Use a wider bandwidth, such as Perplexity(30)"
            warn(
                f"{cause}: {int(missed.sum())} rows or columns of the mean do not sum to 1, the worst to "
                f"{sums[np.argmax(np.abs(sums - 1.0))]:.3g}. {remedy}, or use prior D.",
                ConvergenceWarning,
            )
        return f + np.log(factors)

    def log_partition(self) -> float:
        """Return max <P, η> − Σ P log P over symmetric P whose rows sum to 1, that is −2 Σ_i f_i, in nats."""
        return -2.0 * float(self.shifts.sum())

    def _balanced(self) -> FloatArray:
        f = self.shifts
        return self.natural_parameters + f[self.support.rows] + f[self.support.indices]

    @cached_if_few
    def edge_means(self) -> FloatArray:
        """Edge probabilities e^(η_ij + f_i + f_j) on the edges of `support`."""
        return np.exp(self._balanced())

    def entropy(self) -> float:
        return -sum_x_log_x(self.edge_means)[0]

    def _log_weight(self, at: Any, counts: FloatArray) -> float:
        return float(counts @ self._balanced()[at])


@register
@dataclass(frozen=True, eq=False, repr=False)
class DoublyStochastic(GraphPrior):
    """Prior S: W_i+ = 1 for every node i, and E[W_+j] = 1 for every node j.

    SNEkhorn has this prior on both sides. Its mean is the doubly stochastic matrix nearest to the kernel in relative
    entropy, so no point is a hub with many incoming edges.

    Parameters
    ----------
    edge_prior : float, array, sparse matrix, networkx or igraph graph, optional
        π, whose pattern must be symmetric; None favours all pairs alike.

    References
    ----------
    Van Assel, Vayer, Flamary and Courty (2023), SNEkhorn: dimension reduction with symmetric entropic affinities,
    section 4; Knight (2008), The Sinkhorn-Knopp algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> law = gc.GraphModel(gc.Gaussian(), "S").posterior(X)
    >>> bool(np.allclose(law.mean().sum(axis=0), 1.0))
    True
    """

    code: ClassVar[str] = "S"

    log_partition_latex: ClassVar[str] = r"\max_{P 1 = P^\top 1 = 1} \sum_{i \neq j} p_{ij} \log (k_{ij} / p_{ij})"
    constraints: ClassVar[frozenset[str]] = frozenset({BINARY, ONE_EACH, N_EDGES, BALANCED})
    posterior_class: ClassVar[type[GraphPosterior]] = BalancedPosterior
    symmetric_mean: ClassVar[bool] = True
    _memory: ClassVar[Any] = None

    def for_run(self) -> Self:
        """Return a copy that starts iterations from its last evaluation, and then needs a third of the sums."""
        return changed(self, _memory=[])

    def edges(self, n_nodes: int) -> tuple[Support, FloatArray] | None:
        """Return the edges that π allows, with log π; see `GraphPrior.edges`.

        Raises
        ------
        ValueError
            When π allows an edge and forbids its reverse.
        """
        allowed = super().edges(n_nodes)
        if allowed is not None and (allowed[0].find(allowed[0].indices, allowed[0].rows) < 0).any():
            raise ValueError("edge_prior must allow both directions of an edge under prior S, whose mean is symmetric.")
        return allowed

    @classmethod
    def enumerate(cls, n_nodes: int) -> tuple[IntArray, FloatArray]:
        """Return every graph of prior D, and its log base measure, 0."""
        return UnitOutDegree.enumerate(n_nodes)

    def _around(self, support: Support, weights: FloatArray, name: str) -> GraphPosterior:
        graph = support.to_csr(weights)
        sums = np.asarray(graph.sum(axis=1)).ravel()
        if abs(graph - graph.T).max() > 1e-6 * graph.max() or not np.allclose(sums, sums[0], rtol=1e-6):
            raise ValueError(
                "the mean of a law of prior S is symmetric, and its rows have equal sums, which is not so of "
                f"{name}; take the law of its log-weights, prior.posterior(log_weights), which balances them."
            )
        return super()._around(support, weights, name)

    def least_cross_entropy(
        self, means: FloatArray, n_nodes: float, share: float = 1.0, pairs: FloatArray | None = None
    ) -> float:
        """Return −Σ m log m, which is attained at η = log m for symmetric means whose rows sum to 1."""
        return -sum_x_log_x(means, share)[0]

    def log_partition_and_grad(
        self,
        kernel: Kernel,
        Z: FloatArray,
        summation: Summation,
        *,
        weights: FloatArray | None = None,
        with_value: bool = True,
        with_gradient: bool = True,
    ) -> tuple[float, FloatArray | None]:
        """Return −2 Σ_i log u_i, where the rows of u_i k(d²_ij) u_j sum to 1, and its gradient 2 u_i ∇Φ_i[k; u].

        The dual gives the value, with an error that is quadratic in the error of u. Where kernels between most points
        underflow, as a Gaussian's on a map over 20 bandwidths wide, value and gradient are of an upper bound.
        """
        summation = summation.for_points(Z, KernelValue(kernel))
        tolerance = max(_TOLERANCE if self._memory is None else _TOLERANCE_OF_RUNS, summation.resolution)
        balanced = self._balanced(kernel, Z, summation, tolerance, _MOST_STEPS, with_gradient)
        if balanced is None and summation.resolution > 0:
            # All points are far apart, as in a start that is too large: an upper bound makes descent turn back.
            accuracy = (_ROUGHLY, _FEW_STEPS) if summation.resolution > _TOLERANCE else (tolerance, _MOST_STEPS)
            balanced = self._balanced(kernel, Z, Exact(summation.n_jobs), *accuracy, with_gradient)
        return balanced or _in_logs(kernel, Z.astype(np.float64, copy=False), with_gradient)

    # A trial step may take the embedding to where factors overflow; its infinite value is then refused.
    @np.errstate(over="ignore")
    def _balanced(
        self, kernel: Kernel, Z: FloatArray, summation: Summation, tolerance: float, most: int, with_gradient: bool
    ) -> tuple[float, FloatArray | None] | None:
        """Return the log-partition and its gradient, or None if sums are too small for the summation."""
        radial = KernelValue(kernel)

        def times(charges: FloatArray) -> FloatArray:
            return summation.potential(Z, radial, charges, with_gradient=False)[0]

        memory = self._memory
        u = memory[0] if memory else np.ones(len(Z))
        mass = times(u)
        if memory and not (np.abs(u * mass - 1.0) < _NEAR).all():
            u = np.ones(len(Z))
            mass = times(u)
        if not (mass > max(UNDERFLOW, summation.resolution)).all():
            return None
        u, sums = balance(times, u, mass, tolerance, most)
        if memory is not None:
            memory[:] = [u]
        value = float((sums - 1.0).sum() - 2.0 * np.log(u).sum())
        if not with_gradient:
            return value, None
        return value, 2.0 * u[:, None] * summation.potential(Z, radial, u, with_potential=False)[1]


def _in_logs(kernel: Kernel, Z: FloatArray, with_gradient: bool) -> tuple[float, FloatArray | None]:
    """Return the log-partition and its gradient by Sinkhorn's steps in logarithms, for kernels that underflow."""
    f = np.zeros(len(Z))
    log_sums = row_log_sums(kernel, Z, f)
    # Any f gives an upper bound, and descent leaves such embeddings at once.
    for _ in range(1, int(np.clip(_MOST_PAIRS_IN_LOGS // len(Z) ** 2, 2, _MOST_IN_LOGS))):
        if not np.abs(f + log_sums).max() > _TOLERANCE_OF_RUNS:
            break
        f = 0.5 * (f - log_sums)
        log_sums = row_log_sums(kernel, Z, f)
    value = float(np.expm1(f + log_sums).sum() - 2.0 * f.sum())
    if not with_gradient:
        return value, None
    return value, mean_forces(kernel, Z, np.log(2.0) + f, f)
