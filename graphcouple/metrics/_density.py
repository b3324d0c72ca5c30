"""Whether an embedding is dense where the data are dense."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphcouple._support.validation import check_integer
from graphcouple.graphs import FloatArray
from graphcouple.metrics._relations import SINGLE, as_map
from graphcouple.neighbors import as_points, nearest_neighbors


class DensityMatch(NamedTuple):
    """How the logarithms of an embedding's local radii depend on the logarithms of the data's.

    Attributes
    ----------
    correlation : float
        Correlation of the logarithms; 1 is best, and nan if all radii of the data or of the map are equal but for
        rounding.
    slope : float
        The slope of their regression line: below 1, the map shows differences of density too small. It is nan if all
        radii of the data are equal.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> match = gc.metrics.density_match(X, 3.0 * X)
    >>> round(match.correlation, 6), round(match.slope, 6)
    (1.0, 1.0)
    """

    correlation: float
    slope: float


def density_match(X: Any, Z: Any, K: int = 10, *, metric: str = "euclidean", n_jobs: int | None = None) -> DensityMatch:
    """Return how the density of an embedding follows the density of the data.

    The local radius of a point is the root mean square distance to its K nearest neighbors, in the data for X and in
    the map for Z. Points with K copies have no radius, and are left out.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    Z : array of shape (n, q)
    K : int, default=10
        Neighbors of each point, below n.
    metric : str, default="euclidean"
        The distance of `X`; see `evaluate`.
    n_jobs : int, optional

    Returns
    -------
    DensityMatch

    Raises
    ------
    TypeError, ValueError
        When an array is not numeric or not finite, the numbers of rows differ, or K is out of range.

    References
    ----------
    Narayan, Berger and Cho (2021), with radii from UMAP's graph instead of nearest neighbors.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> match = gc.metrics.density_match(X, 3.0 * X)
    >>> round(match.correlation, 6), round(match.slope, 6)
    (1.0, 1.0)
    """
    points = as_points(X, at_least=3)
    n = points.shape[0]
    Z = as_map(Z, n=n)
    if check_integer("K", K, 1) >= n:
        raise ValueError(f"K={K} must be below the number of points, {n}.")
    data, embedding = _log_radii(points, K, metric, n_jobs), _log_radii(Z, K, "euclidean", n_jobs)
    known = np.isfinite(data) & np.isfinite(embedding)
    data, embedding = (logs[known] - logs[known].mean() if known.any() else np.zeros(0) for logs in (data, embedding))
    square, square_map, product = float(data @ data), float(embedding @ embedding), float(data @ embedding)
    # Distances may be in single precision, and their rounding is no density.
    least = data.size * SINGLE**2
    if not square > least:
        return DensityMatch(np.nan, np.nan)
    norm = float(np.sqrt(square * square_map))
    correlation = float(np.clip(product / norm, -1.0, 1.0)) if square_map > least else np.nan
    return DensityMatch(correlation, product / square)


def _log_radii(points: Any, K: int, metric: str, n_jobs: int | None) -> FloatArray:
    sq_dist = nearest_neighbors(points, K, metric, n_jobs)[1].reshape(-1, K)
    with np.errstate(divide="ignore"):
        return 0.5 * np.log(sq_dist.mean(axis=1))
