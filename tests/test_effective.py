"""The effective loss against literal sums, and sampling against the forces it has in expectation."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from scipy.spatial.distance import cdist, pdist

import graphcouple as gc
from graphcouple import graphs
from graphcouple._numba.sampling import alias_table
from graphcouple.couplings import NoiseContrastiveCrossEntropy
from graphcouple.couplings.fixed_map import noise_of
from graphcouple.kernels import ScaledKernel
from graphcouple.summation import Auto, Exact, ParticleMesh
from graphcouple.summation.radials import KernelValue
from tests.reference import numerical_gradient, relative_error

N = 60
UMAP = {"repulsion_strength": 1.0, "noise_exponent": 0.0}
LARGEVIS = {"repulsion_strength": 7.0, "noise_exponent": 0.75}


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(1)
    return rng.normal(size=(N, 5)), rng.normal(size=(N, 2))


def coupled(points, method):
    """The two laws' posterior and latent model, and the symmetric weights μ as a dense array."""
    model, latent = (gc.UMAP(n_neighbors=10) if method is UMAP else gc.LargeVis(perplexity=10)).models(N)
    posterior = model.posterior(points[0])
    means = posterior.mean()
    means = means.toarray() if sp.issparse(means) else means
    return posterior, latent, means if method is UMAP else means + means.T


def literal_loss(mu, Z, kernel, n_negative, strength, exponent):
    degrees = mu.sum(axis=1)
    noise = degrees**exponent / (degrees**exponent).sum()
    total = 0.0
    for i in range(N):
        for j in range(i + 1, N):
            v = kernel.value(((Z[i] - Z[j]) ** 2).sum())
            c = n_negative / 2 * (degrees[i] * noise[j] + degrees[j] * noise[i])
            total -= mu[i, j] * np.log(v) + strength * c * np.log(1 - v)
    return total


@pytest.mark.parametrize("method", [UMAP, LARGEVIS], ids=["umap", "largevis"])
@pytest.mark.parametrize("n_negative", [1, 5, 2.5])
def test_value_and_gradient(points, method, n_negative):
    posterior, latent, mu = coupled(points, method)
    objective = gc.EffectiveCrossEntropy(posterior, latent, n_negative, **method)
    Z = points[1]
    wanted = literal_loss(mu, Z, latent.kernel.kernel, n_negative, *method.values())
    assert objective.value(Z) == pytest.approx(wanted, rel=1e-11)
    value, gradient = objective.value_and_grad(Z)
    assert value == pytest.approx(wanted, rel=1e-11)
    assert relative_error(gradient, numerical_gradient(objective.value, Z)) < 1e-6
    np.testing.assert_allclose(objective.gradient(Z), gradient, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("exponent", [0.0, 0.75, 1.5])
def test_points_without_edges_repel_by_their_degree(points, exponent):
    """As in the limit of light edges, the noise is 0 unless it is uniform; an empty graph has no repulsion."""
    rng = np.random.default_rng(2)
    mu = np.triu(rng.random((N, N)) * (rng.random((N, N)) < 0.2), 1)
    mu[:5] = mu[:, :5] = 0.0
    mu += mu.T
    latent = gc.GraphModel(gc.Odds(gc.Student()), "B")
    objective = gc.EffectiveCrossEntropy(gc.Binary().around(mu), latent, 5, noise_exponent=exponent)
    wanted = literal_loss(mu, points[1], gc.Student(), 5, 1.0, exponent)
    assert objective.value(points[1]) == pytest.approx(wanted, rel=1e-11)
    np.testing.assert_array_equal(noise_of(np.array([0.0, 4.0]), -0.5, np.array([3.0, 1.0])), [3.0, 0.5])
    empty = gc.EffectiveCrossEntropy(gc.Binary().around(0.0 * mu), latent, 5, noise_exponent=exponent)
    assert empty.value(points[1]) == 0.0


def test_any_kernel_and_a_bandwidth(points):
    posterior, _, mu = coupled(points, UMAP)
    latent = gc.GraphModel(gc.Gaussian(), "B", gc.ConstantBandwidth(2.0))
    objective = gc.EffectiveCrossEntropy(posterior, latent)
    Z = points[1]
    k = np.exp(-(cdist(Z, Z) ** 2) / 8)
    degrees, upper = mu.sum(axis=1), np.triu_indices(N, 1)
    charges = (degrees[:, None] + degrees) * 5 / (2 * N)
    wanted = (charges * np.log1p(k) - mu * np.log(k / (1 + k)))[upper].sum()
    assert objective.value(Z) == pytest.approx(wanted, rel=1e-11)
    assert relative_error(objective.gradient(Z), numerical_gradient(objective.value, Z)) < 1e-6


def test_blocks_of_edges_do_not_show(points, monkeypatch):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4), n_neighbors=9).posterior(points[0])
    model = gc.GraphModel(gc.Odds(gc.Student()), "B")
    whole = gc.EffectiveCrossEntropy(posterior, model, noise_exponent=0.75)
    dense = posterior.mean().toarray()
    np.testing.assert_allclose(whole.degrees, (dense + dense.T).sum(axis=0), rtol=1e-12)
    monkeypatch.setattr(graphs, "_PART_EDGES", 7)
    parts = gc.EffectiveCrossEntropy(posterior, model, noise_exponent=0.75)
    np.testing.assert_allclose(parts.degrees, whole.degrees, rtol=1e-13)
    assert parts.lower_bound == pytest.approx(whole.lower_bound, rel=1e-13)


