"""Attraction that counts several times throughout, as part of the stated loss."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist, squareform
from sklearn.cross_decomposition import CCA

import graphcouple as gc
from tests.reference import dense, numerical_gradient, relative_error

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))


def _laws(prior):
    return gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8)).posterior(X), gc.GraphModel(gc.Student(), prior)


@pytest.mark.parametrize("prior", ["D", "E"])
def test_the_value_is_literal_and_the_gradient_its_derivative(prior):
    posterior, latent = _laws(prior)
    objective, Z = gc.CrossEntropy(posterior, latent, exaggeration=3.5), RNG.normal(size=(40, 2))
    k = 1.0 / (1.0 + cdist(Z, Z, "sqeuclidean"))
    off = ~np.eye(40, dtype=bool)
    partition = np.log((k * off).sum(axis=1)).sum() if prior == "D" else 40 * np.log(k[off].sum())
    assert objective.value(Z) == pytest.approx(
        partition - 3.5 * (dense(posterior.mean()) * np.log(k))[off].sum(), rel=1e-12
    )
    assert relative_error(objective.gradient(Z), numerical_gradient(objective.value, Z)) < 1e-6
    assert objective.kl_divergence(Z) == gc.CrossEntropy(posterior, latent).kl_divergence(Z)
    # Early exaggeration comes on top.
    assert objective.exaggerated(2.0).value(Z) == pytest.approx(
        gc.CrossEntropy(posterior, latent, exaggeration=7.0).value(Z)
    )


@pytest.mark.parametrize("weights", [None, np.repeat([1.0, 3.0], 20)])
@pytest.mark.parametrize("prior", ["D", "E"])
def test_the_bound_is_below_the_loss_of_kernels_above_1(prior, weights):
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8)).posterior(X, sample_weight=weights)
    plain = gc.CrossEntropy(law, gc.GraphModel(gc.Gaussian(), prior))
    for factor in (0.25, 1.0, 4.0):
        latent = gc.GraphModel(gc.kernels.ScaledKernel(gc.Gaussian(), np.log(factor)), prior)
        objective = gc.CrossEntropy(law, latent, exaggeration=3.0)
        # A factor of the kernel cancels but for the 3 − 1 more times that each of the n edges attracts.
        n_edges = 40.0 if weights is None else weights.sum()
        assert objective.lower_bound == pytest.approx(plain.lower_bound - 2.0 * n_edges * np.log(factor), rel=1e-9)
        for size in (0.0, 1e-3, 1.0):
            assert objective.lower_bound < objective.value(size * X[:, :2])
            divergences = [loss.kl_divergence(size * X[:, :2]) for loss in (objective, plain)]
            assert divergences[0] == pytest.approx(divergences[1], rel=1e-9)


def test_the_gradient_of_scikit_learn_on_exaggerated_affinities():
    from sklearn.manifold._t_sne import _kl_divergence

    posterior, latent = _laws("E")
    M, Z = dense(posterior.mean()), RNG.normal(size=(40, 2))
    P = squareform((M + M.T) / 80.0, checks=False)
    _, theirs = _kl_divergence(Z.ravel(), 4.0 * P, 1, 40, 2)
    ours = gc.CrossEntropy(posterior, latent, exaggeration=4.0).gradient(Z) / 40
    assert relative_error(ours, theirs.reshape(40, 2)) < 1e-5


def test_new_points_feel_the_exaggerated_attraction(tmp_path):
    fitted = gc.TSNE(perplexity=8, exaggeration=3.0, random_state=0).fit(X)
    new = X[:6] + 0.5
    Z, P = fitted.embedding_, fitted._given.new_edges(new).normalized().toarray()

    def losses(places):
        log_k = -np.log1p(cdist(places, Z, "sqeuclidean"))
        return np.log(np.exp(log_k).sum(axis=1)) - 3.0 * (P * log_k).sum(axis=1)

    places, stated = fitted.transform(new, return_loss=True)
    np.testing.assert_allclose(losses(places), stated, rtol=1e-6)
    for step in 0.05 * Z.std() * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]):
        assert (losses(places + step) > losses(places)).all()
    own = np.log(1.0 / (1.0 + cdist(Z, Z, "sqeuclidean")))
    np.fill_diagonal(own, -np.inf)
    M = dense(fitted.posterior_.mean())
    attraction = 3.0 * (M * np.where(M > 0, own, 0.0)).sum(axis=1)
    np.testing.assert_allclose(fitted.point_losses(), np.log(np.exp(own).sum(axis=1)) - attraction, rtol=1e-6)
    fitted.save(tmp_path / "map.gc")
    np.testing.assert_array_equal(gc.load(tmp_path / "map.gc").transform(new), places)


def test_strong_attraction_gives_laplacian_eigenvectors(digits):
    points = digits[0][:300]
    Z = gc.TSNE(exaggeration=10.0, random_state=0).fit_transform(points)
    law = gc.TSNE().models(300)[0]
    mean = dense(law.posterior(points).mean())
    laplacian = np.diag((mean + mean.T).sum(axis=1)) - mean - mean.T
    leading = np.linalg.eigh(laplacian)[1][:, 1:3]
    ours, theirs = CCA(2).fit_transform(Z, leading)
    # More attraction than 4 over the second eigenvalue would draw all points together.
    assert min(abs(np.corrcoef(ours[:, a], theirs[:, a])[0, 1]) for a in range(2)) > 0.99


def test_it_is_said_in_the_sentence_and_refused_where_the_loss_has_no_bound():
    assert str(gc.TSNE(exaggeration=4).sentence.coupling) == "cross-entropy, attraction × 4"
    assert r"- 4 \sum" in gc.TSNE(exaggeration=4).sentence.latex()
    posterior, _ = _laws("E")
    with pytest.raises(ValueError, match="exaggeration must be at least 1"):
        gc.CrossEntropyCoupling(0.5)
    with pytest.raises(ValueError, match=r"exaggeration must be at least 1, got 0\.5: points would fly apart"):
        gc.CrossEntropy(posterior, gc.GraphModel(gc.Student(), "E"), exaggeration=0.5)
    for latent in (gc.GraphModel(gc.Student(), "B"), gc.GraphModel(gc.Odds(gc.Student()), "E")):
        with pytest.raises(ValueError, match="needs a latent prior with a fixed number of edges"):
            gc.CrossEntropy(posterior, latent, exaggeration=2.0)
