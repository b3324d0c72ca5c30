"""All graphs of a prior's support, for very few nodes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement, product

import numpy as np
from scipy.special import gammaln

from graphcouple.graphs import FloatArray, IntArray

Enumerator = Callable[[int], tuple[IntArray, FloatArray]]


def _pairs(n: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(n) for j in range(n) if i != j]


def _from_counts(n: int, counts: IntArray) -> IntArray:
    graphs = np.zeros((len(counts), n, n), dtype=np.int64)
    rows, columns = np.array(_pairs(n)).T
    graphs[:, rows, columns] = counts
    return graphs


def _binary(n: int) -> tuple[IntArray, FloatArray]:
    counts = np.array(list(product((0, 1), repeat=n * (n - 1))))
    return _from_counts(n, counts), np.zeros(len(counts))


def _unit_out_degree(n: int) -> tuple[IntArray, FloatArray]:
    ends = np.array(list(product(*[[j for j in range(n) if j != i] for i in range(n)])))
    graphs = np.zeros((len(ends), n, n), dtype=np.int64)
    graphs[np.arange(len(ends))[:, None], np.arange(n), ends] = 1
    return graphs, np.zeros(len(ends))


def _fixed_edges(n: int) -> tuple[IntArray, FloatArray]:
    edges = n * (n - 1)
    drawn = list(combinations_with_replacement(range(edges), n))
    counts = np.array([np.bincount(choice, minlength=edges) for choice in drawn])
    return _from_counts(n, counts), gammaln(n + 1.0) - gammaln(counts + 1.0).sum(axis=1)


ENUMERATORS: dict[str, tuple[int, Enumerator]] = {"B": (3, _binary), "D": (4, _unit_out_degree), "E": (4, _fixed_edges)}
"""For each prior, the most nodes whose graphs can be listed, and how."""
