"""Barnes–Hut against exact summation: for every kernel, every prior, and as the angle is refined."""

import numpy as np
import pytest

import graphcouple as gc
from graphcouple.kernels import ScaledKernel
from graphcouple.summation import BarnesHut, Exact, KernelValue, LogKernel, LogOnePlusKernel, as_summation

from .reference import KERNELS, fast_and_nightly, relative_error

ALL = {**KERNELS, "weighted": ScaledKernel(gc.Exponential(), -0.7)}
EVERY = pytest.mark.parametrize("kernel", fast_and_nightly(ALL, fast=("gaussian", "odds-rational", "weighted")))
PRIORS = {"B": gc.Binary(), "D": gc.UnitOutDegree(), "E": gc.FixedEdges()}


@pytest.fixture
def Z(rng):
    """Clusters of different density, a lone point, and a pair of duplicates."""
    shift = np.array([15.0, 3.0, -4.0])
    parts = [rng.normal(size=(300, 3)), 3.0 * rng.normal(size=(200, 3)) + shift, 0.3 * rng.normal(size=(100, 3)) - 8.0]
    points = np.concatenate([*parts, [[30.0, -12.0, 5.0]]])
    points[5] = points[6]
    return points


@pytest.mark.nightly
@pytest.mark.parametrize("kernel", ALL.values(), ids=ALL.keys())
@pytest.mark.parametrize("radial_class", [KernelValue, LogOnePlusKernel, LogKernel])
@pytest.mark.parametrize("dim", [2, 3])
def test_default_accuracy(Z, rng, kernel, radial_class, dim):
    radial, points, charges = radial_class(kernel), Z[:, :dim], rng.uniform(0.0, 2.0, size=len(Z))
    wanted = Exact().potential(points, radial, charges)
    found = BarnesHut().potential(points, radial, charges)
    assert relative_error(found[0], wanted[0]) < 1e-2
    assert relative_error(found[1], wanted[1]) < 1e-2


@EVERY
@pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS.keys())
@pytest.mark.parametrize("dim", [2, 3])
def test_forces_of_every_prior_converge_to_exact(Z, kernel, prior, dim):
    points = Z[:, :dim]
    wanted_value, wanted = prior.log_partition_and_grad(kernel, points, Exact())
    errors = []
    for angle in (0.35, 0.0875, 0.02):
        value, gradient = prior.log_partition_and_grad(kernel, points, BarnesHut(angle=angle))
        errors.append(relative_error(gradient, wanted))
    assert value == pytest.approx(wanted_value, rel=1e-5)
    assert errors[0] < 2e-2
    assert errors[1] < max(errors[0] / 4.0, 1e-6)
    assert errors[2] < 1e-4


def test_no_angle_is_exact(Z, rng):
    charges = rng.uniform(-1.0, 1.0, size=len(Z))
    for kernel in (gc.Student(), gc.Odds(gc.Exponential())):
        wanted = Exact().potential(Z, LogOnePlusKernel(kernel), charges)
        found = BarnesHut(angle=1e-9, leaf_size=1).potential(Z, LogOnePlusKernel(kernel), charges)
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("leaf_size", [1, 3, 8])
def test_points_in_one_place_do_not_overflow_the_tree(rng, leaf_size):
    places = rng.normal(size=(5, 2))
    points = np.concatenate([np.repeat(places, 40, axis=0), places + 1e-9, np.zeros((60, 2))])
    wanted = Exact().potential(points, KernelValue(gc.Student()))
    found = BarnesHut(leaf_size=leaf_size).potential(points, KernelValue(gc.Student()))
    assert relative_error(found[0], wanted[0]) < 1e-2
    assert relative_error(found[1], wanted[1]) < 1e-2
    same = BarnesHut(leaf_size=leaf_size).potential(np.zeros((50, 3)), KernelValue(gc.Student()))
    np.testing.assert_allclose(same[0], 49.0, rtol=1e-12)


def test_charges_of_both_signs(rng):
    Z, charges = 3.0 * rng.normal(size=(2001, 2)), rng.choice([-1.0, 1.0], 2001)
    tree, exact = (
        summation.potential(Z, KernelValue(gc.Student()), charges)[1] for summation in (BarnesHut(), Exact())
    )
    assert relative_error(tree, exact) < 0.02


def test_an_embedding_in_three_dimensions(iris):
    tree = gc.TSNE(3, perplexity=20, summation="barnes_hut", max_iter=500, random_state=0).fit(iris[0])
    exact = gc.TSNE(3, perplexity=20, max_iter=500, random_state=0).fit(iris[0])
    objective = gc.CrossEntropy(tree.posterior_, gc.GraphModel(gc.Student(), "E"))
    assert objective.kl_divergence(tree.embedding_) == pytest.approx(exact.kl_divergence_, rel=0.1)


def test_refuses_what_it_cannot_do():
    for dim, remedy in ((1, "particle_mesh"), (4, "exact")):
        with pytest.raises(ValueError, match=f"has {dim}; use.*{remedy}"):
            BarnesHut().potential(np.zeros((5, dim)), KernelValue(gc.Student()))
    with pytest.raises(ValueError, match="angle"):
        BarnesHut(angle=0.0)
    assert isinstance(as_summation("barnes_hut", 2), BarnesHut)
