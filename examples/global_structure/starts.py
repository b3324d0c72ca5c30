"""What each start keeps of the global structure (figure 2 of the graph-coupling paper).

    python examples/global_structure/starts.py [--data digits] [--output starts.png]
    python examples/global_structure/starts.py --images images-idx3-ubyte.gz --labels labels-idx1-ubyte.gz

PCA, Laplacian eigenmaps and ccPCA of the data, then t-SNE from each of them; below every embedding the means of its
classes. The last column of the printed table says how well the arrangement of the class means agrees with PCA of the
class means of the data (1 is perfect; by Procrustes).
"""

import argparse

import numpy as np
from matplotlib.figure import Figure
from scipy.spatial import procrustes
from sklearn.decomposition import PCA
from sklearn.manifold import SpectralEmbedding

import graphcouple as gc


def read_options(description, output):
    """Return the points and labels that the command line names, and where the picture goes."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits", choices=gc.datasets.NAMES)
    parser.add_argument("--images", help="an IDX file of images, in place of --data")
    parser.add_argument("--labels", help="the IDX file of their labels")
    parser.add_argument("--output", default=output)
    options = parser.parse_args()
    if not options.images:
        return *gc.datasets.load(options.data), options.output
    if not options.labels:
        parser.error("--images needs --labels")
    images = gc.datasets.read_idx(options.images)
    return images.reshape(len(images), -1).astype(float), gc.datasets.read_idx(options.labels), options.output


def class_means(Z, y):
    """Return the mean of each class, one a row."""
    return np.array([Z[y == label].mean(axis=0) for label in np.unique(y)])


def main():
    X, y, output = read_options(__doc__, "starts.png")
    n = len(X)
    model, latent = gc.TSNE().models(n)
    posterior = model.posterior(X)
    means = posterior.support.to_csr(posterior.edge_means)
    eigenmaps = SpectralEmbedding(2, affinity="precomputed", random_state=0).fit_transform(means + means.T)
    embeddings = {
        "PCA": PCA(2, random_state=0).fit_transform(X),
        "Laplacian eigenmaps": eigenmaps,
        "ccPCA": gc.CCPCA(input=posterior, random_state=0).fit_transform(X),
    }
    for name, init in (("PCA", "pca"), ("Laplacian eigenmaps", "spectral"), ("ccPCA", "ccpca")):
        tsne = gc.GraphCoupling(posterior, latent, init=init, random_state=0)
        embeddings[f"{name} + t-SNE"] = tsne.fit_transform(X)
    figure = Figure(figsize=(21, 7.4), layout="constrained")
    axes = figure.subplots(2, 6)
    wanted = PCA(2).fit_transform(class_means(X, y))
    print(f"{'embedding':28}{'100 R(n/4)':>12}{'100 R(n/2)':>12}{'class means':>13}")
    for column, (name, Z) in enumerate(embeddings.items()):
        centres = class_means(Z, y)
        gc.plot(Z, y, ax=axes[0, column], title=name, legend=column == 5)
        gc.plot(centres, np.unique(y), ax=axes[1, column], title="class means", legend=False)
        axes[1, column].margins(0.12)
        for centre, label in zip(centres, np.unique(y), strict=True):
            axes[1, column].annotate(str(label), centre, xytext=(5, 5), textcoords="offset points", fontsize=9)
        R = 100 * gc.metrics.k_ary_preservation(X, Z, [n // 4, n // 2])
        print(f"{name:28}{R[0]:12.1f}{R[1]:12.1f}{1 - procrustes(wanted, centres)[2]:13.2f}", flush=True)
    figure.savefig(output, dpi=100)
    print(f"saved {output}")


if __name__ == "__main__":
    main()
