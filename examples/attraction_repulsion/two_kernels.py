"""PCA and LLE with two kernels beside t-SNE and UMAP (figure 3 of Draganov and Dohn, 2023).

    python examples/attraction_repulsion/two_kernels.py [--mnist t10k-images-idx3-ubyte.gz] [--output two_kernels.png]

5,000 MNIST digits, or those of scikit-learn. Printed is the 10-NN accuracy in each embedding (5 folds).
"""

import argparse

import numpy as np
from matplotlib.figure import Figure
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import graphcouple as gc

METHODS = {
    "PCA with two kernels": gc.TwoKernelPCA,
    "t-SNE": gc.TSNE,
    "UMAP": gc.UMAP,
    "LLE with two kernels": gc.TwoKernelLLE,
}


def measure(X, y):
    """Return each method's embedding and accuracy."""
    places = {name: method(random_state=0).fit_transform(X) for name, method in METHODS.items()}
    votes = {name: cross_val_score(KNeighborsClassifier(10), Z, y, cv=5).mean() for name, Z in places.items()}
    return places, {name: float(vote) for name, vote in votes.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist")
    parser.add_argument("--output", default="two_kernels.png")
    asked = parser.parse_args()
    X, y = gc.datasets.load("mnist", asked.mnist) if asked.mnist else gc.datasets.load("digits")
    X, y = np.asarray(X[:5000], dtype=np.float32), y[:5000]
    places, accuracy = measure(X, y)
    figure = Figure(figsize=(14, 3.6), layout="constrained")
    for ax, (name, Z) in zip(figure.subplots(1, 4), places.items(), strict=True):
        gc.plot(Z, y, ax=ax, title=name, legend=False)
        print(f"{name:22} {accuracy[name]:.3f}")
    figure.savefig(asked.output, dpi=120)


if __name__ == "__main__":
    main()
