"""Data sets by name, which scikit-learn bundles or fetches."""

from __future__ import annotations

import zipfile
import zlib
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import check_labels
from graphcouple.datasets._files import TABLES, as_labels, first_row_of, read_points, whole_numbers
from graphcouple.datasets._idx import read_idx_pairs

NAMES = ("breast_cancer", "diabetes", "digits", "iris", "swiss_roll", "wine")
"""The bundled data sets."""


class _Source(NamedTuple):
    name: str
    version: int | str
    shape: tuple[int, int]


FETCHED = {
    "coil20": _Source("COIL-20", "active", (1440, 1024)),
    "fashion_mnist": _Source("Fashion-MNIST", 1, (70_000, 784)),
    "mnist": _Source("mnist_784", 1, (70_000, 784)),
    "pendigits": _Source("pendigits", 1, (10_992, 16)),
}
"""The data sets fetched from OpenML or read from a local copy."""

_LABEL_COLUMNS = ("label", "labels", "class", "target", "y")
_LOCAL = (
    "a folder of IDX files or one of its images files, a .mat file with X and Y, .npz with X and y, or "
    + ", ".join(TABLES)
)


def load(
    name: str, path: str | PathLike[str] | None = None, *, data_home: str | PathLike[str] | None = None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the points and the labels of a data set.

    Parameters
    ----------
    name : str
        Bundled with scikit-learn: "breast_cancer", "diabetes", "digits" (1,797 images of 8×8 pixels), "iris", "wine",
        and "swiss_roll" (1,500 points generated with a fixed seed, labelled by their position along the roll).

        Fetched from OpenML, or read from `path`: "mnist" and "fashion_mnist" (70,000 images of 28×28 pixels, the last
        10,000 for testing), "coil20" (1,440 images of 20 objects, 32×32 pixels), "pendigits" (10,992 pen trajectories
        of 8 points).

        Features are not standardised.
    path : path, optional
        A local copy to read instead of fetching, with any number of rows: a folder of IDX files or one of its images
        files; a .mat file with X and Y; an .npz file with X and y; a table (.csv, .tsv or .parquet) with labels in the
        first of the columns "label", "labels", "class", "target" and "y" that exists, or else in the last column.
    data_home : path, optional
        Where scikit-learn stores fetched data; the default is its own folder, ~/scikit_learn_data.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        float64; float32 if fetched or read.
    y : ndarray of shape (n_samples,)

    Raises
    ------
    ValueError
        When the name is unknown, or a file does not contain points and labels.
    OSError
        When a file cannot be read, or OpenML cannot be reached.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("digits")
    >>> X.shape
    (1797, 64)
    """
    if name in FETCHED:
        X, y = _read(Path(path)) if path is not None else _fetch(name, data_home)
        return _check(X, y, f"{name} at {path}" if path is not None else name)
    if name not in NAMES:
        raise ValueError(f"unknown data set {name!r}; the names are {', '.join((*NAMES, *FETCHED))}.")
    if path is not None or data_home is not None:
        raise ValueError(f"{name!r} comes with scikit-learn: leave out path and data_home.")
    from sklearn import datasets

    if name == "swiss_roll":
        X, y = datasets.make_swiss_roll(1500, random_state=0)
    else:
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return np.asarray(X, dtype=np.float64), np.asarray(y)


def _fetch(name: str, data_home: str | PathLike[str] | None) -> tuple[Any, Any]:
    from http.client import HTTPException
    from importlib.util import find_spec

    from sklearn.datasets import fetch_openml

    source = FETCHED[name]
    # liac-arff takes a minute to parse MNIST.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    options = {"as_frame": False, "return_X_y": True, "parser": parser, "data_home": data_home}
    try:
        X, y = fetch_openml(source.name, version=source.version, **options)
    except (OSError, HTTPException, ValueError) as error:
        reason = " ".join(str(getattr(error, "reason", None) or error).split()).rstrip(".")
        raise OSError(
            f"cannot fetch {name!r} from OpenML ({reason}). Without a network, give path= a local copy: {_LOCAL}; "
            "or data_home= a folder that scikit-learn has fetched it into."
        ) from None
    if X.shape[1] != source.shape[1]:
        raise ValueError(
            f"OpenML's {source.name!r} has {X.shape[1]} columns, not {source.shape[1]}; give path= a local copy."
        )
    return X, y


def _read(path: Path) -> tuple[Any, Any]:
    if not path.exists():
        raise FileNotFoundError(f"no such file or folder: {path}; path= takes {_LOCAL}")
    if path.is_dir() or "idx3" in path.name:
        return read_idx_pairs(path)
    if path.suffix.lower() == ".mat":
        return _read_mat(path)
    first, has_names = first_row_of(path, _LABEL_COLUMNS)
    # Without a name, the last column of a table has the labels.
    names = first if has_names else []
    labels = next((cell for name in _LABEL_COLUMNS for cell in names if cell.lower() == name), "-1") if first else None
    X, y = read_points(path, labels)
    if y is None:
        raise ValueError(f"{path} holds no labels for its {np.shape(X)[0]} points; path= takes {_LOCAL}.")
    return X, y


def _check(X: Any, y: Any, source: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a 2-D array of points, with images flattened, and the labels."""
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if X.ndim < 2 or not X.size or X.dtype.kind not in "biuf":
        raise ValueError(
            f"{source} must hold an array of numbers with a row for each point, got shape {X.shape} of {X.dtype}."
        )
    with np.errstate(over="ignore"):
        points = np.ascontiguousarray(X.reshape(len(X), -1), dtype=np.float32)
    if not np.isfinite(points).all():
        raise ValueError(f"{source} holds entries that are NaN, infinite, or beyond single precision.")
    return points, _numbers_if_whole(check_labels(y, len(points)))


def _read_mat(path: Path) -> tuple[Any, Any]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        arrays = loadmat(path)
    except (MatReadError, ValueError, NotImplementedError, zlib.error, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} is not a MATLAB file that scipy can read ({error}).") from None
    for points, labels in (("X", "Y"), ("X", "y"), ("fea", "gnd")):
        if points in arrays and labels in arrays:
            return arrays[points], np.squeeze(arrays[labels])
    names = ", ".join(name for name in arrays if not name.startswith("__"))
    raise ValueError(f"{path} must hold points X and labels Y; it holds {names or 'nothing'}.")


def _numbers_if_whole(y: NDArray[Any]) -> NDArray[Any]:
    """Return labels as integers if all of them are whole numbers, and none become equal."""
    if y.dtype.kind in "iu":
        return y.astype(np.int64, copy=False) if y.max(initial=0) < 2**63 else y
    if y.dtype.kind in "US":
        return as_labels(y)
    numbers = whole_numbers(y.astype(np.float64))
    return numbers if numbers.dtype.kind == "i" else y
