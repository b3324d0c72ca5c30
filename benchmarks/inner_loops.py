"""The inner loops one by one, by pytest-benchmark.

    pip install pytest-benchmark
    pytest benchmarks/inner_loops.py [--benchmark-compare]

20,000 points in the plane, placed as late in a run; 90 neighbours; every summation by kernel and prior, the attraction,
an epoch of sampling, a step of descent, and the search for neighbours.
"""

import numpy as np
import pytest

import graphcouple as gc
from graphcouple.laws.bandwidths import DistanceRows
from graphcouple.neighbors import nearest_neighbors
from graphcouple.optimize.momentum import MomentumState
from graphcouple.summation import BarnesHut, Exact, ParticleMesh

N = 20_000
KERNELS = {
    "gaussian": gc.Gaussian(),
    "student": gc.Student(),
    "odds-student": gc.Odds(gc.Student()),
    "odds-rational": gc.Odds(gc.RationalPower(1.577, 0.895)),
}


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    centres = 40.0 * rng.normal(size=(10, 2))
    return (centres[rng.integers(0, 10, N)] + 8.0 * rng.normal(size=(N, 2))).astype(np.float32)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    return (rng.normal(size=(N, 6)) @ rng.normal(size=(6, 100)) + 0.3 * rng.normal(size=(N, 100))).astype(np.float32)


@pytest.fixture(scope="module")
def posterior(data):
    return gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(30), n_neighbors=90).posterior(data)


@pytest.mark.parametrize("summation", [Exact(), ParticleMesh(), BarnesHut()], ids=lambda s: type(s).__name__)
@pytest.mark.parametrize("prior", [gc.Binary(), gc.UnitOutDegree(), gc.FixedEdges()], ids=lambda p: p.code)
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_repulsion(benchmark, points, kernel, prior, summation):
    benchmark(prior.log_partition_and_grad, kernel, points, summation, with_value=False)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_attraction(benchmark, points, posterior, kernel):
    objective = gc.CrossEntropy(posterior, gc.GraphModel(kernel, "B"))
    benchmark(objective.attraction, points)


@pytest.mark.parametrize("repulsion", ["effective", "full"])
def test_umap_gradient(benchmark, points, data, repulsion):
    model, latent = gc.UMAP().models(N)
    kind = gc.EffectiveCrossEntropy if repulsion == "effective" else gc.CrossEntropy
    objective = kind(model.posterior(data), latent, summation="auto")
    benchmark(objective.gradient, points)


def test_sampled_epoch(benchmark, points, data):
    model, latent = gc.UMAP().models(N)
    objective = gc.EffectiveCrossEntropy(model.posterior(data), latent)
    epoch_of = gc.NegativeSampling()._epochs(objective)
    benchmark(epoch_of, 0, 1.0, points, np.empty_like(points))


def test_momentum_step(benchmark, points):
    optimizer = gc.MomentumGains()
    state = MomentumState(points, np.zeros_like(points), np.ones_like(points))
    benchmark(optimizer.move, state, 1e-6 * points, 100.0, 0.9)


@pytest.mark.parametrize("search", ["exact", "approximate"])
def test_neighbors(benchmark, data, search):
    benchmark.pedantic(nearest_neighbors, (data, 90), {"search": search}, rounds=3)


def test_perplexity(benchmark, data):
    support, sq_dist = nearest_neighbors(data, 90)
    benchmark(gc.Perplexity(30).fit_rows, DistanceRows(support, sq_dist, gc.Gaussian()))
