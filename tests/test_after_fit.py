"""A fitted estimator keeps to its fit: failed fits, parameters set later and edits of the map do no harm."""

import copy

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression

import graphcouple as gc

TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    X[:30] += 4.0
    return X, rng.normal(size=(5, 4)) + 2.0


@pytest.mark.parametrize(
    "method",
    [
        gc.TSNE(perplexity=8, max_iter=20, random_state=0),
        gc.TwoScaleCoupling(gc.TSNE(perplexity=8, max_iter=20), random_state=0),
        gc.MetricMDS(max_iter=20, random_state=0),
        gc.LocallyLinearEmbedding(n_neighbors=40),
        gc.Isomap(n_neighbors=40),
        gc.DiffusionMaps(perplexity=8),
        gc.LaplacianEigenmaps(perplexity=8),
        gc.CCPCA(perplexity=8, n_samples=5, random_state=0),
        gc.KernelPCA(kernel="rbf"),
    ],
    ids=lambda method: type(method).__name__,
)
def test_a_fit_that_fails_late_leaves_the_earlier_one(points, monkeypatch, method):
    X, new = (pd.DataFrame(each, columns=list("abcd")) for each in points)
    placed = method.fit(X).transform(new)

    def fail_at_the_end(self, name, value):
        if name in ("embedding_", "estimator_"):
            raise KeyboardInterrupt
        object.__setattr__(self, name, value)

    with monkeypatch.context() as patch:
        method.note = "the user's own"
        patch.setattr(type(method), "__setattr__", fail_at_the_end)
        with pytest.raises(KeyboardInterrupt):
            method.fit(X[["d", "c", "b"]] * 3.0 + 5.0)
    np.testing.assert_array_equal(method.transform(new), placed)
    assert list(method.feature_names_in_) == list("abcd")
    assert method.note == "the user's own"


@pytest.mark.parametrize(
    ("method", "later"),
    [
        (gc.ClassicalMDS(metric="manhattan"), {"metric": "chebyshev"}),
        (gc.KernelPCA(kernel="rbf", kernel_params={"gamma": 0.1}), {"kernel_params": {"gamma": 2.0}}),
        (gc.AttractionRepulsionPCA(kernel="rbf", tol=1e-3, random_state=0), {"kernel": "laplacian"}),
        (gc.MetricMDS(max_iter=20, random_state=0), {"weights": "sammon", "norm": 1.0}),
        (gc.TSNE(perplexity=8, max_iter=20, random_state=0), {"dof": 3.0, "metric": "cosine", "perplexity": 4}),
        (gc.UMAP(n_neighbors=8, max_iter=10, random_state=0), {"n_neighbors": 3, "metric": "manhattan"}),
        (gc.Isomap(n_neighbors=40, metric="manhattan"), {"n_neighbors": 20, "metric": "euclidean"}),
        (gc.LocallyLinearEmbedding(n_neighbors=40), {"n_neighbors": 20}),
        (gc.LaplacianEigenmaps(perplexity=8, normalized=False), {"normalized": True}),
        (gc.CCPCA(perplexity=8, n_samples=5, random_state=0), {"perplexity": 3.0}),
        (gc.DiffusionMaps(perplexity=8), {"perplexity": 4, "metric": "cosine"}),
        (gc.TwoScaleCoupling(gc.TSNE(perplexity=8, max_iter=20), random_state=0), {"estimator": gc.UMAP()}),
    ],
    ids=lambda each: type(each).__name__,
)
def test_parameters_set_after_the_fit_change_neither_places_nor_the_report(points, tmp_path, method, later):
    X, new = points
    placed, report = method.fit(X).transform(new), method.report()
    method.set_params(**later)
    np.testing.assert_array_equal(method.transform(new), placed)
    assert method.report() == report
    method.save(tmp_path / "later.gc")
    loaded = gc.load(tmp_path / "later.gc")
    np.testing.assert_array_equal(loaded.transform(new), placed)
    if isinstance(method, gc.TSNE):
        # Parameters that are set after loading change no more than before.
        assert loaded.set_params(dof=9.0).report() == report
        assert loaded.update(new).loss_ == method.update(new).loss_


