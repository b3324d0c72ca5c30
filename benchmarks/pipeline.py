"""Seconds of the steps of scikit-learn's pipelines, 200,000 cells of 500 genes: python benchmarks/pipeline.py [N]."""

import sys
import time

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphcouple as gc

N_NEW = 20_000


def main(n):
    X, y = gc.datasets.make_cells(n + N_NEW, random_state=0)
    X = X.astype(np.float32)
    for method in (gc.TSNE, gc.UMAP):
        # The first fit in a process also loads compiled code.
        method(random_state=0).fit(gc.datasets.make_rings(2500, random_state=0)[0])
        steps = StandardScaler(), PCA(50, random_state=0), method(random_state=0), KNeighborsClassifier(15)
        pipeline = make_pipeline(*steps, verbose=True).fit(X[:n], y[:n])
        start = time.perf_counter()
        classes = pipeline.predict(X[n:])
        print(f"{N_NEW} new rows: {time.perf_counter() - start:.1f} s, {np.mean(classes == y[n:]):.3f} of them right")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or [200_000]))
