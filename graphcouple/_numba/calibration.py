"""Row-wise searches for bandwidths."""

import numpy as np

from graphcouple._numba import formulas as _formulas  # noqa: F401  registers the formula type
from graphcouple._numba.jit import jit

# Steps of a search for a bandwidth, and the widest bracket of its logarithm, beyond the range of double precision.
_MAX_SEARCH, _LOG_SCALE_SPAN = 200, 1000.0

TIE = 1e-6
"""Squared distances that differ by less than this share of the smallest are tied: single precision resolves no less."""

# Excess of the entropy of a tied row over the entropy of its ties alone, in nats.
_REST_OF_TIES = 1e-10


@jit
def _row_entropy(sq_dist, counts, kernel, log_scale, log_weight, slope):
    """Return the entropy of a row's categorical law at bandwidth exp(log_scale), and its derivative in log_scale."""
    shrink = np.exp(-2.0 * log_scale)
    largest = -np.inf
    for j in range(sq_dist.size):
        if counts is not None and counts[j] == 0.0:
            # The point itself, at distance 0 and without copies, would be the largest term, and the other terms would
            # lose all their digits.
            log_weight[j] = -np.inf
            slope[j] = 0.0
            continue
        scaled = sq_dist[j] * shrink
        log_weight[j] = kernel.log(scaled)
        slope[j] = -2.0 * scaled * kernel.grad_log(scaled)
        largest = max(largest, log_weight[j])
    mass, mean, mean_slope, mean_product = 0.0, 0.0, 0.0, 0.0
    for j in range(sq_dist.size):
        log_weight[j] -= largest
        weight = np.exp(log_weight[j])
        if counts is not None:
            weight *= counts[j]
        if weight > 0.0:
            mass += weight
            mean += weight * log_weight[j]
            mean_slope += weight * slope[j]
            mean_product += weight * log_weight[j] * slope[j]
    mean /= mass
    mean_slope /= mass
    return np.log(mass) - mean, mean * mean_slope - mean_product / mass


@jit
def perplexity_rows(start, stop, sq_dist, indptr, kernel, target, tolerance, scale, error, tied, counts=None):
    """Find each row's bandwidth τ with entropy `target`; `error` gets the entropy minus the target.

    `tied` gets the number of entries at the smallest distance where it is at least exp(target), else 0. No bandwidth
    gives such a row its target, or narrower ones cannot be told from it. So the row gets the largest bandwidth that
    leaves the ties all but a billionth of the mass. With `counts`, an entry stands for `counts` neighbours at one
    distance. Newton's method on log τ, kept inside a bracket. The bracket shrinks by bisection whenever a Newton step
    would leave it, or is more than half as long as the last step.
    """
    widest = 0
    for i in range(start, stop):
        widest = max(widest, indptr[i + 1] - indptr[i])
    log_weight, slope = np.empty(widest), np.empty(widest)
    for i in range(start, stop):
        m = indptr[i + 1] - indptr[i]
        row = sq_dist[indptr[i] : indptr[i + 1]]
        row_counts = None if counts is None else counts[indptr[i] : indptr[i + 1]]
        nearest = np.inf
        for j in range(m):
            if row_counts is None or row_counts[j] > 0.0:
                nearest = min(nearest, row[j])
        at_nearest = 0.0
        for j in range(m):
            if row[j] <= nearest * (1.0 + TIE):
                at_nearest += 1.0 if row_counts is None else row_counts[j]
        above = np.log(at_nearest) - target
        tied[i], goal, enough = 0.0, target, tolerance
        if above >= -tolerance:
            # Every narrower bandwidth gives the ties' own entropy up to the tolerance, so the search must be closer.
            tied[i], goal, enough = at_nearest, np.log(at_nearest) + _REST_OF_TIES, 1e-3 * _REST_OF_TIES
        smallest, middle, n_positive = np.inf, 0.0, 0
        for j in range(m):
            if row[j] > 0.0:
                smallest = min(smallest, row[j])
                middle += np.log(row[j])
                n_positive += 1
        start_at = 0.5 * middle / n_positive if n_positive else 0.0
        if n_positive == 0 or row.max() <= nearest * (1.0 + TIE):
            # All neighbours are equally far, so every bandwidth gives the uniform law.
            scale[i] = np.exp(start_at)
            error[i] = 0.0
            continue
        # Double precision resolves neither ratios of squared distances below exp(-1400) nor differences below 1e-12 of
        # the smallest.
        low = max(start_at - _LOG_SCALE_SPAN, 0.5 * np.log(smallest) - 14.0)
        high = start_at + _LOG_SCALE_SPAN
        at, gap, length = start_at, 0.0, np.inf
        for _ in range(_MAX_SEARCH):
            entropy, derivative = _row_entropy(row, row_counts, kernel, at, log_weight[:m], slope[:m])
            gap = entropy - goal
            if abs(gap) <= enough or high - low < 1e-13 * max(1.0, abs(at)):
                break
            if gap > 0.0:
                high = at
            else:
                low = at
            step = at - gap / derivative if derivative > 0.0 else low
            here = at
            # Steps that do not get shorter may oscillate for ever. A wide bracket is first narrowed geometrically
            # around the current point.
            if not (low < step < high) or abs(step - at) > min(5.0, 0.5 * length):
                at = max(0.5 * (low + high), at - 3.0) if gap > 0.0 else min(0.5 * (low + high), at + 3.0)
            else:
                at = step
            length = abs(at - here)
        scale[i] = np.exp(at)
        error[i] = gap


