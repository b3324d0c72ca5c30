"""Run a sentence: the law of the input's graph, the coupling and its terms, the start and the descent.

Coupling estimators are shells around this module: each states its sentence and keeps the result of running it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphcouple._numba.threads import one_blas_thread
from graphcouple._support.validation import errors_named, seeded_clone, warn
from graphcouple.couplings import Held, Objective, Problem, Term
from graphcouple.couplings.fixed_map import FixedMap, Placing
from graphcouple.couplings.network import Network, OfNetwork, weight_decay
from graphcouple.couplings.parametric import FeatureBasis, FeatureMap, OfFeatures
from graphcouple.couplings.recipes import as_coupling, with_terms
from graphcouple.estimators._progress import Progress
from graphcouple.estimators.rows import Rows
from graphcouple.estimators.sentence import Sentence, optimizer_of, run_options
from graphcouple.graphs import FloatArray, IntArray
from graphcouple.initializations import initialize, is_made
from graphcouple.kernels.check import require_sound
from graphcouple.laws import ConditionedLaw, GraphLaw
from graphcouple.laws.priors import GraphPosterior, RandomGraph
from graphcouple.optimize import LBFGS, Callback, Descent, MiniBatches, NegativeSampling, Snapshots, Solution, solve
from graphcouple.summation import KernelValue, as_summation
from graphcouple.summation.accuracy import warn_if_inaccurate
from graphcouple.summation.curved import Space, in_space
from graphcouple.summation.near_cells import morton_keys

# From this many points on, points are reordered so that neighbours are near each other in memory.
_MANY_POINTS = 250_000

# Points of a run, about as many as a list of the search among a million points has. Runs are ordered by the start.
_RUN = 512

# The penalty on a network's weights, as in scikit-learn. With 1, held-out digits were placed no better, and the loss
# was .04 nats a point higher.
_DECAY = 1e-4

# Networks whose loss is this much above the plain map's, in nats a point, are reported. It is below .01 on the digits,
# counts, noise and one-hot rows, and .3 to 1 on clusters that are far from each other for their size.
_MOST_LOST = 0.1


@dataclass(frozen=True)
class Prepared:
    """A sentence bound to its points, before descent: the coupling alone, and each term with its weight.

    `law` is None if the input is a graph or a posterior. With an `order`, the coupling's i-th point is row
    `order[i]`, whereas results have the order of the rows; the `start` was then made before the points were reordered.
    """

    sentence: Sentence
    problem: Problem
    coupling: Objective
    terms: tuple[tuple[float, Objective], ...]
    law: ConditionedLaw | None
    order: IntArray | None = None
    start: FloatArray | None = None

    @property
    def objective(self) -> Objective:
        """The coupling with its terms."""
        return with_terms(self.coupling, self.terms)

    def first(self) -> FloatArray:
        """Return the start."""
        return _start(self.sentence, self.problem) if self.start is None else self.start

    def result(self, solution: Solution) -> Result:
        """Return the result whose points are where descent ended."""
        if self.order is not None:
            solution = replace(solution, Z=solution.Z[np.argsort(self.order)])
        return Result(solution, self)


@dataclass(frozen=True)
class Result:
    """The solution, in the order of the rows, and the map as a function of the points, if it is one."""

    solution: Solution
    part: Prepared
    function: FeatureMap | Network | None = None

    def for_coupling(self, Z: FloatArray) -> FloatArray:
        """Return an embedding of the rows in the order that the coupling takes."""
        return Z if self.part.order is None else Z[self.part.order]

    def fixed_map(self, Z: FloatArray) -> FixedMap | None:
        """Return an embedding of the rows as it attracts and repels new points, if the coupling can place them."""
        coupling, order = self.part.coupling, self.part.order
        fixed = coupling.fixed_map(self.for_coupling(Z)) if isinstance(coupling, Placing) else None
        return fixed if fixed is None or order is None else fixed.reordered(np.argsort(order))


def conditioned_law(sentence: Sentence, rows: Rows) -> ConditionedLaw | None:
    """Return the input's law with its points; None if the input is a graph or a posterior."""
    for law in (sentence.input, sentence.latent):
        for kernel in law.kernels if isinstance(law, GraphLaw) else ():
            require_sound(kernel, moves=law is sentence.latent)
    if isinstance(sentence.input, GraphLaw):
        classes = rows.y if rows.codes is None else rows.codes
        return sentence.input.given(rows.X, rows.neighbors, rows.weights, classes)
    for name, value in (("neighbors", rows.neighbors), ("sample_weight", rows.weights)):
        if value is not None:
            raise ValueError(
                f"{name} cannot be used when `input` is a graph or a posterior. Pass a GraphModel as input."
            )
    return None


