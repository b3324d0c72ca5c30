"""The search over methods: the file that keeps its fits, arguments that it refuses, and its command."""

import dataclasses
import json
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import norm, randint, rv_histogram, uniform
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import graphcouple as gc
from graphcouple.searches import RandomMap, halving
from graphcouple.searches.runs import settings_of
from graphcouple.searches.space import references
from tests.test_search import short

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(autouse=True)
def two_references(request, monkeypatch):
    """Compare with PCA and a random map alone, which takes no time; the command has all five."""
    if request.function is not test_the_command:
        monkeypatch.setattr(halving, "references", lambda metric="euclidean": references(metric)[:2])


def _without_seconds(result):
    return {name: {k: v for k, v in row.items() if k != "seconds"} for name, row in result.rows().items()}


def test_a_killed_search_goes_on_to_the_same_table(tmp_path):
    space = gc.TSNE(max_iter=20), {"perplexity": uniform(5, 20)}
    options = {"store": tmp_path / "fits.jsonl", "space": space, "budget": "3 trials"}
    whole = short(**options)
    lines = options["store"].read_text().splitlines(keepends=True)
    options["store"].write_text("".join(lines[:9]) + lines[9][:20])
    again = []
    resumed = short(**options, callback=again.append, n_jobs=2)
    np.testing.assert_equal(_without_seconds(resumed), _without_seconds(whole))
    after = [json.loads(line) for line in options["store"].read_text().splitlines()]
    assert len(after) == len(lines)
    assert json.loads(lines[3]) == dataclasses.asdict(again[2])


def test_a_store_of_another_search_is_refused(tmp_path):
    short(space=[RandomMap()], store=tmp_path / "fits.jsonl")
    with pytest.raises(ValueError, match=r"another search: n_seeds differs"):
        short(space=[RandomMap()], store=tmp_path / "fits.jsonl", n_seeds=1)
    with pytest.raises(ValueError, match="integer random_state"):
        short(store=tmp_path / "more.jsonl", random_state=None)
    for text, message in (
        ("no store\n", "is not a file"),
        ("words", "is not a file"),
        ('{"own": 1}', "another search"),
    ):
        (tmp_path / "text").write_text(text)
        with pytest.raises(ValueError, match=message):
            short(space=[RandomMap()], store=tmp_path / "text", n_seeds=1)
        assert (tmp_path / "text").read_text() == text


def test_a_store_of_other_arrays_is_refused(tmp_path):
    """Methods that differ in an array only have the same text, because texts leave arrays out."""
    priors = [gc.UnitOutDegree((np.random.default_rng(seed).random((40, 40)) < 0.5) * 1.0) for seed in (1, 2)]
    X = np.random.default_rng(0).normal(size=(40, 3))

    def method(prior):
        law = gc.GraphModel("gaussian", prior, gc.ConstantBandwidth(1.0))
        return gc.GraphCoupling(law, gc.GraphModel("student", "E"), max_iter=10)

    def run(space, store):
        gc.search(X, space, store=store, budget="1 trials", n_seeds=1, random_state=0, sampler="random")

    lists = [[method(prior)] for prior in priors]
    pairs = [(method(priors[0]), {"input__prior": [prior]}) for prior in priors]
    functions = [[make_pipeline(FunctionTransformer(lambda X, p=p: X**p), PCA(2))] for p in (1, 3)]
    for k, (first, other) in enumerate((lists, pairs, functions)):
        run(first, tmp_path / str(k))
        lines = (tmp_path / str(k)).read_text()
        run(first, tmp_path / str(k))
        assert (tmp_path / str(k)).read_text() == lines
        with pytest.raises(ValueError, match="another search: space differs"):
            run(other, tmp_path / str(k))


