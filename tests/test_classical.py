"""The classical methods: against scikit-learn, against each other, and on graphs and points that are hard for them."""

import warnings

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import subspace_angles
from scipy.optimize import minimize
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist
from sklearn import manifold
from sklearn.base import clone
from sklearn.datasets import make_swiss_roll
from sklearn.decomposition import PCA
from sklearn.decomposition import KernelPCA as ScikitKernelPCA
from sklearn.utils import get_tags

import graphcouple as gc
from graphcouple.initializations import initialize
from graphcouple.spectral import GramMatrix, GraphLaplacian
from tests.reference import angle

RNG = np.random.default_rng(0)
ROLL, ALONG = make_swiss_roll(1000, random_state=0)
ROLL_NEW = make_swiss_roll(100, random_state=1)[0]


@pytest.mark.parametrize("data", ["roll", pytest.param("digits", marks=pytest.mark.nightly)])
def test_same_subspace_as_scikit_learn(data, digits):
    X = ROLL if data == "roll" else digits[0]
    ours = gc.Isomap(n_neighbors=10).fit_transform(X)
    assert angle(ours, manifold.Isomap(n_neighbors=10, eigen_solver="dense").fit_transform(X)) < 1e-6
    ours = gc.LocallyLinearEmbedding(n_neighbors=10).fit_transform(X)
    theirs = manifold.LocallyLinearEmbedding(n_neighbors=10, eigen_solver="dense").fit_transform(X)
    assert angle(ours, theirs) < 1e-6
    for kernel, params in (("rbf", {"gamma": 0.01}), ("poly", {"degree": 2}), ("cosine", None)):
        ours = gc.KernelPCA(kernel=kernel, kernel_params=params).fit_transform(X)
        theirs = ScikitKernelPCA(2, kernel=kernel, eigen_solver="dense", **(params or {})).fit_transform(X)
        assert angle(ours, theirs) < 1e-6
        np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=1e-6, atol=1e-8 * np.abs(theirs).max())
    eigenmaps = gc.LaplacianEigenmaps(perplexity=8, n_neighbors=25).fit(X)
    means = eigenmaps.posterior_.mean()
    theirs = manifold.SpectralEmbedding(2, affinity="precomputed", random_state=0, eigen_tol=1e-12)
    # Eigenmaps weigh points by degree, so that the spans themselves are compared.
    assert subspace_angles(eigenmaps.embedding_, theirs.fit_transform((means + means.T).toarray())).max() < 1e-6


def test_one_method_is_another(digits):
    X = digits[0][:400]
    scores = PCA(3, svd_solver="full").fit_transform(X)
    for method in (gc.ClassicalMDS(3), gc.KernelPCA(3), gc.LinearAutoencoder(3)):
        np.testing.assert_allclose(np.abs(method.fit_transform(X)), np.abs(scores), rtol=1e-8, atol=1e-8)
    by_pairs = gc.ClassicalMDS(3, metric="precomputed").fit_transform(cdist(X, X))
    np.testing.assert_allclose(np.abs(by_pairs), np.abs(scores), rtol=1e-6, atol=1e-6)
    isomap = gc.Isomap(3, n_neighbors=14).fit(X)
    kernel = -0.5 * np.square(isomap.geodesics_)
    by_kernel = gc.KernelPCA(3, kernel="precomputed").fit_transform(0.5 * (kernel + kernel.T))
    np.testing.assert_allclose(np.abs(by_kernel), np.abs(isomap.embedding_), rtol=1e-6, atol=1e-6)
    by_law = gc.KernelPCA(kernel=gc.Gaussian()).fit_transform(X / 10)
    assert angle(by_law, gc.KernelPCA(kernel="rbf", kernel_params={"gamma": 0.5}).fit_transform(X / 10)) < 1e-8


