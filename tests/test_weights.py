"""Sample weights: integers are copies of points, in the law, in every objective and for new points."""

from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

import graphcouple as gc
from tests.extensions.prior import TwoOut
from tests.reference import dense, numerical_gradient, relative_error, thinned


@dataclass(frozen=True, eq=False, repr=False)
class Matching(TwoOut):
    """A prior that does not say how its edges are drawn."""

    drawn_by = None


RNG = np.random.default_rng(5)
X = RNG.normal(size=(17, 3))
WEIGHTS = RNG.integers(1, 5, size=17).astype(float)
COPIES = np.repeat(np.arange(17), WEIGHTS.astype(int))
Z = RNG.normal(size=(17, 2))

KERNELS = {"gaussian": gc.Gaussian(), "exponential": gc.Exponential(), "umap": gc.Odds(gc.Exponential())}
BANDWIDTHS = {
    "none": None,
    "constant": gc.ConstantBandwidth(0.7),
    "perplexity": gc.Perplexity(6.5),
    "self-tuning": gc.SelfTuning(4),
    "connectivity": gc.LocalConnectivity(8),
    "connectivity 2.5": gc.LocalConnectivity(8, 2.5),
}
PAIRS = [("D", "D"), ("D", "E"), ("E", "E"), ("B", "B"), ("D", "B"), ("~B", "B"), ("TwoOut", "TwoOut")]


def law_of(prior, bandwidth, kernel="gaussian", **options):
    symmetrize = "threshold" if prior.startswith("~") else None
    return gc.GraphModel(
        KERNELS[kernel], prior.removeprefix("~"), BANDWIDTHS[bandwidth], symmetrize=symmetrize, **options
    )


def gathered(means):
    """Sum the means of the graph of all copies over the copies of both ends."""
    gather = sp.csr_array((np.ones(COPIES.size), (COPIES, np.arange(COPIES.size))))
    return gather @ means @ gather.T


