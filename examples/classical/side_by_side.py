"""The classical methods side by side on the Swiss roll, the S-curve and digits, with scores.

    python examples/classical/side_by_side.py [picture.png]

Rows of the picture are data sets, columns methods. R(10) and R(n/2) say how well near and far neighbours are kept (see
docs/evaluation.md); for the roll and the curve, distances are those along the sheet.
"""

import sys
import time
import warnings

import matplotlib

matplotlib.use("Agg")
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


def sheet(X, t, length):
    """The unrolled sheet: length along the curve, and height."""
    return np.column_stack([length(t), X[:, 1]])


def roll_length(t):
    return 0.5 * (t * np.sqrt(1 + t**2) + np.arcsinh(t))


def data_sets():
    X, t = make_swiss_roll(1500, random_state=0)
    yield "Swiss roll", X, t, sheet(X, t, roll_length)
    X, t = make_s_curve(1500, random_state=0)
    yield "S-curve", X, t, sheet(X, t, lambda t: t)
    X, y = gc.datasets.load("digits")
    yield "digits", X, y, X


def main(path):
    sets = list(data_sets())
    figure, axes = plt.subplots(len(sets), len(METHODS), figsize=(2 * len(METHODS), 2.3 * len(sets)))
    for row, (name, X, colour, truth) in zip(axes, sets, strict=True):
        print(f"{name:12} {'R(10)':>8} {'R(n/2)':>8} {'seconds':>8}")
        for ax, (title, method) in zip(row, METHODS.items(), strict=True):
            start = time.perf_counter()
            # Kernels have a length: points are measured by their typical distance.
            points = X / np.median(pdist(X)) if title == "kernel PCA" else X
            Z = method.fit_transform(points)
            seconds = time.perf_counter() - start
            near = gc.metrics.k_ary_preservation(truth, Z, 10)
            far = gc.metrics.k_ary_preservation(truth, Z, len(X) // 2)
            print(f"  {title:14} {100 * near:6.1f} {100 * far:8.1f} {seconds:8.2f}")
            ax.scatter(*Z.T, c=colour, s=2, cmap="tab10" if name == "digits" else "viridis", linewidths=0)
            ax.set(xticks=[], yticks=[], title=f"{title}\n{100 * near:.0f}, {100 * far:.0f}")
            ax.title.set_fontsize(9)
        row[0].set_ylabel(name)
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    print(f"written {path}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1] if len(sys.argv) > 1 else "classical.png")
