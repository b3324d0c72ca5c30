"""What users of other libraries know: the mix of union and intersection, unique rows, and progress off a terminal."""

import numpy as np
import pytest
import scipy.sparse as sp

import graphcouple as gc
from graphcouple import graphs
from graphcouple.estimators import _progress
from graphcouple.graphs import Support
from graphcouple.summation import EdgeSum, LogKernel
from tests import umap_figures

RNG = np.random.default_rng(8)
X = RNG.normal(size=(80, 4))


def test_the_mix_of_union_and_intersection_is_that_of_umap_learn():
    for mix, known in zip(umap_figures.MIXES, np.load(umap_figures.FILE)["graphs"], strict=True):
        posterior = gc.UMAP(n_neighbors=12, set_op_mix_ratio=mix).models(80)[0].posterior(umap_figures.POINTS)
        np.testing.assert_allclose(posterior.mean().toarray(), known, atol=2e-5)


@pytest.mark.nightly
def test_the_figures_kept_are_those_of_umap_learn():
    known = np.load(umap_figures.FILE)
    for name, found in umap_figures.figures().items():
        np.testing.assert_allclose(found, known[name], atol=1e-6)


def test_mutual_edges_are_the_product_of_both_directions():
    for kernel, size in ((gc.Gaussian(), 1.0), (gc.Gaussian(), 30.0), (gc.Odds(gc.Exponential()), 1.0)):
        one = gc.GraphModel(kernel, "B", gc.LocalConnectivity(9), 8).posterior(size * X).mean().toarray()
        both = gc.GraphModel(kernel, "B", gc.LocalConnectivity(9), 8, symmetrize="mutual").posterior(size * X)
        np.testing.assert_allclose(both.mean().toarray(), one * one.T, rtol=1e-9, atol=1e-14)
        assert both.unordered
    with pytest.raises(ValueError, match="symmetrize='mutual' needs prior B"):
        gc.GraphModel(gc.Gaussian(), "D", symmetrize="mutual")
    with pytest.raises(ValueError, match="None, 'threshold' or 'mutual'"):
        gc.GraphModel(gc.Gaussian(), "B", symmetrize="either")


def test_umap_with_a_mix_is_fitted_and_places_new_points():
    fitted = gc.UMAP(n_neighbors=8, set_op_mix_ratio=0.5, random_state=0, max_iter=50).fit(X[:70])
    assert np.isfinite(fitted.transform(X[70:])).all()
    np.testing.assert_array_equal(fitted.transform(X[:5]), fitted.embedding_[:5])
    with pytest.raises(ValueError, match="set_op_mix_ratio"):
        gc.UMAP(set_op_mix_ratio=1.5).fit(X)


REPEATED = np.r_[np.arange(80), [3, 3, 7, 20]]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, lambda A: np.asarray(A, dtype=np.float32)])
def test_equal_rows_are_one_point_of_their_weight(form, tmp_path):
    rows = form(X[REPEATED])
    weights = np.bincount(REPEATED).astype(float)
    fitted = gc.TSNE(perplexity=10, unique=True, random_state=0, max_iter=80).fit(rows)
    by_weight = gc.TSNE(perplexity=10, random_state=0, max_iter=80).fit(form(X), sample_weight=weights)
    np.testing.assert_array_equal(fitted.embedding_, by_weight.embedding_[REPEATED])
    assert fitted.loss_ == by_weight.loss_
    assert fitted.posterior_.n_nodes == 80
    new = form(X[:4] + 0.1)
    np.testing.assert_array_equal(fitted.transform(new), by_weight.transform(new))
    np.testing.assert_array_equal(fitted.transform(rows[78:]), fitted.embedding_[78:])
    fitted.save(tmp_path / "model")
    again = gc.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(new), fitted.transform(new))
    before = fitted.embedding_
    placed = fitted.transform(new)
    for estimator in (fitted, again):
        estimator.update(new)
        np.testing.assert_array_equal(estimator.embedding_, np.vstack([before, placed]))
        assert estimator.posterior_.n_nodes == 84


