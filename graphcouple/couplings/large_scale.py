"""A second pair of hidden graphs, at the scale of the whole: each point is tied to the nearer half of all others.

Points are compared with groups of points: the cells of m landmarks, drawn at random. Given X, the edge from point i to
group g is there with probability

    p_ig = 1/(1 + e^{(r_i(g) − ½)/w}),

where r_i(g) is the mid-rank of group g around i: the share of points in groups nearer to i, plus half the share of
points in g. Groups are ranked by the mean squared distance of i to their members; unless distances are Euclidean, to
four of their members, drawn once. Given Z, the odds of the edge are T_ig/d²_ig, where d_ig is the distance to the
group's mean and T_ig the mean of both ends' mean squared distances to all points,

    T_ig = (D_i + D_g)/2,    D_i = ‖z_i − z̄‖² + V,    D_g = ‖z̄_g − z̄‖² + V,    V = n⁻¹ Σ_k ‖z_k − z̄‖².

Both graphs have independent edges (prior B), and do not depend on the units of X and Z. Their cross-entropy, minus the
entropy of the first, is averaged over points, and over groups by their sizes n_g:

    L(Z) = n⁻² Σ_ig n_g [log(1 + u_ig) − (1 − p_ig) log(u_ig + δ) − H(p_ig)] + log(1 + δ),    u_ig = d²_ig/T_ig,

with a small δ for points at their group's mean; L ≥ 0. Neighbour embeddings compare graphs of short edges, and leave
the large scale to chance. L compares graphs of the longest edges that can be told apart, and so arranges it. All points
see the same groups, so the forces on neighbours are almost equal, and local structure is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import norm

from graphcouple._numba.threads import over_rows
from graphcouple._support.validation import centred, check_embedding, check_integer, check_positive, is_word
from graphcouple.couplings.base import Objective, parts_of
from graphcouple.couplings.global_term import GlobalTerm
from graphcouple.couplings.kinds import InParts
from graphcouple.couplings.recipes import Problem
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.neighbors import as_points, mean_sq_distances_to_groups, sq_distances_to_points
from graphcouple.spectral import far_rows_drawn_in, principal_components

# δ: the repulsion from a mean stops growing within a hundredth of the typical distance.
_SOFTENING = 1e-4

# Rows whose forces on the groups are summed by one thread, whatever the number of threads.
_BLOCK = 1024

# Bounds of the automatic number of landmarks, and the number of entries of p that it aims at.
_FEWEST, _MOST, _ENTRIES = 100, 500, 5_000_000

# The weight for data with large-scale structure, and the least share of L that principal components explain there. On
# ten data sets, weight 3 keeps 0.87 of the gain at n/2 of weight 7 without resistance, with 1.1 times the tears of
# t-SNE instead of 2.2.
_WEIGHT, _EXPLAINED = 3.0, 0.35

# Rows whose entropies are summed at once.
_ROWS = 20_000


class LargeScaleCrossEntropy(InParts):
    """L(Z), the cross-entropy of two graphs of the nearer half of all points; see the module's text.

    Parameters
    ----------
    groups : ndarray of shape (n_points,)
        The group of each point, from 0.
    near : ndarray of shape (n_points, n_groups)
        p, in [0, 1].
    n_jobs : int or None, default=None

    Raises
    ------
    ValueError
        When `near` has another shape, or values outside [0, 1], or a group is empty.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> large = gc.couplings.LargeScaleCrossEntropy.of(X, 50, np.random.RandomState(0))
    >>> noise = np.random.default_rng(0).normal(size=(150, 2))
    >>> bool(large.value(X[:, 2:]) < 0.5 * large.value(noise))
    True
    """

    lower_bound = 0.0

    def __init__(self, groups: IntArray, near: FloatArray, n_jobs: int | None = None) -> None:
        sizes = np.bincount(groups)
        if near.shape != (groups.size, sizes.size) or not (near >= 0).all() or not (near <= 1).all():
            raise ValueError(f"near must hold {groups.size} × {sizes.size} probabilities, a row for each point.")
        if not sizes.all():
            raise ValueError("every group must have a point.")
        self.near, self.n_jobs = np.ascontiguousarray(near, dtype=np.float32), n_jobs
        self._groups, self.weights, self.n_points = groups, sizes / groups.size, groups.size
        self._means = sp.csr_array((1.0 / sizes[groups], groups, np.arange(groups.size + 1))).T.tocsr()
        self._constant = float(np.log1p(_SOFTENING)) - _mean_entropy(self.near, self.weights)

    @classmethod
    def of(
        cls,
        X: Any,
        n_groups: int,
        rng: np.random.RandomState,
        width: float = 0.15,
        metric: Any = "euclidean",
        n_jobs: int | None = None,
        metric_params: dict[str, Any] | None = None,
    ) -> LargeScaleCrossEntropy:
        """Return the objective for the points of an array or sparse matrix X of shape (n, p).

        `rng` draws the landmarks of `n_groups` groups, at least 1 and at most n, and `width` is w. The metric may be a
        callable or `Blocks` too; `metric_params` are its further arguments.
        """
        from graphcouple._numba.large_scale import fill_near

        X = as_points(X)
        n = X.shape[0]
        check_integer("n_groups", n_groups, 1)
        landmarks = np.sort(rng.permutation(n)[: min(n_groups, n)])
        groups = sq_distances_to_points(X, landmarks, metric, metric_params, n_jobs).argmin(axis=1)
        # A landmark is in its own cell, even if another lies in the same place.
        groups[landmarks] = np.arange(landmarks.size)
        sq_dist = mean_sq_distances_to_groups(X, groups, rng, metric, metric_params, n_jobs)
        near = np.empty(sq_dist.shape, dtype=np.float32)
        over_rows(n, n_jobs, fill_near, sq_dist, np.bincount(groups), width, near)
        return cls(groups, near, n_jobs)

    def explained(self, Z: FloatArray) -> float:
        """Return the share of L that `Z` explains by having the right groups near each point.

        That is C/(L + C), with C the covariance of p_ig and −log(u_ig + δ) over groups, averaged over points. If every
        p_ig were replaced by the mean of p_i over groups, L would be higher by C. The share does not depend on the
        sizes of the groups. A comparison with permuted rows of `Z` would depend on them, since a permutation moves the
        means of all large groups to the centre.
        """
        level = np.broadcast_to((self.near @ self.weights)[:, None], self.near.shape)
        alike = LargeScaleCrossEntropy(self._groups, level.clip(0.0, 1.0), self.n_jobs)
        otherwise, loss = alike.value(Z) - alike._constant + self._constant, self.value(Z)
        return (otherwise - loss) / otherwise if otherwise > 0 else 0.0

    def _evaluate(self, Z: Any, *, with_value: bool = True, with_gradient: bool = True) -> tuple[float, Any]:
        from graphcouple._numba.large_scale import near_or_far

        points = check_embedding(Z, n_points=self.n_points)
        z = centred(points)
        n, q = z.shape
        # L does not depend on units. In units of a typical distance, eighth powers fit in single precision.
        unit = float(norm(z.ravel(), check_finite=False)) / n**0.5
        if not unit > 0:
            # Points in one place are all equally far: u is 1, which is also its mean for any other embedding.
            logs = np.log(2.0) - (1.0 - float((self.near @ self.weights).mean())) * np.log1p(_SOFTENING)
            return float(logs) + self._constant, np.zeros_like(points)
        z /= unit
        centres = self._means @ z
        spread, group_spread = (0.5 * (np.square(places).sum(axis=1) + 1.0) for places in (z, centres))
        dtype, n_blocks = points.dtype, -(-n // _BLOCK)
        law = (spread, np.ascontiguousarray(centres.T), group_spread, self.weights)
        value, gradient, pull = np.empty(n), np.empty((n, q), dtype), np.empty(n, dtype)
        force_on, pull_on = np.empty((n_blocks, q, len(centres)), dtype), np.empty((n_blocks, len(centres)), dtype)
        args = [part.astype(dtype, copy=False) for part in (z, *law)] + [self.near, _SOFTENING, with_value]
        out = (value, gradient, pull, force_on, pull_on)
        over_rows(n_blocks, self.n_jobs, near_or_far, _BLOCK, *args, *out, at_least=2)
        on_centres, on_spreads = (2.0 * part.sum(axis=0, dtype=np.float64).T for part in (force_on, 0.5 * pull_on))
        pull, total = pull.astype(np.float64), float(pull.sum(dtype=np.float64) + on_spreads.sum())
        # Each spread depends on its own place and, through the variance, on all.
        on_members = (on_centres + on_spreads[:, None] * centres) / (n * self.weights[:, None])
        slopes = (pull + total / n)[:, None] * z
        slopes += 2.0 * gradient
        slopes += on_members[self._groups]
        slopes -= slopes.mean(axis=0)
        slopes /= n * unit
        loss = float(value.mean()) + self._constant if with_value else np.nan
        return loss, slopes.astype(points.dtype, copy=False)


def _mean_entropy(near: FloatArray, weights: FloatArray) -> float:
    """Return Σ_ig w_g H(p_ig)/n."""
    total = 0.0
    for a in range(0, len(near), _ROWS):
        p = near[a : a + _ROWS].astype(np.float64)
        q = 1.0 - p
        logs = p * np.log(np.where(p > 0, p, 1.0)) + q * np.log(np.where(q > 0, q, 1.0))
        total -= float((logs @ weights).sum())
    return total / len(near)


@dataclass(frozen=True)
class LargeScale(GlobalTerm):
    """The term weight · n · [L(Z) + ρ T(Z)], which arranges an embedding at the scale of the whole.

    L is the cross-entropy of two graphs in which each point is tied to the nearer half of all others; see
    `LargeScaleCrossEntropy`, and `GlobalTerm` for T and for more than 10,000 points. It takes little time compared with
    the repulsion of the coupling.

    Parameters
    ----------
    weight : float or "auto", default="auto"
        Weight of global against local structure; 0 is the plain method. "auto" is 3 if principal components explain a
        share of at least 0.35 of L (`LargeScaleCrossEntropy.explained`). Below 0.35, it falls with the cube of that
        share: a plane shows little of high-dimensional noise, and a large weight would harm neighbourhoods.
    n_groups : int or "auto", default="auto"
        Number of groups, the cells of points drawn at random. "auto" is 5,000,000/n, at least 100 and at most 500: with
        fewer, the forces on neighbours are less alike.
    width : float, default=0.15
        w, how gradually an edge's probability falls with the share of points that are nearer.
    resistance : float, default=2.5
        ρ, how much the input's edges resist being torn; keyword-only.

    Raises
    ------
    TypeError, ValueError
        When a parameter is out of range; when fitted, if there are no points, or points have weights.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_hierarchical_mixture(500, random_state=0)
    >>> plain = gc.TSNE(random_state=0).fit_transform(X)
    >>> placed = gc.TSNE(terms=[gc.LargeScale()], random_state=0).fit_transform(X)
    >>> before, after = (gc.metrics.k_ary_preservation(X, Z, K=250) for Z in (plain, placed))
    >>> bool(after > before + 0.1)
    True
    """

    weight: float | str = "auto"
    n_groups: int | str = "auto"
    width: float = 0.15
    resistance: float = field(default=2.5, kw_only=True)

    _words: ClassVar[tuple[str, ...]] = ("auto",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_word("n_groups", self.n_groups, "auto", "an integer of at least 2"):
            check_integer("n_groups", self.n_groups, 2)
        check_positive("width", self.width)

    def objective(self, problem: Problem) -> LargeScaleCrossEntropy:
        X, k = problem.points, self.n_groups
        if isinstance(k, str):
            k = min(max(_ENTRIES // X.shape[0], _FEWEST), _MOST)
        metric, params = problem.metric, problem.metric_params
        return LargeScaleCrossEntropy.of(X, k, problem.rng, self.width, metric, problem.n_jobs, params)

    def weight_of(self, objective: Objective, problem: Problem) -> float:
        if not isinstance(self.weight, str):
            return float(self.weight)
        loss = next(part for part in parts_of(objective) if isinstance(part, LargeScaleCrossEntropy))
        points = far_rows_drawn_in(problem.coordinates)
        Y = principal_components(points, problem.n_components, np.random.RandomState(0))
        return _WEIGHT * min(1.0, (max(loss.explained(Y), 0.0) / _EXPLAINED) ** 3)

    def __str__(self) -> str:
        weight = self.weight if isinstance(self.weight, str) else f"{self.weight:g}"
        groups = "" if self.n_groups == "auto" else f", by {self.n_groups} groups"
        return f"{weight} × large scale{groups}"
