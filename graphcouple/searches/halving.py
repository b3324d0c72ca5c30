"""The search: many methods on few rows, the better ones on more rows, the best on all rows with several seeds."""

import itertools
import time
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from graphcouple._support.validation import check_integer
from graphcouple.metrics._evaluate import check_scoring
from graphcouple.neighbors import as_points, is_precomputed
from graphcouple.searches.draws import Draws, draws_of
from graphcouple.searches.result import SearchResult
from graphcouple.searches.runs import Fit, Runner, Store, settings_of
from graphcouple.searches.space import Candidate, candidates, references

# Shares of the rows in the three rounds, the least number of rows in one, and the share of methods that continue. So a
# round takes about as long as the next one.
_SHARES, _LEAST_ROWS, _KEPT = (1 / 8, 1 / 3, 1.0), 400, 1 / 3

# Number of methods that compete in the first round: after two rounds that keep a third, one is left.
_BRACKET = 9

# A fit is stopped after this many times the seconds of t-SNE on all rows, but not before this many seconds.
_PATIENCE, _LEAST_PATIENCE = 5.0, 10.0

# Fewer than 20 held-out rows would have no scores.
_HELD_OUT, _MOST_HELD_OUT, _HELD_OUT_FROM = 0.1, 1000, 200
_UNITS = {"s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "m": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0}


def search(
    X: Any,
    space: Any = "laws",
    objectives: Sequence[str] = ("R(10)", "R(n/2)"),
    budget: Any = "10min",
    n_seeds: int = 3,
    *,
    y: Any = None,
    metric: str = "euclidean",
    n_jobs: int | None = None,
    random_state: Any = None,
    store: Any = None,
    sampler: str = "auto",
    callback: Callable[[Fit], Any] | None = None,
) -> SearchResult:
    """Try many methods on the same data, and show the methods that no other surpasses.

    Nine methods are tried at a time: all on an eighth of the rows, the best third of them on a third of the rows, and
    the best third of these on all rows, with every seed. A subset gets at most as many iterations as all rows. If a
    method takes a callback, a fit that takes five times as long as t-SNE on all rows, and at least ten seconds, is
    stopped and counts as failed. Pareto fronts tell the best: first the methods that no other surpasses, then the
    methods that only these surpass. Fewer than nine methods are fitted to all rows at once. PCA, a random map, `TSNE`,
    `UMAP` and `TwoScaleCoupling` are always in the table. Of 200 or more rows, a tenth is held out first, at most 1,000
    rows; finished methods place them by `transform`.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_samples, n_features)
    space : {"laws", "presets"}, list, mapping, or pair of an estimator and a mapping; default="laws"
        "laws" draws sentences of `GraphCoupling` from the registered priors, kernels, couplings and starts, and from
        bandwidths and global terms, as far as they fit together; your own registered parts are included. "presets" are
        the named couplings. A list has estimators or sentences; a mapping also gives their names in the result. In a
        pair, the mapping gives an estimator's parameters (such as ``latent__kernel__dof``) lists of values or SciPy
        distributions; alone, it is for `TSNE`.
    objectives : sequence of str, default=("R(10)", "R(n/2)")
        Scores of `graphcouple.metrics.evaluate`, registered scores (higher is better), "seconds", "stability", the mean
        similarity of maps from two seeds, or "half stability", the similarity of maps of half and of all rows. The
        first rounds use neither stability. Scores of classes need `y`.
    budget : str, int or float, default="10min"
        Time, as "90s", "10min" or "2h" or a number of seconds, after which no fit begins, except one of each reference;
        or "60 trials", the number of methods besides the references. Only a number of trials is reproducible, as long
        as no fit is stopped for its time.
    n_seeds : int, default=3
        Number of seeds of each method that reaches the last round.
    y : array of shape (n_samples,), optional
        Classes, for scores of classes. No method sees them.
    metric : str, default="euclidean"
        Distance of the rows for all scores, and for the references that have a metric; "precomputed" is not possible.
    n_jobs : int or None, default=None
        Threads. Scores do not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the draws and subsets.
    store : str or Path, optional
        A file that keeps each fit. A search with the same arguments continues where the file ends.
    sampler : {"auto", "random", "optuna"}, default="auto"
        How "laws" and parameters are drawn: at random, or by Optuna from the scores of the first round; "auto" is
        Optuna if it is installed.
    callback : callable, optional
        Called with each `Fit`; a true return value ends the search, as the end of its time does.

    Returns
    -------
    SearchResult
        Its `table`, `front`, `plot`, `explain` and `to_html` show what was found.

    Raises
    ------
    TypeError, ValueError
        When an argument is invalid, a score is unknown, or the store belongs to another search.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> found = gc.search(X, {"perplexity": [5, 40], "max_iter": [50]}, budget="2 trials", n_seeds=2, random_state=0)
    >>> sorted(found.table.index)[:3]
    ['PCA', 'TSNE', 'TSNE(max_iter=50, perplexity=40)']
    >>> "random map" in found.front
    False
    """
    points = as_points(X, at_least=20)
    check_scoring(points, y, None, "auto", metric)
    _check(objectives, n_seeds, metric, store, random_state)
    seconds, trials = _budget(budget)
    rng = check_random_state(random_state)
    n = points.shape[0]
    order = rng.permutation(n)
    n_held = min(int(_HELD_OUT * n), _MOST_HELD_OUT) if n >= _HELD_OUT_FROM else 0
    held, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
    classes = None if y is None else np.asarray(y)[kept]
    draws = draws_of(sampler, rng, len(objectives))
    choices = {"space": space, "objectives": tuple(objectives), "n_seeds": n_seeds, "metric": metric}
    seed = None if store is None else int(random_state)
    known = settings_of(X, y, **choices, sampler=type(draws).__name__, random_state=seed)
    fits = Store(store, known)
    placed = points[held] if n_held else None
    runner = Runner(points[kept], classes, placed, fits, n_jobs, rng, metric, "half stability" in objectives)
    methods = candidates(space, draws, runner.X)
    finish = _Deadline(seconds, callback)
    compared = references(metric)
    result = SearchResult(runner, list(objectives), {each.name: each for each in compared}, n_seeds, kept, held)
    for each in compared:
        for k in range(n_seeds):
            if k and finish.over:
                break
            finish(runner.fit(each, len(kept), k))
            result.check_objectives()
    result.take_seeds_of([each.name for each in compared])
    own = [fit.seconds for fit in result.fits if fit.name == "TSNE"]
    runner.patience = max(_LEAST_PATIENCE, _PATIENCE * min(own, default=0.0))
    methods = itertools.islice(methods, trials)
    while (bracket := list(itertools.islice(methods, _BRACKET))) and not finish.over:
        _run(bracket, runner, result, n_seeds, finish, draws)
    return result


def _check(objectives: Any, n_seeds: Any, metric: Any, store: Any, random_state: Any) -> None:
    check_integer("n_seeds", n_seeds, 1)
    if not isinstance(metric, str) or is_precomputed(metric):
        raise ValueError(f"metric must be the name of a distance between rows, got {metric!r}.")
    if isinstance(objectives, str):
        raise ValueError(f"objectives must be a list of names, such as [{objectives!r}].")
    if not objectives or ("stability" in objectives and n_seeds < 2):
        raise ValueError(
            f"objectives={objectives!r} must name a score"
            f"{', and stability needs n_seeds of at least 2' if objectives else ''}."
        )
    if store is not None and not isinstance(random_state, (int, np.integer)):
        raise ValueError(
            f"a search with a store draws the same again: give an integer random_state, got {random_state!r}."
        )


class _Deadline:
    """Whether the search is over: its time is spent, or the callback ended it."""

    def __init__(self, seconds: float, callback: Callable[[Fit], Any] | None) -> None:
        self._end, self._callback, self._stopped = time.perf_counter() + seconds, callback, False

    def __call__(self, fit: Fit) -> Fit:
        self._stopped |= bool(self._callback is not None and self._callback(fit))
        return fit

    @property
    def over(self) -> bool:
        return self._stopped or time.perf_counter() > self._end


def _budget(budget: Any) -> tuple[float, int | None]:
    """Return the seconds and the number of trials that a budget allows."""
    if isinstance(budget, Real) and float(budget) > 0 and budget is not True:
        return float(budget), None
    words = str(budget).strip().lower()
    number, unit = words.rstrip("abcdefghijklmnopqrstuvwxyz ").strip(), words.lstrip("0123456789. ").strip()
    try:
        size = float(number)
    except ValueError:
        size = -1.0
    # "mins" are minutes, but "ms" are not.
    unit_seconds = _UNITS.get(unit) or _UNITS.get(unit.removesuffix("s") if len(unit) > 3 else "")
    if size > 0 and unit_seconds:
        return size * unit_seconds, None
    if size >= 1 and size.is_integer() and unit in ("trial", "trials"):
        return np.inf, int(size)
    raise ValueError(
        f'budget must be a time such as "10min" or a number of trials such as "60 trials", got {budget!r}.'
    )


def _run(
    bracket: list[Candidate], runner: Runner, result: SearchResult, n_seeds: int, finish: _Deadline, draws: Draws
) -> None:
    n = runner.X.shape[0]
    sizes = [max(_LEAST_ROWS, int(share * n)) for share in _SHARES[:-1]]
    sizes = [size for size in dict.fromkeys(sizes) if size < 2 * n // 3] if len(bracket) == _BRACKET else []
    result.methods |= {each.name: each for each in bracket}
    for size in sizes:
        fits = []
        for each in bracket:
            if finish.over:
                return
            fits.append(finish(runner.fit(each, size, 0)))
            draws.tell(each.name, result.signed(fits[-1]))
        order = result.layers(fits)
        bracket = [bracket[i] for i in order[: max(1, round(_KEPT * len(bracket)))]]
    for each in bracket:
        for seed in range(n_seeds):
            if finish.over:
                return
            fit = finish(runner.fit(each, n, seed))
            draws.tell(each.name, result.signed(fit))
            if not fit.scores:
                break
