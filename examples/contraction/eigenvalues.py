"""
Eigenvalues along a run
=======================

The smallest eigenvalues of the normalised Laplacian of the Student kernel in the map, for t-SNE and LaptSNE (figure 6
of the LaptSNE paper). The k-th and the next are drawn thick.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphcouple as gc
from graphcouple.couplings import LaplacianEigenvalues

X, _ = gc.datasets.load("digits")
k = 11
methods = {"t-SNE": gc.TSNE(perplexity=25, init="spectral"), "LaptSNE": gc.LaptSNE(n_clusters=k)}
eigenvalues = LaplacianEigenvalues(len(X), gc.Student(), k).eigenvalues
_, axes = plt.subplots(1, 2, sharey=True, figsize=(11, 4.5), layout="constrained")
for ax, (name, method) in zip(axes, methods.items(), strict=True):
    seen = {}

    def look(iteration, _loss, Z, seen=seen):
        """Keep the smallest eigenvalues of some iterations."""
        if iteration % 20 == 0:
            seen[iteration] = eigenvalues(Z, n_more=5)

    method.set_params(callback=look, max_iter=400, random_state=0).fit(X)
    for i, curve in enumerate(np.transpose(list(seen.values())), start=1):
        thick = 2.5 if i - k in (0, 1) else 0.8
        ax.plot(list(seen), curve, color="#0077bb" if i <= k else "#cc3311", linewidth=thick)
    ax.set(title=name, xlabel="iteration", ylabel="eigenvalue")
