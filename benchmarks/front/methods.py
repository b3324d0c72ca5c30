"""The methods of the front, each at its defaults. This file runs alone too, in the environment of a peer.

python methods.py METHOD SEED POINTS.npy EMBEDDING.npy
"""

import sys
import time
import warnings

import numpy as np


def _ours(make):
    def fit(X, seed):
        import graphcouple as gc

        return make(gc, seed).fit_transform(X)

    return fit


def _diffused(gc, n_steps, seed):
    law, latent = gc.TSNE().sentence.input, gc.TSNE().sentence.latent
    return gc.GraphCoupling(gc.laws.DiffusedLaw(law, n_steps), latent, init="pca", random_state=seed)


def _communities(gc, seed):
    law, latent = gc.TSNE().sentence.input, gc.TSNE().sentence.latent
    return gc.GraphCoupling(gc.laws.CommunityLaw(law), latent, init="pca", random_state=seed)


def _quadratic(gc, seed):
    latent = gc.TSNE().sentence.latent
    return gc.GraphCoupling(gc.laws.QuadraticTransport(n_neighbors="auto"), latent, init="pca", random_state=seed)


def _means(X, seed):
    """Points at the places of weighted t-SNE of 100 means: clusters first, and then their map."""
    from sklearn.cluster import KMeans

    import graphcouple as gc

    means = KMeans(100, n_init=1, random_state=seed).fit(X)
    sizes = np.bincount(means.labels_)
    return gc.TSNE(random_state=seed).fit(means.cluster_centers_, sample_weight=sizes).embedding_[means.labels_]


