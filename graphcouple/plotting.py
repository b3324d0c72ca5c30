"""Pictures of embeddings, on matplotlib (the extra ``graphcouple[plot]``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Paul Tol's "muted" scheme, told apart under the common colour-vision deficiencies, and a dark grey.
PALETTE = (
    "#332288",
    "#88ccee",
    "#44aa99",
    "#117733",
    "#999933",
    "#ddcc77",
    "#cc6677",
    "#882255",
    "#aa4499",
    "#555555",
)
_MAX_CLASSES = 30


def _require_matplotlib() -> Any:
    try:
        from matplotlib import figure
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "plotting needs matplotlib; install it with: pip install 'graphcouple[plot]'"
        ) from error
    return figure


def _is_categorical(labels: NDArray[Any]) -> bool:
    if labels.dtype.kind not in "iufb":
        return True
    whole = labels.dtype.kind in "iub" or bool(np.all(labels == np.floor(labels)))
    return whole and np.unique(labels).size <= _MAX_CLASSES


def _colors(n: int) -> list[Any]:
    if n <= len(PALETTE):
        return list(PALETTE[:n])
    from matplotlib import colormaps

    return list(colormaps["turbo"](np.linspace(0.03, 0.97, n)))


def plot(
    Z: ArrayLike,
    y: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    title: str | None = None,
    legend: bool = True,
) -> Axes:
    """Draw an embedding as a scatter plot, coloured by labels.

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
        The first two components are drawn; a single one against its rank.
    y : array of shape (n_samples,), optional
        Labels. Names or up to 30 whole numbers are classes, listed in a legend beside
        the axes; other numbers are shown by a colour bar.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.
    title : str, optional
    legend : bool, default=True
        Whether to list classes, or show a colour bar, beside the axes.

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
        When `Z` is not a finite 2-D array, or `y` has another length.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> ax = gc.plot(np.array([[0.0, 0.0], [1.0, 1.0]]), ["a", "b"], title="two points")
    >>> ax.get_title()
    'two points'
    """
    figure = _require_matplotlib()
    if hasattr(Z, "embedding_"):
        raise TypeError(f"Z must be an array; pass {type(Z).__name__}.embedding_ rather than the estimator.")
    points = np.asarray(Z, dtype=np.float64)
    if points.ndim != 2 or points.shape[0] < 1 or not np.isfinite(points).all():
        raise ValueError(f"Z must be a finite array of shape (n_samples, n_components), got shape {points.shape}.")
    n_components = points.shape[1]
    if n_components == 1:
        points = np.column_stack([points[:, 0], points[:, 0].argsort().argsort()])
    labels = None if y is None else np.asarray(y).ravel()
    if labels is not None and labels.size != points.shape[0]:
        raise ValueError(f"y has {labels.size} labels, but Z has {points.shape[0]} points.")
    if ax is None:
        ax = figure.Figure(figsize=(7.5, 6.0), layout="constrained").add_subplot()
    size = float(np.clip(15000.0 / points.shape[0], 0.5, 40.0))
    _scatter(ax, points[:, :2], labels, size, legend)
    if n_components > 1:
        ax.set_aspect("equal", adjustable="datalim")
    if n_components != 2:
        ax.set_xlabel("component 1")
        ax.set_ylabel("rank" if n_components == 1 else f"component 2 of {n_components}")
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_color("#cccccc")
    if title:
        ax.set_title(title)
    return ax


def _scatter(ax: Axes, points: NDArray[np.float64], labels: NDArray[Any] | None, size: float, legend: bool) -> None:
    style: dict[str, Any] = {"s": size, "linewidths": 0, "alpha": 0.85, "rasterized": len(points) > 20000}
    # Points are drawn in a shuffled order, so that no class hides the others.
    order = np.random.default_rng(0).permutation(len(points))
    x, y = points[order].T
    if labels is None:
        ax.scatter(x, y, color=PALETTE[0], **style)
        return
    shuffled = labels[order]
    if not _is_categorical(labels):
        drawn = ax.scatter(x, y, c=shuffled.astype(np.float64), cmap="viridis", **style)
        if legend:
            ax.figure.colorbar(drawn, ax=ax, shrink=0.8)
        return
    names, codes = np.unique(shuffled, return_inverse=True)
    colors = np.array([_rgba(color) for color in _colors(len(names))])
    ax.scatter(x, y, color=colors[codes], **style)
    if legend and len(names) <= _MAX_CLASSES:
        _legend(ax, names, colors)


def _rgba(color: Any) -> tuple[float, float, float, float]:
    from matplotlib.colors import to_rgba

    return to_rgba(color)


def _legend(ax: Axes, names: NDArray[Any], colors: NDArray[np.float64]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], marker="o", linestyle="", color=tuple(color), label=_label(name), markersize=6)
        for name, color in zip(names, colors, strict=True)
    ]
    columns = 1 if len(names) <= 15 else 2
    ax.legend(handles=handles, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, ncols=columns)


def _label(name: Any) -> str:
    return f"{name:g}" if isinstance(name, np.floating) else str(name)
