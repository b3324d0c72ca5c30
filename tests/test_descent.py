"""The default descent at the corners: each remedy has a test that fails without it."""

import warnings

import numpy as np
import pytest
from scipy.spatial import procrustes
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import TSNE as SklearnTSNE

import graphcouple as gc
from graphcouple.optimize import LBFGS, push_over_pull
from graphcouple.optimize.monitor import Monitor, Stopping
from graphcouple.optimize.solve import _attempts
from tests.reference import noise, tsne_of


@pytest.mark.parametrize(("n", "perplexity"), [(300, 100.0), pytest.param(300, 30.0, marks=pytest.mark.nightly)])
def test_noise_ends_no_higher_than_scikit_learns_exact_method(n, perplexity):
    X = noise(n)
    ours = gc.TSNE(perplexity=perplexity, random_state=0).fit(X).kl_divergence_
    peer = SklearnTSNE(perplexity=perplexity, method="exact", init="pca", random_state=0).fit(X).kl_divergence_
    assert ours < 1.01 * peer


def test_exaggeration_stays_within_what_the_graph_bears():
    X = noise()
    objective = tsne_of(X)
    limit = push_over_pull(objective, 1e-3 * X[:, :2])
    assert 1.0 < limit < 12.0
    for factor, spreads in ((0.95 * limit, True), (1.05 * limit, False)):
        weighted = objective.exaggerated(factor)
        assert (weighted.value(2e-3 * X[:, :2]) < weighted.value(1e-3 * X[:, :2])) is spreads
    chosen = gc.Descent().plan(objective, X[:, :2], 500)[1].exaggeration
    assert 0.5 * limit < chosen.factor < 0.7 * limit
    with pytest.warns(ConvergenceWarning, match="more than this graph tolerates"):
        given = gc.Descent(early_exaggeration=12.0).plan(objective, X[:, :2], 500)[1].exaggeration
    assert given.factor == 12.0
    assert given(75) == pytest.approx(12.0**0.5)


def test_exaggeration_beyond_that_is_survived():
    X = noise()
    with pytest.warns(ConvergenceWarning, match="tolerates"):
        fitted = gc.TSNE(early_exaggeration=12.0, random_state=0).fit(X)
    assert fitted.kl_divergence_ < 1.0


@pytest.mark.parametrize(
    ("losses", "settled_at"),
    [
        ((11.5, 11.0, 11.0 - 1e-4), 2),
        # Above its start.
        ((9.0, 11.0, 11.0 - 1e-4), None),
        # Dots of points unfold slowly at first, and the loss hardly falls.
        ((11.0, 11.0 - 1e-4, 11.0 - 2e-4), 2),
        # Steps were taken back.
        ((12.0, 11.5, 11.0, 11.0, 11.0), 4),
    ],
)
def test_when_a_run_has_settled(losses, settled_at):
    objective = tsne_of(noise())
    monitor = Monitor(objective, 1000, Stopping(0.0, 1000, settled_within=1e-3))
    heights = enumerate(objective.lower_bound + np.array(losses))
    ends = [monitor.record(20 * i, loss, noise()[:, :2], np.inf) for i, loss in heights]
    assert ends == [i == settled_at for i in range(len(losses))]


@pytest.mark.filterwarnings("ignore:early_exaggeration=2")
def test_a_kernel_that_is_infinite_at_zero_descends_as_far_without_exaggeration():
    X = load_digits().data[:350]
    method = gc.GraphCoupling(gc.TSNE().models(350)[0], gc.GraphModel(gc.Odds(gc.Student()), "E"), random_state=0)
    optimizers = gc.Descent(), gc.Descent(early_exaggeration=2.0)
    plain, weighted = (method.set_params(optimizer=each).fit(X).loss_ for each in optimizers)
    assert plain < 1.02 * weighted


def test_a_kernel_without_scale_bears_no_exaggeration():
    objective = tsne_of(noise(), latent=gc.GraphModel(gc.Odds(gc.Student()), "E"))
    assert push_over_pull(objective, noise()[:, :2]) == pytest.approx(1.0)
    assert gc.Descent().plan(objective, noise()[:, :2], 500)[1].exaggeration.n_iter == 0


