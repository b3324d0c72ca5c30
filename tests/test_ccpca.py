"""ccPCA against PCA of means formed in full, and its Monte Carlo error against repetition."""

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import orthogonal_procrustes
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

import graphcouple as gc
from graphcouple.components.pca import component_pca
from graphcouple.initializations import initialize

from .reference import fast_and_nightly, relative_error

SOLVERS = pytest.mark.parametrize("solver", ["full", "randomized"])


def _rings(sizes):
    """An edge prior under which every node has one possible edge: the components are rings of these sizes."""
    n = sum(sizes)
    prior, start = np.zeros((n, n)), 0
    for size in sizes:
        nodes = np.arange(start, start + size)
        prior[nodes, np.roll(nodes, -1)] = 1.0
        start += size
    return prior


def _up_to_signs(found, wanted, **tolerance):
    signs = np.sign((found * wanted).sum(axis=0))
    np.testing.assert_allclose(found * np.where(signs == 0, 1, signs), wanted, **tolerance)


@SOLVERS
@pytest.mark.parametrize("prior", [gc.UnitOutDegree, gc.FixedEdges, gc.Binary])
def test_known_components_give_pca_of_their_means(rng, solver, prior):
    """D: the rings are certain. B: so are they, with a huge edge prior. E has edges left out; it is checked below."""
    sizes = (30, 5, 12, 13)
    X = rng.normal(size=(60, 20)) + np.repeat(3.0 * rng.normal(size=(4, 20)), sizes, axis=0)
    means = np.repeat([block.mean(axis=0) for block in np.split(X, np.cumsum(sizes)[:-1])], sizes, axis=0)
    ring = _rings(sizes) * (1e12 if prior is gc.Binary else 1.0)
    posterior = gc.GraphModel(gc.Gaussian(), prior(ring), gc.ConstantBandwidth(100.0)).posterior(X)
    ccpca = gc.CCPCA(3, input=posterior, svd_solver=solver, n_samples=20, random_state=0).fit(X)
    if prior is gc.FixedEdges:
        M = np.mean([(row[:, None] == row) / (row[:, None] == row).sum(1) for row in ccpca.projection_.labels], axis=0)
        means = M @ X
    else:
        assert (ccpca.component_counts_ == 4).all()
        assert all(size.tolist() == [30, 13, 12, 5] for size in ccpca.component_sizes_)
        np.testing.assert_allclose(ccpca.standard_error_, 0.0, atol=1e-9)
    wanted = PCA(3, svd_solver="full").fit(means)
    _up_to_signs(ccpca.embedding_, wanted.transform(means), rtol=1e-8, atol=1e-9)
    _up_to_signs(ccpca.components_.T, wanted.components_.T, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(ccpca.singular_values_, wanted.singular_values_, rtol=1e-9)
    np.testing.assert_allclose(ccpca.mean_, X.mean(axis=0), rtol=1e-10, atol=1e-12)


def test_randomized_finds_what_full_finds_where_the_spectrum_is_slow(rng):
    X = rng.normal(size=(300, 80))
    M = gc.AveragedProjection(rng.integers(0, 150, size=(20, 300)))
    full, fast = (component_pca(X, M, 3, svd_solver=solver) for solver in ("full", "randomized"))
    np.testing.assert_allclose(fast.singular_values, full.singular_values, rtol=1e-4)


@pytest.mark.parametrize("sparse", [False, True])
def test_one_component_everywhere_is_pca_with_a_warning(iris, sparse):
    iris = (iris[0][::3],)
    X = sp.csr_matrix(iris[0]) if sparse else iris[0]
    everywhere = gc.GraphModel(gc.Gaussian(), gc.Binary(1e12), gc.ConstantBandwidth(10.0))
    ccpca = gc.CCPCA(input=everywhere, random_state=0)
    with pytest.warns(UserWarning, match="connected.*PCA"):
        Z = ccpca.fit_transform(X)
    wanted = PCA(2).fit(iris[0])
    _up_to_signs(Z, wanted.transform(iris[0]), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(ccpca.transform(X), Z, rtol=1e-9, atol=1e-10)
    assert (ccpca.component_counts_ == 1).all()
    assert ccpca.relative_error_ == 0.0
    assert ccpca.n_samples_ == 100


def test_standard_error_is_the_spread_over_repetitions(iris):
    """Each fit's error, root mean square over points, against the spread of 40 fits turned onto a long one."""
    X = iris[0]
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(15)).posterior(X)
    target = gc.CCPCA(input=posterior, n_samples=4000, random_state=99).fit_transform(X)
    fits = [gc.CCPCA(input=posterior, n_samples=100, random_state=seed).fit(X) for seed in range(40)]
    turned = np.array([fit.embedding_ @ orthogonal_procrustes(fit.embedding_, target)[0] for fit in fits])
    spread = np.sqrt(np.square(turned - turned.mean(axis=0)).sum(axis=2).sum(axis=0) / 39)
    found = np.sqrt(np.mean([fit.standard_error_**2 for fit in fits], axis=0))
    assert np.sqrt((found**2).sum() / (spread**2).sum()) == pytest.approx(1.0, abs=0.15)
    assert np.corrcoef(found, spread)[0, 1] > 0.9


def test_auto_draws_until_the_error_is_small_enough(iris):
    coarse, fine = (
        gc.CCPCA(perplexity=10, n_samples="auto", tol=tol, random_state=0).fit(iris[0]) for tol in (0.05, 0.015)
    )
    assert coarse.relative_error_ <= 0.05
    assert fine.relative_error_ <= 0.015
    assert coarse.n_samples_ < fine.n_samples_ < 2000
    np.testing.assert_array_equal(coarse.projection_.labels, fine.projection_.labels[: coarse.n_samples_])


def test_auto_says_when_it_gives_up(rng):
    ccpca = gc.CCPCA(perplexity=3, n_samples="auto", tol=1e-6, random_state=0)
    with pytest.warns(ConvergenceWarning, match="tol=1e-06"):
        ccpca.fit(rng.normal(size=(40, 3)))
    assert ccpca.n_samples_ == 2000


def test_a_single_graph_has_no_error_estimate(iris):
    ccpca = gc.CCPCA(perplexity=10, n_samples=1, random_state=0).fit(iris[0])
    assert np.isnan(ccpca.standard_error_).all()
    assert np.isnan(ccpca.relative_error_)


@pytest.mark.parametrize("prior", fast_and_nightly({"B": "B", "D": "D", "E": "E"}, fast=("D",)))
def test_same_bits_for_any_number_of_workers(prior, digits):
    X = digits[0][:900]
    fits = [gc.CCPCA(prior=prior, n_samples=40, n_neighbors=60, random_state=0, n_jobs=jobs).fit(X) for jobs in (1, 2)]
    # Other processes draw the same graphs: tests/test_components.py.
    with joblib.parallel_config(backend="threading" if prior == "D" else "loky", n_jobs=2):
        fits.append(gc.CCPCA(prior=prior, n_samples=40, n_neighbors=60, random_state=0).fit(X))
    for fit in fits[1:]:
        np.testing.assert_array_equal(fit.embedding_, fits[0].embedding_)
        np.testing.assert_array_equal(fit.standard_error_, fits[0].standard_error_)
        np.testing.assert_array_equal(fit.transform(X[:9] + 0.1), fits[0].transform(X[:9] + 0.1))


@SOLVERS
def test_sparse_points_are_the_dense_ones(rng, solver):
    X = np.where(rng.uniform(size=(120, 30)) < 0.3, rng.normal(size=(120, 30)) + 2.0, 0.0)
    X[:40] *= 4.0
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    fits = [
        gc.CCPCA(input=posterior, svd_solver=solver, random_state=0).fit(points) for points in (X, sp.csr_matrix(X))
    ]
    np.testing.assert_allclose(fits[1].embedding_, fits[0].embedding_, rtol=1e-8, atol=1e-9)
    assert relative_error(fits[1].standard_error_, fits[0].standard_error_) < 1e-6
    new = sp.csr_matrix(X[:5] + np.where(X[:5] > 0, 0.1, 0.0))
    np.testing.assert_allclose(fits[1].transform(new), fits[0].transform(new.toarray()), rtol=1e-7, atol=1e-8)


def test_float32_stays_float32(iris):
    X = iris[0].astype(np.float32)
    ccpca = gc.CCPCA(perplexity=10, random_state=0).fit(X)
    double = gc.CCPCA(perplexity=10, random_state=0).fit(iris[0])
    assert ccpca.embedding_.dtype == ccpca.components_.dtype == ccpca.transform(X).dtype == np.float32
    np.testing.assert_allclose(ccpca.singular_values_, double.singular_values_, rtol=0.02)
    everywhere = gc.GraphModel(gc.Gaussian(), gc.Binary(1e12), gc.ConstantBandwidth(10.0))
    with pytest.warns(UserWarning, match="connected"):
        gc.CCPCA(input=everywhere, svd_solver="randomized", random_state=0).fit(X)


def test_new_points_go_where_their_edges_lead(iris):
    """Weights of new points from the definition: perplexity rows against the points of the fit."""
    X = np.unique(iris[0], axis=0)
    train, new = X[::2], X[1::2]
    ccpca = gc.CCPCA(perplexity=8, n_neighbors=20, random_state=0).fit(train)
    found = ccpca.transform(new)
    for point, z in zip(new[:10], found, strict=False):
        d2 = ((train - point) ** 2).sum(1)
        near = np.argsort(d2)[:20]
        low, high = 1e-3, 1e3
        for _ in range(200):
            tau = (low * high) ** 0.5
            p = np.exp(-(d2[near] - d2.min()) / (2 * tau**2))
            p /= p.sum()
            entropy = -(p * np.log(np.maximum(p, 1e-300))).sum()
            low, high = (tau, high) if entropy < np.log(8) else (low, tau)
        np.testing.assert_allclose(z, p @ ccpca.embedding_[near], rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(ccpca.transform(new[:1]), found[:1])
    np.testing.assert_array_equal(ccpca.transform(train), ccpca.embedding_)


@pytest.mark.parametrize(
    "model",
    [
        gc.GraphModel(gc.Odds(gc.Exponential()), "B", gc.LocalConnectivity(8), n_neighbors=7, symmetrize="threshold"),
        gc.GraphModel(gc.Gaussian(), "E", gc.SelfTuning(5), n_neighbors=10),
        gc.GraphModel(gc.Student(), "D", gc.ConstantBandwidth(0.3)),
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), n_neighbors=15, metric="manhattan"),
    ],
    ids=["umap", "self-tuning", "all pairs", "manhattan"],
)
def test_any_law_can_place_new_points(iris, model):
    X = np.unique(iris[0], axis=0)
    links = model.new_edges(X, X[:7] + 0.05)
    assert links.shape == (7, len(X))
    np.testing.assert_allclose(links.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(model.new_edges(X, X[:7]).toarray(), np.eye(len(X))[:7])
    if model.n_neighbors is None:
        # The joint law of old and new points has these rows, but for the new points' edges among themselves.
        joint = np.asarray(model.posterior(np.vstack([X, X[:1] + 0.05])).mean())[-1, :-1]
        np.testing.assert_allclose(links.toarray()[0], joint / joint.sum(), rtol=1e-9)


def test_a_posterior_of_ones_own_is_the_law_it_was_made_by(iris):
    X = iris[0]
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(30)).posterior(X)
    own, made = gc.CCPCA(input=posterior, random_state=0), gc.CCPCA(random_state=0)
    np.testing.assert_array_equal(own.fit_transform(X), made.fit_transform(X))
    np.testing.assert_array_equal(own.transform(X[:5] + 0.1), made.transform(X[:5] + 0.1))
    assert own.posterior_ is posterior


