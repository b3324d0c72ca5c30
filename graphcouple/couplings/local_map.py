"""LocalMAP's loss: PaCMAP's, whose last phase weights near pairs by their distance and repels nearby points.

    L(Z) = Σ_near (τ/2) [√d̃/(10 + d̃) + arctan(√(d̃/10))/√10] + Σ_drawn 1/(1 + d̃),    d̃ = 1 + d².

The slope of a near pair is PaCMAP's times τ/(2√d̃): false neighbours that lie far apart pull less. Further pairs are
drawn every ten steps from candidates within τ, and from others only if these are too few, so touching groups separate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from graphcouple._numba.threads import over_rows
from graphcouple._support.validation import changed, check_embedding, check_positive
from graphcouple.couplings.pacmap import PHASES, PairwiseControlled, PairwiseControlledCoupling, Saturating, most_likely
from graphcouple.couplings.recipes import Problem
from graphcouple.graphs import FloatArray, IntArray, Support
from graphcouple.summation import EdgeSum, RadialFunction

# Steps that share their drawn pairs, and candidates of each point, at least. LocalMAP tries 100 for each of 20 further
# pairs; for 10,000 digits, 200 in all give the same scores.
_STEPS, _CANDIDATES = 10, 200


@dataclass(frozen=True)
class Fading(RadialFunction):
    """The radial function (τ/2) [√d̃/(c + d̃) + arctan(√(d̃/c))/√c], d̃ = 1 + d², with τ the reach."""

    c: float
    reach: float

    def potential(self, sq_dist: Any) -> Any:
        root = np.sqrt(1.0 + sq_dist)
        return 0.5 * self.reach * (root / (self.c + root * root) + np.arctan(root / self.c**0.5) / self.c**0.5)

    def slope(self, sq_dist: Any) -> Any:
        """Return (τ/2) c/((c + d̃)² √d̃)."""
        shifted = 1.0 + sq_dist
        return 0.5 * self.reach * self.c / ((self.c + shifted) ** 2 * np.sqrt(shifted))


class LocallyAdjusted(PairwiseControlled):
    """LocalMAP's loss of the last phase; `at` gives the earlier phases, which are PaCMAP's, `plain`.

    Each point draws `n_far` candidates, those within the reach τ first, and never its near pairs, `pairs`.
    """

    def __init__(
        self, plain: PairwiseControlled, pairs: Support, n_far: int, reach: float, seed: int, n_jobs: int | None
    ) -> None:
        self._plain, self._pairs, self._n_drawn, self._reach = plain, pairs, n_far, reach
        self.n_points, self._seed, self._n_jobs, self._block = plain.n_points, seed, n_jobs, 0
        self._near: EdgeSum = plain.sums[0].of(Fading(10.0, reach))
        self._drawn: Any = None

    basis_span = _STEPS

    def at(self, iteration: int, Z: FloatArray) -> PairwiseControlled:
        if iteration <= PHASES[1]:
            return self._plain.at(iteration, Z)
        return changed(self, _block=1 + iteration // _STEPS)

    def basis(self, Z: FloatArray, previous: Any = None) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the pairs drawn at `Z`, each in both directions: row pointers, ends, and halves of their numbers."""
        from graphcouple._numba.nearby import draw_nearby

        points, n = check_embedding(Z, n_points=self.n_points), self.n_points
        rng = np.random.default_rng((self._seed, self._block))
        order, shifts = rng.permutation(n), 1 + rng.permutation(n - 1)[: max(_CANDIDATES, 2 * self._n_drawn)]
        mixed, drawn = np.ascontiguousarray(points[order]), np.zeros((shifts.size, n), dtype=bool)
        limits = (self._reach**2, self._n_drawn, self._pairs.indptr, self._pairs.indices)
        over_rows(n, self._n_jobs, draw_nearby, mixed, order, shifts, *limits, drawn)
        s, p = np.nonzero(drawn)
        directed = sp.csr_array((np.full(s.size, 0.5), (order[p], order[(p + shifts[s]) % n])), shape=(n, n))
        both = sp.csr_array(directed + directed.T)
        return both.indptr, both.indices, both.data

    def with_basis(self, basis: Any) -> LocallyAdjusted:
        """Return the loss of these drawn pairs, wherever the points go; raise unless they are pairs of the points."""
        if basis is None:
            return self
        indptr, indices, halves = basis
        sp.csr_array((halves, indices, indptr), shape=(self.n_points, self.n_points)).check_format()
        return changed(self, _drawn=basis)

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss at `Z` and its gradient, for the pairs of the basis, or else for pairs drawn at `Z`."""
        points = check_embedding(Z, n_points=self.n_points)
        indptr, indices, halves = self.basis(points) if self._drawn is None else self._drawn
        far = EdgeSum(Support(indptr, indices), halves, Saturating(1.0), self._n_jobs, symmetric=True)
        saturated, forces = far.evaluate(points)
        attraction, gradient = self._near.evaluate(points)
        return attraction + float(halves.sum()) - saturated, (gradient - forces).astype(points.dtype, copy=False)


@dataclass(frozen=True)
class LocallyAdjustedCoupling(PairwiseControlledCoupling):
    """LocalMAP's loss, between the most likely edges of the input's law and random pairs; see `LocallyAdjusted`.

    Parameters
    ----------
    n_near, n_mid, n_far : int, default=10, 5, 20
        Pairs of each kind for each point; fewer if there are fewer points.
    reach : float, default=10.0
        τ, the distance on the map within which points repel each other in the last phase.

    Raises
    ------
    TypeError, ValueError
        When a number of pairs is not an integer of at least 1, or `reach` is not above 0.

    References
    ----------
    Wang, Sun, Huang and Rudin (2025), Dimension reduction with locally adjusted graphs.

    Examples
    --------
    >>> import graphcouple as gc
    >>> print(gc.LocalMAP().sentence.coupling)
    pairwise controlled: 10 near, 5 mid-near and 20 further pairs of each point, within 10 at last
    """

    reach: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("reach", self.reach)

    def __str__(self) -> str:
        return f"{super().__str__()}, within {self.reach:g} at last"

    def latex(self, latent: Any) -> str:
        integral = r"\int \frac{10 \, d\tilde d_{ij}}{(10 + \tilde d_{ij})^2 \tilde d_{ij}^{1/2}}"
        return r"\sum_{near} \frac{\tau}{2} " + integral + r" + \sum_{d_{ij} < \tau} \frac{1}{1 + \tilde d_{ij}}"

    def _bound(self, problem: Problem, n: int, rng: np.random.Generator) -> PairwiseControlled:
        plain = super()._bound(problem, n, rng)
        seed = int(rng.integers(2**32))
        near = most_likely(problem.posterior, self.n_near)
        return LocallyAdjusted(plain, near, self.n_far, float(self.reach), seed, problem.n_jobs)
