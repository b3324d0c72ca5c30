"""A law of a hidden graph, before and after its points are known: its posterior, and the edges of new points."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._numba.places import mean_nearest
from graphcouple._numba.threads import over_rows
from graphcouple._support.html import html_table
from graphcouple.graphs import FloatArray, IntArray, Support
from graphcouple.kernels import Kernel
from graphcouple.kernels.base import KERNELS
from graphcouple.laws.priors import RandomGraph, as_prior

# Nearest neighbours whose distances measure isolation: with fewer, small groups of outliers would not be isolated.
FEW = 10


@dataclass(frozen=True)
class NewEdges:
    """Edges from new points to the points of a graph.

    Attributes
    ----------
    support : Support
        One row for each new point; its columns are points of the graph.
    means : ndarray of shape (n_edges,)
        The mean of each edge. Rows sum to 1 under priors D and E.
    n_points : int
        The number of points of the graph.
    coincident : ndarray of shape (n_new,)
        The first point of the graph that each new point coincides with; -1 if none.
    isolation : ndarray of shape (n_new,)
        The root mean square distance of a new point to the nearest ten points of its edges, divided by the root mean
        square distance of these ten points to their own nearest ten: about 1 among the points of the graph, and large
        far from all of them.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> law = gc.GraphModel("gaussian", "D", gc.Perplexity(10)).given(X)
    >>> edges = law.new_edges(X[:2] + 0.01)
    >>> edges.support.to_csr(edges.means).sum(axis=1).round(6).tolist()
    [1.0, 1.0]
    """

    support: Support
    means: FloatArray
    n_points: int
    coincident: IntArray
    isolation: FloatArray

    @cached_property
    def mass(self) -> FloatArray:
        """The sum of each row's means."""
        return np.asarray(self.to_csr().sum(axis=1))

    def normalized(self) -> sp.csr_array:
        """Return the means divided by each row's sum, as a sparse matrix of shape (n_new, n_points).

        Raises
        ------
        ValueError
            When all means of a row are 0, since the kernel is 0 at the distances to its neighbors.
        """
        refuse_alone(self.mass == 0.0)
        return sp.csr_array(sp.diags_array(1.0 / self.mass) @ self.to_csr())

    def to_csr(self) -> sp.csr_array:
        """Return the means as a sparse matrix of shape (n_new, n_points)."""
        shape = (self.support.n_nodes, self.n_points)
        return sp.csr_array((self.means, self.support.indices, self.support.indptr), shape=shape)


def refuse_alone(alone: NDArray[np.bool_]) -> None:
    """Raise if new points have no edge."""
    if alone.any():
        raise ValueError(
            f"{np.count_nonzero(alone)} rows of X_new, the first of them row {np.argmax(alone)}, have no edge: the "
            "input's kernel is 0 at the distances to their neighbors. Leave these rows out, or use a kernel that is "
            "positive everywhere."
        )


class ConditionedLaw(ABC):
    """A law given its points, with their nearest neighbours.

    Attributes
    ----------
    X : array or sparse matrix
        The points, or distances between them.
    weights : ndarray of shape (n_points,) or None
        How many points each row stands for; None if one each.
    labels : ndarray of shape (n_points,) or None
        Classes as integers, −1 where unknown; None if unused.
    neighbors_given : bool
        Whether the neighbours of the points were given instead of searched.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> law = gc.GraphModel("gaussian", "D", gc.Perplexity(10)).given(X)
    >>> isinstance(law, gc.laws.ConditionedLaw), law.X.shape
    (True, (150, 4))
    """

    X: Any
    weights: FloatArray | None = None
    labels: IntArray | FloatArray | None = None
    neighbors_given: bool = False

    @property
    @abstractmethod
    def law(self) -> Any:
        """The law in use: "auto" is replaced by a number, and a perplexity too large for the points is lowered."""

    @abstractmethod
    def posterior(self, n_jobs: int | None = None) -> RandomGraph:
        """Return the law of the graph."""

    @property
    def order(self) -> IntArray | None:
        """An order of the points in which near points are close together, if the search for neighbours has one."""
        return None

    @abstractmethod
    def new_edges(self, X_new: Any, n_jobs: int | None = None) -> NewEdges:
        """Return the mean edges from new points to the points of the graph.

        A point that coincides with points of the graph has edges to these points alone. An edge prior that is an
        array or a graph is ignored, as it has no rows for new points. No row depends on another.

        Parameters
        ----------
        X_new : array or sparse matrix of shape (n_new, n_features)
            Or their distances to the points of the graph, for ``metric="precomputed"``.
        n_jobs : int or None, default=None

        Raises
        ------
        TypeError, ValueError
            When `X_new` is not numeric or not finite, or the columns differ.
        """

    @abstractmethod
    def own_isolation(self, n_jobs: int | None = None) -> FloatArray:
        """Return the isolation of each point of the graph; see `NewEdges`."""

    @abstractmethod
    def remembered(self) -> dict[str, Any]:
        """Return the state that new edges need, as arrays and plain values, for `GraphLaw.recall`."""

    def saved(self) -> dict[str, Any]:
        """Return the law in use and `remembered`, for `GraphLaw.loaded`."""
        return {**self.remembered(), "law": self.law}


def nearest_spread(support: Support, sq_dist: FloatArray, n_jobs: int | None = None) -> FloatArray:
    """Return the mean of each row's ten smallest squared distances, or of all if there are fewer."""
    smallest, mean = np.empty((support.n_nodes, FEW)), np.empty(support.n_nodes)
    over_rows(support.n_nodes, n_jobs, mean_nearest, sq_dist, support.indptr, smallest, mean)
    return mean


