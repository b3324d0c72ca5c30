"""More rows than fit in memory: a fit to landmarks on one machine, and all rows placed chunk by chunk by dask.

Each row has a key, −log(u) / ℓ, with u uniform, drawn from the seed and the row's number alone, and ℓ the row's
importance. The n smallest keys are the sample, so it is the same for any chunks. Given the next smallest key τ, a row
is in the sample with probability 1 − exp(−τ ℓ); its weight is the inverse of this probability, divided by the mean
weight. Places do not depend on the other rows, so their bits are also the same for any chunks, unless a network places
the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from graphcouple._support.validation import check_integer, is_word, takes_weights, warn
from graphcouple.distributed.chunks import as_chunks, check_finite, dense_rows
from graphcouple.neighbors import product_of_rows

# Rows that share a seed, so that samples do not depend on chunks; a generator costs as much as many random numbers.
_SEEDED = 1024

# Parts of a sample merged at once: more need more memory, fewer need more tasks.
_MERGED = 16

# Rows whose covariance gives all leverages, and the share of its mean eigenvalue that is added to its diagonal.
_TRAINING_ROWS, _RIDGE = 20_000, 1e-6

# A row is isolated if it lies this many times as far from the landmarks as these lie from each other. Fewer than one in
# a hundred rows do if the landmarks represent them.
_FAR, _FEW = 3.0, 0.01

COVERAGE = np.dtype([("first", "i8"), ("n_rows", "i8"), ("n_looked_at", "i8"), ("isolated", "f8"), ("largest", "f8")])
"""A chunk's first row and its number of rows; the rows looked at, the share of isolated ones, the largest isolation."""

_OfRows = Callable[[Any], NDArray[Any]]


class _Sample(NamedTuple):
    keys: NDArray[Any]
    rows: NDArray[Any]
    importance: NDArray[Any]


@dataclass(frozen=True, eq=False)
class LandmarkFit:
    """A method fitted to landmarks, and the rows that it places.

    Attributes
    ----------
    estimator : estimator
        Fitted to the landmarks.
    X : dask array of shape (n_rows, n_features)
        All rows.
    landmarks : ndarray of shape (n_landmarks,)
        The rows that were fitted, ascending.
    weights : ndarray of shape (n_landmarks,) or None
        Their sample weights, of mean 1; None if all rows are equally important.

    Examples
    --------
    >>> import dask.array as da
    >>> import graphcouple as gc
    >>> X = da.from_array(gc.datasets.make_branches(600, random_state=0)[0], chunks=(200, -1))
    >>> fit = gc.distributed.fit_landmarks(X, gc.TSNE(random_state=0, max_iter=50), n=200)
    >>> fit.landmarks.shape, fit.embedding.shape
    ((200,), (600, 2))
    """

    estimator: Any
    X: Any
    landmarks: NDArray[Any]
    weights: NDArray[Any] | None

    @cached_property
    def _model(self) -> Any:
        import dask

        return dask.delayed(self.estimator, traverse=False)

    @cached_property
    def embedding(self) -> Any:
        """The places of all rows, a lazy dask array of shape (n_rows, n_components).

        ``embedding.to_zarr(path)`` writes them chunk by chunk. Landmarks keep their places from the fit, the
        estimator's `embedding_`, if it has one.
        """
        import dask

        fitted = getattr(self.estimator, "embedding_", None)
        if fitted is None:
            fitted = np.asarray(self.estimator.transform(self.X[self.landmarks[:2]].compute()))
        chunks = (self.X.chunks[0], (fitted.shape[1],))
        like = np.empty((0, 0), dtype=fitted.dtype)
        landmarks = dask.delayed(self.landmarks, traverse=False)
        return self.X.map_blocks(_placed, model=self._model, landmarks=landmarks, chunks=chunks, meta=like)

    def coverage(self, n_looked_at: int = 1000) -> NDArray[Any]:
        """Return how well the landmarks cover each chunk, from evenly spaced rows of it.

        Parameters
        ----------
        n_looked_at : int, default=1000
            Rows of each chunk, at most.

        Returns
        -------
        ndarray of shape (n_chunks,)
            Of dtype `COVERAGE`. A row is isolated if it lies three times as far from its nearest landmarks as these lie
            from their own nearest landmarks; see the estimator's method `isolation`.

        Raises
        ------
        TypeError
            When the estimator has no `isolation`.

        Warns
        -----
        UserWarning
            When more than a hundredth of a chunk is isolated: a structure was too rare for the sample.
        """
        import dask

        check_integer("n_looked_at", n_looked_at, 1)
        if not hasattr(self.estimator, "isolation"):
            raise TypeError(
                f"coverage needs an estimator with isolation, as TSNE; {type(self.estimator).__name__} has none."
            )
        sizes = np.array(self.X.chunks[0])
        looked = [np.unique(np.linspace(0, size - 1, n_looked_at).astype(int)) for size in sizes]
        firsts = np.cumsum(sizes) - sizes
        parts = [
            dask.delayed(_by_model)(part[rows], self._model, "isolation", first, first + size)
            for part, rows, first, size in zip(self.X.blocks, looked, firsts, sizes, strict=True)
        ]
        table = np.empty(sizes.size, dtype=COVERAGE)
        for k, values in enumerate(dask.compute(*parts)):
            table[k] = (firsts[k], sizes[k], values.size, np.mean(values > _FAR), values.max())
        missed = np.flatnonzero(table["isolated"] > _FEW)
        if missed.size:
            worst = table[missed[np.argmax(table["isolated"][missed])]]
            warn(
                f"in {missed.size} of {sizes.size} chunks rows lie far from all landmarks, most in the one from row "
                f"{worst['first']} on ({worst['isolated']:.0%}): a structure there is too rare to be sampled, and its "
                "places mean little. Raise n, or sample by importance='leverage' or by importances of your own."
            )
        return table


