"""Methods side by side on the same data: their maps, their scores, and how both vary with the seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from traceback import clear_frames
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from graphcouple._support.html import html_table
from graphcouple._support.validation import are_measured, check_integer, check_labels, own_copy, warn
from graphcouple.estimators.embedding import EmbeddingEstimator
from graphcouple.graphs import FloatArray
from graphcouple.metrics import seed_stability
from graphcouple.metrics._evaluate import as_table, check_scoring, score_each
from graphcouple.metrics._relations import as_map
from graphcouple.neighbors import as_points, is_precomputed

# What a summary shows, in hundredths.
_SHOWN = ("R(", "triplet correlation", "-NN accuracy")


class Comparison:
    """Embeddings of the same data and their scores, as `compare` returns them; printing it shows a summary.

    `embeddings` and `scores` are dicts by name and seed. A score is a dict of the scores of
    `graphcouple.metrics.evaluate`, and "seconds".
    """

    def __init__(self, embeddings: dict[Any, FloatArray], scores: dict[Any, dict[str, float]], y: Any = None) -> None:
        self.embeddings, self.scores, self._y = embeddings, scores, y

    @property
    def table(self) -> Any:
        """The scores with a row for each name and seed, a pandas.DataFrame; without pandas, `scores`."""
        return as_table(self.scores, several=True)

    def summary(self) -> tuple[list[str], list[list[str]]]:
        """Return the names of the columns and a row for each method: means ± standard deviations over seeds.

        Scores are in hundredths; "stability" is `graphcouple.metrics.seed_stability`.
        """
        known = max(self.scores.values(), key=len)
        # Few points have smaller neighbourhoods.
        shown = [score for score in known if score.startswith(_SHOWN) or score.endswith(_SHOWN)]
        shown = [score for score in shown if not score.endswith("±")]
        several = any(seed for _, seed in self.scores)
        header = [score.replace(" correlation", "s").replace(" accuracy", "") for score in shown]
        rows = []
        for name in dict.fromkeys(name for name, _ in self.scores):
            runs = [run for run in self.scores if run[0] == name]
            cells = [_spread([100 * self.scores[run].get(score, np.nan) for run in runs]) for score in shown]
            if several:
                # Maps in one place have no scores, and no similarity to other maps.
                maps = [self.embeddings[run] for run in runs if len(self.scores[run]) > 1]
                cells.append(f"{100 * seed_stability(maps):.1f}" if len(maps) > 1 else "")
            rows.append([_text(name), *cells, _spread([self.scores[run]["seconds"] for run in runs])])
        return ["method", *header, *(["stability"] if several else []), "seconds"], rows

    def plot(self, **options: Any) -> Any:
        """Draw the maps of the first seed by `graphcouple.plotting.plot_grid`, and return its axes."""
        from graphcouple.plotting import plot_grid

        first: dict[Any, FloatArray] = {}
        for (name, _), Z in self.embeddings.items():
            first.setdefault(name, Z)
        return plot_grid(first, self._y, **options)

    def __repr__(self) -> str:
        header, rows = self.summary()
        widths = [max(len(row[c]) for row in [header, *rows]) for c in range(len(header))]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in [header, *rows]
        ]
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        return html_table(*self.summary())


def compare(
    methods: Mapping[Any, Any],
    X: Any,
    y: Any = None,
    *,
    seeds: int = 1,
    metric: str = "euclidean",
    n_rows: int | str | None = "auto",
    n_jobs: int | None = None,
    fit: Callable[[Any, int, Any, Any], Any] | None = None,
) -> Comparison:
    """Embed the same data with several methods, and score the maps.

    Parameters
    ----------
    methods : mapping of names to estimators, or list of estimators
        Estimators of this or another library, or pipelines, by names or by the names of their classes; each is cloned,
        and gets a copy of `X`. The map is `embedding_`, or what `fit_transform` returns. Names that are pairs (row,
        column) make the picture a table.
    X : array or sparse matrix of shape (n_samples, n_features)
    y : array of shape (n_samples,), optional
        Classes, for scores of classes and the colours of the picture; numbers that are not whole are colours only. No
        method sees them.
    seeds : int, default=1
        Fits of each method, with every ``random_state`` 0, 1, …; a method without one is fitted once.
    metric, n_rows, n_jobs
        For the scores; see `graphcouple.metrics.evaluate`. The methods have their own.
    fit : callable, optional
        Called as ``fit(name, seed, estimator, X)`` in place of ``estimator.fit(X)``, to report progress. The map is
        `embedding_`, of the last step of a pipeline, or what `fit` returns.

    Returns
    -------
    Comparison

    Raises
    ------
    TypeError, ValueError
        When there are no methods, one is no estimator, or the data cannot be scored. Also when `X` holds distances for
        the scores, but points for a method, or the reverse.

    Warns
    -----
    UserWarning
        When a map is curved or all its points are in one place, and when a method failed; the first error is raised if
        all failed.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> compared = gc.compare({"PCA": gc.PrecisionCoupling(), "t-SNE": gc.TSNE(max_iter=100)}, X, y, seeds=2)
    >>> list(compared.embeddings)
    [('PCA', 0), ('PCA', 1), ('t-SNE', 0), ('t-SNE', 1)]
    >>> compared.summary()[0]
    ['method', 'R(10)', 'R(n/4)', 'R(n/2)', 'triplets', '10-NN', 'stability', 'seconds']
    """
    methods = _by_name(methods, metric)
    check_integer("seeds", seeds, 1)
    # Refuse data that cannot be scored before any fit.
    n = as_points(X, at_least=4).shape[0]
    classes = None if y is None or are_measured(check_labels(y, n)) else y
    _, codes, *_ = check_scoring(X, classes, None, n_rows, metric)
    maps: dict[Any, FloatArray] = {}
    seconds: dict[Any, float] = {}
    failures: dict[Any, Exception] = {}
    for name, method in methods.items():
        for seed in range(seeds if _random_names(method) else 1):
            estimator = with_seed(method, seed)
            # A method may write to its input, which is not to change the other methods and the scores.
            own = own_copy(X)
            start = time.perf_counter()
            try:
                Z = fitted_map(estimator, own) if fit is None else _map_of(estimator, fit(name, seed, estimator, own))
                if Z.dtype.kind == "f" and not np.isfinite(Z).all():
                    raise ValueError("its map is not finite")
                Z = as_map(Z, "its map", n)
            except Exception as error:
                # A failed method loses its row, with the maps of its earlier seeds; the other rows stay.
                failures[name] = error
                clear_frames(error.__traceback__)
                for earlier in range(seed):
                    del maps[name, earlier], seconds[name, earlier]
                break
            maps[name, seed], seconds[name, seed] = Z, time.perf_counter() - start
            if seed == 0:
                warn_if_curved(estimator)
            # Memory need not hold two copies.
            del estimator, own
    if failures and not maps:
        raise next(iter(failures.values()))
    for name, failure in failures.items():
        warn(f"{_text(name)} failed, and is left out: {type(failure).__name__}: {failure}")
    scored = {run: Z for run, Z in maps.items() if np.ptp(Z, axis=0).any()}
    if len(scored) < len(maps):
        flat = ", ".join(dict.fromkeys(_text(name) for name, seed in maps if (name, seed) not in scored))
        warn(f"all points of a map are in one place, which has no scores: {flat}.")
    scores = score_each(X, scored, classes, codes=codes, metric=metric, n_rows=n_rows, n_jobs=n_jobs) if scored else {}
    return Comparison(maps, {run: {"seconds": seconds[run], **scores.get(run, {})} for run in maps}, y)


def _by_name(methods: Any, metric: str) -> Mapping[Any, Any]:
    """Return methods by name, each an estimator of points or, as the scores, of distances."""
    if isinstance(methods, (list, tuple)):
        named = {type(method).__name__: method for method in methods}
        methods = named if 0 < len(named) == len(methods) else methods
    if not isinstance(methods, Mapping) or not methods:
        raise TypeError(
            "methods must map names to estimators, such as {'tsne': TSNE()}, or list estimators of different names, "
            f"got {methods!r}."
        )
    for name, method in methods.items():
        if isinstance(method, type) or not (hasattr(method, "fit") and hasattr(method, "get_params")):
            raise TypeError(f"methods[{name!r}] must be an estimator with fit and get_params, got {method!r}.")
        if _takes_distances(method, metric) != is_precomputed(metric):
            taken = "points" if is_precomputed(metric) else "distances"
            raise ValueError(f"methods[{name!r}] takes {taken}, but the scores have metric={metric!r}.")
    return methods


def with_seed(method: Any, seed: int) -> Any:
    """Return a copy of a method with every parameter ``random_state`` set."""
    return clone(method).set_params(**dict.fromkeys(_random_names(method), seed))


def fitted_map(method: Any, X: Any, **arguments: Any) -> FloatArray:
    """Fit a method, and return its map: `embedding_`, or the places that `fit_transform` returns."""
    fit = method.fit_transform if hasattr(method, "fit_transform") else method.fit
    return _map_of(method, fit(X, **arguments))


def _map_of(method: Any, returned: Any) -> FloatArray:
    """Return the map of a fitted method, given what its fit returned."""
    places = getattr(_last_step(method), "embedding_", returned)
    if places is method or places is None:
        raise TypeError(f"{type(method).__name__} has no embedding_ after its fit, which returns no map either.")
    return np.asarray(places)


def warn_if_curved(method: Any) -> None:
    """Warn if the map of a fitted method lies in a curved space, whose distances scores do not know."""
    fitted = _last_step(method)
    space = getattr(getattr(fitted, "estimator_", fitted), "_space", None)
    if space is not None:
        warn(
            f"{type(fitted).__name__}'s map is curved, and these scores read its coordinates as flat; its own "
            f"distances are laws.{space!r}.between(embedding_)."
        )


def _last_step(method: Any) -> Any:
    return method[-1] if isinstance(method, Pipeline) else method


def _random_names(method: Any) -> list[str]:
    return [name for name in method.get_params() if name == "random_state" or name.endswith("__random_state")]


def _spread(values: list[float]) -> str:
    mean = f"{np.mean(values):.1f}"
    return mean if len(values) == 1 else f"{mean}±{np.std(values, ddof=1):.1f}"


def _text(name: Any) -> str:
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)


def _takes_distances(method: Any, metric: Any) -> bool:
    """Return whether a method takes distances; if it does not say, whether the scores do."""
    if isinstance(method, EmbeddingEstimator):
        return method.takes_distances
    return is_precomputed(method.get_params().get("metric", metric))
