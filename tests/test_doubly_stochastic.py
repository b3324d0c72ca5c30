"""Prior S, symmetric entropic affinities and SNEkhorn, against slow references."""

import dataclasses

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.special import xlogy
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

import graphcouple as gc
from graphcouple.graphs import Support
from graphcouple.laws import QuadraticTransport, SymmetricEntropic
from graphcouple.laws.priors import DoublyStochastic
from graphcouple.laws.quadratic import _search

KERNELS = pytest.mark.parametrize("kernel", [gc.Gaussian(), gc.Student()], ids=str)


def _balanced(kernel_values):
    """Return the doubly stochastic scaling of a matrix by alternately dividing rows and columns by their sums."""
    P = kernel_values.copy()
    for _ in range(5000):
        P /= P.sum(axis=1, keepdims=True)
        P /= P.sum(axis=0, keepdims=True)
    return 0.5 * (P + P.T)


def _symmetric(n, seed=0):
    eta = np.random.default_rng(seed).normal(size=(n, n))
    return eta + eta.T


def test_the_mean_is_sinkhorns_and_the_partition_the_value_of_transport():
    eta = _symmetric(9)
    law = DoublyStochastic().posterior(eta)
    K = np.exp(eta) * (1.0 - np.eye(9))
    P = law.mean()
    np.testing.assert_allclose(P, _balanced(K), atol=1e-9)
    transport = float((P * eta).sum() - xlogy(P, P).sum())
    assert law.log_partition() == pytest.approx(transport, abs=1e-8)
    other = 0.9 * P + 0.1 * (1.0 - np.eye(9)) / 8.0
    assert float((other * eta).sum() - xlogy(other, other).sum()) < transport
    assert law.entropy() == pytest.approx(-xlogy(P, P).sum())


def test_the_mean_is_the_derivative_of_the_partition():
    eta, step, prior = _symmetric(7), 1e-5, DoublyStochastic()
    change = np.zeros((7, 7))
    change[2, 5] = change[5, 2] = step
    slope = (prior.posterior(eta + change).log_partition() - prior.posterior(eta - change).log_partition()) / (2 * step)
    assert slope == pytest.approx(2.0 * prior.posterior(eta).mean()[2, 5], rel=1e-6)


def test_samples_have_the_mean_and_the_probability_that_the_law_states():
    law = DoublyStochastic().posterior(_symmetric(5))
    graphs = [law.sample(seed) for seed in range(3000)]
    np.testing.assert_allclose(np.mean([g.toarray() for g in graphs], axis=0), law.mean(), atol=0.05)
    surprise = -np.mean([law.log_prob(g) for g in graphs])
    assert surprise == pytest.approx(law.entropy(), rel=0.02)


@KERNELS
def test_gradient(kernel):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 4))
    law = SymmetricEntropic(bandwidth=gc.Perplexity(6)).posterior(X)
    objective = gc.CrossEntropy(law, gc.GraphModel(kernel, "S"))
    Z, step = X[:, :2].copy(), 1e-5
    loss, gradient = objective.value_and_grad(Z)
    assert loss >= objective.lower_bound
    for _ in range(4):
        d = rng.normal(size=Z.shape)
        slope = (objective.value(Z + step * d) - objective.value(Z - step * d)) / (2.0 * step)
        assert float((gradient * d).sum()) == pytest.approx(slope, rel=1e-5, abs=1e-6)


@KERNELS
def test_partition_of_an_embedding_agrees_with_the_dense_law(kernel):
    Z = np.random.default_rng(1).normal(size=(40, 2))
    value, gradient = DoublyStochastic().log_partition_and_grad(kernel, Z, gc.Exact())
    law = DoublyStochastic().posterior(kernel.log(cdist(Z, Z, "sqeuclidean")))
    assert value == pytest.approx(law.log_partition(), rel=1e-9)
    weight = 4.0 * law.mean() * kernel.grad_log(cdist(Z, Z, "sqeuclidean"))
    np.testing.assert_allclose(gradient, weight.sum(axis=1)[:, None] * Z - weight @ Z, atol=1e-6)