def test_a_curve_unrolls_in_a_few_hundred_iterations():
    """Without the stiffness of the edges it takes 850, and ends 0.05 % above where more iterations lead."""
    walk = np.random.default_rng(0).normal(size=(500, 10)).cumsum(axis=0)
    fitted = gc.UMAP(random_state=0).fit(walk)
    objective = gc.EffectiveCrossEntropy(fitted.posterior_, fitted.sentence.latent)
    longer = gc.solve(objective, fitted.embedding_, LBFGS(), max_iter=3000, settled_within=0.0)
    assert fitted.n_iter_ <= 400
    assert fitted.coupling_loss_ <= longer.loss + 1e-4 * abs(longer.loss)


def test_no_point_is_thrown_far_out():
    X = np.concatenate([noise(), [[50.0] * 5]])
    objective = tsne_of(X)
    Z = X[:, :2].copy()
    size = np.sqrt(np.square(Z - Z.mean(axis=0)).sum() / len(Z))
    state = LBFGS().init(objective, Z, None)
    from graphcouple.optimize import Run

    for iteration in range(10):
        moved = LBFGS().step(objective, state, iteration, Run(10))
        assert np.linalg.norm(moved.Z - state.Z, axis=1).max() <= 0.1001 * size
        state = moved
        size = np.sqrt(np.square(state.Z - state.Z.mean(axis=0)).sum() / len(Z))


@pytest.mark.filterwarnings("ignore:the start is used as given")
def test_small_data_run_until_they_have_settled():
    X = noise(60)
    fitted = gc.TSNE(perplexity=10, random_state=0).fit(X)
    assert fitted.stop_reason_.startswith("settled: ")
    longer = gc.solve(tsne_of(X, 10.0), fitted.embedding_, LBFGS(), max_iter=3000, settled_within=0.0)
    assert fitted.loss_ == pytest.approx(longer.loss, rel=1e-3)


def test_a_run_cut_short_says_so():
    with pytest.warns(ConvergenceWarning, match=r"has not settled.*Raise max_iter"):
        gc.TSNE(random_state=0, max_iter=20).fit(noise())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.TSNE(random_state=0).fit(noise())


def test_solve_and_the_estimators_do_the_same():
    X = noise(100)
    Z0 = X[:, :2]
    fitted = gc.TSNE(perplexity=10, init=Z0, random_state=0).fit(X)
    objective = gc.CrossEntropy(fitted.posterior_, gc.GraphModel(gc.Student(), "E"))
    np.testing.assert_array_equal(gc.solve(objective, Z0).Z, fitted.embedding_)


@pytest.mark.filterwarnings("ignore:no embedding with a lower loss")
def test_the_best_embedding_seen_is_returned():
    objective = tsne_of(noise())
    seen = []
    reckless = gc.MomentumGains(3000.0, momentum=0.99, exaggeration=gc.Exaggeration(1.0, 0))
    solution = gc.solve(
        objective, noise()[:, :2], reckless, max_iter=60, callback=lambda *state: seen.append(state[1]) or False
    )
    assert seen[-1] > min(seen)
    assert solution.loss == min(seen) == pytest.approx(objective.value(solution.Z), rel=1e-12)


def test_unbounded_kernels_are_watched_by_their_loss():
    """Slopes alone accept steps on which points jump past each other; the loss then rises."""
    objective = tsne_of(noise(), latent=gc.GraphModel(gc.Odds(gc.RationalPower.from_min_dist(0.1)), "E"))
    history = gc.solve(
        objective, noise()[:, :2], LBFGS(), max_iter=200, check_every=20, settled_within=0.0
    ).loss_history
    assert history[-1] == min(history)
    assert history[-1] - objective.lower_bound < 1.3 * (3066.0 - objective.lower_bound)


def test_far_clusters_keep_their_inner_structure():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = 50.0 * rng.normal(size=(3, 20))[y] + rng.normal(size=(300, 20))
    Z = gc.UMAP(random_state=0).fit_transform(X)
    assert np.ptp(Z, axis=0).max() < 1e3
    assert gc.metrics.k_ary_preservation(X, Z, 10) > 0.25
    start = gc.initializations.initialize(
        "spectral", X, gc.UMAP().models(300)[0].posterior(X), 2, np.random.RandomState(0)
    )
    for k in range(3):
        # Each component is spread in both directions, and away from the others.
        inner = start[y == k] - start[y == k].mean(axis=0)
        assert (inner.std(axis=0) > 0.02).all()
        others = start[y != k] - start[y == k].mean(axis=0)
        assert np.linalg.norm(others, axis=1).min() > 0.3 * np.linalg.norm(inner, axis=1).mean()


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_an_estimator_can_be_the_start():
    X = noise(100)
    start = gc.CCPCA(n_samples=20, random_state=1)
    fitted = gc.TSNE(perplexity=10, init=start, random_state=0, max_iter=1, early_exaggeration=1.0).fit(X)
    wanted = gc.CCPCA(n_samples=20, random_state=1).fit_transform(X)
    assert procrustes(fitted.embedding_, wanted)[2] < 1e-2
    with pytest.raises(ValueError, match="n_components=3"):
        gc.TSNE(n_components=3, init=start).fit(X)
    with pytest.raises(ValueError, match="needs points"):
        gc.TSNE(metric="precomputed", perplexity=5, init=start).fit(np.ones((20, 20)) - np.eye(20))


