from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import wishart
from sklearn.decomposition import PCA

import graphcouple as gc
from tests.reference import fast_and_nightly, numerical_gradient, relative_error

N, P, Q = 12, 5, 3


@pytest.fixture
def X(rng):
    X = rng.normal(size=(N, P)) * np.array([5.0, 3.0, 2.0, 1.0, 0.5])
    return X - X.mean(0)


def literal_J(X, Z, nu_x, nu_z):
    n, p, q = len(X), X.shape[1], Z.shape[1]
    inverse = np.linalg.inv(np.eye(n) + X @ X.T)
    log_det = np.linalg.slogdet(np.eye(n) + Z @ Z.T)[1]
    return 0.5 * (nu_x + p) * np.trace(Z.T @ inverse @ Z) - 0.5 * (nu_z + q) * log_det


@pytest.mark.parametrize("shape", [(12, 5), (8, 5), (6, 20), (9, 9)])
@pytest.mark.parametrize("q", [1, 3, 7])
def test_objective_is_the_literal_one_and_gradient_its_derivative(shape, q, rng):
    X, Z = rng.normal(size=shape), rng.normal(size=(shape[0], q))
    J = gc.PrecisionCrossEntropy(X, nu_x=shape[0] + 2.0, nu_z=shape[0] + 1.5)
    assert J.value(Z) == pytest.approx(literal_J(X, Z, shape[0] + 2.0, shape[0] + 1.5), rel=1e-11)
    assert relative_error(J.gradient(Z), numerical_gradient(J.value, Z)) < 1e-7


def test_columns_that_are_nearly_parallel_and_huge_keep_both_directions():
    # Exact fractions tell; in floats, YᵀY would hold the longer direction alone.
    Y = np.outer(np.arange(1.0, 7.0), [2.0**30, 2.0**30]) + np.array([[0, 0], [0, 1], [3, 0], [0, -2], [0, 0], [0, 4]])
    X = np.zeros((6, 2))
    exact = np.array([[Fraction(value) for value in row] for row in Y])
    (a, b), (_, c) = exact.T @ exact + np.eye(2, dtype=int)
    det = a * c - b * b
    push = (exact @ np.array([[c, -b], [-b, a]]) / det).astype(float)
    J = gc.PrecisionCrossEntropy(X, nu_x=6.0, nu_z=6.0)
    J._conditional = lambda Y: (0.0, np.zeros_like(Y))
    value, gradient = J.value_and_grad(Y)
    assert value == pytest.approx(-4.0 * np.log(float(det)), rel=1e-8)
    np.testing.assert_allclose(-gradient / 8.0, push, atol=1e-6 * np.abs(push).max())


def _nus(gamma, n=N, p=P, q=Q):
    """ν_X, ν_Z ≥ n with (ν_Z + q)/(ν_X + p) = γ."""
    if gamma <= (n + q) / (n + p):
        return (n + q) / gamma - p, float(n)
    return float(n), gamma * (n + p) - q


@pytest.mark.filterwarnings("ignore:the start is used as given")
@pytest.mark.parametrize("gamma", [1.0, 0.3, 0.8, 1.5])
@pytest.mark.parametrize("seed", fast_and_nightly({str(seed): seed for seed in range(10)}, fast=("0", "1", "2")))
def test_descent_from_random_starts_reaches_the_closed_form(gamma, seed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, P)) * np.array([3.0, 1.6, 0.9, 0.5, 0.2])
    X -= X.mean(0)
    nu_x, nu_z = _nus(gamma)
    start = np.random.default_rng(seed).normal(size=(N, Q))
    found = gc.solve(
        gc.PrecisionCrossEntropy(X, nu_x, nu_z),
        start,
        gc.LBFGS(),
        max_iter=20_000,
        tol=1e-10,
        patience=20_000,
        settled_within=0.0,
    )
    estimator = gc.PrecisionCoupling(Q, nu_x=nu_x, nu_z=nu_z).fit(X)
    assert estimator.gamma_ == pytest.approx(gamma, rel=1e-12)
    spectrum = np.linalg.svd(found.Z, compute_uv=False) ** 2
    np.testing.assert_allclose(spectrum, estimator.eigenvalues_, atol=1e-6 * max(1.0, spectrum[0]))
    d = np.linalg.svd(X, compute_uv=False) ** 2
    kept = np.count_nonzero(d[:Q] > 1 / gamma - 1)
    assert np.count_nonzero(estimator.eigenvalues_ > 0) == kept
    assert np.count_nonzero(spectrum > 1e-5) == kept
    np.testing.assert_allclose(found.Z @ found.Z.T, estimator.embedding_ @ estimator.embedding_.T, atol=1e-4)


