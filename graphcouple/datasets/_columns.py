"""Columns of a table by name or number, and their roles."""

from __future__ import annotations

import difflib
import gzip
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.validation import MOST_BYTES, warn

LONGEST_LABEL = 1000
"""The longest label, in characters; each entry of an array of text takes as much memory as the longest."""

# pandas writes and reads these in place of a missing value.
_MISSING_LABELS = ("", "na", "n/a", "#n/a", "null", "nan")

# Names of columns that may count from any number.
_ID = r"(^|[\W_])(id|ID|Id)$|[a-z](ID|Id)$"

# With fewer rows, a column may look like an index by chance.
_FEWEST = 10


def check_size(path: Path, n_bytes: int) -> None:
    """Raise if a file would take more memory than the limit."""
    if n_bytes > MOST_BYTES:
        raise ValueError(
            f"{path.name} expands to {n_bytes / 2**30:.3g} GiB, and at most {MOST_BYTES / 2**30:.3g} are read. Set the "
            "environment variable GRAPHCOUPLE_MOST_BYTES to a larger number of bytes if that is what you want"
        )


def unfolded_size(path: Path) -> int:
    """Return the number of bytes in a text file; for compressed ones, count up to the limit."""
    if not is_gzip(path):
        return path.stat().st_size
    size = 0
    with gzip.open(path, "rb") as file:
        while part := file.read(2**24):
            size += len(part)
            if size > MOST_BYTES:
                break
    return size


def is_gzip(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def column_of(path: Path, name: str, first: Sequence[str], header: bool = True) -> int:
    """Return the position of a column, given its name or its number from 0."""
    if header and name in first:
        if (count := first.count(name)) > 1:
            raise ValueError(f"{path.name} has {count} columns {name!r}; rename one, or give its number, from 0.")
        return first.index(name)
    if re.fullmatch("-?[0-9]{1,18}", name) and -len(first) <= int(name) < len(first):
        return int(name) % len(first)
    near = difflib.get_close_matches(name, first, 1) if header else []
    names = f"{', '.join(first[:10])}{', ...' * (len(first) > 10)}" if header else f"numbers 0 to {len(first) - 1}"
    hint = f"did you mean {near[0]!r}?" if near else f"its {len(first)} columns are {names}."
    raise ValueError(f"{path.name} has no column {name!r}; {hint}")


def check_labels(path: Path, labels: Sequence[str]) -> None:
    """Raise if a label is missing or too long."""
    missing = next((row for row, label in enumerate(labels) if label.strip().lower() in _MISSING_LABELS), None)
    if missing is not None:
        raise ValueError(
            f"{path.name} has no label in row {missing} (counted from 0) but {labels[missing]!r}; drop that row, name "
            "its class, or write -1 for a class that is not known."
        )
    longest = max(map(len, labels), default=0)
    if longest > LONGEST_LABEL:
        raise ValueError(f"{path.name} has a label of {longest} characters; {LONGEST_LABEL} are the most.")


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def check_first_label(path: Path, texts: list[str], n_points: int) -> None:
    """Raise if numbers have a first row that makes them one too many or too few; pandas' header 0 is told."""
    rest, too_many = texts[1:], len(texts) == n_points + 1
    if not rest or not all(map(is_number, rest)) or is_number(texts[0]) != too_many or len(texts) < n_points:
        return
    if too_many and texts[0] == "0":
        warn(
            f"the first row of {path.name}, 0, is taken for a name, as pandas writes it; if it is a label, remove one."
        )
        return
    counted = f"{len(texts)} numbers" if too_many else f"the name {texts[0]!r} and {len(rest)} numbers"
    remedy = "" if too_many else ", or write a header above them if the first is a class"
    raise ValueError(f"{path.name} holds {counted} for {n_points} points; give each point one label{remedy}.")


def without_index(path: Path, X: NDArray[Any], names: Sequence[str]) -> NDArray[Any]:
    """Return the columns without a first one that counts the rows; tables are often written with their index."""
    counts = len(X) >= _FEWEST and bool((X[:, 0] == X[0, 0] + np.arange(len(X))).all())
    counts = counts and (X[0, 0] in (0, 1) or re.search(_ID, names[0]) is not None)
    if X.shape[1] == 1 or not (counts or names[0] == "Unnamed: 0"):
        are_names = X.shape[1] > 1 and re.search(_ID, names[0]) and np.unique(X[:, 0]).size == len(X) >= _FEWEST
        if are_names and not (X[:, 0] % 1).any():
            warn(
                f"the first column of {path.name}, {names[0]!r}, looks like an identifier, and is used as a "
                "coordinate; choose the points with the command's option --columns, or drop it."
            )
        return X
    warn(
        f"the first column of {path.name}, {names[0]!r}, is left out as an index; the command's option --columns "
        "keeps it, and so does a file .npy or .npz."
    )
    return X[:, 1:]


def roles_of(
    path: Path,
    first: Sequence[str],
    labels: str | None,
    chosen: Sequence[str] | None,
    apart: Sequence[str],
    header: bool = True,
) -> tuple[int | None, list[int]]:
    """Return the positions of the labels and of the points: the chosen columns, or all without another role."""
    at = None if labels is None else column_of(path, labels, first, header)
    aside = {at, *(column_of(path, name, first, header) for name in apart)}
    if chosen is None:
        return at, [c for c in range(len(first)) if c not in aside]
    columns = list(dict.fromkeys(column_of(path, name, first, header) for name in chosen))
    if set(columns) & aside:
        raise ValueError("a column cannot be named by both --columns and --labels or --hover; name it once.")
    return at, columns