def test_far_points_do_not_underflow():
    Z = np.random.default_rng(1).normal(size=(12, 2))
    Z[:2] += 60.0
    value, gradient = DoublyStochastic().log_partition_and_grad(gc.Gaussian(), Z, gc.Exact())
    law = DoublyStochastic().posterior(gc.Gaussian().log(cdist(Z, Z, "sqeuclidean")))
    assert value == pytest.approx(law.log_partition(), rel=1e-6)
    assert np.isfinite(gradient).all()


def test_affinities_of_few_points_have_the_least_cost():
    n, perplexity = 6, 3.0
    X = np.random.default_rng(0).normal(size=(n, 3))
    cost, pairs = cdist(X, X, "sqeuclidean"), np.triu_indices(n, 1)

    def matrix(values):
        P = np.zeros((n, n))
        P[pairs] = values
        return P + P.T

    def entropies(values):
        return -xlogy(matrix(values), matrix(values)).sum(axis=1) - np.log(perplexity)

    constraints = [{"type": "eq", "fun": lambda v: matrix(v).sum(axis=1) - 1.0}, {"type": "ineq", "fun": entropies}]
    start = np.full(len(pairs[0]), 1.0 / (n - 1))
    options = {"maxiter": 500, "ftol": 1e-12}
    best = minimize(
        lambda v: 2.0 * float(v @ cost[pairs]),
        start,
        bounds=[(1e-9, 1.0)] * len(start),
        constraints=constraints,
        options=options,
    )
    P = SymmetricEntropic(bandwidth=gc.Perplexity(perplexity)).posterior(X).mean()
    assert float((P * cost).sum()) < best.fun + 1e-5
    np.testing.assert_allclose(P, matrix(best.x), atol=1e-4)


KINDS = {
    "blobs": lambda rng: make_blobs(200, 10, centers=4, cluster_std=0.3, random_state=0)[0],
    "copies": lambda rng: np.repeat(rng.normal(size=(40, 5)), 5, axis=0),
    "an outlier": lambda rng: np.vstack([rng.normal(size=(150, 5)), np.full((1, 5), 1000.0)]),
    "a line": lambda rng: np.arange(200.0)[:, None],
    "counts": lambda rng: rng.poisson(1.0, size=(200, 20)).astype(float),
}


@pytest.mark.parametrize("kind", KINDS)
def test_affinities_are_balanced_with_the_perplexity_asked_for(kind):
    X = KINDS[kind](np.random.default_rng(0))
    P = SymmetricEntropic(bandwidth=gc.Perplexity(10)).posterior(X).mean()
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-6)
    np.testing.assert_allclose(P, P.T, atol=1e-12)
    perplexities = np.exp(-xlogy(P, P).sum(axis=1))
    # An entropy is at least the one asked for, and nearly all of them are equal to it.
    assert perplexities.min() > 10.0 - 1e-4
    assert np.median(perplexities) == pytest.approx(10.0, abs=1e-4)


def test_neighbors_give_nearly_the_affinities_of_all_pairs():
    X = np.random.default_rng(0).normal(size=(300, 5))
    law = {"bandwidth": gc.Perplexity(10)}
    dense = SymmetricEntropic(**law).posterior(X).mean()
    sparse = SymmetricEntropic(**law, n_neighbors=100).posterior(X).mean().toarray()
    assert np.abs(dense - sparse).sum() < 0.01 * dense.sum()


def test_a_graph_without_a_balanced_mean_says_so():
    star = np.full((5, 5), -np.inf)
    star[0, 1:] = star[1:, 0] = 0.0
    with pytest.warns(ConvergenceWarning, match="no graph with one edge into every node"):
        DoublyStochastic().posterior(star).mean()