@pytest.mark.parametrize(("prior", "bandwidth"), thinned(["D", "E", "~B", "B", "TwoOut"], BANDWIDTHS, 2))
def test_means_are_those_of_the_graph_of_all_copies(prior, bandwidth):
    law = law_of(prior, bandwidth)
    weighted, repeated = law.posterior(X, sample_weight=WEIGHTS), law.posterior(X[COPIES])
    expected = gathered(repeated.mean())
    np.testing.assert_allclose(weighted.mean(), expected - np.diag(np.diag(expected)), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(weighted.own_means, np.diag(expected), rtol=1e-8, atol=1e-12)
    np.testing.assert_array_equal(weighted.node_weights, WEIGHTS)


@pytest.mark.parametrize(("pair", "kernel"), thinned(PAIRS, [gc.Student(), gc.Gaussian(), gc.Student(0.5)], 3))
def test_the_loss_is_that_of_all_copies(pair, kernel):
    law, latent = law_of(pair[0], "perplexity"), gc.GraphModel(kernel, pair[1])
    weighted = gc.CrossEntropy(law.posterior(X, sample_weight=WEIGHTS), latent)
    repeated = gc.CrossEntropy(law.posterior(X[COPIES]), latent)
    assert weighted.value(Z) == pytest.approx(repeated.value(Z[COPIES]), rel=1e-9)
    if pair[0] == "TwoOut":
        assert weighted.lower_bound <= weighted.value(Z)
    else:
        assert weighted.lower_bound == pytest.approx(repeated.lower_bound, rel=1e-9)
    value, gradient = weighted.value_and_grad(Z)
    assert value == pytest.approx(weighted.value(Z), rel=1e-13)
    assert relative_error(gradient, numerical_gradient(weighted.value, Z)) < 1e-6
    summed = np.zeros(Z.shape)
    np.add.at(summed, COPIES, repeated.gradient(Z[COPIES]))
    np.testing.assert_allclose(gradient, summed, rtol=1e-8, atol=1e-10)
    if latent.prior.independent_edges:
        bounds = weighted.attracting.confinement(), repeated.attracting.confinement()
        assert bounds[0].value(30.0 * Z) == pytest.approx(bounds[1].value(30.0 * Z[COPIES]), rel=1e-6)
    if weighted.has_kl_divergence:
        assert weighted.kl_divergence(Z) == pytest.approx(repeated.kl_divergence(Z[COPIES]), rel=1e-9)


@pytest.mark.parametrize("scale", [1e3, 1e5])
@pytest.mark.parametrize("prior", ["D", "E"])
def test_underflowing_kernels_are_weighted_in_logarithms(prior, scale):
    law = law_of("D", "perplexity")
    weights = np.where(np.arange(17) % 3 == 0, 1.0, WEIGHTS)
    weights[:2] = 0.4, 0.9
    objective = gc.CrossEntropy(law.posterior(X, sample_weight=weights), gc.GraphModel(gc.Gaussian(), prior))
    far = scale * Z
    log_kernel = -0.5 * cdist(far, far, "sqeuclidean") + np.log(weights)
    np.fill_diagonal(log_kernel, np.where(weights > 1, np.log(np.maximum(weights - 1, 1e-300)), -np.inf))
    rows = np.logaddexp.reduce(log_kernel, axis=1)
    expected = weights @ rows if prior == "D" else weights.sum() * np.logaddexp.reduce(rows + np.log(weights))
    assert objective.repulsion(far) == pytest.approx(expected, rel=1e-12)
    assert relative_error(objective.gradient(far), numerical_gradient(objective.value, far, h=1e-4 * scale)) < 1e-5


@pytest.mark.parametrize("noise", [0.0, 0.75])
@pytest.mark.parametrize("prior", ["D", "~B"])
def test_the_effective_loss_is_that_of_all_copies(prior, noise):
    law, latent = law_of(prior, "connectivity" if prior == "~B" else "perplexity"), gc.GraphModel(gc.Student(), "B")
    options = {"repulsion_strength": 1.5, "noise_exponent": noise}
    weighted = gc.EffectiveCrossEntropy(law.posterior(X, sample_weight=WEIGHTS), latent, 3.0, **options)
    repeated = gc.EffectiveCrossEntropy(law.posterior(X[COPIES]), latent, 3.0, **options)
    assert weighted.value(Z) == pytest.approx(repeated.value(Z[COPIES]), rel=1e-9)
    assert weighted.lower_bound <= weighted.value(Z)
    assert relative_error(weighted.gradient(Z), numerical_gradient(weighted.value, Z)) < 1e-6


def test_neighbors_are_counted_in_copies():
    law = law_of("D", "perplexity", n_neighbors=9)
    weighted, repeated = law.posterior(X, sample_weight=WEIGHTS), law.posterior(X[COPIES])
    expected = gathered(repeated.mean())
    whole = expected.toarray()
    np.testing.assert_allclose(weighted.mean().toarray(), whole - np.diag(np.diag(whole)), rtol=1e-8, atol=1e-12)
    latent = gc.GraphModel(gc.Student(), "E")
    loss = gc.CrossEntropy(repeated, latent).value(Z[COPIES])
    assert gc.CrossEntropy(weighted, latent).value(Z) == pytest.approx(loss, rel=1e-9)


def test_mixtures_and_edge_priors_are_weighted_too():
    mixture = gc.GraphMixture([law_of("D", "perplexity"), law_of("D", "constant")], (1, 2))
    expected = gathered(mixture.posterior(X[COPIES]).mean())
    weighted = mixture.posterior(X, sample_weight=WEIGHTS)
    np.testing.assert_allclose(weighted.mean() + np.diag(weighted.own_means), expected, rtol=1e-8, atol=1e-12)
    favoured = RNG.random((17, 17)) + 0.5
    law = gc.GraphModel(gc.Gaussian(), gc.UnitOutDegree(favoured))
    kernel = np.exp(-0.5 * cdist(X, X, "sqeuclidean")) * favoured * WEIGHTS
    np.fill_diagonal(kernel, np.diag(favoured) * (WEIGHTS - 1.0))
    expected = WEIGHTS[:, None] * kernel / kernel.sum(axis=1, keepdims=True)
    weighted = law.posterior(X, sample_weight=WEIGHTS)
    np.testing.assert_allclose(weighted.mean() + np.diag(weighted.own_means), expected, rtol=1e-10)


@pytest.mark.parametrize("prior", ["D", "E", "B", "~B", "TwoOut"])
def test_samples_have_the_mean_and_their_probability(prior):
    points, weights = X[:3], np.array([2.0, 1.0, 2.0])
    posterior = law_of(prior, "constant").posterior(points, sample_weight=weights)
    rng = np.random.default_rng(0)
    drawn = [posterior.sample(rng).toarray() for _ in range(4000)]
    mean = posterior.mean()
    assert (np.abs(np.mean(drawn, axis=0) - mean) <= 5 * np.sqrt(mean * weights[0] / len(drawn)) + 1e-12).all()
    graphs, counts = np.unique(np.array(drawn).reshape(len(drawn), -1), axis=0, return_counts=True)
    chances = np.exp([posterior.log_prob(graph.reshape(3, 3)) for graph in graphs])
    assert 0.97 < chances.sum() <= 1 + 1e-9
    common = counts > 60
    assert common.sum() > 2
    off = counts[common] - len(drawn) * chances[common]
    assert (np.abs(off) < 5 * np.sqrt(len(drawn) * chances[common])).all()
    for seed in range(20):
        np.testing.assert_array_equal(posterior.sample_edges(seed), posterior.sample(seed).nonzero())
    assert posterior.log_prob(99 * (1 - np.eye(3))) == -np.inf


def test_edges_whose_probability_underflows_leave_the_others_theirs():
    """Each of two far groups has the graph of a law of its own; prior E draws the edges of both at once."""
    Z, weights, far = (
        np.array([[0.0], [1.0], [60.0], [61.0]]),
        np.array([2.0, 1.0, 3.0, 1.0]),
        gc.GraphModel("gaussian", "D"),
    )
    law, parts = far.posterior(Z, sample_weight=weights), [slice(0, 2), slice(2, 4)]
    for seed in range(5):
        graph = law.sample(seed).toarray()
        own = [far.posterior(Z[p], sample_weight=weights[p]).log_prob(graph[p, p]) for p in parts]
        assert law.log_prob(graph) == pytest.approx(sum(own), rel=1e-9)
    everywhere = gc.GraphModel("gaussian", "E").posterior(Z, sample_weight=weights)
    assert np.isfinite(everywhere.log_prob(everywhere.sample(0)))


def test_entropies_are_those_of_all_copies():
    for prior in ("D", "B"):
        law = law_of(prior, "perplexity")
        expected = law.posterior(X[COPIES]).entropy()
        assert law.posterior(X, sample_weight=WEIGHTS).least_entropy() == pytest.approx(expected, rel=1e-9)


def test_sampled_repulsion_draws_by_weight():
    """Edges among the copies of a point pull nothing, but bring their pushes; without these, the loss ends at 598."""
    points = np.unique(gc.datasets.load("iris")[0], axis=0)[::2]
    weights = np.where(np.arange(len(points)) % 3 == 0, 20.0, 1.0)
    sampled, full = (gc.LargeVis(perplexity=30, repulsion=r, random_state=0) for r in ("sampled", "effective"))
    least = full.fit(points, sample_weight=weights).loss_
    assert sampled.fit(points, sample_weight=weights).loss_ < least + 0.2 * abs(least)


METHODS = {
    "TSNE": gc.TSNE(perplexity=6),
    "SNE": gc.SNE(perplexity=6),
    "LargeVis": gc.LargeVis(perplexity=6),
    "UMAP full": gc.UMAP(n_neighbors=COPIES.size, repulsion="full"),
    "Student": gc.GraphCoupling(law_of("~B", "connectivity"), gc.GraphModel(gc.Student(), "B"), coupling="effective"),
    "prior of one's own": gc.GraphCoupling(law_of("TwoOut", "perplexity"), gc.GraphModel(gc.Student(), "TwoOut")),
}


def test_weights_of_one_are_none():
    """A row's own place, of weight 0 there, is the nearest of all: bandwidths are found without its help."""
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(30))
    for seed in range(10):
        points = gc.datasets.make_branches(150, random_state=seed)[0]
        weighted, plain = law.posterior(points, sample_weight=np.ones(150)), law.posterior(points)
        np.testing.assert_allclose(weighted.mean(), plain.mean(), rtol=1e-6, atol=1e-12)


