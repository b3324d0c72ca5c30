"""Local radii against loops over the edges, and maps that are dense where the data are."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

import graphcouple as gc
from graphcouple.couplings import LocalRadii, Problem
from graphcouple.graphs import Support
from graphcouple.neighbors import distances_of
from tests.reference import numerical_gradient, relative_error

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 6)) * np.repeat([[1.0], [5.0]], 20, axis=0)
LAWS = {"D": gc.TSNE(perplexity=6), "B": gc.UMAP(n_neighbors=6), "all pairs": gc.SNE(perplexity=12)}
EVERY = pytest.mark.parametrize("estimator", LAWS.values(), ids=LAWS.keys())


def bound(estimator, term, metric="euclidean", data=X):
    input_model, latent, *_ = estimator.models(len(data))
    posterior = input_model.set_params(metric=metric).posterior(data)
    problem = Problem(data, None, posterior, latent, 2, "exact", metric, np.random.RandomState(0), 1)
    return posterior, term.bind(problem)


def slow_value(posterior, Z, slope):
    means = posterior.support.to_csr(posterior.edge_means).toarray()
    weights, far, near = means + means.T, cdist(X, X), cdist(Z, Z)
    least = 0.01 * np.sqrt(np.median(far[means > 0] ** 2))
    excess = []
    for i in range(len(X)):
        q = weights[i] / (1.0 + near[i] ** 2)
        sq_radius = (q @ near[i] ** 2) / q.sum() + 1e-4 * weights[i].sum() / q.sum()
        others = weights[i] > 0
        logs = 0.5 * np.log(far[i, others] ** 2 + least**2)
        excess.append(0.5 * np.log(sq_radius) - slope * np.average(logs, weights=weights[i, others]))
    return 0.5 * len(X) * np.var(excess)


@EVERY
@pytest.mark.parametrize(("slope", "dim"), [(1.0, 2), (0.4, 1), (2.0, 3)])
def test_value_and_gradient(estimator, slope, dim):
    posterior, radii = bound(estimator, gc.Density(slope=slope))
    Z = 3.0 * np.random.default_rng(dim).normal(size=(len(X), dim))
    value, gradient = radii.value_and_grad(Z)
    assert value == pytest.approx(slow_value(posterior, Z, slope), rel=1e-9)
    assert radii.value(Z) == pytest.approx(value, rel=1e-12)
    assert relative_error(gradient, numerical_gradient(radii.value, Z)) < 1e-6


def test_a_map_like_the_data_has_no_excess():
    pairs = np.arange(40).reshape(20, 2)
    matrix = sp.csr_array((np.ones(40), (pairs.ravel(), pairs[:, ::-1].ravel())), shape=(40, 40))
    lengths = RNG.uniform(0.5, 5.0, size=20)
    Z = np.column_stack([np.repeat(100.0 * np.arange(20), 2), np.column_stack([0 * lengths, lengths]).ravel()])
    support = gc.graphs.Support(matrix.indptr, matrix.indices)
    for factor, slope in ((1.0, 1.0), (7.0, 1.0), (1.0, 2.0)):
        radii = LocalRadii(support, matrix.data, slope * np.log(factor * np.repeat(lengths, 2)))
        assert (radii.value(Z) < 1e-6) is (slope == 1.0)


def test_copies_far_points_and_points_without_edges_have_finite_radii():
    matrix = sp.csr_array((np.ones(4), ([0, 1, 2, 3], [1, 0, 3, 2])), shape=(5, 5))
    radii = LocalRadii(gc.graphs.Support(matrix.indptr, matrix.indices), matrix.data, np.zeros(5))
    for Z in (np.zeros((5, 2)), np.array([[0.0], [0.0], [0.0], [1e9], [5.0]])):
        value, gradient = radii.value_and_grad(Z)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()
    copies = np.repeat(X[:10], 4, axis=0)
    assert np.isfinite(bound(LAWS["D"], gc.Density(), data=copies)[1].value(copies[:, :2]))


def test_distances_and_other_metrics_serve_as_well():
    Z = X[:, :2]
    expected = bound(LAWS["D"], gc.Density())[1].value(Z)
    assert bound(LAWS["D"], gc.Density(), "precomputed", cdist(X, X))[1].value(Z) == pytest.approx(expected)
    # A sparse graph of neighbours stores many distances in one direction.
    one_way, pairs = sp.csr_array(np.triu(cdist(X, X))), Support.all_pairs(len(X))
    stored, whole = distances_of(one_way, "precomputed"), distances_of(cdist(X, X), "precomputed")
    np.testing.assert_array_equal(stored.of_edges(pairs), whole.of_edges(pairs))
    assert bound(LAWS["D"], gc.Density(), "manhattan")[1].value(Z) != pytest.approx(expected)


@pytest.mark.parametrize("estimator", [gc.TSNE, gc.UMAP, gc.LargeVis])
def test_maps_are_dense_where_the_data_are(estimator):
    rng = np.random.default_rng(0)
    blobs = np.concatenate([centre + size * rng.normal(size=(100, 5)) for centre, size in ((0, 1), (20, 3), (60, 9))])
    plain, dense = (estimator(terms=terms, random_state=0).fit_transform(blobs) for terms in ([], [gc.Density(10.0)]))
    before, after = (gc.metrics.density_match(blobs, Z) for Z in (plain, dense))
    assert after.correlation > max(0.8, before.correlation + 0.2)
    assert before.slope + 0.2 < after.slope < 1.5
    kept, kept_before = (gc.metrics.k_ary_preservation(blobs, Z, K=10) for Z in (dense, plain))
    assert kept > kept_before - 0.15


def test_what_cannot_be_matched_is_refused():
    with pytest.raises(ValueError, match="slope"):
        gc.Density(slope=0.0)
    with pytest.raises(ValueError, match="weight"):
        gc.Density(-1.0)
    with pytest.raises(ValueError, match="Repeat rows"):
        gc.TSNE(perplexity=5, terms=[gc.Density()]).fit(X, sample_weight=np.full(40, 2.0))


def test_density_match_against_its_definition():
    Z = np.column_stack([np.abs(X[:, 0]) ** 1.5, X[:, 1]])
    logs = [np.log(np.sqrt(np.mean(np.sort(cdist(A, A))[:, 1:8] ** 2, axis=1))) for A in (X, Z)]
    match = gc.metrics.density_match(X, Z, K=7)
    assert match.correlation == pytest.approx(np.corrcoef(*logs)[0, 1])
    assert match.slope == pytest.approx(np.polyfit(*logs, 1)[0])
    assert all(np.isnan(gc.metrics.density_match(np.repeat([[0.0, 1.0]], 20, axis=0), Z[:20])))
    # All points of a circle have the same radius, wherever it lies.
    angles = np.arange(40) * 2 * np.pi / 40
    for centre in (0.0, 3.0, 1e6):
        circle = np.column_stack([np.cos(angles), np.sin(angles)]) + centre
        assert all(np.isnan(gc.metrics.density_match(circle, Z, K=2)))
        even = gc.metrics.density_match(X, circle, K=2)
        assert np.isnan(even.correlation)
        assert even.slope == pytest.approx(0.0, abs=1e-6)
    with pytest.raises(ValueError, match="K=40"):
        gc.metrics.density_match(X, Z, K=40)


@pytest.mark.parametrize(("plain", "given"), [(gc.UMAP, None), (gc.TSNE, gc.TSNE(max_iter=60))])
def test_densmap_is_a_method_with_the_term(digits, plain, given):
    X = digits[0][:200]
    given = given or gc.UMAP(max_iter=60)
    preset = gc.DensMAP(given, weight=2.0, slope=0.5, random_state=0).fit(X)
    term = plain(terms=[gc.Density(2.0, 0.5)], max_iter=60, random_state=0)
    assert (preset.embedding_ == term.fit_transform(X)).all()
    bare = gc.DensMAP(given, weight=0.0, random_state=0).fit_transform(X)
    assert (bare == plain(max_iter=60, random_state=0).fit_transform(X)).all()
    assert type(gc.DensMAP()._plain()) is gc.UMAP