def test_a_search_over_a_distribution_goes_on(tmp_path):
    for _ in range(2):
        space = (RandomMap(), {"n_components": randint(2, 4)})
        short(space=space, store=tmp_path / "fits", random_state=np.int64(0), n_seeds=1)
    (tmp_path / "fits").write_text("")
    short(space=[RandomMap()], store=tmp_path / "fits", n_seeds=1)
    (tmp_path / "fits").write_bytes(b"\xff\xfe\n")
    with pytest.raises(ValueError, match="is not a file of a search"):
        short(space=[RandomMap()], store=tmp_path / "fits", n_seeds=1)


def test_a_resumed_search_makes_its_maps_again(tmp_path):
    options = {"space": [RandomMap()], "store": tmp_path / "fits", "n_seeds": 1}
    first, again = short(**options), short(**options)
    assert not again._runner.maps
    np.testing.assert_array_equal(again["RandomMap()"].embedding_, first["RandomMap()"].embedding_)
    assert again.plot().figure.axes
    assert "±" not in repr(again)


def test_distributions_are_told_apart_in_every_process():
    histograms = [rv_histogram(np.histogram(np.random.default_rng(seed).random(50), 5)) for seed in (1, 2)]
    texts = [settings_of(0, None, space=each)["space"] for each in (uniform, norm, uniform(0, 1), *histograms)]
    assert len(set(texts)) == 5
    np.random.rand()
    for each, text in zip((uniform, norm, uniform(0, 1), *histograms), texts, strict=True):
        assert settings_of(0, None, space=each)["space"] == text
    again = "from scipy.stats import uniform; from graphcouple.searches.runs import settings_of"
    again += "; print([settings_of(0, None, space=each)['space'] for each in (uniform, uniform(0, 1))])"
    found = subprocess.run([sys.executable, "-c", again], capture_output=True, text=True, check=True).stdout
    assert found.strip() == str([texts[0], texts[2]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": "soon"}, "budget must be a time"),
        ({"budget": "0.5 trials"}, "budget must be a time"),
        ({"budget": -1}, "budget must be a time"),
        ({"budget": "5 ms"}, "budget must be a time"),
        ({"space": "everything"}, "space must be"),
        ({"space": {"nonsense": [1]}}, "no parameter 'nonsense'"),
        ({"objectives": ("R(11)",)}, "objectives holds 'R\\(11\\)'"),
        ({"objectives": ("NMI",)}, "scores of classes need y"),
        ({"objectives": ()}, "must name a score"),
        ({"objectives": ("stability",), "n_seeds": 1}, "stability needs n_seeds"),
        ({"n_seeds": 0}, "n_seeds"),
        ({"sampler": "best"}, "sampler must be"),
        ({"objectives": "R(10)"}, "must be a list of names"),
        ({"objectives": ("held out R(10)",)}, "objectives holds"),
        ({"space": {"init": "pca"}}, "must be a list of values"),
        ({"space": {"perplexity": 5}}, "space\\['perplexity'\\] must be a list"),
    ],
)
def test_refused_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        short(**{"space": [RandomMap()], "callback": lambda fit: True, **options})


@pytest.mark.parametrize("space", [3, [], [gc.TSNE], ["tsne"], norm(0, 1)])
def test_refused_spaces(space):
    with pytest.raises((TypeError, ValueError), match="space must"):
        short(space=space)


def test_the_command(folder, run):
    options = ("--space", "presets", "--budget", "1 trial", "--seeds", 1, "--store", "fits.jsonl")
    code, out, err = run("search", "iris", *options)
    assert code == 0
    assert "TwoScaleCoupling" in err
    assert "of 6 methods are on the front" in out
    assert "R(n/2)" in (folder / "iris-search.html").read_text()
    assert len((folder / "fits.jsonl").read_text().splitlines()) == 7
    for arguments, words in (
        (("--budget", "soon"), "budget must be"),
        (("-o", "page.txt"), ".html"),
        (("--objectives", "R(11)"), "objectives holds 'R(11)'"),
    ):
        code, _, err = run("search", "iris", *options[:2], "--budget", "1 trial", *arguments)
        assert code == 2
        assert words in err
