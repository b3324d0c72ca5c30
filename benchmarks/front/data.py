"""The data sets of the front: seven with a known large scale, and three of pictures."""

import gzip
from pathlib import Path

import numpy as np
from sklearn.datasets import make_s_curve

from graphcouple import datasets


def generated(n, seed):
    """Return data sets with a known large scale, by name: points, and classes if there are any."""
    nested, levels = datasets.make_hierarchical_mixture(n, random_state=seed)
    return {
        "cells": datasets.make_cells(n, random_state=seed),
        "branches": datasets.make_branches(n, random_state=seed),
        "nested": (nested, levels[:, -1]),
        "swiss roll": (datasets.make_swiss_roll(n, random_state=seed)[0], None),
        "S-curve": (make_s_curve(n, random_state=seed)[0], None),
        "rings": datasets.make_rings(n, random_state=seed),
        "unequal blobs": datasets.make_unequal_blobs(n, random_state=seed),
    }


def pictures(files):
    """Return data sets of pictures, by name: the digits, and the files given; with classes if they are known."""
    found = {"digits": datasets.load("digits")}
    found["digits"] = found["digits"][0] / found["digits"][0].max(), found["digits"][1]
    for path in map(Path, files):
        X, y = _read(path)
        found[path.name.split(".")[0].split("-")[0]] = X / (float(X.max()) or 1.0), y
    return found


def _read(path):
    if path.suffix == ".mat":
        from scipy.io import loadmat

        content = loadmat(path)
        name = next(key for key in ("fea", "X", "data") if key in content)
        labels = next((content[key] for key in ("gnd", "Y", "labels") if key in content), None)
        return np.asarray(content[name], dtype=np.float64), None if labels is None else np.ravel(labels)
    if path.name.endswith(".gz") and "idx3" in path.name:
        beside = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
        return _idx(path, 16).reshape(-1, 784).astype(np.float64), _idx(beside, 8) if beside.exists() else None
    content = np.load(path)
    if not hasattr(content, "files"):
        return content, None
    return content["X"], content["y"] if "y" in content.files else None


def _idx(path, header):
    with gzip.open(path) as file:
        return np.frombuffer(file.read()[header:], np.uint8)
