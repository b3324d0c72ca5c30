"""Rows in chunks: tables, files and arrays as dask arrays of real numbers, and checks of a chunk's rows."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._support.validation import check_unmasked, require
from graphcouple.neighbors.points import check_scale

# Without this check, the reader of Parquet would fail on them without a remedy.
_OTHER_FILES = (".npy", ".npz", ".csv", ".tsv", ".txt", ".gz", ".mtx", ".mat", ".h5", ".h5ad")

_SPARSE = "X must be dense, and is sparse; reduce it first, for example by TruncatedSVD."


def as_chunks(X: Any) -> Any:
    """Return rows as a dask array of known chunks, none of which cuts a row."""
    da = require("dask.array", "graphcouple.distributed needs dask", "dask")
    if isinstance(X, (str, os.PathLike)):
        if Path(X).suffix.lower() in _OTHER_FILES:
            raise ValueError(f"X must be a Zarr array (.zarr), or a Parquet file or folder, got {os.fspath(X)!r}.")
        if Path(X).suffix.lower() == ".zarr":
            X = da.from_zarr(os.fspath(X))
        else:
            require("pyarrow", "reading Parquet by dask needs pyarrow", "dask")
            dd = require("dask.dataframe", "reading Parquet by dask needs dask[dataframe]", "dask")
            X = dd.read_parquet(os.fspath(X))
    if hasattr(getattr(X, "dtypes", None), "items"):
        X = _numbers_of(X)
        X = X.to_dask_array(lengths=True) if hasattr(X, "to_dask_array") else X.to_numpy()
    elif sp.issparse(getattr(X, "_meta", X)):
        raise TypeError(_SPARSE)
    elif not isinstance(X, da.Array):
        check_unmasked(X, "X")
        X = np.asarray(X)
    if X.dtype.kind not in "biufO":
        raise TypeError(f"X must hold real numbers, got dtype {X.dtype}; encode or drop its other columns first.")
    if X.dtype.kind == "O":
        X = X.map_blocks(_as_floats, dtype=np.float64) if isinstance(X, da.Array) else _as_floats(X)
    X = X if isinstance(X, da.Array) else da.from_array(X)
    if isinstance(X._meta, np.ma.MaskedArray):
        raise ValueError(
            "X has chunks of masked arrays, whose masks would be lost; impute or drop the masked entries, and pass "
            "da.ma.getdata(X)."
        )
    if X.ndim != 2 or X.shape[1] == 0:
        raise ValueError(f"X must have shape (n_rows, n_features), got {X.shape}.")
    if np.isnan(X.shape[0]):
        raise ValueError("X has chunks of unknown size; call X.compute_chunk_sizes() first.")
    if X.dtype not in (np.float32, np.float64):
        # Differences of integers, and squares in half precision, overflow, and means do not fit in their place.
        X = X.astype(np.float32 if X.dtype == np.float16 else np.float64)
    # Filters may leave empty chunks, without rows to sample.
    return X.rechunk({0: tuple(size for size in X.chunks[0] if size) or (0,), 1: -1})


def _as_floats(chunk: Any) -> NDArray[np.float64]:
    try:
        return np.asarray(chunk, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"X must hold real numbers ({error}); encode or drop its other columns first.") from None


def dense_rows(chunk: Any) -> NDArray[Any]:
    """Return the rows of a chunk; a dask array may declare dense chunks and have sparse ones."""
    if sp.issparse(chunk):
        raise TypeError(_SPARSE)
    return np.asarray(chunk)


def _numbers_of(frame: Any) -> Any:
    """Return a table whose missing numbers are NaN; raise if a column holds other values."""
    from pandas.api.types import is_numeric_dtype

    objects = [name for name, dtype in frame.dtypes.items() if isinstance(dtype, np.dtype) and dtype.kind == "O"]
    for name, dtype in frame.dtypes.items():
        is_numeric = is_numeric_dtype(dtype)
        if name in objects and not hasattr(frame, "dask"):
            with suppress(TypeError, ValueError):
                frame[name].astype(np.float64)
                is_numeric = True
        if not is_numeric:
            raise TypeError(f"X must hold real numbers, and its column {name!r} has dtype {dtype}; encode or drop it.")
    missing = [name for name, dtype in frame.dtypes.items() if not isinstance(dtype, np.dtype)]
    return frame.astype(dict.fromkeys([*objects, *missing], np.float64))


def check_finite(rows: NDArray[Any], numbers: NDArray[Any]) -> None:
    """Raise with the number of the first row that is not finite."""
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        raise ValueError(f"X must be finite, and is not in row {numbers[bad][0]}; drop or fix the rows that are not.")
    check_scale(rows, "X")
