"""The number of candidates and lists for a recall, measured on rows whose true neighbours are known."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

RECALL = 0.99
"""Target share of true neighbours, on a sample of points."""

# If more candidates per neighbour are needed, the search uses the points themselves instead of their projections.
MOST_CANDIDATES = 4

# Rows whose true neighbours are found by brute force, with at most 2^25 distances. 256 rows of 90 neighbours measure a
# recall of 0.99 to within 0.002, three binomial standard errors.
_SAMPLE = 256
_SAMPLE_ENTRIES = 2**25

# With fewer points and columns, the sample is compared in double precision: clusters may be far from the origin.
_DOUBLE_ENTRIES = 2**25


class Sample(NamedTuple):
    """Some rows, and the true neighbours of each, including points tied with the last one."""

    rows: NDArray[np.int64]
    neighbors: list[NDArray[np.int64]]


def sample_of(X: Any, n_neighbors: int) -> Sample:
    """Return some rows of X and their true neighbours."""
    n = X.shape[0]
    size = min(n, int(np.clip(_SAMPLE_ENTRIES // n, 64, _SAMPLE)))
    rows = np.sort(np.random.default_rng(0).choice(n, size, replace=False))
    if n * X.shape[1] <= _DOUBLE_ENTRIES:
        X = X.astype(np.float64, copy=False)
    sq_norms = np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
    product = X[rows] @ X.T
    product = product.toarray() if sp.issparse(product) else product
    product *= -2.0
    product += sq_norms[rows][:, None]
    product += sq_norms
    product[np.arange(size), rows] = np.inf
    kth = np.partition(product, n_neighbors - 1, axis=1)[:, n_neighbors - 1]
    # Ties count as neighbours, and so do distances that the expanded square cannot distinguish.
    farthest = kth + 1e-5 * np.abs(kth) + 1e-6 * float(np.median(np.abs(kth)))
    return Sample(rows, [np.flatnonzero(near <= far) for near, far in zip(product, farthest, strict=True)])


def enough_candidates(points: NDArray[Any], sample: Sample, n_neighbors: int) -> tuple[int, Sample] | None:
    """Return the number of candidates that include a row's true neighbours, and the sample's neighbours among them.

    None if too many are needed.
    """
    most = min(MOST_CANDIDATES * n_neighbors, points.shape[0] - 1)
    queries = points[sample.rows]
    queries[:, -1] = 0.0
    sq_norms = np.einsum("ij,ij->i", points, points)
    hits, places = np.zeros(most + 1), []
    for row, neighbors, distances in zip(*sample, sq_norms - 2.0 * queries @ points.T, strict=True):
        distances[row] = -np.inf
        nearest = np.sort(np.partition(distances, most)[: most + 1])
        places.append(np.searchsorted(nearest, distances[neighbors]))
        hits += np.minimum(np.cumsum(np.bincount(places[-1], minlength=most + 2)[: most + 1]), n_neighbors)
    # Missed candidates may cost half of the allowed loss of recall, lists that are not searched the other half.
    sufficient = np.flatnonzero(hits >= 0.5 * (1.0 + RECALL) * n_neighbors * sample.rows.size)
    if not sufficient.size:
        return None
    n_candidates = int(sufficient[0]) + 1
    included = [near[at < n_candidates] for near, at in zip(sample.neighbors, places, strict=True)]
    return n_candidates, Sample(sample.rows, included)
