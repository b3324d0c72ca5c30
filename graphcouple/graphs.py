"""Graphs as sparse matrices: supports of laws, samples, and conversions from and to other libraries.

In a sparse matrix of log-weights, a stored zero means log 1 = 0 and an absent entry means −∞. Sparse arithmetic may
drop stored zeros, so a law keeps its edges as flat arrays beside a `Support`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._support.validation import check_sparse, check_unmasked, warn

if TYPE_CHECKING:
    import igraph
    import networkx

    GraphLike: TypeAlias = NDArray[Any] | sp.sparray | sp.spmatrix | networkx.Graph | igraph.Graph
else:
    GraphLike = Any

__all__ = ["Graph", "Support"]

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.integer[Any]]


class Graph(sp.csr_array):
    """A directed graph drawn from a law: a `scipy.sparse.csr_array` of edge counts, with conversions.

    Entry (i, j) counts the edges from node i to node j. Arithmetic in scipy may return a plain ``csr_array``.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.graphs import Graph
    >>> graph = Graph(np.array([[0, 2, 0], [0, 0, 1], [0, 0, 0]]))
    >>> graph.to_networkx().edges[0, 1]["weight"]
    2
    >>> graph.to_igraph().ecount()
    2
    """

    def to_networkx(self) -> networkx.DiGraph:
        """Return a `networkx.DiGraph` with the counts as the edge attribute ``weight``."""
        import networkx

        graph = networkx.DiGraph()
        graph.add_nodes_from(range(self.shape[0]))
        edges = self.tocoo()
        graph.add_weighted_edges_from(zip(edges.row.tolist(), edges.col.tolist(), edges.data.tolist(), strict=True))
        return graph

    def to_igraph(self) -> igraph.Graph:
        """Return a directed `igraph.Graph` with the counts as the edge attribute ``weight``."""
        import igraph

        edges = self.tocoo()
        pairs = np.column_stack([edges.row, edges.col]).astype(np.int64)
        graph = igraph.Graph(n=self.shape[0], edges=pairs, directed=True)
        graph.es["weight"] = edges.data.tolist()
        return graph


MOST_INT32 = int(np.iinfo(np.int32).max)

MANY_EDGES = 5_000_000
"""Above this many edges, values of edges are kept in single precision: reading memory sets the time of a sum."""

# Edges worked on at once: 16 MB in double precision.
_PART_EDGES = 2**21


def index_dtype(largest: int) -> type[np.integer[Any]]:
    """Return the integer type for numbers up to the largest."""
    return np.int32 if largest <= MOST_INT32 else np.int64


class cached_if_few(cached_property[Any]):
    """A cached property of a graph's law; with many edges it is computed at each use, to save an array."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        many = instance is not None and instance.n_edges > MANY_EDGES
        return self.func(instance) if many else super().__get__(instance, owner)


