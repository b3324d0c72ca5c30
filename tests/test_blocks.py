"""Columns of several kinds: the distance of each block, their sum, and searches that agree with comparing all."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.base import clone

import graphcouple as gc
from graphcouple.neighbors import distances_of

RNG = np.random.default_rng(4)
X = np.column_stack([5 * RNG.normal(size=(60, 3)), RNG.integers(0, 3, size=(60, 2)), RNG.random((60, 4))])
NEW = np.column_stack([5 * RNG.normal(size=(7, 3)), RNG.integers(0, 5, size=(7, 2)), RNG.random((7, 4))])
EMBEDDED = gc.Blocks([gc.Block([0, 1, 2], bandwidth=5.0), gc.Block(slice(3, 5), "categorical", 0.7)])
MIXED = gc.Blocks(
    [
        gc.Block([0, 1, 2], bandwidth=5.0),
        gc.Block([3, 4], "categorical", 0.7),
        gc.Block([5, 6, 7, 8], "minkowski", 0.4, metric_params={"p": 3}),
    ]
)


def expected(A, B, mixed):
    total = cdist(A[:, :3], B[:, :3], "sqeuclidean") / 25.0
    total += (A[:, None, 3:5] != B[:, 3:5]).sum(axis=-1) / 0.49
    return total + mixed * cdist(A[:, 5:], B[:, 5:], "minkowski", p=3) ** 2 / 0.16


@pytest.mark.parametrize("blocks", [EMBEDDED, MIXED])
def test_squared_distances_are_sums_over_blocks(blocks):
    mixed = blocks is MIXED
    distances = distances_of(X, blocks)
    support, sq_dist = distances.all_pairs()
    whole = expected(X, X, mixed)
    np.testing.assert_allclose(sq_dist, whole[support.rows, support.indices], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(distances.of_edges(support), sq_dist, rtol=1e-10, atol=1e-12)
    among, near = distances.nearest(6)
    np.fill_diagonal(whole, np.inf)
    np.testing.assert_allclose(np.sort(near.reshape(60, 6)), np.sort(whole, axis=1)[:, :6], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(near, whole[among.rows, among.indices], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("blocks", [EMBEDDED, MIXED])
def test_new_points_and_new_categories_are_compared_alike(blocks):
    whole = expected(NEW, X, blocks is MIXED)
    support, sq_dist = distances_of(X, blocks).to(NEW, 5)
    np.testing.assert_allclose(np.sort(sq_dist.reshape(7, 5)), np.sort(whole, axis=1)[:, :5], rtol=1e-10, atol=1e-12)
    assert support.n_nodes == 7
    fitted = gc.TSNE(metric=blocks, perplexity=8, random_state=0, max_iter=60).fit(X)
    placed = fitted.transform(NEW)
    np.testing.assert_array_equal(np.vstack([fitted.transform(NEW[:3]), fitted.transform(NEW[3:])]), placed)
    np.testing.assert_array_equal(fitted.transform(X[:4]), fitted.embedding_[:4])


def test_with_gaussian_kernels_blocks_multiply():
    law = gc.GraphModel(gc.Gaussian(), "D", metric=EMBEDDED)
    kernels = np.exp(-0.5 * cdist(X[:, :3], X[:, :3], "sqeuclidean") / 25.0)
    kernels *= np.exp(-0.5 * (X[:, None, 3:5] != X[:, 3:5]).sum(axis=-1) / 0.49)
    np.fill_diagonal(kernels, 0.0)
    np.testing.assert_allclose(law.posterior(X).mean(), kernels / kernels.sum(axis=1, keepdims=True), rtol=1e-9)


def test_automatic_bandwidths_let_all_blocks_count_alike():
    blocks = gc.Blocks([gc.Block([0, 1, 2]), gc.Block([3, 4], "categorical"), gc.Block([5, 6], "manhattan")])
    scaled = distances_of(X * np.r_[np.full(3, 1e4), np.ones(6)], blocks)
    for part in scaled.parts:
        assert part.distances.all_pairs()[1].mean() / part.unit**2 == pytest.approx(1.0, rel=1e-9)
    np.testing.assert_allclose(scaled.all_pairs()[1], distances_of(X, blocks).all_pairs()[1], rtol=1e-9)


def test_automatic_bandwidths_are_exact_and_depend_on_no_order(rng):
    many = np.column_stack([rng.normal(size=(1000, 2)) ** 3, np.arange(1000) == 7, np.arange(1000) == 8])
    blocks = gc.Blocks([gc.Block([0, 1]), gc.Block([2], "categorical"), gc.Block([3])])
    wanted = [cdist(many[:, own], many[:, own], "sqeuclidean").sum() / 999_000 for own in ([0, 1], [2], [3])]
    for rows in (np.arange(1000), rng.permutation(1000)):
        units = [part.unit for part in distances_of(many[rows], blocks).parts]
        np.testing.assert_allclose(np.square(units), wanted, rtol=1e-9)
    # A mean of equal numbers may be another number by rounding.
    for value in (0.3, 1.1, 1e6 + 0.1):
        assert distances_of(np.full((500, 1), value), gc.Blocks([gc.Block([0])])).parts[0].unit == 1.0


def test_starts_use_the_blocks_coordinates():
    fitted = gc.TSNE(metric=EMBEDDED, perplexity=8, random_state=0, max_iter=1).fit(X)
    coordinates = EMBEDDED.coordinates(X)
    np.testing.assert_allclose(cdist(coordinates, coordinates, "sqeuclidean"), expected(X, X, False), atol=1e-9)
    by_hand = gc.TSNE(perplexity=8, random_state=0, max_iter=1).fit(coordinates)
    np.testing.assert_allclose(fitted.embedding_, by_hand.embedding_, rtol=1e-6, atol=1e-9)
    assert MIXED.coordinates(X) is None
    assert gc.UMAP(metric=MIXED, random_state=0, max_iter=20).fit(X).embedding_.shape == (60, 2)
    assert gc.TSNE(metric=MIXED, perplexity=8, random_state=0, max_iter=20).fit(sp.csr_matrix(X)).loss_ > 0


GROUPS = np.repeat([0, 1, 2], 20)
NAMED = gc.Blocks([gc.Block([0, 1, 2]), gc.Block([3], "categorical")])
CODES = [np.column_stack([X[:, :3], np.array(codes)[GROUPS]]) for codes in ((0.0, 1.0, 2.0), (7.0, -100.0, 3.0))]
TORN = gc.Blocks([gc.Block([0, 1, 2], bandwidth=5.0), gc.Block([3], "categorical", bandwidth=1e-3)])


@pytest.mark.parametrize(
    "method",
    [
        gc.TSNE(metric=NAMED, perplexity=3, terms=[gc.ComponentMeans(1.0)], max_iter=5, random_state=0),
        gc.TSNE(metric=NAMED, perplexity=3, terms=[gc.ComponentMeans()], max_iter=5, random_state=0),
        gc.TSNE(metric=NAMED, perplexity=3, n_landmarks=20, max_iter=5, random_state=0),
        gc.TSNE(
            metric=NAMED,
            perplexity=3,
            terms=[gc.ReferenceShape(reference=gc.PrecisionCoupling())],
            max_iter=5,
            random_state=0,
        ),
        gc.TwoKernelLLE(metric=NAMED, init="spectral", n_neighbors=8, max_iter=5, random_state=0),
        gc.Isomap(metric=NAMED, n_landmarks=20, random_state=0),
        gc.LaplacianEigenmaps(input=gc.GraphModel("gaussian", "D", gc.Perplexity(3), 5, metric=TORN)),
    ],
    ids=["term", "weight", "landmarks", "reference", "reconstruction", "isomap", "eigenmaps"],
)
@pytest.mark.filterwarnings("ignore:the graph has")
def test_maps_do_not_depend_on_the_numbers_that_stand_for_categories(method):
    one, other = (clone(method).fit(points) for points in CODES)
    if hasattr(one, "term_losses_"):
        np.testing.assert_allclose(other.term_losses_, one.term_losses_, rtol=1e-6)
        np.testing.assert_allclose(other.term_weights_, one.term_weights_, rtol=1e-6)
    np.testing.assert_allclose(
        cdist(other.embedding_, other.embedding_), cdist(one.embedding_, one.embedding_), atol=1e-6
    )


@pytest.mark.parametrize("columns", [[3], slice(3, 5), slice(3, None), [-1]])
def test_codes_of_categories_are_neither_averaged_nor_regressed(rng, columns):
    points = np.column_stack([rng.normal(size=(60, 3)), rng.choice([3.0, 7.0, 50.0], 60)])
    blocks = gc.Blocks([gc.Block([0, 1, 2]), gc.Block(columns, "categorical")])
    fitted = gc.TSNE(metric=blocks, perplexity=5, random_state=0, max_iter=30).fit(points)
    between = fitted.inverse_transform(0.5 * (fitted.embedding_[:20] + fitted.embedding_[20:40]))
    assert set(between[:, 3]) <= {3.0, 7.0, 50.0}
    assert not set(between[:, 0]) <= set(points[:, 0])
    np.testing.assert_allclose(fitted.inverse_transform(fitted.embedding_), points)
    with pytest.raises(ValueError, match=r"columns \[3\] hold codes of categories"):
        fitted.set_params(transform_method="mlp").transform(points[:2])
    with pytest.raises(ValueError, match=r"columns \[3\] hold codes of categories"):
        gc.CCPCA(metric=blocks, perplexity=5, random_state=0).fit(points)


@pytest.mark.parametrize("term", [gc.ComponentMeans(1.0), gc.ReferenceShape()])
def test_terms_that_need_coordinates_say_which_blocks_have_them(term):
    with pytest.raises(ValueError, match="only euclidean and categorical blocks have"):
        gc.TSNE(metric=MIXED, perplexity=8, terms=[term], random_state=0).fit(X)


def test_landmarks_of_blocks_without_coordinates_are_nearest_to_means_of_the_columns():
    fitted = gc.TSNE(metric=MIXED, perplexity=3, n_landmarks=20, max_iter=5, random_state=0).fit(X)
    assert fitted.embedding_.shape == (60, 2)


def test_many_points_are_searched_approximately():
    rng = np.random.default_rng(0)
    many = np.column_stack([rng.normal(size=(5000, 8)), rng.integers(0, 4, size=(5000, 3))])
    distances = distances_of(many, gc.Blocks([gc.Block(slice(0, 8)), gc.Block([8, 9, 10], "categorical")]))
    found, exact = (distances.nearest(10, search=way)[0].indices.reshape(-1, 10) for way in ("approximate", "exact"))
    assert np.mean([np.isin(a, b).mean() for a, b in zip(found, exact, strict=True)]) > 0.95


def test_a_saved_estimator_keeps_its_blocks(tmp_path):
    fitted = gc.TSNE(metric=EMBEDDED, perplexity=8, random_state=0, max_iter=20).fit(X)
    fitted.save(tmp_path / "model")
    again = gc.load(tmp_path / "model")
    assert again.metric == EMBEDDED
    np.testing.assert_array_equal(again.transform(NEW), fitted.transform(NEW))


def test_unusable_blocks_are_refused():
    for bad, message in [
        (lambda: gc.Block(["age"]), "positions of columns"),
        (lambda: gc.Block([]), "positions of columns"),
        (lambda: gc.Block([0], "precomputed"), "cannot be 'precomputed'"),
        (lambda: gc.Block([0], bandwidth=0.0), "bandwidth"),
        (lambda: gc.Blocks([]), "must hold Blocks"),
        (lambda: gc.Blocks([0]), "must hold Blocks"),
        (lambda: distances_of(X, gc.Blocks([gc.Block([99])])), "does not have"),
        (lambda: distances_of(X, gc.Blocks([gc.Block(slice(9, 12))])), r"of 9 columns, .*slice\(9, 12, None\)"),
        (lambda: distances_of(X, EMBEDDED, {"p": 3}), "give it to each Block"),
        (lambda: distances_of(X, MIXED).nearest(3, search="approximate"), "no approximate search"),
        (lambda: gc.GraphModel(gc.Gaussian(), "D", metric=3), "or Blocks"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            bad()
