"""Landmarks, which a method is fitted to in place of all points, and regressors for new points."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import MiniBatchKMeans
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.metrics import pairwise_distances, r2_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import graphcouple as gc
from graphcouple.estimators.regressors import trained_regressor
from graphcouple.estimators.rows import nearest_to_means

DIGITS, LABELS = gc.datasets.load("digits")
X, Y = DIGITS[:600], LABELS[:600]


@pytest.mark.parametrize(
    "method", [gc.TSNE(max_iter=200), gc.UMAP(max_iter=200), gc.LaptSNE(max_iter=100, n_clusters=9)]
)
def test_landmarks_are_fitted_and_the_others_placed(method):
    fitted = method.set_params(n_landmarks=150, random_state=0).fit(X)
    rows = fitted.landmarks_
    assert 100 < len(rows) <= 150
    assert (np.diff(rows) > 0).all()
    assert fitted.posterior_.n_nodes == len(rows)
    assert fitted.embedding_.shape == (600, 2)
    alone = type(method)(**{**method.get_params(deep=False), "n_landmarks": None, "random_state": 0})
    others = np.setdiff1d(np.arange(600), rows)
    np.testing.assert_array_equal(fitted.embedding_[others], fitted.transform(X[others]))
    np.testing.assert_array_equal(fitted.embedding_[rows], fitted.transform(X[rows]))
    assert alone.fit(X[rows]).loss_ == pytest.approx(fitted.loss_, rel=0.05)
    assert gc.metrics.knn_accuracy(fitted.embedding_, Y, 5) > 0.8


def test_landmarks_are_the_points_nearest_to_the_centres():
    rows = nearest_to_means(X, 50, np.random.RandomState(3))
    means = MiniBatchKMeans(50, batch_size=1024, n_init=1, init="random", random_state=np.random.RandomState(3)).fit(X)
    np.testing.assert_array_equal(rows, np.unique(pairwise_distances(means.cluster_centers_, X).argmin(axis=1)))
    assert len(nearest_to_means(sp.csr_matrix(X), 50, np.random.RandomState(3))) > 30


def test_as_many_landmarks_as_points_fit_all():
    plain, whole = (gc.TSNE(max_iter=50, random_state=0, n_landmarks=n).fit(X[:80]) for n in (None, 80))
    assert whole.landmarks_ is None
    np.testing.assert_array_equal(plain.embedding_, whole.embedding_)


def test_what_names_rows_refuses_landmarks():
    anchors = gc.Anchors([0], [[0.0, 0.0]])
    with pytest.raises(ValueError, match="n_landmarks=50 fits some rows only"):
        gc.TSNE(n_landmarks=50, terms=[anchors]).fit(X)
    with pytest.raises(ValueError, match="n_landmarks=50 fits some rows only"):
        gc.TSNE(n_landmarks=50, metric="precomputed").fit(pairwise_distances(X))
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(100,\)"):
        gc.TSNE(n_landmarks=50, perplexity=10).fit(X[:100], sample_weight=np.ones(60))
    with pytest.raises(ValueError, match="init has 60 rows, but the graph has 100 nodes"):
        gc.TSNE(n_landmarks=50, perplexity=10, init=np.ones((60, 2))).fit(X[:100])
    fitted = gc.TSNE(n_landmarks=50, perplexity=10, max_iter=20, random_state=0).fit(X[:100])
    with pytest.raises(ValueError, match="points that are not landmarks"):
        fitted.update(X[100:110])
    weights = 1.0 - 6.0 * (np.arange(100) == np.setdiff1d(np.arange(100), fitted.landmarks_)[0])
    with pytest.raises(ValueError, match="sample_weight must be finite and above 0, got -5"):
        gc.TSNE(n_landmarks=50, perplexity=10, random_state=0).fit(X[:100], sample_weight=weights)
    weighted = gc.TSNE(n_landmarks=50, perplexity=10, max_iter=20, random_state=0)
    assert (
        weighted.fit(X[:100], sample_weight=np.full(100, 2.0)).posterior_.node_weights.shape == fitted.landmarks_.shape
    )


@pytest.mark.parametrize("method", ["mlp", LinearRegression()], ids=["mlp", "linear"])
def test_regressors_place_new_points(method, tmp_path):
    tsne = gc.TSNE(max_iter=100, transform_method=method, random_state=0).fit(X)
    places = tsne.transform(DIGITS[600:650])
    if method == "mlp":
        np.testing.assert_array_equal(tsne.transform(DIGITS[600:650]), places)
        near = gc.metrics.knn_accuracy(np.vstack([tsne.embedding_, places]), LABELS[:650], 5)
        assert near > 0.8
        tsne.save(tmp_path / "mlp.gc")
        np.testing.assert_array_equal(gc.load(tmp_path / "mlp.gc").transform(DIGITS[600:650]), places)
    else:
        np.testing.assert_allclose(places, LinearRegression().fit(X, tsne.embedding_).predict(DIGITS[600:650]))
    with pytest.raises(ValueError, match="only places by the law have a loss"):
        tsne.transform(DIGITS[600:650], return_loss=True)


def test_a_regressor_is_the_one_of_the_method_and_seed_at_hand(tmp_path):
    tsne = gc.TSNE(max_iter=5, transform_method=LinearRegression()).fit(X[:60])
    tsne.transform(X[60:62])
    tsne.set_params(transform_method="mlp").save(tmp_path / "mlp.gc")
    places = tsne.transform(X[60:62])
    np.testing.assert_array_equal(gc.load(tmp_path / "mlp.gc").transform(X[60:62]), places)


def test_a_regressor_without_a_seed_gets_the_methods_own(tmp_path):
    tsne = gc.TSNE(max_iter=5, transform_method=RandomForestRegressor(5), random_state=0).fit(X[:60])
    places = tsne.transform(X[60:80])
    tsne.save(tmp_path / "forest.gc")
    loaded = gc.load(tmp_path / "forest.gc", classes=[RandomForestRegressor])
    np.testing.assert_array_equal(loaded.transform(X[60:80]), places)


def test_landmarks_without_a_class_have_none():
    """NumPy turns a list of words and NaN into words, of which "nan" would be one class."""
    y = [str(label) if row % 2 else np.nan for row, label in enumerate(LABELS[:100])]
    umap = gc.UMAP(n_landmarks=60, n_neighbors=8, target_weight=0.5, max_iter=5, random_state=0)
    fitted = umap.fit(X[:100], y)
    assert np.array_equal(fitted._given.labels == -1, fitted.landmarks_ % 2 == 0)


def test_the_network_has_the_papers_layers():
    tsne = gc.TSNE(max_iter=20, transform_method="mlp", random_state=0).fit(X[:100])
    tsne.transform(X[:2])
    network = tsne._regressor[1].regressor_.steps[-1][1]
    assert network.hidden_layer_sizes == (42, 32, 21, 12)
    assert network.activation == "relu"


def test_the_network_learns_maps_of_few_columns_and_of_any_offset():
    few = gc.datasets.load("iris")[0]
    for points, seed in ((few, 1), (few, 2), (X + 1000.0, 0)):
        tsne = gc.TSNE(max_iter=100, transform_method="mlp", random_state=seed).fit(points[::2])
        assert r2_score(tsne.embedding_, tsne.transform(points[::2])) > 0.9
    np.testing.assert_array_equal(tsne.transform(sp.csr_matrix(points[:5])), tsne.transform(points[:5]))


def test_regressors_of_one_number_and_bad_ones():
    few = gc.datasets.load("iris")[0]
    umap = gc.UMAP(max_iter=30, transform_method=SVR(), random_state=0).fit(few)
    wanted = np.column_stack([SVR().fit(few, column).predict(few[:5]) for column in umap.embedding_.T])
    np.testing.assert_allclose(umap.transform(few[:5]), wanted, rtol=1e-6)
    with pytest.raises(TypeError, match=r"transform_method=KNeighborsClassifier\(\) predicts classes"):
        umap.set_params(transform_method=KNeighborsClassifier()).transform(few)
    with pytest.warns(UserWarning, match=r"transform_method=DummyRegressor\(\) explains only 0.00"):
        umap.set_params(transform_method=DummyRegressor()).transform(few)


def test_far_places_do_not_hide_that_a_regressor_confuses_the_rest(rng):
    X = rng.normal(size=(200, 3))
    far = np.r_[X[:195], X[195:] + 1000.0]
    tree = DecisionTreeRegressor(max_depth=1)
    with pytest.warns(UserWarning, match="of the fitted places that are not far away"):
        trained_regressor(tree, far, far[:, :2], 0)
    assert r2_score(far[:, :2], tree.fit(far, far[:, :2]).predict(far)) > 0.99
    # Places that are one but for rounding, and one far place.
    speck = np.r_[np.repeat(X[:1], 57, axis=0) + 1e-9 * X[:57], X[:3] + 5.0][:, :2]
    trained_regressor(LinearRegression(), np.r_[X[:57], X[57:60] + 5.0], speck, 0)
    # Clusters are no far rows: a regressor that tells them apart explains the map.
    clusters = 0.1 * X + 10.0 * np.repeat(np.eye(3), [120, 50, 30], axis=0)
    trained_regressor(DecisionTreeRegressor(max_depth=2), clusters, clusters[:, :2], 0)


def test_landmarks_survive_a_file(tmp_path):
    fitted = gc.TSNE(n_landmarks=60, perplexity=10, max_iter=50, random_state=0).fit(X[:200])
    fitted.save(tmp_path / "some.gc")
    again = gc.load(tmp_path / "some.gc")
    np.testing.assert_array_equal(again.landmarks_, fitted.landmarks_)
    np.testing.assert_array_equal(again.transform(X[200:220]), fitted.transform(X[200:220]))


def test_a_failed_fit_leaves_the_earlier_one():
    tsne = gc.TSNE(n_landmarks=60, max_iter=20, random_state=0).fit(X)
    before = tsne.transform(X[:3] + 0.1)
    tsne.set_params(n_landmarks=None)
    with pytest.raises(ValueError, match="neighbors must be"):
        tsne.fit(X, neighbors=(np.zeros((3, 2), int), np.zeros((3, 2))))
    np.testing.assert_array_equal(tsne.transform(X[:3] + 0.1), before)
    np.testing.assert_array_equal(tsne.transform(X[tsne.landmarks_[:3]]), tsne.embedding_[tsne.landmarks_[:3]])


def test_presets_name_their_landmarks():
    coupling = gc.TwoScaleCoupling(gc.TSNE(n_landmarks=60, max_iter=5), random_state=0).fit(X)
    assert len(coupling.landmarks_) == 60
    assert coupling.embedding_.shape == (600, 2)


def test_starts_and_classes_of_merged_rows():
    class Seen(gc.couplings.CrossEntropyCoupling):
        def bind(self, problem):
            lengths.append((len(problem.y), problem.posterior.n_nodes))
            return super().bind(problem)

    rows, lengths = np.vstack([X[:50], X[:10]]), []
    laws = gc.GraphModel("gaussian", "D", gc.Perplexity(6)), gc.GraphModel("student", "E")
    gc.GraphCoupling(*laws, coupling=Seen(), unique=True, max_iter=2, random_state=0).fit(rows, np.arange(60) % 3)
    assert lengths == [(50, 50)]
    for ignored in ([["a"] * (1 + row % 2) for row in range(60)], sp.csr_array(np.ones((60, 2))), "none", np.ones(10)):
        gc.TSNE(perplexity=6, unique=True, max_iter=1).fit(rows, ignored)
    for n in (61, 40):
        with pytest.raises(ValueError, match=f"init has {n} rows, but the graph has 60 nodes"):
            gc.TSNE(perplexity=6, unique=True, init=np.ones((n, 2))).fit(rows)
    with pytest.raises(ValueError, match="y must have one value for each of the 60 rows of X, got shape"):
        gc.TSNE(perplexity=6, n_landmarks=40).fit(rows, np.ones(10))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_copies_and_read_only_rows_leave_the_landmarks(rng):
    for n_equal, least in ((100, 40), (150, 30), (190, 11)):
        points = np.vstack([np.zeros((n_equal, 3)), rng.normal(size=(200 - n_equal, 3))])
        for given in (points, sp.csr_matrix(points)):
            rows = nearest_to_means(given, 50, np.random.RandomState(0))
            assert least <= rows.size <= 50
            assert len(np.unique(points[rows], axis=0)) == rows.size
    two = np.vstack([np.ones((59, 3)), np.zeros((1, 3))])
    assert nearest_to_means(two, 20, np.random.RandomState(0)).tolist() == [0, 59]
    matrix = sp.csr_matrix(X[:100])
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    assert nearest_to_means(matrix, 20, np.random.RandomState(0)).size > 10


def test_one_copy_starts_no_second_search_for_landmarks(monkeypatch):
    from graphcouple.estimators import rows

    calls, plain = [], rows._nearest_to_means
    monkeypatch.setattr(rows, "_nearest_to_means", lambda *given: calls.append(1) or plain(*given))
    X = np.random.default_rng(0).normal(size=(400, 200))
    X[1] = X[0]
    assert rows.nearest_to_means(X, 200, np.random.RandomState(0)).size < 0.95 * 200
    assert len(calls) == 1
