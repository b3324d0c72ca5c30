"""Points that move between places, one by one, while the places stand still.

The cost of a point's place is concave in the row of its plan, so the linear bound at its place tells which move lowers
the loss.
"""

import numpy as np

from graphcouple._numba.jit import jit

# The rules by which a prior draws its edges.
PAIR, ROW, GRAPH = 0, 1, 2

# Sums of kernel values below this have underflowed.
_LEAST = 1e-300


@jit
def _attract(i, indptr, indices, weights, labels, cost, mass, seen, costs):
    """Fill the cost of each place for the edges of point i."""
    n_seen = 0
    for e in range(indptr[i], indptr[i + 1]):
        place = labels[indices[e]]
        if mass[place] == 0.0:
            seen[n_seen] = place
            n_seen += 1
        mass[place] += weights[e]
    costs[:] = 0.0
    for s in range(n_seen):
        place = seen[s]
        for k in range(costs.size):
            costs[k] += mass[place] * cost[place, k]
        mass[place] = 0.0


@jit
def _pulls(sizes, values, potential, pull):
    """Fill Σ_l w_l v_lk / R_l: how much the rows of all other points gain by one more point at k."""
    pull[:] = 0.0
    for k in range(sizes.size):
        share = sizes[k] / max(potential[k] - values[k, k], _LEAST)
        for j in range(sizes.size):
            pull[j] += share * values[k, j]


@jit
def _repel(a, values, potential, pull, total, rule, draws, costs):
    """Add the cost of each place in the log-partition for a point at place a, up to a constant."""
    own = max(potential[a] - values[a, a], _LEAST)
    for k in range(costs.size):
        rest = max(potential[k] - values[k, a], _LEAST)
        if rule == PAIR:
            costs[k] += 2.0 * rest
        elif rule == ROW:
            costs[k] += draws * (np.log(rest) + pull[k] - values[a, k] / own)
        else:
            costs[k] += draws * np.log(max(total + 2.0 * (rest - own), _LEAST))


@jit
def move_points(order, indptr, indices, weights, labels, sizes, cost, values, rule, draws):
    """Move each point, in this order, to the place with the lowest cost, in place, and return how many have moved.

    The graph is symmetric, as in a csr matrix. `cost` is −log k between places, and `values` are of the function whose
    sums make the log-partition. `draws` are the edges of a point; of all points under the rule `GRAPH`.
    """
    m = sizes.size
    mass, costs, seen = np.zeros(m), np.empty(m), np.empty(m, dtype=np.int64)
    potential, pull = values @ sizes, np.zeros(m)
    total = 0.0
    for k in range(m):
        total += sizes[k] * (potential[k] - values[k, k])
    if rule == ROW:
        _pulls(sizes, values, potential, pull)
    moved = 0
    for i in order:
        a = labels[i]
        _attract(i, indptr, indices, weights, labels, cost, mass, seen, costs)
        _repel(a, values, potential, pull, total, rule, draws, costs)
        b = np.argmin(costs)
        # A gain below rounding error would send a point to and fro.
        if costs[b] >= costs[a] - 1e-9 * (1.0 + abs(costs[a])):
            continue
        total += 2.0 * ((potential[b] - values[b, a]) - (potential[a] - values[a, a]))
        labels[i] = b
        sizes[a] -= 1.0
        sizes[b] += 1.0
        for k in range(m):
            potential[k] += values[k, b] - values[k, a]
        if rule == ROW:
            _pulls(sizes, values, potential, pull)
        moved += 1
    return moved
