"""
Which points are badly placed?
==============================

The loss of a map is a sum over its points. Points with a high loss have neighbours that the plane could not bring
together; points with a high isolation have no near neighbours at all.
"""

import numpy as np

import graphcouple as gc

X, y = gc.datasets.load("digits")
tsne = gc.TSNE(random_state=0).fit(X)
numbers = {"loss": tsne.point_losses(), "log isolation": np.log(tsne.isolation())}
axes = gc.plotting.plot_grid(dict.fromkeys(numbers, tsne.embedding_), legend=False)
for ax, (name, values) in zip(axes.flat, numbers.items(), strict=True):
    ax.collections[0].set_array(values)
    ax.collections[0].set_clim(*np.quantile(values, [0.02, 0.98]))
    ax.figure.colorbar(ax.collections[0], ax=ax, label=name)
