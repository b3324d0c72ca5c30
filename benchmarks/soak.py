"""A thousand mixed fits in one process: memory, threads and files must not grow.

    python benchmarks/soak.py [--fits 1000]

The fits are five rounds of the same mixture of methods, metrics, sizes and threads, on fresh data. Prints, after each
tenth, the memory that the process holds, its threads and its open files. The first round compiles loops, which stay.
Ends with status 1 if the memory after the last round exceeds that after the first by more than 5 %, or if there are
more threads or files.
"""

import argparse
import ctypes
import gc as garbage
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import psutil
from numba.core.registry import CPUDispatcher

import graphcouple as gc

SIZES = (30, 200, 200, 1200, 2500)
ROUNDS = 5


def methods(rng, folder):
    """Return fits to draw from: each takes points."""
    metric = str(rng.choice(["euclidean", "cosine", "manhattan"]))
    seed, n_jobs = int(rng.integers(1000)), int(rng.choice([1, 2, 4]))
    run = {"random_state": seed, "n_jobs": n_jobs, "max_iter": 30}

    def saved(X):
        gc.TSNE(perplexity=5, **run).fit(X).save(folder / "model.gc")
        gc.load(folder / "model.gc").transform(X[:10])

    def interrupted(X):
        def stop(iteration, loss, Z):
            raise KeyboardInterrupt

        try:
            gc.UMAP(n_neighbors=5, callback=stop, **run).fit(X)
        except KeyboardInterrupt:
            return

    return [
        lambda X: gc.TSNE(perplexity=5, metric=metric, **run).fit(X).transform(X[:10]),
        lambda X: gc.UMAP(n_neighbors=5, metric=metric, **run).fit(X).inverse_transform(np.zeros((3, 2))),
        lambda X: gc.UMAP(n_neighbors=5, repulsion="sampled", **run).fit(X),
        lambda X: gc.LargeVis(perplexity=5, n_components=int(rng.choice([1, 2, 3])), **run).fit(X),
        lambda X: gc.HierarchicalCoupling(gc.TSNE(perplexity=5, **run)).fit(X),
        lambda X: gc.LaptSNE(perplexity=5, n_clusters=3, **run).fit(X),
        lambda X: gc.TwoKernelPCA(n_neighbors=5, **run).fit(X),
        lambda X: gc.CCPCA(perplexity=5, n_samples=20, random_state=seed, n_jobs=n_jobs).fit(X),
        lambda X: gc.Isomap(n_neighbors=5).fit(X),
        lambda X: gc.LaplacianEigenmaps().fit(X),
        lambda X: gc.MetricMDS(max_iter=10, pairs_per_point=20, random_state=seed).fit(X),
        lambda X: gc.metrics.evaluate(X, X[:, :2], n_jobs=n_jobs),
        saved,
        interrupted,
    ]


def state(process):
    """Return the megabytes, threads, open files and compiled loops of a process, which gives back what it can."""
    garbage.collect()
    if sys.platform == "linux":
        # Else pages that the allocator keeps for later would count.
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    loops = sum(len(loop.overloads) for loop in garbage.get_objects() if isinstance(loop, CPUDispatcher))
    return process.memory_info().rss / 2**20, process.num_threads(), process.num_fds(), loops


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=1000)
    n_fits = parser.parse_args().fits
    warnings.simplefilter("ignore")
    process, points = psutil.Process(), np.random.default_rng(0)
    a_round, seen, begun = max(n_fits // ROUNDS, 1), {}, time.perf_counter()
    print(f"{'fits':>6} {'MiB':>8} {'threads':>8} {'files':>6} {'loops':>6} {'seconds':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for fit in range(n_fits):
            rng = np.random.default_rng(fit % a_round)
            X = points.normal(size=(int(rng.choice(SIZES)), 8)) + 10.0 * points.integers(3, size=1)
            drawn = methods(rng, Path(folder))
            drawn[rng.integers(len(drawn))](X)
            if (fit + 1) % max(n_fits // 10, 1) == 0 or fit + 1 in (a_round, n_fits):
                now = seen[fit + 1] = state(process)
                seconds = time.perf_counter() - begun
                print(f"{fit + 1:>6} {now[0]:>8.0f} {now[1]:>8} {now[2]:>6} {now[3]:>6} {seconds:>8.0f}", flush=True)
    first, last = seen[a_round], seen[max(seen)]
    grown = last[0] / first[0] - 1.0
    print(f"after the first round, memory grows by {grown:.1%}, threads by {last[1] - first[1]}")
    sys.exit(1 if grown > 0.05 or last[1] > first[1] or last[2] > first[2] else 0)


if __name__ == "__main__":
    if sys.platform == "linux" and "MALLOC_ARENA_MAX" not in os.environ:
        # glibc keeps free pages in an arena for each thread, up to a bound; in one arena, what is held shows.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_ARENA_MAX": "1"})
    main()
