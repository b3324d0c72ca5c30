"""How a run is carried out, and runs that continue from a checkpoint on disk or from the last fit."""

from __future__ import annotations

import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from numbers import Number
from types import FunctionType
from typing import Any

import numpy as np
from joblib.hashing import NumpyHasher
from sklearn.utils import check_random_state

from graphcouple import __version__
from graphcouple._numba.base import bytecode_parts, global_names, reads
from graphcouple.estimators._parameters import documented
from graphcouple.estimators._vocabulary import VOCABULARY
from graphcouple.estimators.sentence import Sentence, optimizer_of
from graphcouple.graphs import FloatArray
from graphcouple.optimize import Callback, Descent, Exaggeration, Optimizer, Snapshots
from graphcouple.optimize.exaggeration import NO_EXAGGERATION

# Parameters that do not change the result.
_NO_PART = frozenset({"n_jobs", "verbose", "callback", "checkpoint", "on_interrupt"})


@dataclass(frozen=True)
class RunOptions:
    """How a run is computed, watched and continued: options that no method depends on.

    Estimators take them together, as ``TSNE(run=options)``, or one by one, as ``TSNE(n_starts=3)``.

    {parameters}

    Examples
    --------
    >>> import graphcouple as gc
    >>> thorough = gc.RunOptions(n_starts=3, summation="exact")
    >>> gc.TSNE(run=thorough), gc.UMAP(run=thorough, n_starts=5).n_starts
    (TSNE(run=RunOptions(summation='exact', n_starts=3)), 5)
    """

    summation: Any = "auto"
    n_starts: Any = "auto"
    warm_start: bool = False
    checkpoint: Any = None
    on_interrupt: str = "raise"
    callback: Callback | None = None

    def __repr__(self) -> str:
        values = ((field, getattr(self, field.name)) for field in fields(self))
        changed = (f"{field.name}={value!r}" for field, value in values if not same(value, field.default))
        return f"RunOptions({', '.join(changed)})"

    def __deepcopy__(self, memo: dict[int, Any]) -> RunOptions:
        """Return a copy with the same callback: clones, as wrappers fit them, report to the user's own."""
        return replace(self, summation=copy.deepcopy(self.summation, memo))


def same(value: Any, default: Any) -> bool:
    """Return whether a value is the default, without comparing arrays."""
    return value is default or (type(value) is type(default) and value == default)


RunOptions.__doc__ = documented(RunOptions.__doc__ or "", fields(RunOptions), VOCABULARY)


def snapshots_of(
    estimator: Any, rng: np.random.RandomState, resume: bool, **data: Any
) -> tuple[Snapshots | None, np.random.RandomState]:
    """Return the checkpoint of a run, if there is one, and the generator, in the state with which the run began.

    Raise if there is nothing to continue, or the file is of another run; `data` are the arguments of fit.
    """
    if estimator.checkpoint is None:
        if resume:
            raise ValueError("resume=True continues from a checkpoint, and checkpoint is None; give it a path.")
        return None, rng
    parameters = {name: value for name, value in estimator._flat_params().items() if name not in _NO_PART}
    if not isinstance(parameters.get("random_state"), (int, np.integer)):
        # The state that the run began with is in the file.
        parameters.pop("random_state", None)
    run = {"class": type(estimator).__name__, "version of graphcouple": __version__}
    run |= {name: fingerprint(value) for name, value in {**parameters, **data}.items()}
    begun = copy.deepcopy(rng)
    snapshots = Snapshots(estimator.checkpoint, run, {"rng": begun}, resume)
    # The caller's own generator draws, so that later fits differ.
    if (first := snapshots.kept["rng"]) is begun:
        return snapshots, rng
    if rng is check_random_state(None):
        # NumPy's global generator is not set back.
        return snapshots, copy.deepcopy(first)
    # A run that continues leaves the generator where it was to end.
    rng.set_state(first.get_state())
    return snapshots, rng


