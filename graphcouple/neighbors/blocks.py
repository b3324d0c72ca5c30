"""Points with several kinds of columns: each block of columns has its own distance and bandwidth."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._support.validation import check_positive
from graphcouple.graphs import FloatArray, Support
from graphcouple.neighbors.by_metric import distances_of
from graphcouple.neighbors.distances import Distances, Euclidean, Searched, regular_support
from graphcouple.neighbors.precomputed import is_precomputed

# Rows in the sample that sets the bandwidth of a block without coordinates, and distances held at once when all points
# are compared.
_UNIT_ROWS = 400
_ENTRIES_AT_ONCE = 2**22


@dataclass(frozen=True)
class Block:
    """Some columns, and the distance between points in them.

    Parameters
    ----------
    columns : sequence of int or slice
        The columns, by position.
    metric : str or callable, default="euclidean"
        As in `GraphModel`; or "categorical": d² is the number of columns in which two points differ; any numbers can
        encode the categories.
    bandwidth : "auto" or float, default="auto"
        τ, the divisor of the distances. "auto" is the root mean square distance of two points, which gives all blocks
        equal weight. By metrics other than "euclidean" and "categorical", it is estimated from 400 rows.
    metric_params : dict, optional
        Further arguments of the metric.

    Raises
    ------
    TypeError, ValueError
        When a parameter has the wrong type or value.

    Examples
    --------
    >>> import graphcouple as gc
    >>> gc.Block([2], "categorical", bandwidth=2.0)
    Block(columns=(2,), metric='categorical', bandwidth=2.0, metric_params=None)
    """

    columns: Any
    metric: Any = "euclidean"
    bandwidth: Any = "auto"
    metric_params: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.columns, slice):
            columns = np.asarray(self.columns)
            if columns.ndim != 1 or not columns.size or columns.dtype.kind not in "iu":
                raise TypeError(
                    f"columns must be a slice or positions of columns, got {self.columns!r}; for a data frame use "
                    "frame.columns.get_indexer(names)."
                )
            object.__setattr__(self, "columns", tuple(columns.tolist()))
        if is_precomputed(self.metric):
            raise ValueError("a block has columns of points, so its metric cannot be 'precomputed'.")
        if not (isinstance(self.bandwidth, str) and self.bandwidth == "auto"):
            check_positive("bandwidth", self.bandwidth)

    def of(self, X: Any) -> FloatArray:
        """Return the block's columns, dense and contiguous."""
        part = X[:, self.columns if isinstance(self.columns, slice) else list(self.columns)]
        if not part.shape[1]:
            raise IndexError(f"{self.columns} selects none")
        return np.ascontiguousarray(part.toarray() if sp.issparse(part) else part)


@dataclass(frozen=True)
class Blocks:
    """A metric for columns of several kinds: d² = Σ_b d_b²/τ_b², d_b the distance in a block and τ_b its bandwidth.

    With a Gaussian kernel, the kernel of the points is the product of one kernel for each block. Euclidean and
    categorical blocks become coordinates and are searched as fast as plain points. With other blocks, all points are
    compared.

    Parameters
    ----------
    blocks : sequence of Block

    Raises
    ------
    TypeError
        When an entry is not a `Block`.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(size=(200, 3)), rng.integers(0, 4, size=(200, 2))])
    >>> mixed = gc.Blocks([gc.Block([0, 1, 2]), gc.Block([3, 4], "categorical")])
    >>> gc.TSNE(metric=mixed, random_state=0).fit_transform(X).shape
    (200, 2)
    """

    blocks: Sequence[Block]

    def __post_init__(self) -> None:
        blocks = tuple(self.blocks) if isinstance(self.blocks, Iterable) else (self.blocks,)
        if not blocks or not all(isinstance(block, Block) for block in blocks):
            raise TypeError(f"blocks must hold Blocks of columns, got {self.blocks!r}.")
        object.__setattr__(self, "blocks", blocks)

    def categories(self, n_features: int) -> list[int]:
        """Return the columns, of as many as X has, that hold codes of categories, which have no means."""
        columns = np.arange(n_features)[None]
        of_codes = [block.of(columns) for block in self.blocks if block.metric == "categorical"]
        return np.hstack(of_codes)[0].tolist() if of_codes else []

    def distances(self, X: Any) -> Distances:
        """Return the distances of points."""
        return BlockDistances(X, self)

    def coordinates(self, X: Any) -> FloatArray | None:
        """Return coordinates whose Euclidean distances are these distances; None if a block has no such coordinates."""
        distances = BlockDistances(X, self)
        return None if distances.euclidean is None else distances.euclidean.X


