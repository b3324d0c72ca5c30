"""Terms that arrange an embedding at large scale, and the input's edges, which they should not tear.

The attraction of a heavy-tailed kernel fades with distance: a neighbour half a map away pulls less than a near one. So
a term that arranges a map at large scale also tears it. At the scale of the whole, an edge has the odds D²/d² (see
`large_scale`). D is √2 times the mean distance of the points from their mean. With a root mean square in place of the
mean, one distant point would make all other edges count as short. The cross-entropy of the input's edges is

    T(Z) = n⁻¹ Σ_ij m_ij log(1 + d²_ij/D²),

with m the mean edges of the input's graph, multiplied so that they add to n. It does not depend on the units of Z.
The pull of an edge grows with its length, up to the size of the map; short edges pull very little.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from graphcouple._support.validation import centred, check_embedding, check_weight, warn
from graphcouple.couplings.base import Objective, WeightedSum
from graphcouple.couplings.recipes import Problem, Term
from graphcouple.graphs import FloatArray
from graphcouple.kernels import Student
from graphcouple.laws.priors import RandomGraph
from graphcouple.summation.edges import EdgeSum
from graphcouple.summation.radials import LogKernel

# With more points than this, ten neighbours are a finer structure than the weights were chosen for.
# The largest of the ten data sets of docs/evidence/global_structure.md has as many.
_MANY = 10_000.0

UNIT_LENGTH = 1.0
"""Below this size, a shape term first makes the embedding larger. Embeddings shrink while the attraction is
exaggerated, and a scale-free objective, which is stiffer on a smaller embedding, would keep them small."""

# If a few points hold more than this share of a sum of squares, the shape of the others cannot be seen. Among
# fewer than five points each has a large share. No comparison is recorded.
_MOST_OF_FEW, _FEWEST = 0.9, 5

# A message names no more rows than this.
_NAMED = 5


def factor_at(n_points: int) -> float:
    """Return the factor of a term: n, because a cross-entropy is a sum over points; (10,000 n)^½ beyond 10,000."""
    return n_points * min(1.0, (_MANY / n_points) ** 0.5)


def warn_if_few_points(shares: FloatArray, term: str, remedy: str = "use LargeScale, which uses ranks") -> None:
    """Warn if a hundredth of the points, or one, has most of the term's sum of squares, given each point's share."""
    if shares.size < _FEWEST:
        return
    first = np.argsort(-shares, kind="stable")[: max(shares.size // 100, 1)]
    totals = np.cumsum(shares[first])
    if totals[-1] > _MOST_OF_FEW:
        rows = np.sort(first[: int(np.searchsorted(totals, _MOST_OF_FEW, "right")) + 1])
        one = rows.size == 1
        more = f" and {rows.size - _NAMED} more" if rows.size > _NAMED else ""
        which = f"row {rows[0]}, which lies" if one else f"rows {', '.join(map(str, rows[:_NAMED]))}{more}, which lie"
        warn(
            f"{term} is dominated by {which} so far out that {min(totals[rows.size - 1], 1.0):.1%} of its sum of "
            f"squares is from {'that row' if one else 'those rows'}. Leave {'it' if one else 'them'} out, or {remedy}."
        )


class LongEdges(Objective):
    """T(Z), the cross-entropy of the input's edges under a law at the scale of the map; see the module's text.

    Edges whose mean is below the average of their row are left out: the other edges hold most of the mass, and take
    a fraction of the time.

    Parameters
    ----------
    posterior : RandomGraph
    n_jobs : int or None, default=None

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> posterior = gc.TSNE().models(150)[0].posterior(X)
    >>> apart = X[:, 2:] + [[10.0, 0.0]] * (np.arange(150) % 2)[:, None]
    >>> edges = gc.couplings.LongEdges(posterior)
    >>> bool(edges.value(X[:, 2:]) < 0.2 * edges.value(apart))
    True
    """

    lower_bound = 0.0

    def __init__(self, posterior: RandomGraph, n_jobs: int | None = None) -> None:
        means, support = posterior.edge_means, posterior.support
        sums = np.bincount(support.rows, means, posterior.n_nodes)
        keep = means >= (sums / np.maximum(np.diff(support.indptr), 1))[support.rows] * (1.0 - 1e-9)
        means = means[keep]
        means = means * (posterior.n_nodes / (float(means.sum()) or 1.0))
        self._edges = EdgeSum(support.select(keep), means, LogKernel(Student()), n_jobs)
        self.n_points = posterior.n_nodes

    def value_and_grad(self, Z: FloatArray) -> tuple[float, FloatArray]:
        points = check_embedding(Z, n_points=self.n_points)
        z = centred(points)
        away = np.sqrt(np.square(z, dtype=np.float64).sum(axis=1))
        size = float(np.sqrt(2.0) * away.mean())
        if not size > 0:
            return 0.0, np.zeros_like(points)
        outwards = z / np.maximum(away, 1e-300)[:, None]
        z /= size
        value, slopes = self._edges.evaluate(z)
        # The unit is the size of the map, so scaling the map changes nothing.
        size_gradient = np.sqrt(2.0) / len(z) * (outwards - outwards.mean(axis=0))
        slopes = slopes - float((slopes * z).sum()) * size_gradient
        return -value / len(z), (slopes / (-len(z) * size)).astype(points.dtype, copy=False)


@dataclass(frozen=True)
class GlobalTerm(Term):
    """Base class of terms that arrange an embedding at large scale.

    The term is weight · n · [F(Z) + ρ T(Z)]. F is an objective between 0 and about 1 that does not depend on the units
    of the embedding; the rest of the objective decides how large the embedding is. T keeps F from tearing neighbours
    apart; see `LongEdges`. F and T are multiplied by the number of points n, because a cross-entropy is a sum over
    points. Beyond 10,000 points, where ten neighbours are a finer structure, they are multiplied by (10,000 n)^½.

    Parameters
    ----------
    weight : float
        Weight of global against local structure; 0 is the plain method.
    resistance : float, default=0.0
        ρ, how much the input's edges resist being torn; keyword-only. On noise, whose edges are all long, it
        harms neighbourhoods.

    Raises
    ------
    TypeError, ValueError
        When a parameter is out of range; when fitted, if there are no points, or points have weights.

    Examples
    --------
    >>> import graphcouple as gc
    >>> [issubclass(term, gc.extend.GlobalTerm) for term in (gc.LargeScale, gc.ReferenceShape, gc.Anchors)]
    [True, True, False]
    """

    weight: Any = 1.0
    resistance: float = field(default=0.0, kw_only=True)

    _words: ClassVar[tuple[str, ...]] = ()
    """Words that `weight_of` turns into a weight."""

    def __post_init__(self) -> None:
        check_weight(self.weight, *self._words)
        check_weight(self.resistance, name="resistance")

    @abstractmethod
    def objective(self, problem: Problem) -> Objective:
        """Return F for the problem's points; see `Term.bind`."""

    def bind(self, problem: Problem) -> WeightedSum:
        problem.refuse_weights(self)
        factor = factor_at(problem.posterior.n_nodes)
        terms: list[tuple[float, Objective]] = [(factor, self.objective(problem))]
        if self.resistance:
            terms.append((factor * self.resistance, LongEdges(problem.posterior, problem.n_jobs)))
        return WeightedSum(tuple(terms))
