"""Read points and labels from Parquet files, by polars."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import require, warn
from graphcouple.datasets._columns import check_labels, check_size, column_of, roles_of, without_index

ROLES = "name labels with --labels, or points with --columns"
"""Advice to users of the command on columns that are not numeric."""

# Columns that pandas adds for its index.
_INDEX = "__index_level_"


def read_parquet(
    path: Path, labels: str | None, chosen: Sequence[str] | None, apart: Sequence[str]
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return the numeric columns as points, and the column of labels, by the arguments of `read_points`."""
    pl = require("polars", "reading Parquet needs polars", "parquet")
    try:
        lazy = pl.scan_parquet(path, glob=False)
        index = _index_of(path).difference((labels, *(chosen or ()), *apart))
        schema = _schema(lazy, index)
        n_rows = int(lazy.select(pl.len()).collect().item())
        names = list(schema)
        place, places = roles_of(path, names, labels, chosen, apart)
        at, columns = None if place is None else names[place], [names[c] for c in places]
        is_list = _is_list(path, columns, schema)
        if at is not None and schema[at].is_nested():
            raise ValueError(f"{path.name}: the column {at!r} of labels holds lists or structs.")
        # The length of a column of lists is only known from its rows.
        width = _width(lazy, columns[0], pl) if is_list else len(columns)
        check_size(path, 8 * n_rows * (width + (at is not None)))
        X = _numbers(lazy, columns, width, is_list, pl)
        if chosen is None:
            if index:
                warn(
                    f"pandas' index in {path.name}, {', '.join(sorted(index))}, is left out; the command's option "
                    "--columns keeps it."
                )
            X = X if is_list else without_index(path, X, columns)
        return X, None if at is None else _labels(path, lazy, at, schema[at], pl)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise ValueError(f"{path.name} is not a Parquet file: {' '.join(str(error).split())[:200]}.") from None


def parquet_names(path: Path, kept: Sequence[str] = ()) -> list[str]:
    """Return the names of the columns; none if the file is damaged, of which `read_parquet` says more.

    Columns of pandas' index count only if their names, in small letters, are to be `kept`.
    """
    pl = require("polars", "reading Parquet needs polars", "parquet")
    try:
        index = {name for name in _index_of(path) if name.lower() not in kept}
        return list(_schema(pl.scan_parquet(path, glob=False), index))
    except (pl.exceptions.PolarsError, OSError):
        return []


def parquet_texts(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    import polars as pl

    lazy = pl.scan_parquet(path, glob=False)
    known = list(_schema(lazy, _index_of(path).difference(names)))
    places = {name: known[column_of(path, name, known)] for name in names}
    texts = [pl.col(place).cast(pl.String).str.strip_chars().fill_null("") for place in dict.fromkeys(places.values())]
    try:
        table = lazy.select(texts).collect()
    except pl.exceptions.PolarsError as error:
        raise ValueError(f"{path.name}: {', '.join(names)} cannot be shown as text: {str(error)[:100]}.") from None
    return {name: table[place].to_list() for name, place in places.items()}


def _schema(lazy: Any, index: set[str]) -> dict[str, Any]:
    columns = lazy.collect_schema().items()
    return {name: dtype for name, dtype in columns if name not in index and not name.startswith(_INDEX)}


def _index_of(path: Path) -> set[str]:
    import polars as pl

    by_pandas = json.loads(pl.read_parquet_metadata(path).get("pandas", "{}"))
    names = by_pandas.get("index_columns", [])
    return {name for name in names if isinstance(name, str) and not name.startswith(_INDEX)}


def _is_list(path: Path, columns: list[str], schema: dict[str, Any]) -> bool:
    """Return whether the points are one column of lists; raise unless they are that, or columns of numbers."""
    if not columns:
        raise ValueError(f"{path.name} has no columns of points besides the labels.")
    inner = getattr(schema[columns[0]], "inner", None)
    if len(columns) == 1 and inner is not None and inner.is_numeric():
        return True
    not_numeric = [name for name in columns if not (schema[name].is_numeric() or str(schema[name]) == "Boolean")]
    if not_numeric:
        raise ValueError(
            f"{path.name} has non-numeric column(s): {', '.join(not_numeric)}; {ROLES}. "
            "Points may also be one column of lists of numbers."
        )
    return False


def _width(lazy: Any, column: str, pl: Any) -> int:
    lengths = lazy.select(_as_list(column, pl).list.len()).collect().to_series()
    low, high = lengths.min(), lengths.max()
    if lengths.null_count() or low != high or not high:
        raise ValueError(f"the lists of column {column!r} must all have the same length, got {low} to {high}.")
    return int(high)


def _as_list(column: str, pl: Any) -> Any:
    return pl.col(column).cast(pl.List(pl.Float64))


def _numbers(lazy: Any, columns: list[str], width: int, is_list: bool, pl: Any) -> NDArray[Any]:
    if is_list:
        flat = lazy.select(_as_list(columns[0], pl).list.explode()).collect().to_series()
        return np.asarray(flat.to_numpy(), dtype=np.float64).reshape(-1, width)
    single = all(dtype == pl.Float32 for dtype in lazy.select(columns).collect_schema().values())
    dtype = pl.Float32 if single else pl.Float64
    # Missing entries become NaN, which the estimators refuse.
    table = lazy.select(pl.col(columns).cast(dtype).fill_null(float("nan"))).collect()
    return np.ascontiguousarray(table.to_numpy())


def _labels(path: Path, lazy: Any, column: str, dtype: Any, pl: Any) -> NDArray[Any]:
    values = lazy.select(pl.col(column)).collect().to_series()
    if dtype.is_numeric():
        # NumPy has no decimals. Long decimals may be alike as floats; then the labels stay texts.
        numbers = values.cast(pl.Float64) if dtype.is_decimal() else values
        if numbers.n_unique() == values.n_unique():
            return np.asarray(numbers.to_numpy())
    try:
        labels = values.cast(pl.String).str.strip_chars().fill_null("").to_list()
    except pl.exceptions.PolarsError:
        raise ValueError(f"{path.name}: the column {column!r} of {dtype} cannot be labels; write it as text.") from None
    check_labels(path, labels)
    return np.array(labels, dtype=np.str_)
