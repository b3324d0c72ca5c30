"""Starts of an embedding."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from graphcouple._support.registry import Registry
from graphcouple._support.validation import check_embedding, check_integer, fit_of, seeded_clone, warn
from graphcouple.components import component_law, sampled_pca
from graphcouple.components.pca import why_constant
from graphcouple.graphs import FloatArray
from graphcouple.laws.priors import RandomGraph
from graphcouple.neighbors import coordinates_of
from graphcouple.spectral import GraphLaplacian, embed_parts, far_rows_drawn_in, graph_laplacian, principal_components
from graphcouple.summation import edge_product

# Residual of eigenvectors relative to the largest eigenvalue: a start need not be exact.
_TOLERANCE = 1e-4

# Mean pull of an edge in the spectral start, in medians: 1.5 to 2.8 on curves, sheets and noise, 7 to 20,000 where the
# graph has weakly linked clusters (docs/evidence/descent.md).
_UNEVEN = 4.0

# The edges of a part of the points show it: a choice.
_SOME_POINTS = 20_000

# Averages along the edges that bring points near their neighbours, but leave the clusters where they are. Of 20,000
# points in 50 clusters, 100·R(n/2) is 43; after 10 averages, 38.
_AVERAGES = 3

Initializer = Callable[[Any, RandomGraph, int, np.random.RandomState, int | None], FloatArray]


def pca(
    X: Any, posterior: RandomGraph | None, n_components: int, rng: np.random.RandomState, n_jobs: int | None = None
) -> FloatArray:
    """Return the first principal components of `X`, zero-padded when `X` has fewer."""
    return principal_components(X, n_components, rng)


def spectral(
    X: Any, posterior: RandomGraph, n_components: int, rng: np.random.RandomState, n_jobs: int | None = None
) -> FloatArray:
    """Return Laplacian eigenmaps of the posterior's mean graph; see `graphcouple.LaplacianEigenmaps`."""
    return _eigenmaps(graph_laplacian(posterior), n_components, X)


def _eigenmaps(laplacian: GraphLaplacian, n_components: int, X: Any) -> FloatArray:
    embed = partial(GraphLaplacian.embedding, tol=_TOLERANCE)
    return embed_parts(laplacian, n_components, X, embed).Z


