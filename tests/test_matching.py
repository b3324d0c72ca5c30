"""Pairwise matching and LLE with two kernels: objectives against slow references, and where they end."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.manifold._locally_linear import barycenter_kneighbors_graph

import graphcouple as gc
from graphcouple.couplings import ReconstructionEnergy, reconstruction_weights
from graphcouple.couplings.losses import as_loss
from graphcouple.couplings.matching import AbsentCost
from graphcouple.neighbors import nearest_neighbors
from graphcouple.optimize import Descent
from graphcouple.optimize.solve import _iterations
from tests.reference import Fourth, Pole, numerical_gradient, pairwise, relative_error

RNG = np.random.default_rng(3)
N = 24
X, Z = RNG.normal(size=(N, 4)), RNG.normal(size=(N, 2))
OFF = ~np.eye(N, dtype=bool)


SYMMETRIC = {"mean": lambda a, b: (a + b) / 2, "or": lambda a, b: a + b - a * b, "first": lambda a, b: a}
KERNELS = {"student": gc.Student(), "gaussian": gc.Gaussian(), "umap": gc.RationalPower(1.6, 0.9)}


def law_of(prior, kernel, **options):
    symmetrize = "threshold" if prior == "~B" else None
    inner = gc.Odds(kernel) if "B" in prior else kernel
    return gc.GraphModel(inner, prior[-1], symmetrize=symmetrize, **options)


def slowly(posterior, prior, kernel, loss, how, places):
    strength = kernel.value(cdist(places, places, "sqeuclidean"))
    np.fill_diagonal(strength, 0.0)
    means = {"B": strength, "D": strength / strength.sum(axis=1, keepdims=True), "E": N * strength / strength.sum()}[
        prior
    ]
    given = np.asarray(posterior.mean().toarray() if sp.issparse(posterior.mean()) else posterior.mean())
    join = SYMMETRIC[how]
    wanted = given if posterior.unordered else join(given, given.T)
    found = join(means, means.T) if prior == "D" else means
    return as_loss(loss).cost(wanted, found)[OFF].sum()


@pytest.mark.parametrize(
    ("priors", "how", "loss"),
    pairwise(
        list(itertools.product(["B", "~B", "D"], "BDE")), {how: how for how in SYMMETRIC}, ("square", "kl", Fourth())
    ),
)
def test_the_objective_is_the_sum_over_all_pairs(priors, how, loss):
    # One kernel for each loss, because their product is compiled.
    kernel = KERNELS[{"square": "student", "kl": "umap"}.get(loss, "gaussian")]
    for neighbors in (None, 6):
        law = law_of(priors[0], gc.Gaussian(), bandwidth=gc.Perplexity(4), n_neighbors=neighbors)
        posterior = law.posterior(X)
        objective = gc.MatchedMeans(posterior, law_of(priors[1], kernel), loss, how)
        value, gradient = objective.value_and_grad(Z)
        assert value == pytest.approx(slowly(posterior, priors[1], kernel, loss, how, Z), rel=1e-10)
        assert relative_error(gradient, numerical_gradient(objective.value, Z)) < 1e-6
        assert objective.lower_bound <= value


@pytest.mark.parametrize("how", SYMMETRIC)
@pytest.mark.parametrize("prior", ["D", "E"])
def test_means_of_points_whose_kernel_values_underflow(prior, how):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(4)).posterior(X)
    objective = gc.MatchedMeans(posterior, gc.GraphModel(gc.Gaussian(), prior), "square", how)
    one_out = np.vstack([[[60.0, 60.0]], Z[1:]])
    all_apart = 60.0 * np.column_stack([np.arange(N), np.zeros(N)]) + 0.01 * Z
    for places in (one_out, all_apart):
        value, gradient = objective.value_and_grad(places)
        # The shift by the least squared distance of a row, or of all rows, leaves the means as they are.
        sq_dist = cdist(places, places, "sqeuclidean") + np.diag(np.full(N, np.inf))
        strength = np.exp(-0.5 * (sq_dist - (sq_dist.min(axis=1, keepdims=True) if prior == "D" else sq_dist.min())))
        means = strength / strength.sum(axis=1, keepdims=True) if prior == "D" else N * strength / strength.sum()
        join, given = SYMMETRIC[how], posterior.mean()
        found = join(means, means.T) if prior == "D" else means
        assert value == pytest.approx(np.square(join(given, given.T) - found)[OFF].sum(), rel=1e-9)
        assert relative_error(gradient, numerical_gradient(objective.value, places)) < 1e-5


def test_forces_add_up_to_nothing(rng):
    """Those of sums by the mesh do not quite, and descent by curvature would follow the difference."""
    X = rng.normal(size=(2500, 5))
    laws = gc.UMAP().sentence
    objective = gc.MatchedMeans(laws.input.posterior(X), laws.latent, "kl", summation="particle_mesh")
    Z = 20.0 * X[:, :2]
    for gradient in (objective.gradient(Z), objective.value_and_grad(Z)[1]):
        assert np.abs(gradient.mean(axis=0)).max() < 1e-14 * np.abs(gradient).max()


def test_the_bandwidth_of_the_embedding_scales_its_distances():
    posterior = law_of("B", gc.Gaussian(), bandwidth=gc.Perplexity(4)).posterior(X)
    plain, scaled = (
        gc.MatchedMeans(posterior, law_of("B", gc.Student(), bandwidth=b)) for b in (None, gc.ConstantBandwidth(2.0))
    )
    assert scaled.value(2.0 * Z) == pytest.approx(plain.value(Z), rel=1e-12)
    np.testing.assert_allclose(2.0 * scaled.gradient(2.0 * Z), plain.gradient(Z), rtol=1e-10)


def test_binary_kl_is_the_cross_entropy_of_independent_edges():
    laws = gc.UMAP(n_neighbors=8).sentence
    posterior = laws.input.posterior(X)
    matched = gc.MatchedMeans(posterior, laws.latent, "kl")
    coupled = gc.CrossEntropy(posterior, laws.latent)
    # Ordered pairs count each twice.
    assert matched.value(Z) == pytest.approx(2 * coupled.value(Z), rel=1e-9)
    np.testing.assert_allclose(matched.gradient(Z), 2 * coupled.gradient(Z), rtol=1e-8, atol=1e-10)


def test_fast_sums_agree_with_all_pairs():
    rng = np.random.default_rng(0)
    many, places = rng.normal(size=(3000, 4)), 5 * rng.normal(size=(3000, 2))
    posterior = gc.UMAP().sentence.input.posterior(many)
    for loss in ("square", Fourth()):
        exact, fast = (
            gc.MatchedMeans(posterior, gc.UMAP().sentence.latent, loss, summation=s) for s in ("exact", "particle_mesh")
        )
        assert fast.value(places) == pytest.approx(exact.value(places), rel=1e-4)
        assert relative_error(fast.gradient(places), exact.gradient(places)) < 1e-2


def test_a_radial_loss_has_the_slope_of_its_potential():
    for loss in (gc.SquareLoss(), Fourth()):
        radial = AbsentCost(gc.Odds(gc.RationalPower(1.6, 0.9)), loss)
        at, h = np.linspace(0.1, 9.0, 50), 1e-5
        slope = (radial.potential(at + h) - radial.potential(at - h)) / (2 * h)
        np.testing.assert_allclose(radial.slope(at), slope, rtol=1e-5)


def reconstruction(W, kernel, places):
    M = (np.eye(N) - W).T @ (np.eye(N) - W)
    K = kernel.value(cdist(places, places, "sqeuclidean"))
    return np.trace(M @ K) + K.sum() / N


@pytest.mark.parametrize("name", KERNELS)
def test_the_energy_of_reconstruction_and_its_pair_coefficients(name):
    kernel = KERNELS[name]
    support, _ = gc.neighbors.nearest_neighbors(X, 5)
    W = reconstruction_weights(X, support)
    np.testing.assert_allclose(W.toarray(), barycenter_kneighbors_graph(X, 5, reg=1e-3).toarray(), rtol=1e-8)
    objective = ReconstructionEnergy(W, kernel, "exact")
    assert objective.value(Z) == pytest.approx(reconstruction(W.toarray(), kernel, Z), rel=1e-10)
    value, gradient = objective.value_and_grad(Z)
    assert value == objective.value(Z)
    np.testing.assert_allclose(gradient, objective.gradient(Z), rtol=1e-12)
    assert relative_error(gradient, numerical_gradient(objective.value, Z)) < 1e-6
    assert objective.lower_bound <= value
    # Lemma 4: −w_ij − w_ji + [WᵀW]_ij + 1/n on every pair.
    w, sq_dist = W.toarray(), cdist(Z, Z, "sqeuclidean")
    slope = (-w - w.T + w.T @ w + 1.0 / N) * kernel.value(sq_dist) * kernel.grad_log(sq_dist)
    slope[~OFF] = 0.0
    by_pairs = 4 * (slope[:, :, None] * (Z[:, None] - Z)).sum(axis=1)
    np.testing.assert_allclose(gradient, by_pairs, rtol=1e-9, atol=1e-10)


def test_weights_of_sparse_points_and_in_parts(monkeypatch):
    support, _ = gc.neighbors.nearest_neighbors(X, 5)
    whole = reconstruction_weights(X, support).toarray()
    monkeypatch.setattr("graphcouple.couplings.reconstruction._ROWS_AT_ONCE", 7)
    np.testing.assert_allclose(reconstruction_weights(sp.csr_matrix(X), support).toarray(), whole, rtol=1e-10)
    uneven = support.select(np.arange(support.n_edges) > 0)
    with pytest.raises(ValueError, match="equally many neighbors"):
        reconstruction_weights(X, uneven)
    with pytest.raises(ValueError, match="infinite at distance 0"):
        ReconstructionEnergy(whole, Pole())


def test_bernoulli_tsne_is_a_composition():
    """Chapter 5 of the thesis: Gaussian edges by themselves, the embedding's divided by each row's sum."""
    composed = gc.GraphCoupling(
        gc.GraphModel(gc.Odds(gc.Gaussian()), "B", gc.Perplexity(6)),
        gc.GraphModel(gc.Student(), "D"),
        coupling=gc.MatchingCoupling("kl", "mean"),
        init="pca",
        random_state=0,
        max_iter=60,
    ).fit(X)
    named = gc.PairwiseMatching(
        loss="kl", latent_reading="neighborhood", bandwidth=gc.Perplexity(6), init="pca", random_state=0, max_iter=60
    ).fit(X)
    np.testing.assert_array_equal(composed.embedding_, named.embedding_)
    assert composed.loss_ < composed.loss_history_[0]


DIGITS, LABELS = (part[:500] for part in gc.datasets.load("digits"))
GRID = list(
    itertools.product(["bernoulli", "neighborhood"], ["mean", "or", "first"], ["square", "kl"], ["student", "umap"])
)


@pytest.mark.parametrize(
    ("reading", "how", "loss", "name"),
    [
        pytest.param(*case, marks=[] if case[1:] == ("mean", "square", "student") else pytest.mark.nightly)
        for case in GRID
    ],
)
def test_every_point_of_the_grid_ends_well(reading, how, loss, name):
    method = gc.PairwiseMatching(
        latent_kernel=KERNELS[name],
        loss=loss,
        symmetrize=how,
        reading=reading,
        bandwidth=gc.Perplexity(15),
        n_neighbors=45,
    )
    fitted = method.set_params(random_state=0).fit(DIGITS[:120])
    assert "collapsed" not in fitted.stop_reason_
    starts = [
        gc.solve(
            gc.MatchedMeans(fitted.posterior_, method.sentence.latent, loss, how),
            scale * np.random.default_rng(seed).normal(size=(120, 2)),
            gc.LBFGS(),
            rescale=True,
            max_iter=500,
        ).loss
        for seed, scale in ((0, 1.0), (1, 3.0))
    ]
    assert fitted.loss_ <= min(starts) * 1.05


def test_named_methods_separate_classes():
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    scores = {}
    for method in (gc.UMAP(), gc.TwoKernelLLE()):
        Y = method.set_params(random_state=0).fit(DIGITS).embedding_
        scores[type(method).__name__] = cross_val_score(KNeighborsClassifier(10), Y, LABELS, cv=5).mean()
    assert scores["TwoKernelLLE"] > scores["UMAP"] - 0.03


@pytest.mark.parametrize("loss", ["square", "kl"])
@pytest.mark.parametrize("method", [gc.TwoKernelPCA(n_neighbors=8), gc.TwoKernelLLE(n_neighbors=8)])
def test_new_points_minimise_their_own_terms(method, loss, tmp_path):
    if isinstance(method, gc.TwoKernelLLE) and loss == "kl":
        return
    method = gc.GraphCoupling(**method.sentence.replace(random_state=0, max_iter=60))
    if loss == "kl":
        method.set_params(coupling=gc.MatchingCoupling("kl"))
    fitted = method.fit(DIGITS[:200])
    new = DIGITS[200:212]
    places, found = fitted.transform(new, return_loss=True)
    edges, kernel = fitted._given.new_edges(new).to_csr().toarray(), fitted.latent.kernel

    def row(place, i):
        sq_dist = np.square(place - fitted.embedding_).sum(axis=1)
        if fitted.latent.prior.code == "D":
            return kernel.value(sq_dist).sum() / 200 - edges[i] @ kernel.value(sq_dist)
        return as_loss(loss).cost(edges[i], kernel.edge_probability(sq_dist)).sum()

    for i in range(12):
        assert found[i] == pytest.approx(row(places[i], i), rel=1e-6, abs=1e-9)
        around = [row(places[i] + 0.05 * step, i) for step in np.vstack([np.eye(2), -np.eye(2)])]
        assert min(around) >= found[i] - 1e-6 * abs(found[i])
    np.testing.assert_array_equal(np.vstack([fitted.transform(new[:5]), fitted.transform(new[5:])]), places)
    np.testing.assert_array_equal(fitted.transform(DIGITS[:9]), fitted.embedding_[:9])
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(gc.load(tmp_path / "model").transform(new), places)
    weights = fitted.inverse_transform(fitted.embedding_[:2])
    assert weights.shape == (2, 64)


def test_means_that_depend_on_all_points_place_no_new_ones():
    fitted = gc.PairwiseMatching(reading="neighborhood", bandwidth=gc.Perplexity(4), random_state=0, max_iter=20).fit(X)
    with pytest.raises(ValueError, match="has no law that places new points; use transform_method='mlp'"):
        fitted.transform(X)
    # This is said before a run.
    fitted.set_params(n_landmarks=10, callback=lambda *_: pytest.fail("a run was started"))
    with pytest.raises(ValueError, match="has no law that places the rows beyond n_landmarks=10"):
        fitted.fit(X)


def test_what_cannot_be_matched_says_why():
    posterior = law_of("B", gc.Gaussian(), bandwidth=gc.Perplexity(4)).posterior(X)
    crowded = law_of("E", gc.Gaussian(), bandwidth=gc.ConstantBandwidth(0.1)).posterior(X)
    above = (crowded.mean() > 1.0).sum()
    plain = gc.TwoKernelLLE(n_neighbors=6).sentence
    wide = plain.replace(latent=gc.GraphModel(gc.Student(), "D", gc.ConstantBandwidth(10.0)))
    for call, message in [
        (lambda: gc.MatchedMeans(posterior, law_of("B", gc.Student()), "cube"), "cube"),
        (lambda: gc.MatchedMeans(posterior, law_of("B", gc.Student()), symmetrize="either"), "either"),
        (lambda: gc.MatchedMeans(X, law_of("B", gc.Student())), "RandomGraph"),
        (lambda: gc.MatchedMeans(posterior, gc.GraphModel(gc.Student(), gc.Binary(np.ones((N, N))))), "edge prior"),
        (lambda: gc.MatchingCoupling(symmetrize="either"), "either"),
        (lambda: gc.MatchedMeans(crowded, law_of("E", gc.Student()), "kl"), f"{above} means .* above 1. Use loss='squ"),
        (lambda: gc.MatchedMeans(crowded, law_of("E", gc.Student()), symmetrize="or"), "'or' joins probabilities, but"),
        (lambda: gc.PairwiseMatching(bandwidth=gc.Perplexity(4)).fit(X, sample_weight=np.ones(N)), "sample weights"),
        (lambda: gc.TwoKernelLLE(n_neighbors=6).fit(X, sample_weight=np.ones(N)), "sample weights"),
        (lambda: gc.GraphCoupling(**wide).fit(X), "takes no bandwidth of the embedding, got ConstantBandwidth"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            call()


class Of20000(gc.MatchedMeans):
    """An objective that tells nothing but what kind it is."""

    n_points, n_jobs = 20_000, 1

    def __init__(self, loss):
        self.loss = as_loss(loss)


def test_bounded_losses_get_a_long_run():
    """Torn parts feel no pull, so the attraction that is added at first must fade slowly."""
    assert Of20000("square").attracting.fades
    assert Of20000(Fourth()).attracting.fades
    assert Of20000(Fourth(scale=100.0)).attracting.fades
    assert not Of20000("kl").attracting.fades
    energy = ReconstructionEnergy(sp.random(N, N, 0.3, random_state=0), gc.Student())
    assert energy.attracting.fades
    assert (energy + energy).attracting.fades
    assert not (
        energy + gc.CrossEntropy(gc.GraphModel(gc.Gaussian(), "D").posterior(X), law_of("E", gc.Student()))
    ).attracting.fades
    runs = {loss: _iterations(Descent(), Of20000(loss)) for loss in ("square", "kl")}
    assert runs == {"square": 400, "kl": 100}
    assert _iterations(gc.LBFGS(), Of20000("square")) == 100


def test_the_bound_under_fixed_edges_is_below_the_loss():
    """Means of E can be above 1, and are matched exactly where both laws have the same points."""
    law = gc.GraphModel(gc.Gaussian(), "E", gc.ConstantBandwidth(1.0))
    points = np.array([[0.0], [0.1], [3.0], [3.1], [9.0], [12.0]])
    matched = gc.MatchedMeans(law.posterior(points), gc.GraphModel(gc.Gaussian(), "E"), "square")
    assert matched.ahead.max() > 1.0
    assert matched.lower_bound <= matched.value(points) < 1e-20


@pytest.mark.parametrize("kernel", [gc.Gaussian(), gc.Student(0.5)])
def test_reconstruction_in_a_kernels_space(kernel):
    """The weights minimise the distance to the point in feature space, found by its eigenvectors."""
    points = np.random.default_rng(0).normal(size=(25, 3))
    support, sq_dist = nearest_neighbors(points, 6)
    W = reconstruction_weights(points, support, reg=1e-9, kernel=kernel).toarray()
    np.testing.assert_allclose(W.sum(axis=1), 1.0)
    for i in (0, 7):
        near = support.indices[support.indptr[i] : support.indptr[i + 1]]
        unit = sq_dist[support.indptr[i] : support.indptr[i + 1]].mean()
        both = np.concatenate([[i], near])
        K = np.exp(kernel.log(cdist(points[both], points[both], "sqeuclidean") / unit))
        values, vectors = np.linalg.eigh(K)
        phi = vectors * np.sqrt(np.maximum(values, 0.0))
        best, rng = np.square(phi[0] - W[i, near] @ phi[1:]).sum(), np.random.default_rng(1)
        for _ in range(200):
            step = 1e-2 * rng.normal(size=near.size)
            other = W[i, near] + step - step.mean()
            assert np.square(phi[0] - other @ phi[1:]).sum() > best - 1e-9
    plain = gc.TwoKernelLLE(max_iter=20, random_state=0).fit(points)
    curved = gc.TwoKernelLLE(input_kernel=kernel, max_iter=20, random_state=0).fit(points)
    assert abs(plain.loss_ - curved.loss_) > 1e-6


def test_losses_of_points_are_sums_of_losses_of_pairs(rng):
    """The square's part that does not depend on places belongs to the loss too."""
    fitted = gc.TwoKernelPCA(n_neighbors=8, max_iter=30, random_state=0).fit(rng.normal(size=(40, 4)))
    sq_dist = cdist(fitted.embedding_, fitted.embedding_, "sqeuclidean")
    p = fitted.sentence.latent.kernel.edge_probability(sq_dist)
    wanted = (np.square(fitted.posterior_.mean().toarray() - p) * ~np.eye(40, dtype=bool)).sum(axis=1)
    np.testing.assert_allclose(fitted.point_losses(), wanted, rtol=1e-6)
    assert fitted.loss_ == pytest.approx(wanted.sum(), rel=1e-6)
