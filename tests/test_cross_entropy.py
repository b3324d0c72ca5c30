import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

import graphcouple as gc
from tests.reference import (
    ARCHETYPES,
    KERNELS,
    dense,
    distances,
    enumerate_graphs,
    enumerated_law,
    literal_kernel,
    numerical_gradient,
    pairwise,
    relative_error,
)

N = 7
PAIRS = ("B-B", "threshold-B", "D-B", "D-D", "D-E", "E-E")


def _posterior(code, n=N, seed=0, n_neighbors=None):
    X = np.random.default_rng(seed).normal(size=(n, 4))
    symmetrize = "threshold" if code == "threshold" else None
    prior = "B" if code == "threshold" else code
    return gc.GraphModel(
        gc.Gaussian(), prior, gc.ConstantBandwidth(1.5), n_neighbors=n_neighbors, symmetrize=symmetrize
    ).posterior(X)


def _literal_partition(code, k):
    off = ~np.eye(len(k), dtype=bool)
    if code == "B":
        return np.log1p(k[off]).sum()
    if code == "D":
        return np.log(np.where(off, k, 0).sum(1)).sum()
    return len(k) * np.log(k[off].sum())


def _literal_value(posterior, kernel, code, Z):
    with np.errstate(divide="ignore", invalid="ignore"):
        k = literal_kernel(kernel, distances(Z))
    M = dense(posterior.mean())
    off = ~np.eye(len(k), dtype=bool)
    total = _literal_partition(code, k) - (M[off] * np.log(k[off])).sum()
    return total / 2 if posterior.unordered else total


@pytest.mark.parametrize(("pair", "kernel", "dim"), pairwise(PAIRS, KERNELS, [1, 2, 3, 5], ARCHETYPES))
def test_value_is_the_literal_one_and_gradient_its_derivative(pair, kernel, dim):
    code_x, code_z = pair.split("-")
    Z = np.random.default_rng(dim).normal(size=(N, dim)) * 1.5
    for n_neighbors in (None, 3):
        posterior = _posterior(code_x, n_neighbors=n_neighbors)
        objective = gc.CrossEntropy(posterior, gc.GraphModel(kernel, code_z))
        value, gradient = objective.value_and_grad(Z)
        np.testing.assert_allclose(value, _literal_value(posterior, kernel, code_z, Z), rtol=1e-10)
        assert relative_error(gradient, numerical_gradient(objective.value, Z)) < 1e-6
        np.testing.assert_allclose(objective.gradient(Z), gradient, rtol=1e-9, atol=1e-9)
        assert objective.value(Z) == pytest.approx(value, rel=1e-13)


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("edge_prior", [None, 0.3])
def test_exaggeration_counts_edges_of_the_input_several_times(pair, edge_prior):
    code_x, code_z = pair.split("-")
    posterior = _posterior(code_x)
    prior = gc.laws.priors.PRIORS[code_z](edge_prior)
    objective = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), prior))
    Z = np.random.default_rng(0).normal(size=(N, 2))
    share = 0.5 if posterior.unordered else 1.0

    def strength(Y):
        k = (edge_prior if edge_prior and code_z == "B" else 1.0) / (1.0 + cdist(Y, Y, "sqeuclidean"))
        s = k / (1.0 + k) if code_z == "B" else k
        return share * float((posterior.mean() * np.log(s)).sum())

    def weighted(Y):
        return objective.value(Y) - 11.0 * strength(Y)

    for exaggerated in (objective.exaggerated(12.0), objective.exaggerated(4.0).exaggerated(3.0)):
        value, gradient = exaggerated.value_and_grad(Z)
        assert value == pytest.approx(weighted(Z), rel=1e-12)
        assert exaggerated.value(Z) == pytest.approx(value, rel=1e-13)
        np.testing.assert_allclose(exaggerated.gradient(Z), gradient, rtol=1e-9, atol=1e-9)
        assert relative_error(gradient, numerical_gradient(weighted, Z)) < 1e-6


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair != "threshold-B"])
def test_value_is_the_enumerated_cross_entropy_up_to_its_constant(pair):
    code_x, code_z = pair.split("-")
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(3, 2)), rng.normal(size=(3, 1))
    posterior = gc.GraphModel(gc.Gaussian(), code_x).posterior(X)
    kx, kz = (literal_kernel(gc.Gaussian(), distances(X)), literal_kernel(gc.Student(), distances(Z)))
    graphs, p, _ = enumerated_law(code_x, kx)
    everything, q, _ = enumerated_law(code_z, kz)
    log_q = {W.tobytes(): value for W, value in zip(everything, np.log(q), strict=True)}
    cross_entropy = -sum(a * log_q[W.tobytes()] for a, W in zip(p, graphs, strict=True))
    base = {W.tobytes(): h for W, h in enumerate_graphs(code_z, 3)}
    constant = -sum(a * np.log(base[W.tobytes()]) for a, W in zip(p, graphs, strict=True))
    objective = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), code_z))
    np.testing.assert_allclose(objective.value(Z) + constant, cross_entropy, rtol=1e-12)


