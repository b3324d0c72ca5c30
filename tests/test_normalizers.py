"""Normalising constants of fields, against integrals by other means."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

import graphcouple as gc
from graphcouple.theory.field import component_indicators, laplacian
from graphcouple.theory.normalizers import _RadialLaw
from tests.reference import fast_and_nightly, literal_kernel, random_graph
from tests.test_check_kernel import Growing
from tests.test_sizes import Compact

TRIANGLE = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
PATH4 = np.diag([1, 2, 1], 1)
CYCLE4 = np.roll(np.eye(4, dtype=int), 1, axis=1)
TWO_PAIRS = np.array([[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])


@dataclass(frozen=True)
class Ring(gc.extend.Kernel):
    """1 at distances from 0.1 to 1, else 0."""

    def log(self, sq_dist):
        return np.where((sq_dist >= 0.01) & (sq_dist < 1.0), 0.0, -np.inf)

    def grad_log(self, sq_dist):
        return 0.0 * sq_dist


@dataclass(frozen=True)
class Steep(gc.extend.Kernel):
    """(1 + d¹²)^−power, whose formulas overflow."""

    power: float = 1.0

    def log(self, sq_dist):
        return -self.power * np.log1p(sq_dist**6)

    def grad_log(self, sq_dist):
        return -6.0 * self.power * sq_dist**5 / (1.0 + sq_dist**6)


DECAYING = {"gaussian": gc.Gaussian(), "exponential": gc.Exponential(), "student-3": gc.Student(3.0)}


@pytest.mark.parametrize(
    "W",
    fast_and_nightly(
        {"triangle": TRIANGLE, "path": PATH4, "cycle": CYCLE4, "pairs": TWO_PAIRS}, fast=("triangle", "path")
    ),
)
@pytest.mark.parametrize(
    "kernel", [gc.Student(6.0), pytest.param(gc.Gaussian(), marks=pytest.mark.nightly)], ids=["student", "gaussian"]
)
def test_normaliser_against_independent_quadrature(kernel, W):
    """p = 1: over coordinates of an orthonormal basis of the complement of the null space."""
    U = component_indicators(W).toarray()
    basis = np.linalg.svd(np.eye(len(W)) - U @ U.T)[0][:, : len(W) - U.shape[1]]
    edges = np.argwhere(W)
    differences = basis[edges[:, 0]] - basis[edges[:, 1]]
    counts = W[edges[:, 0], edges[:, 1]]

    # x = tan(u) maps the line to an interval; Gauss–Legendre converges fast for these smooth fields.
    nodes, weights = np.polynomial.legendre.leggauss(160 if len(W) == 4 else 120)
    u, x = 0.5 * np.pi * nodes, np.tan(0.5 * np.pi * nodes)
    scale = 0.5 * np.pi * weights / np.cos(u) ** 2
    grids = np.meshgrid(*[x] * basis.shape[1], indexing="ij")
    volume = np.prod(np.meshgrid(*[scale] * basis.shape[1], indexing="ij"), axis=0)
    density = np.ones_like(volume)
    for difference, count in zip(differences, counts, strict=True):
        along = np.abs(sum(c * g for c, g in zip(difference, grids, strict=True)))
        density *= literal_kernel(kernel, along) ** count
    wanted = np.log((density * volume).sum())
    found = gc.PairwiseMRF(kernel).log_normalizer(W, 1, rng=0)
    assert abs(found.value - wanted) < max(1e-6, 4 * found.standard_error)
    if found.method != "monte carlo":
        assert abs(found.value - wanted) < 1e-6


@pytest.mark.parametrize("kernel", DECAYING.values(), ids=DECAYING.keys())
def test_two_points_against_one_integral(kernel):
    W = np.array([[0, 2], [1, 0]])
    total = 2 * quad(lambda t: float(literal_kernel(kernel, np.sqrt(2) * t)) ** 3, 0, np.inf, epsabs=0, epsrel=1e-12)[0]
    found = gc.PairwiseMRF(kernel).log_normalizer(W, 1)
    assert found.value == pytest.approx(np.log(total), abs=1e-9)


def test_integrals_reach_to_the_ends_of_tails_that_hardly_converge_and_to_edges(rng):
    """∫ (1 + r²/ν)^(−(ν+1)/2) over the plane is 2πν/(ν − 1); ∫ (e^|x| − 1)^(−w) over the line is 2π/sin πw."""
    W = np.array([[0.0, 1.0], [0.0, 0.0]])
    cases = [(gc.Student(dof), W, 2, np.log(np.pi * dof / (dof - 1.0))) for dof in (1.01, 1.05)]
    cases += [
        (gc.Odds(gc.Exponential()), w * W, 1, np.log(2 * np.pi / np.sin(np.pi * w) / 2**0.5)) for w in (0.5, 0.99)
    ]
    # ∫ (1 − x²/100)^½ over −10 to 10 is 5π.
    cases.append((Compact(), 0.25 * W, 1, np.log(5 * np.pi / 2**0.5)))
    # ∫ dx dy / (1 + r¹²) is π²/6 / sin(π/6).
    cases.append((Steep(), W, 2, np.log(np.pi**2 / 6)))
    for kernel, weighted, dim, wanted in cases:
        for method in ("closed", "monte carlo"):
            found = gc.PairwiseMRF(kernel).log_normalizer(weighted, dim, method=method, n_samples=100, rng=0)
            assert found.value == pytest.approx(wanted, abs=1e-6)
    assert gc.PairwiseMRF(Ring()).log_normalizer(W, 2).value == pytest.approx(np.log(0.99 * np.pi / 2))
    for steep, weight, dim in ((Steep(), 0.1, 2), (Steep(0.25), 1.0, 3)):
        assert gc.PairwiseMRF(steep).log_normalizer(weight * W, dim).value == np.inf
    # Beyond e²⁵⁰ lies the share e^(−0.01 · 250) of a tail of power −0.01.
    r = np.linalg.norm(_RadialLaw(gc.Student(1.01), 1.0, 2).sample(20_000, rng), axis=1)
    assert (np.log(r) > 250).mean() == pytest.approx(np.exp(-2.5) * 1.01 ** (1.005), abs=0.01)


def test_triangle_of_the_exponential_kernel_by_hand():
    """Three points on a line: the distances add to twice the range g + h, in each of 6 orders; du dv = √3 dX_C."""
    wanted = np.log(6 * 0.25 / np.sqrt(3))
    for method in ("quadrature", "monte carlo"):
        found = gc.PairwiseMRF(gc.Exponential()).log_normalizer(TRIANGLE, 1, method=method, rng=0, n_samples=100_000)
        assert abs(found.value - wanted) < 4 * found.standard_error
        assert method != "quadrature" or found.standard_error < 1e-6


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_monte_carlo_meets_the_gaussian_closed_form(seed):
    """n = 6, p = 2, a random graph with cycles and repeated edges, a full covariance."""
    W = random_graph(6, seed=seed, density=0.6)
    mrf = gc.PairwiseMRF(gc.Gaussian(), np.array([[2.0, 0.7], [0.7, 1.0]]))
    closed = mrf.log_normalizer(W, 2)
    estimate = mrf.log_normalizer(W, 2, method="monte carlo", n_samples=200_000, rng=seed)
    assert closed.method == "gaussian"
    assert 0 < estimate.standard_error < 0.2
    assert abs(estimate.value - closed.value) < 3 * estimate.standard_error


@pytest.mark.parametrize("kernel", [gc.Gaussian(), gc.Exponential(), gc.Student(8.0)])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_forest_formula_against_importance_sampling(kernel, dim, rng):
    """Two trees of 3 and 2 nodes; the reference draws the centred points from a wide Student law."""
    W = np.zeros((5, 5))
    W[0, 1] = W[2, 1] = W[3, 4] = 1
    found = gc.PairwiseMRF(kernel).log_normalizer(W, dim)
    assert found.method == "forest" if not isinstance(kernel, gc.Gaussian) else found.method == "gaussian"
    U = component_indicators(W).toarray()
    basis = np.linalg.svd(np.eye(5) - U @ U.T)[0][:, :3]
    from scipy.stats import multivariate_t

    law = multivariate_t(np.zeros(3 * dim), 1.5 * np.eye(3 * dim), df=2)
    drawn = law.rvs(400_000, random_state=1)
    points = np.einsum("ia,sap->sip", basis, drawn.reshape(-1, 3, dim))
    log_density = sum(kernel.log(((points[:, i] - points[:, j]) ** 2).sum(-1)) for i, j in ((0, 1), (2, 1), (3, 4)))
    weights = np.exp(log_density - law.logpdf(drawn))
    error = weights.std() / np.sqrt(len(weights)) / weights.mean()
    assert abs(found.value - np.log(weights.mean())) < 4 * error
    assert error < 0.05


def test_divergent_integrals_are_infinite():
    W = np.array([[0, 1], [0, 0]])
    umap = gc.Odds(gc.RationalPower.from_min_dist())
    for kernel, dim in ((gc.Student(), 2), (umap, 1), (umap, 2), (gc.Odds(gc.Student()), 2)):
        assert gc.PairwiseMRF(kernel).log_normalizer(W, dim).value == np.inf
    assert gc.PairwiseMRF(Growing(0.0)).log_normalizer(TRIANGLE, 1)[:2] == (np.inf, 0.0)
    # A double edge squares the kernel, and 1/(1 + d²)² is integrable on the plane: its integral is π.
    double = gc.PairwiseMRF(gc.Student()).log_normalizer(2 * W, 2)
    assert double.value == pytest.approx(np.log(np.pi / 2), abs=1e-9)


def test_edges_of_a_cycle_may_make_an_integral_finite():
    """Student's kernel is not integrable on the plane, but its product along a triangle is."""
    triangle = np.zeros((4, 4))
    triangle[[0, 0, 1], [1, 2, 2]] = 1.0
    with pytest.raises(ValueError, match=r"not integrable along an edge of a cycle.*log_box_integral"):
        gc.PairwiseMRF(gc.Student()).log_normalizer(triangle[:3, :3], 2, rng=0)
    # An edge that no cycle contains makes it infinite, and so does a kernel that is not integrable at 0.
    bridge = triangle.copy()
    bridge[2, 3] = 1.0
    assert gc.PairwiseMRF(gc.Student()).log_normalizer(bridge, 2, rng=0).value == np.inf
    assert gc.PairwiseMRF(gc.Odds(gc.Student())).log_normalizer(triangle, 2, rng=0).value == np.inf
    # Quadrature of the same triangle found 182.4 nats.
    line = gc.PairwiseMRF(gc.Odds(gc.Student(5.0))).log_normalizer(triangle[:3, :3], 1)
    assert line == (np.inf, 0.0, "quadrature")