def test_unique_rows_change_nothing_and_negative_zero_is_zero():
    plain, unique = (gc.TSNE(perplexity=10, unique=u, random_state=0, max_iter=30).fit(X) for u in (False, True))
    np.testing.assert_array_equal(plain.embedding_, unique.embedding_)
    twice = np.vstack([X, X[:2]])
    twice[0, 0], twice[80, 0] = 0.0, -0.0
    fitted = gc.TSNE(perplexity=10, unique=True, random_state=0, max_iter=30).fit(twice)
    np.testing.assert_array_equal(fitted.embedding_[80:], fitted.embedding_[:2])


@pytest.mark.filterwarnings("ignore:the embedding is far from its size")
@pytest.mark.filterwarnings("ignore:perplexity=")
def test_weights_and_classes_of_equal_rows_are_joined():
    rows, y = X[REPEATED], np.arange(80) % 2
    method = gc.TSNE(perplexity=10, unique=True, target_weight=0.5, random_state=0, max_iter=30)
    method.fit(rows, y[REPEATED], sample_weight=np.arange(1.0, 85.0))
    expected = np.bincount(REPEATED, weights=np.arange(1.0, 85.0))
    np.testing.assert_array_equal(method.posterior_.node_weights, expected)
    with pytest.raises(ValueError, match="equal but of different classes"):
        method.fit(rows, [f"class {i}" for i in range(84)])
    start = RNG.normal(size=(84, 2))
    assert gc.TSNE(perplexity=10, unique=True, init=start, max_iter=5).fit(rows).embedding_.shape == (84, 2)
    with pytest.raises(ValueError, match="remove the copies yourself"):
        gc.TSNE(perplexity=10, unique=True, terms=[gc.Anchors([0], [[0.0, 0.0]])]).fit(rows)


def test_progress_is_told_off_a_terminal(capsys, monkeypatch):
    gc.TSNE(perplexity=10, random_state=0, max_iter=100, verbose=1).fit(X)
    told = capsys.readouterr()
    assert told.out == ""
    lines = told.err.strip().splitlines()
    assert lines[0].startswith("TSNE: 0")
    assert "TSNE: 100/100, loss" in lines[-1]
    assert len(lines) < 5
    monkeypatch.setattr(_progress, "_LINE_EVERY", 0.0)
    gc.TSNE(perplexity=10, random_state=0, max_iter=200, verbose=1).fit(X)
    assert len(capsys.readouterr().err.strip().splitlines()) >= 4
    assert "█" not in told.err
    gc.TSNE(perplexity=10, random_state=0, max_iter=200, verbose=2).fit(X)
    assert capsys.readouterr().err.strip().splitlines()[-1].partition("█")[2].endswith("▁")
    gc.CCPCA(perplexity=10, random_state=0, verbose=1).fit(X)
    assert "CCPCA:" in capsys.readouterr().err
    gc.TSNE(perplexity=10, random_state=0, max_iter=20).fit(X)
    assert capsys.readouterr().err == ""


def test_indices_stay_narrow_where_there_are_very_many_edges(monkeypatch):
    weights = sp.random_array((50, 50), density=0.2, rng=np.random.default_rng(0), format="csr")
    support = Support(weights.indptr, weights.indices)
    expected = EdgeSum(support, weights.data, LogKernel(gc.Student()))
    monkeypatch.setattr(graphs, "MOST_INT32", 60)
    assert graphs.index_dtype(61) is np.int64
    wide = Support(weights.indptr.astype(np.int64), weights.indices)
    found = EdgeSum(wide, weights.data, LogKernel(gc.Student()))
    for ours, theirs in zip(found.symmetric_edges, expected.symmetric_edges, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    nearest, _ = gc.neighbors.nearest_neighbors(X[:50], 3)
    assert nearest.indices.dtype == np.int32
    assert nearest.indptr.dtype == np.int64
