"""The SNE family: prior D given the input; D (SNE) or E (symmetric SNE, t-SNE) given the embedding."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from graphcouple.bandwidths import Perplexity
from graphcouple.estimators._base import (
    COMMON_CONSTRAINTS,
    DESCENT_CONSTRAINTS,
    PERPLEXITY_CONSTRAINTS,
    CouplingEstimator,
    neighbors_for,
)
from graphcouple.kernels import Gaussian, Student
from graphcouple.models import GraphModel
from graphcouple.optimize import Callback
from graphcouple.priors import FixedEdges, UnitOutDegree


class PerplexityEstimator(CouplingEstimator):
    """What the methods with a perplexity share: their parameters, and prior D given the input."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **COMMON_CONSTRAINTS,
        **PERPLEXITY_CONSTRAINTS,
        **DESCENT_CONSTRAINTS,
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        n_neighbors: Any = "auto",
        metric: str = "euclidean",
        early_exaggeration: float = 4.0,
        learning_rate: Any = "auto",
        max_iter: int = 550,
        init: Any = "pca",
        summation: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.early_exaggeration = early_exaggeration
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.init = init
        self.summation = summation
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _input_model(self, n_samples: int) -> GraphModel:
        neighbors = neighbors_for(self.n_neighbors, self.perplexity, n_samples)
        return GraphModel(Gaussian(), UnitOutDegree(), Perplexity(self.perplexity), neighbors, metric=self.metric)


class SNE(PerplexityEstimator):
    """Stochastic neighbor embedding: prior D on both sides, Gaussian kernels.

    Every row of the embedding's law is normalised by itself, so repulsion is local to each
    point: S_i = Σ_j k(d²_ij).

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding.
    perplexity : float, default=30.0
        Effective number of neighbours of each point; above 1 and below the number
        of neighbours.
    n_neighbors : int, None or "auto", default="auto"
        Neighbours of each point that can carry its edge, the point itself not
        counted; None means all pairs. "auto" is all pairs up to 2,000 points, and
        three times the perplexity beyond.
    metric : str, default="euclidean"
        The distance of the points, or "precomputed".
    early_exaggeration : float, default=4.0
        Weight of the attraction in the first 150 iterations (in the first half of a run of
        fewer than 300); 1 for none.
    learning_rate : float or "auto", default="auto"
        In scikit-learn's convention; see `MomentumGains`.
    max_iter : int, default=550
        Iterations at most.
    init : {"ccpca", "pca", "random", "spectral"} or array of shape (n_samples, n_components), default="pca"
        The start, scaled to a standard deviation of 1e-4; an array is used as it is.
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
    posterior_ : UnitOutDegreePosterior
        The law of the input's graph.
    loss_ : float
        Cross-entropy at the end, in nats, without its constant.
    loss_history_ : ndarray of shape (n_checks,)
        The loss over time, from the start to the end.
    loss_iterations_ : ndarray of shape (n_checks,)
        The iterations of `loss_history_`.
    kl_divergence_ : float
        Mean Kullback–Leibler divergence of the rows.
    n_iter_ : int
        Iterations done.
    stop_reason_ : str
        What ended the run: a convergence test, `max_iter`, or the callback.

    References
    ----------
    Hinton and Roweis (2002), Stochastic neighbor embedding; graph-coupling paper,
    section 3.1 (the pair D–D).

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> sne = gc.SNE(perplexity=20, random_state=0).fit(X)
    >>> sne.embedding_.shape
    (150, 2)
    """

    def models(self, n_samples: int) -> tuple[GraphModel, GraphModel]:
        """Return the laws of the input's and of the embedding's graph for this many samples."""
        return self._input_model(n_samples), GraphModel(Gaussian(), UnitOutDegree())


