"""The memory that a fit needs, counted from the arrays of its stages, and the memory that is free."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from graphcouple._support.validation import warn
from graphcouple.estimators.carry_out import needs_means_once
from graphcouple.estimators.sentence import Sentence
from graphcouple.graphs import MANY_EDGES
from graphcouple.laws import GraphLaw, GraphModel
from graphcouple.neighbors.inverted_file import KEPT_BYTES

# Python, libraries and compiled loops; the grids of fast sums, which tight clusters make finer: for each point, and at
# most. All were measured, with the shares below, in twelve fits of 2,000 to 1,000,000 rows.
_BASE, _GRIDS = 310e6, (4e3, 500e6)

# The share of edges without a reverse, which is then stored too. L-BFGS and its steps keep this many maps.
_ONE_WAY, _MAPS = 0.6, 36

# A fit is refused if it needs this many times the free memory. Estimates are within a quarter of the memory in use.
_HOPELESS = 2.0

# Up to this many points, places have double precision.
_ALL_PAIRS = 2000


def memory_of(sentence: Sentence, n: int, p: int, itemsize: int) -> dict[str, float]:
    """Return the most bytes that the process holds in each stage of a fit of n rows and p columns."""
    model, q = sentence.input, sentence.n_components
    laws = model.parts
    edges = sum(_edges(law.for_points(n), n) for law in laws)
    width = 4 if edges > MANY_EDGES else 8
    base = _BASE + n * p * itemsize
    if edges == len(laws) * n * (n - 1):
        dense = 8.0 * edges
        return {"neighbors and law": base + 3 * dense, "start": base + 3 * dense, "descent": base + 5 * dense}
    lists = 4.0 * n * p
    copy = lists if lists <= KEPT_BYTES else 0.0
    drops = width == 4 and len(laws) == 1 and needs_means_once(sentence)
    indices, values = 4.0 * edges, float(width * edges)
    both = indices + values + _ONE_WAY * (indices + values) + (0.0 if drops else values)
    maps = _MAPS * n * q * (4.0 if n > _ALL_PAIRS else 8.0)
    return {
        # The search copies the points, and so does the training of its lists.
        "neighbors and law": base + indices + max(3 * lists + values, copy + 2 * values),
        "start": base + copy + both + edges,
        "descent": base + copy + both + maps + min(_GRIDS[0] * n, _GRIDS[1]),
    }


def _edges(law: GraphModel, n: int) -> float:
    k = law.neighbors_among(n)
    k = n - 1 if k is None else min(k, n - 1)
    # An undirected graph has the edges of both ends.
    return n * k * (1.0 + _ONE_WAY if law.symmetrize else 1.0)


def free_memory() -> float:
    """Return the bytes of memory that are free on this machine or in this container; infinite if unknown."""
    return min(_read(_of_machine), _read(_of_container))


def _of_machine() -> float:
    table = Path("/proc/meminfo")
    if table.exists():
        lines = table.read_text().splitlines()
        return 1024.0 * next(float(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _of_container() -> float:
    group = Path("/sys/fs/cgroup")
    return float((group / "memory.max").read_text()) - float((group / "memory.current").read_text())


def _read(source: Callable[[], float]) -> float:
    try:
        return source()
    except (AttributeError, OSError, StopIteration, ValueError):
        # Windows has no sysconf, and a container without a limit says "max".
        return float("inf")


def remedy(n_bytes: float, n_free: float) -> str:
    """Return the memory that is needed and free, and the ways to need less."""
    return (
        f"the fit needs about {n_bytes / 1e9:.1f} GB, and {n_free / 1e9:.1f} GB are free: lower the perplexity or "
        "n_neighbors ('auto' where it is None, which takes all pairs), pass float32, reduce the columns by PCA, or fit "
        "landmarks (n_landmarks=)."
    )


def warn_if_too_large(sentence: Sentence, n: int, p: int, itemsize: int) -> None:
    """Warn if the arrays of a fit will not fit into the free memory; the points are there already.

    Raise `MemoryError` if they need over twice the free memory: the system would end the process, without a word.
    """
    if not isinstance(sentence.input, GraphLaw):
        return
    needed = max(memory_of(sentence, n, p, itemsize).values()) - _BASE - n * p * itemsize
    free = free_memory()
    if needed > _HOPELESS * free:
        raise MemoryError(remedy(needed, free))
    if needed > free:
        warn(remedy(needed, free))
