"""Figures of umap-learn, kept as data because its import takes a minute before anything is compiled.

python -m tests.umap_figures     # make them again; a nightly test compares
"""

from pathlib import Path

import numpy as np

FILE = Path(__file__).parent / "data" / "umap_learn.npz"
MIXES = (0.0, 0.3, 1.0)
SHAPES = ((0.1, 1.0), (0.0, 1.0), (0.5, 2.0), (0.99, 1.0))
POINTS = np.random.default_rng(8).normal(size=(80, 4))


def figures():
    """Return what umap-learn computes: graphs of `POINTS` by mix of union and intersection, and fitted curves."""
    from umap.umap_ import find_ab_params, fuzzy_simplicial_set

    graphs = [
        fuzzy_simplicial_set(POINTS, 12, np.random.RandomState(0), "euclidean", set_op_mix_ratio=mix)[0].toarray()
        for mix in MIXES
    ]
    curves = [find_ab_params(spread, min_dist) for min_dist, spread in SHAPES]
    return {"graphs": np.array(graphs), "curves": np.array(curves)}


if __name__ == "__main__":
    np.savez_compressed(FILE, **figures())
