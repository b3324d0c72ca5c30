"""Threads: as many as asked for, while they are needed."""

import concurrent.futures.thread
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import graphcouple as gc
from graphcouple._numba.threads import _libraries, effective_n_jobs, one_blas_thread, over_rows, threads_kept

X, y = gc.datasets.load("iris")

RUNS = {
    "t-SNE": lambda n: gc.TSNE(perplexity=10, max_iter=20, random_state=0, n_jobs=n).fit(X).transform(X[:5]),
    "UMAP": lambda n: gc.UMAP(max_iter=20, random_state=0, n_jobs=n).fit(X),
    "sampled": lambda n: gc.UMAP(repulsion="effective", max_iter=20, random_state=0, n_jobs=n).fit(X),
    "cosine": lambda n: gc.LargeVis(perplexity=10, metric="cosine", max_iter=20, random_state=0, n_jobs=n).fit(X),
    "manhattan": lambda n: gc.SNE(perplexity=10, metric="manhattan", max_iter=20, random_state=0, n_jobs=n).fit(X),
    "ccPCA": lambda n: gc.CCPCA(random_state=0, n_jobs=n).fit(X),
    "stress": lambda n: gc.MetricMDS(max_iter=20, n_jobs=n).fit(X),
    "Isomap": lambda n: gc.Isomap(n_jobs=n).fit(X),
    "LLE": lambda n: gc.LocallyLinearEmbedding(n_jobs=n).fit(X),
    "scores": lambda n: gc.metrics.evaluate(X, X[:, :2], y, n_jobs=n),
}


@pytest.mark.filterwarnings(r"ignore:the graph has \d+ connected components")
@pytest.mark.parametrize("name", RUNS)
def test_one_job_starts_no_thread_and_others_end_theirs(name, monkeypatch):
    started = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda thread: (start(thread), started.append(_working()))[0])
    before = set(threading.enumerate())
    RUNS[name](1)
    assert not started
    RUNS[name](2)
    _ended(before)
    RUNS[name](100_000)
    most = max(joblib.cpu_count(), 8)
    assert all(ours <= most for ours, _ in started)
    # Threads of joblib's last pool may still be ending when its next one begins.
    assert all(pooled <= 2 * most for _, pooled in started)
    _ended(before)
    assert set(threading.enumerate()) <= before


def test_a_loop_within_a_loop_runs_in_its_own_thread():
    done = np.zeros((8, 100))

    def inner(start, stop, of):
        done[of, start:stop] += 1.0

    def outer(start, stop):
        for of in range(start, stop):
            over_rows(100, 4, inner, of)

    # More loops than threads would wait for each other for ever.
    over_rows(8, 3, outer, at_least=2)
    assert (done == 1.0).all()
    over_rows(100, 3, inner, 0)
    assert (done[0] == 2.0).all()


def _working():
    """Return how many threads of this package, and of joblib's pools, are alive."""
    names = [thread.name for thread in threading.enumerate()]
    return sum(name.startswith("graphcouple") for name in names), sum("(worker)" in name for name in names)


def _ended(before):
    """Wait for joblib's threads, which end by themselves, a moment later."""
    for thread in set(threading.enumerate()) - before:
        thread.join(5.0)


def test_threads_are_as_many_as_cores_at_most():
    assert effective_n_jobs(100_000) <= max(joblib.cpu_count(), 8)
    seen = set()
    over_rows(100_000, 100_000, lambda start, stop: (time.sleep(0.02), seen.add(threading.current_thread().name)))
    assert 1 < len(seen) <= max(joblib.cpu_count(), 8)


def test_none_follows_the_context_of_joblib():
    assert effective_n_jobs(None) == joblib.cpu_count()
    for n in (1, 2):
        with joblib.parallel_config(n_jobs=n):
            assert effective_n_jobs(None) == n
    workers = joblib.Parallel(2, prefer="threads")(joblib.delayed(effective_n_jobs)(None) for _ in range(4))
    assert workers == [1] * 4


def test_threads_live_as_long_as_their_outermost_context():
    def loop(start, stop):
        time.sleep(0.02)
        names.add(threading.current_thread().ident)

    names = set()
    with threads_kept():
        over_rows(1000, 2, loop)
        with threads_kept():
            over_rows(1000, 2, loop)
        alive = {thread.ident for thread in threading.enumerate()}
        assert names <= alive
    # The calling thread takes its share of the blocks.
    names.remove(threading.get_ident())
    assert names
    assert not names & {thread.ident for thread in threading.enumerate()}


def test_fits_of_several_threads_do_not_end_each_others():
    expected = gc.TSNE(perplexity=10, max_iter=60, random_state=0, n_jobs=1).fit_transform(X)
    with ThreadPoolExecutor(4) as pool:
        fits = [
            pool.submit(gc.TSNE(perplexity=10, max_iter=60, random_state=0, n_jobs=2).fit_transform, X)
            for _ in range(8)
        ]
        for fit in fits:
            assert np.array_equal(fit.result(), expected)


def threads_of_blas():
    """Return the numbers of threads of NumPy's and SciPy's BLAS; other packages, as faiss, bring one of their own."""
    return {library["num_threads"] for library in _libraries().info() if library["user_api"] == "blas"}


def test_small_data_take_one_thread_of_blas_and_give_the_others_back():
    during = set()
    with threadpool_limits(2, user_api="blas"):
        gc.TSNE(perplexity=10, max_iter=3, random_state=0, callback=lambda *_: during.update(threads_of_blas())).fit(X)
        assert during == {1}
        first, second = one_blas_thread(), one_blas_thread()
        for change, n_threads in (
            (first.__enter__, 1),
            (second.__enter__, 1),
            (lambda: first.__exit__(None, None, None), 1),
            (lambda: second.__exit__(None, None, None), 2),
        ):
            change()
            assert threads_of_blas() == {n_threads}
        with one_blas_thread(10**8):
            assert threads_of_blas() == {2}


def test_a_failing_block_ends_the_threads_too():
    def loop(start, stop):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        over_rows(1000, 2, loop)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("graphcouple")]


def test_a_thread_that_outlives_the_main_one_does_all_blocks(monkeypatch):
    done = np.zeros(1000)

    def loop(start, stop):
        done[start:stop] += 1.0

    # Python sets this when the main thread ends; a pool then starts no thread.
    monkeypatch.setattr(concurrent.futures.thread, "_shutdown", True)
    over_rows(1000, 4, loop)
    assert (done == 1.0).all()
