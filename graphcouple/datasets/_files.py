"""Read points and labels from files; write results atomically."""

from __future__ import annotations

import csv
import gzip
import re
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import check_sparse, warn
from graphcouple.datasets._annotated import read_h5ad
from graphcouple.datasets._columns import (
    check_first_label,
    check_labels,
    check_size,
    column_of,
    is_gzip,
    is_number,
    roles_of,
    unfolded_size,
    without_index,
)
from graphcouple.datasets._parquet import ROLES, parquet_names, parquet_texts, read_parquet

ENCODING = "utf-8-sig"
UNREADABLE = (ValueError, OverflowError, EOFError, OSError, KeyError, zipfile.BadZipFile, zlib.error, csv.Error)

_MISSING = ("", "na", "n/a", "#n/a", "null", "none", "missing", "?", "-", ".")

# Data can look like numbers of this many columns, such as 0 or 0, 1.
_FEW = 3

# Lines that are searched for the first row after a header.
_LOOKED_AT = 20

_QUOTED = re.compile(r'(?:^|(?<=[,;\t]))"[^"]*"', re.MULTILINE)

TABLES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
READABLE = (".npy", ".npz", *TABLES, ".mtx", ".h5ad")


def suffix_of(path: Path) -> str:
    """Return the ending of a path; ``.csv.gz`` and ``.tsv.gz`` are one ending each."""
    name = path.name.lower()
    return max((ending for ending in READABLE if name.endswith(ending)), key=len, default=path.suffix.lower())


def read_points(
    path: Path, labels: str | None, columns: Sequence[str] | None = None, apart: Sequence[str] = ()
) -> tuple[Any, NDArray[Any] | None]:
    """Read points, and labels if they are in the same file.

    Points of ``.npz`` are its array ``X``, or its single array, or a scipy sparse matrix; labels are its array ``y``.
    Tables may have a header line, and a first column without a name is left out. Points of ``.h5ad`` are ``X``, or
    ``obsm["X_pca"]`` if ``X`` has more than 50 columns. `labels` is the name or the number (from 0) of a table's
    column, a key of an npz file, or a column of ``obs``. The points of a table are its `columns`, by default all except
    the labels and those `apart`, such as texts.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, not a file of points")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    suffix = suffix_of(path)
    if suffix not in TABLES and (columns is not None or apart):
        raise ValueError(f"{path.name} has no columns to choose; tables are {', '.join(TABLES)}.")
    if suffix == ".npy":
        return _load_numpy(path), None
    if suffix == ".npz":
        return _read_npz(path, labels)
    if suffix == ".mtx":
        from scipy.io import mminfo, mmread

        with _reading(path, "is not a Matrix Market file"):
            rows, columns, entries, kind, *_ = mminfo(path)
            check_size(path, 8 * rows * columns if kind == "array" else 8 * (rows + 1) + 24 * entries)
            matrix = mmread(path)
        return matrix.tocsr() if hasattr(matrix, "tocsr") else matrix, None
    if suffix == ".h5ad":
        return read_h5ad(path, labels)
    if suffix == ".parquet":
        return read_parquet(path, labels, columns, apart)
    if suffix in TABLES:
        return _read_csv(path, labels, columns, apart)
    raise ValueError(f"cannot read {path.name}: the ending must be one of {', '.join(READABLE)}.")


@contextmanager
def _reading(path: Path, problem: str = "cannot be read") -> Iterator[None]:
    """Turn the errors of a damaged file into one that names the file."""
    try:
        yield
    except UNREADABLE as error:
        raise ValueError(f"{path.name} {problem}: {_one_line(error)}.") from None


def _load_numpy(path: Path) -> Any:
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                check_size(path, sum(entry.file_size for entry in archive.infolist()))
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray) != (suffix_of(path) == ".npy"):
            raise ValueError("its ending does not fit its content: .npy holds one array, .npz several")
        return loaded
    except UNREADABLE as error:
        # NumPy reads an unknown format as a pickle, and advises to load it.
        reason = "it holds no array" if "pickle" in str(error) else _one_line(error)
        raise ValueError(f"{path.name} is not a NumPy file of plain numbers: {reason}.") from None


def _read_npz(path: Path, labels: str | None) -> tuple[Any, NDArray[Any] | None]:
    archive = _load_numpy(path)
    names = list(archive.files)
    if {"format", "data", "shape"} <= set(names):
        from scipy.sparse import load_npz

        with _reading(path, "is damaged"):
            matrix = load_npz(path)
        check_sparse(matrix, path.name)
        return matrix.tocsr(), None
    key = next((name for name in ("X", "x", "data") if name in names), names[0] if len(names) == 1 else None)
    if key is None:
        raise ValueError(f"{path.name} holds the arrays {', '.join(names)}; call the points X.")
    label_key = labels or next((name for name in ("y", "labels") if name in names), None)
    if labels is not None and labels not in names:
        raise ValueError(f"{path.name} has no array {labels!r} for labels; it holds {', '.join(names)}.")
    with _reading(path, "is damaged"):
        return archive[key], archive[label_key] if label_key else None


def text_of(path: Path, n_lines: int | None = None) -> list[str]:
    """Return the lines, or the first lines, of a text file, without a byte-order mark."""
    with _reading(path):
        if n_lines is None or is_gzip(path):
            check_size(path, unfolded_size(path))
        with (gzip.open if is_gzip(path) else open)(path, "rt", encoding=ENCODING) as lines:
            return [line.rstrip("\r\n") for line in islice(lines, n_lines)]


def read_texts(path: Path, names: Sequence[str]) -> dict[str, list[str]]:
    if suffix_of(path) == ".parquet":
        return parquet_texts(path, names)
    first, _, header = _head(path)
    return {name: _cells(path, column_of(path, name, first, header), header) for name in names}


def first_row_of(path: Path, kept: Sequence[str] = ()) -> tuple[list[str], bool]:
    """Return a table's first row, and whether it names the columns; of a Parquet file, as `parquet_names` does."""
    if suffix_of(path) == ".parquet":
        return parquet_names(path, kept), True
    first, _, header = _head(path) if suffix_of(path) in TABLES else ([], [], False)
    return first, header


