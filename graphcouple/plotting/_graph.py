"""The hidden graph, drawn over the embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from graphcouple._validation import check_integer, check_sparse
from graphcouple.plotting._scatter import plot
from graphcouple.plotting._style import check_points, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_graph(
    Z: ArrayLike,
    graph: Any,
    y: ArrayLike | None = None,
    *,
    n_edges: int = 10_000,
    ax: Axes | None = None,
    title: str | None = None,
    legend: bool = True,
) -> Axes:
    """Draw the heaviest edges of a graph between the points of an embedding.

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
    graph : array or sparse matrix of shape (n_samples, n_samples), or law of a graph
        Edge weights; for a law, such as ``estimator.posterior_``, the expected edges. The weights of both directions
        are added.
    y : array of shape (n_samples,), optional
        Labels, as for `plot`.
    n_edges : int, default=10000
        Draw at most this many edges.
    ax : matplotlib Axes, optional
    title : str, optional
    legend : bool, default=True

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ModuleNotFoundError, TypeError, ValueError
        As `plot`. Also when the numbers of nodes and points differ, or weights are negative or not finite.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> tsne = gc.TSNE(max_iter=100, random_state=0).fit(X)
    >>> ax = gc.plotting.plot_graph(tsne.embedding_, tsne.posterior_, y, n_edges=300)
    >>> len(ax.collections[-1].get_segments())
    300
    """
    require_matplotlib()
    from matplotlib.collections import LineCollection

    points = check_points(Z)
    check_integer("n_edges", n_edges, 1)
    matrix = graph.mean() if hasattr(graph, "edge_means") else graph
    if not (sp.issparse(matrix) or (np.ndim(matrix) == 2 and np.asarray(matrix).dtype.kind in "biuf")):
        raise TypeError(f"graph must be a matrix of weights or a law of a graph, got {type(graph).__name__}.")
    if sp.issparse(matrix):
        check_sparse(matrix, "graph")
    weights = sp.coo_array(matrix).astype(np.float64)
    if weights.shape != (len(points), len(points)):
        raise ValueError(f"graph has shape {weights.shape}, but Z has {len(points)} points.")
    if weights.nnz and not (np.isfinite(weights.data).all() and weights.data.min() >= 0):
        raise ValueError("the edge weights of graph must be finite and not negative.")
    edges = sp.triu(weights.tocsr() + weights.tocsr().T, k=1).tocoo()
    heaviest = np.argsort(-edges.data, kind="stable")[:n_edges]
    heaviest = heaviest[edges.data[heaviest] > 0]
    ax = plot(Z, y, ax=ax, title=title, legend=legend)
    ends = np.stack([points[edges.row[heaviest], :2], points[edges.col[heaviest], :2]], axis=1)
    strength = edges.data[heaviest] / edges.data[heaviest].max() if heaviest.size else edges.data[heaviest]
    colors = np.full((heaviest.size, 4), 0.25)
    # Even the lightest edge must stay visible.
    colors[:, 3] = 0.08 + 0.6 * strength
    lines = LineCollection(list(ends), colors=colors, linewidths=0.6, zorder=0.5, rasterized=heaviest.size > 20_000)
    ax.add_collection(lines, autolim=False)
    return ax