@pytest.mark.parametrize("alpha", [0.0, 4.0])
def test_the_autoencoder_is_the_one_that_training_finds(alpha):
    X = RNG.normal(size=(40, 6)) * np.array([5.0, 4.0, 3.0, 1.0, 1.0, 0.5])
    centred = X - X.mean(axis=0)

    def loss(weights):
        E, D = weights[:12].reshape(6, 2), weights[12:].reshape(2, 6)
        residual = centred @ E @ D - centred
        value = np.square(residual).sum() + alpha * np.square(weights).sum()
        grad_E, grad_D = 2 * centred.T @ residual @ D.T, 2 * (centred @ E).T @ residual
        return value, np.concatenate([grad_E.ravel(), grad_D.ravel()]) + 2 * alpha * weights

    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-15, "gtol": 1e-9}
    trained = minimize(loss, RNG.normal(size=24), jac=True, method="L-BFGS-B", options=options)
    ours = gc.LinearAutoencoder(alpha=alpha).fit(X)
    assert ours.loss_ == pytest.approx(trained.fun, rel=1e-8)
    again = ours.inverse_transform(ours.embedding_)
    assert np.square(again - X).sum() == pytest.approx(ours.reconstruction_error_, rel=1e-8)
    assert angle(ours.embedding_, centred @ trained.x[:12].reshape(6, 2)) < 1e-5
    strong = gc.LinearAutoencoder(alpha=1e6).fit(X)
    assert np.abs(strong.embedding_).max() == 0
    assert strong.loss_ == pytest.approx(np.square(centred).sum())


def test_eigenmaps_are_the_attraction_of_a_gaussian_under_a_constraint():
    X = RNG.normal(size=(60, 4))
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8)).posterior(X)
    eigenmaps = gc.LaplacianEigenmaps(input=posterior, normalized=False).fit(X)
    Z, means = eigenmaps.embedding_, np.asarray(posterior.mean())

    def attraction(Z):
        pairs = np.square(Z[:, None] - Z).sum(axis=-1)
        return -float((means * gc.Gaussian().log(pairs)).sum())

    L = np.diag((means + means.T).sum(axis=0)) - means - means.T
    assert attraction(Z) == pytest.approx(0.5 * np.trace(Z.T @ L @ Z), rel=1e-10)
    coupling = gc.CrossEntropy(posterior, gc.GraphModel(gc.Gaussian(), "D"))
    partition = np.log(np.exp(-0.5 * cdist(Z, Z, "sqeuclidean")).sum(axis=1) - 1).sum()
    assert coupling.value(Z) == pytest.approx(attraction(Z) + partition, rel=1e-10)
    np.testing.assert_allclose(Z.T @ Z / 60, np.eye(2), atol=1e-9)
    np.testing.assert_allclose(eigenmaps.eigenvalues_, np.linalg.eigvalsh(L)[1:3], rtol=1e-8)
    for _ in range(20):
        other = np.linalg.qr(np.column_stack([np.ones(60), Z + 0.3 * RNG.normal(size=Z.shape)]))[0][:, 1:] * 60**0.5
        assert attraction(other) > attraction(Z)


@pytest.mark.parametrize("normalized", [True, False])
def test_eigenmaps_solve_their_equation(normalized):
    found = gc.LaplacianEigenmaps(3, perplexity=8, n_neighbors=20, normalized=normalized).fit(ROLL)
    laplacian = gc.spectral.graph_laplacian(found.posterior_, normalized)
    L = sp.diags_array(laplacian.degrees) - laplacian.affinity
    Z, mass = found.embedding_, laplacian.mass
    np.testing.assert_allclose(L @ Z, (mass[:, None] * Z) * found.eigenvalues_, atol=1e-8 * laplacian.degrees.max())
    np.testing.assert_allclose((mass[:, None] * Z).T @ Z / mass.sum(), np.eye(3), atol=1e-8)
    np.testing.assert_allclose(mass @ Z / mass.sum(), 0, atol=1e-8)


