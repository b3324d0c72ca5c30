"""Connected components of posterior graphs, and the averaged projection onto their means.

Where a shift-invariant kernel says nothing is the null space of a graph's Laplacian, spanned by the normalised
indicators U of its components (graph-coupling paper, section 4). Over posterior graphs the projection onto it
averages to

    M = E[U Uᵀ],    M_ij = E[1{i and j in one component} / size of it],

symmetric, doubly stochastic and with a spectrum in [0, 1]. A sample of a graph is one membership vector, and M is
never formed: v ↦ Mv costs N·n for N samples.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from graphcouple._validation import check_integer
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.laws.priors import GraphPosterior, UnitOutDegree

BATCHES = 10
"""Into how many batches samples are grouped: for parallel sums, and for the error of what is made of them."""

_TASKS_PER_ROUND = 16


def weak_components(n_nodes: int, rows: IntArray, columns: IntArray) -> NDArray[np.int32]:
    """Return each node's weak component, 0 … R − 1, in the order of their first nodes.

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
    import igraph

    pairs = np.column_stack([rows, columns]).astype(np.int64)
    graph = igraph.Graph(n=n_nodes, edges=pairs)
    return np.array(graph.connected_components(mode="weak").membership, dtype=np.int32)


def _draw_labels(posterior: GraphPosterior, seed: int, first: int, last: int) -> NDArray[np.int32]:
    labels = np.empty((last - first, posterior.n_nodes), dtype=np.int32)
    for s in range(first, last):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(s,)))
        labels[s - first] = weak_components(posterior.n_nodes, *posterior.sample_edges(rng))
    return labels