@dataclass(frozen=True, eq=False)
class Support:
    """The ordered pairs (i, j), i ≠ j, that a law may put an edge on, in row-major order.

    The edges of node i are ``indptr[i]:indptr[i + 1]``, and `indices` has the end node of each edge, sorted and unique
    within a row. If the support is `complete`, it holds every pair; results are then dense arrays.
    """

    indptr: IntArray
    indices: IntArray
    complete: bool = False

    def __post_init__(self) -> None:
        # Compiled loops round otherwise for integers of another width, so a graph's size decides the width.
        for name, largest in (("indptr", self.n_edges), ("indices", self.n_nodes)):
            narrow = getattr(self, name).astype(index_dtype(largest), copy=False)
            object.__setattr__(self, name, narrow)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be computed again."""
        return {name: getattr(self, name) for name in ("indptr", "indices", "complete")}

    @classmethod
    def checked(cls, indptr: IntArray, indices: IntArray, complete: bool = False) -> Support:
        """Return a support of a file; raise unless its arrays fit together, because compiled loops do not look."""
        n, steps = indptr.size - 1, np.diff(indptr)
        sound = n >= 0 and indptr.ndim == indices.ndim == 1 and indptr[0] == 0 and indptr[-1] == indices.size
        sound = sound and bool((steps >= 0).all() and ((indices >= 0) & (indices < n)).all())
        if not sound or (complete and indices.size != n * (n - 1)):
            raise ValueError("the file is damaged: a graph's arrays do not fit together. Fit again.")
        return cls(indptr, indices, complete)

    @classmethod
    def all_pairs(cls, n_nodes: int) -> Support:
        """Return the support of all n(n − 1) ordered pairs."""
        indptr = np.arange(n_nodes + 1) * (n_nodes - 1)
        columns = np.broadcast_to(np.arange(n_nodes, dtype=index_dtype(n_nodes)), (n_nodes, n_nodes))
        return cls(indptr, off_diagonal(columns), complete=True)

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return self.indptr.size - 1

    @property
    def n_edges(self) -> int:
        """The number of ordered pairs in the support."""
        return self.indices.size

    @cached_property
    def rows(self) -> IntArray:
        """The start node of each edge."""
        return np.repeat(np.arange(self.n_nodes, dtype=self.indices.dtype), np.diff(self.indptr).astype(np.int64))

    @cached_property
    def keys(self) -> NDArray[np.int64]:
        """Each edge as the sorted number i·n + j."""
        return self.rows.astype(np.int64) * self.n_nodes + self.indices

    def find(self, rows: IntArray, columns: IntArray) -> NDArray[np.int64]:
        """Return the position of each pair (rows, columns) in the support, or −1 where it is absent."""
        keys = rows.astype(np.int64) * self.n_nodes + columns
        at = np.searchsorted(self.keys, keys)
        is_present = np.zeros(keys.shape, dtype=bool)
        inside = at < self.n_edges
        is_present[inside] = self.keys[at[inside]] == keys[inside]
        return np.where(is_present, at, -1)

    def with_one_more(self) -> IntArray:
        """Return the row pointers of rows with one more entry each."""
        return (self.indptr + np.arange(self.n_nodes + 1)).astype(self.indptr.dtype)

    def to_csr(self, values: NDArray[Any]) -> sp.csr_array:
        """Return a csr array with these values on the support, zeros stored."""
        matrix = sp.csr_array((values, self.indices, self.indptr), shape=(self.n_nodes,) * 2)
        matrix.has_canonical_format = True
        return matrix

    def to_array(self, values: NDArray[Any]) -> NDArray[Any] | sp.csr_array:
        """Return values as users see them: dense with a zero diagonal for all pairs, else a csr array."""
        if not self.complete:
            return self.to_csr(values).copy()
        n = self.n_nodes
        dense = np.zeros((n, n), dtype=values.dtype)
        dense[~np.eye(n, dtype=bool)] = values
        return dense

    def in_parts(self) -> Iterator[tuple[slice, slice, Support]]:
        """Yield some rows at a time, their edges, and their support: copies of all edges may not fit in memory.

        Rows of a part are numbered from 0; the end nodes keep their numbers.
        """
        if self.n_edges <= _PART_EDGES:
            yield slice(0, self.n_nodes), slice(0, self.n_edges), self
            return
        bounds = np.searchsorted(self.indptr, np.arange(0, self.n_edges, _PART_EDGES), side="right") - 1
        for first, last in pairwise(np.unique([*bounds, self.n_nodes]).tolist()):
            a, b = int(self.indptr[first]), int(self.indptr[last])
            yield slice(first, last), slice(a, b), Support(self.indptr[first : last + 1] - a, self.indices[a:b])

    def select(self, keep: NDArray[np.bool_]) -> Support:
        """Return the support of the edges where `keep` is True."""
        if keep.all():
            return self
        counts = np.concatenate([[0], np.cumsum(keep)])
        return Support(counts[self.indptr], self.indices[keep])


def largest_of_rows(support: Support, values: NDArray[Any], count: int) -> NDArray[np.bool_]:
    """Return which edges have one of the `count` largest values of their row; the first of equal values count.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.graphs import Support, largest_of_rows
    >>> largest_of_rows(Support(np.array([0, 3, 4]), np.array([0, 1, 2, 0])), np.array([0.2, 0.5, 0.3, 1.0]), 2)
    array([False,  True,  True,  True])
    """
    order = np.lexsort((-values, support.rows))
    keep = np.zeros(order.size, dtype=bool)
    keep[order[np.arange(order.size) - support.indptr[support.rows] < count]] = True
    return keep


def off_diagonal(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the off-diagonal entries of a square array, flat and in row-major order."""
    n = matrix.shape[0]
    return np.ascontiguousarray(matrix).ravel()[1:].reshape(n - 1, n + 1)[:, :-1].ravel()


