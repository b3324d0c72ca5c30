"""One data set by the peers that are installed and by this library's methods, a panel each; other examples use it."""

import argparse
import importlib.util

from matplotlib.figure import Figure

import graphcouple as gc

COLUMNS = 4


def _opentsne(X):
    import openTSNE

    return openTSNE.TSNE(n_jobs=-1, random_state=0).fit(X)


def _umap(X):
    import umap

    return umap.UMAP(random_state=0).fit_transform(X)


def _pacmap(X):
    import pacmap

    return pacmap.PaCMAP(random_state=0).fit_transform(X, init="pca")


def _trimap(X):
    import trimap

    return trimap.TRIMAP(verbose=False).fit_transform(X)


PEERS = {
    "openTSNE": ("openTSNE", _opentsne),
    "umap-learn": ("umap", _umap),
    "PaCMAP": ("pacmap", _pacmap),
    "TriMap": ("trimap", _trimap),
}

OURS = {
    "TSNE": gc.TSNE(random_state=0),
    "HierarchicalCoupling": gc.HierarchicalCoupling(random_state=0),
    "TwoScaleCoupling": gc.TwoScaleCoupling(random_state=0),
}


def read_options(description, output):
    """Return the number of points that the command line asks for, and where the picture goes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=2000)
    parser.add_argument("--output", default=output)
    options = parser.parse_args()
    return options.points, options.output


def draw(X, y, output, **more):
    """Draw a panel for each peer and each estimator of `OURS` and `more`, with what each keeps beneath it."""
    found = {name: fit(X) for name, (module, fit) in PEERS.items() if importlib.util.find_spec(module)}
    found |= {name: estimator.fit_transform(X) for name, estimator in {**OURS, **more}.items()}
    rows = -(-len(found) // COLUMNS)
    figure = Figure(figsize=(3.6 * COLUMNS, 3.7 * rows), layout="constrained")
    axes = figure.subplots(rows, COLUMNS, squeeze=False).ravel()
    for ax, (name, Z) in zip(axes, found.items(), strict=False):
        near, far = (100 * gc.metrics.k_ary_preservation(X, Z, K) for K in (10, len(X) // 2))
        gc.plot(Z, y, ax=ax, title=name, legend=False)
        ax.set_xlabel(f"100·R(10) {near:.0f}, 100·R(n/2) {far:.0f}")
    for ax in axes[len(found) :]:
        ax.set_axis_off()
    figure.savefig(output, dpi=110)
