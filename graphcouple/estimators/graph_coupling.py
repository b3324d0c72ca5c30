"""The generic estimator: any laws of the two graphs, any coupling, any terms."""

from __future__ import annotations

from typing import Any

from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.sentence import Sentence
from graphcouple.laws import GraphModel
from graphcouple.optimize import Descent


@estimator
class GraphCoupling(CouplingEstimator):
    """Couple a law of the input's graph with a law of the embedding's.

    Every named method is this estimator with certain parts; see ``TSNE().sentence``. Feasible pairs of priors (input,
    embedding) are B–B, D–B, D–D, D–E, E–E, and S with each.

    {parameters}

    {attributes}

    See Also
    --------
    CrossEntropy, GraphModel

    References
    ----------
    Graph-coupling paper, section 3.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> sharp = gc.GraphCoupling(
    ...     input=gc.GraphModel(gc.Gaussian(), gc.UnitOutDegree(), gc.Perplexity(20), n_neighbors=60),
    ...     latent=gc.GraphModel(gc.Student(dof=0.5), gc.FixedEdges()),
    ...     random_state=0,
    ... )
    >>> sharp.fit_transform(X).shape
    (150, 2)

    You can pass your own graph as the input; its weights are the strengths of the edges:

    >>> import networkx as nx
    >>> ring = nx.cycle_graph(40)
    >>> drawn = gc.GraphCoupling(ring, gc.GraphModel(gc.Student(), "E"), init="spectral", random_state=0).fit()
    >>> drawn.embedding_.shape
    (40, 2)
    """

    input: Any = parameter(kw_only=False)
    latent: GraphModel = parameter(kw_only=False)
    coupling: Any = parameter(default="cross-entropy")
    optimizer: Any = parameter(default="auto")
    init: Any = parameter(default="ccpca")
    max_iter: Any = parameter(default="auto")
    n_components: int = parameter(default=2)
    features: Any = parameter(default=None, like="features or none")

    @property
    def sentence(self) -> Sentence:
        """The estimator's own parameters."""
        optimizer = Descent() if isinstance(self.optimizer, str) else self.optimizer
        stated = self._stated(self.input, self.latent, self.coupling, optimizer)
        return stated if self.features is None else stated.replace(features=self.features)
