"""A bound on the size of the map of a disconnected graph.

Shift-invariant kernels leave the places of a graph's components undetermined (degeneracy theorem), so a coupling has no
minimum there: it falls for ever as the components move apart. The gain is small and known. Let f be the weight of pairs
of different components over the weight of the others, under prior E. Moving the components to infinity lowers the loss
by n log(1 + f). With Student's kernel f falls with the square of the map's size. So descent also penalises the size:

    C(Z) = (n/3) log(1 + (D²/L²)³),   D² = (5/n Σ_i ‖z_i − z̄‖⁸)^¼ n/(n − 1),   L² = 540 ℓ² (n/κ)^max(1, 2/q, 2/t)

In a disc, D² is the mean squared distance of two points. The eighth power also counts a few points far out, which
barely change the mean square. ℓ is the kernel's length, and κ the number of points in one place that push a point as
much as its edges pull it: the perplexity, under priors D and E. Student's tail falls as D⁻² in any dimension, so f is
about nℓ²/(κD²), and the same D² leaves the same f in a plane as in more dimensions. Under priors D and E, a kernel that
falls as D^(−t) with t < 2 leaves the same f at a larger D². On a line, n/κ neighbourhoods side by side need more. The
map of a connected graph has D ≈ 0.3 L, where C is negligible. At D = L, doubling the size must lower the loss by more
than 1.2 nats per point. C takes O(n) time: it needs no sum over pairs.

A bounded loss, which is not in nats, takes C times its height per point: from its lower bound to all points far apart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import xlogy

from graphcouple._numba.confinement import fill_farthest, fill_moments, fill_pull
from graphcouple._numba.threads import POINTS_OF_BLOCK, over_rows
from graphcouple._support.validation import check_embedding, check_positive
from graphcouple.couplings.base import Objective
from graphcouple.graphs import FloatArray, Support
from graphcouple.laws.priors.posterior import sum_x_log_x

# t-SNE by momentum ends at D² of 25 to 90 (n/κ) on 15 data sets. With 540, the maps of 2 to 200 separated clusters are
# at most twice as wide as that, and connected data lose less than 0.1 % of their loss (benchmarks/separated.py).
_SQ_LENGTH = 540.0

# C is steep. With powers 1 and 2 of D²/L², the digits' loss would be higher at the same width of separated clusters.
_POWER = 3

# A kernel that falls very slowly would give no bound.
_LEAST_TAIL = 1.0

# Beyond this, the power would overflow; the gradient has long reached its limit.
_LARGEST = 1e100

# Half of the power of radii in D. Under UMAP, five distant points beside 1,500 end 8 times as far from the middle as
# the median point, 18 times with the fourth power; umap-learn's end 7 times as far (benchmarks/separated.py).
_HALF = 4


def crowd_of(
    support: Support, means: FloatArray, *, normalized: bool, own: float = 0.0, weights: FloatArray | None = None
) -> float:
    """Return κ: the exponential of the rows' mean entropy, the perplexity, if the mean number of edges is fixed.

    Else, where every pair has weight 1, return the mean number of edges at a point, in either direction. `means` and
    `own`, of edges among copies of one point, are sums over pairs of copies; κ counts places.
    """
    surprise, mass = sum_x_log_x(means)
    if not normalized:
        total = support.n_nodes if weights is None else float(weights.sum())
        return 2.0 * (mass + own) * support.n_nodes / total**2
    if not mass > 0.0:
        # All edges are among copies.
        return 1.0
    rows = np.add.reduceat(means, support.indptr[:-1][np.diff(support.indptr) > 0].astype(np.int64))
    return float(np.exp((xlogy(rows, rows).sum() - surprise) / mass))


class Confinement(Objective):
    """C(Z) = (n/3) log(1 + (D²/L²)³), a bound on the size D of a map; the module has the formula.

    Parameters
    ----------
    n_points : int
    length : float
        ℓ, the distance over which the embedding's kernel varies.
    crowd : float
        κ, the number of points in one place that push a point as much as its edges pull it.
    weights : ndarray of shape (n_points,), optional
        How many points each point stands for.
    tail : float, default=2.0
        t, the exponent with which the embedding's kernel falls far away; at least 1 counts.
    n_jobs : int or None, default=None
        Threads; None means every core. The result is bitwise the same for any number.

    Raises
    ------
    TypeError, ValueError
        When `length` or `crowd` is not above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from graphcouple.couplings import Confinement
    >>> Z = np.random.default_rng(0).normal(size=(900, 2))
    >>> [round(Confinement(900, 1.0, 30.0).value(size * Z) / 900, 4) for size in (30.0, 60.0, 120.0)]
    [0.0166, 0.4845, 1.7836]
    """

    lower_bound = 0.0

    def __init__(
        self,
        n_points: int,
        length: float,
        crowd: float,
        weights: FloatArray | None = None,
        *,
        tail: float = 2.0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_points, self.weights, self.n_jobs = n_points, weights, n_jobs
        self.length, self.crowd = check_positive("length", length), check_positive("crowd", crowd)
        self._tail_power = 2.0 / max(tail, _LEAST_TAIL)

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return C at `Z` and its gradient, which draws all points towards their mean."""
        points, weights = np.ascontiguousarray(check_embedding(Z, n_points=self.n_points)), self.weights
        total = float(self.n_points if weights is None else weights.sum())
        n_blocks, n_dims = -(-self.n_points // POINTS_OF_BLOCK), points.shape[1]

        def by_block(loop: Callable[..., None], results: FloatArray, *args: Any) -> FloatArray:
            over_rows(n_blocks, self.n_jobs, loop, POINTS_OF_BLOCK, points, *args, results, at_least=2)
            return results

        sums = np.empty((n_blocks, n_dims + 1))
        mean = by_block(fill_moments, sums, np.zeros(n_dims), 1.0, 1, weights)[:, 1:].sum(axis=0) / total
        widest = float(by_block(fill_farthest, np.empty(n_blocks), mean).max()) or 1.0
        moment, *means = by_block(fill_moments, sums, mean, widest, _HALF, weights).sum(axis=0)
        sq_size = widest * ((_HALF + 1.0) * moment / total) ** (1.0 / _HALF) * total / max(total - 1.0, 1.0)
        exponent = max(1.0, 2.0 / n_dims, self._tail_power)
        sq_length = _SQ_LENGTH * self.length**2 * max(self.n_points / self.crowd, 1.0) ** exponent
        power = min(sq_size / sq_length, _LARGEST) ** _POWER
        value = total * float(np.log1p(power)) / _POWER
        if not sq_size > 0:
            return value, np.zeros_like(points)
        # power/(1 + power), also where the power overflows.
        share = 1.0 / (1.0 + 1.0 / power) if power > 0 else 0.0
        strength = 2.0 * total * share / (widest * moment)
        gradient, pull = np.empty_like(points), (_HALF, weights, np.array(means) / total, strength)
        over_rows(len(points), self.n_jobs, fill_pull, points, mean, widest, *pull, gradient, at_least=POINTS_OF_BLOCK)
        return value, gradient
