"""Clusters of prototypes beside k-means, and new points of networks beside the law's.

python benchmarks/prototypes.py mnist10k-images-idx3-ubyte.gz mnist10k-labels-idx1-ubyte.gz
"""

import sys
import time

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier

import graphcouple as gc


def clusters(X, y, name):
    """Print the mutual information of clusters and classes."""
    sys.stdout.write("data, places: NMI of DistR, of k-means; seconds of DistR\n")
    for m in (10, 20, 100):
        began = time.perf_counter()
        ours = gc.DistR(n_prototypes=m, random_state=0).fit(X).labels_
        seconds = time.perf_counter() - began
        theirs = KMeans(m, n_init=10, random_state=0).fit(X).labels_
        scores = [normalized_mutual_info_score(y, labels) for labels in (ours, theirs)]
        sys.stdout.write(f"{name}, {m}: {scores[0]:.2f}, {scores[1]:.2f}; {seconds:.1f}\n")


def new_points(X, y, name):
    """Print the accuracy of 10 neighbours for held-out points on the map."""
    sys.stdout.write("data, method: loss by point, accuracy of held-out points, seconds\n")
    X, others, y, classes = train_test_split(X, y, train_size=0.75, random_state=0)
    methods = {"t-SNE": gc.TSNE(random_state=0), "network": gc.ParametricCoupling(features="network", random_state=0)}
    for label, method in methods.items():
        began = time.perf_counter()
        method.fit(X)
        seconds = time.perf_counter() - began
        score = KNeighborsClassifier(10).fit(method.embedding_, y).score(method.transform(others), classes)
        sys.stdout.write(f"{name}, {label}: {method.loss_ / len(X):.3f}, {score:.2f}, {seconds:.1f}\n")


if __name__ == "__main__":
    gc.DistR(n_prototypes=10, random_state=0).fit(np.random.default_rng(0).normal(size=(100, 10)))
    sets = {"digits": gc.datasets.load("digits")}
    if len(sys.argv) > 2:
        images, labels = map(gc.datasets.read_idx, sys.argv[1:3])
        sets["MNIST (10,000)"] = images.reshape(len(images), -1).astype(float), labels
    for name, (X, y) in sets.items():
        clusters(X, y, name)
        new_points(X, y, name)
