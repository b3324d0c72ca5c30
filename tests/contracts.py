"""What every part must do, whoever wrote it: the package's own parts and those of tests/extensions pass the same."""

import numpy as np
import pytest

import graphcouple as gc
from tests.reference import dense, numerical_gradient, relative_error


def check_objective(objective, Z, tolerance=1e-6):
    """Value against gradient, purity, curvature that adds, a lower bound that is one."""
    before = Z.copy()
    value, gradient = objective.value_and_grad(Z)
    assert isinstance(value, float)
    assert gradient.shape == Z.shape
    moving = np.ones(len(Z), dtype=bool) if objective.held_points is None else ~objective.held_points
    assert not gradient[~moving].any()
    assert relative_error(gradient[moving], numerical_gradient(objective.value, Z)[moving]) < tolerance
    assert objective.value(Z) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(objective.gradient(Z), gradient, rtol=1e-7, atol=1e-9 * np.abs(gradient).max())
    # Pure: what is asked in between changes nothing.
    drawn = objective.at(3, Z).value_and_grad(Z)
    objective.at(70, Z).gradient(2.0 * Z)
    objective.value_and_grad(Z[::-1].copy())
    again = objective.value_and_grad(Z)
    assert again[0] == value
    np.testing.assert_array_equal(again[1], gradient)
    redrawn = objective.at(3, Z).value_and_grad(Z)
    assert redrawn[0] == drawn[0]
    np.testing.assert_array_equal(redrawn[1], drawn[1])
    np.testing.assert_array_equal(Z, before)
    curvature = objective.curvature(Z)
    assert 0 <= curvature < np.inf
    twice = 0.5 * objective + 0.5 * objective
    assert twice.curvature(Z) == curvature
    assert twice.value(Z) == objective.value(Z)
    np.testing.assert_array_equal(twice.gradient(Z), objective.gradient(Z))
    assert (2.0 * objective).curvature(Z) == pytest.approx(2.0 * curvature)
    assert objective.lower_bound <= value
    np.testing.assert_array_equal(objective.exaggerated(1.0).gradient(Z), objective.gradient(Z))
    assert relative_error(objective.gradient(Z.astype(np.float32)), gradient) < 1e-4
    if objective.attracting is not None:
        check_attraction(objective.attracting, Z)


def check_attraction(attraction, Z):
    """Linear in the factor, with gradients that fit, and symmetric edges."""
    once, twice, thrice = (attraction.times(factor) for factor in (1.0, 2.0, 3.0))
    np.testing.assert_allclose(once.value(Z) + thrice.value(Z), 2.0 * twice.value(Z), rtol=1e-9)
    assert relative_error(once.gradient(Z) + thrice.gradient(Z), 2.0 * twice.gradient(Z)) < 1e-9
    moving = np.ones(len(Z), dtype=bool) if twice.held_points is None else ~twice.held_points
    assert relative_error(twice.gradient(Z)[moving], numerical_gradient(twice.value, Z)[moving]) < 1e-6
    assert attraction.limit(Z) > 0.0
    for edges in attraction.matrices[:1]:
        whole = dense(sum(attraction.matrices[1:], edges))
        np.testing.assert_allclose(whole, whole.T, rtol=1e-12)


def check_optimizer(optimizer, objective, Z0, lowers=True):
    """The loop's rules: a lower loss, the same bits for threads and repetitions, the start left alone."""
    before = Z0.copy()
    first = gc.solve(objective, Z0, optimizer, max_iter=40, n_jobs=1)
    np.testing.assert_array_equal(Z0, before)
    assert first.Z.shape == Z0.shape
    assert first.n_iter <= 40
    assert first.loss == pytest.approx(objective.value(first.Z), rel=1e-9)
    if lowers:
        assert first.loss < objective.value(Z0)
    for n_jobs in (1, 2, None):
        other = gc.solve(objective, Z0, optimizer, max_iter=40, n_jobs=n_jobs)
        np.testing.assert_array_equal(other.Z, first.Z)
    single = gc.solve(objective, Z0.astype(np.float32), optimizer, max_iter=3)
    assert single.Z.dtype == np.float32


