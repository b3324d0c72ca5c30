"""The search over methods: its fronts by brute force, its rounds, and spaces of one's own."""

import itertools

import numpy as np
import pytest
from scipy.stats import ttest_ind
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphcouple as gc
from graphcouple.kernels.base import KERNELS
from graphcouple.searches import Fit, RandomMap, SearchResult, halving
from graphcouple.searches.draws import Draws
from graphcouple.searches.result import _table
from graphcouple.searches.runs import Runner, Store
from graphcouple.searches.space import Candidate, candidates, references
from tests.extensions.kernel import Laplace

X, Y = make_blobs(130, 5, centers=6, random_state=0)
PERPLEXITIES = {"perplexity": [5, 20], "max_iter": [20]}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def two_references(request, monkeypatch):
    """Compare with PCA and a random map alone, which takes no time; `found` and `all_references` have all five."""
    if "all_references" not in request.fixturenames:
        monkeypatch.setattr(halving, "references", lambda metric="euclidean": references(metric)[:2])


@pytest.fixture
def all_references():
    """Compare with all."""


def short(space=None, budget="2 trials", **options):
    return gc.search(
        X, PERPLEXITIES if space is None else space, budget=budget, **{"n_seeds": 2, "random_state": 0, **options}
    )


@pytest.fixture(scope="module")
def found():
    return short(y=Y, objectives=("R(10)", "R(n/2)", "10-NN accuracy"))


def _result(fits, objectives, n_points=10, n_seeds=2):
    """Return a result of made-up fits."""
    store = Store(None, {})
    for fit in fits:
        store.add(fit)
    runner = Runner(np.zeros((n_points, 2)), None, None, store, 1, np.random.RandomState(0))
    return SearchResult(runner, objectives, {fit.name: None for fit in fits}, n_seeds, np.arange(10), np.arange(0))


def test_a_row_for_each_method(found):
    references = ["PCA", "random map", "TSNE", "UMAP", "TwoScaleCoupling"]
    assert list(found.table.index)[:5] == references
    assert set(found.table.index) == {*references, *(f"TSNE(max_iter=20, perplexity={p})" for p in (5, 20))}
    row = found.table.loc["TSNE(max_iter=20, perplexity=20)"]
    assert (row["rows"], row["seeds"]) == (130, 2)
    assert "has not settled" in row["warnings"]


def test_scores_are_of_the_fitted_method_and_of_rows_put_aside(found):
    name = "TSNE(max_iter=20, perplexity=20)"
    method, runner = found[name], found._runner
    fit = next(fit for fit in found.fits if fit.name == name and fit.seed == 0)
    assert fit.scores["R(10)"] == pytest.approx(gc.metrics.k_ary_preservation(runner.X, method.embedding_, 10))
    assert fit.scores["10-NN accuracy"] == pytest.approx(gc.metrics.knn_accuracy(method.embedding_, runner.y, 10))
    # Thirteen rows would be too few to score.
    assert runner.held_out is None
    np.testing.assert_array_equal(runner.X, X[found.kept])
    assert found.held_out.size == 0


def test_rows_put_aside_are_placed_and_scored():
    many = np.random.default_rng(0).normal(size=(300, 4))
    result = gc.search(many, [gc.UMAP(max_iter=20)], budget=60, n_seeds=1, random_state=0)
    runner = result._runner
    assert runner.held_out.shape == (30, 4)
    np.testing.assert_array_equal(runner.held_out, many[result.held_out])
    both = np.vstack([runner.X, runner.held_out])
    np.testing.assert_array_equal(np.sort(both[:, 0]), np.sort(many[:, 0]))
    name = next(name for name in result.methods if name.startswith("UMAP("))
    placed = result[name].transform(runner.held_out)
    expected = gc.metrics.k_ary_preservation(runner.held_out, placed, 10)
    assert result.table.loc[name, "held out R(10)"] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(4))
