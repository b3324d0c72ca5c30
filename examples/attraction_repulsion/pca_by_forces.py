"""PCA by gradient descent from noise, at epochs 0, 100 and 500, beside PCA (figure 2 of Draganov and Dohn, 2023).

    python examples/attraction_repulsion/pca_by_forces.py [--mnist FILE] [--output pca_by_forces.png]

1,000 MNIST digits, or those of scikit-learn. Each epoch moves every point along the attractions and repulsions
−4 Σ_j l_ij (y_i − y_j) of all others, by the best common step. Printed is the distance to PCA's embedding, turned onto
it, relative to that one's size.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import graphcouple as gc

EPOCHS = (0, 100, 500)


def measure(X):
    """Return the embeddings at the epochs, PCA's, and the distances of the former from the latter."""
    wanted = gc.PrecisionCoupling(svd_solver="full").fit_transform(X)
    places = {}

    def keep(epoch, loss, Z):
        if epoch in EPOCHS:
            places[epoch] = gc.align(Z - Z.mean(axis=0), to=wanted)

    moved = gc.AttractionRepulsionPCA(
        conjugate=False, check_every=1, max_iter=500, tol=1e-12, random_state=0, callback=keep
    ).fit(X)
    for epoch in EPOCHS:
        # A run that has ended earlier stays where it is.
        places.setdefault(epoch, gc.align(moved.embedding_, to=wanted))
    size = np.linalg.norm(wanted)
    distances = {epoch: float(np.linalg.norm(Z - wanted) / size) for epoch, Z in sorted(places.items())}
    return places, wanted, distances


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist")
    parser.add_argument("--output", default="pca_by_forces.png")
    asked = parser.parse_args()
    X, y = gc.datasets.load("mnist", asked.mnist) if asked.mnist else gc.datasets.load("digits")
    X, y = np.asarray(X[:1000], dtype=np.float64), y[:1000]
    places, wanted, distances = measure(X)
    figure = Figure(figsize=(14, 3.6), layout="constrained")
    axes = figure.subplots(1, 4)
    for ax, epoch in zip(axes, EPOCHS, strict=False):
        gc.plot(places[epoch], y, ax=ax, title=f"epoch {epoch}", legend=False)
        print(f"epoch {epoch:3d}: distance to PCA {distances[epoch]:.2e}")
    gc.plot(wanted, y, ax=axes[3], title="PCA", legend=False)
    figure.savefig(asked.output, dpi=120)


if __name__ == "__main__":
    main()
