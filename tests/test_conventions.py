"""scikit-learn's own checks of an estimator, for every kind of estimator here."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

import graphcouple as gc

MODELS = {"input": gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(2)), "latent": gc.GraphModel(gc.Student(), "E")}
FAST = {
    "TSNE": gc.TSNE(perplexity=2, max_iter=20),
    "CCPCA": gc.CCPCA(n_components=1, perplexity=2, n_samples=10, random_state=0),
    "Isomap": gc.Isomap(),
}
NIGHTLY = {
    "PairwiseMatching": gc.PairwiseMatching(bandwidth=gc.Perplexity(2), max_iter=20),
    "PrecisionCoupling": gc.PrecisionCoupling(1),
    "PrecisionCoupling of all": gc.PrecisionCoupling("auto", center=False),
    "MetricMDS": gc.MetricMDS(),
    "SNE": gc.SNE(perplexity=2, max_iter=20),
    "SymmetricSNE": gc.SymmetricSNE(perplexity=2, max_iter=20),
    "LargeVis": gc.LargeVis(perplexity=2, max_iter=20),
    "UMAP": gc.UMAP(n_neighbors=3, max_iter=20),
    "GraphCoupling": gc.GraphCoupling(**MODELS, max_iter=20),
    "HierarchicalCoupling": gc.HierarchicalCoupling(gc.TSNE(perplexity=2, max_iter=10), n_graphs=2),
    "TwoKernelPCA": gc.TwoKernelPCA(n_neighbors=3, max_iter=20),
    "TwoKernelLLE": gc.TwoKernelLLE(n_neighbors=3, max_iter=20),
    "AttractionRepulsionPCA": gc.AttractionRepulsionPCA(),
    "ClassicalMDS": gc.ClassicalMDS(),
    "ClassicalMDS of streets": gc.ClassicalMDS(metric="manhattan"),
    "KernelPCA": gc.KernelPCA(kernel="rbf", n_landmarks=8),
    "LaplacianEigenmaps": gc.LaplacianEigenmaps(perplexity=3, n_neighbors=6),
    "LocallyLinearEmbedding": gc.LocallyLinearEmbedding(),
    "LinearAutoencoder": gc.LinearAutoencoder(),
}


def checks():
    for name, estimator in {**FAST, **NIGHTLY}.items():
        for instance, check in estimator_checks_generator(estimator):
            label = check.func.__name__
            # The estimators make no claim to the array API, which scikit-learn only checks when told to.
            if "array_api" not in label:
                marks = [] if name in FAST else pytest.mark.nightly
                yield pytest.param(instance, check, id=f"{name}-{label}", marks=marks)


@pytest.mark.filterwarnings(
    "ignore:perplexity=",
    "ignore:n_neighbors=",
    "ignore:the graph has",
    "ignore:the embedding is far from its size",
    "ignore:no embedding with a lower loss",
    "ignore:y is ignored at target_weight=0",
)
@pytest.mark.parametrize(("estimator", "check"), list(checks()))
def test_scikit_learn_conventions(estimator, check):
    check(estimator)