def test_layers_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(4, size=(12, 2)).astype(float)
    fits = [Fit(str(k), 10, 0, {"R(10)": a, "torn edges": b}, 0.0, []) for k, (a, b) in enumerate(values)]
    fits.append(Fit("failed", 10, 0, {}, 0.0, ["failed: no"]))
    order = _result(fits, ["R(10)", "torn edges"]).layers(fits)
    assert order[-1] == 12
    assert _result(fits, ["seconds"]).layers(fits)[-1] == 12
    assert _result(fits, ["stability"]).layers(fits[::-1])[-1] == 0
    depth, left = {}, set(range(12))
    for layer in itertools.count():
        if not left:
            break
        free = {
            i
            for i in left
            if not any(
                values[j, 0] >= values[i, 0] and values[j, 1] <= values[i, 1] and tuple(values[j]) != tuple(values[i])
                for j in left
            )
        }
        depth |= dict.fromkeys(free, layer)
        left -= free
    depths = [depth[i] for i in order[:-1]]
    assert depths == sorted(depths)


def test_differences_within_the_noise_are_ties():
    def fits(name, mean, spread):
        return [Fit(name, 10, k, {"R(10)": mean + s, "R(n/2)": 0.5}, 0.0, []) for k, s in enumerate((-spread, spread))]

    made = [*fits("best", 0.6, 0.02), *fits("as good", 0.57, 0.02), *fits("worse", 0.5, 0.02)]
    assert _result(made, ["R(10)", "R(n/2)"]).front == ["best", "as good"]
    sure = [*fits("best", 0.6, 0.0), *fits("less", 0.599, 0.0)]
    assert _result(sure, ["R(10)", "R(n/2)"]).front == ["best"]
    # Methods without scores of all rows are on no front.
    few = [Fit("few rows", 5, seed, {"R(10)": 1.0, "R(n/2)": 1.0}, 0.0, []) for seed in range(2)]
    assert _result([*made, *few], ["R(10)"]).front == ["best", "as good"]


def test_seconds_and_stability_as_objectives():
    result = short(objectives=("seconds", "stability"))
    rows = result.rows()
    assert rows["PCA"]["stability"] == pytest.approx(1.0)
    assert rows["random map"]["stability"] < 0.2
    assert all(row["seconds"] > 0 for row in rows.values())


def test_rounds_of_more_and_more_rows(monkeypatch):
    monkeypatch.setattr(halving, "references", lambda metric: references()[:1])
    many = np.random.default_rng(0).normal(size=(3400, 3))
    seen = []
    space = [gc.PrecisionCoupling(), *(RandomMap(n_components=q) for q in range(2, 10))]
    gc.search(many, space, budget="9 trials", n_seeds=2, random_state=0, callback=seen.append)
    sizes = [fit.n_points for fit in seen if fit.name.startswith(("PrecisionCoupling(", "RandomMap("))]
    assert sizes == [400] * 9 + [1020] * 3 + [3060] * 2
    assert seen[-1].name == "PrecisionCoupling()"


