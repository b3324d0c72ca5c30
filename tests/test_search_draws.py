"""The methods that a search draws: sentences, numbers of distributions, and Optuna's choices."""

import dataclasses
import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import norm, randint, uniform
from sklearn.datasets import make_blobs
from sklearn.preprocessing import FunctionTransformer

import graphcouple as gc
from graphcouple.searches import RandomMap
from graphcouple.searches.draws import Draws, OptunaDraws, draws_of
from graphcouple.searches.space import candidates

pytest.importorskip("optuna")
X, _ = make_blobs(130, 5, centers=6, random_state=0)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.mark.filterwarnings("ignore:n_neighbors=300 is lowered")
def test_drawn_methods_differ_and_fit_together():
    drawn = list(itertools.islice(candidates("laws", Draws(np.random.RandomState(1)), X), 15))
    assert len({candidate.name for candidate in drawn}) == 15
    for candidate in drawn[:4]:
        candidate.estimator.set_params(max_iter=3, random_state=0).fit(X[:120])
    assert {len(candidate.parts) for candidate in drawn} == {7}


def test_names_of_methods_with_functions_are_the_same_in_every_process():
    """They leave out addresses; functions of one name are numbered."""
    functions = [lambda X, power=power: X**power for power in (1, 2)]
    methods = [FunctionTransformer(function) for function in functions]
    names = [each.name for each in candidates(methods, Draws(np.random.RandomState(0)), X)]
    drawn = candidates((FunctionTransformer(), {"func": functions}), Draws(np.random.RandomState(0)), X)
    drawn = [each.name for each in drawn]
    assert len(set(names)) == len(set(drawn)) == 2
    for name in (*names, *drawn):
        assert "function" in name
        assert " at 0x" not in name


def test_optuna_learns_from_the_scores():
    """Of ten options one is good: later draws have it far more often than chance."""
    draws = OptunaDraws(np.random.RandomState(0), 2)
    chosen = []
    for k in range(80):
        draws.begin()
        option = draws.choose("option", list(range(10)))
        if option == 3:
            continue
        draws.keep(str(k))
        chosen.append(option)
        draws.tell(str(k), np.array([1.0, 1.0]) if option == 7 else np.array([0.0, 0.1]))
    assert np.mean(np.array(chosen[-30:]) == 7) > 0.5
    assert type(draws_of("random", np.random.RandomState(0), 2)) is Draws


def test_optuna_draws_numbers_of_distributions():
    draws, numbers = OptunaDraws(np.random.RandomState(0), 1), []
    for k in range(40):
        draws.begin()
        numbers.append(draws.number("number", norm(5.0, 0.1)))
        draws.keep(str(k))
        draws.tell(str(k), None)
    assert abs(np.mean(numbers) - 5.0) < 0.1
    assert 0.03 < np.std(numbers) < 0.3
    without_quantiles = SimpleNamespace(rvs=lambda random_state: random_state.uniform(2.0, 3.0))
    draws.begin()
    assert 2.0 < draws.number("another", without_quantiles) < 3.0


@pytest.mark.parametrize("sampler", ["random", "optuna"])
def test_integers_of_a_distribution(sampler):
    space, draws = (
        (gc.UMAP(max_iter=5), {"n_neighbors": randint(5, 20)}),
        draws_of(sampler, np.random.RandomState(0), 1),
    )
    for candidate in itertools.islice(candidates(space, draws, X), 2):
        candidate.estimator.set_params(random_state=0).fit(X)
        draws.tell(candidate.name, np.array([1.0]))


def test_repeats_are_no_failures_for_optuna():
    draws = OptunaDraws(np.random.RandomState(0), 1)
    for candidate in candidates((RandomMap(), {"n_components": [1, 2, 3]}), draws, X):
        draws.tell(candidate.name, np.array([1.0]))
    values = [trial.value for trial in draws._study.trials if trial.values]
    assert set(values) == {1.0}


