"""Starts of an embedding."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._registry import Registry
from graphcouple._validation import check_embedding, check_integer
from graphcouple.components import component_law, sampled_pca
from graphcouple.components.pca import why_constant
from graphcouple.graphs import FloatArray
from graphcouple.laws.priors import GraphPosterior

# Above this, eigenvectors come from plain iteration: scikit-learn's solver factorises the Laplacian.
_ITERATE_FROM = 5000

Initializer = Callable[[Any, GraphPosterior, int, np.random.RandomState, int | None], FloatArray]


def pca(
    X: Any, posterior: GraphPosterior, n_components: int, rng: np.random.RandomState, n_jobs: int | None = None
) -> FloatArray:
    """Return the first principal components of `X`, zero-padded when `X` has fewer."""
    from sklearn.decomposition import PCA

    found = min(n_components, *X.shape)
    if sp.issparse(X):
        X, found = sp.csr_matrix(X), min(found, min(X.shape) - 1) or 1
    with warnings.catch_warnings():
        # Constant data have zero variance, which PCA divides by; the caller handles a zero result.
        warnings.filterwarnings("ignore", message="invalid value encountered", category=RuntimeWarning)
        Z = PCA(found, random_state=rng).fit_transform(X)
    return np.pad(Z, ((0, 0), (0, n_components - found)))


def spectral(
    X: Any, posterior: GraphPosterior, n_components: int, rng: np.random.RandomState, n_jobs: int | None = None
) -> FloatArray:
    """Return Laplacian eigenvectors of the posterior's mean graph, symmetrised."""
    means = posterior.support.to_csr(posterior.edge_means)
    affinity = sp.csr_matrix(means + means.T)
    n = posterior.n_nodes
    found = min(n_components, n - 2)
    if found < 1:
        return rng.normal(size=(n, n_components))
    if n > _ITERATE_FROM:
        Z = _leading_eigenvectors(affinity, found, rng)
        return np.pad(Z, ((0, 0), (0, n_components - found)))
    from sklearn.manifold import spectral_embedding

    with warnings.catch_warnings():
        # A disconnected graph is fine here: the eigenvectors separate its components.
        warnings.filterwarnings("ignore", message="Graph is not fully connected")
        Z = spectral_embedding(affinity, n_components=found, random_state=rng, norm_laplacian=True)
    return np.pad(np.asarray(Z), ((0, 0), (0, n_components - found)))


def _leading_eigenvectors(affinity: sp.csr_matrix, n_components: int, rng: np.random.RandomState) -> FloatArray:
    """Return leading eigenvectors of the normalised Laplacian by iteration, leaving out the constant one.

    A start need not be exact, and factorising a large Laplacian is slow.
    """
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    degrees = np.asarray(affinity.sum(axis=1)).ravel()
    shrink = 1.0 / np.sqrt(np.where(degrees > 0, degrees, 1.0))
    scaling = sp.diags_array(shrink)
    normalised = (scaling @ affinity @ scaling).astype(np.float32)
    start = (1.0 / shrink + 1e-3 * rng.normal(size=shrink.size)).astype(np.float32)
    try:
        values, vectors = eigsh(normalised, n_components + 1, which="LA", v0=start, tol=1e-4, maxiter=1000)
    except ArpackNoConvergence as partial:
        values, vectors = partial.eigenvalues, partial.eigenvectors
    leading = vectors[:, np.argsort(-values)[1:]].astype(np.float64) * shrink[:, None]
    if leading.shape[1] < n_components:
        leading = np.hstack([leading, 1e-4 * rng.normal(size=(shrink.size, n_components - leading.shape[1]))])
    # An eigenvector's sign is arbitrary: make its largest entry positive, as scikit-learn does.
    at = np.argmax(np.abs(leading), axis=0)
    return leading * np.where(leading[at, np.arange(n_components)] < 0, -1.0, 1.0)


def random(
    X: Any, posterior: GraphPosterior, n_components: int, rng: np.random.RandomState, n_jobs: int | None = None
) -> FloatArray:
    """Return standard Gaussian coordinates."""
    return rng.normal(size=(posterior.n_nodes, n_components))


def ccpca(
    X: Any, posterior: GraphPosterior, n_components: int, rng: np.random.RandomState, n_jobs: int | None = None
) -> FloatArray:
    """Return principal components of the averaged component means of graphs drawn from the posterior.

    A posterior of prior B is first thinned to one edge per node, because its graphs are usually connected; see
    `graphcouple.components.component_law`.

    Warns
    -----
    UserWarning
        When every graph is connected: the start is then PCA of X.
    """
    found = min(n_components, *X.shape)
    M, means = sampled_pca(X, component_law(posterior), found, rng=rng, n_jobs=n_jobs)
    if means.constant:
        warnings.warn(f"init='ccpca': {why_constant(M)}; starting from PCA.", UserWarning, stacklevel=2)
        return pca(X, posterior, n_components, rng)
    return np.pad(means.embedding, ((0, 0), (0, n_components - found)))


