"""Any coupling whose map is a function of the points."""

from __future__ import annotations

from typing import Any

from graphcouple.couplings.parametric import FeatureMap
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.graph_coupling import GraphCoupling
from graphcouple.estimators.wrapper import WithTerm
from graphcouple.graphs import FloatArray


@estimator
class ParametricCoupling(WithTerm):
    """A coupling whose map is a function of the points, Z = f(X): linear in their features, or a network.

    With ``features="linear"`` each axis of the map is a weighted sum of the columns of X, so it can be interpreted; of
    all these maps, descent seeks the one with the lowest loss. `Nystroem`, `RBFSampler` and other transformers of
    scikit-learn make f curved. Fewer features make f smoother and the loss higher. With ``features="network"`` f is a
    multi-layer perceptron: descent of its weights starts where regression to the plain map ends, and reaches about the
    plain map's loss. The loss is of all points at each step, so there are no batches to choose. `transform` is f,
    whatever is done to `embedding_`. `loss_history_` of a network holds both descents; in the second, it counts the
    weight decay and the bound on the map's size, which `loss_` leaves out. `start_losses_` are of the plain map.

    {parameters}

    {attributes}
    estimator_ : GraphCoupling
        The fitted method.
    components_ : ndarray of shape (n_components, n_features)
        The weight of each feature; a network has none.

    References
    ----------
    Bunte, Biehl and Hammer (2012), A general framework for dimensionality-reducing data visualization mapping.
    Sainburg, McInnes and Gentner (2021), Parametric UMAP embeddings; van der Maaten (2009), Learning a parametric
    embedding by preserving local structure, for networks.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> linear = gc.ParametricCoupling(gc.TSNE(perplexity=20), random_state=0).fit(X)
    >>> linear.components_.shape
    (2, 4)
    >>> bool(abs(linear.transform(X) - linear.embedding_).max() < 1e-6)
    True
    """

    features: Any = parameter(default="linear")

    def _plain(self) -> CouplingEstimator:
        return GraphCoupling(**super()._plain().sentence.replace(features=self.features))

    @property
    def components_(self) -> FloatArray:
        """The weight of each feature, of shape (n_components, n_features)."""
        function = self._fitted._function
        if not isinstance(function, FeatureMap):
            raise AttributeError("a network has no weight for each feature; a map with features='linear' has.")
        return function.weights.T
