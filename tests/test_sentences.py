"""Every preset is a sentence that GraphCoupling carries out to the same bits; parameters are declared once."""

import dataclasses
import inspect

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from mypy import api
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import graphcouple as gc
from graphcouple.estimators._parameters import documented
from graphcouple.estimators._vocabulary import Word
from graphcouple.laws.priors import as_prior

PRESETS = {
    "SNE": gc.SNE(perplexity=8),
    "SymmetricSNE": gc.SymmetricSNE(perplexity=8, learning_rate=20.0),
    "TSNE": gc.TSNE(perplexity=8, dof=0.7, early_exaggeration=3.0, init="ccpca"),
    "LargeVis": gc.LargeVis(perplexity=8),
    "LargeVis sampled": gc.LargeVis(perplexity=8, repulsion="sampled"),
    "UMAP": gc.UMAP(n_neighbors=8, summation="exact"),
    "UMAP full": gc.UMAP(n_neighbors=8, repulsion="full", n_components=3),
    "terms": gc.TSNE(perplexity=8, terms=[gc.ComponentMeans(0.5), gc.ComponentMeans(0.1, n_graphs=2)]),
    "hierarchical": gc.HierarchicalCoupling(gc.TSNE(perplexity=8), weight=0.5),
    "sequential": gc.HierarchicalCoupling(gc.UMAP(n_neighbors=8), strategy="sequential"),
}


@pytest.mark.parametrize("estimator", PRESETS.values(), ids=PRESETS.keys())
def test_the_sentence_is_the_method(estimator, iris):
    X = iris[0][::2]
    named = clone(estimator).set_params(random_state=3)
    method = named.estimator if hasattr(named, "estimator") else named
    method.set_params(max_iter=60)
    said = named.sentence
    np.testing.assert_array_equal(gc.GraphCoupling(**said).fit(X).embedding_, named.fit(X).embedding_)
    # Data do not change what is said, and what is said is inert.
    assert str(named.sentence) == str(said)
    again = clone(gc.GraphCoupling(**said))
    assert str(again.sentence) == str(said)


def test_a_sentence_reads_as_it_is():
    text = str(gc.UMAP(terms=[gc.ComponentMeans(2.0)]).sentence)
    for part in ("prior B, thresholded", "Odds", "LocalConnectivity", "effective cross-entropy", "2 × component means"):
        assert part in text
    assert "random_state" not in gc.TSNE().sentence
    assert gc.TSNE(random_state=1, n_jobs=2).sentence["n_jobs"] == 2
    with pytest.raises(AttributeError, match="no part"):
        gc.TSNE().sentence.nothing  # noqa: B018


ALL = (gc.GraphCoupling, gc.SNE, gc.SymmetricSNE, gc.TSNE, gc.LargeVis, gc.UMAP, gc.CCPCA, gc.PrecisionCoupling)


@pytest.mark.parametrize("cls", [*ALL, gc.HierarchicalCoupling, gc.DensMAP], ids=lambda cls: cls.__name__)
def test_signature_help_and_checks_show_every_parameter(cls):
    names = list(inspect.signature(cls).parameters)
    assert "n_jobs" in names
    assert set(cls._parameter_constraints) == set(names)
    section = inspect.getdoc(cls).split("Parameters\n")[1].split("Attributes\n")[0]
    for name, parameter in inspect.signature(cls).parameters.items():
        line = next(line for line in section.splitlines() if line.startswith(f"{name} : "))
        if parameter.default not in (None, inspect.Parameter.empty):
            shown = f'"{parameter.default}"' if isinstance(parameter.default, str) else repr(parameter.default)
            assert line.endswith(f"default={shown}")
    assert "{" not in section.replace("{", "", section.count('{"'))


def test_metadata_take_a_line_of_help_and_are_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        tsne = gc.TSNE()
        assert "\n" not in tsne.set_fit_request.__doc__
        assert tsne.set_fit_request(neighbors=True) is tsne
        assert tsne.get_metadata_routing().fit.requests["neighbors"] is True
        assert gc.TSNE().get_metadata_routing().fit.requests["neighbors"] is None
        with pytest.raises(TypeError, match=r"Unexpected args.*sample_weight"):
            gc.DistR().set_fit_request(sample_weight=True)
        X, weights = np.random.default_rng(0).normal(size=(30, 3)), 1.0 + np.arange(30) % 2
        plain = gc.TSNE(perplexity=5, max_iter=20, random_state=0)
        for method in (plain, gc.ParametricCoupling(plain), gc.HierarchicalCoupling(plain, strategy="sequential")):
            pipeline = make_pipeline(FunctionTransformer(), method.set_fit_request(sample_weight=True))
            placed = pipeline.fit(X, sample_weight=weights)[-1].embedding_
            np.testing.assert_array_equal(placed, clone(method).fit(X, sample_weight=weights).embedding_)


