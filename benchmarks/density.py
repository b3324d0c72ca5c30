"""Maps that are dense where the data are: `gc.Density` at four weights, beside umap-learn's densMAP.

    python benchmarks/density.py mnist10k-images-idx3-ubyte.gz

The first 4,000 digits of the file, scikit-learn's digits, and five Gaussian clusters of sizes 0.5 to 8.
`gc.metrics.density_match` gives correlation and slope, and `gc.metrics.evaluate` gives R(10) and R(n/2).
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np

import graphcouple as gc

WEIGHTS = (0.0, 1.0, 3.0, 10.0)
SIZES = (1.0, 2.0, 4.0, 0.5, 8.0)


def data_sets(images: str) -> dict[str, np.ndarray]:
    """Return the three data sets by name."""
    rng = np.random.default_rng(0)
    centres = 20.0 * rng.normal(size=(len(SIZES), 10))
    blobs = [c + s * rng.normal(size=(400, 10)) for c, s in zip(centres, SIZES, strict=True)]
    mnist = gc.datasets.read_idx(images)[:4000].reshape(4000, -1).astype(np.float32)
    return {"digits": gc.datasets.load("digits")[0], "clusters": np.concatenate(blobs), "MNIST": mnist}


def densmap(X: np.ndarray) -> np.ndarray:
    """Return umap-learn's densMAP at its defaults."""
    import umap

    return umap.UMAP(densmap=True, random_state=0).fit_transform(X)


def main(images: str) -> None:
    """Print one row for each fit."""
    warnings.simplefilter("ignore")
    methods = {
        f"{method.__name__}, {weight:g}": method(terms=[gc.Density(weight)], random_state=0).fit_transform
        for method in (gc.TSNE, gc.UMAP)
        for weight in WEIGHTS
    }
    print("| data | method, weight | correlation | slope | R(10) | R(n/2) | s |\n|---|---|---|---|---|---|---|")
    for name, X in data_sets(images).items():
        for method, fit in {**methods, "densMAP": densmap}.items():
            start = time.perf_counter()
            Z = fit(X)
            seconds = time.perf_counter() - start
            match, scores = gc.metrics.density_match(X, Z), gc.metrics.evaluate(X, Z)
            figures = f"{match.correlation:.2f} | {match.slope:.2f} | {scores['R(10)']:.2f} | {scores['R(n/2)']:.2f}"
            print(f"| {name} | {method} | {figures} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
