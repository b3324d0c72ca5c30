"""Connected components of posterior graphs, and the averaged projection onto their means.

A shift-invariant kernel determines nothing in the null space of the graph's Laplacian, which is spanned by the
normalised indicators U of the components (graph-coupling paper, section 4). The projection onto this space, averaged
over posterior graphs, is

    M = E[U Uᵀ],    M_ij = E[1{i and j in one component} / size of that component].

M is symmetric and doubly stochastic, with spectrum in [0, 1]. A sampled graph is stored as one membership vector. M is
never formed: v ↦ Mv costs N·n for N samples.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import joblib
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import LinearOperator

from graphcouple._numba.components import count_together, sum_component_means
from graphcouple._numba.threads import effective_n_jobs, over_rows
from graphcouple._support.validation import check_integer
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.laws.priors import BINARY, RandomGraph, UnitOutDegree

BATCHES = 10
"""The number of batches of sampled graphs, for parallel sums and for jackknife errors."""

# Tasks of two graphs between reports of progress: more would delay a report, fewer leave workers idle more often.
_TASKS_PER_ROUND = 16


def weak_components(n_nodes: int, rows: IntArray, columns: IntArray) -> NDArray[np.int32]:
    """Return each node's weak component, numbered 0 … R − 1 in the order of their first nodes.

    Parameters
    ----------
    n_nodes : int
    rows, columns : ndarray of shape (n_edges,)
        Where each edge starts and ends.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.components import weak_components
    >>> weak_components(4, np.array([0, 3]), np.array([2, 3]))
    array([0, 1, 0, 2], dtype=int32)
    """
    graph = sp.coo_array((np.ones(len(rows)), (rows, columns)), shape=(n_nodes, n_nodes)).tocsr()
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int32)


def _draw_labels(posterior: RandomGraph, seed: int, first: int, last: int) -> NDArray[np.int32]:
    labels = np.empty((last - first, posterior.n_nodes), dtype=np.int32)
    for s in range(first, last):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(s,)))
        labels[s - first] = weak_components(posterior.n_nodes, *posterior.sample_edges(rng))
    return labels


def sample_components(
    posterior: RandomGraph,
    n_samples: int,
    seed: int = 0,
    *,
    first: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int], Any] | None = None,
) -> NDArray[np.int32]:
    """Draw graphs from a posterior and label their weak components.

    Sample s has its own random stream, derived from `seed` and s. So the labels do not depend on the number of workers,
    and samples 0 to 9 followed by 10 to 19 equal samples 0 to 19.

    Parameters
    ----------
    posterior : RandomGraph
        The copies of a point with a sample weight are one node, and so in one component.
    n_samples : int
    seed : int, default=0
        At least 0.
    first : int, default=0
        The number of the first sample.
    n_jobs : int or None, default=None
        Workers; None means every core, or the number set by `joblib.parallel_config`, which also sets the backend. The
        default is threads.
    progress : callable, optional
        Called as ``progress(n_drawn)`` from time to time.

    Returns
    -------
    labels : ndarray of shape (n_samples, n_nodes), int32

    Raises
    ------
    TypeError, ValueError
        When `posterior` is not the law of a graph, or a number is out of range.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)).posterior(X)
    >>> labels = gc.components.sample_components(posterior, 20, seed=0)
    >>> labels.shape
    (20, 150)
    """
    if not isinstance(posterior, RandomGraph):
        raise TypeError(f"posterior must be the law of a graph, got {type(posterior).__name__}.")
    check_integer("n_samples", n_samples, 1)
    check_integer("seed", seed, 0)
    labels = np.empty((n_samples, posterior.n_nodes), dtype=np.int32)
    if n_jobs is not None or joblib.effective_n_jobs(None) == 1:
        # Otherwise `joblib.parallel_config` sets the backend, which may be a cluster.
        n_jobs = effective_n_jobs(n_jobs)
    # The first call fills a cache that every worker would otherwise fill.
    posterior.sample_edges(0)
    task = joblib.delayed(_draw_labels)
    with joblib.Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        for a in range(0, n_samples, _TASKS_PER_ROUND * 2):
            b = min(a + _TASKS_PER_ROUND * 2, n_samples)
            parts = parallel(task(posterior, seed, first + s, first + min(s + 2, b)) for s in range(a, b, 2))
            labels[a:b] = np.concatenate(parts)
            if progress is not None:
                progress(b)
    return labels


class AveragedProjection(LinearOperator):
    """The operator v ↦ Mv with M = (1/N) Σ_s U_s U_sᵀ, from the memberships of N sampled graphs.

    A `scipy.sparse.linalg.LinearOperator` that stores only the memberships.

    Parameters
    ----------
    labels : array of shape (n_samples, n_nodes)
        Each node's component in each graph: integers of at least 0, below the number of nodes.
    n_jobs : int or None, default=None
        Threads for a product; None means every core. Results do not depend on it.

    Raises
    ------
    TypeError, ValueError
        When `labels` are not integers in this range.

    References
    ----------
    Graph-coupling paper, section 4.2 and algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.components import AveragedProjection
    >>> M = AveragedProjection(np.array([[0, 0, 1], [0, 1, 1]]))
    >>> M @ np.array([1.0, 3.0, 5.0])
    array([1.5, 3. , 4.5])
    >>> M.n_components
    array([2, 2])
    """

    def __init__(self, labels: Any, n_jobs: int | None = None) -> None:
        memberships = np.asarray(labels)
        if memberships.dtype.kind not in "iu":
            raise TypeError(f"labels must be integers, got dtype {memberships.dtype}.")
        if memberships.ndim != 2 or 0 in memberships.shape:
            raise ValueError(f"labels must have shape (n_samples, n_nodes), got {memberships.shape}.")
        n_nodes = memberships.shape[1]
        low, high = memberships.min(), memberships.max()
        if low < 0 or high >= n_nodes:
            raise ValueError(f"labels must lie in 0 to n_nodes − 1 = {n_nodes - 1}, got {low} to {high}.")
        super().__init__(dtype=np.dtype(np.float64), shape=(n_nodes, n_nodes))
        self.labels: NDArray[np.int32] = np.array(memberships, dtype=np.int32, order="C")
        self.labels.flags.writeable = False
        self.n_jobs = n_jobs

    @property
    def n_samples(self) -> int:
        """N, the number of graphs."""
        return self.labels.shape[0]

    @cached_property
    def sizes(self) -> list[IntArray]:
        """For each graph, the sizes of its components, largest first."""
        return [np.sort(count[count > 0])[::-1] for count in (np.bincount(row) for row in self.labels)]

    @property
    def n_components(self) -> IntArray:
        """The number of components of each graph, of shape (n_samples,)."""
        return np.array([size.size for size in self.sizes])

    def batch_bounds(self) -> IntArray:
        """Return where the batches of samples start and end: at most ten, of nearly equal size."""
        return np.linspace(0, self.n_samples, min(BATCHES, self.n_samples) + 1).astype(np.int64)

    def batch_sums(self, V: FloatArray) -> FloatArray:
        """Return Σ_s U_s U_sᵀ V over the samples of each batch, of shape (n_batches, n_nodes, n_columns)."""
        columns = np.ascontiguousarray(V, dtype=np.float64)
        if columns.ndim != 2 or len(columns) != self.shape[0]:
            raise ValueError(f"V must have {self.shape[0]} rows, one for each node, and columns, got {columns.shape}.")
        bounds = self.batch_bounds()
        out = np.zeros((bounds.size - 1, *columns.shape))
        over_rows(bounds.size - 1, self.n_jobs, sum_component_means, self.labels, bounds, columns, out, at_least=2)
        return out

    def _matmat(self, V: FloatArray) -> FloatArray:
        return self.batch_sums(V).sum(axis=0) / self.n_samples

    def _adjoint(self) -> AveragedProjection:
        return self

    _transpose = _adjoint

    def co_membership(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return, for each pair of nodes, the share of graphs in which both are in one component.

        Parameters
        ----------
        rows, columns : array of shape (n_pairs,)

        Raises
        ------
        ValueError
            When the arrays differ in length, or name a node that does not exist.

        Examples
        --------
        >>> import numpy as np
        >>> from graphcouple.components import AveragedProjection
        >>> M = AveragedProjection(np.array([[0, 0, 1], [0, 1, 1]]))
        >>> M.co_membership(np.array([0, 0]), np.array([1, 2]))
        array([0.5, 0. ])
        """
        i, j = np.asarray(rows, dtype=np.int64).ravel(), np.asarray(columns, dtype=np.int64).ravel()
        if i.size != j.size:
            raise ValueError(f"rows and columns must have one length, got {i.size} and {j.size}.")
        n = self.shape[0]
        if i.size and (min(i.min(), j.min()) < 0 or max(i.max(), j.max()) >= n):
            raise ValueError(f"rows and columns must name nodes 0 to {n - 1}.")
        counts = np.zeros(i.size, dtype=np.int32)
        over_rows(i.size, self.n_jobs, count_together, self.labels, i, j, counts)
        return counts / self.n_samples


def component_law(posterior: RandomGraph) -> RandomGraph:
    """Return the law whose components separate parts of the data.

    For priors D and E this is the posterior itself. With prior B and UMAP's weights, nearly every graph is connected.
    So a posterior of prior B is thinned: every node keeps one of its edges, drawn in proportion to their probabilities
    (prior D on the same edges). If some node has no edge, the posterior is returned unchanged.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.components.component_law(gc.UMAP().models(150)[0].posterior(X))
    <UnitOutDegreePosterior (prior D) of 150 nodes, 2696 possible edges>
    """
    if posterior.constraints - {BINARY}:
        return posterior
    support, means = posterior.support, posterior.edge_means
    if not (np.bincount(support.rows, weights=means, minlength=support.n_nodes) > 0).all():
        return posterior
    with np.errstate(divide="ignore"):
        return UnitOutDegree().posterior_on(support, np.log(means))
