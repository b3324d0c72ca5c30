"""Fuzzed commands: a seed gives files, arguments and streams; `command_failure` tells what is wrong with the end."""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.io
import scipy.sparse as sp

from graphcouple.cli import METHODS, main

STARTS = ("auto", "ccpca", "pca", "random", "spectral")
NAMES = ("plain", "with space", "$dollar$", "[bold]x[", "ümläut", "new\nline", "-dash", "a" * 120, "\x1b[31mred")
CLASSES = ("a", "b", "$x^2$", "[/b]", "\x1b[2J", "naïve", "", "=1+1", "9" * 60)


class Command(NamedTuple):
    """A command with its files.

    Attributes
    ----------
    arguments : list of str
    rows : int or None
        Rows of the embedding, if the data are sound.
    stream : str
        What standard output is.
    """

    arguments: list[str]
    rows: int | None
    stream: str


def command(seed: int, folder: Path) -> Command:
    """Return the command of a seed; its files are written into the folder."""
    rng = np.random.default_rng(seed)
    name, rows = _data(rng, folder)
    verb = str(rng.choice(["embed"] * 5 + ["evaluate", "compare"]))
    arguments = {"embed": _embed, "evaluate": _evaluate, "compare": _compare}[verb](rng, folder, name, rows)
    # A name that begins with a dash follows the options.
    arguments = [verb, *arguments, "--", *_positional(rng, folder, verb, name, rows)]
    return Command(arguments, rows, str(rng.choice(["usual"] * 6 + ["ascii", "closed", "full"])))


def _pick(rng: np.random.Generator, *choices: Any, bad: tuple[Any, ...] = ()) -> Any:
    """Return one of the choices or, one time in twelve, one that should be refused."""
    if bad and rng.uniform() < 1.0 / 12.0:
        choices = bad
    return choices[rng.integers(len(choices))]


def _data(rng: np.random.Generator, folder: Path) -> tuple[str, int | None]:
    """Write a file of points, and return its name and number of rows, None if it is not sound."""
    n, p = int(_pick(rng, 12, 25, 40, bad=(1, 2, 5))), int(_pick(rng, 1, 2, 6))
    X = rng.normal(size=(n, p)) * 10.0 ** rng.integers(-3, 4)
    written: tuple[str, int | None] = _pick(
        rng, _npy, _npz, _csv, _tsv, _mtx, _sparse, bad=(_unusual, _broken, _named)
    )(rng, folder, X)
    return written


def _path(rng: np.random.Generator, folder: Path, ending: str) -> Path:
    return folder / (NAMES[rng.integers(len(NAMES))] + ending)


def _npy(rng: np.random.Generator, folder: Path, X: Any) -> tuple[str, int | None]:
    path = _path(rng, folder, ".npy")
    np.save(path, _pick(rng, X, X.astype(np.float32), np.asfortranarray(X)))
    return path.name, len(X)


def _unusual(rng: np.random.Generator, folder: Path, X: Any) -> tuple[str, int | None]:
    path = _path(rng, folder, ".npy")
    np.save(path, _pick(rng, X.astype(complex), X[:, 0], X.astype(str), X * np.nan, X[:0], X[:, :0]))
    return path.name, None


def _npz(rng: np.random.Generator, folder: Path, X: Any) -> tuple[str, int | None]:
    path = _path(rng, folder, ".npz")
    named = bool(_pick(rng, True, bad=(False,)))
    np.savez(path, **({"X": X, "y": _classes(rng, len(X))} if named else {"p": X, "q": X}))
    return path.name, len(X) if named else None


def _classes(rng: np.random.Generator, n: int) -> Any:
    return np.array([CLASSES[k] for k in rng.integers(len(CLASSES), size=n)])


def _text(rng: np.random.Generator, path: Path, X: Any, mark: str) -> tuple[str, int | None]:
    import csv

    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=mark)
        if rng.integers(2):
            writer.writerow([f"x{i}" for i in range(X.shape[1])] + ["kind"])
        for row, label in zip(X.tolist(), _classes(rng, len(X)), strict=True):
            writer.writerow([*row, label])
    return path.name, len(X)


def _csv(rng: np.random.Generator, folder: Path, X: Any) -> tuple[str, int | None]:
    return _text(rng, _path(rng, folder, ".csv"), X, ",")


def _tsv(rng: np.random.Generator, folder: Path, X: Any) -> tuple[str, int | None]:
    return _text(rng, _path(rng, folder, ".tsv"), X, "\t")


