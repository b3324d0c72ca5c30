"""Laplacian contraction: eigenvalues and forces against dense references, the bound, and what LaptSNE does."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group
from sklearn.base import clone

import graphcouple as gc
from graphcouple.couplings import KernelLaplacian, LaplacianEigenvalues
from graphcouple.spectral import eigengaps, laplacian_eigenvalues
from graphcouple.summation import BarnesHut, Exact, KernelValue, ParticleMesh
from tests.reference import numerical_gradient, pairwise, relative_error

RNG = np.random.default_rng(5)
N = 30
Z = 2.0 * RNG.normal(size=(N, 2))
KERNELS = {
    "student": gc.Student(),
    "gaussian": gc.Gaussian(),
    "umap": gc.RationalPower(1.6, 0.9),
    "exponential": gc.Exponential(),
}
EVERY = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS.keys())


def slow_laplacian(points, kernel):
    A = kernel.value(cdist(points, points, "sqeuclidean"))
    np.fill_diagonal(A, 0.0)
    degrees = A.sum(axis=1)
    return np.eye(len(points)) - A / np.sqrt(degrees[:, None] * degrees)


def slow_sum(points, kernel, k):
    return float(np.linalg.eigvalsh(slow_laplacian(points, kernel))[:k].sum())


@pytest.mark.parametrize(("k", "kernel", "dim"), pairwise((2, 5, 12, N - 1), KERNELS, (1, 2, 4)))
def test_value_and_gradient(kernel, k, dim):
    points = np.hstack([Z, Z[::-1] * 0.7])[:, :dim]
    objective = LaplacianEigenvalues(N, kernel, k)
    value, gradient = objective.value_and_grad(points)
    assert value == pytest.approx(slow_sum(points, kernel, k), abs=1e-12)
    assert objective.value(points) == pytest.approx(value, abs=1e-12)
    wanted = numerical_gradient(lambda places: slow_sum(places, kernel, k), points)
    assert relative_error(gradient, wanted) < 1e-6
    np.testing.assert_allclose(
        objective.eigenvalues(points), np.linalg.eigvalsh(slow_laplacian(points, kernel))[:k], atol=1e-12
    )


@EVERY
def test_any_basis_bounds_the_sum_from_above_and_its_own_touches_it(kernel):
    objective, k = LaplacianEigenvalues(N, kernel, 4), 4
    bound = objective.at(0, Z)
    assert bound.value(Z) == pytest.approx(objective.value(Z), abs=1e-12)
    for step in (0.1, 1.0, 5.0):
        moved = Z + step * RNG.normal(size=Z.shape)
        assert bound.value(moved) >= objective.value(moved) - 1e-12
        V = bound.V
        assert bound.value(moved) == pytest.approx(np.trace(V.T @ slow_laplacian(moved, kernel) @ V), abs=1e-12)
        wanted = numerical_gradient(bound.value, moved)
        assert relative_error(bound.value_and_grad(moved)[1], wanted) < 1e-6
    random_basis = ortho_group.rvs(N, random_state=0)[:, :k]
    assert np.trace(random_basis.T @ slow_laplacian(Z, kernel) @ random_basis) > objective.value(Z)


def test_steps_below_two_over_the_curvature_never_raise_the_objective():
    """The paper's proposition 1, with the curvature of the bound measured along each step."""
    X = RNG.normal(size=(N, 5))
    sentence = gc.TSNE(perplexity=5).sentence
    whole = gc.CrossEntropy(sentence.input.posterior(X), sentence.latent) + 5.0 * LaplacianEigenvalues(
        N, gc.Student(), 3
    )
    places, losses = 0.5 * Z, []
    for iteration in range(60):
        now = whole.at(iteration, places)
        losses.append(whole.value(places))
        gradient, rate = now.gradient(places), 1.0 / now.curvature(places)
        while now.value(places - rate * gradient) > now.value(places) - 0.5 * rate * np.square(gradient).sum():
            rate *= 0.5
        places = places - rate * gradient
    assert (np.diff(losses) < 0).all()
    assert losses[0] - losses[-1] > 1.0


