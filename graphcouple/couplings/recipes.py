"""Recipes: descriptions of an objective, before there are data.

A recipe is inert: a frozen dataclass that can be printed, compared, copied and pickled. Given data, `bind` turns it
into an objective. A `Coupling` compares the two graph laws; a `Term` is added to it, with a weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from graphcouple._support.registry import Registry
from graphcouple._support.validation import check_weight
from graphcouple.couplings.base import Objective
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
        """The points X; raises `ValueError` if X holds distances or is None."""
        if self.X is None or is_precomputed(self.metric):
            lack = "no points were given" if self.X is None else "precomputed distances were given instead"
            raise ValueError(
                f"this needs points, but {lack}; pass points as X, and the posterior as the input of GraphCoupling."
            )
        return self.X

    @property
    def distances(self) -> Distances:
        """The distances between the points, or the distances in X; raises `ValueError` if X is None."""
        if self.X is None:
            raise ValueError("this needs distances, but no points were given; pass the points, or distances, as X.")
        return distances_of(self.X, self.metric, self.metric_params)

    @property
    def coordinates(self) -> Any:
        """The points as numbers of which principal components can be taken; see `coordinates_of`.

        Raises `ValueError` if X holds distances or is None, or if some of the metric's `Blocks` have no coordinates.
        """
        if (coordinates := coordinates_of(self.points, self.metric)) is None:
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
        """Return the objective on the embedding; raise `TypeError` or `ValueError` if the recipe does not suit the
        problem.
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

    def places(self, latent: GraphModel) -> bool:
        """Return whether the objective can place new points in an embedding of this law."""
        return self.places_points

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
        check_weight(self.weight, name=f"the weight of {type(self).__name__}")
        return float(self.weight)


def check_terms(terms: Any) -> None:
    """Raise unless terms are a sequence."""
    if isinstance(terms, Term) or not isinstance(terms, Iterable):
        raise TypeError(f"terms must be a sequence of terms; put it in a list, as terms=[{terms!r}].")


COUPLINGS: Registry[type[Coupling]] = Registry("coupling", "a Coupling such as EffectiveCoupling()")


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
    return sum((float(weight) * term for weight, term in terms if weight), coupling)
