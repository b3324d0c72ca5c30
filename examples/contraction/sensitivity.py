"""
How many clusters, and how strong?
==================================

20-NN accuracy and silhouette of k-means on LaptSNE's map, for several numbers of clusters and weights (figures 3 and
4 of the LaptSNE paper), on 600 digits.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphcouple as gc

X, y = (part[:600] for part in gc.datasets.load("digits"))
clusters, weights = (5, 10, 20), (0.0, 0.03, 0.1, 0.3, 1.0)
tables = {name: np.empty((len(clusters), len(weights))) for name in ("20-NN accuracy", "silhouette")}
for i, k in enumerate(clusters):
    for j, weight in enumerate(weights):
        Z = gc.LaptSNE(n_clusters=k, weight=weight, max_iter=300, random_state=0).fit_transform(X)
        tables["20-NN accuracy"][i, j] = gc.metrics.knn_accuracy(Z, y, 20)
        tables["silhouette"][i, j] = gc.metrics.cluster_scores(Z, y, random_state=0).silhouette
figure, axes = plt.subplots(1, 2, figsize=(11, 3.5), layout="constrained")
for ax, (name, table) in zip(axes, tables.items(), strict=True):
    shown = ax.imshow(table, origin="lower", aspect="auto")
    ax.set_xticks(range(len(weights)), weights)
    ax.set_yticks(range(len(clusters)), clusters)
    ax.set(title=name, xlabel="weight", ylabel="number of clusters")
    figure.colorbar(shown, ax=ax)