def test_edges_that_underflow_leave_the_lower_bound_finite():
    X = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 0.5], [900.0, 0.0], [1000.0, 0.0]])
    posterior = gc.GraphModel(gc.Gaussian(), "B", n_neighbors=1).posterior(X)
    assert posterior.edge_means.min() == 0.0
    objective = gc.EffectiveCrossEntropy(posterior, gc.GraphModel(gc.Odds(gc.Student()), "B"))
    assert np.isfinite(objective.lower_bound)


def test_the_lower_bound_is_reached_by_a_single_pair():
    support = sp.csr_array(np.array([[0.0, 0.3], [0.3, 0.0]]))
    posterior = gc.Binary().posterior(support).thresholded()
    objective = gc.EffectiveCrossEntropy(posterior, gc.GraphModel(gc.Odds(gc.Student()), "B"), 2)
    best = scipy.optimize.minimize_scalar(lambda x: objective.value(np.array([[0.0], [x]])), bounds=(1e-3, 10.0))
    assert best.fun == pytest.approx(objective.lower_bound, rel=1e-9)


@pytest.mark.parametrize("method", [UMAP, LARGEVIS], ids=["umap", "largevis"])
def test_nothing_lies_below_the_lower_bound(points, method):
    posterior, latent, _ = coupled(points, method)
    objective = gc.EffectiveCrossEntropy(posterior, latent, **method)
    assert gc.solve(objective, points[1], max_iter=200).loss > objective.lower_bound > 0


@pytest.mark.parametrize("n", [2200, 4000])
def test_automatic_sums_leave_no_near_pair_out(rng, n):
    """Tight clusters, where softened repulsion lost most of the loss and of the force."""
    X = rng.normal(size=(n, 5))
    model, latent = gc.UMAP().models(n)
    posterior = model.posterior(X)
    Z = 5.0 * rng.normal(size=(20, 2))[rng.integers(0, 20, n)] + 0.1 * rng.normal(size=(n, 2))
    exact, auto = (gc.EffectiveCrossEntropy(posterior, latent, summation=s) for s in ("exact", "auto"))
    assert not isinstance(auto.summation.for_points(Z, auto.partition.radial), gc.Exact)
    assert auto.value(Z) == pytest.approx(exact.value(Z), rel=1e-4)
    assert relative_error(auto.gradient(Z), exact.gradient(Z)) < 1e-2


