"""Alignment of embeddings: the best rotation, reflection, shift and, if wanted, scale."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import orthogonal_procrustes

from graphcouple._support.validation import check_embedding
from graphcouple.graphs import FloatArray, IntArray

# Points nearer to each other than this share of the map's size are in one place.
_ONE_PLACE = 1e-6


def align(Z: Any, to: Any, shared: Any = None, scale: bool = False) -> FloatArray:
    """Rotate, reflect and shift an embedding so that shared points lie as near as possible to their places in another.

    It minimises Σ ‖s (z_i − z̄) R + t − w_j‖² over the shared points (i, j), with an orthogonal matrix R and a shift t
    (Procrustes). Neighbourhoods of flat maps do not change, nor do losses if s = 1; a shift distorts maps in curved
    spaces.

    Parameters
    ----------
    Z : array of shape (n_samples, n_components)
        The embedding to move. It is not modified.
    to : array of shape (n_others, n_components)
    shared : int, array, or pair of arrays, optional
        Which points are the same in both. An integer m: the first m rows. An array of integers: these rows of both.
        A pair of arrays (i, j): rows i of `Z` are rows j of `to`. None: all rows.
    scale : bool, default=False
        Whether to scale by s too; s = 1 otherwise, and where the shared points are in one place in either map.

    Returns
    -------
    ndarray of shape (n_samples, n_components)

    Raises
    ------
    TypeError, ValueError
        When an array is not numeric or finite, the dimensions differ, or shared rows do not exist or are too few.

    References
    ----------
    Schönemann (1966), A generalized solution of the orthogonal Procrustes problem.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> Z = np.random.default_rng(0).normal(size=(20, 2))
    >>> rotated = Z @ np.array([[0.0, -1.0], [1.0, 0.0]]) + 5.0
    >>> bool(np.allclose(gc.align(rotated, to=Z), Z))
    True
    """
    points, others = check_embedding(Z, "Z"), check_embedding(to, "to")
    if points.shape[1] != others.shape[1]:
        raise ValueError(f"Z has {points.shape[1]} dimensions, but `to` has {others.shape[1]}; they must match.")
    rows, other_rows = shared_rows(shared, len(points), len(others))
    source, target = points[rows].astype(np.float64), others[other_rows].astype(np.float64)
    # Points in one place have no scale: their size is rounding.
    maps = ((source, points), (target, others))
    scale = scale and all(np.ptp(part, axis=0).max() > _ONE_PLACE * np.ptp(whole, axis=0).max() for part, whole in maps)
    source_mean, target_mean = source.mean(axis=0), target.mean(axis=0)
    source, target = source - source_mean, target - target_mean
    # Squares of maps in tiny or huge units underflow or overflow.
    units = [2.0 ** np.floor(np.log2(np.abs(part).max())) if part.any() else 1.0 for part in (source, target)]
    source, target = source / units[0], target / units[1]
    turn, total = orthogonal_procrustes(source, target)
    size = float(np.square(source).sum())
    stretch = total / size * (units[1] / units[0]) if scale and size > 0 else 1.0
    return ((stretch * (points - source_mean)) @ turn + target_mean).astype(points.dtype, copy=False)


def shared_rows(
    shared: Any, n_points: int, n_others: int, name: str = "shared", owners: tuple[str, str] = ("Z", "`to`")
) -> tuple[IntArray, IntArray]:
    """Return the rows of two sets that are the same points; `name` and `owners` are for messages."""
    if shared is None:
        if n_points != n_others:
            raise ValueError(
                f"{owners[0]} has {n_points} rows and {owners[1]} {n_others}; say with {name}= which points are the "
                "same."
            )
        shared = n_points
    if isinstance(shared, (int, np.integer)) and not isinstance(shared, bool):
        shared = np.arange(int(shared))
    pair = shared if isinstance(shared, tuple) and len(shared) == 2 else (shared, shared)
    first, second = (np.asarray(rows) for rows in pair)
    for rows, n, owner in ((first, n_points, owners[0]), (second, n_others, owners[1])):
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise TypeError(f"{name} must hold row numbers, got an array of dtype {rows.dtype} and shape {rows.shape}.")
        if rows.size and not (rows.min() >= 0 and rows.max() < n):
            worst = int(rows.min() if rows.min() < 0 else rows.max())
            raise ValueError(f"{name} names row {worst} of {owner}, which has {n} rows.")
    if first.size != second.size or not first.size:
        raise ValueError(
            f"{name} must pair at least one row, got {first.size} of {owners[0]} and {second.size} of {owners[1]}."
        )
    return first, second
