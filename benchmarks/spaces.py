"""Maps in hyperbolic space beside the plane: trees, and the ten data sets of `front.py`.

    python benchmarks/spaces.py --files mnist10k-images-idx3-ubyte.gz coil20.mat [--points 1500] [--tenthousand]

For trees, "distortion" is the mean of |d/δ/median(d/δ) − 1| over pairs, d their distance on the map and δ along the
tree. R(K) is how well neighbourhoods of K points are kept (`graphcouple.metrics`), by the distances of each space.
Prints two tables. With --tenthousand, also the seconds of a fit of 10,000 points.
"""

import argparse
import time
import warnings

import networkx as nx
import numpy as np
from front.data import generated, pictures
from scipy.spatial.distance import cdist
from scipy.stats import spearmanr

import graphcouple as gc

METHODS = {
    "t-SNE": lambda **options: gc.TSNE(random_state=0, **options),
    "CO-SNE, R = 5": lambda **options: gc.COSNE(radius=5.0, random_state=0, **options),
    "CO-SNE": lambda **options: gc.COSNE(random_state=0, **options),
}
TREES = {"binary, depth 7": (2, 7), "ternary, depth 5": (3, 5), "5 branches, depth 3": (5, 3)}


def distances_on(fitted):
    """Return the distances on a fitted map."""
    metric = fitted.sentence.latent.metric
    return cdist(fitted.embedding_, fitted.embedding_) if metric == "euclidean" else metric.between(fitted.embedding_)


def kept(among_data, on_map, sizes):
    """Return R(K) for each size, from all distances."""
    n = len(among_data)
    ranks = []
    for distances in (among_data, on_map):
        order = distances + np.where(np.eye(n, dtype=bool), np.inf, 0.0)
        ranks.append(np.argsort(np.argsort(order, axis=1, kind="stable"), axis=1))
    shared = np.array([((ranks[0] < K) & (ranks[1] < K)).sum() / (n * K) for K in sizes])
    return ((n - 1) * shared - sizes) / (n - 1 - sizes)


def trees():
    print("| tree | " + " | ".join(f"{name}: rank correlation, distortion" for name in METHODS) + " |")
    for name, (branches, depth) in TREES.items():
        along = np.asarray(nx.floyd_warshall_numpy(nx.balanced_tree(branches, depth)))
        pairs = np.triu_indices(len(along), 1)
        cells = []
        for make in METHODS.values():
            distances = distances_on(make(metric="precomputed", perplexity=15).fit(along))
            ratios = distances[pairs] / along[pairs]
            distortion = np.abs(ratios / np.median(ratios) - 1.0).mean()
            cells.append(f"{spearmanr(distances[pairs], along[pairs]).statistic:.2f}, {distortion:.2f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def front(files, points):
    data = {**generated(points, 0), **pictures(files)}
    sums = {name: [] for name in METHODS}
    for X, _ in data.values():
        rows = np.sort(np.random.default_rng(0).permutation(len(X))[:points])
        among, sizes = cdist(X[rows], X[rows]), np.array([10, len(rows) // 4, len(rows) // 2])
        for name, make in METHODS.items():
            start = time.perf_counter()
            fitted = make().fit(X[rows])
            seconds = time.perf_counter() - start
            sums[name].append([*kept(among, distances_on(fitted), sizes), fitted.kl_divergence_, seconds])
    print(f"\n| {len(data)} data sets | R(10) | R(n/4) | R(n/2) | KL | seconds |")
    for name, values in sums.items():
        near, quarter, half, divergence, seconds = np.mean(values, axis=0)
        print(f"| {name} | {near:.3f} | {quarter:.3f} | {half:.3f} | {divergence:.2f} | {seconds:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="*", default=[], help="data sets of pictures beside the digits")
    parser.add_argument("--points", type=int, default=1500)
    parser.add_argument("--tenthousand", action="store_true", help="also time 10,000 points")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    trees()
    front(options.files, options.points)
    if options.tenthousand:
        X = generated(10_000, 0)["unequal blobs"][0]
        start = time.perf_counter()
        fitted = METHODS["CO-SNE"]().fit(X)
        print(f"\n10,000 points: {time.perf_counter() - start:.0f} s, {fitted.n_iter_} iterations")


if __name__ == "__main__":
    main()