@pytest.mark.parametrize("summation", [ParticleMesh(), BarnesHut()], ids=["mesh", "tree"])
def test_fast_sums_and_iterative_eigenvectors(summation):
    points = np.concatenate([RNG.normal(size=(200, 2)) + 15.0 * centre for centre in RNG.normal(size=(6, 2))])
    dense = np.linalg.eigvalsh(slow_laplacian(points, gc.Student()))
    exact, fast = (LaplacianEigenvalues(len(points), gc.Student(), 6, how) for how in (Exact(), summation))
    np.testing.assert_allclose(exact.eigenvalues(points), dense[:6], atol=1e-9)
    np.testing.assert_allclose(fast.eigenvalues(points), dense[:6], atol=3e-3)
    basis = exact.at(0, points)
    moved = points + 0.1 * RNG.normal(size=points.shape)
    near = exact.with_basis(exact.basis(moved, basis.V))
    wanted = np.linalg.eigvalsh(slow_laplacian(moved, gc.Student()))[:6].sum()
    assert wanted * (1.0 + 2e-3) < basis.value(moved)
    assert wanted <= near.value(moved) < wanted * (1.0 + 1e-4)
    gradients = [objective.with_basis(basis.V).value_and_grad(points)[1] for objective in (exact, fast)]
    assert relative_error(gradients[1], gradients[0]) < 2e-2


@pytest.mark.parametrize(("dim", "rank"), [(1, 2), (1, 7), (2, 2), (2, 7), (3, 2), (3, 7), (5, 2), (5, 7)])
def test_charges_of_low_rank(dim, rank):
    """All summations have one primitive; exact sums do it in one pass."""
    points, left, right = RNG.normal(size=(300, dim)), RNG.normal(size=(rank, 300)), RNG.normal(size=(rank, 300))
    radial = KernelValue(gc.Student())
    charges = left.T @ right
    sq_dist = cdist(points, points, "sqeuclidean")
    weight, pull = charges * radial.potential(sq_dist), charges * radial.slope(sq_dist)
    np.fill_diagonal(weight, 0.0)
    wanted = 2.0 * (pull.sum(axis=1)[:, None] * points - pull @ points)
    for n_jobs in (1, 2):
        potential, gradient = Exact(n_jobs).low_rank(points, radial, left, right)
        np.testing.assert_allclose(potential, weight.sum(axis=1), rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(gradient, wanted, rtol=1e-9, atol=1e-9)
    several = Exact().potentials(points, radial, right, with_gradient=False)[0]
    np.testing.assert_allclose(several, Exact().potentials(points, radial, right)[0], rtol=1e-12, atol=1e-12)
    if dim == 2:
        fast = ParticleMesh().low_rank(points, radial, left, right)
        assert relative_error(fast[1], wanted) < 1e-2


def test_separate_parts_and_points_without_neighbours():
    parts = np.concatenate([RNG.normal(size=(10, 2)) + 1e4 * c for c in np.eye(3, 2)])
    gaussian = LaplacianEigenvalues(30, gc.Gaussian(), 3)
    assert gaussian.value(parts) == pytest.approx(0.0, abs=1e-12)
    assert np.abs(gaussian.value_and_grad(parts)[1]).max() < 1e-12
    # A point whose similarities underflow has a row of zeros, and the eigenvalue 1.
    lone = np.vstack([Z[:10], [[1e4, 1e4]]])
    values = LaplacianEigenvalues(11, gc.Gaussian(), 10).eigenvalues(lone, n_more=1)
    assert np.isfinite(values).all()
    assert np.abs(values - 1.0).min() < 1e-12
    one_place = LaplacianEigenvalues(500, gc.Student(), 3).value(np.zeros((500, 2)))
    assert one_place == pytest.approx(2.0 * 500 / 499, rel=1e-6)


def test_points_in_almost_one_place_have_their_eigenvalues():
    # All but one of the eigenvalues then coincide.
    Z = 1e-6 * np.random.default_rng(0).normal(size=(30, 2))
    value, gradient = LaplacianEigenvalues(30, gc.Student(), 8).value_and_grad(Z)
    assert value == pytest.approx(7 * (1 + 1 / 29), abs=1e-9)
    assert np.isfinite(gradient).all()


def test_eigenvalues_of_graphs_and_their_gaps():
    blocks = np.kron(np.eye(3), np.ones((4, 4))) + 1e-3
    np.fill_diagonal(blocks, 0.0)
    wanted = np.linalg.eigvalsh(np.eye(12) - blocks / np.sqrt(np.outer(blocks.sum(0), blocks.sum(1))))
    np.testing.assert_allclose(laplacian_eigenvalues(blocks, 12), wanted, atol=1e-12)
    assert eigengaps(wanted).tolist() == [3]
    assert eigengaps([0.0, 0.01, 0.02, 0.5, 0.52, 0.9]).tolist() == [3, 5]
    X = np.concatenate([RNG.normal(size=(150, 3)) + 30.0 * c for c in np.eye(4, 3)])
    A = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20), n_neighbors=60).posterior(X).mean()
    degrees = np.asarray((A + A.T).sum(axis=0)).ravel()
    L = np.eye(600) - (A + A.T).toarray() / np.sqrt(np.outer(degrees, degrees))
    np.testing.assert_allclose(laplacian_eigenvalues(A + A.T, 8), np.linalg.eigvalsh(L)[:8], atol=1e-7)
    # Fifteen copies of a graph have each of its eigenvalues fifteen times.
    part = sp.random_array((200, 200), density=0.05, rng=np.random.default_rng(0))
    part = sp.csr_array(part + part.T)
    copies = laplacian_eigenvalues(sp.block_diag([part] * 15), 20)
    np.testing.assert_allclose(copies, np.repeat(laplacian_eigenvalues(part, 20), 15)[:20], atol=1e-9)
    # A node alone is a component; weights on the diagonal are no edges.
    for size in (12, 400):
        apart = np.zeros((size, size))
        apart[:10, :10] = blocks[:10, :10] + np.diag(np.arange(10.0))
        L = np.eye(10) - blocks[:10, :10] / np.sqrt(np.outer(blocks[:10, :10].sum(0), blocks[:10, :10].sum(1)))
        wanted = np.concatenate([np.zeros(size - 10), np.linalg.eigvalsh(L)])
        np.testing.assert_allclose(laplacian_eigenvalues(apart, size), wanted, atol=1e-12)
        np.testing.assert_allclose(laplacian_eigenvalues(apart, 3), wanted[:3], atol=1e-12)
    for wrong, message in ((np.triu(blocks), "must be symmetric"), (-blocks, "at least 0"), (blocks[:5], "square")):
        with pytest.raises(ValueError, match=message):
            laplacian_eigenvalues(wrong, 3)
    with pytest.raises(ValueError, match="13 must be at most"):
        laplacian_eigenvalues(blocks, 13)


