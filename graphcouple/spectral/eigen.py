"""Eigenvectors of large symmetric matrices, in one of three ways.

Small matrices are decomposed in full. Graphs of points on a curve or a surface have small separators, so their matrices
have sparse factors, and inverse iteration with these is exact and fast even if the eigenvalues almost coincide. For
graphs of points in many dimensions the factors fill up, but the eigenvalues lie further apart, so Lanczos iteration
finds the vectors. Where a graph may be of either kind, a few rounds of Lanczos iteration tell. (LOBPCG with an
algebraic multigrid preconditioner is no faster than the better of the two on 70,000 points of a roll, of a
five-dimensional cube and of images.)
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh, lobpcg, splu
from sklearn.exceptions import ConvergenceWarning

from graphcouple._support.validation import warn
from graphcouple.graphs import FloatArray

# Up to 800 rows, a matrix is decomposed in full.
DENSE = 800

# A graph is factorised if no breadth-first level holds more nodes than this: a level separates the levels before and
# after it, and factors have about as many entries as the square of a separator's size.
_THIN = 1500

# A graph with at least this many nodes per node of its largest level is long. For others, Lanczos iteration may find
# the vectors in this many restarts, to at most this residual: 6,000 points of 50 dimensions took .04 s, and 1.8 s by
# factors. Eigenvalues below this share of the bound are too near the residual, and are found by factors.
_LONG, _BRIEFLY, _STRICT, _FAR_FROM_0 = 20, 8, 1e-6, 1e-5

# After Lanczos iteration failed, wider graphs are factorised too: 4,000² entries are 128 MB.
_STILL_FACTORISED = 4000

# Residual of the largest eigenvectors, relative to their eigenvalues.
_RESIDUAL = 1e-10

# Lanczos vectors in addition to twice the number of eigenvectors, and number of restarts.
_BASIS, _RESTARTS = 30, 300

# If Lanczos iteration fails: the residual that is accepted, with a warning, and the rounds of block iteration if it is
# not reached.
_ROUGH, _LAST_ROUNDS = 1e-5, 200

# Rounding in double precision is less than this share of a matrix's largest entry; a larger asymmetry is in the data.
SYMMETRIC = 1e-8

# Shift below the eigenvalue 0, as a share of the largest, so that the matrix can be factorised.
_SHIFT = 1e-11


class Eigenpairs(NamedTuple):
    """Some eigenvalues of a symmetric matrix, of shape (k,), and their vectors, of shape (n, k).

    The vectors are orthonormal columns, each with its largest entry positive.
    """

    values: FloatArray
    vectors: FloatArray


def fixed_signs(vectors: FloatArray) -> FloatArray:
    """Return the columns with signs such that the largest entry of each is positive."""
    at = np.argmax(np.abs(vectors), axis=0)
    return vectors * np.where(vectors[at, np.arange(vectors.shape[1])] < 0, -1.0, 1.0)


def in_full(n: int, k: int) -> bool:
    """Return whether a matrix of n rows is decomposed in full for k eigenvectors."""
    return n <= DENSE or 4 * k > n


def largest(times: Callable[[FloatArray], FloatArray], n: int, k: int) -> Eigenpairs:
    """Return the k largest eigenvalues of a symmetric matrix of n rows, in descending order.

    `times` returns the matrix times an array of shape (n,) or (n, m). Residuals that stay large give
    a `ConvergenceWarning`.
    """
    if in_full(n, k):
        values, vectors = np.linalg.eigh(times(np.eye(n)))
        return Eigenpairs(values[: -k - 1 : -1], fixed_signs(vectors[:, : -k - 1 : -1]))
    values, vectors = _largest_by_lanczos(times, n, k, _RESIDUAL)
    return Eigenpairs(values, fixed_signs(vectors))


def smallest(operator: Any, k: int, null_vector: FloatArray, tol: float = 1e-10) -> Eigenpairs:
    """Return the k smallest eigenvalues of a `GraphLaplacian`, in ascending order, except a known eigenvalue 0.

    The unit vector `null_vector` has the eigenvalue 0, and the other eigenvectors are orthogonal to it. Residuals above
    `tol` times the operator's `bound` give a `ConvergenceWarning`.
    """
    n, bound, matrix = null_vector.size, operator.bound, operator.matrix
    by_factors = cache(partial(_invert, matrix, k, null_vector, bound))
    by_lanczos = partial(_smallest_by_lanczos, operator, k, null_vector)
    if in_full(n, k):
        # The null vector's eigenvalue is raised above all others.
        values, vectors = np.linalg.eigh(matrix.toarray() + 2.0 * bound * np.outer(null_vector, null_vector))
    elif (width := separator(matrix)) > _THIN:
        values, vectors = by_lanczos(tol, by_factors if width <= _STILL_FACTORISED else None)
    elif operator.squared or n >= _LONG * width:
        values, vectors = by_factors()
    else:
        values, vectors = by_lanczos(min(tol, _STRICT), by_factors, _BRIEFLY)
        if values[0] < _FAR_FROM_0 * bound:
            values, vectors = by_factors()
    return Eigenpairs(np.maximum(values[:k], 0.0), fixed_signs(vectors[:, :k]))


def separator(matrix: sp.csr_array) -> int:
    """Return the size of the largest breadth-first level of a matrix's connected graph, from a peripheral node."""
    pattern = abs(matrix)
    # Edges have both directions, so the faster search of a directed graph suffices.
    steps = dijkstra(pattern, indices=0, unweighted=True)
    steps = dijkstra(pattern, indices=int(np.argmax(steps)), unweighted=True)
    return int(np.bincount(steps[np.isfinite(steps)].astype(np.int64)).max())


