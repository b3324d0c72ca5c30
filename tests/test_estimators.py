import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsTransformer
from sklearn.preprocessing import KBinsDiscretizer
from sklearn.utils.metaestimators import available_if

import graphcouple as gc
from graphcouple.spectral import principal_components
from tests.reference import coupling_of, pairwise, thinned

MODELS = {"input": gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(2)), "latent": gc.GraphModel(gc.Student(), "E")}
PRESETS = {
    "SNE": gc.SNE(perplexity=2, max_iter=20),
    "SymmetricSNE": gc.SymmetricSNE(perplexity=2, max_iter=20),
    "TSNE": gc.TSNE(perplexity=2, max_iter=20),
    "LargeVis": gc.LargeVis(perplexity=2, max_iter=20),
    "UMAP": gc.UMAP(n_neighbors=3, max_iter=20),
    "GraphCoupling": gc.GraphCoupling(**MODELS, max_iter=20),
}
STARTS = {init: init for init in ("auto", "ccpca", "pca", "random", "spectral")}
EVERY = pytest.mark.parametrize("name", PRESETS)
PRESETS_AND_STARTS = pytest.mark.parametrize(("name", "init"), thinned(PRESETS, STARTS, 2))


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 5))


def _preset(name, **changes):
    return clone(PRESETS[name]).set_params(random_state=0, **changes)


@EVERY
def test_loss_is_the_objective_at_the_embedding(name, X):
    estimator = _preset(name).fit(X)
    objective = coupling_of(estimator)
    assert estimator.loss_ == pytest.approx(objective.value(estimator.embedding_), rel=1e-12)
    assert estimator.loss_history_[-1] == estimator.loss_
    assert estimator.n_iter_ == 20
    assert hasattr(estimator, "kl_divergence_") == objective.has_kl_divergence
    if objective.has_kl_divergence:
        assert estimator.kl_divergence_ == pytest.approx(objective.kl_divergence(estimator.embedding_), rel=1e-12)
        assert estimator.kl_divergence_ > 0


# In 20 iterations, 15 of them exaggerated, a map on a line may end above its start.
@pytest.mark.filterwarnings("ignore:the embedding is far from its size", "ignore:no embedding with a lower loss")
@pytest.mark.parametrize(("name", "init", "n_components"), pairwise(PRESETS, STARTS, (1, 2, 3)))
def test_a_seed_fixes_every_bit_whatever_the_threads(name, init, n_components):
    X = np.random.default_rng(0).normal(size=(150, 5))
    fits = [_preset(name, init=init, n_components=n_components, n_jobs=jobs).fit(X) for jobs in (1, 2)]
    np.testing.assert_array_equal(fits[0].embedding_, fits[1].embedding_)
    assert fits[0].embedding_.shape == (150, n_components)


@EVERY
def test_descends_far_below_principal_components_of_any_size(name, iris):
    changes = {
        "UMAP": {"n_neighbors": 10},
        "GraphCoupling": {"input": gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10))},
    }.get(name, {"perplexity": 10})
    estimator = _preset(name, max_iter=300, **changes).fit(iris[0])
    # No multiple of the principal components is nearly as low.
    objective, plane = coupling_of(estimator), gc.PrecisionCoupling().fit_transform(iris[0])
    best = min(objective.value(size * plane / plane.std()) for size in np.logspace(-1, 2, 40))
    assert estimator.loss_ < best - 0.05 * (best - objective.lower_bound)
    Z, y = estimator.embedding_, iris[1]
    nearest = pairwise_distances(Z) + 1e9 * np.eye(150)
    assert (y[nearest.argmin(1)] == y).mean() > 0.9


def test_a_posterior_can_be_brought_along(X):
    posterior = MODELS["input"].posterior(X)
    brought = gc.GraphCoupling(posterior, MODELS["latent"], max_iter=20, random_state=0).fit_transform(X)
    made = gc.GraphCoupling(**MODELS, max_iter=20, random_state=0).fit_transform(X)
    np.testing.assert_array_equal(brought, made)
    with pytest.raises(ValueError, match="40 nodes"):
        gc.GraphCoupling(posterior, MODELS["latent"], max_iter=20).fit(X[:30])


@EVERY
def test_init_array_is_the_start_and_is_not_changed(name, X):
    Z0 = np.random.default_rng(1).normal(size=(40, 2))
    kept, seen = Z0.copy(), []
    _preset(name, init=Z0, callback=lambda i, loss, Z: seen.append(Z) or False).fit(X)
    np.testing.assert_array_equal(seen[0], kept)
    np.testing.assert_array_equal(Z0, kept)


