import numpy as np
import pytest

import graphcouple as gc
from graphcouple._numba.pairs import sum_rows
from graphcouple.kernels import ScaledKernel
from graphcouple.summation import Auto, Exact, KernelValue, LogKernel, LogOnePlusKernel, Summation, as_summation
from tests.contracts import literal_sums
from tests.reference import KERNELS, pairwise, relative_error

ALL = {**KERNELS, "weighted": ScaledKernel(gc.Student(2.5), -0.7)}


RADIALS = {cls.__name__: cls for cls in (KernelValue, LogOnePlusKernel, LogKernel)}


@pytest.mark.parametrize(("kernel", "radial_class", "dim"), pairwise(ALL, RADIALS, [1, 2, 3, 4, 7], ("KernelValue",)))
def test_exact_summation_matches_numpy(kernel, radial_class, dim):
    kernel = ALL[kernel]
    rng = np.random.default_rng(dim)
    # More points than a block, and not a multiple of one.
    Z, charges = rng.normal(size=(300, dim)), rng.uniform(-1, 2, size=300)
    radial = radial_class(kernel)
    potential, gradient = Exact().potential(Z, radial, charges)
    wanted = literal_sums(radial, Z, charges)
    np.testing.assert_allclose(potential, wanted[0], rtol=1e-10, atol=1e-10 * np.abs(wanted[0]).max())
    np.testing.assert_allclose(gradient, wanted[1], rtol=1e-8, atol=1e-9 * np.abs(wanted[1]).max())
    alone, _ = Exact().potential(Z, radial, charges, with_gradient=False)
    np.testing.assert_allclose(alone, potential, rtol=1e-12)


@pytest.mark.parametrize("dim", [2, 5])
def test_sums_of_a_few_rows_are_those_of_all(dim, rng):
    # A kernel without bound, so that a point's force on itself would be seen.
    Z, charges, radial = rng.normal(size=(300, dim)), rng.uniform(-1, 2, size=300), LogKernel(gc.Odds(gc.Student()))
    Z = Z.astype(np.float32)  # Distances are in double precision all the same.
    every = Exact().potential(Z, radial, charges)
    for some, whole in zip(sum_rows(Z[:20], Z, radial, charges[None], 1), every, strict=True):
        np.testing.assert_allclose(some[0], whole[:20], rtol=1e-11)


@pytest.mark.parametrize(
    ("prior", "kernel"), [("D", gc.Odds(gc.Gaussian())), ("D", gc.Exponential()), ("E", gc.Exponential())]
)
def test_logarithms_of_small_sums_are_exact_though_tables_are_not(prior, kernel, rng):
    alone = 3.0 * rng.normal(size=(300, 2))
    alone[0] = [30.0 if prior == "D" and isinstance(kernel, gc.Odds) else 600.0, 0.0]
    Z = 400.0 * np.stack(np.meshgrid(*2 * [np.arange(15.0)]), axis=-1).reshape(-1, 2) if prior == "E" else alone
    law = gc.laws.priors.PRIORS[prior]()
    (value, gradient), wanted = (law.log_partition_and_grad(kernel, Z, summation) for summation in (Auto(), Exact()))
    assert value == pytest.approx(wanted[0], rel=1e-8)
    np.testing.assert_allclose(gradient, wanted[1], atol=1e-7 * np.abs(wanted[1]).max())


def test_maps_beyond_the_tables_are_summed_by_formulas(rng):
    Z, radial = 1e10 * rng.normal(size=(500, 2)), KernelValue(gc.RationalPower.from_min_dist(0.1))
    for ours, exact in zip(Auto().potential(Z, radial), Exact().potential(Z, radial), strict=True):
        np.testing.assert_allclose(ours, exact, rtol=1e-6, atol=0.0)


@pytest.mark.parametrize(("min_dist", "size"), [(0.99, 1e-4), (0.8, 1e-5), (0.1, 1e-6)])
def test_forces_in_small_maps_of_flat_kernels(min_dist, size, rng):
    Z, radial = size * rng.normal(size=(2100, 2)), KernelValue(gc.RationalPower.from_min_dist(min_dist))
    ours, exact = (summation.potential(Z, radial)[1] for summation in (Auto(), Exact()))
    assert relative_error(ours, exact) < 1e-2


def test_names():
    assert isinstance(as_summation("auto"), Auto)
    assert isinstance(as_summation("exact"), Exact)
    assert as_summation(Exact(2)).n_jobs == 2
    with pytest.raises(ValueError, match="summation"):
        as_summation("magic")
    with pytest.raises(TypeError, match="summation"):
        as_summation(3)


def test_a_users_summation_plugs_in(rng):
    class Counting(Summation):
        calls = 0

        def potential(self, Z, radial, charges=None, *, with_potential=True, with_gradient=True):
            Counting.calls += 1
            return Exact(1).potential(Z, radial, charges)

    X = rng.normal(size=(30, 3))
    estimator = gc.SNE(perplexity=5, summation=Counting(), max_iter=5, random_state=0).fit(X)
    assert Counting.calls > 0
    np.testing.assert_allclose(
        estimator.embedding_, gc.SNE(perplexity=5, max_iter=5, random_state=0).fit(X).embedding_, rtol=1e-6
    )


def test_bad_number_of_jobs():
    with pytest.raises(ValueError, match="n_jobs"):
        Exact(0).potential(np.zeros((100, 2)), KernelValue(gc.Student()))