# Copies in one place, under a kernel without bound, would rather be anywhere else.
@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
@pytest.mark.filterwarnings("ignore:no embedding with a lower loss")  # one step from there
@pytest.mark.parametrize("name", METHODS)
def test_estimators_report_the_loss_of_all_copies_and_place_alike(name, tmp_path):
    method = METHODS[name].set_params(random_state=0, max_iter=40)
    fitted = method.fit(X, sample_weight=WEIGHTS)
    new = X[:5] + 0.1 * RNG.normal(size=(5, 3))
    placed, loss = fitted.transform(new, return_loss=True)
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(gc.load(tmp_path / "model", classes=[TwoOut]).transform(new), placed)
    whole = gc.GraphCoupling(**method.sentence.replace(init=fitted.embedding_[COPIES], max_iter=1)).fit(X[COPIES])
    # The loss of 1/d² is infinite between copies, and left out where they are weights.
    if name != "LargeVis":
        assert fitted.loss_ == pytest.approx(whole.loss_history_[0], rel=1e-9)
    assert np.isfinite(loss).all()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("metric", "scales"), [("seuclidean", lambda R: R.var(axis=0, ddof=1)), ("mahalanobis", lambda R: np.cov(R.T))]
)
def test_scales_of_a_metric_given_for_all_rows_hold_for_merged_rows(metric, scales, rng):
    """The remedy in the documentation of `unique`: merged rows alone have other scales."""
    points = rng.normal(size=(60, 4))
    rows = np.vstack([points, *[points[:10]] * 5])
    given = {"metric": metric, "metric_params": {"V": scales(rows)}}
    law = gc.GraphModel("gaussian", "D", gc.Perplexity(6), **given).posterior(rows)
    losses = gc.CrossEntropy(law, gc.GraphModel("student", "E"))
    merged = gc.TSNE(unique=True, perplexity=6, max_iter=5, random_state=0, **given).fit(rows)
    assert merged.loss_ == pytest.approx(losses.value(merged.embedding_), rel=1e-9)
    own = gc.TSNE(unique=True, perplexity=6, max_iter=5, random_state=0, metric=metric).fit(rows)
    assert own.loss_ != pytest.approx(merged.loss_, rel=1e-4)


