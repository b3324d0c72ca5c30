"""Classes as a factor of the edge prior, which makes edges between different classes less likely."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._validation import check_unmasked
from graphcouple.graphs import FloatArray, IntArray, Support

# umap-learn's defaults: at weight ½, edges between classes are kept with probability e⁻⁵, and edges to a point without
# a class with e⁻¹.
_STRENGTH = 5.0
_UNKNOWN = 0.2

UNLABELLED = -1
"""The label of a point of unknown class."""


def class_codes(y: Any, n_points: int) -> IntArray:
    """Return classes as integers from 0, and −1 for an unknown class (−1, None or NaN).

    Raises
    ------
    TypeError, ValueError
        When `y` is None, has the wrong shape, or holds fractions.
    """
    if y is None:
        raise ValueError("target_weight is above 0, but y is None; pass the classes as y, -1 where one is not known.")
    labels = label_array(y)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.shape != (n_points,):
        raise ValueError(f"y must have shape ({n_points},), one class for each row, got {labels.shape}.")
    if labels.dtype.kind == "f":
        present = labels[np.isfinite(labels)]
        if (present != np.floor(present)).any():
            raise ValueError("y must hold classes, but has fractions; cut a continuous target into intervals first.")
    unknown = np.array([_is_unknown(value) for value in labels.tolist()], dtype=bool)
    codes = np.full(n_points, UNLABELLED)
    try:
        codes[~unknown] = np.unique(labels[~unknown], return_inverse=True)[1]
    except TypeError:
        raise TypeError("y mixes classes that cannot be compared, such as words and numbers; use one kind.") from None
    return codes


def label_array(y: Any) -> NDArray[Any]:
    """Return labels as an array, without turning numbers among words, such as NaN, into words.

    Raises
    ------
    ValueError
        When labels are masked.
    """
    check_unmasked(y, "y")
    labels = np.asarray(y)
    return np.array(y, dtype=object) if labels.dtype.kind in "US" and not hasattr(y, "dtype") else labels


def _is_unknown(value: Any) -> bool:
    # NaN is the one float that differs from itself; pandas' NA cannot be compared.
    if value is None or type(value).__name__ == "NAType":
        return True
    return bool(value != value or value == UNLABELLED)


def log_factor(support: Support, codes: IntArray, weight: float) -> FloatArray:
    """Return the logarithm of the factor of each edge: 0 within a class, negative between classes.

    Parameters
    ----------
    support : Support
    codes : ndarray of shape (n,)
    weight : float
        In [0, 1).
    """
    start, end = codes[support.rows], codes[support.indices]
    strength = _STRENGTH * weight / (1.0 - weight)
    unknown = (start == UNLABELLED) | (end == UNLABELLED)
    return -strength * np.where(unknown, _UNKNOWN, start != end)


def own_log_factor(codes: IntArray, weight: float) -> FloatArray:
    """Return the logarithm of the factor of the edges among the copies of each point."""
    return -_STRENGTH * _UNKNOWN * weight / (1.0 - weight) * (codes == UNLABELLED)
