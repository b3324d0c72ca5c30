"""A run that ends far from its best size goes on from there, or says so."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import graphcouple as gc
from graphcouple.couplings import Objective
from graphcouple.couplings.aligned import PartOf
from graphcouple.couplings.anchors import Held
from graphcouple.couplings.kinds import Rescaled
from graphcouple.optimize.monitor import Monitor, Stopping
from graphcouple.optimize.verdict import resized


class Well(Objective):
    """−2 n exp(−t²), t the logarithm of the mean square: lowest at size 1, and level far from it.

    All points in one place are a peak, so that those near it have not collapsed.
    """

    n_points, lower_bound = 60, -180.0

    def value(self, Z):
        if not Z.any():
            return 2.0 * self.n_points
        t = np.log(np.square(Z).mean())
        return -2.0 * self.n_points * float(np.exp(-t * t))

    def value_and_grad(self, Z):
        t = np.log(np.square(Z).mean())
        slope = 4.0 * t * np.exp(-t * t)
        return self.value(Z), 2.0 * self.n_points * slope * Z / np.square(Z).sum()


@pytest.mark.filterwarnings("ignore:the start is used as given")
@pytest.mark.parametrize("size", [1e-4, 1e4])
def test_a_run_that_ends_where_the_loss_is_level_goes_on_from_a_better_size(rng, size):
    Z0, well = size * rng.normal(size=(60, 2)), Well()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        found = gc.solve(well, Z0)
    assert not found.collapsed
    assert found.loss == pytest.approx(-120.0, rel=1e-4)
    # An optimizer that was asked for is not replaced, and steps that were counted out are not added to.
    for how in ({"optimizer": gc.LBFGS()}, {"max_iter": 30}):
        with pytest.warns(ConvergenceWarning, match="far from its size: the loss is lower at"):
            assert gc.solve(well, Z0, **how).loss > -60.0
    # Points that are held are not scaled, and nobody is told to.
    held = np.arange(60) < 5
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        kept = gc.solve(1.0 * Held(well, held), Z0)
    np.testing.assert_array_equal(kept.Z[held], Z0[held])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("optimizer", [None, gc.LBFGS()], ids=["default", "L-BFGS"])
@pytest.mark.parametrize(
    "within", [lambda each: each, lambda each: PartOf(each, 70, 4), lambda each: Rescaled(each, 2.0)]
)
def test_points_that_a_part_holds_stay(rng, within, optimizer):
    X = rng.normal(size=(60, 4))
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    objective = within(Held(gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E")), np.arange(60) < 20))
    start = rng.normal(size=(objective.n_points, 2))
    found = gc.solve(objective, start, optimizer, rescale=True, max_iter=20)
    held = objective.held_points
    assert held.sum() == 20
    np.testing.assert_array_equal(found.Z[held], start[held])


@pytest.mark.filterwarnings("ignore:the start is used as given")
@pytest.mark.parametrize("optimizer", [None, gc.LBFGS(), gc.MomentumGains()], ids=["default", "L-BFGS", "momentum"])
def test_points_that_are_held_stay_in_every_start(rng, optimizer):
    X, held = rng.normal(size=(60, 4)), np.arange(60) < 20
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    objective = Held(gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E")), held)
    starts = []

    def see(iteration, loss, Z):
        if iteration == 0:
            starts.append(Z.copy())

    found = gc.solve(1.0 * objective, 3.0 * X[:, :2], optimizer, n_starts=4, max_iter=50, callback=see)
    assert all(np.array_equal(Z[held], 3.0 * X[held, :2]) for Z in (*starts, found.Z))
    assert len({Z[~held].tobytes() for Z in starts}) >= 3


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shift", [0.0, np.array([0.0, -300.0])], ids=["centred", "shifted"])
def test_starts_are_shaken_alike_wherever_they_lie(rng, shift):
    """The noise of further starts is half the standard deviation from the middle, in units of a standard normal."""
    Z0, starts = rng.normal(size=(60, 2)) * [1.0, 3.0] + shift, []

    def see(iteration, loss, Z):
        if iteration == 0:
            starts.append(Z.copy())

    gc.solve(Well(), Z0, gc.LBFGS(), n_starts=2, max_iter=1, callback=see)
    noise = (starts[1] - Z0) / (0.5 * np.sqrt(np.var(Z0, axis=0).mean()))
    np.testing.assert_allclose(noise, np.random.default_rng(1).normal(size=(60, 2)), rtol=1e-6)


class Apart(Objective):
    """1 − log(1 + the mean square distance from the middle): one place is a peak, and there is no lower bound."""

    n_points = 60

    def value_and_grad(self, Z):
        from_middle = Z - Z.mean(axis=0)
        square = 1.0 + np.square(from_middle).sum() / 60
        return 1.0 - float(np.log(square)), -2.0 / 60 / square * from_middle


@pytest.mark.parametrize("shift", [0.0, np.array([5.0, -5.0])], ids=["centred", "shifted"])
def test_points_in_one_place_have_collapsed_wherever_it_lies(rng, shift):
    Z, tiny = 1e-9 * rng.normal(size=(60, 2)) + shift, Apart()
    assert gc.optimize.is_collapsed(tiny, Z, tiny.value(Z))
    # A small gradient of a small map is a minimum, unless the map is wide.
    monitor = Monitor(Well(), 100, Stopping(tol=1e-7))
    assert monitor.record(20, -1.0, rng.normal(size=(60, 2)) + 1e6 * shift, grad_norm=5e-8)


@pytest.mark.filterwarnings("ignore:the start is used as given")
def test_what_a_run_found_stands_whatever_a_further_one_does(rng):
    """The further run ends higher, collapses, breaks, or is stopped."""
    Z0, well = 1e4 * rng.normal(size=(60, 2)), Well()
    with pytest.warns(ConvergenceWarning, match="far from its size"):
        first = gc.solve(well, Z0, gc.LBFGS())
    monitor, stopped = SimpleNamespace(stopped=False), SimpleNamespace(stopped=True)

    def breaks(*args):
        raise FloatingPointError("no longer finite")

    for further in (
        lambda *args: (replace(first, loss=first.loss + 1.0), stopped),
        lambda *args: (replace(first, loss=first.loss - 1.0, collapsed=True), monitor),
        breaks,
    ):
        found, watched, factor = resized(well, first, monitor, further, True)
        assert found.loss == first.loss
        assert not found.collapsed
        assert watched.stopped or factor < 1.0
    calls = []
    gc.solve(
        well, Z0, callback=lambda iteration, loss, Z: calls.append(iteration) or loss < first.loss - 1.0, n_starts=1
    )
    assert calls.count(0) == 2

    class Interrupting(Well):
        begun = False

        def value(self, Z):
            if self.begun and 0.0 < np.square(Z).mean() < 1.0:
                raise KeyboardInterrupt
            return super().value(Z)

        def begin(self, *args):
            self.begun = True

    well = Interrupting()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        kept = gc.solve(well, Z0, on_interrupt="return", n_starts=1, callback=well.begin)
    assert kept.loss == pytest.approx(first.loss)
    well = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        gc.solve(well, Z0, n_starts=1, callback=well.begin)


@pytest.mark.filterwarnings("ignore:the start is used as given")
def test_an_embedding_that_stays_far_from_its_size_is_told(rng):
    X = rng.normal(size=(60, 4))
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    objective = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E"))
    still = gc.MomentumGains(learning_rate=1e-6, exaggeration=gc.Exaggeration(1.0, 0))
    for scale, factor in ((1e-2, "[0-9]+"), (1e3, "0.00[0-9]+")):
        with pytest.warns(UserWarning, match=f"far from its size: the loss is lower at {factor} times"):
            gc.solve(objective, scale * X[:, :2], still, max_iter=20, patience=1000)
