"""Recipes: descriptions of an objective, before there are data.

A recipe is inert: a frozen dataclass that can be printed, compared, copied and pickled. Given data, `bind` turns it
into an objective. A `Coupling` compares the two graph laws; a `Term` is added to it, with a weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from graphcouple._support.registry import Registry
from graphcouple._support.validation import check_positive
from graphcouple.couplings.base import Objective
from graphcouple.couplings.cross_entropy import CrossEntropy, check_exaggeration
from graphcouple.couplings.effective import EffectiveCrossEntropy
from graphcouple.couplings.losses import as_loss
from graphcouple.couplings.matching import SYMMETRIZATIONS, MatchedMeans
from graphcouple.laws import GraphModel
from graphcouple.laws.copies import refuse_weights
from graphcouple.laws.given import Searchable
from graphcouple.laws.priors import RandomGraph
from graphcouple.neighbors import Distances, coordinates_of, distances_of, is_precomputed
from graphcouple.summation import Summation


@dataclass(frozen=True, eq=False)
class Problem:
    """The data and the laws that a recipe is bound to.

    Attributes
    ----------
    X : array or sparse matrix of shape (n_samples, n_features), or None
        The checked points; distances for ``metric="precomputed"``; None if a graph was fitted without points.
    y : any
        The `y` passed to ``fit``.
    posterior : RandomGraph
        The law of the input's graph.
    latent : GraphModel
        The law of the embedding's graph.
    n_components : int
        Dimension of the embedding.
    summation : Summation
        How sums over all pairs are computed.
    metric : str, callable or Blocks
        The metric of the points in X, or "precomputed" if X holds distances.
    rng : numpy.random.RandomState
        The estimator's source of randomness.
    n_jobs : int or None
    metric_params : dict, optional
        Further arguments of the metric.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> @dataclass(frozen=True)
    ... class FirstAtOrigin(gc.extend.Term):
    ...     weight: float = 100.0
    ...     def bind(self, problem):
    ...         return gc.couplings.AnchorEnergy(len(problem.X), np.array([0]), np.zeros((1, problem.n_components)))
    >>> X, y = gc.datasets.load("iris")
    >>> Z = gc.TSNE(terms=[FirstAtOrigin()], random_state=0, max_iter=100).fit_transform(X)
    >>> bool(np.linalg.norm(Z[0]) < 0.1)
    True
    """

    X: Any
    y: Any
    posterior: RandomGraph
    latent: GraphModel
    n_components: int
    summation: Summation
    metric: str
    rng: np.random.RandomState
    n_jobs: int | None
    metric_params: dict[str, Any] | None = None

    def seed(self) -> int:
        """Return a fresh seed from the estimator's source of randomness."""
        return int(self.rng.randint(np.iinfo(np.int32).max))

    def refuse_weights(self, recipe: Coupling | Term) -> None:
        """Raise if points have sample weights."""
        refuse_weights(self.posterior.node_weights, type(recipe).__name__)

    @property
    def points(self) -> Any:
        """The points X.

        Raises
        ------
        ValueError
            When X holds distances or is None.
        """
        if self.X is None or is_precomputed(self.metric):
            lack = "no points were given" if self.X is None else "precomputed distances were given instead"
            raise ValueError(
                f"this needs points, but {lack}; pass the points as X and the graph's posterior as the input of "
                "GraphCoupling."
            )
        return self.X

    @property
    def distances(self) -> Distances:
        """The distances between the points, or those that X holds.

        Raises
        ------
        ValueError
            When X is None.
        """
        if self.X is None:
            raise ValueError("this needs distances, but no points were given; pass the points, or distances, as X.")
        return distances_of(self.X, self.metric, self.metric_params)

    @property
    def coordinates(self) -> Any:
        """The points as numbers of which principal components can be taken; see `coordinates_of`.

        Raises
        ------
        ValueError
            When X holds distances or is None, or the metric is `Blocks` of which some have no coordinates.
        """
        coordinates = coordinates_of(self.points, self.metric)
        if coordinates is None:
            raise ValueError(
                "this needs coordinates, which only euclidean and categorical blocks have; use such blocks, or pass "
                "the graph's posterior as the input of GraphCoupling, and numbers as X."
            )
        return coordinates