def mark_of(path: Path) -> str:
    """Return what separates the columns: by the file's name, unless only another mark is in the first line."""
    usual = "\t" if suffix_of(path).startswith(".tsv") else ","
    # A quoted name may hold marks and line breaks.
    first, *_ = _QUOTED.sub("", "\n".join(text_of(path, _LOOKED_AT))).split("\n")
    return usual if usual in first else next((mark for mark in ";\t," if mark in first), usual)


def _head(path: Path) -> tuple[list[str], list[str], bool]:
    """Return the first two rows of a table, and whether the first is a header."""
    lines, mark = text_of(path, _LOOKED_AT), mark_of(path)
    with _reading(path):
        rows = csv.reader((f"{line}\n" for line in [*lines[:1], *filter(str.strip, lines[1:])]), delimiter=mark)
        cells = list(islice(rows, 2))
    first = [cell.strip() for cell in cells[0]] if cells and cells[0] else [""]
    second = [cell.strip() for cell in cells[1]] if len(cells) > 1 else []
    # Every line of data has a number, so a first line without numbers is a header.
    # A name above a number also means a header, even beside numbers; marks of missing values are not names.
    pairs = list(zip_longest(first, second[: len(first)], fillvalue=""))
    over = any(is_number(b) and not (is_number(a) or a.strip().lower() in _MISSING) for a, b in pairs)
    # One name may be "Na" or "None"; a whole row of them is a row of missing values.
    without_numbers = not any(map(is_number, first))
    missing = len(first) > 1 and all(cell.lower() in _MISSING for cell in first)
    # A nameless first column of whole numbers or of text is an index, and columns of text have no numbers.
    is_index = first[0] == "" and bool(second) and not (is_number(second[0]) and float(second[0]) % 1.0)
    numbers = [pair for pair in pairs[is_index:] if any(map(is_number, pair))]
    above, below = ([pair[row] for pair in numbers] for row in (0, 1))
    # Beside text and without an index, one number, and whole numbers above whole numbers, may well be data.
    doubtful = (
        not is_index and numbers != pairs and (len(numbers) < 2 or all(cell.lstrip("-").isdecimal() for cell in below))
    )
    numbered = bool(numbers) and not doubtful and _number_columns(above, below)
    return first, second, (without_numbers and not missing) or over or numbered


