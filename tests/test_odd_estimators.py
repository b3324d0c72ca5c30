"""Estimators on points far from 0, tiny in single precision, with 64-bit indices, or with graphs of one's own."""

import pickle

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances

import graphcouple as gc
from graphcouple.estimators import base
from graphcouple.estimators.rows import nearest_to_means
from graphcouple.graphs import Support, as_csr
from graphcouple.spectral import principal_components
from tests.reference import Parabola

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 6)) + 4.0 * RNG.integers(0, 3, (200, 1))


@pytest.mark.parametrize(
    ("offset", "dtype"), [(2.0**27, float), (2.0**30, float), (2.0**12, np.float32), (2.0**15, np.float32)]
)
def test_landmarks_of_points_far_from_0_are_the_same(offset, dtype):
    # An exact shift.
    points = np.round(X * 2.0**6).astype(dtype) / 2.0**6
    usual, far = (nearest_to_means(points + shift, 50, np.random.RandomState(0)) for shift in (0.0, dtype(offset)))
    assert far.size > 45
    assert usual.size == 50


def long(points):
    matrix = sp.csr_array(points)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


@pytest.mark.parametrize(
    "method",
    [
        gc.TSNE(n_landmarks=60, max_iter=5, perplexity=5, random_state=0),
        gc.Isomap(n_landmarks=60, random_state=0),
        gc.ClassicalMDS(metric="manhattan", n_landmarks=60, random_state=0),
        gc.KernelPCA(kernel="laplacian"),
        gc.KernelPCA(kernel="rbf", n_landmarks=60, random_state=0),
    ],
)
def test_sparse_points_may_have_long_indices(method):
    counts = RNG.poisson(1.0, (150, 8)).astype(float)
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(method.fit_transform(long(counts)), method.fit_transform(sp.csr_matrix(counts)))


def test_components_of_sparse_points_of_any_format_without_a_dense_copy(monkeypatch):
    monkeypatch.setattr("graphcouple.spectral.svd._DENSE_ENTRIES", 100)
    points = sp.random(120, 40, density=0.1, random_state=0)
    usual, *others = (
        principal_components(points.asformat(name), 2, np.random.RandomState(0))
        for name in ("csr", "csc", "coo", "lil")
    )
    for Z in others:
        np.testing.assert_allclose(Z, usual, atol=1e-9)
    monkeypatch.setattr("graphcouple.spectral.svd.leading_svd", lambda *_, **__: pytest.fail("nothing to decompose"))
    assert not principal_components(sp.csr_array((120, 40)), 2, np.random.RandomState(0)).any()


def test_components_of_tiny_points_in_single_precision():
    usual = np.abs(principal_components(X, 2, np.random.RandomState(0)))
    for unit in (1e-22, 1e-30):
        tiny = principal_components((unit * X).astype(np.float32), 2, np.random.RandomState(0))
        np.testing.assert_allclose(np.abs(tiny) / unit, usual, atol=1e-4)


@pytest.mark.parametrize("method", [gc.LaplacianEigenmaps, gc.DiffusionMaps, gc.PHATE])
def test_components_of_a_graph_of_ones_own_spread_though_rows_are_equal(method):
    graph = nx.disjoint_union(nx.cycle_graph(10), nx.cycle_graph(12))
    rows = np.repeat(5.0 * np.eye(2), [10, 12], axis=0)
    with pytest.warns(UserWarning, match="2 connected components"):
        Z = method(input=graph).fit_transform(rows)
    assert len(np.unique(Z.round(6), axis=0)) > 10


def test_attraction_and_repulsion_of_similarities_do_not_depend_on_shifts_or_formats():
    points = (100.0 * RNG.normal(size=(300, 3))).round()
    for approximation in ("cholesky", "nystroem"):
        options = {"approximation": approximation, "random_state": 0}
        usual, far = (gc.AttractionRepulsionPCA(**options).fit_transform(points + s) for s in (0.0, 2.0**30))
        np.testing.assert_allclose(far.std(axis=0), usual.std(axis=0), rtol=1e-6)
        S = points @ points.T
        method = gc.AttractionRepulsionPCA(kernel="precomputed", **options)
        np.testing.assert_allclose(method.fit_transform(sp.csr_array(S)), method.fit_transform(S))
    many = (10000.3 + 3.0 * RNG.normal(size=(20_000, 2))).astype(np.float32)
    with pytest.warns(ConvergenceWarning):
        mean = gc.AttractionRepulsionPCA(max_iter=3, random_state=0).fit(many)._fixed["mean"]
    np.testing.assert_allclose(mean, many.mean(axis=0, dtype=float), atol=1e-9)


