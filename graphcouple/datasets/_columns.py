"""Columns of a table by name or number, and their roles."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path


def column_of(path: Path, name: str, first: Sequence[str], header: bool = True) -> int:
    """Return the place of a column by its name, or by its number from 0."""
    if header and name in first:
        return first.index(name)
    if name.lstrip("-").isdigit() and -len(first) <= int(name) < len(first):
        return int(name) % len(first)
    near = difflib.get_close_matches(name, first, 1) if header else []
    names = f"{', '.join(first[:10])}{', ...' * (len(first) > 10)}" if header else f"numbers 0 to {len(first) - 1}"
    hint = f"did you mean {near[0]!r}?" if near else f"its {len(first)} columns are {names}."
    raise ValueError(f"{path.name} has no column {name!r}; {hint}")


def roles_of(
    path: Path,
    first: Sequence[str],
    labels: str | None,
    chosen: Sequence[str] | None,
    apart: Sequence[str],
    header: bool = True,
) -> tuple[int | None, list[int]]:
    """Return the place of the labels, and the places of the points: as chosen, or all that have no other role."""
    at = None if labels is None else column_of(path, labels, first, header)
    aside = {at, *(column_of(path, name, first, header) for name in apart)}
    if chosen is None:
        return at, [c for c in range(len(first)) if c not in aside]
    columns = [column_of(path, name, first, header) for name in chosen]
    if set(columns) & aside:
        raise ValueError("a column cannot be named by both --columns and --labels or --hover; name it once.")
    return at, columns
