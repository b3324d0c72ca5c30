"""Lists of near points: their centres by k-means, and the lists nearest to each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphcouple._numba.threads import effective_n_jobs
from graphcouple.graphs import FloatArray

# faiss recommends k-means with few iterations on a sample of at least 39 points per list.
_ITERATIONS = 8
_TRAINING_POINTS_A_LIST = 64
_LEAST_TRAINING = 39

# Lists whose distances to all others are computed at once: 64 MB for 8,192 lists.
_AT_ONCE = 1024


def trained_lists(
    points: NDArray[np.floating], n_lists: int, n_jobs: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the centres of lists, fewer if there are few points, and the list of each point."""
    import faiss

    n, n_dims = points.shape
    limits = {"max_points_per_centroid": _TRAINING_POINTS_A_LIST, "min_points_per_centroid": 1}
    clustering = faiss.Kmeans(n_dims, min(n_lists, max(n // _LEAST_TRAINING, 1)), niter=_ITERATIONS, **limits)
    single, n_threads = points.astype(np.float32, copy=False), faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(effective_n_jobs(n_jobs))
    try:
        clustering.train(single)
        return np.asarray(clustering.centroids, dtype=np.float64), clustering.assign(single)[1]
    finally:
        faiss.omp_set_num_threads(n_threads)


def lists_by_distance(centres: FloatArray, most: int) -> NDArray[np.int32]:
    """Return the lists nearest to each list, itself first, at most `most` of them."""
    n_lists = len(centres)
    nearest = np.empty((n_lists, min(n_lists, most)), dtype=np.int32)
    sq_norms = np.einsum("ij,ij->i", centres, centres)
    for a in range(0, n_lists, _AT_ONCE):
        of_rows = slice(a, min(a + _AT_ONCE, n_lists))
        sq_dist = sq_norms - 2.0 * centres[of_rows] @ centres.T
        sq_dist[np.arange(of_rows.stop - a), np.arange(a, of_rows.stop)] = -np.inf
        nearest[of_rows] = np.argsort(sq_dist, axis=1, kind="stable")[:, : nearest.shape[1]]
    return nearest