def posterior_of(sentence: Sentence, X: Any, law: ConditionedLaw | None, n_jobs: int | None = None) -> RandomGraph:
    """Return the law of the input's graph: from points, as given, or with the user's own graph as its mean."""
    if law is not None:
        return law.posterior(n_jobs)
    own = sentence.input
    posterior = own if isinstance(own, RandomGraph) else sentence.latent.prior.around(own, "input")
    if X is not None and posterior.n_nodes != X.shape[0]:
        raise ValueError(f"input has {posterior.n_nodes} nodes, but X has {X.shape[0]} rows; the numbers must match.")
    return posterior


def carry_out(
    sentence: Sentence,
    rows: Rows,
    rng: np.random.RandomState,
    *,
    watch: Progress,
    snapshots: Snapshots | None = None,
    start: FloatArray | None = None,
    held: Any = None,
) -> Result:
    """Embed rows with the method that a sentence describes.

    With a `start`, descent continues from there, whatever the sentence's start and optimizer, and the `held` points
    stay.
    """
    part = prepare(sentence, rows, rng, reorders=start is None)
    run = run_options(sentence, watch) | {"snapshots": snapshots}
    run["callback"] = _of_rows(run.get("callback"), part.order)
    if start is not None:
        return part.result(_continue_run(part.objective, start, held, run))
    first = part.first()
    run["rescale"] = None if sentence.get("continues") else is_made(sentence.init)
    if sentence.get("features") is not None:
        by = _of_network if is_network(sentence.features) else _of_features
        solution, function = by(sentence, part.problem, part.objective, first, run)
        return replace(part.result(solution), function=function)
    optimizer = optimizer_of(sentence, part.problem)
    solution = solve(part.objective, first, optimizer, **run)
    if as_coupling(sentence.coupling).places_points and not _draws_pairs(optimizer, part.objective, first):
        warn_if_inaccurate(part.problem.summation, solution.Z, KernelValue(sentence.latent.kernel))
    return part.result(solution)


def _draws_pairs(optimizer: Any, objective: Objective, Z: FloatArray) -> bool:
    """Return whether descent draws pairs of points instead of summing over all."""
    chosen = isinstance(optimizer, Descent) and optimizer.samples(objective, Z)
    return chosen or isinstance(optimizer, NegativeSampling)


def prepare(sentence: Sentence, rows: Rows, rng: np.random.RandomState, *, reorders: bool = False) -> Prepared:
    """Return a sentence bound to rows, which are reordered if they are many and may be."""
    n_jobs = sentence.get("n_jobs")
    law = conditioned_law(sentence, rows)
    posterior = posterior_of(sentence, rows.X, law, n_jobs)
    if posterior.support.n_edges == 0:
        raise ValueError(
            "the input's graph has no edges, so there is nothing to embed. Raise n_neighbors, since copies of a point "
            "count among its neighbors, or give a graph that has edges."
        )
    problem = _problem(sentence, rows, posterior, rng)
    order, first = _order_of(sentence, posterior, law) if reorders else None, None
    if order is not None and isinstance(posterior, GraphPosterior):
        start = _start(sentence, problem)
        if not is_made(sentence.init) or sentence.init != "random":
            order = _along(order, start, n_jobs)
        first = start[order]
        posterior = posterior.renumbered(order, n_jobs)
        problem = replace(problem, posterior=posterior)
    if law is not None and isinstance(posterior, GraphPosterior) and needs_means_once(sentence):
        posterior.recompute = lambda: _parameters_of(law, order, n_jobs)
    return Prepared(sentence, problem, *_bound(sentence, problem), law, order, first)


def _bound(sentence: Sentence, problem: Problem) -> tuple[Objective, tuple[tuple[float, Objective], ...]]:
    # Terms draw from a copy of the generator, so that they do not change the start.
    coupling, own = as_coupling(sentence.coupling).bind(problem), replace(problem, rng=copy.deepcopy(problem.rng))
    return coupling, tuple(_weighed(term, own) for term in sentence.terms)


