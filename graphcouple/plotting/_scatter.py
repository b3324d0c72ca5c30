"""Embeddings as points, as a density, and as the means of classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphcouple._support.validation import check_integer, check_labels, require
from graphcouple.plotting import _style
from graphcouple.plotting._style import Axes

# Marks of more points mostly cover each other; an image of 10,000² pixels takes 3 GB.
SCATTER_POINTS = 100_000
_MOST_PIXELS = 10_000

# Pixels are made larger until this share of them holds points, but an image keeps at least this many pixels.
_FEWEST_PIXELS, _LEAST_INK = 150, 0.01

# Font size of the coarsest names; the most moves that separate names, and the most names that move (10 s for 150).
_NAME_SIZE, _MOST_MOVES, _MOST_APART = 11, 500, 100


def plot(
    Z: ArrayLike, y: ArrayLike | None = None, *, ax: Axes | None = None, title: str | None = None, legend: bool = True
) -> Axes:
    """Draw an embedding as a scatter plot, coloured by labels.

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
        The first two components are drawn, or a single one against its rank; ``Z[:, [0, 2]]`` has others. More than
        100,000 points are drawn by `plot_density`.
    y : array of shape (n_samples,), optional
        Labels. Names, or up to 30 different whole numbers, are classes and get a legend beside the axes; other numbers
        and dates get a colour bar. From the eleventh class on, markers differ too; a legend lists up to 100 classes.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default. Among several axes, ``layout="constrained"`` makes room for the legend.
    title : str, optional
    legend : bool, default=True
        Whether to show a list of classes or a colour bar beside the axes.

    Returns
    -------
    matplotlib Axes
        ``ax.figure.savefig("embedding.png")`` saves it.

    Raises
    ------
    ModuleNotFoundError
        When matplotlib is not installed.
    TypeError
        When `Z` is an estimator rather than its embedding.
    ValueError
        When `Z` is not a finite 2-D array, or `y` has another length or is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> ax = gc.plot(np.array([[0.0, 0.0], [1.0, 1.0]]), ["a", "b"], title="two points")
    >>> ax.get_title()
    'two points'
    """
    points = _style.check_points(Z)
    if len(points) > SCATTER_POINTS:
        return plot_density(Z, y, ax=ax, title=title, legend=legend)
    labels = _style.labels_or_none(y, len(points))
    own, ax = ax is None, _style.new_axes(ax)
    size = float(np.clip(15000.0 / len(points), 0.5, 40.0)) * _share_of_a_page(ax)
    _scatter(ax, points[:, :2], labels, size, legend)
    _style.plain_axes(ax, np.shape(Z)[1], title, own)
    return ax


def _share_of_a_page(ax: Axes) -> float:
    """Return the area of axes relative to a figure of its own, so that small panels get small points."""
    box = ax.get_position()
    figure: Any = ax.figure.get_figure(root=True)
    width, height = figure.get_size_inches()
    return float(np.clip(box.width * width * box.height * height / 27.0, 0.1, 1.0))


def _scatter(ax: Axes, points: NDArray[np.float64], labels: NDArray[Any] | None, size: float, legend: bool) -> None:
    style: dict[str, Any] = {"s": size, "linewidths": 0, "alpha": 0.85, "rasterized": len(points) > 20000}
    # Shuffled, so that no class hides the others.
    order = np.random.default_rng(0).permutation(len(points))
    x, y = points[order].T
    if labels is None:
        ax.scatter(x, y, color=_style.PALETTE[0], **style)
        return
    point_labels = labels[order]
    if not _style.is_categorical(labels):
        artist = ax.scatter(x, y, c=_style.numbers_of(point_labels), cmap="viridis", **style)
        if legend:
            _style.color_bar(ax.figure, artist, ax, labels)
        return
    names, codes = np.unique(point_labels, return_inverse=True)
    colors = _style.class_colors(len(names))
    markers = np.array([_style.class_marker(c) for c in range(len(names))])
    for marker in dict.fromkeys(markers.tolist()):
        is_marked = markers[codes] == marker
        ax.scatter(x[is_marked], y[is_marked], color=colors[codes[is_marked]], marker=marker, **style)
    if legend:
        _style.class_legend(ax, names)


def plot_density(
    Z: ArrayLike,
    y: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    legend: bool = True,
    n_pixels: int | None = None,
) -> Axes:
    """Draw an embedding as an image of the number of points in each pixel: millions of points in a second.

    The more points a pixel holds, the more opaque it is. Opacity follows the rank among pixels, so sparse and dense
    places are both visible. A pixel's colour is the mean of its points' colours.

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
        The first two components are drawn, or a single one against its rank.
    y : array of shape (n_samples,), optional
        Labels, as for `plot`.
    ax : matplotlib Axes, optional
    title : str, optional
    legend : bool, default=True
    n_pixels : int, optional
        Pixels on the longer side of the image. The default grows with √n_samples, from 300 to 1,000;
        fewer, at least 150, if few of them would hold points.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ModuleNotFoundError, TypeError, ValueError
        As `plot`. Also when `n_pixels` is less than 2 or more than 10,000.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> Z = np.random.default_rng(0).normal(size=(200_000, 2))
    >>> ax = gc.plotting.plot_density(Z, Z[:, 0] > 0, title="halves")
    >>> ax.images[0].get_array().shape[2]
    4
    """
    points = _style.check_points(Z)
    labels = _style.labels_or_none(y, len(points))
    if n_pixels is not None and check_integer("n_pixels", n_pixels, 2) > _MOST_PIXELS:
        raise ValueError(f"n_pixels must be at most {_MOST_PIXELS}, got {n_pixels}: no figure shows more.")
    own, ax = ax is None, _style.new_axes(ax)
    low, high = points[:, :2].min(axis=0), points[:, :2].max(axis=0)
    equal = np.shape(Z)[1] > 1
    span = high - low
    # Points on one line, or in one place, still get a few pixels. The ranks beside one component have no unit.
    reach = np.full(2, span.max()) if equal else span
    reach = np.where(reach > 0.0, reach, 1.0)
    span = np.maximum(span, 0.01 * reach)
    low = 0.5 * (low + high) - 0.5 * span
    sides = span / np.maximum(reach, span)
    pixel, shape = _pixels(points[:, :2], low, span, sides, n_pixels)
    image = _mean_colors(ax, pixel, int(shape.prod()), labels, legend)
    image[:, 3] = opacity(np.bincount(pixel, minlength=len(image)))
    (left, bottom), (right, top) = low, low + span
    pixels = image.reshape(shape[1], shape[0], 4)
    ax.imshow(pixels, origin="lower", extent=(left, right, bottom, top), aspect="auto")
    ax.margins(0.05)
    ax.update_datalim([low - 0.05 * span, low + 1.05 * span])
    ax.autoscale_view()
    _style.plain_axes(ax, np.shape(Z)[1], title, own)
    return ax


def _pixels(
    points: NDArray[np.float64],
    low: NDArray[np.float64],
    span: NDArray[np.float64],
    sides: NDArray[np.float64],
    n_pixels: int | None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pixel of each point, and the shape of the image; sparse points get larger pixels."""
    n = int(np.clip(1.5 * np.sqrt(len(points)), 300, 1000)) if n_pixels is None else n_pixels
    while True:
        shape = np.maximum(np.ceil(n * sides), 2).astype(np.int64)
        at = np.minimum(((points - low) / span * shape).astype(np.int64), shape - 1)
        pixel = at[:, 1] * shape[0] + at[:, 0]
        if n_pixels is not None or n <= _FEWEST_PIXELS or np.unique(pixel).size >= _LEAST_INK * shape.prod():
            return pixel, shape
        n = max(n // 2, _FEWEST_PIXELS)


def opacity(counts: NDArray[Any]) -> NDArray[np.float64]:
    """Return each pixel's opacity by its rank among the pixels with points, from 0.25 to 1; 0 for empty pixels."""
    positive = counts[counts > 0]
    share = np.searchsorted(np.sort(positive), counts, side="right") / positive.size
    return np.where(counts > 0, 0.25 + 0.75 * share, 0.0)


def _mean_colors(
    ax: Axes, pixel: NDArray[np.int64], n_pixels: int, labels: NDArray[Any] | None, legend: bool
) -> NDArray[np.float64]:
    from matplotlib.colors import to_rgba

    image = np.zeros((n_pixels, 4))
    if labels is None:
        image[:] = to_rgba(_style.PALETTE[0])
        return image
    counts = np.maximum(np.bincount(pixel, minlength=n_pixels), 1)
    if _style.is_categorical(labels):
        names, codes = np.unique(labels, return_inverse=True)
        colors = _style.class_colors(len(names))
        for channel in range(3):
            image[:, channel] = np.bincount(pixel, colors[codes, channel], n_pixels) / counts
        if legend:
            _style.class_legend(ax, names, markers=False)
        return image
    scale = _style.color_scale(labels)
    if legend:
        _style.color_bar(ax.figure, scale, ax, labels)
    return scale.to_rgba(np.bincount(pixel, _style.numbers_of(labels), n_pixels) / counts)


def plot_class_means(
    Z: ArrayLike, y: ArrayLike, *, ax: Axes | None = None, title: str | None = None, legend: bool = False
) -> Axes:
    """Draw the mean of each class, with its name, over faint points; names are moved apart.

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
    y : array of shape (n_samples,) or (n_samples, n_levels), or list of arrays of shape (n_samples,)
        Classes. With several levels, the coarsest comes first: it colours the points, and its names are the largest.
        Empty names are not drawn, and of more than 100 only those that cover no name of a larger class.
    ax : matplotlib Axes, optional
    title : str, optional
    legend : bool, default=False
        Whether to list the classes of the first level beside the axes too.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ModuleNotFoundError, TypeError, ValueError
        As `plot`. Also when `y` does not hold classes.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> ax = gc.plotting.plot_class_means(X[:, 2:], y)
    >>> [text.get_text() for text in ax.texts]
    ['0', '1', '2']
    """
    _style.require_matplotlib()
    from matplotlib.patheffects import withStroke

    points = _style.check_points(Z)
    if isinstance(y, (list, tuple)) and all(np.ndim(level) == 1 for level in y):
        levels = list(y)
    else:
        levels = [y] if np.ndim(y) != 2 else list(np.ma.asarray(y).T)
    labels = [check_labels(level, len(points)) for level in levels]
    if not labels or not all(_style.is_categorical(level) for level in labels):
        raise ValueError("y must hold classes: names, or up to 30 different whole numbers.")
    old_artists = {*getattr(ax, "collections", ()), *getattr(ax, "images", ())}
    ax = plot(Z, labels[0], ax=ax, title=title, legend=legend)
    for artist in {*ax.collections, *ax.images} - old_artists:
        artist.set_alpha(0.3)
    halo: list[Any] = [withStroke(linewidth=3, foreground="white")]
    texts, sizes = [], []
    for k, level in enumerate(labels):
        names, codes = np.unique(level, return_inverse=True)
        colors = _style.class_colors(len(names))
        for c, name in enumerate(names):
            if not str(name).strip():
                continue
            x, z = points[codes == c, :2].mean(axis=0)
            if k == 0:
                look: dict[str, Any] = {"marker": _style.class_marker(c), "edgecolors": "white", "linewidths": 1.2}
                ax.scatter(x, z, s=60, color=colors[c], zorder=3, **look)
            look = {"fontsize": max(_NAME_SIZE - 3 * k, 6), "weight": "normal" if k else "bold", "color": "#222222"}
            text = ax.text(x, z, _style.label(name), ha="center", va="center", zorder=5 - 0.1 * k, **look)
            text.set_path_effects(halo)
            texts.append(text)
            sizes.append((codes == c).sum())
    _keep_apart(ax, texts, np.argsort(-np.array(sizes), kind="stable"))
    return ax


def _keep_apart(ax: Axes, texts: list[Any], order: NDArray[np.int64]) -> None:
    """Move names so that none covers another; a line leads from a moved name to its place.

    Many names do not move: in the given order, a name that covers an earlier one is hidden.
    """
    adjust_text = require("adjustText", "names on a map need adjustText", "plot").adjust_text
    # The layout moves the axes, and with them the names.
    ax.figure.get_figure(root=True).draw_without_rendering()
    if len(texts) > _MOST_APART:
        shown: list[Any] = []
        for text in (texts[i] for i in order):
            box = text.get_window_extent()
            text.set_visible(not any(box.overlaps(other) for other in shown))
            shown += [box] if text.get_visible() else []
        return
    # The time of a move grows with the square of the number of names.
    moves = int(np.clip(_MOST_MOVES * (20.0 / max(len(texts), 1)) ** 2, 25, _MOST_MOVES))
    lines = {"arrowstyle": "-", "color": "#888888", "lw": 0.7, "zorder": 4}
    adjust_text(texts, ax=ax, iter_lim=moves, arrowprops=lines)