@pytest.mark.parametrize(
    ("kernel", "weight", "dim"), [(gc.Gaussian(), 1, 3), (gc.Exponential(), 2, 2), (gc.Student(5.0), 1, 3)]
)
def test_radial_law_samples_its_density(kernel, weight, dim):
    r = np.linalg.norm(_RadialLaw(kernel, weight, dim).sample(40_000, np.random.default_rng(0)), axis=1)
    grid = np.quantile(r, [0.1, 0.5, 0.9])
    total = quad(lambda t: float(kernel.value(t**2)) ** weight * t ** (dim - 1), 0, np.inf)[0]
    cdf = [quad(lambda t: float(kernel.value(t**2)) ** weight * t ** (dim - 1), 0, g)[0] / total for g in grid]
    np.testing.assert_allclose(cdf, [0.1, 0.5, 0.9], atol=0.008)


@pytest.mark.parametrize("W", [[[0, 1], [0, 0]], [[0, 1, 0], [0, 0, 1], [0, 0, 0]]])
def test_box_integral_of_a_kernel_infinite_at_0_against_uniform_points(W, rng):
    """1/d² is not integrable in space, but in a box."""
    W = np.array(W)
    points = rng.uniform(0.0, 2.0, size=(400_000, len(W), 3))
    values = np.prod([((points[:, i] - points[:, j]) ** 2).sum(axis=1) ** -1.0 for i, j in np.argwhere(W)], axis=0)
    wanted = 3 * len(W) * np.log(2.0) + np.log(values.mean())
    found = gc.PairwiseMRF(gc.Odds(gc.Student())).log_box_integral(W, 3, 2.0, rng=0)
    assert 0 < found.standard_error < 0.03
    assert found.value == pytest.approx(wanted, abs=0.05)
    # On the line the integral diverges at 0.
    assert gc.PairwiseMRF(gc.Odds(gc.Student())).log_box_integral(W, 1, 2.0, rng=0).value == np.inf


