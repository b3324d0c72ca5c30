"""Cases: a seed gives data, an estimator and its parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

import graphcouple as gc

COUPLINGS = (
    *(
        gc.TSNE,
        gc.SNE,
        gc.SymmetricSNE,
        gc.LargeVis,
        gc.NCTSNE,
        gc.NegTSNE,
        gc.SNEkhorn,
        gc.PaCMAP,
        gc.LocalMAP,
        gc.TriMap,
        gc.InfoNCTSNE,
        gc.COSNE,
    ),
    *(gc.UMAP, gc.LaptSNE, gc.TwoKernelPCA, gc.TwoKernelLLE),
)
CLASSICAL = (
    gc.CCPCA,
    gc.PrecisionCoupling,
    gc.ClassicalMDS,
    gc.MetricMDS,
    gc.Isomap,
    gc.LocallyLinearEmbedding,
    gc.LaplacianEigenmaps,
    gc.DiffusionMaps,
    gc.PHATE,
    gc.KernelPCA,
    gc.LinearAutoencoder,
    gc.Autoencoder,
)
# Enough for sums over all pairs not to be exact.
_MANY = 2100

KERNELS = (gc.Gaussian(), gc.Exponential(), gc.Student(), gc.Student(0.5), gc.RationalPower(1.6, 0.9))


class Case(NamedTuple):
    """One fit.

    Attributes
    ----------
    seed : int
    estimator : estimator
    X : array, sparse matrix or DataFrame
    what : str
        What the data are, in words.
    weights : ndarray of shape (n_samples,), optional
        Sample weights.
    """

    seed: int
    estimator: Any
    X: Any
    what: str
    weights: Any = None


def case(seed: int) -> Case:
    """Return the case of a seed."""
    rng = np.random.default_rng(seed)
    points, kind = _points(rng)
    X, form = _form(rng, points)
    estimator, n = _estimator(rng, points.shape[0], kind), points.shape[0]
    more = np.random.default_rng((seed, 1))
    weights = None
    if "terms" in estimator.get_params():
        estimator, weights = _elaborate(more, estimator, n)
    said = f"{kind}, {form}, {points.shape}" + ("" if weights is None else ", weighted")
    return Case(seed, estimator, X, said, weights)


def _points(rng: np.random.Generator) -> tuple[Any, str]:
    # A few are so many that their sums are no longer exact.
    n = _MANY if rng.uniform() < 0.006 else int(rng.choice([4, 7, 15, 30, 60]))
    p = int(rng.choice([1, 2, 5, 20, 70]))
    plain = rng.normal(size=(n, p))
    kinds = {
        "noise": lambda: plain,
        "clusters": lambda: plain + 20.0 * rng.normal(size=(3, p))[rng.integers(3, size=n)],
        "copies": lambda: plain[rng.integers(max(n // 3, 1), size=n)],
        "constant": lambda: np.full((n, p), 3.0),
        "outlier": lambda: np.where(np.arange(n)[:, None] == 0, 1e8, plain),
        "small": lambda: plain * 1e-8,
        "large": lambda: plain * 1e8,
        "far": lambda: plain + 1e6,
        "line": lambda: np.outer(plain[:, 0], np.ones(p)),
        "counts": lambda: rng.poisson(0.7, size=(n, p)).astype(np.float64),
        "decades": lambda: plain * 10.0 ** rng.uniform(-6, 6, size=p),
        "two places": lambda: np.repeat(rng.normal(size=(2, p)), [n // 2, n - n // 2], axis=0),
        "not a number": lambda: np.where(np.arange(n)[:, None] == n - 1, np.nan, plain),
    }
    kind = str(rng.choice(list(kinds)))
    return kinds[kind](), kind


def _form(rng: np.random.Generator, points: Any) -> tuple[Any, str]:
    forms = {
        "array": lambda: points.copy(),
        "single precision": lambda: points.astype(np.float32),
        "columns": lambda: np.asfortranarray(points),
        "strided": lambda: np.repeat(points, 2, axis=0)[::2],
        "read-only": lambda: _locked(points),
        "csr": lambda: sp.csr_array(points),
        "csc": lambda: sp.csc_matrix(points),
        "coo": lambda: sp.coo_array(points),
        "frame": lambda: pd.DataFrame(points),
        "list": lambda: points.tolist(),
    }
    form = str(rng.choice(list(forms)))
    return forms[form](), form


def _locked(points: Any) -> Any:
    locked = points.copy()
    locked.flags.writeable = False
    return locked


def _estimator(rng: np.random.Generator, n: int, kind: str) -> Any:
    options: dict[str, Any] = {"n_components": int(rng.choice([1, 2, 2, 2, 3, 5]))}
    n = min(n, 60)
    if rng.uniform() < 0.35:
        return _classical(rng, n, options)
    options |= {"max_iter": int(rng.choice([1, 5, 20])), "random_state": 0}
    if rng.uniform() < 0.5:
        options["init"] = str(rng.choice(["pca", "random", "spectral", "ccpca"]))
    if rng.uniform() < 0.15:
        options["unique"] = True
    metric = str(rng.choice(["euclidean"] * 6 + ["cosine", "manhattan", "chebyshev"]))
    neighbors = max(2, int(rng.choice([2, 5, n // 3, n - 1])))
    perplexity = float(rng.choice([2.0, max(2.0, n / 3.0), 5.0]))
    if rng.uniform() < 0.3:
        law = gc.GraphModel(
            KERNELS[rng.integers(3)],
            str(rng.choice(["B", "D", "E"])),
            gc.Perplexity(perplexity) if rng.uniform() < 0.7 else gc.SelfTuning(2),
            None if rng.uniform() < 0.5 else min(neighbors, n - 1),
        )
        latent = gc.GraphModel(KERNELS[rng.integers(len(KERNELS))], str(rng.choice(["B", "D", "E"])))
        return gc.GraphCoupling(law, latent, **options)
    kind_of = COUPLINGS[rng.integers(len(COUPLINGS))]
    known = kind_of().get_params()
    if "perplexity" in known:
        options["perplexity"] = perplexity
    elif "n_neighbors" in known:
        options["n_neighbors"] = neighbors
    return kind_of(metric=metric, **options)


def _elaborate(rng: np.random.Generator, estimator: Any, n: int) -> tuple[Any, Any]:
    """Return the estimator with a term, in a wrapper or as a matching, or weights: mostly none of these."""
    options = estimator.get_params(deep=False)
    which = rng.uniform()
    if which < 0.15:
        q = options["n_components"]
        terms = (
            gc.Anchors([0, n - 1], rng.normal(size=(2, q)), weight=0.1),
            gc.ComponentMeans(n_graphs=2),
            gc.LargeScale(),
            gc.DistanceShape(),
            gc.ReferenceShape(),
            gc.SpectralContraction(n_clusters=2),
            gc.Density(),
        )
        estimator.set_params(terms=[terms[rng.integers(len(terms))]])
    elif which < 0.22:
        wrappers = (gc.HierarchicalCoupling, gc.TwoScaleCoupling, gc.DensMAP, gc.DistR)
        return wrappers[rng.integers(len(wrappers))](estimator, random_state=0), None
    elif which < 0.32:
        choices = {
            "loss": rng.choice(["square", "kl"]),
            "symmetrize": rng.choice(["mean", "or", "first"]),
            "reading": rng.choice(["bernoulli", "neighborhood"]),
            "latent_reading": rng.choice(["bernoulli", "neighborhood"]),
        }
        shared = {name: options[name] for name in ("n_components", "max_iter", "init", "metric") if name in options}
        matching = gc.PairwiseMatching(perplexity=2.0, random_state=0, **shared)
        return matching.set_params(**{name: str(choice) for name, choice in choices.items()}), None
    elif which < 0.42:
        return estimator, rng.choice([0.5, 1.0, 2.0, 3.0], size=n)
    return estimator, None


def _classical(rng: np.random.Generator, n: int, options: dict[str, Any]) -> Any:
    kind_of = CLASSICAL[rng.integers(len(CLASSICAL))]
    known = kind_of().get_params()
    drawn = {
        "random_state": 0,
        "perplexity": float(rng.choice([2.0, 5.0, max(2.0, n / 3.0)])),
        "n_neighbors": max(1, int(rng.choice([1, 3, n // 2, n - 1]))),
        "n_landmarks": None if rng.uniform() < 0.5 else int(rng.integers(2, n + 2)),
        "metric": str(rng.choice(["euclidean", "euclidean", "manhattan"])),
        "kernel": str(rng.choice(["linear", "rbf", "cosine"])),
        "n_samples": 10,
        "normalized": bool(rng.uniform() < 0.5),
        "max_iter": 30,
    }
    if kind_of in (gc.CCPCA, gc.LaplacianEigenmaps, gc.DiffusionMaps, gc.PHATE):
        drawn["n_neighbors"] = "auto"
    if kind_of is gc.PHATE:
        drawn["n_landmarks"] = max(3, drawn["n_landmarks"] or n)
    return kind_of(**options, **{name: value for name, value in drawn.items() if name in known})
