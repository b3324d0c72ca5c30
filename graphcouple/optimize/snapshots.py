"""Snapshots of a run on disk, from which an interrupted run continues to the same bits.

A snapshot holds the state of the optimizer, the record of the monitor, and the runs that have ended. Everything else,
such as the objective, is rebuilt from the same data.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphcouple._support import storage
from graphcouple._support.validation import warn
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Solution

_KIND = "graphcouple checkpoint"

# Iterations and seconds between snapshots, at least; and the largest share of the time that writing may take.
_EVERY, _SECONDS, _SHARE = 50, 1.0, 0.05


class Ended(NamedTuple):
    """The solution of a run that has ended, and the record of its monitor."""

    solution: Solution
    monitor: dict[str, Any]


class NoSnapshots:
    """No snapshots: a run that is not saved."""

    going: dict[str, Any] | None = None
    """The last saved state of the present run."""

    def begin(self) -> Ended | None:
        """Turn to the next run; return its end if it has ended before."""
        return None

    def offer(self, iteration: int, state: Callable[[], dict[str, Any]]) -> None:
        """Save the state of the present run, if the last snapshot is old enough."""

    def end(self, solution: Solution, monitor: dict[str, Any]) -> None:
        """Save the end of the present run."""


class Snapshots(NoSnapshots):
    """The snapshots of one call of `solve`, in one file.

    Parameters
    ----------
    path : str or path
    run : mapping of str to str
        Fingerprints of everything that the run depends on, by name.
    kept : dict, optional
        Further values for the file.
    resume : bool, default=False
        Whether to continue from the file, if there is one.

    Attributes
    ----------
    kept : dict
        The values of the file, if the run continues from it.

    Raises
    ------
    ValueError
        When the folder does not exist, or the file is not a snapshot, or is of another run.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> anchors = gc.couplings.AnchorEnergy(2, np.array([0, 1]), np.array([[0.0, 1.0], [2.0, 0.0]]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path, run = pathlib.Path(folder) / "run.gc", {"data": "two anchors"}
    ...     first = gc.solve(anchors, np.ones((2, 2)), snapshots=gc.extend.Snapshots(path, run))
    ...     again = gc.solve(anchors, np.ones((2, 2)), snapshots=gc.extend.Snapshots(path, run, resume=True))
    >>> bool((first.Z == again.Z).all())
    True
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
        if self.path.exists():
            self._read() if resume else self._warn_of_unfinished()

    def _read(self) -> None:
        content = storage.read(self.path, {"Solution": Solution}, kind=_KIND)
        if not (isinstance(content.get("run"), dict) and {"kept", "ended", "going"} <= set(content)):
            raise ValueError(f"{self.path} is a damaged checkpoint; fit without resume=True to begin anew.")
        other = [name for name in {**self.run, **content["run"]} if self.run.get(name) != content["run"].get(name)]
        if other:
            raise ValueError(
                f"{self.path} is a checkpoint of another run: it differs in {', '.join(sorted(other))}. Fit with the "
                "same to continue, or without resume=True to begin anew."
            )
        self.kept, self._going = content["kept"], content["going"]
        self._ended = [Ended(*pair) for pair in content["ended"]]

    def _warn_of_unfinished(self) -> None:
        try:
            content = storage.read(self.path, {"Solution": Solution}, kind=_KIND)
            if content["run"] != self.run or content["going"] is None:
                return
            iteration = content["going"]["iteration"]
        except (OSError, KeyError, TypeError, ValueError):
            return
        warn(f"{self.path} holds this run up to iteration {iteration}. resume=True continues it; this run replaces it.")

    def begin(self) -> Ended | None:
        self._attempt += 1
        if self._attempt < len(self._ended):
            return self._ended[self._attempt]
        self.going, self._going = self._going, None
        return None

    def offer(self, iteration: int, state: Callable[[], dict[str, Any]]) -> None:
        if iteration % _EVERY or time.monotonic() - self._written < self._wait:
            return
        self._going = {"iteration": iteration, **state()}
        self._write()

    def end(self, solution: Solution, monitor: dict[str, Any]) -> None:
        self._ended.append(Ended(solution, monitor))
        self._going = None
        self._write()

    def _write(self) -> None:
        start = time.monotonic()
        content = {"run": self.run, "kept": self.kept, "ended": self._ended, "going": self._going}
        try:
            storage.write(self.path, content, kind=_KIND)
        except OSError as error:
            # The last snapshot stays, because only a complete one replaces it.
            warn(f"the checkpoint {self.path} cannot be written: {error}; the fit continues.")
        self._written = time.monotonic()
        self._wait = max(_SECONDS, (self._written - start) / _SHARE)


def check_state(going: dict[str, Any], start: FloatArray) -> None:
    """Raise `ValueError` unless every array of a state suits the start: compiled loops trust their sizes.

    An array has the start's shape, its numbers in one row, or a row for each point. `with_basis` checks a basis.
    """

    def suits(value: Any) -> bool:
        if isinstance(value, np.ndarray):
            fits = value.shape == (start.size,) or (value.ndim in (1, 2) and len(value) == len(start))
            return fits and value.dtype.kind in "fiub" and bool(np.isfinite(value).all())
        if isinstance(value, dict):
            return all(map(suits, value.values()))
        return all(map(suits, value)) if isinstance(value, (list, tuple)) else True

    state = going.get("state")
    state = state if isinstance(state, dict) else {}
    Z: Any = state.get("Z")
    others = {name: value for name, value in state.items() if name != "basis"}
    if getattr(Z, "shape", None) != start.shape or Z.dtype != start.dtype or not suits(others):
        raise ValueError("the checkpoint is damaged: its state does not suit the points. Fit without resume=True.")
