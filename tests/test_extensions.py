"""Parts written outside the package, one small file each, through an estimator and by name."""

import ast
import inspect
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from sklearn.base import clone

import graphcouple as gc
from tests import extensions
from tests.extensions.kernel import Laplace
from tests.extensions.objective import Stress, StressCoupling
from tests.extensions.optimizer import Cautious
from tests.extensions.prior import TwoOut
from tests.extensions.start import circle
from tests.extensions.summation import Plain
from tests.extensions.term import ClassCohesion, Cohesion
from tests.reference import dense

INPUT = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10))


@pytest.fixture(scope="module")
def data():
    X, y = gc.datasets.load("iris")
    return X[::2], y[::2]


def composed(**parts):
    given = {"input": INPUT, "latent": gc.GraphModel(gc.Student(), "E"), "random_state": 0, "max_iter": 60, **parts}
    return gc.GraphCoupling(**given)


@pytest.mark.parametrize("prior", ["D", "E", "B"])
def test_a_kernel(data, prior):
    latent = gc.GraphModel(Laplace(0.5), prior)
    fitted = composed(latent=latent, optimizer=gc.LBFGS()).fit(data[0])
    objective = gc.CrossEntropy(fitted.posterior_, latent)
    assert fitted.loss_ == pytest.approx(objective.value(fitted.embedding_), rel=1e-9)
    assert fitted.loss_ < fitted.loss_history_[0]


def test_a_kernel_is_summed_fast_and_right_whatever_its_length(rng):
    for width in (1e-3, 1.0, 1e3):
        points = width * 30 * rng.normal(size=(3000, 2))
        radial = gc.summation.KernelValue(Laplace(width))
        chosen = gc.Auto().for_points(points, radial)
        assert isinstance(chosen, gc.ParticleMesh)
        wanted = gc.Exact().potential(points, radial)
        found = chosen.potential(points, radial)
        for a, b in zip(found, wanted, strict=True):
            assert np.linalg.norm(a - b) < 1e-2 * np.linalg.norm(b)


def test_a_prior(data):
    law = gc.GraphModel(gc.Gaussian(), TwoOut(), gc.Perplexity(10))
    fitted = composed(input=law, latent=gc.GraphModel(gc.Student(), "TwoOut"), max_iter=300).fit(data[0])
    twice = composed(latent=gc.GraphModel(gc.Student(), "D"), max_iter=300).fit(data[0])
    # Two independent edges out of every node are twice the law of one.
    objective = gc.CrossEntropy(twice.posterior_, gc.GraphModel(gc.Student(), "D"))
    assert fitted.loss_ == pytest.approx(2 * objective.value(fitted.embedding_), rel=1e-9)
    assert gc.CCPCA(prior="TwoOut", perplexity=5, random_state=0).fit(data[0]).posterior_.code == "TwoOut"
    with pytest.raises(ValueError, match="two edges out of every node"):
        composed(latent=gc.GraphModel(gc.Student(), TwoOut())).fit(data[0])


@pytest.mark.parametrize("coupling", [StressCoupling(2.0), "stress"], ids=["recipe", "name"])
def test_an_objective(data, coupling):
    fitted = composed(coupling=coupling, optimizer=Cautious(), max_iter=200).fit(data[0])
    assert fitted.loss_ < 0.5 * fitted.loss_history_[0]
    assert not hasattr(fitted, "kl_divergence_")
    descended = composed(coupling=coupling).fit(data[0])
    assert descended.loss_ <= fitted.loss_ * (1.0 + 1e-6)
    means = dense(descended.posterior_.mean())
    chosen = gc.Descent().plan(Stress(means + means.T, 2.0), descended.embedding_, 1000)[1]
    assert chosen.exaggeration.factor > 1.0


@pytest.mark.filterwarnings("ignore:y is ignored")
@pytest.mark.parametrize("make", [gc.TSNE, gc.UMAP, gc.LargeVis, composed], ids=lambda make: make.__name__)
def test_terms_stack_on_any_estimator(data, make):
    X, y = data
    terms = [ClassCohesion(0.2), gc.ComponentMeans(0.5)]
    parameters = {"perplexity": 10} if make in (gc.TSNE, gc.LargeVis) else {}
    fitted = make(terms=terms, random_state=0, max_iter=60, **parameters).fit(X, y)
    assert len(fitted.term_losses_) == 2
    wanted = fitted.coupling_loss_ + 0.2 * fitted.term_losses_[0] + 0.5 * fitted.term_losses_[1]
    assert fitted.loss_ == pytest.approx(wanted, rel=1e-9)
    again = clone(fitted).fit(X, y)
    np.testing.assert_array_equal(again.embedding_, fitted.embedding_)
    with pytest.raises(ValueError, match="labels"):
        clone(fitted).fit(X)


def test_a_term_pulls(data):
    X, y = data
    plain, pulled = (
        gc.TSNE(perplexity=10, random_state=0, terms=terms).fit(X, y).embedding_ for terms in ((), [ClassCohesion(5.0)])
    )
    within = [Cohesion(y).value(Z) / Z.var() for Z in (plain, pulled)]
    assert within[1] < within[0]


