import numpy as np
import pytest

import graphcouple as gc
from graphcouple._numba.pairs import sum_rows
from graphcouple.kernels import ScaledKernel
from graphcouple.summation import Auto, Exact, KernelValue, LogKernel, LogOnePlusKernel, Summation, as_summation
from tests.contracts import literal_sums
from tests.reference import KERNELS, pairwise

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
