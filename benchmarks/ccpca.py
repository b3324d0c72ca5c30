"""ccPCA beyond the posterior: seconds by step, and memory, on MNIST.

    python benchmarks/ccpca.py FILE [--samples 100] [--repeats 3]

FILE is an IDX file of images (gzipped or not) or an .npz with an array X. The posterior (prior D, perplexity 30, 90
neighbours) is computed once, and kept beside the file given by --posterior. Each repetition is a process of its own
that reads data and posterior, and fits. The memory reported is the peak of the fit above the
memory before it.
"""

import argparse
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import graphcouple as gc

RUN = """
import json, os, pickle, resource, sys, time
import numpy as np
import graphcouple as gc
from graphcouple.components.pca import component_pca
X = np.load(sys.argv[1], mmap_mode=None)
posterior = pickle.load(open(sys.argv[2], "rb"))
n_samples = int(sys.argv[3])
gc.CCPCA(input=posterior.__class__(posterior.support, posterior.natural_parameters), n_samples=2, random_state=0).fit(X)
before = int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
start = time.perf_counter()
fitted = gc.CCPCA(input=posterior, n_samples=n_samples, random_state=0).fit(X)
total = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
start = time.perf_counter()
labels = gc.sample_components(posterior, n_samples, 0)
drawing = time.perf_counter() - start
M = gc.AveragedProjection(labels)
V = np.random.default_rng(0).normal(size=(len(X), 12))
start = time.perf_counter()
M @ V
product = time.perf_counter() - start
start = time.perf_counter()
component_pca(X, M, 2)
decomposition = time.perf_counter() - start
counts = float(fitted.component_counts_.mean())
print(json.dumps([total, drawing, decomposition, product, peak - before, fitted.relative_error_, counts]))
"""


def read(path):
    if path.suffix == ".npz":
        return np.load(path)["X"]
    images = gc.datasets.read_idx(path)
    return images.reshape(len(images), -1).astype(float)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--posterior", type=Path, help="where to keep the posterior; a temporary file by default")
    options = parser.parse_args()
    X = read(options.file)
    with tempfile.TemporaryDirectory() as folder:
        kept = options.posterior or Path(folder) / "posterior.pkl"
        points = Path(folder) / "X.npy"
        np.save(points, X)
        if not kept.exists():
            start = time.perf_counter()
            posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(30), n_neighbors=90).posterior(X)
            print(f"posterior          {time.perf_counter() - start:8.2f} s (not part of what follows)")
            kept.write_bytes(pickle.dumps(posterior))
        command = [sys.executable, "-c", RUN, str(points), str(kept), str(options.samples)]
        runs = [
            json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            for _ in range(options.repeats)
        ]
    total, drawing, decomposition, product, memory, error, count = map(statistics.median, zip(*runs, strict=True))
    print(f"{len(X):,} × {X.shape[1]}, {options.samples} graphs of {count:.0f} components; medians of {len(runs)} runs")
    print(f"CCPCA.fit          {total:8.2f} s, {memory:.0f} MB beyond data and posterior, error {error:.3f}")
    print(f"  graphs, labels   {drawing:8.2f} s ({1e3 * drawing / options.samples:.1f} ms a graph)")
    print(f"  decomposition    {decomposition:8.2f} s (of which a product with M takes {product:.3f} s)")


if __name__ == "__main__":
    main()
