"""The data sets of the front: seven with a known large scale, and three of pictures."""

import gzip
from pathlib import Path

import numpy as np
from sklearn.datasets import make_s_curve

from graphcouple import datasets


def generated(n, seed):
    """Return data sets with a known large scale, by name."""
    return {
        "cells": datasets.make_cells(n, random_state=seed)[0],
        "branches": datasets.make_branches(n, random_state=seed)[0],
        "nested": datasets.make_hierarchical_mixture(n, random_state=seed)[0],
        "swiss roll": datasets.make_swiss_roll(n, random_state=seed)[0],
        "S-curve": make_s_curve(n, random_state=seed)[0],
        "rings": datasets.make_rings(n, random_state=seed)[0],
        "unequal blobs": datasets.make_unequal_blobs(n, random_state=seed)[0],
    }


def pictures(files):
    """Return data sets of pictures, by name: the digits, and the files given."""
    found = {"digits": datasets.load("digits")[0]}
    for path in map(Path, files):
        if path.suffix == ".mat":
            from scipy.io import loadmat

            content = loadmat(path)
            name = next(key for key in ("fea", "X", "data") if key in content)
            X = np.asarray(content[name], dtype=np.float64)
        elif path.name.endswith(".gz") and "idx3" in path.name:
            with gzip.open(path) as file:
                X = np.frombuffer(file.read()[16:], np.uint8).reshape(-1, 784).astype(np.float64)
        else:
            X = np.load(path)
            X = X["X"] if hasattr(X, "files") else X
        scale = float(X.max()) or 1.0
        found[path.name.split(".")[0].split("-")[0]] = X / scale
    return found
