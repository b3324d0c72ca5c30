"""One pass over the distances of some points to all others, in the data and in the embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from graphcouple._numba.threads import effective_n_jobs, one_blas_thread, over_blocks, threads_kept
from graphcouple._support.validation import check_integer, check_random_state, refuse_estimator
from graphcouple.graphs import FloatArray
from graphcouple.metrics._blocks import Distances, distances_of, orders_of, ranks_of
from graphcouple.metrics._covariates import covariates
from graphcouple.neighbors import as_points

# Distances at once, which take 4 MB, and the fewest rows of a block.
_BLOCK_ENTRIES, _BLOCK_ROWS = 2**19, 32

# Above the relative rounding of distances in single precision, in which a sample's distances are, and in double.
SINGLE, DOUBLE = 1e-6, 1e-12

# Random pairs of each point for the correlation of distances: more pairs lower their noise, not the noise of rows.
_PAIRS_A_POINT = 100

# Distances that differ by less than this share are tied.
_TIED: dict[Any, float] = {np.float64: 1e-12, np.float32: 2.5e-7}

# Samples of at least this many rows are worth the covariates that lower their standard errors.
_FEW_ROWS = 1000


class Relations(NamedTuple):
    """Sums over rows that compare an embedding's distances with the data's.

    `sums` and `squares`, of shape (3, n), are the sums and sums of squares of shared neighbors, intrusions and
    extrusions, by neighborhood size. For a sample, `cross` holds their products with the covariates, of shape
    (n_covariates, 3, n_sizes) for `sizes_of_slopes`; `gram` holds the products of the covariates with each other;
    `offset` is the mean of the covariates over all points, in coordinates where their mean over the sample is zero.
    `moments` are the count, Σd, Σe, Σd², Σe², Σde of distances d in the data and e in the embedding, each divided by
    its rough mean, minus 1; deviations of up to `rounding` are rounding. `triplets` are the sum and the sum of squares,
    over rows, of the mean agreement of the row's random pairs.
    """

    n: int
    n_rows: int
    sums: FloatArray
    squares: FloatArray
    cross: FloatArray
    gram: FloatArray
    offset: FloatArray
    moments: FloatArray
    rounding: float
    triplets: FloatArray

    def __add__(self, other: Any) -> Relations:
        totals = (a + b for a, b in zip(self[2:], other[2:], strict=True))
        return Relations(self.n, self.n_rows + other.n_rows, *totals)._replace(rounding=self.rounding)


def sizes_of_slopes(n: int) -> NDArray[np.int64]:
    """Return the neighborhood sizes at which slopes are computed: all small sizes, and ever sparser large sizes."""
    small = np.arange(1, min(65, n))
    return np.unique(np.concatenate([small, np.geomspace(small[-1], n - 1, 256).astype(np.int64)]))


def relate(
    X: Any,
    embeddings: Sequence[Any],
    *,
    metric: str = "euclidean",
    n_rows: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
    ranks: bool = True,
) -> list[Relations]:
    """Return the relations of each embedding to the data, from all points or from a random sample of them.

    Distances are in double precision for all points, in single precision for a sample.
    """
    metric = "euclidean" if metric == "l2" else metric
    points = as_points(X, at_least=3)
    n = points.shape[0]
    maps = [as_map(Z, n=n) for Z in embeddings]
    rng = check_random_state(random_state)
    rows = np.arange(n)
    is_sample = n_rows is not None and check_integer("n_rows", n_rows, 2) < n
    if is_sample:
        rows = np.sort(rng.choice(n, n_rows, replace=False))
    dtype = np.float32 if is_sample else np.float64
    data_distances = distances_of(points, metric, dtype)
    map_distances = [distances_of(Z, "euclidean", dtype) for Z in maps]
    covariate_values = [np.empty((n, 0))] * len(maps)
    if is_sample and ranks and rows.size >= _FEW_ROWS:
        covariate_values = covariates(points, data_distances, maps, map_distances, metric, rng, n_jobs)
    parts, offsets = [], []
    for distances, values in zip(map_distances, covariate_values, strict=True):
        centre, spread = values[rows].mean(axis=0, dtype=np.float64), values[rows].std(axis=0, dtype=np.float64)
        spread = np.where(spread > 0, spread, 1.0)
        parts.append((distances, _rough_mean(distances, rows[:8]), (values[rows] - centre) / spread))
        offsets.append((values.mean(axis=0, dtype=np.float64) - centre) / spread)
    size = _rough_mean(data_distances, rows[:8])
    step = max(_BLOCK_ROWS, _BLOCK_ENTRIES // n)
    starts = range(0, rows.size, step)
    seeds = rng.integers(2**63, size=len(starts))

    def block(a: int, seed: int) -> list[Relations]:
        rng = np.random.default_rng(seed)
        return _relate_block(slice(a, a + step), rows, n, data_distances, size, parts, rng, ranks)

    totals = _sum_blocks(block, list(zip(starts, seeds.tolist(), strict=True)), n_jobs)
    return [
        total._replace(offset=offset, rounding=SINGLE if is_sample or np.float32 in (points.dtype, Z.dtype) else DOUBLE)
        for total, offset, Z in zip(totals, offsets, maps, strict=True)
    ]


def _rough_mean(distances: Distances, rows: NDArray[Any]) -> float:
    """Return the mean distance from some rows to other points; 1 if it is 0."""
    block = distances(rows)
    block[np.arange(rows.size), rows] = 0.0
    return float(block.sum(dtype=np.float64)) / (block.size - rows.size) or 1.0


def as_map(Z: Any, name: str = "Z", n: int | None = None) -> FloatArray:
    """Return an embedding as a finite float array, checked to have n points if n is given."""
    refuse_estimator(Z, name)
    embedding = as_points(Z.toarray() if sp.issparse(Z) else Z, name)
    if n is not None and embedding.shape[0] != n:
        raise ValueError(f"{name} has {embedding.shape[0]} rows, but X has {n}.")
    return embedding


def _sum_blocks(block: Callable[..., list[Relations]], jobs: list[Any], n_jobs: int | None) -> list[Relations]:
    totals: list[Relations] = []
    # A part holds six numbers for each point, so only a few parts are kept at a time.
    at_once = 2 * effective_n_jobs(n_jobs)
    # One thread computes a block, and blocks are added in order: the bits do not depend on the number of threads.
    with one_blas_thread(), threads_kept():
        for a in range(0, len(jobs), at_once):
            some = jobs[a : a + at_once]

            def compute(one: slice, some: list[Any] = some) -> list[Relations]:
                return block(*some[one.start])

            for part in over_blocks(len(some), 1, n_jobs, compute):
                totals = [total + each for total, each in zip(totals, part, strict=True)] if totals else part
    return totals


def _relate_block(
    part: slice,
    all_rows: NDArray[Any],
    n: int,
    data_distances: Distances,
    size: float,
    maps: Sequence[tuple[Distances, float, FloatArray]],
    rng: np.random.Generator,
    ranks: bool,
) -> list[Relations]:
    """Compare a block of rows; a map is its distances, their rough mean, and its rows' standardised covariates."""
    from graphcouple._numba.ranks import agreement

    rows = all_rows[part]
    own = (np.arange(rows.size), rows)
    data_dist = data_distances(rows)
    places = ranks_of(orders_of(data_dist, own)) if ranks else None
    pairs = random_pairs(rng, rows, n)
    relations = []
    for distances, map_size, values in maps:
        map_dist = distances(rows)
        sizes = sizes_of_slopes(n) if values.shape[1] else np.empty(0, dtype=np.int64)
        curves = np.zeros((rows.size, 3, sizes.size))
        sums, squares = np.zeros((3, n)), np.zeros((3, n))
        if places is not None:
            agreement(places, orders_of(map_dist, own), sizes, curves, sums, squares)
        block_values = values[part]
        cross, gram = np.einsum("ic,iak->cak", block_values, curves), block_values.T @ block_values
        offset = np.zeros(block_values.shape[1])
        moments = _moments(data_dist / data_dist.dtype.type(size), map_dist / map_dist.dtype.type(map_size), own)
        kept = (_signs(data_dist, pairs) * _signs(map_dist, pairs)).mean(axis=1, dtype=np.float64)
        triplets = np.array([kept.sum(), np.square(kept).sum()])
        relations.append(Relations(n, rows.size, sums, squares, cross, gram, offset, moments, 0.0, triplets))
    return relations


