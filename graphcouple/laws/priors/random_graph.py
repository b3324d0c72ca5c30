"""The interface of laws of a hidden graph for couplings, starts and component sampling."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._support.html import html_table
from graphcouple.graphs import FloatArray, Graph, GraphLike, IntArray, Support

Rng = np.random.Generator | int | None


class RandomGraph(ABC):
    """The law of a hidden graph given points.

    Parameters
    ----------
    support : Support
        The ordered pairs that can carry an edge.
    """

    unordered: bool = False
    """True for a law of undirected graphs, whose sums run over pairs i < j."""

    node_weights: FloatArray | None = None
    """How many points each node stands for; None if one each."""

    def __init__(self, support: Support) -> None:
        self.support = support

    prior_class: Any
    """The class of the prior, a subclass of `GraphPrior`."""

    @property
    def code(self) -> str:
        """The name of the prior: its letter in the graph-coupling paper, or the name it is registered under."""
        return self.prior_class.code

    @property
    def prior_name(self) -> str:
        """The name of the prior's class."""
        return self.prior_class.__name__

    @property
    def constraints(self) -> frozenset[str]:
        """The constraints that every graph of the law obeys."""
        return self.prior_class.constraints

    @cached_property
    @abstractmethod
    def edge_means(self) -> FloatArray:
        """E[W_ij] on the edges of `support`."""

    def take_means(self) -> FloatArray:
        """Return `edge_means` in an array that the caller may change."""
        return self.edge_means.copy()

    @abstractmethod
    def sample(self, rng: Rng = None) -> Graph:
        """Draw one graph."""

    @abstractmethod
    def sample_edges(self, rng: Rng = None) -> tuple[IntArray, IntArray]:
        """Draw one graph as the starts and ends of its edges, each edge once, whatever its count."""

    def entropy(self) -> float:
        """Return the entropy −E[log P(W)], in nats.

        Raises
        ------
        NotImplementedError
            When the law has no formula for it, as with sample weights.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no formula for its entropy. If points have weights, repeat their rows instead."
        )

    @abstractmethod
    def log_prob(self, W: GraphLike) -> float:
        """Return the log-probability of a graph, in nats; −inf if the law cannot produce it."""

    @abstractmethod
    def least_entropy(self) -> float:
        """Return the entropy or a lower bound, in nats."""

    @property
    def own_means(self) -> FloatArray:
        """The expected number of edges among the points that each node stands for."""
        return np.zeros(self.n_nodes)

    def _repr_html_(self) -> str:
        rows = [["law", f"{type(self).__name__}, prior {self.code}"], ["points", f"{self.n_nodes:,}"]]
        return html_table([], [*rows, ["possible edges", f"{self.support.n_edges:,}"]])

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

    def mean(self) -> FloatArray | sp.csr_array:
        """Return E[W].

        Returns
        -------
        ndarray or csr_array of shape (n, n)
            Dense for a law on all pairs; otherwise sparse, with an entry for every possible edge.
        """
        return self.support.to_array(self.edge_means)