def test_new_points_feel_the_weights():
    fitted = gc.TSNE(perplexity=6, random_state=0).fit(X, sample_weight=WEIGHTS)
    new = X[:4] + 0.2
    edges = fitted._given.new_edges(new).to_csr().toarray()
    among_all = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(6)).new_edges(X[COPIES], new).toarray()
    gather = np.zeros((COPIES.size, 17))
    gather[np.arange(COPIES.size), COPIES] = 1.0
    np.testing.assert_allclose(edges, among_all @ gather, rtol=1e-8, atol=1e-12)
    twice = np.vstack([X, X[:1]])
    for prior in "DEB":
        model = gc.GraphModel(gc.Gaussian(), prior)
        at_zero = model.given(twice, sample_weight=np.append(WEIGHTS, 2.0)).new_edges(X[:1]).to_csr().toarray()[0]
        assert at_zero[0] / at_zero[17] == pytest.approx(WEIGHTS[0] / 2.0)
    places = fitted.transform(new)
    rows = np.arange(4)
    drawn = fitted._map.drawn(fitted._given.new_edges(new), 0, 4)
    loss, slope, stiffness = fitted._map.evaluate(places, drawn, rows)
    sq_dist = cdist(places, fitted.embedding_[COPIES], "sqeuclidean")
    expected = np.log((1 / (1 + sq_dist)).sum(axis=1)) + (among_all * np.log1p(sq_dist)).sum(axis=1)
    np.testing.assert_allclose(loss, expected, rtol=1e-9)
    np.testing.assert_allclose(stiffness, 2.0 * (among_all / (1 + sq_dist)).sum(axis=1), rtol=1e-9)
    assert np.abs(slope).max() < 1e-3


