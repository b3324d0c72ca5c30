"""The size of a map: of the start, in other units, and where the loss says nothing about it."""

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.spatial import procrustes

import graphcouple as gc
from graphcouple.optimize import LBFGS, best_scale
from tests.reference import noise, tsne_of
from tests.test_descent_grid import KERNELS


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e5])
@pytest.mark.parametrize("kernel", ["gaussian", "flat", "user"])
def test_the_start_has_the_size_at_which_the_objective_is_least(unit, kernel):
    X = noise()
    objective = tsne_of(X, latent=gc.GraphModel(KERNELS[kernel], "E", gc.ConstantBandwidth(unit)))
    Z = X[:, :2]
    wanted = minimize_scalar(lambda e: objective.value(Z * unit * np.exp(e)), bounds=(-6, 6), method="bounded")
    assert best_scale(objective, Z) == pytest.approx(unit * np.exp(wanted.x), rel=0.1)


def test_units_do_not_change_the_embedding():
    X = noise(100)
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(30))
    metre = gc.GraphCoupling(law, gc.GraphModel(gc.RationalPower(1.0, 1.0), "E"), random_state=0).fit(X)
    centimetre = gc.GraphCoupling(law, gc.GraphModel(gc.RationalPower(1e-4, 1.0), "E"), random_state=0).fit(X)
    assert centimetre.loss_ == pytest.approx(metre.loss_, rel=1e-3)
    assert centimetre.embedding_.std() == pytest.approx(100.0 * metre.embedding_.std(), rel=0.05)
    assert procrustes(metre.embedding_, centimetre.embedding_)[2] < 0.05


@pytest.mark.filterwarnings("ignore:the embedding ")
@pytest.mark.parametrize(("factor", "word"), [(1e-4, "too small"), (1e4, "too large")])
def test_an_array_far_from_the_best_size_is_used_with_a_warning(factor, word):
    X = noise(100)
    objective = tsne_of(X, 10.0)
    start = gc.solve(objective, X[:, :2], max_iter=100).Z
    with pytest.warns(UserWarning, match=word):
        far = gc.solve(objective, factor * start, LBFGS(), max_iter=1)
    assert far.loss_history[0] == objective.value(factor * start)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gc.solve(objective, start, LBFGS(), max_iter=300)
        gc.solve(objective, factor * start, LBFGS(), max_iter=300, rescale=True)


class Falling(gc.Objective):
    """1/(1 + |Z|²), which falls with every size."""

    n_points = 2

    def value(self, Z):
        return 1.0 / (1.0 + float(np.square(Z).sum()))

    def value_and_grad(self, Z):
        return self.value(Z), -2.0 * self.value(Z) ** 2 * Z


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0])
def test_along_a_ray_that_only_falls_the_size_is_where_little_is_left_to_fall(size):
    Z = size * np.array([[1.0, 0.0], [0.0, 0.0]])
    best = size * best_scale(Falling(), Z)
    assert 30.0 <= best <= 4 * 32.0


def test_a_kernel_without_scale_leaves_the_size_of_the_start():
    """Tables of kernels end. The loss rises there, and a start went as far: LBFGS() "settled" 9 % too high."""
    posterior = tsne_of(noise()).posterior
    objective = gc.CrossEntropy(posterior, gc.GraphModel(gc.Odds(gc.Student()), "E"), summation="auto")
    assert best_scale(objective, noise()[:, :2]) == 1.0


class Level(gc.Objective):
    """0 up to a size of 50, and 1 beyond, like a loss by a table that ends."""

    n_points = 2

    def value(self, Z):
        return float(np.linalg.norm(Z) > 50.0)

    def value_and_grad(self, Z):
        return self.value(Z), np.zeros_like(Z)


def test_a_start_does_not_grow_to_where_a_table_ends():
    assert best_scale(Level(), np.array([[1.0, 0.0], [0.0, 0.0]])) == 1.0


def test_a_small_gradient_of_a_huge_map_is_no_minimum():
    objective = tsne_of(noise(100), 10.0, gc.GraphModel(gc.Odds(gc.Student()), "E"))
    near, far = (gc.solve(objective, size * noise(100)[:, :2], LBFGS(), max_iter=200) for size in (1.0, 1e8))
    assert far.loss == pytest.approx(near.loss, rel=0.02)


@pytest.mark.parametrize(
    ("kernel", "tail"),
    [
        (gc.Student(0.5), 1.5),
        (gc.Odds(gc.Student()), 2.0),
        (gc.RationalPower(2.0, 0.3), 0.6),
        (gc.Gaussian(), np.inf),
        (gc.Exponential(), np.inf),
    ],
)
def test_tails_of_kernels(kernel, tail):
    assert kernel.tail == pytest.approx(tail, rel=1e-6)


class Compact(gc.extend.Kernel):
    """(1 − d²/100)², and 0 beyond d = 10."""

    def log(self, sq_dist):
        with np.errstate(divide="ignore"):
            return 2.0 * np.log(np.maximum(1.0 - sq_dist / 100.0, 0.0))

    def grad_log(self, sq_dist):
        return -0.02 / np.maximum(1.0 - sq_dist / 100.0, 1e-12) * (sq_dist < 100.0)


def test_a_kernel_that_ends_has_no_tail():
    assert Compact().tail == np.inf
    assert Compact().assumptions(2).integrable


def test_a_heavy_tail_has_room(digits):
    """The bound of Student's kernel raised the loss of 500 digits with ν = 0.5 by 5 % of its height."""
    fits = [
        gc.GraphCoupling(
            gc.TSNE().models(500)[0], gc.GraphModel(gc.Student(0.5), "E"), optimizer=optimizer, random_state=0
        ).fit(digits[0][:500])
        for optimizer in (gc.Descent(), gc.Descent(confinement=0.0))
    ]
    assert fits[0].kl_divergence_ < 1.03 * fits[1].kl_divergence_
