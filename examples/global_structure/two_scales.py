"""Cells, a branching tree and a swiss roll: t-SNE, the peers, and the coupling at two scales.

    python examples/global_structure/two_scales.py [PICTURE.png] [--data cells branches "swiss roll"] [--points 2000]

A row for each data set; openTSNE, umap-learn, PaCMAP and TriMap are drawn if they are installed.
"""

import argparse
import importlib.util

import matplotlib.pyplot as plt

import graphcouple as gc

DATA = {
    "cells": gc.datasets.make_cells,
    "branches": gc.datasets.make_branches,
    "swiss roll": gc.datasets.make_swiss_roll,
}


def embeddings(X):
    if importlib.util.find_spec("openTSNE"):
        import openTSNE

        yield "openTSNE", openTSNE.TSNE(n_jobs=-1, random_state=0).fit(X)
    if importlib.util.find_spec("umap"):
        import umap

        yield "umap-learn", umap.UMAP(random_state=0).fit_transform(X)
    if importlib.util.find_spec("pacmap"):
        import pacmap

        yield "PaCMAP", pacmap.PaCMAP(random_state=0).fit_transform(X, init="pca")
    if importlib.util.find_spec("trimap"):
        import trimap

        yield "TriMap", trimap.TRIMAP(verbose=False).fit_transform(X)
    yield "TSNE", gc.TSNE(random_state=0).fit_transform(X)
    yield "TwoScaleCoupling", gc.TwoScaleCoupling(random_state=0).fit_transform(X)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("picture", nargs="?", default="two_scales.png")
parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
parser.add_argument("--points", type=int, default=2000)
asked = parser.parse_args()
drawn = {name: DATA[name](asked.points, random_state=0) for name in asked.data}
found = {name: dict(embeddings(X)) for name, (X, _) in drawn.items()}
columns = len(next(iter(found.values())))
size = (3.4 * columns, 3.5 * len(drawn))
figure, axes = plt.subplots(len(drawn), columns, figsize=size, layout="constrained", squeeze=False)
for row, (name, (X, y)) in zip(axes, drawn.items(), strict=True):
    for ax, (method, Z) in zip(row, found[name].items(), strict=True):
        near, far = (100 * gc.metrics.k_ary_preservation(X, Z, K) for K in (10, len(X) // 2))
        gc.plot(Z, y, ax=ax, title=f"{name}: {method}", legend=False)
        ax.set_xlabel(f"100·R(10) {near:.0f}, 100·R(n/2) {far:.0f}")
figure.savefig(asked.picture, dpi=110)
