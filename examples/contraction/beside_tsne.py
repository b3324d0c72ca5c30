"""t-SNE beside LaptSNE, at the end of the run and in its first iterations (figures 1 and 5 of the LaptSNE paper).

    python examples/contraction/beside_tsne.py [--coil20 coil20.mat] [--output beside_tsne.png]

The digits of scikit-learn, or COIL-20. Both start from the same Laplacian eigenvectors. The left panel shows the
smallest eigenvalues of the input's graph, with the number of clusters that LaptSNE takes from their gaps.
"""

import argparse
import warnings

from matplotlib.figure import Figure
from sklearn.exceptions import ConvergenceWarning

import graphcouple as gc

ITERATIONS = (0, 10, 30, 50)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coil20")
    parser.add_argument("--output", default="beside_tsne.png")
    asked = parser.parse_args()
    X, y = gc.datasets.load("coil20", asked.coil20) if asked.coil20 else gc.datasets.load("digits")
    methods = {
        "t-SNE": gc.TSNE(perplexity=25, init="spectral", random_state=0),
        "LaptSNE": gc.LaptSNE(init="spectral", random_state=0),
    }
    figure = Figure(figsize=(18, 7), layout="constrained")
    axes = figure.subplots(2, 6)
    for row, (name, method) in zip(axes, methods.items(), strict=True):
        fitted = method.fit(X)
        gc.plot(fitted.embedding_, y, ax=row[1], title=name, legend=False)
        scores = gc.metrics.cluster_scores(fitted.embedding_, y, random_state=0)
        print(f"{name:8} NMI {scores.nmi:.3f}, silhouette {scores.silhouette:.3f}")
        # The short runs below are not meant to settle.
        warnings.simplefilter("ignore", ConvergenceWarning)
        for ax, iterations in zip(row[2:], ITERATIONS, strict=True):
            # Without exaggeration, so that the first iterations are those of the paper.
            method.set_params(max_iter=max(iterations, 1), early_exaggeration=1.0)
            Z = method.set_params(callback=(lambda *_: True) if iterations == 0 else None).fit_transform(X)
            gc.plot(Z, y, ax=ax, title=f"iteration {iterations}", legend=False)
        method.set_params(callback=None)
    gc.plotting.plot_eigenvalues(methods["LaptSNE"], ax=axes[0, 0], title="the input's graph")
    axes[1, 0].axis("off")
    figure.savefig(asked.output, dpi=100)


if __name__ == "__main__":
    main()
