import numpy as np
import pytest

import graphcouple as gc
from graphcouple.couplings import Attraction
from graphcouple.optimize import Adam, MomentumState
from graphcouple.optimize.monitor import Stopping


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
        ({"settled_within": 1.5}, ValueError, "settled_within"),
        ({"tolerance": 1e-3}, TypeError, "no argument 'tolerance'; its convergence tests are tol, patience"),
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
