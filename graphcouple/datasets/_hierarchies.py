"""Generators of points with global structure: cells, branching trajectories, rings, blobs of unequal size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import check_integer, check_positive, check_random_state


def make_cells(
    n_samples: int = 3000,
    n_genes: int = 500,
    *,
    n_types: int = 12,
    change: float = 0.6,
    dispersion: float = 2.0,
    depth: float = 2000.0,
    logarithm: bool = True,
    random_state: Any = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw counts of genes in cells whose types are the leaves of a tree.

    A type inherits the logarithms of expected counts from its parent in a binary tree. A third of them change by
    Gaussian increments, with standard deviation ``change`` times 0.8 to the power of the level. A cell has a random
    depth (log-normal, standard deviation 0.3), and counts that are negative binomial with variance μ + μ²/`dispersion`.
    Types have unequal shares.

    Parameters
    ----------
    n_samples : int, default=3000
    n_genes : int, default=500
    n_types : int, default=12
    change : float, default=0.6
    dispersion : float, default=2
    depth : float, default=2000
        Median of the expected numbers of counts of the cells.
    logarithm : bool, default=True
        Return log(1 + counts · m / depth of the cell), m the median depth, instead of counts.
    random_state : int, Generator or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_genes)
    y : ndarray of shape (n_samples,)
        The types; similar numbers are near in the tree.

    Raises
    ------
    TypeError, ValueError
        When a number is out of range.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_cells(300, 100, random_state=0)
    >>> X.shape, int(y.max())
    ((300, 100), 11)
    """
    n, p = check_integer("n_samples", n_samples, 1), check_integer("n_genes", n_genes, 1)
    k, theta = check_integer("n_types", n_types, 1), check_positive("dispersion", dispersion)
    check_positive("change", change)
    check_positive("depth", depth)
    rng = check_random_state(random_state)
    logs, level = rng.normal(0.0, 1.5, size=(1, p)), 0
    while len(logs) < k:
        logs = np.repeat(logs, 2, axis=0)
        is_changed = rng.random(logs.shape) < 1.0 / 3.0
        logs = logs + is_changed * rng.normal(0.0, change * 0.8**level, size=logs.shape)
        level += 1
    # Omitted leaves are spread evenly over the tree.
    logs = logs[np.linspace(0, len(logs) - 1, k).astype(int)]
    share = rng.dirichlet(np.full(k, 3.0))
    y = np.concatenate([np.arange(min(k, n)), rng.choice(k, size=max(n - k, 0), p=share)])
    rng.shuffle(y)
    expected = np.exp(logs)
    expected *= depth / expected.sum(axis=1, keepdims=True)
    means = expected[y] * rng.lognormal(0.0, 0.3, size=(n, 1))
    counts = rng.poisson(means * rng.gamma(theta, 1.0 / theta, size=means.shape)).astype(np.float64)
    if logarithm:
        totals = np.maximum(counts.sum(axis=1, keepdims=True), 1.0)
        counts = np.log1p(counts * (np.median(totals) / totals))
    return counts, y


