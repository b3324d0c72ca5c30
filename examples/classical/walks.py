"""
Walks on a graph
================

Diffusion maps and PHATE follow random walks on the mean of a law's graph. A branching tree by both, by eigenmaps and
by t-SNE.
"""

import graphcouple as gc

X, branches = gc.datasets.make_branches(1200, random_state=0)
methods = {
    "eigenmaps": gc.LaplacianEigenmaps(),
    "diffusion maps": gc.DiffusionMaps(),
    "PHATE": gc.PHATE(),
    "t-SNE": gc.TSNE(),
}
compared = gc.compare(methods, X, branches)
compared.plot(n_columns=4, legend=False)
print(compared)
