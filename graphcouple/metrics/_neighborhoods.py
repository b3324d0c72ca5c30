"""Agreement of neighborhoods of every size between the data and the embedding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphcouple._support.html import html_table
from graphcouple._support.validation import check_integer
from graphcouple.graphs import FloatArray
from graphcouple.metrics._relations import Relations, relate, sizes_of_slopes
from graphcouple.neighbors import as_points


@dataclass(frozen=True)
class NeighborhoodCurves:
    """Agreement of neighborhoods in the data and in an embedding, for every number of neighbors K.

    Attributes
    ----------
    K : ndarray of shape (n - 2,)
        The numbers of neighbors, 1 to n − 2.
    preservation : ndarray of shape (n - 2,)
        R(K): 1 is perfect, 0 is chance. See `k_ary_preservation`.
    trustworthiness, continuity : ndarray of shape (n - 2,)
        See the functions of these names.
    preservation_error, trustworthiness_error, continuity_error : ndarray of shape (n - 2,)
        Standard errors, from the spread over the sampled rows; zero if every row was used.
    n_rows : int
        The number of points whose neighborhoods were compared.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> curves = gc.metrics.neighborhood_curves(X, X[:, 2:])
    >>> curves.K[:3].tolist(), bool(curves.preservation.max() < 1)
    ([1, 2, 3], True)
    """

    K: FloatArray
    preservation: FloatArray
    trustworthiness: FloatArray
    continuity: FloatArray
    preservation_error: FloatArray
    trustworthiness_error: FloatArray
    continuity_error: FloatArray
    n_rows: int

    def _repr_html_(self) -> str:
        n = self.K.size + 2
        kept = sorted({k for k in (10, n // 4, n // 2) if 1 <= k <= self.K.size})
        columns = self.preservation, self.trustworthiness, self.continuity
        rows = [[f"K = {k}", *(f"{values[k - 1]:.3f}" for values in columns)] for k in kept]
        return html_table(["neighborhoods", "R(K)", "trustworthiness", "continuity"], rows)

    @property
    def area(self) -> float:
        """Area under R(K) over log K, Σ R(K)/K / Σ 1/K: one number for all scales (Lee et al. 2015)."""
        return float((self.preservation / self.K).sum() / (1.0 / self.K).sum())

    def at(self, K: Any) -> Any:
        """Return R(K) for some numbers of neighbors.

        Raises
        ------
        TypeError, ValueError
            When K is not a whole number from 1 to n − 2.
        """
        return pick(self.preservation, K)


def curves_of(relations: Relations) -> NeighborhoodCurves:
    """Return the curves from the sums of shared neighbors, intrusions and extrusions."""
    n, m = relations.n, relations.n_rows
    K = np.arange(1, n - 1, dtype=np.float64)
    mean = relations.sums[:, 1 : n - 1] / m
    spread = np.maximum(relations.squares[:, 1 : n - 1] - m * np.square(mean), 0.0)
    # R = ((n − 1) s/K − K) / (n − 1 − K) for s shared neighbors. The largest possible sum of a row is over the K
    # largest ranks, or over all n − 1 − K points outside if they are fewer.
    most = np.where(n > 2 * K, 0.5 * K * (2 * n - 3 * K - 1), 0.5 * (n - K) * (n - K - 1))
    shared_by_all = ((n - 1) * (mean[0] / K) - K) / (n - 1 - K)
    curves = np.stack([shared_by_all, 1.0 - mean[1] / most, 1.0 - mean[2] / most])
    slopes = np.stack([(n - 1) / (K * (n - 1 - K)), -1.0 / most, -1.0 / most])
    n_covariates, leverage = relations.offset.size, 1.0
    if n_covariates:
        # The error of the slopes grows with the distance of the covariates' means over the sample and all points.
        leverage += m * float(relations.offset @ np.linalg.pinv(relations.gram, hermitian=True) @ relations.offset)
        correction, residual_share = _regression(relations, spread, slopes)
        curves, spread = curves + correction, spread * residual_share
    error = np.abs(slopes) * np.sqrt(spread * leverage / max(m - 1 - n_covariates, 1) / m * (1.0 - m / n))
    return NeighborhoodCurves(K.astype(np.int64), *curves, *error, n_rows=m)  # type: ignore[misc]


def _regression(relations: Relations, spread: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the covariates' correction of the sample's curves, and the share of spread that they leave.

    This is the regression estimator of survey sampling, with known means of the covariates over all points.
    """
    sizes = sizes_of_slopes(relations.n)
    K = np.arange(1, relations.n - 1)
    cross = relations.cross.reshape(relations.offset.size, -1)
    slopes = np.linalg.pinv(relations.gram, rcond=1e-8, hermitian=True) @ cross
    correction = (relations.offset @ slopes).reshape(3, -1)
    explained_spread = np.einsum("ck,ck->k", slopes, cross).reshape(3, -1)
    at = np.minimum(sizes, K[-1]) - 1
    correction *= scale[:, at]
    share = explained_spread / np.where(spread[:, at] > 0, spread[:, at], np.inf)
    residual_share = np.clip(1.0 - share, 0.0, 1.0)
    both = (correction, residual_share)
    correction, residual_share = (np.stack([np.interp(K, sizes, curve) for curve in curves]) for curves in both)
    return correction, residual_share