def make_branches(
    n_samples: int = 2000,
    n_features: int = 50,
    *,
    n_branches: int = 10,
    length: float = 10.0,
    noise: float = 0.3,
    random_state: Any = None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw points along trajectories that branch, as differentiating cells do.

    The first branch begins at the origin, the others at the end of an earlier branch, at most two at each end.
    A branch is a smooth path of unit speed whose direction drifts; points are uniform on it, plus Gaussian noise.

    Parameters
    ----------
    n_samples : int, default=2000
    n_features : int, default=50
    n_branches : int, default=10
    length : float, default=10
        Length of a branch.
    noise : float, default=0.3
        Standard deviation in each feature.
    random_state : int, Generator or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        The branches.

    Raises
    ------
    TypeError, ValueError
        When a number is out of range.

    References
    ----------
    Moon et al. (2019), Visualizing structure and transitions in high-dimensional biological data, for the idea.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_branches(200, random_state=0)
    >>> X.shape, int(y.max())
    ((200, 50), 9)
    """
    n, p = check_integer("n_samples", n_samples, 1), check_integer("n_features", n_features, 1)
    k = check_integer("n_branches", n_branches, 1)
    check_positive("length", length)
    check_positive("noise", noise)
    rng = check_random_state(random_state)
    steps, ends, free = 100, [np.zeros(p)], [0]
    paths = []
    for branch in range(k):
        start = free.pop(0)
        direction = rng.normal(size=p)
        directions = direction + 0.3 * np.cumsum(rng.normal(size=(steps, p)), axis=0) / steps**0.5
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        paths.append(ends[start] + np.cumsum(directions, axis=0) * (length / steps))
        ends.append(paths[-1][-1])
        free += [branch + 1, branch + 1]
    y = rng.integers(0, k, n)
    return np.array(paths)[y, rng.integers(0, steps, n)] + noise * rng.normal(size=(n, p)), y


def make_rings(
    n_samples: int = 2000, n_features: int = 10, *, n_rings: int = 4, noise: float = 0.05, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw points from a chain of linked rings in space, rotated at random into more dimensions.

    Parameters
    ----------
    n_samples : int, default=2000
    n_features : int, default=10
        At least 3.
    n_rings : int, default=4
    noise : float, default=0.05
        Standard deviation in each feature; the rings have radius 1, and centres 1.5 apart.
    random_state : int, Generator or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        The rings, in the order of the chain.

    Raises
    ------
    TypeError, ValueError
        When a number is out of range.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_rings(200, random_state=0)
    >>> X.shape, int(y.max())
    ((200, 10), 3)
    """
    n, p = check_integer("n_samples", n_samples, 1), check_integer("n_features", n_features, 3)
    k = check_integer("n_rings", n_rings, 1)
    check_positive("noise", noise)
    rng = check_random_state(random_state)
    y, angle = rng.integers(0, k, n), rng.uniform(0.0, 2.0 * np.pi, n)
    flat = (y % 2 == 0).astype(float)
    rings = np.stack([np.cos(angle) + 1.5 * y, flat * np.sin(angle), (1.0 - flat) * np.sin(angle)], axis=1)
    turn = np.linalg.qr(rng.normal(size=(p, 3)))[0]
    return rings @ turn.T + noise * rng.normal(size=(n, p)), y


def make_unequal_blobs(
    n_samples: int = 2000, n_features: int = 20, *, n_blobs: int = 8, spread: float = 6.0, random_state: Any = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Draw points from spherical Gaussians of unequal size and number.

    The k-th of m blobs has standard deviation 2^{2k/(m−1) − 1}, from 0.5 to 2, and a share of the points in proportion
    to 2^{−k mod 4}. Centres are Gaussian with standard deviation `spread`/√p · √2 in each feature.

    Parameters
    ----------
    n_samples : int, default=2000
    n_features : int, default=20
    n_blobs : int, default=8
    spread : float, default=6
        Half the typical distance of two centres.
    random_state : int, Generator or None, default=None

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)

    Raises
    ------
    TypeError, ValueError
        When a number is out of range.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_unequal_blobs(400, random_state=0)
    >>> X.shape, int(y.max())
    ((400, 20), 7)
    """
    n, p = check_integer("n_samples", n_samples, 1), check_integer("n_features", n_features, 1)
    m = check_integer("n_blobs", n_blobs, 1)
    check_positive("spread", spread)
    rng = check_random_state(random_state)
    at = np.arange(m)
    share = 2.0 ** -(at % 4)
    y = rng.choice(m, size=n, p=share / share.sum())
    sizes = 2.0 ** (2.0 * at / max(m - 1, 1) - 1.0)
    centres = rng.normal(size=(m, p)) * (spread * (2.0 / p) ** 0.5)
    return centres[y] + sizes[y][:, None] * rng.normal(size=(n, p)), y
