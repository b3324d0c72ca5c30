"""Sums over edges at given places, and descent of each place by itself."""

import numpy as np

from graphcouple._numba.blocks import BLOCK, evaluate
from graphcouple._numba.jit import jit
from graphcouple._numba.near import folded
from graphcouple._numba.pairs import fill_distances
from graphcouple._numba.tables import look_up

# The least fall of the loss, as a share of the slope's prediction; the longest and first step, relative to the map.
_ENOUGH_FALL = 1e-4
_REACH = 0.2
_FIRST_STEP = 0.02

# A place has settled when its step is shorter than the first number, relative to the map, or when the line search cut a
# step to less than the second number.
_SETTLED = 1e-5
_SHORTEST = 1e-4


@jit
def edge_sums_at(start, stop, places, rows, ends, indptr, weights, radial, value, gradient, stiffness):
    """Fill Σ_j w_ij φ(d²_ij), its gradient at places and −2 Σ_j w_ij φ'(d²_ij), over the ends of each row's edges."""
    n_dims = ends.shape[0]
    sq_dist, terms, slope = np.empty(BLOCK), np.empty(BLOCK), np.empty(BLOCK)
    for i in range(start, stop):
        total, total_stiffness = 0.0, 0.0
        gradient[i] = 0.0
        first, last = np.int64(indptr[rows[i]]), np.int64(indptr[rows[i] + 1])
        for b in range(first, last, BLOCK):
            m = min(BLOCK, last - b)
            fill_distances(places[i], ends, b, m, sq_dist)
            evaluate(radial, sq_dist[:m], terms, slope, True, True)
            w = weights[b : b + m]
            for j in range(m):
                # An edge of mean 0 contributes 0, even where the function is infinite.
                terms[j] = w[j] * terms[j] if w[j] != 0.0 else 0.0
                slope[j] = 2.0 * w[j] * slope[j] if w[j] != 0.0 else 0.0
            for j in range(m):
                total += terms[j]
                total_stiffness -= slope[j]
            for a in range(n_dims):
                here = places[i, a]
                there = ends[a, b : b + m]
                pull = 0.0
                for j in range(m):
                    pull += slope[j] * (here - there[j])
                gradient[i, a] += pull
        value[i] = total
        stiffness[i] = total_stiffness


@jit
def add_near_at(start, stop, places, low, side, shape, is_folded, edge, table, starts, xs, ys, cs, potential, gradient):
    """Add the correction for points nearer than d² = edge, like `near.add_near_pairs`, at any places."""
    n_dims = places.shape[1]
    for i in range(start, stop):
        x = places[i, 0]
        y = places[i, 1] if n_dims > 1 else 0.0
        row = int(np.floor((x - low[0]) / side))
        column = int(np.floor((y - low[1]) / side)) if n_dims > 1 else 0
        if is_folded:
            row, column = folded(row, shape[0]), folded(column, shape[1])
        for r in range(max(row - 2, 0), min(row + 3, shape[0])):
            # Only the cells of this row that are nearer than the edge.
            apart = 0.0 if is_folded else max(low[0] + r * side - x, x - low[0] - (r + 1) * side, 0.0)
            if apart * apart >= edge:
                continue
            left, right = max(column - 2, 0), min(column + 3, shape[1])
            if n_dims > 1 and not is_folded:
                reach = np.sqrt(edge - apart * apart)
                left = max(int(np.floor((y - reach - low[1]) / side)), 0)
                right = min(int(np.floor((y + reach - low[1]) / side)) + 1, shape[1])
            if left >= right:
                continue
            for s in range(starts[r * shape[1] + left], starts[r * shape[1] + right]):
                dx, dy = x - xs[s], y - ys[s]
                sq_dist = dx * dx + dy * dy
                if sq_dist < edge:
                    slope = 2.0 * look_up(table, sq_dist, 0)
                    value = look_up(table, sq_dist, 2)
                    for k in range(cs.shape[0]):
                        potential[k, i] += cs[k, s] * value
                        gradient[k, i, 0] += cs[k, s] * slope * dx
                        if n_dims > 1:
                            gradient[k, i, 1] += cs[k, s] * slope * dy


@jit
def _weighted_median(values, weights, order):
    half = 0.5 * weights.sum()
    below = 0.0
    for s in order:
        below += weights[s]
        if below >= half:
            return values[s]
    return values[order[-1]]


@jit
def starts_at(start, stop, ends, indptr, weights, offset, starts):
    """Fill each row's starts: the weighted mean and median of its edges' ends, and places beside the heaviest ends."""
    n_dims = ends.shape[0]
    for i in range(start, stop):
        own_ends = ends[:, indptr[i] : indptr[i + 1]]
        w = weights[indptr[i] : indptr[i + 1]]
        heaviest = np.argsort(-w, kind="mergesort")
        total = w.sum()
        for a in range(n_dims):
            mean = 0.0
            for e in range(w.size):
                mean += w[e] * own_ends[a, e]
            starts[0, i, a] = mean / total
            starts[1, i, a] = _weighted_median(own_ends[a], w, np.argsort(own_ends[a], kind="mergesort"))
        for k in range(2, starts.shape[0]):
            e = heaviest[min(k - 2, heaviest.size - 1)]
            for a in range(n_dims):
                starts[k, i, a] = own_ends[a, e] + (offset if a == 0 else 0.0)