def test_thresholded_value_is_the_enumerated_cross_entropy_over_unordered_pairs():
    rng = np.random.default_rng(4)
    X, Z = rng.normal(size=(3, 2)), rng.normal(size=(3, 1))
    law = gc.GraphModel(gc.Gaussian(), "B", symmetrize="threshold").posterior(X)
    k = literal_kernel(gc.Student(), distances(Z))
    P, Q = law.mean(), k / (1 + k)
    wanted = -sum(
        P[i, j] * np.log(Q[i, j]) + (1 - P[i, j]) * np.log(1 - Q[i, j]) for i in range(3) for j in range(i + 1, 3)
    )
    found = gc.CrossEntropy(law, gc.GraphModel(gc.Student(), "B")).value(Z)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize(("x", "z"), [("B", "D"), ("B", "E"), ("E", "B"), ("E", "D"), ("threshold", "E")])
def test_infeasible_pairs_name_both_priors_and_what_is_not_contained(x, z):
    names = {"B": "Binary", "D": "UnitOutDegree", "E": "FixedEdges", "threshold": "Binary"}
    with pytest.raises(ValueError, match="not contained") as refused:
        gc.CrossEntropy(_posterior(x), gc.GraphModel(gc.Student(), z))
    assert names[x] in str(refused.value)
    assert names[z] in str(refused.value)
    assert "edge" in str(refused.value)


@pytest.mark.parametrize(("x", "z"), [("B", "B"), ("threshold", "B"), ("D", "B"), ("D", "D"), ("D", "E"), ("E", "E")])
def test_latent_edge_prior_scalar_array_and_sparse_agree_with_the_literal_sum(x, z, rng):
    prior = {"B": gc.Binary, "D": gc.UnitOutDegree, "E": gc.FixedEdges}[z]
    posterior, Z = _posterior(x), rng.normal(size=(N, 2))
    pi = rng.uniform(0.5, 2.0, size=(N, N))
    pi = (pi + pi.T) / 2 if x == "threshold" else pi
    off = ~np.eye(N, dtype=bool)
    M = posterior.mean()
    share = 0.5 if x == "threshold" else 1.0
    for given, weights in ((1.7, np.full((N, N), 1.7)), (pi, pi), (sp.csr_matrix(pi), pi)):
        eta = weights * literal_kernel(gc.Student(), distances(Z))
        wanted = share * (_literal_partition(z, eta) - (M[off] * np.log(eta[off])).sum())
        objective = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), prior(given)))
        value, gradient = objective.value_and_grad(Z)
        np.testing.assert_allclose(value, wanted, rtol=1e-11)
        assert relative_error(gradient, numerical_gradient(objective.value, Z)) < 1e-6


def test_latent_edge_prior_must_allow_the_inputs_edges():
    pi = np.ones((N, N))
    pi[2, 4] = 0
    with pytest.raises(ValueError, match="node 2 to 4"):
        gc.CrossEntropy(_posterior("D"), gc.GraphModel(gc.Student(), gc.FixedEdges(pi)))


def test_constant_latent_bandwidth_rescales_the_embedding(rng):
    posterior, Z = _posterior("D"), rng.normal(size=(N, 2))
    plain = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E"))
    wide = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E", gc.ConstantBandwidth(3.0)))
    assert wide.value(3.0 * Z) == pytest.approx(plain.value(Z), rel=1e-13)
    assert relative_error(wide.gradient(Z), numerical_gradient(wide.value, Z)) < 1e-6


@pytest.mark.parametrize(
    "latent",
    [
        gc.GraphModel(gc.Student(), "E", gc.Perplexity(3)),
        gc.GraphModel(gc.Student(), "E", n_neighbors=3),
        gc.GraphModel(gc.Student(), "B", symmetrize="threshold"),
    ],
)
def test_latent_models_cannot_have_what_needs_known_points(latent):
    with pytest.raises(ValueError, match="latent_model"):
        gc.CrossEntropy(_posterior("D"), latent)


