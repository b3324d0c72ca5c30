"""What must hold of every fit."""

from __future__ import annotations

import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import graphcouple
from graphcouple.couplings import Objective, Problem
from graphcouple.couplings.recipes import as_coupling, with_terms
from graphcouple.summation import as_summation
from tests.fuzz.cases import Case

PACKAGE = Path(graphcouple.__file__).parent

# Errors that speak of what goes on inside say nothing to a user.
_INNER = (
    "ARPACK",
    "infs or NaNs",
    "out of bounds",
    "ingular matrix",
    "broadcast",
    "cannot reshape",
    "not supported between",
)


# Nats for each point. At 0.23 the map has the size that the bound allows, and at 1 it is 1.6 times as wide.
_WIDEST = 1.0


def failure(case: Case, ended: Counter[tuple[str, bool]] | None = None) -> str | None:
    """Return what is wrong with a case, or None; count in `ended` whether the estimator fitted or refused it."""
    ended, name = Counter() if ended is None else ended, type(case.estimator).__name__
    before = _bytes(case.X)
    found = []
    for jobs in (1, 2):
        estimator = case.estimator
        if "n_jobs" in estimator.get_params():
            estimator.set_params(n_jobs=jobs)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                Z = estimator.fit_transform(case.X, **({} if case.weights is None else {"sample_weight": case.weights}))
            except (ValueError, TypeError) as error:
                ended[name, False] += 1
                return wrong_error(error) or _changed(case, before)
            except Exception as error:
                return f"{type(error).__name__}: {error}"
        inner = [w for w in said if issubclass(w.category, (RuntimeWarning, DeprecationWarning, FutureWarning))]
        if inner:
            return f"inner warning {inner[0].category.__name__}: {inner[0].message} ({inner[0].filename})"
        found.append(Z)
    ended[name, True] += 1
    Z = np.asarray(found[0])
    n = case.X.shape[0] if hasattr(case.X, "shape") else len(case.X)
    if "not a number" in case.what:
        return "NaN was accepted"
    if Z.shape[0] != n or not np.isfinite(Z).all():
        return f"embedding of shape {Z.shape} with {int((~np.isfinite(Z)).sum())} entries that are not finite"
    # PrecisionCoupling says that its last bits may differ.
    if not np.array_equal(*found) and not isinstance(case.estimator, graphcouple.PrecisionCoupling):
        return f"bits depend on n_jobs, by {np.abs(found[0] - found[1]).max():.1e}"
    silent = not any(any(word in str(w.message) for word in ("collapsed", "only 0 of", "one place")) for w in said)
    if np.ptp(Z, axis=0).max() == 0 and _differs(case.X) and silent:
        return "all points are in one place, without a word"
    warned = any(issubclass(w.category, UserWarning) for w in said)
    shares = isinstance(case.estimator, graphcouple.DistR) or not hasattr(case.estimator, "coupling_loss_")
    few = None if shares else _few_places(case.X, Z)
    if few and not warned and not case.estimator.stop_reason_.startswith("stopped"):
        return f"{few} in a map that settled without a word"
    fitted = getattr(case.estimator, "estimator_", case.estimator)
    return _wrong_loss(fitted, warned) or _wrong_law(fitted, warned) or _changed(case, before)


def _few_places(X: Any, Z: Any) -> str | None:
    """Return how many places different rows share, if most of them do."""
    rows, size = len(np.unique(_dense(X).astype(np.float64), axis=0)), float(np.ptp(Z, axis=0).max()) or 1.0
    places = len(np.unique(np.round(1e7 * (Z - Z.mean(axis=0)) / size), axis=0))
    return f"{places} places for {rows} different rows" if 2 * places < rows else None


