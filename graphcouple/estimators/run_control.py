"""Runs that go on: from a checkpoint on disk, or from the last fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import joblib
import numpy as np

from graphcouple import __version__
from graphcouple.estimators.sentence import Sentence
from graphcouple.optimize import Descent, Snapshots

# Parameters that change nothing about the result.
_NO_PART = frozenset({"n_jobs", "verbose", "callback", "checkpoint", "on_interrupt"})


def snapshots_of(
    estimator: Any, rng: np.random.RandomState, resume: bool, **data: Any
) -> tuple[Snapshots | None, np.random.RandomState]:
    """Return where the run of an estimator is kept, if it is, and the random state that the run began with.

    Parameters
    ----------
    estimator : estimator
        With a parameter `checkpoint`.
    rng : numpy.random.RandomState
    resume : bool
        Whether to go on from the file, if there is one.
    **data : any
        The arguments of fit.

    Raises
    ------
    ValueError
        When there is nothing to go on from, or the file is of another run.
    """
    if estimator.checkpoint is None:
        if resume:
            raise ValueError("resume=True goes on from a checkpoint, and checkpoint is None; give it a path.")
        return None, rng
    parameters = {name: value for name, value in estimator.get_params(deep=False).items() if name not in _NO_PART}
    if not isinstance(parameters.get("random_state"), (int, np.integer)):
        # The state that the run began with is in the file.
        parameters.pop("random_state", None)
    run = {"class": type(estimator).__name__, "version of graphcouple": __version__}
    run |= {name: _fingerprint(value) for name, value in {**parameters, **data}.items()}
    kept = Snapshots(estimator.checkpoint, run, {"rng": rng}, resume)
    begun = np.random.RandomState()
    begun.set_state(kept.kept["rng"].get_state())
    return kept, begun


def _fingerprint(value: Any) -> str:
    try:
        return str(joblib.hash(value))
    except Exception:
        # Functions of a session, for one, have no content that can be told.
        return f"{type(value).__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def continued(estimator: Any, sentence: Sentence, X: Any) -> Sentence:
    """Return the sentence of a warm fit, which starts from the last embedding, without exaggeration.

    Raises
    ------
    ValueError
        When the last embedding is of other points.
    """
    if not estimator.warm_start or not hasattr(estimator, "embedding_"):
        return sentence
    last = np.array(estimator.embedding_)
    n_samples = len(last) if X is None else X.shape[0]
    if last.shape != (n_samples, sentence.n_components):
        raise ValueError(
            f"warm_start=True goes on from the last embedding, of shape {last.shape}, but X has {n_samples} rows and "
            f"n_components={sentence.n_components}. Use update() to add points, or a new estimator."
        )
    optimizer = Descent() if isinstance(sentence.optimizer, str) else sentence.optimizer
    if isinstance(optimizer, Descent):
        optimizer = replace(optimizer, early_exaggeration=1.0)
    return sentence.replace(init=last, optimizer=optimizer, n_starts=1)
