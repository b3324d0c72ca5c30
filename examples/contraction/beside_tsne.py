"""
t-SNE beside LaptSNE
====================

Both start from the same Laplacian eigenvectors. LaptSNE contracts clusters from the first iterations on (figures 1
and 5 of the LaptSNE paper). The last picture shows the smallest eigenvalues of the input's graph: LaptSNE takes the
number of clusters from their gaps.
"""

import warnings

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import graphcouple as gc

X, y = gc.datasets.load("digits")
methods = {
    "t-SNE": gc.TSNE(perplexity=25, init="spectral", random_state=0),
    "LaptSNE": gc.LaptSNE(init="spectral", random_state=0),
}
maps = {(name, "end"): method.fit_transform(X) for name, method in methods.items()}
with warnings.catch_warnings():
    # Short runs are not meant to settle.
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name, method in methods.items():
        for iterations in (10, 30, 50):
            # Without exaggeration, so that the first iterations are those of the paper.
            early = clone(method).set_params(max_iter=iterations, early_exaggeration=1.0)
            maps[name, f"iteration {iterations}"] = early.fit_transform(X)
gc.plotting.plot_grid(maps, y, legend=False)

# %%
for name in methods:
    scores = gc.metrics.cluster_scores(maps[name, "end"], y, random_state=0)
    print(f"{name:8} NMI {scores.nmi:.3f}, silhouette {scores.silhouette:.3f}")
gc.plotting.plot_eigenvalues(methods["LaptSNE"], title="the input's graph")