def test_an_optimizer(data):
    fitted = composed(optimizer=Cautious(), max_iter=300).fit(data[0])
    assert fitted.loss_ < fitted.loss_history_[0]
    assert (np.diff(fitted.loss_history_) <= 0).all()


@pytest.mark.parametrize("summation", [Plain(), "numpy"], ids=["object", "name"])
def test_a_summation(data, summation):
    found, wanted = (composed(summation=s, max_iter=10).fit(data[0]).embedding_ for s in (summation, "exact"))
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-12)


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_a_start(data):
    fitted = composed(init="circle", max_iter=1, optimizer=gc.MomentumGains(1e-12)).fit(data[0])
    wanted = circle(data[0], None, 2, None)
    scale = fitted.embedding_.std() / wanted.std()
    np.testing.assert_allclose(fitted.embedding_, wanted * scale, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="circle"):
        gc.TSNE(init="circle", metric="precomputed", perplexity=5).fit(np.ones((20, 20)) - np.eye(20))


def test_the_command_knows_late_names(run, tmp_path):
    arguments = ("--init", "circle", "--latent-kernel", "laplace:0.5", "-n", 20, "--no-plot", "-o", tmp_path / "Z.npy")
    status, out, err = run("embed", "iris", *arguments)
    assert status == 0
    assert "Laplace(width=0.5)" in out
    # Twenty iterations are few on every machine.
    assert "has not settled" in err


@pytest.mark.parametrize("kind", ["coupling", "kernel", "score", "start", "summation"])
def test_a_decorator_needs_a_name(kind):
    with pytest.raises(TypeError, match=r"the name of a .* got <class .*Laplace'>; write @register\(\"a name\"\)"):
        getattr(gc.extend, f"register_{kind}")(Laplace)


def test_a_prior_without_a_code_of_its_own_replaces_no_other():
    for prior in (type("Heir", (gc.UnitOutDegree,), {}), Laplace, "D"):
        with pytest.raises(TypeError, match="must be a subclass of GraphPrior with a `code` of its own, got"):
            gc.extend.register_prior(prior)
    assert type(gc.GraphModel("gaussian", "D").prior) is gc.UnitOutDegree


def strangers(text):
    """Return the names of the package in a source text that are not public."""
    known = {("graphcouple", "gc"), ("graphcouple.extend", None)}

    def home_of(node):
        if isinstance(node, ast.Attribute):
            return getattr(home_of(node.value), node.attr, None)
        return {"gc": gc, "extend": gc.extend}.get(node.id) if isinstance(node, ast.Name) else None

    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names = [(prefix + of.name, of.asname) for of in node.names]
            own = [name for name in names if name[0].split(".")[0] in ("graphcouple", "importlib")]
            found += [name for name, alias in own if (name, alias) not in known]
        elif isinstance(node, ast.Attribute) and inspect.ismodule(home := home_of(node.value)):
            found += [node.attr] if node.attr not in home.__all__ else []
    return found


def test_each_is_one_small_file_through_public_names_only():
    for text in (
        *("from graphcouple.kernels import Kernel", "import graphcouple.laws", "import graphcouple as g"),
        *("from graphcouple import extend as e", "import importlib", "gc.Term", "extend._x", "gc.laws.priors.repeated"),
    ):
        assert strangers(text), text
    assert not strangers(
        "import graphcouple as gc\nfrom graphcouple import extend\ngc.TSNE, extend.Term, gc.laws.DiffusedLaw"
    )
    files = [path for path in Path(extensions.__file__).parent.glob("*.py") if path.name != "__init__.py"]
    assert len(files) == 7
    for path in files:
        text = path.read_text()
        assert len(text.splitlines()) < 90
        assert strangers(text) == []
        assert "._" not in text.replace("self._", "").replace("state._replace", "")
    assert not [name for name in vars(extensions) if inspect.isfunction(getattr(extensions, name))]


class Careless(gc.extend.Optimizer):
    """Gradient steps that `change` makes of an embedding and its gradient."""

    def __init__(self, change):
        self.change = change

    def init(self, objective, Z, run):
        return State(Z, np.inf)

    def step(self, objective, state, iteration, run):
        return State(self.change(state.Z, objective.gradient(state.Z)), np.inf)


class State(NamedTuple):
    Z: np.ndarray
    grad_norm: float


def _in_place(Z, gradient):
    Z -= 0.1 * gradient
    return Z


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_in_place, "read-only"),
        (
            lambda Z, gradient: Z[:, :1],
            r"Careless\.step must return .* of shape \(3, 2\), got float64 of shape \(3, 1\)",
        ),
        (lambda Z, gradient: Z.astype(np.float32), "array of float64 of shape .*, got float32"),
        (lambda Z, gradient: Z.tolist(), "got list"),
    ],
    ids=["in place", "shape", "dtype", "list"],
)
def test_a_step_that_changes_the_embedding_in_place_or_in_kind_is_refused(change, message):
    anchors = gc.couplings.AnchorEnergy(3, np.arange(3), np.zeros((3, 2)))
    with pytest.raises(ValueError, match=message):
        gc.solve(anchors, np.ones((3, 2)), Careless(change), max_iter=40)
