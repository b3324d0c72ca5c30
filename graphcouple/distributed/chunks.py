"""Rows in chunks, as a dask array."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np


def as_chunks(X: Any) -> Any:
    """Return rows as a dask array of known chunks, none of which cuts a row."""
    try:
        import dask.array as da
    except ImportError as error:
        raise ImportError("graphcouple.distributed needs dask: pip install 'graphcouple[dask]'.") from error
    if isinstance(X, (str, os.PathLike)):
        if Path(X).suffix == ".zarr":
            X = da.from_zarr(os.fspath(X))
        else:
            import dask.dataframe as dd

            X = dd.read_parquet(os.fspath(X)).to_dask_array(lengths=True)
    elif not isinstance(X, da.Array):
        X = da.from_array(np.asanyarray(X))
    if X.ndim != 2:
        raise ValueError(f"X must have shape (n_rows, n_features), got {X.shape}.")
    if np.isnan(X.shape[0]):
        raise ValueError("X has chunks of unknown size; call X.compute_chunk_sizes() first.")
    return X.rechunk({1: -1})