def fit_landmarks(
    X: Any, estimator: Any = None, *, n: int = 2_000_000, importance: Any = None, random_state: int = 0
) -> LandmarkFit:
    """Fit a method to some rows on this machine; the others are placed by `transform`, wherever dask runs.

    Parameters
    ----------
    X : dask array of shape (n_rows, n_features), path or array
        A path names a Zarr array (``.zarr``) or a Parquet file or folder of numbers.
    estimator : estimator, optional
        Any with `transform`; a clone is fitted. ``TSNE(random_state=0)`` by default.
    n : int, default=2_000_000
        The number of landmarks; all rows if there are no more.
    importance : {"leverage"} or array of shape (n_rows,), optional
        How often rows are drawn, relative to each other; landmarks are weighted by the inverse. By default
        all rows are equally important.
        "leverage" is xᵀ(C + λI)⁻¹x, with the covariance C of 20,000 rows: large in directions in which few rows lie.
        ``1 / np.sqrt(counts[y])`` draws small classes more often.
    random_state : int, default=0
        The seed of the sample.

    Returns
    -------
    LandmarkFit

    Raises
    ------
    ImportError
        Without dask, which the extra ``dask`` installs.
    TypeError, ValueError
        When an argument is unusable, or rows are; the message names the first of a chunk, or the chunk's rows.

    References
    ----------
    Efraimidis and Spirakis (2006), Weighted random sampling with a reservoir. Duffield, Lund and Thorup (2007),
    Priority sampling for estimation of arbitrary subset sums.

    Examples
    --------
    >>> import dask.array as da
    >>> import graphcouple as gc
    >>> X = da.from_array(gc.datasets.make_branches(900, random_state=0)[0], chunks=(250, -1))
    >>> fit = gc.distributed.fit_landmarks(X, gc.TSNE(random_state=0), n=300)
    >>> fit.embedding
    dask.array<_placed, shape=(900, 2), dtype=float64, chunksize=(250, 2), chunktype=numpy.ndarray>
    >>> Z = fit.embedding.compute()
    >>> bool((Z[fit.landmarks] == fit.estimator.embedding_).all())
    True
    """
    check_integer("n", n, 2)
    seed = check_integer("random_state", random_state, 0)
    rows = as_chunks(X)
    if estimator is None:
        from graphcouple.estimators import TSNE

        estimator = TSNE(random_state=0)
    if not hasattr(estimator, "transform"):
        raise TypeError(f"estimator must have transform, to place the other rows; {type(estimator).__name__} has none.")
    # A pipeline's options belong to its steps.
    if importance is not None and (hasattr(estimator, "steps") or not takes_weights(estimator.fit)):
        raise TypeError(
            f"{type(estimator).__name__} takes no sample weights, which importance needs; leave importance out."
        )
    landmarks, weights = sampled(rows, n, importance, seed)
    options = {} if weights is None else {"sample_weight": weights}
    points = np.ascontiguousarray(dense_rows(rows[landmarks].compute()))
    try:
        fitted = clone(estimator).fit(points, **options)
    except ValueError:
        check_finite(points, landmarks)
        raise
    # Some methods cannot place rows; a regressor is trained once, before it is sent to workers.
    fitted.transform(points[:2])
    return LandmarkFit(fitted, rows, landmarks, weights)


