"""Neighbours that users bring, in every form that other libraries have."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors, RadiusNeighborsTransformer, kneighbors_graph

import graphcouple as gc
from graphcouple.graphs import as_csr
from graphcouple.neighbors import OwnNeighbors
from graphcouple.neighbors.own_graph import neighbor_distances


@pytest.fixture(scope="module")
def X():
    points = np.random.default_rng(0).normal(size=(150, 5))
    points[7] = points[3]  # a duplicate, at distance 0
    return points


def _forms(X, k):
    dist, indices = NearestNeighbors(n_neighbors=k + 1).fit(X).kneighbors(X)
    # Of two duplicates, a search may list either first; the point itself comes first here.
    for i, row in enumerate(indices):
        at = int(np.flatnonzero(row == i)[0])
        row[[0, at]] = row[[at, 0]]
    others, others_dist = indices[:, 1:], dist[:, 1:]
    shuffled = np.random.default_rng(1).permutation(k)
    rows = np.repeat(np.arange(len(X)), k)
    without = sp.csr_array((others_dist.ravel(), (rows, others.ravel())), shape=(len(X),) * 2)
    padded = np.hstack([others, np.full((len(X), 2), -1)]), np.hstack([others_dist, np.zeros((len(X), 2))])
    return {
        "with itself": (indices, dist),
        "without": (others, others_dist),
        "in another order": (others[:, shuffled], others_dist[:, shuffled]),
        "umap-learn's triple": (indices, dist, object()),
        "transformer": KNeighborsTransformer(mode="distance", n_neighbors=k).fit_transform(X),
        "obsp": sp.csr_matrix(without),
        "single precision": (others.astype(np.int32), others_dist),
        "padded": padded,
    }


@pytest.mark.parametrize(
    "law",
    [
        gc.UMAP(n_neighbors=13).models(150)[0],
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4), n_neighbors=12),
        gc.GraphModel(gc.Gaussian(), "E", gc.SelfTuning(5), n_neighbors=12),
        gc.GraphMixture([gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(p), n_neighbors=12) for p in (3, 6)]),
    ],
)
def test_every_form_gives_the_posterior_of_the_law_itself(X, law):
    wanted = law.posterior(X)
    means = []
    for neighbors in _forms(X, 12).values():
        posterior = law.given(X, neighbors).posterior()
        means.append(posterior.mean().toarray())
        np.testing.assert_allclose(means[-1], wanted.mean().toarray(), rtol=1e-6, atol=1e-12)
    for mean in means[1:]:
        np.testing.assert_array_equal(mean, means[0])


def test_the_nearest_of_more_neighbors_are_used_and_all_of_fewer(X):
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4), n_neighbors=12)
    more = law.given(X, _forms(X, 30)["with itself"]).posterior()
    np.testing.assert_allclose(more.mean().toarray(), law.posterior(X).mean().toarray(), rtol=1e-6, atol=1e-12)
    fewer = law.given(X, _forms(X, 8)["without"]).posterior()
    assert (np.diff(fewer.support.indptr) == 8).all()


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
@pytest.mark.parametrize("method", [gc.UMAP(n_neighbors=13), gc.TSNE(perplexity=4, n_neighbors=12)])
def test_estimators_take_them_and_place_new_points(X, method):
    method.set_params(random_state=0, max_iter=60)
    forms = _forms(X, 12)
    Z = method.fit(X, neighbors=forms["without"]).embedding_
    np.testing.assert_array_equal(method.fit_transform(X, neighbors=forms["transformer"]), Z)
    np.testing.assert_array_equal(method.transform(X[20:25]), Z[20:25])
    new = method.transform(X[20:25] + 0.01)
    assert np.median(np.linalg.norm(new - Z[20:25], axis=1)) < 0.2 * Z.std()
    joint = gc.HierarchicalCoupling(gc.TSNE(perplexity=4, max_iter=20), random_state=0)
    assert joint.fit(X, neighbors=forms["obsp"]).embedding_.shape == (150, 2)


def test_distances_alone_have_a_default_start(X):
    distances = np.sqrt(np.square(X[:, None] - X).sum(axis=-1))
    given = gc.TSNE(metric="precomputed", random_state=0, max_iter=60).fit(distances)
    points = gc.TSNE(random_state=0, max_iter=60).fit(X)
    np.testing.assert_allclose(given.posterior_.mean(), points.posterior_.mean(), rtol=1e-6, atol=1e-12)
    assert given.loss_ == pytest.approx(points.loss_, rel=0.02)
    stored = KNeighborsTransformer(mode="distance", n_neighbors=40).fit_transform(X)
    found = gc.TSNE(perplexity=10, metric="precomputed", random_state=0, max_iter=60).fit(stored)
    assert found.posterior_.support.n_edges == 150 * 40
    np.testing.assert_allclose(found.posterior_.mean().sum(axis=1), 1.0, rtol=1e-9)


def test_node_numbers_stay_short(X):
    own = OwnNeighbors(X, "euclidean", _forms(X, 12)["with itself"])
    assert own.all_pairs()[0].indices.dtype == np.int32


@pytest.mark.parametrize(
    ("neighbors", "error", "match"),
    [
        ("exact", TypeError, "got str"),
        ((np.zeros((150, 3)), np.zeros((150, 3))), TypeError, "integers"),
        ((np.zeros((10, 3), int), np.zeros((10, 3))), ValueError, r"\(150, k\)"),
        ((np.zeros((150, 3), int), np.zeros((150, 2))), ValueError, r"\(150, k\)"),
        ((np.full((150, 3), 150), np.zeros((150, 3))), ValueError, "row 150"),
        ((np.full((150, 2), 3), np.ones((150, 2))), ValueError, "twice"),
        (sp.coo_array((np.ones(300), (np.arange(300) % 150, np.arange(1, 301) % 150))), ValueError, "a pair twice"),
        ((np.arange(150)[:, None], np.zeros((150, 1))), ValueError, "no neighbor but itself"),
        ((np.roll(np.arange(150), 1)[:, None], -np.ones((150, 1))), ValueError, "negative"),
        ((np.roll(np.arange(150), 1)[:, None], np.full((150, 1), np.inf)), ValueError, "infinite"),
        (sp.eye_array(20, format="csr"), ValueError, "20 nodes"),
    ],
)
def test_neighbors_that_make_no_sense_say_why(X, neighbors, error, match):
    with pytest.raises(error, match=match):
        gc.UMAP().fit(X, neighbors=neighbors)


def test_fewer_given_neighbors_than_asked_for_are_their_own_number(X):
    sparse = NearestNeighbors(n_neighbors=5).fit(X).kneighbors_graph(mode="distance")
    with pytest.warns(UserWarning, match="n_neighbors=15 is lowered to 6, the point itself included, since at most 5"):
        lowered = gc.UMAP(max_iter=20, random_state=0).fit(X, neighbors=sparse)
    asked = gc.UMAP(n_neighbors=6, max_iter=20, random_state=0).fit(X, neighbors=sparse)
    np.testing.assert_array_equal(lowered.posterior_.edge_means, asked.posterior_.edge_means)


def test_a_point_with_few_neighbors_gets_a_remedy_that_helps():
    points = np.arange(20.0)[:, None]
    graph = NearestNeighbors(n_neighbors=2).fit(points).kneighbors_graph(mode="distance").tolil()
    with (
        pytest.warns(UserWarning, match=r"perplexity=5 is lowered to 1\.5, since 2 neighbors .* Give at least 15"),
        pytest.warns(UserWarning, match=r"Give more neighbors, and a perplexity above 2, to tell ties from others; if"),
    ):
        gc.TSNE(perplexity=5, max_iter=5).fit(points, neighbors=graph.tocsr())
    graph[7] = 0.0
    graph[7, 8] = 1.0
    with pytest.raises(ValueError, match=r"row 7 has 1 neighbor, .*; give at least 2"):
        gc.TSNE(perplexity=5).fit(points, neighbors=graph.tocsr())


def test_neighbors_beside_ones_own_graph_are_refused(X):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    drawn = gc.GraphCoupling(posterior, gc.GraphModel(gc.Student(), "E"))
    with pytest.raises(ValueError, match="neighbors cannot be used"):
        drawn.fit(X, neighbors=_forms(X, 12)["without"])
    with pytest.warns(UserWarning, match="perplexity=30 is lowered to 4, since 12 neighbors"):
        gc.TSNE(perplexity=30, max_iter=200).fit(X, neighbors=_forms(X, 12)["without"])


def test_a_transformer_searches_for_fitted_and_for_new_points(X):
    exact = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4), n_neighbors=12)
    finder = KNeighborsTransformer(metric="euclidean")
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4), n_neighbors=12, search=finder)
    np.testing.assert_allclose(
        law.posterior(X).mean().toarray(), exact.posterior(X).mean().toarray(), rtol=1e-6, atol=1e-12
    )
    # Without a number, the perplexity's own number counts, not the transformer's.
    unset = [gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4), n, search=finder) for n in (None, "auto")]
    for each in unset:
        np.testing.assert_allclose(each.posterior(X).mean().toarray(), law.posterior(X).mean().toarray(), rtol=1e-9)
    # A radius has no number.
    within = RadiusNeighborsTransformer(mode="distance", radius=1e3)
    everyone = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4), search=within).posterior(X)
    assert everyone.support.n_edges == len(X) * (len(X) - 1)
    with pytest.raises(ValueError, match="has no parameter n_neighbors; leave n_neighbors at None"):
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4), 12, search=within).posterior(X)
    wide = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8), search=finder)
    wanted = (exact.posterior(X).mean() + gc.GraphModel("gaussian", "D", gc.Perplexity(8), 24).posterior(X).mean()) / 2
    mixed = gc.GraphMixture([unset[0], wide]).posterior(X).mean()
    np.testing.assert_allclose(mixed.toarray(), wanted.toarray(), rtol=1e-6, atol=1e-12)
    loose = gc.GraphModel(gc.Gaussian(), "D", gc.ConstantBandwidth(1.0), search=finder).posterior(X).mean()
    np.testing.assert_array_equal(np.diff(loose.tocsr().indptr), 5)
    X_new = X[:9] + 0.3
    found, wanted = (each.given(X).new_edges(X_new).to_csr().toarray() for each in (law, exact))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12)
    assert finder.n_neighbors == 5  # the user's own is left as it was
    other = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4), 12, search=KNeighborsTransformer(metric="manhattan"))
    manhattan = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4), 12, metric="manhattan")
    np.testing.assert_allclose(other.posterior(X).mean().toarray(), manhattan.posterior(X).mean().toarray(), atol=1e-9)
    fitted = gc.GraphCoupling(law, gc.GraphModel(gc.Student(), "E"), random_state=0, max_iter=30).fit(X)
    np.testing.assert_array_equal(fitted.transform(X[30:33]), fitted.embedding_[30:33])
    mixed = gc.GraphMixture([law, exact]).posterior(X).mean().toarray()
    np.testing.assert_allclose(mixed, exact.posterior(X).mean().toarray(), rtol=1e-6, atol=1e-12)
    with pytest.raises(ValueError, match="or a transformer"):
        gc.GraphModel(gc.Gaussian(), "D", search=3)


@pytest.mark.parametrize("metric", ["euclidean", "precomputed"])
def test_the_transformer_of_a_frame_keeps_to_its_columns(X, metric):
    frame = pd.DataFrame(cdist(X, X) if metric == "precomputed" else X).add_prefix("c")
    mine = gc.neighbors.NeighborsTransformer(4, metric=metric).fit(frame)
    theirs = KNeighborsTransformer(n_neighbors=4, metric=metric).fit(frame)
    new = frame[30:40]
    np.testing.assert_allclose(mine.transform(new).toarray(), theirs.transform(new).toarray(), atol=1e-6)
    np.testing.assert_array_equal(mine.feature_names_in_, theirs.feature_names_in_)
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        mine.transform(new[new.columns[::-1]])
    assert not hasattr(mine.fit(sp.csr_matrix(frame.to_numpy())), "feature_names_in_")


def test_weights_in_place_of_distances_warn(iris):
    fuzzy = gc.UMAP(n_neighbors=10).models(150)[0].posterior(iris[0]).mean()
    strongest = sp.csr_array(fuzzy / fuzzy.max(axis=1).toarray().reshape(-1, 1))
    with pytest.warns(UserWarning, match="graph of weights"):
        neighbor_distances(strongest, 150)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        neighbor_distances(kneighbors_graph(iris[0], 5, mode="connectivity"), 150)
        neighbor_distances(kneighbors_graph(iris[0], 5, mode="distance"), 150)


def test_an_edge_prior_keeps_the_neighbors_that_are_given(X):
    """The edges of a graph that allows all pairs would be searched among the points, at their own distances."""
    indices, dist = _forms(X, 6)["without"]
    favour = 1.0 + np.arange(X.shape[0])[:, None] % 3 + np.zeros(X.shape[0])
    favour[:, ::4] = 0.0
    law = gc.GraphModel(gc.Gaussian(), gc.Binary(favour), gc.ConstantBandwidth(1.0))
    found = law.given(X, (indices, 3.0 * dist)).posterior().mean().toarray()
    odds = np.zeros(found.shape)
    np.put_along_axis(odds, indices, np.exp(-4.5 * dist**2), axis=1)
    odds *= favour
    np.testing.assert_allclose(found, odds / (1.0 + odds), rtol=1e-9, atol=1e-300)


def test_masked_graphs_and_distances_are_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    weights = np.exp(-np.square(X[:, None] - X).sum(axis=-1)) * (1.0 - np.eye(30))
    latent = gc.GraphModel("student", "E")
    with pytest.raises(ValueError, match="masked entries"):
        gc.GraphCoupling(np.ma.masked_less(weights, 0.2), latent).fit()
    indices = np.argsort(-weights, axis=1)[:, :5]
    distances = np.ma.masked_greater(-np.log(np.take_along_axis(weights, indices, axis=1)), 2.0)
    with pytest.raises(ValueError, match="masked entries"):
        gc.UMAP(n_neighbors=5).fit(X, neighbors=(indices, distances))


def test_graphs_of_ones_own_class():
    class Roads(nx.Graph):
        pass

    np.testing.assert_array_equal(as_csr(Roads([(0, 1)]), "roads").toarray(), [[0.0, 1.0], [1.0, 0.0]])
