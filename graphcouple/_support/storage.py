"""Models on disk: arrays and JSON in one zip file. Nothing in a file is ever run, so files from others are safe.

A file holds ``model.json``, a tree of plain values, and the arrays that it names. An object is written as the name of
its class and its parameters, and read only if the reader knows the class.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import json
import os
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from numpy.typing import NDArray

from graphcouple._support.validation import MOST_BYTES, check_sparse

FORMAT = "graphcouple model"
VERSION = 2
"""The version of the format; it rises whenever an older reader would misunderstand a file."""


def _without_strengths(tree: Any) -> Any:
    """Return a tree without the argument that `MatchedMap` no longer has."""
    if isinstance(tree, list):
        return [_without_strengths(part) for part in tree]
    if not isinstance(tree, dict):
        return tree
    copy = {name: _without_strengths(part) for name, part in tree.items()}
    if copy.get("class") == "MatchedMap":
        copy["with"].pop("strength", None)
    return copy


UPGRADES: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _without_strengths}
"""For each older version, the function that turns its ``model.json`` into the next version's."""

_TREE = "model.json"

# Exceptions that reading raises if a file was not written by `write`, or was changed since.
_DAMAGES = (
    *(AttributeError, EOFError, KeyError, IndexError, NotImplementedError, OverflowError, RecursionError, RuntimeError),
    *(TypeError, UnicodeDecodeError, json.JSONDecodeError, zipfile.BadZipFile, zlib.error),
)

# Numbers in the state of numpy's Mersenne Twister.
_TWISTER = 624


def write(path: str | os.PathLike[str], content: dict[str, Any], kind: str = FORMAT) -> None:
    """Write values, arrays and objects to a file, which replaces an older one only when it is complete.

    `content` may hold plain values, arrays, sparse matrices, dataclasses, scikit-learn estimators, objects that have an
    attribute for every argument of their constructor, `functools.partial` of a class, and lists, tuples and dicts of
    these. `read` checks the kind of the file.
    """
    encoder = _Encoder()
    tree = {"format": kind, "version": VERSION, "content": encoder.encode(content, "the model")}
    if Path(path).is_dir():
        raise ValueError(f"{os.fspath(path)!r} is a folder; give the name of a file in it.")
    target = Path(path)
    with finished_files(target) as drafts, zipfile.ZipFile(drafts[target], "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_TREE, json.dumps(tree, indent=1))
        for name, array in encoder.arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                npy.write_array(entry, array, allow_pickle=False)


@contextmanager
def finished_files(*targets: Path | None) -> Iterator[dict[Path, Path]]:
    """Yield a temporary path beside each target that is not None; move all to them only if the block succeeds.

    Symbolic links stay; the files that they point to are replaced, and keep their permissions.
    """
    files = {target: target.resolve() for target in targets if target is not None}
    drafts: dict[Path, Path] = {}
    try:
        for target, file in files.items():
            handle, name = tempfile.mkstemp(prefix=".", suffix=file.suffix, dir=file.parent)
            os.close(handle)
            drafts[target] = Path(name)
        yield drafts
        for target, draft in drafts.items():
            draft.chmod(_mode_of(files[target]))
            draft.replace(files[target])
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)


def _mode_of(target: Path) -> int:
    """Return the permissions of the file that is replaced, or of a new file."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask


def read(path: str | os.PathLike[str], classes: Mapping[str, type], kind: str = FORMAT) -> dict[str, Any]:
    """Return the content that `write` wrote; only objects of these `classes`, given by name, are created."""
    with damages_named(path):
        return _read(path, classes, kind)


@contextmanager
def damages_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise a `ValueError` that names the file for the errors that damaged content leads to."""
    try:
        yield
    except _DAMAGES as error:
        raise ValueError(
            f"{os.fspath(path)} is damaged ({type(error).__name__}: {error}); use an intact copy, or fit again."
        ) from error


def _read(path: str | os.PathLike[str], classes: Mapping[str, type], kind: str) -> dict[str, Any]:
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile:
        raise ValueError(f"{os.fspath(path)} is not a {kind}: it is not a zip file.") from None
    with archive:
        if _TREE not in archive.namelist():
            raise ValueError(f"{os.fspath(path)} is not a {kind}: it has no {_TREE}.")
        size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST_BYTES:
            raise ValueError(
                f"{os.fspath(path)} expands to {size / 2**30:.1f} GiB, more than the limit of {MOST_BYTES / 2**30:.1f} "
                "GiB; the environment variable GRAPHCOUPLE_MOST_BYTES raises it."
            )
        tree = json.loads(archive.read(_TREE))
        if not isinstance(tree, dict) or tree.get("format") != kind or not isinstance(tree.get("version"), int):
            raise ValueError(f"{os.fspath(path)} is not a {kind}: its {_TREE} does not say so.")
        return dict(_Decoder(archive, classes).decode(upgraded(tree)["content"]))


def upgraded(tree: dict[str, Any]) -> dict[str, Any]:
    """Return the tree of an older version in the form of the present one."""
    while tree["version"] != VERSION:
        version = tree["version"]
        if version > VERSION:
            raise ValueError(
                f"the model was saved in version {version} of the format, but this graphcouple reads versions up to "
                f"{VERSION}; upgrade graphcouple."
            )
        if version not in UPGRADES:
            raise ValueError(f"version {version} of the format can no longer be read; fit the model again.")
        tree = {**UPGRADES[version](tree), "version": version + 1}
    return tree


