"""Sparse matrices whose indices lead out of their arrays: refused, wherever they come from."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import graphcouple as gc
from graphcouple._validation import check_sparse
from graphcouple.graphs import as_csr

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 8)) * (RNG.uniform(size=(60, 8)) < 0.5)


def _matrix(fmt="csr", n=60, p=8):
    return sp.csr_matrix(X[:n, :p]).asformat(fmt)


def _beyond():
    matrix = _matrix()
    matrix.indices[3] = 10**8
    return matrix


def _negative():
    matrix = _matrix()
    matrix.indices[0] = -(10**6)
    return matrix


def _falling():
    matrix = _matrix()
    matrix.indptr[5] = 10**7
    return matrix


def _past_the_end():
    matrix = _matrix()
    matrix.indptr[-1] = matrix.nnz + 10**6
    return matrix


def _short():
    matrix = _matrix()
    matrix.indptr = matrix.indptr[:-5]
    return matrix


def _column():
    matrix = _matrix("csc")
    matrix.indices[2] = 10**8
    return matrix


def _block():
    matrix = _matrix("bsr")
    matrix.indices[2] = 10**8
    return matrix


def _coordinates():
    matrix = _matrix("coo")
    matrix.row[4] = 10**8
    return matrix


def _list():
    matrix = _matrix("lil")
    matrix.rows[0][0] = 10**7
    return matrix


DAMAGED = (_beyond, _negative, _falling, _past_the_end, _short, _column, _block, _coordinates, _list)
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


@pytest.mark.parametrize("damaged", DAMAGED)
@pytest.mark.parametrize("name", FITS)
def test_damaged_points_are_refused(name, damaged):
    method = FITS[name]
    with pytest.raises(ValueError, match="X is damaged"):
        method.posterior(damaged()) if name == "model" else method.fit(damaged())


@pytest.mark.parametrize("name", ["TSNE", "CCPCA", "precision", "isomap"])
def test_damaged_new_points_are_refused(name):
    fitted = FITS[name].fit(_matrix())
    with pytest.raises(ValueError, match="X is damaged"):
        fitted.transform(_beyond())


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
        gc.metrics.k_ary_preservation(_beyond(), X[:, :2], 5)


@pytest.mark.parametrize("damage", ["indices", "indptr", "shape"])
def test_damaged_files_end_with_one_line(tmp_path, damage):
    parts = {
        "format": np.array(b"csr"),
        "shape": np.array([60, 8]),
        "data": _matrix().data,
        "indices": _matrix().indices,
        "indptr": _matrix().indptr,
    }
    parts[damage] = parts[damage] * 1_000_003 if damage != "shape" else np.array([60, 3])
    np.savez(tmp_path / "points.npz", **parts)
    command = [sys.executable, "-m", "graphcouple", "embed", "points.npz", "--no-plot"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("graphcouple: error: points.npz")
    assert done.stderr.count("\n") == 1


def test_damaged_models(tmp_path):
    fitted = gc.TSNE(perplexity=5, max_iter=5, random_state=0).fit(_matrix())
    fitted._given.X.indices[0] = 10**8
    fitted.save(tmp_path / "model.gc")
    with pytest.raises(ValueError, match="damaged"):
        gc.load(tmp_path / "model.gc")