def test_docstrings_may_be_indented_or_not():
    """Python 3.13 takes the indentation off before a decorator sees it."""
    fields = dataclasses.fields(gc.RunOptions)
    words = {field.name: Word("kind", "What it does.", []) for field in fields}
    one, two = (documented(f"Title.\n\n{indent}{{parameters}}\n", fields, words) for indent in ("", "    "))
    assert one == two
    assert "\nn_starts : kind, default=" in one


def test_laws_can_be_searched_over(iris):
    X = iris[0][::3]
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5))
    method = gc.GraphCoupling(law, gc.GraphModel(gc.Student(), "E"), max_iter=5, random_state=0)
    grid = {"latent__kernel": [gc.Student(0.5), gc.Gaussian()], "input__bandwidth__perplexity": [5, 8]}
    found = []
    for parameters in ParameterGrid(grid):
        fitted = clone(method).set_params(**parameters).fit(X)
        assert fitted.latent.kernel == parameters["latent__kernel"]
        found.append(fitted.loss_)
    assert len(set(found)) == 4
    assert method.latent == gc.GraphModel(gc.Student(), "E")
    assert method.input == law


def test_models_are_equal_by_value_and_refuse_what_they_cannot_be():
    model = gc.GraphModel(gc.Student(2.0), gc.Binary(edge_prior=np.eye(3)), gc.Perplexity(3))
    assert model == clone(model)
    assert model != gc.GraphModel(gc.Student(2.0), gc.Binary(edge_prior=np.ones((3, 3))), gc.Perplexity(3))
    changed = clone(model).set_params(kernel__dof=3.0, prior="D", prior__edge_prior=None)
    assert changed.kernel == gc.Student(3.0)
    assert changed.prior == gc.UnitOutDegree()
    before = clone(changed)
    for wrong in ({"kernel__dof": -1.0}, {"colour": 1}, {"kernel__colour": 1}, {"n_neighbors": 0}):
        with pytest.raises(ValueError, match=r"dof|no parameter|n_neighbors"):
            changed.set_params(**wrong)
        assert changed == before


def test_terms_measure_by_the_metric_of_every_law(iris):
    X, _ = iris

    @dataclasses.dataclass(frozen=True)
    class Furthest(gc.extend.Term):
        seen: list = dataclasses.field(default_factory=list)
        weight: float = 1.0

        def bind(self, problem):
            self.seen.append(problem.distances.all_pairs()[1].max())
            return gc.couplings.AnchorEnergy(len(problem.X), np.array([0]), np.zeros((1, 2)))

    law = gc.GraphModel("gaussian", "D", gc.Perplexity(8), metric="minkowski", metric_params={"p": 1})
    term = Furthest()
    for each in (law, gc.GraphMixture([law]), gc.laws.DiffusedLaw(law, 2)):
        sentence = gc.SNE().sentence.replace(input=each, terms=[term], max_iter=1, random_state=0)
        gc.GraphCoupling(**sentence).fit(X)
    farthest = np.abs(X[:, None] - X).sum(axis=-1).max()
    np.testing.assert_allclose(np.sqrt(term.seen), farthest, rtol=1e-12)


@pytest.mark.filterwarnings(r"ignore:all \d+ rows of X are equal")
@pytest.mark.parametrize("prior", ["B", "D", "E"])
def test_a_graph_of_ones_own_goes_in_as_it_is(prior):
    graph = nx.karate_club_graph()
    weights = sp.csr_array(nx.to_scipy_sparse_array(graph, dtype=float))
    weights = weights / weights.max()
    latent = gc.GraphModel(gc.Student(), prior)
    given = gc.GraphCoupling(weights, latent, init="spectral", random_state=0, max_iter=50).fit()
    dense = weights.toarray()
    totals = {"B": 1.0, "D": dense.sum(axis=1, keepdims=True), "E": dense.sum() / 34}
    np.testing.assert_allclose(given.posterior_.mean().toarray(), dense / totals[prior], atol=1e-12)
    posterior = gc.GraphCoupling(given.posterior_, latent, init="spectral", random_state=0, max_iter=50).fit()
    np.testing.assert_array_equal(posterior.embedding_, given.embedding_)
    if prior != "B":
        same = gc.GraphCoupling(graph, latent, init="spectral", random_state=0, max_iter=50).fit(np.zeros((34, 1)))
        np.testing.assert_allclose(same.loss_, given.loss_, rtol=1e-6)
    # A graph has no points for "ccpca", the default, so the start is "spectral".
    default = gc.GraphCoupling(weights, latent, random_state=0, max_iter=50).fit()
    np.testing.assert_array_equal(default.embedding_, given.embedding_)
    with pytest.raises(ValueError, match="nodes"):
        gc.GraphCoupling(weights, latent, init="spectral").fit(np.zeros((5, 2)))


