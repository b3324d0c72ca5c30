"""
What degeneracy costs
=====================

t-SNE keeps clusters and forgets where they were; precision coupling keeps the places. Three far groups of three
clusters each lie in 20 dimensions. A title shows the correlation of the distances between cluster means with those of
the data.

Paper: Van Assel, Espinasse, Chiquet and Picard (2022), theorems 1 and 2.
"""

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import pearsonr

import graphcouple as gc

rng = np.random.default_rng(0)
groups = 30.0 * rng.normal(size=(3, 20))
centres = np.concatenate([group + 6.0 * rng.normal(size=(3, 20)) for group in groups])
y = np.repeat(np.arange(9), 80)
X = centres[y] + rng.normal(size=(720, 20))
print(gc.degeneracy_report(gc.TSNE().models(len(X))[0], X, y=y))

# %%


def distances_of_means(points):
    """Return the distances between the means of the clusters."""
    return pdist([points[y == k].mean(0) for k in range(9)])


methods = {
    "t-SNE from noise": gc.TSNE(init="random", random_state=0),
    "t-SNE from PCA": gc.TSNE(random_state=0),
    "precision coupling": gc.PrecisionCoupling(2),
}
maps = {}
for name, method in methods.items():
    Z = method.fit_transform(X)
    maps[f"{name}: r = {pearsonr(distances_of_means(X), distances_of_means(Z))[0]:.2f}"] = Z
gc.plotting.plot_grid(maps, y, n_columns=3)
