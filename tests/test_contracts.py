"""One contract for each kind of part; the package's own and those written outside it meet the same."""

import importlib
import inspect
import itertools
import pkgutil

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

import graphcouple
import graphcouple as gc
from graphcouple import couplings
from graphcouple.couplings.anchors import AnchorEnergy, Held
from graphcouple.couplings.contraction import LaplacianEigenvalues
from graphcouple.couplings.distance_shape import FreeScaleStress
from graphcouple.couplings.global_term import LongEdges
from graphcouple.couplings.kinds import Absent, Rescaled
from graphcouple.couplings.large_scale import LargeScaleCrossEntropy
from graphcouple.couplings.matching import MatchedMeans
from graphcouple.couplings.reconstruction import ReconstructionEnergy, reconstruction_weights
from graphcouple.couplings.reference_shape import ProcrustesStatistic
from graphcouple.graphs import Support
from graphcouple.kernels import ScaledKernel
from graphcouple.optimize import Adam
from graphcouple.summation import KernelValue, LogEdgeProbability, LogKernel, LogOnePlusKernel
from graphcouple.summation.exact import Tabulated
from tests.contracts import check_objective, check_optimizer, check_partition, check_prior, check_summation
from tests.extensions.kernel import Laplace
from tests.extensions.objective import Stress
from tests.extensions.optimizer import Cautious
from tests.extensions.prior import TwoOut
from tests.extensions.summation import Plain
from tests.extensions.term import Cohesion
from tests.reference import dense, relative_error

N = 24
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 5))
Z = 2.0 * RNG.normal(size=(N, 2))
D = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
B = gc.GraphModel(gc.Odds(gc.Exponential()), "B", n_neighbors=5, symmetrize="threshold").posterior(X)
E = gc.GraphModel(gc.Gaussian(), "E", gc.SelfTuning(3)).posterior(X)
FEW = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X[4:])
FIVE = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(3), n_neighbors=5).posterior(X).support
RING = np.roll(np.eye(N), 1, axis=1) + np.roll(np.eye(N), -1, axis=1)


def confined():
    """Both laws confined to a wheel of neighbours."""
    wheel = RING + RING @ RING - 2 * np.eye(N)
    model = gc.GraphModel(gc.Gaussian(), gc.UnitOutDegree(edge_prior=wheel), gc.Perplexity(2))
    return gc.CrossEntropy(model.posterior(X), gc.GraphModel(gc.Student(), gc.FixedEdges(edge_prior=wheel)))


def pairs(recipe=couplings.PairwiseControlledCoupling):
    """PaCMAP's pairs."""
    latent = gc.GraphModel(gc.Student(), "E")
    problem = couplings.Problem(X, None, D, latent, 2, gc.Exact(), "euclidean", np.random.RandomState(0), 1)
    return recipe(3, 2, 5).bind(problem)


def network(*sizes):
    """A network with layers of these sizes, whose weights are zero."""
    weights = tuple(np.zeros(shape) for shape in itertools.pairwise(sizes))
    return couplings.Network(np.zeros(sizes[0]), 1.0, weights, tuple(np.zeros(size) for size in sizes[1:]), "tanh")


def tsne():
    return gc.CrossEntropy(D, gc.GraphModel(gc.Student(), "E"))