def sampled(X: Any, n: int, importance: Any, seed: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Return n rows, ascending, and their weights, None if all rows are equally important."""
    n_rows = X.shape[0]
    of_rows, values = None, None
    if is_word("importance", importance, "leverage", "an array or None") and n < n_rows:
        some, _ = sampled(X, min(_TRAINING_ROWS, n_rows), None, seed)
        of_rows, values = _leverage_of(dense_rows(X[some].compute())), X
    elif importance is not None and not isinstance(importance, str):
        import dask.array as da

        values = da.asarray(importance)
        if values.shape != (n_rows,):
            raise ValueError(f"importance must have shape ({n_rows},), one number for each row, got {values.shape}.")
        if values.dtype.kind not in "iufb":
            raise TypeError(f"importance must hold numbers, got dtype {values.dtype}.")
        values = values.rechunk((X.chunks[0],))
    if n >= n_rows:
        return np.arange(n_rows), None
    smallest = _smallest_keys(values, X.chunks[0], of_rows, n + 1, seed)
    order = np.argsort(smallest.rows[:n])
    rows = smallest.rows[:n][order]
    if importance is None:
        return rows, None
    weights = -1.0 / np.expm1(-smallest.keys[n] * smallest.importance[:n][order])
    return rows, weights / weights.mean()


def _smallest_keys(values: Any, sizes: tuple[int, ...], of_rows: _OfRows | None, n: int, seed: int) -> _Sample:
    """Return the n smallest keys of all rows by their importance: `values`, or a function of them; 1 if None."""
    import dask

    keys, merge = dask.delayed(_keys_of), dask.delayed(_merged)
    blocks = [None] * len(sizes) if values is None else values.blocks
    rows = zip(blocks, np.cumsum((0, *sizes))[:-1].tolist(), sizes, strict=True)
    parts = [keys(block, of_rows, first, size, n, seed) for block, first, size in rows]
    while len(parts) > 1:
        parts = [merge(parts[a : a + _MERGED], n) for a in range(0, len(parts), _MERGED)]
    return parts[0].compute()


def _keys_of(values: Any, of_rows: _OfRows | None, first: int, size: int, n: int, seed: int) -> _Sample:
    blocks = range(first // _SEEDED, -(-(first + size) // _SEEDED))
    drawn = np.concatenate([np.random.default_rng([seed, block]).random(_SEEDED) for block in blocks])
    drawn = drawn[first - blocks[0] * _SEEDED :][:size]
    if of_rows is not None:
        check_finite(dense_rows(values), first + np.arange(size))
        importance = of_rows(np.asarray(values))
    else:
        importance = np.ones(size) if values is None else np.asarray(values, dtype=np.float64)
    fine = np.isfinite(importance) & (importance > 0)
    if not fine.all():
        raise ValueError(
            f"importance must be finite and above 0, and is not in row {first + np.argmin(fine)}; drop or fix the rows "
            "that are not."
        )
    return _merged([_Sample(-np.log1p(-drawn) / importance, first + np.arange(size), importance)], n)


def _merged(parts: list[_Sample], n: int) -> _Sample:
    """Return the n smallest keys of several parts; equal ones by their rows."""
    keys, rows, importance = (np.concatenate(values) for values in zip(*parts, strict=True))
    order = np.lexsort((rows, keys))[:n]
    return _Sample(keys[order], rows[order], importance[order])


def _leverage_of(X: NDArray[Any]) -> _OfRows:
    X = X[np.isfinite(X).all(axis=1)]  # the others are named with their chunk
    if len(X) < 2:
        raise ValueError(
            "importance='leverage' needs rows without NaN and infinity, and fewer than 2 of the rows looked at are "
            "finite; impute or drop the others first."
        )
    mean = X.mean(axis=0, dtype=np.float64)
    covariance = np.cov(X, rowvar=False).reshape(X.shape[1], X.shape[1])
    ridge = _RIDGE * float(np.trace(covariance)) / len(covariance) or 1.0
    whiten = np.linalg.inv(np.linalg.cholesky(covariance + ridge * np.eye(len(covariance)))).T
    return partial(_leverage, mean, whiten)


def _leverage(mean: NDArray[Any], whiten: NDArray[Any], rows: NDArray[Any]) -> NDArray[Any]:
    white = product_of_rows(rows - mean, whiten)
    # A row at the mean may still be drawn.
    return np.maximum(np.einsum("ij,ij->i", white, white, dtype=np.float64), 1e-3 * len(whiten))


def _placed(rows: Any, model: Any, landmarks: NDArray[Any], block_info: Any) -> NDArray[Any]:
    """Return the places of the rows of one chunk; landmarks keep their places, which `transform` may change."""
    first, last = block_info[0]["array-location"][0]
    Z = np.array(_by_model(rows, model, "transform", first, last))
    if hasattr(model, "embedding_"):
        here = slice(*np.searchsorted(landmarks, (first, last)))
        Z[landmarks[here] - first] = model.embedding_[here]
    return Z


def _by_model(rows: Any, model: Any, method: str, first: int, last: int) -> Any:
    """Return the result of a method of a fitted model for some rows of a chunk, which ends before row `last`."""
    try:
        return getattr(model, method)(dense_rows(rows))
    except (TypeError, ValueError) as error:
        raise ValueError(f"in the rows from {first} to {last - 1}: {error}") from error
