"""Clusters and their map in one loss: many points at few places."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from graphcouple._numba.threads import threads_kept
from graphcouple._support.validation import warn
from graphcouple.couplings import CrossEntropy
from graphcouple.couplings.prototypes import Plan, groups_of
from graphcouple.estimators._parameters import estimator, parameter
from graphcouple.estimators._progress import Progress, progress_of
from graphcouple.estimators._vocabulary import AT_LEAST_2
from graphcouple.estimators.carry_out import Prepared, bounded, prepare
from graphcouple.estimators.rows import Rows
from graphcouple.estimators.sentence import optimizer_of, refuse_parts, run_options
from graphcouple.estimators.wrapper import WithTerm, keep_places
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.initializations import is_made
from graphcouple.optimize import LBFGS, PositionUncertainty, Solution, solve

# Rounds of a descent of the places and moves of the points; the digits with 60 places take 10.
_MOST_ROUNDS = 100


@estimator
class DistR(WithTerm):
    """Distributional reduction: n points share m places. Places and assignment minimise the loss.

    The points at a place are a cluster, and the m places are a small map of the data. The loss is the plain method's,
    of n points that share m places: a coupling of the graph between clusters with the latent law of m weighted points.
    Descents of the places, of at most `max_iter` iterations each, and moves of single points alternate, and neither
    raises the loss. Under priors B, D and E it is concave in each point's row of the transport plan, so plans that
    split points are not needed.

    {parameters}

    {attributes}
    estimator_ : GraphCoupling
        The plain method, at the map with shared places.
    labels_ : ndarray of shape (n_samples,)
        The place of each point: the transport plan, one entry in each row.
    prototypes_ : ndarray of shape (n_places, n_components)
        The places; fewer than `n_prototypes` if some have lost all of their points.

    Warns
    -----
    ConvergenceWarning
        When points still moved after 100 rounds, or descent ended badly.

    References
    ----------
    Van Assel, Vincent-Cuaz, Courty, Flamary, Frossard and Vayer (2024), Distributional reduction; there the plan moves
    by conditional gradients.

    Examples
    --------
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> reduced = gc.DistR(gc.TSNE(perplexity=20), n_prototypes=10, random_state=0).fit(X)
    >>> reduced.prototypes_.shape, reduced.labels_.shape
    ((10, 2), (150,))
    >>> bool((reduced.embedding_ == reduced.prototypes_[reduced.labels_]).all())
    True
    """

    shares_places = True
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": UNUSED}

    n_prototypes: int = parameter(
        default=100,
        doc="m, the number of places. If there are no more points, each has a place of its own.",
        checks=[AT_LEAST_2],
    )

    def fit(self, X: Any = None, y: Any = None, neighbors: Any = None) -> Self:  # type: ignore[override]
        """Embed `X`, of shape (n_samples, n_features).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Points, or distances for ``metric="precomputed"``.
        y : any
            Classes, if the law uses them.
        neighbors : optional
            Neighbours that you found; see `CouplingEstimator.fit`.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            When `X` or a parameter is invalid, the method is no cross-entropy whose latent law has prior B, D or E and
            a kernel that is finite at distance 0, or it has a part that needs a place for each point.
        """
        self._validate_params()
        plain = self._plain()
        sentence = plain.sentence
        own = (bool(sentence.terms), "has terms, which name points; leave them out")
        refuse_parts(plain, "give points shared places", own)
        plain._validate_params()
        rng = check_random_state(plain.random_state)
        part = prepare(sentence, Rows(plain._points_of(X), y, neighbors), rng)
        if type(part.coupling) is not CrossEntropy:
            raise ValueError(
                f"{type(plain).__name__} has {type(part.coupling).__name__}, but points can share places under the "
                "cross-entropy only, as of TSNE, SNE and SymmetricSNE."
            )
        plan = Plan(part.coupling, groups_of(part.problem.posterior, self.n_prototypes, rng))
        with threads_kept(), progress_of(plain, sentence.iterations(len(plan.labels))) as show:
            places, solution = _alternate(plan, part, rng, show)
        keep_places(plain, part, places[plan.labels], solution)
        self._take_from(plain)
        self.labels_ = plan.labels
        return self

    @property
    def prototypes_(self) -> FloatArray:
        """The places of the map, which may have been turned."""
        check_is_fitted(self)
        return np.asarray(self.embedding_[np.unique(self.labels_, return_index=True)[1]])

    def report(self) -> list[tuple[str, str]]:
        """Return the laws that were used, the losses and the sizes of clusters, as names and texts."""
        check_is_fitted(self)
        sizes = np.bincount(self.labels_)
        shown = f"{sizes.size}, of {sizes.min()} to {sizes.max()} points; {np.median(sizes):.0f} in the median"
        return [*super().report(), ("places", shown)]

    def update(self, X: Any, move: str = "none", sample_weight: Any = None) -> Self:
        """Raise `ValueError`: new points would have places of their own."""
        raise ValueError("update would give new points places of their own; use transform and predict, or fit again.")

    def uncertainty(self, temperature: float | str = "auto") -> PositionUncertainty:
        """Raise `ValueError`: points that share a place do not move alone."""
        raise ValueError("uncertainty() does not support shared places; fit the plain method.")

    def predict(self, X: Any) -> IntArray:
        """Return the place that is nearest to where `transform` puts each new point, of shape (n_new,)."""
        from sklearn.metrics import pairwise_distances_argmin

        return np.asarray(pairwise_distances_argmin(self.transform(X), self.prototypes_))


def _alternate(plan: Plan, part: Prepared, rng: np.random.RandomState, show: Progress) -> tuple[FloatArray, Solution]:
    """Alternate descents and moves; return the places and the last descent. `show` gets the places of all points."""
    sentence, first = part.sentence, part.first()
    sizes = np.bincount(plan.labels)
    places: FloatArray = np.column_stack([np.bincount(plan.labels, column) for column in first.T]) / sizes[:, None]
    optimizer, n_iter = optimizer_of(sentence, part.problem), 0
    run = run_options(sentence, show)
    if "callback" in run:
        run["callback"] = lambda i, loss, Z: show(n_iter + i, loss, Z[plan.labels])
    for n_rounds in range(1, _MOST_ROUNDS + 1):
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            if n_rounds == 1:
                solution = solve(plan.objective(), places, optimizer, rescale=is_made(sentence.init), **run)
            else:
                solution = solve(bounded(plan.objective(), optimizer), places, LBFGS(), **run | {"n_starts": 1})
        n_iter += solution.n_iter
        places, moved = plan.improve(solution.Z, rng)
        if not moved or solution.stopped:
            break
    for warning in raised:
        warn(warning.message)
    if moved and not solution.stopped:
        warn(
            f"points still moved between places after {n_rounds} rounds; more places, or another random_state, may "
            "settle.",
            ConvergenceWarning,
        )
    return places, replace(solution, n_iter=n_iter)
