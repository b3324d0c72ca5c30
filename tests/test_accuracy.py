"""Sums over all pairs keep their accuracy where scales are mixed, or say that they do not."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import graphcouple as gc
from graphcouple.summation import AccuracyWarning, Auto, BarnesHut, Exact, KernelValue, ParticleMesh
from graphcouple.summation.accuracy import error_of_unit_charges, force_error, is_crowded, warn_if_inaccurate
from tests.reference import relative_error

RNG = np.random.default_rng(0)
KERNELS = [gc.Student(), gc.Gaussian(), gc.RationalPower(1.577, 0.895)]


def _blobs(n, k, width, spread, q=2):
    return (RNG.normal(size=(k, q)) * spread)[RNG.integers(k, size=n)] + width * RNG.normal(size=(n, q))


def _two_places(apart, width):
    rng = np.random.default_rng(0)
    return rng.integers(2, size=(20_500, 1)) * np.asarray(apart) + width * rng.normal(size=(20_500, len(apart)))


def _mixed(n, q=2):
    outlier = 1e-3 * RNG.normal(size=(n, q))
    outlier[-1, 0] = 100.0
    return {
        "small clusters": _blobs(n, 20, 1e-2, 100.0, q),
        "two dots": _blobs(n, 2, 1e-3, 10.0, q),
        "a dot and an outlier": outlier,
        "tiny": 1e-8 * RNG.normal(size=(n, q)),
        "usual": 20.0 * RNG.normal(size=(n, q)),
    }


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_forces_are_accurate_at_any_mixture_of_scales(kernel, q):
    radial = KernelValue(kernel)
    for name, Z in _mixed(3000, q).items():
        found, exact = Auto().potential(Z, radial)[1], Exact().potential(Z, radial)[1]
        assert relative_error(found, exact) < 1e-2, name
    assert isinstance(Auto().for_points(_mixed(3000)["usual"], radial), ParticleMesh)


@dataclass(frozen=True)
class SoftBall(gc.Kernel):
    width: float

    def log(self, sq_dist):
        return -np.logaddexp(0.0, (sq_dist - 1.0) / self.width)

    def grad_log(self, sq_dist):
        return -0.5 * (1.0 + np.tanh(0.5 * (sq_dist - 1.0) / self.width)) / self.width


@pytest.mark.parametrize("kernel", [SoftBall(0.3), SoftBall(0.1), gc.RationalPower(1.0, 10.0)])
def test_forces_of_kernels_with_a_sharp_edge_are_accurate(kernel, rng):
    Z, radial = 3.0 * rng.normal(size=(2500, 2)), KernelValue(kernel)
    exact = Exact().potential(Z, radial)[1]
    assert relative_error(Auto().potential(Z, radial)[1], exact) < 1e-2
    assert relative_error(ParticleMesh().potential(Z, radial)[1], exact) > 1e-2
    assert gc.check_kernel(kernel).length < 1.2


def test_the_mesh_alone_is_not_accurate_there():
    radial = KernelValue(gc.Student())
    Z = _mixed(3000)["two dots"]
    assert is_crowded(Z, radial)
    error = error_of_unit_charges(ParticleMesh(), Z, radial)
    assert error > 0.1
    # What is measured on 32 points is what a comparison of all gives.
    whole = relative_error(ParticleMesh().potential(Z, radial)[1], Exact().potential(Z, radial)[1])
    assert 0.3 < error / whole < 3.0


@pytest.mark.parametrize(
    ("apart", "width", "kind"), [((20.0, 6.0), 1e-3, ParticleMesh), ((100.0, 30.0), 1e-6, BarnesHut)]
)
def test_many_crowded_points_are_summed_in_tiles_or_by_a_tree(apart, width, kind):
    radial, Z = KernelValue(gc.Student()), _two_places(apart, width)
    assert isinstance(Auto().for_points(Z, radial), kind)
    assert error_of_unit_charges(Auto(), Z, radial) < 1e-2


def test_many_crowded_points_on_a_line_are_told_with_their_error():
    radial = KernelValue(gc.Student())
    line = _two_places((20.0,), 1e-3)
    with pytest.warns(AccuracyWarning, match=r"off by \d+%. Use summation='exact'"):
        Auto().for_points(line, radial)
    assert not is_crowded(np.zeros((100, 2)), radial)


def test_a_fit_of_two_places_is_that_of_exact_sums():
    X = np.repeat(RNG.normal(size=(2, 10)), 1010, axis=0) + 1e-3 * RNG.normal(size=(2020, 10))
    loss = {
        summation: gc.SymmetricSNE(summation=summation, init="pca", random_state=0, max_iter=40).fit(X)
        for summation in ("auto", "exact")
    }
    exact = gc.CrossEntropy(loss["auto"].posterior_, gc.SymmetricSNE().sentence.latent, summation="exact")
    assert loss["auto"].loss_ == pytest.approx(exact.value(loss["auto"].embedding_.astype(np.float64)), rel=1e-3)
    assert loss["auto"].loss_ == pytest.approx(loss["exact"].loss_, rel=1e-2)


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
@pytest.mark.filterwarnings("ignore:no embedding with a lower loss")
def test_a_summation_that_was_asked_for_is_looked_at_too():
    X = np.repeat(RNG.normal(size=(2, 10)), 600, axis=0) + 1e-9 * RNG.normal(size=(1200, 10))
    options = {"init": np.repeat([[0.0, 0.0], [10.0, 0.0]], 600, axis=0) + 1e-3 * RNG.normal(size=(1200, 2))}
    with pytest.warns(AccuracyWarning, match=r"summation=ParticleMesh\(.*off by \d+% at the embedding"):
        gc.SymmetricSNE(summation="particle_mesh", max_iter=1, learning_rate=1e-9, **options).fit(X)
    for summation, points in (("exact", X), ("auto", X), ("particle_mesh", RNG.normal(size=(1200, 10)))):
        with warnings.catch_warnings():
            warnings.simplefilter("error", AccuracyWarning)
            gc.SymmetricSNE(summation=summation, max_iter=1, random_state=0).fit(points)


def test_a_tree_in_three_dimensions_is_looked_at_though_auto_chose_it(rng, monkeypatch):
    monkeypatch.setattr("graphcouple.summation.auto.TREE_FROM", 1000)
    Z, radial = 3.0 * rng.normal(size=(1500, 3)), KernelValue(gc.RationalPower(1.0, 10.0))
    with pytest.warns(AccuracyWarning, match=r"off by \d+%.*'exact', or BarnesHut with a smaller angle"):
        warn_if_inaccurate(Auto(), Z, radial)
    warn_if_inaccurate(BarnesHut(angle=0.1), Z, radial)


@pytest.mark.parametrize("q", [1, 2])
def test_forces_of_charges_are_compared_with_exact_ones(q):
    radial, rng = KernelValue(gc.Student()), np.random.default_rng(0)
    Z, charges = rng.normal(size=(300, q)), rng.uniform(size=(2, 300))
    exact = Exact().potentials(Z, radial, charges)[1].sum(axis=0)
    assert force_error(exact, Z, radial, charges, None) < 1e-12
    assert force_error(1.02 * exact, Z, radial, charges, None) == pytest.approx(0.02)
    crowded = _mixed(3000, q)["two dots"]
    left, right = rng.uniform(size=(2, 2, 3000))
    for wanted, found in zip(
        Exact().low_rank(crowded, radial, left, right), Auto().low_rank(crowded, radial, left, right), strict=True
    ):
        assert relative_error(found, wanted) < 1e-2


def test_every_eighth_map_of_one_size_is_checked_and_each_of_another(monkeypatch):
    radial, Z, checks = KernelValue(gc.Student()), _mixed(3000)["two dots"], []
    monkeypatch.setattr("graphcouple.summation.auto.force_error", lambda *_: checks.append(1) or 0.0)
    summation = Auto().of_run()
    for _ in range(17):
        summation.potential(Z, radial)
    assert len(checks) == 3
    summation.potential(1.05 * Z, radial)
    assert len(checks) == 3
    summation.potential(1.2 * Z, radial)
    summation.potential(1.2 * Z, KernelValue(gc.Student(2.0)))
    assert len(checks) == 5
    # Outside of a run, each map is checked, and nothing is remembered.
    plain = Auto()
    for _ in range(2):
        plain.potential(Z, radial)
    assert len(checks) == 7
    assert plain._passed is None
    # A map whose forces are not accurate is checked each time.
    monkeypatch.setattr("graphcouple.summation.auto.force_error", lambda *_: checks.append(1) or 1.0)
    for _ in range(3):
        summation.potential(Z, radial)
    assert len(checks) == 10