STARTS: Registry[Initializer] = Registry("init", "an array")

_NEED_POINTS: set[str] = set()


def register(name: str, *, needs_points: bool = False) -> Callable[[Initializer], Initializer]:
    """Register a start under a name, for every estimator and the command; decorates a function.

    Parameters
    ----------
    name : str
        The value to pass as ``init=``.
    needs_points : bool, default=False
        Whether it needs points, so that distances or a graph are not enough.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> @gc.initializations.register("circle")
    ... def circle(X, posterior, n_components, rng, n_jobs=None):
    ...     angle = np.linspace(0.0, 2.0 * np.pi, posterior.n_nodes, endpoint=False)
    ...     return np.column_stack([np.cos(angle), np.sin(angle)])[:, :n_components]
    >>> X, y = gc.datasets.load("iris")
    >>> gc.TSNE(init="circle", random_state=0).fit_transform(X).shape
    (150, 2)
    >>> gc.initializations.STARTS.remove("circle")
    """

    def remember(function: Initializer) -> Initializer:
        STARTS.add(name, function)
        _NEED_POINTS.discard(name)
        if needs_points:
            _NEED_POINTS.add(name)
        return function

    return remember


register("ccpca", needs_points=True)(ccpca)
register("pca", needs_points=True)(pca)
register("random")(random)
register("spectral")(spectral)


def initialize(
    init: Any,
    X: Any,
    posterior: GraphPosterior,
    n_components: int,
    rng: np.random.RandomState,
    *,
    scale: float,
    metric: str = "euclidean",
    dtype: Any = np.float64,
    n_jobs: int | None = None,
) -> FloatArray:
    """Return the start of an embedding.

    Parameters
    ----------
    init : str or array of shape (n_samples, n_components)
        "ccpca", "pca", "random", "spectral" or another registered name. An array is copied and used as it is.
    X : array or sparse matrix of shape (n_samples, n_features)
    posterior : GraphPosterior
        The input's graph, for "ccpca" and "spectral".
    n_components : int
    rng : numpy.random.RandomState
    scale : float
        Standard deviation of the first coordinate.
    metric : str, default="euclidean"
    dtype : dtype, default=float64
    n_jobs : int or None, default=None
        Workers, for "ccpca".

    Returns
    -------
    Z0 : ndarray of shape (n_samples, n_components)
        Gaussian noise of 1e-4 · scale is added to points that would coincide (duplicates)
        and to coordinates that would be constant. Constant data start at random.

    Raises
    ------
    TypeError, ValueError
        When `init` is an unknown name, an array of the wrong shape or with entries
        that are not finite, or a start that needs points, such as "pca" or "ccpca",
        and there are none.
    """
    n = posterior.n_nodes
    check_integer("n_components", n_components, 1)
    if not isinstance(init, str):
        Z = check_embedding(init, "init", n).astype(dtype)
        if Z.shape[1] != n_components:
            raise ValueError(f"init has {Z.shape[1]} columns, but n_components={n_components}.")
        return Z
    make = STARTS[init]
    if init in _NEED_POINTS and (X is None or metric == "precomputed"):
        lacking = "but X is None" if X is None else "but X holds precomputed distances"
        raise ValueError(f"init={init!r} needs points, {lacking}; use init='spectral' or 'random'.")
    Z = np.asarray(make(X, posterior, n_components, rng, n_jobs), dtype=np.float64)
    if Z.shape != (n, n_components):
        raise ValueError(f"init={init!r} must return an array of shape {(n, n_components)}, got {Z.shape}.")
    spread = float(Z[:, 0].std())
    if spread > 0 and np.isfinite(spread):
        Z = Z * (scale / spread)
    else:
        Z = scale * random(X, posterior, n_components, rng)
    # Descent never leaves the plane in which all points start: a constant coordinate would stay constant.
    flat = Z.std(axis=0) <= 1e-12 * scale
    Z[:, flat] += 1e-4 * scale * rng.normal(size=(n, int(flat.sum())))
    return _separate(Z, 1e-4 * scale, rng).astype(dtype)


def _separate(Z: FloatArray, noise: float, rng: np.random.RandomState) -> FloatArray:
    """Add noise to points that coincide up to rounding, and leave the others alone."""
    places = np.round(Z / max(float(np.abs(Z).max()), 1e-300) * 1e12)
    _, inverse, counts = np.unique(places, axis=0, return_inverse=True, return_counts=True)
    repeated = counts[inverse.ravel()] > 1
    if repeated.any():
        Z = Z.copy()
        Z[repeated] += noise * rng.normal(size=(int(repeated.sum()), Z.shape[1]))
    return Z