def auto(
    X: Any, posterior: RandomGraph, n_components: int, rng: np.random.RandomState, n_jobs: int | None = None
) -> FloatArray:
    """Return the spectral start or, if a few edges take most of its pull, smoothed principal components.

    Eigenvectors are nearly constant on a cluster that is weakly linked to others. So they make a dot of it, in any
    order. Principal components, with outliers drawn in, keep the clusters' arrangement. Each point is moved halfway to
    the mean of its neighbours in the mean graph, three times.
    """
    laplacian = graph_laplacian(posterior)
    Z, W, degrees = _eigenmaps(laplacian, n_components, X), laplacian.affinity, laplacian.degrees[:, None]
    step = -(-len(Z) // _SOME_POINTS)
    some = W[::step].tocoo()
    pulls = some.data * np.square(Z[some.row * step] - Z[some.col]).sum(axis=1)
    if not pulls.size or pulls.mean() <= _UNEVEN * np.median(pulls):
        return Z
    Z = principal_components(far_rows_drawn_in(X), n_components, rng)
    for _ in range(_AVERAGES):
        Z = np.where(degrees > 0, (Z + edge_product(W, Z, n_jobs) / np.where(degrees > 0, degrees, 1.0)) / 2.0, Z)
    return Z


def random(
    X: Any, posterior: RandomGraph, n_components: int, rng: np.random.RandomState, n_jobs: int | None = None
) -> FloatArray:
    """Return standard Gaussian coordinates; the default optimizer smooths them, see `graphcouple.Descent`."""
    return rng.normal(size=(posterior.n_nodes, n_components))


def ccpca(
    X: Any, posterior: RandomGraph, n_components: int, rng: np.random.RandomState, n_jobs: int | None = None
) -> FloatArray:
    """Return principal components of the averaged component means of graphs drawn from the posterior.

    A posterior of prior B is first thinned to one edge per node, because its graphs are usually connected; see
    `graphcouple.components.component_law`. If every graph is connected, the start is PCA of X, with a warning.
    """
    rank = min(n_components, *X.shape)
    M, means = sampled_pca(X, component_law(posterior), rank, rng=rng, n_jobs=n_jobs)
    if means.constant:
        warn(f"init='ccpca': {why_constant(M)}; starting from PCA.")
        return pca(X, posterior, n_components, rng)
    return np.pad(means.embedding, ((0, 0), (0, n_components - rank)))


STARTS: Registry[Initializer] = Registry("init", "an array")

_NEED_POINTS: set[str] = set()

# Defaults of estimators, replaced by "spectral" for distances and graphs.
_SPECTRAL_INSTEAD = ("auto", "ccpca", "pca")


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
    remember = STARTS.register(name)
    (_NEED_POINTS.add if needs_points else _NEED_POINTS.discard)(name)
    return remember


register("auto", needs_points=True)(auto)
register("ccpca", needs_points=True)(ccpca)
register("pca", needs_points=True)(pca)
register("random")(random)
register("spectral")(spectral)


def initialize(
    init: Any,
    X: Any,
    posterior: RandomGraph,
    n_components: int,
    rng: Any = None,
    *,
    scale: float = 1.0,
    metric: str = "euclidean",
    dtype: Any = np.float64,
    n_jobs: int | None = None,
    y: Any = None,
) -> FloatArray:
    """Return the start of an embedding.

    Parameters
    ----------
    init : str, estimator or array of shape (n_samples, n_components)
        "auto", "ccpca", "pca", "random", "spectral" or another registered name; "spectral" takes the place of the first
        three where there are no points. Or an estimator such as `CCPCA`, of which a clone is fitted to `X`. An array is
        copied and used as it is.
    X : array or sparse matrix of shape (n_samples, n_features)
    posterior : RandomGraph
        The input's graph, for "auto", "ccpca" and "spectral".
    n_components : int
    rng : numpy.random.RandomState, int or None, default=None
    scale : float, default=1.0
        Standard deviation of the first coordinate.
    metric : str, default="euclidean"
    dtype : dtype, default=float64
    n_jobs : int or None, default=None
        Workers, for "ccpca".
    y : array of shape (n_samples,), optional
        Classes, for an estimator whose law uses them.

    Returns
    -------
    Z0 : ndarray of shape (n_samples, n_components)
        Gaussian noise of 1e-4 · scale is added to points that would coincide (duplicates)
        and to coordinates that would be constant. Constant data start at random.

    Raises
    ------
    TypeError, ValueError
        When `init` is an unknown name, an array of the wrong shape or with entries that are not finite, or an estimator
        or a registered start that needs points, and there are none.
    """
    n, rng = posterior.n_nodes, check_random_state(rng)
    check_integer("n_components", n_components, 1)
    points = coordinates_of(X, metric)
    if not is_made(init):
        return given_start(init, n, n_components).astype(dtype)
    if not isinstance(init, str):
        Z = _estimator_start(init, points, y, n_components, rng)
    else:
        make = STARTS[init]
        if init in _NEED_POINTS and points is None:
            if init not in _SPECTRAL_INSTEAD:
                lack = "X is None" if X is None else "X holds precomputed distances"
                raise ValueError(f"init={init!r} needs points, but {lack}; use init='spectral' or 'random'.")
            make = spectral
        Z = np.asarray(make(points, posterior, n_components, rng, n_jobs), dtype=np.float64)
    if Z.shape != (n, n_components):
        raise ValueError(f"init={init!r} must return an array of shape {(n, n_components)}, got {Z.shape}.")
    if not np.isfinite(Z).all():
        raise ValueError(f"init={init!r} must return finite numbers, but the start holds NaN or infinity.")
    # The deviation of equal numbers may be rounding instead of 0.
    rounding = 1e-12 * float(np.abs(Z).max())
    spread = float(Z[:, 0].std())
    spread = spread if spread > rounding else float(Z.std(axis=0).max())
    Z = Z * (scale / spread) if spread > rounding else scale * random(X, posterior, n_components, rng)
    # Descent never leaves the plane in which all points start: a constant coordinate would stay constant.
    flat = Z.std(axis=0) <= 1e-12 * max(scale, float(np.abs(Z).max()))
    Z[:, flat] += 1e-4 * scale * rng.normal(size=(n, int(flat.sum())))
    return _separate(Z, 1e-4 * scale, rng).astype(dtype)


def given_start(init: Any, n_points: int, n_components: int) -> FloatArray:
    """Return a start that is an array, in double precision; raise unless it has one finite row for each point."""
    Z = check_embedding(init, "init", n_points)
    if Z.shape[1] != n_components:
        raise ValueError(f"init has {Z.shape[1]} columns, but n_components={n_components}.")
    return Z.astype(np.float64)


def is_made(init: Any) -> bool:
    """Return whether the start is computed, by a name or an estimator; computed starts may be rescaled."""
    return isinstance(init, str) or hasattr(init, "fit_transform")


def _estimator_start(estimator: Any, X: Any, y: Any, n_components: int, rng: np.random.RandomState) -> FloatArray:
    """Return the embedding of the points by a clone of an estimator, which takes a seed from `rng` if it has none."""
    name = type(estimator).__name__
    if X is None:
        raise ValueError(f"init={name}() needs points, and there are none; use init='spectral' or 'random'.")
    # Other libraries' estimators may learn from classes that the method ignores.
    data = (X, y) if getattr(estimator, "uses_classes", False) else (X,)
    Z = np.asarray(fit_of(f"init={name}()", seeded_clone(estimator, rng).fit_transform, *data), dtype=np.float64)
    if Z.ndim != 2 or Z.shape[1] != n_components:
        raise ValueError(
            f"init={name}() embeds in {Z.shape[1:]} dimensions, but n_components={n_components}; give it "
            f"n_components={n_components} too."
        )
    return Z


def _separate(Z: FloatArray, noise: float, rng: np.random.RandomState) -> FloatArray:
    """Add noise to points that coincide up to rounding, and leave the others alone."""
    places = np.round(Z / max(float(np.abs(Z).max()), 1e-300) * 1e12)
    # Sorting one number for each place is ten times as fast as sorting rows. Unequal places seldom share one.
    keys = (places * np.random.RandomState(0).uniform(1.0, 2.0, Z.shape[1])).sum(axis=1)
    _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    repeated = counts[inverse] > 1
    if repeated.any():
        Z = Z.copy()
        Z[repeated] += noise * rng.normal(size=(int(repeated.sum()), Z.shape[1]))
    return Z


# Standard deviations of the starts that openTSNE and scikit-learn compute themselves; umap-learn rescales every start.
_PEERS = {"openTSNE": 1e-4, "scikit-learn": 1e-4, "umap-learn": None}

# Squares of numbers in this range neither overflow nor underflow.
_SQUARED_SAFELY = 1e-100, 1e100


def start_for(library: str, Z: Any) -> NDArray[Any]:
    """Return a start as another library takes it: ``init=start_for("openTSNE", gc.CCPCA().fit_transform(X))``.

    openTSNE and scikit-learn expect a first column of standard deviation 10⁻⁴; umap-learn moves all points into a
    square of side 10 itself, and expects no two points in one place.

    Parameters
    ----------
    library : {"openTSNE", "scikit-learn", "umap-learn"}
    Z : array of shape (n_samples, n_components)

    Returns
    -------
    ndarray of shape (n_samples, n_components)
        float32 for scikit-learn and umap-learn, float64 for openTSNE.

    Raises
    ------
    ValueError
        When the library is not known, or all points are in one place.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> start = gc.initializations.start_for("openTSNE", gc.CCPCA(perplexity=15, random_state=0).fit_transform(X))
    >>> float(start[:, 0].std().round(6))
    0.0001
    """
    if not isinstance(library, str) or library not in _PEERS:
        raise ValueError(f"library must be one of {sorted(_PEERS)}, got {library!r}.")
    start = check_embedding(Z, "Z").astype(np.float64)
    largest = float(np.abs(start).max())
    if largest > 0 and not _SQUARED_SAFELY[0] < largest < _SQUARED_SAFELY[1]:
        start /= largest
    start -= start.mean(axis=0)
    size = float(start[:, 0].std()) or float(start.std())
    if not size > 0:
        raise ValueError("all points of Z are in one place, which cannot be a start.")
    deviation = _PEERS[library]
    if deviation is None:
        # umap-learn's own noise for copies is as small.
        start += 1e-4 * size * np.random.default_rng(0).normal(size=start.shape)
    else:
        start *= deviation / size
    return start if library == "openTSNE" else start.astype(np.float32)
