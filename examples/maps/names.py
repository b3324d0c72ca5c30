"""
Names on the map
================

Names of classes stand at their means and are moved apart. The edges of the hidden graph show how the classes are
connected.
"""

import graphcouple as gc

X, y = gc.datasets.load("digits")
tsne = gc.TSNE(random_state=0).fit(X)
words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ax = gc.plotting.plot_class_means(tsne.embedding_, [words[label] for label in y])

# %%
graph = tsne.posterior_.sample(rng=0)
gc.plotting.plot_graph(tsne.embedding_, graph, y)
