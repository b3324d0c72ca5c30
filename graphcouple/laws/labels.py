"""Targets as a factor of the edge prior, which makes edges between different classes or far numbers less likely."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import UNLABELLED, check_unmasked, warn
from graphcouple.graphs import FloatArray, IntArray, Support

# umap-learn's defaults: at weight ½, edges between classes are kept with probability e⁻⁵, and edges to a point without
# a class with e⁻¹.
_STRENGTH = 5.0
_UNKNOWN = 0.2

# The mean of (r_i − r_j)² over all pairs of ranks in [0, 1] is ⅙, so a pair counts on average as two different classes.
_RANKS = 6.0

# Kinds of classes and the numbers that they may stand for; dates and durations may have any unit, and some may be
# missing.
_NUMBERS: tuple[tuple[Any, str, str], ...] = (
    ((str, bytes), "names", ""),
    ((Real, Decimal), "whole numbers", "np.asarray(y, float) + 0.5"),
    (date, "dates", "t = np.asarray(y, 'datetime64[us]'); (t - np.nanmin(t)) / np.timedelta64(1, 'D') + 0.5"),
    (timedelta, "durations", "np.asarray(y, 'timedelta64[us]') / np.timedelta64(1, 'D') + 0.5"),
    (object, "values", "one for each of them"),
)

# Up to this many different whole numbers, or numbers with at least this many points each, are surely classes.
_MANY_CLASSES, _FEW_MEMBERS = 30, 5


def target_codes(y: Any, n_points: int, weights: FloatArray | None = None) -> IntArray | FloatArray:
    """Return classes as integers from 0, or ranks of numbers in (0, 1); −1 for an unknown one.

    As scikit-learn's `type_of_target` has it, numbers of which one has a fraction are a continuous target. A point of
    weight w ranks as w equal points.
    """
    if y is None:
        raise ValueError("target_weight is above 0, but y is None; pass the classes as y, -1 where one is not known.")
    labels = label_array(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n_points,):
        remedy = "; pass one column, or combine columns into classes" if labels.ndim > 1 else ""
        raise ValueError(f"y must have shape ({n_points},), one target for each row, got {labels.shape}{remedy}.")
    if (numbers := _continuous(labels)) is not None:
        known = ~np.isnan(numbers)
        ranks = np.full(n_points, float(UNLABELLED))
        _, number = np.unique(numbers[known], return_inverse=True)
        counts = np.bincount(number, None if weights is None else weights[known])
        ranks[known] = ((np.cumsum(counts) - 0.5 * counts) / counts.sum())[number]
        return ranks
    if labels.dtype.kind == "c":
        raise TypeError("y must hold classes or real numbers, got complex numbers.")
    # Nanoseconds, and with them dates and durations that are missing, would be integers.
    values = (labels.astype(f"{labels.dtype.kind}8[us]") if labels.dtype.kind in "mM" else labels).astype(object)
    unknown = np.array([_is_missing(value) or _is_marked(value) for value in values], dtype=bool)
    codes = np.full(n_points, UNLABELLED)
    try:
        codes[~unknown] = np.unique(labels[~unknown], return_inverse=True)[1]
    except TypeError:
        raise TypeError("y mixes classes that cannot be compared, such as words and numbers; use one kind.") from None
    n_classes = int(codes.max(initial=-1)) + 1
    if n_classes == 1 and not all(map(_is_missing, values[unknown])):
        warn("y holds one class and -1, which stands for unknown. If -1 is a class, number the classes from 0.")
    known = values[~unknown]
    kind, shown = next(words for kinds, *words in _NUMBERS if all(isinstance(value, kinds) for value in known))
    if shown and n_classes > max(_MANY_CLASSES, known.size / _FEW_MEMBERS):
        warn(
            f"y holds {n_classes} different {kind}, which are taken as classes; to take them as numbers, give numbers "
            f"with a fraction: {shown}{', and NaN in place of -1' if any(map(_is_marked, values[unknown])) else ''}."
        )
    return codes


def _continuous(labels: NDArray[Any]) -> FloatArray | None:
    """Return numbers of which one has a fraction, NaN where one is missing; None for classes."""
    if labels.dtype.kind not in "fO":
        return None
    values = [np.nan if _is_missing(value) else value for value in labels.tolist()]
    if not all(isinstance(value, (Real, Decimal)) for value in values):
        return None
    numbers = np.array(values, dtype=np.float64)
    if np.isinf(numbers).any():
        raise ValueError(f"y is infinite in row {int(np.flatnonzero(np.isinf(numbers))[0])}; use NaN for unknown.")
    return numbers if (numbers[~np.isnan(numbers)] % 1.0 != 0.0).any() else None


def and_unknown(codes: IntArray | FloatArray | None, n_more: int = 0) -> NDArray[Any] | None:
    """Return targets with these codes, followed by unknown ones."""
    if codes is None:
        return None
    more = np.concatenate([codes, np.full(n_more, UNLABELLED)])
    unknown: Any = np.nan if codes.dtype.kind == "f" else None
    # Codes are handed over as text: many integers would bring the warning for whole numbers again.
    return np.where(more == UNLABELLED, unknown, more if codes.dtype.kind == "f" else more.astype(str))


def label_array(y: Any) -> NDArray[Any]:
    """Return labels as an array, without turning numbers among words, such as NaN, into words."""
    check_unmasked(y, "y")
    labels = np.asarray(y)
    return np.array(y, dtype=object) if labels.dtype.kind in "US" and not hasattr(y, "dtype") else labels


def _is_missing(value: Any) -> bool:
    # NaN is the one float that differs from itself; pandas' NA cannot be compared.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def _is_marked(value: Any) -> bool:
    """Return whether a label marks an unknown class; in tables of names, -1 is text."""
    return bool(value == UNLABELLED) or (isinstance(value, (str, bytes)) and value.strip() in ("-1", b"-1"))


def log_factor(support: Support, codes: IntArray | FloatArray, weight: float) -> FloatArray:
    """Return the logarithm of the factor of each edge: 0 between equal targets, negative between others."""
    start, end = codes[support.rows], codes[support.indices]
    strength = _STRENGTH * weight / (1.0 - weight)
    unknown = (start == UNLABELLED) | (end == UNLABELLED)
    apart = start != end if codes.dtype.kind == "i" else _RANKS * np.square(start - end)
    return -strength * np.where(unknown, _UNKNOWN, apart)
