"""Several laws of the input's graph at once: mixtures against enumeration, their parts, and openTSNE."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.neighbors import KNeighborsTransformer, kneighbors_graph

import graphcouple as gc
from graphcouple.laws.priors import as_prior

PAIRS = [(("D", "D"), "E"), (("D", "E"), "E"), (("B", "D"), "B"), (("D", "D"), "D")]


def points(n, p=4, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def full(posterior):
    return posterior.support.to_csr(posterior.edge_means).toarray()


def by_enumeration(posterior):
    """Return every graph of a law's prior and its probability, from natural parameters alone."""
    graphs, log_base = posterior.prior_class.enumerate(posterior.n_nodes)
    eta = np.zeros((posterior.n_nodes,) * 2)
    eta[posterior.support.rows, posterior.support.indices] = posterior.natural_parameters
    log_weight = (graphs * eta).sum(axis=(1, 2)) + log_base
    return graphs, np.exp(log_weight - np.logaddexp.reduce(log_weight))


@pytest.mark.parametrize(("codes", "latent"), PAIRS)
def test_a_mixture_by_enumeration(codes, latent):
    X, Z, weights = points(3), points(3, 2, seed=1), np.array([0.3, 0.7])
    parts = [
        gc.GraphModel(gc.Gaussian(), c, gc.ConstantBandwidth(s)).posterior(X)
        for c, s in zip(codes, (1, 3), strict=True)
    ]
    mixture = gc.MixturePosterior(parts, [3, 7])
    model = gc.GraphModel(gc.Student(), latent)
    embedded = model.posterior(Z)
    mean, cross = np.zeros((3, 3)), 0.0
    for weight, part in zip(weights, parts, strict=True):
        for graph, probability in zip(*by_enumeration(part), strict=True):
            mean += weight * probability * graph
            # Without the base measure, as `CrossEntropy.value`.
            cross -= weight * probability * ((graph * embedded_eta(embedded)).sum() - embedded.log_partition())
    assert np.allclose(mixture.mean(), mean, atol=1e-12)
    assert gc.CrossEntropy(mixture, model).value(Z) == pytest.approx(cross, rel=1e-12)


def embedded_eta(posterior):
    eta = np.zeros((posterior.n_nodes,) * 2)
    eta[posterior.support.rows, posterior.support.indices] = posterior.natural_parameters
    return eta


def test_log_probabilities_sum_to_one_and_samples_follow_them():
    X = points(3)
    parts = [gc.GraphModel(gc.Gaussian(), "D", gc.ConstantBandwidth(s)).posterior(X) for s in (0.5, 4.0)]
    mixture = gc.MixturePosterior(parts, [1, 3])
    graphs, _ = as_prior("D").enumerate(3)
    probabilities = np.exp([mixture.log_prob(graph) for graph in graphs])
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    rng = np.random.default_rng(0)
    n = 4000
    drawn = [mixture.sample(rng).toarray() for _ in range(n // 2)]
    for rows, columns in (mixture.sample_edges(rng) for _ in range(n // 2)):
        graph = np.zeros((3, 3))
        graph[rows, columns] = 1
        drawn.append(graph)
    counts = np.array([sum((graph == each).all() for each in drawn) for graph in graphs])
    deviation = np.sqrt(n * probabilities * (1 - probabilities))
    assert (np.abs(counts - n * probabilities) < 4.5 * deviation).all()
    # The true entropy lies between the bound and the bound plus that of the choice of a law.
    entropy = -float(probabilities @ np.log(probabilities))
    assert mixture.least_entropy() < entropy < mixture.least_entropy() + np.log(2)


def test_multi_scale_similarities_are_those_of_opentsne():
    from openTSNE.affinity import Multiscale

    X = points(300, 5)
    theirs = Multiscale(X, perplexities=[10, 60], method="exact", symmetrize=False).P
    laws = [gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(p), n_neighbors=180) for p in (10, 60)]
    ours = gc.GraphMixture(laws).posterior(X).mean()
    difference = np.abs((ours / 300 - theirs).toarray())
    assert difference.max() < 1e-5 * theirs.max()


@pytest.mark.parametrize("n_neighbors", [(15, 60), (None, 20), (None, None)])
def test_one_search_serves_all_laws(n_neighbors):
    X = points(100)
    laws = [gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), k) for k in n_neighbors]
    laws.append(gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(9), 30, metric="manhattan"))
    mixture = gc.GraphMixture(laws, [1, 2, 3]).posterior(X)
    for law, part in zip(laws, mixture.laws, strict=True):
        alone = law.posterior(X)
        assert (full(alone) == full(part)).all()
    expected = sum(w * full(part) for w, part in zip(mixture.weights, mixture.laws, strict=True))
    assert np.allclose(full(mixture), expected, atol=1e-15)


