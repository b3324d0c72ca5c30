"""CO-SNE: t-SNE in hyperbolic space, with distances from the centre."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from graphcouple.couplings import OriginDistances
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import ABOVE_0, AT_LEAST_0
from graphcouple.estimators.carry_out import Result
from graphcouple.estimators.preset import PerplexityPreset
from graphcouple.estimators.sentence import Sentence
from graphcouple.graphs import FloatArray
from graphcouple.kernels import Student
from graphcouple.laws import GraphModel, Hyperbolic
from graphcouple.laws.priors import FixedEdges


@estimator
class COSNE(PerplexityPreset):
    """CO-SNE: t-SNE whose map lies in hyperbolic space, for trees and hierarchies.

    A disc in hyperbolic space grows exponentially with its radius, as a tree does with its depth. `embedding_` has the
    areas of this space; `disc_` holds the same places in Poincaré's disc of radius 1. Sums over all pairs are exact,
    for at most 30,000 points. New points are placed by ``transform_method="mlp"`` only.

    {parameters}

    {attributes}
    disc_ : ndarray of shape (n_samples, n_components)
        The places in Poincaré's disc.
    radius_ : float
        The radius of curvature of the fitted map.

    References
    ----------
    Guo, Guo and Yu (2022), CO-SNE: Dimensionality reduction and visualization for hyperbolic data. Their γ is
    1/`radius`. They compare squared norms, and `OriginDistances` compares proportions.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> cosne = gc.COSNE(max_iter=100, random_state=0).fit(X)
    >>> bool((cosne.disc_**2).sum(axis=1).max() < 1)
    True
    """

    radius: float = parameter(
        default=1.0,
        doc="Radius of curvature, in units of the Student kernel's length: the smaller, the more curved the space.",
        checks=[ABOVE_0],
    )
    origin_weight: float = parameter(
        default=0.1,
        doc="Weight of distances from the centre, in proportion to the data's; see `OriginDistances`.",
        checks=[AT_LEAST_0],
    )

    def _latent_law(self) -> GraphModel:
        return GraphModel(Student(), FixedEdges(), metric=Hyperbolic(self.radius))

    @property
    def sentence(self) -> Sentence:
        plain = super().sentence
        return plain.replace(terms=[OriginDistances(self.origin_weight), *self.terms]) if self.origin_weight else plain

    def _keep(self, result: Result, dtype: Any) -> None:
        super()._keep(result, dtype)
        self.radius_ = float(result.part.problem.latent.metric.radius)

    @property
    def disc_(self) -> FloatArray:
        """The places in Poincaré's disc, of radius 1."""
        check_is_fitted(self)
        return Hyperbolic(self.radius_).disc(self.embedding_)
