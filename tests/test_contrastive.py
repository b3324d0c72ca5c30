"""InfoNCE against plain loops, and against the mean over every set of points that can be drawn."""

from itertools import combinations

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import graphcouple as gc
from graphcouple.couplings import ContrastiveCrossEntropy, CrossEntropy
from graphcouple.couplings.contrastive import drawn_points
from graphcouple.optimize import Adam
from graphcouple.optimize.base import Run
from tests.reference import dense

RNG = np.random.default_rng(0)
X = RNG.normal(size=(9, 4))
D = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(3)).posterior(X)


def _objective(m, kernel=None, posterior=D, **options):
    return ContrastiveCrossEntropy(posterior, gc.GraphModel(kernel or gc.Student(), "D"), m, **options)


def _surprise(mean, kernel, Z, drawn):
    """Return Σ_ij M_ij log((k_ij + S_i)/k_ij), M symmetrised, for the points drawn for each i, in plain loops."""
    K, M, total = kernel.value(cdist(Z, Z, "sqeuclidean")), 0.5 * (mean + mean.T), 0.0
    for i in range(len(Z)):
        S = sum(K[i, s] for s in drawn[i])
        total += sum(M[i, j] * np.log1p(S / K[i, j]) for j in range(len(Z)) if M[i, j])
    return total


@pytest.mark.parametrize("kernel", [gc.Student(), gc.Gaussian()])
@pytest.mark.parametrize("q", [1, 2, 5])
def test_one_draw_is_the_formula(kernel, q):
    Z, objective = RNG.normal(size=(9, q)), _objective(3, kernel)
    for iteration in range(3):
        order, shifts = drawn_points(9, 3, (0, 1, iteration))
        drawn = {int(order[p]): [int(order[(p + s) % 9]) for s in shifts] for p in range(9)}
        assert all(len({i, *points}) == 4 for i, points in drawn.items())
        expected = _surprise(dense(D.mean()), kernel, Z, drawn)
        assert objective.at(iteration, Z).value(Z) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("m", [1, 2, 4])
def test_unbiased_over_every_set_that_can_be_drawn(m):
    """The mean of many draws is the mean over all sets of m others, for the value and for the gradient."""
    Z, objective = RNG.normal(size=(9, 2)), _objective(m)
    K, M = gc.Student().value(cdist(Z, Z, "sqeuclidean")), 0.5 * dense(D.mean() + D.mean().T)
    expected = 0.0
    for i in range(9):
        others = [k for k in range(9) if k != i]
        sets = [K[i, list(chosen)].sum() for chosen in combinations(others, m)]
        expected += sum(M[i, j] * np.mean([np.log1p(S / K[i, j]) for S in sets]) for j in others)
    values = [objective.at(t, Z).value(Z) for t in range(2000)]
    error = np.std(values) / len(values) ** 0.5
    assert abs(np.mean(values) - expected) < 4.0 * error
    assert abs(objective.value(Z) - expected) < 4.0 * np.std(values) / 50**0.5
    draws = [objective.at(t, Z).gradient(Z) for t in range(500)]
    np.testing.assert_allclose(np.mean(draws, axis=0), objective.gradient(Z), atol=5 * np.std(draws) / 50**0.5)


@pytest.mark.parametrize("far", [1.0, 30.0, 3000.0])
@pytest.mark.parametrize("kernel", [gc.Student(), gc.Gaussian()])
def test_gradients_of_near_and_far_points(kernel, far):
    """Where the Gaussian underflows, its logarithms are compared."""
    Z, objective = far * RNG.normal(size=(9, 2)), _objective(3, kernel).at(0, np.zeros((9, 2)))
    direction = RNG.normal(size=Z.shape)
    h = 1e-5 * far
    slope = (objective.value(Z + h * direction) - objective.value(Z - h * direction)) / (2.0 * h)
    assert (objective.gradient(Z) * direction).sum() == pytest.approx(slope, rel=1e-5)


def test_all_points_drawn_is_prior_d_with_the_neighbor_twice():
    Z, objective = RNG.normal(size=(9, 2)), _objective(50)
    K, M = gc.Student().value(cdist(Z, Z, "sqeuclidean")) - np.eye(9), 0.5 * dense(D.mean() + D.mean().T)
    expected = (M * (np.log(K + np.eye(9) + K.sum(axis=1)[:, None]) - np.log(K + np.eye(9)))).sum()
    assert objective.value(Z) == pytest.approx(expected, rel=1e-12)


def test_more_drawn_points_give_a_map_nearer_to_tsnes():
    data, _ = gc.datasets.load("iris")
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20)).posterior(data)
    tsne = CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E"))
    losses = [
        tsne.kl_divergence(
            gc.InfoNCTSNE(perplexity=20, negative_sample_rate=m, random_state=0, max_iter=300).fit(data).embedding_
        )
        for m in (1, 10, 149)
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < 0.6 * losses[0]


def test_new_points_come_near_their_twins():
    data, _ = gc.datasets.load("digits")
    fitted = gc.InfoNCTSNE(random_state=0).fit(data[:600])
    placed = fitted.transform(data[:600].copy() + 1e-9)
    moved = np.linalg.norm(placed - fitted.embedding_, axis=1)
    assert np.median(moved) < 0.1 * fitted.embedding_.std()


@pytest.mark.parametrize("prior", ["E", "B", "S"])
def test_refused_priors(prior):
    latent = gc.GraphModel(gc.Student(), gc.laws.priors.as_prior(prior))
    with pytest.raises(ValueError, match="prior"):
        ContrastiveCrossEntropy(D, latent)


def test_sample_weights_are_refused():
    with pytest.raises(ValueError, match="InfoNCE takes no sample weights"):
        gc.InfoNCTSNE(perplexity=12).fit(X, sample_weight=np.arange(1.0, 10.0))


def test_annealed_steps_come_to_rest():
    """By Adam's formula, the last of 10 steps is a tenth of its length at a steady rate."""
    objective = _objective(3)
    Z = RNG.normal(size=(9, 2))
    steady, annealed = (gc.solve(objective, Z, Adam(0.1, annealed=falls), max_iter=10).Z for falls in (False, True))
    rest = Adam(0.1, annealed=True)
    state = rest.init(objective, Z, Run(10, 1))
    lengths = []
    for iteration in range(10):
        after = rest.step(objective, state, iteration, Run(10, 1))
        lengths.append(np.abs(after.Z - state.Z).max())
        state = after
    assert lengths[-1] < 0.2 * lengths[0]
    assert np.abs(annealed - Z).sum() < np.abs(steady - Z).sum()


def test_far_clusters_fill_the_page():
    """Sampled steps cannot shrink a start in which two clusters are specks."""
    data = np.random.default_rng(0).normal(size=(400, 5)) + 1e4 * (np.arange(400) % 2)[:, None]
    Z = gc.InfoNCTSNE(perplexity=15, random_state=0, max_iter=200).fit_transform(data)
    assert Z[:, 0].std() < 6.0 * Z[::2, 0].std()
