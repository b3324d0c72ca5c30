import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import graphcouple as gc
from graphcouple.couplings import Attraction
from graphcouple.optimize import Adam, MomentumState, is_collapsed
from graphcouple.optimize.monitor import Stopping
from tests.reference import coupling_of


class Quadratic(gc.Objective):
    """½ Σ c (Z − T)²: exaggeration weighs the linear term."""

    def __init__(self, stiffness, target, weight=1.0):
        self.stiffness, self.target, self.weight = stiffness, target, weight

    @property
    def attracting(self):
        return Attraction(source=self, times=lambda factor: Quadratic(self.stiffness, self.target, factor))

    @property
    def n_points(self):
        return len(self.target)

    def value(self, Z):
        return self.value_and_grad(Z)[0]

    def value_and_grad(self, Z):
        pull = self.weight * self.stiffness * self.target
        value = (0.5 * self.stiffness * Z**2 - pull * Z).sum()
        return float(value), (self.stiffness * Z - pull).astype(Z.dtype)


@pytest.fixture
def quadratic(rng):
    return Quadratic(rng.uniform(0.5, 2.0, size=(20, 2)), rng.normal(size=(20, 2)))


@pytest.fixture
def coupling(rng):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(rng.normal(size=(50, 4)))
    return gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E"))


PLAIN = gc.MomentumGains(learning_rate=1.0, exaggeration=gc.Exaggeration(1.0, 0))


@pytest.mark.parametrize("optimizer", [gc.LBFGS(), PLAIN], ids=["lbfgs", "momentum"])
def test_finds_the_minimum_and_says_it_converged(quadratic, optimizer):
    solution = gc.solve(quadratic, np.zeros((20, 2)), optimizer, max_iter=5000, settled_within=0.0)
    np.testing.assert_allclose(solution.Z, quadratic.target, atol=1e-5)
    assert solution.converged
    assert solution.n_iter < 5000
    assert solution.loss == pytest.approx(quadratic.value(solution.Z), rel=1e-12)


def test_momentum_step_is_the_published_recurrence(rng):
    Z, gradient = rng.normal(size=(6, 2)), rng.normal(size=(6, 2))
    update, gains = rng.normal(size=(6, 2)), rng.uniform(0.01, 2, size=(6, 2))
    state = gc.MomentumGains(max_step=1e9).move(MomentumState(Z, update, gains), gradient, 0.3, 0.8)
    wanted_gains = np.where(update * gradient < 0, gains + 0.2, gains * 0.8).clip(min=0.01)
    wanted = 0.8 * update - 0.3 * wanted_gains * gradient
    np.testing.assert_allclose(state.gains, wanted_gains)
    np.testing.assert_allclose(state.update, wanted)
    np.testing.assert_allclose(state.Z, Z + wanted)


def test_no_point_moves_further_than_max_step(rng):
    optimizer = gc.MomentumGains(max_step=0.5)
    gradient = rng.normal(size=(6, 2)) * 1e6
    state = optimizer.move(MomentumState(np.zeros((6, 2)), np.zeros((6, 2)), np.ones((6, 2))), gradient, 1.0, 0.0)
    np.testing.assert_allclose(np.linalg.norm(state.update, axis=1), 0.5)
    np.testing.assert_allclose(state.update / gradient, (state.update / gradient)[:, :1] * np.ones(2), rtol=1e-9)


def test_exaggeration_weighs_the_attraction_then_stops(quadratic):
    schedule = gc.Exaggeration(4.0, 400)
    optimizer = gc.MomentumGains(learning_rate=1.0, exaggeration=schedule)
    seen = {}
    gc.solve(
        quadratic,
        np.zeros((20, 2)),
        optimizer,
        max_iter=4000,
        settled_within=0.0,
        callback=lambda i, _, Z: seen.update({i: Z}) or False,
    )
    np.testing.assert_allclose(seen[400], 4.0 * quadratic.target, atol=1e-2)
    np.testing.assert_allclose(seen[max(seen)], quadratic.target, atol=1e-5)


