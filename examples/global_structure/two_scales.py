"""Cells, a branching tree and a swiss roll: t-SNE, the peers, and the coupling at two scales.

    python examples/global_structure/two_scales.py [PICTURE.png]

A row for each data set; openTSNE and umap-learn are drawn if they are installed.
"""

import importlib.util
import sys

import matplotlib.pyplot as plt

import graphcouple as gc

DATA = {
    "cells": gc.datasets.make_cells(2000, random_state=0),
    "branches": gc.datasets.make_branches(2000, random_state=0),
    "swiss roll": gc.datasets.make_swiss_roll(2000, random_state=0),
}


def embeddings(X):
    if importlib.util.find_spec("openTSNE"):
        import openTSNE

        yield "openTSNE", openTSNE.TSNE(n_jobs=-1, random_state=0).fit(X)
    if importlib.util.find_spec("umap"):
        import umap

        yield "umap-learn", umap.UMAP(random_state=0).fit_transform(X)
    yield "TSNE", gc.TSNE(random_state=0).fit_transform(X)
    yield "TwoScaleCoupling", gc.TwoScaleCoupling(random_state=0).fit_transform(X)


found = {name: dict(embeddings(X)) for name, (X, _) in DATA.items()}
columns = len(next(iter(found.values())))
figure, axes = plt.subplots(len(DATA), columns, figsize=(3.4 * columns, 10.5), layout="constrained")
for row, (name, (X, y)) in zip(axes, DATA.items(), strict=True):
    for ax, (method, Z) in zip(row, found[name].items(), strict=True):
        near, far = (100 * gc.metrics.k_ary_preservation(X, Z, K) for K in (10, len(X) // 2))
        gc.plot(Z, y, ax=ax, title=f"{name}: {method}", legend=False)
        ax.set_xlabel(f"100·R(10) {near:.0f}, 100·R(n/2) {far:.0f}")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "two_scales.png", dpi=110)
