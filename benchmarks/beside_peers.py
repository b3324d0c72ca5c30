"""One data set by the installed peers and by this library's methods, a panel for each.

    python benchmarks/beside_peers.py {cells,tree,swiss_roll,starts} [--points 2000] [--output NAME.png]

"starts" instead prints the scores of openTSNE and umap-learn from their own starts and from ccPCA.
"""

import argparse
import importlib.util

from matplotlib.figure import Figure

import graphcouple as gc

COLUMNS = 4


def _opentsne(X):
    import openTSNE

    return openTSNE.TSNE(n_jobs=-1, random_state=0).fit(X)


def _umap(X):
    import umap

    return umap.UMAP(random_state=0).fit_transform(X)


def _pacmap(X):
    import pacmap

    return pacmap.PaCMAP(random_state=0).fit_transform(X, init="pca")


def _trimap(X):
    import trimap

    return trimap.TRIMAP(verbose=False).fit_transform(X)


PEERS = {
    "openTSNE": ("openTSNE", _opentsne),
    "umap-learn": ("umap", _umap),
    "PaCMAP": ("pacmap", _pacmap),
    "TriMap": ("trimap", _trimap),
}

OURS = {
    "TSNE": gc.TSNE(random_state=0),
    "HierarchicalCoupling": gc.HierarchicalCoupling(random_state=0),
    "TwoScaleCoupling": gc.TwoScaleCoupling(random_state=0),
}


DATA = {"cells": gc.datasets.make_cells, "tree": gc.datasets.make_branches, "swiss_roll": gc.datasets.make_swiss_roll}


def draw(X, y, output, **more):
    """Draw a panel for each peer and each estimator of `OURS` and `more`, with what each keeps beneath it."""
    found = {name: fit(X) for name, (module, fit) in PEERS.items() if importlib.util.find_spec(module)}
    found |= {name: estimator.fit_transform(X) for name, estimator in {**OURS, **more}.items()}
    rows = -(-len(found) // COLUMNS)
    figure = Figure(figsize=(3.6 * COLUMNS, 3.7 * rows), layout="constrained")
    axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for ax, (name, Z) in zip(axes, found.items(), strict=False):
        near, far = (100 * gc.metrics.k_ary_preservation(X, Z, K) for K in (10, len(X) // 2))
        gc.plot(Z, y, ax=ax, title=name, legend=False)
        ax.set_xlabel(f"100·R(10) {near:.0f}, 100·R(n/2) {far:.0f}")
    for ax in axes[len(found) :]:
        ax.set_axis_off()
    figure.savefig(output, dpi=110)


def print_starts(n_points):
    """Print R(10) and R(n/2) of two peers from their own start and from ccPCA."""
    import openTSNE
    import umap

    for data, make in DATA.items():
        X, _ = make(n_points, random_state=0)
        start = gc.CCPCA(random_state=0).fit_transform(X)
        tsne, learned = (gc.initializations.start_for(name, start) for name in ("openTSNE", "umap-learn"))
        maps = {
            "openTSNE": openTSNE.TSNE(n_jobs=-1, random_state=0).fit(X),
            "openTSNE from ccPCA": openTSNE.TSNE(n_jobs=-1, random_state=0, initialization=tsne).fit(X),
            "umap-learn": umap.UMAP(random_state=0).fit_transform(X),
            "umap-learn from ccPCA": umap.UMAP(random_state=0, init=learned).fit_transform(X),
            "TwoScaleCoupling": gc.TwoScaleCoupling(random_state=0).fit_transform(X),
        }
        for name, Z in maps.items():
            near, far = gc.metrics.k_ary_preservation(X, Z, [10, len(X) // 2])
            print(f"{data:12} {name:24} {near:.3f} {far:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", choices=[*DATA, "starts"])
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--output")
    asked = parser.parse_args()
    if asked.data == "starts":
        print_starts(asked.points)
        return
    X, y = DATA[asked.data](asked.points, random_state=0)
    shape = gc.TSNE(terms=[gc.ReferenceShape(reference=gc.Isomap())], random_state=0)
    last = {"TSNE with the shape of Isomap": shape}
    if asked.data != "swiss_roll":
        last = {"TwoScaleCoupling(UMAP)": gc.TwoScaleCoupling(gc.UMAP(), random_state=0)}
    draw(X, y, asked.output or f"{asked.data}.png", **last)


if __name__ == "__main__":
    main()