@pytest.mark.filterwarnings("ignore:the embedding has not settled")
def test_a_wrapper_heeds_options_that_are_set_after_its_fit(points, tmp_path):
    X, new = points
    plain = gc.TSNE(perplexity=8, max_iter=20, random_state=0, transform_method=LinearRegression())
    placed = plain.fit(X).transform(new)
    wrapped = gc.TwoScaleCoupling(clone(plain).set_params(transform_method="law"), weight=0.0, random_state=0).fit(X)
    wrapped.save(tmp_path / "wrapped.gc")
    loaded = gc.load(tmp_path / "wrapped.gc").set_params(estimator__transform_method=LinearRegression())
    np.testing.assert_array_equal(loaded.transform(new), placed)
    wrapped.set_params(estimator__transform_method=LinearRegression(), estimator__max_iter=3)
    np.testing.assert_array_equal(wrapped.transform(new), placed)
    # A regressor is trained once, and a value that cannot be fitted with changes no places.
    trained = wrapped.estimator_._regressor
    wrapped.set_params(weight=-1.0)
    np.testing.assert_array_equal(wrapped.transform(new), placed)
    assert wrapped.estimator_._regressor is trained
    wrapped.set_params(weight=0.0)
    with pytest.raises(ValueError, match="transform_method must be 'law', 'mlp' or a regressor, got 'net'"):
        wrapped.estimator_.set_params(transform_method="net").transform(new)
    wrapped.estimator_.set_params(transform_method="law")
    assert not np.array_equal(wrapped.transform(new), placed)
    assert wrapped.update(new, move="all").n_iter_ == 3


def test_the_law_of_a_graph_of_ones_own_comes_back_from_a_file(points, tmp_path):
    graph = np.exp(-np.square(points[0][:, None] - points[0]).sum(axis=2)) - np.eye(60)
    options = {"init": "random", "max_iter": 20, "random_state": 0}
    fitted = gc.GraphCoupling(graph, gc.GraphModel("student", "E"), **options).fit()
    fitted.save(tmp_path / "graph.gc")
    loaded = gc.load(tmp_path / "graph.gc").set_params(input=None)
    np.testing.assert_array_equal(loaded.point_losses(), fitted.point_losses())
    assert loaded.posterior_.entropy() == fitted.posterior_.entropy()
    joblib.dump(fitted, tmp_path / "graph.joblib")
    joblib.load(tmp_path / "graph.joblib").save(tmp_path / "graph.gc")
    assert gc.load(tmp_path / "graph.gc").posterior_.entropy() == fitted.posterior_.entropy()
    fitted.set_params(input=np.roll(graph, 7, axis=(0, 1))).save(tmp_path / "graph.gc")
    with pytest.raises(AttributeError, match="of a graph of your own is not saved"):
        _ = gc.load(tmp_path / "graph.gc").posterior_


def test_reports_have_the_terms_and_the_nested_parameters_of_the_fit(points, tmp_path):
    method = gc.TSNE(perplexity=8, terms=[gc.ComponentMeans(weight=1.0)], max_iter=10, random_state=0).fit(points[0])
    laws = gc.GraphModel("gaussian", "D", gc.Perplexity(8)), gc.GraphModel("student", "E")
    composed = gc.GraphCoupling(*laws, max_iter=10, random_state=0).fit(points[0])
    for fitted, later in (
        (method, {"terms": ()}),
        (method, {"n_landmarks": 30}),
        (composed, {"latent__kernel": gc.Student(5.0)}),
        (composed, {"input": np.ones((60, 60))}),
    ):
        report = fitted.report()
        assert fitted.set_params(**later).report() == report
        fitted.save(tmp_path / "later.gc")
        assert gc.load(tmp_path / "later.gc").report() == report


def test_a_dict_of_parameters_that_is_edited_later_moves_nothing(points):
    X, new = points
    params = {"gamma": 0.1}
    method = gc.KernelPCA(kernel="rbf", kernel_params=params).fit(X)
    placed = method.transform(new)
    params["gamma"] = 3.0
    np.testing.assert_array_equal(method.transform(new), placed)


def test_updates_keep_the_laws_of_the_fit(points):
    X, new = points
    settings = {"perplexity": 8, "max_iter": 20, "random_state": 0}
    wanted = gc.TSNE(**settings).fit(X).update(new)
    changed = gc.TSNE(**settings).fit(X).set_params(perplexity=4, dof=3.0).update(new)
    np.testing.assert_array_equal(changed.embedding_, wanted.embedding_)
    assert changed.loss_ == wanted.loss_


