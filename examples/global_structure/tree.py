"""
A branching tree
================

Cells that differentiate lie on a tree. Neighbour embeddings find every branch, but bend them at random; the coupling at
two scales keeps their arrangement in the data.

Paper: Kobak and Berens (2019) on global structure by the start.
"""

import graphcouple as gc

X, branches = gc.datasets.make_branches(1500, random_state=0)
methods = {
    "t-SNE": gc.TSNE(),
    "UMAP": gc.UMAP(),
    "hierarchical t-SNE": gc.HierarchicalCoupling(),
    "two-scale t-SNE": gc.TwoScaleCoupling(),
}
compared = gc.compare(methods, X, branches)
compared.plot(n_columns=4, legend=False)
print(compared)
