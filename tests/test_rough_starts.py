"""Rough starts, such as noise: a smooth shape tells what the graph bears, and runs end as from other starts."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

import graphcouple as gc
from graphcouple.optimize import push_over_pull
from graphcouple.optimize.roughness import bearable_attraction, is_rough, smoothest
from tests.reference import fast_and_nightly, tsne_of

digits = gc.datasets.load("digits")[0]
noise = np.random.default_rng(0).normal(size=(400, 10))


def smoothest_mode(objective):
    """Return the eigenvector of the graph's Laplacian that attraction moves least, from NumPy, as both coordinates."""
    means = np.asarray(objective.posterior.mean())
    weights = means + means.T
    laplacian = np.diag(weights.sum(axis=1)) - weights
    return np.linalg.eigh(laplacian)[1][:, [1, 1]]


@pytest.mark.parametrize("X", [digits[:400], noise], ids=["digits", "noise"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_is_smoothed_to_nearly_what_the_graph_bears_at_most(X, dtype):
    objective = tsne_of(X)
    rough = (1e-3 * np.random.default_rng(1).normal(size=(400, 2)) + 5e-3).astype(dtype)
    mode = smoothest_mode(objective)
    most = push_over_pull(objective, (mode * np.linalg.norm(rough) / np.linalg.norm(mode)).astype(dtype))
    assert push_over_pull(objective, rough) < 1.2
    smooth = smoothest(objective, rough)
    assert smooth.dtype == dtype
    np.testing.assert_allclose(np.linalg.norm(smooth), np.linalg.norm(rough - rough.mean(axis=0)), rtol=1e-4)
    found = bearable_attraction(objective, rough)
    assert 0.5 * most < found < 1.01 * most
    assert found == pytest.approx(push_over_pull(objective, smooth))


@pytest.mark.parametrize("perplexity", [5.0, 30.0, 133.0])
@pytest.mark.parametrize("X", [digits[:400], noise], ids=["digits", "noise"])
def test_noise_is_rough_and_principal_components_are_not(X, perplexity):
    objective = tsne_of(X, perplexity)
    principal = gc.initializations.pca(X, None, 2, None)
    small = principal * 1e-2 / principal.std()
    assert not is_rough(objective, small)
    assert bearable_attraction(objective, small) == push_over_pull(objective, small)
    np.testing.assert_array_equal(gc.Descent().plan(objective, principal, 500, smooth=True)[0], principal)
    assert is_rough(objective, np.random.default_rng(1).permutation(small))


@pytest.mark.parametrize("method", [gc.TSNE(random_state=0), gc.UMAP(random_state=0)])
def test_the_components_of_a_graph_stay_where_the_start_has_them(method):
    X, levels = gc.datasets.make_hierarchical_mixture(600, random_state=0)
    principal = gc.PrecisionCoupling(2).fit_transform(X)
    Z = method.fit(X).embedding_
    disparity = gc.metrics.class_mean_disparity(principal, Z, levels[:, -1])
    assert disparity < 0.5


def test_the_users_own_numbers_are_obeyed():
    objective, rough = tsne_of(noise), np.random.default_rng(1).normal(size=(400, 2))
    assert not np.array_equal(gc.Descent().plan(objective, rough, 500, smooth=True)[0], rough)
    np.testing.assert_array_equal(gc.Descent(early_exaggeration=1.0).plan(objective, rough, 500, smooth=True)[0], rough)
    seen = []
    for rescale in (False, True):
        gc.solve(
            objective, rough, max_iter=1, rescale=rescale, callback=lambda i, _, Z: seen.append(Z) if i == 0 else False
        )
    np.testing.assert_array_equal(seen[0], rough)
    assert abs(np.corrcoef(seen[1].ravel(), rough.ravel())[0, 1]) < 0.9


@pytest.mark.parametrize(
    "kernel", fast_and_nightly({"cusp": gc.Exponential(), "unbounded": gc.RationalPower(1.0, 2.0)}, fast=("cusp",))
)
def test_rough_kernels_from_noise_end_near_others(kernel):
    # From noise as it is they end 16 and 22 % of the height above.
    X = gc.datasets.load("digits")[0][np.sort(np.random.default_rng(0).permutation(1797)[:300])]
    input_law, latent = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(30)), gc.GraphModel(kernel, "D")
    losses = [gc.GraphCoupling(input_law, latent, init=init, random_state=0).fit(X) for init in ("ccpca", "random")]
    objective = gc.CrossEntropy(losses[0].posterior_, latent, summation="exact")
    informed, rough = (objective.value(fitted.embedding_) - objective.lower_bound for fitted in losses)
    assert rough < 1.06 * informed


@pytest.mark.parametrize(
    ("X", "perplexity", "n_components"),
    [
        (digits[:600], 30.0, 2),
        (digits[:400], 5.0, 3),
        (digits[:600], 199.0, 1),
        pytest.param(digits[:900], 30.0, 1, marks=pytest.mark.nightly),
        pytest.param(noise, 30.0, 2, marks=pytest.mark.nightly),
    ],
)
def test_tsne_from_noise_ends_as_from_principal_components(X, perplexity, n_components):
    options = {"perplexity": perplexity, "n_components": n_components, "n_starts": 1, "random_state": 0}
    informed, rough = (gc.TSNE(init=init, **options).fit(X).kl_divergence_ for init in ("pca", "random"))
    assert rough < 1.03 * informed


def test_attracting_edges_are_the_laplacian_of_the_attraction():
    sparse, dense = (
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10), n_neighbors=30),
        gc.GraphModel(gc.Gaussian(), "E"),
    )
    Z = 1e-5 * np.random.default_rng(0).normal(size=(400, 2))
    found = []
    for law in (sparse, dense):
        objective = gc.CrossEntropy(law.posterior(noise), gc.GraphModel(gc.Gaussian(), "E"))
        edges = sum(objective.attracting.matrices)
        product = edges.sum(axis=1)[:, None] * Z - edges @ Z
        pull = objective.exaggerated(3.0).gradient(Z) - objective.exaggerated(2.0).gradient(Z)
        np.testing.assert_allclose(product, pull, rtol=1e-6, atol=1e-12)
        found.append(objective)
    both = found[0] + 2.0 * found[1] + 3.0 * gc.couplings.AnchorEnergy(400, np.arange(3), np.zeros((3, 2)))
    sparse, full = (sum(objective.attracting.matrices) for objective in found)
    np.testing.assert_allclose(sum(both.attracting.matrices), sparse.toarray() + 2.0 * full, rtol=1e-12)
    assert gc.couplings.AnchorEnergy(400, np.arange(3), np.zeros((3, 2))).attracting is None