def _wrong_law(estimator: Any, warned: bool) -> str | None:
    """Return what is wrong with the law of the input's graph, if it is known and rows count once."""
    law = getattr(estimator, "posterior_", None) if hasattr(estimator, "coupling_loss_") else None
    if law is None or law.node_weights is not None:
        return None
    means, n = law.edge_means, law.n_nodes
    sums = np.bincount(law.support.rows, means, n)
    bandwidth = getattr(estimator._given.law, "bandwidth", None) if estimator._given is not None else None
    if (means < 0).any() or (law.code in "BD" and (means > 1.0 + 1e-9).any()):
        return f"edges have means from {means.min():g} to {means.max():g}"
    if law.code == "D" and not np.allclose(sums, 1.0, rtol=1e-9):
        return f"rows of a law D sum to {sums.min():g} to {sums.max():g}"
    if law.code == "E" and not np.isclose(sums.sum(), n, rtol=1e-9):
        return f"edges of a law E sum to {sums.sum():g}, not {n}"
    if law.code == "D" and isinstance(bandwidth, graphcouple.Perplexity) and not warned:
        off = law.entropy() / n - np.log(bandwidth.perplexity)
        if abs(off) > 1e-4:
            return f"the entropy of rows is {off:g} nats off that of the perplexity"
    if getattr(estimator, "kl_divergence_", 0.0) < -1e-9 * n:
        return f"a KL divergence of {estimator.kl_divergence_:g}"
    return None


def _wrong_loss(estimator: Any, warned: bool) -> str | None:
    """Return how far `loss_` is from the exact objective of the embedding, if it is."""
    if not hasattr(estimator, "coupling_loss_") or estimator.landmarks_ is not None:
        return None
    # Most terms draw graphs or pairs.
    if not all(isinstance(term, graphcouple.Anchors) for term in estimator.sentence.get("terms", ())):
        return None
    with warnings.catch_warnings():
        # The fit has warned already.
        warnings.simplefilter("ignore")
        objective = exact_objective(estimator)
    Z = estimator._places.astype(np.float64)
    exact = objective.value(Z)
    bound = None if objective.attracting is None else objective.attracting.confinement()
    if bound is not None and not warned and bound.value(Z) > _WIDEST * len(Z):
        return f"the map is {np.ptp(Z, axis=0).max():g} wide, where the bound on its size is {bound.value(Z):g}"
    n, q = estimator.embedding_.shape
    off = abs(estimator.loss_ - exact) / max(abs(exact), float(n))
    # `summation.Auto` promises 1e-3, and an estimate of 1 to 3 % beyond two dimensions; few points are summed exactly.
    promised = 1e-4 if n <= 1000 else 1e-3 if q <= 2 else 5e-2
    return f"loss_ is {estimator.loss_!r}, but the objective {exact!r}" if off > promised else None


def exact_objective(estimator: Any) -> Objective:
    """Return the objective of a fitted estimator, summed exactly in double precision."""
    said = estimator.sentence
    problem = Problem(
        X=estimator._given.X,
        y=None,
        posterior=estimator.posterior_,
        latent=said.latent,
        n_components=said.n_components,
        summation=as_summation("exact"),
        metric=estimator._given.law.metric,
        rng=np.random.RandomState(0),
        n_jobs=None,
    )
    return with_terms(
        as_coupling(said.coupling).bind(problem), [(term.weight, term.bind(problem)) for term in said.get("terms", ())]
    )


def wrong_error(error: Exception) -> str | None:
    """Return what is wrong with an error: it speaks of what goes on inside, or comes from elsewhere."""
    text = str(error)
    last = traceback.extract_tb(error.__traceback__)[-1].filename
    if not text or any(word in text for word in _INNER):
        return f"unclear {type(error).__name__}: {text[:200]} ({last})"
    ours = Path(last).is_relative_to(PACKAGE) or "sklearn/utils" in last
    return None if ours else f"{type(error).__name__} from inside: {text[:200]} ({last})"


def _dense(X: Any) -> Any:
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def _differs(X: Any) -> bool:
    return bool(np.ptp(_dense(X).astype(np.float64), axis=0).max() > 0)


def _bytes(X: Any) -> bytes:
    return np.ascontiguousarray(_dense(X)).tobytes()


def _changed(case: Case, before: bytes) -> str | None:
    return None if _bytes(case.X) == before else "the data were changed"