def test_narrow_kernels_are_balanced_or_the_warning_names_the_bandwidth():
    X = np.random.default_rng(0).normal(size=(30, 2))
    law = gc.GraphModel(gc.Gaussian(), "S")
    np.testing.assert_allclose(law.posterior(30.0 * X).mean().sum(axis=0), 1.0, atol=1e-3)
    with pytest.warns(ConvergenceWarning, match=r"^balancing did not converge.*wider bandwidth, such as Perplexity"):
        law.posterior(1000.0 * X).mean()


@pytest.mark.filterwarnings("ignore:perplexity=30 is lowered")
@pytest.mark.parametrize("n", [2, 3, 5])
def test_few_points(n):
    fitted = gc.SNEkhorn(random_state=0).fit(np.random.default_rng(0).normal(size=(n, 3)))
    np.testing.assert_allclose(fitted.posterior_.mean().sum(axis=0), 1.0, atol=1e-6)
    assert np.isfinite(fitted.embedding_).all()


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore::UserWarning")
@pytest.mark.parametrize("seed", range(3))
def test_the_only_law_of_three_points_is_found_without_a_division_by_zero(seed):
    points = np.random.default_rng(seed).normal(size=(3, 4))
    method = gc.SNEkhorn(perplexity=1.5, max_iter=15, random_state=0).fit(points)
    np.testing.assert_allclose(method.posterior_.mean(), (1.0 - np.eye(3)) / 2.0, atol=1e-8)


def test_graphs_that_are_no_mean_are_refused():
    rng = np.random.default_rng(0)
    mean = DoublyStochastic().posterior(np.log(rng.random((8, 8)) ** 2 + 0.1) * (tie := np.ones((8, 8))) + tie).mean()
    mean = 0.5 * (mean + mean.T)
    mean = DoublyStochastic().posterior(np.log(mean + np.eye(8))).mean()
    np.testing.assert_allclose(DoublyStochastic().around(3.0 * mean).mean().toarray(), mean, atol=1e-6)
    for graph in (np.triu(np.ones((4, 4)), 1), np.array([[0, 2.0, 1], [2, 0, 1], [1, 1, 0]])):
        with pytest.raises(ValueError, match="symmetric, and its rows have equal sums"):
            DoublyStochastic().around(graph)


def test_refusals():
    X = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(ValueError, match="one edge into every node on average"):
        gc.GraphCoupling(gc.GraphModel(gc.Gaussian(), "D"), gc.GraphModel(gc.Gaussian(), "S"), max_iter=20).fit(X)
    with pytest.raises(ValueError, match="sample weights need a prior"):
        gc.SNEkhorn(perplexity=5).fit(X, sample_weight=np.ones(20))
    with pytest.raises(ValueError, match="bandwidth must be a Perplexity"):
        SymmetricEntropic(bandwidth=gc.SelfTuning(5))
    one_way = np.triu(np.ones((20, 20)), 1)
    with pytest.raises(ValueError, match="both directions"):
        gc.GraphModel(gc.Gaussian(), DoublyStochastic(one_way)).posterior(X).mean()


@KERNELS
def test_a_fit_ends_at_a_minimum(kernel):
    X = gc.datasets.load("iris")[0]
    fitted = gc.SNEkhorn(perplexity=20, latent_kernel=kernel, random_state=0).fit(X)
    law = SymmetricEntropic(bandwidth=gc.Perplexity(20)).posterior(X)
    objective = gc.CrossEntropy(law, gc.GraphModel(kernel, "S"))
    loss, gradient = objective.value_and_grad(fitted.embedding_)
    assert loss == pytest.approx(fitted.loss_, rel=1e-6)
    assert fitted.kl_divergence_ == pytest.approx(objective.kl_divergence(fitted.embedding_), abs=1e-5)
    assert fitted.kl_divergence_ > 0
    step = fitted.embedding_ - 1e-3 * gradient / np.abs(gradient).max()
    assert loss - objective.value(step) < 1e-4 * loss
    placed = fitted.transform(X[:10] + 1e-3)
    near = np.linalg.norm(placed - fitted.embedding_[:10], axis=1)
    assert np.median(near) < 0.2 * np.abs(fitted.embedding_).max()


