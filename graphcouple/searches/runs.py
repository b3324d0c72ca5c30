"""The fits of a search: their scores, and the file that keeps them."""

from __future__ import annotations

import dataclasses
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.base import clone

from graphcouple.estimators import CouplingEstimator
from graphcouple.graphs import FloatArray
from graphcouple.metrics import evaluate
from graphcouple.neighbors import nearest_neighbors
from graphcouple.searches.space import Candidate

# Neighbours that laws share; a law that asks for more searches by itself.
_SHARED = 100
_LONGEST_WARNING = 120


@dataclasses.dataclass
class Fit:
    """One fit.

    Attributes
    ----------
    name : str
        Of the method.
    n_points, seed : int
    scores : dict of str to float
        Empty if the fit failed; names that begin with "held out " are of rows placed afterwards.
    seconds : float
    warnings : list of str
        Beginnings of the warnings, and of the error if the fit failed.
    """

    name: str
    n_points: int
    seed: int
    scores: dict[str, float]
    seconds: float
    warnings: list[str]


class Store:
    """A file of fits, one JSON object a line; the first line says which search it belongs to.

    Parameters
    ----------
    path : str or Path, optional
        None keeps fits in memory only.
    settings : dict
        Compared with the file's.

    Raises
    ------
    ValueError
        When the file belongs to another search.
    """

    def __init__(self, path: Any, settings: dict[str, Any]) -> None:
        self.path, self._fits = None if path is None else Path(path), dict[Any, Fit]()
        if self.path is None:
            return
        if self.path.exists():
            self._read(settings)
        else:
            self.path.write_text(json.dumps(settings) + "\n")

    def _read(self, settings: dict[str, Any]) -> None:
        assert self.path is not None
        lines = self.path.read_text().splitlines(keepends=True)
        try:
            found = json.loads(lines[0]) if lines else None
        except ValueError:
            found = None
        if found != settings:
            different = sorted(k for k in settings if not isinstance(found, dict) or found.get(k) != settings[k])
            raise ValueError(
                f"store={str(self.path)!r} belongs to another search: {', '.join(different) or 'it'} differs. Name "
                "another file, or repeat the search as it was."
            )
        for line in lines[1:]:
            # A search that was killed may leave a part of a line behind.
            if line.endswith("\n"):
                fit = Fit(**json.loads(line))
                self._fits[fit.name, fit.n_points, fit.seed] = fit
        self.path.write_text("".join(line for line in lines if line.endswith("\n")))

    def __getitem__(self, key: tuple[str, int, int]) -> Fit | None:
        return self._fits.get(key)

    def add(self, fit: Fit) -> None:
        """Keep a fit."""
        self._fits[fit.name, fit.n_points, fit.seed] = fit
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(dataclasses.asdict(fit)) + "\n")

    @property
    def fits(self) -> list[Fit]:
        """All fits, in the order in which they were made."""
        return list(self._fits.values())


