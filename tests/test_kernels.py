import os
import subprocess
import sys
from dataclasses import dataclass
from types import FunctionType, ModuleType

import numpy as np
import pytest
from scipy.integrate import quad

import graphcouple as gc
from graphcouple._numba.base import formula_digest
from graphcouple.kernels import Assumptions
from graphcouple.summation import Exact
from graphcouple.summation.radials import KernelValue
from tests import umap_figures
from tests.reference import KERNELS, Pole, literal_kernel

EVERY = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


@EVERY
def test_log_matches_the_definition(kernel):
    d = np.array([0.05, 0.3, 1.0, 2.0, 4.0])
    np.testing.assert_allclose(kernel.log(d**2), np.log(literal_kernel(kernel, d)), rtol=1e-11, atol=1e-13)


@EVERY
def test_derived_formulas_match_their_definitions(kernel):
    d = np.array([0.3, 1.0, 2.0, 4.0])
    k = literal_kernel(kernel, d)
    np.testing.assert_allclose(kernel.value(d**2), k, rtol=1e-11)
    np.testing.assert_allclose(kernel.log1p(d**2), np.log(1 + k), rtol=1e-9)
    np.testing.assert_allclose(kernel.edge_probability(d**2), k / (1 + k), rtol=1e-11)
    if not isinstance(kernel, gc.Odds):
        np.testing.assert_allclose(kernel.log_complement(d**2), np.log(1 - k), rtol=1e-9)
        np.testing.assert_allclose(kernel.log_odds(d**2), np.log(k / (1 - k)), rtol=1e-9)


@EVERY
def test_derivative_matches_central_differences(kernel):
    s = np.array([1e-2, 0.4, 1.0, 9.0, 100.0])
    h = 1e-4 * s
    numerical = (8 * (kernel.log(s + h) - kernel.log(s - h)) - kernel.log(s + 2 * h) + kernel.log(s - 2 * h)) / (12 * h)
    np.testing.assert_allclose(kernel.grad_log(s), numerical, rtol=1e-8)


@EVERY
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_stable_from_zero_to_far_away_in_either_precision(kernel, dtype):
    s = np.array([0.0, 1e-30, 1e-12, 1.0, 1e6, 1e12], dtype=dtype)
    for formula in (kernel.log, kernel.grad_log):
        with np.errstate(all="raise", under="ignore"):
            found = formula(s)
        assert found.dtype == dtype
        assert np.isfinite(found).all()
    assert (np.diff(kernel.log(s)) <= 0).all()


def test_odds_near_zero_keep_their_precision():
    s = 1e-20
    np.testing.assert_allclose(gc.Odds(gc.Gaussian()).log(s), -np.log(s / 2), rtol=1e-14)
    np.testing.assert_allclose(gc.Odds(gc.Student(3.0)).log(s), -np.log(2 * s / 3), rtol=1e-14)


def _radial_mass(kernel, dim, low, high):
    """∫ k(r) r^(dim−1) dr, in log r, where power laws are smooth."""
    return quad(lambda t: np.exp(float(kernel.log(np.exp(2 * t))) + dim * t), np.log(low), np.log(high), limit=500)[0]


@EVERY
@pytest.mark.parametrize("dim", [1, 2, 3, 4])
def test_assumptions_agree_with_quadrature(kernel, dim):
    claimed = kernel.assumptions(dim)
    # Integrable: what lies beyond ever wider and below ever smaller radii vanishes; else it does not.
    far = [_radial_mass(kernel, dim, 10.0**k, 10.0 ** (k + 1)) for k in (5, 8)]
    near = [_radial_mass(kernel, dim, 10.0 ** -(k + 1), 10.0**-k) for k in (5, 8)]
    vanishes = far[1] < 0.99 * far[0] + 1e-300 and near[1] < 0.99 * near[0] + 1e-300
    assert claimed.integrable == vanishes
    assert claimed.bounded == (kernel.log(1e-30) < 1.0)


def test_umap_and_largevis_latent_kernels_violate_theorem_1():
    for kernel in (gc.Odds(gc.Student()), gc.Odds(gc.RationalPower.from_min_dist())):
        assert all(kernel.assumptions(q) == Assumptions(False, False) for q in range(1, 6))


def test_from_min_dist_fits_what_umap_fits():
    kernels = [gc.RationalPower.from_min_dist(min_dist, spread) for min_dist, spread in umap_figures.SHAPES]
    known = np.load(umap_figures.FILE)["curves"]
    np.testing.assert_allclose([[kernel.a, kernel.b] for kernel in kernels], known, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: gc.Student(0.0), ValueError, "dof"),
        (lambda: gc.Student(np.nan), ValueError, "dof"),
        (lambda: gc.Student("1"), TypeError, "dof"),
        (lambda: gc.RationalPower(1.0, -1.0), ValueError, "b must"),
        (lambda: gc.Odds(1.0), TypeError, "kernel"),
        (lambda: gc.Odds(gc.Odds(gc.Student())), ValueError, "odds of odds"),
        (
            lambda: gc.Odds(gc.kernels.ScaledKernel(gc.Student(), np.log(1.5))),
            ValueError,
            "is 1.5 at distance 0; leave out",
        ),
        (lambda: gc.Odds(Pole()), ValueError, "is inf at distance 0.*if it is finite"),
        (lambda: gc.RationalPower.from_min_dist(2.0, 1.0), ValueError, "min_dist"),
        (lambda: gc.Gaussian().assumptions(0), ValueError, "dim"),
    ],
)
def test_bad_parameters_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_numpy_scalars_do_not_promote_float32():
    assert gc.Student(np.float64(2.0)).log(np.ones(2, dtype=np.float32)).dtype == np.float32