def _of_features(
    sentence: Sentence, problem: Problem, objective: Objective, start: FloatArray, run: dict[str, Any]
) -> tuple[Solution, FeatureMap]:
    """Descend in the coefficients of the features; return the solution and the map as a function of the points."""
    features = None if isinstance(sentence.features, str) else seeded_clone(sentence.features, problem.rng)
    basis = FeatureBasis.of(problem.points, features)
    if (watch := run["callback"]) is not None:
        run |= {"callback": lambda iteration, loss, theta: watch(iteration, loss, basis.values @ theta)}
    # Coefficients are fewer than points, but cost as much: one start, and the iterations that suit the points.
    optimizer, run = optimizer_of(sentence, problem), run | {"max_iter": sentence.iterations(len(start))}
    if isinstance(optimizer, MiniBatches):
        raise ValueError("MiniBatches moves points one by one, and the map is a function of them all; use LBFGS().")
    solution = solve(OfFeatures(objective, basis.values), basis.coefficients(start), optimizer, **run)
    return replace(solution, Z=basis.values @ solution.Z), basis.function(solution.Z)


def is_network(features: Any) -> bool:
    """Return whether `features` names a network, rather than features that the map combines linearly."""
    if isinstance(features, str):
        return features == "network"
    return hasattr(features, "predict") and not hasattr(features, "transform")


def _of_network(
    sentence: Sentence, problem: Problem, objective: Objective, start: FloatArray, run: dict[str, Any]
) -> tuple[Solution, Network]:
    """Fit a network to the plain map by regression, and descend in its parameters; return both results."""
    X, optimizer, features = problem.points, optimizer_of(sentence, problem), sentence.features
    plain = solve(objective, start, optimizer, **run)
    network = Network.like(features, X, plain.Z.astype(np.float64), problem.seed())
    points = network.standardized(X)
    if plain.stopped:
        # Who stops the plain map waits for no second descent; regression is short.
        Z = network(X)
        return replace(plain, Z=Z, loss=objective.value(Z)), network
    first = plain.n_iter
    if (watch := run["callback"]) is not None:
        run["callback"] = lambda n, loss, theta: watch(first + n, loss, network.with_parameters(theta).places(points))
    run |= {"max_iter": sentence.iterations(len(points)), "rescale": False, "n_starts": 1}
    decay = 0.5 * getattr(features, "alpha", _DECAY)
    loss = OfNetwork(bounded(objective, optimizer), network, points)
    with one_blas_thread():
        solution = solve(loss + decay * weight_decay(network) if decay else loss, network.parameters, LBFGS(), **run)
    fitted = network.with_parameters(solution.Z)
    Z = fitted(X)
    value = objective.value(Z)
    if (lost := (value - plain.loss) / len(points)) > _MOST_LOST:
        warn(
            f"the network's loss is {lost:.2f} nats a point above the loss of freely moving points; equal rows share a "
            "place. Wider layers come nearer: MLPRegressor(hidden_layer_sizes=(300, 300), activation='tanh', "
            "solver='lbfgs') as features."
        )
    both = replace(
        solution,
        Z=Z,
        loss=value,
        n_iter=first + solution.n_iter,
        loss_history=np.concatenate([plain.loss_history, solution.loss_history]),
        iterations=np.concatenate([plain.iterations, first + solution.iterations]),
        start_losses=plain.start_losses,
    )
    return both, fitted


def bounded(objective: Objective, optimizer: Any) -> Objective:
    """Return the objective with the bound on the size of the map that an optimizer adds, if it adds one."""
    bound = optimizer.bound(objective) if isinstance(optimizer, Descent) else None
    return objective if bound is None else objective + bound


def objective_of(sentence: Sentence, X: Any, posterior: RandomGraph, rng: np.random.RandomState) -> Objective:
    """Return the loss, the coupling with its terms."""
    return with_terms(*_bound(sentence, _problem(sentence, Rows(X), posterior, rng)))