class Runner:
    """Fits methods to subsets of the data and scores them.

    Neighbours of a subset are searched once and shared by all laws with the same metric.

    Parameters
    ----------
    X, y : array
        The rows to fit, and their classes or None.
    held_out : array or None
        Rows to place in the finished maps.
    store : Store
    n_jobs : int or None
    rng : numpy.random.RandomState
        Draws the order in which rows enter subsets.
    """

    def __init__(
        self, X: Any, y: Any, held_out: Any, store: Store, n_jobs: int | None, rng: np.random.RandomState
    ) -> None:
        self.X, self.y, self.held_out, self.store, self.n_jobs = X, y, held_out, store, n_jobs
        self._order = rng.permutation(X.shape[0])
        self._neighbors: dict[Any, Any] = {}
        self.maps: dict[tuple[str, int], FloatArray] = {}
        """The maps of all rows by name and seed, as far as they were made in this process."""
        self.patience = np.inf
        """Seconds after which a fit is stopped, and counts as failed."""

    def rows(self, n_points: int) -> Any:
        """Return the numbers of the rows of a subset, in ascending order; each contains the smaller ones."""
        return np.sort(self._order[:n_points])

    def fit(self, candidate: Candidate, n_points: int, seed: int) -> Fit:
        """Return a fit and its scores; from the store if it has them."""
        known = self.store[candidate.name, n_points, seed]
        if known is not None:
            return known
        rows = self.rows(n_points)
        X, y = self.X[rows], None if self.y is None else self.y[rows]
        start, scores = time.perf_counter(), {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                method = self.fitted(candidate, n_points, seed, self._hurry)
                seconds = time.perf_counter() - start
                if str(getattr(method, "stop_reason_", "")).startswith("stopped by the callback"):
                    raise ValueError(f"stopped, since it takes more than {self.patience:.0f} s")
                scores = self._scores(method, X, y, n_points, seed)
                if n_points == self.X.shape[0]:
                    self.maps[candidate.name, seed] = np.asarray(method.embedding_)
                noted = [str(each.message) for each in caught]
            except (ArithmeticError, TypeError, ValueError) as error:
                seconds, noted = time.perf_counter() - start, [f"failed: {error}"]
        shown = [text if len(text) <= _LONGEST_WARNING else text[: _LONGEST_WARNING - 1] + "…" for text in noted]
        fit = Fit(candidate.name, n_points, seed, scores, seconds, list(dict.fromkeys(shown)))
        self.store.add(fit)
        return fit

    def _hurry(self) -> Callable[..., bool]:
        """Return a callback that stops a run when patience is at an end."""
        end = time.perf_counter() + self.patience
        return lambda *_: time.perf_counter() > end

    def fitted(
        self, candidate: Candidate, n_points: int, seed: int, hurry: Callable[[], Callable[..., bool]] | None = None
    ) -> Any:
        """Return the candidate's estimator, fitted to a subset, with the callback of `hurry` if it takes one."""
        method = clone(candidate.estimator)
        if hurry is not None and isinstance(method, CouplingEstimator) and method.callback is None:
            method.set_params(callback=hurry())
        random = [name for name in method.get_params() if name == "random_state" or name.endswith("__random_state")]
        method.set_params(**dict.fromkeys(random, seed))
        if "n_jobs" in method.get_params():
            method.set_params(n_jobs=self.n_jobs)
        rows = self.rows(n_points)
        X = self.X[rows]
        neighbors = self._neighbors_for(method, X)
        return method.fit(X) if neighbors is None else method.fit(X, neighbors=neighbors)

    def _neighbors_for(self, method: Any, X: Any) -> Any:
        """Return shared neighbours, if the method has a law of a few neighbours by the usual search; else None."""
        if not isinstance(method, CouplingEstimator):
            return None
        law = method.sentence.input
        wanted = getattr(law, "neighbors_among", lambda n: None)(X.shape[0])
        metric: Any = getattr(law, "metric", None)
        usual = isinstance(metric, str) and metric != "precomputed" and not law.metric_params and law.search == "auto"
        if wanted is None or not usual or not wanted <= min(_SHARED, X.shape[0] - 1):
            return None
        key = (X.shape[0], metric)
        if key not in self._neighbors:
            k = min(_SHARED, X.shape[0] - 1)
            support, sq_dist = nearest_neighbors(X, k, metric=metric, n_jobs=self.n_jobs)
            self._neighbors[key] = support.indices.reshape(-1, k), np.sqrt(sq_dist).reshape(-1, k)
        return self._neighbors[key]

    def _scores(self, method: Any, X: Any, y: Any, n_points: int, seed: int) -> dict[str, float]:
        metric = str(getattr(method, "metric", None) or "euclidean")
        found = dict(evaluate(X, method.embedding_, y, metric=metric, n_jobs=self.n_jobs))
        if self.held_out is not None and n_points == self.X.shape[0] and seed == 0:
            try:
                placed = method.transform(self.held_out)
            except (AttributeError, NotImplementedError, TypeError, ValueError):
                placed = None
            if placed is not None:
                held = dict(evaluate(self.held_out, placed, metric=metric, n_jobs=self.n_jobs))
                found |= {f"held out {name}": value for name, value in held.items()}
        return {name: float(value) for name, value in found.items() if np.isfinite(value)}


def settings_of(X: Any, y: Any, **others: Any) -> dict[str, Any]:
    """Return the settings that identify a search, with hashes of its data."""
    return {"X": joblib.hash(X), "y": joblib.hash(y), **{name: repr(value) for name, value in others.items()}}
