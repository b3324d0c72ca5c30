"""Diagrams: preservation by neighborhood size, loss by iteration, eigenvalues, the Pareto front of a search."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphcouple._support.validation import check_integer
from graphcouple.plotting._scatter import plot
from graphcouple.plotting._style import PALETTE, Axes, as_text, label, line_axes, new_axes, new_figure, shortened

_DASHES = ("-", "--", ":")

# Maps in a row of a figure 11 inches wide, and the letters of 7 points that fit above one.
_IN_A_ROW, _LETTERS = 4, 34


def _line_style(c: int) -> dict[str, Any]:
    return {"color": PALETTE[c % len(PALETTE)], "linestyle": _DASHES[c // len(PALETTE) % 3], "linewidth": 1.8}


def _by_name(curves: Any) -> dict[str, Any]:
    by_name = dict(curves) if isinstance(curves, Mapping) else {"": curves}
    if not by_name:
        raise ValueError("there are no curves to draw; pass at least one.")
    return by_name


def plot_preservation(curves: Any, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw R(K) over the logarithm of K: small neighborhoods on the left, the whole data on the right.

    Parameters
    ----------
    curves : result of `graphcouple.metrics.neighborhood_curves`, or mapping of names to results
        Curves from a sample of points get a band of two standard errors.
    ax : matplotlib Axes, optional
    title : str, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ModuleNotFoundError, TypeError, ValueError
        When matplotlib is not installed, there are no curves, or they do not come from `neighborhood_curves`.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> curves = {"petals": gc.metrics.neighborhood_curves(X, X[:, 2:])}
    >>> gc.plotting.plot_preservation(curves).get_xscale()
    'log'
    """
    by_name = _by_name(curves)
    for name, curve in by_name.items():
        if not hasattr(curve, "preservation"):
            raise TypeError(f"{name or 'curves'} must be a result of neighborhood_curves, got {type(curve).__name__}.")
    ax = new_axes(ax, 4.5)
    for c, (name, curve) in enumerate(by_name.items()):
        text = label(f"{name}  (area {curve.area:.2f})") if name != "" else ""
        # A line through a few values is hard to see without markers.
        marker = "o" if curve.K.size < 10 else ""
        ax.plot(curve.K, curve.preservation, label=text, marker=marker, **_line_style(c))
        if curve.preservation_error.any():
            low, high = (curve.preservation + side * curve.preservation_error for side in (-2.0, 2.0))
            ax.fill_between(curve.K, low, high, color=PALETTE[c % len(PALETTE)], alpha=0.2, linewidth=0)
    ax.set_xscale("log")
    ax.set_ylim(min(0.0, *(float(curve.preservation.min()) for curve in by_name.values())), 1.0)
    return _finish(ax, "neighbors K", "preservation R(K)", by_name, title)


def plot_loss(history: Any, *, ax: Axes | None = None, title: str | None = None) -> Axes:
    """Draw the loss by iteration.

    Parameters
    ----------
    history : fitted estimator, Solution, array, (iterations, losses), or mapping of names to any of these
        A Solution is the result of `graphcouple.solve`; an array holds losses.
    ax : matplotlib Axes, optional
    title : str, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ModuleNotFoundError, TypeError, ValueError
        When matplotlib is not installed, or there is no loss to draw.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> ax = gc.plotting.plot_loss(gc.TSNE(max_iter=100, random_state=0).fit(X))
    >>> ax.get_xlabel()
    'iteration'
    """
    by_name = _by_name(history)
    ax = new_axes(ax, 4.5)
    for c, (name, run) in enumerate(by_name.items()):
        iterations, losses = _history(run)
        ax.plot(iterations, losses, label=label(name), **_line_style(c))
    return _finish(ax, "iteration", "loss (nats)", by_name, title)


def plot_eigenvalues(
    eigenvalues: Any, n_clusters: int | None = None, *, ax: Axes | None = None, title: str | None = None
) -> Axes:
    """Draw the smallest eigenvalues of a graph's Laplacian: a gap after the k-th suggests k clusters.

    Parameters
    ----------
    eigenvalues : fitted `LaptSNE`, array of shape (n_eigenvalues,), or mapping of names to either
        From `graphcouple.spectral.laplacian_eigenvalues`; an estimator has the eigenvalues of the input's graph.
    n_clusters : int, optional
        Number of eigenvalues after which a line is drawn; the default is the estimator's number of clusters.
    ax : matplotlib Axes, optional
    title : str, optional

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ModuleNotFoundError, TypeError, ValueError
        When matplotlib is not installed, or there are no eigenvalues to draw.

    Examples
    --------
    >>> import graphcouple as gc
    >>> gc.plotting.plot_eigenvalues([0.0, 0.01, 0.02, 0.5, 0.6], 3).get_xlabel()
    'number of the eigenvalue'
    """
    by_name = _by_name(eigenvalues)
    ax = new_axes(ax, 4.5)
    for c, (name, source) in enumerate(by_name.items()):
        if hasattr(source, "fit") and not hasattr(source, "eigenvalues_"):
            raise TypeError(f"{type(source).__name__} has no eigenvalues to draw; fit a LaptSNE first.")
        values = np.asarray(getattr(source, "eigenvalues_", source), dtype=np.float64)
        if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
            raise ValueError(f"eigenvalues must be a row of finite numbers, got an array of shape {values.shape}.")
        ax.plot(np.arange(1, values.size + 1), values, marker="o", markersize=4, label=label(name), **_line_style(c))
        position = getattr(source, "n_clusters_", None) if n_clusters is None else n_clusters
        if position is not None:
            ax.axvline(check_integer("n_clusters", position, 1) + 0.5, color="#888888", linewidth=1.0, linestyle=":")
    return _finish(ax, "number of the eigenvalue", "eigenvalue of the Laplacian", by_name, title)


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


def _finish(ax: Axes, x: str, y: str, names: Any, title: str | None) -> Axes:
    line_axes(ax, x, y)
    if any(name != "" for name in names):
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    if title:
        ax.set_title(as_text(title))
    return ax


def _history(run: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    if hasattr(run, "loss_history_"):
        iterations, losses = run.loss_iterations_, run.loss_history_
    elif hasattr(run, "loss_history"):
        iterations, losses = run.iterations, run.loss_history
    elif isinstance(run, tuple) and len(run) == 2:
        iterations, losses = run
    elif hasattr(run, "fit"):
        raise TypeError(f"{type(run).__name__} has no loss to draw; fit it first, or use another method.")
    else:
        losses = np.asarray(run, dtype=np.float64)
        iterations = np.arange(losses.size)
    iterations, losses = np.asarray(iterations), np.asarray(losses, dtype=np.float64)
    if losses.ndim != 1 or losses.size == 0 or iterations.shape != losses.shape:
        raise ValueError(f"a history must hold one loss for each iteration, got {losses.shape} and {iterations.shape}.")
    return iterations, losses
