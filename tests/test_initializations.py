import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import FunctionTransformer

import graphcouple as gc
from graphcouple.initializations import initialize
from graphcouple.spectral import principal_components


def _start(X, init, n_components=2, seed=0, n_neighbors=None, **options):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), n_neighbors).posterior(X)
    return initialize(init, X, posterior, n_components, np.random.RandomState(seed), scale=0.3, **options)


def test_pca_is_the_scores_rescaled(iris):
    X = np.unique(iris[0], axis=0)
    scores = PCA(2).fit_transform(X)
    Z = _start(X, "pca")
    np.testing.assert_allclose(np.abs(Z), np.abs(scores) * 0.3 / scores[:, 0].std(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("offset", "dtype"), [(3e3, np.float32), (1e8, np.float64)])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_pca_of_points_far_from_the_origin(rng, offset, dtype, form):
    X = (offset + rng.normal(size=(300, 5)) * [3.0, 2.0, 1.0, 0.5, 0.2]).astype(dtype)
    scores = PCA(2).fit_transform(X.astype(np.float64) - offset)
    Z = principal_components(form(X), 2, np.random.RandomState(0))
    np.testing.assert_allclose(np.abs(Z), np.abs(scores), atol=1e-4)


@pytest.mark.parametrize("init", ["auto", "pca", "random", "spectral"])
def test_first_coordinate_has_the_scale_asked_for(rng, init):
    assert _start(rng.normal(size=(40, 4)), init)[:, 0].std() == pytest.approx(0.3, rel=1e-9)


def test_spectral_is_orthogonal_and_smooth_on_the_graph(rng):
    angle = np.sort(rng.uniform(0, 2 * np.pi, 80))
    Z = _start(np.column_stack([np.cos(angle), np.sin(angle)]), "spectral", n_neighbors=12)
    # The first two Laplacian eigenvectors of a ring go around it once.
    turned = np.unwrap(np.arctan2(Z[:, 1], Z[:, 0]))
    assert abs(abs(turned[-1] - turned[0]) - 2 * np.pi) < 1.0


def _weakly_linked(n, k):
    rng, y = np.random.default_rng(0), np.arange(n) % k
    widths = 1.0 / np.arange(1, 31)
    centres = np.sqrt(10.0) * widths * rng.normal(size=(k, 30))
    return centres[y] + widths * rng.normal(size=(n, 30)), y, centres


def test_weakly_linked_clusters_start_from_averages_along_edges():
    X = _weakly_linked(600, 6)[0]
    posterior = gc.UMAP().models(600)[0].posterior(X)
    W = posterior.mean().toarray()
    weights = (W + W.T) / (W + W.T).sum(axis=1, keepdims=True)
    wanted = np.linalg.matrix_power((np.eye(600) + weights) / 2.0, 3) @ PCA(2).fit_transform(X)
    Z = initialize("auto", X, posterior, 2, 0)
    np.testing.assert_allclose(np.abs(Z), np.abs(wanted) / wanted[:, 0].std(), rtol=1e-4, atol=1e-4)


def test_a_sheet_starts_from_eigenvectors():
    X = gc.datasets.make_swiss_roll(600, random_state=0)[0]
    posterior = gc.UMAP().models(600)[0].posterior(X)
    same = [initialize(init, X, posterior, 2, 0) for init in ("auto", "spectral")]
    np.testing.assert_array_equal(*same)


def test_points_without_edges_keep_their_principal_components():
    X = np.random.default_rng(0).normal(size=(43, 3))
    weights = np.zeros((43, 43))
    weights[:20, :20] = weights[20:40, 20:40] = 1.0 - np.eye(20)
    weights[19, 20] = weights[20, 19] = 0.1
    latent = gc.GraphModel(gc.Student(), "B")
    posterior = gc.GraphCoupling(weights, latent, init="random", max_iter=1, random_state=0).fit(X).posterior_
    np.fill_diagonal(weights[40:, 40:], 1.0)
    weights /= weights.sum(axis=1, keepdims=True)
    wanted = np.linalg.matrix_power((np.eye(43) + weights) / 2.0, 3) @ PCA(2).fit_transform(X)
    Z = initialize("auto", X, posterior, 2, 0)
    np.testing.assert_allclose(np.abs(Z), np.abs(wanted) / wanted[:, 0].std(), rtol=1e-4, atol=1e-4)


def test_clusters_that_are_weakly_linked_keep_their_arrangement():
    """A spectral start draws each cluster to a dot, in any order: its distances between clusters correlate by .23."""
    X, y, centres = _weakly_linked(2000, 20)
    Z = gc.UMAP(random_state=0, max_iter=60).fit_transform(X)
    means = np.array([Z[y == k].mean(axis=0) for k in range(20)])
    assert np.corrcoef(pdist(means), pdist(centres))[0, 1] > 0.5


def test_spectral_takes_what_rounding_hides_for_disconnected(recwarn):
    # Triples have neighbours at distance 0, beside which a union of fuzzy sets gives all others weights of 1e-300.
    X = np.repeat(np.random.default_rng(0).normal(size=(200, 5)), 3, axis=0)
    posterior = gc.UMAP().models(len(X))[0].posterior(X)
    Z = initialize("spectral", X, posterior, 2, np.random.RandomState(0))
    np.testing.assert_array_equal(Z, initialize("spectral", X, posterior, 2, 0))
    assert not recwarn.list
    together = posterior.mean().toarray() > 0.1
    distances = np.sqrt(np.square(Z[:, None] - Z).sum(axis=-1))
    assert distances[together].mean() < 0.3 * distances.mean()


@pytest.mark.parametrize("init", ["ccpca", "pca"])
def test_more_components_than_features_start_as_noise_that_can_grow(rng, init):
    Z = _start(rng.normal(size=(60, 2)), init, n_components=4)
    np.testing.assert_allclose(Z[:, 2:].std(axis=0), 0.3e-4, rtol=0.4)


def test_only_coincident_points_are_moved(rng):
    X = rng.normal(size=(20, 3))
    doubled = np.concatenate([X, X[:2]])
    Z = _start(doubled, "pca")
    scores = PCA(2).fit_transform(doubled)
    wanted = scores * 0.3 / scores[:, 0].std()
    np.testing.assert_allclose(np.abs(Z[2:20]), np.abs(wanted[2:20]), rtol=1e-9)
    assert len(np.unique(Z, axis=0)) == 22
    assert np.abs(np.abs(Z[:2]) - np.abs(wanted[:2])).max() < 1e-3


@pytest.mark.parametrize("constant", [0.0, 0.1])
def test_a_column_that_varies_is_kept_beside_a_constant_one(rng, constant):
    """The deviation of equal numbers is rounding: 2.8e-17 for a hundred and fifty of 0.1."""
    values = rng.normal(size=150)
    keep = FunctionTransformer(lambda X: np.column_stack([np.full(150, constant), values]))
    Z = _start(rng.normal(size=(150, 3)), keep)
    np.testing.assert_allclose(Z[:, 1], values * 0.3 / values.std(), rtol=1e-9)
    assert Z[:, 0].std() == pytest.approx(0.3e-4, rel=0.4)


def test_starts_that_are_not_finite_are_refused(iris):
    with pytest.raises(ValueError, match="must return finite numbers"):
        gc.TSNE(init=FunctionTransformer(lambda X: np.full((len(X), 2), np.nan)), max_iter=5).fit(iris[0])


@pytest.mark.parametrize("name", ["features", "init"])
def test_estimators_that_need_more_than_points_say_so(iris, name):
    for part, match in [
        (LinearDiscriminantAnalysis(), rf"^{name}=Lin.* failed on X, an array of shape \(150, 4\) .* without y: .*'y'"),
        (ColumnTransformer([("some", "passthrough", ["a"])]), f"^{name}=Column.* without names of columns .*strings"),
        (PCA, r"PCA is a class; pass an instance, PCA\(\)"),
    ]:
        method = gc.TSNE(init=part) if name == "init" else gc.ParametricCoupling(features=part)
        with pytest.raises((TypeError, ValueError), match=match):
            method.fit(iris[0])