class Searchable:
    """Parameters in the fields of a dataclass, for scikit-learn's searches."""

    _nested: ClassVar[tuple[str, ...]] = ()
    """The parameters that are objects with parameters."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep` adds its parts' parameters, as in ``kernel__dof``."""
        params = _fields_of(self)
        if deep:
            for name in self._nested:
                part = params[name]
                inner = part.get_params() if isinstance(part, Searchable) else _fields_of(part)
                params |= {f"{name}__{key}": value for key, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place, as scikit-learn's searches do; ``kernel__dof=2.0`` changes a part.

        Raises
        ------
        TypeError, ValueError
            When a parameter is unknown or a value is invalid; nothing has then changed.
        """
        # A part is set before its own parameters, whatever their order.
        changes = {name: value for name, value in params.items() if "__" not in name}
        for name, value in params.items():
            part, _, inner = name.partition("__")
            if inner and part in self._nested:
                owner = changes.get(part, getattr(self, part))
                owner = as_prior(owner) if part == "prior" else owner
                owner = KERNELS[owner]() if part == "kernel" and isinstance(owner, str) else owner
                if isinstance(owner, Searchable):
                    changes[part] = copy.copy(owner).set_params(**{inner: value})
                elif inner in _fields_of(owner):
                    changes[part] = replace(owner, **{inner: value})
                else:
                    changes[name] = value
            elif inner:
                changes[name] = value
        if unknown := sorted(set(changes) - set(_fields_of(self))):
            kind = type(self).__name__
            raise ValueError(f"{kind} has no parameter {unknown[0]!r}; it has {sorted(self.get_params())}.")
        changed = replace(self, **changes)  # type: ignore[type-var]
        for name, value in _fields_of(changed).items():
            object.__setattr__(self, name, value)
        return self


class GraphLaw(Searchable, ABC):
    """A law of a hidden graph whose points are not known yet: a `GraphModel` or a `GraphMixture` of models.

    Attributes
    ----------
    metric : str or callable
        The distance between points; "precomputed" if `X` holds distances.

    Examples
    --------
    >>> import graphcouple as gc
    >>> laws = gc.GraphModel("gaussian", "D"), gc.laws.DiffusedLaw(gc.GraphModel("gaussian", "D"), 2)
    >>> [isinstance(law, gc.laws.GraphLaw) for law in laws]
    [True, True]
    """

    def _repr_html_(self) -> str:
        return html_table([], [["law", str(self)]])

    @property
    @abstractmethod
    def parts(self) -> tuple[Any, ...]:
        """The models that the law is made of, each a `GraphModel`."""

    @property
    def metric(self) -> Any:
        """The distance between points, of the first part."""
        return self.parts[0].metric

    @property
    def metric_params(self) -> dict[str, Any] | None:
        """Further arguments of the metric, of the first part."""
        return self.parts[0].metric_params

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that the law uses."""
        return tuple(part.kernel for part in self.parts)

    @property
    def uses_classes(self) -> bool:
        """Whether the law depends on classes `y`: a part has a `target_weight` above 0."""
        return any(part.target_weight > 0.0 for part in self.parts)

    @abstractmethod
    def for_points(self, n_points: int) -> Self:
        """Return the law with "auto" replaced by its value for this many points."""

    @abstractmethod
    def given(self, X: Any, neighbors: Any = None, sample_weight: Any = None, y: Any = None) -> ConditionedLaw:
        """Return the law given its points, and optionally their neighbours, weights and classes."""

    @abstractmethod
    def recall(self, remembered: dict[str, Any]) -> ConditionedLaw:
        """Return the law given its points, from the state that `ConditionedLaw.remembered` returned."""

    def loaded(self, saved: dict[str, Any]) -> ConditionedLaw:
        """Return what `ConditionedLaw.saved` described; old files do not name their law, which is then this one."""
        return saved.get("law", self).recall(saved)

    def posterior(self, X: Any, n_jobs: int | None = None, sample_weight: Any = None, y: Any = None) -> RandomGraph:
        """Return the law of the graph given the points `X`; laws of one metric share one search for neighbours.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Or distances, for ``metric="precomputed"``.
        n_jobs : int or None, default=None
            Threads; None means every core.
        sample_weight : array of shape (n_samples,), optional
            How many points in one place each row stands for, above 0. The graph has all of these points,
            but one node for each row; see `RepeatedPosterior`.
        y : array of shape (n_samples,), optional
            The classes, if `target_weight` is above 0; −1, None or NaN where unknown.

        Returns
        -------
        GraphPosterior, RepeatedPosterior or MixturePosterior

        Raises
        ------
        TypeError, ValueError
            When `X` is not numeric, not finite, has a single row, or has fewer rows
            than the model's neighbours or perplexity need.
        """
        return self.given(X, sample_weight=sample_weight, y=y).posterior(n_jobs)

    def new_edges(self, X: Any, X_new: Any, n_jobs: int | None = None) -> sp.csr_array:
        """Return the mean edges from new points to the points of `X`, divided by each row's sum.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The points of the graph.
        X_new : array or sparse matrix of shape (n_new, n_features)
            See `ConditionedLaw.new_edges`.
        n_jobs : int or None, default=None

        Returns
        -------
        csr_array of shape (n_new, n_samples)
            Rows that sum to 1.

        Raises
        ------
        TypeError, ValueError
            When an array is not numeric or not finite, or the columns differ.
        """
        return self.given(X).new_edges(X_new, n_jobs).normalized()


def _fields_of(part: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name; for other objects, an empty dict."""
    return {field.name: getattr(part, field.name) for field in fields(part)} if is_dataclass(part) else {}
