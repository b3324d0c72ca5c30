"""Any coupling whose map is a function of the points."""

from __future__ import annotations

from typing import Any

from sklearn.utils._param_validation import HasMethods, StrOptions

from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.graph_coupling import GraphCoupling
from graphcouple.estimators.wrapper import WithTerm
from graphcouple.graphs import FloatArray


@estimator
class ParametricCoupling(WithTerm):
    """A coupling whose map is a function of the points, Z = f(X), linear in their features.

    With ``features="linear"`` each axis of the map is a weighted sum of the columns of X, so it can be interpreted; of
    all these maps, descent seeks the one with the lowest loss. `Nystroem`, `RBFSampler` and other transformers of
    scikit-learn make f curved. `transform` is f. Fewer features make f smoother and the loss higher.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    estimator_ : GraphCoupling
        The fitted method.
    components_ : ndarray of shape (n_components, n_features)
        The weight of each feature.

    References
    ----------
    Bunte, Biehl and Hammer (2012), A general framework for dimensionality-reducing data visualization mapping.
    Sainburg, McInnes and Gentner (2021), Parametric UMAP embeddings, have a network as f.

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

    features: Any = parameter(default="linear", checks=[StrOptions({"linear"}), HasMethods(["fit", "transform"])])

    def _term(self) -> None:
        return None

    def _plain(self) -> CouplingEstimator:
        return GraphCoupling(**super()._plain().sentence.replace(features=self.features))

    @property
    def components_(self) -> FloatArray:
        """The weight of each feature, of shape (n_components, n_features)."""
        function = self._fitted._function
        assert function is not None
        return function.weights.T
