"""Run a compiled loop over blocks of rows on several threads.

One thread computes each row from start to end, so a result has the same bits for any number of threads.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import joblib
from joblib.parallel import get_active_backend

from graphcouple._support.validation import check_integer

# A thread that is delayed leaves its second block to another; smaller blocks would cost more calls.
_BLOCKS_PER_THREAD = 2

# Decompositions and products of fewer numbers gain little from a second thread of BLAS. While another program uses its
# core, they wait for it, and take up to fifteen times as long.
_NUMBERS_WORTH_BLAS_THREADS = 10_000_000

POINTS_WORTH_THREADS = 20_000
"""With fewer rows of a few operations each, starting threads takes longer than the loop."""

POINTS_OF_BLOCK = 2**15
"""Points of a block in sums over points: in double precision, they fit in a level 2 cache."""

# This many threads are allowed on fewer cores too: more threads than cores gain nothing, but a few do no harm.
_FEW = 8


class _Pools:
    """The pools by their number of threads; they end with their last user."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0
        self._pools: dict[int, ThreadPoolExecutor] = {}

    @contextmanager
    def user(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                idle, self._pools = ({}, self._pools) if self._users else (self._pools, {})
            for pool in idle.values():
                pool.shutdown(cancel_futures=True)

    def get(self, n_threads: int) -> ThreadPoolExecutor:
        with self._lock:
            if n_threads not in self._pools:
                self._pools[n_threads] = ThreadPoolExecutor(n_threads, thread_name_prefix="graphcouple")
            return self._pools[n_threads]


_pools = _Pools()
_local = threading.local()


def _forget_users() -> None:
    global _pools, _one_blas_thread
    _pools, _one_blas_thread = _Pools(), _OneBlasThread()


if hasattr(os, "register_at_fork"):
    # A forked child inherits users and pools, but none of their threads.
    os.register_at_fork(after_in_child=_forget_users)


@contextmanager
def threads_kept() -> Iterator[None]:
    """Keep threads from one loop to the next; they end with the outermost of these contexts. Also a decorator."""
    with _pools.user():
        yield


@cache
def _cores() -> int:
    return joblib.cpu_count()


def effective_n_jobs(n_jobs: Any) -> int:
    """Return the number of threads that `n_jobs` stands for, at most the number of cores, or 8 if that is more.

    None follows `joblib.parallel_config`; without it, every available core, or one thread in a worker of joblib, since
    the other workers use the other cores.
    """
    if n_jobs is None:
        backend, backend_jobs = get_active_backend()
        if backend_jobs is None:
            return _cores() if backend.nesting_level in (0, None) else 1
        n_jobs = int(backend.effective_n_jobs(backend_jobs))
    threads = check_integer("n_jobs", n_jobs, -sys.maxsize)
    if threads == 0:
        raise ValueError("n_jobs must not be 0; use None for every core, or a number of threads.")
    return min(max(1, threads if threads > 0 else _cores() + 1 + threads), max(_cores(), _FEW))


@cache
def _libraries() -> Any:
    import scipy.linalg  # noqa: F401  NumPy and SciPy each bring a BLAS.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def blas_threads(n_threads: int) -> Any:
    """Return a context in which BLAS uses `n_threads` threads.

    BLAS libraries are looked up once, because a lookup takes three milliseconds.
    """
    return _libraries().limit(limits=n_threads, user_api="blas")


class _OneBlasThread:
    """BLAS has one thread while anyone uses it here; a limit for each user could outlive a user in another thread."""

    def __init__(self) -> None:
        self._lock, self._users = threading.Lock(), 0

    @contextmanager
    def user(self) -> Iterator[None]:
        with self._lock:
            if not self._users:
                self._limit = blas_threads(1)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._limit.restore_original_limits()


_one_blas_thread = _OneBlasThread()


def one_blas_thread(n_numbers: int = 0) -> AbstractContextManager[None]:
    """Return a context in which BLAS uses one thread, unless the data have more numbers than are worth two."""
    return nullcontext() if n_numbers > _NUMBERS_WORTH_BLAS_THREADS else _one_blas_thread.user()


def over_rows(n_rows: int, n_jobs: int | None, loop: Callable[..., Any], *args: Any, at_least: int = 64) -> None:
    """Call ``loop(start, stop, *args)`` on blocks that together cover range(n_rows).

    Fewer rows than `at_least` run in the calling thread, and so does a loop inside another.
    """
    serial = getattr(_local, "loop", False) or (n_rows < at_least and n_jobs != 0)
    if serial or (n_threads := effective_n_jobs(n_jobs)) == 1:
        loop(0, n_rows, *args)
        return
    size = -(-n_rows // (n_threads * _BLOCKS_PER_THREAD))
    # The calling thread also takes blocks, because waiting takes longer than many loops.
    starts = iter(range(0, n_rows, size))

    def work() -> None:
        _local.loop = True
        try:
            for a in starts:
                loop(a, min(a + size, n_rows), *args)
        finally:
            _local.loop = False

    with threads_kept():
        futures: list[Future[None]] = []
        try:
            while len(futures) < n_threads - 1:
                futures.append(_pools.get(n_threads - 1).submit(work))
        except RuntimeError as error:
            # A thread that outlives the main one does all blocks: Python starts no other thread by then.
            if "shutdown" not in str(error):
                raise
        try:
            work()
        finally:
            for future in futures:
                future.result()


def over_blocks(
    n_rows: int, size: int, n_jobs: int | None, step: Callable[[slice], Any], *, at_least: int = 2
) -> list[Any]:
    """Return what `step` returns for blocks of `size` rows, in their order; several threads take blocks.

    Blocks are fixed, since sums are rounded by block. Fewer blocks than `at_least` run in the calling thread.
    """
    results: list[Any] = [None] * -(-n_rows // size)

    def loop(start: int, stop: int) -> None:
        for k in range(start, stop):
            results[k] = step(slice(k * size, min((k + 1) * size, n_rows)))

    over_rows(len(results), n_jobs, loop, at_least=at_least)
    return results
