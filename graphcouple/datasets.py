"""Small real data sets that come with scikit-learn, by name, and files in the format of MNIST."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

NAMES = ("breast_cancer", "digits", "iris", "swiss_roll", "wine")

_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path: str | PathLike[str]) -> NDArray[Any]:
    """Return the array of an IDX file, the format of MNIST and Fashion-MNIST.

    Parameters
    ----------
    path : path
        Gzipped or not.

    Returns
    -------
    ndarray
        Of the file's own shape and type: labels of shape (n,), images of shape (n, height, width).

    Raises
    ------
    OSError
        When the file cannot be read.
    ValueError
        When it is no IDX file, or ends too early.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import graphcouple as gc
    >>> path = Path(tempfile.mkdtemp()) / "labels-idx1-ubyte"
    >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    >>> gc.datasets.read_idx(path)
    array([7, 2, 1], dtype=uint8)
    """
    data = Path(path).read_bytes()
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise ValueError(f"{path} is a damaged gzip file ({error}).") from None
    known = len(data) >= 4 and data[:2] == b"\x00\x00" and data[2] in _IDX_TYPES and data[3] > 0
    if not known or len(data) < 4 + 4 * data[3]:
        raise ValueError(f"{path} is no IDX file: its first bytes are {data[:4].hex(' ') or 'missing'}.")
    dtype, start = np.dtype(_IDX_TYPES[data[2]]), 4 + 4 * data[3]
    shape = tuple(np.frombuffer(data[4:start], ">i4").tolist())
    wanted = start + math.prod(shape) * dtype.itemsize
    if min(shape) < 0 or len(data) != wanted:
        raise ValueError(f"{path} holds {len(data)} bytes, but its header announces {wanted}; fetch it again.")
    return np.frombuffer(data, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


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
