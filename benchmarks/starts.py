"""UMAP from three starts: losses, and neighbourhoods of 10, n/4 and n/2 points, on sheets and on clusters.

    python benchmarks/starts.py [--files mnist10k-images-idx3-ubyte.gz coil20.mat] [--points 2000] [--mixture 20000]

"Uneven" is the mean pull of an edge in a spectral start, divided by the median: `init="auto"` takes the spectral start
where it is at most 4. The mixture has 50 clusters in 50 dimensions, each narrower than the one before.
"""

import argparse
import warnings

import numpy as np
from front.data import generated, pictures
from scaling import mixture

import graphcouple as gc

STARTS = ("auto", "spectral", "pca")


def uneven(X):
    posterior = gc.UMAP().models(len(X))[0].posterior(X)
    W = posterior.support.to_csr(posterior.edge_means).tocoo()
    Z = gc.initializations.initialize("spectral", X, posterior, 2, 0)
    pulls = W.data * np.square(Z[W.row] - Z[W.col]).sum(axis=1)
    return pulls.mean() / np.median(pulls)


def row(name, X):
    n, cells = len(X), []
    for init in STARTS:
        fitted = gc.UMAP(init=init, random_state=0).fit(X)
        kept = [
            gc.metrics.k_ary_preservation(X, fitted.embedding_, k, n_rows=min(n, 1500), random_state=0)
            for k in (10, n // 4, n // 2)
        ]
        cells.append(f"{fitted.loss_ / n:.4f}; " + ", ".join(f"{100 * value:.0f}" for value in kept))
    return f"| {name} | {uneven(X):.1f} | " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="*", default=[])
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--mixture", type=int, default=20_000)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    X = mixture(asked.mixture)[0] / np.arange(1, 51)
    sets = {**generated(asked.points, 0), **pictures(asked.files), "50 clusters": (X, None)}
    print("| data | uneven | " + " | ".join(STARTS) + " |\n|---|---|---|---|---|")
    for name, (points, _) in sets.items():
        print(row(name, points), flush=True)


if __name__ == "__main__":
    main()
