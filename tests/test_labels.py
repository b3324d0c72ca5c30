"""Classes in the law: a factor of the edge prior, with points whose class is not known."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import graphcouple as gc
from graphcouple.datasets._files import read_labels
from graphcouple.laws.labels import target_codes
from tests.reference import dense

RNG = np.random.default_rng(2)
X = RNG.normal(size=(20, 3))
Y = np.r_[np.zeros(7), np.ones(8), -np.ones(5)].astype(int)
NUMBERS = np.r_[RNG.normal(size=13), -1.0, -1.0, 1e9, np.full(4, np.nan)]


def factors(y, t):
    if y.dtype.kind == "f":
        # Ranks among the known numbers, in [0, 1]; equal numbers share the mean of their ranks.
        below, ties = (y[:, None] > y).sum(axis=1), (y[:, None] == y).sum(axis=1)
        ranks = (below + ties / 2) / np.isfinite(y).sum()
        factor = np.exp(-30 * t / (1 - t) * (ranks[:, None] - ranks) ** 2)
        return np.where(np.isnan(y[:, None] + y), np.exp(-t / (1 - t)), factor)
    between = np.exp(-5 * t / (1 - t) * (y[:, None] != y))
    unknown = (y[:, None] == -1) | (y == -1)
    return np.where(unknown, np.exp(-t / (1 - t)), between)


@pytest.mark.parametrize("t", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("prior", ["D", "E"])
@pytest.mark.parametrize("y", [Y, NUMBERS], ids=["classes", "numbers"])
def test_under_a_fixed_number_of_edges_targets_are_an_edge_prior(prior, t, y):
    law = gc.GraphModel(gc.Gaussian(), prior, gc.Perplexity(5), target_weight=t)
    as_prior = {"D": gc.UnitOutDegree, "E": gc.FixedEdges}[prior](factors(y, t))
    expected = gc.GraphModel(gc.Gaussian(), as_prior, gc.Perplexity(5)).posterior(X).mean()
    np.testing.assert_allclose(law.posterior(X, y=y).mean(), expected.toarray(), rtol=1e-12)
    plain = gc.GraphModel(gc.Gaussian(), prior, gc.Perplexity(5)).posterior(X).mean()
    np.testing.assert_array_equal(gc.GraphModel(gc.Gaussian(), prior, gc.Perplexity(5)).posterior(X, y=y).mean(), plain)


@pytest.mark.parametrize("symmetrize", [None, "threshold", "mutual"])
@pytest.mark.parametrize(("kernel", "edge_prior"), [(gc.Gaussian(), None), (gc.Odds(gc.Exponential()), 5.0)])
def test_independent_edges_are_kept_with_the_factor_as_probability(kernel, edge_prior, symmetrize):
    law, told = (
        gc.GraphModel(kernel, gc.Binary(edge_prior), gc.LocalConnectivity(8), symmetrize=symmetrize, target_weight=t)
        for t in (0.0, 0.5)
    )
    for weights in (None, np.r_[3.0, np.ones(17), 2.0, 1.0]):
        plain, kept = (each.posterior(X, y=Y, sample_weight=weights) for each in (law, told))
        expected = dense(plain.mean()) * factors(Y, 0.5)
        np.testing.assert_allclose(dense(kept.mean()), expected, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(kept.own_means, plain.own_means * np.diag(factors(Y, 0.5)), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_log_probabilities_of_edges_to_far_points_have_the_factor_too(dtype):
    """As by umap-learn's default: exp(−2.5/(1 − t)) for edges between classes, and exp(−1) for unknown ones."""
    points = np.array([[0.0], [10.0], [100.0]], dtype=dtype)
    law = gc.GraphModel(gc.Gaussian(), "B", target_weight=0.5).posterior(points, y=[0, 1, -1])
    for i, j, expected in ((0, 1, -50.0 - 5.0), (0, 2, -5000.0 - 1.0), (2, 1, -4050.0 - 1.0)):
        graph = np.zeros((3, 3))
        graph[i, j] = 1.0
        assert law.log_prob(graph) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("y", [Y, NUMBERS], ids=["classes", "numbers"])
