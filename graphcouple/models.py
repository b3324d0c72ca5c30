"""A law of a hidden graph: kernel, prior, bandwidth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._validation import check_integer
from graphcouple.bandwidths import Bandwidth
from graphcouple.graphs import FloatArray, Support
from graphcouple.kernels import Kernel
from graphcouple.neighbors import (
    SEARCHES,
    all_pairs,
    as_points,
    graph_distances,
    nearest_neighbors,
    neighbors_among,
)
from graphcouple.priors import GraphPosterior, GraphPrior, as_prior
from graphcouple.priors.binary import threshold


@dataclass(frozen=True, eq=False)
class GraphModel:
    """The law of a hidden graph given points, before the points are known.

    Two of them, one for the input and one for the embedding, make a method; see
    `GraphCoupling`.

    Parameters
    ----------
    kernel : Kernel
        How strongly two points call for an edge.
    prior : GraphPrior or {"B", "D", "E"}
        Which graphs are possible, and how likely they are beforehand.
    bandwidth : Bandwidth, optional
        How each point rescales its distances; none by default.
    n_neighbors : int, optional
        Restrict each point's edges to this many nearest others (the point
        itself is not counted); None means all pairs.
    symmetrize : {None, "threshold"}, default=None
        "threshold" takes the undirected graph 1{W + Wᵀ ≥ 1}, as UMAP does;
        prior B only.
    metric : str, default="euclidean"
        The distance of the points; "precomputed" when they are given as a square
        array, or a sparse graph, of distances.
    search : {"auto", "exact", "approximate"}, default="auto"
        How nearest neighbours are searched; "auto" is approximate where an exact search takes seconds. See
        `graphcouple.neighbors.nearest_neighbors`.

    Raises
    ------
    TypeError, ValueError
        When an argument is of the wrong kind or unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), n_neighbors=15)
    >>> posterior = model.posterior(X)
    >>> posterior
    <UnitOutDegreePosterior (prior D) of 50 nodes, 750 possible edges>
    >>> round(posterior.entropy() / 50, 6) == round(float(np.log(5)), 6)
    True
    >>> posterior.sample(rng=0).to_igraph().ecount()
    50
    """

    kernel: Kernel
    prior: GraphPrior
    bandwidth: Bandwidth | None = None
    n_neighbors: int | None = None
    symmetrize: str | None = None
    metric: str = "euclidean"
    search: str = "auto"

    def __post_init__(self) -> None:
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a graphcouple kernel such as Gaussian(), got {self.kernel!r}.")
        object.__setattr__(self, "prior", as_prior(self.prior))
        if self.bandwidth is not None and not isinstance(self.bandwidth, Bandwidth):
            raise TypeError(f"bandwidth must be a graphcouple bandwidth or None, got {self.bandwidth!r}.")
        if self.n_neighbors is not None:
            check_integer("n_neighbors", self.n_neighbors, 1)
        if self.search not in SEARCHES:
            raise ValueError(f"search must be one of {sorted(SEARCHES)}, got {self.search!r}.")
        if self.symmetrize not in (None, "threshold"):
            raise ValueError(f"symmetrize must be None or 'threshold', got {self.symmetrize!r}.")
        if self.symmetrize and self.prior.code != "B":
            raise ValueError(f"symmetrize='threshold' needs prior B, whose edges are independent; got {self.prior!r}.")

    @property
    def flat_at_zero(self) -> bool:
        """Whether near points feel no force under this law: 1 − k like d^m with m > 2."""
        return self.kernel.order_at_zero > 2.0

    @property
    def start_scale(self) -> float:
        """The standard deviation an embedding under this law does well to start with.

        The prior's own; but at least 1 for a kernel that is flat at zero, where a tiny start would feel no force.
        """
        return max(self.prior.start_scale, 1.0) if self.flat_at_zero else self.prior.start_scale

    def posterior(self, X: Any, n_jobs: int | None = None) -> GraphPosterior:
        """Return the law of the graph given the points `X`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Or distances, for ``metric="precomputed"``.
        n_jobs : int or None, default=None
            Threads; None means every core.

        Returns
        -------
        GraphPosterior

        Raises
        ------
        TypeError, ValueError
            When `X` is not numeric, not finite, has a single row, or fewer rows
            than the model's neighbours or perplexity ask for.
        """
        points = as_points(X)
        support, sq_dist = self._distances(points, n_jobs)
        if self.bandwidth is not None:
            shift, scale = self.bandwidth.fit_edges(support, sq_dist, self.kernel, n_jobs)
            sq_dist = self.bandwidth.rescale(support, sq_dist, shift, scale)
        posterior = self.prior.posterior_on(support, self.kernel.log(sq_dist))
        return threshold(posterior) if self.symmetrize else posterior

    def links(self, X: Any, X_new: Any, n_jobs: int | None = None) -> sp.csr_array:
        """Return where the edges of points unseen lead: the mean numbers of their edges, divided by each row's sum.

        A point that coincides with points of `X` leads to those alone. An edge prior, which says nothing of new
        points, does not enter.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The points of the graph.
        X_new : array or sparse matrix of shape (n_new, n_features)
            Or their distances to the points of `X`, for ``metric="precomputed"``.
        n_jobs : int or None, default=None

        Returns
        -------
        csr_array of shape (n_new, n_samples)
            Rows that sum to 1.

        Raises
        ------
        TypeError, ValueError
            When an array is not numeric or not finite, or the columns differ.
        """
        X, X_new = as_points(X), as_points(X_new, "X_new", at_least=1)
        support, sq_dist = neighbors_among(X_new, X, self.n_neighbors, self.metric, n_jobs)
        same = sq_dist == 0.0
        log_kernel = self.kernel.log(self._rescaled(X, support, sq_dist, n_jobs))
        if self.prior.code == "B":
            log_kernel = -np.logaddexp(0.0, -log_kernel)
        coincident = np.bincount(support.rows, weights=same, minlength=support.n_nodes) > 0
        log_kernel = np.where(coincident[support.rows], np.where(same, 0.0, -np.inf), log_kernel)
        largest = np.maximum.reduceat(log_kernel, support.indptr[:-1])
        weights = np.exp(log_kernel - largest[support.rows])
        weights /= np.add.reduceat(weights, support.indptr[:-1])[support.rows]
        return sp.csr_array((weights, support.indices, support.indptr), shape=(support.n_nodes, X.shape[0]))

    def _rescaled(self, X: Any, support: Support, sq_dist: FloatArray, n_jobs: int | None) -> FloatArray:
        if self.bandwidth is None:
            return sq_dist
        shift, scale = self.bandwidth.fit_edges(support, sq_dist, self.kernel, n_jobs)
        ahead = None
        if self.bandwidth.pairs_scales:
            ahead = self.bandwidth.fit_edges(*self._distances(X, n_jobs), self.kernel, n_jobs)[1]
        return self.bandwidth.rescale(support, sq_dist, shift, scale, ahead)

    def _distances(self, X: Any, n_jobs: int | None) -> tuple[Support, FloatArray]:
        if self.metric == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"precomputed distances must be square, got shape {X.shape}.")
        allowed = self.prior.edges(X.shape[0])
        if self.n_neighbors is not None:
            support, sq_dist = nearest_neighbors(X, self.n_neighbors, self.metric, n_jobs, self.search)
            if allowed is None:
                return support, sq_dist
            keep = allowed[0].find(support.rows, support.indices) >= 0
            return support.select(keep), sq_dist[keep]
        if allowed is not None:
            return allowed[0], graph_distances(X, allowed[0], self.metric)
        return all_pairs(X, self.metric)
