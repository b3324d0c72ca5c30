"""Animations of a fit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphcouple._support.validation import check_integer, check_positive
from graphcouple.plotting._scatter import plot
from graphcouple.plotting._style import check_points, labels_or_none, make_room, require_matplotlib

_WRITERS = {".gif": "pillow", ".mp4": "ffmpeg", ".html": "html"}

# The share of points inside every frame; otherwise a few outliers would shrink the others to a dot.
_SHARE = 0.99


class Recorder:
    """A callback that records the maps of a run, for an animation.

    Of several runs, it keeps the last. With ``unique=True`` or landmarks, the maps show only the fitted points.

    Parameters
    ----------
    most : int, default=200
        The largest number of maps; longer runs keep maps further apart.

    Attributes
    ----------
    frames : list of (iteration, loss, Z)

    Raises
    ------
    TypeError, ValueError
        When `most` is not an integer of at least 2.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> recorder = gc.plotting.Recorder(most=20)
    >>> tsne = gc.TSNE(callback=recorder, random_state=0).fit(X)
    >>> recorder.frames[0][0], 10 <= len(recorder.frames) <= 20
    (0, True)
    """

    def __init__(self, most: int = 200) -> None:
        self.most = check_integer("most", most, 2)
        self.frames: list[tuple[int, float, NDArray[Any]]] = []
        self._last: tuple[int, float, NDArray[Any]] | None = None
        self._calls, self._every = 0, 1

    def __call__(self, iteration: int, loss: float, Z: NDArray[Any]) -> None:
        """Keep a map; a new run replaces the previous one."""
        if self.frames and iteration <= self.frames[-1][0]:
            self.frames, self._calls, self._every = [], 0, 1
        if self._calls % self._every == 0:
            if len(self.frames) == self.most:
                self.frames, self._every = self.frames[::2], 2 * self._every
            if self._calls % self._every == 0:
                self.frames.append((iteration, loss, Z))
        self._last, self._calls = (iteration, loss, Z), self._calls + 1

    def __deepcopy__(self, memo: dict[int, Any]) -> Recorder:
        """Return itself: copies of an estimator, as scikit-learn makes them, report to the same recorder."""
        return self

    def save(
        self, path: str | os.PathLike[str], y: ArrayLike | None = None, *, fps: int = 15, title: str | None = None
    ) -> None:
        """Write the maps as an animation; each frame has its own scale.

        Parameters
        ----------
        path : str or path
            The ending sets the format: .gif, .html (a page with buttons), or .mp4, which needs ffmpeg.
        y : array of shape (n_samples,), optional
            Labels, as for `plot`.
        fps : int, default=15
            Frames a second.
        title : str, optional

        Raises
        ------
        ModuleNotFoundError, TypeError, ValueError
            As `plot`. Also when nothing was recorded, or the ending is unknown.
        """
        writer = _WRITERS.get(Path(path).suffix.lower())
        if writer is None:
            raise ValueError(f"path must end in {', '.join(_WRITERS)}, got {os.fspath(path)!r}.")
        if self._last is None:
            raise ValueError("nothing was recorded: pass the recorder as callback, and fit first.")
        check_positive("fps", fps)
        frames = self.frames if self.frames[-1][0] == self._last[0] else [*self.frames, self._last]
        for _, _, Z in frames:
            # Check here, since the writer hides errors. With unique=True or landmarks, a run has fewer points.
            labels_or_none(y, len(check_points(Z)))
        figure = require_matplotlib().Figure(figsize=(6.5, 5.5), layout="constrained")
        from matplotlib import rc_context
        from matplotlib.animation import FuncAnimation, writers
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        if writer == "ffmpeg" and not writers.is_available("ffmpeg"):
            raise ModuleNotFoundError(".mp4 needs the program ffmpeg, which is not installed; use .gif or .html.")
        FigureCanvasAgg(figure)

        def draw(k: int) -> list[Any]:
            iteration, loss, Z = frames[k]
            points = check_points(Z)[:, :2]
            middle = np.median(points, axis=0)
            away = np.abs(points - middle)
            # The ranks beside one component have no unit.
            reach = np.quantile(away.max(axis=1, keepdims=True) if np.shape(Z)[1] > 1 else away, _SHARE, axis=0)
            low, high = (middle + side * 1.15 * np.where(reach > 0.0, reach, 1.0) for side in (-1, 1))
            # Colour bars are axes of their own, which outlive the map's.
            figure.clear()
            heading = f"{title}: " if title else ""
            ax = plot(Z, y, ax=figure.add_subplot(), title=f"{heading}iteration {iteration}, loss {loss:.4g}")
            # Axes in the middle of their room would push a wide legend over the edge.
            ax.set_aspect(ax.get_aspect(), adjustable="box", anchor="E" if ax.get_legend() else "C")
            ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
            return [ax]

        draw(0)
        make_room(figure, figure.axes[0].get_legend())
        moving = FuncAnimation(figure, draw, frames=len(frames), interval=1000 / fps)
        if writer == "html":
            # matplotlib leaves out the frames beyond 20 MB.
            with rc_context({"animation.embed_limit": np.inf}):
                Path(path).write_text(moving.to_jshtml(fps=fps, default_mode="once"), encoding="utf-8")
        else:
            moving.save(os.fspath(path), writer=writer, fps=fps, dpi=100)
