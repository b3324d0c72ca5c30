"""Nearest neighbours among several parts of the points: each part returns its nearest, and these are merged.

Pairs are ordered by their distance, and by their index where distances tie. So merging is associative and commutative,
to the last bit. Among points of a part that tie for the last place, the search keeps any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphcouple.neighbors.inverted_file import InvertedFile

Nearest: TypeAlias = tuple[NDArray[np.int64], NDArray[np.float64]]
"""Neighbours' indices, ascending in each row, and squared distances; −1 and inf where a row has fewer."""


def partial(
    chunk: NDArray[np.floating], numbers: NDArray[np.int64], lists: InvertedFile, among: NDArray[np.int64]
) -> Nearest:
    """Return the points nearest to some rows among the points that an inverted file holds.

    `chunk` has the rows, and `numbers` their indices among all rows; no row is its own neighbour. `lists` holds the
    points, see `InvertedFile.holding`, and `among` their indices, ascending; there may be none. Indices, in int64, and
    squared distances have the shape (n_rows, n_neighbors); see `Nearest`. If `among` does not fit `lists`, or is not
    ascending, it raises `ValueError`.
    """
    if among.shape != lists.list_of.shape or (np.diff(among) <= 0).any():
        raise ValueError(f"among must hold the indices of the {lists.list_of.size} points in lists, ascending.")
    if not among.size:
        shape = (len(numbers), lists.n_neighbors)
        return np.full(shape, -1, dtype=np.int64), np.full(shape, np.inf)
    own = np.minimum(np.searchsorted(among, numbers), among.size - 1)
    own[among[own] != numbers] = -1
    at, sq_dist = lists.of_new(chunk, own)
    indices = among[at]
    indices[at < 0] = -1
    return indices, sq_dist.astype(np.float64, copy=False)


def merge(parts: Sequence[Nearest]) -> Nearest:
    """Return the nearest neighbours of rows from the neighbours among parts of the points.

    Parameters
    ----------
    parts : sequence of (indices, sq_dist)
        Each of shape (n_rows, n_neighbors), for the same rows; in any order, and they may share points.

    Returns
    -------
    indices, sq_dist : ndarrays of shape (n_rows, n_neighbors)
        The nearest, with ties by index; in ascending order of indices.

    Raises
    ------
    ValueError
        When there is no part, their shapes differ, or they are not of two dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.neighbors import merge
    >>> here = np.array([[3, 8]]), np.array([[1.0, 4.0]])
    >>> there = np.array([[5, 9]]), np.array([[4.0, 2.0]])
    >>> merge([here, there])
    (array([[3, 9]]), array([[1., 2.]]))
    """
    shapes = {np.shape(array) for part in parts for array in part}
    if [len(shape) for shape in shapes] != [2]:
        raise ValueError(f"parts must be pairs of arrays of one shape (n_rows, n_neighbors), got {sorted(shapes)}.")
    n_neighbors = shapes.pop()[1]
    indices, sq_dist = (np.concatenate(arrays, axis=1) for arrays in zip(*parts, strict=True))
    order = np.lexsort((indices, sq_dist), axis=1)
    indices, sq_dist = (np.take_along_axis(values, order, axis=1) for values in (indices, sq_dist))
    repeated = (indices[:, 1:] == indices[:, :-1]) & (indices[:, 1:] >= 0)
    if repeated.any():
        indices[:, 1:][repeated], sq_dist[:, 1:][repeated] = -1, np.inf
        order = np.argsort(sq_dist, axis=1, kind="stable")
        indices, sq_dist = (np.take_along_axis(values, order, axis=1) for values in (indices, sq_dist))
    indices, sq_dist = indices[:, :n_neighbors], sq_dist[:, :n_neighbors]
    order = np.argsort(indices, axis=1, kind="stable")
    return np.take_along_axis(indices, order, axis=1), np.take_along_axis(sq_dist, order, axis=1)
