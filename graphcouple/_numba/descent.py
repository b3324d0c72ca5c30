"""The inner loops of descent: steps with momentum and gains, and the products of L-BFGS."""

import numpy as np

from graphcouple._numba.jit import jit


@jit
def momentum_rows(start, stop, gradient, rate, momentum, max_step, Z, update, gains, next_Z, next_update, next_gains):
    """Fill the next points, updates and gains; no point moves further than `max_step`.

    A step that is not finite is not shortened, so that it can be detected.
    """
    n_dims = Z.shape[1]
    step = np.empty(n_dims)
    for i in range(start, stop):
        length = 0.0
        for a in range(n_dims):
            gain = gains[i, a] + 0.2 if update[i, a] * gradient[i, a] < 0.0 else max(gains[i, a] * 0.8, 0.01)
            next_gains[i, a] = gain
            step[a] = momentum * update[i, a] - rate * gain * gradient[i, a]
            length += step[a] * step[a]
        length = np.sqrt(length)
        shrink = max_step / length if max_step < length < np.inf else 1.0
        for a in range(n_dims):
            next_update[i, a] = step[a] * shrink
            next_Z[i, a] = Z[i, a] + step[a] * shrink


@jit
def add_and_dot(start, stop, size, q, weight, v, w, partial):
    """Add ``weight * v`` to q in place and fill the dot products of q and w, block by block of `size` entries.

    Blocks of a fixed size give the same bits for any number of threads.
    """
    for block in range(start, stop):
        total = 0.0
        for i in range(block * size, min((block + 1) * size, q.size)):
            q[i] += weight * v[i]
            total += q[i] * w[i]
        partial[block] = total


@jit
def newest_first(q, steps, changes, inverses):
    """Do the first loop of L-BFGS on q in place, and return the steps' weights; arrays of shape (m, n) for m steps."""
    weights = np.empty(len(steps))
    for k in range(len(steps) - 1, -1, -1):
        product = 0.0
        for i in range(q.size):
            product += steps[k, i] * q[i]
        weights[k] = inverses[k] * product
        for i in range(q.size):
            q[i] -= weights[k] * changes[k, i]
    return weights


@jit
def oldest_first(q, steps, changes, inverses, weights):
    """Do the second loop of L-BFGS on q in place."""
    for k in range(len(steps)):
        product = 0.0
        for i in range(q.size):
            product += changes[k, i] * q[i]
        weight = weights[k] - inverses[k] * product
        for i in range(q.size):
            q[i] += weight * steps[k, i]
