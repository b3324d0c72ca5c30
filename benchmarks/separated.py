"""Maps of graphs in pieces, and of others, beside openTSNE and umap-learn: neighbours kept, spread, page, places, loss.

    python benchmarks/separated.py                          # this library alone
    python benchmarks/separated.py --peers OTHER/bin/python # with peers installed in another environment
    python benchmarks/separated.py --only blobs --methods TSNE,UMAP,SNE

Spread is the radius of nine tenths of the map over the median radius of a cluster. Reach is the largest distance of a
point from the middle over the median distance. Page is the share of 20 x 20 cells that hold points. Places are distinct
to 1e-7 of the map's size. Points are astray if they are further from their cluster's median than four times its median
radius. Losses are by point, as this library states them, for both embeddings.
Peers' maps are kept in a file (`--kept`).
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scaling import mixture
from sklearn.datasets import load_digits, make_blobs, make_moons

import graphcouple as gc

PEER = """
import sys, numpy as np
given = np.load(sys.argv[1])
X, n = given["X"], len(given["X"])
from openTSNE import TSNE
from umap import UMAP
tsne = np.asarray(TSNE(perplexity=min(30, (n - 1) / 3), random_state=0).fit(X))
np.savez(sys.argv[2], TSNE=tsne, UMAP=UMAP(random_state=0).fit_transform(X))
"""


def clusters(sizes, sd=1.0, p=20, gap=10.0, seed=0):
    """Gaussian clusters of given sizes and standard deviations."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    sd = np.broadcast_to(sd, len(sizes))[y, None]
    return 2.0 * gap * rng.normal(size=(len(sizes), p))[y] / np.sqrt(p) + sd * rng.normal(size=(len(y), p)), y


def tree(seed=0):
    """48 clusters of 50 points at the leaves of a tree."""
    rng, centres, width = np.random.default_rng(seed), np.zeros((1, 40)), 4.0
    for children in (4, 4, 3):
        centres = (centres[:, None] + width * rng.normal(size=(len(centres), children, 40))).reshape(-1, 40)
        width /= 2.0
    y = np.repeat(np.arange(48), 50)
    return centres[y] + 0.3 * rng.normal(size=(2400, 40)), y


def chain(seed=0):
    """Twelve clusters in a row, each just joined to the next."""
    y, rng = np.repeat(np.arange(12), 80), np.random.default_rng(seed)
    X = 0.5 * rng.normal(size=(960, 5))
    X[:, 0] += 3.2 * y
    return X, y


def counts(seed=0):
    """Counts like single cells of 12 types."""
    rng = np.random.default_rng(seed)
    profiles = np.exp(1.5 * rng.normal(size=(12, 200)))
    y = np.sort(rng.choice(12, 1500, p=rng.dirichlet(np.full(12, 0.7))))
    drawn = rng.poisson(
        (profiles / profiles.sum(axis=1, keepdims=True))[y] * np.exp(7 + 0.3 * rng.normal(size=(1500, 1)))
    )
    return np.log1p(1e3 * drawn / drawn.sum(axis=1, keepdims=True)), y


def outlier(far=1000.0):
    """Five blobs and one row far out."""
    X, y = make_blobs(800, 10, centers=5, random_state=0)
    X[0] += far
    return X, y


def clump(few, far=1000.0, many=500):
    """One cluster, and a few rows far out together."""
    X, y = clusters((many, few), (1.0, 0.5), 8, gap=0.0)
    return X + far * (y[:, None] == 1), y


def walk(seed=0):
    """A random walk in ten dimensions."""
    return np.random.default_rng(seed).normal(size=(1000, 10)).cumsum(axis=0), np.arange(1000) // 100


DATA = {
    "blobs 3 x 600": lambda: make_blobs(1800, 10, centers=3, cluster_std=0.3, random_state=4),
    "blobs 20 x 50": lambda: make_blobs(1000, 40, centers=20, cluster_std=0.5, random_state=3),
    "blobs 12 x 50": lambda: make_blobs(600, 20, centers=12, cluster_std=0.5, random_state=1),
    "blobs 60 x 100": lambda: make_blobs(6000, 20, centers=60, cluster_std=0.4, random_state=2),
    "blobs 30 x 50, 500-D": lambda: make_blobs(1500, 500, centers=30, random_state=5),
    "two blobs, 2-D": lambda: make_blobs(200, 2, centers=[[0, 0], [50, 0]], random_state=0),
    "200 x 20": lambda: clusters((20,) * 200, 0.5, 50),
    "tree 48 x 50": tree,
    "unequal sizes": lambda: clusters((800, 150, 40, 10)),
    "unequal scales": lambda: clusters((200,) * 5, (0.01, 0.1, 1.0, 3.0, 10.0), gap=60.0),
    "20,000 in 10": lambda: clusters((2000,) * 10, 0.5),
    "8,000 and 5,000": lambda: clusters((8000, 5000), p=30, gap=46.0),
    "60,000 in 50": lambda: mixture(60_000),
    "chain": chain,
    "counts": counts,
    "one far row": outlier,
    "far clump of 6": lambda: clump(6),
    "far clump of 30": lambda: clump(30, 50.0),
    "far clump of 5, 1,500": lambda: clump(5, 30.0, 1500),
    "walk": walk,
    "moons": lambda: make_moons(1000, noise=0.05, random_state=0),
    "noise": lambda: (np.random.default_rng(0).normal(size=(1000, 10)), np.zeros(1000, dtype=int)),
    "digits": lambda: load_digits(return_X_y=True),
}