@pytest.mark.filterwarnings("ignore:perplexity=")
def test_where_all_pairs_pull_alike_noise_stays():
    alike = np.ones((30, 30)) - np.eye(30)
    objective = gc.CrossEntropy(gc.FixedEdges().around(alike), gc.GraphModel(gc.Student(), "E"))
    Z = np.random.default_rng(0).normal(size=(30, 2))
    np.testing.assert_allclose(smoothest(objective, Z), Z - Z.mean(axis=0), atol=1e-12)
    for n in (2, 3, 5):
        fitted = gc.LargeVis(perplexity=1.5, init="random", random_state=0).fit(noise[:n])
        assert np.isfinite(fitted.embedding_).all()


@pytest.mark.parametrize(
    "term",
    [gc.ComponentMeans(), gc.ReferenceShape(), gc.DistanceShape(), gc.LargeScale(7.0)],
    ids=lambda t: type(t).__name__,
)
def test_terms_without_attraction_have_no_say_in_what_the_graph_bears(term, monkeypatch):
    # Those that push outwards where an embedding is small would leave nothing to bear, and no exaggeration at all.
    chosen = []
    plan = gc.Descent.plan

    def remember(self, *given, **smooth):
        chosen.append(plan(self, *given, **smooth))
        return chosen[-1]

    monkeypatch.setattr(gc.Descent, "plan", remember)
    for terms in ([], [term]):
        gc.TSNE(terms=terms, max_iter=400, callback=lambda *_: True, random_state=0).fit(digits[:400])
    factors = [optimizer.exaggeration.factor for _, optimizer in chosen]
    assert factors[0] > 4.0
    assert factors[1] == pytest.approx(factors[0], rel=0.02)


def test_an_objective_without_edges_is_left_alone():
    anchors = gc.couplings.AnchorEnergy(400, np.arange(3), np.zeros((3, 2)))
    Z = np.random.default_rng(0).normal(size=(400, 2))
    assert not is_rough(anchors, Z)
    assert smoothest(anchors, Z) is Z
    assert gc.Descent().plan(anchors, Z, 500, smooth=True)[0] is Z


