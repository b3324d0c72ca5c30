"""The law of a hidden graph given points: an exponential family over graphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from graphcouple._numba.mirror import gather_rows, relabel_rows
from graphcouple._numba.threads import over_rows
from graphcouple.graphs import MANY_EDGES, FloatArray, Graph, GraphLike, IntArray, Support, as_csr
from graphcouple.laws.priors.random_graph import RandomGraph, Rng

# Number of edges summed at once: 32 MB in double precision.
_PART_EDGES = 2**22


class GraphPosterior(RandomGraph):
    """The law of a hidden graph given points: an exponential family with one natural parameter per edge.

    ``log_prob(W) = <W, η> − A(η) + log h(W)`` on the law's support, where
    A is the log-partition and h the base measure. The mean E[W_ij] is ∂A/∂η_ij.

    Parameters
    ----------
    support : Support
        The ordered pairs that can carry an edge.
    natural_parameters : ndarray of shape (n_edges,)
        The natural parameters η, finite.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> law = gc.GraphModel("gaussian", "D", gc.Perplexity(10)).posterior(X)
    >>> isinstance(law, gc.extend.GraphPosterior), round(float(law.edge_means.sum()))
    (True, 150)
    """

    recompute: Callable[[], FloatArray] | None = None
    """Recomputes the natural parameters. If set, a large array of parameters is freed once a coupling has the means."""

    def __init__(self, support: Support, natural_parameters: FloatArray) -> None:
        super().__init__(support)
        if np.shape(natural_parameters) != (support.n_edges,):
            shape = np.shape(natural_parameters)
            raise ValueError(f"{support.n_edges} edges need as many parameters, got shape {shape}.")
        self._parameters: FloatArray | None = np.asarray(natural_parameters)

    @property
    def natural_parameters(self) -> FloatArray:
        """The natural parameters η."""
        if self._parameters is None:
            assert self.recompute is not None
            self._parameters = self.recompute()
        return self._parameters

    def __getstate__(self) -> dict[str, Any]:
        # A copy in a file or another process has the parameters, and no function to compute them.
        return {**vars(self), "_parameters": self.natural_parameters, "recompute": None}

    def take_means(self) -> FloatArray:
        if self.n_edges <= MANY_EDGES:
            return super().take_means()
        # If there are very many means, they are computed at each use.
        means = self.edge_means
        if isinstance(getattr(type(self), "edge_means", None), cached_property):
            vars(self).pop("edge_means", None)
        if self.recompute is not None:
            self._parameters = None
        return means

    def renumbered(self, order: IntArray, n_jobs: int | None = None) -> GraphPosterior:
        """Return the law in which node `order[i]` is the i-th.

        It reuses the arrays of this law, which becomes invalid, because memory may not hold all edges twice.
        """
        old, values = self.support, self.natural_parameters
        indptr, rank = np.zeros_like(old.indptr), np.empty(order.size, dtype=old.indices.dtype)
        np.cumsum(np.diff(old.indptr)[order], out=indptr[1:])
        rank[order] = np.arange(order.size)
        for array in (old.indices, values):
            moved = np.empty_like(array)
            over_rows(order.size, n_jobs, gather_rows, order, old.indptr, array, indptr, moved)
            array[:] = moved
            del moved
        over_rows(order.size, n_jobs, relabel_rows, indptr, rank, old.indices, values)
        return self._on(Support(indptr, old.indices), values)

    def with_natural_parameters(self, natural_parameters: FloatArray) -> GraphPosterior:
        """Return the law on the same edges with other natural parameters."""
        return self._on(self.support, natural_parameters)

    def _on(self, support: Support, natural_parameters: FloatArray) -> GraphPosterior:
        return type(self)(support, natural_parameters)

    @abstractmethod
    def log_partition(self) -> float:
        """Return A(η), in nats."""

    @cached_property
    def _cumulative(self) -> FloatArray:
        return np.cumsum(self.edge_means, dtype=np.float64)

    @abstractmethod
    def entropy(self) -> float:
        """Return −E[log P(W)], in nats."""

    def least_entropy(self) -> float:
        return self.entropy()

    @abstractmethod
    def _draw(self, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Return the positions in `support` of the edges of one sample, and their counts."""

    @abstractmethod
    def _log_base_measure(self, rows: IntArray, counts: FloatArray) -> float:
        """Return log h(W) of the graph with these edges; −inf outside the law's support."""

    def sample(self, rng: Rng = None) -> Graph:
        """Draw one graph.

        Parameters
        ----------
        rng : numpy.random.Generator, int or None
            The source of randomness; an integer seeds a new one.

        Returns
        -------
        Graph
            A csr array of integer edge counts, with ``to_networkx()`` and ``to_igraph()``.
        """
        at, counts = self._draw(np.random.default_rng(rng))
        columns = self.support.indices[at]
        starts = np.searchsorted(at, self.support.indptr)
        graph = Graph((counts.astype(np.int32), columns, starts.astype(columns.dtype)), shape=(self.n_nodes,) * 2)
        graph.has_canonical_format = True
        return graph

    def sample_edges(self, rng: Rng = None) -> tuple[IntArray, IntArray]:
        at, _ = self._draw(np.random.default_rng(rng))
        return self.support.rows[at], self.support.indices[at]

    def log_prob(self, W: GraphLike) -> float:
        """Return the log-probability of a graph, in nats; −inf if the law cannot produce it.

        Parameters
        ----------
        W : array, sparse matrix, networkx or igraph graph
            Integer edge counts; an undirected graph means both directions.

        Raises
        ------
        ValueError
            When `W` has the wrong number of nodes, or counts that are negative or not integers.
        """
        rows, columns, counts = counted_edges(W, self.n_nodes)
        at = self.support.find(rows, columns)
        if (at < 0).any():
            return -np.inf
        base = self._log_base_measure(rows, counts)
        if base == -np.inf or (self.unordered and not np.isin(self.support.find(columns, rows), at).all()):
            return -np.inf
        return self._log_weight(at, counts) + base

    def _log_weight(self, at: IntArray, counts: FloatArray) -> float:
        """Return <W, η> − A(η) of a graph with these edges, positions in `support`."""
        share = 0.5 if self.unordered else 1.0
        return float(share * (counts @ self.natural_parameters[at])) - self.log_partition()


