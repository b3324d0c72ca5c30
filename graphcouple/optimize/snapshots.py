"""Snapshots of a run on disk, from which an interrupted run goes on to the same bits.

A snapshot holds the state of the optimizer, what the monitor has seen, and the starts that have ended. Everything else,
such as the objective, is made again from the same data.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphcouple import storage
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Solution

_KIND = "graphcouple checkpoint"

# Iterations between snapshots, if that takes a second; and the largest share of the time that writing may take.
_EVERY, _SECONDS, _SHARE = 50, 1.0, 0.05


class Ended(NamedTuple):
    """A start that has ended, and what its monitor saw."""

    solution: Solution
    monitor: dict[str, Any]


class NoSnapshots:
    """A run that is not kept."""

    going: dict[str, Any] | None = None
    """The last state of the present start that was kept."""

    def begin(self) -> Ended | None:
        """Turn to the next start; return how it ended, if it is known to have."""
        return None

    def offer(self, iteration: int, state: Callable[[], dict[str, Any]]) -> None:
        """Keep the state of the present start, if the last one is old enough."""

    def end(self, solution: Solution, monitor: dict[str, Any]) -> None:
        """Keep how the present start ended."""


class Snapshots(NoSnapshots):
    """The snapshots of one call of `solve`, in one file.

    Parameters
    ----------
    path : str or path
    run : mapping of str to str
        What the run is of: a fingerprint of each thing that it depends on, by name.
    kept : dict, optional
        Values to be kept in the file.
    resume : bool, default=False
        Whether to go on from the file, if there is one.

    Attributes
    ----------
    kept : dict
        Those of the file, if the run goes on from it.

    Raises
    ------
    ValueError
        When the folder does not exist, or the file is no snapshot, or that of another run.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        run: Mapping[str, str],
        kept: dict[str, Any] | None = None,
        resume: bool = False,
    ) -> None:
        self.path, self.run, self.kept = Path(path), dict(run), dict(kept or {})
        if self.path.is_dir() or not self.path.parent.is_dir():
            raise ValueError(f"checkpoint={os.fspath(path)!r} must be a file in a folder that exists.")
        self._ended: list[Ended] = []
        self._attempt = -1
        self._going: dict[str, Any] | None = None
        self._written, self._wait = time.monotonic(), _SECONDS
        if resume and self.path.exists():
            self._read()

    def _read(self) -> None:
        found = storage.read(self.path, {"Solution": Solution}, kind=_KIND)
        if not (isinstance(found.get("run"), dict) and {"kept", "ended", "going"} <= set(found)):
            raise ValueError(f"{self.path} is a damaged checkpoint; fit without resume=True to begin anew.")
        other = [name for name in {**self.run, **found["run"]} if self.run.get(name) != found["run"].get(name)]
        if other:
            raise ValueError(
                f"{self.path} is a checkpoint of another run: it differs in {', '.join(sorted(other))}. Fit with the "
                "same to go on, or without resume=True to begin anew."
            )
        self.kept, self._going = found["kept"], found["going"]
        self._ended = [Ended(*pair) for pair in found["ended"]]

    def begin(self) -> Ended | None:
        """Turn to the next start; return how it ended, if the file tells."""
        self._attempt += 1
        if self._attempt < len(self._ended):
            return self._ended[self._attempt]
        self.going, self._going = self._going, None
        return None

    def offer(self, iteration: int, state: Callable[[], dict[str, Any]]) -> None:
        """Write the state of the present start, if the last snapshot is old enough."""
        if iteration % _EVERY or time.monotonic() - self._written < self._wait:
            return
        self._going = {"iteration": iteration, **state()}
        self._write()

    def end(self, solution: Solution, monitor: dict[str, Any]) -> None:
        """Write how the present start ended."""
        self._ended.append(Ended(solution, monitor))
        self._going = None
        self._write()

    def _write(self) -> None:
        begun = time.monotonic()
        ended = [tuple(pair) for pair in self._ended]
        content = {"run": self.run, "kept": self.kept, "ended": ended, "going": self._going}
        try:
            storage.write(self.path, content, kind=_KIND)
        except OSError as error:
            # The last snapshot stays, since it is replaced only by a whole one.
            warnings.warn(f"the checkpoint {self.path} cannot be written: {error}; the fit goes on.", stacklevel=2)
        self._written = time.monotonic()
        self._wait = max(_SECONDS, (self._written - begun) / _SHARE)


def check_state(going: dict[str, Any], start: FloatArray) -> None:
    """Raise `ValueError` unless every array of a state suits the start: compiled loops trust their sizes.

    An array has the start's shape, the same numbers in one row, or one row for each point.
    """
    sizes = (start.shape, (start.size,))

    def suits(value: Any) -> bool:
        if isinstance(value, np.ndarray):
            known = value.shape in sizes or (value.ndim == 2 and len(value) == len(start))
            return known and value.dtype.kind == "f" and bool(np.isfinite(value).all())
        if isinstance(value, dict):
            return all(map(suits, value.values()))
        return all(map(suits, value)) if isinstance(value, (list, tuple)) else True

    state = going.get("state")
    Z: Any = state.get("Z") if isinstance(state, dict) else None
    if getattr(Z, "shape", None) != start.shape or Z.dtype != start.dtype or not suits(state):
        raise ValueError("the checkpoint is damaged: its state does not suit the points. Fit without resume=True.")
