"""Interactive maps to zoom, search and select, in one HTML file that opens offline, by bokeh."""

from __future__ import annotations

import os
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import check_integer, require
from graphcouple.plotting import _style
from graphcouple.plotting._backends import about_points, handed_over
from graphcouple.plotting._scatter import opacity

# Number of points that a browser draws and selects without delay.
_MOST_POINTS = 200_000

# Squares of the density along a side of a map, and the opacity, of 255, of the fullest square.
_SQUARES, _MOST_GREY = 500, 200

# The largest number of classes with a button each.
_MOST_BUTTONS = 60

# Points whose texts are shown at once, where points overlap; and the least width of a map, in pixels.
_MOST_HOVERED, _LEAST_WIDTH = 3, 320

_SHAPES = dict(zip(_style.MARKERS, ("circle", "triangle", "square"), strict=True))

# Runs in the browser: marks the rows whose text holds the words, and shows how many.
_SEARCH = """
const words = cb_obj.value_input.toLowerCase(), at = new Set();
const columns = Object.keys(source.data).filter(name => name.startsWith("hover "));
if (words) for (const name of columns)
  source.data[name].forEach((text, i) => { if (text.toLowerCase().includes(words)) at.add(i); });
source.selected.indices = [...at].sort((a, b) => a - b);
"""
_COUNT = "status.text = source.selected.indices.length ? source.selected.indices.length + ' selected' : '';"
_EXPORT = """
const rows = source.selected.indices.map(i => source.data["row"][i]);
const link = document.createElement("a");
link.href = URL.createObjectURL(new Blob(["row\\n" + rows.join("\\n") + "\\n"], {type: "text/csv"}));
link.download = "selected.csv";
link.click();
"""
_TOGGLE = "layers.forEach((of_class, i) => of_class.forEach(layer => { layer.visible = cb_obj.active.includes(i); }));"


