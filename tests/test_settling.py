"""When a run ends: it has settled, it is stopped while it falls, or it has collapsed."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import graphcouple as gc
from graphcouple.optimize import is_collapsed
from tests.reference import coupling_of, noise, tsne_of
from tests.test_solve import Quadratic

STILL = {"learning_rate": 1e-9, "exaggeration": gc.Exaggeration(1.0, 0)}


class Decaying(gc.Objective):
    """A loss that falls by a factor each time it is asked for, from `height` above its lower bound."""

    def __init__(self, factor, height=1.0):
        self.factor, self.height, self.asked = factor, height, 0

    @property
    def n_points(self):
        return 3

    @property
    def lower_bound(self):
        return 5.0

    def value(self, Z):
        self.asked += 1
        return 5.0 + self.height * self.factor**self.asked

    def value_and_grad(self, Z):
        return self.value(Z), self.gradient(Z)

    def gradient(self, Z):
        return np.ones_like(Z)


def test_stops_once_twenty_iterations_lowered_the_loss_by_less_than_the_share_asked():
    """With losses 5 + 0.9^k at every 20th iteration, each falls by 1/0.9 − 1 of the rest; a share is stated for 50."""
    options = {"max_iter": 2000, "check_every": 20}
    for share, n_iter in ((0.279, 40), (0.276, 2000)):
        solution = gc.solve(Decaying(0.9), np.zeros((3, 2)), gc.MomentumGains(**STILL), settled_within=share, **options)
        assert solution.n_iter == n_iter
        assert ("settled" in solution.message) == solution.converged == (n_iter == 40)


@pytest.mark.parametrize(("every", "span", "ratio"), [(40, 40, 0.9), (25, 100, 0.9)])
def test_runs_that_are_checked_at_any_interval_settle(every, span, ratio):
    """Of 5 + h ratio^k, a test after k checks sees the fall from the last test; the share is stated for 50."""
    skip = span // every
    fall = (ratio**-skip - 1.0) * 50.0 / span
    for share, settles in ((1.01 * fall, True), (0.99 * fall, False)):
        options = {"max_iter": 4 * span, "settled_within": share, "check_every": every}
        solution = gc.solve(Decaying(ratio), np.zeros((3, 2)), gc.MomentumGains(**STILL), **options)
        assert solution.converged is settles
        assert solution.message.startswith(f"settled: {span} iterations lowered the loss by") is settles


class Short(gc.MomentumGains):
    def suited_iterations(self, n_points):
        return 20


@pytest.mark.parametrize(("factor", "n_iter"), [(0.9, 60), (0.989, 60), (0.991, 20), (0.999, 20)])
def test_automatic_runs_go_on_while_the_loss_still_falls(factor, n_iter):
    short = Short(**STILL)
    solution = gc.solve(Decaying(factor), np.ones((3, 2)), short, settled_within=0.0)
    assert solution.n_iter == n_iter
    assert solution.message.startswith(f"stopped at max_iter={n_iter}, while the last tenth ")
    assert gc.solve(Decaying(factor), np.ones((3, 2)), short, max_iter=20, settled_within=0.0).n_iter == 20


def test_a_loss_that_rises_has_not_settled():
    with pytest.warns(ConvergenceWarning, match="start is returned"):
        solution = gc.solve(
            Decaying(1.01), np.ones((3, 2)), gc.MomentumGains(**STILL), max_iter=250, settled_within=0.9, check_every=50
        )
    assert solution.n_iter == 250
    assert solution.loss == solution.loss_history[0] < solution.loss_history[-1]
    np.testing.assert_array_equal(solution.Z, np.ones((3, 2)))
    with pytest.warns(ConvergenceWarning, match="start is returned"):
        solution = gc.solve(Decaying(1.01), np.ones((3, 2)), gc.MomentumGains(**STILL), max_iter=900, settled_within=0)
    assert not solution.converged
    assert solution.message == "stopped: no lower loss than the start's for 300 iterations"


class Fenced(Quadratic):
    """A quadratic with a value beyond a size."""

    size, beyond = 1.05, np.nan

    def value_and_grad(self, Z):
        value, gradient = super().value_and_grad(Z)
        return (value, gradient) if np.abs(Z).max() <= self.size else (self.beyond, self.beyond * gradient)


def test_a_further_start_that_fails_leaves_the_first_run():
    start = np.linspace(-1.0, 1.0, 20).reshape(10, 2)
    fenced = Fenced(np.ones((10, 2)), np.zeros((10, 2)))
    with pytest.warns(ConvergenceWarning, match="a further start failed, and the runs before it count: the loss"):
        solution = gc.solve(fenced, start, gc.LBFGS(), n_starts=3, max_iter=50)
    assert solution.loss < 0.1
    assert solution.start_losses.shape == (1,)


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
def test_an_infinite_loss_is_no_gain(monkeypatch):
    """The minimum lies just beyond the fence."""
    monkeypatch.setattr(Fenced, "beyond", np.inf)
    fenced, start = Fenced(np.ones((10, 2)), np.full((10, 2), 1.06)), 0.5 * np.resize([1.0, -1.0], (10, 2))
    assert gc.solve(fenced, start, gc.LBFGS(), max_iter=100).loss < fenced.value(start)


@pytest.mark.parametrize("make", [gc.TSNE, gc.SNE, gc.SymmetricSNE])
@pytest.mark.parametrize("n", [100, pytest.param(400, marks=pytest.mark.nightly)])
def test_an_early_stop_costs_less_than_half_a_percent_of_the_divergence(make, n, digits):
    X = digits[0][:n]
    stopped = make(perplexity=15, random_state=0).fit(X)
    objective = gc.CrossEntropy(stopped.posterior_, stopped.sentence.latent)
    bounded = objective + stopped.sentence.optimizer.bound(objective)
    longer = gc.solve(bounded, stopped.embedding_, gc.LBFGS(), max_iter=3000, settled_within=0.0)
    assert stopped.kl_divergence_ <= 1.005 * objective.kl_divergence(longer.Z)


@pytest.mark.parametrize("make", [partial(gc.SNE, perplexity=10), gc.MetricMDS, partial(gc.MetricMDS, init="random")])
def test_a_callback_does_not_change_where_a_run_stops(make, iris):
    X = iris[0][::2]
    quiet = make(random_state=0).fit(X)
    watched = make(random_state=0, callback=lambda *state: False).fit(X)
    assert quiet.n_iter_ == watched.n_iter_ < 500
    np.testing.assert_array_equal(quiet.embedding_, watched.embedding_)
    objective = gc.PrecisionCrossEntropy(X - X.mean(axis=0))
    unwatched = gc.solve(objective, X[:, :2] - X[:, :2].mean(axis=0), gc.LBFGS())
    seen = gc.solve(objective, X[:, :2] - X[:, :2].mean(axis=0), gc.LBFGS(), callback=lambda *state: False)
    assert unwatched.converged
    assert unwatched.n_iter == seen.n_iter


@pytest.mark.parametrize("estimator", [gc.TSNE(perplexity=10), gc.SNE(perplexity=10), gc.UMAP(repulsion="full")])
def test_no_embedding_is_below_the_lower_bound(estimator, iris):
    fitted = estimator.set_params(random_state=0).fit(iris[0])
    objective = coupling_of(fitted)
    assert fitted.loss_ > objective.lower_bound
    assert (
        gc.CrossEntropy(fitted.posterior_, gc.GraphModel(gc.Student(), fitted.models(150)[1].prior)) + objective
    ).lower_bound == pytest.approx(2 * objective.lower_bound)
    assert (-1.0 * objective).lower_bound == -np.inf


def test_noise_does_not_stay_on_the_saddle_that_exaggeration_leaves():
    objective, X = tsne_of(noise()), noise()
    solution = gc.solve(objective, 1e-4 * X[:, :2], gc.MomentumGains(), max_iter=550)
    at_zero = objective.value(np.zeros_like(solution.Z))
    assert solution.loss - objective.lower_bound < 0.6 * (at_zero - objective.lower_bound)
    assert "collapsed" not in solution.message


@pytest.mark.filterwarnings("ignore:the embedding has", "ignore:the start is used as given")
def test_a_small_gradient_where_all_points_are_in_one_place_is_no_convergence():
    objective, X = tsne_of(noise()), noise()
    plain = gc.MomentumGains(exaggeration=gc.Exaggeration(1.0, 0))
    start = 1e-7 * X[:, :2]
    assert np.linalg.norm(objective.gradient(start)) / 300 < 1e-5
    solution = gc.solve(objective, start, plain, max_iter=800, tol=1e-5, check_every=1)
    assert solution.n_iter > 10
    at_zero = objective.value(np.zeros_like(start))
    assert solution.loss - objective.lower_bound < 0.6 * (at_zero - objective.lower_bound)


@pytest.mark.filterwarnings("ignore:the start is used as given")
def test_a_collapsed_result_says_so():
    objective, X = tsne_of(noise()), noise()
    slow = gc.MomentumGains(1e-3, exaggeration=gc.Exaggeration(1.0, 0))
    with pytest.warns(ConvergenceWarning, match="collapsed"):
        solution = gc.solve(objective, 1e-9 * X[:, :2], slow, max_iter=40, tol=1.0)
    assert solution.message.startswith("collapsed")
    assert solution.n_iter == 40
    assert not solution.converged


def test_a_collapse_is_seen_where_no_lower_bound_is_known():
    objective, X = tsne_of(noise()), noise()
    both = objective + gc.ComponentCrossEntropy(X, objective.posterior, n_graphs=2)
    assert both.lower_bound == -np.inf
    for size, collapsed in ((1e-8, True), (1.0, False)):
        Z = size * X[:, :2]
        assert is_collapsed(both, Z, both.value(Z)) is collapsed
        assert is_collapsed(objective, Z, objective.value(Z)) is collapsed
    # The minimum of a quadratic is no collapse, though all points are in one place.
    bowl = Quadratic(np.ones((300, 2)), np.zeros((300, 2)))
    assert not is_collapsed(bowl, 1e-9 * X[:, :2], bowl.value(1e-9 * X[:, :2]))


@pytest.mark.filterwarnings("ignore:perplexity=")
@pytest.mark.parametrize("method", [gc.InfoNCTSNE(max_iter=20), gc.SNEkhorn(max_iter=30, n_starts=1)])
def test_a_loss_that_no_map_lowers_is_no_bad_end(method, iris):
    """Two points are nearest whatever their distance; a symmetric law of three points has all means at a half."""
    few = iris[0][: 2 if isinstance(method, gc.InfoNCTSNE) else 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        fitted = method.set_params(random_state=0).fit(few)
    assert fitted.loss_ == pytest.approx(len(few) * np.log(2.0), rel=1e-9)
    assert "collapsed" not in fitted.stop_reason_


def test_duplicates_at_the_lowest_loss_have_not_collapsed():
    posterior = gc.FixedEdges().posterior(np.zeros((5, 5)))
    objective = gc.CrossEntropy(posterior, gc.GraphModel(gc.Gaussian(), "E"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = gc.solve(objective, np.zeros((5, 2)), max_iter=10)
    assert solution.loss == pytest.approx(objective.lower_bound, rel=1e-12)
