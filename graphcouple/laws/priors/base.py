"""The base class of graph priors, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import xlogy

from graphcouple._support.registry import Registry
from graphcouple._support.validation import check_positive
from graphcouple.graphs import FloatArray, GraphLike, IntArray, Support, as_csr, edges_of, pairs_of
from graphcouple.kernels import Kernel, ScaledKernel
from graphcouple.laws.priors.posterior import GraphPosterior
from graphcouple.summation import LogKernel, RadialFunction, Summation

# Constraints on the graphs of a law. A pair of priors is feasible if the embedding's constraints are among the input's.
BINARY = "at most one edge per pair"
ONE_EACH = "one edge out of every node"
N_EDGES = "as many edges as nodes"


@dataclass(frozen=True, eq=False)
class GraphPrior(ABC):
    """A prior over graphs, with an edge prior π ≥ 0.

    Parameters
    ----------
    edge_prior : float, array, sparse matrix, networkx or igraph graph, optional
        π, the prior weight of each ordered pair. None or a number gives all pairs the same weight. Zero entries of an
        array, and zero or absent entries of a sparse matrix, forbid the edge; so an observed network restricts the
        hidden graph to its edges. The diagonal weighs edges among the copies of a point with a sample weight.

    Raises
    ------
    ValueError
        When π has negative or infinite entries.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> chain = np.eye(4, k=1) + np.eye(4, k=-1)
    >>> law = gc.GraphModel("gaussian", gc.UnitOutDegree(edge_prior=chain)).posterior(np.arange(4.0)[:, None])
    >>> law.mean().toarray()[0].tolist()
    [0.0, 1.0, 0.0, 0.0]
    """

    edge_prior: float | GraphLike | None = None

    code: ClassVar[str]
    """The name of the prior."""

    log_partition_latex: ClassVar[str] = r"A(\log k)"
    """The log-partition of the law, as a function of the kernel's values k_ij."""

    constraints: ClassVar[frozenset[str]]
    """The constraints that every graph obeys; see `BINARY`, `ONE_EACH` and `N_EDGES`."""

    posterior_class: ClassVar[type[GraphPosterior]]

    drawn_by: ClassVar[str | None] = None
    """How edges are drawn given the points. "pair": each pair has an edge or none, independently. "row": each node has
    `draws` edges independently, with probabilities in proportion to e^η. "graph": n · `draws` edges are drawn like this
    over all pairs. None: another rule. Points can be weighted if one of the three rules holds, and
    `log_partition_and_grad` takes weights."""

    draws: ClassVar[int] = 1
    """How many edges are drawn for each node; see `drawn_by`."""

    symmetric_mean: ClassVar[bool] = False
    """Whether a symmetric kernel gives a law with a symmetric mean."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "posterior_class" in vars(cls) and "prior_class" not in vars(cls.posterior_class):
            cls.posterior_class.prior_class = cls

    def __post_init__(self) -> None:
        if self.edge_prior is None:
            return
        if isinstance(self.edge_prior, Real):
            check_positive("edge_prior", self.edge_prior)
            return
        values = as_csr(self.edge_prior, "edge_prior").data
        if (values < 0).any() or not np.isfinite(values).all():
            raise ValueError("edge_prior must be finite and at least 0; 0 forbids an edge.")

    def __repr__(self) -> str:
        prior = self.edge_prior
        if prior is None:
            return f"{type(self).__name__}()"
        value = prior if isinstance(prior, Real) else f"<{type(prior).__name__}>"
        return f"{type(self).__name__}(edge_prior={value})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return same_weights(self.edge_prior, other.edge_prior)

    __hash__ = None  # type: ignore[assignment]

    @property
    def independent_edges(self) -> bool:
        """Whether edges are independent given the points; only then can graphs be symmetrised."""
        return self.drawn_by == "pair"

    @property
    def normalized(self) -> bool:
        """Whether the mean number of edges is fixed; repulsion is then the logarithm of a sum."""
        return self.drawn_by != "pair"

    def edges(self, n_nodes: int) -> tuple[Support, FloatArray] | None:
        """Return the edges that π allows, with log π; None if π is the same for all pairs."""
        if self.edge_prior is None or isinstance(self.edge_prior, Real):
            return None
        support, values = edges_of(as_csr(self.edge_prior, "edge_prior", n_nodes))
        allowed = values > 0
        return support.select(allowed), np.log(values[allowed].astype(np.float64))

    @property
    def log_scalar(self) -> float:
        """Log π, if π is the same for all pairs."""
        return float(np.log(float(self.edge_prior))) if isinstance(self.edge_prior, Real) else 0.0

    def posterior(self, log_kernel: Any) -> GraphPosterior:
        """Return the law of the graph with natural parameters η = log π + log k.

        Parameters
        ----------
        log_kernel : array or sparse matrix of shape (n, n)
            log k(x_i − x_j). In a dense array, −inf forbids an edge. In a sparse matrix, an absent entry forbids it,
            and a stored zero means log k = 0. The diagonal is ignored.

        Returns
        -------
        GraphPosterior

        Raises
        ------
        ValueError
            When an entry is NaN or +inf, or no graph can obey the prior's constraint.
        """
        support, values = pairs_of(log_kernel, "log_kernel")
        return self.posterior_on(support, values.astype(np.float64))

    def posterior_on(self, support: Support, log_kernel: FloatArray) -> GraphPosterior:
        """Return the posterior for the flat log-kernel of a support; see `posterior`."""
        if np.isnan(log_kernel).any() or (log_kernel == np.inf).any():
            raise ValueError("log_kernel must not hold NaN or +inf.")
        favour = self.log_favour(support)
        # Memory may not hold all edges twice.
        natural_parameters = log_kernel if np.isscalar(favour) and favour == 0.0 else log_kernel + favour
        finite = natural_parameters > -np.inf
        if not finite.all():
            support, natural_parameters = support.select(finite), natural_parameters[finite]
        return self.posterior_class(support, natural_parameters)

    def log_favour(self, support: Support) -> FloatArray | float:
        """Return log π on the edges of a support, −inf where π forbids them; a number if π is the same for all."""
        allowed = self.edges(support.n_nodes)
        if allowed is None:
            return self.log_scalar
        at = allowed[0].find(support.rows, support.indices)
        favour = np.full(at.shape, -np.inf)
        favour[at >= 0] = allowed[1][at[at >= 0]]
        if (own := support.rows == support.indices).any():
            with np.errstate(divide="ignore"):
                favour[own] = np.log(self.among_copies(support.n_nodes))[support.rows[own]]
        return favour

    def among_copies(self, n_nodes: int) -> FloatArray:
        """Return π between the copies of each weighted point."""
        if self.edge_prior is None or isinstance(self.edge_prior, Real):
            return np.full(n_nodes, np.exp(self.log_scalar))
        return as_csr(self.edge_prior, "edge_prior").diagonal().astype(np.float64)

    def for_run(self) -> Self:
        """Return the prior for one objective, which evaluates it at a series of similar embeddings; self by default.

        It may start iterations from the last evaluation, if its values then change by less than 1e-7 of n.
        """
        return self

    @property
    def latent_log_scalar(self) -> float:
        """`log_scalar`, or 0 if the number of edges is fixed: π then cancels in every loss."""
        is_fixed = self.drawn_by in ("row", "graph") or N_EDGES in self.constraints
        return 0.0 if is_fixed else self.log_scalar

    def latent_kernel(self, kernel: Kernel) -> Kernel:
        """Return π k for an edge prior that is the same for all pairs, or k where π cancels."""
        return ScaledKernel(kernel, self.latent_log_scalar) if self.latent_log_scalar else kernel

    def around(self, graph: Any, name: str = "graph") -> GraphPosterior:
        """Return the law of this prior whose mean is a given graph.

        Priors with a fixed number of edges use the weights up to a factor, of a row or of the whole graph. Under
        independent edges, the weights are probabilities.

        Parameters
        ----------
        graph : array, sparse matrix, networkx or igraph graph
            Weights of at least 0; 0 means no edge. An undirected graph means both directions.
        name : str, default="graph"
            The graph's name in error messages.

        Raises
        ------
        TypeError, ValueError
            When `graph` is not a graph, has an edge that the edge prior forbids, or is not the mean of any law of this
            prior.
        """
        support, weights = edges_of(as_csr(graph, name))
        if (weights < 0).any() or not np.isfinite(weights).all():
            raise ValueError(f"{name} must have finite edge weights of at least 0.")
        keep = weights > 0
        support, weights = support.select(keep), weights[keep].astype(np.float64)
        forbidden = np.flatnonzero(np.isneginf(np.broadcast_to(self.log_favour(support), weights.shape)))
        if forbidden.size:
            at = forbidden[0]
            raise ValueError(
                f"edge_prior of {type(self).__name__} forbids {forbidden.size} edges of {name}, the first from "
                f"{support.rows[at]} to {support.indices[at]}; drop these edges, or raise their prior above 0."
            )
        return self._around(support, weights, name)

    def _around(self, support: Support, weights: FloatArray, name: str) -> GraphPosterior:
        # The mean already holds what the edge prior did to it.
        return self.posterior_class(support, np.log(weights))

    def thinned(self, natural_parameters: FloatArray, log_share: FloatArray) -> FloatArray:
        """Return the natural parameters given that every edge is kept, with the probability of keeping each."""
        return natural_parameters + log_share

    def log_strength(self, log_kernel: FloatArray) -> FloatArray:
        """Return the logarithm of an edge's mean, given its log-kernel, up to a constant in each row."""
        return log_kernel

    def edge_strength(self, kernel: Kernel) -> RadialFunction:
        """Return `log_strength` as a function of the squared distance, up to a constant."""
        return LogKernel(kernel)

    def least_cross_entropy(
        self, means: FloatArray, n_nodes: float, share: float = 1.0, pairs: FloatArray | None = None
    ) -> float:
        """Return min over η of A(η) − share <means, η>, a lower bound for every embedding; −inf if unknown.

        Parameters
        ----------
        means : ndarray of shape (n_edges,)
        n_nodes : float
        share : float, default=1.0
        pairs : ndarray of shape (n_edges,), optional
            How many pairs of copies share each mean, if points are weighted; `n_nodes` is then the sum of weights.
        """
        return -np.inf

    @classmethod
    def enumerate(cls, n_nodes: int) -> tuple[IntArray, FloatArray]:
        """Return every graph of very few nodes, of shape (n_graphs, n, n), and its log base measure.

        Raises
        ------
        ValueError
            When there are too many graphs, or the prior does not list them.
        """
        raise ValueError(f"{cls.__name__} does not enumerate its graphs; give it a classmethod `enumerate`.")

    @abstractmethod
    def log_partition_and_grad(
        self,
        kernel: Kernel,
        Z: FloatArray,
        summation: Summation,
        *,
        weights: FloatArray | None = None,
        with_value: bool = True,
        with_gradient: bool = True,
    ) -> tuple[float, FloatArray | None]:
        """Return A(η_Z) over all ordered pairs, η_Z = log k(d²_ij), and its gradient in Z.

        Parameters
        ----------
        kernel : Kernel
            It already includes a scalar edge prior that does not cancel; see `latent_kernel`.
        Z : ndarray of shape (n, q)
        summation : Summation
            How sums over all pairs are computed.
        weights : ndarray of shape (n,), optional
            How many points each row stands for; sums then include pairs of copies. Only if `drawn_by` is not None.
        with_value, with_gradient : bool
            What to compute; the value may else be nan, the gradient None.
        """


