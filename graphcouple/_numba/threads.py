"""Run a compiled loop over blocks of rows on several threads.

One thread computes each row from start to end, so a result has the same bits for
any number of threads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import joblib

from graphcouple._validation import check_integer

_BLOCKS_PER_THREAD = 2


@cache
def _pool(n_threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(n_threads, thread_name_prefix="graphcouple")


if hasattr(os, "register_at_fork"):
    # A forked child inherits the pools but none of their threads.
    os.register_at_fork(after_in_child=_pool.cache_clear)


@cache
def _cores() -> int:
    return joblib.cpu_count()


def effective_n_jobs(n_jobs: Any) -> int:
    """Return the number of threads that `n_jobs` stands for; None means every available core."""
    if n_jobs is None:
        return _cores()
    threads = check_integer("n_jobs", n_jobs, -sys.maxsize)
    if threads == 0:
        raise ValueError("n_jobs must not be 0; use None for every core, or a number of threads.")
    return max(1, threads if threads > 0 else _cores() + 1 + threads)


def over_rows(n_rows: int, n_jobs: int | None, loop: Callable[..., Any], *args: Any, at_least: int = 64) -> None:
    """Call ``loop(start, stop, *args)`` on blocks that together cover range(n_rows).

    Fewer rows than `at_least` run in the calling thread.
    """
    n_threads = effective_n_jobs(n_jobs)
    if n_threads == 1 or n_rows < at_least:
        loop(0, n_rows, *args)
        return
    size = -(-n_rows // (n_threads * _BLOCKS_PER_THREAD))
    starts = range(0, n_rows, size)
    futures = [_pool(n_threads).submit(loop, a, min(a + size, n_rows), *args) for a in starts]
    for future in futures:
        future.result()