def _step(row: list[str]) -> int | None:
    """Return the difference between neighbours of whole numbers in even steps, 1 for one number; None for others."""
    if not row or not all(re.fullmatch("0|[1-9][0-9]{0,17}", cell) for cell in row):
        return None
    steps = {int(b) - int(a) for a, b in pairwise(row)} or {1}
    return steps.pop() if len(steps) == 1 else None


def _number_columns(first: list[str], second: list[str]) -> bool:
    """Return whether a first row numbers the columns: from 0, as pandas does, or in steps of 1, as years do."""
    return _step(first) == 1 and (first[0] == "0" or (len(first) > 2 and _step(second) != 1))


def _warn_of_first_row(path: Path, first: list[str], second: list[str], header: bool) -> None:
    """Warn if a first row with numbers may be mistaken for names, or for a point."""
    numbers = list(filter(is_number, first))
    few = first[0] != "" and len(first) <= _FEW
    start = f"the first row of {path.name}, {', '.join(first[:10])}, is taken for"
    # Many numbers from 0, or in order behind a name or a nameless index, number the columns, as pandas does.
    in_order = _number_columns(numbers, []) and (first[0] == "0" or len(numbers) < len(first))
    # Two numbers beside text may be data too.
    if header and numbers and (few or not in_order or (first[0] != "" and len(numbers) < min(3, len(first)))):
        warn(f"{start} names of the columns; if it holds data, write a row of names above it.")
    below = _step(list(filter(is_number, second)))
    if not header and len(numbers) >= _FEW < len(first) and _step(numbers) not in (None, 0, below):
        warn(f"{start} a point; if it numbers the columns, put a letter before each number.")


def _parsed(path: Path, mark: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table, each with the line in the file where it ends."""
    with _reading(path), (gzip.open if is_gzip(path) else open)(path, "rt", encoding=ENCODING, newline="") as lines:
        reader = csv.reader(lines, delimiter=mark)
        yield from ((reader.line_num, row) for row in reader)


def _rows(path: Path, header: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table below its header that are not empty, each with its line in the file."""
    return ((line, row) for line, row in islice(_parsed(path, mark_of(path)), int(header), None) if row)


def _cells(path: Path, at: int, header: bool) -> list[str]:
    return [row[at].strip() if at < len(row) else "" for _, row in _rows(path, header)]


def _name_of(column: int, first: list[str], header: bool) -> str:
    return (first[column] or f"{column} (without a name)") if header else str(column)


def _check_widths(path: Path, width: int, header: bool, least: int = 0) -> None:
    """Raise if a row has more cells than the first row, as one with a comma in a number has, or fewer than needed."""
    for line, row in _rows(path, header):
        if len(row) < least:
            remedy = "fill in the missing ones, or drop the row"
        elif any(row[width:]):
            remedy = "write numbers without commas, or quote texts that have one"
        else:
            continue
        raise ValueError(f"{path.name} has {len(row)} cells in line {line}, but {width} in its first row; {remedy}.")


def _read_csv(
    path: Path, labels: str | None, chosen: Sequence[str] | None, apart: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[Any] | None]:
    first, second, header = _head(path)
    if first == [""]:
        raise ValueError(f"{path} is empty, or its first line is.")
    if header and not second:
        raise ValueError(f"{path.name} has a header, but no rows.")
    if header and len(second) > len(first):
        raise ValueError(
            f"{path.name} has {len(first)} names and {len(second)} cells in a row; name every column, an index "
            "too, and drop lines above the names."
        )
    _warn_of_first_row(path, first, second, header)
    at, columns = roles_of(path, first, labels, chosen, apart, header)
    if chosen is None and header and first[0] == "" and len(first) > 1 and 0 in columns:
        warn(f"the first column of {path.name} has no name, so it is left out as an index.")
        columns.remove(0)
    if not columns:
        raise ValueError(f"{path.name} has no columns of points besides the labels.")
    X = _numbers(path, columns, first, second, header)
    _check_widths(path, len(first), header)
    if header and chosen is None:
        X = without_index(path, X, [first[c] for c in columns])
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0]
        name = _name_of(columns[len(columns) - X.shape[1] + column], first, header)
        raise _no_number(path, int(row), name, header, kind="finite number")
    if at is None:
        return X, None
    cells = _cells(path, at, header)
    check_labels(path, cells)
    return X, as_labels(np.array(cells))


