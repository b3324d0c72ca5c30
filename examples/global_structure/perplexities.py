"""
ccPCA over perplexities
=======================

The higher the perplexity, the likelier are edges from one cluster to another: components of the hidden graph merge,
and ccPCA comes closer to PCA (figure 4 of the graph-coupling paper).
"""

import graphcouple as gc

X, y = gc.datasets.load("digits")
maps = {}
for perplexity in (10, 20, 30, 50, 100, 200):
    ccpca = gc.CCPCA(perplexity=perplexity, random_state=0).fit(X)
    largest = sum(size[0] for size in ccpca.component_sizes_) / ccpca.n_samples_ / len(X)
    count = ccpca.component_counts_.mean()
    print(f"perplexity {perplexity:3}: {count:4.0f} components, {largest:4.0%} of the points in the largest")
    # Principal axes have no sign, so each map is aligned with the first.
    first = next(iter(maps.values()), ccpca.embedding_)
    maps[f"{perplexity}: {count:.0f} components"] = gc.align(ccpca.embedding_, to=first)

# %%
gc.plotting.plot_grid(maps, y, n_columns=3)
