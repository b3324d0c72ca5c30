"""
Clusters and their map
======================

t-SNE of the digits beside `DistR`, which puts them at 40 places: the area of a circle is the number of its digits, its
colour their most frequent class, and a line's width the mean number of edges between two places.
"""

import numpy as np
from matplotlib import pyplot
from matplotlib.collections import LineCollection

import graphcouple as gc
from graphcouple.couplings import GroupedPosterior

X, y = gc.datasets.load("digits")
plain = gc.TSNE(random_state=0).fit(X)
reduced = gc.DistR(gc.TSNE(), n_prototypes=40, random_state=0).fit(X)

figure, axes = pyplot.subplots(1, 2, figsize=(11, 5.5), layout="constrained")
axes[0].scatter(*plain.embedding_.T, s=4, c=y, cmap="tab10")
edges = GroupedPosterior(reduced.posterior_, reduced.labels_).mean().tocoo()
ends = np.stack([reduced.prototypes_[edges.row], reduced.prototypes_[edges.col]], axis=1)
axes[1].add_collection(LineCollection(ends, linewidths=0.3 * edges.data, colors="0.8", zorder=0))
sizes = np.bincount(reduced.labels_)
classes = [np.bincount(y[reduced.labels_ == place]).argmax() for place in range(sizes.size)]
axes[1].scatter(*reduced.prototypes_.T, s=8 * sizes, c=classes, cmap="tab10", edgecolors="white")
for ax, name, method in zip(axes, ("t-SNE", "40 places"), (plain, reduced), strict=True):
    ax.set(title=f"{name}, KL {method.kl_divergence_:.2f}", xticks=[], yticks=[], aspect="equal")
