"""The degeneracy of a graph posterior: the freedom that its field leaves to the points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphcouple._support.html import html_table
from graphcouple._support.validation import check_labels
from graphcouple.components import AveragedProjection, sample_components
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.kernels import Assumptions, Kernel
from graphcouple.laws import GraphLaw, GraphModel
from graphcouple.laws.copies import refuse_weights
from graphcouple.laws.priors import RandomGraph
from graphcouple.laws.priors.random_graph import Rng
from graphcouple.neighbors import as_points

# Norms of x − y. Kernels of other metrics, such as the cosine distance, are not shift-invariant, or, as of
# "sqeuclidean", decay faster than `Kernel.assumptions` supposes.
_OF_DIFFERENCES = (
    *("euclidean", "l2", "manhattan", "cityblock", "l1", "chebyshev", "minkowski"),
    *("seuclidean", "mahalanobis"),
)


@dataclass(frozen=True, eq=False)
class DegeneracyReport:
    """The freedom that a posterior's graphs leave to the points; see `degeneracy_report`.

    Attributes
    ----------
    n_nodes : int
    n_features : int
        p.
    n_samples : int
        Posterior graphs drawn.
    kernel : Kernel or None
        None if a posterior was given without its model, or the model mixes different kernels.
    assumptions : Assumptions or None
        Whether the kernel is bounded, and integrable on R^p.
    n_components : ndarray of shape (n_samples,)
        Number of weak components of each graph: the dimension of its Laplacian's null space.
    sizes : list of ndarray
        The component sizes of each graph, largest first.
    box_exponents : ndarray of shape (n_samples,)
        R·p of each graph: the field's integral over a box of side s grows like s^(Rp).
    pairs : ndarray of shape (n_pairs, 2)
        The pairs that were passed.
    co_membership : ndarray of shape (n_pairs,)
        The share of graphs in which a pair lies in one component.
    classes : ndarray of shape (n_classes,)
    class_co_membership : ndarray of shape (n_classes, n_classes)
        The probability that two distinct points, one of each class, share a component.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> report = gc.degeneracy_report(gc.GraphModel("gaussian", "D", gc.Perplexity(10)), X)
    >>> report.n_features, bool((report.n_components >= 1).all())
    (4, True)
    """

    n_nodes: int
    n_features: int
    n_samples: int
    kernel: Kernel | None
    assumptions: Assumptions | None
    n_components: IntArray
    sizes: list[IntArray] = field(repr=False)
    box_exponents: IntArray = field(repr=False)
    pairs: IntArray = field(repr=False)
    co_membership: FloatArray = field(repr=False)
    classes: NDArray[Any] = field(repr=False)
    class_co_membership: FloatArray = field(repr=False)

    def _kernel_text(self) -> str:
        if self.kernel is None or self.assumptions is None:
            return "unknown: the posterior was given without its model, or mixes different kernels"
        bounded, integrable = self.assumptions
        why = [] if bounded else ["unbounded at distance 0"]
        why += [] if integrable else [f"not integrable on R^{self.n_features}"]
        if why:
            return f"{self.kernel!r} is {' and '.join(why)}: the assumptions of theorem 1 are violated"
        return f"{self.kernel!r} is bounded and integrable on R^{self.n_features}: theorem 1 applies"

    def _rows(self) -> list[tuple[str, str]]:
        low, middle, high = np.quantile(self.n_components, [0.05, 0.5, 0.95])
        largest = np.array([s[0] for s in self.sizes]) / self.n_nodes
        alone = np.array([np.count_nonzero(s == 1) for s in self.sizes])
        spread = f"(5 %, 50 %, 95 %: {low:g}, {middle:g}, {high:g}), whose positions the field ignores"
        exponent = f"exponent {self.box_exponents.mean():.1f} on average"
        rows = [
            ("graphs", f"{self.n_samples} drawn, {self.n_nodes:,} nodes"),
            ("kernel", self._kernel_text()),
            ("null space", f"{self.n_components.mean():.1f} components on average {spread}"),
            ("sizes", f"the largest holds {100 * largest.mean():.1f} % of the points; {alone.mean():.1f} points alone"),
            ("box integral", f"grows like s^(R·{self.n_features}): {exponent}"),
        ]
        rows += [
            (f"pair {i}, {j}", f"in one component with probability {share:.2f}")
            for (i, j), share in zip(self.pairs.tolist(), self.co_membership, strict=True)
        ]
        if self.classes.size:
            diagonal = np.diag(self.class_co_membership)
            off = self.class_co_membership[~np.eye(self.classes.size, dtype=bool)]
            shares = [(diagonal[np.isfinite(diagonal)], "within a class"), (off, "across classes")]
            texts = [f"{share.mean():.2f} {where}" for share, where in shares if share.size]
            rows.append(("labels", f"one component with probability {', '.join(texts)}"))
        return rows

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in rows)

    def _repr_html_(self) -> str:
        return html_table([], self._rows())


def degeneracy_report(
    model_or_posterior: GraphModel | RandomGraph,
    X: Any,
    *,
    n_samples: int = 100,
    pairs: Sequence[tuple[int, int]] | None = None,
    y: Any = None,
    rng: Rng = 0,
) -> DegeneracyReport:
    """Report what a graph law leaves undetermined about the points' large-scale arrangement.

    The field of a graph with R components ignores where the components are. The null space of the Laplacian has
    dimension R, and the field's integral over a box of side s grows like s^(Rp) (graph-coupling paper, section 2).

    Parameters
    ----------
    model_or_posterior : GraphModel or GraphPosterior
        A model is fitted to `X`; for a posterior, `X` gives only the number of features.
    X : array or sparse matrix of shape (n_samples, n_features)
    n_samples : int, default=100
        Posterior graphs to draw.
    pairs : sequence of (int, int), optional
        Pairs of points to report the co-membership of.
    y : array of shape (n_samples,), optional
        Labels, for the co-membership within and across classes, and for a model with a `target_weight`.
    rng : numpy.random.Generator, int or None, default=0

    Returns
    -------
    DegeneracyReport
        Prints as a table; its numbers are attributes.

    Raises
    ------
    TypeError, ValueError
        When the first argument is not a law, `X` or `y` does not fit it, or a pair names a point that does not exist.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> model = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20))
    >>> report = gc.degeneracy_report(model, X, y=y, pairs=[(0, 1), (0, 149)])
    >>> float(report.co_membership[1])
    0.0
    >>> print(report)  # doctest: +ELLIPSIS
    graphs        100 drawn, 150 nodes
    kernel        Gaussian() is bounded and integrable on R^4: theorem 1 applies
    ...
    """
    if isinstance(model_or_posterior, GraphLaw):
        if others := [part.metric for part in model_or_posterior.parts if part.metric not in _OF_DIFFERENCES]:
            raise ValueError(
                f"metric={others[0]!r} is not known to be a norm of differences of the columns of X, as theorem 1 "
                "supposes; pass the law's posterior, and the points as X."
            )
        kernels = model_or_posterior.kernels
        posterior: RandomGraph = model_or_posterior.posterior(X, y=y if model_or_posterior.uses_classes else None)
        kernel = kernels[0] if all(each == kernels[0] for each in kernels) else None
    elif isinstance(model_or_posterior, RandomGraph):
        posterior, kernel = model_or_posterior, None
        refuse_weights(posterior.node_weights, "degeneracy_report")
    else:
        raise TypeError(
            f"model_or_posterior must be a GraphModel or a GraphPosterior, got {type(model_or_posterior).__name__}; "
            "the laws of an estimator are estimator.models(n_points)."
        )
    n_nodes, n_features = as_points(X).shape
    if n_nodes != posterior.n_nodes:
        raise ValueError(f"X has {n_nodes} rows, but the posterior has {posterior.n_nodes} nodes.")
    endpoints = _check_pairs(pairs, n_nodes)
    classes, codes = np.unique([] if y is None else check_labels(y, n_nodes), return_inverse=True)
    seed = int(np.random.default_rng(rng).integers(np.iinfo(np.int32).max))
    projection = AveragedProjection(sample_components(posterior, n_samples, seed))
    counts = projection.n_components
    return DegeneracyReport(
        n_nodes=n_nodes,
        n_features=n_features,
        n_samples=n_samples,
        kernel=kernel,
        assumptions=None if kernel is None else kernel.assumptions(n_features),
        n_components=counts,
        sizes=projection.sizes,
        box_exponents=counts * n_features,
        pairs=endpoints,
        co_membership=projection.co_membership(endpoints[:, 0], endpoints[:, 1]),
        classes=classes,
        class_co_membership=_class_co_membership(projection.labels, codes, classes.size),
    )


def _check_pairs(pairs: Any, n_nodes: int) -> IntArray:
    """Return pairs of points as an array of shape (n_pairs, 2)."""
    endpoints = np.asarray([] if pairs is None else pairs)
    if not endpoints.size:
        return np.empty((0, 2), dtype=np.int64)
    if endpoints.dtype.kind not in "iu":
        raise ValueError(f"pairs must hold row numbers, got {pairs!r}.")
    if endpoints.ndim != 2 or endpoints.shape[1] != 2:
        raise ValueError(f"pairs must hold two points each, got an array of shape {endpoints.shape}.")
    if endpoints.min() < 0 or endpoints.max() >= n_nodes:
        raise ValueError(f"pairs must name points 0 to {n_nodes - 1}, got {endpoints.min()} to {endpoints.max()}.")
    return endpoints.astype(np.int64)


def _class_co_membership(labels: IntArray, codes: IntArray, n_classes: int) -> FloatArray:
    """Return, for each pair of classes, the share of (graph, two distinct points) in one component."""
    if n_classes == 0:
        return np.empty((0, 0))
    together = np.zeros((n_classes, n_classes))
    for row in labels:
        table = np.zeros((row.max() + 1, n_classes))
        np.add.at(table, (row, codes), 1.0)
        together += table.T @ table
    sizes = np.bincount(codes, minlength=n_classes).astype(np.float64)
    possible = np.outer(sizes, sizes) - np.diag(sizes)
    together -= len(labels) * np.diag(sizes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return together / (len(labels) * possible)
