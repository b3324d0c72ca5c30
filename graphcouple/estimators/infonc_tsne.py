"""InfoNC-t-SNE: t-SNE's laws, coupled by InfoNCE."""

from __future__ import annotations

from typing import Any

from graphcouple.couplings import ContrastiveCoupling
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import AT_LEAST_1
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.preset import perplexity_law
from graphcouple.estimators.sentence import Sentence
from graphcouple.kernels import Student
from graphcouple.laws import GraphModel
from graphcouple.laws.priors import UnitOutDegree
from graphcouple.optimize import Adam


@estimator
class InfoNCTSNE(CouplingEstimator):
    """InfoNC-t-SNE: each edge of t-SNE's input is distinguished from points drawn at random, by t-SNE's kernel.

    With few drawn points the map is compact, like UMAP's; with more, it resembles t-SNE's. Points are drawn anew for
    each of the steps, by Adam at a falling rate. `loss_` is the mean loss over draws that stay the same. New points are
    placed by the law of many drawn points, prior D.

    {parameters}

    {attributes}

    References
    ----------
    Damrich, Böhm, Hamprecht and Kobak (2023), From t-SNE to UMAP with contrastive learning, section 6. There the
    input's graph has equal weights.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.InfoNCTSNE(max_iter=100, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    n_components: int = parameter(default=2, kw_only=False)
    perplexity: Any = parameter(default=30.0)
    n_neighbors: Any = parameter(
        default="auto",
        doc="Number of neighbours of each point that can carry its edges, not counting the point itself. None means "
        'all pairs, and "auto" three times the perplexity.',
    )
    negative_sample_rate: int = parameter(
        default=5, kind="int", doc="Points drawn for each edge and end; at most n − 1.", checks=[AT_LEAST_1]
    )
    metric: Any = parameter(default="euclidean")
    metric_params: dict[str, Any] | None = parameter(default=None)
    target_weight: float = parameter(default=0.0)
    learning_rate: Any = parameter(default="auto", doc='Rate of the first step of Adam, which falls to 0; "auto" is 1.')
    max_iter: Any = parameter(default=500, doc="Number of steps, all of which are taken.")
    init: Any = parameter(default="pca")

    @property
    def sentence(self) -> Sentence:
        rate = 1.0 if isinstance(self.learning_rate, str) else float(self.learning_rate)
        latent, coupling = GraphModel(Student(), UnitOutDegree()), ContrastiveCoupling(self.negative_sample_rate)
        return self._stated(perplexity_law(self, sparse=True), latent, coupling, Adam(rate, annealed=True))