@jit
def membership_sum(dist, counts, kernel, shift, scale):
    """Return Σ_j k(((d_j − shift)₊ / scale)²), each entry `counts` times, if given."""
    total = 0.0
    for j in range(dist.size):
        excess = max(dist[j] - shift, 0.0) / scale
        value = np.exp(kernel.log(excess * excess))
        total += value if counts is None else counts[j] * value
    return total


@jit
def _nth_copy(values, counts, number):
    """Return the first of sorted values whose cumulative count exceeds `number`; the last if there is none."""
    if counts is None:
        return values[min(np.int64(number), values.size - 1)]
    total = 0.0
    for j in range(values.size):
        total += counts[j]
        if total > number:
            return values[j]
    return values[-1]


@jit
def _nearest_distinct(dist, counts, connectivity):
    """Return the distance to the `connectivity`-th neighbour at a positive distance, interpolated between integers.

    If there are fewer, it is the distance to the furthest; if there is none, 0.
    """
    order = np.argsort(dist)
    ordered = dist[order]
    first = np.searchsorted(ordered, 0.0, side="right")
    ordered = ordered[first:]
    if ordered.size == 0:
        return 0.0
    ordered_counts = None if counts is None else counts[order][first:]
    n_copies = np.float64(ordered.size) if counts is None else ordered_counts.sum()
    if n_copies < connectivity:
        return ordered[-1]
    whole = np.floor(connectivity)
    part = connectivity - whole
    if whole == 0.0:
        return part * _nth_copy(ordered, ordered_counts, 0.0)
    below = _nth_copy(ordered, ordered_counts, whole - 1.0)
    return below + part * (_nth_copy(ordered, ordered_counts, whole) - below)


@jit
def connectivity_rows(start, stop, sq_dist, indptr, kernel, target, connectivity, shift, scale, sums, counts=None):
    """Find each row's ρ, its scale σ with Σ_j k((d_j − ρ)₊/σ) = `target`, by bisection after doubling, and Σ_j d_j."""
    for i in range(start, stop):
        row = np.sqrt(sq_dist[indptr[i] : indptr[i + 1]].astype(np.float64))
        row_counts = None if counts is None else counts[indptr[i] : indptr[i + 1]]
        shift[i] = _nearest_distinct(row, row_counts, connectivity)
        low, high = 0.0, np.inf
        # Start from the row's own scale, so that the units of the data do not matter.
        at = 0.0
        sums[i] = 0.0
        for j in range(row.size):
            at += row[j] / row.size
            sums[i] += row[j] if row_counts is None else row[j] * row_counts[j]
        if at == 0.0:
            at = 1.0
        for _ in range(64):
            total = membership_sum(row, row_counts, kernel, shift[i], at)
            if abs(total - target) < 1e-10:
                break
            if total > target:
                high = at
                at = 0.5 * (low + high)
            else:
                low = at
                at = 2.0 * at if high == np.inf else 0.5 * (low + high)
        scale[i] = at


@jit
def neighbor_rows(start, stop, sq_dist, indptr, number, scale, counts=None):
    """Find each row's distance to neighbour `number` + 1, with copies; for 0, the least positive distance, or 1."""
    for i in range(start, stop):
        row = np.sqrt(sq_dist[indptr[i] : indptr[i + 1]].astype(np.float64))
        order = np.argsort(row)
        ordered = row[order]
        ordered_counts = None if counts is None else counts[indptr[i] : indptr[i + 1]][order]
        at = _nth_copy(ordered, ordered_counts, number)
        if at == 0.0:
            first = np.searchsorted(ordered, 0.0, side="right")
            at = ordered[first] if first < ordered.size else 1.0
        scale[i] = at


@jit
def count_nearest_copies(start, stop, sq_dist, indptr, counts, room, reach):
    """Fill how many copies of each edge's end are among the nearest `room` copies of its row."""
    for i in range(start, stop):
        first = indptr[i]
        order = np.argsort(sq_dist[first : indptr[i + 1]], kind="mergesort")
        nearer = 0.0
        for s in order:
            reach[first + s] = min(max(room[i] - nearer, 0.0), counts[first + s])
            nearer += counts[first + s]


@jit
def likelihood_rows(start, stop, sq_dist, indptr, kernel, log_scale, value, effective, counts=None):
    """Return log mean_j k(d_ij²/τ_i²) of each row over the points in other places, and the perplexity of the row's law.

    Rows whose points are all in one place get NaN, and rows beyond the kernel's reach −∞. With `counts`, an entry
    stands for `counts` points.
    """
    for i in range(start, stop):
        shrink = np.exp(-2.0 * log_scale[i])
        largest = -np.inf
        for j in range(indptr[i], indptr[i + 1]):
            if sq_dist[j] > 0.0 and (counts is None or counts[j] > 0.0):
                largest = max(largest, kernel.log(sq_dist[j] * shrink))
        mass, mean, total = 0.0, 0.0, 0.0
        for j in range(indptr[i], indptr[i + 1]):
            if sq_dist[j] > 0.0:
                count = 1.0 if counts is None else counts[j]
                excess = kernel.log(sq_dist[j] * shrink) - largest
                weight = count * np.exp(excess)
                total += count
                if weight > 0.0:
                    mass += weight
                    mean += weight * excess
        value[i] = largest + np.log(mass / total) if total > 0.0 else np.nan
        effective[i] = np.exp(np.log(mass) - mean / mass) if mass > 0.0 else np.nan
