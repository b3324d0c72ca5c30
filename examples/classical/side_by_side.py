"""
The classical methods
=====================

Ten methods on the swiss roll and on an S-curve, with R(10) and R(n/2) above each map: the agreement of near and
far neighbours along the sheet.

Paper: Torgerson (1952), Tenenbaum, de Silva and Langford (2000), Roweis and Saul (2000), Belkin and Niyogi (2003).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial.distance import pdist
from sklearn.datasets import make_s_curve, make_swiss_roll

import graphcouple as gc

METHODS = {
    "PCA": gc.PrecisionCoupling(),
    "classical MDS": gc.ClassicalMDS(),
    "metric MDS": gc.MetricMDS(random_state=0),
    "Sammon": gc.MetricMDS(weights="sammon", random_state=0),
    "kernel PCA": gc.KernelPCA(kernel=gc.Exponential()),
    "Isomap": gc.Isomap(n_neighbors=10),
    "LLE": gc.LocallyLinearEmbedding(n_neighbors=10),
    "eigenmaps": gc.LaplacianEigenmaps(perplexity=10),
    "autoencoder": gc.LinearAutoencoder(),
    "t-SNE": gc.TSNE(random_state=0),
}
roll, t = make_swiss_roll(1000, random_state=0)
curve, s = make_s_curve(1000, random_state=0)
# A sheet unrolled: the length along the curve, and the height.
unrolled = np.column_stack([0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t)), roll[:, 1]])
sets = {"swiss roll": (roll, t, unrolled), "S-curve": (curve, s, np.column_stack([s, curve[:, 1]]))}

figure, axes = plt.subplots(4, 5, figsize=(13, 11), layout="constrained")
for rows, (name, (X, colour, truth)) in zip((axes[:2], axes[2:]), sets.items(), strict=True):
    for ax, (title, method) in zip(rows.flat, METHODS.items(), strict=True):
        # A kernel has a length: points are measured by their typical distance.
        Z = method.fit_transform(X / np.median(pdist(X)) if title == "kernel PCA" else X)
        near, far = gc.metrics.k_ary_preservation(truth, Z, [10, len(X) // 2])
        gc.plot(Z, colour, ax=ax, title=f"{title}: {near:.2f}, {far:.2f}", legend=False)
    rows[0, 0].set_ylabel(name)
