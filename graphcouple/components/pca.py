"""ccPCA: principal components of the averaged component means MX, with their Monte Carlo error.

For one graph, PCA of UUᵀX minimises the coupling of component means by precisions (graph-coupling paper, corollary 1).
ccPCA is PCA of MX with M = E[UUᵀ] over posterior graphs (algorithm 1). Its singular value decomposition needs only the
products M(XΩ) and Xᵀ(MQ), so it passes over the p-dimensional data a few times, for any number of graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import orthogonal_procrustes
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.extmath import svd_flip

from graphcouple._numba.threads import one_blas_thread
from graphcouple._support.validation import check_answer, check_integer, check_positive, is_word, warn
from graphcouple.components.projection import AveragedProjection, sample_components
from graphcouple.graphs import FloatArray
from graphcouple.laws.priors import RandomGraph
from graphcouple.neighbors import as_points

OVERSAMPLING = 10
"""More random directions than components, as Halko, Martinsson and Tropp (2011) recommend (5 or 10)."""

FULL_UP_TO = 1_000_000
"""Up to this many entries of X, MX is formed and decomposed in full."""

MOST_SAMPLES = 2000
"""The most graphs that ``n_samples="auto"`` draws; four times as many would halve the standard error."""

# Graphs of a round; after each, the standard error decides whether more are needed.
_FIRST_ROUND = 20

# Rounds of subspace iteration at most; it ends when singular values change by less than this share of the largest.
_MAX_POWER_ITERATIONS, _TOLERANCE = 30, 1e-7

# Singular values below this share of the norm of X are rounding.
_NO_VARIANCE = 1e-10


@dataclass(frozen=True)
class ComponentPCA:
    """PCA of MX.

    Attributes
    ----------
    embedding : ndarray of shape (n, q)
        Scores M(X − mean)Bᵀ, where B are the components.
    singular_values : ndarray of shape (q,)
        Singular values of M(X − mean).
    components : ndarray of shape (q, p)
        B: the right singular vectors.
    mean : ndarray of shape (p,)
        Mean of the columns of X, and of MX.
    standard_error : ndarray of shape (n,)
        Standard error of each point's position over draws of the graphs, up to a rotation of the embedding; nan for a
        single graph.
    relative_error : float
        The norm of `standard_error` divided by the Frobenius norm of the embedding.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> law = gc.GraphModel("gaussian", "D", gc.Perplexity(10)).posterior(X)
    >>> projection, pca = gc.components.sampled_pca(X, law, 2, n_samples=20)
    >>> pca.embedding.shape, pca.standard_error.shape
    ((150, 2), (150,))
    """

    embedding: FloatArray
    singular_values: FloatArray
    components: FloatArray
    mean: FloatArray
    standard_error: FloatArray
    relative_error: float

    @property
    def constant(self) -> bool:
        """Whether MX has no variance beyond rounding."""
        return not self.singular_values[0] > 0


class _Centred:
    """X − 1 meanᵀ as two products, for dense and sparse X, without a centred copy."""

    def __init__(self, X: Any) -> None:
        self.X, self.shape = X, X.shape
        self.mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()

    def times(self, Q: FloatArray) -> FloatArray:
        """Return (X − 1 meanᵀ)Q, in float64."""
        rounded = Q.astype(self.X.dtype, copy=False)
        return np.asarray(self.X @ rounded, dtype=np.float64) - self.mean @ rounded.astype(np.float64)

    def transpose_times(self, Y: FloatArray) -> FloatArray:
        """Return (X − 1 meanᵀ)ᵀY, in float64."""
        rounded = Y.astype(self.X.dtype, copy=False)
        product = np.asarray(self.X.T @ rounded, dtype=np.float64)
        return product - np.outer(self.mean, rounded.sum(axis=0, dtype=np.float64))

    def dense(self) -> FloatArray:
        return (self.X.toarray() if sp.issparse(self.X) else self.X) - self.mean

    def rounding(self) -> float:
        """Return a bound on the rounding error of a product that is exactly zero, in the Frobenius norm."""
        if sp.issparse(self.X):
            squares = float(np.square(self.X.data, dtype=np.float64).sum())
            norm = max(squares - self.shape[0] * float(self.mean @ self.mean), 0.0) ** 0.5
        else:
            norm = float(np.sqrt(self.X.var(axis=0, dtype=np.float64).sum() * self.shape[0]))
        size = norm + float(np.linalg.norm(self.mean)) * self.shape[0] ** 0.5
        return _NO_VARIANCE * norm + 10.0 * float(np.finfo(self.X.dtype).eps) * size


def _right_vectors(X: _Centred, M: AveragedProjection, width: int, solver: str, rng: np.random.RandomState) -> Any:
    """Return approximate leading right singular vectors of MX, of shape (p, width)."""
    if solver == "full":
        return np.linalg.svd(M @ X.dense(), full_matrices=False)[2][:width].T
    # Subspace iteration from a random start until the singular values settle (Halko, Martinsson and Tropp 2011,
    # algorithm 4.4). scikit-learn's randomized SVD does not accept an operator.
    basis = np.linalg.qr(rng.normal(size=(X.shape[1], width)))[0]
    previous = np.zeros(width)
    tolerance = max(_TOLERANCE, 20.0 * float(np.finfo(X.X.dtype).eps))
    for _ in range(_MAX_POWER_ITERATIONS):
        left = np.linalg.qr(M @ X.times(basis))[0]
        basis, triangle = np.linalg.qr(X.transpose_times(M @ left))
        values = np.linalg.svd(triangle, compute_uv=False)
        if np.abs(values - previous).max() <= tolerance * values[0]:
            break
        previous = values
    return basis


def identity_projection(n_nodes: int) -> AveragedProjection:
    """Return M = I, where each point is its own component, so that PCA of MX is PCA of X.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.components import component_pca, identity_projection
    >>> X = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> component_pca(X, identity_projection(2), 1).singular_values.round(3)
    array([3.536])
    """
    return AveragedProjection(np.arange(n_nodes, dtype=np.int32)[None])


def sampled_pca(
    X: Any,
    posterior: RandomGraph,
    n_components: int,
    *,
    n_samples: int | str = 100,
    tol: float = 0.02,
    svd_solver: str = "auto",
    rng: np.random.RandomState | int | None = None,
    n_jobs: int | None = None,
    progress: Callable[[int, float], Any] | None = None,
    callback: Callable[[int, float, FloatArray], Any] | None = None,
) -> tuple[AveragedProjection, ComponentPCA]:
    """Draw graphs from a posterior and return the averaged projection with PCA of MX.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    posterior : RandomGraph
        Of weighted points, each row counts once.
    n_components : int
    n_samples : int or "auto", default=100
        "auto" draws in rounds until the relative error is at most `tol` or 2,000 graphs are drawn.
    tol : float, default=0.02
        Ignored if `n_samples` is a number.
    svd_solver : {"auto", "full", "randomized"}, default="auto"
    rng : numpy.random.RandomState or int, optional
    n_jobs : int or None, default=None
    progress : callable, optional
        Called as ``progress(n_drawn, relative_error)`` while graphs are drawn.
    callback : callable, optional
        Called as ``callback(n_drawn, relative_error, Z)`` after each round; a true value stops.

    Warns
    -----
    ConvergenceWarning
        When the relative error is above `tol` after 2,000 graphs.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> law = gc.GraphModel("gaussian", "D", gc.Perplexity(10)).posterior(X)
    >>> projection, pca = gc.components.sampled_pca(X, law, 2, n_samples="auto", rng=0)
    >>> bool(pca.relative_error <= 0.02)
    True
    """
    X, state = as_points(X), check_random_state(0 if rng is None else rng)
    _check_arguments(X, posterior.n_nodes, n_components, svd_solver)
    tol, automatic = check_positive("tol", tol), is_word("n_samples", n_samples, "auto", "an integer")
    seed = int(state.randint(np.iinfo(np.int32).max))
    goal = _FIRST_ROUND if automatic else check_integer("n_samples", n_samples, 1)
    labels = np.empty((0, posterior.n_nodes), dtype=np.int32)
    error = np.nan
    while True:
        n_drawn = labels.shape[0]

        def advance(more: int, n_drawn: int = n_drawn, error: float = error) -> None:
            if progress is not None:
                progress(n_drawn + more, error)

        fresh = sample_components(posterior, goal - n_drawn, seed, first=n_drawn, n_jobs=n_jobs, progress=advance)
        labels = np.concatenate([labels, fresh])
        M = AveragedProjection(labels, n_jobs)
        with one_blas_thread(int(np.prod(X.shape))):
            result = component_pca(X, M, n_components, svd_solver=svd_solver, rng=state)
        error = result.relative_error
        view = result.embedding.view()
        view.flags.writeable = False
        stop = callback is not None and check_answer(callback(goal, error, view))
        done = not automatic or result.constant or error <= tol
        if automatic and goal >= MOST_SAMPLES and not (done or stop):
            warn(f"after {goal} graphs the relative error is {error:.3g}, above tol={tol}.", ConvergenceWarning)
        if stop or done or goal >= MOST_SAMPLES:
            return M, result
        # The error falls like N^(−1/2); a margin saves a round.
        n_needed = int(1.2 * goal * min(error / tol, 100.0) ** 2)
        goal = min(max(n_needed, goal + _FIRST_ROUND), 4 * goal, MOST_SAMPLES)


def _check_arguments(X: Any, n_nodes: int, n_components: Any, svd_solver: Any) -> None:
    if X.shape[0] != n_nodes:
        raise ValueError(f"X has {X.shape[0]} rows, but the graphs have {n_nodes} nodes.")
    if check_integer("n_components", n_components, 1) > min(X.shape):
        raise ValueError(f"n_components={n_components} must be at most {min(X.shape)}, the smaller side of X.")
    if svd_solver not in ("auto", "full", "randomized"):
        raise ValueError(f"svd_solver must be 'auto', 'full' or 'randomized', got {svd_solver!r}.")


def why_constant(M: AveragedProjection) -> str:
    """Return a message that explains why MX has no variance."""
    if M.labels.max() == 0:
        return (
            f"every one of the {M.n_samples} graphs drawn is connected, so all component means are the same "
            "(a lower perplexity or fewer neighbors gives more components)"
        )
    return "the means of all components are the same"


def component_pca(
    X: Any,
    M: AveragedProjection,
    n_components: int,
    *,
    svd_solver: str = "auto",
    rng: np.random.RandomState | int | None = None,
) -> ComponentPCA:
    """Return PCA of MX.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
        Need not be centred.
    M : AveragedProjection
    n_components : int
        q, at most min(n, p).
    svd_solver : {"auto", "full", "randomized"}, default="auto"
        "full" forms MX and decomposes it; "randomized" computes a few products with X and M; "auto" is "full" up to a
        million entries of X.
    rng : numpy.random.RandomState or int, optional
        For "randomized".

    Returns
    -------
    ComponentPCA
        Its `singular_values` are exactly zero where MX has no variance beyond rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.components.pca import component_pca
    >>> from graphcouple.components import AveragedProjection
    >>> X = np.array([[0.0, 0.0], [0.0, 2.0], [6.0, 0.0], [6.0, 2.0]])
    >>> pca = component_pca(X, AveragedProjection(np.array([[0, 0, 1, 1]])), 1)
    >>> np.abs(pca.embedding).ravel()
    array([3., 3., 3., 3.])
    """
    data = _Centred(as_points(X))
    _check_arguments(data, M.shape[0], n_components, svd_solver)
    if svd_solver == "auto":
        svd_solver = "full" if data.shape[0] * data.shape[1] <= FULL_UP_TO else "randomized"
    width = min(n_components + OVERSAMPLING, *data.shape)
    basis = _right_vectors(data, M, width, svd_solver, check_random_state(0 if rng is None else rng))
    sums = M.batch_sums(data.times(basis))
    # M preserves the mean of the columns, but rounding does not if the data are far from the origin.
    sums -= sums.mean(axis=1, keepdims=True)
    total = sums.sum(axis=0)
    left, singular, right = np.linalg.svd(total / M.n_samples, full_matrices=False)
    singular, scores = singular[:n_components], left[:, :n_components] * singular[:n_components]
    singular = np.where(singular > data.rounding(), singular, 0.0)
    scores = scores * (singular > 0)
    error = _jackknife(scores, total, sums, np.diff(M.batch_bounds()))
    norm = float(np.linalg.norm(scores))
    scores, components = svd_flip(scores, (basis @ right[:n_components].T).T, u_based_decision=False)
    relative_error = float(np.linalg.norm(error)) / norm if norm > 0 else np.nan
    return ComponentPCA(scores, singular, components, data.mean, error, relative_error)


def _jackknife(scores: FloatArray, total: FloatArray, sums: FloatArray, counts: FloatArray) -> FloatArray:
    """Return each point's standard error by a jackknife: PCA without one batch of graphs, rotated onto the full result.

    It works within a leading subspace that is wide enough for the components to rotate.
    """
    n_batches, q = counts.size, scores.shape[1]
    if n_batches < 2:
        return np.full(scores.shape[0], np.nan)
    without = np.empty((n_batches, *scores.shape))
    for b in range(n_batches):
        rest = (total - sums[b]) / (counts.sum() - counts[b])
        vectors = np.linalg.eigh(rest.T @ rest)[1][:, ::-1][:, :q]
        partial = rest @ vectors
        without[b] = partial @ orthogonal_procrustes(partial, scores)[0]
    spread = np.square(without - without.mean(axis=0)).sum(axis=(0, 2))
    return np.sqrt((n_batches - 1) / n_batches * spread)
