"""Checks of user input: each message names the argument, the value and the remedy."""

from __future__ import annotations

import copy
import inspect
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from importlib import import_module
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_positive(name: str, value: Any) -> float:
    """Return `value` as a float; raise unless it is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a positive number, got {value!r} of type {type(value).__name__}.")
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}.")
    return number


MOST_BYTES = int(os.environ.get("GRAPHCOUPLE_MOST_BYTES", 16 * 2**30))
"""The largest size of a file in memory, known before it is read; GRAPHCOUPLE_MOST_BYTES in the environment sets it."""


def how_to_install(extra: str) -> str:
    """Return how to install an extra of the package."""
    return f"install the extra {extra!r}, in a clone by: python -m pip install '.[{extra}]'"


def require(module: str, need: str, extra: str) -> Any:
    """Return a module that an extra of the package installs; raise with the extra if it is missing."""
    try:
        import_module(module.partition(".")[0])
        return import_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{need}; {how_to_install(extra)}") from error


# Warnings point at the first line outside these packages. The command is a user of the library.
_INSIDE, _COMMAND = {"graphcouple", "sklearn", "joblib", "contextlib"}, "graphcouple.cli"


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code that called the library."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None:
        name = frame.f_globals.get("__name__", "")
        if name.partition(".")[0] not in _INSIDE or name.startswith(_COMMAND):
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def check_weight(value: Any, *words: str, name: str = "weight") -> None:
    """Raise unless a term's weight is a finite number of at least 0, or one of the words."""
    if isinstance(value, str) and value in words:
        return
    if isinstance(value, bool) or not (isinstance(value, Real) and 0 <= float(value) < np.inf):
        choices = "".join(f"{word!r} or " for word in words)
        raise ValueError(f"{name} must be {choices}a finite number of at least 0, got {value!r}.")


def is_word(name: str, value: Any, word: str, otherwise: str) -> bool:
    """Return whether `value` is the word; raise if it is another string."""
    if isinstance(value, str) and value != word:
        raise ValueError(f"{name} must be {word!r} or {otherwise}, got {value!r}.")
    return isinstance(value, str)


def takes_weights(fit: Any) -> bool:
    """Return whether a `fit` takes sample weights, by name or among other options."""
    known = inspect.signature(fit).parameters
    return "sample_weight" in known or any(each.kind is each.VAR_KEYWORD for each in known.values())


def check_fraction(name: str, value: Any) -> None:
    """Raise unless `value` is a number of at least 0 and below 1."""
    if isinstance(value, bool) or not (isinstance(value, Real) and 0 <= float(value) < 1):
        raise ValueError(f"{name} must be a number in [0, 1), got {value!r}.")


def at_most_others(n_neighbors: int, n_points: int) -> int:
    """Return `n_neighbors`; if there are fewer other points, warn and return their number."""
    if n_neighbors < n_points:
        return n_neighbors
    warn(f"n_neighbors={n_neighbors} is lowered to {n_points - 1}, the number of other points: n_samples = {n_points}.")
    return n_points - 1


