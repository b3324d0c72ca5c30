"""The fits of a search: their scores, and the file that keeps them."""

from __future__ import annotations

import dataclasses
import json
import time
import warnings
from collections.abc import Mapping
from numbers import Number
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from graphcouple._support.validation import own_copy
from graphcouple.estimators import CouplingEstimator
from graphcouple.estimators.run_control import fingerprint
from graphcouple.estimators.wrapper import WithTerm
from graphcouple.graphs import FloatArray
from graphcouple.laws import GraphModel
from graphcouple.metrics import evaluate, seed_stability
from graphcouple.neighbors import is_precomputed, nearest_neighbors
from graphcouple.searches.comparison import fitted_map, warn_if_curved, with_seed
from graphcouple.searches.space import Candidate

# Number of neighbours that laws share; a law that needs more searches by itself.
_SHARED = 100
_LONGEST_WARNING = 120


@dataclasses.dataclass
class Fit:
    """One fit.

    Attributes
    ----------
    name : str
        The method's name.
    scores : dict of str to float
        Empty if the fit failed; names that begin with "held out " are scores of held-out rows.
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
    """A file of fits, one JSON object per line; the first line has the settings of the search that it belongs to.

    Without a path, fits are kept in memory only.
    """

    def __init__(self, path: Any, settings: dict[str, Any]) -> None:
        self.path, self._fits = None if path is None else Path(path), dict[Any, Fit]()
        if self.path is not None:
            lines = self._read(self.path, settings) if self.path.exists() else []
            draft = self.path.with_name(self.path.name + ".part")
            try:
                draft.write_text("".join(lines) or json.dumps(settings) + "\n")
            except OSError as error:
                raise ValueError(f"store={str(path)!r} cannot be written ({error}). Name another file.") from error
            draft.replace(self.path)

    def _read(self, path: Path, settings: dict[str, Any]) -> list[str]:
        """Read a file's fits, and return its complete lines; a killed search may leave a partial line."""
        remedy = "Name another file, or repeat the search as it was."
        try:
            text = path.read_text()
            lines = [line for line in text.splitlines(keepends=True) if line.endswith("\n")]
            # Settings are written at once with the file, so a line that is partial is one of a fit.
            stored = json.loads(lines[0] if lines else text) if text else settings
            fits = [Fit(**json.loads(line)) for line in lines[1:]]
        except (OSError, TypeError, ValueError) as error:
            raise ValueError(f"store={str(path)!r} is not a file of a search ({error}). {remedy}") from error
        if stored != settings:
            known = stored if isinstance(stored, dict) else {}
            different = [name for name in settings if known.get(name) != settings[name]]
            raise ValueError(f"store={str(path)!r} belongs to another search: {', '.join(different)} differs. {remedy}")
        self._fits = {(fit.name, fit.n_points, fit.seed): fit for fit in fits}
        return lines

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

    Rows enter subsets in an order that `rng` draws, and the finished maps place the rows `held_out`. The metric is for
    all scores. With `halves`, fits to all rows have the score "half stability".
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        held_out: Any,
        store: Store,
        n_jobs: int | None,
        rng: np.random.RandomState,
        metric: str = "euclidean",
        halves: bool = False,
    ) -> None:
        self.X, self.y, self.held_out, self.store, self.n_jobs = X, y, held_out, store, n_jobs
        self.metric, self.halves = metric, halves
        self._order = rng.permutation(X.shape[0])
        self._neighbors: dict[Any, Any] = {}
        self.maps: dict[tuple[str, int], FloatArray] = {}
        """The maps of all rows by name and seed, if they were made in this process."""
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
        scores: dict[str, float] = {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            start, late = time.perf_counter(), _Late(self.patience)
            # If a method of another library raises, the search continues with the others.
            try:
                method, neighbors = self._made(candidate, seed, late), self._neighbors_for(candidate.estimator, X)
                self._limit_iterations(method, n_points)
                start = late.start()
                Z = fitted_map(method, X, **neighbors)
                seconds = time.perf_counter() - start
                if late.stopped:
                    raise ValueError(f"stopped, since it takes more than {self.patience:.0f} s")
                warn_if_curved(method)
                # The method may have written to its rows, which are a copy.
                scores = self._scores(method, Z, self.X[rows], y, seed)
                if n_points == self.X.shape[0]:
                    self.maps[candidate.name, seed] = Z
                    if self.halves:
                        scores["half stability"] = self._half_stability(candidate, seed, Z)
                noted = [str(each.message) for each in caught]
            except Exception as error:
                seconds, noted = time.perf_counter() - start, [f"failed: {error}"]
        shown = [text if len(text) <= _LONGEST_WARNING else text[: _LONGEST_WARNING - 1] + "…" for text in noted]
        fit = Fit(candidate.name, n_points, seed, scores, seconds, list(dict.fromkeys(shown)))
        self.store.add(fit)
        return fit

    def _half_stability(self, candidate: Candidate, seed: int, Z: FloatArray) -> float:
        """Return how similar the map of half of the rows is to their places in the map of all."""
        half = self.rows(self.X.shape[0] // 2)
        X = self.X[half]
        neighbors = self._neighbors_for(candidate.estimator, X)
        return seed_stability([Z[half], fitted_map(self._made(candidate, seed), X, **neighbors)])

    def _made(self, candidate: Candidate, seed: int, late: _Late | None = None) -> Any:
        """Return the candidate's estimator with seed and threads, and a callback for the time limit if it takes one."""
        method = with_seed(candidate.estimator, seed)
        if "n_jobs" in method.get_params():
            method.set_params(n_jobs=self.n_jobs)
        plain = _plain_of(method)
        if late is not None and isinstance(plain, CouplingEstimator) and plain.callback is None:
            plain.set_params(callback=late)
        return method

    def _limit_iterations(self, method: Any, n_points: int) -> None:
        """Give a method on few rows no more iterations than on all rows; its default would be many more."""
        n = self.X.shape[0]
        plain = _plain_of(method)
        if n_points < n and isinstance(plain, CouplingEstimator) and isinstance(plain.max_iter, str):
            plain.set_params(max_iter=plain.sentence.iterations(n))

    def fitted(self, candidate: Candidate, seed: int = 0) -> Any:
        """Return the candidate's estimator, fitted to all rows, and add its map to `maps`."""
        # With the neighbours that fits share, it could neither grow nor be saved whole.
        method = self._made(candidate, seed)
        self.maps.setdefault((candidate.name, seed), fitted_map(method, own_copy(self.X)))
        return method

    def _neighbors_for(self, method: Any, X: Any) -> dict[str, Any]:
        """Return shared neighbours as an argument of `fit`, if the law has few neighbours by the usual search."""
        if not isinstance(method, CouplingEstimator) or method.unique or method.n_landmarks is not None:
            return {}
        law = method.sentence.input
        if not isinstance(law, GraphModel) or law.metric_params or law.search != "auto":
            return {}
        n, metric = X.shape[0], law.metric
        wanted, k = law.neighbors_among(n), min(_SHARED, n - 1)
        if not isinstance(metric, str) or is_precomputed(metric) or wanted is None or wanted > k:
            return {}
        # Given neighbours may change a bandwidth, or suit none: then the law searches by itself.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = law.within(n).bandwidth
            given = None if own is None else own.for_neighbors(wanted, wanted)
        if own is not None and (own.looks_at_all or given is not own):
            return {}
        if (n, metric) not in self._neighbors:
            support, sq_dist = nearest_neighbors(X, k, metric=metric, n_jobs=self.n_jobs)
            self._neighbors[n, metric] = support.indices.reshape(-1, k), np.sqrt(sq_dist).reshape(-1, k)
        return {"neighbors": self._neighbors[n, metric]}

    def _scores(self, method: Any, Z: FloatArray, X: Any, y: Any, seed: int) -> dict[str, float]:
        options: dict[str, Any] = {"metric": self.metric, "n_jobs": self.n_jobs}
        # Few rows may hold one class only.
        scores = dict(evaluate(X, Z, None if y is None or np.unique(y).size < 2 else y, **options))
        if self.held_out is not None and X.shape[0] == self.X.shape[0] and seed == 0 and hasattr(method, "transform"):
            try:
                placed = method.transform(own_copy(self.held_out))
                held = dict(evaluate(self.held_out, placed, **options))
            except Exception:
                # Not every method places new points.
                held = {}
            scores |= {f"held out {name}": value for name, value in held.items()}
        return {name: float(value) for name, value in scores.items() if np.isfinite(value)}


class _Late:
    """A callback that stops a run after a time limit."""

    def __init__(self, patience: float) -> None:
        self._patience, self._end, self.stopped = patience, np.inf, False

    def __deepcopy__(self, memo: Any) -> _Late:
        # Clones must share this callback, which records whether it stopped the run.
        return self

    def start(self) -> float:
        now = time.perf_counter()
        self._end = now + self._patience
        return now

    def __call__(self, *_: Any) -> bool:
        self.stopped = time.perf_counter() > self._end
        return self.stopped


def settings_of(X: Any, y: Any, **others: Any) -> dict[str, Any]:
    """Return the settings that identify a search, with hashes of its data."""
    return {"X": joblib.hash(X), "y": joblib.hash(y), **{name: _described(value) for name, value in others.items()}}


def _described(value: Any) -> str:
    """Return a text that is the same in every process, and another one for another value."""
    if hasattr(value, "rvs"):
        return _described_distribution(value)
    if isinstance(value, Mapping):
        return str({str(key): _described(each) for key, each in value.items()})
    if isinstance(value, (list, tuple)):
        return str([_described(each) for each in value])
    # Texts of estimators and laws leave arrays out, so two methods may have the same text.
    return repr(value) if value is None or isinstance(value, (Number, str)) else fingerprint(value)


def _described_distribution(value: Any) -> str:
    if hasattr(value, "dist"):
        return f"{_described_distribution(value.dist)}{_described(value.args)}{_described(value.kwds)}"
    # The state of the random numbers, which a distribution holds too, differs from one call to the next.
    numbers = {name: each for name, each in sorted(vars(value).items()) if "random" not in name and not callable(each)}
    return f"{type(value).__qualname__}{fingerprint(numbers)}"


def _plain_of(method: Any) -> Any:
    """Return the estimator that a method runs: the wrapped one, if the method adds a term to another."""
    if not isinstance(method, WithTerm):
        return method
    if method.estimator is None:
        method.set_params(estimator=method.plain_method())
    return method.estimator
