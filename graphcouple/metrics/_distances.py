"""Agreement of distances over all scales."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.spatial import procrustes

from graphcouple._support.validation import check_integer, refuse_estimator
from graphcouple.metrics._neighborhoods import k_ary_preservation
from graphcouple.metrics._relations import Relations, as_map, relate


def distance_correlation(
    X: Any,
    Z: Any,
    metric: str = "euclidean",
    *,
    n_rows: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> float:
    """Return Pearson's correlation between the distances of all pairs in the data and in the embedding.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    Z : array of shape (n, q)
    metric : str, default="euclidean"
        The distance of `X`, as in `neighborhood_curves`.
    n_rows : int, optional
        Use the pairs of this many random points with all points. The default is all pairs, in O(n) memory.
    random_state, n_jobs
        As in `neighborhood_curves`.

    Returns
    -------
    float
        From −1 to 1.

    Raises
    ------
    TypeError, ValueError
        When an array is not numeric or not finite, the numbers of rows differ, or all distances of X or of Z are equal.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> round(gc.metrics.distance_correlation(X, X[:, 2:]), 3)
    0.987
    """
    [relations] = relate(X, [Z], metric=metric, n_rows=n_rows, random_state=random_state, n_jobs=n_jobs, ranks=False)
    return correlation_of(relations)


def correlation_of(relations: Relations) -> float:
    count, d, e, dd, ee, de = relations.moments.tolist()
    variances = dd - d * d / count, ee - e * e / count
    for name, variance in zip("XZ", variances, strict=True):
        if not variance > count * relations.rounding**2:
            raise Undefined(f"all points of {name} are equally far from each other: the correlation is undefined.")
    return float(np.clip((de - d * e / count) / np.sqrt(variances[0] * variances[1]), -1.0, 1.0))


def triplet_correlation(
    X: Any,
    Z: Any,
    metric: str = "euclidean",
    *,
    n_rows: int | None = 1000,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> float:
    """Return how well random triplets keep their order: which of two points is nearer to a third.

    The score is the mean of sign(d_ij − d_ik) sign(e_ij − e_ik) over triplets, with distances d in the data and e in
    the embedding: 1 if all orders are kept (ties count as 0), 0 for chance, −1 if all are reversed. The share of
    triplets kept ("random-triplet accuracy") is (1 + score)/2. Each row i draws 100 random pairs j, k.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    Z : array of shape (n, q)
    metric : str, default="euclidean"
        The distance of `X`, as in `neighborhood_curves`.
    n_rows : int or None, default=1000
        The number of random points i; None for all.
    random_state, n_jobs
        As in `neighborhood_curves`.

    Returns
    -------
    float

    Raises
    ------
    TypeError, ValueError
        When an array is not numeric or not finite, or the numbers of rows differ.

    References
    ----------
    Wang, Huang, Rudin, Shaposhnik (2021), Understanding how dimension reduction tools work (section 3).

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> bool(gc.metrics.triplet_correlation(X, X[:, 2:], random_state=0) > 0.8)
    True
    """
    [relations] = relate(X, [Z], metric=metric, n_rows=n_rows, random_state=random_state, n_jobs=n_jobs, ranks=False)
    return triplets_of(relations)[0]


def triplets_of(relations: Relations) -> tuple[float, float]:
    """Return the mean agreement of triplets, and its standard error over rows."""
    total, squares = relations.triplets / relations.n_rows
    spread = max(float(squares - total**2), 0.0)
    return float(total), float(np.sqrt(spread / max(relations.n_rows - 1, 1)))


def seed_stability(embeddings: Sequence[Any], K: int | None = None, *, n_jobs: int | None = None) -> float:
    """Return how similar embeddings of the same points are, for example from several seeds.

    The score is the mean of 1 − m² over pairs of embeddings. m² is the Procrustes disparity: the share of one map's
    variance that remains after the best translation, rotation, reflection and scaling of the other. With `K`, the score
    is the mean of R(K) over pairs.

    Parameters
    ----------
    embeddings : sequence of arrays of shape (n, q)
        At least two, of one shape.
    K : int, optional
        Compare neighborhoods of this size instead of positions.
    n_jobs : int, optional
        Threads for neighborhoods; the default is every core.

    Returns
    -------
    float
        1 if all are the same; about 0 if they have nothing in common.

    Raises
    ------
    TypeError, ValueError
        When there are fewer than two, their shapes differ, one is not finite, or all its points coincide.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> maps = [gc.CCPCA(n_samples=20, random_state=seed).fit_transform(X) for seed in (0, 1)]
    >>> bool(gc.metrics.seed_stability(maps) > 0.99)
    True
    """
    refuse_estimator(embeddings, "embeddings")
    maps = [as_map(Z, f"embeddings[{c}]") for c, Z in enumerate(embeddings)]
    if len(maps) < 2:
        raise ValueError(f"embeddings must hold at least two arrays to compare, got {len(maps)}.")
    for Z in maps[1:]:
        if Z.shape != maps[0].shape:
            raise ValueError(f"embeddings must have one shape, got {maps[0].shape} and {Z.shape}.")
    if K is not None:
        size = check_integer("K", K, 1)
        return float(np.mean([k_ary_preservation(a, b, size, n_jobs=n_jobs) for a, b in combinations(maps, 2)]))
    return float(np.mean([1.0 - disparity(a, b) for a, b in combinations(maps, 2)]))


class Undefined(ValueError):
    """Raised if points or class means coincide or are equally far apart, so that a score is undefined."""


def check_apart(Z: Any, name: str) -> None:
    """Raise if all points coincide but for rounding; `Z` must not have been centred."""
    if float(np.ptp(Z, axis=0).max()) <= 1e-12 * float(np.abs(Z).max()):
        raise Undefined(f"all points of {name} coincide: there is no arrangement to compare.")


def disparity(A: Any, B: Any, names: tuple[str, str] = ("an embedding", "an embedding")) -> float:
    """Return the Procrustes disparity of two arrangements of the same points."""
    for Z, name in zip((A, B), names, strict=True):
        check_apart(Z, name)
    return float(procrustes(A, B)[2])