def test_the_spectral_start_is_eigenmaps():
    for X in (ROLL, np.concatenate([ROLL[:200], ROLL[200:500] + 1e4])):
        law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8), 20)
        start = initialize("spectral", X, law.posterior(X), 2, np.random.RandomState(0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            wanted = gc.LaplacianEigenmaps(input=law, tol=1e-4).fit_transform(X)
        np.testing.assert_allclose(start, wanted / wanted[:, 0].std(), rtol=1e-7, atol=1e-9)


@pytest.mark.filterwarnings(r"ignore:all \d+ rows of X are equal")
def test_your_own_graph():
    ring = nx.cycle_graph(50)
    found = gc.LaplacianEigenmaps(input=ring).fit()
    np.testing.assert_allclose(np.linalg.norm(found.embedding_, axis=1), 2**0.5, rtol=1e-6)
    np.testing.assert_allclose(found.eigenvalues_, 1 - np.cos(2 * np.pi / 50), rtol=1e-6)
    with pytest.raises(ValueError, match="how new points are linked"):
        found.transform(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="must match"):
        gc.LaplacianEigenmaps(input=ring).fit(np.zeros((40, 2)))


STARTS = {
    "eigenmaps": gc.LaplacianEigenmaps(perplexity=8),
    "isomap": gc.Isomap(n_neighbors=8),
    "lle": gc.LocallyLinearEmbedding(n_neighbors=8),
    "mds": gc.ClassicalMDS(metric="manhattan"),
    "stress": gc.MetricMDS(random_state=0),
    "kernel pca": gc.KernelPCA(kernel="rbf"),
    "autoencoder": gc.LinearAutoencoder(),
}


@pytest.mark.parametrize("name", STARTS)
def test_each_starts_a_coupling(name):
    X = ROLL[:300]
    started = gc.TSNE(perplexity=8, init=STARTS[name], max_iter=1, early_exaggeration=1.0, random_state=0).fit(X)
    # After one step, the map is still the start, at another scale.
    assert procrustes(started.embedding_, clone(STARTS[name]).fit_transform(X))[2] < 0.05


FAR = np.concatenate([ROLL[:300], ROLL[300:800] + 1000.0, ROLL[800:803] - 1000.0])
PARTS = (slice(0, 300), slice(300, 800))
DISCONNECTED = {
    "eigenmaps": gc.LaplacianEigenmaps(perplexity=8, n_neighbors=15),
    "lle": gc.LocallyLinearEmbedding(n_neighbors=15),
    "isomap": gc.Isomap(n_neighbors=15),
}


@pytest.mark.parametrize("name", DISCONNECTED)
def test_components_are_embedded_each_by_itself(name):
    method = DISCONNECTED[name]
    far = FAR[:800]
    with pytest.warns(UserWarning, match="2 connected components"):
        found = method.fit(far)
    assert np.array_equal(found.component_labels_, np.repeat([0, 1], [300, 500]))
    Z = found.embedding_
    for part in PARTS:
        alone = clone(method).fit(far[part])
        assert procrustes(Z[part], alone.embedding_)[2] < 1e-9
    centres = np.array([Z[part].mean(axis=0) for part in PARTS])
    spread = max(Z[part].std() for part in PARTS)
    assert np.linalg.norm(centres[0] - centres[1]) > 2 * spread
    # New points go with the component they are near to.
    new = found.transform(np.concatenate([ROLL_NEW, ROLL_NEW + 1000.0]))
    nearest = cdist(new, Z).argmin(axis=1)
    assert (found.component_labels_[nearest] == np.repeat([0, 1], 100)).mean() > 0.98
    if name == "isomap":
        # Components further apart than wide lie as far apart as their means.
        means = np.array([far[part].mean(axis=0) for part in PARTS])
        assert np.linalg.norm(centres[0] - centres[1]) == pytest.approx(np.linalg.norm(means[0] - means[1]), rel=1e-3)


@pytest.mark.filterwarnings("ignore:perplexity=")
@pytest.mark.parametrize("name", DISCONNECTED)
def test_copies_stay_together_and_tiny_components_have_a_place(name):
    X = np.concatenate([ROLL[:200], np.repeat(ROLL[:1] + 500.0, 40, axis=0)])
    with pytest.warns(UserWarning, match="connected components"):
        Z = clone(DISCONNECTED[name]).fit_transform(X)
    assert np.isfinite(Z).all()
    assert np.ptp(Z[200:], axis=0).max() < 1e-9 * np.ptp(Z, axis=0).max()
    assert np.ptp(Z[:200], axis=0).min() > 0
    corners = np.eye(8)[np.arange(80) % 8]
    with pytest.warns(UserWarning, match="8 connected components"):
        Z = clone(DISCONNECTED[name]).set_params(n_neighbors=9).fit_transform(corners)
    assert len(np.unique(Z.round(9), axis=0)) == 8
    pairs = sp.csr_array(np.kron(np.eye(10), [[0, 1], [1, 0]]))
    with pytest.warns(UserWarning, match="10 connected components"):
        Z = gc.LaplacianEigenmaps(3, input=pairs).fit_transform(None)
    assert len(np.unique(Z.round(9), axis=0)) == 20


TRANSFORMS = {
    "mds": gc.ClassicalMDS(),
    "manhattan": gc.ClassicalMDS(metric="manhattan"),
    "kernel": gc.KernelPCA(kernel="rbf", kernel_params={"gamma": 0.01}),
    "isomap": gc.Isomap(n_neighbors=10),
    "lle": gc.LocallyLinearEmbedding(n_neighbors=10),
    "eigenmaps": gc.LaplacianEigenmaps(perplexity=8, n_neighbors=20),
    "plain": gc.LaplacianEigenmaps(perplexity=8, n_neighbors=20, normalized=False),
    "phate": gc.PHATE(perplexity=8, n_neighbors=20),
    "diffusion": gc.DiffusionMaps(perplexity=8, n_neighbors=20, t=5),
    "autoencoder": gc.LinearAutoencoder(),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_new_points_lie_between_fitted_ones(name):
    method = clone(TRANSFORMS[name]).fit(ROLL)
    np.testing.assert_allclose(method.transform(ROLL), method.embedding_, rtol=1e-5, atol=1e-6)
    Z = method.transform(ROLL_NEW)
    np.testing.assert_array_equal(method.transform(ROLL_NEW[40:60]), Z[40:60])
    if name == "lle":
        # With a tenth more points its eigenvectors, of eigenvalues below 1e-8, are others.
        return
    again = clone(method).fit(np.concatenate([ROLL, ROLL_NEW])).embedding_
    # A fit to all points puts the new ones at nearly the same places.
    both = np.concatenate([method.embedding_, Z])
    assert procrustes(both, again)[2] < 0.02


def test_new_points_as_scikit_learn_places_them():
    ours = gc.KernelPCA(kernel="rbf", kernel_params={"gamma": 0.01}).fit(ROLL).transform(ROLL_NEW)
    theirs = ScikitKernelPCA(2, kernel="rbf", gamma=0.01, eigen_solver="dense").fit(ROLL).transform(ROLL_NEW)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=1e-6, atol=1e-7)
    ours = gc.Isomap(n_neighbors=10).fit(ROLL).transform(ROLL_NEW)
    theirs = manifold.Isomap(n_neighbors=10, eigen_solver="dense").fit(ROLL).transform(ROLL_NEW)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=1e-6, atol=1e-5)
    ours = gc.LocallyLinearEmbedding(n_neighbors=10).fit(ROLL)
    theirs = manifold.LocallyLinearEmbedding(n_neighbors=10, eigen_solver="dense").fit(ROLL)
    Z, wanted = ours.transform(ROLL_NEW), theirs.transform(ROLL_NEW)
    np.testing.assert_allclose(np.abs(Z), np.abs(wanted) * 1000**0.5, rtol=1e-4, atol=1e-4)


def test_the_formula_for_new_points_of_eigenmaps():
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8), 20)
    method = gc.LaplacianEigenmaps(input=law).fit(ROLL)
    edges = law.new_edges(ROLL, ROLL_NEW)
    wanted = (edges @ method.embedding_) / (1 - method.eigenvalues_)
    np.testing.assert_allclose(method.transform(ROLL_NEW), wanted, rtol=1e-8, atol=1e-10)