@pytest.mark.parametrize("optimizer", [gc.LBFGS(), gc.MomentumGains()], ids=["lbfgs", "momentum"])
def test_callback_sees_and_stops_the_run(coupling, rng, optimizer):
    Z0 = rng.normal(size=(50, 2))
    seen = []

    def callback(iteration, loss, Z):
        seen.append((iteration, loss, Z))
        return iteration >= 20

    solution = gc.solve(coupling, Z0, optimizer, check_every=10, callback=callback)
    assert [iteration for iteration, *_ in seen] == [0, 10, 20]
    assert solution.n_iter == 20
    assert not solution.converged
    assert "callback" in solution.message
    for _, loss, Z in seen:
        assert loss == pytest.approx(coupling.value(Z), rel=1e-9)
        with pytest.raises(ValueError, match="read-only"):
            Z[0, 0] = 1.0
    # A run that nobody watches is not checked at iteration 10.
    best = min(seen[::2], key=lambda state: state[1])
    np.testing.assert_array_equal(best[2], solution.Z)
    assert solution.loss == best[1]
    np.testing.assert_array_equal(seen[0][2], Z0)


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
@pytest.mark.parametrize("optimizer", [gc.LBFGS(), gc.MomentumGains()], ids=["lbfgs", "momentum"])
def test_callback_is_called_at_every_iteration_unless_told_otherwise(coupling, rng, optimizer):
    seen = []
    gc.solve(coupling, rng.normal(size=(50, 2)), optimizer, max_iter=7, callback=lambda i, *_: seen.append(i))
    assert seen[:7] == list(range(7))


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
@pytest.mark.parametrize("optimizer", [gc.LBFGS(), gc.MomentumGains()], ids=["lbfgs", "momentum"])
def test_a_run_cut_short_does_not_claim_to_have_converged(coupling, rng, optimizer):
    solution = gc.solve(coupling, rng.normal(size=(50, 2)), optimizer, max_iter=5, check_every=1)
    assert not solution.converged
    # The last tenth of five iterations is half of the last one.
    fell = (
        50
        * (solution.loss_history[-2] - solution.loss_history[-1])
        / (solution.loss_history[-1] - coupling.lower_bound)
    )
    share = f"{fell:.2g} % of its height above its lower bound"
    falling = f", while the last tenth of the iterations still lowered the loss by {share}" if fell > 0 else ""
    assert solution.message == f"stopped at max_iter=5{falling}"


@pytest.mark.parametrize("optimizer", [gc.LBFGS(), PLAIN], ids=["lbfgs", "momentum"])
def test_history_ends_with_the_loss_and_falls(coupling, rng, optimizer):
    solution = gc.solve(coupling, rng.normal(size=(50, 2)), optimizer, max_iter=37, check_every=10)
    np.testing.assert_array_equal(solution.iterations, [0, 10, 20, 30, 37])
    assert solution.loss_history[-1] == solution.loss == coupling.value(solution.Z)
    assert (np.diff(solution.loss_history) < 0).all()


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
@pytest.mark.parametrize("optimizer", [gc.LBFGS(), gc.MomentumGains()], ids=["lbfgs", "momentum"])
def test_start_is_not_changed_and_dtype_is_kept(coupling, rng, optimizer):
    Z0 = rng.normal(size=(50, 2)).astype(np.float32)
    before = Z0.copy()
    solution = gc.solve(coupling, Z0, optimizer, max_iter=5)
    np.testing.assert_array_equal(Z0, before)
    assert solution.Z.dtype == np.float32
    assert isinstance(solution.loss, float)


@pytest.mark.parametrize("optimizer", [gc.LBFGS(), gc.MomentumGains(learning_rate=1.0)], ids=["lbfgs", "momentum"])
def test_non_finite_values_stop_the_run_and_name_the_iteration(optimizer):
    class Breaks(Quadratic):
        calls = 0

        def value_and_grad(self, Z):
            value, gradient = super().value_and_grad(Z)
            Breaks.calls += 1
            return (np.nan, gradient * np.nan) if Breaks.calls > 6 else (value, gradient)

    objective = Breaks(np.ones((5, 2)), np.full((5, 2), 100.0))
    with pytest.raises(FloatingPointError, match=r"iteration \d+"):
        gc.solve(objective, np.zeros((5, 2)), optimizer, check_every=1)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"Z0": np.zeros((3, 2))}, ValueError, "Z0"),
        ({"Z0": np.full((50, 2), np.nan)}, ValueError, "Z0"),
        ({"optimizer": "adam"}, TypeError, "optimizer"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"tol": -1.0}, ValueError, "tol"),
        ({"callback": 3}, TypeError, "callback"),
        ({"objective": 3}, TypeError, "objective"),
    ],
)
def test_bad_arguments_are_refused(coupling, options, error, message):
    arguments = {"objective": coupling, "Z0": np.zeros((50, 2)), **options}
    with pytest.raises(error, match=message):
        gc.solve(**arguments)


