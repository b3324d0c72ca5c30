"""Score embeddings of one data set in the same way, and print the scores as JSON.

python benchmarks/compare/judge.py DATA.npz EMBEDDING.npy ...
"""

import json
import sys

import numpy as np

import graphcouple as gc

PERPLEXITY = 30
WITHOUT_KL = ("UMAP.npy", "umap-learn.npy")


def main():
    data, *embeddings = sys.argv[1:]
    with np.load(data) as arrays:
        X, y = arrays["X"], arrays["y"]
    n = len(X)
    model = gc.GraphModel(
        gc.Gaussian(), "D", gc.Perplexity(PERPLEXITY), n_neighbors=min(3 * PERPLEXITY, n - 1), search="exact"
    )
    # Exact sums where they take seconds, a finely meshed grid where they would take longer.
    summation = "exact" if n <= 100_000 else gc.summation.ParticleMesh(spacing=0.1)
    objective = gc.CrossEntropy(model.posterior(X), gc.GraphModel(gc.Student(), "E"), summation=summation)
    maps = {path: np.load(path).astype(np.float64) for path in embeddings}
    table = gc.metrics.evaluate(X, maps, y)
    scores = []
    for path, Z in maps.items():
        R = [float(table.loc[path, name]) for name in ("R(10)", "R(n/4)", "R(n/2)")]
        kl = objective.kl_divergence(Z) if not path.endswith(WITHOUT_KL) else None
        accuracy = float(table.loc[path, "10-NN accuracy"])
        scores.append({"kl": kl, "R10": R[0], "Rn4": R[1], "Rn2": R[2], "accuracy": accuracy})
    sys.stdout.write(json.dumps(scores) + "\n")


if __name__ == "__main__":
    main()
