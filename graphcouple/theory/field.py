"""The pairwise Markov random field of points given a graph, which is improper under shift-invariant kernels.

Given a graph W, points follow f(X, W) = Π_ij k(x_i − x_j)^W_ij (graph-coupling paper, equation 1). Let L be the
Laplacian of W + Wᵀ and U the normalised indicators of its R components, which span the null space of L. Moving a whole
component does not change f: f(X, W) = f(X_C, W) with X_C = X − UUᵀX. So f is not integrable over all X. On the centred
points, (ker L)^⊥ ⊗ R^p, it is integrable if k is bounded and integrable (theorem 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from graphcouple._support.validation import check_embedding, check_integer, check_positive
from graphcouple.graphs import FloatArray, GraphLike, as_csr
from graphcouple.kernels import Gaussian, Kernel
from graphcouple.kernels.base import require_kernel
from graphcouple.laws.priors.random_graph import Rng
from graphcouple.theory.normalizers import QUADRATURE_DIMS, LogNormalizer, forest, gaussian, monte_carlo, quadrature

# A Laplacian of 5,000 nodes takes 200 MB, and its spectrum O(n³) operations.
_DENSE_UP_TO = 5000


def laplacian(W: GraphLike) -> sp.csr_array:
    """Return the Laplacian L = diag(W̄1) − W̄ of W̄ = W + Wᵀ, without loops.

    Parameters
    ----------
    W : array, sparse matrix, networkx or igraph graph
        Edge counts; an undirected edge counts in both directions.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.theory.field import laplacian
    >>> laplacian(np.array([[0, 1], [0, 0]])).toarray()
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    return sp.csr_array(csgraph.laplacian(_undirected(W)))


def _directed(W: GraphLike) -> sp.csr_array:
    """Return the edges between different nodes."""
    graph = as_csr(W, "W").astype(np.float64)
    if (graph.data < 0).any() or not np.isfinite(graph.data).all():
        raise ValueError("W must hold finite edge counts of at least 0.")
    graph.setdiag(0)
    graph.eliminate_zeros()
    return graph


def _undirected(W: GraphLike) -> sp.csr_array:
    graph = _directed(W)
    return sp.csr_array(graph + graph.T)


def component_indicators(W: GraphLike) -> sp.csr_array:
    """Return U, of shape (n, R): the normalised indicators n_r^(−1/2) 1{i in C_r}, an orthonormal basis of ker L.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.theory.field import component_indicators
    >>> W = np.zeros((3, 3))
    >>> W[0, 1] = 1
    >>> component_indicators(W).toarray().round(3)
    array([[0.707, 0.   ],
           [0.707, 0.   ],
           [0.   , 1.   ]])
    """
    n_components, labels = csgraph.connected_components(_undirected(W), directed=False)
    sizes = np.bincount(labels, minlength=n_components)
    return sp.csr_array((sizes[labels] ** -0.5, labels, np.arange(labels.size + 1)), shape=(labels.size, n_components))


def split(X: Any, W: GraphLike) -> tuple[FloatArray, FloatArray]:
    """Return X_M = UUᵀX, the component means, and X_C = X − X_M, the points around them.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.theory import split
    >>> means, around = split(np.array([[0.0], [1.0], [5.0]]), np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]]))
    >>> means.ravel().round(9).tolist(), around.ravel().round(9).tolist()
    ([0.5, 0.5, 5.0], [-0.5, 0.5, 0.0])
    """
    U = component_indicators(W)
    points = check_embedding(X, "X", U.shape[0]).astype(np.float64)
    means = U @ (U.T @ points)
    return means, points - means


