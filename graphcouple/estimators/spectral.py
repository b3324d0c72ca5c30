"""Shared by the classical methods: landmarks, and warnings of disconnected graphs and missing directions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from graphcouple._support.validation import warn
from graphcouple.estimators.rows import nearest_to_means
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.kernels import Kernel
from graphcouple.neighbors import Distances, distances_of, is_precomputed
from graphcouple.neighbors.points import dense_if_far, shift_of, shifted, with_short_indices
from graphcouple.neighbors.precomputed import SquareDistances
from graphcouple.spectral import nystroem_places

# Up to 5,000 points, matrices of all pairs are decomposed; beyond, matrices of 1,000 landmarks.
MOST_PAIRS, LANDMARKS = 5000, 1000

# Rows that store a smaller share of the distances are of a graph of neighbours: fewer points than this are copies.
_LEAST_STORED = 0.5

# Entries of a matrix of similarities that are held at once: 268 MB in double precision.
_ENTRIES = 2**25


def choose_landmarks(X: Any, wanted: Any, rng: np.random.RandomState, *, points: bool) -> IntArray | None:
    """Return the rows to fit, ascending; None for all. Of points, they are nearest to k-means centres, else random."""
    n = X.shape[0]
    count = (None if n <= MOST_PAIRS else LANDMARKS) if wanted == "auto" else wanted
    if count is None or count >= n:
        return None
    return nearest_to_means(X, int(count), rng) if points else np.sort(rng.choice(n, int(count), replace=False))


def warn_of_parts(n_parts: int, remedy: str) -> None:
    """Warn that a graph is disconnected, in the name of the caller of fit."""
    if n_parts > 1:
        warn(
            f"the graph has {n_parts} connected components, about whose arrangement it says nothing. Each is embedded "
            f"by itself, around the place of its mean. {remedy}"
        )


def check_directions(n_components: int, shape: tuple[int, ...], hint: str = "") -> None:
    """Raise if points of this shape have fewer directions than the embedding."""
    if n_components > min(shape):
        raise ValueError(f"n_components={n_components} must be at most min(n_samples, n_features)={min(shape)}{hint}.")


def warn_of_missing(n_found: int, wanted: int, what: str) -> None:
    """Warn that columns of the embedding are zero."""
    if n_found < wanted:
        warn(f"{what} only {n_found} of n_components={wanted} directions; the other columns are zero.")


def kernel_values(kernel: Any, params: dict[str, Any] | None, X: Any, Y: Any) -> FloatArray:
    """Return the similarities of points by a kernel: of scikit-learn, graphcouple's, a function, or given ones."""
    from sklearn.metrics.pairwise import pairwise_kernels

    if is_precomputed(kernel):
        return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
    if isinstance(kernel, Kernel):
        if params:
            raise ValueError(f"kernel_params={params} belong to scikit-learn's kernels; {kernel!r} has its own.")
        return np.asarray(kernel.value(squared_distances(distances_of(X if Y is None else Y), X)))
    if params and isinstance(kernel, str) and kernel == "linear":
        raise ValueError(f"kernel='linear' has no parameters, got kernel_params={params}.")
    if isinstance(kernel, str) and kernel == "rbf":
        # scikit-learn expands the square, which loses the digits of points far from the origin.
        fitted = dense_if_far(X if Y is None else Y)
        if not issparse(fitted) and (shift := shift_of(fitted)).any():
            X = shifted(X.toarray() if issparse(X) else X, shift)
            Y = None if Y is None else shifted(fitted, shift)
    X, Y = (with_short_indices(part) if issparse(part) else part for part in (X, Y))
    if callable(kernel):
        # If Y is X, scikit-learn would compute one half and mirror it.
        Y = (X if Y is None else Y).copy()
    try:
        if callable(kernel) and not issparse(X) and np.ndim(value := kernel(X[0], X[0], **(params or {}))):
            raise ValueError(f"kernel must return one number for two rows, got {value!r}.")
        return np.asarray(pairwise_kernels(X, Y, metric=kernel, **(params or {})), dtype=np.float64)
    except (TypeError, ValueError) as error:
        if "unexpected keyword" in str(error) or (params and isinstance(error, TypeError) and not issparse(X)):
            raise ValueError(f"kernel_params={params} do not fit kernel={kernel!r}: {error}.") from None
        if callable(kernel) and issparse(X):
            raise ValueError(
                f"kernel gets sparse rows here, and failed ({error}); pass X.toarray() if it needs dense rows."
            ) from error
        raise


def squared_distances(distances: Distances, X_new: Any) -> FloatArray:
    """Return the squared distances of points to all fitted ones, of shape (n_new, n)."""
    if issparse(X_new) and isinstance(distances, SquareDistances):
        # Zeros may be left out, of copies.
        if (np.diff(X_new.tocsr().indptr) < _LEAST_STORED * X_new.shape[1]).any():
            raise ValueError("X_new stores some of the distances to the fitted points only; store all of them.")
        X_new = X_new.toarray()
    support, values = distances.to(X_new, None)
    order = np.argsort(support.indices.reshape(support.n_nodes, -1), axis=1, kind="stable")
    return np.take_along_axis(values.reshape(support.n_nodes, -1), order, axis=1)


def placed(n: int, known: dict[str, Any], similarities: Callable[[slice], FloatArray]) -> FloatArray:
    """Return the places of n points by Nyström's formula, given a function of rows to their similarities."""
    Z = np.empty((n, known["onto"].shape[1]))
    for rows in in_blocks(n, known["rows"].size):
        Z[rows] = nystroem_places(similarities(rows), known["rows"], known["onto"])
    return Z


def in_blocks(n_rows: int, n_columns: int) -> list[slice]:
    """Return slices of rows, short enough that `n_columns` columns of them fit in memory."""
    step = max(128, _ENTRIES // max(n_columns, 1))
    return [slice(a, a + step) for a in range(0, n_rows, step)]
