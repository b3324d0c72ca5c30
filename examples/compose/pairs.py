"""
Three priors by three
=====================

Rows are priors of the input's graph, columns priors of the map's: B (independent edges), D (one edge out of every
node) and E (as many edges as nodes). A pair is feasible if the map's law gives a probability to every graph that the
input's can have; the others are empty. D by D is SNE with a Student kernel, D by E is t-SNE, and B by B is the full
loss of UMAP with other kernels.

Paper: Van Assel, Espinasse, Chiquet and Picard (2022), table 1.
"""

import graphcouple as gc

X, y = (part[:800] for part in gc.datasets.load("digits"))
maps = {}
for given in "BDE":
    law = gc.GraphModel(gc.Gaussian(), given, gc.Perplexity(20))
    for latent in "BDE":
        try:
            method = gc.GraphCoupling(law, gc.GraphModel(gc.Student(), latent), random_state=0).fit(X)
        except ValueError as reason:
            print(f"{given} by {latent}: {reason}")
        else:
            maps[f"{given} given X", f"{latent} given Z"] = method.embedding_
gc.plotting.plot_grid(maps, y)