class _Hasher(NumpyHasher):
    """joblib's hash, but of the code of functions and classes of one's own, and without values computed once.

    joblib hashes the names of functions, and properties that are cached once they were read.
    """

    def reducer_override(self, value: Any) -> Any:
        """Return how to pickle functions, classes of one's own, and objects with cached properties for hashing."""
        # numba's dispatchers hold the function they compile, and another random number in each process.
        function = getattr(value, "py_func", value) if callable(value) else value
        if isinstance(function, FunctionType):
            state = _content(function)
        elif isinstance(value, type) and _is_own(value):
            # Properties and static methods hold a function.
            parts = {name: getattr(each, "fget", getattr(each, "__func__", each)) for name, each in vars(value).items()}
            kept = {
                name: each
                for name, each in parts.items()
                if isinstance(each, FunctionType) or (_is_fixed(each) and not name.startswith("__"))
            }
            state = [value.__bases__, kept]
        elif cached := _cached(type(value)):
            made: Any = value.__reduce_ex__(4)
            if isinstance(made, str):
                return NotImplemented
            _, arguments, content, *items = (*made, None, None, None)[:5]
            # Attributes may be in slots, too.
            attributes = [part or {} for part in (content if isinstance(content, tuple) else (content,))]
            plain = [sorted(item for item in part.items() if item[0] not in cached) for part in attributes]
            state = [type(value), arguments, plain, *(list(each) for each in items if each is not None)]
        else:
            return NotImplemented
        # A state may lead back to its function: it is hashed when the function is known.
        return str, (), state


def _content(function: FunctionType) -> list[Any]:
    """Return the code of a function, and the constants, also of modules, and functions of its module that it reads.

    Names that the function sets, and containers that it may fill, differ from call to call.
    """
    code = function.__code__
    changing, set_of_others = global_names(code, ("STORE_GLOBAL", "STORE_DEREF")), global_names(code, ("STORE_ATTR",))
    # Closed-over values are in no module.
    own = (function.__globals__.get("__name__"), None)
    values = [
        (name, value)
        for space, name, value in reads(function)
        if name not in (changing if space.get("__name__") in own else set_of_others)
        and (_is_fixed(value) or (callable(value) and getattr(value, "__module__", None) == function.__module__))
    ]
    return [list(bytecode_parts(code)), function.__defaults__, function.__kwdefaults__, values]


def _cached(kind: type) -> set[str]:
    parts = (item for each in kind.__mro__ for item in vars(each).items())
    return {name for name, part in parts if isinstance(part, cached_property)}


def _is_fixed(value: Any) -> bool:
    of_constants = isinstance(value, tuple) and all(map(_is_fixed, value))
    return of_constants or isinstance(value, (Number, str, bytes, np.ndarray))


def _is_own(kind: type) -> bool:
    """Return whether a class derives from one of the library, and is not one of the library."""
    own, *bases = (each.__module__.partition(".")[0] == "graphcouple" for each in kind.__mro__)
    return not own and any(bases)


def fingerprint(value: Any) -> str:
    """Return a text that equal values share, in every process, and others do not."""
    try:
        return str(_Hasher().hash(value))
    except Exception:
        # Some objects, such as open files, cannot be hashed, and the same script must still continue.
        return f"{type(value).__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"


def continued(estimator: Any, sentence: Sentence, X: Any) -> Sentence:
    """Return the sentence of a warm fit, which starts from the last map of the same points, without exaggeration."""
    if not estimator.warm_start or not estimator.__sklearn_is_fitted__():
        return sentence
    last = np.array(estimator.embedding_)
    n_samples = len(last) if X is None else X.shape[0]
    if last.shape != (n_samples, sentence.n_components):
        raise ValueError(
            f"warm_start=True continues from the last embedding, of shape {last.shape}, but X has {n_samples} rows and "
            f"n_components={sentence.n_components}. Use update() to add points, or a new estimator."
        )
    return from_places(sentence, last)


def from_places(sentence: Sentence, Z: FloatArray) -> Sentence:
    """Return the sentence with these places as the start, without exaggeration."""
    # The start has the size of an earlier map, which other parameters may have set: a warning would be wrong.
    return sentence.replace(init=Z, optimizer=_unexaggerated(optimizer_of(sentence)), n_starts=1, continues=True)


def _unexaggerated(optimizer: Any) -> Any:
    """Return an optimizer without exaggeration, its own and of the optimizers among its fields."""
    if isinstance(optimizer, Descent):
        return replace(optimizer, early_exaggeration=1.0)
    changes: dict[str, Any] = {}
    for field in fields(optimizer) if is_dataclass(optimizer) else ():
        part = getattr(optimizer, field.name)
        if field.init and isinstance(part, Exaggeration):
            changes[field.name] = NO_EXAGGERATION
        elif field.init and isinstance(part, Optimizer | Descent):
            changes[field.name] = _unexaggerated(part)
    return replace(optimizer, **changes) if changes else optimizer
