"""A `GraphModel` given its points."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple.graphs import FloatArray, IntArray, Support
from graphcouple.laws.bandwidths import Bandwidth, DistanceRows
from graphcouple.laws.copies import Copies, nearest_copies, rows_to_search, whole_copies
from graphcouple.laws.given import FEW, ConditionedLaw, NewEdges, nearest_spread, refuse_alone
from graphcouple.laws.labels import log_factor
from graphcouple.laws.priors import RandomGraph, RepeatedPosterior
from graphcouple.laws.priors.binary import symmetrized
from graphcouple.laws.priors.posterior import GraphPosterior
from graphcouple.laws.priors.repeated import law_with_copies
from graphcouple.neighbors import Distances, OwnNeighbors, as_points, is_precomputed
from graphcouple.neighbors.distances import nearest_edges

# Bandwidths that need all points use about this many distances, in this many rows; more points raise an error.
_DISTANCES, _LEAST_ROWS, _MOST_ROWS, _MOST_POINTS = 5_000_000, 100, 2000, 200_000

# The logarithm of the largest mean of a new point is at least this.
_TINY_LOG = -600.0


class ConditionedModel(ConditionedLaw):
    """A model and the distances between its points; `labels` may also be ranks of numbers."""

    def __init__(
        self, model: Any, distances: Distances, weights: FloatArray | None, labels: IntArray | FloatArray | None
    ) -> None:
        total = None if weights is None else float(weights.sum())
        # The bandwidths that rows choose may need other numbers of neighbours, but "auto" is one number.
        self.model = model.within(distances.n_points, total).for_points(distances.n_points)
        self.distances, self.X = distances, distances.X
        self.weights, self.labels, self.neighbors_given = weights, labels, distances.neighbors_given
        self._scales: FloatArray | None = None
        self._spread: FloatArray | None = None

    @property
    def law(self) -> Any:
        return self.model

    @property
    def order(self) -> IntArray | None:
        return self.distances.order

    def posterior(self, n_jobs: int | None = None) -> RandomGraph:
        model, copies = self.model, None
        support, sq_dist = model.edges_among(self.distances, n_jobs, self.weights)
        self._spread = nearest_spread(support, sq_dist, n_jobs)
        joins = 1.0 if self.weights is None else model.prior.among_copies(support.n_nodes) > 0.0
        if isinstance(self.distances, OwnNeighbors) and model.bandwidth is not None:
            counts = np.diff(support.indptr)
            fewest, most = int(counts.min()), int(counts.max())
            if self.weights is not None:
                # Rows that stand for several points need fewer edges.
                reach = np.bincount(support.rows, self.weights[support.indices], support.n_nodes)
                fewest = whole_copies(float((reach + np.maximum(self.weights - 1.0, 0.0) * joins).min()))
                most = whole_copies(float(self.weights.sum()))
            model = self.model = replace(model, bandwidth=model.bandwidth.for_neighbors(fewest, most))
        if self.weights is not None:
            k = model.neighbors_among(self.distances.n_points)
            support, sq_dist, copies = nearest_copies(support, sq_dist, self.weights, self.weights, k, joins)
        rows = model.rows(support, sq_dist, n_jobs, copies)
        if model.bandwidth is not None:
            model = self.model = replace(model, bandwidth=self._settled(rows))
        log_kernel = self._log_kernel(rows)
        del sq_dist, rows
        if copies is not None:
            own = model.kernel.log(np.zeros(support.n_nodes))
            law, copies = law_with_copies(model.prior, support, log_kernel, copies, own, model.symmetrize)
            return RepeatedPosterior(self._with_targets(law), copies, model.prior)
        posterior = model.prior.posterior_on(support, log_kernel)
        return self._with_targets(symmetrized(posterior, model.symmetrize) if model.symmetrize else posterior)

    def _with_targets(self, law: GraphPosterior) -> GraphPosterior:
        """Return a law whose edges between different targets are less likely."""
        if self.labels is None:
            return law
        factor = log_factor(law.support, self.labels, self.model.target_weight)
        return law.with_natural_parameters(self.model.prior.thinned(law.natural_parameters, factor))

    def _settled(self, rows: DistanceRows) -> Bandwidth:
        """Return the bandwidth with the parameters that all rows choose together."""
        bandwidth, support, n, w = self.model.bandwidth, rows.support, self.distances.n_points, self.weights
        if not bandwidth.looks_at_all or (support.complete and support.n_edges <= _DISTANCES):
            return bandwidth.settled(rows)
        limited = not support.complete and self.model.prior.edges(n) is None
        stored = np.diff(support.indptr)
        if rows.copies is not None:
            stored = np.bincount(support.rows, rows.copies.edges, support.n_nodes) + rows.copies.own
        n_stored, places = int(stored.min()) if limited else None, rows.end_places()[0]
        chosen = np.random.default_rng(0).permutation(n)[: np.clip(_DISTANCES // n, _LEAST_ROWS, _MOST_ROWS)]
        support, sq_dist = self._to_all(rows, chosen)
        copies = None if w is None else Copies(w[chosen], w[support.indices], np.zeros(chosen.size))
        return bandwidth.settled(DistanceRows(support, sq_dist, rows.kernel, rows.n_jobs, copies, places), n_stored)

    def _to_all(self, rows: DistanceRows, chosen: IntArray) -> tuple[Support, FloatArray]:
        """Return the squared distances of some points to all others."""
        n = self.distances.n_points
        if rows.support.complete:
            ends = rows.support.indices.reshape(n, n - 1)[chosen]
            starts = np.arange(chosen.size + 1) * (n - 1)
            return Support(starts, ends.ravel()), rows.sq_dist.reshape(n, n - 1)[chosen].ravel()
        if not self.distances.knows_all or n > _MOST_POINTS:
            raise ValueError(
                f"{self.model.bandwidth} needs distances to all points: it takes no neighbors of your own, no sparse "
                f"graph of distances, and at most {_MOST_POINTS} points. Choose the scale on fewer points, or take "
                "Perplexity."
            )
        return self.distances.to(self.X[chosen], None, rows.n_jobs)

    def _log_kernel(self, rows: DistanceRows) -> FloatArray:
        """Return the log-kernel of each edge, in the precision of the distances."""
        bandwidth, log, sq_dist = self.model.bandwidth, self.model.kernel.log, rows.sq_dist
        if bandwidth is None:
            return log(sq_dist)
        shift, scale = bandwidth.fit_rows(rows)
        if bandwidth.pairs_scales:
            self._scales = scale
        log_kernel = np.empty_like(sq_dist)
        for nodes, edges, part in rows.support.in_parts():
            log_kernel[edges] = log(bandwidth.rescale(part, sq_dist[edges], shift[nodes], scale[nodes], scale))
        return log_kernel

    def remembered(self) -> dict[str, Any]:
        arrays = {"labels": self.labels, "scales": self._scales, "spread": self._spread, "weights": self.weights}
        return {"points": self.distances.remembered(), **arrays, "bandwidth": self.model.bandwidth}

    def new_edges(self, X_new: Any, n_jobs: int | None = None) -> NewEdges:
        model, distances = self.model, self.distances
        n_neighbors = model.neighbors_among(distances.n_points)
        search = "auto" if model.finds else model.search
        points = as_points(X_new, "X_new", at_least=1)
        # Rows of a sparse graph of distances may store no more.
        stored = is_precomputed(model.metric) and sp.issparse(points)
        n_rows = n_neighbors if stored else rows_to_search(n_neighbors, self.weights)
        support, sq_dist = distances.to(points, n_rows, n_jobs, search)
        isolation = self._isolation(support, sq_dist, n_jobs, stored)
        copies = None
        if self.weights is not None:
            support, sq_dist, copies = nearest_copies(support, sq_dist, self.weights, None, n_neighbors)
        counts: FloatArray | float = 1.0 if copies is None else copies.edges
        is_zero = sq_dist == 0.0
        rows = model.rows(support, sq_dist, n_jobs, copies)
        # Here each row has its own edges, also where the fitted points share theirs.
        rescaled = self._rescaled(replace(rows, drawn_by=None) if model.prior.normalized else rows)
        log_strength = model.prior.log_strength(model.kernel.log(rescaled) + model.prior.log_scalar) + np.log(counts)
        first = np.flatnonzero(is_zero)[::-1]
        coincident = np.full(support.n_nodes, -1)
        coincident[support.rows[first]] = support.indices[first]
        at_zero = np.where(is_zero, np.log(counts), -np.inf)
        log_strength = np.where(coincident[support.rows] >= 0, at_zero, log_strength)
        largest = np.maximum.reduceat(log_strength, support.indptr[:-1])
        if model.prior.normalized:
            refuse_alone(largest == -np.inf)
        # Means of a row that would all underflow keep their ratios.
        shift = largest if model.prior.normalized else np.minimum(largest - _TINY_LOG, 0.0)
        log_strength -= np.where(np.isfinite(shift), shift, 0.0)[support.rows]
        means = np.exp(log_strength)
        if model.prior.normalized:
            means /= np.add.reduceat(means, support.indptr[:-1])[support.rows]
        return NewEdges(support, means, distances.n_points, coincident, isolation)

    def own_isolation(self, n_jobs: int | None = None) -> FloatArray:
        support, sq_dist = self.model.edges_among(self.distances, n_jobs, self.weights)
        spread = nearest_spread(support, sq_dist, n_jobs)
        return _isolation_of(spread, support, sq_dist, spread)

    def _isolation(self, support: Support, sq_dist: FloatArray, n_jobs: int | None, stored: bool) -> FloatArray:
        if self._spread is None:
            self.posterior(n_jobs)
        assert self._spread is not None
        if stored:
            # Rows may store distances in different numbers.
            return _isolation_of(nearest_spread(support, sq_dist, n_jobs), support, sq_dist, self._spread)
        # With as many edges in each row, this takes a tenth of the time.
        rows = sq_dist.reshape(support.n_nodes, -1)
        k = min(FEW, rows.shape[1])
        nearest = np.argpartition(rows, k - 1, axis=1)[:, :k]
        spread = np.take_along_axis(rows, nearest, axis=1).mean(axis=1)
        spreads = self._spread[np.take_along_axis(support.indices.reshape(rows.shape), nearest, axis=1)].mean(axis=1)
        return _ratio(spread, spreads)

    def _rescaled(self, rows: DistanceRows) -> FloatArray:
        """Return the rescaled squared distances from new points."""
        bandwidth = self.model.bandwidth
        if bandwidth is None:
            return rows.sq_dist
        if bandwidth.pairs_scales and self._scales is None:
            self.posterior(rows.n_jobs)
        return bandwidth.rescale(rows.support, rows.sq_dist, *bandwidth.fit_rows(rows), self._scales)


def _isolation_of(spread: FloatArray, support: Support, sq_dist: FloatArray, of_ends: FloatArray) -> FloatArray:
    near, _ = nearest_edges(support, sq_dist, FEW)
    counts = np.diff(near.indptr)
    around = np.bincount(near.rows, of_ends[near.indices], near.n_nodes) / np.maximum(counts, 1)
    return np.where(counts > 0, _ratio(spread, around), np.inf)


def _ratio(spread: FloatArray, around: FloatArray) -> FloatArray:
    """Return the square root of the ratio of mean squared distances; 1 where both are zero."""
    ratio = np.divide(spread, around, out=np.full(spread.shape, np.inf), where=around > 0)
    return np.sqrt(np.where(spread > 0, ratio, 1.0))