def test_a_method_that_writes_to_its_input_changes_no_score():
    scores, arrays = [], [X.copy(), X[:20].copy()]
    for copy in (False, True):
        runner = Runner(arrays[0], None, arrays[1], Store(None, {}), None, np.random.RandomState(0))
        method = Candidate("scaled", make_pipeline(StandardScaler(copy=copy), PCA(2)), {})
        scores.append(runner.fit(method, len(X), 0).scores)
        runner.fitted(method)
    assert scores[0] == scores[1]
    assert "held out R(10)" in scores[0]
    for found, wanted in zip(arrays, (X, X[:20]), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_subsets_are_nested():
    runner = Runner(np.arange(50.0)[:, None], None, None, Store(None, {}), 1, np.random.RandomState(0))
    assert set(runner.rows(10)) <= set(runner.rows(30)) <= set(runner.rows(50))
    assert sorted(runner.rows(50)) == list(range(50))


def test_effects_are_differences_of_means(found):
    effects = short(
        space=(gc.TSNE(max_iter=20), {"perplexity": [5, 10, 20, 30], "init": ["pca", "random"]}), budget="8 trials"
    )
    table = effects.explain("R(10)")
    first = {fit.name: fit.scores["R(10)"] for fit in effects.fits if fit.seed == 0 and fit.name in effects.methods}
    made = {name: score for name, score in first.items() if name.startswith("TSNE(")}
    pca = np.array([score for name, score in made.items() if "init=pca" in name])
    other = np.array([score for name, score in made.items() if "init=random" in name])
    row = table.loc["init: pca"]
    assert row["effect"] == pytest.approx(pca.mean() - other.mean())
    interval = ttest_ind(pca, other, equal_var=False).confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx((interval.low, interval.high))
    assert row["methods"] == 4


@pytest.mark.filterwarnings("ignore:the scale of largest likelihood")
@pytest.mark.parametrize(
    ("bandwidth", "fits"), [(gc.LeaveOneOut(), True), (gc.Perplexity(30), False), (gc.Perplexity(5), True)]
)
def test_a_method_fits_in_a_search_as_it_does_alone(bandwidth, fits):
    X = np.random.default_rng(0).normal(size=(150, 3))
    law = gc.GraphModel(gc.Gaussian(), "D", bandwidth, n_neighbors=20)
    method = gc.GraphCoupling(law, gc.GraphModel("student", "E"), max_iter=10, random_state=0)
    runner = Runner(X, None, None, Store(None, {}), 1, np.random.RandomState(0))
    fit = runner.fit(Candidate("method", method, {}), 150, 0)
    assert bool(fit.scores) == fits, fit.warnings
    if fits:
        np.testing.assert_allclose(runner.maps["method", 0], method.fit(X).embedding_, rtol=1e-6)
    else:
        with pytest.raises(ValueError, match="perplexity"):
            method.fit(X)


def test_a_kernel_of_ones_own_takes_part():
    KERNELS.add("laplace of mine", Laplace)
    try:
        drawn = itertools.islice(candidates("laws", Draws(np.random.RandomState(0)), X), 40)
        assert any("Laplace" in candidate.parts["latent kernel"] for candidate in drawn)
    finally:
        KERNELS.remove("laplace of mine")


def test_a_failed_method_says_why():
    result = short(space=[gc.TSNE(max_iter=20), gc.TSNE(init="nonsense")], n_seeds=1)
    row = next(row for name, row in result.rows().items() if "nonsense" in name)
    assert row["warnings"].startswith("failed: ")
    assert not row["front"]
    assert np.isnan(row["R(10)"])


def test_the_callback_ends_the_search(all_references):
    result = short(budget="1h", callback=lambda fit: True)
    assert set(result.rows()) == {"PCA", "random map", "TSNE", "UMAP", "TwoScaleCoupling"}
    assert set(short(budget=1e-3).rows()) == set(result.rows())


def test_picture_and_page(found, tmp_path):
    ax = found.plot()
    assert ax.get_xlabel() == "R(10)"
    assert len(ax.figure.axes) == 1 + len(found.front)
    assert len(found.plot(most=1).figure.axes) == 2
    found.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "data:image/png;base64," in page
    assert "http" not in page
    assert all(name.replace("'", "&#x27;") in page for name in found.methods)
    assert repr(found).startswith("No method surpasses these")
    assert found._repr_html_().count("<tr>") == 1 + len(found.front)
    # Not every method has all scores.
    assert "held out R(10)" in _table({"a": {"R(10)": 0.1}, "b": {"R(10)": 0.2, "held out R(10)": 0.15}})
    with pytest.raises(ValueError, match="two objectives"):
        short(space=[RandomMap()], objectives=["R(10)"]).plot()


def test_no_method_of_that_name(found):
    with pytest.raises(KeyError, match="not a method of this search"):
        found["tSNE"]


def test_slow_methods_are_stopped(monkeypatch):
    monkeypatch.setattr(halving, "_LEAST_PATIENCE", 0.0)
    monkeypatch.setattr(halving, "_PATIENCE", 0.0)
    result = short(space=[gc.TSNE(max_iter=500), gc.DensMAP(gc.TSNE(max_iter=500)), RandomMap()], budget="3 trials")
    rows = [row for name, row in result.rows().items() if "max_iter=500" in name]
    assert [row["seeds"] for row in rows] == [1, 1]
    assert all("stopped, since it takes more than 0 s" in row["warnings"] for row in rows)
    assert np.isfinite(result.rows()["RandomMap()"]["R(10)"])


def test_one_bad_method_does_not_end_the_search():
    class Raises(RandomMap):
        def fit(self, X, y=None):
            raise RuntimeError("out of order")

    space = [Raises(), PCA(2), gc.TSNE(perplexity=[5, 9], max_iter=5), gc.UMAP(unique=True, max_iter=5)]
    rows = short([*space, gc.COSNE(max_iter=5)], "5 trials", n_seeds=1).rows()
    failed = [name for name, row in rows.items() if "failed" in row["warnings"]]
    assert failed == ["Raises()"]
    assert "out of order" in rows["Raises()"]["warnings"]
    assert "map is curved, and these scores read" in rows["COSNE(max_iter=5)"]["warnings"]
    assert rows["PCA(n_components=2)"]["R(10)"] == pytest.approx(rows["PCA"]["R(10)"])


def test_unfinished_methods_and_unknown_scores_are_not_on_the_front():
    fits = [Fit("three", 10, k, {"R(10)": 0.5 + 0.02 * k}, 0.0, []) for k in range(3)]
    fits += [Fit("lucky", 10, 0, {"R(10)": 0.9}, 0.0, [])]
    fits += [Fit("none", 10, k, {"R(n/2)": 0.9}, 0.0, []) for k in range(3)]
    assert _result(fits, ["R(10)"], n_seeds=3).front == ["three"]


def test_the_front_is_never_empty():
    """Each is better than the next by one sure score, and uncertain in another."""
    values = {"a": ((1, 0), (0.5, 3), (0, 0)), "b": ((0, 0), (1, 0), (0.5, 3)), "c": ((0.5, 3), (0, 0), (1, 0))}
    fits = [
        Fit(name, 10, k, {f"s{o}": mean + sign * spread for o, (mean, spread) in enumerate(scores)}, 0.0, [])
        for name, scores in values.items()
        for k, sign in enumerate((-1, 1))
    ]
    assert _result(fits, ["s0", "s1", "s2"]).front


def test_a_mapping_names_methods():
    methods = {"linear": gc.PrecisionCoupling(), "short": gc.TSNE(perplexity=5, max_iter=30).sentence}
    found = gc.search(X, methods, ["R(10)", "R(n/2)"], "2 trials", 1, random_state=0)
    assert {"linear", "short"} <= set(found.rows())
    assert found.rows()["linear"]["R(10)"] == found.rows()["PCA"]["R(10)"]
    assert found["short"].max_iter == 30


def test_maps_of_half_of_the_rows_are_compared_with_the_map_of_all():
    space = [gc.PrecisionCoupling(), gc.TSNE(perplexity=5, max_iter=30)]
    found = gc.search(X, space, ["half stability", "R(10)"], "2 trials", 1, random_state=0)
    rows, runner = found.rows(), found._runner
    half = runner.rows(len(runner.X) // 2)
    whole, part = (gc.PrecisionCoupling().fit_transform(points) for points in (runner.X, runner.X[half]))
    assert rows["PrecisionCoupling()"]["half stability"] == pytest.approx(
        gc.metrics.seed_stability([whole[half], part])
    )
    assert rows["random map"]["half stability"] < 0.2 < 0.9 < rows["PrecisionCoupling()"]["half stability"] < 1.0


def test_rounds_with_stability_alone():
    many = np.random.default_rng(0).normal(size=(800, 3))
    space = [RandomMap(n_components=q) for q in range(1, 10)]
    assert len(gc.search(many, space, ["stability"], "9 trials", 2, random_state=0).table) == 11


def test_all_are_scored_by_one_metric(all_references):
    result = short(space=[gc.TSNE(metric="cosine", max_iter=20)], metric="cosine", n_seeds=1)
    name = next(name for name in result.methods if "max_iter=20" in name)
    expected = gc.metrics.k_ary_preservation(result._runner.X, result[name].embedding_, 10, metric="cosine")
    assert result.rows()[name]["R(10)"] == pytest.approx(expected)
    assert result.methods["TSNE"].estimator.metric == "cosine"
    with pytest.raises(ValueError, match="metric must be the name"):
        short(metric="precomputed")


def test_explain_names_unknown_scores(found):
    with pytest.raises(ValueError, match="objective='typo'"):
        found.explain("typo")
