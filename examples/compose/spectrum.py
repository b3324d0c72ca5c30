"""
From UMAP to t-SNE
==================

Neg-t-SNE has one parameter, its edge prior π, that leads from strong attraction past UMAP's to t-SNE's and beyond. Each
map starts from the previous one, so that clusters keep their places. A title shows π and t-SNE's KL divergence of the
map, which is smallest near π = n²/(2mZ), with m the negative samples of an edge and Z the sum of t-SNE's kernel over
all pairs (Damrich, Böhm, Hamprecht and Kobak 2023, figure 1).
"""

import numpy as np
from scipy.spatial.distance import pdist

import graphcouple as gc

X, y = gc.datasets.load("digits")
tsne = gc.TSNE(random_state=0).fit(X)
objective = gc.CrossEntropy(tsne.posterior_, gc.GraphModel(gc.Student(), "E"))
method = gc.NegTSNE(warm_start=True, random_state=0)
whole = float((1.0 / (1.0 + pdist(tsne.embedding_, "sqeuclidean"))).sum())
at_tsne = len(X) ** 2 / (2.0 * method.negative_sample_rate * whole)
maps = {}
for prior in np.geomspace(0.03, 100.0 * at_tsne, 7):
    Z = method.set_params(edge_prior=float(prior)).fit_transform(X)
    maps[f"π = {prior:.2g}, KL {objective.kl_divergence(Z):.2f}"] = Z
maps[f"t-SNE, KL {tsne.kl_divergence_:.2f}"] = tsne.embedding_

# %%
gc.plotting.plot_grid(maps, y, n_columns=4, legend=False)