def test_weighted_points_have_targets_too(y):
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), target_weight=0.5)
    weights = np.ones(20)
    weights[[3, 18]] = 3.0
    copies = np.repeat(np.arange(20), weights.astype(int))
    gather = np.zeros((20, copies.size))
    gather[copies, np.arange(copies.size)] = 1.0
    weighted = law.posterior(X, sample_weight=weights, y=y)
    expected = gather @ law.posterior(X[copies], y=y[copies]).mean() @ gather.T
    np.testing.assert_allclose(weighted.mean() + np.diag(weighted.own_means), expected, rtol=1e-8, atol=1e-14)


def test_classes_are_words_numbers_or_unknown():
    words = np.array(["a", "b", None, "a", float("nan")], dtype=object)
    assert target_codes(words, 5).tolist() == [0, 1, -1, 0, -1]
    assert target_codes([3.0, 7.0, np.nan, -1.0, 3.0], 5).tolist() == [0, 1, -1, -1, 0]
    assert target_codes([Decimal(7), Decimal("0.5")], 2).tolist() == [0.75, 0.25]
    assert target_codes(np.array([[True], [False]]), 2).tolist() == [1, 0]
    assert target_codes(np.array([0, "NaT", -1], "timedelta64[ns]"), 3).tolist() == [1, -1, 0]
    assert target_codes([-1, 0.5, None], 3)[:2].tolist() == [0.25, 0.75]
    assert target_codes(np.array(["0.5", None], dtype=object), 2).tolist() == [0, -1]
    for bad, message in [
        (None, "y is None"),
        (np.arange(3), r"got \(3,\)\.$"),
        (np.zeros((2, 2)), r"got \(2, 2\); pass one column, or combine columns into classes"),
        (np.array([0.5, np.inf]), "infinite in row 1"),
        (np.array(["a", 1], dtype=object), "compared"),
        (np.array([1j, 2j]), "complex"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            target_codes(bad, 2)


@pytest.mark.filterwarnings("ignore:y is ignored")
@pytest.mark.parametrize("method", [gc.TSNE(perplexity=(5, 8)), gc.UMAP(n_neighbors=8), gc.SNE(perplexity=5)])
@pytest.mark.parametrize("y", [Y, NUMBERS], ids=["classes", "numbers"])
def test_estimators_use_targets_only_if_asked(method, y, tmp_path):
    method = clone(method).set_params(random_state=0, max_iter=30)
    plain = method.set_params(target_weight=0.0).fit(X, y).embedding_
    np.testing.assert_array_equal(plain, method.fit(X).embedding_)
    told = method.set_params(target_weight=0.5).fit(X, y)
    assert np.abs(told.embedding_ - plain).max() > 1e-3
    placed = told.transform(X[:3] + 0.1)
    told.save(tmp_path / "model")
    again = gc.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(X[:3] + 0.1), placed)
    np.testing.assert_array_equal(again.posterior_.edge_means, told.posterior_.edge_means)
    again.update(X[:2] + 0.1)
    assert again.posterior_.n_nodes == 22
    with pytest.raises(ValueError, match="y is None"):
        method.fit(X)


def test_impossible_weights_are_refused():
    with pytest.raises(ValueError, match=r"\[0, 1\)"):
        gc.GraphModel(gc.Gaussian(), "D", target_weight=1.0)
    with pytest.raises(ValueError, match="target_weight"):
        gc.TSNE(target_weight=1.0).fit(X, Y)
    with pytest.raises(ValueError, match="leave target_weight at 0"):
        gc.GraphCoupling(gc.GraphModel(gc.Gaussian(), "D"), gc.GraphModel(gc.Student(), "E", target_weight=0.5)).fit(X)


def test_two_classes_one_of_which_is_minus_one():
    for kind in (int, float, object, "U2", "S2"):
        with pytest.warns(UserWarning, match="y holds one class and -1, which stands for unknown"):
            target_codes(np.array([-1, 1, 1], dtype=kind), 3)
    target_codes(np.array([None, 1, 1]), 3)
    assert target_codes(np.array([pd.NA, "a", "a"], dtype=object), 3).tolist() == [-1, 0, 0]


@pytest.mark.parametrize("before", [False, True])
def test_a_copy_without_a_class_has_the_class_of_its_copy(before):
    y = np.arange(20) % 2
    doubled, known = np.concatenate([X, X]), np.concatenate([np.full(20, -1), y][:: 1 if before else -1])
    other = known.copy()
    other[1 if before else 21] = 0
    tsne = gc.TSNE(perplexity=5, unique=True, target_weight=0.8, max_iter=20, random_state=0)
    wanted = tsne.fit(doubled, np.concatenate([y, y])).embedding_
    np.testing.assert_array_equal(tsne.fit(doubled, known).embedding_, wanted)
    with pytest.raises(ValueError, match="equal but of different classes"):
        tsne.fit(doubled, other)


def test_classes_pull_their_points_together():
    told = gc.TSNE(perplexity=5, target_weight=0.8, random_state=0).fit(X, np.arange(20) % 2)
    nearest = np.square(told.embedding_[:, None] - told.embedding_).sum(axis=-1) + np.diag(np.full(20, np.inf))
    assert (nearest.argmin(axis=1) % 2 == np.arange(20) % 2).all()


def test_unknown_classes_among_names_are_unknown_and_masked_ones_are_refused():
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), target_weight=0.5)
    points = np.random.default_rng(0).normal(size=(30, 3))
    names = np.array(list("abc") * 10, dtype=object)
    names[::5] = np.nan
    means = law.posterior(points, y=names).edge_means
    for unknown in (np.nan, -1, None, "-1", " -1"):
        listed = [unknown if name != name else name for name in names]
        np.testing.assert_array_equal(law.posterior(points, y=listed).edge_means, means)
    twice = np.repeat(points, 2, axis=0)
    umap = gc.UMAP(target_weight=0.5, unique=True, n_neighbors=5, max_iter=20, random_state=0)
    umap.fit(twice, np.repeat(np.array([0.0, 1.0, np.nan] * 10), 2))
    umap.fit(twice, np.repeat(np.array([0.5, -1.0, np.nan] * 10), 2))
    missing = pd.array([None, 0, 1] * 10, dtype="Int64")
    np.testing.assert_array_equal(target_codes(missing, 30), [-1, 0, 1] * 10)
    masked = np.ma.masked_array(np.arange(30) % 3, mask=np.arange(30) < 3)
    with pytest.raises(ValueError, match="y has masked entries"):
        law.posterior(points, y=masked)
    with pytest.raises(ValueError, match="y has masked entries"):
        gc.metrics.evaluate(points, points[:, :2], masked)
    with pytest.raises(ValueError, match="sample_weight has masked entries"):
        gc.TSNE(perplexity=5).fit(points, sample_weight=masked + 1.0)
    with pytest.raises(ValueError, match="init has masked entries"):
        gc.TSNE(perplexity=5, init=np.ma.masked_array(points[:, :2], mask=points[:, :2] > 1.0)).fit(points)


