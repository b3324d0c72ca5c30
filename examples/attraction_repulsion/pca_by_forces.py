"""
PCA by attraction and repulsion
===============================

Each epoch moves every point along the attractions and repulsions −4 Σ_j l_ij (y_i − y_j) of all others, by the best
common step, from noise to PCA (figure 2 of Draganov and Dohn, 2023).
"""

import numpy as np

import graphcouple as gc

X, y = (part[:1000] for part in gc.datasets.load("digits"))
wanted = gc.PrecisionCoupling(svd_solver="full").fit_transform(X)
places, maps = {}, {}


def keep(epoch, _loss, Z):
    """Keep the map of each epoch."""
    places[epoch] = Z


forces = gc.AttractionRepulsionPCA(
    conjugate=False, check_every=1, max_iter=500, tol=1e-12, random_state=0, callback=keep
)
forces.fit(X)
for epoch in (0, 100, forces.n_iter_):
    turned = gc.align(places[epoch] - places[epoch].mean(axis=0), to=wanted)
    error = np.linalg.norm(turned - wanted) / np.linalg.norm(wanted)
    maps[f"epoch {epoch}: error {error:.0e}"] = turned
gc.plotting.plot_grid(maps | {"PCA": wanted}, y, n_columns=4, legend=False)
