"""Laplacian eigenmaps, and the shared part of the methods whose embedding is a Laplacian's smallest eigenvectors."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.embedding import EmbeddingEstimator, HasLaw
from graphcouple.estimators.preset import DescribesLaw
from graphcouple.estimators.spectral import warn_of_parts
from graphcouple.graphs import FloatArray, IntArray, as_csr
from graphcouple.laws import GraphLaw
from graphcouple.laws.copies import refuse_weights
from graphcouple.laws.given import refuse_alone
from graphcouple.laws.priors import RandomGraph
from graphcouple.neighbors import coordinates_of
from graphcouple.spectral import GraphLaplacian, embed_parts, graph_laplacian

# Nyström's formula divides by 1 − λ. Where 1 − λ is smaller, the eigenvector is noise on single nodes, and a new point
# lies at the mean of its neighbours.
_LEAST_SHARE = 0.1


class LaplacianEstimator(EmbeddingEstimator):
    """Base class of methods that decompose a graph's Laplacian."""

    n_components: int
    tol: float
    normalized: bool
    _remedy: ClassVar[str]

    @property
    def _of_points(self) -> bool:
        """Whether the graph was found among the points, so that equal points share a place."""
        return True

    _remembered: ClassVar[tuple[str, ...]] = ("_fixed",)

    def _keep(self, laplacian: GraphLaplacian, X: Any, dtype: Any) -> None:
        if self.n_components >= laplacian.n_nodes:
            raise ValueError(f"n_components={self.n_components} must be below n_samples = {laplacian.n_nodes}.")
        placed = embed_parts(laplacian, self.n_components, X, self._coordinates, self._of_points)
        warn_of_parts(placed.parts.n_parts, self._remedy)
        self.embedding_ = placed.Z.astype(dtype)
        of_largest = placed.eigenvalues[int(np.argmax(placed.parts.sizes))]
        # A component of few nodes has fewer eigenvalues than the embedding has columns.
        self.eigenvalues_ = of_largest[np.isfinite(of_largest)]
        self.component_labels_: IntArray = placed.parts.labels
        self._fixed: dict[str, Any] = {"eigenvalues": np.nan_to_num(placed.eigenvalues), "origins": placed.origins}

    def _coordinates(self, part: GraphLaplacian, n_components: int) -> tuple[FloatArray, FloatArray]:
        """Return eigenvalues and coordinates of a connected graph."""
        return part.embedding(n_components, self.tol)

    def _own_part(self, weights: sp.csr_array) -> tuple[sp.csr_array, IntArray]:
        """Return each row of weights within the component that holds most of its weight, and these components."""
        labels = self.component_labels_
        parts = int(labels.max()) + 1
        if parts == 1:
            return weights, np.zeros(weights.shape[0], dtype=np.intp)
        member = sp.csr_array((np.ones(labels.size), (np.arange(labels.size), labels)), shape=(labels.size, parts))
        mass = sp.csr_array(abs(weights) @ member)
        most = np.asarray(mass.argmax(axis=1)).ravel()
        rows = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
        linked = labels[weights.indices] == most[rows]
        inside = (weights.data[linked], (rows[linked], weights.indices[linked]))
        return sp.csr_array(inside, shape=weights.shape), most