def test_an_observed_graph_under_prior_b_is_itself():
    ring = nx.cycle_graph(8)
    law = gc.Binary().around(ring)
    assert law.unordered
    assert law.entropy() < 1e-10
    assert law.log_prob(ring) == pytest.approx(0.0, abs=1e-10)
    for wrong, error in (("a graph", TypeError), (-np.eye(3, k=1), ValueError), (3 * np.eye(3, k=1), ValueError)):
        with pytest.raises(error, match="friends"):
            gc.Binary().around(wrong, name="friends")


@pytest.mark.parametrize("code", "BDES")
@pytest.mark.parametrize("number", [True, False])
def test_a_graph_is_the_mean_of_its_law_whatever_the_edge_prior(code, number, rng):
    """The mean under D has rows of sum 1, under E the sum n, and under S both; the graph is symmetric."""
    pi = rng.uniform(0.1, 2.0, size=(8, 8))
    prior = type(as_prior(code))(edge_prior=3.0 if number else pi + pi.T)
    graph = nx.to_numpy_array(nx.circulant_graph(8, [1, 3])) * 0.2
    if code != "S":
        graph *= (pi + pi.T) / 4.0
    sums = {"D": graph.sum(axis=1, keepdims=True), "E": graph.sum() / 8, "S": 0.8}
    np.testing.assert_allclose(prior.around(graph).mean().toarray(), graph / sums.get(code, 1.0), rtol=1e-9)
    forbidding = type(prior)(edge_prior=nx.to_numpy_array(nx.cycle_graph(8)))
    with pytest.raises(ValueError, match=r"forbids \d+ edges of graph, the first from \d+ to \d+; drop"):
        forbidding.around(graph)


def test_what_a_latent_law_cannot_use_is_refused(iris):
    for parameters in ({"metric": "cosine"}, {"search": "exact"}):
        latent = gc.GraphModel(gc.Student(), "E", **parameters)
        with pytest.raises(ValueError, match=next(iter(parameters))):
            gc.GraphCoupling(gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)), latent).fit(iris[0])


@pytest.mark.nightly
def test_type_checkers_see_the_constructors(tmp_path):
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_text(
        "import graphcouple as gc\ngc.TSNE(2, perplexity=3.0, n_jobs=1)\ngc.UMAP(min_dist=0.2)\n"
        "law = gc.GraphModel('student', 'E', n_neighbors='auto')\n"
        "gc.GraphCoupling(law, law, terms=[gc.LargeScale(1.0)])\n"
    )
    bad.write_text("import graphcouple as gc\ngc.TSNE(2, perplexty=3.0)\n")
    assert api.run(["--strict", str(good)])[2] == 0
    out, _, status = api.run([str(bad)])
    assert status == 1
    assert "perplexty" in out


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
@pytest.mark.filterwarnings("ignore:the start is used as given")
def test_halves_of_an_objective_are_descended_as_the_whole(iris):
    X = iris[0]
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)).posterior(X)
    whole = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E"))
    for optimizer in (gc.MomentumGains(), gc.LBFGS()):
        first, second = (
            gc.solve(objective, 1e-4 * X[:, :2], optimizer, max_iter=200)
            for objective in (whole, 0.5 * whole + 0.5 * whole)
        )
        np.testing.assert_array_equal(first.Z, second.Z)
        assert first.loss == second.loss


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
@pytest.mark.filterwarnings("ignore:the start is used as given")
def test_a_stochastic_objective_solved_twice_gives_the_same_bits(iris):
    X = iris[0]
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)).posterior(X)
    both = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E")) + gc.ComponentCrossEntropy(X, posterior)
    runs = [gc.solve(both, 1e-4 * X[:, :2], gc.MomentumGains(), max_iter=100).Z for _ in range(2)]
    np.testing.assert_array_equal(*runs)


def test_terms_that_are_none_are_refused_by_name():
    X = np.random.default_rng(0).normal(size=(40, 3))
    method = gc.TSNE(perplexity=5, terms=["no term"])
    aligned = gc.AlignedMaps(method)
    for fit in (method.fit, clone(method).set_params(n_landmarks=30).fit, lambda X: aligned.fit([X, X], [None])):
        with pytest.raises(TypeError, match="terms must hold Terms such as ComponentMeans"):
            fit(X)