def test_of_several_starts_the_best_is_kept():
    X = noise(100)
    fits = gc.UMAP(repulsion="full", init="random", n_starts=3, random_state=0).fit(X)
    assert len(fits.start_losses_) == 3
    assert len(set(fits.start_losses_)) == 3
    assert fits.loss_ == fits.start_losses_.min()
    alone = gc.UMAP(repulsion="full", init="random", n_starts=1, random_state=0).fit(X)
    assert alone.loss_ == fits.start_losses_[0]
    # The tree's arrangement: from the exaggerated start, descent ends 45 % higher.
    tree = gc.datasets.make_hierarchical_mixture(400, random_state=0)[0]
    few = gc.TSNE(perplexity=132.3, n_starts=2, random_state=0).fit(tree)
    assert len(few.start_losses_) == 2
    assert few.kl_divergence_ < 0.0060
    with pytest.raises(ValueError, match="n_starts"):
        gc.TSNE(n_starts=0).fit(X)


def test_the_second_run_is_never_the_first_again():
    X = noise(100)
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10))
    for kernel in (gc.Student(), gc.Odds(gc.Student())):
        fitted = gc.GraphCoupling(law, gc.GraphModel(kernel, "E"), random_state=0).fit(X)
        assert fitted.start_losses_[0] != fitted.start_losses_[1]


def test_a_step_that_found_nothing_lower_is_not_tried_again():
    objective = tsne_of(noise(50), 10.0)
    state = LBFGS().init(objective, noise(50)[:, :2], None)._replace(weight=1.0, message="no lower loss")
    assert LBFGS().step(objective, state, 1, None) is state


def test_sampled_in_three_dimensions_and_only_the_total_is_estimated():
    X = noise(2100, 5)
    model, latent = gc.UMAP().models(2100)
    effective = gc.EffectiveCrossEntropy(model.posterior(X), latent)
    exact = gc.EffectiveCrossEntropy(effective.posterior, latent, summation="exact")
    Z = X[:, :3]
    assert isinstance(gc.Descent().plan(effective, Z, 100)[1], gc.NegativeSampling)
    assert isinstance(gc.Descent().plan(effective, Z[:, :2], 100)[1], LBFGS)
    assert effective.value(Z) == pytest.approx(exact.value(Z), rel=0.03)
    assert effective.value(Z) != exact.value(Z)
    # Prior D takes the logarithm of each potential, which an estimate would bias.
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10), n_neighbors=30).posterior(X)
    row_wise = [gc.CrossEntropy(law, gc.GraphModel(gc.Exponential(), "D"), s).value(Z) for s in ("auto", "exact")]
    assert row_wise[0] == pytest.approx(row_wise[1], rel=1e-10)


def test_attraction_that_has_no_bound_under_an_unbounded_kernel_is_not_exaggerated():
    X = noise(60)
    Z = X[:, :2]
    rows = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)).posterior(X)
    means = rows.mean()
    objective = gc.CrossEntropy(rows, gc.GraphModel(gc.Odds(gc.Student()), "D"))
    limit = objective.attracting.limit(Z)
    assert limit == pytest.approx(2.0 / (means + means.T).max(), rel=1e-3)
    assert objective.attracting.limit(Z + np.array([0.0, 1e4])) == pytest.approx(limit, rel=1e-3)
    # Beyond it, the loss falls for ever as two linked points come together.
    i, j = np.unravel_index(np.argmax(means + means.T), means.shape)
    losses = []
    for distance in (1e-3, 1e-6, 1e-9):
        together = Z.copy()
        together[j] = together[i] + [distance, 0.0]
        losses.append(objective.exaggerated(1.5 * limit).value(together))
    assert losses[0] - losses[1] == pytest.approx(losses[1] - losses[2], rel=1e-2)
    assert losses[0] > losses[1] + 1
    assert gc.CrossEntropy(rows, gc.GraphModel(gc.Student(), "E")).attracting.limit(Z) == np.inf
    # Under prior B the probability of an edge is what counts several times, and that is at most 1.
    sure = gc.UMAP(n_neighbors=10).models(60)[0].posterior(X)
    latent = gc.GraphModel(gc.Odds(gc.Student()), "B")
    assert gc.CrossEntropy(sure, latent).attracting.limit(Z) == np.inf
    assert gc.EffectiveCrossEntropy(sure, latent).attracting.limit(Z) == np.inf
    both = objective + 1e6 * gc.CrossEntropy(rows, gc.GraphModel(gc.Student(), "E"))
    assert both.attracting.limit(Z) == limit
    # Push over pull alone would allow 0.6 of 3.1.
    assert gc.Descent().plan(both, Z, 1000)[1].exaggeration.factor == pytest.approx(0.6 * limit)


