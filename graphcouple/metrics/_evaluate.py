"""All scores of embeddings at once."""

import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._support.registry import Registry
from graphcouple._support.validation import check_integer, errors_named, is_word, own_copy, warn
from graphcouple.metrics._classes import check_classes, class_mean_disparity, cluster_scores, knn_accuracy
from graphcouple.metrics._distances import Undefined, correlation_of, triplets_of
from graphcouple.metrics._neighborhoods import check_sizes, curves_of
from graphcouple.metrics._relations import Relations, as_map, relate
from graphcouple.metrics._tears import LENGTH, neighbors_of, tears_of
from graphcouple.neighbors import as_points, is_precomputed
from graphcouple.neighbors.by_metric import metric_names

ALL_ROWS = 12_000
"""Up to this many points, scores are of all rows: 10,000 take five seconds."""

SAMPLED_ROWS = 1280
"""Rows of a sample of more points, with standard errors of at most .003 (benchmarks/evaluation.py)."""

# Metrics whose parameters come from all rows, not from a block.
_WITH_PARAMETERS = ("mahalanobis", "seuclidean")

# Neighbours of local scores, and folds of classifiers.
_LOCAL, _FOLDS = 10, 5

Score = Callable[[Any, Any, Any], float | None]

LESS_IS_BETTER = ("torn edges", "flung points", "detached points", "Davies-Bouldin", "class-mean disparity")
"""The scores of `evaluate` that are losses."""

BUILT_IN = (
    *("R", "R area", "trustworthiness", "continuity", "distance correlation", "triplet correlation", "10-NN accuracy"),
    *("NMI", "silhouette", *LESS_IS_BETTER),
)
"""The scores of `evaluate`, without the sizes in parentheses."""

# Columns that `compare` and `search` put beside the scores.
_BESIDE = ("seconds", "stability", "half stability", "rows", "seeds", "front", "warnings")

SCORES: Registry[Score] = Registry("score", "a function of X, Z and y")
"""Registered scores, which `evaluate` adds to the built-in ones."""


def register(name: str) -> Callable[[Score], Score]:
    """Register a score for `evaluate` and the commands; decorates a function ``score(X, Z, y)``.

    The function returns a number, or None if the score does not apply. `y` is None if no classes were given. Arrays
    cannot be written to.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> @gc.metrics.register("spread")
    ... def spread(X, Z, y):
    ...     return float(np.std(Z))
    >>> X, y = gc.datasets.load("iris")
    >>> bool(gc.metrics.evaluate(X, X[:, :2])["spread"] == np.std(X[:, :2]))
    True
    >>> gc.metrics.unregister("spread")
    """
    if str(name).partition("(")[0] in BUILT_IN or re.fullmatch(r"\d+-NN accuracy", str(name)):
        raise ValueError(f"{name!r} is a score of evaluate; register yours under another name.")
    if name in _BESIDE or str(name).startswith("held out ") or str(name).endswith(" ±"):
        raise ValueError(f"{name!r} is a column of compare and search; register your score under another name.")
    remember = SCORES.register(name)

    def checked(score: Score) -> Score:
        if not callable(score):
            raise TypeError(f"the score {name!r} must be a function of X, Z and y, got {score!r}.")
        return remember(score)

    return checked


def unregister(name: str) -> None:
    """Remove a score that `register` added.

    Examples
    --------
    >>> import graphcouple as gc
    >>> deviation = gc.metrics.register("deviation")(lambda X, Z, y: float(Z.std()))
    >>> X, y = gc.datasets.load("iris")
    >>> "deviation" in gc.metrics.evaluate(X, X[:, 2:])
    True
    >>> gc.metrics.unregister("deviation")
    >>> "deviation" in gc.metrics.evaluate(X, X[:, 2:])
    False
    """
    SCORES.remove(name)