@pytest.mark.parametrize("n_landmarks", [3, 20, 40])
def test_isomap_adds_only_the_landmarks_that_it_needs(n_landmarks):
    isomap = gc.Isomap(n_neighbors=10, n_landmarks=n_landmarks, random_state=0).fit(RNG.normal(size=(200, 2)))
    assert isomap.landmarks_.size == max(30, n_landmarks)


def test_kernels_of_ones_own_see_sparse_rows_as_they_were_passed():
    counts = RNG.poisson(1.0, (60, 5)).astype(float)
    of_arrays = gc.KernelPCA(kernel=lambda a, b: float((a * b).sum())).fit_transform(sp.csr_array(counts))
    np.testing.assert_allclose(of_arrays, gc.KernelPCA(kernel=lambda a, b: a @ b).fit_transform(counts), atol=1e-9)


def test_kernels_with_wrong_arguments_or_values_are_named():
    with pytest.raises(ValueError, match=r"kernel_params={'gamma': 'scale'} do not fit kernel='rbf'"):
        gc.KernelPCA(kernel="rbf", kernel_params={"gamma": "scale"}).fit(X)
    with pytest.raises(ValueError, match="kernel must return one number"):
        gc.KernelPCA(kernel=lambda a, b: a * b).fit(X)


def test_two_far_outliers_do_not_flatten_the_start():
    """Of principal components, they would be all that shows."""
    groups = np.concatenate([RNG.normal(size=(60, 8)) + 12.0 * k * np.eye(8)[k] for k in range(3)])
    far = np.concatenate([groups, np.full((1, 8), 400.0), np.full((1, 8), -300.0)])
    Z = gc.initializations.initialize("auto", far, gc.TSNE(perplexity=10).sentence.input.posterior(far), 2, 0)
    means = Z[:180].reshape(3, 60, 2).mean(axis=1)
    gaps = np.linalg.norm(means - np.roll(means, 1, axis=0), axis=1)
    assert gaps.min() > 0.1 * np.abs(Z).max()


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_few_points_are_told_apart_on_a_map_of_any_size():
    few = X[:4]
    tsne = gc.TSNE(random_state=0, max_iter=20).fit(few)
    between = tsne.embedding_[:3] + 0.1 * (tsne.embedding_[1:] - tsne.embedding_[:3])
    usual = tsne.inverse_transform(between)
    tsne.embedding_ = 1e3 * tsne.embedding_
    np.testing.assert_allclose(tsne.inverse_transform(1e3 * between), usual, rtol=1e-6)


def test_a_store_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"store='.*missing.*' cannot be written"):
        gc.search(X, "presets", budget="1 trials", store=tmp_path / "missing" / "fits.jsonl", random_state=0)


def test_copies_that_count_once_take_the_memory_of_one(monkeypatch):
    asked = []
    monkeypatch.setattr(base, "warn_if_too_large", lambda sentence, n, *_: asked.append(n))
    gc.TSNE(unique=True, perplexity=5, max_iter=2, random_state=0).fit(np.repeat(X[:40], 3, axis=0))
    assert asked == [40]


def test_what_a_search_returns_takes_new_rows():
    found = gc.search(X, {"map": gc.TSNE(perplexity=5, n_neighbors=15, max_iter=2)}, budget="1 trials", random_state=0)
    method = found["map"]
    n = len(method.embedding_)
    assert method.update(X[:5] + 0.1).embedding_.shape == (n + 5, 2)


@pytest.mark.filterwarnings("ignore:divide by zero encountered in log:RuntimeWarning", "ignore:the graph")
def test_eigenmaps_refuse_new_rows_without_an_edge():
    law = gc.GraphModel(Parabola(), "B", gc.ConstantBandwidth(5.0))
    eigenmaps = gc.LaplacianEigenmaps(input=law).fit(X)
    with pytest.raises(ValueError, match="1 rows of X_new, the first of them row 1, have no edge"):
        eigenmaps.transform([X[0], X[0] + 1e4])


