"""The term that places the components of an embedding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from graphcouple._validation import check_integer, check_positive, check_weight
from graphcouple.couplings.base import Objective
from graphcouple.couplings.component_means import ComponentCrossEntropy
from graphcouple.couplings.global_term import factor_at, rise_without_order
from graphcouple.couplings.recipes import Problem, Term
from graphcouple.spectral import principal_components

# The weight of the term's whole range, in units of n, as for the other global terms.
_SHARE = 1.5

# Below this range for each point, exchanging the rows of a shape makes no difference.
_LEAST = 1e-6

# Data with a large-scale shape have weights of 1.5 to 3.5. A larger weight means that the term has almost no range.
_MOST = 3.75

# The share of the means' squares that their principal components hold, at least, where data have a shape at large.
_EXPLAINED = 0.3

# Root mean square distance from the origin of the places at which the range is measured.
_LARGE = 100.0


@dataclass(frozen=True)
class ComponentMeans(Term):
    """Couple the component means by precisions, which places the components; see `ComponentCrossEntropy`.

    Parameters
    ----------
    weight : float or "auto", default="auto"
        At least 0. "auto" goes by the range of the objective on the data: 1.5 n divided by how much J_ε rises when the
        rows of the principal components are exchanged at random (beyond 10,000 points (10,000 n)^½ in place of n), at
        most 3.75; 1 if that makes no difference, as where the graphs drawn are connected. Where the embedding can hold
        little of the means, as of many clusters in many dimensions, neighbourhoods would pay for it: below 0.3, the
        weight falls with the cube of `ComponentCrossEntropy.explained`.
    scale : "free" or float, default="free"
        Length in the embedding of one unit of length in X; "free" compares shapes only.
    epsilon : "auto" or float, default="auto"
        ε; "auto" adapts it to the size of the means.
    n_graphs : int, default=10
        Number of graphs that the objective is averaged over.

    Raises
    ------
    TypeError, ValueError
        When a parameter is out of range; when fitted, if there are no points, or weights of them.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> tsne = gc.TSNE(perplexity=10, terms=[gc.ComponentMeans(weight=1.0)], random_state=0).fit(X)
    >>> len(tsne.term_losses_)
    1
    """

    weight: float | str = "auto"
    scale: float | str = "free"
    epsilon: float | str = "auto"
    n_graphs: int = 10

    def __post_init__(self) -> None:
        check_weight(self.weight, "auto")
        for name, word in (("scale", "free"), ("epsilon", "auto")):
            value = getattr(self, name)
            if isinstance(value, str) and value != word:
                raise ValueError(f"{name} must be {word!r} or a number above 0, got {value!r}.")
            if not isinstance(value, str):
                check_positive(name, value)
        check_integer("n_graphs", self.n_graphs, 1)

    def bind(self, problem: Problem) -> ComponentCrossEntropy:
        """Return J_ε of the problem's points and graphs."""
        if problem.posterior.node_weights is not None:
            raise ValueError(
                "ComponentMeans takes no sample weights: means of components count each row once. Repeat rows instead."
            )
        return ComponentCrossEntropy(
            problem.points,
            problem.posterior,
            n_components=problem.n_components,
            scale=self.scale,
            epsilon=self.epsilon,
            n_graphs=self.n_graphs,
            seed=problem.seed(),
            n_jobs=problem.n_jobs,
        )

    def weight_of(self, objective: Objective, problem: Problem) -> float:
        """Return the weight, from the objective's own range if it is "auto"."""
        if not isinstance(self.weight, str):
            return float(self.weight)
        n = problem.posterior.n_nodes
        Y = principal_components(problem.points, problem.n_components, np.random.RandomState(0))
        size = float(np.square(Y).sum() / n) ** 0.5
        # Far larger than the noise that J adds at a free scale, or of the size that a fixed one asks for.
        Y *= _LARGE / (size or 1.0) if isinstance(self.scale, str) else self.scale
        span = rise_without_order(objective, Y)
        if not span > _LEAST * n:
            return 1.0
        assert isinstance(objective, ComponentCrossEntropy)
        return min(_SHARE * factor_at(n) / span, _MOST) * min(1.0, (objective.explained / _EXPLAINED) ** 3)

    def __str__(self) -> str:
        weight = self.weight if isinstance(self.weight, str) else f"{self.weight:g}"
        return f"{weight} × component means coupled by precisions"
