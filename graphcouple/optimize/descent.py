"""The default descent: settings derived from the objective and the start, whatever the laws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from graphcouple._support.validation import check_positive, check_weight, is_word, warn
from graphcouple.couplings import Attraction, EffectiveCrossEntropy, Objective
from graphcouple.graphs import FloatArray
from graphcouple.optimize.base import Optimizer
from graphcouple.optimize.exaggeration import NO_EXAGGERATION, Exaggeration
from graphcouple.optimize.lbfgs import LBFGS
from graphcouple.optimize.momentum import MomentumGains
from graphcouple.optimize.rays import best_scale, starting_objective
from graphcouple.optimize.roughness import bearable_attraction, gathered, is_rough, smoothest
from graphcouple.optimize.sampling import NegativeSampling

# Attraction stronger than the repulsion shrinks the start to one place. At 0.6 of that limit, runs from noise end
# lowest; benchmarks/descent.py has the table.
_BEARABLE = 0.6

# Attraction that begins m² times as strong needs about 10 m iterations to fall to 1; faster, losses end higher.
_ITERATIONS_PER_ROOT = 10.0

# The tolerated exaggeration is measured at this size, relative to the best one. There, too much attraction shrinks a
# start to one place for good.
_SMALL = 1e-2

# More attraction draws each component of a disconnected graph to one place; weights of 4 to 100 end lower there.
_MOST_ATTRACTION = 30.0

# The weight falls in this many stages, over this many iterations, as many as a usual exaggeration takes. If it fell at
# once, L-BFGS would fling the points apart (docs/evidence/descent.md).
_STAGES, _STAGED_ITERATIONS = 10, 150

# From four dimensions on, points can pass each other: of thirty losses, 60 iterations raise none by more than 0.05 %.
_FREE_DIMS, _STAGED_IF_FREE = 4, 60

# If a graph of many points tolerates little attraction, twice the iterations untangle the start: MNIST's loss ends 0.05
# % lower, the losses of at most 3,000 points 0.02 % lower. Beyond 10,000 points there is time for fewer iterations.
_TANGLED_FROM, _UNTANGLING = 3000, 3_000_000

# Up to this many points, the pieces of a graph are drawn to dots first: losses end up to 0.8 % lower. More points have
# too few iterations to unfold dots: without them, the loss of 300,000 points in 50 clusters ends 0.9 % lower.
_GATHERED_UP_TO = 10_000

# While a map grows through the kernel's length, points far apart repel each other most, and many clusters end on a ring
# with an empty middle. So the map starts larger, at its best size under this power of a lower first weight. Losses of
# texts, clusters and noise end 0.2 to 0.9 % lower, of digits the same; 100·R(n/2) of four curved sheets is 20 higher.
_START_POWER, _MOST_FROM_LARGE = 0.15, 6.0

# More points in pieces are exaggerated by at most the first number, and only if two points share a piece with a
# probability above the second. The loss of 13,000 points in two pieces ends 0.6 % lower for it. More pieces are not
# exaggerated, because twelve cell types would lose their arrangement.
_GENTLE, _FEW_PIECES = 2.0, 0.2

# In more than two dimensions, sampling is faster than exact sums from this many points on.
_SAMPLED_FROM = 2000

# On a line, points must jump past each other. Two pulls instead of one lower five of eight losses.
_PULLS_ON_A_LINE = 2

# Elsewhere, if the graph is connected, long steps are noise: with at most this many per epoch and point at rate 1,
# losses end 0.7 to 13 % lower for UMAP, and 0.1 % lower to 0.2 % higher for LargeVis. Pieces that overlap need the
# noise.
_STEPS_AN_EPOCH = 2.0


@dataclass(frozen=True)
class Descent:
    """The default optimizer, a recipe: settings that suit the objective and the start, from their own properties.

    `plan` returns the start and the optimizer. It is `LBFGS`, whose steps follow the objective's curvature, or
    `MomentumGains` if a learning rate is given. In more than two dimensions, where no mesh makes sums over all pairs
    fast, an objective that can be sampled (`EffectiveCrossEntropy`) is minimised by `NegativeSampling` from 2,000
    points on. On a line it is sampled for any number of points if the kernel has no bound, since only random steps
    jump past other points.

    Unless exaggeration is off, a start that may be rescaled is first smoothed along the edges of the input's graph, if
    it is as rough as noise or the graph is in pieces. More than 10,000 points in pieces are smoothed less, and
    exaggerated by at most 2 if the pieces are few, else not at all: few iterations do not unfold dots.

    Parameters
    ----------
    learning_rate : float or "auto", default="auto"
        A number selects gradient descent with momentum at this rate; see `MomentumGains`.
    early_exaggeration : float or "auto", default="auto"
        Weight of the attraction at first; 1 for none. "auto" is 0.6 of what the graph tolerates, the smaller of
        `push_over_pull` for a small start of this shape and `Attraction.limit`; at least 1, and at most 30 and (m/10)²;
        for graphs in pieces of more than 10,000 points at most 2, and 1 if the pieces are many. It falls to 1 in ten
        equal steps of its logarithm over m = 150 iterations (60 from four dimensions on), or the first three quarters
        of a shorter run. If 0.6 of this limit is less than 30 and (m/10)², m is twice as long for 3,000 to 10,000
        points, and 3,000,000 / n for more points, but never shorter. If the embedding's graphs share out a fixed number
        of edges (priors D and E), more than 10,000 points in one piece have at most the weight 6, and start larger, at
        the best size under the weight's 0.15th power. A number replaces the first weight, and falls to 1 like it.
    confinement : float, default=1.0
        Weight of `Attraction.confinement`, which descent adds to the objective so that the map of a disconnected graph
        has a finite size; 0 for none. Reported losses leave it out. It is not added if points are held. If the steps
        are sampled, it bounds only the start.

    Raises
    ------
    TypeError, ValueError
        When a number is out of range.

    Examples
    --------
    >>> import graphcouple as gc
    >>> gc.TSNE().sentence.optimizer
    Descent(learning_rate='auto', early_exaggeration='auto', confinement=1.0)
    """

    learning_rate: float | str = "auto"
    early_exaggeration: float | str = "auto"
    confinement: float = 1.0

    def __post_init__(self) -> None:
        for name in ("learning_rate", "early_exaggeration"):
            value = getattr(self, name)
            if not is_word(name, value, "auto", "a number above 0"):
                check_positive(name, value)
        check_weight(self.confinement, name="confinement")

    def suited_iterations(self, n_points: int) -> int:
        """Return the limit that ``max_iter="auto"`` stands for; see `Optimizer.suited_iterations`."""
        return LBFGS().suited_iterations(n_points)

    def bound(self, objective: Objective) -> Objective | None:
        """Return the term that bounds the size of the map; None if there is none."""
        attraction = objective.attracting
        if not self.confinement or objective.held_points is not None or attraction is None:
            return None
        bound = attraction.confinement()
        return None if bound is None else float(self.confinement) * bound

    def plan(
        self, objective: Objective, Z: FloatArray, max_iter: int, most: int | None = None, *, smooth: bool = False
    ) -> tuple[FloatArray, Optimizer]:
        """Return the start and the optimizer for an objective, the shape of `Z` and a number of iterations.

        Parameters
        ----------
        objective : Objective
        Z : ndarray of shape (n_points, n_components)
        max_iter : int
        most : int, optional
            The largest number of iterations to which the run may be extended.
        smooth : bool, default=False
            Whether a start that is rough, or of a graph in pieces, is smoothed by the edges alone. Each component then
            starts near its mean and unfolds there; otherwise components start mixed, and their points move in all
            directions. If points on a line cannot pass each other, they are spaced evenly, in smoothed order, because
            points that start together would push their component far out.

        Warns
        -----
        ConvergenceWarning
            When the given exaggeration is too strong for the graph.
        """
        any_held, objective = objective.held_points is not None, starting_objective(objective, Z)
        attraction = None if self.early_exaggeration == 1.0 else objective.attracting
        smooth = smooth and attraction is not None and not (any_held or attraction.shrinks_noise)
        many = len(Z) > _GATHERED_UP_TO
        if rough := smooth and is_rough(objective, Z):
            Z = smoothest(objective, Z)
        pieces = gathered(objective, Z) if attraction is not None and (many or (smooth and not rough)) else None
        if smooth and not rough and pieces is not None:
            Z = pieces[0] if many else smoothest(objective, Z)
        if smooth and (rough or pieces is not None) and _is_stuck(objective, Z):
            Z = Z.argsort(axis=0).argsort(axis=0).astype(Z.dtype)
        if self.samples(objective, Z):
            return Z, _negative_sampling(objective, Z, in_pieces=pieces is not None)
        schedule, strongest = NO_EXAGGERATION, np.inf
        if many and pieces is not None and self.early_exaggeration == "auto":
            strongest = _GENTLE if pieces[1] > _FEW_PIECES else 1.0
        if attraction is not None and strongest > 1.0:
            most = max_iter if most is None else most
            schedule = self._schedule(objective, attraction, Z, max_iter, most, strongest)
        if self.learning_rate == "auto":
            return Z, LBFGS(exaggeration=schedule)
        return Z, MomentumGains(self.learning_rate, exaggeration=schedule)

    def _schedule(
        self, objective: Objective, attraction: Attraction, Z: FloatArray, max_iter: int, most: int, strongest: float
    ) -> Exaggeration:
        limit = attraction.limit(Z)
        if not attraction.shrinks_noise:
            # A bounded loss, such as the square, is nearly level where points are far apart.
            steep = objective.exaggerated(2.0) if attraction.fades else objective
            small = (Z * (_SMALL * best_scale(steep, Z, precise=False))).astype(Z.dtype)
            limit = min(bearable_attraction(objective, small), limit)
        staged = _STAGED_IF_FREE if Z.shape[1] >= _FREE_DIMS else _STAGED_ITERATIONS
        length = min(staged, 3 * max_iter // 4)
        bearable = min(_BEARABLE * limit, strongest)
        factor = min(_MOST_ATTRACTION, (length / _ITERATIONS_PER_ROOT) ** 2, bearable)
        bears_little = factor == bearable
        if bears_little and len(Z) > _TANGLED_FROM:
            untangled = min(max(_UNTANGLING // len(Z), staged), 2 * staged)
            length = max(length, min(untangled, 3 * most // 4))
        starts_large = attraction.shares_edges and strongest == np.inf and len(Z) > _GATHERED_UP_TO
        factor = min(factor, _MOST_FROM_LARGE) if starts_large else factor
        if self.early_exaggeration == "auto":
            if not factor > 1.0 or (limit == float("inf") and not attraction.shrinks_noise):
                return NO_EXAGGERATION
        else:
            factor = float(self.early_exaggeration)
        if length and factor > limit:
            warn(
                f"early_exaggeration={self.early_exaggeration:g} is more than this graph tolerates: attraction exceeds "
                f"repulsion from {limit:.3g} on, and draws points together. Lower it, or use 'auto'.",
                ConvergenceWarning,
            )
        return Exaggeration(factor, length, _STAGES, factor**_START_POWER if starts_large else None)

    def samples(self, objective: Objective, Z: FloatArray) -> bool:
        """Return whether pairs are drawn: sums are slow, or points on a line cannot pass each other."""
        slow = Z.shape[1] > 2 and len(Z) > _SAMPLED_FROM
        chosen = self.learning_rate == self.early_exaggeration == "auto" and (slow or _is_stuck(objective, Z))
        return chosen and NegativeSampling.refusal(objective) is None


def _is_stuck(objective: Objective, Z: FloatArray) -> bool:
    """Return whether points on a line cannot pass each other."""
    return Z.shape[1] == 1 and objective.attracting is not None and objective.attracting.limit(Z) <= 1.0


def _negative_sampling(objective: Objective, Z: FloatArray, *, in_pieces: bool) -> NegativeSampling:
    """Return negative sampling, with shorter steps the more edges of a point an epoch draws."""
    assert isinstance(objective, EffectiveCrossEntropy)
    if Z.shape[1] == 1:
        return NegativeSampling(n_pulls=_PULLS_ON_A_LINE)
    weights = objective.edges[2]
    draws = 1.0 if in_pieces else float(weights.sum() / weights.max()) / len(Z)
    return NegativeSampling(min(1.0, _STEPS_AN_EPOCH / draws), n_pulls=1)
