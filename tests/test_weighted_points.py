"""Weighted points: the loss of one copy, and distances from the mean of all copies, against repeated rows."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsTransformer

import graphcouple as gc
from graphcouple.summation import LogKernel
from tests.reference import numerical_gradient, relative_error
from tests.test_weights import COPIES, RNG, WEIGHTS, X, Z, law_of

LOSSES = {
    "TSNE": gc.TSNE(perplexity=6),
    "TSNE exaggerated": gc.TSNE(perplexity=6, exaggeration=2.0),
    "SNE": gc.SNE(perplexity=6),
    "NegTSNE": gc.NegTSNE(perplexity=6, repulsion="full"),
    "NCTSNE": gc.NCTSNE(perplexity=6),
    "LargeVis": gc.GraphCoupling(
        law_of("~B", "connectivity"), gc.GraphModel("student", "B"), coupling=gc.EffectiveCoupling(noise_exponent=0.75)
    ),
    "UMAP full": gc.UMAP(n_neighbors=COPIES.size, repulsion="full"),
    "edges of both ends": gc.GraphCoupling(
        law_of("D", "perplexity"), gc.GraphModel("student", "B"), coupling="effective"
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_loss_of_a_weighted_point_is_that_of_one_copy(name, tmp_path):
    method = LOSSES[name].set_params(random_state=0, max_iter=20)
    fitted = method.fit(X, sample_weight=WEIGHTS)
    posterior = fitted.sentence.input.posterior(X[COPIES])
    problem = gc.couplings.Problem(
        X[COPIES], None, posterior, method.sentence.latent, 2, gc.Exact(), "euclidean", np.random.RandomState(0), 1
    )
    coupling = method.sentence.coupling
    coupling = {"cross-entropy": gc.couplings.CrossEntropyCoupling(), "effective": gc.EffectiveCoupling()}.get(
        coupling, coupling
    )
    slow = coupling.bind(problem).fixed_map(fitted.embedding_[COPIES])
    wanted = slow.own_losses(sp.csr_array(posterior.mean()))
    np.testing.assert_allclose(fitted.point_losses()[COPIES], wanted, rtol=1e-7, atol=1e-9)
    fitted.save(tmp_path / "map")
    np.testing.assert_allclose(gc.load(tmp_path / "map").point_losses()[COPIES], wanted, rtol=1e-7, atol=1e-9)
    merged = gc.GraphCoupling(**method.sentence.replace(unique=True)).fit(X[COPIES])
    slow = coupling.bind(problem).fixed_map(merged.embedding_)
    np.testing.assert_allclose(
        merged.point_losses(), slow.own_losses(sp.csr_array(posterior.mean())), rtol=1e-7, atol=1e-9
    )


def test_the_loss_of_a_weighted_point_of_umap_leaves_infinite_pairs_out():
    """UMAP's repulsion is infinite between copies, so repeated rows are summed without the pairs of one place."""
    fitted = gc.UMAP(n_neighbors=COPIES.size, random_state=0, max_iter=20).fit(X, sample_weight=WEIGHTS)
    means = sp.csr_array(fitted.sentence.input.posterior(X[COPIES]).mean()).toarray()
    sq_dist = cdist(fitted.embedding_, fitted.embedding_, "sqeuclidean")[np.ix_(COPIES, COPIES)]
    apart = COPIES[:, None] != COPIES
    k = np.exp(fitted.sentence.latent.kernel.log(np.where(apart, sq_dist, 1.0)))
    degrees = means.sum(axis=1)
    charges = (degrees[:, None] + degrees) / COPIES.size
    slow = 2.5 * charges * np.log1p(k) - means * np.log(k / (1.0 + k))
    np.testing.assert_allclose(fitted.point_losses()[COPIES], (slow * apart).sum(axis=1), rtol=1e-7)