def evaluate(
    X: Any,
    Z: Any,
    y: Any = None,
    *,
    metric: str = "euclidean",
    K: Any = None,
    n_rows: int | str | None = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> Any:
    """Score one or several embeddings of the same data, in one pass over the distances of the data.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    Z : array of shape (n, q), or mapping of names to arrays
    y : array of shape (n,), optional
        Classes; without them there are no scores of classes.
    metric : str, default="euclidean"
        The distance of `X`: a metric of the estimators that is a name and needs no parameters, or "precomputed" for a
        square array of distances, for which there is no class-mean disparity.
    K : int or sequence of int, optional
        Sizes of the neighborhoods whose preservation is reported; the default is 10, n/4 and n/2.
    n_rows : int, "auto" or None, default="auto"
        The number of random points whose distances to all others are used; None for all. "auto" is all up to 12,000
        points and 1,280 beyond. The scores of a sample come with standard errors.
    random_state : int, Generator, RandomState or None, default=0
    n_jobs : int, optional
        Threads; the default is every core.

    Returns
    -------
    pandas.Series, or pandas.DataFrame with a row for each name
        Without pandas, a dict or a dict of dicts. The scores are:

        - "R(10)", "R(n/4)", "R(n/2)": `k_ary_preservation`, and "R area", the area under R(K) over log K;
        - "trustworthiness(10)", "continuity(10)";
        - "torn edges", "flung points", "detached points": see `tears`, for which all points are compared;
        - "distance correlation", "triplet correlation";
        - with classes, "10-NN accuracy" (5 folds, or as many as the largest class has points), "NMI", "silhouette" and
          "Davies-Bouldin" of k-means, and "class-mean disparity" (NaN for two classes).

        A score that is undefined, as for points that are all equally far apart, is NaN, with a warning.

        Names that end in " ±" are standard errors.

    Raises
    ------
    TypeError, ValueError
        When an array is not numeric or not finite, numbers of rows differ, K is out of range, `y` holds a single
        class, or all points of an embedding are in one place.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> scores = gc.metrics.evaluate(X, {"petals": X[:, 2:], "sepals": X[:, :2]}, y)
    >>> bool(scores.loc["petals", "10-NN accuracy"] > scores.loc["sepals", "10-NN accuracy"])
    True
    """
    if isinstance(Z, (list, tuple)) and any(np.ndim(each) == 2 for each in Z):
        raise ValueError("Z holds several embeddings; name them in a dict, as {'tsne': Z, 'umap': W}.")
    embeddings = dict(Z) if isinstance(Z, Mapping) else {"": Z}
    table = score_each(X, embeddings, y, metric=metric, K=K, n_rows=n_rows, random_state=random_state, n_jobs=n_jobs)
    return as_table(table, isinstance(Z, Mapping))


@dataclass(frozen=True)
class scorer:
    """A score of `evaluate` for scikit-learn's model selection; it scores the output of `transform`.

    Parameters
    ----------
    score : str, default="trustworthiness"
        The name of a score of `evaluate`, or of one that `register` added; "trustworthiness" and "continuity" need no
        number of neighbours.
    greater_is_better : bool, optional
        False for losses: the score is then negative. For registered scores only, since the losses among the scores of
        `evaluate` are known.
    metric : str, default="euclidean"
        The distance of the data.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> grid = {"perplexity": [10, 30]}
    >>> search = GridSearchCV(gc.TSNE(random_state=0), grid, scoring=gc.metrics.scorer("R(10)"), cv=2).fit(X)
    >>> sorted(search.best_params_)
    ['perplexity']
    """

    score: str = "trustworthiness"
    greater_is_better: bool | None = None
    metric: str = "euclidean"

    def __post_init__(self) -> None:
        if not isinstance(self.score, str):
            raise TypeError(f"score must be the name of a score, got {self.score!r}.")
        if self.score not in SCORES and self.score.partition("(")[0] not in BUILT_IN:
            known = ", ".join((*BUILT_IN, *SCORES.names()))
            raise ValueError(f"score must be one of {known}, with its size in parentheses if any, got {self.score!r}.")
        _check_metric(self.metric)

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Return the score of the output of `transform` for `X`; only scores of classes use `y`."""
        # A pipeline may write to its input.
        Z = {"": estimator.transform(own_copy(X))}
        scores = score_each(X, Z, None, metric=self.metric)[""]
        # Only scores of classes use y; for others, y need not hold classes.
        if self._find(scores) is None and y is not None:
            scores = score_each(X, Z, y, metric=self.metric)[""]
        name = self._find(scores)
        if name is None:
            raise ValueError(
                f"{self.score!r} is no score of these {len(as_map(Z['']))} rows{self._why_none(scores, y)}"
            )
        greater = name not in LESS_IS_BETTER if self.greater_is_better is None else self.greater_is_better
        return scores[name] if greater else -scores[name]

    def _why_none(self, scores: dict[str, float], y: Any) -> str:
        base = self.score.partition("(")[0]
        sizes = [name for name in scores if name.partition("(")[0] == base and not name.endswith("±")]
        if sizes:
            more = ", or more rows, in fewer folds" if "(" in self.score else ""
            return f", but {', '.join(sizes)} are: take one of them{more}."
        return ": it compares classes, and y is None. Pass y." if y is None else f"; there are {', '.join(scores)}."

    def _find(self, scores: dict[str, float]) -> str | None:
        """Return the score's name in the table; for few points, the neighbourhoods are smaller than requested."""
        if self.score in scores:
            return self.score
        # The table of a sample of rows has standard errors too.
        values = [name for name in scores if not name.endswith("±")]
        same = [name for name in values if self.score and name.partition("(")[0] == self.score]
        return same[0] if len(same) == 1 else None


def score_each(
    X: Any,
    maps: dict[Any, Any],
    y: Any,
    *,
    codes: Any = None,
    metric: str = "euclidean",
    K: Any = None,
    n_rows: Any = "auto",
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> dict[Any, dict[str, float]]:
    """Return the scores of each embedding by its name; `codes` are numbers of the classes that are known already."""
    points, codes, sizes, n_rows = check_scoring(X, y if codes is None else codes, K, n_rows, metric)
    if not maps:
        raise ValueError("Z must name at least one embedding.")
    maps = {name: as_map(Z, "Z" if name == "" else f"Z[{name!r}]", points.shape[0]) for name, Z in maps.items()}
    relations = relate(points, [*maps.values()], metric=metric, n_rows=n_rows, random_state=random_state, n_jobs=n_jobs)
    local = min(_LOCAL, points.shape[0] - 2)
    near, classes = neighbors_of(points, codes, local, metric, n_jobs)
    table = {}
    for (name, embedding), relation in zip(maps.items(), relations, strict=True):
        scores = _geometry(relation, sizes, local)
        tears = tears_of(near, embedding, classes, LENGTH, n_jobs)
        scores |= {"torn edges": tears.edges, "flung points": tears.flung, "detached points": tears.detached}
        if codes is not None:
            scores |= _classes(None if is_precomputed(metric) else points, embedding, codes, random_state, n_jobs)
        own_scores = {score: _registered(score, points, embedding, y) for score in SCORES.names()}
        table[name] = scores | {score: value for score, value in own_scores.items() if value is not None}
    return table


def _registered(name: str, points: Any, embedding: Any, y: Any) -> float | None:
    # A score that changes its arguments would change the user's arrays.
    with errors_named(f"the registered score {name!r} of X, Z and y failed"):
        own_y = _read_only(y) if isinstance(y, np.ndarray) else deepcopy(y)
        value = SCORES[name](_read_only(points), _read_only(embedding), own_y)
        return None if value is None else float(value)


def _read_only(values: Any) -> Any:
    if sp.issparse(values):
        parts = tuple(map(_read_only, (values.data, values.indices, values.indptr)))
        return type(values)(parts, shape=values.shape, copy=False)
    if not isinstance(values, np.ndarray):
        return values
    view = values.view()
    view.flags.writeable = False
    return view


def _check_metric(metric: Any) -> None:
    # Neighbors are searched by these metrics alone.
    known = [name for name in metric_names() if name not in _WITH_PARAMETERS]
    if not isinstance(metric, str) or metric not in (*known, "precomputed"):
        raise ValueError(f"metric must be 'precomputed' or one of {known}, got {metric!r}.")


def check_scoring(X: Any, y: Any, K: Any, n_rows: Any, metric: Any) -> tuple[Any, Any, dict[str, int], int | None]:
    """Return the points, the numbers of their classes, sizes of neighborhoods by name, and how many rows to use."""
    _check_metric(metric)
    points = as_points(X, at_least=4)
    n = points.shape[0]
    classes = None if y is None else check_classes(y, n)
    if is_word("n_rows", n_rows, "auto", "a number of points or None"):
        n_rows = None if n <= ALL_ROWS else SAMPLED_ROWS
    elif n_rows is not None:
        check_integer("n_rows", n_rows, 2)
    if K is not None:
        return points, classes, {f"R({k})": k for k in check_sizes(K, n)}, n_rows
    local = min(_LOCAL, n - 2)
    return points, classes, {f"R({local})": local, "R(n/4)": n // 4, "R(n/2)": n // 2}, n_rows


def _geometry(relations: Relations, sizes: dict[str, int], local: int) -> dict[str, float]:
    curves = curves_of(relations)
    values = {name: (curves.preservation[k - 1], curves.preservation_error[k - 1]) for name, k in sizes.items()}
    values["R area"] = (curves.area, None)
    # These two scores need K below half the points.
    K = min(local, (relations.n - 1) // 2)
    values[f"trustworthiness({K})"] = (curves.trustworthiness[K - 1], curves.trustworthiness_error[K - 1])
    values[f"continuity({K})"] = (curves.continuity[K - 1], curves.continuity_error[K - 1])
    values["distance correlation"] = (_or_nan("distance correlation", lambda: correlation_of(relations)), None)
    values["triplet correlation"] = triplets_of(relations)
    scores = {}
    for name, (value, error) in values.items():
        scores[name] = float(value)
        if relations.n_rows < relations.n and error is not None:
            scores[f"{name} ±"] = float(error)
    return scores


def _classes(points: Any, Z: Any, y: Any, random_state: Any, n_jobs: int | None) -> dict[str, float]:
    names = "NMI, silhouette and Davies-Bouldin"
    clusters = _or_nan(names, lambda: cluster_scores(Z, y, random_state=random_state), (np.nan,) * 3)
    counts = np.bincount(y)
    folds = min(_FOLDS, int(counts.max()))
    nearest = min(_LOCAL, len(Z) - -(-len(Z) // folds))
    scores = {f"{nearest}-NN accuracy": knn_accuracy(Z, y, nearest, n_folds=folds, n_jobs=n_jobs)}
    scores |= dict(zip(("NMI", "silhouette", "Davies-Bouldin"), clusters, strict=True))
    if points is not None:
        # For two classes, the disparity is always 0.
        name = "class-mean disparity"
        scores[name] = _or_nan(name, lambda: class_mean_disparity(points, Z, y)) if counts.size > 2 else np.nan
    return scores


def _or_nan(names: str, score: Callable[[], Any], otherwise: Any = np.nan) -> Any:
    """Return a score, or NaN with a warning where it is undefined."""
    try:
        return score()
    except Undefined as error:
        warn(f"no {names}: {error}")
        return otherwise


def as_table(table: dict[Any, dict[str, float]], several: bool) -> Any:
    """Return scores as a pandas.DataFrame, or as a Series for one embedding; without pandas, unchanged."""
    try:
        import pandas as pd
    except ModuleNotFoundError:
        return table if several else table[""]
    return pd.DataFrame.from_dict(table, orient="index") if several else pd.Series(table[""])
