"""Stress: distances in the embedding matched to given distances, pair by pair.

    F(Z) = Σ_{i≠j} w_ij F̂(δ_ij, ‖z_i − z_j‖)

It is pairwise matching (see `MatchedMeans`) of distances in place of edges' means, with the same losses F̂. The square
gives raw stress, and weights w = δ⁻¹ Sammon's, w = δ⁻² elastic scaling. The sum of squared distances over all pairs is
n Σ_i ‖z_i − z̄‖², but the sum of δ_ij ‖z_i − z_j‖ has no fast form, as δ is not a function of the embedding. So either
all pairs are compared, or a sample of pairs that is drawn once. Each pair of the sample stands for equally many pairs.

References
----------
Lecture notes, section 1.1. Kruskal (1964), Multidimensional scaling by optimizing goodness of fit. Sammon (1969), A
nonlinear mapping for data structure analysis.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from graphcouple._support.validation import changed, check_embedding, check_integer, check_positive
from graphcouple.couplings.base import Objective
from graphcouple.couplings.losses import MatchingLoss, as_loss
from graphcouple.graphs import FloatArray, Support
from graphcouple.neighbors import Distances

# Distances below this share of the mean get no larger weight: a safeguard against near copies.
_LEAST = 1e-3


def sampled_pairs(n_points: int, per_point: int, rng: np.random.RandomState) -> Support:
    """Return random pairs in both directions, on average `per_point` of each point.

    Parameters
    ----------
    n_points : int
    per_point : int
        At most n_points − 1.
    rng : numpy.random.RandomState

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import sampled_pairs
    >>> pairs = sampled_pairs(100, 10, np.random.RandomState(0))
    >>> pairs.n_nodes, bool((pairs.rows != pairs.indices).all())
    (100, True)
    """
    if check_integer("per_point", per_point, 1) > n_points - 1:
        raise ValueError(f"per_point={per_point} must be at most {n_points - 1}, the number of other points.")
    n, n_pairs = np.int64(n_points), n_points * per_point // 2
    keys = np.empty(0, dtype=np.int64)
    while keys.size < n_pairs:
        # A pair drawn twice counts once, so some more are drawn.
        ends = rng.randint(n_points, size=(2, n_pairs - keys.size + per_point), dtype=np.int64)
        low, high = ends.min(axis=0), ends.max(axis=0)
        keys = np.unique(np.concatenate([keys, (low * n + high)[low < high]]))
    keys = keys[np.sort(rng.permutation(keys.size)[:n_pairs])]
    low, high = keys // n, keys % n
    both = np.concatenate([low, high]), np.concatenate([high, low])
    pattern = sp.csr_array((np.ones(2 * n_pairs, dtype=bool), both), shape=(n_points, n_points))
    return Support(pattern.indptr, pattern.indices)


def stress_weights(wanted: FloatArray, power: float) -> FloatArray:
    """Return δ^(−power) in units of the mean of δ.

    Each δ is raised to at least the smallest positive δ and a thousandth of the mean. Otherwise the weights of near
    copies would outweigh all other pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import stress_weights
    >>> stress_weights(np.array([1.0, 2.0, 3.0]), power=1.0).round(2).tolist()
    [2.0, 1.0, 0.67]
    """
    positive = wanted > 0
    if power == 0 or not positive.any():
        return np.ones_like(wanted)
    mean = float(wanted[positive].mean())
    least = max(float(wanted[positive].min()), _LEAST * mean)
    return np.asarray((np.maximum(wanted, least) / mean) ** (-power))


def check_least_at_equal(loss: MatchingLoss, wanted: FloatArray) -> None:
    """Raise if, at distances from the least to the largest, the loss of a distance is lower at its half or double."""
    positive = wanted[wanted > 0]
    if not positive.size:
        return
    levels = np.geomspace(positive.min(), positive.max(), 9)
    for factor in (0.5, 2.0):
        lower = ~(loss.cost(levels, levels) <= loss.cost(levels, factor * levels))
        if lower.any():
            d = float(levels[lower][-1])
            raise ValueError(
                f"loss={loss!r} of the distance {d:.3g} is not least at {d:.3g}: it is lower at {factor * d:.3g}, and "
                "points would collapse or fly apart. Use loss='square', or a loss that is least at equal distances."
            )


class Stress(Objective):
    """F(Z) = Σ_{i≠j} w_ij F̂(δ_ij, ‖z_i − z_j‖_p), as a function of the embedding.

    Parameters
    ----------
    support : Support
        The pairs, each in both directions.
    wanted : ndarray of shape (n_edges,)
        The target distances δ, of at least 0, symmetric.
    weights : ndarray of shape (n_edges,), optional
        w, of at least 0, symmetric; 1 by default.
    loss : MatchingLoss or str, default="square"
        F̂ of a target distance and a distance in the embedding, least where they are equal. The KL divergence of two
        probabilities is not, for distances above 1.
    n_jobs : int or None, default=None
    norm : float, default=2.0
        p of the embedding's distances, at least 1.

    Raises
    ------
    ValueError
        When `norm` is below 1, pairs have one direction only, distances or weights are negative, not finite or not
        symmetric, or the loss of a distance is lower at its half or its double.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X = np.random.default_rng(0).normal(size=(30, 5))
    >>> support, sq_dist = gc.neighbors.all_pairs(X)
    >>> stress = gc.couplings.Stress(support, np.sqrt(sq_dist))
    >>> round(stress.value(X), 12)
    0.0
    """

    def __init__(
        self,
        support: Support,
        wanted: FloatArray,
        weights: FloatArray | None = None,
        loss: MatchingLoss | str = "square",
        n_jobs: int | None = None,
        norm: float = 2.0,
    ) -> None:
        self.support, self.loss, self.n_jobs, self.norm = support, as_loss(loss), n_jobs, check_positive("norm", norm)
        if norm < 1.0:
            raise ValueError(f"norm must be at least 1, got {norm}: below, it is no norm.")
        self.wanted = np.ascontiguousarray(wanted, dtype=np.float64)
        self.weights = np.ones_like(self.wanted) if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        back = support.find(support.indices, support.rows)
        if (back < 0).any():
            raise ValueError("support must hold both directions of each pair.")
        for name, values in (("wanted", self.wanted), ("weights", self.weights)):
            if values.shape != (support.n_edges,) or not np.isfinite(values).all() or (values < 0).any():
                raise ValueError(f"{name} must hold a finite number of at least 0 for each of {support.n_edges} pairs.")
            if abs(values - values[back]).max(initial=0.0) > 1e-8 * max(float(values.max(initial=0.0)), 1e-300):
                raise ValueError(f"{name} must be the same for both directions of each pair.")
        check_least_at_equal(self.loss, self.wanted)
        self.n_points = self.support.n_nodes

    @classmethod
    def of(
        cls,
        distances: Distances,
        pairs: Support | None = None,
        power: float = 0.0,
        loss: MatchingLoss | str = "square",
        n_jobs: int | None = None,
        norm: float = 2.0,
    ) -> Stress:
        """Return the stress of points' distances, with weights δ^(−power).

        `pairs`, if given, are a sample from `sampled_pairs`, weighted to stand for all pairs. The loss, `n_jobs` and
        `norm` are the class's.
        """
        support, sq_dist = distances.all_pairs() if pairs is None else (pairs, distances.of_edges(pairs, n_jobs))
        wanted = np.sqrt(sq_dist)
        weights = stress_weights(wanted, power)
        if pairs is not None:
            n = distances.n_points
            weights = weights * (n * (n - 1) / pairs.n_edges)
        return cls(support, wanted, weights, loss, n_jobs, norm)

    def in_units(self, unit: float) -> Stress:
        """Return the same stress with distances in another unit."""
        scaled = changed(self, wanted=self.wanted / unit)
        scaled.__dict__.pop("sq_norm", None)
        return scaled

    @cached_property
    def sq_norm(self) -> float:
        """Σ w δ², by which stress is divided to be free of units."""
        return float((self.weights * np.square(self.wanted)).sum())

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return F and its gradient 2 Σ_j w_ij F̂'(δ_ij, d_ij) ∂d_ij/∂z_i, for p = 2 (z_i − z_j)/d_ij."""
        from graphcouple._numba.matching import matched_distances
        from graphcouple._numba.threads import over_rows

        points = check_embedding(Z, n_points=self.n_points)
        places = np.ascontiguousarray(points, dtype=np.float64)
        total, force = np.empty(self.n_points), np.empty(places.shape)
        arrays = (places, self.support.indptr, self.support.indices, self.wanted, self.weights, self.loss, self.norm)
        over_rows(self.n_points, self.n_jobs, matched_distances, *arrays, total, force)
        return float(total.sum()), force.astype(points.dtype, copy=False)

    @property
    def lower_bound(self) -> float:
        """Σ w F̂(δ, δ): every distance at its target."""
        return float((self.weights * self.loss.cost(self.wanted, self.wanted)).sum())
