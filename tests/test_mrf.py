from math import comb

import igraph
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import graphcouple as gc
from graphcouple.theory.field import component_indicators, laplacian, split
from graphcouple.theory.finite_epsilon import enumerate_graphs
from tests.reference import distances, literal_kernel, random_graph
from tests.reference import enumerate_graphs as literal_graphs

GAUSSIAN = gc.GraphModel("gaussian", "D")
TRIANGLE = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]])
DECAYING = {"gaussian": gc.Gaussian(), "exponential": gc.Exponential(), "student-3": gc.Student(3.0)}


def literal_log_density(kernel, X, W):
    return sum(
        W[i, j] * np.log(literal_kernel(kernel, distances(X)[i, j])) for i, j in zip(*np.nonzero(W), strict=True)
    )


@pytest.mark.parametrize("kernel", [*DECAYING.values(), gc.Odds(gc.Student())])
@pytest.mark.parametrize("kind", ["dense", "sparse", "networkx", "igraph"])
def test_density_and_its_invariance(kernel, kind, rng):
    W, X = random_graph(7, density=0.2), rng.normal(size=(7, 3))
    given = {
        "dense": lambda: W,
        "sparse": lambda: sp.coo_matrix(W),
        "networkx": lambda: nx.from_numpy_array(W, create_using=nx.DiGraph),
        "igraph": lambda: igraph.Graph.Weighted_Adjacency(W.tolist()),
    }[kind]()
    mrf = gc.PairwiseMRF(kernel)
    value = mrf.log_density(X, given)
    np.testing.assert_allclose(value, literal_log_density(kernel, X, W), rtol=1e-12)
    U = component_indicators(given)
    moved = X + U @ rng.normal(size=(U.shape[1], 3))
    assert mrf.log_density(moved, given) == pytest.approx(value, abs=1e-12, rel=1e-12)
    assert mrf.log_density(split(X, given)[1], given) == pytest.approx(value, abs=1e-12, rel=1e-12)


def test_graph_functions_are_methods_of_the_field_too():
    mrf = gc.PairwiseMRF(gc.Gaussian())
    assert mrf.laplacian is laplacian
    assert mrf.split is split
    assert mrf.component_indicators is component_indicators


def test_gaussian_density_is_the_laplacians_quadratic_form(rng):
    W, X = random_graph(8), rng.normal(size=(8, 3))
    sigma = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
    L = laplacian(W).toarray()
    both = W + W.T
    np.testing.assert_array_equal(L, np.diag(both.sum(1)) - both)
    wanted = -0.5 * np.trace(np.linalg.solve(sigma, X.T @ L @ X))
    assert gc.PairwiseMRF(gc.Gaussian(), sigma).log_density(X, W) == pytest.approx(wanted, rel=1e-12)


def test_indicators_span_the_null_space_and_split_the_points(rng):
    W, X = random_graph(20, density=0.04), rng.normal(size=(20, 2))
    U = component_indicators(W).toarray()
    np.testing.assert_allclose(U.T @ U, np.eye(U.shape[1]), atol=1e-14)
    np.testing.assert_allclose(laplacian(W) @ U, 0.0, atol=1e-13)
    assert U.shape[1] == np.count_nonzero(np.linalg.eigvalsh(laplacian(W).toarray()) < 1e-10)
    means, around = split(X, W)
    np.testing.assert_allclose(means + around, X, rtol=1e-14)
    np.testing.assert_allclose(means, U @ U.T @ X, atol=1e-13)


def test_gaussian_samples_have_the_pseudo_inverse_for_covariance():
    W, sigma = random_graph(5, density=0.3), np.array([[1.0, 0.4], [0.4, 2.0]])
    X = gc.PairwiseMRF(gc.Gaussian(), sigma).sample_centred(W, 2, rng=0, size=200_000)
    rows = np.einsum("sip,sjp->ij", X, X) / len(X) / np.trace(sigma)
    np.testing.assert_allclose(rows, np.linalg.pinv(laplacian(W).toarray()), atol=0.01)
    np.testing.assert_allclose(split(X[0], W)[0], 0.0, atol=1e-12)
    columns = np.einsum("sip,siq->pq", X, X) / len(X)
    np.testing.assert_allclose(columns / columns[0, 0], sigma / sigma[0, 0], atol=0.02)


