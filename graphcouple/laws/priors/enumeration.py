"""All graphs of very few nodes, as priors list them."""

from __future__ import annotations

import numpy as np

from graphcouple.graphs import IntArray


def check_enumerable(name: str, n_nodes: int, most: int) -> None:
    """Raise unless there are few enough nodes to list all graphs."""
    if not 2 <= n_nodes <= most:
        raise ValueError(f"prior {name} is enumerated for 2 to {most} nodes, got {n_nodes}.")


def ordered_pairs(n_nodes: int) -> list[tuple[int, int]]:
    """Return all (i, j), i ≠ j."""
    return [(i, j) for i in range(n_nodes) for j in range(n_nodes) if i != j]


def graphs_of_counts(n_nodes: int, counts: IntArray) -> IntArray:
    """Return graphs, of shape (n_graphs, n, n), from the counts of their ordered pairs."""
    graphs = np.zeros((len(counts), n_nodes, n_nodes), dtype=np.int64)
    rows, columns = np.array(ordered_pairs(n_nodes)).T
    graphs[:, rows, columns] = counts
    return graphs
