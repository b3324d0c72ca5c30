"""Methods side by side, and scores for model selection."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.manifold
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE as ScikitTSNE
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import graphcouple as gc

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def test_every_method_is_fitted_for_every_seed_and_scored(rng):
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 3
    tsne, isomap = gc.TSNE(perplexity=5, max_iter=20, init="random"), gc.LocallyLinearEmbedding()
    compared = gc.compare({("t-SNE", "random"): tsne, ("LLE", "own"): isomap}, X, y, seeds=2)
    assert list(compared.embeddings) == [*((("t-SNE", "random"), seed) for seed in (0, 1)), (("LLE", "own"), 0)]
    assert not hasattr(tsne, "embedding_")
    maps = [gc.TSNE(perplexity=5, max_iter=20, init="random", random_state=s).fit_transform(X) for s in (0, 1)]
    for seed, Z in enumerate(maps):
        np.testing.assert_array_equal(compared.embeddings[("t-SNE", "random"), seed], Z)
        wanted = gc.metrics.evaluate(X, Z, y)
        assert compared.table.iloc[seed][wanted.index].tolist() == pytest.approx(wanted.tolist())
    header, (first, second) = compared.summary()
    r10 = [100 * compared.scores[("t-SNE", "random"), seed]["R(10)"] for seed in (0, 1)]
    assert first[:2] == ["t-SNE, random", f"{np.mean(r10):.1f}±{np.std(r10, ddof=1):.1f}"]
    assert first[header.index("stability")] == f"{100 * gc.metrics.seed_stability(maps):.1f}"
    assert second[header.index("stability")] == ""
    assert repr(compared).splitlines()[1].startswith("t-SNE, random")
    assert "<td" in compared._repr_html_()
    assert compared.plot().shape == (2, 2)
    assert list(gc.compare([tsne, isomap], X).embeddings) == [("TSNE", 0), ("LocallyLinearEmbedding", 0)]


def test_pipelines_and_methods_of_other_libraries_are_compared(rng):
    X = rng.normal(size=(40, 3))
    tsne = gc.TSNE(perplexity=5, max_iter=5, init="random")
    methods = {"theirs": ScikitTSNE(perplexity=5, max_iter=250), "PCA": PCA(2), "ours": make_pipeline(PCA(), tsne)}
    compared = gc.compare(methods, X, seeds=2)
    np.testing.assert_array_equal(compared.embeddings["PCA", 0], PCA(2, random_state=0).fit_transform(X))
    assert not np.array_equal(compared.embeddings["ours", 0], compared.embeddings["ours", 1])
    told = gc.compare({"PCA": PCA(2)}, X, fit=lambda name, seed, method, X: method.fit_transform(X))
    told = told.embeddings | gc.compare({"ours": methods["ours"]}, X, fit=lambda *run: run[2].fit(run[3])).embeddings
    for run, Z in told.items():
        np.testing.assert_array_equal(Z, compared.embeddings[run])


def test_a_method_that_writes_to_its_input_changes_neither_the_data_nor_the_other_methods(rng):
    X = rng.normal(size=(40, 4)) * [1.0, 5.0, 25.0, 0.2] + 3.0
    before = X.copy()
    writes, copies = (
        {"scaled": make_pipeline(StandardScaler(copy=copy), PCA(2)), "PCA": PCA(2)} for copy in (False, True)
    )
    wanted, found = gc.compare(copies, before).table, gc.compare(writes, X).table
    np.testing.assert_array_equal(found.drop(columns="seconds"), wanted.drop(columns="seconds"))
    X.flags.writeable = False
    compared = gc.compare({"own": FunctionTransformer(lambda Y: Y[:, :2] + np.shares_memory(X, Y))}, X)
    np.testing.assert_array_equal(compared.embeddings["own", 0], X[:, :2] + 1.0)
    X.flags.writeable = True
    scorer = gc.metrics.scorer("trustworthiness")
    assert scorer(writes["scaled"].fit(X.copy()), X) == scorer(copies["scaled"].fit(before), before)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("kind", [float, object, Fraction])
def test_numbers_that_are_no_classes_are_colours(kind, rng):
    X, numbers = rng.normal(size=(30, 3)), rng.normal(size=30)
    along = [Fraction(value) for value in numbers] if kind is Fraction else numbers.astype(kind)
    compared = gc.compare({"PCA": PCA(2)}, X, along)
    assert compared.scores["PCA", 0].keys() == gc.compare({"PCA": PCA(2)}, X).scores["PCA", 0].keys()
    np.testing.assert_array_equal(np.sort(compared.plot().flat[0].collections[0].get_array()), np.sort(numbers))


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_map_in_one_place_has_no_scores_and_costs_the_others_none(rng):
    flat = make_pipeline(FunctionTransformer(np.zeros_like), PCA(2))
    with pytest.warns(UserWarning, match="all points of a map are in one place, which has no scores: flat"):
        compared = gc.compare({"flat": flat, "PCA": PCA(2)}, rng.normal(size=(30, 3)), seeds=2)
    assert np.isfinite(compared.scores["PCA", 0]["R(10)"])
    assert compared.summary()[1][0][1].startswith("nan")
    assert compared.summary()[1][0][-2] == ""


def test_a_method_that_fails_costs_the_others_none(rng):
    X = rng.normal(size=(30, 3))
    bad = {"wide": PCA(9), "lost": FunctionTransformer(np.log), "short": FunctionTransformer(lambda X: X[:9])}
    bad |= {"line": FunctionTransformer(lambda X: X[:, 0]), "density": KernelDensity()}
    with np.errstate(all="ignore"), pytest.warns(UserWarning, match="failed, and is left out") as told:
        compared = gc.compare({**bad, "PCA": PCA(2)}, X)
    assert [str(warning.message).partition(" ")[0] for warning in told] == list(bad)
    assert str(told[1].message).endswith("its map is not finite")
    assert "its map has 9 rows, but X has 30" in str(told[2].message)
    assert "KernelDensity has no embedding_" in str(told[4].message)
    assert list(compared.embeddings) == [("PCA", 0)]
    with pytest.raises(ValueError, match="n_components=9"):
        gc.compare({"wide": PCA(9)}, X)


@pytest.mark.parametrize(
    ("methods", "options", "error", "match"),
    [
        ({}, {}, TypeError, "methods must map names to estimators"),
        ([gc.TSNE(), sklearn.manifold.TSNE()], {}, TypeError, "or list estimators of different names"),
        ([], {}, TypeError, r"or list estimators of different names, got \[\]"),
        ({"a": gc.TSNE}, {}, TypeError, r"methods\['a'\] must be an estimator"),
        ({"a": gc.TSNE()}, {"seeds": 0}, ValueError, "seeds must be at least 1"),
        ({"a": PCA(9)}, {"metric": "euclidian"}, ValueError, "metric must be .*got 'euclidian'"),
        ({"a": PCA(9)}, {"y": np.arange(39) / 7}, ValueError, "y has 39 entries"),
        ({"a": gc.TSNE()}, {"n_rows": 1}, ValueError, "n_rows must be at least 2"),
        (
            {"a": gc.TSNE(metric="precomputed")},
            {},
            ValueError,
            "takes distances, but the scores have metric='euclidean'",
        ),
        (
            {"a": gc.TwoScaleCoupling()},
            {"metric": "precomputed"},
            ValueError,
            "takes points, but the scores have metric",
        ),
        (
            {"a": gc.PrecisionCoupling()},
            {"metric": "precomputed"},
            ValueError,
            "takes points, but the scores have metric",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(methods, options, error, match, rng):
    with pytest.raises(error, match=match):
        gc.compare(methods, rng.normal(size=(40, 3)), **options)


class FailsForSeedOne(gc.TSNE):
    def fit(self, X, y=None, **options):
        if self.random_state == 1:
            raise ValueError("seed 1 fails")
        return super().fit(X, y, **options)


def test_a_method_that_fails_for_a_later_seed_has_no_row(rng):
    methods = {"bad": FailsForSeedOne(perplexity=5, max_iter=10), "pca": gc.PrecisionCoupling()}
    with pytest.warns(UserWarning, match="'?bad'? failed, and is left out: ValueError: seed 1 fails"):
        compared = gc.compare(methods, rng.normal(size=(40, 3)), seeds=2)
    assert {name for name, _ in compared.embeddings} == {"pca"}
    assert not any("bad" in row[0] for row in compared.summary())


def test_model_selection_by_a_score_of_the_places(rng):
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    grid = {"perplexity": [3, 10]}
    for score, sign in (("R(10)", 1), ("torn edges", -1), ("10-NN accuracy", 1), ("Davies-Bouldin", -1)):
        scoring = gc.metrics.scorer(score)
        search = GridSearchCV(gc.SNE(max_iter=20, random_state=0), grid, scoring=scoring, cv=2).fit(X, y)
        half = gc.SNE(perplexity=3, max_iter=20, random_state=0).fit(X[30:])
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
        wanted = sign * gc.metrics.evaluate(X[:30], half.transform(X[:30]), y[:30])[score]
        assert scoring(half, X[:30], y[:30]) == pytest.approx(wanted)
    # Folds of sorted classes hold one class, and targets of a regression are none.
    for target in (np.arange(60) // 20, X[:, 0]):
        search = GridSearchCV(gc.SNE(max_iter=20, random_state=0), grid, scoring=gc.metrics.scorer(), cv=3).fit(
            X, target
        )
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    few = gc.metrics.evaluate(X[:15], half.transform(X[:15]))
    assert gc.metrics.scorer()(half, X[:15]) == pytest.approx(few["trustworthiness(7)"])
    with pytest.raises(ValueError, match=r"'R\(11\)' is no score of these \d+ rows, but R\(10\), .*fewer folds"):
        gc.metrics.scorer("R(11)")(half, X)
    with pytest.raises(ValueError, match="compares classes, and y is None"):
        gc.metrics.scorer("10-NN accuracy")(half, X)
    with pytest.raises(ValueError, match=r"take one of them\.$"):
        gc.metrics.scorer("R")(half, sp.csr_array(X))


def test_scores_of_a_sample_of_rows_are_found_beside_their_errors(monkeypatch, rng):
    X = rng.normal(size=(60, 4))
    fitted = gc.SNE(perplexity=5, max_iter=20, random_state=0).fit(X)
    monkeypatch.setattr("graphcouple.metrics._evaluate.ALL_ROWS", 40)
    monkeypatch.setattr("graphcouple.metrics._evaluate.SAMPLED_ROWS", 30)
    scores = gc.metrics.evaluate(X, fitted.embedding_)
    assert "trustworthiness(10) ±" in scores
    assert gc.metrics.scorer()(fitted, X) == pytest.approx(scores["trustworthiness(10)"])
