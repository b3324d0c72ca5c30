"""The particle mesh against exact summation: for every kernel, every prior, and as the grid is refined."""

import numpy as np
import pytest

import graphcouple as gc
from graphcouple._numba.threads import over_blocks
from graphcouple.kernels import ScaledKernel
from graphcouple.summation import BarnesHut, Exact, KernelValue, LogKernel, LogOnePlusKernel, ParticleMesh, as_summation

from .reference import KERNELS, fast_and_nightly, relative_error

ALL = {**KERNELS, "weighted": ScaledKernel(gc.Exponential(), -0.7)}
EVERY = pytest.mark.parametrize("kernel", fast_and_nightly(ALL))
PRIORS = {"B": gc.Binary(), "D": gc.UnitOutDegree(), "E": gc.FixedEdges()}


@pytest.fixture
def Z(rng):
    """Clusters of different density, a lone point, and a pair of duplicates."""
    parts = [
        rng.normal(size=(400, 2)),
        3.0 * rng.normal(size=(250, 2)) + [15.0, 3.0],
        0.3 * rng.normal(size=(150, 2)) - 8.0,
    ]
    points = np.concatenate([*parts, [[30.0, -12.0]]])
    points[5] = points[6]
    return points


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", ALL.values(), ids=ALL.keys())
@pytest.mark.parametrize("radial_class", [KernelValue, LogOnePlusKernel, LogKernel])
@pytest.mark.parametrize("dim", [1, 2])
def test_default_accuracy(Z, rng, kernel, radial_class, dim):
    radial, points, charges = radial_class(kernel), Z[:, :dim], rng.uniform(0.0, 2.0, size=len(Z))
    wanted = Exact().potential(points, radial, charges)
    found = ParticleMesh().potential(points, radial, charges)
    assert relative_error(found[0], wanted[0]) < 1e-3
    assert relative_error(found[1], wanted[1]) < 1e-2


@EVERY
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS.keys())
@pytest.mark.parametrize("size", [1e-3, 1.0])
def test_forces_of_every_prior_converge_to_exact(Z, kernel, prior, size):
    points = size * Z
    wanted_value, wanted = prior.log_partition_and_grad(kernel, points, Exact())
    errors = []
    for refine in (1, 2, 4):
        mesh = ParticleMesh(spacing=1.0 / (3 * refine), n_cells=64 * refine)
        value, gradient = prior.log_partition_and_grad(kernel, points, mesh)
        errors.append(relative_error(gradient, wanted))
        assert value == pytest.approx(wanted_value, rel=1e-3)
    assert errors[0] < 1e-2
    assert errors[2] < 1e-4 or errors[2] < errors[0] / 8.0
    assert errors[2] < 4e-4


def test_a_point_exerts_no_force_on_itself(rng):
    for kernel in (gc.Student(), gc.Exponential(), gc.Odds(gc.Student())):
        points = rng.normal(size=(2, 2)) * 40.0
        potential, gradient = ParticleMesh().potential(points, LogOnePlusKernel(kernel), np.array([1e6, 1e-6]))
        wanted = Exact().potential(points, LogOnePlusKernel(kernel), np.array([1e6, 1e-6]))
        np.testing.assert_allclose(potential, wanted[0], rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(gradient, wanted[1], rtol=1e-3, atol=1e-4)


def test_translation_changes_nothing(Z):
    mesh = ParticleMesh(spacing=0.05)
    here, there = (mesh.potential(Z + shift, KernelValue(gc.Student())) for shift in (0.0, 0.123))
    assert relative_error(there[1], here[1]) < 1e-4


def test_points_in_one_place_and_on_a_line(rng):
    same = np.zeros((50, 2))
    potential, gradient = ParticleMesh().potential(same, KernelValue(gc.Student()))
    np.testing.assert_allclose(potential, 49.0, rtol=1e-6)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-6)
    line = np.column_stack([rng.normal(size=100), np.zeros(100)])
    wanted = Exact().potential(line, KernelValue(gc.Student()))[1]
    assert relative_error(ParticleMesh().potential(line, KernelValue(gc.Student()))[1], wanted) < 1e-2