def test_many_whole_numbers_are_classes_with_a_warning():
    with pytest.warns(UserWarning, match=r"40 different whole numbers.*0\.5, and NaN in place of -1"):
        codes = target_codes([*range(-1, 40)], 41)
    assert codes.dtype.kind == "i"
    target_codes(np.repeat(np.arange(40), 5), 200)
    days = np.datetime64("2020-01-01", "ns") + np.arange(40) * np.timedelta64(1, "D")
    spans, pandas_days, count = days - days[0], pd.Series(days), np.arange(40).astype(object)
    kinds = {
        "durations": (spans, pd.Series(spans), spans.astype("timedelta64[D]").tolist()),
        "values": (pandas_days.dt.to_period("D"),),
        "whole numbers": (count, [Decimal(k) for k in count], [Decimal(k) if k % 2 else k for k in count]),
        "dates": (days, pandas_days, days.astype("datetime64[D]").tolist(), pandas_days.dt.tz_localize("UTC")),
    }
    remedies = {}
    for kind, each in kinds.items():
        for values in each:
            with pytest.warns(UserWarning, match=f"40 different {kind}, which are taken as classes") as told:
                assert target_codes(values, 40).tolist() == list(range(40))
        remedies[kind] = str(told[0].message).partition("with a fraction: ")[2].removesuffix(".")
    for values in kinds["durations"]:
        np.testing.assert_array_equal(eval(remedies["durations"], {"y": values, "np": np}), np.arange(40) + 0.5)
    assert (
        eval(remedies["whole numbers"], {"y": kinds["whole numbers"][1], "np": np}).tolist() == (count + 0.5).tolist()
    )
    remedy = remedies["dates"].replace("; ", "; numbers = ")
    zoned, some = pd.Series(days).dt.tz_localize("UTC"), days.astype("datetime64[D]")[1:]
    for dates in (days, zoned, [None, *some.tolist()], np.r_[np.datetime64("NaT"), some]):
        names = {"y": dates, "np": np}
        exec(remedy, names)
        numbers = names["numbers"][-40 + pd.isna(dates[0]) :]
        np.testing.assert_array_equal(numbers, np.arange(len(numbers)) + 0.5)
    assert target_codes(np.r_[days[:2], np.datetime64("NaT")], 3).tolist() == [0, 1, -1]
    np.testing.assert_allclose(target_codes(names["numbers"], 40), np.r_[-1, np.arange(0.5, 39) / 39])
    # Names are no whole numbers, before or after new points come.
    points = RNG.normal(size=(80, 3))
    method = gc.TSNE(perplexity=5, target_weight=0.5, max_iter=20, random_state=0)
    method.fit(points, [f"class {i // 2}" for i in range(80)]).update(points[:2] + 0.1)
    assert method.posterior_.n_nodes == 82