def check_summation(make, radial, Z, rng, tolerance):
    """Against NumPy; the same bits for any number of threads; coincident and far points; arguments left alone."""
    charges = rng.uniform(0.0, 2.0, size=len(Z))
    before = Z.copy(), charges.copy()
    potential, gradient = make(1).potential(Z, radial, charges)
    wanted = literal_sums(radial, Z, charges)
    assert relative_error(potential, wanted[0]) < tolerance
    assert relative_error(gradient, wanted[1]) < tolerance
    for n_jobs in (2, 3, None):
        found = make(n_jobs).potential(Z, radial, charges)
        np.testing.assert_array_equal(found[0], potential)
        np.testing.assert_array_equal(found[1], gradient)
    summation = make(2)
    alone = summation.potential(Z, radial, charges, with_gradient=False)[0]
    np.testing.assert_allclose(alone, potential, rtol=1e-9, atol=1e-12 * np.abs(potential).max())
    forces = summation.potential(Z, radial, charges, with_potential=False)[1]
    # Forces alone may be read from a table.
    assert relative_error(forces, gradient) < 1e-4
    np.testing.assert_array_equal(Z, before[0])
    np.testing.assert_array_equal(charges, before[1])
    together = np.zeros_like(Z[:10])
    for points in (together, np.concatenate([together, together + 50.0])):
        assert all(np.isfinite(part).all() for part in summation.potential(points, radial))
    unit = summation.potential(Z, radial)[0]
    np.testing.assert_allclose(unit, summation.potential(Z, radial, np.ones(len(Z)))[0], rtol=1e-12)
    assert np.isfinite(summation.resolution)
    sets = np.stack([charges, np.ones(len(Z)), charges[::-1]])
    several = summation.potentials(Z, radial, sets)
    for k, row in enumerate(sets):
        each = summation.potential(Z, radial, row)
        np.testing.assert_allclose(several[0][k], each[0], rtol=1e-9, atol=1e-12 * np.abs(each[0]).max())
        np.testing.assert_allclose(several[1][k], each[1], rtol=1e-7, atol=1e-9 * np.abs(each[1]).max())
    assert summation.points_dtype(100, np.float64) == np.float64


def literal_sums(radial, Z, charges):
    difference = Z[:, None] - Z
    sq_dist = (difference**2).sum(-1)
    others = ~np.eye(len(Z), dtype=bool)
    phi = np.where(others, radial.potential(np.where(others, sq_dist, 1.0)), 0.0)
    slope = np.where(others, radial.slope(np.where(others, sq_dist, 1.0)), 0.0)
    return phi @ charges, 2 * np.einsum("ij,j,ijk->ik", slope, charges, difference)


def check_prior(prior, n_nodes=3):
    """A posterior against the enumeration of all graphs; then `check_partition`."""
    rng = np.random.default_rng(0)
    eta = rng.normal(size=(n_nodes, n_nodes))
    law = prior.posterior(eta)
    graphs, log_base = prior.enumerate(n_nodes)
    log_mass = log_base + (graphs * np.where(np.eye(n_nodes), 0.0, eta)).sum(axis=(1, 2))
    largest = log_mass.max()
    log_total = largest + np.log(np.exp(log_mass - largest).sum())
    probability = np.exp(log_mass - log_total)
    assert law.log_partition() == pytest.approx(log_total, rel=1e-12)
    np.testing.assert_allclose(dense(law.mean()), np.einsum("g,gij->ij", probability, graphs), atol=1e-12)
    assert law.entropy() == pytest.approx(-(probability * np.log(probability)).sum(), rel=1e-10)
    for g in range(0, len(graphs), max(1, len(graphs) // 20)):
        assert law.log_prob(graphs[g]) == pytest.approx(log_mass[g] - log_total, rel=1e-10, abs=1e-10)
    assert law.log_prob(7 * np.ones((n_nodes, n_nodes))) == -np.inf
    drawn = np.mean([law.sample(rng=s).toarray() for s in range(2000)], axis=0)
    np.testing.assert_allclose(drawn, dense(law.mean()), atol=0.15)
    check_partition(prior)


def check_partition(prior, tolerance=1e-12):
    """The latent partition of an embedding against the posterior's, and its gradient; the prior's name."""
    Z, kernel = np.random.default_rng(0).normal(size=(7, 2)), gc.Student()
    value, gradient = prior.log_partition_and_grad(kernel, Z, gc.Exact())
    sq_dist = ((Z[:, None] - Z) ** 2).sum(-1)
    assert value == pytest.approx(prior.posterior(kernel.log(sq_dist)).log_partition(), rel=tolerance)
    wanted = numerical_gradient(lambda Y: prior.log_partition_and_grad(kernel, Y, gc.Exact())[0], Z)
    assert relative_error(gradient, wanted) < 1e-7
    assert prior == type(prior)()
    assert gc.priors.as_prior(prior.code) == prior