@EVERY
def test_float32_stays_float32(name, X):
    assert _preset(name).fit_transform(X.astype(np.float32)).dtype == np.float32
    assert _preset(name).fit_transform(X).dtype == np.float64


@pytest.mark.filterwarnings("ignore:perplexity=")
@PRESETS_AND_STARTS
def test_duplicates_and_constant_features_are_fine(name, init):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    X = np.concatenate([X, X, X[:5], X[:5], X[:5]])
    X[:, 2] = 7.0
    fitted = _preset(name, init=init, max_iter=60).fit(X)
    assert np.isfinite(fitted.embedding_).all()
    assert fitted.loss_ < fitted.loss_history_[0]


@pytest.mark.filterwarnings("ignore:init='ccpca'")
@pytest.mark.filterwarnings("ignore:perplexity=")
@pytest.mark.filterwarnings(r"ignore:all \d+ rows of X are equal")
@pytest.mark.filterwarnings("ignore:the embedding is far from its size")  # after 20 iterations
@PRESETS_AND_STARTS
def test_all_points_equal_give_a_finite_embedding(name, init):
    Z = _preset(name, init=init).fit_transform(np.full((20, 3), 4.2))
    # Equal points push each other apart, but no further than repulsion reaches.
    assert len(np.unique(Z, axis=0)) == 20
    assert pairwise_distances(Z).max() < 1e3