def without_duplicates(matrix: Any) -> Any:
    """Return a csr matrix whose duplicate entries are summed, a copy unless its entries are sorted."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _from_library(graph: Any, kind: str, name: str) -> sp.coo_array:
    """Return the edges of a networkx or igraph graph, both directions of each if it is undirected."""
    edges: Any
    if kind == "networkx":
        index = {node: i for i, node in enumerate(graph.nodes)}
        n_nodes = len(index)
        if index.keys() == set(range(n_nodes)) and list(index) != list(range(n_nodes)):
            warn(
                f"{name}: the nodes are the numbers 0 to {n_nodes - 1} in another order, and rows follow graph.nodes. "
                "If node i is row i, pass networkx.to_scipy_sparse_array(graph, nodelist=sorted(graph))."
            )
        edges = [(index[u], index[v], w) for u, v, w in graph.edges(data="weight", default=1.0)]
    else:
        n_nodes = graph.vcount()
        weights = graph.es["weight"] if "weight" in graph.es.attributes() else [1.0] * graph.ecount()
        edges = [(*ends, w) for ends, w in zip(graph.get_edgelist(), weights, strict=True)]
    try:
        edges = np.array([(u, v, float(w)) for u, v, w in edges], dtype=np.float64).reshape(-1, 3)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: every {kind} edge attribute 'weight' must be a number ({error}).") from None
    if not graph.is_directed():
        edges = np.concatenate([edges, edges[edges[:, 0] != edges[:, 1]][:, [1, 0, 2]]])
    return sp.coo_array((edges[:, 2], edges[:, :2].T.astype(np.int64)), shape=(n_nodes, n_nodes))


def as_csr(graph: GraphLike, name: str, n_nodes: int | None = None) -> sp.csr_array:
    """Return any kind of graph as a canonical csr array of weights (a copy only if it had to change).

    An undirected graph gives both directions of each edge. Rows follow ``graph.nodes``. Edge weights are read from the
    attribute ``weight``, 1 where there is none. Zero entries of a dense array are not edges; a sparse matrix keeps its
    stored zeros. Messages call the graph `name`. Other kinds of input raise `TypeError`; NaN, a graph that is not
    square, and another number of nodes than `n_nodes` raise `ValueError`. Numbered nodes in another order are noted.
    """
    check_unmasked(graph, name)
    packages = (base.__module__.partition(".")[0] for base in type(graph).__mro__)
    kind = next((package for package in packages if package in ("networkx", "igraph")), "")
    if sp.issparse(graph):
        check_sparse(graph, name)
        matrix = sp.csr_array(graph)
    elif kind:
        matrix = sp.csr_array(_from_library(graph, kind, name))
    else:
        array: NDArray[Any] = np.asarray(graph)
        if array.dtype.kind not in "iufb" or array.ndim != 2:
            raise TypeError(
                f"{name} must be a square numeric array, a sparse matrix, or a networkx or igraph graph, "
                f"got {type(graph).__name__}."
            )
        matrix = sp.csr_array(array)
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} must be square, one row and one column per node, got shape {matrix.shape}.")
    if n_nodes is not None and matrix.shape[0] != n_nodes:
        raise ValueError(f"{name} has {matrix.shape[0]} nodes, but must have {n_nodes}.")
    matrix = without_duplicates(matrix)
    if matrix.dtype.kind not in "iufb":
        raise TypeError(f"{name} must hold real numbers, got dtype {matrix.dtype}.")
    if np.isnan(matrix.data).any():
        raise ValueError(f"{name} holds NaN; drop or impute those edges first.")
    return matrix


def edges_of(matrix: sp.csr_array) -> tuple[Support, FloatArray]:
    """Split a canonical csr array into the support of its stored off-diagonal entries and their values."""
    # Copies: the support outlives the matrix, which the caller may change.
    support = Support(matrix.indptr.copy(), matrix.indices.copy())
    keep = support.rows != support.indices
    return support.select(keep), matrix.data[keep]


def pairs_of(matrix: Any, name: str) -> tuple[Support, FloatArray]:
    """Return the off-diagonal entries of a square array, or the stored ones of a sparse matrix."""
    if sp.issparse(matrix):
        return edges_of(as_csr(matrix, name))
    array = np.asarray(matrix)
    if array.dtype.kind not in "iufb":
        raise TypeError(f"{name} must hold real numbers, got dtype {array.dtype}.")
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} must be square, got shape {array.shape}.")
    return Support.all_pairs(len(array)), off_diagonal(array)
