"""New points: the objective of each, the search that gives their edges, and places that depend on no other row."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import brentq, minimize
from scipy.spatial.distance import cdist
from scipy.special import entr, logsumexp, softmax
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphcouple as gc
from graphcouple._numba.places import starts_at
from graphcouple.couplings.fixed_map import AdditiveMap, NormalizedMap
from graphcouple.laws import NewEdges
from graphcouple.neighbors import distances_of
from graphcouple.optimize.placing import place_new
from graphcouple.summation import BarnesHut, Exact, KernelValue, LogOnePlusKernel, ParticleMesh
from tests.reference import numerical_gradient, relative_error

D_10 = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10))
E_TUNED = gc.GraphModel(gc.Gaussian(), "E", gc.SelfTuning(7))
ESTIMATORS = {
    "TSNE": gc.TSNE(perplexity=10),
    "two perplexities": gc.TSNE(perplexity=(5, 20), n_neighbors=60),
    "SNE": gc.SNE(perplexity=10),
    "SymmetricSNE": gc.SymmetricSNE(perplexity=10),
    "UMAP": gc.UMAP(n_neighbors=10),
    "UMAP full": gc.UMAP(n_neighbors=10, repulsion="full"),
    "LargeVis": gc.LargeVis(perplexity=10, n_neighbors=None),
    "Hierarchical": gc.HierarchicalCoupling(gc.TSNE(perplexity=10, max_iter=100)),
    "self-tuned": gc.GraphCoupling(E_TUNED, gc.GraphModel(gc.Student(), "E")),
    "cusp": gc.GraphCoupling(D_10, gc.GraphModel(gc.Exponential(), "B")),
    "unbounded": gc.GraphCoupling(D_10, gc.GraphModel(gc.Odds(gc.Student()), "D")),
    "wide": gc.GraphCoupling(D_10, gc.GraphModel(gc.Student(), "E", gc.ConstantBandwidth(3.0))),
    "one dimension": gc.TSNE(1, perplexity=10),
    "three dimensions": gc.UMAP(3, n_neighbors=10),
}


@pytest.fixture(scope="module")
def halves():
    X, y = gc.datasets.load("digits")
    return X[:400], X[400:520], y[:400], y[400:520]


@pytest.fixture(scope="module")
def fitted(halves):
    found = {}

    def fit(name):
        if name not in found:
            estimator = ESTIMATORS[name].set_params(random_state=0)
            if name != "Hierarchical":
                estimator.set_params(max_iter=80)
            found[name] = estimator.fit(halves[0])
        return found[name]

    return fit


def _literal_row(fitted, place, row):
    """Return the loss of one new point: the terms of its own edges."""
    sentence = fitted.sentence
    scale = getattr(sentence.latent.bandwidth, "scale", 1.0)
    kernel, prior = sentence.latent.kernel, sentence.latent.prior
    k = kernel.value(cdist([place], fitted.embedding_)[0] ** 2 / scale**2)
    m = row.toarray()[0]
    if prior.code != "B":
        return m.sum() * np.log(k.sum()) - (m * np.log(k)).sum()
    if getattr(fitted, "repulsion", "full") == "full":
        return np.log1p(k).sum() - (m * np.log(k)).sum()
    degrees = np.asarray(fitted.posterior_.mean().sum(axis=1)).ravel()
    if not fitted.posterior_.unordered:
        degrees = degrees + np.asarray(fitted.posterior_.mean().sum(axis=0)).ravel()
    exponent = 0.75 if isinstance(fitted, gc.LargeVis) else 0.0
    noise, own = degrees**exponent, m.sum() ** exponent
    against = degrees * own / noise.sum() + m.sum() * noise / noise.sum()
    strength = 0.5 * getattr(fitted, "repulsion_strength", 1.0) * fitted.negative_sample_rate
    return strength * (against * np.log1p(k)).sum() - (m * np.log(k / (1 + k))).sum()


@pytest.mark.parametrize("name", ["TSNE", "SNE", "UMAP", "UMAP full", "LargeVis", "cusp", "unbounded", "wide"])
def test_a_place_is_the_minimum_of_the_terms_of_its_own_edges(fitted, halves, name):
    estimator, X_new = fitted(name), halves[1][:3]
    places, losses = estimator.transform(X_new, return_loss=True)
    edges, size = estimator._given.new_edges(X_new).to_csr(), estimator.embedding_.std()
    for i, (place, loss) in enumerate(zip(places, losses, strict=True)):

        def row(y, i=i):
            return _literal_row(estimator, y, edges[[i]])

        assert loss == pytest.approx(row(place), rel=1e-9)
        simplex = place + 1e-3 * size * np.array([[0, 0], [1, 0], [0, 1]])
        options = {"xatol": 1e-6 * size, "fatol": 1e-12, "initial_simplex": simplex}
        near = minimize(row, place, method="Nelder-Mead", options=options)
        assert loss - near.fun < 1e-5 * max(abs(loss), 1.0)
        # No descent by another program, from many points of the map, finds much better ones.
        starts = np.vstack([edges[[i]] @ estimator.embedding_, estimator.embedding_[::40] + 1e-2 * size])
        best = min(minimize(row, start, method="Nelder-Mead").fun for start in starts[:3])
        assert loss < best + 0.05 * abs(best)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_places_do_not_depend_on_other_rows_order_or_threads(fitted, halves, name):
    estimator, X_new = fitted(name), halves[1]
    whole, losses = estimator.transform(X_new, return_loss=True)
    assert np.isfinite(whole).all()
    assert np.isfinite(losses).all()
    rng = np.random.default_rng(0)
    # Under kernels without bound, a rounding error of a first step leads to another place.
    most = 1 if name in {"UMAP", "unbounded"} else 60
    order, at = rng.permutation(len(X_new)), 0
    while at < len(order):
        rows = order[at : at + int(rng.integers(1, most, endpoint=True))]
        np.testing.assert_array_equal(estimator.transform(X_new[rows]), whole[rows])
        at += len(rows)
    np.testing.assert_array_equal(estimator.set_params(n_jobs=1).transform(X_new), whole)
    estimator.set_params(n_jobs=None)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_copies_of_fitted_points_get_their_places(fitted, halves, name):
    estimator = fitted(name)
    np.testing.assert_array_equal(estimator.transform(halves[0][::7]), estimator.embedding_[::7])
    mixed = np.vstack([halves[1][:2], halves[0][3:5]])
    np.testing.assert_array_equal(estimator.transform(mixed)[2:], estimator.embedding_[3:5])


@pytest.mark.parametrize("name", ["TSNE", "UMAP", "LargeVis", "SNE"])
def test_new_points_land_among_their_own_kind(fitted, halves, name):
    from sklearn.neighbors import KNeighborsClassifier

    estimator, (X, X_new, y, y_new) = fitted(name), halves
    by_points = KNeighborsClassifier(5).fit(X, y).score(X_new, y_new)
    by_places = KNeighborsClassifier(5).fit(estimator.embedding_, y).score(estimator.transform(X_new), y_new)
    within = KNeighborsClassifier(6).fit(estimator.embedding_, y).score(estimator.embedding_, y)
    assert by_places > min(by_points, within) - 0.06


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize(
    "radial", [KernelValue(gc.Student()), LogOnePlusKernel(gc.Odds(gc.Student())), KernelValue(gc.Exponential())]
)
def test_a_field_read_off_a_mesh_is_that_of_exact_sums(q, radial):
    rng = np.random.default_rng(0)
    Z = np.vstack([rng.normal(size=(1500, q)), 8.0 + 0.5 * rng.normal(size=(1500, q))])
    charges = np.stack([np.ones(3000), rng.uniform(size=3000)])
    places = np.vstack([Z[:50] + 0.01, rng.uniform(-3, 9, size=(100, q)), 50.0 + rng.normal(size=(5, q))])
    mesh, exact = ParticleMesh().field(Z, radial, charges), Exact().field(Z, radial, charges)
    for read, summed in zip(mesh.at(places), exact.at(places), strict=True):
        assert relative_error(read, summed) < 2e-3
        np.testing.assert_array_equal(read[:, -5:], summed[:, -5:])
    sq_dist = cdist(places, Z, "sqeuclidean")
    np.testing.assert_allclose(exact.at(places)[0], charges @ radial.potential(sq_dist).T, rtol=1e-12)
    single = mesh.at(places[17:18])
    np.testing.assert_array_equal(single[0], mesh.at(places)[0][:, 17:18])


def test_places_far_from_all_are_found_in_the_log():
    rng = np.random.default_rng(0)
    fixed = NormalizedMap(rng.normal(size=(3000, 2)), KernelValue(gc.Gaussian()), gc.Gaussian(), ParticleMesh())
    place = np.array([[60.0, 0.0]])
    repelled, push = fixed._repel(fixed.field.at(place), np.ones(1), place)
    log_kernel = -0.5 * cdist(place, fixed.points, "sqeuclidean")
    most = log_kernel.max()
    assert repelled[0] == pytest.approx(most + np.log(np.exp(log_kernel - most).sum()), rel=1e-12)
    wanted = numerical_gradient(lambda y: fixed._repel(fixed.field.at(y[None]), np.ones(1), y[None])[0][0], place[0])
    assert relative_error(push[0], wanted) < 1e-5


def test_a_tree_can_place_points_too():
    fixed = AdditiveMap(
        np.random.default_rng(0).normal(size=(300, 3)), KernelValue(gc.Student()), gc.Student(), BarnesHut()
    )
    support = gc.graphs.Support(np.array([0, 2]), np.array([3, 7]))
    edges = NewEdges(support, np.array([0.9, 0.9]), 300, np.array([-1]), np.ones(1))
    assert np.isfinite(place_new(fixed, edges)[0]).all()


@pytest.mark.filterwarnings("ignore:no embedding with a lower loss")
@pytest.mark.filterwarnings("ignore:the start is used as given")
def test_sparse_points_distances_and_pipelines(halves):
    X, X_new, _, _ = halves
    options = {"perplexity": 10, "n_neighbors": None, "random_state": 0, "max_iter": 100}
    dense = gc.TSNE(**options).fit(X)
    wanted = dense.transform(X_new)
    sparse = gc.TSNE(init=dense.embedding_, **options).fit(sp.csr_matrix(X))
    edges, same = (e._given.new_edges(part).to_csr() for e, part in ((sparse, sp.csr_matrix(X_new)), (dense, X_new)))
    np.testing.assert_allclose(edges.toarray(), same.toarray(), atol=1e-9)
    by_distance = gc.TSNE(init=dense.embedding_, metric="precomputed", **options).fit(cdist(X, X))
    edges = by_distance._given.new_edges(cdist(X_new, X)).to_csr()
    np.testing.assert_allclose(edges.toarray(), same.toarray(), atol=1e-9)
    assert by_distance.transform(cdist(X_new, X)).shape == wanted.shape
    pipeline = make_pipeline(StandardScaler(with_std=False), gc.TSNE(**options))
    assert pipeline.fit(X).transform(X_new).shape == wanted.shape
    assert dense.transform(X_new[:1]).shape == (1, 2)
    assert dense.transform(X_new.astype(np.float32)).shape == wanted.shape


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_points_far_from_everything_have_a_place_and_say_so(fitted, halves):
    for name in ("TSNE", "UMAP", "SNE", "unbounded"):
        estimator = fitted(name)
        far = np.vstack([halves[1][:3], halves[1][:3] + 1e4, np.full((1, 64), -1e8)])
        places = estimator.transform(far)
        assert np.isfinite(places).all()
        low, high = estimator.embedding_.min(axis=0), estimator.embedding_.max(axis=0)
        reach = 0.5 * (high - low)
        assert ((places > low - reach) & (places < high + reach)).all()
        isolation = estimator.isolation(far)
        assert (isolation[:3] < 2).all()
        assert (isolation[3:] > 100).all()


def test_isolation_is_one_for_fitted_points_on_a_lattice():
    X = np.arange(100.0)[:, None]
    estimator = gc.TSNE(perplexity=5, random_state=0, max_iter=50).fit(X)
    assert estimator.isolation(X[40:60] + 0.5) == pytest.approx(np.full(20, np.sqrt(8.25 / 11.0)), rel=1e-6)


def test_edges_of_a_new_point_far_from_all_keep_their_ratios(rng):
    X, far = rng.normal(size=(30, 2)), np.array([[100.0, 100.0]])
    law = gc.GraphModel("gaussian", "B", gc.ConstantBandwidth(1.0))
    edges = law.new_edges(X, far).toarray()[0]
    log_kernel = -0.5 * np.square(far - X).sum(axis=1)
    np.testing.assert_allclose(edges, np.exp(log_kernel - logsumexp(log_kernel)), rtol=1e-6, atol=1e-30)
    assert np.isfinite(gc.DiffusionMaps(input=law).fit(X).transform(far)).all()


def test_what_cannot_be_placed_says_why(halves):
    X, X_new, _, _ = halves
    with pytest.raises(NotFittedError):
        gc.TSNE().transform(X_new)
    posterior = D_10.posterior(X)
    drawn = gc.GraphCoupling(posterior, gc.GraphModel(gc.Student(), "E"), random_state=0, max_iter=20).fit(X)
    with pytest.raises(ValueError, match="pass a GraphModel"):
        drawn.transform(X_new)
    fitted = gc.TSNE(perplexity=10, random_state=0, max_iter=20).fit(X)
    with pytest.raises(ValueError, match="features"):
        fitted.transform(X_new[:, :10])
    with pytest.raises(ValueError, match="NaN"):
        fitted.transform(np.full((1, 64), np.nan))


def test_pickled_estimators_place_alike(fitted, halves):
    for name in ("TSNE", "UMAP", "self-tuned"):
        estimator = fitted(name)
        again = pickle.loads(pickle.dumps(estimator))
        np.testing.assert_array_equal(again.transform(halves[1]), estimator.transform(halves[1]))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_the_search_answers_for_new_points(metric, kind):
    rng = np.random.default_rng(0)
    means = rng.normal(size=(30, 120))
    X = means[rng.integers(0, 30, 3000)] + 0.4 * rng.normal(size=(3000, 120))
    X_new = means[rng.integers(0, 30, 200)] + 0.4 * rng.normal(size=(200, 120))
    distances = distances_of(kind(X), metric)
    exact, exactly = distances.to(kind(X_new), 20, search="exact")
    true = np.sort(np.argpartition(cdist(X_new, X, metric), 19, axis=1)[:, :20], axis=1)
    np.testing.assert_array_equal(exact.indices.reshape(200, 20), true)
    wanted = np.take_along_axis(cdist(X_new, X, metric), true, axis=1) ** 2
    np.testing.assert_allclose(exactly.reshape(200, 20), wanted, rtol=1e-8)
    nearly, sq_dist = distances.to(kind(X_new), 20, search="approximate")
    found = nearly.indices.reshape(200, 20)
    assert np.mean([len(set(a) & set(b)) / 20 for a, b in zip(found, true, strict=True)]) > 0.97
    for a, b in ((0, 1), (3, 70), (150, 200)):
        support, some = distances.to(kind(X_new[a:b]), 20, search="approximate")
        np.testing.assert_array_equal(support.indices.reshape(-1, 20), found[a:b])
        np.testing.assert_array_equal(some.reshape(-1, 20), sq_dist.reshape(200, 20)[a:b])


def test_zero_rows_are_far_from_all_by_cosine():
    X = np.abs(np.random.default_rng(0).normal(size=(50, 4)))
    for search in ("exact", "approximate"):
        support, sq_dist = distances_of(X, "cosine").to(np.zeros((1, 4)), 5, search=search)
        np.testing.assert_allclose(sq_dist, 1.0)
        assert support.n_edges == 5


@pytest.mark.parametrize("name", ["TSNE", "UMAP", "wide"])
def test_inverse_transform_is_the_mean_by_a_law_of_the_map(fitted, halves, name):
    estimator, X = fitted(name), halves[0]
    Z = estimator.embedding_
    places = np.vstack([Z[:3] + 0.1, 0.5 * (Z[3:5] + Z[5:7])])
    for place, found in zip(places, estimator.inverse_transform(places), strict=True):
        sq_dist = np.square(Z - place).sum(axis=1)
        sq_dist[np.argsort(sq_dist)[30:]] = np.inf

        def excess(log_scale, sq_dist=sq_dist):
            p = softmax(-0.5 * sq_dist / np.exp(2.0 * log_scale))
            return entr(p).sum() - np.log(10.0)

        scale = np.exp(brentq(excess, np.log(sq_dist.min()) / 2 - 9.0, 9.0, xtol=1e-12))
        np.testing.assert_allclose(found, softmax(-0.5 * sq_dist / scale**2) @ X, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", [gc.TSNE(random_state=0), gc.UMAP(n_neighbors=10, min_dist=0.01, random_state=0)])
def test_neighbors_of_an_inverse_are_those_of_its_place(method):
    """As umap-learn's own test of its inverse on iris, which asks for 3 of 5."""
    X, _ = gc.datasets.load("iris")
    Z = method.fit(X).embedding_
    for i in range(1, 150, 20):
        near = np.argsort(np.square(Z - Z[i]).sum(axis=1))[:5]
        back = method.inverse_transform(Z[near].mean(axis=0)[None])
        assert np.isin(near, np.argsort(np.square(X - back).sum(axis=1))[:10]).sum() >= 3
    few = gc.TSNE(perplexity=2, random_state=0, max_iter=20).fit(X[:5:2])
    assert np.isfinite(few.inverse_transform(few.embedding_ + 0.1)).all()


