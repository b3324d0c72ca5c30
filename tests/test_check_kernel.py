"""What `check_kernel` says of kernels that are sound, and of those that are not."""

from dataclasses import dataclass

import numpy as np
import pytest

import graphcouple as gc
from graphcouple.kernels import ScaledKernel, measured
from tests.extensions.kernel import Laplace
from tests.extensions.prior import TwoOut
from tests.reference import KERNELS, Parabola


@pytest.mark.parametrize("kernel", [*KERNELS.values(), ScaledKernel(gc.Student(), -0.7)], ids=repr)
def test_the_packages_kernels_are_sound_and_state_what_is_measured(kernel):
    report = gc.check_kernel(kernel)
    assert report.order_at_zero == pytest.approx(measured.order_at_zero(kernel), abs=5e-3)
    if kernel.order_at_zero == 2.0:
        assert report.length == pytest.approx(measured.length(kernel), rel=1e-9)
    for dim in (1, 2, 5):
        assert measured.assumptions(kernel, dim) == tuple(kernel.assumptions(dim))


@pytest.mark.parametrize("width", [1e-6, 1.0, 1e6])
def test_a_cusp_is_measured_at_any_scale(width):
    kernel = Laplace(width)
    assert kernel.order_at_zero == 1.0
    assert kernel.length == pytest.approx(width, rel=1e-6)
    assert kernel.assumptions(2) == (True, True)


@dataclass(frozen=True)
class Stretched(gc.Kernel):
    """exp(−d^p): 1 at distance 0, and with a finite integral."""

    power: float

    def log(self, sq_dist):
        return -(sq_dist ** (0.5 * self.power))

    def grad_log(self, sq_dist):
        return -0.5 * self.power * np.maximum(sq_dist, 1e-30) ** (0.5 * self.power - 1.0)


@dataclass(frozen=True)
class Twice(gc.Kernel):
    """1/((1 + d²)(1 + 1e-16 d²)), whose tail changes its power once."""

    def log(self, sq_dist):
        return -np.log1p(sq_dist) - np.log1p(1e-16 * sq_dist)

    def grad_log(self, sq_dist):
        return -1.0 / (1.0 + sq_dist) - 1e-16 / (1.0 + 1e-16 * sq_dist)


@dataclass(frozen=True)
class Pole(gc.Kernel):
    """log(1 + 1/d²), infinite at distance 0 like a logarithm."""

    def log(self, sq_dist):
        return np.log(np.log1p(1.0 / np.maximum(sq_dist, 1e-60)))

    def grad_log(self, sq_dist):
        s = np.maximum(sq_dist, 1e-60)
        return -1.0 / (s * (1.0 + s) * np.log1p(1.0 / s))


@dataclass(frozen=True)
class Both(Stretched):
    """exp(−d − 0.01 d^p), a cusp of two powers."""

    def log(self, sq_dist):
        return 0.01 * super().log(sq_dist) - np.sqrt(sq_dist)

    def grad_log(self, sq_dist):
        return 0.01 * super().grad_log(sq_dist) - 0.5 * np.maximum(sq_dist, 1e-60) ** -0.5


@pytest.mark.parametrize("power", [0.1, 0.2, 0.5])
def test_cusps_and_tails_like_roots_are_told_from_powers_and_poles(power):
    kernel = Stretched(power)
    assert kernel.tail == np.inf
    assert kernel.assumptions(2) == Both(power).assumptions(2) == (True, True)
    assert Twice().tail == pytest.approx(4.0, rel=1e-6)
    assert not Twice().assumptions(5).integrable
    assert not Pole().assumptions(2).bounded


class InD(Laplace):
    def grad_log(self, sq_dist):
        return -1.0 / self.width + 0.0 * sq_dist


class Wrong(Laplace):
    def grad_log(self, sq_dist):
        return -0.4 / (self.width * np.sqrt(np.maximum(sq_dist, 1e-30)))


@dataclass(frozen=True)
class Waves(gc.Kernel):
    share: float = 0.5

    def log(self, sq_dist):
        return 0.5 * np.cos(sq_dist) - sq_dist

    def grad_log(self, sq_dist):
        return -self.share * np.sin(sq_dist) - 1.0


def test_derivatives_are_compared_where_differences_resolve_the_kernel():
    assert gc.check_kernel(Waves()).order_at_zero == 2.0
    with pytest.raises(ValueError, match="not the derivative"):
        gc.check_kernel(Waves(0.6))


