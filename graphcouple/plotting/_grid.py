"""Several embeddings side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphcouple._support.validation import check_integer
from graphcouple.plotting import _style
from graphcouple.plotting._scatter import SCATTER_POINTS, plot

# Inches of a panel's side: larger panels separate more points, smaller ones fit more maps on a screen.
_PANEL = 3.2


def plot_grid(
    embeddings: Mapping[Any, ArrayLike],
    y: ArrayLike | None = None,
    *,
    n_columns: int | None = None,
    ax: Any = None,
    title: str | None = None,
    legend: bool = True,
) -> NDArray[Any]:
    """Draw several embeddings of the same points, with one legend.

    Parameters
    ----------
    embeddings : mapping of names to arrays of shape (n_samples, n_components)
        Names that are pairs (row, column) form a table; others are laid out in reading order.
    y : array of shape (n_samples,), optional
        Labels, as for `plot`.
    n_columns : int, optional
        For names in reading order; the default is about as many columns as rows.
    ax : sequence of matplotlib Axes, optional
        One for each embedding, in reading order; a new figure by default.
    title : str, optional
        The figure's title.
    legend : bool, default=True
        Whether to show a list of classes or a colour bar beside the panels.

    Returns
    -------
    ndarray of matplotlib Axes, of shape (n_rows, n_columns)
        If `ax` is given, of its shape. Panels without an embedding are invisible.

    Raises
    ------
    ModuleNotFoundError, TypeError, ValueError
        As `plot`. Also when there are no embeddings, or `ax` does not hold one axes for each.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> axes = gc.plotting.plot_grid({"petals": X[:, 2:], "sepals": X[:, :2]}, y)
    >>> axes.shape, axes[0, 1].get_title()
    ((1, 2), 'sepals')
    """
    _style.require_matplotlib()
    if not isinstance(embeddings, Mapping):
        raise TypeError(f"embeddings must be a mapping of names to arrays, got {type(embeddings).__name__}.")
    if not embeddings:
        raise ValueError("embeddings must name at least one embedding.")
    places, shape, tabular = _layout(list(embeddings), n_columns)
    axes = _axes(ax, shape, len(places))
    panels = axes.ravel().tolist() if ax is not None else [axes[place] for place in places]
    for (name, Z), place, panel in zip(embeddings.items(), places, panels, strict=True):
        plot(Z, y, ax=panel, legend=False)
        panel.set(xlabel="", ylabel="")
        if not tabular:
            panel.set_title(_style.as_text(name), fontsize=10)
            continue
        # A table can have empty cells: the first panel in a column or row carries its name.
        if place[0] == min(row for row, column in places if column == place[1]):
            panel.set_title(_style.as_text(name[1]), fontsize=10)
        if place[1] == min(column for row, column in places if row == place[0]):
            panel.set_ylabel(_style.as_text(name[0]), fontsize=10)
    for panel in set(axes.flat) - set(panels):
        panel.set_visible(False)
    figure = axes.flat[0].figure
    if title:
        figure.suptitle(_style.as_text(title))
    labels = _style.labels_or_none(y, len(np.asarray(next(iter(embeddings.values())))))
    if legend and labels is not None:
        _legend(figure, axes, labels)
    return axes


def _layout(names: list[Any], n_columns: int | None) -> tuple[list[tuple[int, int]], tuple[int, int], bool]:
    """Return the place of each name, the shape of the grid, and whether the names are pairs (row, column)."""
    if all(isinstance(name, tuple) and len(name) == 2 for name in names):
        rows, columns = (list(dict.fromkeys(name[side] for name in names)) for side in (0, 1))
        return [(rows.index(r), columns.index(c)) for r, c in names], (len(rows), len(columns)), True
    if n_columns is not None:
        check_integer("n_columns", n_columns, 1)
    across = min(n_columns or int(np.ceil(np.sqrt(len(names)))), len(names))
    places = [divmod(k, across) for k in range(len(names))]
    return places, (places[-1][0] + 1, across), False


def _axes(ax: Any, shape: tuple[int, int], n_panels: int) -> NDArray[Any]:
    if ax is None:
        return _style.new_figure(_PANEL * shape[1] + 1.2, _PANEL * shape[0] + 0.3).subplots(*shape, squeeze=False)
    axes = np.asarray(ax, dtype=object)
    if axes.size != n_panels:
        raise ValueError(f"ax must hold {n_panels} axes, one for each embedding, got {axes.size}.")
    return axes


def _legend(figure: Any, axes: NDArray[Any], labels: NDArray[Any]) -> None:
    if _style.is_categorical(labels):
        # Pictures of densities have no markers.
        classes = _style.legend_of(np.unique(labels), markers=labels.size <= SCATTER_POINTS)
        if figure.get_constrained_layout():
            _style.make_room(figure, figure.legend(loc="outside right center", **classes))
        else:
            rightmost = max(axes.flat, key=lambda ax: (ax.get_position().x1, ax.get_position().y1))
            rightmost.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), **classes)
        return
    _style.color_bar(figure, _style.color_scale(labels), axes.ravel().tolist(), labels)