@jit
def _turn(i, gradient, inverse, direction, size):
    """Fill the direction −H g of a place, or steepest descent if −H g leads up; return its length, cut to the reach."""
    n_dims = gradient.shape[1]
    slope = 0.0
    for a in range(n_dims):
        direction[i, a] = 0.0
        for b in range(n_dims):
            direction[i, a] -= inverse[i, a, b] * gradient[i, b]
        slope += direction[i, a] * gradient[i, a]
    if not slope < 0.0:
        sq_norm = 0.0
        for a in range(n_dims):
            sq_norm += gradient[i, a] * gradient[i, a]
        scale = _FIRST_STEP * size / np.sqrt(sq_norm) if sq_norm > 0.0 else 0.0
        for a in range(n_dims):
            for b in range(n_dims):
                inverse[i, a, b] = scale if a == b else 0.0
            direction[i, a] = -scale * gradient[i, a]
    length = 0.0
    for a in range(n_dims):
        length += direction[i, a] * direction[i, a]
    length = np.sqrt(length)
    if length > _REACH * size:
        for a in range(n_dims):
            direction[i, a] *= _REACH * size / length
    return min(length, _REACH * size)


@jit
def _update(i, step, change, inverse):
    """Update the inverse Hessian of a place by the formula of Broyden, Fletcher, Goldfarb and Shanno."""
    n_dims = step.size
    curvature, sq_change, sq_step = 0.0, 0.0, 0.0
    for a in range(n_dims):
        curvature += step[a] * change[a]
        sq_change += change[a] * change[a]
        sq_step += step[a] * step[a]
    if not curvature > 1e-12 * np.sqrt(sq_change * sq_step):
        return
    product = np.zeros(n_dims)
    for a in range(n_dims):
        for b in range(n_dims):
            product[a] += inverse[i, a, b] * change[b]
    quadratic = 0.0
    for a in range(n_dims):
        quadratic += change[a] * product[a]
    for a in range(n_dims):
        for b in range(n_dims):
            inverse[i, a, b] += (1.0 + quadratic / curvature) * step[a] * step[b] / curvature
            inverse[i, a, b] -= (product[a] * step[b] + step[a] * product[b]) / curvature


@jit
def first_steps(start, stop, size, shortest, stiffness, gradient, inverse, direction):
    """Fill the first inverse Hessians, the same in all directions, and the directions they give.

    The stiffness of the edges sets the length of the first step, which is at least `shortest`.
    """
    n_dims = gradient.shape[1]
    for i in range(start, stop):
        sq_norm = 0.0
        for a in range(n_dims):
            sq_norm += gradient[i, a] * gradient[i, a]
        least_scale = shortest[i] / np.sqrt(sq_norm) if sq_norm > 0.0 else 0.0
        scale = max(1.0 / stiffness[i], least_scale) if 0.0 < stiffness[i] < np.inf else least_scale
        inverse[i] = 0.0
        for a in range(n_dims):
            inverse[i, a, a] = scale
        _turn(i, gradient, inverse, direction, size)


@jit
def judge(
    start, stop, size, trial, trial_loss, trial_gradient, places, loss, gradient, inverse, direction, length, settled
):
    """Accept trials that lower a place's loss enough, and set its next direction; shorten the steps of the others."""
    n_dims = places.shape[1]
    step, change = np.empty(n_dims), np.empty(n_dims)
    for i in range(start, stop):
        slope = 0.0
        finite = np.isfinite(trial_loss[i])
        for a in range(n_dims):
            slope += direction[i, a] * gradient[i, a]
            finite = finite and np.isfinite(trial_gradient[i, a])
        if finite and trial_loss[i] <= loss[i] + _ENOUGH_FALL * length[i] * slope:
            for a in range(n_dims):
                step[a] = trial[i, a] - places[i, a]
                change[a] = trial_gradient[i, a] - gradient[i, a]
                places[i, a] = trial[i, a]
                gradient[i, a] = trial_gradient[i, a]
            loss[i] = trial_loss[i]
            _update(i, step, change, inverse)
            length[i] = 1.0
            settled[i] = _turn(i, gradient, inverse, direction, size) <= _SETTLED * size
        else:
            length[i] *= 0.3
            settled[i] = length[i] < _SHORTEST


@jit
def mean_nearest(start, stop, sq_dist, indptr, smallest, mean):
    """Fill the mean of each row's smallest squared distances, as many as `smallest` has columns, or all."""
    for i in range(start, stop):
        row = smallest[i]
        count = 0
        for e in range(indptr[i], indptr[i + 1]):
            d2 = sq_dist[e]
            if count == row.size and d2 >= row[count - 1]:
                continue
            at = min(count, row.size - 1)
            while at > 0 and row[at - 1] > d2:
                row[at] = row[at - 1]
                at -= 1
            row[at] = d2
            count = min(count + 1, row.size)
        mean[i] = row[:count].mean() if count else 0.0
