"""How the result depends on the number of clusters and the weight (figures 3 and 4 of the LaptSNE paper).

    python examples/contraction/sensitivity.py [--coil20 coil20.mat] [--output sensitivity.png]

20-NN accuracy (points held out) and silhouette of k-means, over both. The digits of scikit-learn, or COIL-20.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import graphcouple as gc

WEIGHTS = (0.0, 0.03, 0.1, 0.3, 1.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coil20")
    parser.add_argument("--clusters", type=int, nargs="*", default=[5, 10, 15, 20, 30])
    parser.add_argument("--max-iter", type=int, default=500)
    parser.add_argument("--output", default="sensitivity.png")
    asked = parser.parse_args()
    X, y = gc.datasets.load("coil20", asked.coil20) if asked.coil20 else gc.datasets.load("digits")
    votes, widths = (np.empty((len(asked.clusters), len(WEIGHTS))) for _ in range(2))
    for i, k in enumerate(asked.clusters):
        for j, weight in enumerate(WEIGHTS):
            laptsne = gc.LaptSNE(n_clusters=k, weight=weight, max_iter=asked.max_iter, random_state=0)
            Z = laptsne.fit_transform(X)
            votes[i, j] = gc.metrics.knn_accuracy(Z, y, 20)
            widths[i, j] = gc.metrics.cluster_scores(Z, y, random_state=0).silhouette
            print(f"k {k:3} weight {weight:5}: 20-NN {votes[i, j]:.3f}, silhouette {widths[i, j]:.3f}", flush=True)
    figure = Figure(figsize=(11, 4), layout="constrained")
    for ax, (name, table) in zip(figure.subplots(1, 2), {"20-NN": votes, "silhouette": widths}.items(), strict=True):
        shown = ax.imshow(table, origin="lower", aspect="auto")
        ax.set_xticks(range(len(WEIGHTS)), WEIGHTS)
        ax.set_yticks(range(len(asked.clusters)), asked.clusters)
        ax.set(title=name, xlabel="weight", ylabel="number of clusters")
        figure.colorbar(shown, ax=ax)
    figure.savefig(asked.output, dpi=100)


if __name__ == "__main__":
    main()