def neighborhood_curves(
    X: Any,
    Z: Any,
    *,
    metric: str = "euclidean",
    n_rows: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> NeighborhoodCurves:
    """Return preservation, trustworthiness and continuity for all numbers of neighbors, in one pass.

    For each row, all points are ranked by their distance to it, in the data and in the embedding. That takes
    O(n² log n) time and O(n) memory for all K together.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    Z : array of shape (n, q)
    metric : str, default="euclidean"
        The distance of `X`: any of `sklearn.metrics.pairwise_distances` that needs no parameters, or "precomputed" for
        a square array of distances. Embeddings have Euclidean distances.
    n_rows : int, optional
        Compare only the neighborhoods of this many random points, among all points. The default is all points, which
        is exact.
    random_state : int, Generator or RandomState, optional
        Chooses the rows.
    n_jobs : int, optional
        Threads; the default is every core. The result does not depend on it.

    Returns
    -------
    NeighborhoodCurves

    Raises
    ------
    TypeError, ValueError
        When an array is not numeric or not finite, or the numbers of rows differ.

    References
    ----------
    Lee, Verleysen (2009), Quality assessment of dimensionality reduction: rank-based criteria (the co-ranking matrix).

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> curves = gc.metrics.neighborhood_curves(X, X[:, 2:])
    >>> curves.preservation.shape
    (148,)
    >>> bool(curves.at(30) == gc.metrics.k_ary_preservation(X, X[:, 2:], K=30))
    True
    """
    [relations] = relate(X, [Z], metric=metric, n_rows=n_rows, random_state=random_state, n_jobs=n_jobs)
    return curves_of(relations)


def check_sizes(K: Any, n: int) -> list[int]:
    """Return numbers of neighbors as integers from 1 to n − 2."""
    sizes = [check_integer("K", k, 1) for k in np.atleast_1d(np.asarray(K, dtype=object)).ravel()]
    if not sizes:
        raise ValueError("K must name at least one number of neighbors.")
    if max(sizes) > n - 2:
        raise ValueError(f"K={max(sizes)} must be at most n − 2 = {n - 2}, or all other points are neighbors.")
    return sizes


def pick(curve: FloatArray, K: Any) -> Any:
    """Return a curve's values at some K: a float for a single K, an array for several."""
    values = curve[np.array(check_sizes(K, curve.size + 2)) - 1]
    return float(values[0]) if np.ndim(K) == 0 else values


def k_ary_preservation(
    X: Any,
    Z: Any,
    K: int | Sequence[int],
    metric: str = "euclidean",
    *,
    n_rows: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> float | FloatArray:
    """Return R(K), the agreement of K-ary neighborhoods, rescaled so that 1 is perfect and 0 is chance.

    With Q(K) = (1/nK) Σ_i #(N_X^K(i) ∩ N_Z^K(i)) over the K nearest other points of each point in X and in Z,

        R(K) = ((n − 1) Q(K) − K) / (n − 1 − K).

    Small K measures local structure, K = n/4 or n/2 global structure. The result is exact, and takes O(n) memory and
    all cores. Of two points at the same distance, the point with the smaller index counts as nearer; rounding seldom
    breaks a tie, but more often in a sample, whose distances are in single precision.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, p)
    Z : array of shape (n, q)
    K : int or sequence of int
        From 1 to n − 2.
    metric, n_rows, random_state, n_jobs
        As in `neighborhood_curves`, which returns all K and their standard errors.

    Returns
    -------
    float, or ndarray of shape (len(K),)

    Raises
    ------
    TypeError, ValueError
        When an array is not numeric or not finite, the numbers of rows differ, or K is out of range.

    References
    ----------
    Lee et al. (2013), Type 1 and 2 mixtures of Kullback–Leibler divergences as cost functions in dimensionality
    reduction; graph-coupling paper, equation 23.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.metrics.k_ary_preservation(X, 2.0 * X, K=30)
    1.0
    >>> bool(gc.metrics.k_ary_preservation(X, X[:, 2:], K=30) > 0.5)
    True
    """
    return _curve("preservation", X, Z, K, metric, n_rows, random_state, n_jobs)


def trustworthiness(
    X: Any,
    Z: Any,
    K: int | Sequence[int] = 5,
    metric: str = "euclidean",
    *,
    n_rows: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> float | FloatArray:
    """Return the trustworthiness T(K): high if points near in the embedding are near in the data.

        T(K) = 1 − 1/(n G_K) Σ_i Σ_{j ∈ N_Z^K(i) ∖ N_X^K(i)} (ρ_ij − K)

    where ρ_ij is the rank of j among the other points by distance from i in X, and G_K is the largest possible sum of a
    row, K(2n − 3K − 1)/2. It lies between 0 and 1; 1 is best.

    Parameters
    ----------
    X, Z, K, metric, n_rows, random_state, n_jobs
        As in `k_ary_preservation`; K is below n/2.

    Returns
    -------
    float, or ndarray of shape (len(K),)

    Raises
    ------
    TypeError, ValueError
        As `k_ary_preservation`.

    References
    ----------
    Venna, Kaski (2001), Neighborhood preservation in nonlinear projection methods.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> round(gc.metrics.trustworthiness(X, X[:, 2:], K=5), 3)
    0.921
    """
    return _curve("trustworthiness", X, Z, K, metric, n_rows, random_state, n_jobs)


def continuity(
    X: Any,
    Z: Any,
    K: int | Sequence[int] = 5,
    metric: str = "euclidean",
    *,
    n_rows: int | None = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> float | FloatArray:
    """Return the continuity: high if points near in the data are near in the embedding.

    This is trustworthiness with data and embedding exchanged: 1 − 1/(n G_K) Σ_i Σ_{j ∈ N_X^K(i) ∖ N_Z^K(i)} (r_ij − K),
    where r_ij is the rank in the embedding.

    Parameters
    ----------
    X, Z, K, metric, n_rows, random_state, n_jobs
        As in `k_ary_preservation`; K is below n/2.

    Returns
    -------
    float, or ndarray of shape (len(K),)

    Raises
    ------
    TypeError, ValueError
        As `k_ary_preservation`.

    References
    ----------
    Venna, Kaski (2001), Neighborhood preservation in nonlinear projection methods.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> gc.metrics.continuity(X, 2.0 * X, K=5)
    1.0
    """
    return _curve("continuity", X, Z, K, metric, n_rows, random_state, n_jobs)


def _curve(name: str, X: Any, Z: Any, K: Any, metric: str, n_rows: Any, random_state: Any, n_jobs: Any) -> Any:
    n = as_points(X, at_least=3).shape[0]
    if max(check_sizes(K, n)) >= n / 2 and name != "preservation":
        raise ValueError(f"K={K!r} must be below half the number of points, {n}, for ranks beyond K to count.")
    curves = neighborhood_curves(X, Z, metric=metric, n_rows=n_rows, random_state=random_state, n_jobs=n_jobs)
    return pick(getattr(curves, name), K)