def test_landmarks():
    plane = RNG.normal(size=(300, 2)) @ np.linalg.qr(RNG.normal(size=(5, 5)))[0][:2]
    distances = cdist(plane, plane)
    for metric, X in (("precomputed", distances), (lambda a, b: np.linalg.norm(a - b), plane)):
        by_few = gc.ClassicalMDS(n_landmarks=20, random_state=0, metric=metric).fit(X)
        # Distances in a plane are known from any three points of it.
        assert procrustes(by_few.embedding_, PCA(2).fit_transform(plane))[2] < 1e-9
        assert by_few.landmarks_.size <= 20
    few = gc.Isomap(n_neighbors=10, n_landmarks=100, random_state=0).fit(ROLL)
    assert few.geodesics_.shape[0] == few.landmarks_.size <= 130
    assert procrustes(few.embedding_, gc.Isomap(n_neighbors=10).fit_transform(ROLL))[2] < 0.01
    with pytest.warns(UserWarning, match="3 connected components"):
        parts = gc.Isomap(n_neighbors=8, n_landmarks=50, random_state=0).fit(np.concatenate([FAR[:800], FAR[:9] - 1e3]))
    # Every component has landmarks enough to place its other points.
    assert np.ptp(parts.embedding_[800:], axis=0).min() > 0
    assert (np.bincount(parts.component_labels_[parts.landmarks_]) >= 9).all()


