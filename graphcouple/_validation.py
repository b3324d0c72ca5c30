"""Checks at the boundary: each message names the argument, the value and the remedy."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_positive(name: str, value: Any) -> float:
    """Return `value` as a float, or raise unless it is a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a positive number, got {value!r} of type {type(value).__name__}.")
    number = float(value)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number above 0, got {value!r}.")
    return number


def check_integer(name: str, value: Any, minimum: int) -> int:
    """Return `value` as an int, or raise unless it is an integer of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {value!r} of type {type(value).__name__}.")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}.")
    return int(value)


def check_embedding(Z: Any, name: str = "Z", n_points: int | None = None) -> NDArray[np.floating[Any]]:
    """Return `Z` as an (n, q) float array, checked to be finite, without copying when it already is one."""
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
        raise ValueError(f"{name} holds NaN or infinity.")
    return array