@dataclass(frozen=True)
class Growing(gc.Kernel):
    power: float = 1.0

    def log(self, sq_dist):
        return self.power * np.log1p(sq_dist)

    def grad_log(self, sq_dist):
        return self.power / (1.0 + sq_dist)


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("width", [1e-3, 1.0, 1e3])
def test_a_kernel_with_an_edge_is_for_the_inputs_law_only(width, rng):
    report = gc.check_kernel(Parabola(width))
    assert report.reach == pytest.approx(width, rel=0.01)
    assert str(report).endswith(f"0 beyond a distance of {report.reach:.3g}: for the input's law only")
    posterior = gc.GraphModel(Parabola(3.0), "B").posterior(rng.normal(size=(9, 2)))
    with pytest.raises(ValueError, match="is 0 beyond a distance of"):
        gc.CrossEntropy(posterior, gc.GraphModel(Parabola(width), "B"))


def test_a_kernel_that_grows_is_unbounded():
    for power, bounded in ((1.0, False), (0.2, False), (0.0, True), (-0.5, True)):
        assert gc.check_kernel(Growing(power)).plane.bounded == bounded
    # Growth that overflows.
    assert not measured.assumptions(Growing(1e307), 2)[0]


@dataclass(frozen=True)
class Ring(gc.Kernel):
    def log(self, sq_dist):
        return np.where((sq_dist > 9.0) & (sq_dist < 16.0), -np.inf, -0.5 * sq_dist)

    def grad_log(self, sq_dist):
        return -0.5 + 0.0 * sq_dist


def test_a_hole_is_no_edge():
    assert gc.check_kernel(Ring()).reach == np.inf


class Single(Laplace):
    def log(self, sq_dist):
        return (-np.sqrt(sq_dist) / self.width).astype(np.float32)


class Branches(Laplace):
    def log(self, sq_dist):
        return 0.0 if sq_dist < 1 else -np.sqrt(sq_dist)


class Constant(Laplace):
    def grad_log(self, sq_dist):
        return -0.5


class Smooth(Laplace):
    @property
    def order_at_zero(self):
        return 2.0


class Long(Laplace):
    @property
    def length(self):
        return 1e9


class Uncompiled(Laplace):
    def log(self, sq_dist):
        return -np.sqrt(sq_dist) / {"width": self.width}["width"] * len(str(type(self))) ** 0


class Undecorated(gc.Kernel):
    def log(self, sq_dist):
        return -sq_dist

    def grad_log(self, sq_dist):
        return -1.0 + 0.0 * sq_dist


@dataclass(frozen=True)
class Named(gc.Kernel):
    name: str = "mine"

    def log(self, sq_dist):
        return -sq_dist

    def grad_log(self, sq_dist):
        return -1.0 + 0.0 * sq_dist


class Steep(gc.Kernel):
    def log(self, sq_dist):
        return -np.sqrt(sq_dist)

    def grad_log(self, sq_dist):
        return -0.5 / np.sqrt(sq_dist)


class Steepest(gc.Kernel):
    def log(self, sq_dist):
        return 1.0 - np.exp(sq_dist)

    def grad_log(self, sq_dist):
        return -np.exp(sq_dist)


FAULTS = {
    "forces": (dataclass(frozen=True)(Steepest)(), "Steepest.grad_log is infinite at distance .* forces would be NaN"),
    "slope at 0": (dataclass(frozen=True)(Steep)(), "Steep.grad_log is -inf at distance 0"),
    "derivative in d": (dataclass(frozen=True)(InD)(), "divide it by 2 d"),
    "wrong derivative": (dataclass(frozen=True)(Wrong)(), "not the derivative of log in the squared distance"),
    "dtype": (dataclass(frozen=True)(Single)(), "must keep the precision"),
    "branches": (dataclass(frozen=True)(Branches)(), "np.where in the place of if"),
    "shape": (dataclass(frozen=True)(Constant)(), "one value for each squared distance"),
    "order": (dataclass(frozen=True)(Smooth)(), "order_at_zero is 2"),
    "length": (dataclass(frozen=True)(Long)(), "length is 1e"),
    "compilation": (dataclass(frozen=True)(Uncompiled)(), "cannot be compiled"),
    "undecorated": (Undecorated(), "frozen dataclass"),
    "fields": (Named(), "Named.name must be a number"),
}