def test_refuses_other_latent_laws(points):
    posterior, _, _ = coupled(points, LARGEVIS)
    for prior in ("D", "E"):
        with pytest.raises(ValueError, match="prior B without a graph"):
            gc.EffectiveCrossEntropy(posterior, gc.GraphModel(gc.Student(), prior))
    with pytest.raises(ValueError, match="prior B without a graph"):
        gc.EffectiveCrossEntropy(posterior, gc.GraphModel(gc.Student(), gc.Binary(edge_prior=np.ones((N, N)))))
    scaled, plain = gc.GraphModel(ScaledKernel(gc.Student(), np.log(2.0)), "B"), gc.Binary(edge_prior=2.0)
    of_prior = gc.EffectiveCrossEntropy(posterior, gc.GraphModel(gc.Student(), plain), summation="exact")
    of_kernel = gc.EffectiveCrossEntropy(posterior, scaled, summation="exact")
    assert of_prior.value(points[1]) == pytest.approx(of_kernel.value(points[1]), rel=1e-12)
    latent = gc.GraphModel(gc.Student(), "B")
    for bad in ({"negative_sample_rate": 0}, {"repulsion_strength": -1.0}, {"noise_exponent": np.nan}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            gc.EffectiveCrossEntropy(posterior, latent, **bad)


# Sampling


def test_alias_table_is_the_law(rng):
    weights = rng.gamma(0.3, size=500)
    keep, other = np.empty(500), np.empty(500, dtype=np.int64)
    alias_table(weights, keep, other)
    law = keep.copy()
    np.add.at(law, other, 1.0 - keep)
    np.testing.assert_allclose(law / 500, weights / weights.sum(), rtol=1e-10)


@pytest.mark.parametrize("method", [UMAP, LARGEVIS], ids=["umap", "largevis"])
def test_sampled_moves_are_the_forces_in_expectation(points, method):
    """umap-learn's own forces: −2ab s^(b−1)/(1 + a s^b) along an edge, 2b/(s (1 + a s^b)) from a drawn point."""
    posterior, latent, mu = coupled(points, method)
    kernel = latent.kernel.kernel
    a, b = (kernel.a, kernel.b) if method is UMAP else (1.0, 1.0)
    Z = 3.0 * points[1]
    n_epochs, rate, n_negative = 4000, 1e-9, 3
    objective = gc.EffectiveCrossEntropy(posterior, latent, n_negative, **method)
    sampling = gc.NegativeSampling(rate, clip=1e9, softening=0.0, random_state=3)
    moved = gc.solve(objective, Z, sampling, max_iter=n_epochs, check_every=n_epochs).Z - Z
    force = moved / (rate * np.sum(1 - np.arange(n_epochs) / n_epochs))
    s = cdist(Z, Z) ** 2 + np.eye(N)
    f, degrees = mu / mu.max(), mu.sum(axis=1)
    noise = degrees ** method["noise_exponent"]
    noise /= noise.sum()
    pull = -2 * a * b * s ** (b - 1) / (1 + a * s**b) * 2 * f
    push = 2 * b / (s * (1 + a * s**b)) * n_negative * 2 * method["repulsion_strength"] * f.sum(axis=1)[:, None] * noise
    weight = (pull + push) * ~np.eye(N, dtype=bool)
    wanted = weight.sum(axis=1)[:, None] * Z - weight @ Z
    assert relative_error(force, wanted) < 0.05


def test_sampling_has_the_same_bits_for_any_number_of_threads(rng):
    X = rng.normal(size=(500, 5)).astype(np.float32)
    one, several, again, other = (
        gc.UMAP(repulsion="sampled", max_iter=30, random_state=seed, n_jobs=jobs).fit_transform(X)
        for seed, jobs in ((0, 1), (0, 3), (0, 2), (1, 2))
    )
    np.testing.assert_array_equal(one, several)
    np.testing.assert_array_equal(one, again)
    assert not np.array_equal(one, other)


@pytest.mark.filterwarnings("ignore:the start is used as given")
def test_sampling_descends_the_effective_loss(iris):
    sampled = gc.UMAP(repulsion="sampled", init="spectral", random_state=0).fit(iris[0])
    effective = gc.UMAP(random_state=0).fit(iris[0])
    objective = gc.EffectiveCrossEntropy(sampled.posterior_, gc.UMAP().models(150)[1], repulsion_strength=0.5)
    start, least = sampled.loss_history_[0], gc.solve(objective, effective.embedding_).loss
    assert 0 < sampled.loss_ - least < 0.6 * (start - least)
    assert sampled.loss_ == pytest.approx(objective.value(sampled.embedding_), rel=1e-12)


@pytest.mark.filterwarnings("ignore:the start is used as given")
def test_a_fixed_number_of_samples_an_epoch(points):
    """Edges are drawn in proportion to their weights, as many as asked for."""
    posterior, latent, mu = coupled(points, LARGEVIS)
    objective = gc.EffectiveCrossEntropy(posterior, latent, 1, **LARGEVIS)
    far = np.column_stack([np.arange(N) * 1e4, np.zeros(N)])
    rate, n_epochs = 1.0, 500
    sampling = gc.NegativeSampling(rate, samples_per_point=2.0, clip=1.0, n_pulls=1)
    moved = gc.solve(objective, far, sampling, max_iter=n_epochs, check_every=n_epochs).Z - far
    # So far apart every pull is 2/d and no push is felt; edges are drawn 2n times an epoch, each end once.
    wanted = mu / mu.sum() * 4 * N
    direction = np.sign(np.arange(N)[None] - np.arange(N)[:, None])
    distance = np.abs(np.arange(N)[None] - np.arange(N)[:, None]) * 1e4 + np.eye(N)
    force = (wanted * direction * 2 / distance).sum(axis=1)
    sampled = moved[:, 0] / (rate * np.sum(1 - np.arange(n_epochs) / n_epochs))
    assert relative_error(sampled, force) < 0.05


def test_sampling_needs_its_objective_and_whole_samples(points):
    posterior, latent, _ = coupled(points, UMAP)
    with pytest.raises(TypeError, match="NegativeSampling needs an EffectiveCrossEntropy"):
        gc.solve(gc.CrossEntropy(posterior, latent), points[1], gc.NegativeSampling())
    with pytest.raises(ValueError, match=r"negative_sample_rate=2\.5"):
        gc.solve(gc.EffectiveCrossEntropy(posterior, latent, 2.5), points[1], gc.NegativeSampling())
    with pytest.raises(TypeError, match="repulsion='effective'"):
        gc.HierarchicalCoupling(gc.UMAP(repulsion="sampled", n_neighbors=10)).fit(points[0])
    with pytest.raises(ValueError, match="softening"):
        gc.NegativeSampling(softening=-1.0)


@pytest.mark.parametrize("repulsion", ["effective", "full", "sampled"])
@pytest.mark.parametrize("estimator", [gc.UMAP(), gc.LargeVis(perplexity=20)], ids=["umap", "largevis"])
def test_every_repulsion_keeps_the_classes(estimator, repulsion, iris):
    X, y = iris
    Z = estimator.set_params(repulsion=repulsion, init="pca", random_state=0).fit_transform(X)
    distances = cdist(Z, Z) + 1e9 * np.eye(150)
    assert (y[distances.argmin(axis=1)] == y).mean() > 0.9


# The choice of a summation


def test_auto_is_what_it_chooses(rng):
    kernel = KernelValue(gc.Student())
    for shape, kind in (((300, 2), Exact), ((3000, 2), ParticleMesh), ((3000, 1), ParticleMesh), ((3000, 4), Exact)):
        Z = rng.normal(size=shape)
        chosen = Auto().for_points(Z, kernel)
        assert isinstance(chosen, kind)
        for ours, theirs in zip(Auto().potential(Z, kernel), kind().potential(Z, kernel), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_auto_takes_a_tree_where_points_are_too_crowded_for_a_grid(rng):
    Z = 1e4 * rng.normal(size=(25_000, 2))
    radial = KernelValue(gc.Student())
    assert type(Auto().for_points(Z, radial)).__name__ == "ParticleMesh"
    crowded = np.concatenate([1e-7 * Z[:20_000], Z[20_000:]])
    assert type(Auto().for_points(crowded, radial)).__name__ == "BarnesHut"
    # A line's grid is narrow: it may be far longer.
    assert type(Auto().for_points(crowded[:, :1], radial)) is Exact
    assert type(Auto().for_points(np.zeros((25_000, 2)), radial)).__name__ == "ParticleMesh"


def test_sampled_steps_are_short_where_the_graph_is_connected(rng, monkeypatch):
    monkeypatch.setattr("graphcouple.optimize.descent._SAMPLED_FROM", 50)
    noise = rng.normal(size=(200, 5))
    rates = {}
    for name, X in {"connected": noise, "pieces": noise + 50.0 * (np.arange(200) % 4 == 0)[:, None]}.items():
        posterior = gc.UMAP(n_neighbors=8).models(200)[0].posterior(X)
        objective = gc.EffectiveCrossEntropy(posterior, gc.UMAP().models(200)[1])
        _, optimizer = gc.optimize.Descent().plan(objective, X[:, :3], 100, smooth=True)
        draws = objective.edges[2].sum() / objective.edges[2].max() / 200
        rates[name] = optimizer.learning_rate * draws / 2.0
        assert optimizer.n_pulls == 1
    assert rates["connected"] == pytest.approx(1.0)
    assert rates["pieces"] > 1.2


@pytest.mark.parametrize("edge_prior", [0.2, 1.0, 40.0])
def test_neg_tsne_is_the_papers_loss(rng, edge_prior):
    """All points have the same degree here, so that sampled pairs are uniform."""
    n, m = 12, 5
    ring = 0.5 * np.roll(np.eye(n), 1, axis=1) + 0.5 * np.roll(np.eye(n), -1, axis=1)
    Z = rng.normal(size=(n, 2))
    pairs = np.triu_indices(n, 1)
    q = 1.0 / (1.0 + ((Z[pairs[0]] - Z[pairs[1]]) ** 2).sum(axis=1))
    # Equation 8 of Damrich et al. (2023), with n² / 2 for the number of pairs.
    fixed = n**2 / (2 * m * edge_prior)
    near = q / (q + fixed * m / (n**2 / 2))
    edges = ring[pairs]
    paper = -(edges * np.log(near)).sum() - m * edges.sum() / (n**2 / 2) * np.log1p(-near).sum()
    sentence = gc.NegTSNE(edge_prior=edge_prior).sentence
    posterior = gc.laws.priors.Binary().around(ring, "graph")
    objective = gc.EffectiveCrossEntropy(posterior, sentence.latent, sentence.coupling.negative_sample_rate)
    assert objective.value(Z) == pytest.approx(paper, rel=1e-12)


def test_neg_tsne_comes_nearest_to_tsne_at_its_normaliser(digits):
    X = digits[0][:300]
    tsne = gc.TSNE(perplexity=10, random_state=0).fit(X)
    objective = gc.CrossEntropy(tsne.posterior_, gc.GraphModel(gc.Student(), "E"))
    edge_prior = 300**2 / (2 * 5 * (1.0 / (1.0 + pdist(tsne.embedding_, "sqeuclidean"))).sum())
    few, tsnes, many = (
        objective.kl_divergence(gc.NegTSNE(perplexity=10, edge_prior=f * edge_prior, random_state=0).fit_transform(X))
        for f in (0.02, 1.0, 50.0)
    )
    assert tsne.kl_divergence_ < tsnes < 0.8 * min(few, many)


def literal_nce(mu, c, Z, log_prior):
    k = 1.0 / (1.0 + cdist(Z, Z, "sqeuclidean"))
    v = np.exp(log_prior) * k / (1.0 + np.exp(log_prior) * k)
    pairs = np.triu_indices(len(Z), 1)
    return -(mu * np.log(v))[pairs].sum() - (c * np.log1p(-v))[pairs].sum()


@pytest.mark.parametrize(("exponent", "size"), [(0.0, 3.0), (0.75, 30.0)])
def test_nce_is_the_least_loss_over_the_edge_prior(rng, exponent, size):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8)).posterior(rng.normal(size=(40, 3)))
    Z, mu = size * rng.normal(size=(40, 2)), posterior.mean() + posterior.mean().T
    degrees = mu.sum(axis=1)
    noise = degrees**exponent / (degrees**exponent).sum()
    c = 0.5 * 7.0 * (np.outer(degrees, noise) + np.outer(noise, degrees))
    least = scipy.optimize.minimize_scalar(lambda log_prior: literal_nce(mu, c, Z, log_prior), bracket=(-1.0, 5.0))
    loss = NoiseContrastiveCrossEntropy(posterior, gc.GraphModel("student", "B"), 7.0, noise_exponent=exponent)
    assert loss.value(Z) == pytest.approx(least.fun, rel=1e-9)
    assert loss.basis(Z) == pytest.approx(least.x, abs=2e-3)
    for log_prior in (-1.0, 0.5, 4.0):
        assert loss.with_basis(log_prior).value(Z) == pytest.approx(literal_nce(mu, c, Z, log_prior), rel=1e-9)
    assert loss.value(Z) == pytest.approx(loss.repulsion(Z) - loss.attraction(Z), rel=1e-12)


