"""Presets that add a term to any method: for the places of components, the scale of the whole, or density."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from graphcouple.couplings import ComponentMeans, Density, LargeScale
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import AT_LEAST_0, AT_LEAST_2
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.binary import UMAP
from graphcouple.estimators.wrapper import WithTerm


@estimator
class HierarchicalCoupling(WithTerm):
    """Add to a graph coupling a coupling of its component means by precisions.

    A neighbour embedding places points within connected components of the hidden graph, but says nothing about where
    the components lie. The joint objective is

        H(Z) + λ E_W[J_ε(UᵀZ)],

    the cross-entropy of graphs plus the cross-entropy of the component means' precisions, averaged over posterior
    graphs W with component indicators U. The minimiser of the second term is a PCA of the means. The term is averaged
    over `n_graphs` graphs; optimizers that do not compare gradients of different iterations, such as `MomentumGains`,
    draw a fresh one for each iteration. This is a preset of the term `ComponentMeans`, which any estimator accepts.

    {parameters}

    {attributes}
    estimator_ : estimator
        The fitted plain method, including the term.
    component_loss_ : float
        The mean of J_ε; 0 if the objective has no such term.
    weight_ : float
        λ, also if `weight` is "auto"; 0 if the objective has no such term.

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

    weight: Any = parameter(default="auto")
    strategy: str = parameter(default="joint")
    scale: Any = parameter(default="free")
    epsilon: Any = parameter(default="auto")
    n_graphs: int = parameter(default=10)

    _loss = "component_loss_"

    def _term(self) -> ComponentMeans | None:
        if self.strategy != "joint" or self.weight == 0:
            return None
        weight = self.weight if isinstance(self.weight, (str, bool)) else float(self.weight)
        return ComponentMeans(weight, self.scale, self.epsilon, self.n_graphs)

    def _plain(self) -> CouplingEstimator:
        plain = super()._plain()
        return plain.set_params(init="ccpca") if self.strategy == "sequential" else plain

    def _check_input(self, plain: CouplingEstimator, X: Any) -> None:
        if self.strategy == "sequential" and (X is None or plain.takes_distances):
            raise ValueError(
                "strategy='sequential' starts from ccPCA, which needs points, but there are "
                f"{'none' if X is None else 'distances alone'}; pass points, with a posterior as the input of "
                "GraphCoupling."
            )


@estimator
class TwoScaleCoupling(WithTerm):
    """Add to a graph coupling a second one, at the scale of the whole: it keeps near and far in one embedding.

    A neighbour embedding compares graphs of short edges, and leaves the large scale to its start. The objective is

        H(Z) + λ n [L(Z) + ρ T(Z)],

    with L the cross-entropy of two graphs in which each point is tied to the nearer half of all others. T is the
    cross-entropy of the input's edges under the same large-scale law, which keeps neighbours together. Beyond 10,000
    points, (10,000 n)^½ replaces n. It takes up to 1.8 times as long as the plain method. This is a preset of the term
    `LargeScale`, which any estimator accepts.

    {parameters}

    {attributes}
    estimator_ : estimator
        The fitted plain method, including the term.
    large_scale_loss_ : float
        The term at the embedding; 0 if `weight` is 0.
    weight_ : float
        λ, also if `weight` is "auto".

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_branches(500, random_state=0)
    >>> both = gc.TwoScaleCoupling(random_state=0).fit(X)
    >>> both.embedding_.shape
    (500, 2)
    >>> both.sentence.terms[0]
    LargeScale(weight='auto', resistance=2.5, n_groups='auto', width=0.15)
    """

    weight: Any = parameter(
        default="auto",
        doc='λ, global against local. 0 is the plain method. "auto" is 3 for data with large-scale structure, and '
        "less if a plane cannot show it; see `LargeScale`. Weights up to 10 keep neighborhoods of ten points.",
    )
    n_groups: Any = parameter(
        default="auto",
        kind='int or "auto"',
        doc='Groups of points with which all points are compared. "auto" is 100 to 500; see `LargeScale`.',
        checks=[AT_LEAST_2, StrOptions({"auto"})],
    )

    _loss = "large_scale_loss_"

    def _term(self) -> LargeScale | None:
        if self.weight == 0:
            return None
        return LargeScale(self.weight if isinstance(self.weight, (str, bool)) else float(self.weight), self.n_groups)


@estimator
class DensMAP(WithTerm):
    """UMAP, or another method, with local radii in the map in proportion to the data's.

    This is a preset of the term `Density`, which any estimator accepts. ``DensMAP(TSNE())`` is den-SNE.

    {parameters}

    {attributes}
    estimator_ : estimator
        The fitted plain method, including the term.

    References
    ----------
    Narayan, Berger and Cho (2021), Assessing single-cell transcriptomic variability through density-preserving data
    visualization. There the correlation of local radii is maximised, which leaves `slope` free.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> dense = gc.DensMAP(random_state=0).fit(X)
    >>> plain = gc.UMAP(random_state=0).fit(X)
    >>> match = gc.metrics.density_match
    >>> bool(match(X, dense.embedding_).correlation > match(X, plain.embedding_).correlation)
    True
    """

    plain_method: ClassVar[type[CouplingEstimator]] = UMAP

    estimator: CouplingEstimator | None = parameter(
        default=None,
        kind="UMAP, TSNE, GraphCoupling or another coupling estimator, optional",
        doc="The plain method, UMAP() by default; see `TwoScaleCoupling`.",
        checks=[None, CouplingEstimator],
        kw_only=False,
    )
    weight: Any = parameter(
        default=3.0,
        kind="float",
        doc="Weight of radii against neighborhoods; 0 is the plain method.",
        checks=[AT_LEAST_0],
    )
    slope: float = parameter(
        default=1.0,
        doc="A radius twice as large in X is 2^slope times as large.",
        checks=[Interval(Real, 0, 10, closed="right")],
    )

    def _term(self) -> Density | None:
        return Density(float(self.weight), float(self.slope)) if self.weight else None
