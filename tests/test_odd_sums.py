"""Sums, kernels and losses of odd input: copies, integers, rows without edges, matrices that are not square."""

import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from scipy.special import logsumexp

import graphcouple as gc
from graphcouple.couplings import Confinement
from graphcouple.graphs import Support
from graphcouple.laws.priors import doubly_stochastic, posterior
from graphcouple.spectral import GraphLaplacian, low_rank
from graphcouple.summation import EdgeSum, LogKernel, edge_product, exact, fields, near_pairs, particle_mesh
from graphcouple.summation.near_cells import morton_keys
from graphcouple.summation.transforms import Grid

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("space", [gc.laws.Hyperbolic(), gc.laws.Spherical(4.0)])
def test_copies_are_at_distance_0_in_curved_spaces(space):
    X = np.repeat(RNG.normal(size=(30, 2)), 2, axis=0)
    D = space.between(X)
    assert (D[np.arange(0, 60, 2), np.arange(1, 60, 2)] == 0).all()
    assert (D[0, 2:] > 0).all()
    if isinstance(space, gc.laws.Hyperbolic):
        with pytest.raises(ValueError, match="too far from the centre of the hyperbolic space"):
            space.between([[1e9, 0.0]])


def test_products_of_edges_have_the_rows_of_the_matrix():
    for shape in ((3, 2), (2, 3), (50, 400), (0, 3)):
        A, points = RNG.normal(size=shape), RNG.normal(size=(shape[1], 2))
        np.testing.assert_allclose(edge_product(sp.csr_array(A), points), A @ points, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match=r"points must have shape \(2, q\)"):
        edge_product(sp.csr_array(np.ones((3, 2))), np.ones((3, 1)))


@pytest.mark.parametrize("dtype", [int, bool, np.float16])
def test_places_of_any_dtype_have_the_same_losses(dtype):
    S, Z = sp.csr_array(np.triu(RNG.random((6, 6)), 1)), np.array([[0, 0], [1, 0], [0, 1], [1, 1], [1, 0], [0, 0]])
    edges = EdgeSum(Support(S.indptr, S.indices), S.data, LogKernel(gc.Student()))
    bound = Confinement(6, 1.0, 3.0)
    for found, usual in zip(edges.evaluate(Z.astype(dtype)), edges.evaluate(Z.astype(float)), strict=True):
        np.testing.assert_allclose(found, usual)
    # A bound takes lists and integers; its gradient is no integer.
    np.testing.assert_allclose(bound.value_and_grad((100 * Z).tolist())[1], bound.value_and_grad(100.0 * Z)[1])


def test_a_formula_that_contradicts_the_kernel_is_found():
    @dataclass(frozen=True)
    class Mistaken(gc.extend.Kernel):
        def log(self, sq_dist):
            return -np.log1p(sq_dist)

        def grad_log(self, sq_dist):
            return -1.0 / (1.0 + sq_dist)

        def value(self, sq_dist):
            return 1.0 / (1.0 + np.sqrt(sq_dist))

    with pytest.raises(ValueError, match=r"Mistaken\.value does not follow from log and grad_log: at d ="):
        gc.check_kernel(Mistaken())

    @dataclass(frozen=True)
    class Branching(Mistaken):
        def value(self, sq_dist):
            return 1.0 / (1.0 + sq_dist) if sq_dist < 700.0 else 0.0

    with pytest.raises(TypeError, match=r"Branching\.value fails on an array of squared distances .*np\.where"):
        gc.check_kernel(Branching())


@pytest.mark.parametrize("approximation", ["cholesky", "nystroem"])
def test_indefinite_similarities_have_no_low_rank_approximation(approximation):
    method = gc.AttractionRepulsionPCA(
        kernel="sigmoid", kernel_params={"gamma": 1.0, "coef0": 0.0}, approximation=approximation, random_state=0
    )
    with pytest.raises(ValueError, match="similarities without negative eigenvalues; use approximation=None"):
        method.fit(RNG.normal(size=(200, 2)))
    M = np.array([[1.0, 2.0], [2.0, 1.0]])
    for rank in (1, 2):
        with pytest.raises(ValueError, match="negative eigenvalues"):
            low_rank.pivoted_cholesky(lambda at: M[:, at], np.diag(M), rank, np.random.RandomState(0))


