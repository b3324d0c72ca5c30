"""Networks: values against scikit-learn's, gradients against differences, linear autoencoders against PCA."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor

import graphcouple as gc
from graphcouple.couplings import CodingError, Network, OfNetwork, weight_decay
from tests.reference import numerical_gradient, relative_error

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4)) @ RNG.normal(size=(4, 6)) + 3.0
SMALL = {"hidden_layer_sizes": (5, 3), "solver": "lbfgs", "max_iter": 30}


def network_of(activation="tanh", Z=X[:, :2], points=X):
    return Network.like(MLPRegressor(activation=activation, **SMALL), points, Z, seed=0)


@pytest.mark.filterwarnings("ignore:lbfgs failed to converge")
@pytest.mark.parametrize("activation", ["identity", "logistic", "relu", "tanh"])
def test_places_are_those_of_scikit_learn(activation):
    Z = X[:, :2] - X[:, :2].mean(axis=0)
    theirs = MLPRegressor(activation=activation, random_state=0, **SMALL)
    # The regression sees the rows in an order of its own.
    rows = np.random.default_rng(0).permutation(60)
    theirs.fit(((X - X.mean(axis=0)) / (X - X.mean(axis=0)).std())[rows], Z[rows])
    network = network_of(activation, Z)
    np.testing.assert_allclose(network(X), theirs.predict(network.standardized(X)), atol=1e-6)
    np.testing.assert_allclose(network(sp.csr_array(X)), network(X), atol=1e-10)


@pytest.mark.parametrize("activation", ["logistic", "relu", "tanh"])
def test_gradients_in_parameters_and_points(activation, monkeypatch):
    monkeypatch.setattr("graphcouple.couplings.network._ROWS", 25)
    network = network_of(activation)
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8)).posterior(X)
    inner, points = gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E")), network.standardized(X)
    objective, theta = OfNetwork(inner, network, points), network.parameters
    assert objective.value(theta) == pytest.approx(inner.value(network(X)), rel=1e-12)
    assert relative_error(objective.gradient(theta), numerical_gradient(objective.value, theta)) < 1e-5
    assert objective.exaggerated(2.0).value(theta) == pytest.approx(inner.exaggerated(2.0).value(network(X)), rel=1e-12)
    in_points = network.pulled(network.forward(points)[1], inner.gradient(network(X)), to_points=True)[1]
    along = numerical_gradient(lambda P: inner.value(network.places(P)), points)
    assert relative_error(in_points, along) < 1e-5
    weights = sum(float(np.square(W).sum()) for W in network.weights)
    assert weight_decay(network).value(theta) == pytest.approx(weights, rel=1e-12)


def test_the_gradient_of_the_coding_error():
    points = network_of().standardized(X)
    encoder, decoder = network_of(), network_of(Z=points, points=X[:, :2])
    error = CodingError(points, encoder, decoder, beta=0.3)
    theta = np.concatenate([encoder.parameters, decoder.parameters])
    codes = encoder.places(points)
    wanted = np.square(points - decoder.places(codes)).sum() + 0.3 * np.square(codes).sum()
    assert error.value(theta) == pytest.approx(wanted, rel=1e-12)
    assert relative_error(error.gradient(theta), numerical_gradient(error.value, theta)) < 1e-5


def test_a_network_reaches_the_loss_of_the_plain_map(tmp_path):
    digits = gc.datasets.load("digits")[0][:400]
    plain = gc.TSNE(perplexity=20, random_state=0).fit(digits)
    curved = gc.ParametricCoupling(gc.TSNE(perplexity=20), features="network", random_state=0).fit(digits)
    assert curved.loss_ < plain.loss_ + 0.02 * len(digits)
    objective = gc.CrossEntropy(curved.posterior_, curved.sentence.latent)
    assert curved.loss_ == pytest.approx(objective.value(curved.embedding_), rel=1e-4)
    np.testing.assert_array_equal(curved.transform(digits), curved.embedding_)
    # Both descents are told: the plain one, and then the network's, with its decay and the bound on the size.
    np.testing.assert_array_equal(curved.start_losses_, plain.start_losses_)
    two = len(plain.loss_history_)
    np.testing.assert_array_equal(curved.loss_history_[:two], plain.loss_history_)
    np.testing.assert_array_equal(curved.loss_iterations_[:two], plain.loss_iterations_)
    assert curved.loss_iterations_[two] == plain.n_iter_
    assert curved.loss_iterations_[-1] == curved.n_iter_ > plain.n_iter_
    network = curved.estimator_._function
    added = 0.5e-4 * weight_decay(network).value(network.parameters)
    added += gc.Descent().bound(objective).value(curved.embedding_)
    assert curved.loss_history_[two:].min() == pytest.approx(curved.loss_ + added, rel=1e-6)
    curved.save(tmp_path / "network")
    np.testing.assert_array_equal(gc.load(tmp_path / "network").transform(digits[:9]), curved.transform(digits[:9]))
    with pytest.raises(AttributeError, match="no weight for each feature"):
        _ = curved.components_


@pytest.mark.filterwarnings("ignore:the network's loss is")
def test_networks_of_ones_own_and_their_limits():
    seen = []
    options = {"perplexity": 8, "max_iter": 20, "random_state": 0}
    watched = gc.TSNE(callback=lambda iteration, loss, Z: seen.append(Z.shape), **options)
    own = MLPRegressor(activation="relu", **SMALL)
    first, again = (gc.ParametricCoupling(watched, features=own, n_jobs=jobs).fit(X) for jobs in (1, 2))
    np.testing.assert_array_equal(first.embedding_, again.embedding_)
    assert set(seen) == {(60, 2)}
    assert [W.shape for W in first.estimator_._function.weights] == [(6, 5), (5, 3), (3, 2)]
    line = gc.ParametricCoupling(gc.TSNE(n_components=1, **options), features="network").fit(X)
    assert line.transform(X[:3]).shape == (3, 1)
    for features in (MLPRegressor(loss="poisson"), KNeighborsRegressor()):
        with pytest.raises(ValueError, match="must be a transformer, or an MLPRegressor"):
            gc.ParametricCoupling(gc.TSNE(**options), features=features).fit(X)


@pytest.mark.filterwarnings("ignore")
def test_a_stop_in_the_plain_run_ends_the_network_too():
    seen = []

    def stopped_at(last, **options):
        seen.clear()
        watched = gc.TSNE(perplexity=8, random_state=0, **options, callback=lambda i, *_: seen.append(i) or i == last)
        return gc.ParametricCoupling(watched, features="network").fit(X)

    def interrupt(i, *_):
        seen.append(i)
        if i == 30:
            raise KeyboardInterrupt

    # The second run counts on where the plain one ends, at iteration 40.
    whole = stopped_at(None, max_iter=40)
    assert seen[: seen.index(40) + 1] == [0, 10, 20, 30, 40]
    assert seen[seen.index(40) + 1 :][:3] == [40, 50, 60]
    assert whole.n_iter_ == seen[-1]
    later = stopped_at(60, max_iter=40)
    assert later.n_iter_ == seen[-1] == 60
    early = stopped_at(30, max_iter=40)
    assert seen == [0, 10, 20, 30]
    assert (early.n_iter_, early.stop_reason_) == (30, "stopped by the callback at iteration 30")
    seen.clear()
    method = gc.TSNE(perplexity=8, random_state=0, max_iter=40, callback=interrupt, on_interrupt="return")
    again = gc.ParametricCoupling(method, features="network").fit(X)
    assert seen == [0, 10, 20, 30]
    np.testing.assert_array_equal(again.embedding_, early.embedding_)
    # It is the regression to the plain map where that was stopped.
    plain = gc.TSNE(perplexity=8, random_state=0, max_iter=40, callback=lambda i, *_: i == 30).fit(X)
    far = np.square(early.embedding_ - plain.embedding_).sum() / np.square(plain.embedding_).sum()
    assert far < 0.01
    np.testing.assert_array_equal(early.transform(X), early.embedding_)
    objective = gc.CrossEntropy(early.posterior_, early.sentence.latent)
    assert early.loss_ == pytest.approx(objective.value(early.embedding_), rel=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_without_hidden_layers_an_autoencoder_is_linear(alpha):
    points = (X - X.mean(axis=0)) / (X - X.mean(axis=0)).std()
    exact = gc.LinearAutoencoder(2, alpha=alpha).fit(points)
    trained = gc.Autoencoder(2, hidden_layer_sizes=(), alpha=alpha, random_state=0).fit(points)
    assert exact.loss_ <= trained.loss_ * (1.0 + 1e-9)
    assert trained.loss_ == pytest.approx(exact.loss_, rel=1e-3)
    again = trained.inverse_transform(trained.transform(points))
    assert trained.reconstruction_error_ == pytest.approx(float(np.square(points - again).sum()), rel=1e-9)


def test_transformers_that_predict_too_are_features():
    means = KMeans(9, n_init=1, random_state=0)
    of_means = gc.ParametricCoupling(gc.TSNE(perplexity=8, max_iter=20), features=means, random_state=0).fit(X)
    assert of_means.components_.shape == (2, 9)


@pytest.mark.filterwarnings("ignore:the embedding has not settled", "ignore:.*although their rows differ")
def test_a_network_that_cannot_follow_the_map_says_so():
    narrow = MLPRegressor(hidden_layer_sizes=(2,), activation="tanh", solver="lbfgs", random_state=0)
    with pytest.warns(UserWarning, match=r"the network's loss is \d\.\d\d nats a point above"):
        curved = gc.ParametricCoupling(gc.TSNE(perplexity=8), features=narrow, random_state=0).fit(X)
    # It is still better than regression to the plain map.
    regressed = Network.like(narrow, X, gc.TSNE(perplexity=8, random_state=0).fit_transform(X), seed=0)
    objective = gc.CrossEntropy(curved.posterior_, curved.sentence.latent)
    assert curved.loss_ < objective.value(regressed(X)) - 0.02 * len(X)


def test_curves_are_coded_by_one_number():
    angle = RNG.uniform(0.0, 4.0, size=200)
    arc = np.stack([np.cos(angle), np.sin(angle), 0.3 * angle], axis=1)
    curved = gc.Autoencoder(1, hidden_layer_sizes=(20,), random_state=0).fit(arc)
    assert curved.reconstruction_error_ < 0.02 * gc.LinearAutoencoder(1).fit(arc).reconstruction_error_
    held = gc.Autoencoder(1, hidden_layer_sizes=(20,), beta=5.0, max_iter=200, random_state=0).fit(arc)
    assert held.embedding_.std() < 0.5 * curved.embedding_.std()
    with pytest.raises(ValueError, match="1 columns"):
        curved.inverse_transform(np.zeros((2, 2)))


def test_functions_place_a_row_alike_in_any_batch():
    X = np.random.default_rng(0).normal(size=(60, 5))
    new = np.random.default_rng(1).normal(size=(9, 5))
    network, linear = (
        gc.ParametricCoupling(gc.TSNE(perplexity=8, max_iter=10), features=features, random_state=0).fit(X)
        for features in ("network", "linear")
    )
    coder, plain = gc.Autoencoder(max_iter=5, random_state=0).fit(X), gc.LinearAutoencoder().fit(X)
    functions = [fitted.transform for fitted in (network, linear, coder)]
    codes = [fitted.inverse_transform for fitted in (coder, plain, gc.PrecisionCoupling().fit(X))]
    for function, rows in [(each, new) for each in functions] + [(each, new[:, :2]) for each in codes]:
        np.testing.assert_array_equal(np.concatenate([function(row[None]) for row in rows]), function(rows))
        np.testing.assert_array_equal(function(rows[::-1])[::-1], function(rows))
