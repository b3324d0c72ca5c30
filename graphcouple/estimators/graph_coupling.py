"""The generic estimator: any law of the input's graph, any law of the embedding's."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from graphcouple.estimators._base import COMMON_CONSTRAINTS, CouplingEstimator
from graphcouple.models import GraphModel
from graphcouple.optimize import Callback, Optimizer
from graphcouple.priors import GraphPosterior


class GraphCoupling(CouplingEstimator):
    """Couple a law of the input's graph with a law of the embedding's, by cross-entropy.

    Every named method is this estimator with two laws chosen: see the table in the
    documentation. Feasible pairs of priors (input, embedding) are B–B, D–B, D–D, D–E
    and E–E.

    Parameters
    ----------
    input : GraphModel or GraphPosterior
        The law of the input's graph; or its posterior, made beforehand (your own
        neighbours, distances or affinities).
    latent : GraphModel
        The law of the embedding's graph: kernel and prior.
    n_components : int, default=2
        Dimension of the embedding.
    init : {"ccpca", "pca", "random", "spectral"} or array of shape (n_samples, n_components), default="ccpca"
        The start: principal components of the averaged means of the input graph's connected components (see
        `CCPCA`), principal components of X, Gaussian noise, or Laplacian eigenvectors of the input's graph; scaled to
        the standard deviation that suits the latent prior (1e-4 for D and E, 10 for B). An array is used as it is.
    optimizer : "auto" or Optimizer, default="auto"
        "auto" is `MomentumGains` with an early exaggeration of 12 (none where the latent
        kernel is flat at zero).
    max_iter : int, default=550
        Iterations at most.
    summation : {"auto", "barnes_hut", "exact", "particle_mesh"} or Summation, default="auto"
        How sums over all pairs of the embedding are done; "auto" is exact for few points and fast for many, see
        `graphcouple.summation.Auto`.
    random_state : int, RandomState or None, default=None
        Seeds the start.
    n_jobs : int or None, default=None
        Threads; None means every core. The embedding does not depend on it.
    verbose : int, default=0
        Above 0, show a progress bar on a terminal.
    callback : callable, optional
        Called every 10 iterations as ``callback(iteration, loss, Z)``; a true value stops.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    posterior_ : GraphPosterior
        The law of the input's graph.
    loss_ : float
        Cross-entropy at the end, in nats, without its constant; see `CrossEntropy`.
    loss_history_ : ndarray of shape (n_checks,)
        The loss over time, from the start to the end.
    loss_iterations_ : ndarray of shape (n_checks,)
        The iterations of `loss_history_`.
    n_iter_ : int
        Iterations done.
    stop_reason_ : str
        What ended the run: a convergence test, `max_iter`, or the callback.
    kl_divergence_ : float
        For the pairs D–D, D–E and E–E, the divergence of edge probabilities; see
        `CrossEntropy.kl_divergence`.

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
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **COMMON_CONSTRAINTS,
        "input": [GraphModel, GraphPosterior],
        "latent": [GraphModel],
        "optimizer": [StrOptions({"auto"}), Optimizer],
    }

    def __init__(
        self,
        input: GraphModel | GraphPosterior,
        latent: GraphModel,
        *,
        n_components: int = 2,
        init: Any = "ccpca",
        optimizer: Any = "auto",
        max_iter: int = 550,
        summation: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.input = input
        self.latent = latent
        self.n_components = n_components
        self.init = init
        self.optimizer = optimizer
        self.max_iter = max_iter
        self.summation = summation
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def models(self, n_samples: int) -> tuple[GraphModel | GraphPosterior, GraphModel]:
        """Return the two laws as given."""
        return self.input, self.latent

    def _optimizer(self, latent: GraphModel, n_samples: int, rng: np.random.RandomState) -> Optimizer:
        return self.optimizer if isinstance(self.optimizer, Optimizer) else super()._optimizer(latent, n_samples, rng)
