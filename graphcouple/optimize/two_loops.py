"""The direction of L-BFGS: the inverse Hessian that steps and changes of the gradient imply, times the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphcouple._numba.descent import add_and_dot, newest_first, oldest_first
from graphcouple._numba.threads import over_rows
from graphcouple.graphs import FloatArray

# Numbers of a block, which fit in a level 1 cache; with fewer blocks than this, one thread is faster.
_BLOCK, _BLOCKS_WORTH_THREADS = 4096, 32

# Up to this many numbers, two calls on copies of all steps take less time than a call for each step.
_FEW = 8192

Product = Callable[..., Any]
"""A matrix times vectors."""


def newton_direction(gradient: FloatArray, pairs: Any, n_jobs: int | None, soften: Product | None = None) -> FloatArray:
    """Return −H g, with the inverse Hessian H that the pairs imply; Nocedal and Wright, algorithm 7.4."""
    q: FloatArray = gradient.astype(np.float64).ravel()

    def softened(*vectors: FloatArray) -> list[FloatArray]:
        if soften is None:
            return [v.astype(np.float64, copy=False) for v in vectors]
        columns = soften(np.hstack([v.reshape(gradient.shape) for v in vectors]))
        return [part.ravel() for part in np.split(columns, len(vectors), axis=1)]

    if not pairs:
        return -softened(q)[0].reshape(gradient.shape)
    last_y, inverse = pairs[-1][1], pairs[-1][2]

    def first_guess(v: FloatArray) -> FloatArray:
        soft, soft_y = softened(v, last_y)
        return soft * (1.0 / (inverse * float((soft_y * last_y).sum())))

    two_loops = _two_loops_of_few if q.size <= _FEW else _two_loops
    return -two_loops(q, pairs, n_jobs, first_guess).reshape(gradient.shape)


def _two_loops_of_few(q: FloatArray, pairs: Any, n_jobs: int | None, first_guess: Product) -> FloatArray:
    """Return H q in two calls, because each takes as long as the sums over a thousand points."""
    steps, changes, inverses = (np.array(part, dtype=np.float64) for part in zip(*pairs, strict=True))
    weights = newest_first(q, steps, changes, inverses)
    q = first_guess(q)
    oldest_first(q, steps, changes, inverses, weights)
    return q


def _two_loops(q: FloatArray, pairs: Any, n_jobs: int | None, first_guess: Product) -> FloatArray:
    """Return H q, each sum and the next product in one pass over the points, on several threads."""
    sums = np.empty(-(-q.size // _BLOCK))

    def add_then_dot(weight: float, v: FloatArray, w: FloatArray) -> float:
        over_rows(sums.size, n_jobs, add_and_dot, _BLOCK, q, weight, v, w, sums, at_least=_BLOCKS_WORTH_THREADS)
        return float(sums.sum())

    weights = []
    product = add_then_dot(0.0, pairs[-1][0], pairs[-1][0])
    for k, (_, y, inverse) in reversed(list(enumerate(pairs))):
        weights.append(inverse * product)
        product = add_then_dot(-weights[-1], y, pairs[k - 1][0] if k else y)
    q = first_guess(q)
    product = add_then_dot(0.0, q, pairs[0][1])
    for k, (s, _, inverse) in enumerate(pairs):
        weight = weights.pop() - inverse * product
        product = add_then_dot(weight, s, pairs[min(k + 1, len(pairs) - 1)][1])
    return q