def test_co_membership_is_on_the_posteriors_edges(rng):
    ccpca = gc.CCPCA(perplexity=5, n_neighbors=12, n_samples=30, random_state=0).fit(rng.normal(size=(50, 3)))
    found, labels = ccpca.co_membership_, ccpca.projection_.labels
    assert found.nnz == 50 * 12
    for i, j in zip(*found.nonzero(), strict=True):
        assert found[i, j] == pytest.approx((labels[:, i] == labels[:, j]).mean(), rel=1e-12)


def test_callback_can_end_the_rounds(iris):
    seen = []

    def watch(n_drawn, error, Z):
        seen.append((n_drawn, error, Z.shape))
        return len(seen) == 2

    ccpca = gc.CCPCA(perplexity=10, n_samples="auto", tol=1e-9, callback=watch, random_state=0).fit(iris[0])
    assert ccpca.n_samples_ == seen[-1][0] == 80
    assert seen[-1][1:] == (ccpca.relative_error_, (150, 2))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 5}, "n_components=5"),
        ({"metric": "precomputed"}, "precomputed"),
        ({"prior": "F"}, "prior"),
        ({"n_samples": 0}, "n_samples"),
        ({"n_samples": "many"}, "n_samples"),
        ({"tol": 0.0}, "tol"),
        ({"svd_solver": "arpack"}, "svd_solver"),
    ],
)
def test_refuses_bad_parameters(iris, parameters, message):
    with pytest.raises(ValueError, match=message):
        gc.CCPCA(**parameters).fit(iris[0])