@pytest.mark.parametrize(("code", "n"), [("B", 3), ("D", 3), ("D", 4), ("E", 3), ("E", 4)])
def test_enumeration_lists_every_graph_once(code, n):
    graphs, log_base = enumerate_graphs(code, n)
    size = {"B": 2 ** (n * (n - 1)), "D": (n - 1) ** n, "E": comb(n * (n - 1) + n - 1, n)}[code]
    assert len(graphs) == size == len({W.tobytes() for W in graphs})
    wanted = {W.tobytes(): np.log(h) for W, h in literal_graphs(code, n)}
    for W, h in zip(graphs, log_base, strict=True):
        assert h == pytest.approx(wanted[W.astype(int).tobytes()], abs=1e-12)


@pytest.mark.parametrize(("code", "n"), [("D", 4), ("B", 3), ("S", 4), pytest.param("E", 4, marks=pytest.mark.nightly)])
def test_finite_epsilon_posterior_tends_to_the_limit_linearly(code, n, rng):
    """Proposition 1."""
    X = rng.normal(size=(n, 2))
    model, y = gc.GraphModel(gc.Gaussian(), code, target_weight=0.5), np.arange(n) % 2
    limit = gc.finite_epsilon_posterior(model, X, 0.0, y=y)
    np.testing.assert_allclose(limit.mean(), model.posterior(X, y=y).mean(), rtol=1e-12)
    tv = [gc.finite_epsilon_posterior(model, X, e, y=y).total_variation(limit) for e in (1e-3, 1e-4, 1e-5)]
    np.testing.assert_allclose([tv[0] / tv[1], tv[1] / tv[2]], 10.0, rtol=0.02)


def test_finite_epsilon_posterior_is_the_literal_product(rng):
    X, sigma = rng.normal(size=(3, 2)), np.array([[1.0, 0.3], [0.3, 2.0]])
    k = literal_kernel(gc.Student(), distances(X))
    model = gc.GraphModel(gc.Student(), "E")
    found = gc.finite_epsilon_posterior(model, X, 0.7, covariance=sigma, theta=lambda R: np.eye(R) + 0.5)
    masses = []
    for W, base in literal_graphs("E", 3):
        means = component_indicators(W).toarray().T @ X
        factor = np.exp(-0.35 * np.trace(np.linalg.inv(sigma) @ means.T @ (np.eye(len(means)) + 0.5) @ means))
        masses.append(base * factor * np.prod([k[i, j] ** W[i, j] for i in range(3) for j in range(3) if i != j]))
    order = {W.tobytes(): m for (W, _), m in zip(literal_graphs("E", 3), masses, strict=True)}
    wanted = np.array([order[W.astype(int).tobytes()] for W in found.graphs])
    np.testing.assert_allclose(found.probabilities, wanted / wanted.sum(), rtol=1e-11)


