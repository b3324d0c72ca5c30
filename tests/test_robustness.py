"""Extreme scales, damaged files, shared memory: what a hostile day brings."""

import os
import subprocess
import sys
import warnings

import igraph
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import graphcouple as gc
from graphcouple.laws.priors.log_domain import isolated_terms
from graphcouple.summation import Exact
from tests.reference import KERNELS, dense, distances, fast_and_nightly, numerical_gradient, relative_error


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(60, 5))


def test_editing_what_a_posterior_hands_out_does_not_change_it(X):
    law = gc.GraphModel(gc.Gaussian(), "D", n_neighbors=10).posterior(X)
    W, entropy = law.sample(0), law.entropy()
    before = law.mean().toarray()
    for matrix in (law.mean(), law.sample(0)):
        matrix.data[::2] = 0
        matrix.eliminate_zeros()
        matrix.indices[:] = 0
    np.testing.assert_array_equal(law.mean().toarray(), before)
    assert law.entropy() == entropy
    assert np.isfinite(law.log_prob(W))


def test_editing_the_callers_matrix_does_not_change_the_posterior():
    matrix = sp.csr_array(([-1.0, -2.0, -3.0], ([0, 1, 2], [1, 2, 0])), shape=(3, 3))
    law = gc.UnitOutDegree().posterior(matrix)
    before = law.mean().toarray()
    matrix.indices[:] = [2, 0, 1]
    matrix.data[:] = 7.0
    np.testing.assert_array_equal(law.mean().toarray(), before)


@pytest.mark.parametrize("prior", ["D", "E"])
@pytest.mark.parametrize("kernel", [gc.Gaussian(), gc.Exponential()])
@pytest.mark.parametrize("scale", [30.0, 1e4, 1e6])
def test_underflowing_kernels_are_summed_in_the_log(X, prior, kernel, scale):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    objective = gc.CrossEntropy(posterior, gc.GraphModel(kernel, prior))
    Z = scale * X[:, :2]
    log_kernel = kernel.log(distances(Z) ** 2)
    np.fill_diagonal(log_kernel, -np.inf)
    partition = logsumexp(log_kernel, axis=1).sum() if prior == "D" else 60 * logsumexp(log_kernel)
    off = ~np.eye(60, dtype=bool)
    wanted = partition - (posterior.mean()[off] * log_kernel[off]).sum()
    value, gradient = objective.value_and_grad(Z)
    assert value == pytest.approx(wanted, rel=1e-11)
    assert np.isfinite(objective.kl_divergence(Z))
    numerical = numerical_gradient(objective.value, Z[:, :], h=1e-5 * scale) if scale < 100 else gradient
    assert relative_error(gradient, numerical) < 1e-5


class Coarse(Exact):
    """Exact sums that are said to be known to within `resolution` only."""

    def __init__(self, resolution):
        super().__init__()
        self.resolution = resolution


def in_the_log(kernel, Z):
    """Return log-partitions and gradients of priors D and E, in logarithms alone."""
    logs, gradient = isolated_terms(kernel, Z, np.arange(len(Z)), True, np.ones(len(Z)))
    return (float(logs.sum()), gradient), gc.FixedEdges()._in_the_log(kernel, Z, None, True)


class Blurred(Coarse):
    """Sums with an absolute error of the stated size."""

    def potential(self, Z, radial, charges=None, **wanted):
        potential, gradient = super().potential(Z, radial, charges, **wanted)
        return potential + 0.5 * self.resolution * np.cos(np.arange(len(Z))), gradient


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("prior", [gc.UnitOutDegree(), gc.FixedEdges()])
def test_sums_that_drown_in_their_error_are_exact(X, prior, weighted):
    """As far apart as this, Student kernels are 1e-6 and less, but by no means lost."""
    Z, weights = 1e3 * X[:, :2], np.ones(60) if weighted else None
    found, wanted = (
        prior.log_partition_and_grad(gc.Student(), Z, s, weights=weights) for s in (Blurred(1e-3), Exact())
    )
    assert found[0] == wanted[0]
    np.testing.assert_array_equal(found[1], wanted[1])