@pytest.mark.parametrize("factor", [1.0, 6.0])
def test_nce_with_many_samples_has_the_gradient_of_tsne(rng, factor):
    """Exactly, where every point has the same degree; exaggeration keeps the normaliser of the stated loss."""
    posterior = gc.laws.SymmetricEntropic(bandwidth=gc.Perplexity(8)).posterior(rng.normal(size=(40, 3)))
    many = NoiseContrastiveCrossEntropy(posterior, gc.GraphModel("student", "B"), 1e7).exaggerated(factor)
    tsne = gc.CrossEntropy(posterior, gc.GraphModel("student", "E")).exaggerated(factor)
    Z = rng.normal(size=(40, 2))
    np.testing.assert_allclose(many.gradient(Z), tsne.gradient(Z), atol=1e-5 * np.abs(tsne.gradient(Z)).max())
    assert many.gradient(Z) == pytest.approx(numerical_gradient(many.value, Z), rel=1e-5, abs=1e-5)


def test_nce_takes_weights_and_refuses_samples(rng):
    X, Z = rng.normal(size=(30, 3)), rng.normal(size=(30, 2))
    weights = np.where(np.arange(30) < 10, 2.0, 1.0)
    law, latent = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)), gc.GraphModel("student", "B")
    rows = np.repeat(np.arange(30), weights.astype(int))
    weighted = NoiseContrastiveCrossEntropy(law.posterior(X, sample_weight=weights), latent)
    repeated = NoiseContrastiveCrossEntropy(law.posterior(X[rows]), latent)
    assert weighted.value(Z) == pytest.approx(repeated.value(Z[rows]), rel=1e-9)
    for size in (1e-3, 1.0, 100.0):
        assert weighted.lower_bound <= weighted.value(size * Z)
    with pytest.raises(TypeError, match="NegativeSampling needs"):
        gc.NegativeSampling().check(weighted)


def test_nce_keeps_more_neighbours_with_more_samples(digits):
    X = digits[0][:400]
    few, many = (gc.NCTSNE(negative_sample_rate=m, max_iter=99, random_state=0).fit(X) for m in (1.0, 100.0))
    kept = [gc.metrics.k_ary_preservation(X, method.embedding_, 10) for method in (few, many)]
    assert kept[0] + 0.03 < kept[1]


def test_new_points_feel_the_edge_prior_of_the_map(rng):
    X, Z = rng.normal(size=(50, 3)), 4.0 * rng.normal(size=(50, 2))
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8))
    nce = NoiseContrastiveCrossEntropy(law.posterior(X), gc.GraphModel("student", "B"))
    fixed = gc.EffectiveCrossEntropy(law.posterior(X), gc.GraphModel("student", gc.Binary(float(np.exp(nce.basis(Z))))))
    one, other = (each.fixed_map(Z) for each in (nce, fixed))
    places = rng.normal(size=(6, 2))
    np.testing.assert_allclose(one.field.at(places)[0], other.field.at(places)[0], rtol=5e-3)
    np.testing.assert_allclose(one.attraction.potential(2.0), other.attraction.potential(2.0), rtol=5e-3)
