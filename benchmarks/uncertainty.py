"""How sure positions are: the Laplace law of one t-SNE map beside the maps of bootstrapped data.

    python benchmarks/uncertainty.py [--points 500] [--maps 40]

Rows are drawn with replacement, and each sample is embedded anew (cold) or from the map of all rows (warm). A point's
spread is the root mean square displacement against the mean of its ten neighbours on the map of all rows. Rank
correlations over points: the spreads of warm maps with the spreads of the law, with the losses by point and with the
distances to the neighbours; then the two halves of the warm and of the cold maps, whose correlation is the best that
can be expected. Rows that few maps hold are left out.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings

import numpy as np
from scipy.stats import spearmanr
from sklearn.datasets import make_blobs
from sklearn.neighbors import NearestNeighbors

import graphcouple as gc


def spreads(places, nearest):
    """Return each point's spread against its neighbours, from maps in which rows that were not drawn are NaN."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        against = places - np.nanmean(places[:, nearest], axis=2)
        return np.sqrt(np.nanvar(against, axis=0, ddof=1).sum(axis=1))


def maps(X, Z, n_maps, **start):
    """Return the maps of bootstrapped rows, turned onto the map of all rows."""
    places = np.full((n_maps, *Z.shape), np.nan)
    for seed, place in enumerate(places):
        copies = np.random.default_rng(seed).multinomial(len(X), np.full(len(X), 1.0 / len(X)))
        drawn = np.flatnonzero(copies)
        begin = {"init": Z[drawn], "early_exaggeration": 1.0} if start.get("warm") else {}
        fitted = gc.TSNE(random_state=0, **begin).fit(X[drawn], sample_weight=copies[drawn].astype(float))
        place[drawn] = gc.align(fitted.embedding_, Z[drawn], scale=False)
    return places


def main() -> None:
    """Print a line for each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=500)
    parser.add_argument("--maps", type=int, default=40, help="at least 4")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    n = args.points
    data = {
        "digits": gc.datasets.load("digits")[0][:n],
        "branches": gc.datasets.make_branches(n, random_state=0)[0],
        "swiss roll": gc.datasets.make_swiss_roll(n, random_state=0)[0],
        "blobs": make_blobs(n, 10, centers=5, cluster_std=2.0, random_state=0)[0],
        "cells": gc.datasets.make_cells(n, random_state=0)[0],
    }
    sys.stdout.write(
        "| data | law | losses | distances | halves: warm, cold | seconds: law, warm map |\n|---|---|---|---|---|---|\n"
    )
    for name, X in data.items():
        fitted = gc.TSNE(random_state=0).fit(X)
        Z = fitted.embedding_.astype(np.float64)
        dist, nearest = NearestNeighbors(n_neighbors=10).fit(Z).kneighbors()
        begin = time.perf_counter()
        law = np.sqrt(np.trace(fitted.uncertainty().covariances(10), axis1=1, axis2=2))
        middle = time.perf_counter()
        warm = maps(X, Z, args.maps, warm=True)
        each = (time.perf_counter() - middle) / args.maps
        cold, half = maps(X, Z, args.maps), args.maps // 2
        seen = spreads(warm, nearest)
        against = [
            spearmanr(seen, other, nan_policy="omit")[0] for other in (law, fitted.point_losses(), dist.mean(axis=1))
        ]
        parts = ((spreads(of[:half], nearest), spreads(of[half:], nearest)) for of in (warm, cold))
        halves = [spearmanr(*part, nan_policy="omit")[0] for part in parts]
        cells = " | ".join(f"{value:.2f}" for value in against)
        sys.stdout.write(
            f"| {name} | {cells} | {halves[0]:.2f}, {halves[1]:.2f} | {middle - begin:.1f}, {each:.2f} |\n"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