def test_inverse_transform_at_points_and_of_what_has_no_means(fitted, halves):
    estimator = fitted("unbounded")
    np.testing.assert_allclose(estimator.inverse_transform(estimator.embedding_[:4]), halves[0][:4], atol=1e-9)
    with pytest.raises(ValueError, match="columns"):
        estimator.inverse_transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="Z has no rows"):
        estimator.inverse_transform(np.zeros((0, 2)))
    X = halves[0][:50]
    by_distance = gc.TSNE(perplexity=5, metric="precomputed", random_state=0, max_iter=20).fit(cdist(X, X))
    with pytest.raises(ValueError, match="means of points"):
        by_distance.inverse_transform(np.zeros((2, 2)))


LINEAR = {
    "precision": gc.PrecisionCoupling(),
    "ccpca": gc.CCPCA(perplexity=10, random_state=0),
    "connected": gc.CCPCA(perplexity=150, n_samples=2, random_state=0),
    "forces": gc.AttractionRepulsionPCA(random_state=0),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rows_of_linear_maps_do_not_depend_on_each_other_either(name, dtype, halves):
    X, X_new, *_ = halves
    fitted = LINEAR[name].fit(X.astype(dtype))
    new = X_new.astype(dtype)
    whole = fitted.transform(new)
    rng = np.random.default_rng(0)
    for _ in range(3):
        order = rng.permutation(len(new))
        parts = np.split(order, np.sort(rng.choice(np.arange(1, len(new)), 4, replace=False)))
        np.testing.assert_array_equal(np.vstack([fitted.transform(new[rows]) for rows in parts]), whole[order])


def test_places_learn_curvature():
    """After an update the inverse Hessian satisfies the secant equation, H y = s, and stays symmetric."""
    from graphcouple._numba.places import _update

    rng = np.random.default_rng(0)
    inverse, step = np.eye(3)[None] * np.ones((2, 1, 1)), rng.normal(size=3)
    change = step * rng.uniform(0.5, 2.0, size=3)
    _update(1, step, change, inverse)
    np.testing.assert_allclose(inverse[1] @ change, step, rtol=1e-12)
    np.testing.assert_allclose(inverse[1], inverse[1].T, rtol=1e-12)
    np.testing.assert_array_equal(inverse[0], np.eye(3))


def test_of_two_ends_the_lower_is_kept(iris, monkeypatch):
    losses = []

    def stay(fixed, edges, starts, rows, shortest, n_jobs):
        losses.append(np.random.default_rng(0).uniform(size=len(rows)))
        return starts, losses[-1]

    X, _ = iris
    tsne = gc.TSNE(random_state=0, max_iter=20, n_jobs=1).fit(X[::2])
    monkeypatch.setattr("graphcouple.optimize.placing._descend", stay)
    _, loss = tsne.transform(X[1::2] + 0.01, return_loss=True)
    np.testing.assert_array_equal(loss, losses[0].reshape(2, -1).min(axis=0))


def test_starts_are_beside_the_heaviest_ends(rng):
    for size in (1, 5, 40):
        weights, ends, starts = rng.integers(1, 6, size=size) / 5.0, rng.normal(size=(2, size)), np.empty((10, 1, 2))
        starts_at(0, 1, ends, np.array([0, size]), weights, 0.0, starts)
        heaviest = np.argsort(-weights, kind="stable")[np.minimum(np.arange(8), size - 1)]
        np.testing.assert_array_equal(starts[2:, 0], ends[:, heaviest].T)


def test_a_regressors_parameters_are_read_again(rng):
    X = rng.normal(size=(60, 4))
    fitted = gc.TSNE(perplexity=5, max_iter=20, random_state=0, transform_method=KNeighborsRegressor(1)).fit(X)
    np.testing.assert_allclose(fitted.transform(X[:5] + 1e-3), fitted.embedding_[:5])
    with pytest.warns(UserWarning, match="explains only 0.00 of the variance"):
        means = fitted.set_params(transform_method__n_neighbors=60).transform(X[:5])
    np.testing.assert_allclose(means, np.repeat(fitted.embedding_.mean(axis=0)[None], 5, axis=0), atol=1e-6)
