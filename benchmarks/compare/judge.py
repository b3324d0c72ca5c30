"""Judge embeddings of one data set alike, and print their scores as JSON.

python benchmarks/compare/judge.py DATA.npz EMBEDDING.npy ...
"""

import json
import sys

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import graphcouple as gc

PERPLEXITY = 30
QUERIES = 400


def preservation(X, Z, rows, K):
    """Return 100 R(K) of some rows, for several K."""
    n = len(X)
    ranks = np.argsort(np.argsort(distances(X, rows), axis=1), axis=1)
    nearest = np.argsort(distances(Z, rows), axis=1)
    scores = []
    for k in K:
        shared = (np.take_along_axis(ranks, nearest[:, :k], axis=1) < k).mean()
        scores.append(100 * ((n - 1) * shared - k) / (n - 1 - k))
    return scores


def distances(points, rows):
    product = points[rows] @ points.T
    norms = np.square(points).sum(axis=1)
    found = norms[rows][:, None] + norms - 2 * product
    found[np.arange(len(rows)), rows] = np.inf
    return found


def main():
    data, *embeddings = sys.argv[1:]
    with np.load(data) as arrays:
        X, y = arrays["X"], arrays["y"]
    n = len(X)
    rows = np.random.default_rng(0).choice(n, min(QUERIES, n), replace=False)
    model = gc.GraphModel(
        gc.Gaussian(), "D", gc.Perplexity(PERPLEXITY), n_neighbors=min(3 * PERPLEXITY, n - 1), search="exact"
    )
    # Exact sums where they take seconds, a finely meshed grid where they would take longer.
    summation = "exact" if n <= 100_000 else gc.summation.ParticleMesh(spacing=0.1)
    objective = gc.CrossEntropy(model.posterior(X), gc.GraphModel(gc.Student(), "E"), summation=summation)
    scores = []
    for path in embeddings:
        Z = np.load(path).astype(np.float64)
        R = preservation(X, Z, rows, (10, n // 4, n // 2))
        accuracy = cross_val_score(KNeighborsClassifier(10), Z, y, cv=5).mean()
        kl = objective.kl_divergence(Z) if not path.endswith(("UMAP.npy", "umap-learn.npy")) else None
        scores.append({"kl": kl, "R10": R[0], "Rn4": R[1], "Rn2": R[2], "accuracy": accuracy})
    sys.stdout.write(json.dumps(scores) + "\n")


if __name__ == "__main__":
    main()