def test_losses_of_weighted_points_add_up_to_the_loss():
    for method, share in ((gc.SNE(perplexity=6), 1.0), (gc.UMAP(n_neighbors=COPIES.size), 0.5)):
        fitted = method.set_params(random_state=0, max_iter=20).fit(X, sample_weight=WEIGHTS + 0.25)
        assert share * WEIGHTS @ fitted.point_losses() + share * 0.25 * fitted.point_losses().sum() == pytest.approx(
            fitted.loss_, rel=1e-9
        )


def test_losses_of_weighted_points_that_underflow():
    """A weight just above 1 leaves so little of a copy that only logarithms hold it."""
    weights, far = WEIGHTS.copy(), 1e3 * Z
    weights[:3] = 1.0, 0.5, 1.0 + 2.0**-52
    one, edges = gc.couplings.fixed_map, sp.csr_array(np.ones((17, 17)) - np.eye(17))
    fixed = one.NormalizedMap(far, LogKernel(gc.Gaussian()), gc.Gaussian(), gc.Exact(), weights)
    fixed.__dict__["field"] = SimpleNamespace(resolution=1e-10)
    sq_dist = cdist(far, far, "sqeuclidean")
    logs = -0.5 * sq_dist + np.log(weights)
    np.fill_diagonal(logs, np.where(weights > 1, np.log(np.maximum(weights - 1, 1e-300)), -np.inf))
    expected = np.logaddexp.reduce(logs, axis=1) + 0.5 * (edges.toarray() * sq_dist).sum(axis=1) / 16.0
    np.testing.assert_allclose(fixed.own_losses(edges), expected, rtol=1e-12)


@pytest.mark.parametrize("space", [None, gc.laws.Hyperbolic()], ids=str)
def test_distances_from_the_centre_count_copies(space):
    wanted = RNG.uniform(size=17)
    weighted = gc.couplings.OriginMismatch(wanted, space, WEIGHTS)
    repeated = gc.couplings.OriginMismatch(wanted[COPIES], space)
    value, gradient = weighted.value_and_grad(Z)
    whole, forces = repeated.value_and_grad(Z[COPIES])
    assert value == pytest.approx(whole, rel=1e-12)
    summed = np.zeros(Z.shape)
    np.add.at(summed, COPIES, forces)
    np.testing.assert_allclose(gradient, summed, rtol=1e-10)
    assert relative_error(gradient, numerical_gradient(weighted.value, Z)) < 1e-6


@pytest.mark.parametrize("given", ["points", "sparse", "float32", "distances", "a space"])
def test_distances_of_the_data_are_from_the_mean_of_all_copies(given):
    metric = {"distances": "precomputed", "a space": gc.laws.Hyperbolic()}.get(given, "euclidean")
    shifted = X + 3.0 * WEIGHTS[:, None]
    points = {"sparse": sp.csr_array(shifted), "float32": shifted.astype(np.float32), "distances": cdist(X, X)}
    points = points.get(given, shifted)
    whole = cdist(X[COPIES], X[COPIES]) if given == "distances" else points[COPIES]
    method = gc.COSNE(perplexity=6, max_iter=5, random_state=0, metric=metric, init="random")
    fitted = method.fit(points, sample_weight=WEIGHTS)
    start = fitted.embedding_[COPIES]
    repeated = gc.GraphCoupling(**method.sentence.replace(init=start, max_iter=1)).fit(whole)
    rel = 1e-4 if given == "float32" else 1e-8
    assert fitted.loss_ == pytest.approx(repeated.loss_history_[0], rel=rel)
    wanted = gc.couplings.OriginDistances
    problem = gc.couplings.Problem(
        None, None, fitted.posterior_, method.sentence.latent, 2, gc.Exact(), metric, np.random.RandomState(0), 1
    )
    one, all_copies = (
        wanted().bind(dataclasses.replace(problem, X=rows, posterior=law)).wanted
        for rows, law in ((points, fitted.posterior_), (whole, repeated.posterior_))
    )
    np.testing.assert_allclose(one[COPIES], all_copies, rtol=rel)


