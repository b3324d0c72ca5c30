"""Distances from the centre: points that are far out in the data are far out on the map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse

from graphcouple._support.validation import check_embedding, check_weight
from graphcouple.couplings.base import Objective
from graphcouple.couplings.global_term import warn_if_few_points
from graphcouple.couplings.recipes import Problem, Term
from graphcouple.graphs import FloatArray
from graphcouple.neighbors import is_precomputed
from graphcouple.neighbors.points import dense_if_far
from graphcouple.summation.curved import Space


class OriginMismatch(Objective):
    """n (1 − ⟨r, δ⟩²/(⟨r, r⟩⟨δ, δ⟩)) for distances r from the map's centre and target distances δ, up to a factor.

    With weights, sums count each point as often as its weight says, and n is the sum of weights. It is n, the most, if
    all points are in the centre, and 0 if all target distances are 0.

    Parameters
    ----------
    wanted : ndarray of shape (n_points,)
        δ, not negative.
    space : Space, optional
        Where the map lies; flat by default.
    weights : ndarray of shape (n_points,), optional
        How many points in one place each point stands for; 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import OriginMismatch
    >>> Z = np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    >>> [round(OriginMismatch(np.array(wanted)).value(Z), 3) for wanted in ([2.0, 0.0, 2.0], [1.0, 1.0, 1.0])]
    [0.0, 1.0]
    """

    lower_bound = 0.0

    def __init__(self, wanted: FloatArray, space: Space | None = None, weights: FloatArray | None = None) -> None:
        self.wanted, self.space, self.n_points, self.weights = wanted, space, len(wanted), weights

    @property
    def shares(self) -> FloatArray:
        """The share of each point in the sum of squared target distances, of shape (n_points,)."""
        squares = np.square(self.wanted) * (1.0 if self.weights is None else self.weights)
        return squares / (squares.sum() or 1.0)

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        points = check_embedding(Z, n_points=self.n_points).astype(np.float64)
        lengths = np.maximum(np.linalg.norm(points, axis=1), np.finfo(np.float64).tiny)
        r, slope = (lengths, 1.0) if self.space is None else self.space.from_centre(lengths)
        w = np.ones(self.n_points) if self.weights is None else self.weights
        n, r_wanted, r_r = w.sum(), (w * r) @ self.wanted, (w * r) @ r
        wanted_wanted = (w * self.wanted) @ self.wanted
        if not r_r > 0 or not wanted_wanted > 0:
            # A map in the centre keeps no distances; wanted distances of 0 ask for nothing.
            return float(n) if wanted_wanted > 0 else 0.0, np.zeros_like(Z)
        match = r_wanted**2 / (r_r * wanted_wanted)
        at_r = 2.0 * n * match * w * (r / r_r - self.wanted / r_wanted) if r_wanted > 0 else np.zeros_like(r)
        directions = points / lengths[:, None]
        return float(n * (1.0 - match)), ((at_r * slope)[:, None] * directions).astype(np.asarray(Z).dtype, copy=False)


@dataclass(frozen=True, eq=False)
class OriginDistances(Term):
    """The term weight · n (1 − cos²(r, δ)): distances r from the centre of the map, in proportion to the data's.

    In CO-SNE, whose data lie in hyperbolic space, the squared norms of a point in the data and on the map should be
    equal. Here they are compared up to a factor, so that the data may have any unit.

    Parameters
    ----------
    weight : float, default=1.0
        Weight of distances from the centre against neighbourhoods.
    distances : array of shape (n_samples,), optional
        δ, such as the depth in a tree. By default, the distance of a point from the mean of all, or from the centre of
        the `Space` that is the metric of the input's law. Sample weights count in the mean and in all sums.

    Raises
    ------
    TypeError, ValueError
        When `weight` is negative; when fitted, if there are neither points nor `distances`, or these are negative.

    References
    ----------
    Guo, Guo and Yu (2022), CO-SNE: Dimensionality reduction and visualization for hyperbolic data.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> far = np.linalg.norm(X - X.mean(axis=0), axis=1)
    >>> for terms in ([], [gc.couplings.OriginDistances()]):
    ...     Z = gc.TSNE(terms=terms, random_state=0).fit_transform(X)
    ...     bool(np.corrcoef(far, np.linalg.norm(Z, axis=1))[0, 1] > 0.8)
    False
    True
    """

    any_space: ClassVar[bool] = True

    weight: float = 1.0
    distances: Any = None

    @property
    def names_rows(self) -> bool:  # type: ignore[override]
        """Whether distances are given, which name rows of X."""
        return self.distances is not None

    def __post_init__(self) -> None:
        check_weight(self.weight)

    def bind(self, problem: Problem) -> OriginMismatch:
        space = problem.latent.metric if isinstance(problem.latent.metric, Space) else None
        wanted = self._of_points(problem) if self.distances is None else np.asarray(self.distances, dtype=np.float64)
        n = problem.posterior.n_nodes
        if wanted.shape != (n,) or not np.isfinite(wanted).all() or (wanted < 0).any():
            raise ValueError(f"distances must be {n} finite numbers, none negative, got shape {wanted.shape}.")
        mismatch = OriginMismatch(wanted, space, problem.posterior.node_weights)
        remedy = "use OriginDistances(distances=ranks), in COSNE with origin_weight=0"
        warn_if_few_points(mismatch.shares, "OriginDistances", remedy)
        return mismatch

    def _of_points(self, problem: Problem) -> FloatArray:
        weights = problem.posterior.node_weights
        if isinstance(problem.metric, Space):
            return problem.metric.from_centre(np.linalg.norm(problem.points, axis=1))[0]
        if is_precomputed(problem.metric) and isinstance(problem.X, np.ndarray):
            # Gower (1966): the squared distances from the mean of points with these distances.
            mean_square = np.average(np.square(problem.X, dtype=np.float64), axis=1, weights=weights)
            return np.sqrt(np.maximum(mean_square - 0.5 * np.average(mean_square, weights=weights), 0.0))
        if is_precomputed(problem.metric) and issparse(problem.X):
            raise ValueError(
                "a sparse graph of distances leaves out distances from the mean of all points; pass a square array of "
                "all distances, `distances` of your own, or leave out the term, in COSNE by origin_weight=0."
            )
        X = dense_if_far(problem.coordinates)
        if weights is None:
            mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        else:
            mean = np.asarray(X.T @ weights, dtype=np.float64).ravel() / weights.sum()
        if issparse(X):
            squares = np.asarray(X.multiply(X).sum(axis=1)).ravel() - 2.0 * (X @ mean) + mean @ mean
            return np.sqrt(np.maximum(squares, 0.0))
        return np.asarray(np.linalg.norm(X - mean, axis=1))

    def __str__(self) -> str:
        return f"{self.weight:g} × distances from the centre"