def test_weighted_places_do_not_depend_on_the_batch():
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(400, 3)), rng.uniform(0.3, 2.0, size=400)
    new = rng.normal(size=(300, 3))
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), n_neighbors=15)
    whole = law.given(points, sample_weight=weights).new_edges(new)
    for a, b in [(0, 1), (123, 124), (200, 300)]:
        part = law.given(points, sample_weight=weights).new_edges(new[a:b])
        np.testing.assert_array_equal(whole.to_csr()[a:b].toarray(), part.to_csr().toarray())


def test_weights_of_updates_and_of_nothing():
    fitted = gc.TSNE(perplexity=6, random_state=0, max_iter=30).fit(X[:15], sample_weight=WEIGHTS[:15])
    fitted.update(X[15:], sample_weight=WEIGHTS[15:])
    np.testing.assert_array_equal(fitted.posterior_.node_weights, WEIGHTS)
    fitted.update(X[:1] + 9.0)
    assert fitted.posterior_.node_weights[-1] == 1.0


def test_doubling_all_weights_keeps_the_shape_of_the_loss():
    law, latent = gc.GraphModel(gc.Gaussian(), "E"), gc.GraphModel(gc.Student(), "E")
    weights = (np.full(17, 0.8), np.full(17, 0.4))
    once, half = (gc.CrossEntropy(law.posterior(X, sample_weight=w), latent) for w in weights)
    assert once.value(Z) - once.lower_bound == pytest.approx(2 * (half.value(Z) - half.lower_bound), rel=1e-9)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), "shape"),
        (np.r_[np.ones(16), 0.0], "above 0, got 0"),
        (np.r_[np.ones(16), np.nan], "NaN"),
        ("heavy", "numbers"),
    ],
)
def test_bad_weights_are_refused(weights, message):
    with pytest.raises((TypeError, ValueError), match=message):
        gc.TSNE(perplexity=5).fit(X, sample_weight=weights)


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_weights_where_they_have_no_meaning_are_refused():
    with pytest.raises(ValueError, match="integer sample weights"):
        law_of("D", "constant").posterior(X, sample_weight=np.full(17, 0.5)).log_prob(np.zeros((17, 17)))
    with pytest.raises(ValueError, match="ComponentMeans takes no sample weights"):
        gc.HierarchicalCoupling(gc.TSNE(perplexity=5)).fit(X, sample_weight=WEIGHTS)
    with pytest.raises(ValueError, match="CCPCA takes no sample weights"):
        gc.CCPCA(input=law_of("D", "perplexity").posterior(X, sample_weight=WEIGHTS)).fit(X)
    ring = np.roll(np.eye(17), 1, axis=1)
    with pytest.raises(ValueError, match="sample_weight cannot be used when `input`"):
        gc.GraphCoupling(ring, gc.GraphModel(gc.Student(), "E")).fit(X, sample_weight=WEIGHTS)
    latent = gc.GraphModel(gc.Student(), gc.FixedEdges(np.ones((17, 17))))
    with pytest.raises(ValueError, match="must say how its edges are drawn"):
        gc.GraphCoupling(law_of("D", "perplexity"), latent, init="pca").fit(X, sample_weight=WEIGHTS)
    with pytest.raises(TypeError, match="no argument 'weight'"):
        gc.TSNE(perplexity=5).fit(X, weight=WEIGHTS)
    with pytest.raises(ValueError, match=r"Matching\(\) does not"):
        gc.GraphModel(gc.Gaussian(), Matching()).posterior(X, sample_weight=WEIGHTS)


@pytest.mark.parametrize("method", [gc.TSNE(), gc.UMAP()])
def test_weights_that_sum_to_one_are_refused(rng, method):
    with pytest.raises(ValueError, match=r"sums to 1, fewer than two points.* weights / weights.mean\(\)"):
        method.fit(rng.normal(size=(40, 3)), sample_weight=np.full(40, 1 / 40))


