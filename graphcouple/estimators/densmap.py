"""densMAP: UMAP, or another method, with a map that is dense where the data are."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from graphcouple.couplings import Density
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.binary import UMAP
from graphcouple.estimators.wrapper import WithTerm


@estimator
class DensMAP(WithTerm):
    """UMAP, or another method, with local radii in the map in proportion to those in the data.

    This is a preset of the term `Density`, which any estimator accepts. ``DensMAP(TSNE())`` is den-SNE.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
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
        doc="Radii against neighborhoods; 0 is the plain method.",
        checks=[Interval(Real, 0, None, closed="left")],
    )
    slope: float = parameter(
        default=1.0,
        kind="float",
        doc="A radius twice as large in X is 2^slope times as large.",
        checks=[Interval(Real, 0, 10, closed="right")],
    )

    def _term(self) -> Density | None:
        return Density(float(self.weight), float(self.slope)) if self.weight else None
