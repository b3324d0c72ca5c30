"""Rough starts, such as noise, which are unrelated to the graph, and their smoothing along its edges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray
from graphcouple.optimize.exaggeration import push_over_pull
from graphcouple.summation import edge_product

# Pull of the edges, relative to their pull after the rows are exchanged at random. The ratio is at most 0.4 for
# principal components, and 1 for noise. Above the middle of the two, a start is rough.
_ROUGH = 0.7

# More steps leave smoother shapes, each for a product with the edges. No comparison is recorded.
_SMOOTHING_STEPS = 30

# A few steps remove nine tenths of the edges' pull only where each component of a graph can shrink by itself.
# No comparison is recorded.
_FEW_STEPS, _IN_PIECES = 15, 0.1

# Smoothing turns all columns into the same mode, so the points end on a line, which they cannot leave. A little of the
# start is kept against this.
_START_SHARE = 0.01

# Many points have too few iterations to unfold from dots. Without smoothing, they start among other clusters. With
# three tenths of the start kept, the loss of 60,000 points in 50 clusters ends 0.14 % lower than with a hundredth. 4
# points then end far from their cluster; without smoothing, 96 do. With more, the loss of 300,000 points ends higher.
_START_SHARE_IN_PIECES = 0.3

# Two points are in one piece if a few steps bring them this near, relative to the size of the map. Ten thousand random
# pairs of points give the share of pairs in one piece. No comparison is recorded.
_TOGETHER, _PAIRS = 0.2, 10_000

# If all pairs pull equally, one step brings all points to one place, and only rounding errors remain.
_NOTHING = 1e-6


def bearable_attraction(objective: Objective, Z: FloatArray) -> float:
    """Return how much attraction the graph tolerates: `push_over_pull` of `Z`, smoothed first if it is rough."""
    return push_over_pull(objective, smoothest(objective, Z) if is_rough(objective, Z) else Z)


def is_rough(objective: Objective, Z: FloatArray) -> bool:
    """Return whether edges pull the points of `Z` nearly as much as in random order, as in noise."""
    if (pull := _pull(objective)) is None:
        return False
    points = _centred(Z)
    exchanged = points[np.random.default_rng(0).permutation(len(points))]
    energy, exchanged_energy = (float((pull(shape) * shape).sum()) for shape in (points, exchanged))
    return energy > _ROUGH * exchanged_energy


def gathered(objective: Objective, Z: FloatArray) -> tuple[FloatArray, float] | None:
    """Return `Z` with each component of the graph drawn together, though not to a dot; None if it is not in pieces.

    The graph is in pieces if a few steps along the edges leave little pull. The number is the chance that two points
    are in the same piece: 1/k for k equal pieces.
    """
    if (pull := _pull(objective)) is None:
        return None
    first, smooth = _centred(Z), smoothest(objective, Z, _FEW_STEPS)
    energy, smooth_energy = (float((pull(shape) * shape).sum()) for shape in (first, smooth))
    if not smooth_energy < _IN_PIECES * energy:
        return None
    here, there = np.random.default_rng(0).integers(len(Z), size=(2, _PAIRS))
    apart = np.linalg.norm(smooth[here] - smooth[there], axis=1)
    together = float((apart < _TOGETHER * np.linalg.norm(smooth.std(axis=0))).mean())
    return _at_size_of(first, smooth + _START_SHARE_IN_PIECES * first).astype(Z.dtype), together


def smoothest(objective: Objective, Z: FloatArray, n_steps: int = _SMOOTHING_STEPS) -> FloatArray:
    """Return `Z` smoothed by its edges alone, at its own size: of `n_steps` steps, the shape that edges pull least.

    With L the Laplacian of `Attraction.edges`, steps Z − tLZ remove the graph's stiffest modes, as power iteration
    does. After each step, the shape is scaled back. t is the second step size of Barzilai and Borwein (1988).

    The result has the type of `Z` and the mean 0; it is `Z` itself if the objective has no edges.
    """
    if (pull := _pull(objective)) is None:
        return Z
    first = here = _centred(Z)
    size = float(np.linalg.norm(here))
    gradient = pull(here)
    step, change = gradient, pull(gradient)
    best, least = here, np.inf
    for _ in range(n_steps):
        if (energy := float((gradient * here).sum())) < least:
            best, least = here, energy
        if not (curvature := float((step * change).sum())) > 0:
            break
        step = -curvature / float(np.square(change).sum()) * gradient
        change = pull(step)
        trial = here + step
        norm = float(np.linalg.norm(trial))
        if norm <= _NOTHING * size:
            break
        here, gradient = size / norm * trial, size / norm * (gradient + change)
    return _at_size_of(first, best + _START_SHARE * first).astype(Z.dtype)


def _centred(Z: FloatArray) -> FloatArray:
    points: FloatArray = Z.astype(np.float64)
    return points - points.mean(axis=0)


def _at_size_of(first: FloatArray, points: FloatArray) -> FloatArray:
    return points * (float(np.linalg.norm(first)) / (float(np.linalg.norm(points)) or 1.0))


def _pull(objective: Objective) -> Callable[[FloatArray], FloatArray] | None:
    """Return the product with the Laplacian of the edges that attract."""
    if objective.attracting is None or not (matrices := objective.attracting.matrices):
        return None
    n_jobs = objective.attracting.n_jobs
    degrees = np.sum([edges.sum(axis=1, dtype=np.float64) for edges in matrices], axis=0)[:, None]
    return lambda points: degrees * points - sum(edge_product(edges, points, n_jobs) for edges in matrices)
