"""A swiss roll: distances through space, or along the sheet?

    python examples/global_structure/swiss_roll.py [--points 2000] [--output swiss_roll.png]

Peers that are installed (openTSNE, umap-learn, PaCMAP, TriMap) come first. R(n/2) counts distances through space. The
coupling at two scales keeps those, and tears the sheet for it. To unroll it, ask for the shape of Isomap.
"""

from beside_peers import draw, read_options

import graphcouple as gc

n_points, output = read_options(__doc__, "swiss_roll.png")
X, along = gc.datasets.make_swiss_roll(n_points, random_state=0)
last = {"TSNE with the shape of Isomap": gc.TSNE(terms=[gc.ReferenceShape(reference=gc.Isomap())], random_state=0)}
draw(X, along, output, **last)