@estimator
class LawEigenmaps(DescribesLaw, HasLaw, LaplacianEstimator):
    """Base class of methods that embed a law's mean graph, by its Laplacian's eigenvectors unless `_keep` differs."""

    metric_params: dict[str, Any] | None = parameter(default=None)
    input: Any = parameter(
        default=None,
        kind="GraphModel, GraphMixture, GraphPosterior or a graph, optional",
        doc="The law of the input's graph in place of the one that `prior`, `perplexity`, `n_neighbors` and `metric` "
        "describe; a posterior computed beforehand; or your own graph (networkx, igraph, a sparse matrix or a square "
        "array), whose weights in both directions are added.",
    )
    n_jobs: int | None = parameter(default=None)

    _remembered: ClassVar[tuple[str, ...]] = ("_fixed", "_given")
    _remedy = "More neighbors, or a higher perplexity, may connect them."

    def report(self) -> list[tuple[str, str]]:
        """Return the law and the eigenvalues, as names and texts."""
        check_is_fitted(self)
        law = "a graph or posterior of your own" if self._given is None else str(self._given.law)
        return [("input", law), *super().report()]

    @property
    def _has_own_graph(self) -> bool:
        return self.input is not None and not isinstance(self.input, GraphLaw)

    @property
    def _of_points(self) -> bool:
        return not self._has_own_graph or isinstance(self.input, RandomGraph)

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Embed `X`, of shape (n_samples, n_features), or the nodes of the input's graph.

        `y` holds classes, if the law has a `target_weight` above 0; else it is ignored.

        Raises
        ------
        ValueError, TypeError
            When `X` or a parameter is invalid; the message says why.
        """
        self._validate_params()
        if X is None and not self._has_own_graph:
            raise ValueError("X is None, and input is not a graph; give points, or a graph as input.")
        if X is not None:
            X = self._checked(X)
        model = None if self._has_own_graph else self.model(X.shape[0])
        law = None if model is None else model.given(X, y=y)
        fitted = None if law is None else law.posterior(self.n_jobs)
        posterior = self.input if isinstance(self.input, RandomGraph) else fitted
        refuse_weights(None if posterior is None else posterior.node_weights, type(self).__name__)
        plain = self._laplacian(posterior)
        laplacian = self._reweighed(plain)
        if X is not None and X.shape[0] != laplacian.n_nodes:
            raise ValueError(f"input has {laplacian.n_nodes} nodes, but X has {X.shape[0]} rows; they must match.")
        points = None if self.takes_distances else coordinates_of(X, self.metric if model is None else model.metric)
        self._keep(laplacian, points, np.float64 if X is None else X.dtype)
        self._fixed["normalized"] = self.normalized
        self._given, self._posterior = law, posterior
        # The law of points is computed again from these; a graph of one's own may change.
        self._own_graph = plain.affinity if law is None else None
        return self

    def _laplacian(self, posterior: RandomGraph | None) -> GraphLaplacian:
        if posterior is not None:
            return graph_laplacian(posterior, self.normalized)
        weights = as_csr(self.input, "input").astype(np.float64)
        return GraphLaplacian(weights + weights.T, self.normalized)

    def _reweighed(self, laplacian: GraphLaplacian) -> GraphLaplacian:
        """Return the Laplacian of the graph with other weights, if the method has others."""
        return laplacian

    def _reweighed_edges(self, weights: sp.csr_array) -> sp.csr_array:
        """Return the edges of new points, one row for each, with the weights that `_reweighed` would give them."""
        return weights

    def transform(self, X: Any) -> FloatArray:
        """Place new points at the mean of the points their edges lead to, divided by 1 − λ (Nyström's formula).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)

        Returns
        -------
        ndarray of shape (n_new, n_components)
            No row depends on another. Copies of fitted points get their places.
        """
        check_is_fitted(self)
        if self._given is None:
            raise ValueError("a graph of your own, or a posterior, does not say how new points are linked; give a law.")
        X = self._checked_new(X)
        edges = self._given.new_edges(X, self.n_jobs)
        weights, part = self._own_part(self._reweighed_edges(edges.to_csr()))
        mass = np.asarray(weights.sum(axis=1))[:, None]
        refuse_alone(mass[:, 0] == 0.0)
        origin, values = self._fixed["origins"][part], self._fixed["eigenvalues"][part]
        # Edges of fitted points count in both directions, so a new point's degree is twice its edges'.
        share = 1.0 - values / (1.0 if self._fixed.get("normalized", self.normalized) else 2.0 * mass)
        mean = np.asarray(weights @ self.embedding_.astype(np.float64)) / mass
        Z = origin + (mean - origin) / np.where(share < _LEAST_SHARE, 1.0, share)
        same = edges.coincident >= 0
        Z[same] = self.embedding_[edges.coincident[same]]
        return Z.astype(X.dtype, copy=False)


@estimator
class LaplacianEigenmaps(LawEigenmaps):
    """Laplacian eigenmaps of the mean graph of a law: the least of Σ_ij E[W_ij] ‖z_i − z_j‖² at unit covariance.

    With a Gaussian latent kernel, that sum is the attraction of every coupling of graphs, twice −E[log k]. So eigenmaps
    are the coupling with a constraint in place of the repulsion. ``init="spectral"`` starts from them.

    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of mean 0 and unit covariance, each point weighted by its degree if `normalized`. If the graph is
        disconnected, this holds for each component, up to its place and size.
    eigenvalues_ : ndarray of shape (n_components,)
        Eigenvalues of D⁻¹ L if `normalized`, else of L, on the largest component.
    component_labels_ : ndarray of shape (n_samples,)
        The connected component of each point.
    posterior_ : RandomGraph
        The law of the input's graph, unless the input is a graph of your own.

    Warns
    -----
    UserWarning
        When the graph is disconnected: each component is then embedded by itself, around the place of its mean.
    ConvergenceWarning
        When eigenvectors have not converged.

    References
    ----------
    Lecture notes, section 1.4. Belkin and Niyogi (2003), Laplacian eigenmaps for dimensionality reduction and data
    representation. Graph-coupling paper, section 3.2.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("digits")
    >>> eigenmaps = gc.LaplacianEigenmaps().fit(X)
    >>> eigenmaps.eigenvalues_.round(3)
    array([0.013, 0.018])
    >>> eigenmaps.transform(X[:3]).shape
    (3, 2)
    """

    normalized: bool = parameter(
        default=True,
        doc="Whether a point counts by its degree, which keeps points of few edges from standing apart; else all count "
        "alike.",
        checks=["boolean"],
    )
    tol: float = parameter(default=1e-10, like="residual")
