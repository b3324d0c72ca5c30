"""Axes, colours, labels and checks of all pictures."""

from __future__ import annotations

import re
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import are_measured, check_embedding, check_labels, refuse_estimator, require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
else:
    # It would load matplotlib.
    Axes = Any

# Paul Tol's "muted" scheme, distinct under the common colour-vision deficiencies, and black.
PALETTE = ("#332288", "#88ccee", "#44aa99", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499", "#000000")
MARKERS = ("o", "^", "s")
MAX_CLASSES = len(PALETTE) * len(MARKERS)

# The largest number of classes in a legend, and of rows in one of its columns.
_LISTED, _LEGEND_ROWS = 100, 25

# Inches of a figure for a legend, and characters of a class's name in the legend.
_LEGEND_WIDTH, _LONGEST = 1.5, 60
GREY = "#cccccc"


def require_matplotlib() -> Any:
    """Return the module `matplotlib.figure`; raise with the install command if it is missing.

    Examples
    --------
    >>> from graphcouple.plotting import require_matplotlib
    >>> require_matplotlib().__name__
    'matplotlib.figure'
    """
    return require("matplotlib.figure", "plotting needs matplotlib", "plot")


def new_figure(width: float, height: float) -> Any:
    """Return a new figure; from pyplot if it is loaded, so that notebooks and `plt.show` show it."""
    size: Any = {"figsize": (width, height), "layout": "constrained"}
    figure = require_matplotlib()
    if not {"matplotlib.pyplot", "ipykernel"} & sys.modules.keys():
        return figure.Figure(**size)
    from matplotlib import pyplot

    return pyplot.figure(**size)


def discard(figure: Any) -> None:
    """Close a saved figure in pyplot, so that no notebook shows it."""
    if hasattr(figure, "number"):
        sys.modules["matplotlib.pyplot"].close(figure)


def new_axes(ax: Axes | None, height: float = 6.0) -> Axes:
    if ax is not None and not hasattr(ax, "get_position"):
        raise TypeError(f"ax must be matplotlib Axes, got {ax!r} of type {type(ax).__name__}.")
    return new_figure(7.5, height).add_subplot() if ax is None else ax


def check_points(Z: Any) -> NDArray[np.float64]:
    """Return a finite array of at least two columns; a single column gets its rank as the second."""
    refuse_estimator(Z)
    points = check_embedding(Z).astype(np.float64)
    if len(points) < 1:
        raise ValueError("Z holds no points to draw; pass at least one row.")
    if points.shape[1] == 1:
        return np.column_stack([points[:, 0], points[:, 0].argsort().argsort()])
    return points


def labels_or_none(y: Any, n: int, name: str = "y") -> NDArray[Any] | None:
    """Return labels as a flat array with one for each point, or None; dates as datetime64."""
    return None if y is None else check_labels(y, n, name, dates=True)


def numbers_of(labels: NDArray[Any]) -> NDArray[np.float64]:
    """Return labels that are not classes as numbers; dates as days since 1970, as in matplotlib."""
    if labels.dtype.kind == "M":
        return labels.astype("datetime64[us]").astype(np.float64) / 86_400e6
    return labels.astype(np.float64)


def color_scale(labels: NDArray[Any]) -> Any:
    """Return the colours of labels that are not classes."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    numbers = numbers_of(labels)
    return ScalarMappable(Normalize(numbers.min(), numbers.max()), "viridis")


def color_bar(figure: Any, colors: Any, ax: Any, labels: NDArray[Any]) -> None:
    """Add a colour bar for labels that are not classes, with dates if they are dates."""
    bar = figure.colorbar(colors, ax=ax, shrink=0.8)
    if labels.dtype.kind == "M":
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        ticks = AutoDateLocator(maxticks=7)
        bar.ax.yaxis.set_major_locator(ticks)
        bar.ax.yaxis.set_major_formatter(ConciseDateFormatter(ticks))


def is_categorical(labels: NDArray[Any]) -> bool:
    """Return whether labels are shown as classes: names, or up to 30 different whole numbers."""
    if labels.dtype.kind not in "iufb":
        return labels.dtype.kind != "M"
    return not are_measured(labels) and np.unique(labels).size <= MAX_CLASSES


def palette(n: int) -> list[str]:
    """Return n colours: from `PALETTE` up to ten, else Glasbey's, each as different as possible from the earlier ones.

    They repeat after 256.
    """
    if n <= len(PALETTE):
        return list(PALETTE[:n])
    colors = require("colorcet", "colours for more than ten classes need colorcet", "plot")
    colors = colors.b_glasbey_bw_minc_20_maxl_70
    return [colors[c % len(colors)] for c in range(n)]


def class_colors(n: int) -> NDArray[np.float64]:
    from matplotlib.colors import to_rgba_array

    return to_rgba_array(palette(n))


def class_marker(c: int) -> str:
    """Return the marker of a class, which changes after every ten classes, for colour-blind readers."""
    return MARKERS[c // len(PALETTE) % len(MARKERS)]


def plain_axes(ax: Axes, n_components: int, title: str | None, own: bool) -> None:
    """Remove the ticks, which mean nothing in an embedding, and use one scale for all directions.

    In a figure of its own, make room for the legend.
    """
    if n_components > 1:
        ax.set_aspect("equal", adjustable="datalim")
    if n_components != 2:
        ax.set_xlabel("component 1")
        ax.set_ylabel("rank" if n_components == 1 else f"component 2 of {n_components}")
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color(GREY)
    if title:
        ax.set_title(as_text(title))
    if own:
        make_room(ax.figure, ax.get_legend())


def legend_of(names: NDArray[Any], markers: bool = True) -> dict[str, Any]:
    """Return a legend's arguments: an entry for each class with its marker or a dot, columns, and the size of letters.

    The last entry counts omitted classes.
    """
    from matplotlib.lines import Line2D

    n = len(names)
    colors, more = class_colors(n), n - _LISTED
    listed = names if more <= 0 else names[: _LISTED - 1]
    handles = []
    for c, name in enumerate(listed):
        text = label(shortened(str(name), _LONGEST) if isinstance(name, str) else name)
        look: dict[str, Any] = {"marker": class_marker(c if markers else 0), "color": tuple(colors[c])}
        handles.append(Line2D([], [], linestyle="", label=text, markersize=6, **look))
    if more > 0:
        handles.append(Line2D([], [], linestyle="", label=f"… and {more + 1} more"))
    columns = 1 if n <= 15 else -(-min(n, _LISTED) // _LEGEND_ROWS) + (n <= _LEGEND_ROWS)
    small = {"fontsize": 7, "columnspacing": 1.0} if n > MAX_CLASSES else {}
    return {"handles": handles, "ncols": columns, "frameon": False} | small


def class_legend(ax: Axes, names: NDArray[Any], markers: bool = True) -> None:
    """List the classes beside the axes, where they hide no points."""
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), **legend_of(names, markers))


def make_room(part: Any, legend: Any) -> None:
    """Enlarge a figure so that a wide legend of it, or of a part, leaves the axes as wide as a narrow one does."""
    if legend is None:
        return
    # Only the whole figure has a layout and a size.
    figure = part.get_figure(root=True)
    # Otherwise the layout would warn that axes have no room.
    layout = figure.get_layout_engine()
    figure.set_layout_engine("none")
    figure.draw_without_rendering()
    figure.set_layout_engine(layout)
    box = legend.get_window_extent()
    width, height = figure.get_size_inches()
    beyond = max(box.width / figure.dpi - _LEGEND_WIDTH, 0.0)
    # A part gets its share of what the figure gains.
    across, up = part.bbox.size / figure.bbox.size
    figure.set_size_inches(width + beyond / across, max(height, (box.height / figure.dpi + 0.3) / up))


def label(name: Any) -> str:
    """Return the text of a label, led by a space if it starts with "_": matplotlib's legends drop such labels."""
    if isinstance(name, np.floating):
        name = int(name) if name.is_integer() and abs(name) < 2**53 else f"{name:g}"
    text = as_text(name)
    return f" {text}" if text.startswith("_") else text


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` letters: its middle is left out, since long names often differ at the end."""
    return text if len(text) <= most else f"{text[: most // 2 - 1]}…{text[-(most // 2) :]}"


def as_text(text: Any) -> str:
    """Return text that matplotlib can draw: formulas stay, other dollars are escaped, and controls become spaces.

    Between two prices there is no formula: that part begins with a digit, and has no command, index, power or brace.
    """
    from matplotlib.mathtext import MathTextParser

    drawable = "".join(" " if unicodedata.category(c) in ("Cc", "Cs") else c for c in str(text))
    if "$" not in drawable:
        return drawable
    try:
        MathTextParser("path").parse(drawable)
        formulas = re.split(r"(?<!\\)\$", drawable)[1::2]
        are_prices = any(re.match(r"\s*\d[^\\^_{]*$", part) for part in formulas)
    except ValueError:
        are_prices = True
    return drawable.replace("\\$", "$").replace("$", "\\$") if are_prices else drawable


def line_axes(ax: Axes, x: str, y: str) -> None:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#eeeeee", linewidth=0.8)
    ax.set_axisbelow(True)