def test_objectives_add_and_scale(rng):
    a = gc.CrossEntropy(_posterior("D"), gc.GraphModel(gc.Student(), "E"))
    b = gc.CrossEntropy(_posterior("D"), gc.GraphModel(gc.Gaussian(), "D"))
    Z = rng.normal(size=(N, 2))
    both = a + 0.1 * b * 2
    assert both.value(Z) == pytest.approx(a.value(Z) + 0.2 * b.value(Z), rel=1e-13)
    _, gradient = both.exaggerated(3.0).value_and_grad(Z)
    wanted = a.exaggerated(3.0).gradient(Z) + 0.2 * b.exaggerated(3.0).gradient(Z)
    np.testing.assert_allclose(gradient, wanted, rtol=1e-12)
    np.testing.assert_allclose(both.exaggerated(3.0).gradient(Z), gradient, rtol=1e-9)
    assert both.curvature(Z) == pytest.approx(a.curvature(Z) + 0.2 * b.curvature(Z))
    other = gc.CrossEntropy(_posterior("D", n=9), gc.GraphModel(gc.Student(), "E"))
    with pytest.raises(ValueError, match="different numbers of points"):
        a + other
    with pytest.raises(TypeError):
        a * "2"


@pytest.mark.parametrize("pair", PAIRS)
def test_results_have_the_same_bits_for_any_number_of_threads(pair):
    code_x, code_z = pair.split("-")
    posterior = _posterior(code_x, n=500, n_neighbors=20)
    Z = np.random.default_rng(0).normal(size=(500, 2))
    results = [
        gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), code_z), n_jobs=jobs).value_and_grad(Z)
        for jobs in (1, 2, 5)
    ]
    for value, gradient in results[1:]:
        assert value == results[0][0]
        np.testing.assert_array_equal(gradient, results[0][1])


def test_coincident_points_give_finite_results_and_no_force():
    Z = np.zeros((N, 2))
    for kernel in [KERNELS[name] for name in KERNELS if name in ARCHETYPES]:
        for pair in ("D-B", "D-D", "D-E"):
            x, z = pair.split("-")
            value, gradient = gc.CrossEntropy(_posterior(x), gc.GraphModel(kernel, z)).value_and_grad(Z)
            assert np.isfinite(value)
            np.testing.assert_array_equal(gradient, 0.0)


def test_gradient_keeps_float32_and_agrees_with_float64(rng):
    objective = gc.CrossEntropy(_posterior("D"), gc.GraphModel(gc.Student(), "E"))
    Z = rng.normal(size=(N, 2)).astype(np.float32)
    value, gradient = objective.value_and_grad(Z)
    assert gradient.dtype == np.float32
    exact_value, exact = objective.value_and_grad(Z.astype(np.float64))
    assert value == exact_value
    np.testing.assert_allclose(gradient, exact, rtol=1e-6)


@pytest.mark.parametrize(
    ("Z", "error"), [(np.zeros((3, 2)), ValueError), (np.zeros(N), ValueError), (np.full((N, 2), "a"), TypeError)]
)
def test_bad_embeddings_are_refused(Z, error):
    with pytest.raises(error, match="Z"):
        gc.CrossEntropy(_posterior("D"), gc.GraphModel(gc.Student(), "E")).value(Z)


@pytest.mark.parametrize("prior", ["B", "D", "E"])
def test_forces_add_up_to_nothing(rng, prior):
    """Sums by the mesh have an error; descent by curvature would follow its mean, along which the loss is level."""
    X = rng.normal(size=(2500, 5))
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)).posterior(X)
    objective = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), prior), summation="particle_mesh")
    Z = 20.0 * X[:, :2]
    off = objective.partition.gradient(Z).mean(axis=0)
    for gradient in (objective.gradient(Z), objective.value_and_grad(Z)[1]):
        least = 1e-14 * np.abs(gradient).max()
        assert np.abs(gradient.mean(axis=0)).max() < least < 0.01 * np.abs(off).max()


def test_a_small_divergence_is_summed_exactly(rng):
    """A fast sum's error, 1e-5, would be most of it."""
    X = rng.uniform(size=(2200, 2))
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.ConstantBandwidth(0.03)).posterior(X)
    latent = gc.GraphModel(gc.Gaussian(), "D")
    fast, exact = (gc.CrossEntropy(posterior, latent, summation=name) for name in ("particle_mesh", "exact"))
    distorted = X / 0.03 + 1e-4 * rng.normal(size=X.shape)
    for Z in (distorted, 1.001 * distorted):
        wanted = exact.kl_divergence(Z)
        assert 0 < wanted < 0.01
        assert fast.kl_divergence(Z) == pytest.approx(wanted, rel=1e-9)
    # The fast sum alone would be off by more than that.
    off = abs(fast.value(distorted) - exact.value(distorted)) / len(X)
    assert off > 0.1 * exact.kl_divergence(distorted)