def test_cosne_of_equal_rows_has_the_loss_of_all_of_them():
    rows = X[COPIES]
    fitted = gc.COSNE(perplexity=6, max_iter=10, random_state=0, unique=True).fit(rows)
    far = np.linalg.norm(rows - rows.mean(axis=0), axis=1)
    mismatch = gc.couplings.OriginMismatch(far, gc.laws.Hyperbolic()).value(fitted.embedding_)
    assert fitted.term_losses_[0] == pytest.approx(mismatch, rel=1e-9)
    start = fitted.sentence.replace(init=fitted.embedding_, max_iter=1, unique=False)
    assert fitted.loss_ == pytest.approx(gc.GraphCoupling(**start).fit(rows).loss_history_[0], rel=1e-9)


def test_neighbors_that_are_given_stand_for_their_copies():
    """Four neighbours of weight 10, and nine copies of a row's own point, suffice for a perplexity of 12."""
    dist = cdist(X, X)
    nearest = np.argsort(dist, axis=1)[:, 1:5]
    weighted = gc.GraphModel("gaussian", "D", gc.Perplexity(12)).given(
        X, (nearest, np.take_along_axis(dist, nearest, axis=1)), np.full(17, 10.0)
    )
    means = weighted.posterior().own_means
    assert weighted.law.bandwidth == gc.Perplexity(12)
    rows = np.repeat(np.arange(17), 10)
    copies = [np.flatnonzero(np.isin(rows, [*nearest[i], i])) for i in rows]
    others = np.array([near[near != copy] for copy, near in enumerate(copies)])
    far = np.take_along_axis(dist[rows][:, rows], others, axis=1)
    law = gc.GraphModel("gaussian", "D", gc.Perplexity(12)).given(X[rows], (others, far)).posterior().mean()
    np.testing.assert_allclose(means, [law.toarray()[rows == i][:, rows == i].sum() for i in range(17)], rtol=1e-6)
    # Copies that may have no edges are not counted: two neighbours of weight 4 are eight.
    apart = gc.GraphModel("gaussian", gc.UnitOutDegree(1.0 - np.eye(17)), gc.Perplexity(10))
    two = (nearest[:, :2], np.take_along_axis(dist, nearest[:, :2], axis=1))
    given = apart.given(X, two, np.full(17, 4.0))
    with pytest.warns(UserWarning, match="perplexity"):
        given.posterior()
    assert given.law.bandwidth.perplexity < 8


@pytest.mark.parametrize(
    "method", [gc.UMAP(n_neighbors=8), gc.TSNE(perplexity=5, n_neighbors=15)], ids=["UMAP", "TSNE"]
)
def test_light_rows_reach_as_many_copies_as_others(method):
    rows, weights = RNG.normal(size=(120, 3)), np.repeat([0.2, 1.8], 60)
    rows[60:] += 30.0
    law = method.models(120)[0].given(rows, sample_weight=weights)
    support = law.posterior().support
    reach = np.bincount(support.rows, weights[support.indices], 120)
    assert reach.min() >= law.law.n_neighbors - 2.0
    new = law.new_edges(rows[:3] + 0.1)
    assert np.add.reduceat(weights[new.support.indices], new.support.indptr[:-1]).min() >= law.law.n_neighbors
    # Five times .2 are one copy, whatever their rounding.
    tenth = gc.GraphModel("gaussian", "D", gc.Perplexity(10)).given(rows[:60], sample_weight=np.full(60, 0.2))
    assert tenth.law.bandwidth == gc.Perplexity(10)


def test_components_and_spectra_of_weighted_laws_are_refused():
    law = law_of("D", "perplexity").posterior(X, sample_weight=WEIGHTS)
    for read in (
        lambda: gc.LaplacianEigenmaps(input=law).fit(X),
        lambda: gc.laws.communities(law),
        lambda: gc.degeneracy_report(law, X),
        lambda: gc.couplings.ComponentCrossEntropy(X, law),
    ):
        with pytest.raises(ValueError, match="takes no sample weights"):
            read()