@pytest.mark.parametrize("kernel", fast_and_nightly(KERNELS))
def test_rows_that_are_lost_are_done_alone(X, kernel):
    Z = X[:, :2].copy()
    Z[3] += 20.0
    mass = kernel.value(distances(Z) ** 2)
    np.fill_diagonal(mass, 0.0)
    for share in (0.05, 0.2):
        coarse = Coarse(np.quantile(mass.sum(axis=1), share))
        exact, mixed = (gc.UnitOutDegree().log_partition_and_grad(kernel, Z, s) for s in (Exact(), coarse))
        assert mixed[0] == pytest.approx(exact[0], rel=1e-12)
        np.testing.assert_allclose(mixed[1], exact[1], rtol=1e-9, atol=1e-11 * np.abs(exact[1]).max())


@pytest.mark.parametrize("kernel", fast_and_nightly(KERNELS))
def test_the_log_domain_bears_coincident_and_close_points(X, kernel):
    Z = X[:, :2].copy()
    Z[5], Z[7] = Z[6], Z[8] + 1e-9
    for prior, slow in zip((gc.UnitOutDegree(), gc.FixedEdges()), in_the_log(kernel, Z), strict=True):
        value, gradient = prior.log_partition_and_grad(kernel, Z, Exact())
        assert slow[0] == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(slow[1], gradient, rtol=1e-6, atol=1e-9 * np.abs(gradient).max())


def test_the_log_domain_continues_the_fast_sums(X):
    """On either side of the threshold the two ways agree."""
    for prior, slow in zip((gc.UnitOutDegree(), gc.FixedEdges()), in_the_log(gc.Gaussian(), X[:, :2]), strict=True):
        fast = prior.log_partition_and_grad(gc.Gaussian(), X[:, :2], Exact())
        assert fast[0] == pytest.approx(slow[0], rel=1e-12)
        np.testing.assert_allclose(fast[1], slow[1], rtol=1e-9, atol=1e-12)


@pytest.mark.filterwarnings("ignore:the start is used as given")
def test_an_embedding_can_start_from_far_apart(X):
    estimator = gc.SNE(perplexity=10, init=1000.0 * X[:, :2], max_iter=100).fit(X)
    assert np.isfinite(estimator.embedding_).all()
    assert estimator.loss_ < estimator.loss_history_[0]


def test_weighted_sums_of_objectives_take_integers_and_lists(X):
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)).posterior(X)
    objective = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E"))
    Z = np.round(3 * X[:, :2]).astype(int)
    wanted = objective.gradient(Z.astype(float))
    for given in (Z, Z.tolist()):
        np.testing.assert_allclose((1.0 * objective).value_and_grad(given)[1], wanted, rtol=1e-9)
        np.testing.assert_allclose((1.0 * objective).gradient(given), wanted, rtol=1e-9)


def test_neighbors_far_from_the_origin_are_those_at_the_origin(X):
    near = dense(gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), n_neighbors=20).posterior(X).mean())
    for offset in (1e4, 1e8):
        far = dense(gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), n_neighbors=20).posterior(X + offset).mean())
        np.testing.assert_allclose(far, near, atol=1e-6)


def test_sparse_neighbors_far_from_the_origin_are_those_of_literal_distances(rng, monkeypatch):
    from graphcouple.neighbors import nearest_neighbors, neighbors_among

    X = np.column_stack([1.6e9 + rng.uniform(0, 100, 80), rng.normal(size=(80, 3)) * (rng.random((80, 3)) < 0.5)])
    sq_dist = np.square(X[:, None] - X[None]).sum(axis=2)
    wanted = np.sort(sq_dist, axis=1)
    for search in ("exact", "approximate"):
        support, found = nearest_neighbors(sp.csr_array(X), 5, search=search)
        np.testing.assert_allclose(np.sort(found.reshape(80, 5)), wanted[:, 1:6], rtol=1e-12)
        np.testing.assert_allclose(found, sq_dist[support.rows, support.indices], rtol=1e-12)
    np.testing.assert_allclose(neighbors_among(sp.csr_array(X[:4]), sp.csr_array(X), 1)[1], 0.0)
    monkeypatch.setattr("graphcouple.neighbors.points.DENSE_ENTRIES", 100)
    with pytest.warns(UserWarning, match=r"far from 0, most in column 0, .* subtract the column's mean"):
        nearest_neighbors(sp.csr_array(X), 5)


