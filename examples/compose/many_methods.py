"""
The named methods
=================

Each named method is a sentence: a law given the data, a law given the map, a coupling, and terms. Here are the digits
by twelve of them, and a table of scores in hundredths.
"""

import graphcouple as gc

X, y = gc.datasets.load("digits")
methods = {
    "SNE": gc.SNE(),
    "symmetric SNE": gc.SymmetricSNE(),
    "t-SNE": gc.TSNE(),
    "LargeVis": gc.LargeVis(),
    "UMAP": gc.UMAP(),
    "SNEkhorn": gc.SNEkhorn(),
    "PaCMAP": gc.PaCMAP(),
    "LaptSNE": gc.LaptSNE(),
    "PHATE": gc.PHATE(),
    "ccPCA": gc.CCPCA(),
    "hierarchical t-SNE": gc.HierarchicalCoupling(),
    "two-scale t-SNE": gc.TwoScaleCoupling(),
}
compared = gc.compare(methods, X[:1000], y[:1000])
compared.plot(n_columns=4)
print(compared)