def per_pair(means: FloatArray, share: float, pairs: FloatArray | None) -> float:
    """Return Σ m log c, the increase of −Σ m log m if each mean m is shared equally by c pairs."""
    return 0.0 if pairs is None else share * float(xlogy(means, pairs).sum())


def with_copies(
    potential: FloatArray, radial: RadialFunction, weights: FloatArray | None, charges: FloatArray | None = None
) -> FloatArray:
    """Add the other copies of each weighted point, of charge 1 or `charges` each, at distance 0, to potentials.

    Pairs of copies do not depend on the embedding. Where the radial function is infinite at 0 they are left out.
    """
    if weights is None:
        return potential
    others = np.maximum(weights - 1.0, 0.0) * at_zero(radial)
    return potential + (others if charges is None else others * charges)


def at_zero(radial: RadialFunction) -> float:
    """Return the value of a radial function at distance 0; 0 if it is infinite there."""
    # Kernels are constant below squared distances of 1e-37.
    near = radial.potential(np.array([0.0, 1e-30, 1e-20]))
    unbounded = not np.isfinite(near).all() or abs(near[1] - near[2]) > 1.0
    return 0.0 if unbounded else float(near[0])


def same_weights(left: Any, right: Any) -> bool:
    """Return whether two edge priors are equal: numbers, arrays, sparse matrices or graphs."""
    if left is right:
        return True
    if left is None or right is None:
        return False
    if isinstance(left, Real) or isinstance(right, Real):
        return isinstance(left, Real) and isinstance(right, Real) and float(left) == float(right)
    first, second = as_csr(left, "edge_prior"), as_csr(right, "edge_prior")
    return first.shape == second.shape and not (first != second).nnz