def test_an_embedding_by_mesh_is_as_good_as_an_exact_one(digits):
    exact, mesh = (
        gc.TSNE(perplexity=20, summation=summation, random_state=0).fit(digits[0][:500])
        for summation in ("exact", "particle_mesh")
    )
    objective = gc.CrossEntropy(mesh.posterior_, gc.GraphModel(gc.Student(), "E"))
    assert objective.kl_divergence(mesh.embedding_) == pytest.approx(exact.kl_divergence_, rel=0.05)
    assert mesh.kl_divergence_ == pytest.approx(objective.kl_divergence(mesh.embedding_), rel=1e-3)


def test_refuses_what_it_cannot_do(Z):
    radial = KernelValue(gc.Student())
    with pytest.raises(ValueError, match="3; use 'barnes_hut'"):
        ParticleMesh().potential(np.zeros((5, 3)), radial)
    with pytest.raises(ValueError, match="spacing"):
        ParticleMesh(spacing=0.0)
    assert isinstance(as_summation("particle_mesh", 2), ParticleMesh)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16])
def test_points_of_any_type_are_summed_in_double_precision(dtype):
    Z = np.random.default_rng(0).integers(-100, 100, size=(300, 2)).astype(dtype)
    for summation in (ParticleMesh(), BarnesHut(), Exact()):
        for found, wanted in zip(
            *(summation.potential(each, KernelValue(gc.Student())) for each in (Z, Z.astype(float))), strict=True
        ):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("charge", [1.0, 100.0])
@pytest.mark.parametrize("function", [LogOnePlusKernel, KernelValue])
def test_near_pairs_in_single_precision(function, charge):
    Z = np.random.default_rng(0).normal(size=(3000, 2)).astype(np.float32)
    Z[1] = Z[0]
    radial = function(gc.Odds(gc.Student()))
    charges = np.full(3000, charge)
    single = ParticleMesh().potential(Z, radial, charges)
    double = ParticleMesh().potential(Z.astype(np.float64), radial, charges)
    # Single precision ends at 3e38.
    assert relative_error(np.minimum(single[0], 1e37), np.minimum(double[0], 1e37)) < 1e-5
    assert relative_error(single[1], double[1]) < 1e-5


def test_a_coarse_mesh_softens_near_pairs_and_nothing_else():
    rng = np.random.default_rng(0)
    Z = 5.0 * rng.normal(size=(20_000, 2))
    smooth, hard = KernelValue(gc.Student()), LogOnePlusKernel(gc.Odds(gc.Student()))
    mesh = ParticleMesh()
    np.testing.assert_array_equal(mesh.coarse().potential(Z[:3000], hard)[1], mesh.potential(Z[:3000], hard)[1])
    fine, coarse = (m.potential(Z, hard)[1] for m in (mesh, mesh.coarse()))
    far = np.array([[60.0, 0.0]])
    points = np.vstack([Z, far])
    np.testing.assert_allclose(
        mesh.coarse().potential(points, hard)[1][-1], mesh.potential(points, hard)[1][-1], rtol=1e-6
    )
    assert relative_error(coarse, fine) > 0.1
    np.testing.assert_array_equal(mesh.coarse().potential(Z, smooth)[1], mesh.potential(Z, smooth)[1])
    np.testing.assert_array_equal(mesh.potential(Z, hard)[1], fine)


@pytest.mark.parametrize("kernel", [gc.RationalPower(1.6, 0.9), gc.Exponential()], ids=["umap", "exponential"])
def test_parts_far_apart_need_no_fine_grid(rng, kernel):
    """Nodes lie so far apart that near pairs stay few, also where the function has a cusp."""
    centres = 3000.0 * rng.normal(size=(12, 2))
    points = np.concatenate([centre + 4.0 * rng.normal(size=(300, 2)) for centre in centres])
    radial, mesh = KernelValue(kernel), ParticleMesh()
    assert mesh.holds(points, radial)
    found, wanted = (summation.potential(points, radial) for summation in (mesh, Exact()))
    assert relative_error(found[0], wanted[0]) < 1e-3
    assert relative_error(found[1], wanted[1]) < 1e-2


def test_blocks_do_not_depend_on_threads():
    """Sums are rounded by block; SciPy's FFT rounds a row in single precision by the rows beside it, from 1.18 on."""
    for n_jobs in (1, 2, 3):
        strips = over_blocks(1000, 32, n_jobs, lambda strip: (strip.start, strip.stop))
        assert strips == [(a, min(a + 32, 1000)) for a in range(0, 1000, 32)]
