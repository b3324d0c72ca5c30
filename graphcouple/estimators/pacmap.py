"""PaCMAP and LocalMAP: near, mid-near and further pairs, in phases."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from graphcouple._support.validation import warn
from graphcouple.couplings import Coupling, LocallyAdjustedCoupling, PairwiseControlledCoupling
from graphcouple.couplings.pacmap import PHASES
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import ABOVE_0, AT_LEAST_1
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.carry_out import Result
from graphcouple.estimators.rows import Rows
from graphcouple.estimators.sentence import Sentence
from graphcouple.kernels import Gaussian, Student
from graphcouple.laws import GraphModel, SelfTuning
from graphcouple.laws.priors import FixedEdges, UnitOutDegree
from graphcouple.optimize import Adam

# Neighbours in addition, among which the nearest by scaled distance are selected, as many as in pacmap.
_MORE_NEIGHBORS = 50


@estimator
class OfNearPairs(CouplingEstimator):
    """Base class of methods that sum over fixed near and far pairs, and take steps of Adam."""

    n_components: int = parameter(default=2, kw_only=False)
    metric: Any = parameter(default="euclidean")
    metric_params: dict[str, Any] | None = parameter(default=None)
    learning_rate: Any = parameter(default="auto", doc='Rate of Adam; "auto" is 1.')
    init: Any = parameter(default="pca")

    def _of_pairs(self, n_near: int, coupling: Coupling) -> Sentence:
        """Return the sentence of a coupling, with the law whose likeliest edges are the near pairs."""
        candidates = n_near + _MORE_NEIGHBORS
        law = {"n_neighbors": candidates, "metric": self.metric, "metric_params": self.metric_params}
        near = GraphModel(Gaussian(), UnitOutDegree(), SelfTuning(5, candidates), **law)
        rate = 1.0 if isinstance(self.learning_rate, str) else float(self.learning_rate)
        return self._stated(near, GraphModel(Student(), FixedEdges()), coupling, Adam(rate))


@estimator
class PaCMAP(OfNearPairs):
    """PaCMAP: near pairs attract, random pairs repel, and at first, mid-near pairs arrange the whole map.

    Each point's near pairs are its most likely edges under a law with self-tuning bandwidths. The embedding has no law:
    the loss is a sum over fixed pairs, whose weights change at iterations 100 and 200. `loss_` is the last phase's.
    New points need ``transform_method="mlp"``.

    {parameters}

    {attributes}

    References
    ----------
    Wang, Huang, Rudin and Shaposhnik (2021), Understanding how dimension reduction tools work.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.PaCMAP(random_state=0).fit_transform(X).shape
    (150, 2)
    """

    n_neighbors: Any = parameter(
        default="auto",
        kind='int or "auto"',
        doc='Near pairs of each point. "auto" is 10.',
        checks=[AT_LEAST_1, StrOptions({"auto"})],
    )
    mid_ratio: float = parameter(default=0.5, doc="Mid-near pairs for each near pair.", checks=[ABOVE_0])
    far_ratio: float = parameter(default=2.0, doc="Further pairs for each near pair.", checks=[ABOVE_0])
    max_iter: Any = parameter(default=450, doc="Number of steps, all of which are taken.")

    def _coupling(self, near: int, mid: int, far: int) -> PairwiseControlledCoupling:
        return PairwiseControlledCoupling(near, mid, far)

    def _carry_out(self, sentence: Sentence, rows: Rows, rng: np.random.RandomState, **options: Any) -> Result:
        steps = sentence.iterations(rows.n_rows)
        if steps is not None and steps <= PHASES[-1]:
            warn(
                f"max_iter={self.max_iter} ends the run before the last phase, in which the map gets its local shape: "
                f"it begins at step {PHASES[-1]}. Raise max_iter.",
                ConvergenceWarning,
            )
        return super()._carry_out(sentence, rows, rng, **options)

    @property
    def sentence(self) -> Sentence:
        near = 10 if isinstance(self.n_neighbors, str) else int(self.n_neighbors)
        mid, far = max(1, round(near * self.mid_ratio)), max(1, round(near * self.far_ratio))
        return self._of_pairs(near, self._coupling(near, mid, far))


@estimator
class LocalMAP(PaCMAP):
    """LocalMAP: PaCMAP, then near pairs that lie far apart pull less, and only nearby points of the map repel.

    Clusters that touch on PaCMAP's map come apart. `loss_` is the last phase's, for one draw of nearby points. New
    points need ``transform_method="mlp"``.

    {parameters}

    {attributes}

    References
    ----------
    Wang, Sun, Huang and Rudin (2025), Dimension reduction with locally adjusted graphs.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.LocalMAP(random_state=0).fit_transform(X).shape
    (150, 2)
    """

    reach: float = parameter(
        default=10.0,
        doc="Distance on the map within which points repel each other in the last phase.",
        checks=[ABOVE_0],
    )

    def _coupling(self, near: int, mid: int, far: int) -> PairwiseControlledCoupling:
        return LocallyAdjustedCoupling(near, mid, far, float(self.reach))
