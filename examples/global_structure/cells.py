"""
Which types of cells are kin?
=============================

Twelve types develop from one another. Neighbour embeddings find the types; the coupling at two scales also keeps the
distances between groups of related types, and their widths.

Paper: Van Assel, Espinasse, Chiquet and Picard (2022), section 4, on hierarchical coupling.
"""

import graphcouple as gc

X, types = gc.datasets.make_cells(1500, random_state=0)
methods = {
    "t-SNE": gc.TSNE(),
    "UMAP": gc.UMAP(),
    "hierarchical t-SNE": gc.HierarchicalCoupling(),
    "two-scale t-SNE": gc.TwoScaleCoupling(),
}
compared = gc.compare(methods, X, types)
compared.plot(n_columns=4, legend=False)
print(compared)