def random_pairs(rng: np.random.Generator, rows: NDArray[Any], n: int) -> NDArray[np.int64]:
    """Return pairs of two different points, both other than the row, of shape (2, n_rows, n_pairs)."""
    first = rng.integers(0, n - 1, size=(rows.size, _PAIRS_A_POINT))
    second = rng.integers(0, n - 2, size=first.shape)
    second += second >= first
    # Draws index the other points: shift them past the row itself.
    return np.stack([first + (first >= rows[:, None]), second + (second >= rows[:, None])])


def _signs(distances: FloatArray, pairs: NDArray[np.int64]) -> FloatArray:
    near, far = (np.take_along_axis(distances, which, axis=1) for which in pairs)
    difference = near - far
    # Equal distances differ by rounding.
    difference[np.abs(difference) <= _TIED[distances.dtype.type] * np.maximum(near, far)] = 0.0
    return np.sign(difference)


def _moments(d: FloatArray, e: FloatArray, own: tuple[Any, ...]) -> FloatArray:
    d -= 1.0
    e -= 1.0
    d[own] = e[own] = 0.0
    sums = [block.sum(axis=1) for block in (d, e)]
    sums += [np.einsum("ij,ij->i", a, b) for a, b in ((d, d), (e, e), (d, e))]
    return np.array([d.size - len(d), *(rows.sum(dtype=np.float64) for rows in sums)])