def test_products_and_sums_of_maps_have_the_edges_of_both_and_of_either():
    options = {"n_neighbors": 8, "max_iter": 30, "random_state": 0}
    a, b = gc.UMAP(**options).fit(X), gc.UMAP(**options).fit(X[:, :2])
    p, q = (np.asarray(sp.csr_array(each.posterior_.mean()).todense()) for each in (a, b))
    for joined, expected in ((a * b, p * q), (a + b, 1 - (1 - p) * (1 - q))):
        np.testing.assert_allclose(dense(joined.posterior_.mean()), expected, atol=1e-12)
        assert joined.embedding_.shape == (20, 2)
    few = gc.UMAP(n_neighbors=2, max_iter=2).fit(np.random.default_rng(1).normal(size=(20, 3)))
    alone = int((p * dense(few.posterior_.mean()) == 0.0).all(axis=1).sum())
    assert alone
    with pytest.warns(UserWarning, match=f"{alone} of 20 points have no edge that both maps have"):
        a.__mul__(few)
    with pytest.raises(ValueError, match="20 and 10 points; fit the same rows"):
        a * gc.UMAP(**options).fit(X[:10])
    some = gc.UMAP(**options, n_landmarks=10).fit(X).set_params(n_landmarks=None)
    for part in (some, gc.UMAP(**options).fit(X, sample_weight=np.full(20, 2.0))):
        with pytest.raises(ValueError, match="cannot be joined; fit all rows without weights"):
            a + part
    assert (a * gc.UMAP(**options, n_landmarks=500, unique=True).fit(X[:, :2])).posterior_.n_nodes == 20
    others = (lambda: a - b, lambda: (a * b) * a, lambda: a * gc.DensMAP(), lambda: gc.TSNE() + a, lambda: a * 2)
    for other in others:
        with pytest.raises(TypeError, match=r"only two fitted UMAPs can be joined, by .* Compose their means"):
            other()


@pytest.mark.filterwarnings("ignore:the first row of labels.csv, 0, is taken for a name")
@pytest.mark.parametrize(
    ("text", "n_points", "wanted"),
    [
        ("1\n2\n3\n", 2, "holds 3 numbers for 2 points"),
        ("kind\n0\n1\n", 3, "the name 'kind' and 2 numbers for 3 points"),
        ("\n0\n1\n", 3, "no label in row 0"),
        ("kind\n0\n1\n", 2, [0, 1]),
        ("kind\na\nb\n", 2, ["a", "b"]),
        ("a\nb\n", 2, ["a", "b"]),
        ("0\n2\n1\n", 2, [2, 1]),
        ("5\n", 1, [5]),
    ],
)
def test_files_with_a_label_too_many_or_too_few(tmp_path, text, n_points, wanted):
    path = tmp_path / "labels.csv"
    path.write_text(text)
    if isinstance(wanted, str):
        with pytest.raises(ValueError, match=wanted):
            read_labels(path, n_points)
    else:
        assert read_labels(path, n_points).tolist() == wanted
