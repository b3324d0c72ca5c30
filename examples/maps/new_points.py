"""
Place new points
================

A fitted map places points that it has not seen. Grey points were fitted; coloured ones were placed. Each is
placed independently of the other new points.

Paper: Poličar, Stražar and Zupan (2023).
"""

import numpy as np

import graphcouple as gc

X, y = gc.datasets.load("digits")
tsne = gc.TSNE(random_state=0).fit(X[:1300])
placed = tsne.transform(X[1300:])
ax = gc.plot(tsne.embedding_, title="497 digits placed among 1,300")
ax.collections[0].set(color="0.75")
gc.plot(placed, y[1300:], ax=ax)

# %%
# `isolation` measures how far a new point is from the fitted ones: noise stands out.

noise = np.random.default_rng(0).uniform(0, 16, size=(5, 64))
print(
    "digits", np.round(np.median(tsne.isolation(X[1300:])), 2), "noise", np.round(np.median(tsne.isolation(noise)), 2)
)
