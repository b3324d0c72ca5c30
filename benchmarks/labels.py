"""Classes and numbers in the law: do they help with points that were held out?

    python benchmarks/labels.py

10-NN accuracy in the embedding: of the points that were fitted, and of 597 digits that were held out and placed by
`transform`; with the true classes, with random ones, and with a tenth of the true ones. Then the same for numbers, by
R² of 10-NN regression, with umap-learn beside if it is installed.
"""

import warnings

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

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

diabetes, (inputs, output) = load_diabetes(), make_friedman1(1200, 10, noise=1.0, random_state=0)
tables = {
    # Half a unit makes the whole numbers of this data set a continuous target.
    "diabetes": (diabetes.data, diabetes.target + 0.5),
    "friedman": (inputs, output),
    "random": (inputs, rng.normal(size=1200)),
}
methods = {f"UMAP, t = {t}": gc.UMAP(target_weight=t, random_state=0) for t in (0.0, 0.5, 0.8)}
try:
    import umap

    methods["umap-learn"] = umap.UMAP(target_metric="l2", random_state=0)
except ImportError:
    pass
print(f"\n{'numbers':10}{'method':14}{'fitted':>10}{'held out':>10}{'R(10)':>10}")
for name, (points, y) in tables.items():
    n = 2 * len(y) // 3
    for label, estimator in methods.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Z = estimator.fit(points[:n], y[:n]).embedding_
            vote = KNeighborsRegressor(10).fit(Z, y[:n])
            scores = vote.score(Z, y[:n]), vote.score(estimator.transform(points[n:]), y[n:])
        kept = gc.metrics.evaluate(points[:n], Z)["R(10)"]
        print(f"{name:10}{label:14}{scores[0]:10.2f}{scores[1]:10.2f}{kept:10.2f}", flush=True)