def scores(X, y, Z):
    """Return R(10), the spread, the reach, the page in percent, the number of places, and the percentage astray."""
    Z = np.asarray(Z, dtype=np.float64)
    radius = np.quantile(np.linalg.norm(Z - Z.mean(axis=0), axis=1), 0.9)
    parts = [Z[y == k] for k in np.unique(y) if (y == k).sum() > 4]
    away = [np.linalg.norm(part - np.median(part, axis=0), axis=1) for part in parts]
    inner = np.median([np.median(of) for of in away])
    astray = 100 * sum((of > 4 * np.median(of)).sum() for of in away) / len(Z)
    low, high = Z.min(axis=0), Z.max(axis=0)
    cells = np.minimum((20 * (Z - low) / np.maximum(high - low, 1e-300)).astype(int), 19)
    places = len(np.unique(np.round(1e7 * Z / np.abs(Z - Z.mean(axis=0)).max()), axis=0))
    n_rows = 1000 if len(Z) > 20_000 else None
    kept = gc.metrics.k_ary_preservation(X, Z, 10, n_rows=n_rows, random_state=0)
    far = np.linalg.norm(Z - np.median(Z, axis=0), axis=1)
    reach = far.max() / max(np.median(far), 1e-300)
    return kept, radius / max(inner, 1e-300), reach, len(np.unique(cells, axis=0)) / 4, places, astray


def peers_of(python, X, kept):
    """Return the peers' maps, from a file if they are kept there."""
    if not kept.exists():
        with tempfile.NamedTemporaryFile(suffix=".npz") as given:
            np.savez(given, X=X)
            given.flush()
            subprocess.run([python, "-c", PEER, given.name, str(kept)], check=True, capture_output=True)
    return np.load(kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default="", help="the Python of an environment with openTSNE and umap-learn")
    parser.add_argument("--kept", type=Path, default=Path("separated-peers"), help="folder of the peers' maps")
    parser.add_argument("--only", default="", help="text that a data set's name must contain")
    parser.add_argument("--methods", default="TSNE,UMAP")
    arguments = parser.parse_args()
    arguments.kept.mkdir(exist_ok=True)
    warnings.simplefilter("ignore")
    columns = ["data", "method", "R(10)", "spread", "reach", "page %", "places", "astray %", "loss by point", "s"]
    print(f"| {' | '.join(columns)} |\n|{len(columns) * '---|'}")
    for name, make in DATA.items():
        if arguments.only not in name:
            continue
        X, y = make()
        peers = peers_of(arguments.peers, X, arguments.kept / f"{name}.npz") if arguments.peers else {}
        for method in arguments.methods.split(","):
            start = time.perf_counter()
            fitted = getattr(gc, method)(random_state=0).fit(X)
            seconds = time.perf_counter() - start
            ours = (*scores(X, y, fitted.embedding_), fitted.coupling_loss_ / len(X))
            peer = peers.get("UMAP" if method == "UMAP" else "TSNE")
            both = [ours]
            if peer is not None:
                both.append((*scores(X, y, peer), objective_of(fitted).value(peer.astype(np.float64)) / len(X)))
            digits = (3, 1, 1, 0, 0, 2, 4)
            cells = (" / ".join(f"{a:.{d}f}" for a in cell) for *cell, d in zip(*both, digits, strict=True))
            print(f"| {name} | {method} | {' | '.join(cells)} | {seconds:.1f} |", flush=True)


def objective_of(fitted):
    """Return the stated loss of a fitted method."""
    latent = fitted.sentence.latent
    if isinstance(fitted, (gc.UMAP, gc.LargeVis)):
        strengths = {"repulsion_strength": fitted.repulsion_strength, "noise_exponent": fitted.noise_exponent}
        return gc.EffectiveCrossEntropy(fitted.posterior_, latent, fitted.negative_sample_rate, **strengths)
    return gc.CrossEntropy(fitted.posterior_, latent, "auto")


if __name__ == "__main__":
    main()
