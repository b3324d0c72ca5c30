"""Maps of related data sets, fitted together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from graphcouple._numba.threads import threads_kept
from graphcouple.couplings import AnchorEnergy, Objective, PartOf, TieEnergy
from graphcouple.estimators._parameters import ScikitTransformer, estimator, parameter
from graphcouple.estimators._progress import progress_of
from graphcouple.estimators.base import CouplingEstimator
from graphcouple.estimators.carry_out import Prepared, prepare
from graphcouple.estimators.graph_coupling import GraphCoupling
from graphcouple.estimators.rows import Rows, warn_if_places_are_shared
from graphcouple.estimators.sentence import optimizer_of, refuse_parts, run_options
from graphcouple.estimators.sne import TSNE
from graphcouple.estimators.wrapper import WithTerm, keep_places, own_options
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.initializations import is_made
from graphcouple.metrics import align
from graphcouple.metrics._alignment import shared_rows
from graphcouple.optimize import Descent, Solution, solve


@estimator
class AlignedMaps(ScikitTransformer, auto_wrap_output_keys=None):
    """Maps of related data sets, such as the stages of a process, in which related rows are near each other.

    The sum of all losses and of the ties between related rows is minimised at once:

        Σ_k H_k(Z_k) + w Σ_k Σ_{(i,j) ∈ R_k} ‖z_i^(k) − z_j^(k+1)‖²,

    where R_k pairs rows of data set k with rows of the next one. Each map has its own law, so data sets may differ in
    their columns. Starts are aligned by rotation, and by scale unless all related rows are in one place.

    {parameters}

    Attributes
    ----------
    estimators_ : list of estimators
        The method fitted to each data set, with `transform` and the rest.
    embeddings_ : list of ndarray of shape (n_samples, n_components)
    loss_ : float
        The sum that is minimised.
    map_losses_ : ndarray of shape (n_maps,)
        H_k of each map.
    tie_loss_ : float
        The sum of squared distances of related rows, without w.
    n_iter_ : int
    stop_reason_ : str

    References
    ----------
    Dadu et al. (2023), Application of Aligned-UMAP to longitudinal biomedical studies; there, steps are sampled.

    Examples
    --------
    >>> import numpy as np
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> early, late = X[:100], X[40:]
    >>> related = np.arange(40, 100), np.arange(60)
    >>> aligned = gc.AlignedMaps(gc.TSNE(perplexity=15), random_state=0).fit([early, late], [related])
    >>> [Z.shape for Z in aligned.embeddings_]
    [(100, 2), (110, 2)]
    """

    estimator: Any = parameter(
        default=None,
        kind="GraphCoupling, TSNE, UMAP or another coupling estimator, optional",
        doc="The method of every map; TSNE() by default.",
        checks=[None, CouplingEstimator, WithTerm],
        kw_only=False,
    )
    weight: float = parameter(
        default=0.01,
        kind="float",
        doc="w, above 0 and at most 100, where related rows are in one place. Eight overlapping windows of 400 digits: "
        "at 0.001, 0.01 and 0.1, related rows of t-SNE are 16, 6 and 1 % of the map's radius apart (33 % if fitted "
        "apart), and a point loses .007, .02 and .04 nats.",
        checks=[Interval(Real, 0, 100, closed="right")],
    )
    random_state: Any = parameter(default=None, doc="Overrides the estimator's own, unless None.")
    n_jobs: int | None = parameter(default=None, doc="Overrides the estimator's own, unless None.")

    def fit(self, Xs: Any, relations: Any = None, ys: Any = None) -> Self:
        """Embed each data set.

        Parameters
        ----------
        Xs : sequence of arrays or sparse matrices of shape (n_samples, n_features)
            At least two.
        relations : sequence, optional
            One entry less than data sets: which rows of one are which rows of the next, as a tuple of arrays (i, j), a
            dict {i: j}, an array of rows of both, or a number of first rows. None: all data sets have the same rows.
        ys : sequence of arrays, optional
            Classes of each data set, if the law uses them.

        Returns
        -------
        self

        Raises
        ------
        TypeError, ValueError
            When a data set, a relation or a parameter is invalid, or the method is fitted to a part of the rows, is a
            function of the points, has a start of its own, is curved, or takes sampled steps.
        """
        self._validate_params()
        if not isinstance(Xs, (list, tuple)) or len(Xs) < 2:
            count = f"a list of {len(Xs)}" if isinstance(Xs, (list, tuple)) else type(Xs).__name__
            raise TypeError(f"Xs must be a list of at least two data sets, got {count}; fit one by its method alone.")
        ys = _each("ys", ys, len(Xs), len(Xs))
        relations = _each("relations", relations, len(Xs) - 1, len(Xs))
        methods = [self._method() for _ in Xs]
        rng = check_random_state(methods[0].random_state)
        parts = [_prepared(method, X, y, rng) for method, X, y in zip(methods, Xs, ys, strict=True)]
        sizes = [part.objective.n_points for part in parts]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        starts, ties = [parts[0].first()], []
        for k, relation in enumerate(relations):
            i, j = _related(relation, sizes[k], sizes[k + 1], f"relations[{k}]")
            starts.append(align(parts[k + 1].first(), to=starts[-1], shared=(j, i), scale=True))
            ties.append((offsets[k] + i, offsets[k + 1] + j))
        tie = TieEnergy(int(offsets[-1]), *(np.concatenate(ends) for ends in zip(*ties, strict=True)))
        maps = [PartOf(part.objective, tie.n_points, int(at)) for part, at in zip(parts, offsets, strict=False)]
        objective = sum(maps[1:], maps[0]) + self.weight * tie
        solution = _descend(objective, np.concatenate(starts), methods[0], parts[0], max(sizes))
        places = np.split(solution.Z, offsets[1:-1])
        self.estimators_ = [_fitted(*each, solution) for each in zip(methods, parts, places, strict=True)]
        self.map_losses_ = np.array([method.loss_ for method in methods])
        self.tie_loss_, self.loss_ = tie.value(solution.Z), solution.loss
        self.n_iter_, self.stop_reason_ = solution.n_iter, solution.message
        return self

    def fit_transform(self, Xs: Any, relations: Any = None, ys: Any = None) -> list[FloatArray]:
        """Embed each data set, and return the maps; see `fit`."""
        return self.fit(Xs, relations, ys).embeddings_

    def update(self, X: Any, relations: Any = None, y: Any = None) -> Self:
        """Add a data set after the last one; the maps so far stay as they are.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        relations : optional
            Which rows of the last data set are which rows of `X`; see `fit`.
        y : array, optional

        Returns
        -------
        self

        Raises
        ------
        NotFittedError, TypeError, ValueError
            See `fit`.
        """
        last = self.embeddings_[-1].astype(np.float64)
        method = self._method()
        part = _prepared(method, X, y, check_random_state(method.random_state))
        n = part.objective.n_points
        i, j = _related(relations, len(last), n, "relations")
        tie = AnchorEnergy(n, j, last[i])
        start = align(part.first(), to=last, shared=(j, i), scale=True)
        solution = _descend(part.objective + self.weight * tie, start, method, part, n)
        self.estimators_ = [*self.estimators_, _fitted(method, part, solution.Z, solution)]
        self.map_losses_ = np.append(self.map_losses_, method.loss_)
        self.tie_loss_ += tie.value(solution.Z)
        self.loss_ = float(self.map_losses_.sum() + self.weight * self.tie_loss_)
        self.n_iter_, self.stop_reason_ = solution.n_iter, solution.message
        return self

    @property
    def embeddings_(self) -> list[FloatArray]:
        """The map of each data set."""
        check_is_fitted(self, "estimators_")
        return [method.embedding_ for method in self.estimators_]

    @property
    def _n_features_out(self) -> int:
        return self.embeddings_[0].shape[1]

    def _method(self) -> CouplingEstimator:
        """Return the method of a map, if several maps can be fitted with it."""
        method = TSNE() if self.estimator is None else clone(self.estimator)
        sentence = method.sentence
        start = (not is_made(sentence.init), "starts from an array, with the rows of one data set; use a named init")
        refuse_parts(method, "be aligned", start, (sentence.names_rows, "has terms that name rows"))
        if not isinstance(method, CouplingEstimator):
            method = GraphCoupling(**sentence)
        return method.set_params(**own_options(self))


def _each(name: str, values: Any, n: int, n_sets: int) -> list[Any]:
    """Return one value for each data set or pair of data sets; None for each by default."""
    if values is None:
        return [None] * n
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"{name} must be a list with one entry for each, got {type(values).__name__}.")
    if len(values) != n:
        raise ValueError(f"{name} has {len(values)} entries, but {n_sets} data sets need {n}.")
    return list(values)


def _related(relation: Any, n_rows: int, n_next: int, name: str) -> tuple[IntArray, IntArray]:
    if isinstance(relation, Mapping):
        relation = tuple(np.array(list(rows) or np.empty(0, int)) for rows in (relation, relation.values()))
    if isinstance(relation, bool) or not isinstance(relation, (int, np.integer, np.ndarray, list, tuple, type(None))):
        raise TypeError(f"{name} must be a dict, a tuple of two arrays or an array, got {type(relation).__name__}.")
    return shared_rows(relation, n_rows, n_next, name, ("a data set", "the next"))


def _prepared(method: CouplingEstimator, X: Any, y: Any, rng: np.random.RandomState) -> Prepared:
    method._validate_params()
    return prepare(method.sentence, Rows(method._points_of(X), y), rng)


@dataclass(frozen=True)
class _DescentOfMaps(Descent):
    """Descent with the iterations that suit the largest map, as maps do not repel each other, and half as many more."""

    largest: int = 1

    def suited_iterations(self, n_points: int) -> int:
        return 3 * super().suited_iterations(self.largest) // 2


def _descend(objective: Objective, start: FloatArray, method: CouplingEstimator, part: Prepared, most: int) -> Solution:
    """Return where descent with a method's options ends; its callback sees all maps, one below the other."""
    sentence = part.sentence
    with threads_kept(), progress_of(method, sentence.iterations(most)) as show:
        optimizer = optimizer_of(sentence, part.problem)
        if isinstance(optimizer, Descent):
            optimizer = _DescentOfMaps(**vars(optimizer), largest=most)
        return solve(objective, start, optimizer, rescale=True, **run_options(sentence, show))


def _fitted(method: CouplingEstimator, part: Prepared, Z: FloatArray, solution: Solution) -> CouplingEstimator:
    if part.problem.X is not None and solution.converged and not part.terms:
        warn_if_places_are_shared(part.problem.X, Z)
    return keep_places(method, part, Z, solution)