OBJECTIVES = {
    "triplets": lambda: couplings.TripletSum(np.array([[0, 1, 2], [3, 2, 0], [1, 4, 3]]), np.array([1.0, 0.5, 2.0]), N),
    "D-E": tsne,
    "D-D": lambda: gc.CrossEntropy(D, gc.GraphModel(gc.Gaussian(), "D", gc.ConstantBandwidth(2.0))),
    "E-E": lambda: gc.CrossEntropy(E, gc.GraphModel(Laplace(0.7), "E")),
    "B-B": lambda: gc.CrossEntropy(B, gc.GraphModel(gc.Student(2.5), gc.Binary(edge_prior=0.3))),
    "D-B": lambda: gc.CrossEntropy(D, gc.GraphModel(gc.Odds(gc.Student()), "B")),
    "confined": confined,
    "effective": lambda: gc.EffectiveCrossEntropy(B, gc.GraphModel(gc.Odds(gc.Student()), "B"), noise_exponent=0.75),
    "noise-contrastive": lambda: couplings.NoiseContrastiveCrossEntropy(D, gc.GraphModel(gc.Student(), "B")),
    "contrastive": lambda: couplings.ContrastiveCrossEntropy(D, gc.GraphModel(gc.Student(), "D")),
    "drawn": lambda: OBJECTIVES["contrastive"]().partition,
    "partition": lambda: tsne().partition,
    "energy": lambda: tsne().energy,
    "charged": lambda: OBJECTIVES["effective"]().partition,
    "confinement": lambda: tsne().attracting.confinement(),
    "precision": lambda: gc.PrecisionCrossEntropy(X),
    "components": lambda: gc.ComponentCrossEntropy(X, D, n_graphs=3),
    "sum": lambda: 0.3 * tsne() + 2.0 * gc.ComponentCrossEntropy(X, D, n_graphs=2),
    "matched means": lambda: MatchedMeans(B, gc.GraphModel(gc.Odds(gc.Student()), "B")),
    "matched rows": lambda: MatchedMeans(D, gc.GraphModel(gc.Student(), "D"), "kl", "or"),
    "reconstruction": lambda: ReconstructionEnergy(reconstruction_weights(X, FIVE), gc.Gaussian()),
    "stress": lambda: couplings.Stress(Support.all_pairs(N), pairwise_distances(X)[~np.eye(N, dtype=bool)]),
    "best scale": lambda: FreeScaleStress(OBJECTIVES["stress"](), 0.5),
    "shape": lambda: ProcrustesStatistic(X, 0.5),
    "large scale": lambda: LargeScaleCrossEntropy.of(X, 5, np.random.RandomState(0)),
    "long edges": lambda: LongEdges(D),
    "local radii": lambda: couplings.LocalRadii(D.support, D.edge_means, np.linspace(-1.0, 1.0, N)),
    "origin": lambda: couplings.OriginMismatch(np.linspace(0.0, 1.0, N), gc.laws.Hyperbolic()),
    "hyperbolic": lambda: gc.CrossEntropy(D, gc.GraphModel("student", "E", metric=gc.laws.Hyperbolic())),
    "of features": lambda: couplings.OfFeatures(tsne(), np.eye(N) + np.roll(np.eye(N), 1, axis=1)),
    "of a network": lambda: couplings.OfNetwork(tsne(), network(5, 3, 2), X),
    "coding": lambda: couplings.CodingError(X[:, :1], *2 * [network(1, 3, 1)], beta=0.2),
    "pairs": pairs,
    "local pairs": lambda: pairs(couplings.LocallyAdjustedCoupling),
    "gram": lambda: gc.GramMatching(X),
    "part": lambda: couplings.PartOf(gc.CrossEntropy(FEW, gc.GraphModel(gc.Student(), "E")), N, 4),
    "ties": lambda: couplings.TieEnergy(N, np.array([0, 0, 5]), np.array([1, 6, 2])),
    "anchors": lambda: AnchorEnergy(N, np.array([3, 7]), np.ones((2, 2))),
    "held": lambda: Held(tsne(), np.arange(N) < 5),
    "eigenvalues": lambda: LaplacianEigenvalues(N, gc.Student(), 4),
    "fixed basis": lambda: OBJECTIVES["eigenvalues"]().at(0, Z),
    "rescaled": lambda: Rescaled(tsne(), 3.0),
    "absent": lambda: Absent(N),
    "stress (outside)": lambda: Stress(dense(D.mean()) + dense(D.mean()).T, 1.0),
    "cohesion (outside)": lambda: Cohesion(np.arange(N) % 3),
}


@pytest.mark.parametrize("make", OBJECTIVES.values(), ids=OBJECTIVES.keys())
def test_objective(make):
    objective = make()
    # A network has its weights in one column.
    check_objective(objective, Z if objective.n_points == N else 0.3 * np.resize(Z, (objective.n_points, 1)))


