"""Corners of the classical methods: units, offsets, mixed scales, sparse distances, kernels that are none."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import kneighbors_graph

import graphcouple as gc

RNG = np.random.default_rng(1)
X = RNG.normal(size=(100, 4))


BY_DISTANCES = {
    "isomap": gc.Isomap(n_neighbors=5, metric="precomputed"),
    "t-SNE": gc.TSNE(metric="precomputed", perplexity=2, n_neighbors=5, max_iter=50, random_state=0),
}


@pytest.mark.parametrize("name", BY_DISTANCES)
def test_new_points_with_some_distances_know_only_those(name):
    graph = kneighbors_graph(X, 8, mode="distance")
    graph = sp.csr_array(graph.maximum(graph.T))
    fitted = BY_DISTANCES[name].fit(graph)
    new = cdist(X[:10] + 0.01, X)
    near = np.where(np.argsort(np.argsort(new, axis=1), axis=1) < 8, new, 0.0)
    # The stored distances of the nearest are all that the others would add.
    far = np.where(near > 0, near, 1e3)
    np.testing.assert_allclose(fitted.transform(sp.csr_array(near)), fitted.transform(far), rtol=1e-6, atol=1e-8)
    with pytest.raises(ValueError, match="stores 3 distances, fewer than n_neighbors=5"):
        fitted.transform(sp.csr_array(np.where(np.argsort(np.argsort(new, axis=1), axis=1) < 3, new, 0.0)))


@pytest.mark.parametrize("method", [gc.ClassicalMDS(metric="precomputed"), gc.MetricMDS(metric="precomputed")])
def test_distances_that_are_rounded_in_each_direction_are_their_means(method):
    rounded = cdist(X, X) * (1.0 + 1e-7 * RNG.random((100, 100)))
    method.set_params(random_state=0)
    wanted = clone(method).fit_transform(0.5 * (rounded + rounded.T))
    np.testing.assert_array_equal(clone(method).fit_transform(rounded), wanted)


@pytest.mark.parametrize("init", ["classical", "random"])
@pytest.mark.parametrize("weights", [None, "sammon"])
def test_stress_does_not_depend_on_the_unit(init, weights):
    usual = gc.MetricMDS(init=init, weights=weights, random_state=0).fit(X)
    for unit in (1e-100, 1e-10, 1e-8, 1e8, 1e100):
        scaled = gc.MetricMDS(init=init, weights=weights, random_state=0).fit(X * unit)
        assert scaled.normalized_stress_ == pytest.approx(usual.normalized_stress_, rel=1e-4)
        np.testing.assert_allclose(scaled.embedding_ / unit, usual.embedding_, atol=0.05)
        places = scaled.embedding_
        raw = np.square(cdist(X * unit, X * unit) / unit - cdist(places, places) / unit).sum()
        if weights is None:
            assert scaled.stress_ / unit**2 == pytest.approx(raw, rel=1e-6)


@pytest.mark.parametrize("distance", [1e-6, 1e-9, 0.0])
def test_a_near_copy_does_not_spoil_elastic_scaling(distance):
    near = X.copy()
    near[1] = near[0] + distance
    alone = gc.MetricMDS(weights="elastic", random_state=0).fit(np.delete(near, 1, axis=0))
    both = gc.MetricMDS(weights="elastic", random_state=0).fit(near)
    assert both.normalized_stress_ < 1.05 * alone.normalized_stress_


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "method", [gc.ClassicalMDS(), gc.KernelPCA(), gc.KernelPCA(kernel="rbf"), gc.LinearAutoencoder()]
)
def test_points_far_from_the_origin(method, form):
    near, error = clone(method).fit(X), "loss_" if isinstance(method, gc.LinearAutoencoder) else "strain_"
    for offset, accuracy in ((1e6, 1e-8), (1e8, 1e-6)):
        fitted = method.fit(form(X + offset))
        np.testing.assert_allclose(fitted.transform(form(X + offset)), fitted.embedding_, atol=accuracy)
        assert getattr(fitted, error) == pytest.approx(getattr(near, error), rel=1e-6)


@pytest.mark.parametrize("method", [gc.ClassicalMDS(), gc.KernelPCA(), gc.LinearAutoencoder()])
@pytest.mark.parametrize("wide", [4, 600])
def test_directions_of_very_different_scale_are_kept(recwarn, method, wide):
    mixed = RNG.normal(size=(700, wide)) * np.concatenate([[1e6, 30.0], np.ones(wide - 2)])
    ours, theirs = method.fit_transform(mixed), PCA(2, svd_solver="full").fit_transform(mixed)
    assert not recwarn.list
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=1e-3, atol=1e-3 * np.abs(theirs[:, 1]).max())


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    "method", [gc.ClassicalMDS(), gc.ClassicalMDS(metric="minkowski"), gc.Isomap(n_neighbors=99), gc.KernelPCA()]
)
def test_a_far_outlier_leaves_the_other_column(method, form):
    far = X + 1e6 * (np.arange(100) == 0)[:, None]
    ours, theirs = method.fit_transform(form(far)), PCA(2, svd_solver="full").fit_transform(far)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("offset", [0.0, 100.0])
def test_columns_of_rounding_are_zero_in_full_decompositions(offset):
    with pytest.warns(UserWarning, match="only 5 of n_components=8"):
        gc.KernelPCA(8, kernel="poly", kernel_params={"degree": 2}).fit(X[:20, :2] + offset)


def test_the_autoencoder_tells_missing_directions_and_sums_in_double_precision():
    with pytest.warns(UserWarning, match="only 1 of n_components=2"):
        gc.LinearAutoencoder().fit(np.outer(X[:, 0], np.ones(3)))
    single = (1e4 + RNG.normal(size=(200, 30))).astype(np.float32)
    errors = [gc.LinearAutoencoder().fit(form(single)).reconstruction_error_ for form in (np.asarray, sp.csr_array)]
    assert errors[0] == pytest.approx(errors[1], rel=1e-3)
    assert errors[0] > 0
    exact = [gc.LinearAutoencoder(1).fit(np.outer(rows, X[0])) for rows in RNG.normal(scale=100.0, size=(20, 30))]
    assert min(each.reconstruction_error_ for each in exact) >= 0.0
    with pytest.raises(ValueError, match="Z holds NaN"):
        gc.LinearAutoencoder().fit(X).inverse_transform([[np.nan, 2.0]])


def test_kernels_of_graphcouple_place_each_row_by_itself():
    fitted = gc.KernelPCA(kernel=gc.Student()).fit(X + 1e6)
    Z = fitted.transform(X + 1e6)
    np.testing.assert_array_equal(fitted.transform(X[7:8] + 1e6), Z[7:8])
    np.testing.assert_allclose(Z, fitted.embedding_, atol=1e-8)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: gc.KernelPCA(kernel=lambda a, b: a[0] * b[1]).fit(X), "must be symmetric"),
        (lambda: gc.KernelPCA(kernel=lambda a, b: float(a @ b)).fit(sp.csr_array(X)), r"sparse rows.*X\.toarray\(\)"),
        (lambda: gc.KernelPCA(kernel="rbf", kernel_params={"gama": 1}).fit(X), "kernel_params=.* do not fit"),
        (lambda: gc.LaplacianEigenmaps().fit(), "X is None, and input is not a graph"),
        (lambda: gc.MetricMDS(weights=300.0).fit(X), "weights"),
    ],
)
def test_messages(fit, message):
    with pytest.raises(ValueError, match=message):
        fit()


def test_strain_is_the_share_of_similarities_that_is_lost():
    points = np.random.default_rng(0).normal(size=(30, 5))
    C = np.eye(30) - 1.0 / 30
    for method, similarity in (
        (gc.ClassicalMDS(2), points @ points.T),
        (gc.ClassicalMDS(2, metric="manhattan"), -0.5 * np.square(cdist(points, points, "cityblock"))),
        (gc.KernelPCA(2, kernel="rbf"), rbf_kernel(points)),
    ):
        Z = method.fit_transform(points)
        S = C @ similarity @ C
        assert method.strain_ == pytest.approx(np.linalg.norm(S - Z @ Z.T) / np.linalg.norm(S), rel=1e-6)
        assert dict(method.report())["strain"] == f"{method.strain_:.4f}"
    wide = sp.random_array((5001, 5001), density=1e-5, random_state=0, format="csr")
    assert gc.ClassicalMDS(2).fit(wide).strain_ is None


@pytest.mark.filterwarnings("ignore:the embedding has not settled")
@pytest.mark.parametrize("method", [gc.LaplacianEigenmaps(), gc.CCPCA(random_state=0)])
def test_methods_of_one_law_take_classes_as_starts_too(rng, method):
    X, y = rng.normal(size=(60, 4)), np.repeat([0, 1], 30)
    law = gc.GraphModel("gaussian", "D", gc.Perplexity(5), target_weight=0.5)
    wanted, told = (clone(method).set_params(input=each) for each in (law.posterior(X, y=y), law))
    np.testing.assert_allclose(told.fit(X, y).embedding_, wanted.fit(X).embedding_, atol=1e-9)
    maps = [gc.TSNE(perplexity=5, init=init, max_iter=60, random_state=0).fit(X, y) for init in (told, wanted)]
    np.testing.assert_allclose(*(fitted.start_losses_ for fitted in maps), rtol=1e-6)


@pytest.mark.parametrize("method", [gc.LinearAutoencoder(2), gc.PrecisionCoupling(2), gc.ClassicalMDS(2)])
def test_fitted_rows_far_from_the_origin_get_their_places_in_single_precision(rng, method):
    X = (rng.normal(size=(100, 300)) * np.r_[5.0, 3.0, np.ones(298)] + 1e5).astype(np.float32)
    fitted = method.fit(X)
    # Numbers near 1e5 are known to 4e-3.
    assert np.abs(fitted.transform(X) - fitted.embedding_).max() < 1e-2


def test_isomap_gives_fitted_points_their_places_though_neighbours_tie_in_any_unit():
    X = np.unique(np.random.default_rng(0).integers(0, 4, (40, 4)).astype(float), axis=0)
    isomap = gc.Isomap(n_neighbors=8).fit(X)
    np.testing.assert_array_equal(isomap.transform(X), isomap.embedding_)
    usual, *others = (
        gc.Isomap(n_neighbors=8, n_landmarks=20, random_state=0).fit_transform(unit * X) / unit
        for unit in (1.0, 2.0**127, 2.0**-200)
    )
    for Z in others:
        np.testing.assert_allclose(Z, usual, atol=1e-5)


def test_a_saved_precision_coupling_places_sparse_points_to_the_same_bits(tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 5))
    X[20:] += 4
    X = sp.csr_array(np.where(X > 0.8, X, 0))
    coupling = gc.PrecisionCoupling().fit(X)
    coupling.save(tmp_path / "a.gc")
    np.testing.assert_array_equal(gc.load(tmp_path / "a.gc").transform(X), coupling.transform(X))
