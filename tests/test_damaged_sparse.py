"""Sparse matrices whose indices lead out of their arrays: refused, wherever they come from."""

import numpy as np
import pytest
import scipy.sparse as sp

import graphcouple as gc
from graphcouple._support.validation import check_sparse
from graphcouple.graphs import as_csr

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 8)) * (RNG.uniform(size=(60, 8)) < 0.5)


def _matrix(fmt="csr", n=60, p=8):
    return sp.csr_matrix(X[:n, :p]).asformat(fmt)


def _with(fmt, part, place, value):
    """Return a matrix of which one entry of an array of indices is wrong."""
    matrix = _matrix(fmt)
    getattr(matrix, part)[place] = value
    return matrix


def _list():
    matrix = _matrix("lil")
    matrix.rows[0][0] = 10**7
    return matrix


def _short():
    matrix = _matrix()
    matrix.indptr = matrix.indptr[:-5]
    return matrix


DAMAGED = {
    "beyond": lambda: _with("csr", "indices", 3, 10**8),
    "negative": lambda: _with("csr", "indices", 0, -(10**6)),
    "falling": lambda: _with("csr", "indptr", 5, 10**7),
    "past the end": lambda: _with("csr", "indptr", -1, 10**6),
    "short": _short,
    "column": lambda: _with("csc", "indices", 2, 10**8),
    "block": lambda: _with("bsr", "indices", 2, 10**8),
    "coordinates": lambda: _with("coo", "row", 4, 10**8),
    "list": _list,
}


FITS = {
    "TSNE": gc.TSNE(perplexity=5, max_iter=5),
    "hierarchical": gc.HierarchicalCoupling(gc.TSNE(perplexity=5, max_iter=5)),
    "CCPCA": gc.CCPCA(perplexity=5),
    "precision": gc.PrecisionCoupling(),
    "forces": gc.AttractionRepulsionPCA(),
    "isomap": gc.Isomap(n_neighbors=5),
    "autoencoder": gc.LinearAutoencoder(),
    "model": gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5)),
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED.keys())
@pytest.mark.parametrize("name", FITS)
def test_damaged_points_are_refused(name, damaged):
    method = FITS[name]
    with pytest.raises(ValueError, match="X is damaged"):
        method.posterior(damaged()) if name == "model" else method.fit(damaged())


@pytest.mark.parametrize("name", ["TSNE", "CCPCA", "precision", "isomap"])
def test_damaged_new_points_are_refused(name):
    fitted = FITS[name].fit(_matrix())
    with pytest.raises(ValueError, match="X is damaged"):
        fitted.transform(DAMAGED["beyond"]())


@pytest.mark.parametrize("fmt", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_whole_matrices_pass(fmt):
    matrix = _matrix(fmt)
    check_sparse(matrix, "X")
    assert (matrix != _matrix(fmt)).nnz == 0
    check_sparse(sp.csr_array((3, 4)), "X")
    np.testing.assert_array_equal(as_csr(_matrix(fmt, 8), "graph").toarray(), X[:8])


def test_damaged_graphs_neighbours_and_scores():
    square = sp.csr_matrix(np.abs(X @ X.T))
    square.setdiag(0)
    square.indices[0] = 10**8
    with pytest.raises(ValueError, match="neighbors is damaged"):
        gc.TSNE(perplexity=5, max_iter=5).fit(X, neighbors=square)
    with pytest.raises(ValueError, match="damaged"):
        gc.LaplacianEigenmaps(input=square).fit()
    latent = gc.GraphModel(gc.Student(), "E")
    with pytest.raises(ValueError, match="damaged"):
        gc.GraphCoupling(square, latent, init="spectral").fit()
    with pytest.raises(ValueError, match="damaged"):
        gc.TSNE(perplexity=5, metric="precomputed", max_iter=5).fit(square)
    with pytest.raises(ValueError, match="damaged"):
        gc.metrics.k_ary_preservation(DAMAGED["beyond"](), X[:, :2], 5)


def test_damaged_models(tmp_path):
    fitted = gc.TSNE(perplexity=5, max_iter=5, random_state=0).fit(_matrix())
    fitted._given.X.indices[0] = 10**8
    fitted.save(tmp_path / "model.gc")
    with pytest.raises(ValueError, match="damaged"):
        gc.load(tmp_path / "model.gc")
