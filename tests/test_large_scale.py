"""The term at the scale of the whole, against its definition written out."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import graphcouple as gc
from graphcouple.couplings import LargeScale, LargeScaleCrossEntropy
from graphcouple.graphs import Support
from tests.contracts import check_objective


def literal(X, Z, width=0.15, softening=1e-4):
    """L over all pairs, by loops."""
    n = len(X)
    delta, d2 = cdist(X, X, "sqeuclidean"), cdist(Z, Z, "sqeuclidean")
    spread = d2.mean(axis=1)
    total, pairs = 0.0, 0
    for i in range(n):
        for j in range(i):
            shares = []
            for a, b in ((i, j), (j, i)):
                # Every point is a reference, the point itself too.
                shares.append((np.sum(delta[a] < delta[a, b]) + 0.5 * np.sum(delta[a] == delta[a, b])) / n)
            p = np.mean([1.0 / (1.0 + np.exp((share - 0.5) / width)) for share in shares])
            u = d2[i, j] / (0.5 * (spread[i] + spread[j]))
            entropy = -p * np.log(p) - (1 - p) * np.log(1 - p)
            total += np.log(1 + u) - (1 - p) * np.log(u + softening) - entropy + np.log(1 + softening)
            pairs += 1
    return total / pairs


def of(X, pairs=10, seed=0, **options):
    return LargeScaleCrossEntropy.of(X, pairs, np.random.RandomState(seed), **options)


@pytest.mark.parametrize("q", [1, 2, 3])
def test_it_is_its_definition_over_all_pairs(rng, q):
    X, Z = rng.normal(size=(25, 4)), 5.0 * rng.normal(size=(25, q))
    assert of(X, 24).value(Z) == pytest.approx(literal(X, Z), rel=1e-12)
    assert of(X, 24, width=0.3).value(Z) == pytest.approx(literal(X, Z, 0.3), rel=1e-12)


def test_few_pairs_estimate_all_of_them(rng):
    X = rng.normal(size=(1500, 4))
    Z = X[:, :2]
    whole, few = of(X, 1499).value(Z), [of(X, 30, seed).value(Z) for seed in range(8)]
    assert np.mean(few) == pytest.approx(whole, rel=1e-2)
    assert np.std(few) < 0.02 * whole


@pytest.mark.parametrize("q", [1, 2, 5])
def test_it_keeps_the_rules_of_objectives(rng, q):
    check_objective(of(rng.normal(size=(40, 4))), rng.normal(size=(40, q)))


def test_units_places_and_turns_do_not_matter(rng):
    X, Z = rng.normal(size=(60, 4)), rng.normal(size=(60, 2))
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    expected = of(X).value(Z)
    assert of(1e-5 * X + 3.0).value(1e6 * Z @ turn - 7.0) == pytest.approx(expected, rel=1e-6)
    # Monotone changes of distances keep all ranks.
    line = np.sort(rng.normal(size=(60, 1)), axis=0)
    assert of(line).value(Z) == pytest.approx(of(line, metric="manhattan").value(Z), rel=1e-12)


def test_points_in_one_place(rng):
    objective = of(rng.normal(size=(30, 4)))
    value, gradient = objective.value_and_grad(np.ones((30, 2)))
    assert np.isfinite(value)
    assert not gradient.any()
    Z = np.repeat(rng.normal(size=(2, 2)), 15, axis=0)
    value, gradient = objective.value_and_grad(Z)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    copies = of(np.ones((30, 4)))
    assert np.allclose(copies.near, 0.5)
    with pytest.raises(ValueError, match="probabilities"):
        LargeScaleCrossEntropy(Support.all_pairs(3), np.full(6, 1.5))


def test_its_minimum_is_the_plane_that_the_data_come_from(rng):
    plane = rng.uniform(size=(300, 2))
    X = plane @ np.linalg.qr(rng.normal(size=(6, 6)))[0][:2]
    found = gc.solve(of(X, 100), rng.normal(size=(300, 2)), gc.LBFGS(), max_iter=500)
    assert gc.metrics.k_ary_preservation(X, found.Z, K=150) > 0.9
    assert gc.alignment.disparity(plane, found.Z) < 0.03 if hasattr(gc, "alignment") else True


def test_the_preset_is_the_term_and_zero_is_the_plain_method(rng):
    X, _ = gc.datasets.make_hierarchical_mixture(200, random_state=0)
    options = {"max_iter": 60, "random_state": 0}
    plain = gc.TSNE(**options).fit(X)
    with_term = gc.TSNE(terms=[LargeScale(3.0, 50)], **options).fit(X)
    both = gc.TwoScaleCoupling(gc.TSNE(**options), weight=3.0, pairs_per_point=50).fit(X)
    assert np.array_equal(both.embedding_, with_term.embedding_)
    assert both.large_scale_loss_ == with_term.term_losses_[0]
    assert both.loss_ == pytest.approx(both.coupling_loss_ + 3.0 * both.large_scale_loss_)
    nothing = gc.TwoScaleCoupling(gc.TSNE(**options), weight=0.0).fit(X)
    assert np.array_equal(nothing.embedding_, plain.embedding_)
    assert nothing.large_scale_loss_ == 0.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", [gc.TSNE(), gc.UMAP(), gc.SNE(), gc.LargeVis()])
def test_any_method_keeps_more_of_the_whole_and_as_much_nearby(method):
    X, _ = gc.datasets.make_hierarchical_mixture(400, random_state=1)
    plain = method.set_params(random_state=0).fit_transform(X)
    placed = gc.TwoScaleCoupling(method).fit_transform(X)
    far, near = ([gc.metrics.k_ary_preservation(X, Z, K) for Z in (plain, placed)] for K in (200, 10))
    assert far[1] > max(far[0], 0.7)
    assert near[1] > near[0] - 0.05


def test_what_it_cannot_take_is_refused(rng):
    X = rng.normal(size=(30, 3))
    for options, word in (
        ({"weight": -1.0}, "weight"),
        ({"pairs_per_point": 0}, "pairs_per_point"),
        ({"width": 0}, "width"),
    ):
        with pytest.raises((ValueError, TypeError), match=word):
            LargeScale(**options)
    with pytest.raises(ValueError, match="Repeat rows"):
        gc.TwoScaleCoupling(gc.TSNE(perplexity=5)).fit(X, sample_weight=np.ones(30) * 2.0)
    with pytest.raises(ValueError, match="needs points"):
        gc.TwoScaleCoupling(gc.TSNE(perplexity=5, metric="precomputed", init="random")).fit(cdist(X, X))


def test_threads_and_repetitions_give_the_same_bits(rng):
    X, Z = rng.normal(size=(300, 4)), rng.normal(size=(300, 2)).astype(np.float32)
    expected = of(X, 40).value_and_grad(Z)
    for n_jobs in (1, 2, 5):
        found = of(X, 40, n_jobs=n_jobs).value_and_grad(Z)
        assert found[0] == expected[0]
        assert np.array_equal(found[1], expected[1])
