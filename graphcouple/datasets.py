"""Small real data sets that come with scikit-learn, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES = ("breast_cancer", "digits", "iris", "swiss_roll", "wine")


def load(name: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the points and the labels of a bundled data set.

    Parameters
    ----------
    name : {"breast_cancer", "digits", "iris", "swiss_roll", "wine"}
        The features are as they come, not standardised. "swiss_roll" is 1,500 points of a
        generator with a fixed seed, labelled by their position along the roll.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)

    Raises
    ------
    ValueError
        When the name is unknown.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("digits")
    >>> X.shape
    (1797, 64)
    """
    from sklearn import datasets

    loaders: dict[str, Callable[[], tuple[Any, Any]]] = {
        "breast_cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
        "digits": lambda: datasets.load_digits(return_X_y=True),
        "iris": lambda: datasets.load_iris(return_X_y=True),
        "swiss_roll": lambda: datasets.make_swiss_roll(1500, random_state=0),
        "wine": lambda: datasets.load_wine(return_X_y=True),
    }
    if name not in loaders:
        raise ValueError(f"unknown data set {name!r}; the bundled ones are {', '.join(NAMES)}.")
    X, y = loaders[name]()
    return np.asarray(X, dtype=np.float64), np.asarray(y)