def sample_components(
    posterior: GraphPosterior,
    n_samples: int,
    seed: int = 0,
    *,
    first: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int], Any] | None = None,
) -> NDArray[np.int32]:
    """Draw graphs from a posterior and label their weak components.

    Sample s has a random stream of its own, made from `seed` and s: the labels do not depend on the number of
    workers, and drawing samples 0 to 9 and then 10 to 19 is drawing 0 to 19.

    Parameters
    ----------
    posterior : GraphPosterior
    n_samples : int
    seed : int, default=0
        At least 0.
    first : int, default=0
        The number of the first sample.
    n_jobs : int or None, default=None
        Workers; None means every core, or as many as `joblib.parallel_config` says if more than one. The backend is
        the one it names; threads by default.
    progress : callable, optional
        Called as ``progress(n_drawn)`` now and then.

    Returns
    -------
    labels : ndarray of shape (n_samples, n_nodes), int32

    Raises
    ------
    TypeError, ValueError
        When the posterior is none, or a number is out of range.

    Examples
    --------
    >>> import graphcouple as gc
    >>> from graphcouple.components import sample_components
    >>> X, y = gc.datasets.load("iris")
    >>> posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)).posterior(X)
    >>> labels = sample_components(posterior, 20, seed=0)
    >>> labels.shape
    (20, 150)
    """
    if not isinstance(posterior, GraphPosterior):
        raise TypeError(f"posterior must be a GraphPosterior, got {type(posterior).__name__}.")
    check_integer("n_samples", n_samples, 1)
    check_integer("seed", seed, 0)
    labels = np.empty((n_samples, posterior.n_nodes), dtype=np.int32)
    if n_jobs is None and joblib.effective_n_jobs(None) == 1:
        n_jobs = -1
    # What every sample needs is computed once, here, and not in each worker.
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

    A `scipy.sparse.linalg.LinearOperator` that holds nothing but the memberships.

    Parameters
    ----------
    labels : array of shape (n_samples, n_nodes)
        Each node's component in each graph: integers of at least 0, below the number of nodes.
    n_jobs : int or None, default=None
        Threads of a product; None means every core. Results do not depend on it.

    Raises
    ------
    TypeError, ValueError
        When `labels` are no such integers.

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
        found = np.asarray(labels)
        if found.dtype.kind not in "iu":
            raise TypeError(f"labels must be integers, got dtype {found.dtype}.")
        if found.ndim != 2 or 0 in found.shape:
            raise ValueError(f"labels must have shape (n_samples, n_nodes), got {found.shape}.")
        n_nodes = found.shape[1]
        if found.min() < 0 or found.max() >= n_nodes:
            raise ValueError(
                f"labels must lie in 0 to n_nodes − 1 = {n_nodes - 1}, got {found.min()} to {found.max()}."
            )
        super().__init__(dtype=np.dtype(np.float64), shape=(n_nodes, n_nodes))
        self.labels: NDArray[np.int32] = np.array(found, dtype=np.int32, order="C")
        self.labels.flags.writeable = False
        self.n_jobs = n_jobs

    @property
    def n_samples(self) -> int:
        """N, the number of graphs."""
        return self.labels.shape[0]

    @cached_property
    def sizes(self) -> list[IntArray]:
        """For each graph, the sizes of its components, largest first."""
        counts = (np.bincount(row) for row in self.labels)
        return [np.sort(count[count > 0])[::-1] for count in counts]

    @property
    def n_components(self) -> IntArray:
        """The number of components of each graph, of shape (n_samples,)."""
        return np.array([size.size for size in self.sizes])

    def batch_bounds(self) -> IntArray:
        """Return where the batches of samples start and end: as equal as can be, at most ten."""
        return np.linspace(0, self.n_samples, min(BATCHES, self.n_samples) + 1).astype(np.int64)

    def batch_sums(self, V: FloatArray) -> FloatArray:
        """Return Σ_s U_s U_sᵀ V over the samples of each batch, of shape (n_batches, n_nodes, n_columns)."""
        from graphcouple._numba.components import sum_component_means
        from graphcouple._numba.threads import over_rows

        columns = np.ascontiguousarray(V, dtype=np.float64)
        bounds = self.batch_bounds()
        out = np.zeros((bounds.size - 1, *columns.shape))
        over_rows(bounds.size - 1, self.n_jobs, sum_component_means, self.labels, bounds, columns, out, at_least=2)
        return out

    def _matmat(self, V: FloatArray) -> FloatArray:
        return self.batch_sums(V).sum(axis=0) / self.n_samples

    def _matvec(self, v: FloatArray) -> FloatArray:
        return self._matmat(np.reshape(v, (-1, 1)))

    def _adjoint(self) -> AveragedProjection:
        return self

    _transpose = _adjoint

    def co_membership(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Return the share of graphs in which both ends of each pair are in one component.

        Parameters
        ----------
        rows, columns : array of shape (n_pairs,)

        Raises
        ------
        ValueError
            When they differ in length, or name a node there is not.

        Examples
        --------
        >>> import numpy as np
        >>> from graphcouple.components import AveragedProjection
        >>> M = AveragedProjection(np.array([[0, 0, 1], [0, 1, 1]]))
        >>> M.co_membership(np.array([0, 0]), np.array([1, 2]))
        array([0.5, 0. ])
        """
        from graphcouple._numba.components import count_together
        from graphcouple._numba.threads import over_rows

        i, j = np.asarray(rows, dtype=np.int64).ravel(), np.asarray(columns, dtype=np.int64).ravel()
        if i.size != j.size:
            raise ValueError(f"rows and columns must be of one length, got {i.size} and {j.size}.")
        n = self.shape[0]
        if i.size and (min(i.min(), j.min()) < 0 or max(i.max(), j.max()) >= n):
            raise ValueError(f"rows and columns must name nodes 0 to {n - 1}.")
        counts = np.zeros(i.size, dtype=np.int32)
        over_rows(i.size, self.n_jobs, count_together, self.labels, i, j, counts)
        return counts / self.n_samples


def component_law(posterior: GraphPosterior) -> GraphPosterior:
    """Return the law whose components tell parts of the data from each other.

    Priors D and E: the posterior itself. Graphs of independent edges are, with the weights of UMAP, connected in one
    piece, so a posterior of prior B is thinned: every node keeps one of its edges, drawn in proportion to their
    probabilities (prior D on the same edges). A node that has no edge leaves the law as it is.

    Examples
    --------
    >>> import graphcouple as gc
    >>> from graphcouple.components import component_law
    >>> X, y = gc.datasets.load("iris")
    >>> component_law(gc.UMAP().models(150)[0].posterior(X))
    <UnitOutDegreePosterior (prior D) of 150 nodes, 2696 possible edges>
    """
    if not posterior.prior_class.independent_edges:
        return posterior
    support, means = posterior.support, posterior.edge_means
    if not (np.bincount(support.rows, weights=means, minlength=support.n_nodes) > 0).all():
        return posterior
    with np.errstate(divide="ignore"):
        return UnitOutDegree().posterior_on(support, np.log(means))


__all__ = ["AveragedProjection", "component_law", "sample_components", "weak_components"]