def check_integer(name: str, value: Any, minimum: int) -> int:
    """Return `value` as an int; raise unless it is an integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}.")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}.")
    return int(value)


def check_unmasked(X: Any, name: str) -> None:
    """Raise if an entry of a masked array is masked: NumPy drops the mask and keeps the value."""
    # pandas' arrays with missing values have a mask too, but keep them missing.
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError(f"{name} has masked entries; impute or drop them first.")


def check_sparse(matrix: Any, name: str) -> None:
    """Raise unless every index of a sparse matrix lies within it: compiled loops do not check.

    SciPy checks only a few of the indices.
    """
    try:
        if matrix.format in ("csr", "csc", "bsr"):
            if (np.diff(matrix.indptr) < 0).any():
                raise ValueError("its indptr must not fall")
            type(matrix)((matrix.data, matrix.indices, matrix.indptr), shape=matrix.shape).check_format(full_check=True)
        else:
            entries = matrix.tocoo()
            type(entries)((entries.data, (entries.row, entries.col)), shape=entries.shape)
    except (ValueError, IndexError, TypeError) as error:
        raise ValueError(f"{name} is damaged: {' '.join(str(error).split())}.") from None


def check_embedding(Z: Any, name: str = "Z", n_points: int | None = None) -> NDArray[np.floating[Any]]:
    """Return `Z` as a finite (n, q) float array, without a copy if it already is one."""
    check_unmasked(Z, name)
    array = np.asarray(Z)
    if array.dtype not in (np.float32, np.float64):
        if array.dtype.kind not in "iufb":
            raise TypeError(f"{name} must be numeric, got an array of dtype {array.dtype}.")
        array = array.astype(np.float64)
    if array.ndim != 2 or array.shape[1] < 1:
        raise ValueError(
            f"{name} must have shape (n_points, n_components), got {array.shape}; "
            "reshape a single component with Z[:, None]."
        )
    if n_points is not None and array.shape[0] != n_points:
        raise ValueError(f"{name} has {array.shape[0]} rows, but the graph has {n_points} nodes.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity; every entry must be finite.")
    return array


def check_answer(answer: Any) -> bool:
    """Return whether a callback's answer stops a run; raise if it is no truth value."""
    try:
        return bool(answer)
    except ValueError:
        got = type(answer).__name__
        raise TypeError(f"callback must return whether to stop the run, or None, got {got}.") from None


def refuse_estimator(value: Any, name: str = "Z") -> None:
    """Raise if an estimator is passed instead of its embedding."""
    owner = value.__name__ if isinstance(value, type) else type(value).__name__
    steps = getattr(value, "steps", None)
    if isinstance(steps, list) and steps and hasattr(steps[-1][1], "embedding_"):
        value, owner = steps[-1][1], "pipeline[-1]"
    if hasattr(value, "embedding_"):
        raise TypeError(f"{name} must be an array; pass {owner}.embedding_ rather than the estimator.")
    if hasattr(value, "embeddings_") and not isinstance(value, type):
        raise TypeError(f"{name} must be an array; pass one of {owner}.embeddings_ rather than the estimator.")
    if hasattr(value, "fit"):
        raise TypeError(f"{name} must be an array, and {owner} has no embedding_: fit an estimator first.")
    if hasattr(value, "obsm"):
        raise TypeError(f"{name} must be an array; pass one of {sorted(value.obsm)} in {owner}.obsm.")


UNLABELLED = -1
"""The label of a point of unknown class or number."""


def check_labels(y: Any, n: int, name: str = "y", dates: bool = False) -> NDArray[Any]:
    """Return labels as a flat array of numbers, strings or booleans, one per point and none missing.

    With `dates`, they may be dates too, as datetime64.
    """
    check_unmasked(y, name)
    # NumPy would give a mixed list one type, turning its numbers into strings.
    labels = np.asarray(y) if hasattr(y, "dtype") else np.array(y, dtype=object)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels.ravel()
    if labels.shape != (n,):
        count = f"{labels.size} entries" if labels.ndim == 1 else f"shape {labels.shape}"
        raise ValueError(f"{name} has {count}, but there are {n} points; give one for each.")
    if labels.dtype.kind not in "biufUSmM":
        labels = _plain_labels(labels.tolist(), name, dates)
    if labels.dtype.kind in ("m" if dates else "mM"):
        raise TypeError(f"{name} must hold either numbers or names, got {labels.dtype}; convert them to str.")
    if labels.dtype.kind == "M" and np.isnat(labels).any():
        raise _missing(name)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"{name} holds NaN or infinity; drop those points, or give them a class of their own.")
    return labels


def are_measured(labels: NDArray[Any]) -> bool:
    """Return whether labels, as of `check_labels`, are numbers of which one has a fraction, which are no classes."""
    return labels.dtype.kind == "f" and bool((labels != np.floor(labels)).any())


def _missing(name: str) -> ValueError:
    return ValueError(f"{name} holds missing labels; drop those points, or give them a class such as 'unknown'.")


