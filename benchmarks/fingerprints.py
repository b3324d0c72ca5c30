"""Fingerprints of embeddings, to compare two versions of the library.

Fits every preset with every summation, in single and double precision, and writes the digest of the embedding's bits
and the loss:

    python benchmarks/fingerprints.py before.json            # in one version
    python benchmarks/fingerprints.py after.json before.json # in the other: prints what differs

Digits are fitted in full; MNIST (`--mnist IMAGES`, an IDX file of images) for 60 iterations.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import time
import warnings
from pathlib import Path

import numpy as np

import graphcouple as gc

SUMMATIONS = ("auto", "exact", "particle_mesh", "barnes_hut")


def cases():
    for method in (gc.SNE, gc.SymmetricSNE, gc.TSNE, gc.LargeVis, gc.UMAP):
        for summation in SUMMATIONS:
            yield method, {"summation": summation}
        if method in (gc.LargeVis, gc.UMAP):
            yield method, {"repulsion": "sampled"}
            yield method, {"repulsion": "full"}
    yield gc.TSNE, {"init": "ccpca"}
    yield gc.TSNE, {"n_components": 3, "max_iter": 100}
    yield gc.UMAP, {"n_components": 1, "max_iter": 100}


def hierarchical(plain):
    return gc.HierarchicalCoupling(plain, random_state=0)


def composed():
    return gc.GraphCoupling(
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20), n_neighbors=60),
        gc.GraphModel(gc.Student(0.5), "E"),
        random_state=0,
    )


def fingerprint(estimator, X):
    start = time.perf_counter()
    estimator.fit(X)
    bits = np.ascontiguousarray(estimator.embedding_).tobytes()
    return {
        "digest": hashlib.sha256(bits).hexdigest()[:16],
        "loss": float(estimator.loss_),
        "n_iter": int(estimator.n_iter_),
        "seconds": round(time.perf_counter() - start, 2),
    }


def run(mnist):
    X, _ = gc.datasets.load("digits")
    found = {}
    for dtype in ("float64", "float32"):
        data = X.astype(dtype)
        for method, parameters in cases():
            name = f"digits {dtype} {method.__name__} {parameters}"
            found[name] = fingerprint(method(random_state=0, **parameters), data)
            print(name, found[name], flush=True)
        for plain in (gc.TSNE(), gc.UMAP()):
            name = f"digits {dtype} hierarchical {type(plain).__name__}"
            found[name] = fingerprint(hierarchical(plain), data)
            print(name, found[name], flush=True)
        found[f"digits {dtype} composed"] = fingerprint(composed(), data)
    if mnist is None:
        return found
    points = np.frombuffer(gzip.decompress(mnist.read_bytes()), dtype=np.uint8, offset=16).reshape(-1, 784)
    for dtype in ("float64", "float32"):
        for method, parameters in cases():
            name = f"mnist {dtype} {method.__name__} {parameters}"
            exact = parameters.get("summation") == "exact"
            iterations = 10 if exact else 60
            estimator = method(random_state=0, **{**parameters, "max_iter": iterations})
            found[name] = fingerprint(estimator, points.astype(dtype))
            print(name, found[name], flush=True)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("against", type=Path, nargs="?")
    parser.add_argument("--mnist", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = run(options.mnist)
    options.output.write_text(json.dumps(found, indent=1))
    if options.against is None:
        return
    before = json.loads(options.against.read_text())
    for name, now in found.items():
        then = before.get(name)
        if then is not None and then["digest"] != now["digest"]:
            print(f"{name}: loss {then['loss']:.8g} -> {now['loss']:.8g} ({now['loss'] / then['loss'] - 1:+.2e})")
    same = sum(before.get(name, {}).get("digest") == now["digest"] for name, now in found.items())
    print(f"{same} of {len(found)} have the same bits")


if __name__ == "__main__":
    main()