@dataclass(frozen=True)
class Laplacian(gc.Kernel):
    """A kernel a user might write: exp(−d/width)."""

    width: float = 2.0

    def log(self, sq_dist):
        return -np.sqrt(sq_dist) / self.width

    def grad_log(self, sq_dist):
        return -0.5 / (self.width * np.sqrt(np.maximum(sq_dist, 1e-37)))

    def assumptions(self, dim):
        return Assumptions(True, True)


def test_a_users_kernel_runs_in_the_compiled_loops(rng):
    X, Z = rng.normal(size=(20, 4)), rng.normal(size=(20, 2))
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    mine = gc.CrossEntropy(posterior, gc.GraphModel(Laplacian(1.0), "E"))
    ours = gc.CrossEntropy(posterior, gc.GraphModel(gc.Exponential(), "E"))
    np.testing.assert_allclose(mine.value(Z), ours.value(Z), rtol=1e-13)
    np.testing.assert_allclose(mine.gradient(Z), ours.gradient(Z), rtol=1e-10)


def test_an_edited_formula_is_not_taken_for_its_former_self(rng):
    from graphcouple._numba.base import formula_digest

    def build(power):
        source = f"""
@dataclass(frozen=True)
class Edited(gc.Kernel):
    def log(self, sq_dist):
        return -{power} * sq_dist
    def grad_log(self, sq_dist):
        return -{power} + 0.0 * sq_dist
    def assumptions(self, dim):
        return Assumptions(True, True)
"""
        scope = {"dataclass": dataclass, "gc": gc, "Assumptions": Assumptions, "__name__": __name__}
        exec(source, scope)
        return scope["Edited"]

    first, second = build(0.5), build(0.25)
    assert formula_digest(first) != formula_digest(second)
    assert formula_digest(first) == formula_digest(build(0.5))
    X, Z = rng.normal(size=(15, 4)), rng.normal(size=(15, 2))
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    values = [gc.CrossEntropy(posterior, gc.GraphModel(k(), "D")).value(Z) for k in (first, second)]
    gaussian = gc.CrossEntropy(posterior, gc.GraphModel(gc.Gaussian(), "D"))
    np.testing.assert_allclose(values, [gaussian.value(Z), gaussian.value(Z / np.sqrt(2))], rtol=1e-12)


def test_a_global_that_changes_under_a_kernel_is_told(rng):
    source = """
SLOPE = 2.0
def slope(): return SLOPE
@dataclass(frozen=True)
class Sloped(gc.Kernel):
    def log(self, sq_dist):
        return -slope() * sq_dist
    def grad_log(self, sq_dist):
        return -slope() + 0.0 * sq_dist
"""
    scope = {"dataclass": dataclass, "gc": gc, "__name__": "notebook"}
    exec(source, scope)
    law, Z = gc.GraphModel(scope["Sloped"](), "D"), rng.normal(size=(15, 2))
    objective = gc.CrossEntropy(gc.GraphModel(gc.Gaussian(), "D").posterior(Z), law)
    objective.value(Z)
    scope["SLOPE"] = 3.0
    with pytest.raises(TypeError, match="Sloped reads the global 'SLOPE', which has changed in"):
        objective.value(Z)


def _wide(width, **read):
    """Return a kernel whose width is this text, and which reads these globals."""
    source = f"""
@dataclass(frozen=True)
class Wide(gc.Kernel):
    def log(self, sq_dist):
        return -sq_dist / {width}
    def grad_log(self, sq_dist):
        return -1.0 / {width} + 0.0 * sq_dist
"""
    scope = {"dataclass": dataclass, "gc": gc, "__name__": "notebook", **read}
    exec(source, scope)
    return scope["Wide"]


def test_constants_of_modules_are_compiled_apart_and_their_change_is_told(rng):
    Z = rng.normal(size=(30, 2))
    for width in (2.0, 8.0):
        settings = ModuleType("settings")
        settings.lengths = ModuleType("settings.lengths")
        settings.lengths.WIDTH = width
        kernel = _wide("settings.lengths.WIDTH", settings=settings)()
        found = Exact().potential(Z, KernelValue(kernel))[0]
        wanted = Exact().potential(np.sqrt(2.0 / width) * Z, KernelValue(gc.Gaussian()))[0]
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    settings.lengths.WIDTH = 3.0
    with pytest.raises(TypeError, match="Wide reads the global 'WIDTH', which has changed in"):
        Exact().potential(Z, KernelValue(kernel))


