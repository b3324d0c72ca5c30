"""Help by groups with examples, and lists of the registered parts."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import click

from graphcouple._support.registry import METHODS
from graphcouple.cli._common import registry


class Grouped(click.Command):
    """A command whose help has its options under headings, those without a heading last, and examples at the end."""

    def __init__(self, *args: Any, groups: Mapping[str, str] | None = None, examples: str = "", **options: Any) -> None:
        self.groups, self.examples = dict(groups or {}), examples
        super().__init__(*args, **options)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [part for part in self.get_params(ctx) if isinstance(part, click.Option)]
        records = {part.name: part.get_help_record(ctx) for part in options}
        for heading, names in {**self.groups, "Options": " ".join(str(name) for name in records)}.items():
            entries = [records.pop(name, None) for name in names.split()]
            if rows := [record for record in entries if record is not None]:
                with formatter.section(heading):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples.splitlines():
                    formatter.write(f"  {line.strip()}\n")


class Sections(click.Group):
    """A group whose help has its commands under headings, with whole summaries; alone, it prints this help."""

    sections: Mapping[str, str] = {}

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in self.sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name, self.commands[name].get_short_help_str(120)) for name in names.split()])


def listing(name: str, summary: str, parts: Callable[[], Mapping[str, Any]], more: str = "") -> click.Command:
    """Return a command that prints a line for each part: its name, and the first line of its docstring."""

    @click.command(name, help=summary)
    def command() -> None:
        lines = {key: (inspect.getdoc(part) or "").partition("\n")[0] for key, part in parts().items()}
        width = max(map(len, lines), default=0)
        for key, line in lines.items():
            click.echo(f"{key:{width}}  {line}".rstrip())
        if more:
            click.echo(more)

    return command


def _methods() -> dict[str, Any]:
    from graphcouple import estimators

    return {name: getattr(estimators, target) for name, target in METHODS.items()}


def _registered(kind: str) -> Callable[[], dict[str, Any]]:
    return lambda: {name: registry(kind)[name] for name in registry(kind).names()}


LISTINGS = (
    listing(
        "methods",
        "List the methods that have a name.",
        _methods,
        "Options add terms to a method: --density 3 with umap is densMAP; --large-scale auto is two-scale, and "
        "--component-weight auto hierarchical coupling.",
    ),
    listing("kernels", "List the registered kernels.", _registered("kernel")),
    listing("priors", "List the registered priors of graphs.", _registered("prior")),
    listing("starts", "List the registered starts.", _registered("init")),
)
