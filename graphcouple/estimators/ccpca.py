"""ccPCA: PCA of the averaged means of posterior graphs' connected components."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from graphcouple._support.validation import warn
from graphcouple.components import component_pca, identity_projection, sampled_pca
from graphcouple.components.pca import MOST_SAMPLES, why_constant
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._progress import progress_bar
from graphcouple.estimators.preset import DescribesLaw
from graphcouple.estimators.rows import categories_of
from graphcouple.estimators.spectral import check_directions, warn_of_missing
from graphcouple.graphs import FloatArray
from graphcouple.laws import GraphLaw
from graphcouple.laws.copies import refuse_weights
from graphcouple.laws.priors import RandomGraph
from graphcouple.neighbors import product_of_rows
from graphcouple.optimize import Callback


@estimator
class CCPCA(DescribesLaw):
    """PCA of MX, where M averages the projection onto connected components over posterior graphs.

    Graphs are drawn from the law of the input's graph. In each, every point is moved to the mean of its component. The
    points are averaged over the graphs, and PCA of the averages is the embedding. It keeps the positions of the
    components, which neighbour embeddings lose.

    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    singular_values_ : ndarray of shape (n_components,)
        Singular values of MX, with centred columns.
    components_ : ndarray of shape (n_components, n_features)
        Right singular vectors: centred MX times their transpose is `embedding_`.
    mean_ : ndarray of shape (n_features,)
    standard_error_ : ndarray of shape (n_samples,)
        Monte Carlo standard error of each position, up to a rotation, by a jackknife over ten batches of graphs.
    relative_error_ : float
        The standard error of all points together, divided by the norm of the embedding.
    n_samples_ : int
        Number of graphs drawn.
    component_counts_ : ndarray of shape ``(n_samples_,)``
        Number of components of each graph.
    component_sizes_ : list of ndarray
        Sizes of each graph's components, largest first.
    projection_ : AveragedProjection
        M, a linear operator; ``projection_.labels`` holds each point's component in each graph. Files leave it out,
        and with it `co_membership_`.
    co_membership_ : csr_array or ndarray of shape (n_samples, n_samples)
        For each possible edge, the share of graphs that hold both ends in one component. Computed on access.
    posterior_ : RandomGraph
        The law of the input's graph. Files leave it out.

    Warns
    -----
    UserWarning
        When every graph drawn is connected: all means are then the same, and the result is PCA of X.
    ConvergenceWarning
        When "auto" ends with an error above `tol`.

    References
    ----------
    Graph-coupling paper, section 4.2, corollary 1 and algorithm 1.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> ccpca = gc.CCPCA(perplexity=20, random_state=0).fit(X)
    >>> ccpca.embedding_.shape
    (150, 2)
    >>> bool(ccpca.relative_error_ < 0.05)
    True
    >>> ccpca.transform(X[:3] + 0.01).shape
    (3, 2)
    """

    n_components: int = parameter(
        default=2, doc="Dimension of the embedding; at most min(n_samples, n_features).", kw_only=False
    )
    perplexity: float = parameter(
        default=30.0,
        like="perplexity of each point",
        doc="Effective number of neighbours of each point; above 1 and below the number of neighbours. Higher means "
        "fewer components.",
    )
    metric: str = parameter(
        default="euclidean", doc='Distance of the points in the law; not "precomputed", as the means need points.'
    )
    input: GraphLaw | RandomGraph | None = parameter(
        default=None,
        kind="GraphModel, GraphMixture or GraphPosterior, optional",
        doc="The law of the input's graph in place of the one that `prior`, `perplexity`, `n_neighbors` and `metric` "
        "describe; or a posterior (those parameters then say how `transform` links new points).",
        checks=[None, GraphLaw, RandomGraph],
    )
    n_samples: Any = parameter(default=100)
    tol: float = parameter(default=0.02)
    svd_solver: str = parameter(default="auto")
    random_state: Any = parameter(default=None, doc="Seed of the graphs and of the randomized decomposition.")
    n_jobs: int | None = parameter(default=None)
    verbose: int = parameter(default=0)
    callback: Callback | None = parameter(
        default=None,
        doc='Called after each round of "auto" (once, for a number of graphs) as '
        "``callback(n_drawn, relative_error, Z)``; a true return value stops.",
    )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed `X`, of shape (n_samples, n_features).

        `y` holds classes, if the law has a `target_weight` above 0; else it is ignored.

        Raises
        ------
        ValueError, TypeError
            When `X` or a parameter is invalid; the message says why.
        """
        self._validate_params()
        self._fit(self._checked(X), y)
        return self

    def _fit(self, X: Any, y: Any = None) -> None:
        check_directions(self.n_components, X.shape)
        if self.takes_distances:
            raise ValueError(
                "metric='precomputed' gives no points to average; pass points, and the posterior as input."
            )
        own = self.input if isinstance(self.input, RandomGraph) else None
        law = self.model(X.shape[0]).given(X, y=y)
        if columns := categories_of(law):
            raise ValueError(
                f"columns {columns} hold codes of categories, which have no means; use a column of 0 and 1 for each "
                "category, or another method with init='ccpca'."
            )
        posterior = law.posterior(self.n_jobs) if own is None else own
        if posterior.n_nodes != X.shape[0]:
            raise ValueError(f"input has {posterior.n_nodes} nodes, but X has {X.shape[0]} rows; they must match.")
        refuse_weights(posterior.node_weights, "CCPCA")
        rng = check_random_state(self.random_state)
        total = MOST_SAMPLES if self.n_samples == "auto" else self.n_samples
        options = {name: getattr(self, name) for name in ("n_samples", "tol", "svd_solver", "n_jobs", "callback")}
        with progress_bar(total, "CCPCA", measure="error") if self.verbose else nullcontext() as update:
            projection, pca = sampled_pca(X, posterior, self.n_components, rng=rng, progress=update, **options)
        self._given, self.posterior_, self.projection_ = law, posterior, projection
        self._constant = pca.constant
        if pca.constant:
            warn(f"{why_constant(self.projection_)}; the result is PCA of X.")
            pca = component_pca(X, identity_projection(X.shape[0]), self.n_components, rng=rng)
        if not pca.singular_values.any():
            warn(
                "the averages of all points are equal up to rounding, so all lie in one place. If the points are far "
                "from the origin, subtract their mean, or pass them in double precision."
            )
        else:
            warn_of_missing(int((pca.singular_values > 0).sum()), self.n_components, "the averages have")
        self.mean_ = pca.mean.astype(X.dtype)
        self.components_ = pca.components.astype(X.dtype)
        self.singular_values_ = pca.singular_values.astype(X.dtype)
        self.embedding_ = pca.embedding.astype(X.dtype)
        self.standard_error_ = np.zeros(X.shape[0]) if self._constant else pca.standard_error
        self.relative_error_ = 0.0 if self._constant else pca.relative_error
        self.n_samples_ = self.projection_.n_samples
        self.component_sizes_ = self.projection_.sizes
        self.component_counts_ = self.projection_.n_components

    @property
    def co_membership_(self) -> Any:
        """For each possible edge of the posterior, the share of graphs that hold both ends in one component."""
        check_is_fitted(self)
        support = self.posterior_.support
        return support.to_array(self.projection_.co_membership(support.rows, support.indices))

    def transform(self, X: Any) -> FloatArray:
        """Embed new points: the mean position of the points their edges lead to.

        A new point gets the edges that the law would give it among the points of `fit`, which stay where they are. A
        point that coincides with one of them is put at its position. If all graphs were connected, the result is PCA's
        projection. It never depends on the other new points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)

        Returns
        -------
        ndarray of shape (n_new, n_components)
        """
        X = self._checked_new(X)
        if self._constant:
            return product_of_rows(X, self.components_.T, self.mean_)
        weights = self._given.new_edges(X, self.n_jobs).normalized()
        return np.asarray(weights @ self.embedding_).astype(X.dtype, copy=False)

    _not_saved: ClassVar[frozenset[str]] = frozenset({"posterior_", "projection_"})
    _remembered = ("_given", "_constant")

    def report(self) -> list[tuple[str, str]]:
        """Return the law, the graphs that were drawn, their error and the eigenvalues, as names and texts."""
        check_is_fitted(self)
        counts, sizes = self.component_counts_, self.component_sizes_
        largest = sum(size[0] for size in sizes) / len(sizes)
        drawn = f"{len(counts)} drawn, with {counts.mean():.1f} components each, the largest of {largest:.0f} points"
        return [
            ("input", str(self._given.law)),
            ("graphs", drawn),
            ("error", f"{self.relative_error_:.3f} of the embedding's norm, by Monte Carlo"),
            *super().report(),
        ]
