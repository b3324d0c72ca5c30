"""Hierarchical coupling: graphs place points within components, precisions place the components."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from graphcouple._parameters import estimator, parameter
from graphcouple.couplings import ComponentMeans
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.embedding import EmbeddingEstimator
from graphcouple.estimators.sne import TSNE
from graphcouple.graphs import FloatArray
from graphcouple.laws.priors import RandomGraph
from graphcouple.sentence import Sentence


@estimator
class HierarchicalCoupling(EmbeddingEstimator):
    """Add to a graph coupling a coupling of its component means by precisions.

    A neighbour embedding places points within connected components of the hidden graph, but says nothing about where
    the components lie. The joint objective is

        H(Z) + λ E_W[J_ε(UᵀZ)],

    the cross-entropy of graphs plus the cross-entropy of the component means' precisions, averaged over posterior
    graphs W with component indicators U. The minimiser of the second is a PCA of the means; each iteration computes its
    gradient on a freshly drawn graph. This is a preset of the term `ComponentMeans`, which any estimator accepts.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    estimator_ : estimator
        The fitted plain method, including the term.
    component_loss_ : float
        The mean of J_ε; 0 if the objective has no such term.

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

    estimator: CouplingEstimator | None = parameter(
        default=None,
        kind="GraphCoupling, TSNE, UMAP or another coupling estimator, optional",
        doc="The plain method: its laws, start, optimizer and everything else; TSNE() by default. To search "
        "over its parameters, pass it explicitly and use names such as ``estimator__perplexity``.",
        checks=[None, CouplingEstimator],
        kw_only=False,
    )
    weight: float = parameter(default=1.0)
    strategy: str = parameter(default="joint")
    scale: Any = parameter(default="free")
    epsilon: Any = parameter(default="auto")
    n_graphs: int = parameter(default=10)
    random_state: Any = parameter(default=None, doc="Overrides the estimator's own, unless None.")
    n_jobs: int | None = parameter(default=None, doc="Overrides the estimator's own, unless None.")

    @property
    def _joint(self) -> bool:
        return self.strategy == "joint" and self.weight > 0

    def _plain(self) -> CouplingEstimator:
        """Return the plain method, with the term or starting from ccPCA."""
        plain = TSNE() if self.estimator is None else clone(self.estimator)
        for name in ("random_state", "n_jobs"):
            if getattr(self, name) is not None:
                plain.set_params(**{name: getattr(self, name)})
        if self.strategy == "sequential":
            plain.set_params(init="ccpca")
        elif self._joint:
            means = ComponentMeans(float(self.weight), self.scale, self.epsilon, self.n_graphs)
            plain.set_params(terms=(*plain.terms, means))
        return plain

    @property
    def sentence(self) -> Sentence:
        """The method as parameters of `GraphCoupling`."""
        return self._plain().sentence

    def fit(self, X: Any = None, y: Any = None, neighbors: Any = None, *, resume: bool = False, **weights: Any) -> Self:
        """Embed `X`, of shape (n_samples, n_features); see `CouplingEstimator.fit`."""
        self._validate_params()
        plain = self._plain()
        return self._take_from(plain.fit(X, y, neighbors, resume=resume, **weights))

    def _take_from(self, plain: CouplingEstimator) -> Self:
        self.estimator_ = plain
        self.__dict__.pop("kl_divergence_", None)
        fitted = {name: value for name, value in vars(plain).items() if name.endswith("_")}
        self.__dict__.update(fitted)
        self.component_loss_ = plain.term_losses_[-1] if self._joint else 0.0
        return self

    @property
    def posterior_(self) -> RandomGraph:
        """The law of the input's graph."""
        check_is_fitted(self)
        return self.estimator_.posterior_

    _not_saved: ClassVar[frozenset[str]] = frozenset({"estimator_"})

    def _remember(self) -> dict[str, Any]:
        return {"estimator": self.estimator_._saved()}

    def _recall(self, remembered: dict[str, Any]) -> None:
        self.estimator_ = type(self._plain())._loaded(remembered["estimator"])

    def transform(self, X: Any, return_loss: bool = False) -> Any:
        """Place new points by the plain method's law of their edges; see `CouplingEstimator.transform`."""
        check_is_fitted(self)
        return self.estimator_.transform(X, return_loss)

    def update(self, X: Any, move: str = "none", sample_weight: Any = None) -> Self:
        """Add points to the embedding; see `CouplingEstimator.update`."""
        check_is_fitted(self)
        return self._take_from(self.estimator_.update(X, move, sample_weight))

    def inverse_transform(self, Z: Any) -> FloatArray:
        """Return means of the fitted points for places in the embedding; see `CouplingEstimator.inverse_transform`."""
        check_is_fitted(self)
        return self.estimator_.inverse_transform(Z)

    def isolation(self, X: Any) -> FloatArray:
        """Return how far new points are from those of `fit`; see `CouplingEstimator.isolation`."""
        check_is_fitted(self)
        return self.estimator_.isolation(X)