def test_laplacians_of_places_far_away_and_of_graphs_with_a_heavy_edge():
    path = np.diag(np.ones(3), 1) + np.diag(np.ones(3), -1)
    assert GraphLaplacian(path).value(np.arange(4.0)[:, None] + 1e8) == pytest.approx(3.0, rel=1e-9)
    A = np.zeros((6, 6))
    A[0, 1] = A[1, 0] = 1e9
    A[[2, 3, 4, 5], [1, 2, 3, 4]] = 1.0
    for diagonal in (0.0, 1.0):
        with pytest.raises(ValueError, match="affinity must be symmetric"):
            GraphLaplacian(A + diagonal * np.eye(6))
    GraphLaplacian(A + A.T)


def test_estimated_totals_are_not_biased_by_points_of_many_edges(monkeypatch):
    monkeypatch.setattr(fields, "_SAMPLED_ROWS", 400)
    Z = np.concatenate([0.3 * RNG.normal(size=(1500, 3)), 5.0 * RNG.normal(size=(1500, 3))])
    weights, radial = np.repeat([4.0, 1.0], 1500), gc.summation.KernelValue(gc.Student())
    exact = gc.summation.Exact().total(Z, radial, weights, weights)
    assert fields.sampled_total(Z, radial, weights, weights, 1) == pytest.approx(exact, rel=0.05)