def test_duplicate_entries_of_sparse_points_are_summed(rng):
    from graphcouple.neighbors import nearest_neighbors

    X = rng.normal(size=(60, 4))
    halves = np.repeat(X.ravel() / 2, 2), np.tile(np.repeat(np.arange(4), 2), 60), np.arange(0, 481, 8)
    doubled = sp.csr_array(halves, shape=X.shape)
    support, sq_dist = nearest_neighbors(doubled, 3)
    wanted = np.square(X[:, None] - X[None]).sum(axis=2)
    np.testing.assert_allclose(np.sort(sq_dist.reshape(60, 3)), np.sort(wanted, axis=1)[:, 1:4])
    np.testing.assert_allclose(sq_dist, wanted[support.rows, support.indices])
    assert doubled.nnz == 480


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e30, 1e100])
@pytest.mark.parametrize(
    "model",
    [
        gc.GraphModel(gc.Odds(gc.Exponential()), "B", gc.LocalConnectivity(10), n_neighbors=9),
        gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)),
        gc.GraphModel(gc.Gaussian(), "B", gc.SelfTuning(5)),
    ],
)
def test_bandwidths_do_not_depend_on_the_units(X, model, scale):
    np.testing.assert_allclose(dense(model.posterior(X * scale).mean()), dense(model.posterior(X).mean()), rtol=1e-6)


@pytest.mark.parametrize(("scale", "message"), [(1e160, "overflow"), (1e-165, "underflows")])
def test_scales_whose_squares_are_lost_are_refused(X, scale, message):
    for model in (gc.GraphModel(gc.Gaussian(), "B"), gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5))):
        with pytest.raises(ValueError, match=message):
            model.posterior(X * scale)


def test_perplexity_counts_only_the_edges_a_prior_allows(X):
    allowed = np.random.default_rng(1).random((60, 60)) < 0.7
    model = gc.GraphModel(gc.Gaussian(), gc.UnitOutDegree(allowed.astype(int)), gc.Perplexity(8), n_neighbors=40)
    law = model.posterior(X)
    surprise = -law.edge_means * np.log(law.edge_means)
    np.testing.assert_allclose(np.add.reduceat(surprise, law.support.indptr[:-1]), np.log(8), atol=1e-5)


@pytest.mark.parametrize("bandwidth", [gc.Perplexity(3), gc.LocalConnectivity(4), gc.SelfTuning(2)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0])
def test_bandwidths_refuse_what_is_no_distance(bandwidth, value):
    matrix = np.random.default_rng(0).uniform(1, 2, size=(8, 8))
    matrix[1, 4] = value
    with pytest.raises(ValueError, match="sq_dist_graph"):
        bandwidth.fit(matrix)
    with pytest.raises(ValueError, match="sq_dist_graph"):
        bandwidth.fit(sp.csr_array((8, 8)))


def test_complex_numbers_and_dates_are_refused(X):
    model = gc.GraphModel(gc.Gaussian(), "D")
    for bad in (X + 1j, sp.csr_matrix(X + 1j), X.astype("datetime64[s]")):
        with pytest.raises(TypeError, match="X must"):
            model.posterior(bad)
    days = X.astype("datetime64[s]")
    for bad in (days, days - days[0], pd.DataFrame(days)):
        with pytest.raises(TypeError, match="X has dates, durations or other objects"):
            gc.PrecisionCoupling().fit(bad)
    with pytest.raises(TypeError, match="log_kernel"):
        gc.Binary().posterior(np.ones((3, 3)) * 1j)
    with pytest.raises(TypeError, match="edge_prior"):
        gc.Binary(sp.csr_array(np.ones((3, 3)) * 1j))


def test_igraph_weights_that_are_no_numbers_are_refused():
    graph = igraph.Graph([(0, 1), (1, 2)])
    graph.es["weight"] = ["a", "b"]
    with pytest.raises(TypeError, match="edge_prior"):
        gc.Binary(graph)


def test_a_diverging_learning_rate_is_reported(X):
    with pytest.raises(FloatingPointError, match="iteration"):
        gc.TSNE(perplexity=5, learning_rate=1e300, random_state=0).fit(X)


def test_a_kernel_flat_at_zero_leaves_its_start(X):
    latent = gc.GraphModel(gc.RationalPower(1.0, 2.0), "E")
    estimator = gc.GraphCoupling(gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)), latent, random_state=0).fit(X)
    assert estimator.embedding_.std() > 0.1
    assert estimator.loss_ < 0.97 * estimator.loss_history_[0]