@pytest.mark.parametrize("blocks", [[], [gc.Block([0], lambda u, v: float(abs(u - v).sum()))]])
def test_laws_whose_metrics_print_alike_keep_their_own_distances(blocks):
    X, weights = points(40, 1200), np.ones((2, 1200))
    weights[0, 3:600] = weights[1, 600:1197] = 0.0
    weighted = [gc.Block(slice(None), "minkowski", metric_params={"p": 2, "w": w}) for w in weights]
    laws = [gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), metric=gc.Blocks([w, *blocks])) for w in weighted]
    expected = np.mean([full(law.posterior(X)) for law in laws], axis=0)
    assert np.allclose(full(gc.GraphMixture(laws).posterior(X)), expected, atol=1e-15)


def test_laws_of_one_search_of_their_own_and_light_points():
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10), 30, search=KNeighborsTransformer())
    X, light = points(40), np.full(40, 0.5)
    alone, both = (full(each.posterior(X, sample_weight=light)) for each in (law, gc.GraphMixture([law, law])))
    assert np.allclose(alone, both, atol=1e-15)


class Remembering:
    def __call__(self, u, v):
        self.last = u
        return float(abs(u - v).sum())


def test_a_metric_that_remembers_its_calls_is_one_metric():
    X, laws = points(20), [gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), metric=Remembering())] * 2
    plain = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), metric="manhattan").posterior(X)
    assert np.allclose(full(gc.GraphMixture(laws).posterior(X)), full(plain), atol=1e-12)


def test_a_cross_entropy_of_a_mixture_is_the_mean_of_its_parts():
    X, Z = points(60), points(60, 2, seed=1)
    laws = [gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(p), 3 * p) for p in (5, 15)]
    latent = gc.GraphModel(gc.Student(), "E")
    mixture = gc.GraphMixture(laws, [1, 4])
    loss, gradient = gc.CrossEntropy(mixture.posterior(X), latent).value_and_grad(Z)
    each = [gc.CrossEntropy(law.posterior(X), latent).value_and_grad(Z) for law in laws]
    assert loss == pytest.approx(0.2 * each[0][0] + 0.8 * each[1][0], rel=1e-12)
    assert np.allclose(gradient, 0.2 * each[0][1] + 0.8 * each[1][1], atol=1e-12)


def test_the_lower_bound_is_below_every_embedding():
    X = points(40)
    B = gc.GraphModel(gc.Odds(gc.Exponential()), "B", gc.LocalConnectivity(10), 9, symmetrize="threshold")
    D = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5))
    for law, latent in ((gc.GraphMixture([B]), "B"), (gc.GraphMixture([D, D]), "B"), (gc.GraphMixture([D]), "E")):
        objective = gc.CrossEntropy(law.posterior(X), gc.GraphModel(gc.Student(), latent))
        solution = gc.solve(objective, X[:, :2], max_iter=200)
        assert objective.lower_bound < solution.loss
    # Attained where the embedding's law has the mean of the input's.
    posterior = B.posterior(X)
    same = gc.CrossEntropy(posterior, gc.GraphModel(gc.Odds(gc.Student()), "B"))
    assert same.lower_bound == pytest.approx(posterior.entropy(), rel=1e-10)


def test_presets_take_several_perplexities():
    X = points(120)
    tsne = gc.TSNE(perplexity=[4, 30], random_state=0)
    fitted = clone(tsne).fit(X)
    laws = [gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(p), "auto") for p in (4, 30)]
    assert fitted.sentence.input == gc.GraphMixture(laws)
    said = clone(gc.GraphCoupling(**fitted.sentence)).fit(X)
    assert (said.embedding_ == fitted.embedding_).all()
    assert "30" in str(fitted.sentence)
    assert "4" in str(fitted.sentence)
    for start in ("ccpca", "spectral"):
        other = clone(tsne).set_params(init=start, max_iter=20)
        assert np.isfinite(gc.HierarchicalCoupling(other, weight=1.0).fit(X).loss_)
    assert gc.TSNE(perplexity=(30,), random_state=0).fit(X).loss_ == gc.TSNE(random_state=0).fit(X).loss_
    assert gc.CCPCA(input=gc.GraphMixture(laws), n_samples=20).fit(X).embedding_.shape == (120, 2)