@dataclass(frozen=True, eq=False)
class PairwiseMRF:
    """The pairwise Markov random field f(X, W) = Π_ij k((x_i − x_j)/τ_i)^W_ij.

    Parameters
    ----------
    kernel : Kernel
    covariance : ndarray of shape (p, p), optional
        Σ, positive definite: distances are ‖Σ^(−1/2)(x_i − x_j)‖. The identity by default.
    bandwidths : ndarray of shape (n,), optional
        τ, above 0, one for each node; 1 by default. Normalisers and samples then need the Gaussian kernel.

    Raises
    ------
    TypeError, ValueError
        When `kernel` is not a kernel, `covariance` is not symmetric positive definite, or a bandwidth is not above 0.

    References
    ----------
    Graph-coupling paper, equation 1 and remark 1 (bandwidths).

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> W = np.zeros((3, 3))
    >>> W[0, 1] = 1
    >>> X = np.array([[0.0], [1.0], [5.0]])
    >>> mrf = gc.PairwiseMRF(gc.Gaussian())
    >>> mrf.log_density(X, W)
    -0.5
    >>> moved = X + np.array([[7.0], [7.0], [-2.0]])
    >>> mrf.log_density(moved, W)
    -0.5
    >>> mrf.log_normalizer(W, dim=1).method
    'gaussian'
    """

    kernel: Kernel
    covariance: FloatArray | None = None
    bandwidths: FloatArray | None = None

    def __post_init__(self) -> None:
        require_kernel(self.kernel)
        if self.covariance is not None:
            sigma = np.array(self.covariance, dtype=np.float64)
            if not np.isfinite(sigma).all():
                raise ValueError("covariance must be finite, but holds NaN or infinity.")
            if sigma.ndim != 2 or sigma.shape[0] != sigma.shape[1] or not np.allclose(sigma, sigma.T):
                raise ValueError(f"covariance must be a symmetric (p, p) array, got shape {sigma.shape}.")
            if np.linalg.eigvalsh(sigma)[0] <= 0:
                raise ValueError("covariance must be positive definite, but its smallest eigenvalue is not above 0.")
            object.__setattr__(self, "covariance", sigma)
        if self.bandwidths is not None:
            tau = np.array(self.bandwidths, dtype=np.float64)
            if tau.ndim != 1 or not (np.isfinite(tau) & (tau > 0)).all():
                raise ValueError("bandwidths must hold a finite number above 0 for each node.")
            object.__setattr__(self, "bandwidths", tau)

    def _per_node(self, graph: sp.csr_array, values: FloatArray) -> FloatArray:
        """Return a value for the start of each edge."""
        if values.shape != (graph.shape[0],):
            raise ValueError(f"bandwidths has {values.size} numbers, but W has {graph.shape[0]} nodes.")
        return np.repeat(values, np.diff(graph.indptr))

    def _equivalent(self, W: GraphLike) -> GraphLike:
        """Return the graph whose field without bandwidths is the same function of X: W_ij / τ_i², if k is Gaussian."""
        if self.bandwidths is None:
            return W
        if not isinstance(self.kernel, Gaussian):
            raise ValueError(f"with bandwidths, only the Gaussian kernel's field is normalised, got {self.kernel!r}.")
        graph = as_csr(W, "W").astype(np.float64)
        graph.data = graph.data / np.square(self._per_node(graph, self.bandwidths))
        return graph

    laplacian = staticmethod(laplacian)
    component_indicators = staticmethod(component_indicators)
    split = staticmethod(split)

    def whiten(self, X: FloatArray) -> FloatArray:
        """Return Σ^(−1/2) x for each point x, up to a rotation."""
        if self.covariance is None:
            return X
        if self.covariance.shape[0] != X.shape[1]:
            raise ValueError(f"covariance has shape {self.covariance.shape}, but X has {X.shape[1]} columns.")
        return np.linalg.solve(np.linalg.cholesky(self.covariance), X.T).T

    def _check_dim(self, dim: int) -> None:
        check_integer("dim", dim, 1)
        if self.covariance is not None and self.covariance.shape[0] != dim:
            raise ValueError(f"covariance has shape {self.covariance.shape}, but dim={dim}.")

    def log_density(self, X: Any, W: GraphLike) -> float:
        """Return log f(X, W) = Σ_ij W_ij log k(x_i − x_j), unnormalised, in nats.

        Parameters
        ----------
        X : array of shape (n, p)
        W : array, sparse matrix, networkx or igraph graph of n nodes
        """
        graph = _directed(W)
        edges = graph.tocoo()
        white = self.whiten(check_embedding(X, "X", edges.shape[0]).astype(np.float64))
        sq_dist = ((white[edges.row] - white[edges.col]) ** 2).sum(axis=1)
        if self.bandwidths is not None:
            sq_dist /= np.square(self._per_node(graph, self.bandwidths))
        return float(edges.data @ self.kernel.log(sq_dist))

    def log_normalizer(
        self, W: GraphLike, dim: int, *, method: str = "auto", n_samples: int = 100_000, rng: Rng = None
    ) -> LogNormalizer:
        """Return log ∫ f(X, W) dX over the centred points (ker L)^⊥ ⊗ R^dim.

        The closed forms are (p/2)[(n − R) log 2π − log det* L] for the Gaussian kernel, and the log of
        Π_r n_r^(−p/2) Π_e ∫ k^w_e on a forest for any kernel. Otherwise, "auto" integrates at most two coordinates by
        quadrature, and more by Monte Carlo, which draws the differences along a spanning forest from their own laws and
        averages the densities of the remaining edges. A covariance adds (n − R)/2 · log det Σ.

        Parameters
        ----------
        W : array, sparse matrix, networkx or igraph graph
        dim : int
            p.
        method : {"auto", "closed", "quadrature", "monte carlo"}, default="auto"
        n_samples : int, default=100000
            For Monte Carlo.
        rng : numpy.random.Generator, int or None
            For Monte Carlo.

        Returns
        -------
        LogNormalizer
            Infinite if the kernel is not integrable along an edge that no cycle contains, or near 0 along any edge.

        Raises
        ------
        ValueError
            When `method` is unknown, has no closed form, or is quadrature over more than three coordinates. Also when
            Monte Carlo cannot decide whether the integral is finite, since the kernel is not integrable along an edge
            of a cycle; `log_box_integral` takes such kernels.
        """
        self._check_dim(dim)
        if method not in ("auto", "closed", "quadrature", "monte carlo"):
            raise ValueError(f"method must be 'auto', 'closed', 'quadrature' or 'monte carlo', got {method!r}.")
        graph = _undirected(self._equivalent(W))
        n_components, labels = csgraph.connected_components(graph, directed=False)
        free = graph.shape[0] - n_components
        shift = 0.0 if self.covariance is None else 0.5 * free * float(np.linalg.slogdet(self.covariance)[1])
        closed = method in ("auto", "closed")
        if closed and isinstance(self.kernel, Gaussian):
            normalizer = LogNormalizer(gaussian(graph, labels, dim), 0.0, "gaussian")
        elif closed and graph.nnz == 2 * free:
            normalizer = LogNormalizer(float(forest(self.kernel, graph, labels, dim)), 0.0, "forest")
        elif method == "closed":
            raise ValueError(f"there is no closed form for {self.kernel!r} on a graph with cycles; use method='auto'.")
        elif method == "quadrature" or (method == "auto" and free * dim < QUADRATURE_DIMS):
            normalizer = quadrature(self.kernel, graph, labels, dim)
        else:
            normalizer = monte_carlo(self.kernel, graph, dim, n_samples, rng)
        return normalizer._replace(value=normalizer.value + shift)

    def log_box_integral(
        self, W: GraphLike, dim: int, side: float, *, n_samples: int = 100_000, rng: Rng = None
    ) -> LogNormalizer:
        """Return log ∫ f(X, W) dX over all X with every coordinate in [0, side], as a `LogNormalizer`.

        The integral grows like side^(Rp) with R components, so it diverges over the whole space for every kernel. It is
        estimated by Monte Carlo, with one node of each component uniform in the box and the others drawn around it.

        Parameters
        ----------
        W : array, sparse matrix, networkx or igraph graph
        dim : int
            p.
        side : float
        n_samples : int, default=100000
        rng : numpy.random.Generator, int or None

        Raises
        ------
        ValueError
            When the field has a covariance, since a box is not invariant under it.
        """
        if self.covariance is not None:
            raise ValueError("the box integral needs the identity covariance; leave covariance out.")
        graph = _undirected(self._equivalent(W))
        check_integer("dim", dim, 1)
        return monte_carlo(self.kernel, graph, dim, n_samples, rng, box=check_positive("side", side))

    def sample_centred(self, W: GraphLike, dim: int, rng: Rng = None, size: int | None = None) -> FloatArray:
        """Draw X_C given W from the Gaussian kernel's field: N(0, L⁺ ⊗ Σ).

        Parameters
        ----------
        W : array, sparse matrix, networkx or igraph graph of n nodes
        dim : int
            p.
        rng : numpy.random.Generator, int or None
        size : int, optional
            Number of draws; one by default.

        Returns
        -------
        ndarray of shape (n, p), or (size, n, p)

        Raises
        ------
        ValueError
            When the kernel is not Gaussian, or the graph has more than 5,000 nodes, too many for a dense
            eigendecomposition.
        """
        if not isinstance(self.kernel, Gaussian):
            raise ValueError(f"only the Gaussian kernel's field can be sampled directly, got {self.kernel!r}.")
        self._check_dim(dim)
        if size is not None:
            check_integer("size", size, 0)
        L = laplacian(self._equivalent(W))
        if L.shape[0] > _DENSE_UP_TO:
            raise ValueError(f"W has {L.shape[0]} nodes; sampling needs a dense spectrum, of at most {_DENSE_UP_TO}.")
        values, vectors = np.linalg.eigh(L.toarray())
        free = slice(csgraph.connected_components(L, directed=False)[0], None)
        noise = np.random.default_rng(rng).normal(size=(1 if size is None else size, L.shape[0], dim))[:, free]
        samples = np.einsum("ij,sjp->sip", vectors[:, free] / np.sqrt(values[free]), noise)
        if self.covariance is not None:
            samples = samples @ np.linalg.cholesky(self.covariance).T
        return samples if size is not None else samples[0]