def _numbers(path: Path, columns: list[int], first: list[str], second: list[str], header: bool) -> NDArray[np.float64]:
    mark, skipped = mark_of(path), next(_rows(path, False))[0] if header else 0
    options: dict[str, Any] = {"delimiter": mark, "skiprows": skipped, "quotechar": '"', "comments": None}
    try:
        return np.loadtxt(path, usecols=columns, ndmin=2, encoding=ENCODING, **options)
    except UNREADABLE as error:
        if "column index" in str(error):
            _check_widths(path, len(first), header, max(columns) + 1)
        bad = [c for c in columns if c < len(second) and not is_number(second[c])]
        names = ", ".join(_name_of(c, first, header) for c in bad[:10])
        hint = f" Non-numeric column(s): {names}; {ROLES}." if bad else ""
        if mark == ";" and any("," in second[c] for c in bad):
            hint = " Write decimal points instead of commas."
        place = re.search(r"at row (\d+), column (\d+)", str(error))
        if place is None or bad:
            raise ValueError(f"{path.name} cannot be read as numbers: {_one_line(error)}.{hint}") from None
        raise _no_number(path, int(place[1]), _name_of(int(place[2]) - 1, first, header), header, hint) from None


def _no_number(path: Path, row: int, name: str, header: bool, hint: str = "", kind: str = "number") -> ValueError:
    # NumPy counts rows, without empty lines.
    line = next(islice(_rows(path, header), row, None))[0]
    return ValueError(f"{path.name} has no {kind} in line {line}, column {name}; impute or drop it.{hint}")


def _one_line(error: Exception) -> str:
    remedy = "; save it as UTF-8" if isinstance(error, UnicodeError) else ""
    return " ".join(str(error).split()).rstrip(".") + remedy


def as_labels(texts: NDArray[Any]) -> NDArray[Any]:
    """Return labels as numbers if all texts are numbers, and different texts different numbers."""
    try:
        numbers = texts.astype(np.float64)
    except ValueError:
        return texts
    # "01" and "1", or "1_0" and "10", are the same number, and may be different classes.
    if np.unique(numbers).size < np.unique(texts).size or any("_" in str(text) for text in texts):
        return texts
    return whole_numbers(numbers)


def whole_numbers(numbers: NDArray[np.float64]) -> NDArray[Any]:
    """Return labels as integers if all are whole numbers that double precision tells apart."""
    are_whole = bool((np.abs(numbers) < 2**53).all()) and bool((numbers == np.floor(numbers)).all())
    return numbers.astype(np.int64) if are_whole else numbers


def read_labels(path: Path, n_points: int) -> NDArray[Any]:
    """Read a file with one label in each row: ``.npy``, or text, where one extra row counts as a header."""
    suffix = suffix_of(path)
    if suffix == ".npy":
        return _load_numpy(path).ravel()
    if suffix not in (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz"):
        raise ValueError(f"labels are read from .npy, .txt, .csv and .tsv files, got {path.name}.")
    mark = mark_of(path)
    if suffix == ".txt":
        rows = [[line.strip().strip('"')] for line in text_of(path)]
    else:
        check_size(path, unfolded_size(path))
        rows = [row for _, row in _parsed(path, mark)]
    # A mark in some labels separates no columns.
    texts = [mark.join(row).strip() for row in rows]
    while texts and not texts[-1]:
        del texts[-1]
    below = slice(int(len(texts) == n_points + 1), len(texts))
    check_labels(path, texts[below])
    check_first_label(path, texts, n_points)
    if texts[below] and all(len(row) > 1 for row in rows[below]):
        raise ValueError(
            f"{path.name} has several columns; keep the one with labels, or name it with the data's file. Quote labels "
            f"that hold {mark!r}."
        )
    return as_labels(np.array(texts[below]))


def write_embedding(path: Path, target: Path, Z: NDArray[Any]) -> None:
    """Write an embedding to `path` in the format given by the ending of `target`."""
    if target.suffix.lower() == ".npy":
        # To a path that ends in .NPY, np.save would add an ending.
        with open(path, "wb") as file:
            np.save(file, Z)
    else:
        header = ",".join(f"z{i}" for i in range(Z.shape[1]))
        np.savetxt(path, Z, fmt="%.9g", delimiter=",", header=header, comments="")


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as csv with a header; rows may lack columns."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
