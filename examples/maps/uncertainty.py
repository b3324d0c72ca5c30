"""
How sure is a position?
=======================

Around a minimum of the loss H, the density exp(−H/T) of maps is a normal law. Ellipses are one standard deviation: on
the left against ten neighbours, on the right against the whole map, where groups move as one. Pairs of digits far from
their class have the most uncertain positions.

Paper: MacKay (2003), chapter 27, on Laplace's method.
"""

from matplotlib import pyplot

import graphcouple as gc

X, y = gc.datasets.load("digits")
law = gc.TSNE(random_state=0).fit(X[:600]).uncertainty()
figure, axes = pyplot.subplots(1, 2, figsize=(11, 5), layout="constrained")
gc.plotting.plot_uncertainty(law, y[:600], ax=axes[0], title="against ten neighbours", legend=False)
gc.plotting.plot_uncertainty(law, y[:600], ax=axes[1], title="against the map", n_neighbors=None)