def test_parts_of_an_objective_are_checked():
    """A user's objective that returns something else is told so by name."""

    class Mine(gc.Objective):
        def __init__(self, parts, **attributes):
            self.parts = parts
            vars(self).update(attributes)

        def value_and_grad(self, Z):
            return self.parts(Z)

    cases = (
        (lambda Z: (1.0, Z), {}, "Mine needs an attribute n_points"),
        (lambda Z: 1.0, {"n_points": 4}, "must return a number and a gradient, got 1.0"),
        (lambda Z: (Z[:, 0], Z), {"n_points": 4}, "must return a number and a gradient"),
        (lambda Z: (1.0, Z.ravel()), {"n_points": 4}, r"of the shape of Z, \(4, 2\), got \(8,\)"),
    )
    for parts, attributes, message in cases:
        with pytest.raises((TypeError, ValueError), match=message):
            gc.solve(Mine(parts, **attributes), np.ones((4, 2)), gc.LBFGS(), max_iter=3)
    # Gradients of integers, or in lists, are numbers too, also in a sum whose first part they are.
    anchors = gc.couplings.AnchorEnergy(4, np.arange(4), np.full((4, 4), 3.0))
    for parts in (lambda Z: (0.0, np.zeros(Z.shape, int)), lambda Z: (0.0, np.zeros(Z.shape).tolist())):
        still = Mine(parts, n_points=4)
        assert gc.solve(still, np.ones((4, 2)), gc.LBFGS(), max_iter=3).loss == 0.0
        np.testing.assert_array_equal((still + anchors).gradient(np.eye(4)), anchors.gradient(np.eye(4)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: gc.MomentumGains(learning_rate=0.0),
        lambda: gc.MomentumGains(learning_rate="fast"),
        lambda: gc.MomentumGains(momentum=1.0),
        lambda: gc.Exaggeration(0.0),
        lambda: gc.Exaggeration(n_iter=-1),
        lambda: gc.LBFGS(memory=0),
        lambda: Adam(decay="slow"),
        lambda: Adam(square_decay=1.0),
        lambda: gc.MomentumGains(momentum="much"),
        lambda: gc.MiniBatches(random_state=-1),
        lambda: gc.Descent(learning_rate="fast"),
        lambda: Stopping(tol="small"),
        lambda: gc.couplings.Confinement(10, 1.0, 0.0),
    ],
)
def test_bad_optimizers_are_refused(make):
    with pytest.raises(ValueError, match="must"):
        make()


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
    plain = gc.MomentumGains(learning_rate=1e-9, exaggeration=gc.Exaggeration(1.0, 0))
    for share, n_iter in ((0.279, 40), (0.276, 2000)):
        solution = gc.solve(Decaying(0.9), np.zeros((3, 2)), plain, max_iter=2000, settled_within=share, check_every=20)
        assert solution.n_iter == n_iter
        assert ("settled" in solution.message) == solution.converged == (n_iter == 40)


@pytest.mark.parametrize(("every", "span", "ratio"), [(40, 40, 0.9), (25, 100, 0.9)])
def test_runs_that_are_checked_at_any_interval_settle(every, span, ratio):
    """Of 5 + h ratio^k, a test after k checks sees the fall from the last test; the share is stated for 50."""
    plain = gc.MomentumGains(learning_rate=1e-9, exaggeration=gc.Exaggeration(1.0, 0))
    skip = span // every
    fall = (ratio**-skip - 1.0) * 50.0 / span
    for share, settles in ((1.01 * fall, True), (0.99 * fall, False)):
        options = {"max_iter": 4 * span, "settled_within": share, "check_every": every}
        solution = gc.solve(Decaying(ratio), np.zeros((3, 2)), plain, **options)
        assert solution.converged is settles
        assert solution.message.startswith(f"settled: {span} iterations lowered the loss by") is settles


class Short(gc.MomentumGains):
    def suited_iterations(self, n_points):
        return 20


@pytest.mark.parametrize(("factor", "n_iter"), [(0.9, 60), (0.989, 60), (0.991, 20), (0.999, 20)])
def test_automatic_runs_go_on_while_the_loss_still_falls(factor, n_iter):
    short = Short(learning_rate=1e-9, exaggeration=gc.Exaggeration(1.0, 0))
    solution = gc.solve(Decaying(factor), np.ones((3, 2)), short, settled_within=0.0)
    assert solution.n_iter == n_iter
    assert solution.message.startswith(f"stopped at max_iter={n_iter}, while the last tenth ")
    assert gc.solve(Decaying(factor), np.ones((3, 2)), short, max_iter=20, settled_within=0.0).n_iter == 20


