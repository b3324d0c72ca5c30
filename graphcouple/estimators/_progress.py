"""Progress of a run: a bar on a terminal or in a notebook, else a line every few seconds, on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from graphcouple.graphs import FloatArray
from graphcouple.optimize import Callback
from graphcouple.optimize.monitor import SETTLE_SPAN

# Seconds between lines where there is no bar.
_LINE_EVERY = 5.0

# Iterations between evaluations of the loss, if there is a callback. The gradient needs no logarithms; the loss does.
_CALLBACK_EVERY = 10


class Progress(NamedTuple):
    """The bar and the callback of a run; None for the one that is not wanted."""

    bar: Callable[..., None] | None
    callback: Callback | None

    def __call__(self, iteration: int, loss: float, Z: FloatArray) -> Any:
        if self.bar is not None:
            self.bar(iteration, loss)
        return False if self.callback is None else self.callback(iteration, loss, Z)

    @property
    def every(self) -> int:
        """Iterations between calls."""
        return SETTLE_SPAN if self.callback is None else _CALLBACK_EVERY

    @property
    def idle(self) -> bool:
        """Whether there is nothing to call."""
        return self.bar is None and self.callback is None


@contextmanager
def progress_of(estimator: Any, total: int | None, measure: str = "loss") -> Iterator[Progress]:
    """Yield the bar and the callback of an estimator's run, by its parameters `verbose` and `callback`."""
    shown = progress_bar(total, type(estimator).__name__, measure) if estimator.verbose else nullcontext()
    seen: list[float] = []
    with shown as bar:

        def with_curve(iteration: int, value: float) -> None:
            seen.append(value)
            if bar is not None:
                bar(iteration, value, curve(seen))

        yield Progress(with_curve if int(estimator.verbose) > 1 else bar, estimator.callback)


def curve(values: Sequence[float], width: int = 30) -> str:
    """Return a curve of the values as one line of blocks, the highest value at the top.

    Examples
    --------
    >>> from graphcouple.estimators._progress import curve
    >>> curve([8.0, 4.0, 2.0, 1.0])
    '█▄▂▁'
    """
    known = np.array([value for value in values if np.isfinite(value)])
    means = [part.mean() for part in np.array_split(known, min(width, max(known.size, 1))) if part.size]
    low, high = min(means, default=0.0), max(means, default=0.0)
    return "".join("▁▂▃▄▅▆▇█"[round(7 * (mean - low) / (high - low)) if high > low else 0] for mean in means)


def progress_bar(total: int | None, description: str, measure: str) -> AbstractContextManager[Callable[..., None]]:
    """Return a context that shows a run, with ``update(iteration, value, note="")`` for the value of the `measure`."""
    from rich.console import Console

    console = Console(stderr=True)
    show = _bar if console.is_terminal or console.is_jupyter else _lines
    return show(console, total, description, measure)


@contextmanager
def _bar(console: Any, total: int | None, description: str, measure: str) -> Iterator[Callable[..., None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(measure + " {task.fields[value]} {task.fields[note]}"),
        TimeRemainingColumn(),
    ]
    with Bars(*columns, console=console, transient=True) as progress:
        task = progress.add_task(description, total=total, value="–", note="")

        def update(iteration: int, value: float, note: str = "") -> None:
            # An automatic run may go on for longer than planned.
            longest = None if total is None else max(total, iteration)
            progress.update(task, completed=iteration, total=longest, value=_shown(value), note=note)

        yield update


@contextmanager
def _lines(console: Any, total: int | None, description: str, measure: str) -> Iterator[Callable[..., None]]:
    last: list[Any] = [-_LINE_EVERY, None]

    def line(iteration: int, value: float, note: str) -> str:
        of = "" if total is None or iteration > total else f"/{total}"
        return f"{description}: {iteration}{of}, {measure} {_shown(value)} {note}".rstrip()

    def update(iteration: int, value: float, note: str = "") -> None:
        now = time.monotonic()
        if now - last[0] >= _LINE_EVERY:
            last[:] = now, None
            console.out(line(iteration, value, note), highlight=False)
        else:
            last[1] = line(iteration, value, note)

    yield update
    if last[1] is not None:
        console.out(last[1], highlight=False)


def _shown(value: float) -> str:
    return f"{value:.6g}" if value == value else "–"