def test_copies_at_distance_0_under_a_kernel_infinite_there():
    """With independent edges the pairs of copies are left out, which leaves a multiple of the sum without weights."""
    law, double = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)), np.full(17, 2.0)
    latents = {prior: gc.GraphModel(gc.Odds(gc.Student()), prior) for prior in "BDE"}
    plain = gc.CrossEntropy(law.posterior(X), latents["B"])
    copies = gc.CrossEntropy(law.posterior(X, sample_weight=double), latents["B"])
    np.testing.assert_allclose(copies.partition.gradient(Z), 4.0 * plain.partition.gradient(Z), rtol=1e-10)
    for prior in "DE":
        plain = gc.CrossEntropy(law.posterior(X), latents[prior])
        single = gc.CrossEntropy(law.posterior(X, sample_weight=np.ones(17)), latents[prior])
        assert single.value(Z) == pytest.approx(plain.value(Z), rel=1e-9)
        # Without the pairs of copies the loss would fall for ever as the map grows.
        with pytest.raises(ValueError, match="points cannot share a place, but a sample_weight above 1"):
            gc.CrossEntropy(law.posterior(X, sample_weight=double), latents[prior])


def test_graphs_of_copies_are_checked_as_other_graphs_are():
    law = law_of("D", "none").posterior(X, sample_weight=np.full(17, 2.0))
    W = law.sample(0)
    assert np.isfinite(law.log_prob(W))
    for wrong in (W * 0.5, -1 * W):
        with pytest.raises(ValueError, match="non-negative integers"):
            law.log_prob(wrong)
    law = law_of("~B", "none").posterior(X, sample_weight=np.full(17, 2.0))
    W = law.sample(0)
    assert np.isfinite(law.log_prob(W))
    for directed in (sp.triu(W), W + sp.tril(W)):
        assert law.log_prob(directed) == -np.inf


@pytest.mark.parametrize("prior", [gc.Binary, gc.FixedEdges], ids=lambda prior: prior.__name__)
def test_the_diagonal_of_an_edge_prior_favours_edges_among_copies(prior):
    favour = RNG.random((17, 17))
    law = gc.GraphModel("gaussian", prior(favour), BANDWIDTHS["constant"])
    repeated = gc.GraphModel("gaussian", prior(favour[COPIES][:, COPIES]), BANDWIDTHS["constant"])
    weighted, expected = law.posterior(X, sample_weight=WEIGHTS), dense(gathered(repeated.posterior(X[COPIES]).mean()))
    np.testing.assert_allclose(weighted.own_means, np.diag(expected), rtol=1e-8, atol=1e-12)
    between = expected - np.diag(np.diag(expected))
    np.testing.assert_allclose(dense(weighted.mean()), between, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("bandwidth", ["perplexity", "self-tuning", "connectivity"])
@pytest.mark.parametrize("prior", [gc.Binary, gc.UnitOutDegree], ids=lambda prior: prior.__name__)
def test_copies_that_may_have_no_edges_are_no_neighbors(prior, bandwidth):
    allowed = 1.0 - np.eye(17)
    law = gc.GraphModel("gaussian", prior(allowed), BANDWIDTHS[bandwidth])
    repeated = gc.GraphModel("gaussian", prior(allowed[COPIES][:, COPIES]), BANDWIDTHS[bandwidth])
    weighted, expected = law.posterior(X, sample_weight=WEIGHTS), gathered(repeated.posterior(X[COPIES]).mean())
    np.testing.assert_allclose(dense(weighted.mean()), dense(expected), rtol=1e-8, atol=1e-12)


def test_far_places_with_copies_have_edges_among_copies_alone():
    X = 1000.0 * np.eye(3)
    plain, law = (gc.GraphModel("gaussian", prior) for prior in ("D", "E"))
    Z = gc.GraphCoupling(plain, gc.GraphModel("student", "E"), random_state=0).fit_transform(X, sample_weight=[5] * 3)
    assert np.isfinite(Z).all()
    assert law.posterior(X, sample_weight=[5] * 3).edge_means.sum() == 0.0
