"""
Near and far neighbours at once
===============================

A law can be a mixture of laws. With perplexities 30 and 500, t-SNE sees close neighbours and whole groups in one
graph.

Paper: Lee, Peluffo-Ordóñez and Verleysen (2015) mix perplexities.
"""

import graphcouple as gc

X, levels = gc.datasets.make_hierarchical_mixture(1500, random_state=0)
methods = {str(p): gc.TSNE(perplexity=p) for p in (5, 30, 500, (30, 500))}
compared = gc.compare(methods, X, levels[:, -1])
compared.plot(n_columns=4, legend=False, title="perplexity")
print(compared)
