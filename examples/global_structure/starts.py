"""
What a start keeps
==================

PCA, Laplacian eigenmaps and ccPCA of the digits, and t-SNE from each of them (figure 2 of the graph-coupling paper).
The table scores how well a map keeps the arrangement of the class means: 1 is perfect.
"""

import graphcouple as gc

X, y = gc.datasets.load("digits")
starts = {"PCA": gc.PrecisionCoupling(), "eigenmaps": gc.LaplacianEigenmaps(), "ccPCA": gc.CCPCA(random_state=0)}
maps = {("start", name): method.fit_transform(X) for name, method in starts.items()}
for name, init in zip(starts, ("pca", "spectral", "ccpca"), strict=True):
    maps["t-SNE from it", name] = gc.TSNE(init=init, random_state=0).fit_transform(X)
gc.plotting.plot_grid(maps, y)

# %%
for (row, name), Z in maps.items():
    print(f"{row:14} {name:10} class means {1 - gc.metrics.class_mean_disparity(X, Z, y):.2f}")
