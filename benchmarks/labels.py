"""Classes in the law: do they help with points that were held out?

    python benchmarks/labels.py

10-NN accuracy in the embedding: of the points that were fitted, and of 597 digits that were held out and placed by
`transform`; with the true classes, with random ones, and with a tenth of the true ones.
"""

import warnings

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import graphcouple as gc

X, truth = gc.datasets.load("digits")
rng = np.random.default_rng(0)
order = rng.permutation(len(truth))
fitted, held = order[:1200], order[1200:]
few = truth.copy()
few[rng.random(len(truth)) > 0.1] = -1
print(f"{'classes':10}{'method':8}{'weight':>8}{'fitted':>10}{'held out':>10}")
for name, y in (("true", truth), ("random", rng.integers(0, 10, len(truth))), ("a tenth", few)):
    for method in (gc.TSNE, gc.UMAP):
        for weight in (0.0, 0.5, 0.8):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                estimator = method(target_weight=weight, random_state=0).fit(X[fitted], y[fitted])
            known = y[fitted] >= 0
            vote = KNeighborsClassifier(10).fit(estimator.embedding_[known], y[fitted][known])
            seen = vote.score(estimator.embedding_[known], y[fitted][known])
            new = vote.score(estimator.transform(X[held]), truth[held] if name == "a tenth" else y[held])
            print(f"{name:10}{method.__name__:8}{weight:8.1f}{seen:10.3f}{new:10.3f}")