@pytest.mark.parametrize("kernel", DECAYING.values(), ids=DECAYING.keys())
@pytest.mark.parametrize(("W", "dim"), [(TWO_PAIRS, 1), (TRIANGLE, 1), (TWO_PAIRS, 2)])
def test_box_integral_grows_with_the_exponent_of_the_null_space(kernel, W, dim):
    mrf = gc.PairwiseMRF(kernel)
    values = [mrf.log_box_integral(W, dim, side, rng=0).value for side in (1e4, 1e5)]
    slope = (values[1] - values[0]) / np.log(10)
    assert slope == pytest.approx(component_indicators(W).shape[1] * dim, abs=0.02)


def test_box_integral_of_two_points_against_one_integral():
    kernel, side = gc.Exponential(), 3.0
    wanted = np.log(2 * quad(lambda t: (side - t) * np.exp(-t), 0, side)[0])
    found = gc.PairwiseMRF(kernel).log_box_integral(np.array([[0, 1], [0, 0]]), 1, side, rng=0, n_samples=400_000)
    assert abs(found.value - wanted) < 4 * found.standard_error


def test_a_box_makes_every_integral_of_a_bounded_kernel_finite():
    """Against quadrature over the difference of the two points; Student's kernel is not integrable on the plane."""
    W, kernel = np.array([[0, 1], [0, 0]]), gc.Student()
    assert not kernel.assumptions(2).integrable
    exact = dblquad(lambda u, v: 4 * (10 - u) * (10 - v) * kernel.value(u * u + v * v), 0, 10, 0, 10)[0]
    found = gc.PairwiseMRF(kernel).log_box_integral(W, 2, 10.0, rng=0)
    assert 0 < found.standard_error < 0.02
    assert found.value == pytest.approx(np.log(exact), abs=4 * found.standard_error)
    assert np.isinf(gc.PairwiseMRF(kernel).log_normalizer(W, 2, method="monte carlo", n_samples=10, rng=0).value)
    with pytest.raises(ValueError, match="n_samples must be at least 2"):
        gc.PairwiseMRF(kernel).log_box_integral(W, 2, 10.0, n_samples=0)
    assert gc.PairwiseMRF(gc.Gaussian(), covariance=[[2.0]]).log_density([[0.0], [2.0]], W) == pytest.approx(-1.0)


