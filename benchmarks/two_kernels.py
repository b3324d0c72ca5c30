"""Two-kernel PCA and LLE beside UMAP on MNIST: seconds of whole fits in one process, and 10-NN accuracy in 5 folds.

python benchmarks/two_kernels.py --mnist FOLDER [--sizes 10000 70000]
"""

import argparse
import time

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import graphcouple as gc


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", required=True, help="IDX images, labels beside them, or their folder")
    parser.add_argument("--sizes", type=int, nargs="*", default=[10_000, 70_000])
    asked = parser.parse_args()
    X, y = gc.datasets.load("mnist", asked.mnist)
    order = np.random.default_rng(0).permutation(len(X))
    X = np.asarray(X, dtype=np.float32)
    for n in (n for n in asked.sizes if n <= len(X)):
        rows = order[:n]
        for method in (gc.UMAP, gc.TwoKernelLLE, gc.TwoKernelPCA):
            # Compiles, and reads what is compiled.
            method(random_state=0, max_iter=20).fit(X[order[:2500]])
            begin = time.perf_counter()
            Z = method(random_state=0).fit_transform(X[rows])
            taken = time.perf_counter() - begin
            votes = cross_val_score(KNeighborsClassifier(10), Z, y[rows], cv=5).mean()
            print(f"{n:,} {method.__name__:13} {taken:6.1f} s, 10-NN {votes:.3f}", flush=True)


if __name__ == "__main__":
    main()