@EVERY
def test_far_apart_clusters_are_fine(name):
    """The neighbour graph falls apart into components; the start must still tell the points apart."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 3)) + 1e4 * k for k in range(4)])
    for init in ("auto", "pca", "spectral"):
        Z = _preset(name, init=init, max_iter=100).fit_transform(X)
        distances = pairwise_distances(Z) + np.diag(np.full(80, np.inf))
        assert (distances.argmin(axis=1) // 20 == np.arange(80) // 20).all()


@pytest.mark.parametrize("name", ["SNE", "TSNE", "LargeVis", "UMAP"])
def test_precomputed_distances(name, X):
    D = pairwise_distances(X)
    Z0 = np.random.default_rng(1).normal(size=(40, 2))
    wanted = _preset(name, init=Z0).fit_transform(X)
    np.testing.assert_allclose(
        _preset(name, init=Z0, metric="precomputed").fit_transform(D), wanted, rtol=1e-4, atol=1e-4
    )
    # Without points, the spectral start takes the place of principal components.
    from_graph = _preset(name, init="pca", metric="precomputed").fit_transform(D)
    np.testing.assert_array_equal(from_graph, _preset(name, init="spectral", metric="precomputed").fit_transform(D))


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_sparse_points(X):
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    for init in ("auto", "pca", "spectral"):
        # Which of tied points are neighbours is a matter of rounding.
        dense = _preset("TSNE", init=init, max_iter=1, n_neighbors=None).fit(X)
        sparse = _preset("TSNE", init=init, max_iter=1, n_neighbors=None).fit(sp.csr_matrix(X))
        np.testing.assert_allclose(sparse.posterior_.edge_means, dense.posterior_.edge_means, rtol=1e-6)
        assert np.isfinite(sparse.embedding_).all()


def test_auto_neighbors_are_all_pairs_of_few_points_and_a_few_of_many():
    assert gc.TSNE().models(2000)[0].n_neighbors is None
    assert gc.TSNE().models(2001)[0].n_neighbors == 90
    assert gc.TSNE(n_neighbors=None).models(5000)[0].n_neighbors is None
    assert gc.TSNE(n_neighbors=12, perplexity=5).models(100)[0].n_neighbors == 12


@EVERY
def test_callback_can_stop_early(name, X):
    estimator = _preset(name, max_iter=200, callback=lambda iteration, loss, Z: iteration >= 50).fit(X)
    assert estimator.n_iter_ == 50


@EVERY
def test_pickles_and_clones(name, X):
    estimator = _preset(name).fit(X)
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.embedding_, estimator.embedding_)
    np.testing.assert_array_equal(again.posterior_.edge_means, estimator.posterior_.edge_means)
    np.testing.assert_array_equal(clone(estimator).fit_transform(X), estimator.embedding_)


def test_output_can_be_pandas(X):
    frame = _preset("TSNE").set_output(transform="pandas").fit_transform(X)
    assert list(frame.columns) == ["tsne0", "tsne1"]


def test_a_subclass_may_offer_a_method_under_a_condition():
    class Mine(gc.PrecisionCoupling):
        @available_if(lambda self: True)
        def transform(self, X):
            return super().transform(X)

    X = np.random.default_rng(0).normal(size=(10, 3))
    assert np.array_equal(Mine().fit(X).transform(X), gc.PrecisionCoupling().fit(X).transform(X))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_output_of_scikit_learn_is_that_of_results_alone(library):
    pytest.importorskip(library)
    X = np.random.default_rng(0).normal(size=(40, 4))
    options = {"max_iter": 5, "random_state": 0}
    searched = gc.GraphModel("gaussian", "D", gc.Perplexity(5), search=KNeighborsTransformer(n_neighbors=15))
    methods = [
        *(gc.PrecisionCoupling(), gc.PrecisionCoupling(center=False, svd_solver="arpack", random_state=0)),
        *(
            gc.MetricMDS(**options),
            gc.PHATE(perplexity=5, random_state=0),
            gc.TSNE(perplexity=5, transform_method="mlp", **options),
        ),
        gc.ParametricCoupling(gc.TSNE(perplexity=5, **options), features=KBinsDiscretizer(3)),
        gc.GraphCoupling(searched, gc.GraphModel("student", "E"), init="pca", **options),
    ]
    start = principal_components(X, 2, np.random.RandomState(0))
    for method in methods:
        expected = clone(method).fit(X)
        with config_context(transform_output=library):
            found = clone(method).fit(X)
            frame = found.transform(X[:3])
            assert type(frame).__module__.startswith(library)
            assert np.array_equal(principal_components(X, 2, np.random.RandomState(0)), start)
            assert searched.posterior(X).n_nodes == 40
        assert type(found.embedding_) is np.ndarray
        np.testing.assert_array_equal(found.embedding_, expected.embedding_)
        np.testing.assert_array_equal(np.asarray(frame), expected.transform(X[:3]))


@pytest.mark.filterwarnings("ignore:init='ccpca'")
@pytest.mark.filterwarnings("ignore:no embedding with a lower loss")
@EVERY
@pytest.mark.filterwarnings("ignore:.*is lowered to:UserWarning")
def test_two_points_have_an_embedding(name):
    Z = _preset(name).fit_transform(np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 2.0]]))
    assert np.isfinite(Z).all()
    assert (Z[0] != Z[1]).any()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"perplexity": 0.5}, "perplexity"),
        ({"perplexity": "many"}, "perplexity"),
        ({"n_neighbors": 40}, "n_neighbors=40"),
        ({"n_components": 0}, "n_components"),
        ({"init": "magic"}, "init"),
        ({"init": np.zeros((40, 3))}, "init"),
        ({"init": np.full((40, 2), np.nan)}, "init"),
        ({"metric": "nearness"}, "nearness"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"early_exaggeration": 0.5}, "early_exaggeration"),
        ({"dof": -1}, "dof"),
        ({"max_iter": 0}, "max_iter"),
        ({"summation": "fast"}, "summation"),
        ({"random_state": "seed"}, "random_state"),
        ({"callback": 3}, "callback"),
    ],
)
def test_bad_parameters_are_refused(changes, message, X):
    with pytest.raises((ValueError, TypeError), match=message):
        _preset("TSNE").set_params(**changes).fit(X)


def test_global_random_state_is_left_alone(X):
    np.random.seed(3)
    before = np.random.get_state()[1].copy()
    _preset("TSNE", init="random").fit(X)
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_docstrings_say_whether_none_is_accepted():
    made = [each for name in gc.__all__ if hasattr(each := getattr(gc, name), "_parameter_constraints")]
    for cls in made:
        for name, checks in cls._parameter_constraints.items():
            kind = re.search(rf"^ *{name} : .*?(?=, default=|$)", cls.__doc__, re.M)
            if isinstance(checks, list) and kind:
                accepts = None in checks or "random_state" in checks
                assert accepts == ("None" in kind[0] or "optional" in kind[0]), (cls.__name__, kind[0])
    assert gc.ParametricCoupling in made


def test_umap_takes_a_and_b():
    assert gc.UMAP(a=2.0, b=0.8).sentence.latent.kernel == gc.Odds(gc.RationalPower(2.0, 0.8))
    with pytest.raises(ValueError, match="both a and b"):
        gc.UMAP(a=2.0).fit(np.random.default_rng(0).normal(size=(30, 2)))


def test_threads_change_no_bit_of_drawn_points_and_graphs():
    X = np.random.default_rng(0).normal(size=(150, 5))
    for make in (
        lambda n: gc.InfoNCTSNE(max_iter=20, random_state=0, n_jobs=n),
        lambda n: gc.HierarchicalCoupling(gc.TSNE(perplexity=5, max_iter=20, n_jobs=n), random_state=0),
    ):
        np.testing.assert_array_equal(*(make(n).fit_transform(X) for n in (1, 2)))