class Map:
    """An interactive map, as `interactive` returns it; a notebook shows it.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> page = gc.plotting.interactive(X[:, 2:], y)
    >>> type(page).__name__, page.html.lstrip()[:15]
    ('Map', '<!DOCTYPE html>')
    """

    def __init__(self, html: str) -> None:
        self.html = html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to one file, which opens without a network.

        Raises
        ------
        ValueError
            When the path does not end in .html or .htm.
        """
        if Path(path).suffix.lower() not in (".html", ".htm"):
            raise ValueError(f"path must end in .html, got {os.fspath(path)!r}: gc.plot draws pictures.")
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.html)}" style="width: 100%; height: 720px; border: 0"></iframe>'


class _Colors(NamedTuple):
    """The class codes of points, or their numbers; dates are milliseconds since 1970, as in bokeh."""

    names: list[str]
    codes: NDArray[np.int64]
    numbers: NDArray[np.float64] | None = None
    are_dates: bool = False


def interactive(
    Z: Any,
    labels: Any = None,
    hover: Any = None,
    *,
    color: Any = None,
    title: str | None = None,
    backend: str = "auto",
    max_points: int | None = None,
) -> Any:
    """Return an interactive map to zoom, pan, search and select.

    Buttons show and hide classes. Points chosen with the lasso, or by a word of their hover text, stay coloured while
    the others turn grey, in all embeddings. A button saves the selected row numbers.

    Parameters
    ----------
    Z : array of shape (n_samples, n_components), fitted estimator, or mapping of names to either
        Embeddings; the first two components are drawn, or a single one against its rank. For an estimator, each point's
        hover text also has the nearest rows in its graph, and, if defined, `isolation` and its loss, `point_losses`.
    labels : array of shape (n_samples,), optional
        Classes, or numbers, which get a colour bar; as for `plot`. They also appear in the hover text.
    hover : sequence, mapping of names to sequences, or data frame, optional
        The hover text, a line for each name. It is shown as text, never as HTML.
    color : array of shape (n_samples,), optional
        Values for the colours, if not the labels.
    title : str, optional
    backend : {"auto", "bokeh", "datamapplot", "plotly", "jscatter", "embedding-atlas"}, default="auto"
        The library that draws; "auto" is bokeh. Another library gets one embedding, the labels or numbers and the hover
        text; its figure or widget is returned. datamapplot names classes on the map; plotly also draws three
        components; the last two are widgets of notebooks, for millions of points.
    max_points : int, optional
        The largest number of points drawn; beyond it, a seeded sample is drawn over the density of all points, and the
        map says so. The default is 200,000.

    Returns
    -------
    Map
        ``.save("map.html")`` writes it. From another backend, its own object.

    Raises
    ------
    ModuleNotFoundError
        When the backend is not installed.
    TypeError, ValueError
        When `Z` is not an embedding, or an array has another length.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> drawn = gc.plotting.interactive(X[:, 2:], y, hover={"sepal length": X[:, 0]}, title="petals")
    >>> "<html" in drawn.html
    True
    """
    title = None if title is None else str(title)
    named = dict(Z) if isinstance(Z, Mapping) else {"": Z}
    fitted = {str(name): each for name, each in named.items() if hasattr(each, "embedding_")}
    places = {str(name): getattr(each, "embedding_", each) for name, each in named.items()}
    maps = {name: _style.check_points(Z) for name, Z in places.items()}
    sizes = {len(points) for points in maps.values()}
    if len(maps) < len(named):
        raise ValueError(f"the embeddings must have different names, got {list(named)}.")
    if not maps:
        raise ValueError("Z must name at least one embedding.")
    if len(sizes) != 1:
        raise ValueError(f"the embeddings must have the same number of rows, got {sorted(sizes)}.")
    n = sizes.pop()
    most = _MOST_POINTS if max_points is None else check_integer("max_points", max_points, 1)
    rows = np.sort(np.random.default_rng(0).choice(n, most, replace=False)) if n > most else np.arange(n)
    texts, known = _hover_columns(hover, n, rows), _style.labels_or_none(labels, n, "labels")
    if known is not None:
        texts = _beside({"label": [str(value) for value in known[rows]]}, texts, "hover")
    for name, estimator in fitted.items():
        about = about_points(estimator, rows)
        texts = _beside(texts, {f"{name} {what}".strip(): values for what, values in about.items()}, "fit")
    shown = known if color is None else _style.labels_or_none(color, n, "color")
    if backend not in ("auto", "bokeh"):
        points = {name: each[rows] for name, each in maps.items()}
        return handed_over(backend, points, None if shown is None else shown[rows], texts, title)
    require_bokeh()
    from bokeh.embed import file_html
    from bokeh.resources import INLINE

    note = f"{len(rows):,} of {n:,} points, drawn at random; grey is the density of all" if len(rows) < n else ""
    lines = {name for name, Z in places.items() if np.shape(Z)[1] == 1}
    page = _page(maps, lines, rows, texts, _colors_of(shown, n), title, note)
    return Map(file_html(page, INLINE, title or "map"))


def require_bokeh() -> None:
    """Raise with the install command if bokeh is missing."""
    require("bokeh", "interactive maps need bokeh", "interactive")


def _hover_columns(hover: Any, n: int, rows: NDArray[np.int64]) -> dict[str, list[str]]:
    if hover is None:
        return {}
    if isinstance(hover, Mapping):
        named = dict(hover)
    elif hasattr(hover, "columns"):
        if len(set(hover.columns)) < len(hover.columns):
            raise ValueError(f"the columns of hover must have different names, got {list(hover.columns)}.")
        named = {name: hover[name] for name in hover.columns}
    else:
        named = {getattr(hover, "name", None) or "text": hover}
    columns = {}
    for name, values in named.items():
        if isinstance(values, str) or not hasattr(values, "__len__") or len(values) != n:
            raise ValueError(f"hover[{name!r}] must have {n} entries, one for each point.")
        entries = list(values)
        if str(name) in columns:
            raise ValueError(f"hover has two columns that read {str(name)!r}; rename one.")
        columns[str(name)] = [_text(entries[i]) for i in rows]
    return columns


def _text(value: Any) -> str:
    if not isinstance(value, (float, np.floating)):
        return str(value)
    # A gap makes a column of whole numbers, such as identifiers, one of fractions.
    return f"{value:.0f}" if float(value).is_integer() and abs(float(value)) < 2**53 else f"{value:.6g}"


def _beside(texts: dict[str, list[str]], more: dict[str, list[str]], kind: str) -> dict[str, list[str]]:
    """Return the union of two sets of texts; the kind distinguishes names that are in both."""
    return texts | {f"{name} ({kind})" if name in texts else name: values for name, values in more.items()}


def _colors_of(labels: NDArray[Any] | None, n: int) -> _Colors:
    if labels is not None and _style.is_categorical(labels):
        names, codes = np.unique(labels, return_inverse=True)
        return _Colors([str(name) for name in names], codes)
    are_dates = labels is not None and labels.dtype.kind == "M"
    numbers = None if labels is None else _style.numbers_of(labels) * (86_400e3 if are_dates else 1.0)
    return _Colors([], np.zeros(n, dtype=np.int64), numbers, are_dates)


def _page(
    maps: dict[str, NDArray[np.float64]],
    lines: set[str],
    rows: NDArray[np.int64],
    texts: dict[str, list[str]],
    colors: _Colors,
    title: str | None,
    note: str,
) -> Any:
    from bokeh.layouts import column, row
    from bokeh.models import Button, ColumnDataSource, CustomJS, Div, TextInput

    data: dict[str, Any] = {"row": rows, "code": [str(c) for c in colors.codes[rows]]}
    data |= {f"hover {k}": values for k, values in enumerate(texts.values())}
    if colors.numbers is not None:
        data["number"] = colors.numbers[rows]
    # Single precision, which keeps the page small, would lose a map far from the origin.
    centred = [points[:, :2] - points[:, :2].mean(axis=0) for points in maps.values()]
    for k, points in enumerate(centred):
        data[f"x{k}"], data[f"y{k}"] = points[rows].astype(np.float32).T
    source = ColumnDataSource(data)
    drawn = [_figure(source, k, name, name in lines, list(texts), colors, len(rows)) for k, name in enumerate(maps)]
    if note:
        for (plot, _), points in zip(drawn, centred, strict=True):
            _draw_density(plot, points)
    figures, layers = [figure for figure, _ in drawn], [of_figure for _, of_figure in drawn]
    status, search = Div(text="", width=110), TextInput(placeholder="search", width=170)
    search.js_on_change("value_input", CustomJS(args={"source": source}, code=_SEARCH))
    source.selected.js_on_change("indices", CustomJS(args={"source": source, "status": status}, code=_COUNT))
    export = Button(label="save rows", width=80)
    export.js_on_click(CustomJS(args={"source": source}, code=_EXPORT))
    parts: list[Any] = [_heading(title)] if title else []
    parts.append(row(search, export, status))
    # On a narrow page, maps go below each other.
    parts.append(row(figures, sizing_mode="stretch_width", styles={"flex-wrap": "wrap"}))
    if colors.names:
        parts.append(_buttons(colors.names, [list(each) for each in zip(*layers, strict=True)]))
    if note:
        parts.append(_heading(note))
    return column(parts, sizing_mode="stretch_width")


def _heading(text: str) -> Any:
    from bokeh.models import InlineStyleSheet, PreText

    wraps = InlineStyleSheet(css="pre { white-space: pre-wrap; overflow-wrap: anywhere; font-family: sans-serif; }")
    return PreText(text=text, sizing_mode="stretch_width", stylesheets=[wraps])


def _draw_density(plot: Any, points: NDArray[np.float64]) -> None:
    """Draw the number of points in each of many squares, in grey, beneath the points of a figure."""
    counts, x, y = np.histogram2d(points[:, 0], points[:, 1], bins=_SQUARES)
    pixels = np.zeros(counts.T.shape, dtype=np.uint32)
    view = pixels.view(np.uint8).reshape(*pixels.shape, 4)
    view[..., :3], view[..., 3] = 150, (_MOST_GREY * opacity(counts)).T
    plot.image_rgba([pixels], x=x[0], y=y[0], dw=x[-1] - x[0], dh=y[-1] - y[0], level="image")


def _figure(
    source: Any, k: int, name: str, is_line: bool, hover: list[str], colors: _Colors, n: int
) -> tuple[Any, list[Any]]:
    from bokeh.models import CDSView, ColorBar, DatetimeTicker, DatetimeTickFormatter, GroupFilter, HoverTool
    from bokeh.palettes import Viridis256
    from bokeh.plotting import figure
    from bokeh.transform import linear_cmap

    tools = "pan,wheel_zoom,box_zoom,lasso_select,tap,reset,save"
    layout: dict[str, Any] = {"sizing_mode": "stretch_width", "min_width": _LEAST_WIDTH, "height": 600}
    # The ranks beside one component have no unit.
    layout |= {"match_aspect": not is_line, "output_backend": "webgl", "toolbar_location": "above"}
    plot = figure(title=name or None, tools=tools, active_scroll="wheel_zoom", **layout)
    plot.axis.visible, plot.grid.visible, plot.outline_line_color = False, False, _style.GREY
    size = float(np.clip(400.0 / np.sqrt(n), 2.0, 10.0))
    style: dict[str, Any] = {"size": size, "line_color": None, "fill_alpha": 0.8, "source": source}
    style |= {"nonselection_fill_color": _style.GREY, "nonselection_fill_alpha": 0.3}
    layers, fills = [], cast("list[Any]", _style.palette(max(len(colors.names), 1)))
    if colors.numbers is not None:
        low, high = float(colors.numbers.min()), float(colors.numbers.max())
        fills = [linear_cmap("number", Viridis256, low, high)]
    for code, fill in enumerate(fills):
        view = {"view": CDSView(filter=GroupFilter(column_name="code", group=str(code)))} if colors.names else {}
        shape = _SHAPES[_style.class_marker(code)]
        layers.append(plot.scatter(f"x{k}", f"y{k}", marker=shape, fill_color=fill, **style, **view))
    if colors.numbers is not None:
        dates = {"ticker": DatetimeTicker(), "formatter": DatetimeTickFormatter()} if colors.are_dates else {}
        plot.add_layout(ColorBar(color_mapper=fills[0]["transform"], width=10, **dates), "right")
    plot.add_tools(HoverTool(tooltips=_tooltip(["row", *hover]), renderers=layers, limit=_MOST_HOVERED))
    return plot, layers


def _tooltip(names: list[str]) -> str:
    """Return the hover text of a point as HTML, whose long lines wrap; `@` and `$` would name columns."""
    fields = ["@row", *(f"@{{hover {j}}}" for j in range(len(names) - 1))]
    shown = [escape(name).replace("@", "&#64;").replace("$", "&#36;") for name in names]
    lines = "".join(f"<div><b>{name}:</b> {field}</div>" for name, field in zip(shown, fields, strict=True))
    return f'<div style="max-width: min(300px, 45vw); white-space: normal; overflow-wrap: anywhere">{lines}</div>'


def _buttons(names: list[str], layers: list[list[Any]]) -> Any:
    """Return the buttons that show and hide the classes, in the colours of their points."""
    from bokeh.models import CheckboxButtonGroup, CustomJS, Div, InlineStyleSheet

    if len(names) > _MOST_BUTTONS:
        return Div(text=f"{len(names)} classes, too many for a button each.")
    rules = "".join(
        f".bk-btn:nth-child({c + 1}) {{ border-left: 10px solid {fill}; }}\n"
        for c, fill in enumerate(_style.palette(len(names)))
    )
    sheet = InlineStyleSheet(css=f".bk-btn-group {{ flex-wrap: wrap; }}\n{rules}")
    group = CheckboxButtonGroup(labels=names, active=list(range(len(names))), stylesheets=[sheet])
    group.sizing_mode = "stretch_width"
    group.js_on_change("active", CustomJS(args={"layers": layers}, code=_TOGGLE))
    return group