def _start(sentence: Sentence, problem: Problem) -> FloatArray:
    X, n = problem.X, problem.posterior.n_nodes
    return initialize(
        sentence.init,
        X,
        problem.posterior,
        sentence.n_components,
        problem.rng,
        metric=problem.metric,
        dtype=problem.summation.points_dtype(n, np.float64 if X is None else X.dtype),
        n_jobs=problem.n_jobs,
        y=problem.y,
    )


def _order_of(sentence: Sentence, posterior: RandomGraph, law: ConditionedLaw | None) -> IntArray | None:
    """Return an order of many points that puts neighbours close in memory; None if points must keep their numbers."""
    plain = not sentence.terms and sentence.get("features") is None
    if law is None or law.weights is not None or posterior.n_nodes < _MANY_POINTS or not plain:
        return None
    named = as_coupling(sentence.coupling).reads_points or sentence.latent.prior.edges(posterior.n_nodes) is not None
    descends = isinstance(posterior, GraphPosterior) and isinstance(optimizer_of(sentence), Descent)
    return law.order if descends and not named else None


def _along(order: IntArray, start: FloatArray, n_jobs: int | None) -> IntArray:
    """Return the order with its runs of neighbours along a curve through the start, and the points of each run too.

    Unless the start is random, points near in it are mostly near in the map. Sums over a million points then take a
    tenth less time.
    """
    places = start[order, :2]
    runs = np.arange(order.size) // _RUN
    sums = [np.bincount(runs, weights=column) for column in places.T]
    rank = np.argsort(np.argsort(morton_keys(np.column_stack(sums) / np.bincount(runs)[:, None])))
    return order[np.lexsort([morton_keys(places, n_jobs), rank[runs]])]


def _of_rows(watch: Callback | None, order: IntArray | None) -> Callback | None:
    """Return a callback that sees the rows in their own order while point i is row `order[i]`."""
    if watch is None or order is None:
        return watch
    rank = np.argsort(order)
    return lambda iteration, loss, Z: watch(iteration, loss, Z[rank])


def needs_means_once(sentence: Sentence) -> bool:
    """Return whether only the coupling needs the edge means; they are then not stored."""
    starts_without = not is_made(sentence.init) or sentence.init in ("pca", "random")
    return starts_without and not sentence.terms and isinstance(optimizer_of(sentence), Descent)


def _parameters_of(law: ConditionedLaw, order: IntArray | None, n_jobs: int | None) -> FloatArray:
    posterior = law.posterior(n_jobs)
    assert isinstance(posterior, GraphPosterior)
    return (posterior if order is None else posterior.renumbered(order, n_jobs)).natural_parameters


def _problem(sentence: Sentence, rows: Rows, posterior: RandomGraph, rng: np.random.RandomState) -> Problem:
    for term in sentence.terms:
        if not isinstance(term, Term):
            raise TypeError(f"terms must hold Terms such as ComponentMeans(), got {term!r}.")
    for recipe in (as_coupling(sentence.coupling), *sentence.terms):
        if isinstance(sentence.latent.metric, Space) and not recipe.any_space:
            raise ValueError(
                f"{recipe} measures Euclidean distances, but the latent law is of {sentence.latent.metric}; drop it, "
                "or use a Euclidean map."
            )
    law = sentence.input if isinstance(sentence.input, GraphLaw) else None
    summation = as_summation(sentence.get("summation", "auto"), sentence.get("n_jobs"))
    return Problem(
        X=rows.X,
        y=rows.y,
        posterior=posterior,
        latent=sentence.latent,
        n_components=sentence.n_components,
        summation=in_space(sentence.latent, summation.of_run()),
        metric="euclidean" if law is None else law.metric,
        rng=rng,
        n_jobs=sentence.get("n_jobs"),
        metric_params=None if law is None else law.metric_params,
    )


def _weighed(term: Term, problem: Problem) -> tuple[float, Objective]:
    with errors_named(f"{type(term).__name__} in terms"):
        objective = term.bind(problem)
        if not isinstance(objective, Objective):
            raise TypeError(f"bind must return an Objective, got {objective!r}.")
        return term.weight_of(objective, problem), objective


def _continue_run(objective: Objective, start: FloatArray, held: Any, run: dict[str, Any]) -> Solution:
    if np.all(held):
        loss = objective.value(start)
        return Solution(start, loss, 0, True, "all points are held", np.array([loss]), np.array([0]))
    return solve(Held(objective, held), start, LBFGS(), **run | {"n_starts": 1})
