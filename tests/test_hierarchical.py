"""The coupling of component means, alone and beside a graph coupling."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import orthogonal_procrustes
from scipy.spatial import procrustes
from sklearn.base import clone
from sklearn.decomposition import PCA

import graphcouple as gc

from .reference import coupling_of, fast_and_nightly, numerical_gradient, relative_error

PRESETS = {
    "SNE": gc.SNE(perplexity=4, max_iter=60),
    "SymmetricSNE": gc.SymmetricSNE(perplexity=4, max_iter=60),
    "TSNE": gc.TSNE(perplexity=4, max_iter=60),
    "LargeVis": gc.LargeVis(perplexity=4, max_iter=60),
    "UMAP": gc.UMAP(n_neighbors=5, max_iter=60),
    "composed": gc.GraphCoupling(
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4)), gc.GraphModel(gc.Student(0.5), "D"), max_iter=60
    ),
}
EVERY = pytest.mark.parametrize("name", PRESETS)


def _literal(X, Z, labels, epsilon, nu):
    """J_ε of one graph with dense n×n and R×R matrices, weights of γ = 1."""
    U = np.stack([(labels == c) / np.sqrt((labels == c).sum()) for c in np.unique(labels)], axis=1)
    means, centres = U.T @ (X - X.mean(axis=0)), U.T @ Z
    R, p = len(means), X.shape[1]
    inverse = np.linalg.inv(np.eye(R) + epsilon * means @ means.T)
    value = epsilon * (nu + p) / 2 * np.trace(centres.T @ inverse @ centres)
    return value - (nu + p) / 2 * np.linalg.slogdet(np.eye(R) + epsilon * centres @ centres.T)[1]


@pytest.fixture
def labels(rng):
    return rng.integers(0, 7, size=(3, 25))


@pytest.mark.parametrize("features", [3, 20])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 30.0])
def test_value_is_the_definition(rng, labels, features, epsilon):
    X, Z = rng.normal(size=(25, features)), rng.normal(size=(25, 2))
    J = gc.ComponentCrossEntropy(X, labels, scale=1.0, epsilon=epsilon, nu_x=31.0)
    wanted = np.mean([_literal(X, Z, row, epsilon, 31.0) for row in labels])
    assert J.value(Z) == pytest.approx(wanted, rel=1e-10)
    longer = gc.ComponentCrossEntropy(X, labels, scale=4.0, epsilon=epsilon)
    wanted = np.mean([_literal(4.0 * X, Z, row, epsilon, 25) for row in labels])
    assert longer.value(Z) == pytest.approx(wanted, rel=1e-10)


def test_free_scale_is_the_definition_at_the_size_of_the_best_means(rng, labels):
    X, Z = rng.normal(size=(25, 5)), 40.0 * rng.normal(size=(25, 2))
    values, best = [], []
    for row in labels:
        U = np.stack([(row == c) / np.sqrt((row == c).sum()) for c in np.unique(row)], axis=1)
        best.append((np.linalg.svd(U.T @ (X - X.mean(axis=0)), compute_uv=False)[:2] ** 2).sum())
    for row in labels:
        U = np.stack([(row == c) / np.sqrt((row == c).sum()) for c in np.unique(row)], axis=1)
        size = np.square(U.T @ Z).sum() + 25
        values.append(_literal(X, Z * np.sqrt(np.mean(best) / size), row, 2 / np.mean(best), 25))
    J = gc.ComponentCrossEntropy(X, labels)
    assert J.epsilon == pytest.approx(2 / np.mean(best), rel=1e-12)
    assert J.value(Z) == pytest.approx(np.mean(values), rel=1e-9)


@pytest.mark.parametrize("features", [3, 20])
@pytest.mark.parametrize("scale", ["free", 1.0, 0.2])
@pytest.mark.parametrize("size", [0.01, 1.0, 50.0])
def test_gradient_is_the_derivative(rng, labels, features, scale, size):
    X, Z = rng.normal(size=(25, features)), size * rng.normal(size=(25, 2))
    J = gc.ComponentCrossEntropy(X, labels, scale=scale, nu_x=40.0)
    value, gradient = J.value_and_grad(Z)
    assert value == J.value(Z)
    assert relative_error(gradient, numerical_gradient(J.value, Z, 3e-3 * size)) < 1e-6
    np.testing.assert_array_equal(J.gradient(Z), gradient)


@pytest.mark.filterwarnings("ignore:the start is used as given")
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 100.0])
def test_descent_recovers_corollary_1_on_a_fixed_graph(iris, epsilon):
    X = iris[0]
    labels = gc.sample_components(gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20)).posterior(X), 1)
    J = gc.ComponentCrossEntropy(X, labels, scale=1.0, epsilon=epsilon)
    start = np.random.default_rng(0).normal(size=(150, 2))
    Z = gc.solve(J, start, gc.LBFGS(20), max_iter=1_000, tol=1e-11, patience=1_000, settled_within=0.0).Z
    M = gc.AveragedProjection(labels)
    found, wanted = M @ Z, PCA(2).fit_transform(M @ X)
    turned = found @ orthogonal_procrustes(found, wanted)[0]
    assert relative_error(turned, wanted) < 1e-5


@pytest.mark.filterwarnings("ignore:the start is used as given")
def test_free_scale_keeps_the_shape_of_corollary_1(iris):
    X = iris[0]
    labels = gc.sample_components(gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20)).posterior(X), 1)
    J = gc.ComponentCrossEntropy(X, labels)
    start = 300.0 * np.random.default_rng(0).normal(size=(150, 2))
    Z = gc.solve(J, start, gc.LBFGS(20), max_iter=5_000, tol=1e-13, patience=20_000).Z
    M = gc.AveragedProjection(labels)
    assert procrustes(M @ Z, PCA(2).fit_transform(M @ X))[2] < 1e-4


def test_stochastic_gradients_average_to_the_gradient(iris):
    X = iris[0]
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8)).posterior(X)
    Z = PCA(2).fit_transform(X) + np.random.default_rng(0).normal(size=(150, 2))
    J = gc.ComponentCrossEntropy(X, posterior, scale=1.0, epsilon=0.01, n_graphs=1000, seed=1)
    stochastic = gc.ComponentCrossEntropy(X, posterior, scale=1.0, epsilon=0.01, n_graphs=1, seed=2)
    drawn = np.array([stochastic.at(t, Z).gradient(Z) for t in range(250)])
    error = drawn.std(axis=0) / np.sqrt(250)
    z = (drawn.mean(axis=0) - J.value_and_grad(Z)[1]) / np.hypot(error, drawn.std(axis=0) / np.sqrt(1000))
    assert np.abs(z).max() < 5.0
    assert np.sqrt((z**2).mean()) < 1.5


def test_fresh_graphs_are_others_than_those_of_the_value(iris):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8)).posterior(iris[0])
    J = gc.ComponentCrossEntropy(iris[0], posterior, n_graphs=5, seed=3)
    drawn = gc.sample_components(posterior, 5 + 40, seed=3)
    Z = np.random.default_rng(0).normal(size=(150, 2))
    # Whatever the order they are asked for in.
    for t in (0, 39, 7, 7):
        given = gc.ComponentCrossEntropy(iris[0], drawn[5 + t][None], epsilon=J.epsilon)
        fresh = J.at(t, Z)
        for points in (Z, 2 * Z):
            assert fresh.epsilon == given.epsilon
            assert fresh.value(points) == J.at(t, points).value(points)
        assert J._fresh(t).tolist() == drawn[5 + t].tolist()


def test_sparse_points_are_the_dense_ones(rng, labels):
    X = np.where(rng.uniform(size=(25, 6)) < 0.4, rng.normal(size=(25, 6)), 0.0)
    Z = rng.normal(size=(25, 2))
    dense, sparse = (gc.ComponentCrossEntropy(points, labels) for points in (X, sp.csr_matrix(X)))
    assert sparse.value(Z) == pytest.approx(dense.value(Z), rel=1e-12)


@pytest.mark.parametrize(
    ("X", "graphs", "options", "error", "message"),
    [
        (np.eye(4), np.zeros((1, 5), dtype=int), {}, ValueError, "5 nodes, but X has 4"),
        (np.eye(4), "D", {}, TypeError, "integers"),
        (np.full((4, 2), np.nan), np.zeros((1, 4), dtype=int), {}, ValueError, "NaN"),
        (np.eye(4), np.zeros((1, 4), dtype=int), {"scale": 0.0}, ValueError, "scale"),
        (np.eye(4), np.zeros((1, 4), dtype=int), {"scale": "fixed"}, TypeError, "scale"),
        (np.eye(4), np.zeros((1, 4), dtype=int), {"epsilon": -1.0}, ValueError, "epsilon"),
        (np.eye(4), np.zeros((1, 4), dtype=int), {"nu_x": 3.0}, ValueError, "nu_x=3.0"),
    ],
)
def test_refuses_what_it_cannot_use(X, graphs, options, error, message):
    with pytest.raises(error, match=message):
        gc.ComponentCrossEntropy(X, graphs, **options)
    with pytest.raises(ValueError, match="n_components=2"):
        gc.ComponentCrossEntropy(np.eye(4), np.zeros((1, 4), dtype=int)).value(np.eye(4))


def test_one_component_everywhere_is_finite(rng):
    X, Z = rng.normal(size=(10, 3)), rng.normal(size=(10, 2))
    for points in (X, np.zeros((10, 3))):
        value, gradient = gc.ComponentCrossEntropy(points, np.zeros((2, 10), dtype=int)).value_and_grad(Z)
        assert np.isfinite(value)
        assert np.isfinite(gradient).all()


def _clusters(rng, n_each=20):
    centres = 30.0 * rng.normal(size=(6, 5))
    return np.repeat(centres, n_each, axis=0) + rng.normal(size=(6 * n_each, 5))


def _fit(name, X, **options):
    return gc.HierarchicalCoupling(clone(PRESETS[name]), random_state=0, **options).fit(X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scale", ["free", 2.0])
def test_the_weight_goes_by_the_range_of_the_objective(rng, scale):
    X, _ = gc.datasets.make_hierarchical_mixture(300, random_state=0)
    plain = gc.TSNE(perplexity=10, max_iter=50, random_state=0)
    fitted = gc.HierarchicalCoupling(plain, scale=scale).fit(X + 3.0)
    if scale == "free":
        smaller = gc.HierarchicalCoupling(plain, scale=scale).fit(1e-6 * X + 3.0)
        assert smaller.weight_ == pytest.approx(fitted.weight_, rel=1e-4)
    J = gc.ComponentCrossEntropy(X, plain.fit(X).posterior_, scale=scale, n_graphs=30)
    Y = PCA(2).fit_transform(X) * (1e3 if scale == "free" else scale)
    rises = [J.value(Y[rng.permutation(300)]) - J.value(Y) for _ in range(20)]
    assert fitted.weight_ == pytest.approx(1.5 * 300 / np.mean(rises), rel=0.1)
    assert fitted.loss_ == pytest.approx(fitted.coupling_loss_ + fitted.weight_ * fitted.component_loss_)
    given = gc.HierarchicalCoupling(plain, weight=fitted.weight_, scale=scale).fit(X + 3.0)
    np.testing.assert_array_equal(given.embedding_, fitted.embedding_)


def test_the_share_that_is_explained_is_that_of_singular_values(rng):
    X = rng.normal(size=(40, 6))
    labels = rng.integers(8, size=(3, 40))
    J = gc.ComponentCrossEntropy(X + 2.0, labels)
    squares = np.zeros(6)
    for row in labels:
        means = np.array([(X - X.mean(axis=0))[row == k].mean(axis=0) for k in row])
        squares += np.linalg.svd(means, compute_uv=False) ** 2
    assert J.explained == pytest.approx(squares[:2].sum() / squares.sum(), rel=1e-10)
    # A graph in one piece says nothing.
    joined = gc.ComponentCrossEntropy(X + 2.0, np.concatenate([labels, np.zeros((2, 40), dtype=int)]))
    assert joined.explained == pytest.approx(J.explained, rel=1e-10)
    assert gc.ComponentCrossEntropy(X, np.zeros((2, 40), dtype=int)).explained == 1.0


@pytest.mark.filterwarnings("ignore")
def test_the_weight_falls_where_the_embedding_can_hold_little(rng):
    """Thirty clusters in general position have 29 directions, of which a plane shows two."""
    X = np.repeat(8.0 * rng.normal(size=(30, 40)), 20, axis=0) + rng.normal(size=(600, 40))
    posterior = gc.TSNE().models(600)[0].posterior(X)
    problem = SimpleNamespace(posterior=posterior, n_components=2, coordinates=X)
    J = gc.ComponentCrossEntropy(X, posterior)
    Y = PCA(2, random_state=0).fit_transform(X)
    Y *= 100.0 / np.sqrt(np.square(Y).sum() / 600)
    rise = np.mean([J.value(Y[rng.permutation(600)]) - J.value(Y) for _ in range(20)])
    weight = gc.ComponentMeans().weight_of(J, problem)
    assert 0.1 < J.explained < 0.29
    assert weight == pytest.approx(min(900 / rise, 3.75) * (J.explained / 0.3) ** 3, rel=0.1)
    # On noise the term has almost no range, so its weight would be 15 or more.
    noise = rng.normal(size=(600, 20))
    posterior = gc.TSNE().models(600)[0].posterior(noise)
    problem = SimpleNamespace(posterior=posterior, n_components=2, coordinates=noise)
    assert gc.ComponentMeans().weight_of(gc.ComponentCrossEntropy(noise, posterior), problem) <= 3.75


def test_graphs_in_one_piece_have_no_range(rng):
    X = rng.normal(size=(30, 2))
    together = np.zeros((4, 30), dtype=int)
    J = gc.ComponentCrossEntropy(X, together)
    problem = SimpleNamespace(posterior=SimpleNamespace(n_nodes=30), n_components=2, coordinates=X)
    assert gc.ComponentMeans().weight_of(J, problem) == 1.0
    with pytest.raises(ValueError, match="'auto' or"):
        gc.ComponentMeans(weight="much")


@EVERY
def test_no_weight_is_the_plain_method_and_sequential_is_ccpca_then_the_plain_method(rng, name):
    X = rng.normal(size=(60, 5))
    plain = clone(PRESETS[name]).set_params(random_state=0)
    np.testing.assert_array_equal(_fit(name, X, weight=0.0).embedding_, plain.fit_transform(X))
    after = clone(plain).set_params(init="ccpca").fit_transform(X)
    np.testing.assert_array_equal(_fit(name, X, strategy="sequential").embedding_, after)


@EVERY
def test_the_joint_loss_is_the_weighted_sum_at_the_embedding(rng, name):
    X = _clusters(rng)
    both = _fit(name, X, weight=0.7)
    plain = both.estimator_
    coupling = coupling_of(both)
    assert both.coupling_loss_ == pytest.approx(coupling.value(both.embedding_), rel=1e-9)
    assert both.loss_ == pytest.approx(both.coupling_loss_ + 0.7 * both.component_loss_, rel=1e-12)
    assert both.loss_history_.min() == both.loss_
    assert both.n_iter_ == plain.n_iter_ == 60
    assert hasattr(both, "kl_divergence_") == coupling.has_kl_divergence


@pytest.mark.parametrize("name", fast_and_nightly({name: name for name in PRESETS}, fast=("TSNE", "UMAP")))
def test_the_larger_the_weight_the_closer_the_means_to_ccpca(rng, name):
    X = _clusters(rng)
    plain = clone(PRESETS[name]).set_params(init="random", max_iter=500)
    fits = [gc.HierarchicalCoupling(clone(plain), weight=weight, random_state=0).fit(X) for weight in (0.0, 1.0, 30.0)]
    wanted = gc.CCPCA(input=fits[0].posterior_, random_state=0)
    wanted = PCA(2).fit_transform(X) if name == "UMAP" else wanted.fit_transform(X)
    far = [procrustes(wanted, fit.embedding_)[2] for fit in fits]
    assert far[2] < far[0]
    assert far[2] < 0.15


def test_lbfgs_minimises_the_reported_loss(rng):
    X = _clusters(rng)
    model, latent = gc.TSNE(perplexity=5).models(len(X))
    plain = gc.GraphCoupling(model, latent, optimizer=gc.LBFGS(), max_iter=100)
    history = gc.HierarchicalCoupling(plain, random_state=0).fit(X).loss_history_
    assert (np.diff(history) <= 0).all()


def test_the_estimator_given_is_left_alone(rng):
    plain = gc.TSNE(perplexity=4, max_iter=20, random_state=5)
    both = gc.HierarchicalCoupling(plain, strategy="sequential", random_state=0).fit(rng.normal(size=(30, 3)))
    assert plain.get_params() == gc.TSNE(perplexity=4, max_iter=20, random_state=5).get_params()
    assert not hasattr(plain, "embedding_")
    assert both.get_params()["estimator__perplexity"] == 4


@pytest.mark.filterwarnings("ignore:X, of shape .* looks like a matrix of distances")
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"weight": -1.0}, "weight"),
        ({"strategy": "both"}, "strategy"),
        ({"scale": "fixed"}, "scale"),
        ({"estimator": gc.CCPCA()}, "estimator"),
        (
            {"estimator": gc.TSNE(perplexity=5), "scale": 1e5},
            r"scale=100000.0 make .* lower scale, or use scale='free'",
        ),
        ({"estimator": gc.TSNE(metric="precomputed", init="random", perplexity=2)}, "precomputed"),
    ],
)
def test_refuses_bad_parameters(rng, parameters, message):
    X = rng.normal(size=(20, 3))
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(-1))
    with pytest.raises(ValueError, match=message):
        gc.HierarchicalCoupling(**parameters).fit(distances)


@pytest.mark.filterwarnings("ignore:the start is used as given", "ignore:the embedding is far from its size")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scale": 5.0, "epsilon": 0.1},
        *(
            pytest.param(o, marks=pytest.mark.nightly)
            for o in ({"scale": 1.0}, {"scale": 5.0}, {"scale": 1.0, "epsilon": 1.0})
        ),
    ],
    ids=str,
)
def test_descent_on_fresh_graphs_ends_where_descent_on_their_average_does(iris, options):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)).posterior(iris[0])
    J = gc.ComponentCrossEntropy(iris[0], posterior, **options)
    start = 1e-4 * np.random.default_rng(0).normal(size=(150, 2))
    wanted = gc.solve(J, start, gc.LBFGS(), max_iter=1000)
    momentum = gc.MomentumGains(exaggeration=gc.Exaggeration(1.0, 0))
    found = gc.solve(J, start, momentum, max_iter=600, patience=10_000)
    assert found.loss < wanted.loss + 0.05 * abs(wanted.loss)
    assert np.abs(found.Z).max() < 30.0


def test_a_great_weight_from_ccpca_stays_with_ccpca(rng):
    X = _clusters(rng)
    plain = gc.TSNE(perplexity=5, init="ccpca", max_iter=500)
    fits = [gc.HierarchicalCoupling(plain, weight=weight, random_state=0).fit(X) for weight in (0.0, 1e3, 1e5)]
    wanted = gc.CCPCA(input=fits[0].posterior_, random_state=0).fit_transform(X)
    far = [procrustes(wanted, fit.embedding_)[2] for fit in fits]
    assert max(far[1:]) < min(0.02, far[0])


@pytest.mark.filterwarnings("ignore:perplexity=")
@pytest.mark.filterwarnings(r"ignore:all \d+ rows of X are equal")
def test_means_in_one_place_have_no_say_at_the_scale_of_rounding(iris):
    alone = np.zeros((3, 150), dtype=int)
    variance = ((iris[0] - iris[0].mean(axis=0)) ** 2).sum()
    assert gc.ComponentCrossEntropy(iris[0], alone).epsilon == pytest.approx(2 / variance, rel=1e-9)
    assert gc.ComponentCrossEntropy(iris[0] + 1e6, alone).epsilon == pytest.approx(2 / variance, rel=1e-3)
    same = gc.HierarchicalCoupling(gc.TSNE(perplexity=5, max_iter=50), scale=1.0, random_state=0)
    assert np.isfinite(same.fit_transform(np.full((60, 3), 0.1))).all()


def test_an_epsilon_beyond_double_precision_is_refused(iris, rng):
    with pytest.raises(ValueError, match="more than double precision"):
        gc.ComponentCrossEntropy(iris[0], rng.integers(0, 9, size=(2, 150)), scale=1.0, epsilon=1e12)


def test_a_refit_forgets_what_no_longer_applies(rng):
    X = _clusters(rng)
    both = gc.HierarchicalCoupling(clone(PRESETS["TSNE"]), random_state=0).fit(X)
    both.set_params(estimator=clone(PRESETS["UMAP"])).fit(X)
    assert not hasattr(both, "kl_divergence_")


@pytest.mark.parametrize("given", ["distances", "posterior"])
def test_the_sequential_strategy_needs_points(given, rng):
    X = rng.normal(size=(60, 4))
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    plain, data = {
        "distances": (gc.TSNE(perplexity=5, metric="precomputed"), np.linalg.norm(X[:, None] - X, axis=-1)),
        "posterior": (gc.GraphCoupling(posterior, gc.GraphModel(gc.Student(), "E")), None),
    }[given]
    with pytest.raises(ValueError, match="strategy='sequential' starts from ccPCA, which needs points"):
        gc.HierarchicalCoupling(plain, strategy="sequential").fit(data)
