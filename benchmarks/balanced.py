"""Doubly stochastic laws under noise that differs from point to point: t-SNE beside SNEkhorn.

    python benchmarks/balanced.py

Three classes of 200 rows of counts in 300 columns, divided by their sums; half of the rows have 1,000 counts, the
others 60 or 200. For each strength of the classes' differences: the adjusted Rand index of three clusters found by
k-means on the map, and the share of the law's edges within classes. Means of three data sets.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import graphcouple as gc

METHODS = {
    "t-SNE": gc.TSNE(random_state=0),
    "t-SNEkhorn": gc.SNEkhorn(latent_kernel=gc.Student(), random_state=0),
    "symmetric SNE": gc.SymmetricSNE(random_state=0),
    "SNEkhorn": gc.SNEkhorn(random_state=0),
}


def counts(strength: float, few: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return rows that sum to 1, and their classes."""
    rng = np.random.default_rng(seed)
    classes = np.exp(strength * rng.normal(size=(3, 300)))
    classes /= classes.sum(axis=1, keepdims=True)
    y = np.repeat(np.arange(3), 200)
    totals = np.where(rng.uniform(size=y.size) < 0.5, few, 1000)
    return np.array([rng.multinomial(n, classes[c]) / n for n, c in zip(totals, y, strict=True)]), y


def main() -> None:
    """Print a line for each data set and method."""
    warnings.simplefilter("ignore")
    sys.stdout.write(
        "| difference | few counts | method | Rand index | edges within classes |\n|---|---|---|---|---|\n"
    )
    for strength, few in ((0.8, 60), (0.5, 60), (0.3, 200), (0.3, 60)):
        for name, method in METHODS.items():
            rand, within = [], []
            for seed in range(3):
                X, y = counts(strength, few, seed)
                Z = method.fit_transform(X)
                found = KMeans(3, n_init=10, random_state=0).fit_predict(Z)
                rand.append(adjusted_rand_score(y, found))
                edges = method.posterior_.mean()
                within.append(edges[y[:, None] == y].sum() / edges.sum())
            sys.stdout.write(f"| {strength} | {few} | {name} | {np.mean(rand):.2f} | {np.mean(within):.2f} |\n")


if __name__ == "__main__":
    main()