def test_a_report_after_an_update_has_the_optimizer_of_the_user(points):
    X, new = points
    method = gc.TSNE(perplexity=8, max_iter=10, random_state=0).fit(X)
    before = dict(method.report())
    after = dict(method.update(new, move="all").report())
    assert {**after, "loss": "", "KL": ""} == {**before, "loss": "", "KL": ""}


@pytest.mark.parametrize("move", ["none", "all"])
@pytest.mark.parametrize(
    "method",
    [
        gc.COSNE(transform_method="mlp", max_iter=20, random_state=0),
        gc.LaptSNE(perplexity=8, n_clusters=2, max_iter=20, random_state=0),
        gc.TwoScaleCoupling(gc.LaptSNE(perplexity=8, n_clusters=2, max_iter=20), random_state=0),
    ],
    ids=lambda method: type(method).__name__,
)
def test_updates_keep_the_terms_that_a_method_adds(points, method, move):
    X, new = points
    method = clone(method)
    weights = method.fit(X).term_weights_
    assert len(weights) > 0
    method.set_params(**({"radius": 3.0} if isinstance(method, gc.COSNE) else {})).update(new, move=move)
    assert method.term_weights_ == weights
    assert len(method.embedding_) == 65
    assert getattr(method, "radius_", 1.0) == 1.0


@pytest.mark.parametrize(("fitted", "later"), [(None, 0.0), (0.0, 3.0)])
def test_a_term_is_reported_as_it_was_fitted(points, fitted, later):
    X, new = points
    plain = gc.TSNE(perplexity=8, max_iter=20)
    weight = {} if fitted is None else {"weight": fitted}
    method = gc.TwoScaleCoupling(plain, random_state=0, **weight).fit(X)
    before = method.weight_
    method.set_params(weight=later).update(new)
    assert method.weight_ == before
    assert (method.large_scale_loss_,) == (tuple(method.term_losses_) or (0.0,))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_map_that_is_turned_takes_new_points_along(points, tmp_path, weighted):
    X, new = points
    weights = {"sample_weight": np.tile([1.0, 2.0], 30)} if weighted else {}
    method = gc.TSNE(perplexity=8, max_iter=100, random_state=0).fit(X, **weights)
    placed, losses = method.transform(new), method.point_losses()
    method.embedding_ = method.embedding_ @ TURN
    turned = method.transform(new)
    np.testing.assert_allclose(turned, placed @ TURN, atol=1e-3 * np.abs(placed).max())
    np.testing.assert_allclose(method.point_losses(), losses, rtol=1e-9)
    method.save(tmp_path / "turned.gc")
    np.testing.assert_array_equal(gc.load(tmp_path / "turned.gc").transform(new), turned)
    method.embedding_ += 7.0
    np.testing.assert_allclose(method.transform(new), turned + 7.0, atol=1e-3 * np.abs(placed).max())


@pytest.mark.parametrize("make", [gc.TwoScaleCoupling, gc.HierarchicalCoupling, gc.DistR])
def test_a_wrapped_map_that_is_turned_takes_new_points_along(points, tmp_path, make):
    X, new = points
    method = make(gc.TSNE(perplexity=8, max_iter=40), random_state=0).fit(X)
    placed, losses = method.transform(new), method.point_losses()
    labels = method.predict(new) if make is gc.DistR else None
    method.embedding_ = turned = method.embedding_ @ TURN
    if make is gc.DistR:
        np.testing.assert_array_equal(method.prototypes_[method.labels_], turned)
    np.testing.assert_allclose(method.transform(new), placed @ TURN, atol=1e-3 * np.abs(placed).max())
    np.testing.assert_allclose(method.point_losses(), losses, rtol=1e-9)
    method.save(tmp_path / "turned.gc")
    again = gc.load(tmp_path / "turned.gc")
    np.testing.assert_array_equal(again.transform(new), method.transform(new))
    if make is gc.DistR:
        np.testing.assert_array_equal(method.predict(new), labels)
    else:
        np.testing.assert_array_equal(method.inverse_transform(turned[:3]), X[:3])
        np.testing.assert_array_equal(method.update(new).embedding_[:60], turned)


def test_a_regressor_learns_a_map_that_is_turned_anew(points):
    X, new = points
    method = gc.TSNE(perplexity=8, max_iter=20, random_state=0, transform_method=LinearRegression()).fit(X)
    placed = method.transform(new)
    method.embedding_ = method.embedding_ @ TURN
    np.testing.assert_allclose(method.transform(new), placed @ TURN, rtol=1e-6)
    # The map is the user's to change in place.
    method.embedding_[:, 0] *= -1.0
    np.testing.assert_allclose(method.transform(new), placed @ TURN * [-1.0, 1.0], rtol=1e-6)


