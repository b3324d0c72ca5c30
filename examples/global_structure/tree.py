"""A branching tree, as of cells that differentiate: how far apart are the tips?

    python examples/global_structure/tree.py [--points 2000] [--output tree.png]

Peers that are installed (openTSNE, umap-learn, PaCMAP, TriMap) come first. Neighbour embeddings find every branch, and
bend them as chance has it; the coupling at two scales lays them out as they lie in the data.
"""

from beside_peers import draw, read_options

import graphcouple as gc

n_points, output = read_options(__doc__, "tree.png")
X, branches = gc.datasets.make_branches(n_points, random_state=0)
last = {"TwoScaleCoupling(UMAP)": gc.TwoScaleCoupling(gc.UMAP(), random_state=0)}
draw(X, branches, output, **last)
