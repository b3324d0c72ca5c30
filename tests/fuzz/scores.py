"""Fuzzed scores and pictures: a seed gives data, maps, classes and a function of `metrics` or `plotting`."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

from graphcouple import metrics, plotting
from tests.fuzz.check import wrong_error


class Call(NamedTuple):
    """One call.

    Attributes
    ----------
    what : str
    function : callable
    arguments : dict
    bounds : (float, float) or None
        Where all numbers of the result must lie; None for a picture.
    """

    what: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    bounds: tuple[float, float] | None


def _pick(rng: np.random.Generator, *choices: Any, bad: tuple[Any, ...] = ()) -> Any:
    if bad and rng.uniform() < 0.1:
        choices = bad
    return choices[rng.integers(len(choices))]


def _points(rng: np.random.Generator, n: int) -> Any:
    p = int(_pick(rng, 1, 2, 5, 30))
    plain = rng.normal(size=(n, p)) * 10.0 ** _pick(rng, 0, 0, 0, -8, 8, bad=(-150, 150))
    made = _pick(
        rng,
        plain,
        plain[rng.integers(max(n // 3, 1), size=n)],
        plain + 1e6,
        rng.poisson(1.0, size=(n, p)).astype(float),
        plain[np.arange(n) % min(n, 2)],
        bad=(np.full((n, p), 2.0), plain * np.nan, plain[:0], plain[:, 0], plain.astype(complex)),
    )
    if made.ndim != 2 or made.dtype.kind == "c":
        return made
    forms = (
        np.asarray,
        np.asfortranarray,
        lambda A: A.astype(np.float32),
        sp.csr_array,
        pd.DataFrame,
        lambda A: A.tolist(),
    )
    with np.errstate(over="ignore"):
        return _pick(rng, *forms)(made)


def _map(rng: np.random.Generator, n: int) -> Any:
    q = int(_pick(rng, 1, 2, 2, 2, 3))
    Z = rng.normal(size=(int(_pick(rng, n, bad=(n + 1,))), q)) * 10.0 ** _pick(rng, 0, 0, 2, -6, bad=(-160, 160))
    Z = _pick(
        rng, Z, Z[rng.integers(max(n // 3, 1), size=len(Z))], bad=(np.zeros((n, q)), Z * np.inf, Z[:, :0], Z[:, 0])
    )
    return _pick(rng, Z, np.asfortranarray(Z), Z.tolist(), pd.DataFrame(Z)) if Z.ndim == 2 else Z


def _classes(rng: np.random.Generator, n: int) -> Any:
    k = rng.integers(int(_pick(rng, 2, 3, 10, bad=(1, 200))), size=n)
    words = np.array(["$x^2$", "[/b]", "", "naïve", "\x1b[2J", "a" * 300, "0", "_hidden", "%s", "\n"])
    return _pick(
        rng,
        k,
        words[k % 10],
        k.tolist(),
        pd.Series(words[k % 10], dtype="category"),
        k.astype(float),
        k % 2 == 0,
        bad=(k[:-1], k * np.nan, rng.normal(size=n), np.array([None] * n), rng.normal(size=(n, 2)), [{}] * n),
    )


def call(seed: int) -> Call:
    """Return the call of a seed."""
    rng = np.random.default_rng(seed)
    n = int(_pick(rng, 12, 40, 90, bad=(1, 2, 3, 5)))
    X, Z, y = _points(rng, n), _map(rng, n), _classes(rng, n)
    K = _pick(rng, 1, 3, [1, 2], n // 3, bad=(0, n, -1, 2.5, "two", []))
    metric = _pick(rng, *["euclidean"] * 6, "cosine", "manhattan", bad=("precomputed", "none"))
    some = _pick(rng, None, None, 10, bad=(0, -3))
    rows = {"metric": metric, "n_rows": some, "random_state": 0}
    either = (0.0, 1.0)
    calls: dict[str, tuple[Callable[..., Any], dict[str, Any], tuple[float, float] | None]] = {
        "k_ary_preservation": (metrics.k_ary_preservation, {"X": X, "Z": Z, "K": K, **rows}, (-1.0, 1.0)),
        "trustworthiness": (metrics.trustworthiness, {"X": X, "Z": Z, "K": K, **rows}, either),
        "continuity": (metrics.continuity, {"X": X, "Z": Z, "K": K, **rows}, either),
        "neighborhood_curves": (_curves, {"X": X, "Z": Z, **rows}, (-1.0, np.inf)),
        "distance_correlation": (metrics.distance_correlation, {"X": X, "Z": Z, **rows}, (-1.0, 1.0)),
        "triplet_correlation": (metrics.triplet_correlation, {"X": X, "Z": Z, **rows}, (-1.0, 1.0)),
        "seed_stability": (metrics.seed_stability, {"embeddings": [Z, _map(rng, n)]}, either),
        "knn_accuracy": (metrics.knn_accuracy, {"Z": Z, "y": y, "n_neighbors": _pick(rng, 1, 3, bad=(0, n))}, either),
        "cluster_scores": (_clusters, {"Z": Z, "y": y}, (-1.0, np.inf)),
        "class_mean_disparity": (metrics.class_mean_disparity, {"X": X, "Z": Z, "y": y}, either),
        "evaluate": (_table, {"X": X, "Z": Z, "y": _pick(rng, None, y), "K": _pick(rng, None, K), **rows}, None),
        "plot": (plotting.plot, {"Z": Z, "y": _pick(rng, None, y), "title": "$a [b] \x1b"}, None),
        "plot_density": (plotting.plot_density, {"Z": Z, "y": _pick(rng, None, y)}, None),
        "plot_class_means": (plotting.plot_class_means, {"Z": Z, "y": y}, None),
        "plot_grid": (plotting.plot_grid, {"embeddings": {"$a": Z, "b": _map(rng, n)}, "y": _pick(rng, None, y)}, None),
        "plot_graph": (plotting.plot_graph, {"Z": Z, "graph": _graph(rng, n), "y": _pick(rng, None, y)}, None),
        "plot_preservation": (_plotted_curves, {"X": X, "Z": Z}, None),
        "plot_loss": (plotting.plot_loss, {"history": _pick(rng, [3.0, 2.0], ([0, 5], [3, 1]), bad=([], "x"))}, None),
        "plot_eigenvalues": (plotting.plot_eigenvalues, {"eigenvalues": _pick(rng, [0.0, 0.5], bad=([], 3))}, None),
    }
    name = str(_pick(rng, *calls))
    return Call(name, *calls[name])


def _graph(rng: np.random.Generator, n: int) -> Any:
    dense = rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.2)
    damaged = sp.csr_array(dense)
    if damaged.nnz:
        damaged.indices[0] = 10**6
    return _pick(rng, dense, sp.csr_array(dense), sp.coo_array(dense), bad=(dense[:-1], dense * np.nan, damaged, "x"))


def _curves(**arguments: Any) -> Any:
    curves = metrics.neighborhood_curves(**arguments)
    return [np.asarray(part) for part in vars(curves).values() if isinstance(part, np.ndarray)]


def _plotted_curves(X: Any, Z: Any) -> Any:
    return plotting.plot_preservation(metrics.neighborhood_curves(X, Z))


def _clusters(Z: Any, y: Any) -> Any:
    return np.array([value for value in metrics.cluster_scores(Z, y) if isinstance(value, float)])


def _table(**arguments: Any) -> Any:
    return metrics.evaluate(**arguments).to_numpy(dtype=float)


def call_failure(seed: int) -> str | None:
    """Return what is wrong with the call of a seed, or None."""
    import matplotlib.pyplot as plt

    one = call(seed)
    before = {name: _content(value) for name, value in one.arguments.items()}
    why = _outcome(one)
    plt.close("all")
    if why is None and any(_content(value) != before[name] for name, value in one.arguments.items()):
        why = "an argument was changed"
    if why is None:
        return None
    shown = {name: _short(value) for name, value in one.arguments.items()}
    return f"{one.what}({shown}): {why}"


def _short(value: Any) -> str:
    text = f"{type(value).__name__}{getattr(value, 'shape', '')} {value!r}"
    return " ".join(text.split())[:70]


def _content(value: Any) -> Any:
    if sp.issparse(value):
        return value.data.tobytes()
    if isinstance(value, dict):
        return {name: _content(part) for name, part in value.items()}
    return np.asarray(value).tobytes() if isinstance(value, (np.ndarray, pd.DataFrame)) else repr(value)


def _outcome(one: Call) -> str | None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = one.function(**one.arguments)
            if hasattr(result, "figure"):
                result.figure.savefig(io.BytesIO(), format="png", dpi=40)
            elif hasattr(result, "savefig"):
                result.savefig(io.BytesIO(), format="png", dpi=40)
        except (ValueError, TypeError) as error:
            return wrong_error(error)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    inner = [w for w in said if issubclass(w.category, (RuntimeWarning, DeprecationWarning, FutureWarning))]
    if inner:
        return f"inner warning {inner[0].category.__name__}: {inner[0].message} ({inner[0].filename}:{inner[0].lineno})"
    if one.bounds is None:
        return None
    parts = result if isinstance(result, list) else [result]
    numbers = np.concatenate([np.asarray(part, dtype=float).ravel() for part in parts])
    low, high = one.bounds
    sound = np.isfinite(numbers).all() and (numbers >= low - 1e-9).all() and (numbers <= high + 1e-9).all()
    return None if sound else f"numbers from {numbers.min()} to {numbers.max()}"
