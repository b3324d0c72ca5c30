"""The contenders: how each is imported, and fitted at its defaults on every core."""

import importlib.util
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any


@dataclass(frozen=True)
class Contender:
    """A package, the method it is asked for, and a function that fits X and notes the times of its parts."""

    package: str
    method: str
    fit: Callable[[Any, dict], Any]
    caches: bool = False


def installed(contender):
    return importlib.util.find_spec(contender.package) is not None


@contextmanager
def timed(times, part):
    start = perf_counter()
    yield
    times[part] = times.get(part, 0.0) + perf_counter() - start


def _ours(make):
    def fit(X, times):
        import graphcouple as gc
        from graphcouple.estimators import carry_out
        from graphcouple.neighbors.by_metric import distances_of

        euclidean = type(distances_of(X[:2]))

        def noted(module, name, part):
            plain = getattr(module, name)

            def wrapped(*given, **named):
                with timed(times, part):
                    return plain(*given, **named)

            setattr(module, name, wrapped)
            return plain

        plain = [
            (euclidean, "nearest", noted(euclidean, "nearest", "neighbors_s")),
            (carry_out, "posterior_of", noted(carry_out, "posterior_of", "affinities_s")),
            (carry_out, "solve", noted(carry_out, "solve", "optimize_s")),
        ]
        try:
            Z = make(gc).fit_transform(X)
        finally:
            for module, name, function in plain:
                setattr(module, name, function)
        times["affinities_s"] -= times.get("neighbors_s", 0.0)
        return Z

    return fit


def _opentsne(X, times):
    from openTSNE import TSNEEmbedding
    from openTSNE.affinity import PerplexityBasedNN
    from openTSNE.initialization import pca

    # What openTSNE.TSNE().fit does at its defaults, in its parts.
    with timed(times, "affinities_s"):
        affinities = PerplexityBasedNN(X, perplexity=30, n_jobs=-1, random_state=0)
    start = pca(X, random_state=0)
    with timed(times, "optimize_s"):
        embedding = TSNEEmbedding(start, affinities, n_jobs=-1, random_state=0)
        embedding = embedding.optimize(250, exaggeration=12, momentum=0.8, learning_rate="auto")
        embedding = embedding.optimize(500, exaggeration=1, momentum=0.8, learning_rate="auto")
    return embedding


def _sklearn(X, times):
    from sklearn.manifold import TSNE

    return TSNE(n_jobs=-1, random_state=0).fit_transform(X)


def _umap(X, times):
    import umap

    return umap.UMAP().fit_transform(X)


def _pacmap(X, times):
    import pacmap

    return pacmap.PaCMAP().fit_transform(X)


CONTENDERS = {
    "graphcouple TSNE": Contender("graphcouple", "tsne", _ours(lambda gc: gc.TSNE(random_state=0)), caches=True),
    "openTSNE": Contender("openTSNE", "tsne", _opentsne),
    "scikit-learn TSNE": Contender("sklearn", "tsne", _sklearn),
    "graphcouple UMAP": Contender("graphcouple", "umap", _ours(lambda gc: gc.UMAP(random_state=0)), caches=True),
    "umap-learn": Contender("umap", "umap", _umap, caches=True),
    "PaCMAP": Contender("pacmap", "umap", _pacmap, caches=True),
    "graphcouple SNE": Contender("graphcouple", "sne", _ours(lambda gc: gc.SNE(random_state=0)), caches=True),
    "graphcouple LargeVis": Contender(
        "graphcouple", "largevis", _ours(lambda gc: gc.LargeVis(random_state=0)), caches=True
    ),
}

FAMILIES = {
    "graphcouple TSNE": ("openTSNE", "scikit-learn TSNE", "graphcouple SNE", "graphcouple LargeVis"),
    "graphcouple UMAP": ("umap-learn", "PaCMAP"),
}
