"""Samplers of a method's choices: at random, or by Optuna, which learns from the scores."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from scipy.stats import rv_discrete

from graphcouple._support.validation import how_to_install
from graphcouple.graphs import FloatArray

T = TypeVar("T")

# After this many consecutive methods that are repeats or cannot be fitted, methods are drawn at random.
_STUCK = 10

# Scores of methods that cannot be fitted: without scores, Optuna would draw the same choice again and again.
_WORST = -1e6


class Draws:
    """Choices at random; each option is as likely as any other."""

    def __init__(self, rng: np.random.RandomState) -> None:
        self.rng = rng

    def begin(self) -> None:
        """Begin a method; the last one is dropped unless it was `keep`-ed."""

    def choose(self, choice: str, options: Sequence[T]) -> T:
        """Return one of the options of a choice; options keep their order in later calls."""
        return options[int(self.rng.randint(len(options)))]

    def number(self, choice: str, distribution: Any) -> Any:
        """Return a number of a distribution of scipy."""
        return _plain(distribution, distribution.rvs(random_state=self.rng))

    def skip(self) -> None:
        """Drop the method that was drawn last, because it was drawn before."""

    def keep(self, name: str) -> None:
        """Remember the method that was drawn last by its name."""

    def tell(self, name: str, values: FloatArray | None) -> None:
        """Record a method's scores, where higher is better; None if it failed."""


class OptunaDraws(Draws):
    """Choices by Optuna's tree-structured Parzen estimator for several objectives (Ozaki et al. 2022)."""

    def __init__(self, rng: np.random.RandomState, n_objectives: int) -> None:
        import optuna

        super().__init__(rng)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=int(rng.randint(2**31)))
        self._study = optuna.create_study(directions=["maximize"] * n_objectives, sampler=sampler)
        self._worst, self._dropped = [_WORST] * n_objectives, optuna.trial.TrialState.FAIL
        self._trials: dict[str, Any] = {}
        self._trial: Any = None
        self._in_vain = 0

    def begin(self) -> None:
        """Begin a method; the last one counts as the worst unless it was `keep`-ed."""
        if self._trial is not None:
            self._study.tell(self._trial, self._worst)
        self._trial = self._study.ask() if self._in_vain < _STUCK else None
        self._in_vain += 1

    def choose(self, choice: str, options: Sequence[T]) -> T:
        if self._trial is None:
            return super().choose(choice, options)
        return options[self._trial.suggest_categorical(choice, list(range(len(options))))]

    def number(self, choice: str, distribution: Any) -> Any:
        if self._trial is None or not hasattr(distribution, "ppf"):
            return super().number(choice, distribution)
        return _plain(distribution, distribution.ppf(self._trial.suggest_float(choice, 1e-6, 1.0 - 1e-6)))

    def skip(self) -> None:
        """Drop the method that was drawn last, without scores."""
        if self._trial is not None:
            self._study.tell(self._trial, state=self._dropped)
        self._trial = None

    def keep(self, name: str) -> None:
        if self._trial is not None:
            self._trials[name] = self._trial
        self._trial, self._in_vain = None, 0

    def tell(self, name: str, values: FloatArray | None) -> None:
        trial = self._trials.pop(name, None)
        if trial is not None:
            known = values is not None and np.isfinite(values).all()
            self._study.tell(trial, self._worst if values is None or not known else values.tolist())


def _plain(distribution: Any, value: Any) -> Any:
    """Return a Python number: an integer for a discrete distribution."""
    return int(value) if isinstance(getattr(distribution, "dist", distribution), rv_discrete) else float(value)


def draws_of(sampler: str, rng: np.random.RandomState, n_objectives: int) -> Draws:
    """Return the sampler of a name; "auto" is Optuna if it is installed."""
    if sampler not in ("auto", "random", "optuna"):
        raise ValueError(f'sampler must be "auto", "random" or "optuna", got {sampler!r}.')
    there = importlib.util.find_spec("optuna") is not None
    if sampler == "optuna" and not there:
        raise ModuleNotFoundError(f'sampler="optuna" needs optuna; {how_to_install("search")}')
    return Draws(rng) if sampler == "random" or not there else OptunaDraws(rng, n_objectives)
