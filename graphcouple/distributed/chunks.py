"""Rows in chunks, as a dask array."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from graphcouple._validation import require


def as_chunks(X: Any) -> Any:
    """Return rows as a dask array of known chunks, none of which cuts a row."""
    da = require("dask.array", "graphcouple.distributed needs dask", "graphcouple[dask]")
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
    # Filters leave empty chunks, which have no rows to sample.
    return X.rechunk({0: tuple(size for size in X.chunks[0] if size), 1: -1})
