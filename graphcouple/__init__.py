"""graphcouple: probabilistic graph coupling for dimensionality reduction.

An embedding method is a sentence: a law of a hidden graph given X, a law of a hidden graph given Z, coupled by
cross-entropy. The names here load on first use, so importing the package is fast.

Methods and the parts of a sentence are here; objectives and losses in `couplings`, the components of random graphs in
`components`, the papers' statements in `theory`, and base classes for your own parts in `extend`.
"""

import lazy_loader as _lazy

__version__ = "0.2.0"

_load, _, _known = _lazy.attach_stub(__name__, __file__)

# Names of other libraries.
_PEERS = {
    "MDS": "MetricMDS or ClassicalMDS",
    "SpectralEmbedding": "LaplacianEigenmaps",
    "PCA": "PrecisionCoupling",
    "LLE": "LocallyLinearEmbedding",
    "tumap": "UMAP(a=1, b=1)",
    "lvish": "LargeVis",
    "Rtsne": "TSNE",
    "MultiscaleMixture": "TSNE(perplexity=[30, 300])",
    "FixedSigma": "GraphModel(Gaussian(), 'E', ConstantBandwidth(sigma), n_neighbors=90).posterior(X)",
    "NCA": "UMAP(target_weight=...)",
    "AlignedUMAP": "AlignedMaps(UMAP())",
    "ParametricUMAP": "ParametricCoupling(UMAP(), features='network')",
    "TSNEEmbedding": "TSNE, whose fit returns the estimator",
    "PerplexityBasedNN": "GraphModel(Gaussian(), 'E', Perplexity(30), n_neighbors=90).posterior(X)",
    "Multiscale": "TSNE(perplexity=[30, 300])",
    "affinity": "GraphModel(...).posterior(X)",
    "initialization": "initializations.initialize, or init= of a method, as 'pca'",
    "Uniform": "GraphCoupling(a graph of k nearest neighbours, GraphModel(Student(), 'E'))",
    **{name: f"metrics.{name}" for name in ("trustworthiness", "evaluate", "scorer")},
    **{name: f"plotting.{name}" for name in ("interactive", "plot_density", "plot_graph", "Recorder")},
}


def __getattr__(name: str) -> object:
    try:
        return _load(name)
    except AttributeError:
        if name not in _PEERS:
            raise
        raise AttributeError(f"graphcouple has no {name}; use {_PEERS[name]}.", name=None, obj=_PEERS) from None


# These names can also be imported from here.
_ELSEWHERE = {
    "components": ["AveragedProjection", "sample_components"],
    "couplings": [
        *("BinaryKL", "ComponentCrossEntropy", "EffectiveCrossEntropy", "GramMatching", "MatchedMeans"),
        *("PrecisionCrossEntropy", "ReconstructionEnergy", "SquareLoss", "Stress"),
    ],
    "extend": [
        *("Bandwidth", "Coupling", "GraphPosterior", "GraphPrior", "Kernel", "MatchingLoss", "Objective", "Optimizer"),
        *("Problem", "Summation", "Term", "check_kernel"),
    ],
    "graphs": ["Graph"],
    "laws": ["priors"],
    "laws.priors": ["MixturePosterior"],
    "estimators": ["Sentence"],
    "theory": ["PairwiseMRF", "PrecisionPosterior", "degeneracy_report", "finite_epsilon_posterior"],
}

__all__ = sorted({"__version__", *_known}.difference(*_ELSEWHERE.values()))


def __dir__() -> list[str]:
    return __all__
