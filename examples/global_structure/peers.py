"""Start openTSNE and umap-learn from ccPCA: what it brings them on cells, a branching tree and a swiss roll.

    python examples/global_structure/peers.py

Prints 100·R(10) and 100·R(n/2), the agreement of neighbourhoods of ten points and of half of all points.
"""

import openTSNE
import umap

import graphcouple as gc

DATA = {
    "cells": gc.datasets.make_cells(2000, random_state=0)[0],
    "branches": gc.datasets.make_branches(2000, random_state=0)[0],
    "swiss roll": gc.datasets.make_swiss_roll(2000, random_state=0)[0],
}


def fits(X):
    start = gc.CCPCA(random_state=0).fit_transform(X)
    tsne, learned = (gc.initializations.start_for(name, start) for name in ("openTSNE", "umap-learn"))
    yield "openTSNE", openTSNE.TSNE(n_jobs=-1, random_state=0).fit(X)
    yield "openTSNE from ccPCA", openTSNE.TSNE(n_jobs=-1, random_state=0, initialization=tsne).fit(X)
    yield "umap-learn", umap.UMAP(random_state=0).fit_transform(X)
    yield "umap-learn from ccPCA", umap.UMAP(random_state=0, init=learned).fit_transform(X)
    yield "TwoScaleCoupling", gc.TwoScaleCoupling(random_state=0).fit_transform(X)


for name, X in DATA.items():
    for method, Z in fits(X):
        near, far = (100 * gc.metrics.k_ary_preservation(X, Z, K) for K in (10, len(X) // 2))
        print(f"{name:12} {method:24} {near:6.1f} {far:6.1f}", flush=True)