class SymmetricSNE(PerplexityEstimator):
    """Symmetric SNE: prior D given the input, E given the embedding, Gaussian kernels.

    The embedding's law is normalised over all pairs at once; with a Student
    kernel in place of the Gaussian it would be t-SNE.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding.
    perplexity : float, default=30.0
        Effective number of neighbours of each point; above 1 and below the number
        of neighbours.
    n_neighbors : int, None or "auto", default="auto"
        Neighbours of each point that can carry its edge, the point itself not
        counted; None means all pairs. "auto" is all pairs up to 2,000 points, and
        three times the perplexity beyond.
    metric : str, default="euclidean"
        The distance of the points, or "precomputed".
    early_exaggeration : float, default=4.0
        Weight of the attraction in the first 150 iterations (in the first half of a run of
        fewer than 300); 1 for none.
    learning_rate : float or "auto", default="auto"
        In scikit-learn's convention; see `MomentumGains`.
    max_iter : int, default=550
        Iterations at most.
    init : {"ccpca", "pca", "random", "spectral"} or array of shape (n_samples, n_components), default="pca"
        The start, scaled to a standard deviation of 1e-4; an array is used as it is.
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
    posterior_ : UnitOutDegreePosterior
        The law of the input's graph.
    loss_ : float
        Cross-entropy at the end, in nats, without its constant.
    loss_history_ : ndarray of shape (n_checks,)
        The loss over time, from the start to the end.
    loss_iterations_ : ndarray of shape (n_checks,)
        The iterations of `loss_history_`.
    kl_divergence_ : float
        Kullback–Leibler divergence of joint probabilities.
    n_iter_ : int
        Iterations done.
    stop_reason_ : str
        What ended the run: a convergence test, `max_iter`, or the callback.

    References
    ----------
    van der Maaten and Hinton (2008), Visualizing data using t-SNE, section 3.1; graph-coupling
    paper, section 3.1 (the pair D–E).

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> sne = gc.SymmetricSNE(perplexity=20, random_state=0).fit(X)
    >>> sne.embedding_.shape
    (150, 2)
    """

    def models(self, n_samples: int) -> tuple[GraphModel, GraphModel]:
        """Return the laws of the input's and of the embedding's graph for this many samples."""
        return self._input_model(n_samples), GraphModel(Gaussian(), FixedEdges())


class TSNE(PerplexityEstimator):
    """t-SNE: prior D given the input, E given the embedding, Gaussian and Student kernels.

    The loss is n times t-SNE's cross-entropy of joint probabilities; `kl_divergence_` is on
    the scale users know. Unlike peers that always cut the input's graph to a
    few neighbours, up to 2,000 points use every pair.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding.
    perplexity : float, default=30.0
        Effective number of neighbours of each point; above 1 and below the number
        of neighbours.
    n_neighbors : int, None or "auto", default="auto"
        Neighbours of each point that can carry its edge, the point itself not
        counted; None means all pairs. "auto" is all pairs up to 2,000 points, and
        three times the perplexity beyond.
    metric : str, default="euclidean"
        The distance of the points, or "precomputed".
    dof : float, default=1.0
        Degrees of freedom of the embedding's Student kernel; below 1 for
        heavier tails and finer clusters.
    early_exaggeration : float, default=12.0
        Weight of the attraction in the first 150 iterations (in the first half of a run of
        fewer than 300); 1 for none.
    learning_rate : float or "auto", default="auto"
        In scikit-learn's convention; see `MomentumGains`.
    max_iter : int, default=550
        Iterations at most.
    init : {"ccpca", "pca", "random", "spectral"} or array of shape (n_samples, n_components), default="pca"
        The start, scaled to a standard deviation of 1e-4; an array is used as it is.
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
    posterior_ : UnitOutDegreePosterior
        The law of the input's graph.
    loss_ : float
        Cross-entropy at the end, in nats, without its constant.
    loss_history_ : ndarray of shape (n_checks,)
        The loss over time, from the start to the end.
    loss_iterations_ : ndarray of shape (n_checks,)
        The iterations of `loss_history_`.
    kl_divergence_ : float
        Kullback–Leibler divergence of joint probabilities, as scikit-learn reports it.
    n_iter_ : int
        Iterations done.
    stop_reason_ : str
        What ended the run: a convergence test, `max_iter`, or the callback.

    References
    ----------
    van der Maaten and Hinton (2008), Visualizing data using t-SNE; graph-coupling
    paper, section 3.1 (the pair D–E).

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> tsne = gc.TSNE(perplexity=20, random_state=0).fit(X)
    >>> tsne.embedding_.shape
    (150, 2)
    >>> tsne.kl_divergence_ < 0.25
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PerplexityEstimator._parameter_constraints,
        "dof": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 30.0,
        n_neighbors: Any = "auto",
        metric: str = "euclidean",
        dof: float = 1.0,
        early_exaggeration: float = 12.0,
        learning_rate: Any = "auto",
        max_iter: int = 550,
        init: Any = "pca",
        summation: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        super().__init__(
            n_components,
            perplexity=perplexity,
            n_neighbors=n_neighbors,
            metric=metric,
            early_exaggeration=early_exaggeration,
            learning_rate=learning_rate,
            max_iter=max_iter,
            init=init,
            summation=summation,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
            callback=callback,
        )
        self.dof = dof

    def models(self, n_samples: int) -> tuple[GraphModel, GraphModel]:
        """Return the laws of the input's and of the embedding's graph for this many samples."""
        return self._input_model(n_samples), GraphModel(Student(self.dof), FixedEdges())
