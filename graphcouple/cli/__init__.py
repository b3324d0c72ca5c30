"""The command ``graphcouple``: embed data, compare methods, score embeddings, estimate costs, search over methods."""

import gc
import importlib
import signal
import sys
from pathlib import Path
from typing import NoReturn

import click

from graphcouple.cli._common import METHODS, printed_warnings
from graphcouple.cli._compare import compare
from graphcouple.cli._embed import embed
from graphcouple.cli._estimate import estimate
from graphcouple.cli._evaluate import evaluate
from graphcouple.cli._help import LISTINGS, Sections
from graphcouple.cli._search import search

__all__ = ["METHODS", "cli", "main"]


@click.group(
    cls=Sections,
    no_args_is_help=False,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example: graphcouple embed digits. For completion in bash, put this into ~/.bashrc: "
    'eval "$(_GRAPHCOUPLE_COMPLETE=bash_source graphcouple)"; zsh and fish have zsh_source and fish_source.',
)
@click.version_option(package_name="graphcouple")
@click.option(
    "--import", "modules", multiple=True, metavar="MODULE", help="A module or .py file with parts that it registers."
)
@click.pass_context
def cli(ctx: click.Context, modules: tuple[str, ...] = ()) -> None:
    """Probabilistic graph coupling for dimensionality reduction."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    for module in modules:
        _import(module)


def _import(module: str) -> None:
    """Import a module, or a file of Python code, found from the working directory too."""
    path = Path(module)
    name, folder = (path.stem, path.parent) if path.suffix == ".py" else (module, Path())
    if path.suffix == ".py" and not path.is_file():
        raise ValueError(f"--import {module}: no such file.")
    sys.path.insert(0, str(folder.resolve()))
    try:
        loaded = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise ValueError(f"--import {module}: {type(error).__name__}: {error}") from error
    finally:
        del sys.path[0]
    if path.suffix == ".py" and Path(loaded.__file__ or "").resolve() != path.resolve():
        raise ValueError(f"--import {module}: another module has the name {name}; rename the file.")


cli.sections = {
    "Make maps": "embed compare search",
    "Judge and plan": "evaluate estimate",
    "Lists": "methods kernels priors starts",
}
for _command in (embed, compare, evaluate, estimate, search, *LISTINGS):
    cli.add_command(_command)


# A missing module belongs to an extra that is not installed; the message says which.
_REFUSED = (ValueError, TypeError, OSError, FloatingPointError, MemoryError, ModuleNotFoundError, click.ClickException)


def _fail(message: str) -> NoReturn:
    click.echo(f"graphcouple: error: {' '.join(message.split())}", err=True)
    sys.exit(2)


def main() -> None:
    """Run the command; every failure is one line on standard error and exit status 2."""
    # Rare garbage collection: it takes a tenth of a short command's time, while libraries load.
    gc.set_threshold(20_000)
    for stream in (sys.stdout, sys.stderr):
        # A stream that cannot show a character shows its number.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    # SIGTERM unwinds like an interruption, so that no temporary file is left.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with printed_warnings():
            status = cli.main(prog_name="graphcouple", standalone_mode=False)
    except click.UsageError as error:
        _fail(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        click.echo("graphcouple: interrupted", err=True)
        sys.exit(130)
    except _REFUSED as error:
        _fail(str(error) or type(error).__name__)
    sys.exit(status if isinstance(status, int) else 0)