@pytest.mark.parametrize("shape", [(50, 8), (8, 50), (30, 30)])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("solver", ["auto", "arpack", "randomized"])
def test_gamma_one_is_pca_up_to_sign(shape, kind, solver, rng):
    X = rng.normal(size=shape) * (rng.random(shape) < 0.5) * 1.5 ** np.arange(shape[1], 0, -1)
    pca = PCA(3, svd_solver="full").fit(X)
    ours = gc.PrecisionCoupling(3, svd_solver=solver, random_state=0)
    if kind == "sparse" and solver == "randomized":
        with pytest.raises(TypeError, match=r"svd_solver='randomized' needs dense points.*use svd_solver='auto'"):
            ours.fit(sp.csr_matrix(X))
        return
    Z = ours.fit_transform(sp.csr_matrix(X) if kind == "sparse" else X)
    tolerance = 1e-3 if solver == "randomized" else 1e-6
    np.testing.assert_allclose(np.abs(Z), np.abs(pca.transform(X)), rtol=tolerance, atol=tolerance * np.abs(Z).max())
    new = rng.normal(size=(5, shape[1]))
    found = ours.transform(sp.csr_matrix(new) if kind == "sparse" else new)
    np.testing.assert_allclose(
        np.abs(found), np.abs(pca.transform(new)), rtol=tolerance, atol=tolerance * np.abs(Z).max()
    )
    np.testing.assert_allclose(ours.inverse_transform(Z), pca.inverse_transform(pca.transform(X)), atol=tolerance * 100)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("shape", [(20, 6), (6, 20)])
@pytest.mark.parametrize("n_components", [2, 6])
def test_without_centring_the_plain_svd_is_shrunk(kind, shape, n_components, rng):
    X = rng.normal(size=shape) + 3.0
    left, singular, _ = np.linalg.svd(X, full_matrices=False)
    n = shape[0]
    ours = gc.PrecisionCoupling(n_components, center=False, nu_x=5.0 * n, nu_z=float(n))
    Z = ours.fit_transform(sp.csr_matrix(X) if kind == "sparse" else X)
    gamma = (n + n_components) / (5 * n + shape[1])
    wanted = left[:, :n_components] * np.sqrt(np.maximum(gamma * (1 + singular[:n_components] ** 2) - 1, 0))
    np.testing.assert_allclose(np.abs(Z), np.abs(wanted), atol=1e-6)
    np.testing.assert_allclose(ours.transform(X), Z, atol=1e-6)


def test_transform_of_the_training_points_is_the_embedding_and_inverts(X):
    ours = gc.PrecisionCoupling(P, nu_x=3.0 * N, nu_z=2.5 * N).fit(X)
    np.testing.assert_allclose(ours.transform(X), ours.embedding_, atol=1e-12)
    assert (ours.eigenvalues_ > 0).all()
    np.testing.assert_allclose(ours.inverse_transform(ours.embedding_), X, atol=1e-10)


def test_auto_drops_the_components_that_shrink_away(X):
    d = np.linalg.svd(X, compute_uv=False) ** 2
    nu_x, nu_z = 40.0 * N, float(N)
    ours = gc.PrecisionCoupling("auto", nu_x=nu_x, nu_z=nu_z).fit(X)
    q = ours.n_components_
    assert ours.gamma_ == pytest.approx((nu_z + q) / (nu_x + P))
    assert (ours.eigenvalues_ > 0).all()
    assert q < P
    assert (nu_z + q + 1) / (nu_x + P) * (1 + d[q]) <= 1
    for solver in ("auto", "arpack"):
        assert gc.PrecisionCoupling("auto", svd_solver=solver).fit(X).n_components_ == P
    with pytest.warns(UserWarning, match="all components shrink to 0.*Raise nu_z"):
        gc.PrecisionCoupling("auto", nu_x=nu_x, nu_z=nu_z).fit(0.01 * X)


@pytest.mark.parametrize(("unit", "dtype"), [(1e-9, np.float64), (1e-100, np.float64), (1e-25, np.float32)])
def test_small_numbers_keep_all_components(X, unit, dtype):
    points = (unit * X).astype(dtype)
    small = gc.PrecisionCoupling("auto").fit(points)
    assert small.n_components_ == P
    assert small.embedding_.dtype == small.transform(points).dtype == dtype
    scores = PCA(svd_solver="full").fit_transform(points.astype(np.float64) / unit)
    np.testing.assert_allclose(np.abs(small.embedding_ / unit), np.abs(scores), atol=1e-5)


