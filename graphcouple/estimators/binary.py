"""Binary latent graphs: LargeVis (prior D given the input) and UMAP (prior B)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from graphcouple.bandwidths import LocalConnectivity
from graphcouple.couplings import CrossEntropy, EffectiveCrossEntropy
from graphcouple.estimators._base import (
    COMMON_CONSTRAINTS,
    DESCENT_CONSTRAINTS,
    CouplingEstimator,
)
from graphcouple.estimators.sne import PerplexityEstimator
from graphcouple.kernels import Exponential, Odds, RationalPower, Student
from graphcouple.models import GraphModel
from graphcouple.optimize import Callback, NegativeSampling, Optimizer
from graphcouple.priors import Binary, GraphPosterior

REPULSIONS = ("effective", "full", "sampled")
"""What may repel in an embedding of prior B."""

_REPULSION_CONSTRAINTS: dict[str, list[Any]] = {
    "repulsion": [StrOptions(set(REPULSIONS))],
    "negative_sample_rate": [Interval(Real, 0, None, closed="neither")],
    "repulsion_strength": [Interval(Real, 0, None, closed="neither")],
    "early_exaggeration": [StrOptions({"auto"}), Interval(Real, 1, None, closed="left")],
}


class BinaryEstimator(CouplingEstimator):
    """What the methods with prior B given the embedding share: what repels, and how it is descended."""

    repulsion: str
    negative_sample_rate: float
    repulsion_strength: float
    early_exaggeration: Any
    learning_rate: Any
    noise_exponent: ClassVar[float] = 0.0
    clip: ClassVar[float] = 4.0
    n_pulls: ClassVar[int] = 2

    def _coupling(self, posterior: GraphPosterior, latent: GraphModel) -> CrossEntropy:
        if self.repulsion == "full":
            return CrossEntropy(posterior, latent, self.summation, self.n_jobs)
        return EffectiveCrossEntropy(
            posterior,
            latent,
            self.negative_sample_rate,
            repulsion_strength=self.repulsion_strength,
            noise_exponent=self.noise_exponent,
            summation=self.summation,
            n_jobs=self.n_jobs,
        )

    def _optimizer(self, latent: GraphModel, n_samples: int, rng: np.random.RandomState) -> Optimizer:
        if self.repulsion == "sampled":
            rate = 1.0 if self.learning_rate == "auto" else float(self.learning_rate)
            seed = int(rng.randint(np.iinfo(np.int32).max))
            return NegativeSampling(rate, clip=self.clip, n_pulls=self.n_pulls, random_state=seed)
        return super()._optimizer(latent, n_samples, rng)

    def _exaggeration_factor(self) -> float:
        if self.early_exaggeration == "auto":
            return 12.0 if self.repulsion == "full" else 1.0
        return float(self.early_exaggeration)


class LargeVis(BinaryEstimator, PerplexityEstimator):
    """LargeVis: prior D given the input, B given the embedding, whose edge probabilities are 1/(1 + d²).

    The latent kernel is ``Odds(Student())`` = 1/d², as in the original, whose samples repel by a law ∝ degree^¾.
    By default their expected loss is minimised, without sampling; see `EffectiveCrossEntropy`.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding.
    perplexity : float, default=50.0
        Effective number of neighbours of each point; above 1 and below the number
        of neighbours.
    n_neighbors : int, None or "auto", default="auto"
        Neighbours of each point that can carry its edge, the point itself not
        counted; None means all pairs. "auto" is all pairs up to 2,000 points, and
        three times the perplexity beyond.
    metric : str, default="euclidean"
        The distance of the points, or "precomputed".
    repulsion : {"effective", "full", "sampled"}, default="effective"
        What repels. "sampled": points drawn at random for each edge drawn, as in the original program
        (`NegativeSampling`). "effective": all points, by the weights that sampling gives them in expectation
        (`EffectiveCrossEntropy`); nothing is random. "full": all points with equal weights, the cross-entropy as the
        papers state it (`CrossEntropy`), whose repulsion is far stronger.
    negative_sample_rate : float, default=5
        How many points repel for each edge that attracts; a whole number for "sampled". Of no account for "full".
    repulsion_strength : float, default=7.0
        Weight of their repulsion; of no account for "full". LargeVis has 7, the γ of its paper.
    early_exaggeration : float or "auto", default="auto"
        Weight of the attraction in the first 150 iterations (in the first half of a run of
        fewer than 300); "auto" is 12 for ``repulsion="full"`` and else 1, that is, none. Sampling knows none.
    learning_rate : float or "auto", default="auto"
        In scikit-learn's convention, see `MomentumGains`; of sampling, see `NegativeSampling`.
    max_iter : int, default=500
        Iterations, or epochs of sampling, at most.
    init : {"ccpca", "pca", "random", "spectral"} or array of shape (n_samples, n_components), default="pca"
        The start, scaled to a standard deviation of 10; an array is used as it is.
    summation : {"auto", "barnes_hut", "exact", "particle_mesh"} or Summation, default="auto"
        How sums over all pairs of the embedding are done; "auto" is exact for few points and fast for many, see
        `graphcouple.summation.Auto`.
    random_state : int, RandomState or None, default=None
        Seeds the start, and the sampling of `repulsion="sampled"`.
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
        The loss at the end, in nats, without its constant.
    loss_history_ : ndarray of shape (n_checks,)
        The loss over time, from the start to the end.
    loss_iterations_ : ndarray of shape (n_checks,)
        The iterations of `loss_history_`.
    n_iter_ : int
        Iterations done.
    stop_reason_ : str
        What ended the run: a convergence test, `max_iter`, or the callback.

    References
    ----------
    Tang et al. (2016), Visualizing large-scale and high-dimensional data; graph-coupling
    paper, section 3.1 (the pair D–B), which has Student() where the original has Odds(Student()).

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.LargeVis(perplexity=20, max_iter=100, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PerplexityEstimator._parameter_constraints,
        **_REPULSION_CONSTRAINTS,
    }
    noise_exponent: ClassVar[float] = 0.75
    clip: ClassVar[float] = 5.0
    # LargeVis moves both points of a pair that repels: each is repelled twice as often as it draws another.
    n_pulls: ClassVar[int] = 1

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 50.0,
        n_neighbors: Any = "auto",
        metric: str = "euclidean",
        repulsion: str = "effective",
        negative_sample_rate: float = 5,
        repulsion_strength: float = 7.0,
        early_exaggeration: Any = "auto",
        learning_rate: Any = "auto",
        max_iter: int = 500,
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
        self.repulsion = repulsion
        self.negative_sample_rate = negative_sample_rate
        self.repulsion_strength = repulsion_strength

    def models(self, n_samples: int) -> tuple[GraphModel, GraphModel]:
        """Return the laws of the input's and of the embedding's graph for this many samples."""
        return self._input_model(n_samples), GraphModel(Odds(Student()), Binary())