class Recipe(Searchable, ABC):
    """Base class of recipes, whose parameters scikit-learn can search over, as in ``coupling__repulsion_strength``."""

    any_space: ClassVar[bool] = False
    """Whether it measures distances on the map in the latent law's space; if not, maps must be flat."""

    @abstractmethod
    def bind(self, problem: Problem) -> Objective:
        """Return the objective on the embedding.

        Raises
        ------
        TypeError, ValueError
            When the recipe does not suit the problem; the message says why.
        """


class Coupling(Recipe):
    """How the two graph laws are compared.

    Examples
    --------
    >>> import graphcouple as gc
    >>> isinstance(gc.UMAP().sentence.coupling, gc.extend.Coupling)
    True
    """

    reads_points: ClassVar[bool] = True
    """Whether the objective depends on more than the two laws, so that points must keep their numbers."""

    places_points: ClassVar[bool] = True
    """Whether new points can be placed by the objective."""

    def latex(self, latent: GraphModel) -> str:
        """Return the loss by w_ij, the means of the input's edges, and k_ij, the latent kernel; "" if unknown."""
        return ""


class Term(Recipe):
    """An objective to add to a coupling.

    A frozen dataclass with a field ``weight``: a number that multiplies the objective from `bind`, or a word for which
    `weight_of` computes a number.

    Examples
    --------
    >>> import graphcouple as gc
    >>> isinstance(gc.Density(weight=2.0), gc.extend.Term)
    True
    """

    weight: Any

    names_rows: ClassVar[bool] = False
    """Whether the term names rows of X, which must then all be fitted."""

    def weight_of(self, objective: Objective, problem: Problem) -> float:
        """Return the number that multiplies the bound objective: `weight`, unless it depends on the problem."""
        return float(self.weight)


@dataclass(frozen=True)
class CrossEntropyCoupling(Coupling):
    """The cross-entropy, with equal weights for all pairs of points; see `CrossEntropy`.

    Parameters
    ----------
    exaggeration : float, default=1.0
        How many times attraction counts, at least 1; see `CrossEntropy`.

    Examples
    --------
    >>> import graphcouple as gc
    >>> gc.TSNE().sentence.coupling
    CrossEntropyCoupling(exaggeration=1.0)
    """

    reads_points: ClassVar[bool] = False
    any_space: ClassVar[bool] = True

    exaggeration: float = 1.0

    def __post_init__(self) -> None:
        check_exaggeration(self.exaggeration)

    def bind(self, problem: Problem) -> CrossEntropy:
        """Return the cross-entropy of the problem's laws."""
        laws = (problem.posterior, problem.latent)
        return CrossEntropy(*laws, problem.summation, problem.n_jobs, self.exaggeration)

    def latex(self, latent: GraphModel) -> str:
        """Return the loss; see `Coupling.latex`."""
        times = "" if self.exaggeration == 1 else rf"{self.exaggeration:g} "
        return rf"{latent.prior.log_partition_latex} - {times}\sum_{{i \neq j}} w_{{ij}} \log k_{{ij}}"

    def __str__(self) -> str:
        return "cross-entropy" + ("" if self.exaggeration == 1 else f", attraction × {self.exaggeration:g}")


@dataclass(frozen=True)
class EffectiveCoupling(Coupling):
    """The loss that sampled repulsion minimises in expectation; see `EffectiveCrossEntropy`.

    Parameters
    ----------
    negative_sample_rate : float, default=5.0
        Number of repelling points for each attracting edge.
    repulsion_strength : float, default=1.0
        Weight of the repulsion.
    noise_exponent : float, default=0.0
        Points repel in proportion to this power of their degree; 0 in UMAP, ¾ in LargeVis.

    Examples
    --------
    >>> import graphcouple as gc
    >>> weaker = gc.UMAP().sentence.replace(coupling=gc.EffectiveCoupling(negative_sample_rate=2.0))
    >>> gc.GraphCoupling(**weaker).coupling
    EffectiveCoupling(negative_sample_rate=2.0, repulsion_strength=1.0, noise_exponent=0.0)
    """

    reads_points: ClassVar[bool] = False

    any_space: ClassVar[bool] = True

    loss: ClassVar[type[EffectiveCrossEntropy]] = EffectiveCrossEntropy

    negative_sample_rate: float = 5.0
    repulsion_strength: float = 1.0
    noise_exponent: float = 0.0

    def __post_init__(self) -> None:
        check_positive("negative_sample_rate", self.negative_sample_rate)
        check_positive("repulsion_strength", self.repulsion_strength)
        exponent: Any = self.noise_exponent
        if not isinstance(exponent, Real) or not np.isfinite(float(exponent)):
            raise ValueError(f"noise_exponent must be a finite number, got {exponent!r}.")

    def latex(self, latent: GraphModel) -> str:
        """Return the loss; see `Coupling.latex`. `EffectiveCrossEntropy` defines the weights c_ij."""
        attraction = r"- \sum_{i < j} w_{ij} \log \frac{k_{ij}}{1 + k_{ij}}"
        strength = "" if self.repulsion_strength == 1 else rf"{self.repulsion_strength:g} "
        return rf"{attraction} + {strength}\sum_{{i < j}} c_{{ij}} \log(1 + k_{{ij}})"

    def bind(self, problem: Problem) -> EffectiveCrossEntropy:
        """Return the effective cross-entropy of the problem's laws."""
        return self.loss(
            problem.posterior,
            problem.latent,
            self.negative_sample_rate,
            repulsion_strength=self.repulsion_strength,
            noise_exponent=self.noise_exponent,
            summation=problem.summation,
            n_jobs=problem.n_jobs,
        )

    def __str__(self) -> str:
        strength = "" if self.repulsion_strength == 1.0 else f", weighing {self.repulsion_strength:g}"
        noise = f" of law degree^{self.noise_exponent:g}" if self.noise_exponent else ""
        return f"effective cross-entropy of {self.negative_sample_rate:g} negative samples{noise}{strength}"


