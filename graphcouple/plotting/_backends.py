"""Hover texts from estimators, and maps drawn by other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

# Number of neighbours in a point's text.
_NAMED = 5


def about_points(estimator: Any, rows: NDArray[np.int64]) -> dict[str, list[str]]:
    """Return texts for rows of a fitted estimator: its loss, isolation and neighbours, if defined."""
    texts: dict[str, list[str]] = {}
    for name, method in (("loss", "point_losses"), ("isolation", "isolation")):
        try:
            values = getattr(estimator, method)()
        except (AttributeError, ValueError):
            # Some couplings have no loss by point, and a graph has no distances.
            continue
        texts[name] = [f"{values[i]:.3g}" for i in rows]
    law = getattr(estimator, "posterior_", None)
    if law is not None:
        means, (nodes, first) = sp.csr_array(law.mean()), _nodes(estimator, law.n_nodes)
        texts["neighbors"] = [_heaviest(means, int(nodes[i]), first) if nodes[i] >= 0 else "" for i in rows]
    return texts


def _nodes(estimator: Any, n_nodes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the node of each row, −1 if it was placed and not fitted, and the first row of each node."""
    first = np.arange(n_nodes)
    if n_nodes == len(estimator.embedding_):
        return first, first
    of_rows = getattr(estimator, "estimator_", estimator)._of_rows(first.astype(float))
    nodes = np.where(np.isnan(of_rows), -1.0, of_rows).astype(np.int64)
    return nodes, np.unique(nodes, return_index=True)[1][-n_nodes:]


def _heaviest(means: sp.csr_array, i: int, first: NDArray[np.int64]) -> str:
    a, b = means.indptr[i], means.indptr[i + 1]
    order = np.argsort(-means.data[a:b], kind="stable")[:_NAMED]
    return ", ".join(str(j) for j in first[means.indices[a:b][order]])


def _datamapplot(points: NDArray[Any], shown: Any, text: list[str], title: str | None) -> Any:
    import datamapplot

    names = np.full(len(points), "") if shown is None else shown.astype(str)
    return datamapplot.create_interactive_plot(points[:, :2], names, hover_text=text, title=title)


def _plotly(points: NDArray[Any], shown: Any, text: list[str], title: str | None) -> Any:
    import plotly.express as px

    draw, places = (px.scatter, "xy") if points.shape[1] == 2 else (px.scatter_3d, "xyz")
    color = None if shown is None else "color"
    axes = {axis: axis for axis in places}
    return draw(_frame(points, shown, text), **axes, color=color, hover_data=["text"], title=title)


def _jscatter(points: NDArray[Any], shown: Any, text: list[str], title: str | None) -> Any:
    import jscatter

    frame = _frame(points, shown, text)
    scatter = jscatter.Scatter(data=frame, x="x", y="y", color_by=None if shown is None else "color")
    return scatter.tooltip(True, properties=["text"])


def _atlas(points: NDArray[Any], shown: Any, text: list[str], title: str | None) -> Any:
    from embedding_atlas.widget import EmbeddingAtlasWidget

    return EmbeddingAtlasWidget(_frame(points, shown, text), x="x", y="y", text="text")


_BACKENDS: dict[str, tuple[Callable[..., Any], str]] = {
    "datamapplot": (_datamapplot, "datamapplot"),
    "plotly": (_plotly, "plotly"),
    "jscatter": (_jscatter, "jupyter-scatter"),
    "embedding-atlas": (_atlas, "embedding-atlas"),
}


def handed_over(
    backend: str, maps: dict[str, NDArray[Any]], shown: Any, texts: dict[str, list[str]], title: str | None
) -> Any:
    if backend not in _BACKENDS:
        raise ValueError(f"backend must be 'auto', 'bokeh', {', '.join(map(repr, _BACKENDS))}, got {backend!r}.")
    if len(maps) > 1:
        raise ValueError(f"backend={backend!r} draws one embedding, got {len(maps)}; use 'bokeh', or one at a time.")
    draw, package = _BACKENDS[backend]
    lines = [[f"{name}: {value}" for value in values] for name, values in texts.items()]
    (points,) = maps.values()
    text = ["\n".join(parts) for parts in zip(*lines, strict=True)] if lines else [""] * len(points)
    try:
        return draw(points, shown, text, title)
    except ModuleNotFoundError as error:
        message = f"backend={backend!r} needs {package}; install it with: pip install {package}"
        raise ModuleNotFoundError(message) from error


def _frame(points: NDArray[Any], shown: Any, text: list[str]) -> Any:
    import pandas as pd

    frame = pd.DataFrame(points[:, :3], columns=["x", "y", "z"][: points.shape[1]])
    if shown is not None:
        frame["color"] = shown
    frame["text"] = text
    return frame