def test_a_loss_that_rises_has_not_settled():
    plain = gc.MomentumGains(learning_rate=1e-9, exaggeration=gc.Exaggeration(1.0, 0))
    with pytest.warns(ConvergenceWarning, match="start is returned"):
        solution = gc.solve(Decaying(1.01), np.ones((3, 2)), plain, max_iter=250, settled_within=0.9, check_every=50)
    assert solution.n_iter == 250
    assert solution.loss == solution.loss_history[0] < solution.loss_history[-1]
    np.testing.assert_array_equal(solution.Z, np.ones((3, 2)))


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


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("end", [60, 70])
def test_a_callback_does_not_change_which_embedding_of_a_rising_loss_is_returned(end):
    rng = np.random.default_rng(0)
    Y, Z0 = rng.normal(size=(30, 3)), rng.normal(size=(30, 2))
    posterior = gc.GraphModel("gaussian", "D", gc.Perplexity(5)).posterior(Y)
    objective, seen = gc.CrossEntropy(posterior, gc.GraphModel("student", "E")), {}
    quiet = gc.solve(objective, Z0, gc.MomentumGains(), max_iter=end)

    def watch(iteration, loss, Z):
        seen[iteration] = loss

    watched = gc.solve(objective, Z0, gc.MomentumGains(), max_iter=end, callback=watch)
    np.testing.assert_array_equal(watched.Z, quiet.Z)
    assert watched.loss == min(seen[i] for i in seen if i % 20 == 0 or i == end) > min(seen.values())
    # The loss at which the callback stops the run counts, at any iteration.
    lowest = min(seen, key=seen.__getitem__)
    stopped = gc.solve(objective, Z0, gc.MomentumGains(), max_iter=end, callback=lambda i, *_: i == lowest)
    assert lowest % 20
    assert (stopped.n_iter, stopped.loss) == (lowest, seen[lowest])


@pytest.mark.parametrize("estimator", [gc.TSNE(perplexity=10), gc.SNE(perplexity=10), gc.UMAP(repulsion="full")])
def test_no_embedding_is_below_the_lower_bound(estimator, iris):
    fitted = estimator.set_params(random_state=0).fit(iris[0])
    objective = coupling_of(fitted)
    assert fitted.loss_ > objective.lower_bound
    assert (
        gc.CrossEntropy(fitted.posterior_, gc.GraphModel(gc.Student(), fitted.models(150)[1].prior)) + objective
    ).lower_bound == pytest.approx(2 * objective.lower_bound)
    assert (-1.0 * objective).lower_bound == -np.inf


def test_share_of_what_is_left_is_checked():
    with pytest.raises(ValueError, match="settled_within"):
        gc.solve(Decaying(0.9), np.zeros((3, 2)), settled_within=1.5)


def test_an_unknown_convergence_test_is_refused_by_name():
    with pytest.raises(TypeError, match="no argument 'tolerance'; its convergence tests are tol, patience"):
        gc.solve(Decaying(0.9), np.zeros((3, 2)), tolerance=1e-3)


def noise_objective(perplexity=30.0):
    X = np.random.RandomState(0).randn(300, 5)
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(perplexity)).posterior(X)
    return gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E")), X


def test_noise_does_not_stay_on_the_saddle_that_exaggeration_leaves():
    objective, X = noise_objective()
    solution = gc.solve(objective, 1e-4 * X[:, :2], gc.MomentumGains(), max_iter=550)
    at_zero = objective.value(np.zeros_like(solution.Z))
    assert solution.loss - objective.lower_bound < 0.6 * (at_zero - objective.lower_bound)
    assert "collapsed" not in solution.message


@pytest.mark.filterwarnings("ignore:the embedding has", "ignore:the start is used as given")
def test_a_small_gradient_where_all_points_are_in_one_place_is_no_convergence():
    objective, X = noise_objective()
    plain = gc.MomentumGains(exaggeration=gc.Exaggeration(1.0, 0))
    start = 1e-7 * X[:, :2]
    assert np.linalg.norm(objective.gradient(start)) / 300 < 1e-5
    solution = gc.solve(objective, start, plain, max_iter=800, tol=1e-5, check_every=1)
    assert solution.n_iter > 10
    at_zero = objective.value(np.zeros_like(start))
    assert solution.loss - objective.lower_bound < 0.6 * (at_zero - objective.lower_bound)


@pytest.mark.filterwarnings("ignore:the start is used as given")
def test_a_collapsed_result_says_so():
    objective, X = noise_objective()
    with pytest.warns(ConvergenceWarning, match="collapsed"):
        solution = gc.solve(objective, 1e-9 * X[:, :2], gc.MomentumGains(1e-3), max_iter=20, tol=1.0)
    assert solution.message.startswith("collapsed")
    assert not solution.converged


def test_a_collapse_is_seen_where_no_lower_bound_is_known():
    objective, X = noise_objective()
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