def counted_edges(W: GraphLike, n_nodes: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Return the starts, ends and numbers of the edges of a graph; raise unless the numbers are counts."""
    graph = as_csr(W, "W", n_nodes)
    if (graph.data < 0).any() or (graph.data != np.floor(graph.data)).any():
        raise ValueError("W must hold non-negative integers, the number of edges from i to j.")
    rows, columns = graph.nonzero()
    return rows, columns, graph.data[graph.data > 0].astype(np.float64)


def draw_in_rows(cumulative: FloatArray, first: IntArray, end: IntArray, rng: np.random.Generator) -> IntArray:
    """Return one position from `first` to `end` for each row, with probabilities in proportion to the increments."""
    below = np.where(first > 0, cumulative[first - 1], 0.0)
    at = draw_by_inversion(cumulative, below + (cumulative[end - 1] - below) * rng.random(first.size))
    return np.clip(at, first, end - 1)


def draw_by_inversion(cumulative: FloatArray, uniforms: FloatArray) -> NDArray[np.int64]:
    """Return the index of the interval of the increasing `cumulative` that holds each number.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.extend import draw_by_inversion
    >>> draw_by_inversion(np.cumsum([0.2, 0.5, 0.3]), np.array([0.1, 0.6, 0.95])).tolist()
    [0, 1, 2]
    """
    return np.minimum(np.searchsorted(cumulative, uniforms, side="right"), cumulative.size - 1)


def sum_x_log_x(values: FloatArray, share: float = 1.0) -> tuple[float, float]:
    """Return Σ x log x and Σ x of x = share · values, in double precision.

    It works on one part at a time, because memory may not hold all edges twice.
    """
    total, mass, flat = 0.0, 0.0, values.reshape(-1)
    for a in range(0, flat.size, _PART_EDGES):
        part = share * flat[a : a + _PART_EDGES].astype(np.float64)
        total += float(xlogy(part, part).sum())
        mass += float(part.sum())
    return total, mass
