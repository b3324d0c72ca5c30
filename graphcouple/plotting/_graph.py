"""Drawings over an embedding: the hidden graph, and the uncertainty of positions."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from graphcouple._support.validation import check_integer, check_positive, check_sparse
from graphcouple.plotting._scatter import plot
from graphcouple.plotting._style import Axes, check_points, require_matplotlib

# Edges below this share of the heaviest would connect clusters that have no connection.
_LIGHTEST = 1e-3


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
    """Draw the heaviest edges of a graph between the points of an embedding, down to 1/1000 of the heaviest.

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
    graph : array or sparse matrix of shape (n_samples, n_samples), or law of a graph
        Edge weights; for a law, such as ``estimator.posterior_``, the expected edges. Both directions are added.
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
    heaviest = heaviest[edges.data[heaviest] > _LIGHTEST * edges.data.max(initial=0.0)]
    ax = plot(Z, y, ax=ax, title=title, legend=legend)
    ends = np.stack([points[edges.row[heaviest], :2], points[edges.col[heaviest], :2]], axis=1)
    colors = np.full((heaviest.size, 4), 0.25)
    # Even the lightest edge must stay visible.
    colors[:, 3] = 0.08 + 0.6 * (edges.data[heaviest] / edges.data.max(initial=0.0))
    lines = LineCollection(list(ends), colors=colors, linewidths=0.6, zorder=0.5, rasterized=heaviest.size > 20_000)
    ax.add_collection(lines, autolim=False)
    return ax


def plot_uncertainty(
    law: Any,
    y: ArrayLike | None = None,
    *,
    n_neighbors: int | None = 10,
    n_std: float = 1.0,
    ax: Axes | None = None,
    title: str | None = None,
    legend: bool = True,
) -> Axes:
    """Draw an embedding with an ellipse of uncertainty around each point.

    Parameters
    ----------
    law : PositionUncertainty
        The result of ``estimator.uncertainty()``; the embedding must have two components.
    y : array of shape (n_samples,), optional
        Labels, as for `plot`.
    n_neighbors : int or None, default=10
        Positions are relative to the mean of this many neighbours on the map; None for the whole map, where groups that
        move together have large ellipses.
    n_std : float, default=1.0
        Half axes of the ellipses, in standard deviations. One standard deviation holds 39 % of the positions.
    ax : matplotlib Axes, optional
    title : str, optional
    legend : bool, default=True

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ModuleNotFoundError, TypeError, ValueError
        As `plot`. Also when `law` is not a `PositionUncertainty` of two components.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> ax = gc.plotting.plot_uncertainty(gc.TSNE(random_state=0).fit(X).uncertainty(), y)
    >>> len(ax.collections[-1].get_paths()), len(ax.collections[-1].get_offsets())
    (1, 150)
    """
    require_matplotlib()
    from matplotlib.collections import EllipseCollection

    if not hasattr(law, "covariances"):
        raise TypeError(f"law must be an uncertainty of positions, estimator.uncertainty(), got {type(law).__name__}.")
    if law.embedding.shape[1] != 2:
        raise ValueError(f"ellipses need two components, and the embedding has {law.embedding.shape[1]}.")
    check_positive("n_std", n_std)
    ax = plot(law.embedding, y, ax=ax, title=title, legend=legend)
    variances, axes = np.linalg.eigh(law.covariances(n_neighbors))
    widths = 2.0 * n_std * np.sqrt(np.maximum(variances, 0.0))
    angles = np.degrees(np.arctan2(axes[:, 1, 1], axes[:, 0, 1]))
    places: dict[str, Any] = {"units": "xy", "offsets": law.embedding, "offset_transform": ax.transData}
    places |= {"facecolors": (0.0, 0.0, 0.0, 0.04), "edgecolors": (0.0, 0.0, 0.0, 0.25)}
    ellipses = EllipseCollection(widths[:, 1], widths[:, 0], angles, zorder=0.5, linewidths=0.5, **places)
    ax.add_collection(ellipses, autolim=False)
    return ax