@pytest.mark.filterwarnings("ignore:perplexity=8 is not reached")
def test_heavy_rows_and_stored_distances_are_no_obstacle(rng):
    """A row heavier than its number of neighbours has no edges but to its own copies; a sparse graph stores no more."""
    rows, weights = rng.normal(size=(80, 3)), np.append(np.ones(79), 30.0)
    law = gc.GraphModel("gaussian", "D", gc.LeaveOneOut(dim=3), n_neighbors=10)
    with pytest.warns(UserWarning, match="36 effective neighbors, and rows keep 10"):
        means = law.posterior(rows, sample_weight=weights)
    assert means.own_means[-1] == pytest.approx(30.0)
    dist = cdist(rows, rows)
    nearest = np.argsort(dist, axis=1)[:, :16]
    stored = np.zeros(dist.shape)
    np.put_along_axis(stored, nearest, np.take_along_axis(dist, nearest, axis=1), axis=1)
    umap = gc.UMAP(metric="precomputed", n_neighbors=15, max_iter=5, random_state=0)
    assert np.isfinite(umap.fit(sp.csr_array(stored), sample_weight=np.full(80, 0.4)).loss_)
    square = umap.set_params(n_neighbors=10).fit(dist, sample_weight=np.full(80, 0.5))
    stored[0, np.flatnonzero(stored[0])[3:]] = 0.0
    stored[0, nearest[0, 1:12]] = dist[0, nearest[0, 1:12]]
    together = square.transform(sp.csr_array(stored[:3]))
    np.testing.assert_array_equal(square.transform(sp.csr_array(stored[1:3])), together[1:])


def test_light_rows_have_the_same_edges_in_every_form_of_their_distances(rng, tmp_path):
    rows, light = rng.normal(size=(120, 4)), np.full(120, 0.3)
    dist = cdist(rows, rows)
    nearest = np.argsort(dist, axis=1)[:, 1:61]
    far = np.take_along_axis(dist, nearest, axis=1)
    stored = np.zeros(dist.shape)
    np.put_along_axis(stored, nearest, far, axis=1)
    umap = {"n_neighbors": 10, "max_iter": 5, "random_state": 0}
    wanted = gc.UMAP(**umap).fit(rows, sample_weight=light).posterior_.mean().toarray()
    given = gc.UMAP(**umap).fit(rows, neighbors=(nearest, far), sample_weight=light)
    graph = gc.UMAP(metric="precomputed", **umap).fit(sp.csr_array(stored), sample_weight=light)
    # scikit-learn's graph holds each row itself.
    found = KNeighborsTransformer(n_neighbors=60).fit_transform(rows)
    with_self = gc.UMAP(metric="precomputed", **umap).fit(found, sample_weight=light)
    for fitted in (given, graph, with_self):
        np.testing.assert_allclose(fitted.posterior_.mean().toarray(), wanted, rtol=1e-6, atol=1e-9)
    laws = [gc.GraphModel("gaussian", "D", gc.Perplexity(p), n_neighbors=3 * p) for p in (4, 8)]
    one, other = (gc.GraphMixture(each).posterior(rows, sample_weight=light).mean() for each in (laws, laws[::-1]))
    np.testing.assert_allclose(one.toarray(), other.toarray(), rtol=1e-9, atol=1e-15)
    # Mixtures of distances take sparse new ones, also from a file.
    mixed = [gc.GraphModel("gaussian", "D", gc.Perplexity(2), 9, metric="precomputed") for _ in range(2)]
    drawn = gc.GraphCoupling(gc.GraphMixture(mixed), gc.GraphModel("student", "E"), max_iter=5, random_state=0)
    placed = drawn.fit(dist, sample_weight=light).transform(sp.csr_array(stored[:3]))
    drawn.save(tmp_path / "mixed")
    np.testing.assert_array_equal(gc.load(tmp_path / "mixed").transform(sp.csr_array(stored[:3])), placed)
