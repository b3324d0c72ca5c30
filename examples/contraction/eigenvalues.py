"""The eigenvalues of the embedding's Laplacian along the run (figure 6 of the LaptSNE paper).

    python examples/contraction/eigenvalues.py [--coil20 coil20.mat] [--output eigenvalues.png]

The smallest eigenvalues of the normalised Laplacian of the Student kernel in the embedding, for t-SNE and LaptSNE. The
k-th and the next are drawn thick.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import graphcouple as gc
from graphcouple.couplings import LaplacianEigenvalues

EVERY, LAST = 20, 400


def along_the_run(method, X, k):
    """Return the iterations and the k + 5 smallest eigenvalues at each."""
    contraction = LaplacianEigenvalues(len(X), gc.Student(), k)
    seen = {}

    def look(iteration, _loss, Z):
        if iteration % EVERY == 0:
            seen[iteration] = contraction.eigenvalues(Z, n_more=5)

    method.set_params(callback=look, max_iter=LAST, random_state=0).fit(X)
    return np.array(list(seen)), np.array(list(seen.values()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coil20")
    parser.add_argument("--output", default="eigenvalues.png")
    asked = parser.parse_args()
    X, _ = gc.datasets.load("coil20", asked.coil20) if asked.coil20 else gc.datasets.load("digits")
    k = 19 if asked.coil20 else 11
    methods = {
        "t-SNE": gc.TSNE(perplexity=25, init="spectral"),
        "LaptSNE": gc.LaptSNE(n_clusters=k),
    }
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    for ax, (name, method) in zip(figure.subplots(1, 2, sharey=True), methods.items(), strict=True):
        iterations, values = along_the_run(method, X, k)
        for i, curve in enumerate(values.T, start=1):
            ax.plot(
                iterations, curve, color="#0077bb" if i <= k else "#cc3311", linewidth=2.5 if i - k in (0, 1) else 0.8
            )
        ax.set(title=name, xlabel="iteration", ylabel="eigenvalue")
        print(f"{name:8} gap after eigenvalue {k}: {values[-1, k] - values[-1, k - 1]:.4f}")
    figure.savefig(asked.output, dpi=100)


if __name__ == "__main__":
    main()
