"""Terms that arrange an embedding at large: shapes of references and of distances, and what all of them share."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial import procrustes
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning

import graphcouple as gc
from graphcouple.couplings import FreeScaleStress, ProcrustesStatistic, Stress
from graphcouple.couplings.anchors import AnchorEnergy, Held
from graphcouple.datasets import make_hierarchical_mixture
from tests.contracts import check_objective

TERMS = [gc.LargeScale, gc.ReferenceShape, gc.DistanceShape]


def free_scale(X, power=0.0):
    return FreeScaleStress(Stress.of(gc.neighbors.distances_of(X), power=power))


@pytest.mark.parametrize("q", [1, 2, 4])
def test_the_shape_is_what_procrustes_leaves(rng, q):
    Y, Z = rng.normal(size=(30, q)), rng.normal(size=(30, q))
    objective = ProcrustesStatistic(Y)
    check_objective(ProcrustesStatistic(Y, length=2.0), Z)
    assert objective.value(1e3 * Z + 7.0) == pytest.approx(procrustes(Y, Z)[2], rel=1e-9)
    check_objective(objective, Z)
    check_objective(ProcrustesStatistic(rng.normal(size=(30, 3))), Z)
    mirrored = Y.copy()
    mirrored[:, 0] *= -1.0
    assert objective.value(mirrored) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_distances_at_the_best_scale(rng, power):
    X, Z = rng.normal(size=(25, 5)), rng.normal(size=(25, 2))
    delta, d = squareform(pdist(X)), squareform(pdist(Z))
    off = ~np.eye(25, dtype=bool)
    weights = delta[off] ** -power
    scales = np.linspace(0.0, 3.0 * delta.max() / d.max(), 200_001)
    sums = [(weights * a * b).sum() for a, b in ((delta[off], delta[off]), (delta[off], d[off]), (d[off], d[off]))]
    least = (sums[0] - 2.0 * scales * sums[1] + scales**2 * sums[2]).min() / sums[0]
    assert free_scale(X, power).value(1e-3 * Z) == pytest.approx(least, rel=1e-6)
    check_objective(free_scale(X, power), Z)
    softened = FreeScaleStress(Stress.of(gc.neighbors.distances_of(X), power=power), length=2.0)
    check_objective(softened, Z)
    expected = 1.0 - sums[1] ** 2 / (sums[0] * (sums[2] + 4.0 * weights.sum()))
    assert softened.value(Z) == pytest.approx(expected, rel=1e-9)
    assert free_scale(1e-100 * X, power).value(1e90 * Z) == pytest.approx(least, rel=1e-6)
    with pytest.raises(ValueError, match="square loss"):
        FreeScaleStress(Stress.of(gc.neighbors.distances_of(0.01 * X), loss=gc.couplings.BinaryKL()))


def test_points_in_one_place_and_references_without_a_shape(rng):
    for objective in (ProcrustesStatistic(rng.normal(size=(20, 2))), free_scale(rng.normal(size=(20, 3)))):
        value, gradient = objective.value_and_grad(np.full((20, 2), 0.1))
        assert value == 1.0
        assert not gradient.any()
    for objective in (ProcrustesStatistic(np.full((20, 2), 0.1)), free_scale(np.full((20, 3), 0.1))):
        value, gradient = objective.value_and_grad(rng.normal(size=(20, 2)))
        assert value == 0.0
        assert not gradient.any()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("term", "q"), list(zip(TERMS, (1, 2, 5), strict=True)))
def test_any_dimension_and_input_ends_finite_with_the_same_bits(term, q):
    X, _ = make_hierarchical_mixture(90, random_state=0)
    X = np.concatenate([X, X[:5], 1e4 + X[:1]])
    for points in (X, sp.csr_array(X), X.astype(np.float32)):
        fits = [
            gc.SymmetricSNE(perplexity=5, n_components=q, terms=[term()], max_iter=60, random_state=0, n_jobs=jobs)
            for jobs in (1, 2)
        ]
        first, second = (fit.fit(points).embedding_ for fit in fits)
        assert np.isfinite(first).all()
        assert np.array_equal(first, second)
        assert 0.0 <= fits[0].term_losses_[0] <= 1.5 * len(X)


@pytest.mark.parametrize("term", TERMS)
def test_a_large_weight_approaches_the_terms_own_minimum(term):
    X, _ = make_hierarchical_mixture(150, random_state=0)
    parts = [gc.TSNE(terms=[term(weight)], random_state=0).fit(X).term_losses_[0] for weight in (0.1, 3.0, 300.0)]
    assert parts[0] > parts[1] > parts[2]
    wanted = {
        gc.ReferenceShape: 0.0,
        gc.DistanceShape: free_scale(X).value(gc.MetricMDS(random_state=0).fit_transform(X)),
    }
    if term in wanted:
        assert parts[2] / 150 == pytest.approx(wanted[term], abs=0.02)


@pytest.mark.filterwarnings(r"ignore:the graph has \d+ connected components")
def test_references_are_names_estimators_or_arrays(rng):
    X, _ = make_hierarchical_mixture(120, random_state=0)
    fit = {"max_iter": 50, "random_state": 0}
    Y = gc.Isomap(n_neighbors=10).fit_transform(X)
    given = gc.TSNE(terms=[gc.ReferenceShape(reference=Y)], **fit).fit(X)
    fitted = gc.TSNE(terms=[gc.ReferenceShape(reference=gc.Isomap(n_neighbors=10))], **fit).fit(X)
    np.testing.assert_array_equal(given.embedding_, fitted.embedding_)
    named = gc.TSNE(terms=[gc.ReferenceShape()], **fit).fit(X)
    pca = gc.TSNE(terms=[gc.ReferenceShape(reference=gc.PrecisionCoupling())], **fit).fit(X)
    np.testing.assert_allclose(named.term_losses_, pca.term_losses_, rtol=1e-6)
    with pytest.raises(ValueError, match="n_landmarks"):
        gc.TSNE(terms=[gc.ReferenceShape(reference=Y)], n_landmarks=60, **fit).fit(X)
    with pytest.raises(ValueError, match="reference has 120 rows, but there are 125 points"):
        given.update(X[:5] + 0.01)
    assert named.update(X[:5] + 0.01).embedding_.shape == (125, 2)
    for reference, word in (("ica", "reference"), (np.full((3, 2), np.nan), "reference"), (Y[:50], "reference")):
        with pytest.raises((ValueError, TypeError), match=word):
            gc.TSNE(terms=[gc.ReferenceShape(reference=reference)], **fit).fit(X)


def test_distances_may_be_precomputed(rng):
    X, _ = make_hierarchical_mixture(90, random_state=0)
    method = gc.TSNE(terms=[gc.DistanceShape(pairs_per_point=100)], init="spectral", max_iter=50, random_state=0)
    points = method.fit(X).term_losses_
    given = method.set_params(metric="precomputed").fit(cdist(X, X)).term_losses_
    assert given == pytest.approx(points, rel=1e-4)


@pytest.mark.parametrize("term", TERMS)
def test_what_terms_cannot_take_is_refused(term, rng):
    X = rng.normal(size=(30, 3))
    for weight in (-1.0, np.inf, "much", True):
        with pytest.raises(ValueError, match="weight"):
            term(weight)
    with pytest.raises(ValueError, match="Repeat rows"):
        gc.TSNE(perplexity=5, terms=[term()]).fit(X, sample_weight=np.full(30, 2.0))
    with pytest.raises((ValueError, TypeError), match="pairs_per_point"):
        gc.DistanceShape(pairs_per_point=0)
    graph = gc.TSNE(perplexity=5).models(30)[0].posterior(X)
    with pytest.raises(ValueError, match=r"needs (points|distances)"):
        gc.GraphCoupling(graph, gc.GraphModel(gc.Student(), "E"), terms=[term()], init="spectral").fit(None)


@pytest.mark.filterwarnings(r"ignore:the graph has \d+ connected components")
@pytest.mark.parametrize("term", [gc.LargeScale(5.0), gc.ReferenceShape(2.0, gc.Isomap()), gc.DistanceShape(2.0, 7)])
def test_methods_with_terms_are_cloned_and_saved(term, tmp_path):
    from sklearn.base import clone

    X, _ = make_hierarchical_mixture(60, random_state=0)
    method = gc.TSNE(perplexity=5, terms=[term], max_iter=30, random_state=0)
    first = clone(method).fit(X)
    first.save(tmp_path / "fitted.gc")
    again = gc.load(tmp_path / "fitted.gc")
    assert np.array_equal(again.embedding_, first.embedding_)
    assert again.term_losses_ == first.term_losses_
    assert str(term).startswith(f"{term.weight:g} × ")
    assert str(term) in str(first.sentence)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("term", [*TERMS, gc.ComponentMeans])
def test_weight_0_is_the_plain_method_from_any_start(term, rng):
    X = rng.normal(size=(60, 5))
    options = {"perplexity": 5, "init": "random", "max_iter": 30, "random_state": 0}
    plain, without = (gc.TSNE(terms=terms, **options).fit_transform(X) for terms in ((), (term(0.0),)))
    np.testing.assert_array_equal(plain, without)


@dataclass(frozen=True)
class NothingBound(gc.Term):
    weight: float = 1.0

    def bind(self, problem):
        return None


def test_errors_name_the_term(rng):
    with pytest.raises(TypeError, match="NothingBound in terms: bind must return an Objective, got None"):
        gc.TSNE(perplexity=5, terms=[NothingBound()]).fit(rng.normal(size=(30, 3)))
    distances = cdist(X := rng.normal(size=(40, 3)), X)
    for term in (gc.LargeScale(), gc.ReferenceShape(), gc.ComponentMeans()):
        with pytest.raises(ValueError, match=f"{type(term).__name__} in terms: this needs points"):
            gc.TSNE(perplexity=5, metric="precomputed", init="spectral", terms=[term]).fit(distances)
    with pytest.raises(TypeError, match="instance"):
        gc.ReferenceShape(reference=gc.Isomap)
    for reference, name in ((None, "NoneType"), (sp.csr_array(distances), "csr_array")):
        with pytest.raises(TypeError, match=f"reference must be 'pca', an estimator or a dense array, got {name}"):
            gc.ReferenceShape(reference=reference)


def test_references_compare_by_what_they_are(rng):
    Y = rng.normal(size=(10, 2))
    same = gc.ReferenceShape(reference=Y), gc.ReferenceShape(reference=Y.copy())
    assert same[0] == same[1]
    assert hash(same[0]) == hash(same[1])
    others = (gc.ReferenceShape(), gc.ReferenceShape(reference=gc.Isomap()), gc.ReferenceShape(reference=Y + 1.0))
    assert all(same[0] != other for other in others)
    assert gc.ReferenceShape() == gc.ReferenceShape(1.0)
    assert gc.TSNE(terms=[same[0]]).sentence != gc.TSNE(terms=[others[2]]).sentence


@pytest.mark.filterwarnings("ignore")
def test_blocks_and_pipelines_as_references(rng):
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    codes = rng.integers(0, 4, 60)
    metric = gc.Blocks([gc.Block([0, 1, 2]), gc.Block([3], "categorical")])
    options = {"perplexity": 5, "max_iter": 30, "random_state": 0, "terms": [gc.ReferenceShape(30.0)], "metric": metric}
    numbers = rng.normal(size=(60, 3))
    fits = [gc.TSNE(**options).fit_transform(np.column_stack([numbers, unit * codes])) for unit in (1.0, 1000.0)]
    np.testing.assert_array_equal(*fits)
    inner = gc.TSNE(perplexity=5, max_iter=20, init="random")
    options = {"perplexity": 5, "max_iter": 30, "random_state": 0}
    terms = [gc.ReferenceShape(reference=make_pipeline(StandardScaler(), inner))]
    np.testing.assert_array_equal(*(gc.TSNE(terms=terms, **options).fit_transform(numbers) for _ in range(2)))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_point_that_hides_all_others_is_told(rng):
    X = rng.normal(size=(60, 3))
    X[7] += 1e5
    options = {"perplexity": 5, "max_iter": 20, "random_state": 0}
    origin, terms = gc.couplings.OriginDistances(), [gc.ReferenceShape(), gc.DistanceShape()]
    others = {origin: r"use OriginDistances\(distances=ranks\)", gc.Density(): "lower the slope"}
    for term, remedy in (dict.fromkeys(terms, "use LargeScale") | others).items():
        with pytest.warns(UserWarning, match=f"row 7, .* Leave it out, or {remedy}"):
            gc.TSNE(terms=[term], **options).fit(X)
    squares = cdist(X, X, "sqeuclidean").sum(axis=1)
    np.testing.assert_allclose(free_scale(X).shares, 2.0 * squares / squares.sum())
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        gc.TSNE(terms=[*terms, *others], **options).fit(X[8:])
        gc.TSNE(terms=[gc.LargeScale(), gc.Density(slope=0.5)], **options).fit(X)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "term",
    [gc.LargeScale, *(pytest.param(t, marks=pytest.mark.nightly) for t in (gc.DistanceShape, gc.ComponentMeans))],
)
def test_neighborhoods_in_noise_survive_exaggeration_and_a_shape_that_is_none(term):
    X = np.random.default_rng(0).normal(size=(700, 50))
    plain, placed = (gc.TSNE(terms=terms, max_iter=100, random_state=0).fit_transform(X) for terms in ((), (term(),)))
    near = [gc.metrics.k_ary_preservation(X, Z, 10) for Z in (plain, placed)]
    assert near[1] > 0.7 * near[0]


def test_the_weight_at_large_goes_by_what_components_explain(rng):
    weights = {}
    for name, X in (("tree", gc.datasets.make_branches(500, random_state=0)[0]), ("noise", rng.normal(size=(500, 50)))):
        fitted = gc.TwoScaleCoupling(gc.TSNE(max_iter=5, random_state=0)).fit(X)
        weights[name] = fitted.weight_
        loss = gc.couplings.LargeScaleCrossEntropy.of(X, 500, np.random.RandomState(0))
        Y = PCA(2).fit_transform(X)
        # Each group is a point, so those that should be near can be exchanged for others of the same size.
        exchanged = (loss.near[:, rng.permutation(500)] for _ in range(50))
        otherwise = np.mean([gc.couplings.LargeScaleCrossEntropy(loss._groups, near).value(Y) for near in exchanged])
        share = 1.0 - loss.value(Y) / otherwise
        assert fitted.weight_ == pytest.approx(3.0 * min(1.0, (share / 0.35) ** 3), rel=0.1)
        assert fitted.loss_ == pytest.approx(fitted.coupling_loss_ + fitted.weight_ * fitted.large_scale_loss_)
    assert weights["tree"] == 3.0
    assert weights["noise"] < 1.0


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
@pytest.mark.parametrize("term", [gc.ReferenceShape(), gc.DistanceShape()], ids=["shape", "distances"])
def test_a_few_points_far_out_are_named_and_three_points_are_not(term, rng):
    X = rng.normal(size=(300, 4))
    X[[5, 7, 200]] += 1e4 * np.eye(4)[:3]
    with pytest.warns(UserWarning, match=r"is dominated by rows 5, 7, 200, which lie so far out"):
        gc.TSNE(perplexity=5, max_iter=1, terms=[term], random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        gc.TSNE(perplexity=1.5, max_iter=50, terms=[term], random_state=0).fit(X[:3, :2])


def test_points_that_are_held_add_up():
    objective = AnchorEnergy(3, np.array([0, 1, 2]), np.zeros((3, 2)))
    both = Held(Held(objective, np.array([True, False, False])), np.array([False, True, False]))
    np.testing.assert_array_equal(both.held_points, [True, True, False])
    np.testing.assert_array_equal(both.gradient(np.ones((3, 2)))[:2], 0.0)
    with pytest.raises(ValueError, match="held must have True or False for each of 3 points"):
        Held(objective, [2])
    with pytest.raises(ValueError, match="indices names row -1"):
        gc.TSNE(perplexity=1.5, terms=[gc.couplings.Anchors([-1, 0], np.zeros((2, 2)))]).fit(
            np.arange(12.0).reshape(6, 2) ** 2
        )
    with pytest.raises(ValueError, match="noise_exponent must be a finite number"):
        gc.couplings.EffectiveCoupling(noise_exponent="a")
    law = gc.GraphModel("gaussian", "B")
    with pytest.raises(ValueError, match="noise_exponent must be a finite number"):
        gc.couplings.EffectiveCrossEntropy(law.posterior(np.eye(3)), law, noise_exponent="a")
    with pytest.raises(TypeError, match="kernel must be an instance of"):
        gc.couplings.ReconstructionCoupling(input_kernel="gaussian")
