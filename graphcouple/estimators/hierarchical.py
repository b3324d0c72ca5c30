"""Hierarchical coupling: graphs within components, precisions between them."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from graphcouple.couplings import ComponentCrossEntropy, CrossEntropy, Objective
from graphcouple.estimators._base import CouplingEstimator, EmbeddingEstimator
from graphcouple.estimators.sne import TSNE


class HierarchicalCoupling(EmbeddingEstimator):
    """Add to a graph coupling the coupling of its components' means by precisions.

    A neighbour embedding places points within connected components of the hidden graph, and says nothing of where the
    components lie. The joint objective is

        H(Z) + λ E_W[J_ε(UᵀZ)],

    the cross-entropy of graphs plus, averaged over posterior graphs W with component indicators U, that of the
    precisions of the component means, whose minimiser is a PCA of the means. Each iteration takes the second
    gradient on a graph drawn afresh.

    Parameters
    ----------
    estimator : GraphCoupling, TSNE, UMAP or another coupling estimator, optional
        The plain method: its laws, start, optimizer and everything else; TSNE() by default. Name it to set its
        parameters in a search, as in ``estimator__perplexity``.
    weight : float, default=1.0
        λ: 0 is the plain method; the larger, the closer the arrangement of the components is to ccPCA's. Above about
        100 the steps that J allows become small ones for H: give the estimator ``init="ccpca"``, and more iterations.
    strategy : {"joint", "sequential"}, default="joint"
        "sequential" is the paper's: global structure first, by ccPCA, then the plain method from there; `weight` and
        what follows have no part in it.
    scale : "free" or float, default="free"
        The embedding's length for a unit of length of X; "free" compares shapes only. See `ComponentCrossEntropy`.
    epsilon : "auto" or float, default="auto"
        ε; see `ComponentCrossEntropy`.
    n_graphs : int, default=10
        Graphs that the reported loss is averaged over.
    random_state : int, RandomState or None, default=None
        In place of the estimator's own, unless None.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    estimator_ : estimator
        The plain method as fitted, with its own attributes.
    posterior_ : GraphPosterior
        The law of the input's graph.
    loss_ : float
        The joint objective at the end, in nats; ``coupling_loss_ + weight * component_loss_``.
    coupling_loss_, component_loss_ : float
        H and the mean of J_ε; the latter 0 where it has no part.
    loss_history_ : ndarray of shape (n_checks,)
        The joint objective over time.
    loss_iterations_ : ndarray of shape (n_checks,)
        The iterations of `loss_history_`.
    n_iter_ : int
    stop_reason_ : str
    kl_divergence_ : float
        For the pairs D–D, D–E and E–E; see `CrossEntropy.kl_divergence`.

    References
    ----------
    Graph-coupling paper, section 4.2, equations 8 and 9.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> both = gc.HierarchicalCoupling(gc.TSNE(perplexity=10), weight=1.0, random_state=0).fit(X)
    >>> both.embedding_.shape
    (150, 2)
    >>> plain = gc.HierarchicalCoupling(gc.TSNE(perplexity=10), weight=0.0, random_state=0).fit(X)
    >>> plain.coupling_loss_ < both.coupling_loss_
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [None, CouplingEstimator],
        "weight": [Interval(Real, 0, None, closed="left")],
        "strategy": [StrOptions({"joint", "sequential"})],
        "scale": [StrOptions({"free"}), Interval(Real, 0, None, closed="neither")],
        "epsilon": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "n_graphs": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: CouplingEstimator | None = None,
        *,
        weight: float = 1.0,
        strategy: str = "joint",
        scale: Any = "free",
        epsilon: Any = "auto",
        n_graphs: int = 10,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.weight = weight
        self.strategy = strategy
        self.scale = scale
        self.epsilon = epsilon
        self.n_graphs = n_graphs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Embed `X`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : None
            Ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            When `X` or a parameter is not usable; the message says why.
        """
        self._validate_params()
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], ensure_min_samples=2)
        plain = TSNE() if self.estimator is None else clone(self.estimator)
        if plain.takes_distances and (self.strategy == "sequential" or self.weight > 0):
            raise ValueError(
                "component means need points, not precomputed distances; pass the points as X and the graph's "
                "posterior as the input of GraphCoupling."
            )
        if self.random_state is not None:
            plain.set_params(random_state=self.random_state)
        if self.strategy == "sequential":
            plain.set_params(init="ccpca")
        joint = self.strategy == "joint" and self.weight > 0
        means: list[ComponentCrossEntropy] = []

        def with_means(coupling: CrossEntropy, points: Any, rng: np.random.RandomState) -> Objective:
            means.append(self._component_coupling(plain, coupling, points, rng))
            return coupling + float(self.weight) * means[0]

        self.estimator_ = plain._fit(X, with_means if joint else None)
        for name in (
            "embedding_",
            "posterior_",
            "loss_",
            "loss_history_",
            "loss_iterations_",
            "n_iter_",
            "stop_reason_",
        ):
            setattr(self, name, getattr(plain, name))
        self.__dict__.pop("kl_divergence_", None)
        if hasattr(plain, "kl_divergence_"):
            self.kl_divergence_ = plain.kl_divergence_
        self.component_loss_ = means[0].value(self.embedding_) if joint else 0.0
        self.coupling_loss_ = self.loss_ - (float(self.weight) * self.component_loss_ if joint else 0.0)
        return self

    def _component_coupling(
        self, plain: CouplingEstimator, coupling: CrossEntropy, X: Any, rng: np.random.RandomState
    ) -> ComponentCrossEntropy:
        return ComponentCrossEntropy(
            X,
            coupling.posterior,
            n_components=plain.n_components,
            scale=self.scale,
            epsilon=self.epsilon,
            n_graphs=self.n_graphs,
            seed=int(rng.randint(np.iinfo(np.int32).max)),
            n_jobs=plain.n_jobs,
        )