@pytest.mark.filterwarnings(r"ignore:all \d+ rows of X are equal")
def test_rank_deficient_data(rng):
    X = rng.normal(size=(20, 2)) @ rng.normal(size=(2, 6))
    for points in (X, np.repeat(X, 9, axis=0), np.repeat(X, 9, axis=0).astype(np.float32)):
        with pytest.warns(UserWarning, match="the points have only 2 of n_components=4 directions"):
            ours = gc.PrecisionCoupling(4).fit(points)
        np.testing.assert_allclose(ours.embedding_[:, 2:], 0.0, atol=30 * np.finfo(points.dtype).eps * np.abs(X).max())
    # A Gram matrix in single precision loses the second column, which is no rounding.
    gc.PrecisionCoupling(2).fit((rng.normal(size=(500, 2)) * [1.0, 1e-4]).astype(np.float32))
    assert gc.PrecisionCoupling("auto").fit(X).n_components_ == 2
    with pytest.raises(ValueError, match="exceeds the rank of X, 2"):
        gc.PrecisionCoupling(4, nu_z=60.0).fit(X)
    constant = gc.PrecisionCoupling(2).fit(np.ones((10, 3)))
    np.testing.assert_array_equal(constant.embedding_, 0.0)
    with np.errstate(divide="raise"):
        constant = gc.PrecisionCoupling(1, center=False, svd_solver="arpack").fit(np.ones((10, 3)))
    np.testing.assert_allclose(constant.embedding_**2, 3.0)
    for zeros, solver in ((np.zeros((10, 3)), "arpack"), (sp.csr_array((10, 3)), "auto")):
        nothing = gc.PrecisionCoupling(2, center=False, svd_solver=solver).fit(zeros)
        np.testing.assert_array_equal(nothing.singular_values_, 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("center", [True, False])
def test_the_rank_of_tall_data_is_seen_through_a_gram_matrix(dtype, center, rng):
    X = (rng.normal(size=(1000, 2)) @ rng.normal(size=(2, 6))).astype(dtype)
    assert gc.PrecisionCoupling("auto", center=center).fit(X).n_components_ == 2
    with pytest.raises(ValueError, match="exceeds the rank of X, 2"):
        gc.PrecisionCoupling(4, center=center, nu_z=2000.0).fit(X)


def test_the_full_decomposition_of_many_rows_keeps_short_components(rng):
    X = (rng.normal(size=(30_000, 3)) * [1.0, 0.004, 0.0003]).astype(np.float32)
    assert gc.PrecisionCoupling("auto").fit(X).n_components_ == 2
    far = np.vstack([rng.normal(size=(300, 4)), np.full((1, 4), 1e10)])
    assert gc.PrecisionCoupling("auto").fit(sp.csr_array(far)).n_components_ == 4


@pytest.mark.parametrize("center", [True, False])
def test_components_beside_a_far_outlier_are_kept(center, rng):
    X = np.vstack([rng.normal(size=(100, 4)) * [2.0, 1.5, 1.0, 0.5], [[1e5] * 4]]).astype(np.float32)
    exact = X.astype(np.float64) - center * X.astype(np.float64).mean(axis=0)
    found = gc.PrecisionCoupling("auto", center=center).fit(X).singular_values_
    np.testing.assert_allclose(found, np.linalg.svd(exact, compute_uv=False), rtol=0.03)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 6}, "n_components=6"),
        ({"nu_x": N - 1.0}, "nu_x"),
        ({"nu_z": N - 1.0}, "nu_z"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": "all"}, "n_components"),
    ],
)
def test_bad_parameters_are_refused(X, options, message):
    with pytest.raises(ValueError, match=message):
        gc.PrecisionCoupling(**options).fit(X)
    for name in ("nu_x", "nu_z"):
        with pytest.raises(ValueError, match=name):
            gc.PrecisionCrossEntropy(X, **{name: N - 0.5})


def test_wishart_law_against_scipy(X, rng):
    law = gc.PrecisionPosterior(X, dof=N + 1.5)
    scale = np.linalg.inv(np.eye(N) + X @ X.T)
    theirs = wishart(N + 1.5 + P, scale)
    for theta in (law.sample(0), np.eye(N)):
        assert law.log_prob(theta) == pytest.approx(float(theirs.logpdf(theta)), rel=1e-10)
    np.testing.assert_allclose(law.mean(), theirs.mean(), rtol=1e-9, atol=1e-12)
    assert law.entropy() == pytest.approx(float(theirs.entropy()), rel=1e-10)
    drawn = np.array([law.sample(seed) for seed in range(500)])
    assert (np.abs(drawn.mean(axis=0) - law.mean()) < 5.0 * drawn.std(axis=0) / np.sqrt(500)).all()
    assert law.log_prob(-np.eye(N)) == -np.inf
    for wrong in (np.eye(N) + np.triu(np.ones((N, N)), 1), np.full((N, N), np.nan)):
        with pytest.raises(ValueError, match="finite and symmetric"):
            law.log_prob(wrong)
    for dof in (N - 1, np.inf):
        with pytest.raises(ValueError, match="dof"):
            gc.PrecisionPosterior(X, dof=dof)
    assert gc.PrecisionPosterior(X[:1], dof=2.0).sample(0).shape == (1, 1)


