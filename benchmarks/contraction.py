"""LaptSNE beside this library's t-SNE: seconds and peak memory of whole fits.

    python benchmarks/contraction.py --coil20 coil20.mat --mnist FOLDER [--large]
    python benchmarks/contraction.py --coil20 coil20.mat --scores

100 iterations on COIL-20 and on 7,200 MNIST digits, exact t-SNE first; then whole runs of 10,000 digits and, with
--large, of all 70,000. With --scores: NMI, silhouette and 10-NN accuracy of the digits data and COIL-20, five seeds.
"""

import argparse
import resource
import time
import warnings

import numpy as np

import graphcouple as gc


def seconds(method, X):
    """Return the time of a fit."""
    begin = time.perf_counter()
    method.set_params(random_state=0).fit(X)
    return time.perf_counter() - begin


def scores(coil20):
    """Print mean and standard deviation over five seeds, beside t-SNE's."""
    sets = {"PenDigits": (gc.datasets.load("digits"), gc.LaptSNE(n_clusters=8))}
    if coil20:
        sets["COIL-20"] = gc.datasets.load("coil20", coil20), gc.LaptSNE(n_clusters=19, init="pca")
    for name, ((X, y), contracted) in sets.items():
        for method in (gc.TSNE(), contracted):
            found = []
            for seed in range(5):
                Z = method.set_params(random_state=seed).fit_transform(X)
                clusters = gc.metrics.cluster_scores(Z, y, random_state=seed)
                found.append([clusters.nmi, clusters.silhouette, gc.metrics.knn_accuracy(Z, y, 10)])
            cells = [f"{mean:.3f} ± {std:.3f}" for mean, std in zip(np.mean(found, 0), np.std(found, 0), strict=True)]
            print(f"{name:10} NMI {cells[0]}, silhouette {cells[1]}, 10-NN {cells[2]}  {method}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coil20")
    parser.add_argument("--mnist", help="IDX images, labels beside them, or their folder")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--scores", action="store_true")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.scores:
        scores(asked.coil20)
        return
    sets = {}
    if asked.coil20:
        sets["COIL-20"] = gc.datasets.load("coil20", asked.coil20)[0], 19
    digits = None
    if asked.mnist:
        digits = np.asarray(gc.datasets.load("mnist", asked.mnist)[0], dtype=np.float32)
        digits = digits[np.random.default_rng(0).permutation(len(digits))]
        sets["7,200 digits"] = digits[:7200], 14
    for name, (X, k) in sets.items():
        methods = {
            "exact t-SNE": gc.TSNE(max_iter=100, summation="exact"),
            "LaptSNE": gc.LaptSNE(n_clusters=k, max_iter=100),
            "LaptSNE, no exaggeration": gc.LaptSNE(n_clusters=k, max_iter=100, early_exaggeration=1.0),
            "LaptSNE-Mini": gc.LaptSNE(n_clusters=k, max_iter=100, batch_size=256, early_exaggeration=1.0),
        }
        for method in methods.values():
            # Compiles, and reads what is compiled.
            seconds(method, X[:2500])
        base = None
        for label, method in methods.items():
            taken = seconds(method, X)
            base = base or taken
            print(f"{name:14} {label:26} {taken:6.2f} s, {taken / base:.1f} times", flush=True)
    for n in (10_000, 70_000) if asked.large else (10_000,):
        if digits is not None and n <= len(digits):
            taken = seconds(gc.LaptSNE(n_clusters=14), digits[:n])
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            print(f"{n:,} digits, to the end: {taken:.0f} s, peak memory {peak:.1f} GiB", flush=True)


if __name__ == "__main__":
    main()
