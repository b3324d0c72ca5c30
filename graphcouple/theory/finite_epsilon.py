"""The exact posterior of the graph at a finite ε, graph by graph, and its distance to the limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcouple.graphs import FloatArray, IntArray
from graphcouple.laws import GraphModel
from graphcouple.laws.priors import PRIORS
from graphcouple.neighbors import as_points, is_precomputed
from graphcouple.theory.field import PairwiseMRF, component_indicators


@dataclass(frozen=True, eq=False)
class EnumeratedPosterior:
    """A law over all graphs in a prior's support, listed one by one.

    Attributes
    ----------
    graphs : ndarray of shape (n_graphs, n, n)
    probabilities : ndarray of shape (n_graphs,)

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> law = gc.finite_epsilon_posterior(gc.GraphModel("gaussian", "D"), np.array([[0.0], [1.0], [3.0]]), 0.0)
    >>> law.graphs.shape, round(float(law.probabilities.sum()), 9)
    ((8, 3, 3), 1.0)
    """

    graphs: IntArray
    probabilities: FloatArray

    def mean(self) -> FloatArray:
        """Return E[W], of shape (n, n)."""
        return np.einsum("g,gij->ij", self.probabilities, self.graphs)

    def total_variation(self, other: EnumeratedPosterior) -> float:
        """Return ½ Σ abs(p − q), the total variation distance to a law over the same graphs."""
        if self.graphs.shape != other.graphs.shape or (self.graphs != other.graphs).any():
            raise ValueError("total variation needs two laws over the same graphs: the same prior and number of nodes.")
        return 0.5 * float(np.abs(self.probabilities - other.probabilities).sum())


def enumerate_graphs(code: str, n_nodes: int) -> tuple[IntArray, FloatArray]:
    """Return every graph in a prior's support and its log base measure.

    Parameters
    ----------
    code : str
        The prior's code, such as "B".
    n_nodes : int
        At most 3 for B, 4 for D, E and S.

    Raises
    ------
    ValueError
        When there are too many graphs to enumerate.

    Examples
    --------
    >>> from graphcouple.theory import enumerate_graphs
    >>> [enumerate_graphs(code, 3)[0].shape for code in "BDE"]
    [(64, 3, 3), (8, 3, 3), (56, 3, 3)]
    """
    return PRIORS[code].enumerate(n_nodes)


def finite_epsilon_posterior(
    model: Any,
    X: Any,
    epsilon: float,
    *,
    y: Any = None,
    covariance: FloatArray | None = None,
    theta: Callable[[int], FloatArray] | None = None,
    log_field: Callable[[FloatArray], float] | None = None,
) -> EnumeratedPosterior:
    """Return the exact posterior of the graph at a finite ε, an `EnumeratedPosterior`, by enumerating all graphs.

    P^ε(W | X) ∝ exp(−ε/2 tr(Σ⁻¹ XᵀUΘUᵀX)) · h(W) Π_ij (π_ij k(x_i − x_j))^W_ij is the limit posterior times a factor
    of the component means, which tends to 1 as ε → 0 (graph-coupling paper, section 2.3 and proposition 1).

    Parameters
    ----------
    model : GraphModel
        The limit posterior's model, without thresholding.
    X : array of shape (n, p)
        At most 3 points for prior B, 4 for D, E and S.
    epsilon : float
        At least 0; 0 gives the limit.
    y : array of shape (n,), optional
        Classes, for a model with a `target_weight`.
    covariance : ndarray of shape (p, p), optional
        Σ, positive definite; the identity by default.
    theta : callable, optional
        ``theta(R)`` is the precision Θ, of shape (R, R), of the means of R components; the identity by default.
    log_field : callable, optional
        ``log_field(√ε UᵀX)`` is the logarithm of a factor of your own in place of the normal law, such as a law with
        heavy tails; Uᵀ X has shape (R, p). It must be continuous at 0.

    Raises
    ------
    TypeError, ValueError
        When `model` is no GraphModel, thresholds its graph or takes distances, `epsilon` is negative or infinite, there
        are too many points, or `covariance` is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.array([[0.0], [1.0], [3.0]])
    >>> model = gc.GraphModel(gc.Gaussian(), "B")
    >>> limit = gc.finite_epsilon_posterior(model, X, 0.0)
    >>> bool(np.allclose(limit.mean(), model.posterior(X).mean()))
    True
    >>> tv = [gc.finite_epsilon_posterior(model, X, e).total_variation(limit) for e in (1.0, 1e-2, 1e-4)]
    >>> tv[0] > tv[1] > tv[2]
    True
    """
    if not isinstance(model, GraphModel):
        raise TypeError(f"model must be a GraphModel, got {type(model).__name__}.")
    if not 0 <= epsilon < np.inf:
        raise ValueError(f"epsilon must be a finite number of at least 0, got {epsilon!r}.")
    if is_precomputed(model.metric):
        raise ValueError("metric='precomputed' does not say where the points are; pass a model with another metric.")
    if log_field is not None and not (covariance is None and theta is None):
        raise ValueError("log_field takes the place of the normal law of covariance and theta; give one of the two.")
    if model.symmetrize is not None:
        raise ValueError("the finite-epsilon posterior is a law of directed graphs; pass a model with symmetrize=None.")
    points = np.asarray(as_points(X), dtype=np.float64)
    law: Any = model.posterior(points, y=y)
    graphs = law.prior_class.enumerate(law.n_nodes)[0]
    log_mass = np.array([law.log_prob(W) for W in graphs])
    white = PairwiseMRF(model.kernel, covariance).whiten(points)
    for g, W in enumerate(graphs if epsilon > 0 else ()):
        indicators = component_indicators(W)
        if log_field is not None:
            log_mass[g] += log_field(np.sqrt(epsilon) * (indicators.T @ points))
            continue
        means = indicators.T @ white
        precision = np.eye(len(means)) if theta is None else np.asarray(theta(len(means)))
        if precision.shape != (len(means),) * 2:
            raise ValueError(f"theta({len(means)}) must have shape {(len(means),) * 2}, got {precision.shape}.")
        log_mass[g] -= 0.5 * epsilon * float(np.trace(means.T @ precision @ means))
    mass = np.exp(log_mass - log_mass.max())
    return EnumeratedPosterior(graphs, mass / mass.sum())
