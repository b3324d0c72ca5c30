"""Maps of eight overlapping windows of 400 digits: tied by `AlignedMaps`, each alone and then turned, and umap-learn's.

    python benchmarks/aligned.py

Distance of related rows in a map's root mean square radius, mean R(10) and R(n/2), seconds of a second fit.
"""

import time
import warnings
from itertools import pairwise

import numpy as np
from sklearn.datasets import load_digits

import graphcouple as gc

N_MAPS, N_ROWS, STEP = 8, 400, 150
RELATED = np.arange(STEP, N_ROWS), np.arange(N_ROWS - STEP)


def apart(maps):
    sizes = [np.sqrt(np.square(Z - Z.mean(axis=0)).sum(axis=1).mean()) for Z in maps]
    pairs = [np.linalg.norm(Z[RELATED[0]] - later[RELATED[1]], axis=1).mean() for Z, later in pairwise(maps)]
    return np.mean(pairs) / np.mean(sizes)


def turned(sets, method):
    maps = [method().fit_transform(X) for X in sets]
    for k in range(1, N_MAPS):
        maps[k] = gc.align(maps[k], to=maps[k - 1], shared=RELATED[::-1])
    return maps


def peer(sets):
    import umap

    relations = [dict(zip(*RELATED, strict=True))] * (N_MAPS - 1)
    return [np.asarray(Z) for Z in umap.AlignedUMAP(random_state=0).fit(sets, relations=relations).embeddings_]


def main():
    warnings.simplefilter("ignore")
    X, y = load_digits(return_X_y=True)
    X = X[np.argsort(y, kind="stable")]
    sets = [X[STEP * k : STEP * k + N_ROWS] for k in range(N_MAPS)]
    relations = [RELATED] * (N_MAPS - 1)
    runs = {"umap-learn": lambda: peer(sets)}
    for name, method in (("UMAP", lambda: gc.UMAP(random_state=0)), ("t-SNE", lambda: gc.TSNE(random_state=0))):
        for weight in (0.001, 0.01, 0.1):
            aligned = gc.AlignedMaps(method(), weight=weight)
            runs[f"{name}, w = {weight}"] = lambda aligned=aligned: aligned.fit_transform(sets, relations)
        runs[f"{name} alone"] = lambda method=method: turned(sets, method)
    print(f"{'':20}{'apart':>8}{'R(10)':>8}{'R(n/2)':>8}{'seconds':>9}")
    for name, run in runs.items():
        run()
        start = time.perf_counter()
        maps = run()
        seconds = time.perf_counter() - start
        scores = [gc.metrics.evaluate(part, Z) for part, Z in zip(sets, maps, strict=True)]
        means = [100 * np.mean([score[of] for score in scores]) for of in ("R(10)", "R(n/2)")]
        print(f"{name:20}{apart(maps):8.3f}{means[0]:8.1f}{means[1]:8.1f}{seconds:9.1f}", flush=True)


if __name__ == "__main__":
    main()