def test_bad_parameters():
    with pytest.raises(ValueError, match="n_clusters must be 'auto'"):
        gc.SpectralContraction(n_clusters="many")
    with pytest.raises(TypeError, match="kernel must be"):
        gc.SpectralContraction(kernel="student")
    with pytest.raises(ValueError, match="weight must be"):
        gc.SpectralContraction(weight=-1.0)
    with pytest.raises(ValueError, match=r"n_clusters=40 must be below the number of points, 30"):
        gc.LaptSNE(n_clusters=40, perplexity=5).fit(Z)
    with pytest.raises(ValueError, match="Repeat rows"):
        gc.LaptSNE(n_clusters=3, perplexity=5).fit(Z, sample_weight=np.full(N, 2.0))


@pytest.fixture(scope="module")
def fitted():
    X, y = gc.datasets.load("digits")
    chosen = np.isin(y, [0, 1, 4, 6])
    return X[chosen][:300], gc.LaptSNE(n_clusters=4, random_state=0).fit(X[chosen][:300])


def test_laptsne_is_a_sentence(fitted):
    X, laptsne = fitted
    few = gc.LaptSNE(n_clusters=4, max_iter=30, random_state=0).fit(X)
    np.testing.assert_array_equal(gc.GraphCoupling(**few.sentence).fit(X).embedding_, few.embedding_)
    assert laptsne.n_clusters_ == 4
    assert laptsne.loss_ == pytest.approx(laptsne.coupling_loss_ + 0.3 * laptsne.term_losses_[0], rel=1e-9)
    assert laptsne.term_losses_[0] == pytest.approx(300 * slow_sum(laptsne.embedding_, gc.Student(), 4), rel=1e-6)
    A = laptsne.posterior_.mean()
    np.testing.assert_allclose(laptsne.eigenvalues_, laplacian_eigenvalues(A + A.T, 31), atol=1e-9)


def test_contraction_lowers_the_eigenvalues_and_the_descent_ends_at_a_minimum(fitted):
    X, laptsne = fitted
    plain = gc.TSNE(perplexity=25, init="spectral", random_state=0).fit(X)
    eigenvalues = [slow_sum(method.embedding_, gc.Student(), 4) for method in (plain, laptsne)]
    assert eigenvalues[1] < 0.7 * eigenvalues[0]
    objective = gc.CrossEntropy(laptsne.posterior_, laptsne.sentence.latent) + 300 * 0.3 * LaplacianEigenvalues(
        300, gc.Student(), 4
    )
    assert laptsne.loss_ == pytest.approx(objective.value(laptsne.embedding_), rel=1e-9)
    for seed in range(2):
        other = gc.solve(
            objective, np.random.default_rng(seed).normal(size=(300, 2)), gc.LBFGS(), rescale=True, max_iter=1500
        )
        assert laptsne.loss_ <= other.loss * 1.02


