"""Maps that grow, points held or drawn to places, and embeddings laid over each other."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.neighbors import kneighbors_graph

import graphcouple as gc
from graphcouple.couplings import AnchorEnergy, Held
from graphcouple.optimize import LBFGS
from tests.extensions.term import ClassCohesion
from tests.reference import numerical_gradient, relative_error


@pytest.fixture(scope="module")
def digits():
    X, _ = gc.datasets.load("digits")
    return X[:400], X[400:460]


@pytest.mark.parametrize("method", [gc.TSNE(perplexity=10), gc.UMAP(n_neighbors=10)])
def test_old_rows_keep_every_byte_unless_all_move(digits, method):
    X, X_more = digits
    losses = {}
    for move in ("none", "new", "all"):
        fitted = method.set_params(random_state=0, max_iter=150).fit(X)
        before, places = fitted.embedding_.copy(), fitted.transform(X_more)
        assert fitted.update(X_more, move) is fitted
        assert fitted.embedding_.shape == (460, 2)
        assert fitted.posterior_.n_nodes == 460
        losses[move] = fitted.loss_
        if move == "none":
            np.testing.assert_array_equal(fitted.embedding_[400:], places)
        if move != "all":
            np.testing.assert_array_equal(fitted.embedding_[:400], before)
        np.testing.assert_array_equal(fitted.transform(X_more[:5]), fitted.embedding_[400:405])
    assert losses["all"] < losses["new"] < losses["none"]


def test_the_loss_after_an_update_is_that_of_all_points(digits):
    X, X_more = digits
    fitted = gc.TSNE(perplexity=10, random_state=0, max_iter=50).fit(X).update(X_more)
    posterior = gc.TSNE(perplexity=10).models(460)[0].posterior(np.vstack([X, X_more]))
    objective = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E"))
    assert fitted.loss_ == pytest.approx(objective.value(fitted.embedding_), rel=1e-9)


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_updates_of_sparse_points_and_what_cannot_be_updated(digits):
    X, X_more = digits
    fitted = gc.TSNE(perplexity=10, random_state=0, max_iter=30).fit(sp.csr_matrix(X))
    assert fitted.update(X_more).embedding_.shape == (460, 2)
    with pytest.raises(ValueError, match="'none', 'new' or 'all'"):
        fitted.update(X_more, move="old")
    with pytest.raises(ValueError, match=r"got 'ndarray'\. New points have no classes"):
        fitted.update(X_more, np.zeros(60))
    distances = np.abs(X[:, :1] - X[:, :1].T) + 1.0 - np.eye(400)
    by_distance = gc.TSNE(perplexity=10, metric="precomputed", random_state=0, max_iter=30).fit(distances)
    with pytest.raises(ValueError, match="distances between them"):
        by_distance.update(distances[:5])
    given = kneighbors_graph(X, 30, mode="distance")
    for perplexity in (10, (5, 10)):
        of_given = gc.TSNE(perplexity=perplexity, random_state=0, max_iter=1).fit(X, neighbors=given)
        with pytest.raises(ValueError, match="forget those that were given"):
            of_given.update(X_more)
    hierarchical = gc.HierarchicalCoupling(gc.TSNE(perplexity=10, max_iter=30), random_state=0).fit(X)
    before = hierarchical.embedding_.copy()
    np.testing.assert_array_equal(hierarchical.update(X_more).embedding_[:400], before)


@pytest.mark.parametrize("method", [gc.TSNE(perplexity=10), gc.UMAP(n_neighbors=10)])
def test_a_map_that_moves_keeps_its_size(method):
    X, _ = gc.datasets.load("iris")
    fitted = method.set_params(random_state=0).fit(X)
    before = fitted.embedding_.std()
    assert fitted.update(X[::15] + 0.05, move="all").embedding_.std() == pytest.approx(before, rel=0.2)


@pytest.mark.parametrize("move", ["none", "new", "all"])
def test_new_copies_share_a_place_if_rows_are_unique(move):
    X, _ = gc.datasets.load("iris")
    new = np.vstack([X[:3], X[3:4] + 1.0, X[3:4] + 1.0])
    fitted = gc.UMAP(unique=True, max_iter=50, random_state=0).fit(X).update(new, move=move)
    assert fitted.embedding_.shape == (155, 2)
    np.testing.assert_array_equal(fitted.embedding_[150:153], fitted.embedding_[:3])
    np.testing.assert_array_equal(fitted.embedding_[153], fitted.embedding_[154])
    weights = fitted.posterior_.node_weights
    # One pair of irises is equal, too.
    assert (len(weights), weights.sum(), weights[:3].tolist()) == (150, 155.0, [2.0, 2.0, 2.0])


def test_updates_that_descend_are_watched(digits):
    X, X_more = digits
    seen = []
    fitted = gc.TSNE(perplexity=10, random_state=0, max_iter=30, callback=lambda at, loss, Z: seen.append(len(Z)))
    fitted.fit(X).update(X_more, move="all")
    assert {400, 460} <= set(seen)


def test_a_point_with_several_places_is_drawn_to_each(rng):
    """Related rows of aligned maps may share a row, which is then drawn to the mean of its partners."""
    anchors = AnchorEnergy(4, np.array([0, 2, 0]), places := rng.normal(size=(3, 2)))
    Z = rng.normal(size=(4, 2))
    assert relative_error(anchors.gradient(Z), numerical_gradient(anchors.value, Z)) < 1e-6
    np.testing.assert_allclose(gc.solve(anchors, Z, LBFGS(), max_iter=50).Z[0], 0.5 * (places[0] + places[2]))
    assert anchors.curvature(Z) == 4.0


def test_held_points_stay_and_the_others_reach_the_minimum():
    X = np.random.default_rng(0).normal(size=(40, 4))
    objective = gc.CrossEntropy(
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X), gc.GraphModel(gc.Gaussian(), "D")
    )
    held = np.arange(40) < 30
    partly = Held(objective, held)
    start = X[:, :2].copy()
    solution = gc.solve(partly, start, LBFGS(), max_iter=500, settled_within=0.0)
    np.testing.assert_array_equal(solution.Z[held], start[held])
    gradient = objective.gradient(solution.Z)
    assert np.abs(gradient[~held]).max() < 1e-4
    assert np.abs(gradient[held]).max() > 1e-2
    assert not partly.gradient(start)[held].any()
    exaggerated = partly.exaggerated(2.0).gradient(start)
    np.testing.assert_array_equal(exaggerated[~held], objective.exaggerated(2.0).gradient(start)[~held])


def test_anchors_are_a_term_like_any_other(digits):
    rng = np.random.default_rng(0)
    places = rng.normal(size=(3, 2))
    energy = AnchorEnergy(10, np.array([1, 4, 7]), places)
    Z = rng.normal(size=(10, 2))
    assert energy.value(Z) == pytest.approx(((Z[[1, 4, 7]] - places) ** 2).sum())
    value, gradient = energy.value_and_grad(Z)
    assert value == energy.value(Z)
    assert relative_error(gradient, numerical_gradient(energy.value, Z)) < 1e-6
    X = digits[0]
    plain = gc.TSNE(perplexity=10, random_state=0).fit(X)
    wanted = np.array([[-30.0, 0.0], [30.0, 0.0], [0.0, 40.0], [0.0, -40.0]])
    weak, strong = (
        gc.TSNE(perplexity=10, random_state=0, terms=[gc.Anchors([0, 100, 200, 300], wanted, weight)]).fit(X)
        for weight in (1e-6, 10.0)
    )
    distances = [np.abs(fitted.embedding_[[0, 100, 200, 300]] - wanted).max() for fitted in (weak, strong)]
    assert distances[1] < 0.5 < distances[0]
    # The rest arranges itself as well as it can.
    assert strong.coupling_loss_ - plain.loss_ < 0.02 * abs(plain.loss_)
    assert str(gc.Anchors([0, 3], np.zeros((2, 2)), 2.0)) == "2 × 2 anchors"


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (([0.5], [[0, 0]]), TypeError, "row numbers"),
        (([0, 0], [[0, 0], [1, 1]]), ValueError, "twice"),
        (([0], [[0, 0], [1, 1]]), ValueError, "rows"),
        (([0], [[0, np.nan]]), ValueError, "NaN"),
        (([0], [[0, 0]], 0.0), ValueError, "weight"),
    ],
)
def test_anchors_that_make_no_sense_say_why(arguments, error, match):
    with pytest.raises(error, match=match):
        gc.Anchors(*arguments)


def test_anchors_that_do_not_fit_the_embedding_say_why(digits):
    for anchors, match in ((gc.Anchors([400], [[0, 0]]), "row 400"), (gc.Anchors([0], [[0]]), "n_components=2")):
        with pytest.raises(ValueError, match=match):
            gc.TSNE(perplexity=10, terms=[anchors]).fit(digits[0])


def test_align_undoes_a_turn_a_reflection_and_a_shift():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(30, 3))
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    for reflect in (1.0, -1.0):
        moved = 2.0 * (Z * [reflect, 1, 1]) @ turn + rng.normal(size=3)
        for unit in (1.0, 1e-170, 1e155):
            np.testing.assert_allclose(gc.align(unit * moved, to=Z, scale=True), Z, atol=1e-12)
        aligned = gc.align(moved, to=Z)
        np.testing.assert_allclose(pdist(aligned), pdist(moved))
    shared = (np.arange(10, 30), np.arange(20))
    np.testing.assert_allclose(gc.align(Z, to=Z[10:] + 1.0, shared=shared), Z + 1.0)
    # Rows in one place have no scale.
    copies = gc.align(Z, to=Z, shared=(np.full(14, 3), np.arange(14)), scale=True)
    np.testing.assert_allclose(pdist(copies), pdist(Z), rtol=1e-9)
    nearly = np.vstack([Z[:1] + 1e-16 * Z, Z])
    onto = gc.align(Z, to=nearly, shared=(np.arange(14), np.arange(14)), scale=True)
    np.testing.assert_allclose(pdist(onto), pdist(Z), rtol=1e-9)
    np.testing.assert_allclose(gc.align(Z, to=Z[:10] - 2.0, shared=10), Z - 2.0)
    # No turn found by search is better.
    noisy = Z @ turn + 0.3 * rng.normal(size=Z.shape)
    best = np.square(gc.align(noisy, to=Z) - Z).sum()
    for _ in range(200):
        other = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        assert np.square((noisy - noisy.mean(0)) @ other + Z.mean(0) - Z).sum() >= best


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((np.zeros((3, 2)), np.zeros((4, 2))), ValueError, "shared="),
        ((np.zeros((3, 2)), np.zeros((3, 3))), ValueError, "dimensions"),
        ((np.zeros((3, 2)), np.zeros((3, 2)), [5]), ValueError, "row 5"),
        ((np.zeros((3, 2)), np.zeros((3, 2)), [0.5]), TypeError, "row numbers"),
        ((np.zeros((3, 2)), np.zeros((3, 2)), 0), ValueError, "at least one"),
    ],
)
def test_align_says_what_does_not_fit(arguments, error, match):
    with pytest.raises(error, match=match):
        gc.align(*arguments)


def test_an_update_that_fails_leaves_the_estimator_as_it_was():
    X = np.random.default_rng(0).normal(size=(40, 3))
    method = gc.TSNE(perplexity=5, unique=True, max_iter=50, random_state=0).fit(np.vstack([X, X[:5]]))
    placed = method.transform(X[:3] + 0.1)
    method.set_params(terms=[gc.SpectralContraction(n_clusters=2)])
    with pytest.raises(ValueError, match="takes no sample weights"):
        method.update(X[:5] + 0.3, sample_weight=np.ones(5))
    np.testing.assert_array_equal(method.transform(X[:3] + 0.1), placed)


def test_terms_get_the_classes_of_fit_or_none_never_codes_of_them(rng):
    """The law keeps codes of classes for an update; a term that is about class 20 would take them for its own."""
    X, y = rng.normal(size=(60, 4)), rng.choice([10, 20, 30], size=60)
    law = gc.TSNE(perplexity=5, target_weight=0.5, max_iter=5, random_state=0, terms=[ClassCohesion()])
    fitted = law.fit(X[:50], y[:50])
    with pytest.raises(ValueError, match="ClassCohesion needs labels"):
        fitted.update(X[50:])
    plain = gc.TSNE(perplexity=5, target_weight=0.5, max_iter=5, random_state=0).fit(X[:50], y[:50])
    codes = [list(dict.fromkeys(y[:50][np.argsort(y[:50])])).index(label) for label in y[:50]]
    wanted = plain.sentence.input.posterior(X, y=np.append(codes, np.full(10, -1))).mean()
    np.testing.assert_allclose(plain.update(X[50:]).posterior_.mean(), wanted, rtol=1e-9)