def test_laws_that_do_not_go_together():
    X = points(40)
    D = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5))
    B = gc.GraphModel(gc.Gaussian(), "B")
    with pytest.raises(ValueError, match=r"from prior D\+B .* to prior E"):
        gc.GraphCoupling(gc.GraphMixture([D, B]), gc.GraphModel(gc.Student(), "E")).fit(X)
    for wrong, message in (
        (lambda: gc.GraphMixture([D, "D"]), "GraphModels"),
        (lambda: gc.GraphMixture([]), "at least one"),
        (lambda: gc.GraphMixture([D, D], [1]), "weights"),
        (lambda: gc.GraphMixture([D, D], [1, -1]), "weights"),
        (lambda: gc.GraphMixture([D, gc.GraphModel(gc.Gaussian(), "D", metric="precomputed")]), "precomputed"),
        (lambda: gc.MixturePosterior([]), "at least one"),
        (lambda: gc.MixturePosterior([D.posterior(X), D.posterior(X[:20])]), "equally many"),
        (lambda: gc.TSNE(perplexity=[]).fit(X), "perplexity must be a number"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            wrong()
    threshold = gc.GraphModel(gc.Gaussian(), "B", symmetrize="threshold")
    with pytest.raises(ValueError, match="thresholded"):
        gc.GraphMixture([B, threshold]).posterior(X)
    neighbors = kneighbors_graph(X, 12, mode="distance")
    with pytest.raises(ValueError, match="neighbors have distances of one metric, but the laws have 2"):
        gc.GraphMixture([D, gc.GraphModel(gc.Gaussian(), "D", metric="chebyshev")]).given(X, neighbors)
    with pytest.raises(ValueError, match="no closed form"):
        gc.GraphMixture([D, B]).posterior(X).entropy()
    # One law has its own entropy, and no lower bound stands in for it.
    assert gc.MixturePosterior([D.posterior(X)]).entropy() == D.posterior(X).entropy()
    with pytest.raises(NotImplementedError, match="repeat their rows"):
        gc.MixturePosterior([D.posterior(X, sample_weight=np.full(len(X), 2.0))]).entropy()


def test_points_coincide_if_they_do_by_every_law():
    X = points(60)
    X[:, 3] = np.arange(60) % 6
    X[7] = X[1]
    views = [
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20), metric=gc.Blocks([block]))
        for block in (gc.Block([0, 1, 2]), gc.Block([3], "categorical"))
    ]
    others = X[[0, 0]] + np.diag([9.0, 0.0, 0.0, 1.0])[[0, 3]]
    new = np.concatenate([X[:8], others])
    means = []
    for laws in (views, views[::-1]):
        edges = gc.GraphMixture(laws).given(X).new_edges(new)
        np.testing.assert_array_equal(edges.coincident, [0, 1, 2, 3, 4, 5, 6, 1, -1, -1])
        means.append(edges.to_csr().toarray())
    np.testing.assert_allclose(*means, atol=1e-15)


def test_parts_know_what_the_mixture_does_not():
    X = points(40)
    graph = kneighbors_graph(X, 20, mode="distance")
    laws = [gc.GraphModel(gc.Gaussian(), "D", gc.LeaveOneOut(dim=4), metric="precomputed") for _ in range(2)]
    with pytest.raises(ValueError, match="needs distances to all points"):
        gc.GraphMixture(laws).posterior(graph)


def test_weights_of_mixtures_are_checked_first():
    X = points(20)
    with pytest.raises(ValueError, match="sample_weight must be finite"):
        gc.TSNE(perplexity=(2, 3)).fit(X, sample_weight=[np.nan] * 20)
    laws = [gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5))] * 2
    with pytest.raises(TypeError, match="weights must hold a number"):
        gc.GraphMixture(laws, weights=["a", "b"])
    assert gc.GraphMixture(laws, [1, 2]) == gc.GraphMixture(laws, np.array([2.0, 4.0]))
    assert gc.GraphMixture(laws, [1, 2]) != gc.GraphMixture(laws, [2, 1])