def test_a_class_that_a_worker_gets_anew_is_compared_with_its_former_self(rng):
    """For each task of joblib, cloudpickle gives a class that the process knows new methods, with new globals."""
    Z, kind = rng.normal(size=(30, 2)), _wide("WIDTH", WIDTH=2.0)

    def get_anew():
        namespace = dict(kind.log.__globals__)
        kind.log, kind.grad_log = (FunctionType(f.__code__, namespace, f.__name__) for f in (kind.log, kind.grad_log))
        return namespace

    first = Exact().potential(Z, KernelValue(kind()))[0]
    for change, told in (
        (dict, "Wide reads the global 'WIDTH', which has"),
        (get_anew, "Wide has other methods, or reads"),
    ):
        namespace = get_anew()
        assert (Exact().potential(Z, KernelValue(kind()))[0] == first).all()
        namespace["WIDTH"] = 8.0
        change()
        with pytest.raises(TypeError, match=told):
            Exact().potential(Z, KernelValue(kind()))
        namespace["WIDTH"] = 2.0


def test_a_kernel_that_is_not_a_frozen_dataclass_says_so(rng):
    class Loose(gc.Kernel):
        def log(self, sq_dist):
            return -sq_dist

        def grad_log(self, sq_dist):
            return -1.0 + 0.0 * sq_dist

        def assumptions(self, dim):
            return Assumptions(True, True)

    @dataclass
    class Thawed:
        pass

    posterior = gc.GraphModel(gc.Gaussian(), "D").posterior(rng.normal(size=(5, 2)))
    # It inherits the frozen dataclass of its base, with no fields of its own: fine.
    assert np.isfinite(gc.CrossEntropy(posterior, gc.GraphModel(Loose(), "D")).value(rng.normal(size=(5, 2))))
    with pytest.raises(TypeError, match="kernel"):
        gc.GraphModel(Thawed(), "D")


def _scaled(c):
    """A class of its own each time, told apart by what its methods close over only."""

    @dataclass(frozen=True)
    class Scaled(gc.Kernel):
        def log(self, sq_dist):
            return -c * sq_dist

        def grad_log(self, sq_dist, factor=c):
            return -factor + 0.0 * sq_dist

        def assumptions(self, dim):
            return Assumptions(bounded=True, integrable=True)

    return Scaled()


def log(sq_dist):
    return -np.log(1.0 + sq_dist)


def factorial(n):
    return 1.0 if n <= 1 else n * factorial(n - 1)


@dataclass(frozen=True)
class WithHelpers(gc.Kernel):
    """A helper by the name of the function it uses, and one that calls itself."""

    def log(self, sq_dist):
        return log(sq_dist) * factorial(3) / 6.0

    def grad_log(self, sq_dist):
        return -1.0 / (1.0 + sq_dist)

    def assumptions(self, dim):
        return Assumptions(bounded=True, integrable=False)


def test_kernels_that_differ_in_what_they_close_over_are_compiled_apart(rng):
    Z = rng.normal(size=(100, 2))
    sums = [Exact().potential(Z, KernelValue(_scaled(c)))[0] for c in (0.5, 3.0)]
    for found, c in zip(sums, (0.5, 3.0), strict=True):
        wanted = Exact().potential(np.sqrt(2.0 * c) * Z, KernelValue(gc.Gaussian()))[0]
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_the_digest_sees_constants_of_any_kind():
    def digest(value):
        namespace = {"np": np, "COEF": value}
        exec("class K:\n def log(self, s):\n  return COEF[0] * s", namespace)
        return formula_digest(namespace["K"])

    values = [(1.0,), (4.0,), [1.0, 2.0], np.ones(2), np.arange(2.0), (np.int64(1),)]
    assert len({digest(value) for value in values}) == len(values)


@pytest.mark.nightly
def test_helpers_that_call_themselves_are_compiled_in_every_process(tmp_path):
    """numba would store their machine code, and crash where another process loads it."""
    kernel = """
from dataclasses import dataclass
import numpy as np
import graphcouple as gc
from graphcouple.kernels import Assumptions
def factorial(n):
    return 1.0 if n <= 1 else n * factorial(n - 1)
@dataclass(frozen=True)
class Recursive(gc.Kernel):
    def log(self, sq_dist):
        return -np.log(1.0 + sq_dist) * factorial(3) / 6.0
    def grad_log(self, sq_dist):
        return -1.0 / (1.0 + sq_dist)
    def assumptions(self, dim):
        return Assumptions(bounded=True, integrable=False)
Z = np.random.default_rng(0).normal(size=(50, 2))
model = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(Z)
print(gc.CrossEntropy(model, gc.GraphModel(Recursive(), "E")).value(Z))
"""
    script = tmp_path / "script.py"
    script.write_text(kernel)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    values = {
        subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    }
    assert len(values) == 1


def test_helper_functions_of_any_name(rng):
    Z = rng.normal(size=(100, 2))
    found = Exact().potential(Z, KernelValue(WithHelpers()))
    wanted = Exact().potential(Z, KernelValue(gc.Student()))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-10, atol=1e-12)
