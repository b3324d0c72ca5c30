"""Approximate neighbours at equal recall: graphcouple's search beside other installed libraries.

    python benchmarks/neighbors.py mnist70k.npz [--metric manhattan] [--neighbors 90] [--recall 0.97]
    python benchmarks/neighbors.py texts.npy --texts 1000000 384 --neighbors 30 [--half] [--only "graphcouple"]

With `--texts`, the file is first written: points on a sphere like embeddings of texts, that is topics within topics and
a spectrum that falls like a power; in half precision with `--half`.

Each library runs in fresh processes with increasing effort, until it finds this share of the true neighbours of 300
points. The output has this run's seconds (import, index and search; graphcouple's compiled code is in the cache,
PyNNDescent compiles at its first call), recall and peak memory. For "jaccard" and "hamming" the points are cut at half
their largest value; for "jaccard" they are sparse.
"""

import argparse
import importlib.util
import json
import resource
import subprocess
import sys
from time import perf_counter

import numpy as np
import scipy.sparse as sp

# From this many points on, faiss's indexes get more lists and more candidates.
_MANY = 250_000


def graphcouple(X, k, metric, effort):
    from graphcouple.neighbors import nearest_neighbors

    return nearest_neighbors(X, k, metric, search="approximate")[0].indices.reshape(-1, k)


def pynndescent(X, k, metric, effort):
    from pynndescent import NNDescent

    return NNDescent(X, metric, n_neighbors=k + 1, n_jobs=-1, random_state=0).neighbor_graph[0]


def faiss_ivf(X, k, metric, effort):
    """Principal components, an inverted file and exact distances of its candidates; without the first for L1."""
    import faiss

    if metric == "manhattan":
        index = faiss.IndexIVFFlat(faiss.IndexFlat(X.shape[1], faiss.METRIC_L1), X.shape[1], 256, faiss.METRIC_L1)
        index.train(X[:20_000])
        index.add(X)
        index.nprobe = effort
        return index.search(X, k + 1)[1]
    if len(X) < _MANY:
        return refined(X, k, effort, "PCA64,IVF256,Flat", 2.0)
    return refined(X, k, effort, f"PCA96,IVF{_lists(len(X))},Flat", 4.0)


def faiss_ivf_pq(X, k, metric, effort):
    """An inverted file of codes of 48 bytes, and exact distances of its candidates."""
    return refined(X, k, effort, f"IVF{_lists(len(X))},PQ48", 4.0)


def _lists(n):
    return 256 if n < _MANY else 4096 if n < 3_000_000 else 8192


