"""Searches that end early, and their mistakes, which are named before the first fit."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import rv_discrete
from sklearn.datasets import make_blobs

import graphcouple as gc
from graphcouple.searches import halving
from graphcouple.searches.draws import Draws
from graphcouple.searches.space import candidates, references

X, Y = make_blobs(130, 5, centers=6, random_state=0)
QUICK = gc.PrecisionCoupling()
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def quick_references(monkeypatch):
    """Compare with a random map and PCA, in this order."""
    monkeypatch.setattr(halving, "references", lambda metric="euclidean": references(metric)[1::-1])


class After:
    """A callback that ends a search after some fits."""

    def __init__(self, n_fits):
        self.left, self.names = n_fits, []

    def __call__(self, fit):
        self.left -= 1
        self.names.append(fit.name)
        return self.left <= 0


def search(space, **options):
    return gc.search(X, space, **{"random_state": 0, "n_seeds": 1, "budget": "1 trials", **options})


@pytest.mark.parametrize("n_fits", [1, 3, 4])
def test_the_front_is_of_the_methods_that_are_there(n_fits):
    result = search([QUICK], objectives=["R(10)"], n_seeds=3, callback=After(n_fits))
    rows = result.rows()
    assert min(row["seeds"] for row in rows.values()) < 3
    assert max(rows, key=lambda name: rows[name]["R(10)"]) in result.front
    assert [name for name, row in rows.items() if row["front"]] == sorted(result.front, key=list(rows).index)


def test_a_row_is_the_mean_of_the_fits_that_were_made():
    result = search([QUICK], objectives=["R(10)"], n_seeds=4, callback=After(2))
    fits = [fit.scores["R(10)"] for fit in result.fits if fit.name == "random map"]
    row = result.rows()["random map"]
    assert row["seeds"] == len(fits) == 2
    assert row["R(10)"] == pytest.approx(np.mean(fits))


@pytest.mark.parametrize(
    ("distributions", "message"),
    [
        ({"perplexty": [5, 10]}, "no parameter 'perplexty'"),
        ({"perplexity": 5}, "must be a list of values"),
        ({"random_state": [1, 2]}, "sets seeds itself"),
    ],
)
def test_mistakes_are_named_before_the_first_fit(distributions, message):
    seen = After(100)
    with pytest.raises(ValueError, match=message):
        search((gc.TSNE(), distributions), callback=seen)
    assert not seen.names


def test_a_discrete_distribution_draws_integers():
    values = rv_discrete(values=([2, 3], [0.5, 0.5]))
    drawn = list(candidates((QUICK, {"n_components": values}), Draws(np.random.RandomState(0)), X))
    assert {each.estimator.n_components for each in drawn} == {2, 3}
    assert all(isinstance(each.estimator.n_components, int) for each in drawn)


def test_few_rows_with_one_class_are_scored_without_it():
    y = np.where(np.arange(len(X)) == 5, "rare", "common")
    runner = search([QUICK], y=y, objectives=["R(10)"], callback=After(1))._runner
    rows = np.arange(10, 60)
    scores = runner._scores(None, X[rows, :2], X[rows], y[rows], 0)
    assert "R(10)" in scores
    assert "NMI" not in scores


def test_a_registered_score_may_not_apply_to_the_first_map():
    gc.metrics.register("of some")(lambda X, Z, y: None if abs(Z[:, 0] @ Z[:, 1]) < 1e-6 else 1.0)
    try:
        assert search([QUICK], objectives=["of some"]).front == ["random map"]
    finally:
        gc.metrics.unregister("of some")


def test_effects_of_a_parameter_called_method():
    space = (gc.MetricMDS(), {"max_iter": [5, 6, 7, 8, 9]})
    plain = search(space, budget="5 trials", objectives=["R(10)"])
    for name, candidate in list(plain.methods.items()):
        if set(candidate.parts) == {"max_iter"}:
            odd = str(int(candidate.parts["max_iter"]) % 2)
            plain.methods[name] = replace(candidate, parts={"method": odd})
    assert set(plain.explain().index) == {"method: 0", "method: 1"}


def test_pictures_of_no_maps_are_refused():
    result = search([QUICK], objectives=["R(10)", "R(n/2)"])
    with pytest.raises(ValueError, match="most must be at least 1"):
        result.plot(most=0)
