"""New points in a fitted embedding: seconds and accuracy beside openTSNE and umap-learn.

    python benchmarks/transform.py mnist70k.npz [--new 10000] [--only TSNE UMAP openTSNE umap-learn]
    python benchmarks/transform.py mixture:1010000 --only TSNE     # a million points in fifty far clusters

The .npz file holds X and y. A seeded share of the rows is kept back; each contender fits the others and places those,
twice, in a process of its own, after a small fit and transform that compile. A classifier by
the ten nearest fitted places, trained on the fitted points' classes, gives the accuracy on the new points.
Trustworthiness is of 2,500 new places among themselves.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings

import numpy as np
from scaling import mixture

CONTENDERS = ("TSNE", "UMAP", "SNE", "LargeVis", "composed", "openTSNE", "umap-learn")


def estimator(name):
    """Return a function that fits points, and returns the embedding and a function that places new ones."""
    if name == "openTSNE":
        import openTSNE

        def fit(X):
            fitted = openTSNE.TSNE(random_state=0, n_jobs=-1).fit(X)
            return np.asarray(fitted), lambda new: np.asarray(fitted.transform(new))

        return fit
    if name == "umap-learn":
        import umap

        make = umap.UMAP
    else:
        import graphcouple as gc

        composed = {
            "input": gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20), "auto"),
            "latent": gc.GraphModel(gc.Student(0.5), "D"),
            "init": "pca",
        }
        make = (lambda **options: gc.GraphCoupling(**composed, **options)) if name == "composed" else getattr(gc, name)

    def fit(X):
        fitted = make(random_state=0).fit(X)
        return fitted.embedding_, fitted.transform

    return fit


def measure(name, path, n_new):
    """Print one contender's seconds and scores as JSON."""
    from sklearn.manifold import trustworthiness
    from sklearn.neighbors import KNeighborsClassifier

    warnings.simplefilter("ignore")
    if path.startswith("mixture:"):
        X, y = mixture(int(path.removeprefix("mixture:")))
    else:
        with np.load(path) as arrays:
            X, y = arrays["X"].astype(np.float32), arrays["y"]
    order = np.random.default_rng(0).permutation(len(X))
    old, new = order[n_new:], order[:n_new]
    fit = estimator(name)
    fit(X[old[:6000]])[1](X[new[:100]])
    start = time.perf_counter()
    Z, place = fit(X[old])
    seconds = [time.perf_counter() - start]
    for _ in range(2):
        start = time.perf_counter()
        places = place(X[new])
        seconds.append(time.perf_counter() - start)
    accuracy = KNeighborsClassifier(10).fit(Z, y[old]).score(places, y[new])
    few = np.random.default_rng(1).choice(n_new, min(n_new, 2500), replace=False)
    trust = trustworthiness(X[new[few]], places[few], n_neighbors=10)
    print(json.dumps([*seconds, accuracy, trust]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--new", type=int, default=10_000)
    parser.add_argument("--only", nargs="+", default=CONTENDERS, choices=CONTENDERS)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        measure(arguments.measure, arguments.data, arguments.new)
        return
    print(f"{'':12} {'fit s':>7} {'new s':>7} {'again':>7} {'10-NN':>7} {'trust':>7}")
    for name in arguments.only:
        command = [sys.executable, __file__, arguments.data, "--new", str(arguments.new), "--measure", name]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
        fit, new, again, accuracy, trust = json.loads(run.stdout.splitlines()[-1])
        print(f"{name:12} {fit:7.1f} {new:7.2f} {again:7.2f} {accuracy:7.4f} {trust:7.4f}", flush=True)


if __name__ == "__main__":
    main()
