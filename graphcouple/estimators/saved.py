"""Reading saved estimators."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator
from typing import Any

from sklearn.base import BaseEstimator

from graphcouple import couplings, kernels, laws, neighbors, optimize, summation
from graphcouple._support.storage import damages_named, read
from graphcouple.couplings import fixed_map, matching
from graphcouple.estimators import rows
from graphcouple.estimators.embedding import EmbeddingEstimator
from graphcouple.graphs import Support
from graphcouple.laws import copies, priors


def known_classes() -> dict[str, Any]:
    """Return the classes of graphcouple whose objects a saved estimator may hold, by name."""
    from graphcouple import estimators

    bases = (BaseEstimator, fixed_map.FixedMap, summation.Summation)
    own = (couplings, fixed_map, kernels, laws, matching, neighbors, optimize, priors, summation)
    known: dict[str, Any] = {
        name: made
        for module in (*own, estimators, rows)
        for name, made in vars(module).items()
        if isinstance(made, type) and (dataclasses.is_dataclass(made) or issubclass(made, bases))
    }
    known |= {law.__name__: law for law in (*_laws_of_graphs(priors.RandomGraph), copies.Copies)}
    return known | {"Support": Support.checked, "EqualRows": rows.EqualRows.checked}


def _laws_of_graphs(base: type) -> Iterator[type]:
    """Yield the classes of graphcouple below a base class."""
    below: list[type] = base.__subclasses__()
    for made in below:
        if made.__module__.partition(".")[0] == __name__.partition(".")[0]:
            yield made
            yield from _laws_of_graphs(made)


def load(path: str | os.PathLike[str], classes: Iterable[type] = ()) -> Any:
    """Return a fitted estimator that was saved by its method ``save``.

    Nothing in the file is run. It holds arrays, and objects by the names of classes, of graphcouple or among `classes`.

    Parameters
    ----------
    path : str or path
    classes : iterable of type, default=()
        Your own classes, such as a kernel, that the estimator uses.

    Returns
    -------
    estimator
        Fitted. Its `transform` returns the same bits as before.

    Raises
    ------
    ValueError
        When the file is not a saved estimator, was written by a newer graphcouple, or names an unknown class.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import graphcouple as gc
    >>> X, y = gc.datasets.load("iris")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     gc.UMAP(random_state=0, max_iter=50).fit(X).save(pathlib.Path(folder) / "iris.gc")
    ...     gc.load(pathlib.Path(folder) / "iris.gc")
    UMAP(max_iter=50, random_state=0)
    """
    known = known_classes() | {made.__name__: made for made in classes}
    saved = read(path, known)
    kind = known.get(str(saved.get("class")))
    if not (isinstance(kind, type) and issubclass(kind, EmbeddingEstimator)):
        raise ValueError(
            f"{os.fspath(path)} holds an estimator of class {saved.get('class')!r}, which graphcouple does not have; "
            "if it is your own, pass it in classes=."
        )
    with damages_named(path):
        return kind._loaded(saved)
