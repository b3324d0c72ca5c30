"""A progress bar for a run, by rich; nothing is shown unless standard error is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def progress_bar(total: int | None, description: str, measure: str = "loss") -> Iterator[Callable[[int, float], None]]:
    """Show a bar on a terminal's standard error; yield ``update(iteration, value)``, the value of the `measure`."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(measure + " {task.fields[value]}"),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task(description, total=total, value="–")

        def update(iteration: int, value: float) -> None:
            # An automatic run may go on for longer than planned.
            longest = None if total is None else max(total, iteration)
            progress.update(task, completed=iteration, total=longest, value=f"{value:.6g}" if value == value else "–")

        yield update