def test_the_posterior_at_a_finite_epsilon_is_of_one_model():
    with pytest.raises(TypeError, match="model must be a GraphModel, got GraphMixture"):
        gc.finite_epsilon_posterior(gc.GraphMixture([GAUSSIAN, GAUSSIAN]), np.eye(3), 1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gc.PairwiseMRF(gc.Gaussian(), np.diag([1.0, -1.0])), "positive definite"),
        (lambda: gc.PairwiseMRF(gc.Gaussian(), np.diag([1.0, np.nan])), "covariance must be finite"),
        (lambda: gc.PairwiseMRF(gc.Gaussian()).log_density(np.ones((3, 1)), np.zeros((2, 2))), "nodes"),
        (lambda: gc.PairwiseMRF(gc.Gaussian()).log_density(np.full((2, 1), np.nan), np.zeros((2, 2))), "finite"),
        (lambda: gc.PairwiseMRF(gc.Exponential()).log_normalizer(TRIANGLE, 1, method="closed"), "closed form"),
        (lambda: gc.PairwiseMRF(gc.Exponential()).log_normalizer(TRIANGLE, 1, method="magic"), "method"),
        (lambda: gc.PairwiseMRF(gc.Exponential()).log_normalizer(TRIANGLE, 3, method="quadrature"), "coordinates"),
        (lambda: gc.PairwiseMRF(gc.Student()).sample_centred(TRIANGLE, 2), "Gaussian"),
        (lambda: laplacian(-TRIANGLE), "at least 0"),
        (
            lambda: gc.PairwiseMRF(gc.Gaussian(), bandwidths=np.ones(3)).log_density(np.zeros((3, 1)), -TRIANGLE),
            "at least 0",
        ),
        (lambda: gc.PairwiseMRF(gc.Gaussian()).sample_centred(TRIANGLE, 2, size=-1), "size"),
        (lambda: gc.PairwiseMRF(gc.Gaussian()).sample_centred(TRIANGLE, 0), "dim must be at least 1"),
        (lambda: gc.PairwiseMRF(gc.Gaussian(), np.eye(2)).sample_centred(TRIANGLE, 3), "but dim=3"),
        (
            lambda: gc.finite_epsilon_posterior(GAUSSIAN, np.eye(3), 1.0, theta=lambda R: np.ones(R)),
            r"theta\(\d\) must have shape",
        ),
        (lambda: enumerate_graphs("B", 4), "2 to 3"),
        (lambda: gc.finite_epsilon_posterior(gc.GraphModel(gc.Gaussian(), "D"), np.ones((3, 1)), -1.0), "epsilon"),
        (lambda: gc.finite_epsilon_posterior(GAUSSIAN, np.ones((3, 1)), np.inf), "epsilon must be a finite number"),
        (
            lambda: gc.finite_epsilon_posterior(gc.GraphModel("gaussian", "D", metric="precomputed"), TRIANGLE, 1.0),
            "where",
        ),
        (lambda: gc.finite_epsilon_posterior(GAUSSIAN, np.eye(3), 1.0, covariance=-np.eye(3)), "positive definite"),
        (
            lambda: gc.finite_epsilon_posterior(GAUSSIAN, np.eye(3), 1.0, covariance=np.ones((3, 3))),
            "positive definite",
        ),
        (lambda: gc.finite_epsilon_posterior(GAUSSIAN, np.eye(3), 1.0, covariance=np.eye(2)), "X has 3 columns"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("kernel", [gc.Gaussian(), gc.Student(3.0)])
def test_bandwidths_divide_the_distances_of_a_nodes_edges(kernel, rng):
    W, X, tau = random_graph(7, density=0.2), rng.normal(size=(7, 3)), rng.uniform(0.5, 2.0, size=7)
    wanted = sum(
        W[i, j] * np.log(literal_kernel(kernel, distances(X)[i, j] / tau[i]))
        for i, j in zip(*np.nonzero(W), strict=True)
    )
    assert gc.PairwiseMRF(kernel, bandwidths=tau).log_density(X, W) == pytest.approx(wanted, rel=1e-12)
    # Loops add nothing, with bandwidths or without; this kernel is not 1 at 0.
    loops = W + np.diag([2.0] + [0.0] * 6)
    doubled = gc.kernels.ScaledKernel(kernel, 1.0)
    for bandwidths in (None, tau):
        field = gc.PairwiseMRF(doubled, bandwidths=bandwidths)
        assert field.log_density(X, loops) == field.log_density(X, W)


def test_a_field_of_ones_own_tends_to_the_limit():
    X = np.array([[0.0], [1.0], [3.0]])
    model = gc.GraphModel(gc.Gaussian(), "B")

    def heavy(means):
        return -float(np.log1p(np.square(means)).sum())

    limit = gc.finite_epsilon_posterior(model, X, 0.0)
    laws = [gc.finite_epsilon_posterior(model, X, e, log_field=heavy) for e in (1.0, 1e-2, 1e-4)]
    away = [law.total_variation(limit) for law in laws]
    assert away[0] > away[1] > away[2]
    assert away[2] < 1e-3
    # By hand for all graphs: the limit's masses times the field of the components' means.
    mass = limit.probabilities * np.exp([heavy(component_indicators(W).T @ X) for W in limit.graphs])
    np.testing.assert_allclose(laws[0].probabilities, mass / mass.sum(), rtol=1e-10)


def test_a_field_keeps_its_covariance_and_laws_refuse_a_second_one():
    covariance, W = np.eye(1), np.array([[0, 1.0], [0, 0]])
    field = gc.PairwiseMRF(gc.Gaussian(), covariance)
    before = field.log_normalizer(W, 1).value
    covariance *= 100.0
    assert field.log_normalizer(W, 1).value == before
    with pytest.raises(ValueError, match="takes the place of the normal law"):
        gc.finite_epsilon_posterior(GAUSSIAN, [[0.0], [1.0]], 1.0, covariance=np.eye(1), log_field=lambda means: 0.0)