def _start(n: int) -> FloatArray:
    """Return noise, which has a component along every eigenvector."""
    return np.random.default_rng(0).normal(size=n)


def _invert(matrix: sp.csr_array, k: int, null_vector: FloatArray, bound: float) -> tuple[FloatArray, FloatArray]:
    n = null_vector.size
    definite = sp.csc_array(matrix + sp.eye_array(n) * (_SHIFT * bound))
    factors = splu(definite, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def solve(v: FloatArray) -> FloatArray:
        v = factors.solve(v - null_vector * (null_vector @ v))
        return v - null_vector * (null_vector @ v)

    inverse = LinearOperator((n, n), matvec=solve, dtype=np.float64)
    start = _start(n)
    span = complete_lanczos(inverse, k, start - null_vector * (null_vector @ start))[1]
    # Rayleigh quotients are more accurate than the reciprocals of the inverse's eigenvalues.
    vectors = np.linalg.qr(span)[0]
    values, rotation = np.linalg.eigh(vectors.T @ (matrix @ vectors))
    return values, vectors @ rotation


def _smallest_by_lanczos(
    operator: Any,
    k: int,
    null_vector: FloatArray,
    tol: float,
    fallback: Callable[[], tuple[FloatArray, FloatArray]] | None,
    restarts: int = _RESTARTS,
) -> tuple[FloatArray, FloatArray]:
    """Return the smallest eigenvalues in ascending order, and the vectors, which are orthogonal to the null vector."""
    span = _largest_by_lanczos(operator.flipped, null_vector.size, k + 1, tol, fallback, restarts)[1]
    left, sizes, _ = np.linalg.svd(span - np.outer(null_vector, null_vector @ span), full_matrices=False)
    basis = left[:, sizes > 0.5]
    values, rotation = np.linalg.eigh(basis.T @ operator.times(basis))
    return values, basis @ rotation


def _largest_by_lanczos(
    times: Callable[[FloatArray], FloatArray],
    n: int,
    k: int,
    tol: float,
    fallback: Callable[[], tuple[FloatArray, FloatArray]] | None = None,
    restarts: int = _RESTARTS,
) -> tuple[FloatArray, FloatArray]:
    """Return the largest eigenvalues in descending order, and the vectors."""
    operator = LinearOperator((n, n), matvec=lambda v: times(v.ravel()), dtype=np.float64)
    ncv = min(n, 2 * k + _BASIS)
    try:
        values, vectors = complete_lanczos(operator, k, _start(n), tol=tol, ncv=ncv, maxiter=restarts)
    except ArpackNoConvergence:
        if fallback is not None:
            return fallback()
        values, vectors = _roughly(operator, n, k, ncv)
    order = np.argsort(-values)
    return values[order], vectors[:, order]


def _roughly(operator: Any, n: int, k: int, ncv: int) -> tuple[FloatArray, FloatArray]:
    """Return eigenpairs to the accuracy that iteration reaches, with a warning."""
    try:
        values, vectors = lanczos(operator, k, _start(n), tol=_ROUGH, ncv=ncv, maxiter=_RESTARTS)
    except ArpackNoConvergence as partial:
        block = np.random.default_rng(0).normal(size=(n, k))
        block[:, : partial.eigenvectors.shape[1]] = partial.eigenvectors
        with warnings.catch_warnings():
            # A warning with the residual follows.
            warnings.filterwarnings("ignore", message="\\s*(Exited|Failed)", category=UserWarning)
            values, vectors = lobpcg(operator, block, largest=True, maxiter=_LAST_ROUNDS, tol=_ROUGH * n**0.5)
    images = np.column_stack([operator.matvec(v) for v in vectors.T])
    residual = float(np.linalg.norm(images - vectors * values, axis=0).max())
    warn(
        f"eigenvectors of {n} points were found to a residual of {residual:.1e} only, because their eigenvalues nearly "
        "coincide: directions may be mixed. More neighbors separate them, and fewer points are easier.",
        ConvergenceWarning,
    )
    return values, vectors


# Residuals to which an eigenpair that iteration missed is sought, in two steps, and found. Rough eigenvectors, as of
# starts, are not sought.
_SOUGHT, _MISSED, _OF_STARTS = (1e-2, 1e-6), 1e-9, 1e-5

# A residual this small, relative to the eigenvalue, is rounding error. ARPACK's own limit, 1.1e-16, is never reached
# where eigenvalues coincide.
_ROUNDING = 1e-15


def lanczos(matrix: Any, k: int, start: FloatArray, tol: float = 0.0, **options: Any) -> tuple[FloatArray, FloatArray]:
    """Return the k largest eigenvalues of a symmetric matrix or operator, and their vectors, by `scipy`'s `eigsh`.

    `tol` is the residual of the eigenvectors, relative to their eigenvalues; it is at least rounding error. If the
    start spans too small a space, as when many eigenvalues coincide, ARPACK continues from random vectors, which are
    the same in every call.
    """
    if not np.any(matrix @ start):
        # The start has a share of every eigenvector, so only the zero matrix, which ARPACK refuses, maps it to 0.
        return np.zeros(k), np.linalg.qr(np.random.default_rng(0).normal(size=(start.size, k)))[0]
    generator = {"rng": np.random.default_rng(0)} if _takes_rng() else {}
    return eigsh(matrix, k, which="LA", v0=start, tol=max(tol, _ROUNDING), **generator, **options)


def complete_lanczos(
    operator: Any, k: int, start: FloatArray, tol: float = 0.0, **options: Any
) -> tuple[FloatArray, FloatArray]:
    """Return the result of `lanczos`, with the eigenpairs that it missed among equal ones."""
    values, vectors = lanczos(operator, k, start, tol, **options)
    if tol > _OF_STARTS:
        return values, vectors
    tol, size, image, rng = max(tol, _MISSED), float(np.abs(values).max()), None, np.random.default_rng(1)
    for _ in range(k):
        V = vectors

        def deflated(v: FloatArray, V: FloatArray = V) -> FloatArray:
            # The vectors that were found come last.
            return np.asarray(operator.matvec(v.ravel())) - 2.0 * size * (V @ (V.T @ v.ravel()))

        rest = LinearOperator((start.size, start.size), matvec=deflated, dtype=np.float64)
        try:
            # The part of a start in an eigenspace is the vector that was found there, so each search has its own start.
            vector: FloatArray = rng.normal(size=(start.size, 1))
            for sought in _SOUGHT:
                largest, vector = lanczos(rest, 1, vector[:, 0], max(tol, sought), maxiter=100)
                if largest[0] + sought * size < values.min():
                    break
            if not largest[0] - values.min() > 10.0 * tol * size:
                break
            vector = lanczos(rest, 1, vector[:, 0], tol, maxiter=100)[1]
        except ArpackError:
            break
        if image is None:
            vectors = np.linalg.qr(V)[0]
            image = np.column_stack([operator.matvec(v) for v in vectors.T])
        more = vector[:, 0] - vectors @ (vectors.T @ vector[:, 0])
        more /= np.linalg.norm(more)
        vectors, image = np.column_stack([vectors, more]), np.column_stack([image, operator.matvec(more)])
        values, rotation = np.linalg.eigh(0.5 * (vectors.T @ image + image.T @ vectors))
        values, vectors, image = values[-k:], vectors @ rotation[:, -k:], image @ rotation[:, -k:]
    return values, vectors


@cache
def _takes_rng() -> bool:
    """Return whether this SciPy takes a generator; without one, its random vectors differ from call to call."""
    return "rng" in inspect.signature(eigsh).parameters
