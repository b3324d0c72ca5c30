"""Approximate neighbours: time and recall of graphcouple's search, and of other libraries that are installed.

    python benchmarks/neighbors.py mnist70k.npz [--neighbors 90]

Wall seconds from a fresh process (import, index and search; compiled code of graphcouple in the cache, that of
PyNNDescent at its first call), and the share of true neighbours found, on 500 points.
"""

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
from time import perf_counter

import numpy as np


def ours(X, k):
    from graphcouple.neighbors import nearest_neighbors

    return nearest_neighbors(X, k, search="approximate")[0].indices.reshape(-1, k)


def pynndescent(X, k):
    from pynndescent import NNDescent

    return NNDescent(X, n_neighbors=k + 1, n_jobs=-1, random_state=0).neighbor_graph[0]


def hnswlib(X, k):
    import hnswlib

    index = hnswlib.Index("l2", X.shape[1])
    index.init_index(len(X), ef_construction=100, M=16)
    index.add_items(X)
    index.set_ef(2 * k)
    return index.knn_query(X, k=k + 1)[0]


def usearch(X, k):
    from usearch.index import Index

    index = Index(ndim=X.shape[1], metric="l2sq")
    index.add(np.arange(len(X)), X)
    return index.search(X, k + 1).keys


def sklearn(X, k):
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=k, n_jobs=-1).fit(X).kneighbors(return_distance=False)


SEARCHES = {"graphcouple": ours, "pynndescent": pynndescent, "hnswlib": hnswlib, "usearch": usearch, "sklearn": sklearn}


def recall(X, found, k):
    rows = np.random.default_rng(1).choice(len(X), 500, replace=False)
    distances = np.square(X).sum(axis=1) - 2 * X[rows] @ X.T
    distances[np.arange(500), rows] = np.inf
    kth = np.partition(distances, k - 1, axis=1)[:, k - 1 : k]
    others = [found[i][found[i] != i][:k] for i in rows]
    return float(np.mean([(distances[a, j] <= kth[a] + 1e-4 * abs(kth[a])).mean() for a, j in enumerate(others)]))


def child(name, data, k):
    with np.load(data) as arrays:
        X = arrays["X"].astype(np.float32, copy=False)
    start = perf_counter()
    found = SEARCHES[name](X, k)
    seconds = perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps([seconds, recall(X, found, k), peak]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--neighbors", type=int, default=90)
    parser.add_argument("--only", nargs="+", choices=SEARCHES)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(asked.child, asked.data, asked.neighbors)
        return
    sys.stdout.write(f"{'':14}{'seconds':>10}{'recall':>10}{'peak MB':>10}\n")
    for name in asked.only or [n for n in SEARCHES if importlib.util.find_spec(n)]:
        command = [sys.executable, __file__, asked.data, "--neighbors", str(asked.neighbors), "--child", name]
        for _ in range(2 if name == "graphcouple" else 1):
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        seconds, share, peak = json.loads(done.stdout.splitlines()[-1])
        sys.stdout.write(f"{name:14}{seconds:10.1f}{share:10.3f}{peak:10.0f}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
