"""The data sets of the comparison, as .npz files that load quickly."""

from pathlib import Path

import numpy as np


def prepare(data, images, labels, folder):
    """Return the path of an uncompressed .npz file with X (float32) and y, and a title."""
    if images:
        import graphcouple as gc

        X = gc.datasets.read_idx(images)
        X, y = X.reshape(len(X), -1) / 255.0, gc.datasets.read_idx(labels)
        name = data
    elif Path(data).suffix == ".npz":
        with np.load(data) as arrays:
            X, y = arrays["X"], arrays["y"]
        name = Path(data).stem
    else:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        name = "digits"
    path = Path(folder) / "data.npz"
    np.savez(path, X=X.astype(np.float32), y=y)
    return path, f"{name}: {X.shape[0]:,} × {X.shape[1]:,}"
