"""TriMap: triplets of points, of which one is nearer than the other."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval

from graphcouple.couplings.triplets import TripletCoupling
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import AT_LEAST_1
from graphcouple.estimators.pacmap import OfNearPairs
from graphcouple.estimators.sentence import Sentence


@estimator
class TriMap(OfNearPairs):
    """TriMap: of three points, the pair that is nearer in the input should be nearer on the map.

    Near points are each point's most likely edges under a law with self-tuning bandwidths; far points are random. The
    embedding has no law: the loss is a sum over fixed triplets. It keeps more of the large scale and fewer of the
    nearest neighbours than t-SNE. A far outlier of the start stays far, and clusters that are very far
    apart become specks. New points need ``transform_method="mlp"``.

    {parameters}

    {attributes}

    References
    ----------
    Amid and Warmuth (2019), TriMap: large-scale dimensionality reduction using triplets.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.TriMap(random_state=0).fit_transform(X).shape
    (150, 2)
    """

    n_inliers: int = parameter(default=12, doc="Near points of each point.", checks=[AT_LEAST_1])
    n_outliers: int = parameter(default=4, doc="Far points for each near point.", checks=[AT_LEAST_1])
    n_random: int = parameter(
        default=3, doc="Triplets of random points, for each point.", checks=[Interval(Integral, 0, None, closed="left")]
    )
    weight_temp: float = parameter(
        default=0.5,
        doc="t of the logarithm of the weights, in [0, 1): the nearer to 1, the smaller are their differences.",
        checks=[Interval(Real, 0, 1, closed="left")],
    )
    max_iter: Any = parameter(default=400, doc="Number of steps, all of which are taken.")

    @property
    def sentence(self) -> Sentence:
        coupling = TripletCoupling(self.n_inliers, self.n_outliers, self.n_random, float(self.weight_temp))
        return self._of_pairs(self.n_inliers, coupling)
