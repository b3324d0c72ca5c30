"""The Pareto front of a search: two scores of many methods, and the maps of the front."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from graphcouple.plotting._scatter import plot
from graphcouple.plotting._style import PALETTE, Axes, as_text, line_axes, new_figure, shortened

# Maps in a row of a figure 11 inches wide, and the letters of 7 points that fit above one.
_IN_A_ROW, _LETTERS = 4, 34


def plot_front(
    scores: Mapping[str, tuple[ArrayLike, ArrayLike]],
    front: Sequence[str],
    maps: Mapping[str, ArrayLike],
    y: ArrayLike | None = None,
    *,
    axes: Sequence[str] = ("", ""),
    ax: Axes | None = None,
) -> Axes:
    """Draw two scores of methods with standard deviations, and numbered maps below.

    Parameters
    ----------
    scores : mapping of names to (means, deviations)
        Two numbers each.
    front : sequence of str
        The names to emphasise.
    maps : mapping of names to arrays of shape (n_samples, n_components)
        Embeddings to draw, by names of `scores`.
    y : array of shape (n_samples,), optional
        Labels of the points of the maps.
    axes : sequence of str
        The names of the two scores.
    ax : matplotlib Axes, optional
        Where to draw the scores; the maps are then left out.

    Returns
    -------
    matplotlib Axes
        The axes of the scores.

    Raises
    ------
    ModuleNotFoundError
        When matplotlib is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> scores = {"a": ([0.5, 0.2], [0.01, 0.02]), "b": ([0.4, 0.3], [0.01, 0.01])}
    >>> gc.plotting.plot_front(scores, ["a"], {"a": np.eye(5)[:, :2]}, axes=("R(10)", "R(n/2)")).get_xlabel()
    'R(10)'
    """
    numbers = {name: str(k) for k, name in enumerate(maps, 1)} if ax is None else {}
    if ax is None:
        n_rows = -(-len(maps) // _IN_A_ROW)
        figure = new_figure(11, 5.2 + 3.0 * n_rows)
        grid = figure.add_gridspec(1 + n_rows, _IN_A_ROW, height_ratios=[5.0] + [3.0] * n_rows)
        ax = figure.add_subplot(grid[0, :])
        for k, (name, Z) in enumerate(maps.items()):
            panel = figure.add_subplot(grid[1 + k // _IN_A_ROW, k % _IN_A_ROW])
            plot(Z, y, ax=panel, legend=False)
            title = as_text(textwrap.fill(shortened(f"{numbers[name]}  {name}", 3 * _LETTERS), _LETTERS))
            panel.set_title(title, fontsize=7, loc="left")
    for name, (means, deviations) in scores.items():
        (a, b), (da, db) = np.asarray(means, dtype=float), np.asarray(deviations, dtype=float)
        strong = name in front
        color, size, layer = (PALETTE[0], 6, 3) if strong else ("0.6", 4, 2)
        ax.errorbar(a, b, xerr=da, yerr=db, fmt="o", ms=size, color=color, lw=1, zorder=layer)
        text = numbers.get(name, as_text(shortened(name, _LETTERS)))
        ax.annotate(text, (a, b), xytext=(5, 4), textcoords="offset points", fontsize=9 if strong else 6, color=color)
    line_axes(ax, axes[0], axes[1])
    return ax
