"""PHATE: distances on the map are distances of the potentials of random walks."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from graphcouple._numba.threads import one_blas_thread
from graphcouple._support.validation import warn
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._vocabulary import AT_LEAST_1
from graphcouple.estimators.laplacian_methods import LawEigenmaps
from graphcouple.estimators.metric_mds import MetricMDS
from graphcouple.graphs import FloatArray
from graphcouple.spectral import GraphLaplacian
from graphcouple.spectral.walks import between_cells, cells, entropies, knee, lazy_walk, potentials

# A lazy walk needs twice the steps of the original's walk, for which up to 100 are tried.
_MOST_STEPS = 200

# Potentials that differ by less, relative to their mean, belong to walks that have forgotten their start.
_FORGOTTEN = 1e-6


@estimator
class PHATE(LawEigenmaps):
    """PHATE: random walks on the mean graph of a law, and metric MDS of the logarithms of where they end.

    Let P be the matrix of a walk that stays where it is with probability ½, and else goes along an edge by its weight
    in the mean graph, both directions added. The potential of a point is −log of its row of Pᵗ, and the map's distances
    match the distances of potentials by least squares. Progressions become curves, and branches stay branches.

    If there are more points, `n_landmarks` random ones become landmarks, each with the points to which it has the most
    likely path. Walks between these cells replace walks between points, and a point lies at the mean of the landmarks
    in whose cells its neighbours are. Each component of a disconnected graph is embedded by itself.

    {parameters}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Coordinates of standard deviation 1, all taken together, if the graph is connected.
    t_ : int
        The number of steps; in the largest component, like the next two.
    entropies_ : ndarray of shape (200,)
        The von Neumann entropy of P to the powers 1, 2, …; `t_` is where it stops falling fast.
    stress_ : float
        Kruskal's stress: the root of the squared errors of distances over their squares, of the landmarks if any.
    component_labels_ : ndarray of shape (n_samples,)
        The connected component of each point.
    posterior_ : RandomGraph
        The law of the input's graph, unless the input is a graph of your own.

    Warns
    -----
    UserWarning
        When the graph is disconnected: each component is embedded by itself, around the place of its mean. When `t` is
        so large that all walks end in the same places.
    ConvergenceWarning
        When the stress still fell at the end.

    References
    ----------
    Moon et al. (2019), Visualizing structure and transitions in high-dimensional biological data. There the graph has
    an alpha-decay kernel, and landmarks come from spectral clusters.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.make_branches(300, random_state=0)
    >>> phate = gc.PHATE(random_state=0).fit(X)
    >>> phate.embedding_.shape
    (300, 2)
    >>> phate.transform(X[:3]).shape
    (3, 2)
    """

    perplexity: float = parameter(default=5.0, like="perplexity of each point")
    t: Any = parameter(
        default="auto",
        kind='int or "auto"',
        doc='Number of steps of the walk. "auto" is where the entropy of Pᵗ stops falling fast: two lines, one before '
        "and one after, fit the first 200 entropies best. The original's walk is not lazy: a step there is two here.",
        checks=[AT_LEAST_1, StrOptions({"auto"})],
    )
    gamma: float = parameter(
        default=1.0,
        doc="The potential is −log p at 1, and 2/(1 − γ) p^((1 − γ)/2) below, so √p at 0, up to a factor.",
        checks=[Interval(Real, -1, 1, closed="both")],
    )
    n_landmarks: int = parameter(
        default=2000,
        kind="int",
        doc="The largest number of points, or cells of points, between which walks are followed.",
        checks=[Interval(Integral, 3, None, closed="left")],
    )
    random_state: Any = parameter(default=None, doc="Seed of the landmarks and of metric MDS.")

    normalized = True

    def _keep(self, laplacian: GraphLaplacian, X: Any, dtype: Any) -> None:
        self._rng, self._largest = check_random_state(self.random_state), 0
        # The values if no component has two different points.
        self.t_, self.stress_ = 1, 0.0
        self.entropies_: FloatArray = np.zeros(_MOST_STEPS)
        super()._keep(laplacian, X, dtype)
        del self._rng, self._largest, self.eigenvalues_

    def _coordinates(self, part: GraphLaplacian, n_components: int) -> tuple[FloatArray, FloatArray]:
        """Return coordinates, with eigenvalues of 0: so a new point lies at the mean of its neighbours."""
        if part.n_nodes == 2:
            # A lazy walk between two points forgets its start at once.
            return np.zeros(1), np.array([[-1.0], [1.0]])
        walk, mass, cell = lazy_walk(part.affinity), part.mass, None
        if part.n_nodes > self.n_landmarks:
            if n_components >= self.n_landmarks:
                raise ValueError(
                    f"n_landmarks={self.n_landmarks} must be above n_components={n_components}; raise n_landmarks."
                )
            landmarks = self._rng.choice(part.n_nodes, self.n_landmarks, replace=False)
            cell = cells(part.affinity, np.sort(landmarks))
            walk, mass = between_cells(walk, mass, cell)
        with one_blas_thread(walk.shape[0] ** 2):
            places = self._scaled(walk.toarray(), mass, n_components, part.n_nodes)
        if cell is not None:
            places = np.asarray(part.affinity @ places[cell]) / part.degrees[:, None]
        places -= places.mean(axis=0)
        return np.zeros(n_components), places / (float(places.std()) or 1.0)

    def _scaled(self, walk: FloatArray, mass: FloatArray, n_components: int, n_points: int) -> FloatArray:
        """Return places of the states of a walk that stays in the law `mass`, by metric MDS of their potentials."""
        roots = np.sqrt(mass)
        symmetric = walk * (roots[:, None] / roots)
        entropy = entropies(np.linalg.eigvalsh(0.5 * (symmetric + symmetric.T)), _MOST_STEPS)
        t = knee(entropy) + 1 if self.t == "auto" else int(self.t)
        seen = potentials(np.linalg.matrix_power(walk, t), self.gamma)
        if np.ptp(seen, axis=0).max() <= _FORGOTTEN * seen.mean():
            warn(f"after t={t} steps walks from all {n_points} points of a component end in the same places. Lower t.")
            seen = np.zeros_like(seen)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"all \d+ rows of X are equal", category=UserWarning)
            scaling = MetricMDS(n_components, random_state=self._rng, n_jobs=self.n_jobs).fit(seen)
        if n_points > self._largest:
            self._largest, self.t_, self.entropies_ = n_points, t, entropy
            self.stress_ = scaling.normalized_stress_
        return scaling.embedding_

    def report(self) -> list[tuple[str, str]]:
        """Return the law, the steps and the stress, as names and texts."""
        return [*super().report(), ("steps", f"{self.t_}"), ("stress", f"{self.stress_:.4f}")]