def refined(X, k, effort, index, factor):
    import faiss

    coarse = faiss.index_factory(X.shape[1], index)
    coarse.train(X[:: max(len(X) // (78 * _lists(len(X))), 1)])
    exact = faiss.IndexRefineFlat(coarse)
    exact.k_factor = factor
    exact.add(X)
    faiss.extract_index_ivf(coarse).nprobe = effort
    return exact.search(X, k + 1)[1]


def faiss_hnsw(X, k, metric, effort):
    import faiss

    index = faiss.IndexHNSWFlat(X.shape[1], 16, faiss.METRIC_L1 if metric == "manhattan" else faiss.METRIC_L2)
    index.hnsw.efConstruction = 100
    index.add(X)
    index.hnsw.efSearch = max(effort, k + 1)
    return index.search(X, k + 1)[1]


def hnswlib(X, k, metric, effort):
    import hnswlib

    index = hnswlib.Index("l2", X.shape[1])
    index.init_index(len(X), ef_construction=100, M=16)
    index.add_items(X)
    index.set_ef(max(effort, k + 1))
    return index.knn_query(X, k=k + 1)[0]


def usearch(X, k, metric, effort):
    from usearch.index import Index

    index = Index(ndim=X.shape[1], metric="l2sq", expansion_search=max(effort, k + 1))
    index.add(np.arange(len(X)), X)
    return index.search(X, k + 1).keys


def nmslib(X, k, metric, effort):
    import nmslib

    index = nmslib.init(method="hnsw", space={"euclidean": "l2", "manhattan": "l1"}[metric])
    index.addDataPointBatch(X)
    index.createIndex({"M": 16, "efConstruction": 100})
    index.setQueryTimeParams({"efSearch": max(effort, k + 1)})
    return np.array([found for found, _ in index.knnQueryBatch(X, k=k + 1)])


def sklearn(X, k, metric, effort):
    from sklearn.neighbors import NearestNeighbors

    return NearestNeighbors(n_neighbors=k, metric=metric, n_jobs=-1).fit(X).kneighbors(return_distance=False)


EVERY = ("correlation", "cosine", "euclidean", "hamming", "jaccard", "manhattan")
DENSE = ("euclidean", "manhattan")
# The function, the package, the metrics it is run for, and its efforts.
SEARCHES = {
    "graphcouple": (graphcouple, "graphcouple", EVERY, [0]),
    "faiss IVF": (faiss_ivf, "faiss", DENSE, [8, 16, 24, 32, 48, 64, 96, 128, 256]),
    "faiss IVF-PQ": (faiss_ivf_pq, "faiss", ("euclidean",), [8, 16, 32, 64, 128, 256]),
    "faiss HNSW": (faiss_hnsw, "faiss", DENSE, [64, 128, 256, 512]),
    "hnswlib": (hnswlib, "hnswlib", ("euclidean",), [64, 128, 256, 512]),
    "usearch": (usearch, "usearch", ("euclidean",), [64, 128, 256, 512]),
    "nmslib": (nmslib, "nmslib", DENSE, [64, 128, 256, 512]),
    "PyNNDescent": (pynndescent, "pynndescent", EVERY, [0]),
    "scikit-learn": (sklearn, "sklearn", ("euclidean",), [0]),
}


def write_texts(path, n, p, half):
    """Write points like embeddings of texts, some rows at a time."""
    rng = np.random.default_rng(0)
    spectrum = np.arange(1, p + 1) ** -0.5
    topics = rng.normal(size=(60, p))
    within = topics[rng.integers(60, size=3000)] + 0.8 * rng.normal(size=(3000, p))
    points = np.lib.format.open_memmap(path, "w+", np.float16 if half else np.float32, (n, p))
    for a in range(0, n, 100_000):
        m = min(100_000, n - a)
        # Few topics are frequent, most are rare.
        topic = np.minimum(rng.pareto(0.8, size=m) * 60, 2999).astype(int)
        rows = (within[topic] + 1.2 * rng.normal(size=(m, p))) * spectrum
        points[a : a + m] = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    points.flush()


def recall(X, found, k, metric):
    rows = np.random.default_rng(1).choice(X.shape[0], 300, replace=False)
    parts = []
    for a in range(0, X.shape[0], 50_000):
        parts.append(between(X[rows], X[a : a + 50_000], metric))
        own = (rows >= a) & (rows < a + 50_000)
        parts[-1][own, rows[own] - a] = np.inf
        parts = [np.sort(np.hstack(parts), axis=1)[:, :k]]
    kth = parts[0][:, -1] * (1 + 1e-5) + 1e-9
    others = [found[i][(found[i] != i) & (found[i] >= 0)][:k] for i in rows]
    hits = [between(X[[i]], X[j], metric).ravel() <= far for i, j, far in zip(rows, others, kth, strict=True)]
    return float(np.mean([hit.sum() / k for hit in hits]))


def between(rows, X, metric):
    from sklearn.metrics import pairwise_distances

    if metric != "jaccard":
        return pairwise_distances(rows.astype(np.float64), X.astype(np.float64), metric=metric)
    both = np.asarray((rows @ X.T).todense())
    return 1.0 - both / (np.asarray(rows.sum(axis=1)) + np.asarray(X.sum(axis=1)).ravel() - both)


def child(name, data, k, metric, effort):
    X = np.load(data, mmap_mode="r")
    X = X["X"] if data.endswith(".npz") else X
    # faiss and PyNNDescent take single precision only.
    X = X if name == "graphcouple" else X.astype(np.float32, copy=False)
    if metric in ("jaccard", "hamming"):
        X = np.greater(X, 0.5 * X.max()).astype(np.float32)
        X = sp.csr_matrix(X) if metric == "jaccard" else X
    start = perf_counter()
    found = SEARCHES[name][0](X, k, metric, effort)
    seconds = perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps([seconds, recall(X, found, k, metric), peak]) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--metric", choices=EVERY, default="euclidean")
    parser.add_argument("--neighbors", type=int, default=90)
    parser.add_argument("--recall", type=float, default=0.97)
    parser.add_argument("--texts", nargs=2, type=int, metavar=("ROWS", "COLUMNS"))
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--only", nargs="+", choices=SEARCHES)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.child:
        child(asked.child[0], asked.data, asked.neighbors, asked.metric, int(asked.child[1]))
        return
    if asked.texts:
        write_texts(asked.data, *asked.texts, asked.half)
    sys.stdout.write(f"{'':14}{'effort':>8}{'seconds':>10}{'recall':>10}{'peak MB':>10}\n")
    for name in asked.only or SEARCHES:
        _, package, metrics, efforts = SEARCHES[name]
        if asked.metric not in metrics or not importlib.util.find_spec(package):
            continue
        command = [sys.executable, __file__, asked.data, "--neighbors", str(asked.neighbors), "--metric", asked.metric]
        for effort in efforts * (2 if name == "graphcouple" else 1):
            run = [*command, "--child", name, str(effort)]
            done = subprocess.run(run, capture_output=True, text=True, check=True)
            seconds, share, peak = json.loads(done.stdout.splitlines()[-1])
            if share >= asked.recall and name != "graphcouple":
                break
        sys.stdout.write(f"{name:14}{effort:8d}{seconds:10.1f}{share:10.3f}{peak:10.0f}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
