"""Do starts and penalties keep the global structure? R(n/4) and R(n/2) of t-SNE and UMAP, five seeds.

    python benchmarks/global_structure.py --images train-images-idx3-ubyte.gz [--seeds 5] [--output FILE.md]
    python benchmarks/global_structure.py --data digits

Each method runs from random, PCA, Laplacian-eigenmap and ccPCA starts, and with hierarchical coupling from the ccPCA
start; UMAP with full repulsion, for 300 iterations. All start from the same posterior of the input's graph. Prints
100·R(K) as mean ± standard deviation over seeds; the PCA start has no randomness, and is run once. Results are kept
beside the output (.json): only runs that are not there yet are made.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

import graphcouple as gc

STARTS = {"random": "random", "PCA": "pca", "Laplacian eigenmaps": "spectral", "ccPCA": "ccpca"}
METHODS = {
    "t-SNE": (gc.TSNE(), {**STARTS, "hierarchical, λ = 1": 1.0, "hierarchical, λ = 10": 10.0}),
    "UMAP": (gc.UMAP(repulsion="full", max_iter=300), {**STARTS, "hierarchical, λ = 10": 10.0}),
}


def run(posterior, preset, start, X, seed):
    """Return one embedding and the seconds it took."""
    latent = preset.models(len(X))[1]
    weight = start if isinstance(start, float) else 0.0
    init = "ccpca" if weight else start
    plain = gc.GraphCoupling(posterior, latent, init=init, max_iter=preset.max_iter, random_state=seed)
    method = gc.HierarchicalCoupling(plain, weight=weight) if weight else plain
    begin = time.perf_counter()
    Z = method.fit_transform(X)
    return Z, time.perf_counter() - begin


def measure(X, seeds, known, keep):
    """Fill in the runs that are missing."""
    n = len(X)
    for name, (preset, starts) in METHODS.items():
        posterior = preset.models(n)[0].posterior(X)
        for seed in range(seeds):
            for label, start in starts.items():
                key = f"{name}|{label}|{seed}"
                if key not in known and not (seed and start == "pca"):
                    Z, seconds = run(posterior, preset, start, X, seed)
                    scores = gc.metrics.k_ary_preservation(X, Z, [10, n // 4, n // 2])
                    known[key] = [*scores.tolist(), seconds]
                    print(f"{key:40}" + "".join(f"{100 * s:8.2f}" for s in scores) + f"{seconds:8.1f} s", flush=True)
                    keep(known)
    for label, Z in (("PCA", gc.PrecisionCoupling(2).fit_transform(X)),):
        known[f"no refinement|{label}|0"] = [*gc.metrics.k_ary_preservation(X, Z, [10, n // 4, n // 2]).tolist(), 0.0]
    for seed in range(seeds):
        key = f"no refinement|ccPCA|{seed}"
        if key not in known:
            begin = time.perf_counter()
            Z = gc.CCPCA(random_state=seed).fit_transform(X)
            scores = gc.metrics.k_ary_preservation(X, Z, [10, n // 4, n // 2])
            known[key] = [*scores.tolist(), time.perf_counter() - begin]
    keep(known)


def table(known, seeds):
    """Return the Markdown table of means and standard deviations."""
    lines = ["| method | start | R(10) | R(n/4) | R(n/2) |", "|---|---|---|---|---|"]
    for key in dict.fromkeys(key.rsplit("|", 1)[0] for key in known):
        values = np.array([known[f"{key}|{seed}"] for seed in range(seeds) if f"{key}|{seed}" in known])
        method, start = key.split("|")
        cells = [f"{100 * column.mean():.1f} ± {100 * column.std():.1f}" for column in values.T[:3]]
        if len(values) == 1:
            cells = [cell.removesuffix(" ± 0.0") for cell in cells]
        lines.append(f"| {method} | {start} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits", choices=gc.datasets.NAMES)
    parser.add_argument("--images", help="an IDX file of images, in place of --data")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", default="global-structure.md")
    options = parser.parse_args()
    if options.images:
        images = gc.datasets.read_idx(options.images)
        X = images.reshape(len(images), -1).astype(float)
    else:
        X = gc.datasets.load(options.data)[0]
    store = Path(options.output).with_suffix(".json")
    known = json.loads(store.read_text()) if store.exists() else {}
    measure(X, options.seeds, known, lambda results: store.write_text(json.dumps(results, indent=1)))
    text = table(known, options.seeds)
    Path(options.output).write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