class _Encoder:
    """Turns values into JSON, and collects the arrays; an array that occurs twice is stored once."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._names: dict[int, str] = {}

    def encode(self, value: Any, where: str) -> Any:
        if value is None or isinstance(value, (bool, str)):
            return value
        for plain, kinds in ((bool, np.bool_), (int, (int, np.integer)), (float, (float, np.floating))):
            if isinstance(value, kinds):
                return plain(value)
        if isinstance(value, list):
            return [self.encode(entry, f"{where}[{i}]") for i, entry in enumerate(value)]
        kind, entry = self._structure(value, where)
        return {kind: entry}

    def _structure(self, value: Any, where: str) -> tuple[str, Any]:
        if isinstance(value, tuple):
            return "tuple", self.encode(list(value), where)
        if isinstance(value, slice):
            return "slice", self.encode([value.start, value.stop, value.step], where)
        if isinstance(value, dict):
            return "dict", self._entries(value, where)
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if sp.issparse(value):
            matrix = sp.csr_array(value)
            parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr, "shape": matrix.shape}
            return "sparse", self._entries(parts, where)
        if isinstance(value, np.random.RandomState):
            return "random_state", self.encode(list(value.get_state()), where)
        if isinstance(value, functools.partial) and isinstance(value.func, type) and not value.args:
            return "partial", {"class": value.func.__name__, "with": self._entries(value.keywords, where)}
        parameters = _parameters_of(value)
        if parameters is None:
            raise TypeError(
                f"{where} is a {type(value).__name__}, which cannot be saved: only numbers, words, arrays and objects "
                "made of these can. Set it to something else, or pickle the estimator."
            )
        return "object", {"class": type(value).__name__, "with": self._entries(parameters, where)}

    def _entries(self, values: Mapping[str, Any], where: str) -> dict[str, Any]:
        for key in values:
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}, but only words can be saved as keys.")
        return {key: self.encode(value, f"{where}.{key}") for key, value in values.items()}

    def _array(self, array: NDArray[Any], where: str) -> tuple[str, Any]:
        if array.dtype.kind == "O":
            return "objects", self.encode(array.tolist(), where)
        if id(array) not in self._names:
            self._names[id(array)] = f"array{len(self._names)}"
            self.arrays[self._names[id(array)]] = array
        return "array", self._names[id(array)]


def _parameters_of(value: Any) -> dict[str, Any] | None:
    """Return the arguments that recreate an object; None if they are not known."""
    from sklearn.base import BaseEstimator

    if isinstance(value, type):
        return None
    if isinstance(value, BaseEstimator):
        return value.get_params(deep=False)
    if dataclasses.is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    construct = type(value).__init__
    if not inspect.isfunction(construct):
        return None
    names = list(inspect.signature(construct).parameters)[1:]
    return {name: getattr(value, name) for name in names} if all(hasattr(value, name) for name in names) else None


def _random_state(state: Any) -> np.random.RandomState:
    """Return the generator of a state; numpy does not check the state's position."""
    kind, keys, position, *_ = state
    if kind != "MT19937" or np.shape(keys) != (_TWISTER,) or not 0 <= int(position) <= _TWISTER:
        raise ValueError("the file is damaged: its random_state is not numpy's. Fit again.")
    rng = np.random.RandomState()
    rng.set_state(tuple(state))
    return rng


def _sound_array(entry: Any, size: int) -> NDArray[Any]:
    """Return an array; raise if it is larger than its entry or holds NaN, which compiled loops do not check."""
    try:
        version = npy.read_magic(entry)
        shape, _, dtype = npy.read_array_header_1_0(entry) if version == (1, 0) else npy.read_array_header_2_0(entry)
        if min(shape, default=0) < 0 or int(np.prod(shape, dtype=object)) * dtype.itemsize > size:
            raise ValueError(f"an array of shape {shape} is larger than its entry")
        entry.seek(0)
        array: NDArray[Any] = npy.read_array(entry, allow_pickle=False)
    except ValueError as error:
        raise ValueError(f"the file is damaged: {error}. Fit again.") from error
    if array.dtype.kind in "fc" and np.isnan(array).any():
        raise ValueError("the file is damaged: it holds NaN. Fit again.")
    return array


class _Decoder:
    def __init__(self, archive: zipfile.ZipFile, classes: Mapping[str, type]) -> None:
        self.archive, self.classes = archive, classes
        self._arrays: dict[str, NDArray[Any]] = {}

    def decode(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.decode(entry) for entry in value]
        if not isinstance(value, dict):
            return value
        ((kind, entry),) = value.items()
        if kind == "array":
            return self._array(entry)
        if kind == "objects":
            return np.array(self.decode(entry), dtype=object)
        if kind == "dict":
            return self._entries(entry)
        if kind == "tuple":
            return tuple(self.decode(entry))
        if kind == "slice":
            return slice(*entry)
        if kind == "sparse":
            parts = self._entries(entry)
            matrix = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=parts["shape"])
            check_sparse(matrix, "a sparse matrix of the file")
            return matrix
        if kind == "random_state":
            return _random_state(self.decode(entry))
        if kind in ("object", "partial"):
            factory = functools.partial(self._class(entry["class"]), **self._entries(entry["with"]))
            return factory() if kind == "object" else factory
        raise ValueError(f"the model has an entry of the unknown kind {kind!r}; it was not written by this format.")

    def _entries(self, entries: dict[str, Any]) -> dict[str, Any]:
        return {key: self.decode(value) for key, value in entries.items()}

    def _array(self, name: str) -> NDArray[Any]:
        if name not in self._arrays:
            with self.archive.open(f"{name}.npy") as entry:
                self._arrays[name] = _sound_array(entry, self.archive.getinfo(f"{name}.npy").file_size)
        return self._arrays[name]

    def _class(self, name: str) -> type:
        if name not in self.classes:
            raise ValueError(
                f"the model has an object of class {name!r}, which graphcouple does not have; if it is your own or "
                f"another library's, pass it: load(path, classes=[{name}])."
            )
        return self.classes[name]
