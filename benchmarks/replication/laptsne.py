"""Tables 2 to 4 of the LaptSNE paper: do classes show in the embedding?"""

import warnings

from papers import GAPS
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import KNeighborsClassifier

import graphcouple as gc

FROM_PCA = ("MNIST", "Waveform")
FEW, MANY = (10, 20, 40, 80), (100, 200, 400, 800)
METHODS = ("LaptSNE", "LaptSNE, defaults", "LaptSNE-Mini", "t-SNE", "t-SNE, defaults", "UMAP", "Eigenmaps", "PCA")


def neighbors_of(name):
    """Return the numbers of neighbors that the paper has for a data set."""
    return MANY if name == "MNIST" else FEW


def _map(method, name, X, seed):
    start = {"init": "pca" if name in FROM_PCA else "spectral", "random_state": seed}
    if method == "LaptSNE":
        return gc.LaptSNE(n_clusters=GAPS[name], **start).fit_transform(X)
    if method == "LaptSNE, defaults":
        return gc.LaptSNE(**start).fit_transform(X)
    if method == "LaptSNE-Mini":
        return gc.LaptSNE(n_clusters=GAPS[name], batch_size=512, max_iter=600, **start).fit_transform(X)
    if method == "t-SNE":
        # As the paper: perplexity 25, no exaggeration.
        return gc.TSNE(perplexity=25, early_exaggeration=1.0, random_state=seed, init="random").fit_transform(X)
    if method == "t-SNE, defaults":
        return gc.TSNE(random_state=seed).fit_transform(X)
    if method == "UMAP":
        return gc.UMAP(random_state=seed).fit_transform(X)
    if method == "Eigenmaps":
        from sklearn.manifold import SpectralEmbedding

        return SpectralEmbedding(random_state=seed).fit_transform(X)
    return gc.PrecisionCoupling(2).fit_transform(X)


def fitted_accuracy(Z, y, k):
    """Return the accuracy on the points that the classifier knows, each its own nearest: the paper's figures."""
    return float(KNeighborsClassifier(k).fit(Z, y).score(Z, y))


def measure(name, X, y, seed):
    """Return for each method four accuracies as the paper's, the first held out, and two times NMI, SC and DBI."""
    found = {}
    for method in METHODS:
        with warnings.catch_warnings():
            # COIL-20's objects are not connected to each other.
            warnings.simplefilter("ignore", UserWarning)
            # LaptSNE-Mini is not run to its end, as the paper's is not.
            warnings.simplefilter("ignore", ConvergenceWarning)
            Z = _map(method, name, X, seed)
        sizes = neighbors_of(name)
        accuracies = [fitted_accuracy(Z, y, k) for k in sizes] + [gc.metrics.knn_accuracy(Z, y, sizes[0])]
        classes = gc.metrics.cluster_scores(Z, y, random_state=seed)
        gap = gc.metrics.cluster_scores(Z, y, GAPS[name], random_state=seed)
        found[method] = [*accuracies, *classes, *gap]
    return found
