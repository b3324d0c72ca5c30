"""What every graph law shares: edges, natural parameters, and the algebra around them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._validation import check_positive
from graphcouple.graphs import FloatArray, Graph, GraphLike, IntArray, Support, as_csr, edges_of
from graphcouple.kernels import Kernel
from graphcouple.radials import Weighted

Rng = np.random.Generator | int | None


class PotentialSum(Protocol):
    """The one N-body primitive a prior needs; see `graphcouple.summation`."""

    resolution: float

    def for_points(self, Z: FloatArray, radial: Any) -> PotentialSum:
        """Return the summation that does the sums for these points."""

    def potential(
        self,
        Z: FloatArray,
        radial: Any,
        charges: FloatArray | None = None,
        *,
        with_potential: bool = True,
        with_gradient: bool = True,
    ) -> tuple[FloatArray, FloatArray]:
        """Return Φ_i = Σ_{j≠i} c_j φ(d²_ij) and its gradient in z_i with the charges held fixed."""


class GraphPosterior(ABC):
    """The law of a hidden graph given points: an exponential family with one natural parameter per edge.

    ``log_prob(W) = <W, η> − A(η) + log h(W)`` on the law's support, where
    A is the log-partition and h the base measure.

    Parameters
    ----------
    support : Support
        The ordered pairs that can carry an edge.
    log_weights : ndarray of shape (n_edges,)
        The natural parameters η, finite.
    """

    code: ClassVar[str]
    """The letter of the prior in the graph-coupling paper."""

    constraints: ClassVar[frozenset[str]]
    """What every graph of the law obeys."""

    prior_name: ClassVar[str]
    """The name of the prior this is the posterior of."""

    def __init__(self, support: Support, log_weights: FloatArray) -> None:
        self.support = support
        self.log_weights = log_weights

    def __repr__(self) -> str:
        edges = "all pairs" if self.support.complete else f"{self.n_edges} possible edges"
        return f"<{type(self).__name__} (prior {self.code}) of {self.n_nodes} nodes, {edges}>"

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return self.support.n_nodes

    @property
    def n_edges(self) -> int:
        """The number of ordered pairs that can carry an edge."""
        return self.support.n_edges

    @property
    def unordered(self) -> bool:
        """True for a law of undirected graphs, whose sums run over pairs i < j."""
        return False

    @abstractmethod
    def log_partition(self) -> float:
        """Return A(η), in nats."""

    @cached_property
    @abstractmethod
    def edge_means(self) -> FloatArray:
        """E[W_ij] = ∂A/∂η_ij on the edges of `support`."""

    @abstractmethod
    def entropy(self) -> float:
        """Return −E[log P(W)], in nats."""

    @abstractmethod
    def _draw(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the positions in `support` of the edges of one sample, and their counts."""

    @abstractmethod
    def _log_base_measure(self, rows: IntArray, counts: FloatArray) -> float:
        """Return log h(W) of the graph with these edges; −inf off the law's support."""

    def mean(self) -> FloatArray | sp.csr_array:
        """Return E[W].

        Returns
        -------
        ndarray or csr_array of shape (n, n)
            Dense for a law on all pairs; else sparse, with an entry for every
            possible edge.
        """
        return self.support.to_array(self.edge_means)

    def sample(self, rng: Rng = None) -> Graph:
        """Draw one graph.

        Parameters
        ----------
        rng : numpy.random.Generator, int or None
            The source of randomness; an integer seeds a new one.

        Returns
        -------
        Graph
            A csr array of integer edge counts, with ``to_networkx()`` and
            ``to_igraph()``.
        """
        at, counts = self._draw(np.random.default_rng(rng))
        columns = self.support.indices[at]
        starts = np.searchsorted(at, self.support.indptr)
        graph = Graph((counts.astype(np.int32), columns, starts.astype(columns.dtype)), shape=(self.n_nodes,) * 2)
        graph.has_canonical_format = True
        return graph

    def sample_edges(self, rng: Rng = None) -> tuple[IntArray, IntArray]:
        """Draw one graph as the starts and ends of its edges, each edge once whatever its count.

        Parameters
        ----------
        rng : numpy.random.Generator, int or None

        Returns
        -------
        rows, columns : ndarray of shape (n_edges,)
        """
        at, _ = self._draw(np.random.default_rng(rng))
        return self.support.rows[at], self.support.indices[at]

    def log_prob(self, W: GraphLike) -> float:
        """Return the log-probability of a graph, in nats; −inf when the law cannot produce it.

        Parameters
        ----------
        W : array, sparse matrix, networkx or igraph graph
            Integer edge counts; an undirected graph means both directions.

        Raises
        ------
        ValueError
            When `W` has another number of nodes, or counts that are negative or
            not integers.
        """
        graph = as_csr(W, "W", self.n_nodes)
        if (graph.data < 0).any() or (graph.data != np.floor(graph.data)).any():
            raise ValueError("W must hold non-negative integers, the number of edges from i to j.")
        present = graph.data > 0
        whole = Support(graph.indptr, graph.indices)
        rows, columns, counts = (
            whole.rows[present],
            whole.indices[present],
            graph.data[present].astype(np.float64),
        )
        at = self.support.find(rows, columns)
        if (at < 0).any():
            return -np.inf
        base = self._log_base_measure(rows, counts)
        if base == -np.inf or (self.unordered and not _is_symmetric(rows, columns)):
            return -np.inf
        share = 0.5 if self.unordered else 1.0
        return float(share * (counts @ self.log_weights[at]) - self.log_partition() + base)