def test_how_strong_exaggeration_is_depends_on_how_long_it_can_fall():
    X = gc.datasets.load("digits")[0][:300]
    posterior, latent = gc.UMAP(n_neighbors=10).models(300)[0].posterior(X), gc.GraphModel(gc.Odds(gc.Student()), "B")
    objective = gc.CrossEntropy(posterior, latent)
    for max_iter, factor, length in ((1000, 30.0, 150), (100, 30.0, 75), (20, 2.25, 15)):
        schedule = gc.Descent().plan(objective, X[:, 2:4], max_iter)[1].exaggeration
        assert (schedule.factor, schedule.n_iter) == (factor, length)
    assert gc.Descent().plan(objective, X[:, 2:6], 1000)[1].exaggeration.n_iter == 60


def test_a_term_does_not_fade_beside_exaggerated_attraction():
    X = noise(40)
    objective = tsne_of(X, 5.0)
    anchors = gc.couplings.AnchorEnergy(40, np.arange(3), np.zeros((3, 2)))
    Z = X[:, :2]
    both = (objective + 2.0 * anchors).exaggerated(5.0).gradient(Z)
    wanted = objective.exaggerated(5.0).gradient(Z) + 10.0 * anchors.gradient(Z)
    np.testing.assert_allclose(both, wanted, rtol=1e-9)


def test_further_starts_are_exaggerated_less():
    X = noise(40)
    objective = tsne_of(X, 5.0)
    first = gc.Descent().plan(objective, X[:, :2], 1000, 3000)[1]
    optimizers = [chosen for _, chosen in _attempts(objective, X[:, :2], first, True, 4)]
    factor = optimizers[0].exaggeration.factor
    assert factor > 2
    found = [chosen.exaggeration.factor for chosen in optimizers]
    np.testing.assert_allclose(found, [factor, 1.0, factor**0.5, factor ** (1 / 3)])
    assert gc.solve(objective, X[:, :2]).start_losses.size == 3


@pytest.mark.parametrize("method", [gc.UMAP(n_neighbors=10), gc.LargeVis(perplexity=10)])
def test_random_starts_do_not_get_stuck_where_all_pairs_repel(method):
    # With k in place of the edges' probability exaggerated, random starts end 30 to 60 % higher.
    X = gc.datasets.load("digits")[0][:500]
    losses = [
        method.set_params(repulsion="full", init=init, n_starts=1, random_state=0).fit(X).loss_
        for init in ("pca", "random")
    ]
    assert losses[1] < 1.02 * losses[0]


class Cliff(gc.Objective):
    """exp(−x), and 10 more beyond x = 1, where slopes say nothing of it."""

    n_points = 2

    def value(self, Z):
        x = float(Z[0, 0] - Z[1, 0])
        return np.exp(-x) + 10.0 * (x > 1.0)

    def value_and_grad(self, Z):
        return self.value(Z), -np.exp(Z[1, 0] - Z[0, 0]) * np.array([[1.0, 0.0], [-1.0, 0.0]])


def test_a_loss_that_has_risen_behind_the_slopes_back_is_noticed():
    found = gc.solve(Cliff(), np.array([[0.25, 0.0], [-0.25, 0.0]]), LBFGS(), max_iter=100, tol=0.0)
    assert np.exp(-1.0) <= found.loss < 0.4


def test_further_starts_of_a_given_exaggeration_have_less_of_it():
    X = noise(60)
    fits = [gc.TSNE(perplexity=10, early_exaggeration=f, n_starts=2, random_state=0).fit(X) for f in ("auto", 2.5)]
    losses = [fit.start_losses_ for fit in fits]
    assert losses[0][1] == losses[1][1]
    assert losses[0][0] != losses[1][0]
