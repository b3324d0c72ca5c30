"""LocalMAP's last phase, against plain loops, quadrature, and the scores of its authors' program."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.spatial.distance import cdist

import graphcouple as gc
from graphcouple.couplings import LocallyAdjustedCoupling, Problem, local_map
from graphcouple.couplings.local_map import _CANDIDATES, Fading
from graphcouple.couplings.pacmap import PairwiseControlled, most_likely
from tests.reference import numerical_gradient, relative_error

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Z = 6.0 * RNG.normal(size=(60, 2))


def bound(reach=10.0, n_jobs=1):
    sentence = gc.LocalMAP().sentence
    law = gc.GraphModel(gc.Gaussian(), "D", gc.SelfTuning(5, 20), n_neighbors=20)
    laws = {"posterior": law.posterior(X), "latent": sentence.latent, "n_components": 2}
    summation = gc.Exact(n_jobs=1)
    run = {"summation": summation, "metric": "euclidean", "rng": np.random.RandomState(0), "n_jobs": n_jobs}
    return LocallyAdjustedCoupling(5, 3, 8, reach).bind(Problem(X=X, y=None, **laws, **run)), laws["posterior"]


def test_the_attraction_is_the_integral_of_pacmaps_slope_times_its_factor():
    fading = Fading(10.0, 7.0)
    for sq_dist in (0.3, 5.0, 400.0):
        risen = quad(lambda u: 10.0 / (11.0 + u) ** 2 * 7.0 / (2.0 * np.sqrt(1.0 + u)), 0.0, sq_dist)[0]
        assert fading.potential(sq_dist) - fading.potential(0.0) == pytest.approx(risen, rel=1e-9)
        assert fading.slope(sq_dist) == pytest.approx(10.0 / (11.0 + sq_dist) ** 2 * 3.5 / np.sqrt(1.0 + sq_dist))


@pytest.mark.parametrize("reach", [4.0, 10.0])
def test_the_loss_is_that_of_the_first_candidates_nearby(reach):
    objective, posterior = bound(reach)
    last = objective.at(230, Z)
    near = most_likely(posterior, 5).to_csr(np.ones(most_likely(posterior, 5).n_edges)).toarray() > 0
    rng = np.random.default_rng((last._seed, last._block))
    order, shifts = rng.permutation(60), 1 + rng.permutation(59)[:_CANDIDATES]
    d2, place = cdist(Z, Z, "sqeuclidean"), np.argsort(order)
    repulsion, drawn = 0.0, np.zeros((60, 60))
    for i in range(60):
        candidates = [order[(place[i] + s) % 60] for s in shifts]
        free = [j for j in candidates if not near[i, j]]
        wanted = [j for j in free if d2[i, j] <= reach**2] + [j for j in free if d2[i, j] > reach**2]
        for j in wanted[:8]:
            drawn[i, j] += 1.0
            repulsion += 1.0 / (2.0 + d2[i, j])
    attraction = Fading(10.0, reach).potential(d2)[near].sum()
    assert last.value(Z) == pytest.approx(attraction + repulsion, rel=1e-10)
    assert 8 == drawn.sum(axis=1).min() == drawn.sum(axis=1).max()
    assert relative_error(last.value_and_grad(Z)[1], numerical_gradient(last.value, Z, 1e-6)) < 1e-5


def test_all_further_pairs_are_drawn_however_many_are_asked_for(monkeypatch):
    # Of eight candidates, some are near pairs.
    monkeypatch.setattr("graphcouple.couplings.local_map._CANDIDATES", 8)
    assert bound()[0].basis(Z)[2].sum() == 60 * 8


def test_phases_and_candidates_of_ten_steps():
    objective, _ = bound()
    plain = PairwiseControlled
    assert [type(objective.at(at, Z)) is plain for at in (0, 150, 200, 201)] == [True, True, True, False]
    values = [objective.at(at, Z).value(Z) for at in (211, 219, 220)]
    assert values[0] == values[1] != values[2]
    two, _ = bound(n_jobs=2)
    np.testing.assert_array_equal(two.at(230, Z).value_and_grad(Z)[1], objective.at(230, Z).value_and_grad(Z)[1])


@pytest.mark.nightly
def test_scores_of_the_original(digits):
    """pacmap 0.9.1's LocalMAP has R(10) .502 to .508, R(n/2) .34 to .36 and silhouettes of .67 to .68 over seeds."""
    points, y = digits
    Z = gc.LocalMAP(random_state=0).fit_transform(points)
    scores = gc.metrics.evaluate(points, Z, y)
    assert float(scores["R(10)"]) == pytest.approx(0.505, abs=0.012)
    assert float(scores["R(n/2)"]) == pytest.approx(0.35, abs=0.03)
    assert float(scores["silhouette"]) == pytest.approx(0.675, abs=0.02)


def test_refusals():
    with pytest.raises(ValueError, match="reach must be"):
        LocallyAdjustedCoupling(reach=0.0)


def test_pairs_are_drawn_again_every_few_steps(monkeypatch):
    used, take = [], local_map.LocallyAdjusted.with_basis
    monkeypatch.setattr(local_map.LocallyAdjusted, "with_basis", lambda self, b: used.append(b) or take(self, b))
    gc.LocalMAP(n_neighbors=5, max_iter=260, random_state=0).fit(X)
    drawn = [basis for basis in used if basis is not None]
    assert len({id(basis) for basis in drawn}) >= 3
