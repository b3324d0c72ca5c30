"""Distances at a free scale, on random pairs, as a term.

Over pairs drawn at random, with distances δ in X and d in the embedding, the stress of the best scale is

    F(Z) = min_s Σ (δ − s d)² / Σ δ² = 1 − (Σ δ d)² / (Σ δ² Σ d²),    0 ≤ F ≤ 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import norm

from graphcouple._support.validation import centred, check_embedding, check_integer
from graphcouple.couplings.base import Objective
from graphcouple.couplings.global_term import UNIT_LENGTH, GlobalTerm, warn_if_few_points
from graphcouple.couplings.losses import SquareLoss
from graphcouple.couplings.recipes import Problem
from graphcouple.couplings.stress import Stress, sampled_pairs
from graphcouple.graphs import FloatArray


class FreeScaleStress(Objective):
    """F(Z), the stress of the best scale as a share of Σ w δ²; see the module's text.

    Parameters
    ----------
    stress : Stress
        The pairs, their target distances and weights, with the square loss. If all target distances are 0, F is 0.
    length : float, default=0.0
        ℓ: Σ d² is replaced by Σ (d² + ℓ²), so that F first enlarges an embedding smaller than ℓ, and then shapes it.

    Raises
    ------
    ValueError
        When `stress` has another loss.

    References
    ----------
    Kruskal (1964), Multidimensional scaling by optimizing goodness of fit: the square of stress-1, at its best scale.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> support, sq_dist = gc.neighbors.all_pairs(X)
    >>> free = gc.couplings.FreeScaleStress(gc.couplings.Stress(support, np.sqrt(sq_dist)))
    >>> round(free.value(7.0 * X), 12)
    0.0
    """

    lower_bound = 0.0

    def __init__(self, stress: Stress, length: float = 0.0) -> None:
        if not isinstance(stress.loss, SquareLoss) or stress.norm != 2.0:
            raise ValueError(
                "the best scale has a formula for the square loss of Euclidean distances only, got "
                f"{stress.loss!r} and norm={stress.norm}."
            )
        total = float(stress.weights @ np.square(stress.wanted / (stress.wanted.max(initial=0.0) or 1.0)))
        unit = float(stress.wanted.max(initial=0.0)) * (total / max(float(stress.weights.sum()), 1e-300)) ** 0.5
        self._stress = stress.in_units(unit) if unit > 0 else None
        self._sq_length, self._n_weights = length * length, float(stress.weights.sum())
        self.n_points, self._pairs = stress.n_points, stress.support.to_csr(stress.weights)
        self._degrees = np.asarray(self._pairs.sum(axis=1)).ravel()

    @property
    def shares(self) -> FloatArray:
        """The share of Σ w δ² in pairs of each point, of shape (n_points,); they sum to 2."""
        if self._stress is None:
            return np.zeros(self.n_points)
        squares = self._stress.weights * np.square(self._stress.wanted)
        return 2.0 * np.bincount(self._stress.support.rows, squares, self.n_points) / self._stress.sq_norm

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        points = check_embedding(Z, n_points=self.n_points)
        if self._stress is None:
            return 0.0, np.zeros_like(points)
        z = centred(points)
        size = float(norm(z.ravel(), check_finite=False)) / len(z) ** 0.5
        if not size > 0:
            return 1.0, np.zeros_like(points)
        z /= size
        # Σ w d², and Σ w δ d from the square: Σ w (δ − d)² = Σ w δ² − 2 Σ w δ d + Σ w d².
        laplacian = self._degrees[:, None] * z - self._pairs @ z
        squares, on_squares = 2.0 * float((z * laplacian).sum()), 4.0 * laplacian
        if not squares > 0:
            return 1.0, np.zeros_like(points)
        softened = squares + self._n_weights * self._sq_length / size**2
        raw, on_raw = self._stress.value_and_grad(z)
        sq_norm = self._stress.sq_norm
        product, on_product = 0.5 * (sq_norm + squares - raw), 0.5 * (on_squares - on_raw)
        share = product / (softened * sq_norm)
        gradient = share * (share * sq_norm * on_squares - 2.0 * on_product) / size
        return max(0.0, 1.0 - share * product), gradient.astype(points.dtype, copy=False)


@dataclass(frozen=True)
class DistanceShape(GlobalTerm):
    """The term weight · n · [F(Z) + ρ T(Z)], which matches distances of random pairs at a free scale.

    F is the stress of the best scale, as a share of Σ δ², between 0 and 1. See `FreeScaleStress`, and `GlobalTerm` for
    more than 10,000 points. It takes points of any metric, and a square matrix of precomputed distances.

    Parameters
    ----------
    weight : float, default=1.0
        Weight of global against local structure; 0 is the plain method.
    pairs_per_point : int, default=30
        Mean number of pairs of a point; pairs are drawn once.
    resistance : float, default=0.0
        ρ, how much the input's edges resist being torn; keyword-only. See `GlobalTerm`.

    Raises
    ------
    TypeError, ValueError
        When a parameter is out of range; when fitted, if there are no points, or points have weights.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_hierarchical_mixture(500, random_state=0)
    >>> plain = gc.TSNE(random_state=0).fit_transform(X)
    >>> placed = gc.TSNE(terms=[gc.DistanceShape()], random_state=0).fit_transform(X)
    >>> before, after = (gc.metrics.distance_correlation(X, Z) for Z in (plain, placed))
    >>> bool(before < 0.95 < after)
    True
    """

    weight: float = 1.0
    pairs_per_point: int = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("pairs_per_point", self.pairs_per_point, 1)

    def objective(self, problem: Problem) -> FreeScaleStress:
        distances = problem.distances
        # A small data set has fewer pairs than that.
        all_pairs = self.pairs_per_point >= distances.n_points - 2
        pairs = None if all_pairs else sampled_pairs(distances.n_points, self.pairs_per_point, problem.rng)
        objective = FreeScaleStress(Stress.of(distances, pairs, n_jobs=problem.n_jobs), UNIT_LENGTH)
        warn_if_few_points(objective.shares, "DistanceShape")
        return objective

    def __str__(self) -> str:
        return f"{self.weight:g} × distances of random pairs"
