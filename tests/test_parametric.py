"""Maps that are functions of the points, against scipy's minimiser over the weights."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures

import graphcouple as gc
from graphcouple.couplings import FeatureBasis, OfFeatures
from tests.reference import numerical_gradient, relative_error

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) @ RNG.normal(size=(4, 6)) + 3.0
CURVED = PolynomialFeatures(2, include_bias=False)


@pytest.mark.parametrize("features", [None, CURVED], ids=["linear", "curved"])
def test_the_basis_is_orthogonal_and_spans_the_features(features):
    basis = FeatureBasis.of(X, features)
    phi = X if features is None else CURVED.fit_transform(X)
    rank = np.linalg.matrix_rank(phi - phi.mean(axis=0))
    assert basis.values.shape == (60, rank)
    np.testing.assert_allclose(basis.values.T @ basis.values, 60.0 * np.eye(rank), atol=1e-6)
    theta = RNG.normal(size=(rank, 2))
    np.testing.assert_allclose(basis.function(theta)(X), basis.values @ theta, atol=1e-7)
    np.testing.assert_allclose(basis.coefficients(basis.values @ theta), theta, atol=1e-7)


def test_the_gradient_in_the_coefficients():
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8)).posterior(X)
    basis = FeatureBasis.of(X)
    inner = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E"))
    objective, theta = OfFeatures(inner, basis.values), RNG.normal(size=(4, 2))
    assert objective.value(theta) == inner.value(basis.values @ theta)
    assert relative_error(objective.gradient(theta), numerical_gradient(objective.value, theta)) < 1e-6
    twice = objective.exaggerated(2.0)
    assert twice.value(theta) == inner.exaggerated(2.0).value(basis.values @ theta)


@pytest.mark.parametrize("method", [gc.TSNE(perplexity=8), gc.SNE(perplexity=8)], ids=["t-SNE", "SNE"])
def test_no_weights_have_a_lower_loss(method):
    linear = gc.ParametricCoupling(method, random_state=0).fit(X)
    objective = gc.CrossEntropy(linear.posterior_, linear.sentence.latent)

    def loss(flat):
        value, gradient = objective.value_and_grad(X @ flat.reshape(6, 2))
        return value, (X.T @ gradient).ravel()

    ends = [minimize(loss, RNG.normal(size=12), jac=True, method="BFGS", options={"maxiter": 2000}) for _ in range(4)]
    assert linear.loss_ < min(end.fun for end in ends) + 1e-3 * abs(min(end.fun for end in ends))
    np.testing.assert_allclose(linear.transform(X), linear.embedding_, atol=1e-9)
    new = RNG.normal(size=(5, 6))
    np.testing.assert_allclose(linear.transform(new), (new - X.mean(axis=0)) @ linear.components_.T, atol=1e-9)


def test_features_of_a_transformer_terms_and_other_inputs(tmp_path):
    options = {"perplexity": 8, "max_iter": 40, "random_state": 0}
    features = Nystroem(n_components=12, random_state=0)
    curved = gc.ParametricCoupling(gc.TSNE(terms=[gc.LargeScale()], **options), features=features)
    few = curved.fit(X)
    assert few.components_.shape == (2, 12)
    np.testing.assert_allclose(few.transform(X), few.embedding_, atol=1e-6)
    # Features without a seed take the estimator's.
    drawn = [gc.ParametricCoupling(gc.TSNE(**options), features=Nystroem(n_components=12)).fit(X) for _ in range(2)]
    assert drawn[0].loss_ == drawn[1].loss_ != few.loss_
    plain = gc.ParametricCoupling(gc.TSNE(**options)).fit(X)
    sparse = gc.ParametricCoupling(gc.TSNE(**options)).fit(sp.csr_matrix(X))
    assert sparse.loss_ == pytest.approx(plain.loss_, rel=1e-3)
    single = gc.ParametricCoupling(gc.TSNE(**options)).fit(X.astype(np.float32))
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    some = gc.ParametricCoupling(gc.TSNE(n_landmarks=30, **options)).fit(X)
    np.testing.assert_allclose(some.transform(X), some.embedding_, atol=1e-9)
    plain.save(tmp_path / "linear")
    np.testing.assert_array_equal(gc.load(tmp_path / "linear").transform(X[:5]), plain.transform(X[:5]))
    seen = []
    watched = gc.TSNE(callback=lambda iteration, loss, Z: seen.append(Z.shape), **options)
    gc.ParametricCoupling(watched).fit(X)
    assert set(seen) == {(60, 2)}


def test_what_no_function_can_do_says_so():
    options = {"perplexity": 8, "max_iter": 20, "random_state": 0}
    linear = gc.ParametricCoupling(gc.TSNE(**options)).fit(X)
    by_distance = gc.ParametricCoupling(gc.TSNE(metric="precomputed", **options))
    batches = gc.GraphCoupling(**gc.TSNE(**options).sentence.replace(optimizer=gc.MiniBatches(batch_size=30)))
    level = gc.ParametricCoupling(gc.TSNE(**options), features=PolynomialFeatures(0))
    log = gc.ParametricCoupling(gc.TSNE(**options), features=FunctionTransformer(np.log))
    flat = gc.ParametricCoupling(gc.TSNE(**options), features=FunctionTransformer(lambda X: X[:, 0]))
    fitted, zero = clone(log).fit(np.abs(X)), np.abs(X) * (np.arange(60) != 7)[:, None]
    for call, match in [
        (lambda: flat.fit(X), r"must have shape \(60, n_features\), got \(60,\)"),
        (lambda: log.fit(zero), "hold NaN or infinity in row 7"),
        (lambda: fitted.transform(zero[5:]), "features=FunctionTransformer.* hold NaN or infinity in row 2"),
        (lambda: linear.update(X), "a function of its points, which update would not keep"),
        (linear.uncertainty, "does not support maps by `features`"),
        (lambda: linear.transform(X, return_loss=True), "only places by the law have a loss"),
        (lambda: by_distance.fit(gc.laws.Hyperbolic().between(X)), "needs points"),
        (lambda: gc.ParametricCoupling(batches).fit(X), "MiniBatches moves points one by one"),
        (lambda: level.fit(X), "features of all rows are"),
        (lambda: gc.ParametricCoupling(features="quadratic").fit(X), "'features' parameter"),
    ]:
        with pytest.raises(ValueError, match=match), np.errstate(divide="ignore"):
            call()
    with pytest.warns(UserWarning, match="59 independent features of 60 points do not constrain the map"):
        gc.ParametricCoupling(gc.TSNE(**options), features=PolynomialFeatures(6)).fit(X)
    by_others = gc.ParametricCoupling(gc.TSNE(**options), features=PCA(2)).fit(X)
    with pytest.raises(
        TypeError, match=r"features=PCA\(n_components=2, random_state=\d+\) is fitted by another library"
    ):
        by_others.save("nowhere")
    places = pickle.loads(pickle.dumps(by_others)).transform(X[:3])
    np.testing.assert_array_equal(places, by_others.transform(X[:3]))


def test_units_and_constant_columns_change_nothing():
    narrow = X * np.array([1e5, 1.0, 1e-5, 1.0, 1.0, 1.0])
    with_constant = np.column_stack([narrow, np.full(60, 0.1)])
    for points in (narrow, with_constant):
        basis = FeatureBasis.of(points)
        assert basis.values.shape == (60, 4)
        # Both span the same maps.
        projected = basis.values @ basis.coefficients(FeatureBasis.of(X).values)
        np.testing.assert_allclose(projected, FeatureBasis.of(X).values, atol=1e-6)
    # Of six components, two are rounding errors.
    assert FeatureBasis.of(X, PCA()).values.shape == (60, 4)