def _is_symmetric(rows: IntArray, columns: IntArray) -> bool:
    order = np.lexsort((columns, rows))
    back = np.lexsort((rows, columns))
    return bool(np.array_equal(rows[order], columns[back]) and np.array_equal(columns[order], rows[back]))


def draw_by_inversion(cumulative: FloatArray, uniforms: FloatArray) -> NDArray[np.int64]:
    """Return the index of the interval of an increasing `cumulative` that each number falls in."""
    return np.minimum(np.searchsorted(cumulative, uniforms, side="right"), cumulative.size - 1)


@dataclass(frozen=True, eq=False)
class GraphPrior(ABC):
    """A prior over graphs, with an edge prior π ≥ 0.

    Parameters
    ----------
    edge_prior : float, array, sparse matrix, networkx or igraph graph, optional
        π: how much each ordered pair is favoured before any point is seen. None
        and a number favour all pairs alike. Of an array, zero entries (of a sparse
        matrix, absent or zero entries) forbid the edge; an observed network
        restricts the hidden graph to its edges.

    Raises
    ------
    ValueError
        When π has negative or infinite entries.
    """

    edge_prior: float | GraphLike | None = None

    code: ClassVar[str]
    constraints: ClassVar[frozenset[str]]
    posterior_class: ClassVar[type[GraphPosterior]]

    start_scale: ClassVar[float] = 1e-4
    """The standard deviation an embedding under this prior does well to start with."""

    momentum: ClassVar[float] = 0.9
    """The momentum gradient descent does well to have under this prior, once the attraction is not exaggerated."""

    def __post_init__(self) -> None:
        if self.edge_prior is None:
            return
        if isinstance(self.edge_prior, Real):
            check_positive("edge_prior", self.edge_prior)
            return
        values = as_csr(self.edge_prior, "edge_prior").data
        if (values < 0).any() or not np.isfinite(values).all():
            raise ValueError("edge_prior must be finite and at least 0; 0 forbids an edge.")

    def __repr__(self) -> str:
        prior = self.edge_prior
        if prior is None:
            return f"{type(self).__name__}()"
        shown = prior if isinstance(prior, Real) else f"<{type(prior).__name__}>"
        return f"{type(self).__name__}(edge_prior={shown})"

    def edges(self, n_nodes: int) -> tuple[Support, FloatArray] | None:
        """Return the edges π allows with log π, or None when it treats all pairs alike."""
        if self.edge_prior is None or isinstance(self.edge_prior, Real):
            return None
        support, values = edges_of(as_csr(self.edge_prior, "edge_prior", n_nodes))
        allowed = values > 0
        return support.select(allowed), np.log(values[allowed].astype(np.float64))

    @property
    def log_scalar(self) -> float:
        """Log π when it treats all pairs alike."""
        return float(np.log(float(self.edge_prior))) if isinstance(self.edge_prior, Real) else 0.0

    def posterior(self, log_kernel: Any) -> GraphPosterior:
        """Return the law of the graph with natural parameters η = log π + log k.

        Parameters
        ----------
        log_kernel : array or sparse matrix of shape (n, n)
            log k(x_i − x_j). In a dense array −inf forbids an edge; in a sparse
            matrix an absent entry does, and a stored zero means log k = 0. The
            diagonal is ignored.

        Returns
        -------
        GraphPosterior

        Raises
        ------
        ValueError
            When an entry is NaN or +inf, or no graph obeys the prior's constraint.
        """
        matrix: Any
        if sp.issparse(log_kernel):
            matrix = as_csr(log_kernel, "log_kernel")
            support, values = edges_of(matrix)
        else:
            matrix = np.asarray(log_kernel)
            if matrix.dtype.kind not in "iufb":
                raise TypeError(f"log_kernel must hold real numbers, got dtype {matrix.dtype}.")
            if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
                raise ValueError(f"log_kernel must be square, got shape {matrix.shape}.")
            support = Support.all_pairs(matrix.shape[0])
            values = matrix[support.rows, support.indices]
        return self.posterior_on(support, values.astype(np.float64))

    def posterior_on(self, support: Support, log_kernel: FloatArray) -> GraphPosterior:
        """Return the posterior from the flat log-kernel of a support; see `posterior`."""
        if np.isnan(log_kernel).any() or (log_kernel == np.inf).any():
            raise ValueError("log_kernel must not hold NaN or +inf.")
        allowed = self.edges(support.n_nodes)
        if allowed is None:
            log_weights = log_kernel + self.log_scalar if self.log_scalar else log_kernel
        else:
            at = allowed[0].find(support.rows, support.indices)
            keep = at >= 0
            support, log_weights = support.select(keep), log_kernel[keep] + allowed[1][at[keep]]
        finite = log_weights > -np.inf
        return self.posterior_class(support.select(finite), log_weights[finite])

    def latent_kernel(self, kernel: Kernel) -> Kernel:
        """Return π k for an edge prior that treats all pairs alike."""
        return Weighted(kernel, self.log_scalar) if self.log_scalar else kernel

    def learning_rate(self, n_points: int, attraction: float) -> float:
        """Return a good rate for gradient descent on a coupling divided by n, under this latent prior.

        max(n / (4α), 25) with α the attraction's weight: Belkina et al. (2019), in each phase as openTSNE does. The
        floor is half of scikit-learn's, since the momentum is twice as inert.
        """
        return max(n_points / (4.0 * attraction), 25.0)

    @abstractmethod
    def log_partition_and_grad(
        self,
        kernel: Kernel,
        Z: FloatArray,
        summation: PotentialSum,
        *,
        with_value: bool = True,
        with_gradient: bool = True,
    ) -> tuple[float, FloatArray | None]:
        """Return A(η_Z) over all ordered pairs, η_Z = log k(d²_ij), and its gradient in Z.

        Parameters
        ----------
        kernel : Kernel
            With a scalar edge prior already in it; see `latent_kernel`.
        Z : ndarray of shape (n, q)
        summation : PotentialSum
            How sums over all pairs are done.
        with_value, with_gradient : bool
            What is wanted; the other may be nan or None.
        """


_REGISTRY: dict[str, type[GraphPrior]] = {}


def register(prior: type[GraphPrior]) -> type[GraphPrior]:
    """Make a prior known by its letter; a class decorator."""
    _REGISTRY[prior.code] = prior
    return prior


def as_prior(prior: Any, name: str = "prior") -> GraphPrior:
    """Return `prior` itself, or the prior its letter stands for.

    Raises
    ------
    TypeError, ValueError
        When it is neither a prior nor one of the letters.

    Examples
    --------
    >>> from graphcouple.priors import as_prior
    >>> as_prior("D")
    UnitOutDegree()
    """
    if isinstance(prior, GraphPrior):
        return prior
    if not isinstance(prior, str):
        raise TypeError(f"{name} must be a graph prior or one of {sorted(_REGISTRY)}, got {prior!r}.")
    if prior not in _REGISTRY:
        raise ValueError(f"{name} must be one of {sorted(_REGISTRY)} or a graph prior, got {prior!r}.")
    return _REGISTRY[prior]()
