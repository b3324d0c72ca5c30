"""Weighted points: each stands for several copies in one place.

A weighted point is a node of the graph that gathers w copies of a point. In the graph of all copies, the copies of a
point have edges of the same law. So one row for each node suffices, with copies counted in sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from graphcouple._numba.calibration import count_nearest_copies
from graphcouple._numba.threads import over_rows
from graphcouple._support.validation import check_unmasked
from graphcouple.graphs import FloatArray, Support

# At most this many times as many rows as copies are searched, however light they are.
_MOST_ROWS = 10

# At this ratio of weights, sums in double precision keep four digits of the smallest.
_MOST_RATIO = 1e12


@dataclass(frozen=True, eq=False)
class Copies:
    """How many points the ends of a graph's edges stand for.

    `weights` has the weight of each row, `edges` the number of copies at the end of each edge, and `own` the number of
    other copies of a row's point that its edges may lead to.
    """

    weights: FloatArray
    edges: FloatArray
    own: FloatArray


def check_weights(weights: Any, n_points: int) -> FloatArray:
    """Return weights as a float array; raise unless they are one finite number above 0 for each point."""
    check_unmasked(weights, "sample_weight")
    try:
        if np.iscomplexobj(weights):
            raise TypeError
        array = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"sample_weight must hold real numbers, got {type(weights).__name__}.") from None
    if array.shape != (n_points,):
        raise ValueError(f"sample_weight must have shape ({n_points},), one number for each row, got {array.shape}.")
    if not np.isfinite(array).all() or (array <= 0).any():
        worst = array[np.argmin(array)] if np.isfinite(array).all() else "NaN or infinity"
        raise ValueError(f"sample_weight must be finite and above 0, got {worst}; leave rows of weight 0 out.")
    if array.size > 1 and array.sum() < 2.0:
        raise ValueError(
            f"sample_weight sums to {array.sum():.3g}, fewer than two points: weights count the copies of a row. Pass "
            "weights / weights.mean() if only their ratios matter."
        )
    if array.size and array.max() > _MOST_RATIO * array.min():
        raise ValueError(
            f"sample_weight goes from {array.min():.3g} to {array.max():.3g}, above a ratio of {_MOST_RATIO:g}: small"
            " ones would be lost to rounding. Leave these rows out."
        )
    return array


def joined_weights(old: FloatArray | None, n_old: int, new: Any, n_new: int) -> FloatArray | None:
    """Return the weights of old and new points together; None if none are weighted."""
    if old is None and new is None:
        return None
    more = np.ones(n_new) if new is None else check_weights(new, n_new)
    return np.concatenate([np.ones(n_old) if old is None else old, more])


def whole_copies(total: float) -> int:
    """Return the number of copies that weights add up to, whatever their rounding."""
    return int(total * (1.0 + 1e-9))


def rows_to_search(n_copies: int | None, weights: FloatArray | None) -> int | None:
    """Return how many nearest rows to search for `n_copies` copies: more if rows may stand for less than one each."""
    if n_copies is None or weights is None:
        return n_copies
    lightest = np.cumsum(np.sort(weights))
    needed = int(np.searchsorted(lightest, n_copies)) + 1 if lightest[0] < 1.0 else n_copies
    return min(max(n_copies, needed), _MOST_ROWS * n_copies, weights.size - 1)


def refuse_weights(weights: FloatArray | None, owner: str) -> None:
    """Raise if points have sample weights, which the owner does not take."""
    if weights is not None:
        raise ValueError(f"{owner} takes no sample weights: it counts each row once. Repeat rows, with unique=False.")


def nearest_copies(
    support: Support,
    sq_dist: FloatArray,
    ends: FloatArray,
    rows: FloatArray | None,
    n_neighbors: int | None,
    joins: NDArray[np.bool_] | float = 1.0,
) -> tuple[Support, FloatArray, Copies]:
    """Return the edges to the nearest `n_neighbors` copies, or to all, and how many copies each leads to.

    `ends` are the weights of the points that edges lead to. `rows` are the weights of the points that edges start from,
    if they are the same points: a copy's nearest neighbours are then the other copies of its point. New points have
    none, nor have points that do not join their copies. The furthest copies may count in part.
    """
    counts = ends[support.indices]
    own = np.zeros(support.n_nodes) if rows is None else np.maximum(rows - 1.0, 0.0) * joins
    weights = np.ones(support.n_nodes) if rows is None else rows
    if n_neighbors is None:
        return support, sq_dist, Copies(weights, counts, own)
    own = np.minimum(own, n_neighbors)
    reach = np.empty(counts.size)
    over_rows(support.n_nodes, 1, count_nearest_copies, sq_dist, support.indptr, counts, n_neighbors - own, reach)
    keep = reach > 0
    return support.select(keep), sq_dist[keep], Copies(weights, reach[keep], own)


def effective_graphs(posterior: Any) -> float:
    """Return the effective number of edges, exp(−Σ p log p), divided by the mean number of edges.

    p are the shares of the edges among all copies of weighted points.
    """
    means, weights, pairs = posterior.edge_means.astype(np.float64), posterior.node_weights, np.ones(1)
    if weights is not None:
        starts, ends = posterior.support.rows, posterior.support.indices
        pairs = np.concatenate([weights[starts] * weights[ends], weights * (weights - 1.0)])
        means = np.concatenate([means, posterior.own_means])
    total = float(means.sum())
    shares = means / total
    return float(np.exp(xlogy(shares, pairs).sum() - xlogy(shares, shares).sum())) / total
