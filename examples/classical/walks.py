"""
Walks on a graph
================

Diffusion maps and PHATE follow random walks on the mean of a law's graph. Here is a branching tree by both, and by
t-SNE. PHATE's default walks are too short to cross the tree, so far branches look alike and bend inwards. Walks of 200
steps cross all of it.

Paper: Coifman and Lafon (2006); Moon et al. (2019).
"""

import graphcouple as gc

X, branches = gc.datasets.make_branches(1200, random_state=0)
methods = {
    "diffusion maps": gc.DiffusionMaps(),
    "PHATE": gc.PHATE(),
    "PHATE, 200 steps": gc.PHATE(t=200),
    "t-SNE": gc.TSNE(),
}
compared = gc.compare(methods, X, branches)
compared.plot(n_columns=4, legend=False)
print(compared)
