"""Laws that are made of another law's graph."""

from __future__ import annotations

import copy
import dataclasses
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

from graphcouple.graphs import FloatArray, IntArray
from graphcouple.laws.copies import refuse_weights
from graphcouple.laws.given import ConditionedLaw, GraphLaw, NewEdges

if TYPE_CHECKING:
    from graphcouple.laws.model import GraphModel


class DerivedLaw(GraphLaw):
    """A law made of the graph of another law, the dataclass field `law`."""

    law: GraphLaw

    _conditioned: ClassVar[type[DerivedConditioned]]
    """The class of the law given its points."""

    _nested: ClassVar[tuple[str, ...]] = ("law",)

    def __post_init__(self) -> None:
        if not isinstance(self.law, GraphLaw):
            raise TypeError(f"law must be a GraphModel or GraphMixture, got {self.law!r}.")

    @property
    def parts(self) -> tuple[GraphModel, ...]:
        return self.law.parts

    def for_points(self, n_points: int) -> Self:
        return dataclasses.replace(self, law=self.law.for_points(n_points))  # type: ignore[type-var]

    def given(self, X: Any, neighbors: Any = None, sample_weight: Any = None, y: Any = None) -> ConditionedLaw:
        refuse_weights(sample_weight, type(self).__name__)
        # Parameters are set in place.
        return self._conditioned(copy.copy(self), self.law.given(X, neighbors, y=y))

    def recall(self, remembered: dict[str, Any]) -> ConditionedLaw:
        law = self._conditioned(copy.copy(self), self.law.recall(remembered["part"]))
        law.inferred = remembered[self._conditioned.remembers]
        return law


class DerivedConditioned(ConditionedLaw):
    """A derived law given its points."""

    remembers: ClassVar[str]
    """The name of `inferred` in files."""

    inferred: Any = None
    """The result of `posterior` that new edges need."""

    def __init__(self, derived: Any, part: ConditionedLaw) -> None:
        self.derived, self.part = derived, part
        self.X, self.labels, self.neighbors_given = part.X, part.labels, part.neighbors_given

    @property
    def law(self) -> Any:
        return dataclasses.replace(self.derived, law=self.part.law)

    @abstractmethod
    def _changed(self, edges: NewEdges) -> NewEdges:
        """Return the edges of new points, from their edges by the other law."""

    def new_edges(self, X_new: Any, n_jobs: int | None = None) -> NewEdges:
        if self.inferred is None:
            self.posterior(n_jobs)
        return self._changed(self.part.new_edges(X_new, n_jobs))

    @property
    def order(self) -> IntArray | None:
        return self.part.order

    def own_isolation(self, n_jobs: int | None = None) -> FloatArray:
        return self.part.own_isolation(n_jobs)

    def remembered(self) -> dict[str, Any]:
        return {"part": self.part.remembered(), self.remembers: self.inferred}
