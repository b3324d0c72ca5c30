"""How time and memory of t-SNE grow with the number of points: Gaussian mixtures of 50 dimensions.

    python benchmarks/scaling.py [--sizes 10000 30000 70000 200000 1000000] [--method tsne]

Each size is fitted in a process of its own, with compiled code in the cache. Prints wall seconds (neighbours,
affinities, optimization, total with the import), peak memory, and the exponent of the total in n, fitted from
70,000 points on.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

FIT = Path(__file__).parent / "compare" / "fit.py"
NAMES = {"tsne": "graphcouple TSNE", "umap": "graphcouple UMAP", "sne": "graphcouple SNE"}


def mixture(n, n_dims=50, n_classes=50, seed=0):
    """Return points of a mixture of spherical Gaussians whose centres have ten times their variance, and the class."""
    rng = np.random.default_rng(seed)
    centres = np.sqrt(10.0) * rng.normal(size=(n_classes, n_dims)).astype(np.float32)
    y = rng.integers(0, n_classes, n)
    return centres[y] + rng.standard_normal((n, n_dims), dtype=np.float32), y


def fit(n, name, folder):
    X, y = mixture(n)
    data = Path(folder) / "data.npz"
    np.savez(data, X=X, y=y)
    del X, y
    command = [sys.executable, str(FIT), name, str(data), f"{folder}/embedding.npy", "once"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 70_000, 200_000, 500_000, 1_000_000])
    parser.add_argument("--method", choices=NAMES, default="tsne")
    asked = parser.parse_args()
    columns = ("neighbors_s", "affinities_s", "optimize_s", "total_s", "peak_mb")
    sys.stdout.write(f"{'n':>12}" + "".join(f"{column:>14}" for column in columns) + "\n")
    totals = []
    with tempfile.TemporaryDirectory() as folder:
        fit(3000, NAMES[asked.method], folder)
        for n in asked.sizes:
            found = fit(n, NAMES[asked.method], folder)
            totals.append(found["total_s"])
            sys.stdout.write(f"{n:12,}" + "".join(f"{found.get(column, 0.0):14.1f}" for column in columns) + "\n")
            sys.stdout.flush()
    far = [(n, total) for n, total in zip(asked.sizes, totals, strict=True) if n >= 70_000]
    if len(far) > 1:
        slope = np.polyfit(*np.log(np.array(far)).T, 1)[0]
        sys.stdout.write(f"total grows like n^{slope:.2f} from {far[0][0]:,} points on\n")


if __name__ == "__main__":
    main()