def _mtx(rng: np.random.Generator, folder: Path, X: Any) -> tuple[str, int | None]:
    path = _path(rng, folder, ".mtx")
    with open(path, "wb") as file:
        scipy.io.mmwrite(file, _pick(rng, X, sp.coo_array(np.where(X > 0, X, 0.0))))
    return path.name, len(X)


def _sparse(rng: np.random.Generator, folder: Path, X: Any) -> tuple[str, int | None]:
    path = _path(rng, folder, ".npz")
    matrix = sp.csr_array(np.where(X > 0, X, 0.0))
    sound = bool(_pick(rng, True, bad=(False,)))
    if not sound and matrix.nnz:
        matrix.indices[rng.integers(matrix.nnz)] = 10**6
    sp.save_npz(path, matrix)
    return path.name, len(X) if sound or not matrix.nnz else None


def _broken(rng: np.random.Generator, folder: Path, X: Any) -> tuple[str, int | None]:
    path = _path(
        rng, folder, str(_pick(rng, ".npy", ".npz", ".csv", ".csv.gz", ".tsv", ".mtx", ".parquet", ".xyz", ""))
    )
    _npy(rng, folder, X)
    sound = next(iter(folder.iterdir())).read_bytes()
    path.write_bytes(
        _pick(rng, b"", b"\x00" * 50, sound[: len(sound) // 2], rng.bytes(200), "ä,ö\n1,2".encode("latin1"))
    )
    return path.name, None


def _named(rng: np.random.Generator, folder: Path, X: Any) -> tuple[str, int | None]:
    return str(_pick(rng, "iris", "nothing", "nothing.npy", ".", "/dev/null")), None


def _embed(rng: np.random.Generator, folder: Path, name: str, rows: int | None) -> list[str]:
    n = rows or 10
    options = [
        ("--perplexity", _pick(rng, 2, 3, n / 3, "2,3", bad=(0, -1, "nan", "x", n))),
        ("--n-neighbors", _pick(rng, 2, 3, n - 1, bad=(n, 10**9, -2))),
        ("--metric", _pick(rng, "cosine", "manhattan", bad=("precomputed", "no such metric"))),
        ("--init", _pick(rng, *STARTS, bad=("nowhere",))),
        ("--components", _pick(rng, 1, 2, 3, bad=(0, 10**6))),
        ("--seed", _pick(rng, 0, 7, bad=(-1, 2**40))),
        ("--jobs", _pick(rng, 1, 2, -1, 10**5, bad=(0,))),
        ("--input-prior", _pick(rng, "B", "d", bad=("Z",))),
        ("--latent-kernel", _pick(rng, "student:2", "gaussian", "odds-student", bad=("rational:1", "exp(d)"))),
        ("--coupling", _pick(rng, "cross-entropy", "effective", bad=("none",))),
        ("--component-weight", _pick(rng, 0, 1, "auto", bad=(-1, "x"))),
        ("--large-scale", _pick(rng, 0, 7, bad=("nan", "auto"))),
        ("--density", _pick(rng, 0, 3, bad=("nan", -1))),
    ]
    # The last column of a table holds words.
    table = name.endswith((".csv", ".tsv"))
    chosen = ["--labels", str(_pick(rng, "-1", bad=("kind", "nobody", name)))] if table else []
    if name.endswith(".npz"):
        chosen = _pick(rng, [], ["--labels", "y"])
    method = str(_pick(rng, *METHODS, bad=("magic",)))
    chosen += ["--method", method]
    if method in ("tsne", "sne", "symmetric-sne", "largevis", "umap", "laptsne"):
        chosen += ["--iterations", str(_pick(rng, 1, 5, 20))]
    for option, value in options:
        if rng.uniform() < 0.1:
            chosen += [option, str(value)]
    return chosen + _targets(rng, ["out.npy", "out.csv"], "out.txt", "nowhere/out.npy", name)


def _targets(rng: np.random.Generator, outputs: list[str], *bad: str) -> list[str]:
    chosen = []
    if rng.uniform() < 0.5:
        chosen += ["--output", str(_pick(rng, *outputs, bad=bad))]
    if rng.uniform() < 0.3:
        return [*chosen, "--plot", str(_pick(rng, "p.png", "p.svg", "p.pdf", bad=("p.gif", bad[-1])))]
    return [*chosen, "--no-plot"]


def _evaluate(rng: np.random.Generator, folder: Path, name: str, rows: int | None) -> list[str]:
    chosen = []
    if rng.uniform() < 0.3:
        chosen += ["-k", str(_pick(rng, 1, 3, bad=(0, 10**6)))]
    if name.endswith((".csv", ".tsv")):
        chosen += ["--labels", str(_pick(rng, "-1", bad=("kind", "nobody")))]
    if rng.uniform() < 0.3:
        chosen += ["--output", str(_pick(rng, "scores.csv", bad=("scores.npy", name)))]
    return chosen


def _compare(rng: np.random.Generator, folder: Path, name: str, rows: int | None) -> list[str]:
    methods = ",".join(str(m) for m in rng.choice(list(METHODS), size=2, replace=False))
    chosen = ["--methods", str(_pick(rng, methods, "tsne,umap", bad=("tsne,magic", "")))]
    if name.endswith((".csv", ".tsv")):
        chosen += ["--labels", str(_pick(rng, "-1", bad=("kind", "nobody")))]
    if rng.uniform() < 0.3:
        chosen += ["--perplexity", str(_pick(rng, 2, 3, bad=(10**4,)))]
    if rng.uniform() < 0.3:
        chosen += ["--inits", str(_pick(rng, "pca,random", bad=("nowhere",)))]
    return chosen + _targets(rng, ["scores.csv"], "scores.npy", name)


def _positional(rng: np.random.Generator, folder: Path, verb: str, name: str, rows: int | None) -> list[str]:
    if verb != "evaluate":
        return [name]
    n = rows or 10
    np.save(folder / "[map] $1.npy", rng.normal(size=(int(_pick(rng, n, n, n + 1)), 2)))
    return [name, "[map] $1.npy"] if rng.uniform() < 0.9 else [name]


def command_failure(seed: int, folder: Path) -> str | None:
    """Carry out the command of a seed in an empty folder; return what is wrong with what happens, or None."""
    before, said, output = os.getcwd(), (sys.argv, sys.stdout, sys.stderr, sys.stdin), _Kept()
    handler = signal.getsignal(signal.SIGTERM)
    said_aloud = _Kept()
    errors = io.TextIOWrapper(said_aloud, encoding="utf-8", write_through=True)
    os.chdir(folder)
    given = command(seed, folder)
    try:
        files = {path: path.read_bytes() for path in folder.iterdir()}
        sys.argv, sys.stderr = ["graphcouple", *given.arguments], errors
        sys.stdout = _stream(given.stream, output)
        status: Any = None
        try:
            main()
        except SystemExit as stop:
            status = stop.code
    except BaseException as error:
        return f"{given.arguments}: {type(error).__name__}: {error}"
    finally:
        sys.argv, sys.stdout, sys.stderr, sys.stdin = said
        signal.signal(signal.SIGTERM, handler)
        os.chdir(before)
    text = said_aloud.getvalue().decode()
    wrong = _wrong(given, status, text, output.getvalue(), folder, files)
    return f"{given.arguments} ({given.stream} stream): {wrong}; it said {text!r}" if wrong else None


class _Kept(io.BytesIO):
    """Bytes that outlive the stream around them."""

    def close(self) -> None:
        pass


class _Full(io.RawIOBase):
    """A stream whose reader has gone."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raise BrokenPipeError


def _stream(kind: str, output: io.BytesIO) -> Any:
    if kind == "full":
        return io.TextIOWrapper(io.BufferedWriter(_Full()), encoding="utf-8")
    stream = io.TextIOWrapper(output, encoding="ascii" if kind == "ascii" else "utf-8", write_through=True)
    if kind == "closed":
        return None
    return stream


def _wrong(given: Command, status: Any, text: str, shown: bytes, folder: Path, files: dict[Path, bytes]) -> str | None:
    if status not in (0, 2):
        return f"status {status}"
    if "Traceback" in text or b"\x1b[2J" in shown or "\x1b[2J" in text or "\x1b[31mred" in text:
        return "a traceback or an escape sequence"
    after = set(folder.iterdir())
    if any(not path.exists() or path.read_bytes() != content for path, content in files.items()):
        return "an input was changed"
    made = after - set(files)
    if status == 2:
        lines = text.splitlines()
        if made:
            return f"failed, but left {[path.name for path in made]}"
        if not lines or not lines[-1].startswith("graphcouple: error: ") or len(lines[-1]) < 30:
            return "an error that is not one clear line"
        if any(word in lines[-1] for word in ("broadcast", "out of bounds", "ARPACK", "infs or NaNs", "NoneType")):
            return "an error from inside"
        return None
    if any(path.name.startswith(".") for path in made):
        return "a draft was left"
    tables = [path for path in made if path.suffix == ".npy"]
    if given.arguments[0] == "embed":
        if given.rows is None and given.arguments[-1] != "iris" and "precomputed" not in given.arguments:
            return "unsound data were embedded"
        for table in tables:
            Z = np.load(table)
            if not np.isfinite(Z).all() or (given.rows is not None and len(Z) != given.rows):
                return f"an embedding of shape {Z.shape}"
    return None
