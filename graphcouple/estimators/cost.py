"""The cost of a fit before it runs: seconds and memory by stage."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from graphcouple._support.validation import check_integer
from graphcouple.couplings import EffectiveCoupling
from graphcouple.couplings.recipes import as_coupling
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.memory import free_memory, memory_of, remedy
from graphcouple.estimators.sentence import Sentence
from graphcouple.estimators.wrapper import WithTerm
from graphcouple.initializations import is_made
from graphcouple.laws import Space
from graphcouple.neighbors import as_points
from graphcouple.summation import Exact, KernelValue, as_summation

# Rows of a trial fit with fast sums and with all pairs; the powers of n with which search and steps slow down.
_TRIAL, _TRIAL_OF_ALL_PAIRS, _SEARCH_POWER, _DESCENT_POWER = 10_000, 3000, 1.15, 1.05

# A trial's descent ends after this many seconds, and the other iterations are counted as equally long.
_LONGEST_TRIAL = 8.0

# Number of points of a random map on which the choice of a summation is tested.
_MAP = 100_000


@dataclass(frozen=True)
class Stage:
    """One stage of a fit; `n_bytes` is the most memory that the process holds during the stage."""

    name: str
    seconds: float
    n_bytes: float


@dataclass(frozen=True)
class Estimate:
    """The cost of a fit.

    Attributes
    ----------
    stages : tuple of Stage
        In the order in which they run.
    n_free : float
        Bytes of memory that are free on this machine, infinite if unknown.
    """

    stages: tuple[Stage, ...]
    n_free: float

    @property
    def seconds(self) -> float:
        """The seconds of all stages."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def n_bytes(self) -> float:
        """The peak of the memory."""
        return max(stage.n_bytes for stage in self.stages)

    @property
    def fits(self) -> bool:
        """Whether the free memory suffices."""
        return self.n_bytes <= self.n_free

    def __str__(self) -> str:
        rows = [*self.stages, Stage("in all", self.seconds, self.n_bytes)]
        lines = [f"{row.name:<20}{row.seconds:>9.3g} s{row.n_bytes / 1e9:>9.2f} GB" for row in rows]
        return "\n".join(lines if self.fits else [*lines, remedy(self.n_bytes, self.n_free)])


def estimate(estimator: CouplingEstimator | WithTerm, n: int, p: int, dtype: Any = np.float64) -> Estimate:
    """Return the seconds and the memory that a fit will take, by stage.

    Memory is counted from the arrays of each stage: the points, the neighbours and their distances, the edges in both
    directions, and the steps of the optimizer. Seconds come from a trial fit of up to 10,000 random rows in 50
    clusters, which takes a few seconds. They grow by a power of the number of rows: 1.15 for the search and 1.05 for an
    iteration, or 2 if it compares all pairs, as in four dimensions or with ``summation="exact"``.

    Memory is usually right within a quarter, seconds within a factor of two. Data without clusters take longer
    to search; maps of tight clusters, such as UMAP's, take longer to descend.

    Parameters
    ----------
    estimator : GraphCoupling, TSNE, UMAP or another coupling estimator
    n, p : int
        Numbers of rows and columns, at least 50 and 1.
    dtype : dtype, default=numpy.float64
        The type of the numbers of `X`.

    Returns
    -------
    Estimate
        With `stages`, `seconds`, `n_bytes` (the peak) and `fits`; `print` shows a table.

    Raises
    ------
    TypeError, ValueError
        When the estimator does not find its graph among points, or a number is out of range.

    Examples
    --------
    >>> import graphcouple as gc
    >>> cost = gc.estimate(gc.TSNE(random_state=0, max_iter=50), 5000, 20)
    >>> [stage.name for stage in cost.stages], cost.fits
    (['neighbors and law', 'start', 'descent'], True)
    """
    n, p = check_integer("n", n, 50), check_integer("p", p, 1)
    model = estimator._plain() if isinstance(estimator, WithTerm) else estimator
    if not isinstance(model, CouplingEstimator) or model._has_own_graph or model.takes_distances:
        raise TypeError(
            f"estimate needs two laws, and points among which the graph is found, as for TSNE(), got {estimator!r}."
        )
    if (model.n_landmarks or n) < n:
        raise ValueError(
            f"n_landmarks={model.n_landmarks} fits some of the {n} rows: estimate a fit of as many rows without it."
        )
    sentence = model.sentence
    if not is_made(sentence.init):
        raise ValueError("init is an array of places, which has a size of its own; estimate with init='random'.")
    if sentence.names_rows:
        raise ValueError("terms hold values for the rows of X, which the trial has not; estimate without these terms.")
    dtype = as_points(np.zeros((2, 1), dtype=dtype)).dtype
    memory = memory_of(sentence, n, p, dtype.itemsize)
    all_pairs = _sums_all_pairs(sentence, n)
    trial = min(n, _TRIAL_OF_ALL_PAIRS if all_pairs else _TRIAL)
    law, start, descent = _seconds(model, trial, p, dtype)
    ratio = n / trial
    iterations = (sentence.iterations(n) or 1) / (sentence.iterations(trial) or 1)
    power = 2.0 if all_pairs else _DESCENT_POWER
    seconds = (law * ratio**_SEARCH_POWER, start * ratio**power, descent * iterations * ratio**power)
    stages = tuple(Stage(name, s, b) for (name, b), s in zip(memory.items(), seconds, strict=True))
    return Estimate(stages, free_memory())


def _sums_all_pairs(sentence: Sentence, n: int) -> bool:
    q = sentence.n_components
    if isinstance(sentence.latent.metric, Space):
        return True
    if q > 2 and isinstance(as_coupling(sentence.coupling), EffectiveCoupling):
        return False
    Z = np.random.default_rng(0).normal(size=(min(n, _MAP), q))
    summation = as_summation(sentence.get("summation", "auto"))
    return isinstance(summation.for_points(Z, KernelValue(sentence.latent.kernel)), Exact)


def _seconds(estimator: CouplingEstimator, n: int, p: int, dtype: Any) -> tuple[float, float, float]:
    """Return the seconds of a trial fit's law, start and descent."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(50, p))
    clusters = rng.integers(50, size=n)
    X = (centres[clusters] + 0.5 * rng.normal(size=(n, p))).astype(dtype)
    law, times = estimator.sentence.input.for_points(n), []
    begun = np.inf

    def watch(*_: Any) -> bool:
        times.append(time.perf_counter())
        return times[-1] - begun > _LONGEST_TRIAL

    model = clone(estimator).set_params(callback=watch, verbose=0, checkpoint=None, warm_start=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # The first fit loads the compiled loops.
        clone(model).set_params(max_iter=2).fit(X, clusters)
        times.clear()
        start = time.perf_counter()
        law.posterior(X, model.n_jobs, y=clusters if law.uses_classes else None)
        begun = time.perf_counter()
        model.fit(X, clusters)
    end, seconds = time.perf_counter(), begun - start
    descent = end - times[0]
    if times[-1] - begun > _LONGEST_TRIAL:
        descent *= max((estimator.sentence.iterations(n) or 1) / max(model.n_iter_, 1), 1.0)
    return seconds, max(times[0] - begun - seconds, 0.0), descent
