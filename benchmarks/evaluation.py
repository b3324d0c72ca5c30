"""Time and memory of scores and pictures of many points.

    python benchmarks/evaluation.py mnist10k-images-idx3-ubyte.gz [--sampled mnist70k.npz] [--exact]

Prints wall seconds and the growth of memory of the curves of all neighborhood sizes (exact, of the images and their
t-SNE), of the sampled curves of a larger data set with their largest standard errors, and of a scatter of a million
points saved as PNG; twice each, so that the second has no compilation. --exact compares the sampled curves with those
of all points, which takes minutes.
"""

import argparse
import resource
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

import graphcouple as gc

CURVES = ("preservation", "trustworthiness", "continuity")


def timed(name, function):
    """Run twice, print seconds and memory, return the last result."""
    for call in ("first", "again"):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = perf_counter()
        result = function()
        seconds = perf_counter() - start
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        print(f"{name:44}{call:>8}{seconds:8.2f} s  peak memory {grown:+6.0f} MiB", flush=True)
    return result


def scatter(folder):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 1_000_000)
    Z = 6.0 * rng.normal(size=(10, 2))[y] + rng.normal(size=(y.size, 2))
    path = Path(folder) / "million.png"
    timed("scatter of 1,000,000 points as PNG", lambda: gc.plot(Z, y).figure.savefig(path, dpi=200))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("images")
    parser.add_argument("--sampled", help=".npz with X")
    parser.add_argument("--exact", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scatter(folder)
    images = gc.datasets.read_idx(asked.images)
    X = images.reshape(len(images), -1).astype(float)
    Z = gc.TSNE(random_state=0).fit_transform(X)
    timed(f"curves of all {len(X):,} points", lambda: gc.metrics.neighborhood_curves(X, Z))
    if not asked.sampled:
        return
    with np.load(asked.sampled) as arrays:
        X = arrays["X"]
    Z = gc.TSNE(random_state=0).fit_transform(X)
    n_rows = gc.metrics.SAMPLED_ROWS
    name = f"curves of {n_rows:,} of {len(X):,} points"
    found = timed(name, lambda: gc.metrics.neighborhood_curves(X, Z, n_rows=n_rows, random_state=0))
    at = np.array([10, len(X) // 4, len(X) // 2]) - 1
    for curve in CURVES:
        error = getattr(found, f"{curve}_error")
        few = ", ".join(f"{value:.4f}" for value in error[at])
        print(f"  {curve}: standard errors {few} at 10, n/4, n/2; at most {error[9 : at[2]].max():.4f} between")
    if asked.exact:
        exact = gc.metrics.neighborhood_curves(X, Z)
        for curve in CURVES:
            off = np.abs(getattr(found, curve) - getattr(exact, curve))
            few = ", ".join(f"{value:.4f}" for value in off[at])
            print(f"  {curve}: off by {few} at 10, n/4, n/2; at most {off[9 : at[2]].max():.4f} between")


if __name__ == "__main__":
    main()