@dataclass(frozen=True)
class MatchingCoupling(Coupling):
    """The means of the two laws, compared edge by edge; see `MatchedMeans`.

    Parameters
    ----------
    loss : {"square", "kl"} or MatchingLoss, default="square"
    symmetrize : {"mean", "or", "first"}, default="mean"

    Raises
    ------
    TypeError, ValueError
        When a loss or a symmetrization is unknown.

    Examples
    --------
    >>> import graphcouple as gc
    >>> law, latent = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20)), gc.GraphModel(gc.Student(), "D")
    >>> gc.GraphCoupling(law, latent, coupling=gc.MatchingCoupling("kl")).coupling
    MatchingCoupling(loss='kl', symmetrize='mean')
    """

    reads_points: ClassVar[bool] = False

    loss: Any = "square"
    symmetrize: str = "mean"

    def __post_init__(self) -> None:
        as_loss(self.loss)
        if self.symmetrize not in SYMMETRIZATIONS:
            raise ValueError(f"symmetrize must be one of {list(SYMMETRIZATIONS)}, got {self.symmetrize!r}.")

    def latex(self, latent: GraphModel) -> str:
        """Return the loss; see `Coupling.latex`."""
        return r"\sum_{i \neq j} \ell(w_{ij}, \hat w_{ij})"

    def bind(self, problem: Problem) -> MatchedMeans:
        """Return the sum of losses of the problem's laws."""
        laws = (problem.posterior, problem.latent)
        return MatchedMeans(*laws, self.loss, self.symmetrize, problem.summation, problem.n_jobs)

    def __str__(self) -> str:
        return f"{self.loss if isinstance(self.loss, str) else type(self.loss).__name__} of means, {self.symmetrize}"


COUPLINGS: Registry[type[Coupling]] = Registry("coupling", "a Coupling such as EffectiveCoupling()")
COUPLINGS.add("cross-entropy", CrossEntropyCoupling)
COUPLINGS.add("effective", EffectiveCoupling)
COUPLINGS.add("matching", MatchingCoupling)


def register(name: str) -> Any:
    """Register a coupling under a name, for every estimator and the command; decorates a class.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import graphcouple as gc
    >>> @gc.extend.register_coupling("strong")
    ... @dataclass(frozen=True)
    ... class Strong(gc.couplings.CrossEntropyCoupling):
    ...     exaggeration: float = 4.0
    >>> input, latent = gc.TSNE().sentence.input, gc.TSNE().sentence.latent
    >>> gc.GraphCoupling(input, latent, coupling="strong").sentence.coupling
    'strong'
    """
    return COUPLINGS.register(name)


def as_coupling(coupling: Any) -> Coupling:
    """Return `coupling` itself, or the coupling registered under that name."""
    return coupling if isinstance(coupling, Coupling) else COUPLINGS[coupling]()


def with_terms(coupling: Objective, terms: tuple[tuple[float, Objective], ...]) -> Objective:
    """Return a coupling plus weighted terms; terms of weight 0 are left out."""
    total = coupling
    for weight, term in terms:
        if weight:
            total = total + float(weight) * term
    return total