@pytest.mark.parametrize("shape", [(3, 4), (4, 2)])
def test_wishart_laws_of_large_points_and_of_points_changed_later(rng, shape):
    X = rng.normal(size=shape)
    law = gc.PrecisionPosterior(X, 5.0)
    # In the basis of the singular vectors the scale is diagonal.
    left, values, _ = np.linalg.svd(1e8 * X)
    inverse = 1.0 / (1.0 + np.pad(values, (0, shape[0] - len(values))) ** 2)
    far, dof = gc.PrecisionPosterior(1e8 * X, 5.0), 5.0 + shape[1]
    np.testing.assert_allclose(far.mean(), dof * (left * inverse) @ left.T, rtol=1e-6)
    theirs = wishart(dof, np.eye(shape[0])).entropy() + 0.5 * (shape[0] + 1) * np.log(inverse).sum()
    assert far.entropy() == pytest.approx(theirs, abs=1e-7)
    if shape[0] <= shape[1]:
        assert np.isfinite(far.log_prob(far.sample(0)))
    else:
        with pytest.raises(ValueError, match="scale X down"):
            [far.sample(seed) for seed in range(4)]
    before = law.entropy()
    X *= 10.0
    assert law.entropy() == before


def test_cross_entropy_of_wishart_laws_by_sampling_and_as_the_objective(rng):
    X, Y, Z = rng.normal(size=(4, 2)), rng.normal(size=(4, 3)), rng.normal(size=(4, 3))
    given, first, second = gc.PrecisionPosterior(X, 5.0), gc.PrecisionPosterior(Y, 6.0), gc.PrecisionPosterior(Z, 6.0)
    drawn = wishart(7.0, np.linalg.inv(np.eye(4) + X @ X.T)).rvs(20_000, random_state=0)
    surprise = np.array([-first.log_prob(theta) for theta in drawn])
    assert abs(given.cross_entropy(first) - surprise.mean()) < 4 * surprise.std() / np.sqrt(len(drawn))
    J = gc.PrecisionCrossEntropy(X, nu_x=5.0, nu_z=6.0)
    difference = given.cross_entropy(first) - given.cross_entropy(second)
    assert difference == pytest.approx(J.value(Y) - J.value(Z), rel=1e-10)


def test_wishart_log_density_at_thousands_of_rows(rng):
    X = rng.normal(size=(1500, 20))
    law = gc.PrecisionPosterior(X, dof=1600)
    identity = law.log_prob(np.eye(1500))
    # At the identity the log-density is −½(n + tr XXᵀ) minus the normaliser, whose terms are classical.
    from scipy.special import multigammaln

    nu = 1620.0
    log_det = np.log1p(np.linalg.eigvalsh(X.T @ X)).sum()
    normaliser = 0.5 * nu * 1500 * np.log(2) + multigammaln(0.5 * nu, 1500) - 0.5 * nu * log_det
    assert identity == pytest.approx(-0.5 * (1500 + (X**2).sum()) - normaliser, rel=1e-12)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("shape", [(30, 5), (8, 20)])
def test_the_trace_is_exact_however_large_the_data(rng, shape, scale):
    X = scale * rng.normal(size=shape)
    left, values, _ = np.linalg.svd(X, full_matrices=False)
    Z = left[:, :2] * np.sqrt(1.0 + values[:2] ** 2)
    J = gc.PrecisionCrossEntropy(X)
    weight, n_x = J.gamma(2), shape[0] + shape[1]
    logs = 0.5 * weight * n_x * np.log(2.0 + values[:2] ** 2).sum()
    assert J.value(Z) == pytest.approx(0.5 * n_x * 2.0 - logs, rel=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_points_far_from_the_origin_keep_their_components(rng, offset, form):
    X = rng.normal(size=(120, 4))
    near, far = gc.PrecisionCoupling("auto").fit(X), gc.PrecisionCoupling("auto").fit(form(X + offset))
    np.testing.assert_allclose(far.embedding_, near.embedding_, atol=1e-15 * offset)
    np.testing.assert_allclose(far.transform(X[:9] + offset), far.embedding_[:9], atol=1e-15 * offset)
    np.testing.assert_allclose(far.mean_, near.mean_ + offset)
