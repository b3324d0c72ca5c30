"""A law of a hidden graph: kernel, prior, bandwidth."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import joblib
import numpy as np

from graphcouple._support.validation import check_fraction, check_integer, is_word
from graphcouple.graphs import FloatArray, Support
from graphcouple.kernels import Kernel
from graphcouple.kernels.base import KERNELS, require_kernel
from graphcouple.laws.bandwidths import Bandwidth, DistanceRows
from graphcouple.laws.copies import Copies, check_weights, rows_to_search, whole_copies
from graphcouple.laws.given import GraphLaw
from graphcouple.laws.given_model import ConditionedModel
from graphcouple.laws.labels import and_unknown, target_codes
from graphcouple.laws.priors import GraphPrior, as_prior
from graphcouple.neighbors import SEARCHES, Distances, OwnNeighbors, as_points, distances_of, remembered_distances
from graphcouple.neighbors.distances import nearest_edges

_SYMMETRIZED = {None: "", "threshold": ", thresholded", "mutual": ", mutual edges"}

ALL_PAIRS_UP_TO = 2000
"""With ``n_neighbors="auto"``, the largest number of points for which the graph may use every pair."""


@dataclass(frozen=True, eq=False)
class GraphModel(GraphLaw):
    """The law of a hidden graph given points, before the points are known.

    A method has two laws, one for the input and one for the embedding; see `GraphCoupling`.

    Parameters
    ----------
    kernel : Kernel or str
        The strength of an edge by distance; or a registered name, such as "student", for the kernel at its defaults.
    prior : GraphPrior or {"B", "D", "E", "S"}
        Which graphs are possible, and how likely they are a priori.
    bandwidth : Bandwidth, optional
        How each point rescales its distances; none by default.
    n_neighbors : int, None or "auto", default=None
        Restrict each point's edges to this many nearest neighbours, without the point itself; None means all pairs.
        "auto" means all pairs up to 2,000 points, and beyond as many neighbours as the bandwidth needs: three times the
        perplexity.
    symmetrize : {None, "threshold", "mutual"}, default=None
        "threshold" takes the undirected graph 1{W + Wᵀ ≥ 1}, as UMAP does; "mutual" takes W∘Wᵀ, the pairs linked in
        both directions. Prior B only.
    metric : str, callable or Blocks, default="euclidean"
        The distance between points: any of `sklearn.metrics.pairwise_distances`, a function of two rows, or `Blocks`;
        "precomputed" if X is a square array, or a sparse graph, of distances.
    search : {"auto", "exact", "approximate"} or transformer, default="auto"
        How nearest neighbours are searched; "auto" is approximate when an exact search would take seconds. See
        `graphcouple.neighbors.nearest_neighbors`. A clone of a transformer, such as scikit-learn's
        ``KNeighborsTransformer``, searches `n_neighbors` by its own metric; without a number as many as the bandwidth
        needs, and its own number if that needs none.
    metric_params : dict, optional
        Further arguments of the metric, such as ``{"p": 3}`` for "minkowski".
    target_weight : float, default=0.0
        t, the weight of the targets `y`, in [0, 1). With s = t/(1 − t), an edge between different classes is kept with
        probability exp(−5s), an edge to a point without a class (−1) with probability exp(−s). If `y` has fractions, it
        is a number: an edge is kept with probability exp(−30s (r_i − r_j)²), r its ranks in [0, 1]. Under priors D and
        E, whose graphs must keep all edges, these probabilities multiply the edge prior. Under prior B, they multiply
        the probabilities of the edges. 0 ignores `y`.

    Raises
    ------
    TypeError, ValueError
        When an argument has the wrong type or is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(50, 4))
    >>> model = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(5), n_neighbors=15)
    >>> posterior = model.posterior(X)
    >>> posterior
    <UnitOutDegreePosterior (prior D) of 50 nodes, 750 possible edges>
    >>> round(posterior.entropy() / 50, 6) == round(float(np.log(5)), 6)
    True
    >>> posterior.sample(rng=0).to_igraph().ecount()
    50
    """

    kernel: Kernel
    prior: GraphPrior
    bandwidth: Bandwidth | None = None
    n_neighbors: int | str | None = None
    symmetrize: str | None = None
    metric: Any = "euclidean"
    search: Any = "auto"
    metric_params: dict[str, Any] | None = None
    target_weight: float = 0.0

    _nested: ClassVar[tuple[str, ...]] = ("kernel", "prior", "bandwidth")
    _conditioned: ClassVar[type[ConditionedModel]] = ConditionedModel

    if TYPE_CHECKING:
        # Names are accepted, and become objects.
        def __init__(
            self,
            kernel: Kernel | str,
            prior: GraphPrior | str,
            bandwidth: Bandwidth | None = None,
            n_neighbors: int | str | None = None,
            symmetrize: str | None = None,
            metric: Any = "euclidean",
            search: Any = "auto",
            metric_params: dict[str, Any] | None = None,
            target_weight: float = 0.0,
        ) -> None: ...

    def __post_init__(self) -> None:
        if isinstance(self.kernel, str):
            object.__setattr__(self, "kernel", KERNELS[self.kernel]())
        require_kernel(self.kernel)
        object.__setattr__(self, "prior", as_prior(self.prior))
        if self.bandwidth is not None and not isinstance(self.bandwidth, Bandwidth):
            raise TypeError(f"bandwidth must be a bandwidth such as Perplexity(30), or None, got {self.bandwidth!r}.")
        if not is_word("n_neighbors", self.n_neighbors, "auto", "an integer or None") and self.n_neighbors is not None:
            check_integer("n_neighbors", self.n_neighbors, 1)
        if not self.finds and self.search not in SEARCHES:
            raise ValueError(
                f"search must be one of {sorted(SEARCHES)} or a transformer such as KNeighborsTransformer, got "
                f"{self.search!r}."
            )
        if not (isinstance(self.metric, str) or callable(self.metric) or hasattr(self.metric, "distances")):
            raise TypeError(f"metric must be a name, a function of two rows, or Blocks, got {self.metric!r}.")
        if self.metric_params is not None and not isinstance(self.metric_params, dict):
            raise TypeError(f"metric_params must be a dict or None, got {self.metric_params!r}.")
        check_fraction("target_weight", self.target_weight)
        if self.symmetrize not in (None, "threshold", "mutual"):
            raise ValueError(f"symmetrize must be None, 'threshold' or 'mutual', got {self.symmetrize!r}.")
        if self.symmetrize and not self.prior.independent_edges:
            raise ValueError(
                f"symmetrize={self.symmetrize!r} needs prior B, whose edges are independent; got {self.prior!r}."
            )

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, theirs = self.get_params(deep=False), other.get_params(deep=False)
        # Arguments of a metric may be arrays, which compare entry by entry.
        return _arguments(mine.pop("metric_params")) == _arguments(theirs.pop("metric_params")) and mine == theirs

    # Not hashable, because `set_params` changes a model in place.
    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        prior = "" if self.prior.edge_prior is None else f" with {self.prior!r}"
        parts = [f"prior {self.prior.code}{prior}{_SYMMETRIZED[self.symmetrize]}", str(self.kernel)]
        if self.bandwidth is not None:
            parts.append(str(self.bandwidth))
        if self.n_neighbors is not None:
            parts.append(f"{'' if self.n_neighbors == 'auto' else f'{self.n_neighbors} '}nearest neighbors")
        if self.metric != "euclidean":
            items = (self.metric_params or {}).items()
            params = [f"{name}={value}" if np.ndim(value) == 0 else name for name, value in items]
            given = f" ({', '.join(params)})" if params else ""
            parts.append(f"{getattr(self.metric, '__name__', self.metric)} distances{given}")
        if self.target_weight:
            parts.append(f"classes of weight {self.target_weight:g}")
        return ", ".join(parts)

    def neighbors_among(self, n_points: int) -> int | None:
        """Return the number of neighbours that a point may have edges to; None means all pairs."""
        if not isinstance(self.n_neighbors, str):
            return self.n_neighbors
        return None if n_points <= ALL_PAIRS_UP_TO else self._suited(n_points)

    def _suited(self, n_points: float = np.inf) -> int | None:
        """Return the number of neighbours that the bandwidth needs among this many points; None if it needs none."""
        suited = None if self.bandwidth is None else self.bandwidth.suited_neighbors
        return None if suited is None else int(min(n_points - 1, suited))

    @property
    def parts(self) -> tuple[GraphModel, ...]:
        """The model, in a tuple."""
        return (self,)

    def for_points(self, n_points: int) -> Self:
        """Return the model with ``n_neighbors="auto"`` replaced by its value for this many points."""
        if self.n_neighbors != "auto":
            return self
        return replace(self, n_neighbors=self.neighbors_among(n_points))

    def within(self, n_points: int, n_copies: float | None = None) -> GraphModel:
        """Lower perplexity and number of neighbours to values that `n_points` allow, with a warning.

        A perplexity becomes a third of the number of other points, and UMAP's `n_neighbors` the number of points. A
        number of neighbours that suits the bandwidth then becomes the number of all others, without a warning. Any
        other number is unchanged; if it is too large, the search raises an error. `n_copies` is the sum of the sample
        weights, if any.
        """
        if n_points < 2:
            return self
        changes: dict[str, Any] = {}
        total = n_points if n_copies is None else whole_copies(n_copies)
        if self.bandwidth is not None:
            changes["bandwidth"] = self.bandwidth.within(total)
            if self.n_neighbors is not None and self.n_neighbors == self.bandwidth.suited_neighbors:
                changes["n_neighbors"] = min(self.n_neighbors, total - 1)
        return replace(self, **changes)

    def given(self, X: Any, neighbors: Any = None, sample_weight: Any = None, y: Any = None) -> ConditionedModel:
        """Return the law given its points, for its posterior and the edges of new points.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        neighbors : tuple of arrays, or sparse matrix, optional
            Precomputed neighbours: ``(indices, distances)`` or a sparse matrix of distances. There are no other edges;
            a smaller `n_neighbors` keeps the nearest.
        sample_weight, y : array of shape (n_samples,), optional
            See `posterior`.
        """
        X = as_points(X)
        return self.given_distances(self.distances(X, neighbors), sample_weight, y)

    def distances(self, X: Any, neighbors: Any = None) -> Distances:
        """Return the distances between checked points (see `as_points`), or to the given neighbours."""
        if neighbors is None and self.finds:
            # A transformer finds no pairs beyond its neighbours, or those within its radius.
            counts = "n_neighbors" in getattr(self.search, "get_params", dict)()
            k = None if self.n_neighbors in (None, "auto") else int(self.n_neighbors)
            if k is not None and not counts:
                raise ValueError(f"search={self.search!r} has no parameter n_neighbors; leave n_neighbors at None.")
            k = self._suited(X.shape[0]) if k is None and counts else k
            return OwnNeighbors.by_transformer(X, self.metric, self.search, k, self.metric_params)
        if neighbors is None:
            return distances_of(X, self.metric, self.metric_params)
        return OwnNeighbors(X, self.metric, neighbors, self.metric_params)

    @property
    def finds(self) -> bool:
        """Whether `search` is a transformer that finds neighbours."""
        return hasattr(self.search, "fit_transform")

    @property
    def distance_key(self) -> str:
        """A key that laws with the same distances share."""
        wanted = self._suited() if self.n_neighbors in (None, "auto") else self.n_neighbors
        search = (self.search, wanted) if self.finds else None
        parts = (self.metric, _arguments(self.metric_params), search)
        try:
            return str(joblib.hash(parts))
        except Exception:
            # What cannot be pickled, such as a lambda, is shared only as the same object.
            params = sorted((name, id(value)) for name, value in (self.metric_params or {}).items())
            return repr((id(self.metric), params, search and (id(self.search), wanted)))

    def given_distances(self, distances: Distances, sample_weight: Any = None, y: Any = None) -> ConditionedModel:
        """Return the law given the distances between its points, their weights and classes."""
        weights = None if sample_weight is None else check_weights(sample_weight, distances.n_points)
        codes = target_codes(y, distances.n_points, weights) if self.target_weight else None
        return self._conditioned(self, distances, weights, codes)

    def recall(self, remembered: dict[str, Any]) -> ConditionedModel:
        distances = remembered_distances(remembered["points"], self.metric, self.metric_params)
        with warnings.catch_warnings():
            # `within` warned when the law was given its points.
            warnings.simplefilter("ignore")
            law = self.given_distances(distances, remembered["weights"], and_unknown(remembered["labels"]))
        law._scales, law._spread = remembered["scales"], remembered["spread"]
        for each in (law._scales, law._spread):
            if each is not None and not (each.shape == (distances.n_points,) and each.dtype.kind == "f"):
                raise ValueError("the file is damaged: its law does not fit its points. Fit again.")
        law.model = replace(law.model, bandwidth=remembered.get("bandwidth", law.model.bandwidth))
        return law

    def edges_among(
        self, distances: Distances, n_jobs: int | None, weights: FloatArray | None = None
    ) -> tuple[Support, FloatArray]:
        """Return the possible edges and their squared distances."""
        n_neighbors = self.neighbors_among(distances.n_points)
        n_rows = rows_to_search(n_neighbors, weights)
        allowed = self.prior.edges(distances.n_points)
        if allowed is not None and n_neighbors is None and distances.searched:
            return allowed[0], distances.of_edges(allowed[0], n_jobs)
        if n_neighbors is not None and n_rows is not None:
            ragged = n_rows != n_neighbors and not (distances.knows_all or distances.neighbors_given)
            support, sq_dist = distances.nearest(n_neighbors if ragged else n_rows, n_jobs, self.search)
            if ragged:
                # A row of a sparse graph may store fewer distances than light weights ask for.
                support, sq_dist = nearest_edges(*distances.all_pairs(), n_rows)
        else:
            support, sq_dist = distances.all_pairs()
        if allowed is None:
            return support, sq_dist
        keep = allowed[0].find(support.rows, support.indices) >= 0
        return support.select(keep), sq_dist[keep]

    def rows(
        self, support: Support, sq_dist: FloatArray, n_jobs: int | None = None, copies: Copies | None = None
    ) -> DistanceRows:
        """Return rows of distances for the bandwidth.

        Under prior B, the bandwidth is fitted to edge probabilities, not to their odds (Draganov 2021, section 5.1).
        """
        kernel = self.kernel.membership if self.prior.independent_edges else self.kernel
        # An edge prior above 1 may make up for weak kernels.
        favour = 1.0 if self.prior.edge_prior is None else self.prior.edge_prior
        drawn_by = self.prior.drawn_by if isinstance(favour, Real) and favour <= 1.0 else None
        return DistanceRows(support, sq_dist, kernel, n_jobs, copies, drawn_by=drawn_by)


def _arguments(params: dict[str, Any] | None) -> list[tuple[str, Any]]:
    """Return arguments in a form that can be compared."""
    return sorted((name, np.asarray(value).tolist()) for name, value in (params or {}).items())
