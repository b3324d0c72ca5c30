"""Second fits beside the peers, in one process and in alternation: seconds, and losses by point.

    python benchmarks/second_fits.py mnist70k.npz --sizes 200 600 1500 5000 --dims 2 5 10
    python benchmarks/second_fits.py --kinds                  # 1,000 points of fifteen kinds

Each method is fitted `--repeats` + 1 times; the median leaves out the first. Losses are as this library states them,
for both embeddings. LargeVis is in neither library, and is compared with the faster of the two.
"""

import argparse
import time
import warnings

import numpy as np
from separated import DATA, clusters, objective_of
from sklearn.datasets import load_digits, make_s_curve, make_swiss_roll

import graphcouple as gc

# openTSNE beyond two dimensions has a tree with 2^q children a node.
LARGEST_OF_OPENTSNE = {2: 70_000, 3: 5000, 5: 1500}


def kinds(n=1000):
    """Return fifteen data sets of 1,000 points."""
    rng, t = np.random.default_rng(0), np.linspace(0.0, 2.0 * np.pi, n, endpoint=False)
    drawn = {
        "ring": np.column_stack([np.cos(t), np.sin(t)]) + 0.01 * rng.normal(size=(n, 2)),
        "line": np.column_stack([t, 0.01 * rng.normal(size=n)]),
        "sines": np.sin(np.outer(t, np.arange(1, 11))) + 0.01 * rng.normal(size=(n, 10)),
        "square": rng.random((n, 2)),
        "sphere": (lambda g: g / np.linalg.norm(g, axis=1, keepdims=True))(rng.normal(size=(n, 3))),
        "swiss roll": make_swiss_roll(n, random_state=0)[0],
        "s curve": make_s_curve(n, random_state=0)[0],
        "low rank": rng.normal(size=(n, 8)) @ rng.normal(size=(8, 100)) + 0.3 * rng.normal(size=(n, 100)),
        "sparse counts": rng.poisson(0.3, size=(n, 200)).astype(float),
        "five scales": clusters((n // 5,) * 5, (0.01, 0.1, 1.0, 3.0, 10.0), gap=60.0)[0],
        "digits": load_digits(return_X_y=True)[0][:n],
    }
    return drawn | {name: DATA[name]()[0] for name in ("walk", "moons", "noise", "chain")}


def methods(n, q):
    """Return the methods: a name, and a function from points to an embedding or a fitted method."""
    from umap import UMAP

    found = {
        "t-SNE": lambda X: gc.TSNE(n_components=q, random_state=0).fit(X),
        "UMAP": lambda X: gc.UMAP(n_components=q, random_state=0).fit(X),
        "LargeVis": lambda X: gc.LargeVis(n_components=q, random_state=0).fit(X),
        "umap-learn": lambda X: UMAP(n_components=q, random_state=0).fit_transform(X),
    }
    if n <= LARGEST_OF_OPENTSNE.get(q, 0):
        from openTSNE import TSNE

        rest = {} if q == 2 else {"negative_gradient_method": "bh"}
        perplexity = min(30, (n - 1) / 3)
        found["openTSNE"] = lambda X: TSNE(n_components=q, perplexity=perplexity, random_state=0, **rest).fit(X)
    return found


def measure(X, q, repeats):
    """Return the median seconds of second fits, and what each method returned."""
    found, seconds = methods(len(X), q), {}
    last = {name: fit(X) for name, fit in found.items()}
    for _ in range(repeats):
        for name, fit in found.items():
            start = time.perf_counter()
            last[name] = fit(X)
            seconds.setdefault(name, []).append(time.perf_counter() - start)
    return {name: float(np.median(all_of)) for name, all_of in seconds.items()}, last


def row(title, X, q, repeats):
    """Print a row for each of our methods."""
    beside = {"t-SNE": ("openTSNE",), "UMAP": ("umap-learn",), "LargeVis": ("openTSNE", "umap-learn")}
    seconds, last = measure(X, q, repeats)
    for name, peers in beside.items():
        known = [peer for peer in peers if peer in seconds]
        fitted = last[name]
        loss, text = objective_of(fitted).value, f"| {title} | {q} | {name} | {seconds[name]:.2f} "
        if known:
            peer = min(known, key=seconds.__getitem__)
            ours, theirs = (loss(np.asarray(Z, dtype=np.float64)) / len(X) for Z in (fitted.embedding_, last[peer]))
            text += f"| {peer} {seconds[peer]:.2f} | {seconds[peer] / seconds[name]:.2f} | {ours:.4f} / {theirs:.4f} "
        print(text + ("|" if known else "| | | |"), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", help="npz file with X")
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 600, 1500, 5000, 10_000])
    parser.add_argument("--dims", type=int, nargs="+", default=[2, 5, 10])
    parser.add_argument("--kinds", action="store_true")
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| data | q | method | s | peer, s | peer / ours | loss by point, ours / peer |\n" + "|---" * 7 + "|")
    if asked.kinds:
        for name, X in kinds().items():
            row(name, X, 2, asked.repeats)
    if asked.data:
        X = np.load(asked.data)["X"]
        for q in asked.dims:
            for n in asked.sizes:
                row(f"MNIST {n:,}", X[:n], q, asked.repeats)


if __name__ == "__main__":
    main()
