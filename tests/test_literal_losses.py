"""The named methods against a literal transcription of their papers' losses."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import graphcouple as gc
from tests.reference import distances


@pytest.fixture(scope="module")
def setting():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(60, 5)), rng.normal(size=(60, 2)) * 2
    posterior = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(8)).posterior(X)
    return posterior, posterior.mean(), Z, ~np.eye(60, dtype=bool)


@pytest.mark.parametrize("estimator", [gc.SNE(), gc.SymmetricSNE(), gc.TSNE()])
def test_sne_and_tsne(setting, estimator):
    posterior, conditional, Z, off = setting
    d2 = distances(Z) ** 2
    K = (1 / (1 + d2) if isinstance(estimator, gc.TSNE) else np.exp(-d2 / 2)) * off
    # SNE normalises each of 60 rows.
    if isinstance(estimator, gc.SNE):
        P, Q, rows = conditional / 60, K / K.sum(axis=1, keepdims=True), 60
    else:
        P, Q, rows = (conditional + conditional.T) / 120, K / K.sum(), 1
    objective = gc.CrossEntropy(posterior, estimator.models(60)[1])
    np.testing.assert_allclose(objective.value(Z), -60 * (P[off] * np.log(Q[off])).sum(), rtol=1e-12)
    kl = (P[off] * np.log(rows * P[off] / Q[off])).sum()
    np.testing.assert_allclose(objective.kl_divergence(Z), kl, rtol=1e-11)
    force = (P - Q / rows) * (2 / (1 + d2) if isinstance(estimator, gc.TSNE) else 1.0)
    force += force.T
    gradient = force.sum(axis=1)[:, None] * Z - force @ Z
    np.testing.assert_allclose(objective.gradient(Z) / 60, gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("original", [True, False])
def test_largevis(setting, original):
    """Σ_{i<j} −P̄ log Q − (2 − P̄) log(1 − Q), with Q = 1/(1 + d²), or 1/(2 + d²) in the graph-coupling paper."""
    posterior, P, Z, _ = setting
    Q = 1 / ((1 if original else 2) + distances(Z) ** 2)
    upper = np.triu_indices(60, 1)
    both = (P + P.T)[upper]
    wanted = -(both * np.log(Q[upper]) + (2 - both) * np.log(1 - Q[upper])).sum()
    latent = gc.LargeVis().models(60)[1] if original else gc.GraphModel(gc.Student(), "B")
    np.testing.assert_allclose(gc.CrossEntropy(posterior, latent).value(Z), wanted, rtol=1e-11)


def test_umap():
    """Σ_{i<j} of the binary cross-entropy of fuzzy memberships."""
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(60, 5)), rng.normal(size=(60, 2))
    model, latent = gc.UMAP(n_neighbors=10).models(60)
    posterior = model.posterior(X)
    P = posterior.mean().toarray()
    a, b = latent.kernel.kernel.a, latent.kernel.kernel.b
    Q = 1 / (1 + a * cdist(Z, Z) ** (2 * b))
    upper = np.triu_indices(60, 1)
    p, q = P[upper], Q[upper]
    wanted = -(p * np.log(q) + (1 - p) * np.log(1 - q)).sum()
    np.testing.assert_allclose(gc.CrossEntropy(posterior, latent).value(Z), wanted, rtol=1e-9)
