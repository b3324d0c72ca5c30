"""Tears: edges, points and pieces that an embedding moves apart, and the term that resists them."""

import networkx as nx
import numpy as np
import pytest
from scipy.spatial.distance import cdist

import graphcouple as gc
from graphcouple.couplings import LongEdges
from tests.contracts import check_objective


def literal(X, Z, y, K, length):
    """Tears by loops over points and edges."""
    n = len(X)
    near = [[int(j) for j in np.argsort(row, kind="stable") if j != i][:K] for i, row in enumerate(cdist(X, X))]
    own = [[int(j) for j in np.argsort(row, kind="stable") if j != i][:K] for i, row in enumerate(cdist(Z, Z))]
    axis = np.linalg.svd(Z - Z.mean(axis=0))[2][0]
    size = np.diff(np.quantile((Z - Z.mean(axis=0)) @ axis, [0.01, 0.99]))[0]
    torn = [[np.linalg.norm(Z[i] - Z[j]) > length * size for j in near[i]] for i in range(n)]
    if y is None:
        graph = nx.Graph((i, j) for i in range(n) for j in near[i])
        parts = list(nx.connected_components(graph))
        y = [next(k for k, part in enumerate(parts) if i in part) for i in range(n)]
    kept = 0
    for k in set(y):
        members = [i for i in range(n) if y[i] == k]
        graph = nx.Graph((i, j) for i in members for j in own[i] if y[j] == k)
        graph.add_nodes_from(members)
        kept += max(map(len, nx.connected_components(graph)))
    return np.mean(torn), np.mean([sum(row) > K / 2 for row in torn]), 1.0 - kept / n


@pytest.mark.parametrize("q", [1, 2, 3])
@pytest.mark.parametrize("labelled", [True, False])
def test_tears_are_what_loops_find(q, labelled):
    rng = np.random.default_rng(q)
    y = rng.integers(0, 4, 120)
    X = 6.0 * rng.normal(size=(4, 5))[y] + rng.normal(size=(120, 5))
    Z = X[:, :q] + 8.0 * (rng.random(120) < 0.1)[:, None]
    Z[0] += 300.0
    found = gc.metrics.tears(X, Z, y if labelled else None, K=4)
    np.testing.assert_allclose(found, literal(X, Z, y if labelled else None, 4, 0.2), atol=1e-12)
    assert found.edges > 0.01
    assert found.detached > 0.01
    turned = -3.0 * Z[:, ::-1] + 7.0
    np.testing.assert_allclose(gc.metrics.tears(X, turned, y if labelled else None, K=4), found, atol=1e-12)


@pytest.mark.parametrize(("options", "said"), [({"K": 150}, "K=150"), ({"length": 0.0}, "length")])
def test_what_tears_refuse(options, said):
    X, _ = gc.datasets.load("iris")
    with pytest.raises(ValueError, match=said):
        gc.metrics.tears(X, X[:, :2], **options)


@pytest.mark.parametrize("method", [gc.TSNE(perplexity=5), gc.SymmetricSNE(perplexity=5), gc.UMAP(n_neighbors=6)])
@pytest.mark.parametrize("q", [1, 2, 4])
def test_long_edges_are_the_cross_entropy_of_edges_at_large(rng, method, q):
    X, Z = rng.normal(size=(40, 5)), 3.0 * rng.normal(size=(40, q)) + 50.0
    posterior = method.models(40)[0].posterior(X)
    means = np.asarray(posterior.mean() if isinstance(posterior.mean(), np.ndarray) else posterior.mean().toarray())
    possible = np.zeros((40, 40), dtype=bool)
    possible[posterior.support.rows, posterior.support.indices] = True
    average = means.sum(axis=1) / np.maximum(possible.sum(axis=1), 1)
    kept = np.where(possible & (means >= average[:, None] * (1 - 1e-9)), means, 0.0)
    sq_dist = cdist(Z, Z, "sqeuclidean")
    size = 2.0 * np.linalg.norm(Z - Z.mean(axis=0), axis=1).mean() ** 2
    expected = (kept / kept.sum() * np.log1p(sq_dist / size)).sum()
    objective = LongEdges(posterior)
    assert objective.value(Z) == pytest.approx(expected, rel=1e-9)
    assert objective.value(-100.0 * Z + 1.0) == pytest.approx(expected, rel=1e-9)
    check_objective(objective, Z)
    assert objective.value_and_grad(np.ones((40, q)))[0] == 0.0


def test_edges_that_resist_tear_less():
    X, y = gc.datasets.load("digits")
    X, y = X[:600], y[:600]
    found = [
        gc.TSNE(terms=[gc.LargeScale(7.0, resistance=resistance)], random_state=0).fit(X).embedding_
        for resistance in (0.0, 4.0)
    ]
    torn = [gc.metrics.tears(X, Z, y).edges for Z in found]
    assert torn[1] < 0.7 * torn[0]
    with pytest.raises(ValueError, match="resistance"):
        gc.LargeScale(resistance=-1.0)


def test_a_flung_point_does_not_pay():
    X = np.random.default_rng(0).poisson(0.7, size=(200, 30)).astype(float)
    Z = gc.TSNE(terms=[gc.LargeScale(1.0)], random_state=0).fit(X).embedding_
    away = np.linalg.norm(Z - Z.mean(axis=0), axis=1)
    assert away.max() < 4.0 * np.median(away)
