"""Bandwidths by evidence beside perplexity 30: t-SNE's pair of laws on the data sets of the front.

    python benchmarks/evidence.py [--files mnist10k-images-idx3-ubyte.gz coil20.mat] [--points 1500]

For each data set, its intrinsic dimension and the perplexity of each law (e to the mean entropy of a row), then
R(10) and R(n/2) of the maps.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np
from front.data import generated, pictures

import graphcouple as gc

BANDWIDTHS = {"perplexity 30": gc.Perplexity(30), "evidence": gc.LeaveOneOut(), "by row": gc.LeaveOneOut(by_row=True)}


def main() -> None:
    """Print a line for each data set, and means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="*", default=[], help="data sets of pictures beside the digits")
    parser.add_argument("--points", type=int, default=1500)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    everything = []
    sys.stdout.write(f"| data | d | perplexity, R(10), R(n/2): {'; '.join(BANDWIDTHS)} |\n|---|---|---|\n")
    for name, (X, _) in {**generated(args.points, 0), **pictures(args.files)}.items():
        chosen = np.random.default_rng(0).permutation(len(X))[: args.points]
        points, scores = X[chosen], []
        for bandwidth in BANDWIDTHS.values():
            law = gc.GraphModel(gc.Gaussian(), "D", bandwidth, n_neighbors=None)
            fitted = gc.GraphCoupling(law, gc.GraphModel(gc.Student(), "E"), init="pca", random_state=0).fit(points)
            kept = gc.metrics.evaluate(points, fitted.embedding_)
            perplexity = np.exp(fitted.posterior_.entropy() / len(points))
            scores.append([float(perplexity), float(kept["R(10)"]), float(kept["R(n/2)"])])
        dim = law.bandwidth.settled(law.rows(*law.given(points).distances.all_pairs(), None, None)).dim
        everything.append(scores)
        cells = "; ".join("{:.0f}, {:.3f}, {:.3f}".format(*row) for row in scores)
        sys.stdout.write(f"| {name} | {dim:.1f} | {cells} |\n")
        sys.stdout.flush()
    cells = "; ".join("{:.0f}, {:.3f}, {:.3f}".format(*row) for row in np.mean(everything, axis=0))
    sys.stdout.write(f"| mean | | {cells} |\n")


if __name__ == "__main__":
    main()