def test_optuna_does_not_run_out_of_methods():
    """Though every score says that the first method is the best, there are others."""
    draws = OptunaDraws(np.random.RandomState(0), 1)
    drawn = []
    for candidate in itertools.islice(candidates("laws", draws, X[:40]), 40):
        drawn.append(candidate.name)
        draws.tell(candidate.name, np.array([float(candidate.parts["latent prior"] == "E") - 0.01 * len(drawn)]))
    assert len(drawn) == 40


def test_methods_of_one_name_are_told_apart():
    starts = np.random.default_rng(0).normal(size=(2, len(X), 2))
    # The middle of a long array is not written out.
    starts[1, :20], starts[1, -20:] = starts[0, :20], starts[0, -20:]
    draws = Draws(np.random.RandomState(0))
    first, second = candidates([gc.TSNE(init=Z) for Z in starts], draws, X)
    assert second.name == f"{first.name} (2)"
    assert second.parts == {"method": second.name}
    np.testing.assert_array_equal(second.estimator.init, starts[1])
    with pytest.raises(ValueError, match="'PCA' is the name of a method that is always compared"):
        candidates({"PCA": gc.PrecisionCoupling(nu_x=500)}, draws, X)


def test_distributions_and_nested_parameters():
    base = gc.GraphCoupling(gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)), gc.GraphModel(gc.Student(), "E"))
    space = (base, {"latent__kernel__dof": uniform(0.5, 2.0)})
    drawn = list(itertools.islice(candidates(space, Draws(np.random.RandomState(0)), X), 5))
    dofs = [candidate.estimator.latent.kernel.dof for candidate in drawn]
    assert len(set(dofs)) == 5
    assert min(dofs) >= 0.5
    assert base.latent.kernel.dof == 1.0
    assert len(list(candidates({"perplexity": [5, 10], "init": ["pca"]}, Draws(np.random.RandomState(0)), X))) == 2
    for space in ({"n_starts": [1, 2]}, (gc.DensMAP(gc.UMAP()), {"estimator__n_starts": [1, 2]})):
        assert len(list(candidates(space, Draws(np.random.RandomState(0)), X))) == 2


def _parts_of(space, name):
    drawn = list(candidates(space, Draws(np.random.RandomState(0)), X))
    assert len({candidate.name for candidate in drawn}) == len(drawn)
    return sorted(candidate.parts[name] for candidate in drawn)


def test_values_that_look_alike_are_different_candidates():
    assert _parts_of({"perplexity": [5.0, 12.0, 5.00001, 5]}, "perplexity") in (
        ["12", "5", "5.00001"],
        # The value that is drawn later is spelled out.
        ["12", "5", "5.0"],
    )
    starts = np.random.default_rng(0).normal(size=(3, len(X), 2))
    starts[1:, :20], starts[1:, -20:] = starts[0, :20], starts[0, -20:]
    assert len(_parts_of({"init": [*starts, starts[0].copy(), "pca"]}, "init")) == 4
    # Functions without a name cannot be hashed.
    assert len(_parts_of({"metric": [lambda a, b: abs(a - b).sum(), lambda a, b: abs(a - b).max()]}, "metric")) == 2


def test_laws_that_differ_in_arguments_of_the_metric_or_in_the_search_are_different_candidates():
    law = gc.GraphModel("gaussian", "D", gc.Perplexity(6), metric="minkowski", metric_params={"p": 1})
    laws = [dataclasses.replace(law, metric_params={"p": p}) for p in (1, 2, 8)]
    laws.append(dataclasses.replace(law, search="exact"))
    parts = _parts_of((gc.GraphCoupling(law, gc.GraphModel("student", "E")), {"input": laws}), "input")
    assert len(parts) == 4
    assert [text.partition("minkowski distances ")[2][:5] for text in parts] == ["(p=1)", "(p=1)", "(p=2)", "(p=8)"]
    weighted = dataclasses.replace(law, metric="seuclidean", metric_params={"V": np.ones(5)})
    assert str(weighted).endswith("seuclidean distances (V)")
