"""Several laws of the input's graph at once, such as several perplexities."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from graphcouple.graphs import FloatArray, Support
from graphcouple.laws.copies import check_weights
from graphcouple.laws.given import ConditionedLaw, GraphLaw, NewEdges
from graphcouple.laws.model import GraphModel
from graphcouple.laws.priors import MixturePosterior
from graphcouple.laws.priors.mixture import mixture_weights, weighted_sum
from graphcouple.neighbors import Distances, as_points, is_precomputed


@dataclass(frozen=True, eq=False)
class GraphMixture(GraphLaw):
    """One of several laws, drawn at random: P(W) = Σ_m w_m P_m(W).

    With several perplexities it is multi-scale t-SNE; with several metrics, it joins views of the data. The attraction
    follows the mean graph, Σ_m w_m E_m[W]; every law's prior must be feasible with the prior of the embedding.
    Isolation and terms measure distances by the metric of the first law.

    Parameters
    ----------
    laws : sequence of GraphModel
    weights : sequence of float, optional
        w_m, positive; they are divided by their sum. Equal by default.

    Raises
    ------
    TypeError, ValueError
        When a law is not a `GraphModel`, some but not all take precomputed distances, or the weights are not positive.

    References
    ----------
    For perplexities, the mixture of Gaussians in Kobak and Berens (2019), The art of using t-SNE for single-cell
    transcriptomics; Lee et al. (2015), Multi-scale similarities in stochastic neighbour embedding.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> laws = [gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(p), "auto") for p in (5, 45)]
    >>> latent = gc.GraphModel(gc.Student(), "E")
    >>> both = gc.GraphCoupling(gc.GraphMixture(laws), latent, init="pca", random_state=0).fit(X)
    >>> same = gc.TSNE(perplexity=(5, 45), random_state=0).fit(X)
    >>> bool((both.embedding_ == same.embedding_).all())
    True
    """

    laws: Sequence[GraphModel]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.laws, Iterable) or not all(isinstance(law, GraphModel) for law in self.laws):
            raise TypeError(f"laws must hold GraphModels, got {self.laws!r}.")
        object.__setattr__(self, "laws", tuple(self.laws))
        if not self.laws:
            raise ValueError("laws must hold at least one GraphModel.")
        if len({is_precomputed(law.metric) for law in self.laws}) > 1:
            raise ValueError("laws must all have metric='precomputed', or none: they get the same X.")
        mixture_weights(self.weights, len(self.laws))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.laws == other.laws and np.array_equal(self.probabilities, other.probabilities)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        if self.weights is None:
            return " | ".join(str(law) for law in self.laws)
        return " | ".join(f"{w:.3g}: {law}" for w, law in zip(self.probabilities, self.laws, strict=True))

    @property
    def probabilities(self) -> FloatArray:
        """The weights, divided by their sum."""
        return mixture_weights(self.weights, len(self.laws))

    @property
    def parts(self) -> tuple[GraphModel, ...]:
        """The laws."""
        return tuple(self.laws)

    def for_points(self, n_points: int) -> Self:
        return replace(self, laws=tuple(law.for_points(n_points) for law in self.laws))

    def given(self, X: Any, neighbors: Any = None, sample_weight: Any = None, y: Any = None) -> _ConditionedMixture:
        X = as_points(X)
        metrics = {replace(law, search="auto").distance_key for law in self.laws}
        if neighbors is not None and len(metrics) > 1:
            raise ValueError(
                f"neighbors have distances of one metric, but the laws have {len(metrics)}; leave neighbors out."
            )
        # Calls may change a metric, and `within` the number of neighbors.
        keys = [law.distance_key for law in self.laws]
        of_key = dict(zip(keys, self.laws, strict=True))
        distances = {key: law.distances(X, neighbors) for key, law in of_key.items()}
        total = None if sample_weight is None else float(check_weights(sample_weight, X.shape[0]).sum())
        laws = tuple(law.within(distances[key].n_points, total) for key, law in zip(keys, self.laws, strict=True))
        _share_searches(keys, laws, distances)
        parts = [law.given_distances(distances[key], sample_weight, y) for key, law in zip(keys, laws, strict=True)]
        return _ConditionedMixture(replace(self, laws=laws), list(distances.values()), parts)

    def recall(self, remembered: dict[str, Any]) -> _ConditionedMixture:
        parts = [law.recall(part) for law, part in zip(self.laws, remembered["parts"], strict=True)]
        keys = [law.distance_key for law in self.laws]
        distances = {key: part.distances for key, part in zip(keys, parts, strict=True)}
        _share_searches(keys, [part.model for part in parts], distances)
        for key, part in zip(keys, parts, strict=True):
            part.distances = distances[key]
        return _ConditionedMixture(self, list(distances.values()), parts)


class _ConditionedMixture(ConditionedLaw):
    """A mixture given its points; laws of one metric share their distances."""

    def __init__(self, mixture: GraphMixture, distances: Sequence[Distances], parts: Sequence[ConditionedLaw]) -> None:
        self.mixture, self.distances, self.parts = mixture, distances, parts
        self.X, self.weights = distances[0].X, parts[0].weights
        self.labels = next((part.labels for part in parts if part.labels is not None), None)
        self.neighbors_given = any(part.neighbors_given for part in parts)

    @property
    def law(self) -> GraphMixture:
        return replace(self.mixture, laws=tuple(part.law for part in self.parts))

    def posterior(self, n_jobs: int | None = None) -> MixturePosterior:
        posteriors = [part.posterior(n_jobs) for part in self.parts]
        for search in self.distances:
            if isinstance(search, _SharedSearch):
                search._results.clear()
        return MixturePosterior(posteriors, self.mixture.weights)

    def own_isolation(self, n_jobs: int | None = None) -> FloatArray:
        """Return the isolation of each point by the first law; see `ConditionedLaw.own_isolation`."""
        return self.parts[0].own_isolation(n_jobs)

    def remembered(self) -> dict[str, Any]:
        return {"parts": [part.remembered() for part in self.parts]}

    def new_edges(self, X_new: Any, n_jobs: int | None = None) -> NewEdges:
        parts = [part.new_edges(X_new, n_jobs) for part in self.parts]
        means = [part.to_csr() for part in parts]
        total = weighted_sum(self.mixture.probabilities, means)
        # Points that coincide by one law only, as equal categories do, do not coincide.
        coincident = np.full(total.shape[0], -1)
        rows = np.flatnonzero(np.all([part.coincident >= 0 for part in parts], axis=0))
        together = sp.csr_array(functools.reduce(lambda a, b: a.multiply(b), [each[rows] > 0 for each in means]))
        together.sort_indices()
        meet = np.diff(together.indptr) > 0
        coincident[rows[meet]] = together.indices[together.indptr[:-1][meet]]
        support = Support(total.indptr, total.indices)
        return replace(parts[0], support=support, means=total.data, coincident=coincident)


def _share_searches(keys: Sequence[str], laws: Sequence[GraphModel], distances: dict[str, Distances]) -> None:
    """Let laws with the same distances share one search, for the largest number of neighbours among them."""
    for key, own in distances.items():
        if own.searched:
            counts = [law.neighbors_among(own.n_points) for k, law in zip(keys, laws, strict=True) if k == key]
            distances[key] = _SharedSearch(own, max((k for k in counts if k is not None), default=0))


class _SharedSearch(Distances):
    """Distances that search once, for the largest number of neighbours, and keep the nearest for a smaller number."""

    def __init__(self, distances: Distances, n_neighbors: int) -> None:
        super().__init__(distances.X, distances.n_points)
        self.knows_all = distances.knows_all
        self._distances, self._largest = distances, n_neighbors
        self._results: dict[str, tuple[Support, FloatArray]] = {}

    def all_pairs(self) -> tuple[Support, FloatArray]:
        if "all" not in self._results:
            self._results["all"] = self._distances.all_pairs()
        return self._results["all"]

    def nearest(self, n_neighbors: int, n_jobs: int | None = None, search: str = "auto") -> tuple[Support, FloatArray]:
        # Light rows may need more neighbours than their law says.
        self._largest = max(self._largest, n_neighbors)
        if search not in self._results or self._results[search][1].size < self._largest * self.n_points:
            self._results[search] = self._distances.nearest(self._largest, n_jobs, search)
        return _nearest_few(*self._results[search], n_neighbors)

    def remembered(self) -> dict[str, Any]:
        return self._distances.remembered()

    def of_edges(self, support: Support, n_jobs: int | None = None) -> FloatArray:
        return self._distances.of_edges(support, n_jobs)

    def to(
        self, X_new: Any, n_neighbors: int | None, n_jobs: int | None = None, search: str = "auto"
    ) -> tuple[Support, FloatArray]:
        if n_neighbors is None or sp.issparse(X_new):
            return self._distances.to(X_new, n_neighbors, n_jobs, search)
        return _nearest_few(*self._distances.to(X_new, max(self._largest, n_neighbors), n_jobs, search), n_neighbors)


def _nearest_few(support: Support, sq_dist: FloatArray, n_neighbors: int) -> tuple[Support, FloatArray]:
    """Keep the `n_neighbors` nearest points of each row."""
    rows = sq_dist.reshape(support.n_nodes, -1)
    if n_neighbors >= rows.shape[1]:
        return support, sq_dist
    nearest = np.argpartition(rows, n_neighbors - 1, axis=1)[:, :n_neighbors]
    keep = np.zeros(rows.shape, dtype=bool)
    np.put_along_axis(keep, nearest, True, axis=1)
    return support.select(keep.ravel()), sq_dist[keep.ravel()]