class _Part:
    """The distances of points in a block, and the bandwidth of the block."""

    def __init__(self, block: Block, X: Any) -> None:
        self.block, points = block, block.of(X)
        self.categories = [np.unique(column) for column in points.T] if block.metric == "categorical" else None
        metric = "euclidean" if self.categories is not None else block.metric
        self.distances = distances_of(self.encode(points), metric, block.metric_params)
        self.is_euclidean = isinstance(self.distances, Euclidean)
        if block.bandwidth != "auto":
            self.unit = float(block.bandwidth)
            return
        whole = self.distances
        if self.is_euclidean:
            # The mean squared difference of two values is twice their variance. Equal ones differ by exactly 0.
            columns = (column.astype(np.float64) for column in whole.X.T)
            variances = [np.var(column - column[0], ddof=1) for column in columns]
            self.unit = float(np.sqrt(2.0 * sum(variances))) or 1.0
            return
        rows = np.random.default_rng(0).permutation(whole.n_points)[:_UNIT_ROWS]
        sample = distances_of(whole.X[rows], whole.metric, whole.params)
        self.unit = float(np.sqrt(sample.all_pairs()[1].mean())) or 1.0

    def encode(self, points: FloatArray) -> FloatArray:
        """Return points in the form of `distances`: categories become vertices at distance 1 from each other."""
        if self.categories is None:
            return points
        columns = []
        for column, categories in zip(points.T, self.categories, strict=True):
            # The last vertex stands for all categories that the fitted points lack.
            at = np.minimum(np.searchsorted(categories, column), categories.size - 1)
            vertex = np.where(categories[at] == column, at, categories.size)
            columns.append(np.sqrt(0.5) * np.eye(categories.size + 1)[vertex])
        return np.hstack(columns).astype(points.dtype)


class BlockDistances(Searched):
    """Distances by blocks of columns."""

    def __init__(self, X: Any, blocks: Blocks) -> None:
        super().__init__(X)
        self.metric = blocks
        try:
            self.parts = [_Part(block, X) for block in blocks.blocks]
        except IndexError as error:
            raise ValueError(f"a block has a column that X, of {X.shape[1]} columns, does not have: {error}.") from None
        self.euclidean = Euclidean(self._coordinates(X)) if all(part.is_euclidean for part in self.parts) else None
        self.approximate = self.euclidean is not None

    def _coordinates(self, X: Any) -> FloatArray:
        return np.hstack([part.encode(part.block.of(X)) / np.asarray(part.unit, X.dtype) for part in self.parts])

    def all_pairs(self) -> tuple[Support, FloatArray]:
        pairs = [part.distances.all_pairs() for part in self.parts]
        scaled = [sq_dist / part.unit**2 for part, (_, sq_dist) in zip(self.parts, pairs, strict=True)]
        return pairs[0][0], np.sum(scaled, axis=0)

    def nearest(self, n_neighbors: int, n_jobs: int | None = None, search: str = "auto") -> tuple[Support, FloatArray]:
        k = self._check_count(n_neighbors)
        if self.euclidean is not None:
            return self.euclidean.nearest(k, n_jobs, search)
        self._is_approximate(search)
        return self._compare_all(self.X, k, n_jobs, others_only=True)

    def _to_nearest(self, X_new: Any, k: int, n_jobs: int | None, search: str) -> tuple[Support, FloatArray]:
        if self.euclidean is not None:
            return self.euclidean.to(self._coordinates(X_new), k, n_jobs, search)
        self._is_approximate(search)
        return self._compare_all(X_new, k, n_jobs)

    def _compare_all(
        self, X_new: Any, k: int, n_jobs: int | None, others_only: bool = False
    ) -> tuple[Support, FloatArray]:
        """Return the points nearest to each row by comparing it with all points."""
        n_new, n = X_new.shape[0], self.n_points
        indices, sq_dist = np.empty((n_new, k), dtype=np.int32), np.empty((n_new, k))
        height = max(1, _ENTRIES_AT_ONCE // n)
        for a in range(0, n_new, height):
            rows = slice(a, min(a + height, n_new))
            total = np.zeros((rows.stop - a, n))
            for part in self.parts:
                new = part.encode(part.block.of(X_new[rows]))
                total += part.distances.to(new, None, n_jobs)[1].reshape(total.shape) / part.unit**2
            if others_only:
                total[np.arange(len(total)), np.arange(a, rows.stop)] = np.inf
            indices[rows] = np.sort(np.argsort(total, axis=1, kind="stable")[:, :k], axis=1)
            sq_dist[rows] = np.take_along_axis(total, indices[rows], axis=1)
        return regular_support(indices), sq_dist.ravel()

    def of_edges(self, support: Support, n_jobs: int | None = None) -> FloatArray:
        return np.sum([part.distances.of_edges(support, n_jobs) / part.unit**2 for part in self.parts], axis=0)