@pytest.mark.parametrize("method", [gc.UMAP(n_neighbors=8), gc.LargeVis(perplexity=10), gc.SNE(perplexity=10)])
def test_other_methods_take_the_term(method, fitted):
    X = fitted[0][:200]
    term = gc.SpectralContraction(n_clusters=3)
    with_term = clone(method).set_params(random_state=0, max_iter=80, terms=[term]).fit(X)
    without = clone(method).set_params(random_state=0, max_iter=80).fit(X)
    values = [slow_sum(Y, gc.Student(), 3) for Y in (with_term.embedding_, without.embedding_)]
    assert values[0] < values[1]


def test_the_laplacian_by_products():
    laplacian = KernelLaplacian(Z, gc.Student(), Exact())
    V = RNG.normal(size=(N, 3))
    wanted = V - slow_laplacian(Z, gc.Student()) @ V
    np.testing.assert_allclose(laplacian.similarity(V), wanted, atol=1e-12)
    np.testing.assert_allclose(laplacian.similarity(V[:, 0]), wanted[:, 0], atol=1e-12)
    np.testing.assert_allclose(laplacian.matrix() @ V, wanted, atol=1e-12)


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
def test_batches_move_a_batch_and_its_neighbours_and_end_low(fitted):
    X = fitted[0]
    posterior = fitted[1].posterior_
    batches = gc.MiniBatches(40, n_neighbors=3, random_state=1).with_graph(posterior)
    means = posterior.mean()
    means = means.toarray() if hasattr(means, "toarray") else np.asarray(means)
    symmetric = means + means.T
    seen = np.zeros(300, dtype=int)
    for iteration in range(8):
        moves = batches.moving(iteration, 300)
        order = np.random.default_rng((1, 0)).permutation(300)[40 * iteration : 40 * (iteration + 1)]
        assert moves[order].all()
        nearest = np.argsort(-symmetric[order], axis=1, kind="stable")[:, :3]
        assert set(np.flatnonzero(moves)) == set(order) | set(nearest.ravel())
        seen[order] += 1
    assert (seen == 1).all()
    mini = gc.LaptSNE(n_clusters=4, batch_size=100, max_iter=600, random_state=0).fit(X)
    plain = fitted[1]
    height = [fit.loss_ - plain.posterior_.entropy() for fit in (mini, plain)]
    assert height[0] < 1.15 * height[1]
    again = gc.LaptSNE(n_clusters=4, batch_size=100, max_iter=30, random_state=0).fit(X)
    same = gc.LaptSNE(n_clusters=4, batch_size=100, max_iter=30, random_state=0, n_jobs=1).fit(X)
    np.testing.assert_array_equal(again.embedding_, same.embedding_)


def test_eigenvalues_are_drawn(fitted):
    ax = gc.plotting.plot_eigenvalues({"digits": fitted[1]})
    np.testing.assert_allclose(ax.lines[0].get_ydata(), fitted[1].eigenvalues_)
    assert ax.lines[1].get_xdata()[0] == 4.5
    with pytest.raises(TypeError, match="fit a LaptSNE"):
        gc.plotting.plot_eigenvalues(gc.TSNE())
    with pytest.raises(ValueError, match="finite numbers"):
        gc.plotting.plot_eigenvalues([[1.0, 2.0]])


@pytest.mark.parametrize("power", [0.3, 0.7])
def test_powers_of_eigenvalues(power, rng):
    Z = np.concatenate([rng.normal(size=(10, 2)), rng.normal(size=(10, 2)) + 8.0])
    objective = LaplacianEigenvalues(20, gc.Student(), 4, power=power)
    K = 1.0 / (1.0 + np.square(Z[:, None] - Z).sum(axis=2)) - np.eye(20)
    d = K.sum(axis=1)
    eigenvalues = np.linalg.eigvalsh(np.eye(20) - K / np.sqrt(np.outer(d, d)))[:4]
    wanted = ((np.maximum(eigenvalues, 0.0) + 1e-3) ** power - 1e-3**power).sum()
    assert objective.value(Z) == pytest.approx(wanted, rel=1e-6)
    assert relative_error(objective.gradient(Z), numerical_gradient(objective.value, Z)) < 1e-5
    # The tangents lie above: a bound that touches.
    bound = objective.at(0, Z)
    assert bound.value(Z) == pytest.approx(wanted, rel=1e-6)
    for _ in range(5):
        elsewhere = Z + 0.5 * rng.normal(size=Z.shape)
        assert bound.value(elsewhere) > objective.value(elsewhere) - 1e-9
    again = objective.basis(Z, objective.basis(Z))
    assert objective.with_basis(again).value(Z) == pytest.approx(wanted, rel=1e-6)
    with pytest.raises(ValueError, match="at most 1"):
        gc.SpectralContraction(power=2.0)
    with pytest.raises(ValueError, match="power"):
        gc.SpectralContraction(power=0.0)
