"""Epochs of sampled attraction and repulsion, with the same bits for any number of threads.

Every point walks its own edges and moves a copy of itself, relative to the other points at
the end of the last epoch. Its random numbers depend only on the seed, the epoch and the point.
"""

import numpy as np

from graphcouple._numba import formulas as _formulas  # noqa: F401  registers the formula type
from graphcouple._numba.jit import jit

# splitmix64's numbers (Steele, Lea and Flood, 2014): 2^64 over the golden ratio, and the multipliers of its scrambling.
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


@jit
def _mixed(z):
    """Return splitmix64's scrambling of a counter."""
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@jit
def _phase(seed, i, j):
    """Return a number in [0, 1) that belongs to the pair {i, j}."""
    low = np.uint64(min(i, j))
    high = np.uint64(max(i, j))
    return np.float64(_mixed(_mixed(seed + _GOLDEN * low) + _GOLDEN * high) >> np.uint64(11)) * 2.0**-53


@jit
def _n_draws(epoch, frequency, seed, i, j):
    f = np.float64(frequency)
    u = _phase(seed, i, j)
    return int((epoch + 1) * f + u) - int(epoch * f + u)


@jit
def alias_table(weights, keep, other):
    """Fill Vose's tables: index i is kept with probability keep[i], otherwise replaced by other[i]."""
    n = weights.size
    mean = weights.sum() / n
    small, large = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    n_small, n_large = 0, 0
    for i in range(n):
        keep[i] = weights[i] / mean
        other[i] = i
        if keep[i] < 1.0:
            small[n_small] = i
            n_small += 1
        else:
            large[n_large] = i
            n_large += 1
    while n_small > 0 and n_large > 0:
        n_small -= 1
        s = small[n_small]
        b = large[n_large - 1]
        other[s] = b
        keep[b] -= 1.0 - keep[s]
        if keep[b] < 1.0:
            n_large -= 1
            small[n_small] = b
            n_small += 1
    for r in range(n_large):
        keep[large[r]] = 1.0
    for r in range(n_small):
        keep[small[r]] = 1.0


@jit
def _draw(stream, keep, other, sample):
    """Fill `sample` with points of the noise law; return the next state of the stream."""
    n_points = np.uint64(keep.size)
    for r in range(sample.size):
        stream += _GOLDEN
        bits = _mixed(stream)
        k = np.int64(((bits >> np.uint64(32)) * n_points) >> np.uint64(32))
        if np.float64(bits & np.uint64(0xFFFFFFFF)) * 2.0**-32 >= keep[k]:
            k = other[k]
        sample[r] = k
    return stream


@jit
def _push(here, i, old, sample, repelling, softening, size, cap, sq_dist, weight):
    """Move `here` away from the sampled points, by the sum of their forces."""
    n_dims = old.shape[1]
    for r in range(sample.size):
        sq_dist[r] = softening
    for a in range(n_dims):
        for r in range(sample.size):
            sq_dist[r] += (here[a] - old[sample[r], a]) ** 2
    for r in range(sample.size):
        weight[r] = -size * repelling.slope(sq_dist[r])
    for r in range(sample.size):
        if sample[r] == i:
            weight[r] = 0.0
    for a in range(n_dims):
        move = 0.0
        for r in range(sample.size):
            move += min(max(weight[r] * (here[a] - old[sample[r], a]), -cap), cap)
        here[a] += move


@jit
def sampled_rows(
    start, stop, epoch, seed, rate, clip, softening, attracting, repelling, strength, n_negative, n_pulls,
    indptr, indices, frequency, own, keep, other, old, new,
):  # fmt: skip
    """Move the points start to stop by one epoch.

    An edge of frequency f is drawn floor((t + 1) f + u) − floor(t f + u) times in epoch t; u is the phase of its pair.
    `own` are the frequencies of the edges among a point's copies, which only bring pushes.
    """
    n_dims = old.shape[1]
    here = np.empty(n_dims)
    sample = np.empty(n_negative, dtype=np.int64)
    sq_dist, weight = np.empty(n_negative), np.empty(n_negative)
    cap = rate * clip
    push = 2.0 * rate * strength * n_pulls
    for i in range(start, stop):
        for a in range(n_dims):
            here[a] = old[i, a]
        stream = _mixed(_mixed(seed + _GOLDEN * np.uint64(epoch + 1)) + _GOLDEN * np.uint64(i + 1))
        for e in range(indptr[i], indptr[i + 1]):
            j = np.int64(indices[e])
            for _ in range(_n_draws(epoch, frequency[e], seed, i, j)):
                for _ in range(n_pulls):
                    near = 0.0
                    for a in range(n_dims):
                        near += (here[a] - old[j, a]) ** 2
                    pull = 2.0 * rate * attracting.slope(near)
                    for a in range(n_dims):
                        here[a] += min(max(pull * (here[a] - old[j, a]), -cap), cap)
                stream = _draw(stream, keep, other, sample)
                _push(here, i, old, sample, repelling, softening, push, cap, sq_dist, weight)
        for _ in range(_n_draws(epoch, own[i], seed, i, i)):
            stream = _draw(stream, keep, other, sample)
            _push(here, i, old, sample, repelling, softening, push, cap, sq_dist, weight)
        for a in range(n_dims):
            new[i, a] = here[a]