def test_estimates_refuse_terms_that_name_rows():
    with pytest.raises(ValueError, match="terms hold values for the rows of X"):
        gc.estimate(gc.TSNE(terms=[gc.Anchors([0], [[0.0, 0.0]])]), 1000, 5)


def test_a_change_of_the_parts_after_the_fit_does_not_change_what_was_fitted():
    """`set_params` changes laws and couplings in place."""
    law, latent = gc.GraphModel("gaussian", "D", gc.Perplexity(5)), gc.GraphModel(gc.Odds(gc.Student()), "B")
    coupling = gc.EffectiveCoupling(5.0, 1.0)
    diffused = gc.laws.DiffusedLaw(law, n_steps=2)
    method = gc.GraphCoupling(diffused, latent, coupling=coupling, max_iter=5, random_state=0).fit(X[:60])
    places, twin = method.transform(X[60:70]), pickle.loads(pickle.dumps(method))
    method.set_params(input__n_steps=6, coupling__repulsion_strength=9.0)
    np.testing.assert_array_equal(method.transform(X[60:70]), places)
    assert method.update(X[60:70]).loss_ == twin.update(X[60:70]).loss_


@pytest.mark.filterwarnings("ignore:all 30 rows of X are equal")
def test_landmarks_are_refused_where_they_say_nothing():
    with pytest.raises(ValueError, match="n_landmarks=5 finds one point only"):
        gc.TSNE(n_landmarks=5).fit(np.ones((30, 3)))


def test_a_map_grows_in_its_own_dimensions():
    tsne = gc.TSNE(perplexity=5, max_iter=5, random_state=0).fit(X[:60])
    assert tsne.set_params(n_components=3).update(X[60:65], "all").embedding_.shape == (65, 2)


def test_sparse_distances_to_new_rows_may_leave_out_zeros():
    D = pairwise_distances(X[:50])
    mds, new = gc.MetricMDS(metric="precomputed", random_state=0).fit(D), D[:4]
    np.testing.assert_array_equal(mds.transform(sp.csr_array(new)), mds.transform(new))


@pytest.mark.filterwarnings("ignore:divide by zero encountered in log:RuntimeWarning", "ignore:the graph")
def test_new_rows_that_the_law_links_to_nothing_have_no_place():
    law = gc.GraphModel(Parabola(5.0), "B")
    method = gc.GraphCoupling(law, gc.GraphModel("student", "B"), max_iter=5, random_state=0).fit(X)
    with pytest.raises(ValueError, match="have no edge: the input's kernel is 0"):
        method.transform(X[:1] + 1e4)


def test_means_of_a_law_of_ones_own_that_are_no_numbers_are_refused():
    class Broken(type(gc.UnitOutDegree().posterior(np.zeros((3, 3))))):
        edge_means = property(lambda self: np.where(np.arange(self.n_edges) == 5, np.nan, 0.1))

    law = Broken(Support.all_pairs(30), np.zeros(30 * 29))
    with pytest.raises(ValueError, match="the law's mean edges hold NaN"):
        gc.LaplacianEigenmaps(input=law).fit(X[:30])


def test_a_graph_of_neighbours_is_not_all_distances():
    D = pairwise_distances(X[:50])
    mds = gc.MetricMDS(metric="precomputed", random_state=0).fit(D)
    with pytest.raises(ValueError, match="X_new stores some of the distances"):
        mds.transform(sp.csr_array(np.where(D[:3] < 1.0, D[:3], 0.0)))


def test_graphs_have_no_landmarks():
    graph = sp.csr_array(np.ones((30, 30)) - np.eye(30))
    with pytest.raises(ValueError, match="n_landmarks=10 fits some rows only"):
        gc.GraphCoupling(graph, gc.GraphModel("student", "E"), n_landmarks=10).fit()


def test_nodes_numbered_in_another_order_are_noted():
    with pytest.warns(UserWarning, match=r"input: the nodes are the numbers 0 to 2 in another order.*nodelist="):
        matrix = as_csr(nx.Graph([(1, 0), (0, 2)]), "input")
    np.testing.assert_array_equal(matrix.toarray(), [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    for graph in (nx.path_graph(4), nx.Graph([(2, 1), (1, 3)]), nx.Graph([("b", "a")])):
        as_csr(graph, "input")
