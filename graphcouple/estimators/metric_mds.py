"""Metric multidimensional scaling by stress."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from graphcouple.couplings import MatchingLoss, Stress, sampled_pairs
from graphcouple.couplings.losses import SquareLoss, as_loss
from graphcouple.couplings.stress import stress_weights
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import AT_LEAST_1, AT_LEAST_2
from graphcouple.estimators.embedding import EmbeddingEstimator
from graphcouple.estimators.gram_methods import ClassicalMDS
from graphcouple.estimators.run_control import snapshots_of
from graphcouple.estimators.spectral import MOST_PAIRS, choose_landmarks, in_blocks, squared_distances
from graphcouple.graphs import FloatArray
from graphcouple.initializations import given_start
from graphcouple.neighbors import distances_of
from graphcouple.neighbors.by_metric import symmetric_distances
from graphcouple.optimize import LBFGS, Callback, best_scale

# Pairs per point, if pairs are sampled, to fit and then to measure the stress. The third number is of the fitted points
# that new ones are compared with. `pairs_per_point` compares 500 with 200; for the others, no comparison is recorded.
_SAMPLED, _MEASURED, _COMPARED = 500, 100, 1000

# Rounds of majorization for new points, and the step, relative to the embedding, below which a point has arrived:
# a safeguard and a tolerance.
_ROUNDS, _STILL = 500, 1e-7

# A new point starts at the mean of this many nearest fitted points. No comparison is recorded.
_NEAREST = 5

_POWERS = {"sammon": 1.0, "elastic": 2.0}


@estimator
class MetricMDS(EmbeddingEstimator):
    """Metric multidimensional scaling: the least of Σ_{i≠j} w_ij (δ_ij − ‖z_i − z_j‖_p)².

    The embedding's distances match the distances of X. It is pairwise matching of distances instead of edges, minimised
    by L-BFGS from classical scaling. Losses other than the square can be chosen.

    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
    stress_ : float
        The objective: raw stress (over both directions of each pair) with the square and equal weights. If pairs were
        sampled, it is estimated from other pairs than the fitted ones.
    normalized_stress_ : float
        The square root of the objective divided by Σ w δ²: Kruskal's stress-1 up to the choice of the divisor.
    loss_history_ : ndarray of shape (n_checks,)
    loss_iterations_ : ndarray of shape (n_checks,)
    n_iter_ : int
    stop_reason_ : str

    Warns
    -----
    ConvergenceWarning
        When the run ended badly; see `solve`.

    References
    ----------
    Lecture notes, section 1.1. Kruskal (1964), Multidimensional scaling by optimizing goodness of fit. Sammon (1969), A
    nonlinear mapping for data structure analysis.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> mds = gc.MetricMDS(random_state=0).fit(X)
    >>> round(mds.normalized_stress_, 3)
    0.033
    >>> mds.transform(X[:3]).shape
    (3, 2)
    """

    n_components: int = parameter(default=2, kw_only=False)
    metric: Any = parameter(default="euclidean")
    metric_params: dict[str, Any] | None = parameter(default=None)
    weights: Any = parameter(
        default=None,
        kind='{"sammon", "elastic"} or float, optional',
        doc='How pairs are weighted: None alike; "sammon" by δ⁻¹ and "elastic" by δ⁻², for near pairs to count more; a '
        "number p of at most 10 by δ^(−p), in units of the mean δ. A δ below a thousandth of the mean counts as that.",
        checks=[StrOptions(set(_POWERS)), Interval(Real, 0, 10, closed="both"), None],
    )
    loss: Any = parameter(
        default="square",
        kind='{"square"} or MatchingLoss',
        doc="The loss of the target distance and the embedding's distance.",
        checks=[StrOptions({"square"}), MatchingLoss],
    )
    norm: float = parameter(
        default=2.0,
        doc="p of the distances in the embedding: 1 for sums of coordinates, 2 for lengths. New points need 2.",
        checks=[Interval(Real, 1, 100, closed="both")],
    )
    pairs_per_point: Any = parameter(
        default="auto",
        kind='int, None or "auto"',
        doc="Number of random pairs of each point, drawn once, that stand for all pairs. None compares all pairs. "
        '"auto": all of up to 5,000 points, and 500 of each of more. On 5,000 images the stress of all pairs ended 4 % '
        "above the least with 500, and 8 % with 200.",
        checks=[AT_LEAST_2, StrOptions({"auto"}), None],
    )
    init: Any = parameter(
        default="classical",
        kind='{"classical", "random"} or array of shape (n_samples, n_components)',
        doc="The start: `ClassicalMDS` of the same distances, noise, or places of your own. Named starts are scaled to "
        "the size of the least stress.",
        checks=[StrOptions({"classical", "random"}), "array-like"],
    )
    n_starts: int = parameter(
        default=1,
        kind="int",
        doc="Number of runs, of which the one with the lowest stress is kept: the first from `init`, the others from "
        "it with noise added.",
        checks=[AT_LEAST_1],
    )
    max_iter: int = parameter(default=500, kind="int", doc="Maximum number of iterations.", checks=[AT_LEAST_1])
    random_state: Any = parameter(default=None, doc="Seed of the pairs, the start and the sample for new points.")
    n_jobs: int | None = parameter(default=None)
    verbose: int = parameter(default=0)
    callback: Callback | None = parameter(default=None)
    checkpoint: Any = parameter(default=None)
    on_interrupt: str = parameter(default="raise")

    _remembered = ("_distances", "_compared", "_used")

    @property
    def _power(self) -> float:
        return _POWERS.get(self.weights, 0.0) if isinstance(self.weights, str) else float(self.weights or 0.0)

    def fit(self, X: Any, y: Any = None, *, resume: bool = False) -> Self:
        """Embed `X`, of shape (n_samples, n_features), or distances; `y` is ignored.

        Raises
        ------
        ValueError, TypeError
            When `X` or a parameter is invalid; the message says why.
        """
        self._validate_params()
        X = self._checked(X)
        n = X.shape[0]
        snapshots, rng = snapshots_of(self, check_random_state(self.random_state), resume, X=X)
        if self.n_components >= n:
            raise ValueError(f"n_components={self.n_components} must be below n_samples = {n}.")
        if self.takes_distances and issparse(X):
            raise ValueError("stress compares all pairs, but a sparse graph stores only some; use Isomap.")
        X = symmetric_distances(X) if self.takes_distances else X
        self._distances = distances_of(X, self.metric, self.metric_params)
        wanted = (None if n <= MOST_PAIRS else _SAMPLED) if self.pairs_per_point == "auto" else self.pairs_per_point
        pairs = None if wanted is None or wanted >= n - 1 else sampled_pairs(n, int(wanted), rng)
        objective = Stress.of(self._distances, pairs, self._power, self.loss, self.n_jobs, self.norm)
        start, sized = self._start(X, rng)
        # The solver's tests are for distances of about 1. Other losses may depend on the unit.
        scaled = isinstance(as_loss(self.loss), SquareLoss)
        unit = float(objective.wanted.mean()) if scaled and objective.wanted.any() else 1.0
        used, start = objective.in_units(unit), start / unit
        if not objective.wanted.any():
            start = np.zeros_like(start)
        elif not sized:
            start = start / (float(start.std()) or 1.0)
            start = start * best_scale(used, start)
        options: dict[str, Any] = {name: getattr(self, name) for name in ("n_starts", "n_jobs", "on_interrupt")}
        options |= {"unit": unit, "measure": "stress", "settled_within": 1e-5, "snapshots": snapshots}
        solution = self._descend(used, start, LBFGS(), **options)
        Z = unit * (solution.Z - solution.Z.mean(axis=0))
        self.embedding_ = Z.astype(X.dtype)
        self.stress_ = solution.loss * unit**2
        if pairs is not None:
            # The pairs that were fitted agree better with the embedding than others.
            others = sampled_pairs(n, min(_MEASURED, pairs.n_edges // n), rng)
            objective = Stress.of(self._distances, others, self._power, self.loss, self.n_jobs, self.norm)
            self.stress_ = objective.value(Z)
        self.normalized_stress_ = float(np.sqrt(self.stress_ / (objective.sq_norm or 1.0)))
        self._compared = choose_landmarks(X, _COMPARED, rng, points=False)
        self._used = (self._power, self.loss, self.norm)
        return self

    def _start(self, X: Any, rng: np.random.RandomState) -> tuple[FloatArray, bool]:
        """Return the start, and whether it keeps its size; only an array does."""
        if not isinstance(self.init, str):
            return given_start(self.init, X.shape[0], self.n_components), True
        if self.init == "random":
            return rng.normal(size=(X.shape[0], self.n_components)), False
        options = {"metric": self.metric, "metric_params": self.metric_params}
        first = ClassicalMDS(self.n_components, **options, random_state=rng.randint(2**31 - 1))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="the similarities have only", category=UserWarning)
            places = first.fit_transform(X).astype(np.float64)
        # Points in one place, or on a line, would stay there: no force acts across the line.
        return places + 1e-3 * (places.std() or 1.0) * rng.normal(size=places.shape), False

    def transform(self, X: Any) -> FloatArray:
        """Place new points where their own stress against the fitted ones is least.

        New points are compared with all fitted points if there are at most 1,000, else with 1,000 random ones. Each
        starts at the mean of the five nearest, and at the nearest itself, and moves by majorization: every target
        distance proposes a place, and the point moves to the weighted mean of these places. The end with
        the lower stress is kept.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_new, n_features)
            Or distances to the points of `fit`, for ``metric="precomputed"``.

        Returns
        -------
        ndarray of shape (n_new, n_components)
            No row depends on another.

        Raises
        ------
        ValueError
            When the loss is not the square, or the norm not 2, so that no majorization is known.
        """
        check_is_fitted(self)
        power, loss, norm = self._used
        if not isinstance(as_loss(loss), SquareLoss):
            raise ValueError(f"transform needs the square loss, but loss={loss!r}; fit the new points too.")
        if norm != 2.0:
            raise ValueError(f"transform needs norm=2, but norm={norm:g}; fit the new points too.")
        X = self._checked_new(X)
        rows = np.arange(len(self.embedding_)) if self._compared is None else self._compared
        fixed = self.embedding_[rows].astype(np.float64)
        Z = np.empty((X.shape[0], fixed.shape[1]))
        for part in in_blocks(X.shape[0], len(self.embedding_) * (1 + fixed.shape[1])):
            wanted = np.sqrt(squared_distances(self._distances, X[part])[:, rows])
            for i, row in enumerate(wanted, start=part.start):
                near, weights = np.argsort(row, kind="stable")[:_NEAREST], stress_weights(row, power)
                ends = [_majorized(row, weights, fixed, start) for start in (fixed[near].mean(axis=0), fixed[near[0]])]
                Z[i] = min(ends, key=lambda end: float(weights @ np.square(np.linalg.norm(end - fixed, axis=1) - row)))
        return Z.astype(X.dtype, copy=False)

    def _recall(self, remembered: dict[str, Any]) -> None:
        # Older files lack the parameters in use.
        super()._recall({"used": (self._power, self.loss, self.norm), **remembered})

    def report(self) -> list[tuple[str, str]]:
        """Return the stress, as names and texts."""
        check_is_fitted(self)
        return [("stress", f"{self.stress_:.6g}, normalised {self.normalized_stress_:.4f}")]


def _majorized(wanted: FloatArray, weights: FloatArray, fixed: FloatArray, z: FloatArray) -> FloatArray:
    """Return a place of least stress against fixed places, by rounds of z ← Σ_j w_j (z_j + δ_j u_j) / Σ_j w_j.

    u_j is the direction from z_j to z.
    """
    share = weights / weights.sum()
    size = float(np.abs(fixed).max()) or 1.0
    for _ in range(_ROUNDS):
        away = z - fixed
        lengths = np.linalg.norm(away, axis=1)
        stretch = np.divide(wanted, lengths, out=np.zeros_like(wanted), where=lengths > 0)
        moved = share @ (fixed + stretch[:, None] * away)
        step, z = float(np.abs(moved - z).max()), moved
        if step <= _STILL * size:
            break
    return z
