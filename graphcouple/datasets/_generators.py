"""Generators of points from known distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import check_integer, check_positive, check_random_state


def make_hierarchical_mixture(
    n_samples: int = 1000,
    n_features: int = 10,
    *,
    branching: Sequence[int] = (3, 4),
    scales: Sequence[float] = (10.0, 3.0, 1.0),
    random_state: Any = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw points from a mixture of spherical Gaussians whose centres are clustered, level by level.

    The centre of a cluster is the centre of its parent plus a Gaussian vector with standard deviation ``scales[level]``
    in every coordinate. A point is the centre of a cluster of the last level plus a Gaussian vector with standard
    deviation ``scales[-1]``. All clusters of the last level are equally likely.

    Parameters
    ----------
    n_samples : int, default=1000
    n_features : int, default=10
    branching : sequence of int, default=(3, 4)
        The number of clusters that each cluster of the level above splits into.
    scales : sequence of float, default=(10, 3, 1)
        Standard deviations: one for each level, and one for the points.
    random_state : int, Generator or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples, len(branching))
        The cluster on each level; the clusters of a level are numbered from 0.

    Raises
    ------
    TypeError, ValueError
        When a number is out of range, or the number of scales is not one more than the number of levels.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_hierarchical_mixture(500, random_state=0)
    >>> X.shape, y.shape, y.max(axis=0)
    ((500, 10), (500, 2), array([ 2, 11]))
    """
    n = check_integer("n_samples", n_samples, 1)
    p = check_integer("n_features", n_features, 1)
    for name, value in (("branching", branching), ("scales", scales)):
        if not np.iterable(value):
            raise TypeError(f"{name} must be a sequence of numbers, got {value!r}.")
    splits = [check_integer("branching", b, 1) for b in branching]
    spreads = [check_positive("scales", s) for s in scales]
    if not splits or len(spreads) != len(splits) + 1:
        raise ValueError(
            f"scales must hold one number for each of the {len(splits)} levels of branching (at least one level), and "
            f"one for the points, got {len(spreads)}."
        )
    rng = check_random_state(random_state)
    centres = np.zeros((1, p))
    for split, spread in zip(splits, spreads, strict=False):
        centres = np.repeat(centres, split, axis=0)
        centres = centres + spread * rng.normal(size=centres.shape)
    last = rng.integers(0, len(centres), n)
    X = centres[last] + spreads[-1] * rng.normal(size=(n, p))
    below = [*np.cumprod(splits[::-1])[::-1].tolist()[1:], 1]
    return X, np.stack([last // size for size in below], axis=1)


def make_swiss_roll(
    n_samples: int = 1000, *, noise: float = 0.0, hole: bool = False, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw points from a rolled sheet in three dimensions.

    Parameters
    ----------
    n_samples : int, default=1000
    noise : float, default=0
        Standard deviation of Gaussian noise on every coordinate.
    hole : bool, default=False
        Whether to cut a rectangular hole into the sheet.
    random_state : int, Generator, RandomState or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, 3)
    t : ndarray of shape (n_samples,)
        Position along the roll.

    Raises
    ------
    TypeError, ValueError
        When a number is out of range.

    See Also
    --------
    sklearn.datasets.make_swiss_roll

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, t = gc.datasets.make_swiss_roll(100, random_state=0)
    >>> X.shape
    (100, 3)
    """
    from sklearn.datasets import make_swiss_roll as roll

    seed = random_state
    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**31))
    X, t = roll(check_integer("n_samples", n_samples, 1), noise=noise, hole=hole, random_state=seed)
    # scikit-learn's t of one point is a number.
    return X, np.atleast_1d(t)


def make_waveform(
    n_samples: int = 5000, *, n_noise_features: int = 0, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw noisy waves of three classes with 21 features.

    A wave is u h_a(i) + (1 − u) h_b(i) + ε_i for i = 1 … 21, with u uniform on [0, 1] and ε standard normal. The
    triangles are h₁(i) = max(6 − abs(i − 7), 0), h₂(i) = h₁(i − 8) and h₃(i) = h₁(i − 4). The class (a, b) is (1, 2),
    (1, 3) or (2, 3) with equal probability.

    Parameters
    ----------
    n_samples : int, default=5000
    n_noise_features : int, default=0
        Standard normal columns added to the 21; 19 gives the 40 features of the second version.
    random_state : int, Generator or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, 21 + n_noise_features)
    y : ndarray of shape (n_samples,)
        0, 1 or 2.

    Raises
    ------
    TypeError, ValueError
        When a number is out of range.

    References
    ----------
    Breiman, Friedman, Olshen, Stone (1984), Classification and regression trees, section 2.6.2.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_waveform(300, random_state=0)
    >>> X.shape
    (300, 21)
    """
    n = check_integer("n_samples", n_samples, 1)
    n_noise = check_integer("n_noise_features", n_noise_features, 0)
    rng = check_random_state(random_state)
    triangles = np.maximum(6.0 - np.abs(np.arange(1, 22) - np.array([[7], [15], [11]])), 0.0)
    y = rng.integers(0, 3, n)
    first, second = np.array([[0, 1], [0, 2], [1, 2]])[y].T
    u = rng.random((n, 1))
    waves = u * triangles[first] + (1.0 - u) * triangles[second] + rng.normal(size=(n, 21))
    return np.hstack([waves, rng.normal(size=(n, n_noise))]), y
