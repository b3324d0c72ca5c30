"""Maps that are dense where the data are: `gc.Density` at four weights, beside umap-learn's densMAP.

    python benchmarks/density.py mnist10k-images-idx3-ubyte.gz coil20.mat

Five Gaussian clusters of sizes 0.5 to 8, and up to 1,500 points of each data set of the front (`benchmarks/front`),
with the files of pictures given. `gc.metrics.density_match` gives correlation and slope, and `gc.metrics.evaluate`
gives R(10) and R(n/2).
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np

import graphcouple as gc

sys.path.insert(0, str(Path(__file__).with_name("front")))
from data import generated, pictures

WEIGHTS = (0.0, 1.0, 3.0, 10.0)
SIZES = (1.0, 2.0, 4.0, 0.5, 8.0)
POINTS = 1500


def data_sets(files: list[str]) -> dict[str, np.ndarray]:
    """Return the data sets by name."""
    rng = np.random.default_rng(0)
    centres = 20.0 * rng.normal(size=(len(SIZES), 10))
    clusters = [c + s * rng.normal(size=(POINTS // len(SIZES), 10)) for c, s in zip(centres, SIZES, strict=True)]
    others = {**generated(POINTS, 0), **pictures(files)}
    return {"clusters": np.concatenate(clusters), **{name: X[:POINTS] for name, (X, _) in others.items()}}


def densmap(X: np.ndarray) -> np.ndarray:
    """Return umap-learn's densMAP at its defaults."""
    import umap

    return umap.UMAP(densmap=True, random_state=0).fit_transform(X)


def main(files: list[str]) -> None:
    """Print one row for each fit."""
    warnings.simplefilter("ignore")
    methods = {
        f"{method.__name__}, {weight:g}": method(terms=[gc.Density(weight)], random_state=0).fit_transform
        for method in (gc.TSNE, gc.UMAP)
        for weight in WEIGHTS
    }
    print("| data | method, weight | correlation | slope | R(10) | R(n/2) | s |\n|---|---|---|---|---|---|---|")
    for name, X in data_sets(files).items():
        for method, fit in {**methods, "densMAP": densmap}.items():
            start = time.perf_counter()
            Z = fit(X)
            seconds = time.perf_counter() - start
            match, scores = gc.metrics.density_match(X, Z), gc.metrics.evaluate(X, Z)
            figures = f"{match.correlation:.2f} | {match.slope:.2f} | {scores['R(10)']:.2f} | {scores['R(n/2)']:.2f}"
            print(f"| {name} | {method} | {figures} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
