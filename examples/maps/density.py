"""
Where the data are dense
========================

t-SNE and UMAP give a tight cluster and a wide one the same room. The term `Density` makes a map dense where the data
are (Narayan, Berger and Cho 2021).
"""

import graphcouple as gc

X, y = gc.datasets.make_unequal_blobs(1200, random_state=0)
methods = {"t-SNE": gc.TSNE(), "den-SNE": gc.DensMAP(gc.TSNE()), "UMAP": gc.UMAP(), "densMAP": gc.DensMAP()}
maps = {name: method.set_params(random_state=0).fit_transform(X) for name, method in methods.items()}
for name, Z in maps.items():
    print(f"{name:10} correlation of log densities {gc.metrics.density_match(X, Z).correlation:.2f}")

# %%
gc.plotting.plot_grid(maps, y, n_columns=4, legend=False)
