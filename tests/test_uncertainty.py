"""The normal law around a minimum, against closed forms, integrals, and maps of bootstrapped data."""

import numpy as np
import pytest
from scipy.stats import spearmanr

import graphcouple as gc
from graphcouple.optimize import position_uncertainty

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))


class Quadratic(gc.extend.Objective):
    """½ (z − c)ᵀA(z − c) for a matrix A of the size of all coordinates."""

    def __init__(self, matrix, dim, centre=0.0):
        self.matrix, self.dim, self.centre = matrix, dim, centre

    @property
    def n_points(self):
        return len(self.matrix) // self.dim

    def value(self, Z):
        return 0.5 * float((Z - self.centre).ravel() @ self.matrix @ (Z - self.centre).ravel())

    def value_and_grad(self, Z):
        return self.value(Z), (self.matrix @ (Z - self.centre).ravel()).reshape(Z.shape)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_springs_have_the_inverse_of_their_stiffness(dim):
    """Springs between points on the axes leave only moves of the whole free; turns are taken out."""
    n = 6
    stiffness = np.abs(RNG.normal(size=(n, n)))
    laplacian = np.diag((stiffness + stiffness.T).sum(axis=1)) - stiffness - stiffness.T
    A, Z = np.kron(laplacian, np.eye(dim)), RNG.normal(size=(n, dim))
    law = position_uncertainty(Quadratic(A, dim, Z), Z, temperature=0.3)
    centred, moves = Z - Z.mean(axis=0), [np.tile(np.eye(dim)[a], n) for a in range(dim)]
    for a in range(dim):
        for b in range(a):
            turn = np.zeros((n, dim))
            turn[:, a], turn[:, b] = centred[:, b], -centred[:, a]
            moves.append(turn.ravel())
    across = np.eye(n * dim) - np.linalg.pinv(np.array(moves)) @ np.array(moves)
    expected = 0.3 * np.linalg.pinv(across @ A @ across, rcond=1e-9)
    blocks = expected.reshape(n, dim, n, dim)[np.arange(n), :, np.arange(n)]
    np.testing.assert_allclose(law.covariances(), blocks, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(law.radii() ** 2, np.trace(blocks, axis1=1, axis2=2), rtol=1e-5)
    assert law.n_loose == 0
    drawn = law.sample(20_000, random_state=0)
    np.testing.assert_allclose(drawn.var(axis=0).sum(axis=1), law.radii() ** 2, rtol=0.05)


@pytest.mark.parametrize("size", [1e-9, 1.0, 1e9])
def test_directions_do_not_depend_on_the_unit(size):
    """A chain of springs in the plane bends freely: of 12 coordinates, 5 springs and 3 rigid motions leave 4 loose."""
    Z = size * np.c_[np.arange(6.0), np.zeros(6)]
    difference = np.eye(6)[1:] - np.eye(6)[:-1]
    along = np.kron(difference.T @ difference, np.diag([1.0, 0.0])) / size**2
    assert position_uncertainty(Quadratic(along, 2, Z), Z).n_loose == 4


def test_cold_positions_have_the_moments_of_their_density():
    """exp(−H/T) of three points on a line, integrated over both differences of places."""
    P = gc.GraphModel(gc.Gaussian(), "D", gc.ConstantBandwidth(1.0)).posterior(np.array([[0.0], [1.0], [2.5]]))
    objective = gc.CrossEntropy(P, gc.GraphModel(gc.Gaussian(), "E"))
    Z = gc.solve(objective, np.array([[-1.0], [0.0], [1.0]]), gc.LBFGS(), max_iter=500, tol=1e-12).Z
    T = 1e-3
    law = position_uncertainty(objective, Z, T)
    reach = 6.0 * np.sqrt(2.0) * law.radii().max()
    left, right = Z[1, 0] - Z[0, 0], Z[2, 0] - Z[1, 0]
    a, b = np.meshgrid(left + np.linspace(-reach, reach, 101), right + np.linspace(-reach, reach, 101))
    places = np.stack([-a.ravel(), np.zeros(a.size), b.ravel()], axis=1)
    places -= places.mean(axis=1, keepdims=True)
    weights = np.exp([(objective.value(Z) - objective.value(place[:, None])) / T for place in places])
    mean = np.average(places, axis=0, weights=weights)
    variance = np.average((places - mean) ** 2, axis=0, weights=weights)
    np.testing.assert_allclose(law.covariances()[:, 0, 0], variance, rtol=0.02)


def test_a_map_has_the_curvature_of_its_loss():
    fitted = gc.TSNE(perplexity=8, random_state=0).fit(X)
    law = fitted.uncertainty()
    assert law.temperature == pytest.approx(1 / 8, rel=1e-4)
    loss = gc.CrossEntropy(fitted.posterior_, gc.GraphModel(gc.Student(), "E")).value
    mode = law.modes[..., -1]
    step = 1e-3 * mode / np.linalg.norm(mode)
    curvature = (loss(law.embedding + step) - 2.0 * loss(law.embedding) + loss(law.embedding - step)) / 1e-6
    assert law.temperature / np.linalg.norm(mode) ** 2 == pytest.approx(curvature, rel=1e-2)


def test_terms_and_the_bound_on_the_map_take_part():
    free = gc.TSNE(perplexity=8, random_state=0).fit(X).uncertainty(1.0)
    fitted = gc.TSNE(perplexity=8, terms=[gc.LargeScale(20.0)], random_state=0).fit(X)
    held = fitted.uncertainty(1.0)
    assert (held.radii() < 0.7 * free.radii()).mean() > 0.9
    wrapped = gc.TwoScaleCoupling(gc.TSNE(perplexity=8), weight=20.0, random_state=0).fit(X)
    np.testing.assert_allclose(wrapped.uncertainty(1.0).radii(), held.radii(), rtol=1e-6)
    far = gc.TSNE(perplexity=5, random_state=0).fit(np.vstack([X[:20], X[20:] + 50.0])).uncertainty()
    assert far.n_loose == 0


def test_groups_that_move_as_one_are_stable():
    """Two stiff groups on a loose spring: far apart they move much, and keep their neighbours."""
    groups = np.kron(np.eye(2), np.ones((5, 5))) * 100.0 + 1e-3
    laplacian = np.diag(groups.sum(axis=1)) - groups
    Z = np.r_[np.zeros((5, 2)), np.full((5, 2), 30.0)] + RNG.normal(size=(10, 2))
    law = position_uncertainty(Quadratic(np.kron(laplacian, np.eye(2)), 2, Z), Z)
    assert law.radii().min() > 3.0
    assert law.stability(4).min() > 0.9
    assert law.stability(9).max() < 0.99
    assert np.trace(law.covariances(4), axis1=1, axis2=2).max() < 0.1


def test_copies_of_a_row_share_its_law():
    twice = np.vstack([X, X[:5]])
    law = gc.TSNE(perplexity=8, unique=True, random_state=0).fit(twice).uncertainty()
    np.testing.assert_array_equal(law.covariances()[40:], law.covariances()[:5])
    assert law.embedding.shape == (45, 2)


def test_copies_in_one_place_are_one_neighbour():
    copied = np.vstack([X, np.tile(X[:1], (12, 1))])
    with pytest.warns(UserWarning, match="neighbors are tied"):
        law = gc.TSNE(perplexity=8, unique=True, random_state=0).fit(copied).uncertainty()
    assert 0.1 < law.stability()[0] == law.stability()[-1]
    assert np.trace(law.covariances(10)[0]) > 0.01


@pytest.mark.parametrize("perplexity", [2.0, 8.0])
def test_the_temperature_counts_copies(perplexity):
    weighted = gc.TSNE(perplexity=perplexity, random_state=0).fit(X, sample_weight=np.full(40, 3.0))
    assert 1.0 / weighted.uncertainty().temperature == pytest.approx(perplexity, rel=1e-3)


def test_a_loaded_map_has_the_same_law(tmp_path):
    own = gc.GraphCoupling(gc.TSNE(perplexity=8).models(40)[0].posterior(X).mean(), gc.GraphModel(gc.Student(), "E"))
    fitted = own.set_params(random_state=0, init="random").fit()
    fitted.save(tmp_path / "map.gc")
    np.testing.assert_array_equal(gc.load(tmp_path / "map.gc").uncertainty().radii(), fitted.uncertainty().radii())


def test_maps_of_bootstrapped_data_move_the_same_points():
    """The spread of a point against its neighbours, in twelve maps of bootstrapped data, has the ranks of the law's."""
    cells, _ = gc.datasets.make_cells(150, random_state=0)
    fitted = gc.TSNE(perplexity=10, random_state=0).fit(cells)
    Z = fitted.embedding_
    nearest = np.argsort(((Z[:, None] - Z) ** 2).sum(axis=2), axis=1)[:, 1:11]
    places = np.full((12, 150, 2), np.nan)
    for seed, place in enumerate(places):
        copies = np.random.default_rng(seed).multinomial(150, np.full(150, 1 / 150))
        drawn = np.flatnonzero(copies)
        again = gc.TSNE(perplexity=10, init=Z[drawn], early_exaggeration=1.0, random_state=0)
        again.fit(cells[drawn], sample_weight=copies[drawn].astype(float))
        place[drawn] = gc.align(again.embedding_, Z[drawn], scale=False)
    spread = np.nanvar(places - np.nanmean(places[:, nearest], axis=2), axis=0).sum(axis=1)
    law = np.trace(fitted.uncertainty().covariances(10), axis1=1, axis2=2)
    assert spearmanr(spread, law)[0] > 0.5


def test_refusals_and_warnings():
    with pytest.raises(ValueError, match="at most 4000 are possible"):
        position_uncertainty(Quadratic(np.eye(4002), 2), np.zeros((2001, 2)))
    with pytest.raises(ValueError, match=r"not smooth at Z: .* Use a latent kernel that is smooth at distance 0"):
        position_uncertainty(Quadratic(RNG.normal(size=(8, 8)), 2), RNG.normal(size=(4, 2)))
    for some in (np.arange(4) < 1, np.arange(4) < 3):
        held = 2.0 * gc.couplings.Held(Quadratic(np.eye(8), 2), some)
        with pytest.raises(ValueError, match=f"holds {some.sum()} of 4 points, which have no law .* that holds none"):
            position_uncertainty(held, np.zeros((4, 2)))
    with pytest.raises(ValueError, match="temperature must be"):
        position_uncertainty(Quadratic(np.eye(8), 2), np.zeros((4, 2)), temperature=0.0)
    Z = RNG.normal(size=(8, 1))
    with pytest.warns(UserWarning, match="Z is not a minimum: the objective falls in 1 of 8 directions"):
        position_uncertainty(Quadratic(np.diag([-1.0, 1, 2, 3, 4, 5, 6, 7]), 1, Z), Z)
    slope = Quadratic(np.kron([[1.0, -1.0], [-1.0, 1.0]], np.eye(1)), 1)
    with pytest.warns(UserWarning, match="by its slope, it lies .* standard deviations .* such as TriMap, may end"):
        position_uncertainty(slope, np.array([[3.0], [-3.0]]), temperature=2.0)
    with pytest.raises(ValueError, match="temperature must be 'auto' or a number above 0, got 'x'"):
        gc.TSNE(perplexity=5, random_state=0).fit(X).uncertainty("x")
    with pytest.raises(ValueError, match="its random draws are forgotten"):
        gc.PaCMAP(random_state=np.random.RandomState(0)).fit(np.vstack([X, X + 0.1])).uncertainty()
    with pytest.raises(ValueError, match="beyond n_landmarks were placed and not fitted"):
        gc.TSNE(perplexity=5, n_landmarks=30, random_state=0).fit(X).uncertainty()


def test_ellipses_are_drawn():
    Z = RNG.normal(size=(10, 2))
    law = position_uncertainty(Quadratic(np.diag(np.arange(1.0, 21.0)), 2, Z), Z)
    ellipses = gc.plotting.plot_uncertainty(law, n_neighbors=None, n_std=2.0).collections[-1]
    angle = np.radians(ellipses.get_angles())
    turns = np.stack([np.stack([np.cos(angle), -np.sin(angle)], 1), np.stack([np.sin(angle), np.cos(angle)], 1)], 1)
    half = np.stack([ellipses.get_widths(), ellipses.get_heights()], axis=1) / 4.0
    drawn = turns @ (half[:, :, None] ** 2 * turns.transpose(0, 2, 1))
    np.testing.assert_allclose(drawn, law.covariances(), rtol=1e-9, atol=1e-12)
    with pytest.raises(TypeError, match=r"estimator\.uncertainty"):
        gc.plotting.plot_uncertainty(law.embedding)
    with pytest.raises(ValueError, match="ellipses need two components"):
        gc.plotting.plot_uncertainty(position_uncertainty(Quadratic(np.eye(6), 1, Z[:6, :1]), Z[:6, :1]))