def nearest_transport(cost, penalty):
    """The nearest symmetric matrix of entries of at least 0, rows that sum to 1 and no diagonal to −cost/penalty, by
    Dykstra's projections."""
    n = len(cost)
    P, correction = -cost / penalty, np.zeros_like(cost)
    for _ in range(20_000):
        # Onto rows and columns that sum to 1: P − u − uᵀ.
        excess = P.sum(axis=1) - 1.0
        u = excess / n - excess.sum() / (2.0 * n * n)
        rows = P - u[:, None] - u
        P = np.maximum(rows + correction, 0.0)
        np.fill_diagonal(P, 0.0)
        correction = rows + correction - P
    return P


@pytest.mark.parametrize("ties", [False, True], ids=["distances", "ties"])
def test_quadratic_transport_by_projections(rng, ties):
    X = rng.normal(size=(12, 2))
    if ties:
        X = np.round(X)
    P = QuadraticTransport(bandwidth=gc.Perplexity(4)).posterior(X).mean().toarray()
    assert float(np.exp(-xlogy(P, P).sum() / 12)) == pytest.approx(4.0, rel=1e-3)
    cost = ((X[:, None] - X) ** 2).sum(axis=-1)
    # P = max(f_i + f_j − c_ij, 0)/ε on the largest entries gives ε.
    at, to = np.nonzero(P > 1e-6)
    equations = np.zeros((at.size, 13))
    equations[np.arange(at.size), at] += 1.0
    equations[np.arange(at.size), to] += 1.0
    equations[:, 12] = -P[at, to]
    penalty = np.linalg.lstsq(equations, cost[at, to], rcond=None)[0][12]
    np.testing.assert_allclose(P, nearest_transport(cost, penalty), atol=1e-5)
    # The shifts belong to the means.
    edges = Support.all_pairs(12)
    shifts, means = _search(edges, cost[edges.rows, edges.indices], 4.0)
    mass = np.maximum(shifts[edges.rows] + shifts[edges.indices] - cost[edges.rows, edges.indices], 0.0)
    np.testing.assert_allclose(mass / mass.sum(), means / means.sum(), atol=1e-12)


@pytest.mark.parametrize("far", [30.0, 1000.0])
def test_quadratic_transport_on_near_neighbours_is_that_of_all_pairs(rng, far):
    """Far pairs have no edge, unless too few neighbours are allowed."""
    X = rng.normal(size=(150, 3))
    law = QuadraticTransport(bandwidth=gc.Perplexity(8))
    dense = law.posterior(X).mean().toarray()
    assert (dense > 0.0).sum(axis=1).max() < 30
    near = dataclasses.replace(law, n_neighbors=60).posterior(X)
    np.testing.assert_allclose(near.mean().toarray(), dense, atol=1e-4)
    outlier = np.vstack([X, [[far, 0.0, 0.0]]])
    for perplexity in (8, 100):
        P = QuadraticTransport(bandwidth=gc.Perplexity(perplexity)).posterior(outlier).mean().toarray()
        np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-8)
        np.testing.assert_allclose(P, P.T)


def test_a_star_has_no_quadratic_transport():
    """Six leaves have edges to two centres only, whose rows cannot sum to 1; nor has a point far from all others."""
    X = np.zeros((8, 7))
    X[:6, :6] = np.eye(6)
    X[6:, 6] = 0.01, -0.02
    law = QuadraticTransport(bandwidth=gc.Perplexity(1.5), n_neighbors=2)
    with pytest.warns(ConvergenceWarning) as warned:
        law.posterior(X).mean()
    assert "no quadratic transport of this perplexity was found" in str(warned[0].message)
    X = np.vstack([np.random.default_rng(0).normal(size=(30, 2)), [[1e4, 0.0]]])
    with pytest.warns(ConvergenceWarning, match="too far from all others.*Remove outliers"):
        QuadraticTransport(bandwidth=gc.Perplexity(8)).posterior(X).mean()
