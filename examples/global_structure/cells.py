"""Cells of twelve types that split off one another: which types are kin?

    python examples/global_structure/cells.py [--points 2000] [--output cells.png]

Peers that are installed (openTSNE, umap-learn, PaCMAP, TriMap) come first. Neighbour embeddings find the types; the
coupling at two scales also keeps how far the groups of kin are from one another, and how wide each is.
"""

from beside_peers import draw, read_options

import graphcouple as gc

n_points, output = read_options(__doc__, "cells.png")
X, types = gc.datasets.make_cells(n_points, random_state=0)
last = {"TwoScaleCoupling(UMAP)": gc.TwoScaleCoupling(gc.UMAP(), random_state=0)}
draw(X, types, output, **last)