@pytest.mark.parametrize(("least", "unit"), [(0.0, 1e-3), (0.99, 100.0), (0.1, 1e-6), (0.5, 1e9)])
def test_a_fit_does_not_depend_on_the_unit(least, unit):
    usual, scaled = gc.RationalPower.from_min_dist(least, 1.0), gc.RationalPower.from_min_dist(least * unit, unit)
    dist = np.linspace(0.01, 3.0, 50)
    np.testing.assert_allclose(scaled.value((dist * unit) ** 2), usual.value(dist**2), rtol=1e-9)


@pytest.mark.parametrize(
    "call",
    [
        lambda X: gc.TSNE(perplexity=50, max_iter=20, random_state=0).fit_transform(X),
        lambda X: make_pipeline(StandardScaler(), gc.UMAP(n_neighbors=5, max_iter=5)).fit(X, np.arange(40) % 2),
        lambda X: gc.TwoScaleCoupling(gc.TSNE(perplexity=50, max_iter=20), random_state=0).fit(X),
        lambda X: gc.AttractionRepulsionPCA(max_iter=5).fit(X),
        lambda X: gc.PHATE(perplexity=60).set_output(transform="pandas").fit_transform(X),
        lambda X: gc.GraphModel("gaussian", "D", gc.Perplexity(50)).posterior(X),
    ],
)
def test_warnings_point_at_the_line_of_the_user(rng, call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(rng.normal(size=(40, 3)))
    assert caught
    assert {each.filename for each in caught} == {__file__}


def test_a_fit_that_fails_says_which(monkeypatch):
    def fails(*arguments):
        raise RuntimeError("Optimal parameters not found")

    monkeypatch.setattr("scipy.optimize.curve_fit", fails)
    with pytest.raises(ValueError, match=r"no rational power kernel fits min_dist=0.1, spread=1.0"):
        gc.RationalPower.from_min_dist(0.1, 1.0)


@pytest.mark.parametrize("folder", ["read-only", pytest.param("missing/below/a-file", marks=pytest.mark.nightly)])
def test_a_cache_folder_that_cannot_be_written_is_survived(tmp_path, folder):
    blocked = tmp_path / "a-file"
    blocked.write_text("")
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(blocked / folder), "HOME": str(blocked)}
    code = "import numpy as np; from graphcouple._numba.mirror import count_reverses; "
    code += "count_reverses(np.array([0, 2]), np.array([True, True]), np.zeros(3))"
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True)


def test_a_byte_order_mark_and_quoted_headers_lose_no_row(tmp_path, monkeypatch):
    from graphcouple.datasets._files import read_points

    X = np.random.default_rng(0).normal(size=(20, 3))
    rows = "\n".join(",".join(f"{v:.17g}" for v in row) for row in X)
    (tmp_path / "mark.csv").write_text("\ufeff" + rows, encoding="utf-8")
    (tmp_path / "quoted.csv").write_text('"a,b",c,d\n' + rows)
    for name in ("mark.csv", "quoted.csv"):
        np.testing.assert_array_equal(read_points(tmp_path / name, None)[0], X)


def test_half_precision_is_fitted_in_single_precision(rng):
    X = rng.normal(size=(40, 3)).astype(np.float16)
    for points in (X, pd.DataFrame(X)):
        assert gc.TSNE(max_iter=5, random_state=0).fit_transform(points).dtype == np.float32


def test_what_new_users_pass_is_named(rng):
    X = rng.normal(size=(40, 3))
    for call, error, match in [
        (lambda: gc.TSNE(callback=lambda i, loss, Z: Z).fit(X), TypeError, "callback must return whether to stop"),
        (lambda: gc.AttractionRepulsionPCA().fit(1e20 * X), ValueError, "rescale X"),
        (lambda: gc.GraphModel("gaussian", gc.UnitOutDegree), TypeError, r"write UnitOutDegree\(\)"),
        (lambda: gc.GraphModel("gaussian", "D", 30), TypeError, r"such as Perplexity\(30\)"),
    ]:
        with pytest.raises(error, match=match):
            call()


def test_a_frame_may_have_any_index(rng):
    X = rng.normal(size=(40, 3))
    frame = pd.DataFrame(X, columns=list("abc"), index=rng.permutation(40) + 0.5)
    np.testing.assert_array_equal(gc.PrecisionCoupling().fit_transform(frame), gc.PrecisionCoupling().fit_transform(X))