def check_enumerable(name: str, n_nodes: int, most: int) -> None:
    """Raise unless there are few enough nodes to list all graphs."""
    if not 2 <= n_nodes <= most:
        raise ValueError(f"prior {name} is enumerated for 2 to {most} nodes, got {n_nodes}.")


def graphs_of_counts(n_nodes: int, counts: IntArray) -> IntArray:
    """Return graphs, of shape (n_graphs, n, n), from the counts of their ordered pairs."""
    graphs = np.zeros((len(counts), n_nodes, n_nodes), dtype=np.int64)
    rows, columns = np.nonzero(~np.eye(n_nodes, dtype=bool))
    graphs[:, rows, columns] = counts
    return graphs


PRIORS: Registry[type[GraphPrior]] = Registry("prior", "a graph prior")


def register(prior: type[GraphPrior]) -> type[GraphPrior]:
    """Register a prior under its `code`, which then names it everywhere; decorates a class.

    Raises
    ------
    TypeError
        When it is no subclass of `GraphPrior`, or has no `code` of its own.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import graphcouple as gc
    >>> @gc.extend.register_prior
    ... @dataclass(frozen=True, eq=False, repr=False)
    ... class OneOut(gc.UnitOutDegree):
    ...     code = "one out"
    >>> type(gc.GraphModel("gaussian", "one out").prior).__name__
    'OneOut'
    """
    # An inherited code is the name of another prior, which it would replace.
    if not (isinstance(prior, type) and issubclass(prior, GraphPrior) and "code" in vars(prior)):
        raise TypeError(f"a registered prior must be a subclass of GraphPrior with a `code` of its own, got {prior!r}.")
    PRIORS.add(prior.code, prior)
    return prior


def as_prior(prior: Any) -> GraphPrior:
    """Return `prior` itself, or the prior registered under this name.

    Raises
    ------
    TypeError, ValueError
        When it is neither a prior nor a registered name.

    Examples
    --------
    >>> from graphcouple.laws.priors import as_prior
    >>> as_prior("D")
    UnitOutDegree()
    """
    if isinstance(prior, type):
        raise TypeError(f"prior must be an instance of a graph prior, not a class: write {prior.__name__}().")
    return prior if isinstance(prior, GraphPrior) else PRIORS[prior]()