def _plain_labels(labels: list[Any], name: str, dates: bool) -> NDArray[Any]:
    # NaN is the one float that differs from itself; pandas' NA cannot be compared.
    if any(
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
        for value in labels
    ):
        raise _missing(name)
    if all(isinstance(value, str) for value in labels):
        return np.array(labels, dtype=np.str_)
    if all(isinstance(value, (Real, np.bool_)) for value in labels):
        numbers = np.array(labels)
        # Integers of over 64 bits would not differ as floats.
        exact = numbers.dtype.kind != "O" or all(isinstance(value, Integral) for value in labels)
        return numbers if exact else numbers.astype(np.float64)
    if dates and all(isinstance(value, (date, np.datetime64)) for value in labels):
        return _plain_dates(labels, name)
    kinds = ", ".join(sorted({type(value).__name__ for value in labels}))
    raise TypeError(f"{name} must hold either numbers or names, got {kinds}; convert them to str.")


def _plain_dates(dates: list[Any], name: str) -> NDArray[Any]:
    """Return dates in their time zone, or in UTC if they have several."""
    # pytz has an object for each offset of a zone, with the same name.
    zones = {zone and str(zone) for zone in (getattr(value, "tzinfo", None) for value in dates)}
    if None in zones and len(zones) > 1:
        raise TypeError(f"{name} holds dates with and without a time zone; give all of them a zone, or none.")
    # NumPy warns of time zones, which it does not keep.
    local = dates if None in zones else [value.replace(tzinfo=None) for value in dates]
    at = np.array(local, dtype="datetime64[us]")
    return at - np.array([value.utcoffset() for value in dates], "timedelta64[us]") if len(zones) > 1 else at


def check_random_state(random_state: Any) -> np.random.Generator:
    """Return a generator for a seed, a Generator, a RandomState or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError):
        raise ValueError(
            f"random_state must be a seed of at least 0, a Generator, or None, got {random_state!r}."
        ) from None


def seeded_clone(estimator: Any, rng: np.random.RandomState) -> Any:
    """Return a clone of a scikit-learn estimator, in which every empty `random_state` gets a seed from `rng`."""
    from sklearn.base import clone

    if isinstance(estimator, type):
        raise TypeError(f"{estimator.__name__} is a class; pass an instance, {estimator.__name__}().")
    copy = clone(estimator)
    for name, value in sorted(copy.get_params(deep=True).items()):
        if value is None and (name == "random_state" or name.endswith("__random_state")):
            copy.set_params(**{name: int(rng.randint(np.iinfo(np.int32).max))})
    return copy


@contextmanager
def errors_named(prefix: str) -> Iterator[None]:
    """Put a prefix before the message of a `TypeError` or `ValueError`; subclasses may take other arguments."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if type(error) not in (TypeError, ValueError):
            raise
        raise type(error)(f"{prefix}: {error}") from error


def fit_of(argument: str, fit: Any, X: Any, *y: Any) -> Any:
    """Return what the fit of an argument returns; its errors name the argument and the data that it was given."""
    lacks = "without names of columns" if y else "without names of columns and without y"
    kind = "an array" if isinstance(X, np.ndarray) else "a sparse matrix"
    with errors_named(f"{argument} failed on X, {kind} of shape {X.shape} {lacks}"):
        return fit(X, *y)


def own_copy(X: Any) -> Any:
    """Return a copy of data that a method could write to; others, as files that are mapped to be read, are returned."""
    if isinstance(X, np.ndarray):
        return X.copy() if X.flags.writeable else X
    return X.copy() if hasattr(X, "tocsr") or hasattr(X, "iloc") else X


def changed(thing: Any, **attributes: Any) -> Any:
    """Return a shallow copy with other values of some attributes."""
    other = copy.copy(thing)
    vars(other).update(attributes)
    return other


def centred(Z: Any) -> Any:
    """Return places minus their mean, in double precision; exact zeros if all places are the same."""
    z = Z - Z[:1].astype(np.float64)
    z -= z.mean(axis=0)
    return z