def test_bad_input_is_told():
    X = ROLL[:50]
    cases = [
        (gc.ClassicalMDS(50), X, "n_components=50 must be below n_samples"),
        (gc.ClassicalMDS(metric="precomputed"), X, "square"),
        (gc.ClassicalMDS(metric="precomputed"), -cdist(X, X), "negative"),
        (gc.ClassicalMDS(metric="precomputed"), cdist(X, X) + 1, "diagonal"),
        (gc.ClassicalMDS(metric="precomputed"), np.triu(cdist(X, X)), "symmetric"),
        (gc.ClassicalMDS(metric="precomputed"), sp.csr_array(cdist(X, X)), "Isomap"),
        (gc.KernelPCA(kernel=gc.Student(), kernel_params={"gamma": 1}), X, "has its own"),
        (gc.LaplacianEigenmaps(input=sp.csr_array(-np.ones((50, 50)))), X, "at least 0"),
        (gc.LaplacianEigenmaps(49), X[:40], "n_components=49 must be below"),
        (gc.LinearAutoencoder(4), X, "at most"),
    ]
    for method, given, message in cases:
        with pytest.raises(ValueError, match=message):
            method.fit(given)
    for method in (gc.Isomap(n_neighbors=80), gc.LocallyLinearEmbedding(n_neighbors=80)):
        with pytest.warns(UserWarning, match="n_neighbors=80 is lowered to 49"):
            method.fit(X)
    with pytest.raises(ValueError, match="symmetric"):
        GraphLaplacian(np.triu(np.ones((4, 4))))
    with pytest.raises(ValueError, match="2 columns"):
        gc.LinearAutoencoder().fit(X).inverse_transform(np.zeros((3, 3)))


def test_missing_directions_are_told():
    line = np.linspace(0, 1, 30)[:, None] * np.ones((1, 3))
    for method in (gc.ClassicalMDS(), gc.KernelPCA(), gc.Isomap(n_neighbors=3)):
        with pytest.warns(UserWarning, match="only 1 of n_components=2"):
            Z = method.fit_transform(line)
        assert (Z[:, 1] == 0).all()
        assert np.ptp(Z[:, 0]) == pytest.approx(3**0.5)
    # Distances on a star of four rays have no Euclidean embedding; what is left out has negative eigenvalues.
    star = 2.0 * (np.ones((4, 4)) - np.eye(4))
    whole = np.pad(star, (0, 1), constant_values=1.0)
    whole[-1, -1] = 0.0
    values = GramMatrix.of_distances(whole).placement(5).eigenvalues
    assert values[-1] < -0.1
    with pytest.warns(UserWarning, match="only 3 of n_components=4"):
        gc.ClassicalMDS(4, metric="precomputed").fit(whole)


def test_components_with_few_nodes_are_saved(tmp_path):
    X = np.repeat(100.0 * np.arange(5), 4)[:, None] + np.random.default_rng(0).normal(size=(20, 3))
    with pytest.warns(UserWarning, match="components"):
        method = gc.DiffusionMaps(5, n_neighbors=2, perplexity=1.5).fit(X)
    assert method.eigenvalues_.shape == (3,)
    method.save(tmp_path / "m.gc")
    np.testing.assert_array_equal(gc.load(tmp_path / "m.gc").embedding_, method.embedding_)


def test_parameters_of_the_linear_kernel_and_starts_of_another_size_are_refused():
    X = np.random.default_rng(0).normal(size=(20, 3))
    for method in (gc.KernelPCA, gc.AttractionRepulsionPCA):
        with pytest.raises(ValueError, match="has no parameters"):
            method(kernel_params={"gamma": 1.0}).fit(X)
    with pytest.raises(ValueError, match="init has 3 columns, but n_components=2"):
        gc.AttractionRepulsionPCA(init=X).fit(X)


@pytest.mark.parametrize(
    "method",
    [
        gc.DensMAP(gc.UMAP(metric="precomputed")),
        gc.Isomap(metric="precomputed"),
        gc.LaplacianEigenmaps(metric="precomputed"),
        gc.KernelPCA(kernel="precomputed"),
        gc.MetricMDS(metric="precomputed"),
    ],
)
def test_numbers_of_pairs_are_split_on_both_axes(method):
    assert get_tags(method).input_tags.pairwise
    assert method.takes_distances
    assert not get_tags(type(method)()).input_tags.pairwise