def test_a_given_exaggeration_from_noise_is_warned_of_where_the_graph_does_not_bear_it():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        gc.TSNE(init="random", early_exaggeration=6.0, random_state=0).fit(digits[:500])
    with pytest.warns(ConvergenceWarning, match="this graph tolerates: attraction exceeds repulsion from [3-6]"):
        gc.TSNE(init="random", early_exaggeration=12.0, random_state=0).fit(noise)


def test_many_points_are_untangled_for_as_long_as_it_takes():
    many = np.concatenate([digits, digits + np.random.default_rng(0).normal(size=digits.shape)])
    few = tsne_of(digits, n_neighbors=90)
    assert gc.Descent().plan(few, digits[:, 2:4], 1000)[1].exaggeration.n_iter == 150
    objective, Z = tsne_of(many, n_neighbors=90), many[:, 2:4]
    for max_iter, most, length in (
        (1000, 3000, 300),
        (200, 600, 300),
        (200, 300, 225),
        (200, None, 150),
        (100, 300, 225),
    ):
        assert gc.Descent().plan(objective, Z, max_iter, most)[1].exaggeration.n_iter == length


def test_many_points_start_larger_unless_their_graph_is_in_pieces(monkeypatch):
    objective, Z = tsne_of(digits, n_neighbors=90), gc.PrecisionCoupling().fit_transform(digits)
    assert gc.Descent().plan(objective, Z, 500)[1].exaggeration.start_weight is None
    monkeypatch.setattr("graphcouple.optimize.descent._GATHERED_UP_TO", 1000)
    schedule = gc.Descent().plan(objective, Z, 500)[1].exaggeration
    assert (schedule.factor, schedule.start_weight) == (6.0, pytest.approx(6.0**0.15))
    given = gc.Descent(early_exaggeration=8.0).plan(objective, Z, 500)[1].exaggeration
    assert given.start_weight == pytest.approx(8.0**0.15)
    independent = gc.CrossEntropy(objective.posterior, gc.GraphModel(gc.Student(), "B"))
    schedule = gc.Descent().plan(independent, Z, 500)[1].exaggeration
    assert (schedule.factor, schedule.start_weight) == (30.0, None)
    pieces = make_blobs(1200, 5, centers=2, center_box=(-50, 50), random_state=0)[0]
    schedule = gc.Descent().plan(tsne_of(pieces), pieces[:, :2], 500)[1].exaggeration
    assert (schedule.factor, schedule.start_weight) == (2.0, None)


@pytest.mark.parametrize("start_weight", [None, 1.5])
def test_a_start_has_its_best_size_under_the_weight_named(start_weight):
    objective, sizes = tsne_of(digits[:300]), []
    Z = gc.PrecisionCoupling().fit_transform(digits[:300])
    optimizer = gc.LBFGS(exaggeration=gc.Exaggeration(5.0, 100, start_weight=start_weight))
    gc.solve(objective, Z, optimizer, rescale=True, callback=lambda *seen: sizes.append(seen[2].std()))
    grid = Z.std() * np.geomspace(1e-4, 1e3, 400)
    losses = [objective.exaggerated(start_weight or 5.0).value(size / Z.std() * Z) for size in grid]
    assert sizes[0] == pytest.approx(grid[np.argmin(losses)], rel=0.1)


class FewIterations(gc.LBFGS):
    """L-BFGS with as many iterations as suit 20,000 points."""

    def suited_iterations(self, n_points):
        return 100


def test_a_run_is_extended_until_a_quarter_of_it_is_not_exaggerated():
    objective, rest = tsne_of(digits[:100]), {"settled_within": 0.0, "tol": 0.0}
    Z = gc.solve(objective, digits[:100, 2:4], rescale=True).Z
    for length, ended in ((70, 100), (90, 150), (120, 200)):
        barely = FewIterations(exaggeration=gc.Exaggeration(1.0 + 1e-9, length))
        assert gc.solve(objective, Z, barely, **rest).n_iter == ended
        assert gc.solve(objective, Z, barely, max_iter=100, **rest).n_iter == 100


@pytest.mark.parametrize("n_components", [2, 5])
def test_a_smoothed_start_does_not_end_on_a_line(n_components):
    # Iris has two parts without edges between them: one mode wins, and the rest falls to a ten-thousandth of it.
    objective = tsne_of(gc.datasets.load("iris")[0])
    for seed in range(3):
        noise = np.random.default_rng(seed).normal(size=(150, n_components))
        singular = np.linalg.svd(smoothest(objective, noise), compute_uv=False)
        assert singular[-1] > 3e-3 * singular[0]
