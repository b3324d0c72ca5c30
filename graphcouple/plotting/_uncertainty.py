"""How sure the positions of an embedding are, as an ellipse around each point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from graphcouple._validation import check_positive
from graphcouple.plotting._scatter import plot
from graphcouple.plotting._style import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        What ``estimator.uncertainty()`` returns; the embedding must have two components.
    y : array of shape (n_samples,), optional
        Labels, as for `plot`.
    n_neighbors : int or None, default=10
        Ellipses against the mean of this many neighbours on the map; None is against the whole map, where groups that
        move as one have large ellipses.
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
        As `plot`. Also when `law` is no uncertainty of positions in the plane.

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
    style: dict[str, Any] = {
        "facecolors": (0.0, 0.0, 0.0, 0.04),
        "edgecolors": (0.0, 0.0, 0.0, 0.25),
        "linewidths": 0.5,
    }
    ellipses = EllipseCollection(
        widths[:, 1],
        widths[:, 0],
        angles,
        units="xy",
        offsets=law.embedding,
        offset_transform=ax.transData,
        zorder=0.5,
        **style,
    )
    ax.add_collection(ellipses, autolim=False)
    return ax