@pytest.mark.parametrize(("kernel", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_faults_are_said_in_words_and_estimators_say_the_same(kernel, words, iris):
    with pytest.raises((TypeError, ValueError), match=words) as said:
        gc.check_kernel(kernel)
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5))
    with pytest.raises(said.type) as refused:
        gc.GraphCoupling(law, gc.GraphModel(kernel, "E")).fit(iris[0])
    assert str(refused.value) == str(said.value)


def test_not_a_kernel():
    with pytest.raises(TypeError, match="instance of"):
        gc.check_kernel(gc.Student)


@pytest.mark.parametrize("kernel", [gc.Gaussian(), gc.Odds(gc.Student())], ids=repr)
def test_a_scaled_kernel_is_the_kernel_times_its_weight(kernel):
    scaled, s = ScaledKernel(kernel, -0.7), np.array([0.1, 2.0, 30.0])
    np.testing.assert_allclose(scaled.log(s), kernel.log(s) - 0.7, rtol=1e-14)
    np.testing.assert_allclose(scaled.value(s), np.exp(-0.7) * kernel.value(s), rtol=1e-14)
    np.testing.assert_allclose(scaled.grad_log(s), kernel.grad_log(s), rtol=1e-14)


@pytest.mark.parametrize("weights", [None, np.array([3.0, 1.0, 1.0])])
@pytest.mark.parametrize("prior", [gc.UnitOutDegree, gc.FixedEdges])
def test_a_scalar_edge_prior_cancels_where_the_number_of_edges_is_fixed(prior, weights):
    Z = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 9.0]])
    posterior = gc.GraphModel(gc.Gaussian(), "D").posterior(Z, sample_weight=weights)
    for kernel in (gc.Student(), gc.RationalPower(1.0, 0.1), gc.Gaussian()):
        plain, *others = (
            gc.CrossEntropy(posterior, gc.GraphModel(kernel, prior(edge_prior))).value_and_grad(Z)
            for edge_prior in (None, 1e-290, 1000.0, 1e308)
        )
        for value, gradient in others:
            assert value == plain[0]
            np.testing.assert_array_equal(gradient, plain[1])
    # A prior that does not say how edges are drawn may have any number of edges.
    undrawn = type("Undrawn", (TwoOut,), {"drawn_by": None})(0.01)
    assert undrawn.latent_kernel(gc.Student()).value(0.0) == pytest.approx(0.01)


@pytest.mark.parametrize("kernel", [gc.Gaussian(), gc.Exponential(), gc.Student(1.5)], ids=repr)
def test_odds_of_a_kernel_below_one_are_bounded(kernel, rng):
    half = gc.Odds(ScaledKernel(kernel, np.log(0.5)))
    report = gc.check_kernel(half)
    assert report.order_at_zero == pytest.approx(kernel.order_at_zero, abs=0.01)
    for dim in (2, 3):
        assert half.assumptions(dim) == kernel.assumptions(dim)
    Z = rng.normal(size=(30, 2))
    sq_dist = ((Z[:, None] - Z) ** 2).sum(axis=2)[~np.eye(30, dtype=bool)]
    law = gc.GraphModel(half, "B")
    found = law.prior.log_partition_and_grad(half, Z, gc.Exact())[0]
    assert found == pytest.approx(-np.log1p(-0.5 * kernel.value(sq_dist)).sum(), rel=1e-9)


def test_odds_of_a_kernel_that_is_one_up_to_rounding_are_infinite():
    clamped = gc.Odds(ScaledKernel(gc.Exponential(), -1e-10))
    assert (clamped.order_at_zero, clamped.length, clamped.tail) == (0.0, 1.0, np.inf)
    assert not clamped.assumptions(2).bounded


def test_numbers_that_are_measured_are_exact():
    gaussian, exponential = gc.Gaussian(), gc.Exponential()
    assert (gaussian.order_at_zero, gaussian.length, exponential.order_at_zero) == (2.0, 2.0**0.5, 1.0)
    with pytest.raises(ValueError, match="dim must be at least 1"):
        gaussian.assumptions(0)


def test_kernels_of_the_input_need_no_forces():
    X = np.random.default_rng(0).normal(size=(30, 3))
    steepest = FAULTS["forces"][0]
    both = [(steepest, gc.Student()), (gc.Gaussian(), steepest)]
    of_input, of_map = (
        gc.GraphCoupling(gc.GraphModel(k, "D", gc.Perplexity(5)), gc.GraphModel(w, "E"), random_state=0, max_iter=40)
        for k, w in both
    )
    assert np.isfinite(of_input.fit(X).embedding_).all()
    with pytest.raises(ValueError, match="forces would be NaN"):
        of_map.fit(X)