def test_refuses_a_graph_of_other_points(iris):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)).posterior(iris[0])
    with pytest.raises(ValueError, match="150 nodes"):
        gc.CCPCA(input=posterior).fit(iris[0][:100])


def _start(init, X, posterior, seed=0):
    return initialize(init, X, posterior, 2, np.random.RandomState(seed), scale=0.3)


def test_init_is_ccpca_of_the_estimators_own_posterior(iris):
    X = np.unique(iris[0], axis=0)
    tsne = gc.TSNE(perplexity=10, init="ccpca", max_iter=1, random_state=0)
    posterior = tsne.models(len(X))[0].posterior(X)
    Z = gc.CCPCA(input=posterior, random_state=0).fit_transform(X)
    np.testing.assert_allclose(_start("ccpca", X, posterior), Z * 0.3 / Z[:, 0].std(), rtol=1e-3, atol=1e-3)
    moved = tsne.fit_transform(X)
    assert np.corrcoef(moved[:, 0], Z[:, 0])[0, 1] ** 2 > 0.99


def test_init_of_a_connected_graph_is_pca_with_a_warning(iris):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(1.5)).posterior(iris[0][:3])
    with pytest.warns(UserWarning, match="starting from PCA"):
        found = _start("ccpca", iris[0][:3], posterior)
    np.testing.assert_allclose(found, _start("pca", iris[0][:3], posterior), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_data_far_from_the_origin(rng, dtype):
    X = rng.normal(size=(100, 5))
    far = (X + (1e6 if dtype is np.float64 else 1e3)).astype(dtype)
    everywhere = gc.GraphModel(gc.Gaussian(), gc.Binary(1e12), gc.ConstantBandwidth(100.0))
    with pytest.warns(UserWarning, match="is connected"):
        Z = gc.CCPCA(input=everywhere, n_samples=20, random_state=0).fit_transform(far)
    _up_to_signs(Z, PCA(2, svd_solver="full").fit_transform(far.astype(np.float64)), rtol=1e-2, atol=1e-2)
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    near, shifted = (gc.CCPCA(input=posterior, random_state=0).fit_transform(points) for points in (X, far))
    _up_to_signs(shifted, near, rtol=1e-2, atol=1e-3)


def test_missing_directions_are_told(rng):
    X = np.column_stack([rng.normal(size=(60, 2)), np.ones(60)])
    with pytest.warns(UserWarning, match="the averages have only 2 of n_components=3 directions"):
        Z = gc.CCPCA(3, perplexity=5, random_state=0).fit_transform(X)
    assert Z.any(axis=0).tolist() == [True, True, False]


@pytest.mark.filterwarnings("ignore:the averages of all points are equal")
@pytest.mark.filterwarnings("ignore:perplexity=")
@pytest.mark.filterwarnings(r"ignore:all \d+ rows of X are equal")
def test_means_that_coincide_are_not_called_connected():
    with pytest.warns(UserWarning, match="means of all components are the same"):
        gc.CCPCA(perplexity=5, random_state=0).fit(np.ones((40, 3)))


def test_whole_numbers_are_decomposed_as_numbers(rng):
    X = rng.integers(0, 9, size=(40, 5))
    M = gc.AveragedProjection(rng.integers(0, 6, size=(10, 40)))
    for solver in ("full", "randomized"):
        found = component_pca(X, M, 2, svd_solver=solver).singular_values
        np.testing.assert_allclose(found, component_pca(X.astype(float), M, 2).singular_values, rtol=1e-6)


@pytest.mark.parametrize("metric", ["cosine", "manhattan"])
def test_points_of_the_fit_are_themselves_whatever_the_metric(iris, metric):
    X = np.unique(iris[0], axis=0)
    ccpca = gc.CCPCA(perplexity=10, metric=metric, random_state=0).fit(X)
    np.testing.assert_allclose(ccpca.transform(X), ccpca.embedding_, rtol=1e-12, atol=1e-12)


def test_links_take_any_kind_of_numbers_and_refuse_others(rng):
    X = rng.integers(0, 9, size=(40, 3))
    model = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), n_neighbors=15)
    wanted = model.new_edges(X.astype(float), X[:4] + 1.0)
    np.testing.assert_allclose(model.new_edges(X.astype(np.uint8), X[:4] + 1).toarray(), wanted.toarray(), rtol=1e-12)
    far = model.new_edges(X + 1e7, X[:4] + 1.0 + 1e7)
    np.testing.assert_allclose(far.toarray(), wanted.toarray(), rtol=1e-5, atol=1e-7)
    with pytest.raises(ValueError, match="X_new has 2 columns, but X has 3"):
        model.new_edges(X, X[:, :2])
    with pytest.raises(ValueError, match="X_new holds NaN"):
        model.new_edges(X, np.full((1, 3), np.nan))


def test_the_callback_cannot_change_the_embedding(iris):
    def meddle(n_drawn, error, Z):
        Z[:] = 0.0

    with pytest.raises(ValueError, match="read-only"):
        gc.CCPCA(perplexity=10, callback=meddle, random_state=0).fit(iris[0])