def of_the_package(base):
    """Return the classes of the package, with all members defined, that derive from a base."""
    for module in pkgutil.walk_packages(graphcouple.__path__, "graphcouple."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, seen = [base], set()
    while found:
        kind = found.pop()
        found += kind.__subclasses__()
        if kind.__module__.startswith("graphcouple.") and not inspect.isabstract(kind):
            seen.add(kind)
    return seen - {base}


def test_every_objective_optimizer_and_prior_of_the_package_meets_its_contract():
    assert of_the_package(gc.Objective) == {type(make()) for make in OBJECTIVES.values()} - {Stress, Cohesion}
    optimizers = [*OPTIMIZERS.values(), *(of for of, _ in RANDOM_STEPS.values()), gc.ExactSteps()]
    assert of_the_package(gc.Optimizer) == {type(of) for of in optimizers} - {Cautious}
    assert of_the_package(gc.extend.GraphPrior) == {type(of) for of in (*LISTED, NOT_LISTED)} - {TwoOut}


OPTIMIZERS = {
    "lbfgs": gc.LBFGS(),
    "momentum": gc.MomentumGains(),
    "plain momentum": gc.MomentumGains(exaggeration=gc.Exaggeration(1.0, 0)),
    "cautious (outside)": Cautious(),
}
RANDOM_STEPS = {
    "edges": (gc.NegativeSampling(random_state=3), "effective"),
    "rows": (gc.MiniBatches(batch_size=12, random_state=3), "D-D"),
    "adam": (Adam(0.1), "D-D"),
}


@pytest.mark.filterwarnings(
    "ignore:the embedding has collapsed",
    "ignore:the embedding is far from its size",
    "ignore:the start is used as given",
)
@pytest.mark.parametrize("optimizer", OPTIMIZERS.values(), ids=OPTIMIZERS.keys())
@pytest.mark.parametrize("make", [OBJECTIVES["D-E"], OBJECTIVES["sum"]], ids=["tsne", "stochastic sum"])
def test_optimizer(optimizer, make):
    # Still exaggerated, a run may end above its start.
    check_optimizer(optimizer, make(), Z, lowers=optimizer != gc.MomentumGains())


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
@pytest.mark.parametrize(("optimizer", "objective"), RANDOM_STEPS.values(), ids=RANDOM_STEPS.keys())
def test_random_steps(optimizer, objective):
    check_optimizer(optimizer, OBJECTIVES[objective](), Z)


def test_steps_to_the_minimum_of_a_line():
    check_optimizer(gc.ExactSteps(), OBJECTIVES["gram"](), Z)


ARCHETYPES = {
    "smooth": KernelValue(gc.Student()),
    "cusp": KernelValue(Laplace(0.5)),
    "between": LogOnePlusKernel(gc.RationalPower(1.577, 0.895)),
    "singular": LogOnePlusKernel(gc.Odds(gc.Student())),
    "weighted": LogOnePlusKernel(ScaledKernel(gc.Gaussian(), -0.7)),
    "growing": LogKernel(gc.Student(2.5)),
    "probability": LogEdgeProbability(gc.Student(0.5)),
}
SUMMATIONS = {
    "exact": (gc.Exact, (1, 2, 3, 5), 1e-9),
    "mesh": (gc.ParticleMesh, (1, 2), 1e-2),
    "tree": (gc.BarnesHut, (2, 3), 1e-2),
    "auto": (gc.Auto, (2, 4), 1e-2),
    "tabulated": (Tabulated, (2, 5), 1e-9),
    "plain (outside)": (Plain, (2,), 1e-9),
}


EVERY_SUMMATION = [
    pytest.param(
        *(make, dim, tolerance, radial),
        id=f"{name}-{dim}-{kind}",
        marks=[] if (dim + k) % 2 or name in ("tabulated", "plain (outside)") else pytest.mark.nightly,
    )
    for name, (make, dims, tolerance) in SUMMATIONS.items()
    for dim in dims
    for k, (kind, radial) in enumerate(ARCHETYPES.items())
]


@pytest.mark.parametrize(("make", "dim", "tolerance", "radial"), EVERY_SUMMATION)
def test_summation(make, dim, tolerance, radial):
    rng = np.random.default_rng(dim)
    parts = rng.normal(size=(150, dim)), 0.3 * rng.normal(size=(100, dim)) + 6.0, np.full((1, dim), 15.0)
    check_summation(make, radial, np.concatenate(parts), rng, tolerance)


LISTED = [gc.Binary(), gc.UnitOutDegree(), gc.FixedEdges(), TwoOut()]
# Its graphs cannot be listed, since it constrains a mean.
NOT_LISTED = gc.priors.DoublyStochastic()


@pytest.mark.parametrize("prior", LISTED, ids=lambda p: p.code)
def test_prior(prior):
    check_prior(prior)


def test_prior_whose_graphs_are_not_listed():
    # Its rows sum to 1 within 1e-9.
    check_partition(NOT_LISTED, 1e-9)


@pytest.mark.parametrize("kernel", [gc.Student(0.6), gc.Odds(gc.RationalPower(1.6, 0.9))], ids=["pow", "umap"])
def test_tables_are_used_and_nearly_exact(kernel):
    radial, rng = LogOnePlusKernel(kernel), np.random.default_rng(0)
    for n in (300, 700):
        # Charges that are not symmetric, and enough points for several parts.
        Z, left, right = rng.normal(size=(n, 2)), rng.uniform(size=(2, n)), rng.uniform(size=(2, n))
        wanted = gc.Exact(1).low_rank(Z, radial, left, right)
        both = [gc.Auto(k).low_rank(Z, radial, left, right) for k in (1, 2)]
        force = gc.Auto(1).low_rank(Z, radial, left, right, with_potential=False)[1]
        value = gc.Auto(1).low_rank(Z, radial, left, right, with_gradient=False)[0]
        for exact, part, one, two in zip(wanted, (value, force), *both, strict=True):
            assert 0.0 < relative_error(one, exact) < 1e-9
            np.testing.assert_array_equal(one, two)
            np.testing.assert_array_equal(one, part)


def test_quick_formulas_are_not_rounded():
    Z = np.random.default_rng(0).normal(size=(300, 2))
    found, wanted = (of.potential(Z, KernelValue(gc.Student())) for of in (gc.Auto(2), gc.Exact(1)))
    np.testing.assert_array_equal(found[1], wanted[1])


def test_a_table_is_refused_where_it_would_not_be_exact():
    from graphcouple._numba.tables import cubics

    umap = LogOnePlusKernel(gc.Odds(gc.RationalPower(1.6, 0.9)))
    assert cubics(umap.potential) is not None
    assert cubics(umap.slope) is not None
    assert cubics(lambda sq_dist: np.maximum(1.3 - sq_dist, 0.0)) is None
    assert cubics(lambda sq_dist: np.where(sq_dist > 0.0, 1.0 / (1.0 + sq_dist), np.inf)) is None
