"""Cases: a seed gives data, an estimator and its parameters."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

import graphcouple as gc


class TwinMaps(gc.AlignedMaps, auto_wrap_output_keys=None):
    """Two maps of the same data, of which the first is returned."""

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        return self.fit([X, X]).embeddings_[0]


PRESETS = (
    *(gc.TSNE, gc.SNE, gc.SymmetricSNE, gc.LargeVis, gc.NCTSNE, gc.NegTSNE, gc.SNEkhorn, gc.PaCMAP, gc.LocalMAP),
    *(gc.TriMap, gc.InfoNCTSNE, gc.COSNE, gc.UMAP, gc.LaptSNE, gc.TwoKernelPCA, gc.TwoKernelLLE, gc.PairwiseMatching),
)
# Methods whose points may share places.
SHARING = (gc.TSNE, gc.SNE, gc.SymmetricSNE)
WRAPPERS = (*(gc.HierarchicalCoupling, gc.TwoScaleCoupling, gc.DensMAP, gc.DistR, gc.ParametricCoupling), TwinMaps)
CLASSICAL = (
    *(gc.CCPCA, gc.PrecisionCoupling, gc.ClassicalMDS, gc.MetricMDS, gc.Isomap, gc.LocallyLinearEmbedding),
    *(gc.LaplacianEigenmaps, gc.DiffusionMaps, gc.PHATE, gc.KernelPCA, gc.LinearAutoencoder, gc.Autoencoder),
    gc.AttractionRepulsionPCA,
)
# One after the other by seed, so that each has its share of any run. Pairs of laws are the richest.
KINDS = (*PRESETS, *4 * (gc.GraphCoupling,), *WRAPPERS, *CLASSICAL)
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
    rng, kind_of = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
    points, kind = _points(rng)
    X, form = _form(rng, points)
    estimator, n = _estimator(rng, kind_of, min(points.shape[0], 60)), points.shape[0]
    more = np.random.default_rng((seed, 1))
    weights = None
    if "terms" in estimator.get_params(deep=False):
        weights = _elaborate(more, estimator, n)
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


def _estimator(rng: np.random.Generator, kind_of: Any, n: int) -> Any:
    if kind_of in WRAPPERS:
        presets = SHARING if kind_of is gc.DistR else PRESETS
        plain = presets[rng.integers(len(presets))] if rng.uniform() < 0.7 else gc.GraphCoupling
        return kind_of(_estimator(rng, plain, n), random_state=0)
    options: dict[str, Any] = {"n_components": int(rng.choice([1, 2, 2, 2, 3, 5]))}
    if kind_of in CLASSICAL:
        return _classical(rng, kind_of, n, options)
    options |= {"max_iter": int(rng.choice([1, 5, 20])), "random_state": 0}
    if rng.uniform() < 0.5:
        options["init"] = str(rng.choice(["pca", "random", "spectral", "ccpca"]))
    if rng.uniform() < 0.15:
        options["unique"] = True
    if kind_of is gc.GraphCoupling:
        return gc.GraphCoupling(*_laws(rng, n), **options)
    options["metric"] = str(rng.choice(["euclidean"] * 6 + ["cosine", "manhattan", "chebyshev"]))
    known = kind_of().get_params()
    if "perplexity" in known:
        options["perplexity"] = _perplexity(rng, n)
    elif "n_neighbors" in known:
        options["n_neighbors"] = _neighbors(rng, n)
    if kind_of is gc.PairwiseMatching:
        options |= _matching(rng)
    return kind_of(**options)


def _perplexity(rng: np.random.Generator, n: int) -> float:
    return float(rng.choice([2.0, max(2.0, n / 3.0), 5.0]))


def _neighbors(rng: np.random.Generator, n: int) -> int:
    return max(2, int(rng.choice([2, 5, n // 3, n - 1])))


def _laws(rng: np.random.Generator, n: int) -> tuple[gc.GraphModel, gc.GraphModel]:
    law = gc.GraphModel(
        KERNELS[rng.integers(3)],
        str(rng.choice(["B", "D", "E"])),
        gc.Perplexity(_perplexity(rng, n)) if rng.uniform() < 0.7 else gc.SelfTuning(2),
        None if rng.uniform() < 0.5 else min(_neighbors(rng, n), n - 1),
    )
    return law, gc.GraphModel(KERNELS[rng.integers(len(KERNELS))], str(rng.choice(["B", "D", "E"])))


def _matching(rng: np.random.Generator) -> dict[str, str]:
    choices = {
        "loss": ["square", "kl"],
        "symmetrize": ["mean", "or", "first"],
        "reading": ["bernoulli", "neighborhood"],
        "latent_reading": ["bernoulli", "neighborhood"],
    }
    return {name: str(rng.choice(values)) for name, values in choices.items()}


def _elaborate(rng: np.random.Generator, estimator: Any, n: int) -> Any:
    """Give the estimator a term, or return weights: mostly none of these."""
    which, q = rng.uniform(), estimator.n_components
    if which < 0.15:
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
        return None
    return rng.choice([0.5, 1.0, 2.0, 3.0], size=n) if which < 0.25 else None


def _classical(rng: np.random.Generator, kind_of: Any, n: int, options: dict[str, Any]) -> Any:
    known = kind_of().get_params()
    drawn = {
        "random_state": 0,
        "perplexity": float(rng.choice([2.0, 5.0, max(2.0, n / 3.0)])),
        "n_neighbors": max(1, int(rng.choice([1, 3, n // 2, n - 1]))),
        "n_landmarks": None if rng.uniform() < 0.5 else int(rng.integers(2, n + 2)),
        "metric": str(rng.choice(["euclidean", "euclidean", "manhattan"])),
        "kernel": str(rng.choice(["linear", "rbf", "cosine"])),
        "approximation": "nystroem" if rng.uniform() < 0.2 else None,
        "n_samples": 10,
        "normalized": bool(rng.uniform() < 0.5),
        "max_iter": 30,
    }
    if kind_of in (gc.CCPCA, gc.LaplacianEigenmaps, gc.DiffusionMaps, gc.PHATE):
        drawn["n_neighbors"] = "auto"
    if kind_of is gc.PHATE:
        drawn["n_landmarks"] = max(3, drawn["n_landmarks"] or n)
    return kind_of(**options, **{name: value for name, value in drawn.items() if name in known})