def test_rows_without_edges_change_no_perplexity():
    A = np.zeros((6, 6))
    A[:3, :3] = 1.0 - np.eye(3)
    for order in ([0, 1, 2, 3, 4, 5], [3, 4, 5, 0, 1, 2]):
        law = gc.FixedEdges().around(A[np.ix_(order, order)])
        assert gc.CrossEntropy(law, gc.GraphModel("student", "E")).crowd == pytest.approx(2.0)
    A[3, 4] = A[4, 3] = 1.0
    triplets = gc.GraphCoupling(
        gc.GraphModel("gaussian", gc.Binary(edge_prior=A)), gc.GraphModel("student", "B"),
        coupling=gc.couplings.TripletCoupling(n_inliers=2), max_iter=5, random_state=0,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert np.isfinite(triplets.fit_transform(RNG.normal(size=(6, 3)))).all()


def test_bounds_by_contrast_do_not_depend_on_earlier_questions():
    law = gc.GraphModel("gaussian", "D", gc.Perplexity(5)).posterior(
        RNG.normal(size=(30, 4)), sample_weight=RNG.integers(1, 4, 30)
    )
    fresh, asked = (gc.couplings.NoiseContrastiveCrossEntropy(law, gc.GraphModel("student", "B")) for _ in range(2))
    assert np.isfinite(asked.lower_bound)
    # It is the same for every π.
    assert asked.with_basis(-3.0).lower_bound == fresh.with_basis(-3.0).lower_bound == fresh.lower_bound


def test_infinite_degrees_of_freedom_and_answers_of_callbacks_are_refused():
    X = RNG.normal(size=(20, 3))
    for name in ("nu_x", "nu_z"):
        with pytest.raises(ValueError, match=f"{name}=inf must be finite and at least n = 20"):
            gc.PrecisionCrossEntropy(X, **{name: np.inf})
    with pytest.raises(TypeError, match="callback must return whether to stop the run, or None, got ndarray"):
        gc.CCPCA(perplexity=3, random_state=0, callback=lambda *_: np.ones(2)).fit(X)


def test_steps_of_exaggerated_descent_share_the_transform_of_a_grid(monkeypatch):
    made, make = [], particle_mesh.kernel_transform
    monkeypatch.setattr(particle_mesh, "kernel_transform", lambda *of: made.append(of) or make(*of))
    mesh = gc.summation.ParticleMesh()
    for _ in range(3):
        mesh.coarse().potential(RNG.normal(size=(3000, 2)).clip(-3.0, 3.0), gc.summation.KernelValue(gc.Student()))
    assert len(made) == 1


def test_balancing_that_breaks_off_has_the_bound_of_its_own_factors(monkeypatch):
    far = 30.0 * RNG.normal(size=(40, 2))
    log_kernel = gc.Gaussian().log(cdist(far, far, "sqeuclidean"))
    np.fill_diagonal(log_kernel, -np.inf)
    monkeypatch.setattr(doubly_stochastic, "_MOST_PAIRS_IN_LOGS", 0)
    # After the least number of rounds, two.
    f = -0.5 * logsumexp(log_kernel, axis=1)
    wanted = np.expm1(f + logsumexp(log_kernel + f, axis=1)).sum() - 2.0 * f.sum()
    assert doubly_stochastic._in_logs(gc.Gaussian(), far, False)[0] == pytest.approx(wanted, rel=1e-9)


def test_a_plan_leaves_its_labels_alone():
    law = gc.GraphModel("gaussian", "D", gc.Perplexity(5)).posterior(RNG.normal(size=(40, 3)))
    labels = np.arange(40, dtype=np.int64) % 4
    plan = gc.couplings.Plan(gc.CrossEntropy(law, gc.GraphModel("student", "E")), labels)
    _, moves = plan.improve(RNG.normal(size=(4, 2)), np.random.RandomState(0))
    assert moves > 0
    np.testing.assert_array_equal(labels, np.arange(40) % 4)


def test_means_that_a_law_keeps_are_not_overwritten(monkeypatch):
    class Kept(type(gc.UnitOutDegree().posterior(np.zeros((3, 3))))):
        edge_means = cached_property(lambda self: super().edge_means)

    monkeypatch.setattr(posterior, "MANY_EDGES", 0)
    law = Kept(Support.all_pairs(4), RNG.normal(size=12))
    before = law.edge_means.copy()
    law.take_means()[:] = 0.0
    np.testing.assert_array_equal(law.edge_means, before)


def test_a_sum_over_pages_and_tiles_keeps_all_its_transforms(monkeypatch):
    """A page may take more memory than is kept otherwise."""
    monkeypatch.setattr(particle_mesh, "_MOST_KEPT", 0)
    mesh, student = gc.summation.ParticleMesh(), gc.summation.KernelValue(gc.Student())
    grids = [Grid(np.zeros(2), 1.0, (32, 32), np.float64, 16.0)]
    for level in (4, 16, 64):
        grids.append(Grid(np.zeros(2), 1.0 / level, (128, 128), np.float64, 16.0 / level**2, coarse=grids[-1]))
    first, second = ([mesh._transform(student, grid) for grid in reversed(grids)] for _ in range(2))
    assert all(one is other for one, other in zip(first, second, strict=True))


def test_plans_refuse_weighted_points():
    law = gc.GraphModel("gaussian", "D", gc.Perplexity(5)).posterior(
        RNG.normal(size=(40, 3)), sample_weight=np.ones(40)
    )
    with pytest.raises(ValueError, match="Plan takes no sample weights"):
        gc.couplings.Plan(gc.CrossEntropy(law, gc.GraphModel("student", "E")), np.arange(40) % 4)


def test_crowding_is_estimated_alike_for_points_in_any_order():
    Z = RNG.uniform(size=(40_000, 2))
    in_order = Z[np.argsort(morton_keys(Z))]
    exact = near_pairs.crowding(Z, Z.min(axis=0), 0.05, len(Z))
    counts = np.histogram2d(*(np.floor((Z - Z.min(axis=0)) / 0.05).T), bins=range(21))[0]
    assert exact == pytest.approx(np.square(counts).sum() / len(Z))
    for points in (Z, in_order):
        assert near_pairs.crowding(points, Z.min(axis=0), 0.05, 1000) == pytest.approx(exact, rel=0.15)


def test_factors_of_quick_kernels_need_no_tables(monkeypatch):
    made, tables = [], exact._tables
    monkeypatch.setattr(exact, "_tables", lambda radial: made.append(radial) or tables(radial))
    gc.NCTSNE(perplexity=20, max_iter=5, random_state=0).fit(RNG.normal(size=(250, 5)))
    assert not made
