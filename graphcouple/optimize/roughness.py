"""Rough starts, such as noise, which know nothing of the graph, and their smoothing along its edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple.couplings import Objective
from graphcouple.graphs import FloatArray, Support
from graphcouple.optimize.exaggeration import push_over_pull

# Pull of the edges, relative to their pull after the rows are exchanged at random. The ratio is at most 0.4 for
# principal components, and 1 for noise. Above this, a start is rough.
_ROUGH = 0.7

_SMOOTHING_STEPS = 30

# A few steps take nine tenths of the edges' pull away only where each component of a graph can shrink by itself.
_FEW_STEPS, _IN_PIECES = 15, 0.1

# The columns tend to one mode, so a little of the start is kept: points on a line would stay there.
_KEPT = 0.01

# Where all pairs pull alike, one step takes all points to one place, and the remaining shape is rounding.
_NOTHING = 1e-6


def bearable_attraction(objective: Objective, Z: FloatArray) -> float:
    """Return how much attraction the graph bears: `push_over_pull` of `Z`, or of its `smoothest` if that is rough."""
    return push_over_pull(objective, smoothest(objective, Z) if is_rough(objective, Z) else Z)


def is_rough(objective: Objective, Z: FloatArray) -> bool:
    """Return whether edges pull the points of `Z` nearly as much as in a random order, as they do in noise."""
    pull = _pull(objective)
    if pull is None:
        return False
    points = _centred(Z)
    exchanged = points[np.random.default_rng(0).permutation(len(points))]
    pulled, otherwise = (float((pull(of) * of).sum()) for of in (points, exchanged))
    return pulled > _ROUGH * otherwise


def is_in_pieces(objective: Objective, Z: FloatArray) -> bool:
    """Return whether a few steps along the edges leave little pull, as in a graph of several components."""
    pull = _pull(objective)
    if pull is None:
        return False
    first, drawn = (float((pull(of) * of).sum()) for of in (_centred(Z), smoothest(objective, Z, _FEW_STEPS)))
    return drawn < _IN_PIECES * first


def smoothest(objective: Objective, Z: FloatArray, n_steps: int = _SMOOTHING_STEPS) -> FloatArray:
    """Return `Z` smoothed by its edges alone, at its own size: the shape of `n_steps` steps that edges pull least.

    With L the Laplacian of `Attraction.edges`, steps Z − tLZ take away the graph's stiffest modes, as the power
    iteration does. After each, the shape is scaled back. t is the second step size of Barzilai and Borwein (1988).

    Parameters
    ----------
    objective : Objective
    Z : ndarray of shape (n_points, n_components)

    Returns
    -------
    ndarray of shape (n_points, n_components)
        Of the same type as `Z`, about its mean; `Z` itself if the objective has no edges.
    """
    pull = _pull(objective)
    if pull is None:
        return Z
    first = here = _centred(Z)
    size = float(np.linalg.norm(here))
    gradient = pull(here)
    best, least, step = here, np.inf, gradient
    for _ in range(n_steps):
        if (pulled := float((gradient * here).sum())) < least:
            best, least = here, pulled
        change = pull(step)
        curved = float((step * change).sum())
        if not curved > 0:
            break
        rate = curved / float(np.square(change).sum())
        step = -rate * gradient
        moved = here + step
        left = float(np.linalg.norm(moved))
        if left <= _NOTHING * size:
            break
        here = size / left * moved
        gradient = pull(here)
    both = best + _KEPT * first
    return (both * (size / (float(np.linalg.norm(both)) or 1.0))).astype(Z.dtype)


def _centred(Z: FloatArray) -> FloatArray:
    points: FloatArray = Z.astype(np.float64)
    return points - points.mean(axis=0)


def _pull(objective: Objective) -> Callable[[FloatArray], FloatArray] | None:
    """Return the product with the Laplacian of the edges that attract."""
    matrices = [] if objective.attracting is None else objective.attracting.matrices
    if not matrices:
        return None
    degrees = np.sum([edges.sum(axis=1, dtype=np.float64) for edges in matrices], axis=0)[:, None]
    return lambda points: degrees * points - sum(_product(edges, points) for edges in matrices)


def _product(edges: Any, points: FloatArray) -> FloatArray:
    """Return edges @ points, some rows of a sparse matrix at a time: scipy copies singles into doubles."""
    if not sp.issparse(edges):
        return edges @ points
    product = np.empty(points.shape)
    for rows, at, part in Support(edges.indptr, edges.indices).in_parts():
        matrix = sp.csr_array((edges.data[at], part.indices, part.indptr), shape=(part.n_nodes, len(points)))
        product[rows] = matrix @ points
    return product
