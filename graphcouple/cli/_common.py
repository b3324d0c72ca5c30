"""Shared by the commands: data, methods, files and tables."""

import csv
import inspect
import os
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from graphcouple._support.registry import METHODS
from graphcouple._support.validation import are_measured, check_labels

PATH = click.Path(path_type=Path)

OPTIONS = {"max_iter": "iterations", "n_components": "components", "n_jobs": "jobs", "random_state": "seed"}
PLOT_ENDINGS = (".png", ".svg", ".pdf")


def check_name(kind: str, *, upper: bool = False) -> Any:
    """Return the check of an option whose value must be a registered "prior", "init" or "coupling"."""

    def check(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
        name = value.upper() if value and upper and value not in registry(kind) else value
        if name is not None and name not in registry(kind):
            raise click.BadParameter(f"{value!r} is not one of {', '.join(registry(kind).names())}.")
        return name

    return check


def name_option(kind: str, help: str) -> Any:
    """Return the option that names a registered "init" or "coupling"."""
    return click.option(f"--{kind}", metavar="NAME", callback=check_name(kind), help=help)


def numbers(context: click.Context, option: click.Parameter, value: str | None) -> float | tuple[float, ...] | None:
    if value is None:
        return None
    try:
        values = tuple(float(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a number, nor numbers separated by commas.") from None
    return values[0] if len(values) == 1 else values


def registry(kind: str) -> Any:
    """Return the registry of a kind; imported here, so that --help stays fast."""
    from graphcouple.couplings.recipes import COUPLINGS
    from graphcouple.initializations import STARTS
    from graphcouple.kernels import KERNELS
    from graphcouple.laws.priors import PRIORS

    return {"coupling": COUPLINGS, "init": STARTS, "kernel": KERNELS, "prior": PRIORS}[kind]


def option_of(name: str) -> str:
    return OPTIONS.get(name, name.replace("_", "-"))


def preset(method: str, options: dict[str, Any]) -> Any:
    """Return the estimator of a method with these options; raise if it lacks one of them."""
    from graphcouple import estimators

    estimator = getattr(estimators, METHODS[method])
    arguments = {name: value for name, value in options.items() if value is not None}
    parameters = inspect.signature(estimator).parameters
    # Every command has a seed, but some methods are deterministic.
    arguments = {name: value for name, value in arguments.items() if name in parameters or name != "random_state"}
    for name in arguments:
        if name not in parameters:
            raise ValueError(f"--{option_of(name)} does not apply to --method {method}.")
    return estimator(**arguments)


def names_of(text: str | None) -> list[str]:
    """Return the names in a text with commas between them; a name in double quotes may hold commas."""
    cells = next(csv.reader([text or ""], skipinitialspace=True), [])
    return list(dict.fromkeys(name.strip() for name in cells if name.strip()))


def load_data(data: str, labels: str | None, columns: str | None, texts: Sequence[str] = ()) -> tuple[str, Any, Any]:
    """Return a short name, the points, and the labels or None.

    `columns` names the columns of a table that are points, with commas between them; `texts` names columns of texts.
    """
    from graphcouple import datasets
    from graphcouple.datasets import _files

    path = Path(data)
    y: Any
    is_named = data in datasets.NAMES or (data in datasets.FETCHED and not path.exists())
    if is_named:
        if columns or texts:
            raise ValueError(f"--columns and --hover name columns of a table, and {data} is a data set by name.")
        X, y = datasets.load(data)
        name = data
    elif path.suffix or path.exists():
        separate = labels is not None and Path(labels).is_file()
        X, y = _files.read_points(path, None if separate else labels, names_of(columns) or None, texts)
        name = path.name.removesuffix(_files.suffix_of(path)) or "embedding"
    else:
        raise ValueError(
            f"unknown data {data!r}: neither a file nor one of {', '.join((*datasets.NAMES, *datasets.FETCHED))}."
        )
    if getattr(X, "ndim", 0) != 2 or X.dtype.kind not in "iufb":
        raise ValueError(f"{data} must hold a 2D array of real numbers, got {X.ndim}D of dtype {X.dtype}.")
    if labels is not None and Path(labels).is_file():
        y = _files.read_labels(Path(labels), X.shape[0])
    elif labels is not None and (y is None or is_named):
        raise ValueError(f"--labels {labels}: no such file, and {data} has no labels to choose from.")
    if y is not None and len(y) != X.shape[0]:
        raise ValueError(f"there are {len(y)} labels, but {X.shape[0]} rows of data.")
    if y is not None:
        check_labels(y, X.shape[0])
    return name, X, y


def refuse_inputs(targets: dict[str, Path | None], inputs: Iterable[Any]) -> None:
    """Raise if an output file is also an input."""
    sources = {Path(name).resolve() for name in inputs if name is not None and Path(name).exists()}
    for option, path in targets.items():
        if path is not None and path.resolve() in sources:
            raise ValueError(f"{option} {path} is an input of this command; choose another name.")


def check_target(path: Path, suffixes: tuple[str, ...], option: str) -> None:
    """Raise if a file cannot be written there."""
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{option} {path}: the ending must be one of {', '.join(suffixes)}.")
    if not path.parent.is_dir():
        raise ValueError(f"{option} {path}: the folder {path.parent} does not exist.")
    if path.is_dir():
        raise ValueError(f"{option} {path} is a folder.")


def targets(
    default: str, endings: tuple[str, ...], output: Path | None, plot: Path | None, no_plot: bool, inputs: Iterable[Any]
) -> tuple[Path, Path | None]:
    """Return the paths of the result and of the picture, checked before any work is done.

    Without matplotlib there is no picture, and --plot is refused.
    """
    if no_plot and plot is not None:
        raise ValueError("--plot and --no-plot exclude each other; give at most one of them.")
    table = output or Path(default)
    picture = None if no_plot else plot or table.with_suffix(".png")
    for path, suffixes, option in ((table, endings, "--output"), (picture, PLOT_ENDINGS, "--plot")):
        if path is not None:
            check_target(path, suffixes, option)
    if picture is not None:
        from graphcouple.plotting import require_matplotlib

        try:
            require_matplotlib()
        except ModuleNotFoundError as error:
            if plot is not None:
                raise ValueError(f"{error}, or give --no-plot.") from None
            click.echo(f"graphcouple: no picture, as {error}.", err=True)
            picture = None
    refuse_inputs({"--output": table, "--plot": picture}, inputs)
    return table, picture


def fit_reporting(estimator: Any, X: Any, y: Any = None) -> float:
    """Fit under a progress bar (on a terminal); return the seconds it took."""
    start = time.perf_counter()
    # Pipes and logs get only the result and warnings.
    model = getattr(estimator, "estimator", None) or estimator
    if "verbose" in model.get_params():
        model.set_params(verbose=int(sys.stderr.isatty()))
    estimator.fit(X, y)
    return time.perf_counter() - start


@contextmanager
def printed_warnings() -> Iterator[None]:
    """Print the library's own warnings as they come, each once; they point at lines of the command."""
    command, printed = Path(__file__).parent, set()

    def show(message: Warning | str, category: type[Warning], filename: str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).split())
        if text not in printed and Path(filename).is_relative_to(command):
            printed.add(text)
            click.echo(f"graphcouple: warning: {text}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def plain(text: Any) -> Any:
    """Return text for a terminal, with brackets and control characters escaped."""
    from rich.text import Text

    printable = "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in str(text))
    return Text(printable)


@contextmanager
def guard_output() -> Iterator[None]:
    """Guard the printing of results: the command does not fail if the reader of its output has closed the pipe."""
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except (OSError, ValueError, SystemExit):
        # rich raises SystemExit, and at exit Python would try to write the rest.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


def report(rows: list[tuple[str, str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*(plain(cell) for cell in row))
    with guard_output():
        Console().print(table, highlight=False)


def print_table(names: list[str], numbers: list[str], rows: list[list[str]]) -> None:
    """Print columns of names and numbers at full width, so that a narrow terminal truncates no number."""
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1))
    for name in names:
        table.add_column(plain(name), no_wrap=True)
    for name in numbers:
        table.add_column(plain(name), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(plain(cell) for cell in row))
    with guard_output():
        full_width = Console(width=10_000).measure(table).maximum
        Console(width=max(Console().width, full_width)).print(table, highlight=False)


def save_picture(path: Path, target: Path, figure: Any) -> None:
    """Write a figure to `path`, in the format that `target` ends in."""
    from matplotlib import rc_context

    # Keep text as text: journals reject matplotlib's default Type 3 fonts.
    with rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}), warnings.catch_warnings():
        # matplotlib warns of every character that a font lacks.
        warnings.simplefilter("ignore")
        figure.savefig(path, dpi=200, format=target.suffix.lower().removeprefix("."))


def method_option(help: str) -> Any:
    names = click.Choice(list(METHODS))
    return click.option("-m", "--method", type=names, metavar="METHOD", default="tsne", show_default=True, help=help)


labels_option = click.option(
    "-l",
    "--labels",
    metavar="COLUMN|KEY|FILE",
    help="Labels: a column of a table (name, or number from 0; excluded from the data), an npz key, or a file.",
)


columns_option = click.option(
    "--columns",
    metavar="COLUMN[,COLUMN...]",
    help="The columns of a table that are points; quote a name with a comma.  [default: all others]",
)


def written(paths: Iterable[Path | None], before: set[Path]) -> str:
    return "\n".join(f"{path}{' (replaced)' if path in before else ''}" for path in paths if path is not None)


def present(*paths: Path | None) -> set[Path]:
    """Return the files among these paths."""
    return {path for path in paths if path is not None and path.exists()}


def classes_or_none(y: Any) -> Any:
    """Return labels if they are classes; otherwise print that the labels are ignored."""
    if y is None or not are_measured(y):
        return y
    click.echo("graphcouple: the labels are numbers, not classes: scores of classes are left out.", err=True)
    return None
