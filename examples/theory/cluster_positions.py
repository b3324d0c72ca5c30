"""What degeneracy costs: t-SNE keeps clusters and forgets where they were; precision coupling keeps the places.

    python examples/theory/cluster_positions.py [--output cluster_positions.png]

A hierarchical mixture: three far groups of three clusters each, in 20 dimensions. Printed: the degeneracy of the
D-posterior, and how well each embedding keeps the distances between cluster means (Pearson and Spearman
correlation with the data's) and the nearest neighbours' labels.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist
from scipy.stats import pearsonr, spearmanr
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import graphcouple as gc


def mixture(rng, n_each=80, dim=20):
    groups = 30.0 * rng.normal(size=(3, dim))
    centres = np.concatenate([group + 6.0 * rng.normal(size=(3, dim)) for group in groups])
    y = np.repeat(np.arange(9), n_each)
    return centres[y] + rng.normal(size=(9 * n_each, dim)), y


def means(points, y):
    return np.array([points[y == k].mean(0) for k in range(9)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="cluster_positions.png")
    output = parser.parse_args().output
    X, y = mixture(np.random.default_rng(0))
    tsne = gc.TSNE(init="random", random_state=0)
    print(gc.degeneracy_report(tsne.models(len(X))[0], X, y=y), end="\n\n")
    methods = {
        "t-SNE, random start": tsne,
        "t-SNE, PCA start": gc.TSNE(random_state=0),
        "precision coupling (PCA)": gc.PrecisionCoupling(2),
    }
    figure = Figure(figsize=(15, 5), layout="constrained")
    wanted = pdist(means(X, y))
    print(f"{'':26}{'Pearson':>9}{'Spearman':>10}{'1-NN accuracy':>15}")
    for ax, (name, method) in zip(figure.subplots(1, 3), methods.items(), strict=True):
        Z = method.fit_transform(X)
        found = pdist(means(Z, y))
        accuracy = cross_val_score(KNeighborsClassifier(1), Z, y, cv=5).mean()
        pearson, spearman = pearsonr(wanted, found)[0], spearmanr(wanted, found)[0]
        print(f"{name:26}{pearson:9.3f}{spearman:10.3f}{accuracy:15.3f}")
        gc.plot(Z, y, ax=ax, title=f"{name}: mean distances r = {pearson:.2f}")
        if method is not list(methods.values())[-1]:
            ax.get_legend().remove()
    figure.savefig(output, dpi=110)
    print(f"saved {output}")


if __name__ == "__main__":
    main()