def test_fields_with_bandwidths_are_normalised():
    tau = np.array([0.5, 2.0, 1.5])
    mrf = gc.PairwiseMRF(gc.Gaussian(), bandwidths=tau)
    # In the plane orthogonal to (1, 1, 1), with an orthonormal basis.
    basis = np.linalg.qr(np.column_stack([np.ones(3), [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]))[0][:, 1:]
    nodes, weights = np.polynomial.legendre.leggauss(80)
    density = [[np.exp(mrf.log_density((basis @ [a, b])[:, None], TRIANGLE)) for a in 12 * nodes] for b in 12 * nodes]
    integral = 144 * weights @ density @ weights
    assert mrf.log_normalizer(TRIANGLE, dim=1).value == pytest.approx(np.log(integral), rel=1e-9)
    # By the matrix-tree theorem det* L = 3 · 1 · 10⁻¹⁶ on this path.
    path = gc.PairwiseMRF(gc.Gaussian(), bandwidths=[1.0, 1e8, 1.0]).log_normalizer(np.diag([1, 1], 1), dim=1)
    assert path.value == pytest.approx(np.log(2 * np.pi) - 0.5 * np.log(3e-16), rel=1e-12)
    assert mrf.sample_centred(TRIANGLE, 1, size=0).shape == (0, 3, 1)
    drawn = mrf.sample_centred(TRIANGLE, 1, rng=0, size=20_000)[:, :, 0]
    wanted = np.linalg.pinv(laplacian(TRIANGLE / tau[:, None] ** 2).toarray())
    np.testing.assert_allclose(np.cov(drawn.T), wanted, atol=0.05 * wanted.max())
    for call, match in [
        (lambda: gc.PairwiseMRF(gc.Gaussian(), bandwidths=[1.0, -1.0]), "above 0"),
        (lambda: mrf.log_density(np.zeros((4, 1)), CYCLE4), "3 numbers, but W has 4 nodes"),
        (lambda: gc.PairwiseMRF(gc.Student(), bandwidths=tau).log_normalizer(TRIANGLE, 1), "only the Gaussian"),
    ]:
        with pytest.raises(ValueError, match=match):
            call()


@pytest.mark.parametrize("weights", [(3e6,) * 3, (1e7, 1.0, 1.0), (1e-6,) * 3, (1e10, 1e-8, 1e-8), (1e12, 1e-6, 1e-6)])
def test_quadrature_finds_narrow_and_wide_peaks(weights):
    W = np.zeros((3, 3))
    W[np.triu_indices(3, 1)] = weights
    found = gc.PairwiseMRF(gc.Gaussian()).log_normalizer(W, 1, method="quadrature")
    # The determinant of the reduced Laplacian of a triangle, by the matrix-tree theorem, times 3 nodes.
    a, b, c = weights
    exact = np.log(2 * np.pi) - 0.5 * np.log(3 * (a * b + a * c + b * c))
    assert found.value == pytest.approx(exact, abs=1e-6)
    assert gc.PairwiseMRF(gc.Gaussian()).log_normalizer(W, 1).value == pytest.approx(exact, abs=1e-12)
    # Heavy tails that weigh so much are Gaussian near 0: (1 + s)^−w ≈ exp(−w s).
    heavy = gc.PairwiseMRF(gc.Student()).log_normalizer(1e6 * TRIANGLE, 1)
    assert heavy.value == pytest.approx(np.log(2 * np.pi) - 0.5 * np.log(9 * 2e6**2), abs=1e-4)


def test_draws_that_say_little_are_told():
    complete = np.triu(np.ones((40, 40)), 1)
    with pytest.warns(UserWarning, match="rests on few of 500 draws"):
        found = gc.PairwiseMRF(gc.Student(3.0)).log_normalizer(complete, 2, method="monte carlo", n_samples=500, rng=0)
    # Few draws, of which all count, are enough.
    gc.PairwiseMRF(gc.Student(3.0)).log_normalizer(TRIANGLE, 2, method="monte carlo", n_samples=50, rng=0)
    with pytest.warns(UserWarning, match="none of 100 draws lies in the box"):
        empty = gc.PairwiseMRF(gc.Gaussian()).log_box_integral(PATH4, 2, 0.01, n_samples=100, rng=0)
    assert empty.value == -np.inf
    # The product of all kernels underflows, and its logarithm is finite.
    assert np.isfinite(found.value)
    assert found.standard_error > 0.1


@dataclass(frozen=True)
class BoundedGompertz(gc.Kernel):
    """exp(1 − e^s), bounded where it is 0, as `check_kernel` advises."""

    def log(self, sq_dist):
        return 1.0 - np.exp(np.minimum(sq_dist, 700.0))

    def grad_log(self, sq_dist):
        return -np.exp(np.minimum(sq_dist, 700.0))


@pytest.mark.parametrize("dim", [1, 2])
def test_a_formula_bounded_where_the_kernel_is_zero(dim):
    path = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    r = np.linspace(0.0, 3.0, 200_001)
    shell = 2.0 if dim == 1 else 2.0 * np.pi * r
    # Two edges, each in both directions, on centred places of three points.
    wanted = 2.0 * np.log(np.trapezoid(shell * np.exp(2.0 - 2.0 * np.exp(r**2)), r)) - 0.5 * dim * np.log(3.0)
    found = gc.theory.PairwiseMRF(BoundedGompertz()).log_normalizer(path, dim).value
    assert found == pytest.approx(wanted, abs=1e-6)