def _multiscale(X, seed):
    import graphcouple as gc

    return gc.TSNE(perplexity=(30, max(30, min(len(X) // 10, 500))), random_state=seed).fit_transform(X)


def _opentsne(X, seed):
    import openTSNE

    return openTSNE.TSNE(n_jobs=-1, random_state=seed).fit(X)


def _umap(X, seed):
    import umap

    return umap.UMAP(random_state=seed).fit_transform(X)


def _pacmap(X, seed):
    import pacmap

    return pacmap.PaCMAP(random_state=seed).fit_transform(X.astype(np.float32), init="pca")


def _localmap(X, seed):
    import pacmap

    return pacmap.LocalMAP(random_state=seed).fit_transform(X.astype(np.float32), init="pca")


def _trimap(X, seed):
    import trimap

    # TriMap has no other seed.
    np.random.seed(seed)  # noqa: NPY002
    return trimap.TRIMAP(verbose=False).fit_transform(X.astype(np.float32))


def _phate(X, seed):
    import phate

    return phate.PHATE(random_state=seed, verbose=0, n_jobs=-1).fit_transform(X)


def _pca(X, seed):
    from sklearn.decomposition import PCA

    return PCA(2, random_state=seed).fit_transform(X)


OURS = {
    "t-SNE": _ours(lambda gc, seed: gc.TSNE(random_state=seed)),
    "UMAP": _ours(lambda gc, seed: gc.UMAP(random_state=seed)),
    "NC-t-SNE": _ours(lambda gc, seed: gc.NCTSNE(random_state=seed)),
    "NC-t-SNE, 5 samples": _ours(lambda gc, seed: gc.NCTSNE(negative_sample_rate=5.0, random_state=seed)),
    "InfoNC-t-SNE": _ours(lambda gc, seed: gc.InfoNCTSNE(random_state=seed)),
    "our PHATE": _ours(lambda gc, seed: gc.PHATE(random_state=seed)),
    "our PaCMAP": _ours(lambda gc, seed: gc.PaCMAP(random_state=seed)),
    "t-SNE, 100 places": _ours(lambda gc, seed: gc.DistR(n_prototypes=100, random_state=seed)),
    "t-SNE of 100 means": _means,
    "t-SNE, network": _ours(lambda gc, seed: gc.ParametricCoupling(features="network", random_state=seed)),
    "autoencoder": _ours(lambda gc, seed: gc.Autoencoder(random_state=seed)),
    "our TriMap": _ours(lambda gc, seed: gc.TriMap(random_state=seed)),
    "our LocalMAP": _ours(lambda gc, seed: gc.LocalMAP(random_state=seed)),
    "t-SNE, communities": _ours(_communities),
    "t-SNE, quadratic transport": _ours(_quadratic),
    "t-SNE, 2 steps": _ours(lambda gc, seed: _diffused(gc, 2, seed)),
    "t-SNE, 8 steps": _ours(lambda gc, seed: _diffused(gc, 8, seed)),
    "SNEkhorn": _ours(lambda gc, seed: gc.SNEkhorn(random_state=seed)),
    "t-SNEkhorn": _ours(lambda gc, seed: gc.SNEkhorn(latent_kernel=gc.Student(), random_state=seed)),
    "two-scale t-SNE": _ours(lambda gc, seed: gc.TwoScaleCoupling(random_state=seed)),
    "two-scale UMAP": _ours(lambda gc, seed: gc.TwoScaleCoupling(gc.UMAP(), random_state=seed)),
    "hierarchical t-SNE": _ours(lambda gc, seed: gc.HierarchicalCoupling(random_state=seed)),
    "hierarchical UMAP": _ours(lambda gc, seed: gc.HierarchicalCoupling(gc.UMAP(), random_state=seed)),
    "UMAP from ccPCA": _ours(lambda gc, seed: gc.UMAP(init="ccpca", random_state=seed)),
    "UMAP from PCA": _ours(lambda gc, seed: gc.UMAP(init="pca", random_state=seed)),
    "two-scale UMAP from PCA": _ours(lambda gc, seed: gc.TwoScaleCoupling(gc.UMAP(init="pca"), random_state=seed)),
    "t-SNE from ccPCA": _ours(lambda gc, seed: gc.TSNE(init="ccpca", random_state=seed)),
    "t-SNE from eigenmaps": _ours(lambda gc, seed: gc.TSNE(init="spectral", random_state=seed)),
    "t-SNE, shape of PCA": _ours(lambda gc, seed: gc.TSNE(terms=[gc.ReferenceShape()], random_state=seed)),
    "t-SNE, distances": _ours(lambda gc, seed: gc.TSNE(terms=[gc.DistanceShape()], random_state=seed)),
    "t-SNE, two perplexities": _multiscale,
    "two-scale t-SNE, weight 1": _ours(lambda gc, seed: gc.TwoScaleCoupling(weight=1.0, random_state=seed)),
    "two-scale t-SNE, weight 7": _ours(lambda gc, seed: gc.TwoScaleCoupling(weight=7.0, random_state=seed)),
    "two-scale t-SNE, nothing resists": _ours(
        lambda gc, seed: gc.TSNE(terms=[gc.LargeScale(resistance=0.0)], random_state=seed)
    ),
    "two-scale t-SNE, weight 7, nothing resists": _ours(
        lambda gc, seed: gc.TSNE(terms=[gc.LargeScale(7.0, resistance=0.0)], random_state=seed)
    ),
}
PEERS = {
    "openTSNE": ("openTSNE", _opentsne),
    "umap-learn": ("umap", _umap),
    "PaCMAP": ("pacmap", _pacmap),
    "LocalMAP": ("pacmap", _localmap),
    "TriMap": ("trimap", _trimap),
    "PHATE": ("phate", _phate),
}
OTHERS = {"PCA": _pca}
FITS = {**OURS, **{name: fit for name, (_, fit) in PEERS.items()}, **OTHERS}


def embed(method, X, seed):
    """Return an embedding and the seconds it took."""
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    Z = np.asarray(FITS[method](X, seed), dtype=np.float64)
    return Z, time.perf_counter() - start


if __name__ == "__main__":
    name, seed, points, target = sys.argv[1:]
    embedding, seconds = embed(name, np.load(points), int(seed))
    np.savez(target, Z=embedding, seconds=seconds)
