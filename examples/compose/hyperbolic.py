"""
A tree in hyperbolic space
==========================

A binary tree of depth 7 doubles at each step, and so does the room in a hyperbolic disc. In the plane the branches
compete for room, and neighbour embeddings fold them. CO-SNE is t-SNE whose latent law measures hyperbolic distances.

Paper: Guo, Guo and Yu (2022).
"""

import networkx as nx
import numpy as np
from matplotlib import pyplot

import graphcouple as gc

tree = nx.balanced_tree(2, 7)
along = np.asarray(nx.floyd_warshall_numpy(tree))
options = {"perplexity": 15, "metric": "precomputed", "random_state": 0}
flat, curved = gc.TSNE(**options).fit(along), gc.COSNE(**options).fit(along)
space = curved.sentence.latent.metric

# %%
# Distances on each map against distances along the tree.
pairs = np.triu_indices(len(along), 1)
plane = np.linalg.norm(flat.embedding_[:, None] - flat.embedding_, axis=2)
for name, distances in {"plane": plane, "hyperbolic": space.between(curved.embedding_)}.items():
    ratios = distances[pairs] / along[pairs]
    off = np.abs(ratios / np.median(ratios) - 1).mean()
    print(f"{name}: distances differ by {off:.0%} from a multiple of those along the tree")

# %%
# The hyperbolic map has the true distances from its centre here. Poincaré's disc, `disc_`, squeezes them at its rim.
lengths = np.linalg.norm(curved.embedding_, axis=1)
from_centre = curved.embedding_ * (space.from_centre(lengths)[0] / lengths)[:, None]
figure, axes = pyplot.subplots(1, 2, figsize=(11, 5.5), layout="constrained")
for axis, Z, title in zip(axes, (flat.embedding_, from_centre), ("t-SNE in the plane", "CO-SNE"), strict=True):
    nx.draw_networkx(tree, dict(enumerate(Z)), ax=axis, with_labels=False, node_size=12, node_color=along[0], width=0.5)
    axis.set(title=title, aspect="equal")