def test_inverses_weigh_points_wherever_others_share_a_place(points):
    X, weights = points[0], np.repeat([5.0, 1.0], 30)
    fitted = gc.TSNE(perplexity=8, max_iter=20, random_state=0).fit(X, sample_weight=weights)
    far = np.argsort(np.linalg.norm(fitted.embedding_ - fitted.embedding_[0], axis=1))
    place = fitted.embedding_[far[:2]].mean(axis=0)[None]
    wanted = fitted.inverse_transform(place)
    moved = fitted.embedding_.copy()
    moved[far[-1]] = moved[far[-2]]
    fitted.embedding_ = moved
    np.testing.assert_allclose(fitted.inverse_transform(place), wanted, rtol=1e-6)


def test_inverses_are_of_the_metric_of_the_fit(points):
    X = np.column_stack([points[0], np.repeat([5, 7, 9], 20)])
    metric = gc.Blocks([gc.Block([0, 1, 2, 3]), gc.Block([4], "categorical")])
    method = gc.TSNE(perplexity=8, max_iter=20, random_state=0, metric=metric).fit(X)
    places = method.embedding_.mean(axis=0, keepdims=True) + np.linspace(-5.0, 5.0, 9)[:, None]
    wanted = method.inverse_transform(places)
    assert np.isin(wanted[:, 4], [5, 7, 9]).all()
    for later in ("euclidean", "precomputed"):
        np.testing.assert_array_equal(method.set_params(metric=later).inverse_transform(places), wanted)


@pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "error:X does not have valid feature names"
)
@pytest.mark.parametrize("output", ["default", "pandas"])
@pytest.mark.parametrize("place", ["law", "mlp"])
@pytest.mark.parametrize("wrap", [lambda method: method, gc.HierarchicalCoupling], ids=["plain", "wrapped"])
def test_rows_of_a_frame_are_placed_like_those_of_an_array(points, output, place, wrap):
    X, new = points
    frame, more = (pd.DataFrame(each, columns=list("abcd")) for each in points)
    for n_landmarks in (None, 30):
        plain = gc.TSNE(perplexity=5, max_iter=5, random_state=0, n_landmarks=n_landmarks, transform_method=place)
        mine, wanted = wrap(clone(plain)).set_output(transform=output).fit(frame), wrap(plain).fit(X)
        if n_landmarks is None:
            mine, wanted = mine.update(more), wanted.update(new)
        assert isinstance(mine.embedding_, np.ndarray)
        np.testing.assert_array_equal(mine.embedding_, wanted.embedding_)


def test_parameters_copies_and_seeds_that_come_later(points):
    X, new = points
    kernel = gc.KernelPCA(kernel="rbf", n_landmarks=20, random_state=0).fit(X)
    places = kernel.transform(new)
    np.testing.assert_array_equal(kernel.set_params(kernel="precomputed").transform(new), places)
    plain = gc.TSNE(perplexity=8, max_iter=20).set_output(transform="pandas")
    both = gc.HierarchicalCoupling(plain)
    assert type(both.fit_transform(X)) is type(both.transform(new)) is np.ndarray
    copied = copy.copy(both)
    copied.update(new)
    assert (len(copied.embedding_), both.transform(new).shape, both.point_losses().shape) == (65, (5, 2), (60,))
    for refused in (gc.HierarchicalCoupling(gc.TSNE(terms=gc.Density())), gc.TSNE(terms=None)):
        with pytest.raises(TypeError, match="terms must be a sequence of terms"):
            refused.fit(X)
    with pytest.raises(TypeError, match="hidden_layer_sizes must be an integer"):
        gc.Autoencoder(hidden_layer_sizes=(2.5,)).fit(X)
    gc.LaplacianEigenmaps().fit(X, sample_weight=None)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_equal_rows_alone_are_not_merged():
    assert gc.TSNE(unique=True, max_iter=10, random_state=0).fit(np.ones((6, 3))).embedding_.shape == (6, 2)


def test_an_interrupt_in_the_last_call_returns_the_map(points):
    def watch(iteration, loss, Z):
        if iteration == 20:
            raise KeyboardInterrupt

    tsne = gc.TSNE(perplexity=8, max_iter=20, on_interrupt="return", callback=watch, random_state=0)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        assert np.isfinite(tsne.fit_transform(points[0])).all()