class UMAP(BinaryEstimator):
    """UMAP: prior B on both sides, the input's graph thresholded to an undirected one.

    The input's edge probabilities are umap-learn's fuzzy graph; the embedding's are
    1/(1 + a d^{2b}), with a and b fitted to `min_dist` and `spread`. umap-learn draws the points that repel at
    random, which weighs repulsion far less than the cross-entropy it states. By default the loss that it minimises in
    expectation is minimised here without sampling; see `EffectiveCrossEntropy`.

    Parameters
    ----------
    n_components : int, default=2
        Dimension of the embedding.
    n_neighbors : int, default=15
        Size of the neighbourhoods, the point itself counted, as in umap-learn.
    metric : str, default="euclidean"
        The distance of the points, or "precomputed".
    min_dist : float, default=0.1
        Distance below which points of the embedding count as connected; at most `spread`.
    spread : float, default=1.0
        Scale of the embedding's distances.
    local_connectivity : float, default=1.0
        Nearest neighbours that count as connected; see `LocalConnectivity`.
    repulsion : {"effective", "full", "sampled"}, default="effective"
        What repels. "sampled": points drawn at random for each edge drawn, as in the original program
        (`NegativeSampling`). "effective": all points, by the weights that sampling gives them in expectation
        (`EffectiveCrossEntropy`); nothing is random. "full": all points with equal weights, the cross-entropy as the
        papers state it (`CrossEntropy`), whose repulsion is far stronger.
    negative_sample_rate : float, default=5
        How many points repel for each edge that attracts; a whole number for "sampled". Of no account for "full".
    repulsion_strength : float, default=1.0
        Weight of their repulsion; of no account for "full".
    early_exaggeration : float or "auto", default="auto"
        Weight of the attraction in the first 150 iterations (in the first half of a run of
        fewer than 300); "auto" is 12 for ``repulsion="full"`` and else 1, that is, none. Sampling knows none.
    learning_rate : float or "auto", default="auto"
        In scikit-learn's convention, see `MomentumGains`; of sampling, umap-learn's, see `NegativeSampling`.
    max_iter : int or "auto", default="auto"
        Iterations, or epochs of sampling, at most; "auto" is 500 up to 10,000 points and 150 beyond.
    init : {"ccpca", "pca", "random", "spectral"} or array, default="spectral"
        The start, scaled to a standard deviation of 10; an array is used as it is.
    summation : {"auto", "barnes_hut", "exact", "particle_mesh"} or Summation, default="auto"
        How sums over all pairs of the embedding are done; "auto" is exact for few points and fast for many, see
        `graphcouple.summation.Auto`.
    random_state : int, RandomState or None, default=None
        Seeds the start, and the sampling of `repulsion="sampled"`.
    n_jobs : int or None, default=None
        Threads; None means every core. The embedding does not depend on it.
    verbose : int, default=0
        Above 0, show a progress bar on a terminal.
    callback : callable, optional
        Called every 10 iterations as ``callback(iteration, loss, Z)``; a true value stops.

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    posterior_ : BinaryPosterior
        The law of the input's graph.
    loss_ : float
        The loss at the end, in nats, without its constant.
    loss_history_ : ndarray of shape (n_checks,)
        The loss over time, from the start to the end.
    loss_iterations_ : ndarray of shape (n_checks,)
        The iterations of `loss_history_`.
    n_iter_ : int
        Iterations done.
    stop_reason_ : str
        What ended the run: a convergence test, `max_iter`, or the callback.

    References
    ----------
    McInnes, Healy and Melville (2018), UMAP; graph-coupling paper, section 3.1 (the pair B–B on the
    symmetric thresholded graph). Damrich and Hamprecht (2021), On UMAP's true loss
    function.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.UMAP(max_iter=100, random_state=0).fit_transform(X).shape
    (150, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **COMMON_CONSTRAINTS,
        **DESCENT_CONSTRAINTS,
        **_REPULSION_CONSTRAINTS,
        "max_iter": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 2, None, closed="left")],
        "metric": [str],
        "min_dist": [Interval(Real, 0, None, closed="left")],
        "spread": [Interval(Real, 0, None, closed="neither")],
        "local_connectivity": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        n_neighbors: int = 15,
        metric: str = "euclidean",
        min_dist: float = 0.1,
        spread: float = 1.0,
        local_connectivity: float = 1.0,
        repulsion: str = "effective",
        negative_sample_rate: float = 5,
        repulsion_strength: float = 1.0,
        early_exaggeration: Any = "auto",
        learning_rate: Any = "auto",
        max_iter: Any = "auto",
        init: Any = "spectral",
        summation: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.min_dist = min_dist
        self.spread = spread
        self.local_connectivity = local_connectivity
        self.repulsion = repulsion
        self.negative_sample_rate = negative_sample_rate
        self.repulsion_strength = repulsion_strength
        self.early_exaggeration = early_exaggeration
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.init = init
        self.summation = summation
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _iterations(self, n_samples: int) -> int:
        if self.max_iter != "auto":
            return self.max_iter
        return 500 if n_samples <= 10_000 else 150

    def models(self, n_samples: int) -> tuple[GraphModel, GraphModel]:
        """Return the laws of the input's and of the embedding's graph for this many samples."""
        if self.n_neighbors > n_samples:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} must be at most the number of points, n_samples = {n_samples}."
            )
        return (
            GraphModel(
                Odds(Exponential()),
                Binary(),
                LocalConnectivity(self.n_neighbors, self.local_connectivity),
                n_neighbors=self.n_neighbors - 1,
                symmetrize="threshold",
                metric=self.metric,
            ),
            GraphModel(Odds(RationalPower.from_min_dist(self.min_dist, self.spread)), Binary()),
        )
