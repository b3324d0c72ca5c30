"""The command ``graphcouple compare``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from graphcouple.cli import _common as common
from graphcouple.cli._help import Grouped

_OWN = "default"


def _names(text: str | None, choices: tuple[str, ...], option: str) -> list[str]:
    names = [name if name in choices else name.lower() for name in common.names_of(text)]
    for name in names:
        if name not in choices:
            raise ValueError(f"{option} {name!r} must be one of {', '.join(choices)}.")
    return names


@click.command(
    cls=Grouped,
    examples="""graphcouple compare digits --methods tsne,umap --inits pca,ccpca --seeds 5
        graphcouple compare cells.csv --labels type -o scores.csv""",
)
@click.argument("data")
@click.option("-m", "--methods", default="tsne,umap", show_default=True, help="Names from `graphcouple methods`.")
@click.option("-i", "--inits", help="Starts, from auto, ccpca, pca, random, spectral.  [default: each method's own]")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Seeds per method: 0, 1, …")
@click.option("--perplexity", type=float, help="For the methods that have one.")
@click.option("--n-neighbors", type=int, help="For the methods that have it.")
@click.option("-n", "--iterations", "max_iter", type=int, help="Maximum iterations.  [default: each method's own]")
@click.option("--metric", help="Distance of the points; 'precomputed' if DATA holds distances.")
@click.option("--rows", type=int, help="Score from this many random points.  [default: all to 12,000, then 1,280]")
@click.option("--jobs", "n_jobs", type=int, help="Threads.  [default: every core]")
@common.labels_option
@common.columns_option
@click.option("-o", "--output", type=common.PATH, help="Scores, .csv, a line per fit.  [default: DATA-compare.csv]")
@click.option("-p", "--plot", type=common.PATH, help="Picture, .png, .svg or .pdf.  [default: beside the scores]")
@click.option("--no-plot", is_flag=True, help="Make no picture.")
def compare(
    data: str,
    methods: str,
    inits: str | None,
    seeds: int,
    rows: int | None,
    labels: str | None,
    columns: str | None,
    output: Path | None,
    plot: Path | None,
    no_plot: bool,
    **options: Any,
) -> None:
    """Embed DATA with several methods and starts; draw the embeddings side by side and score them.

    The picture shows the first seed, with a row for each method and a column for each start. Scores are mean ± standard
    deviation over seeds; stability is the agreement of embeddings from seed to seed.
    """
    from graphcouple._support.storage import finished_files
    from graphcouple.datasets._files import write_table
    from graphcouple.searches.comparison import Comparison
    from graphcouple.searches.comparison import compare as compare_methods

    method_names = _names(methods, tuple(common.METHODS), "--methods")
    if not method_names:
        raise ValueError(f"--methods must name at least one of {', '.join(common.METHODS)}.")
    starts = _names(inits, tuple(common.registry("init").names()), "--inits") or [_OWN]
    name, X, y = common.load_data(data, labels, columns)
    table, picture = common.targets(f"{name}-compare.csv", (".csv",), output, plot, no_plot, inputs=(data, labels))
    shared = {"metric": options["metric"] or "euclidean", "n_jobs": options["n_jobs"]}
    n_rows = rows if rows is not None else "auto"
    estimators = dict(_estimators(method_names, starts, options))
    compared = compare_methods(estimators, X, common.classes_or_none(y), seeds=seeds, n_rows=n_rows, fit=_fit, **shared)
    runs = compared.scores.items()
    lines = [{"method": method, "init": init, "seed": seed, **scores} for ((method, init), seed), scores in runs]
    before = common.present(table, picture)
    with finished_files(table, picture) as drafts:
        write_table(drafts[table], lines)
        if picture is not None:
            figure = _drawn(Comparison(compared.embeddings, compared.scores, y), name)
            common.save_picture(drafts[picture], picture, figure)
    _print(compared, seeds)
    with common.guard_output():
        click.echo("written  " + common.written((table, picture), before).replace("\n", "\n         "))


def _estimators(methods: list[str], inits: list[str], options: dict[str, Any]) -> Iterator[tuple[tuple[str, str], Any]]:
    for method in methods:
        own = common.preset(method, {})
        known = {option: value for option, value in options.items() if option in own.get_params()}
        for init in inits if own.couples_laws else [_OWN]:
            yield (method, init), common.preset(method, known if init == _OWN else {**known, "init": init})


def _fit(name: tuple[str, str], seed: int, estimator: Any, X: Any) -> None:
    seconds = common.fit_reporting(estimator, X)
    method, init = name
    start = "" if init == _OWN else f" from {init}"
    click.echo(f"{method}{start}, seed {seed}: {seconds:.1f} s", err=True)


def _drawn(compared: Any, name: str) -> Any:
    if {init for (_, init), _ in compared.embeddings} == {_OWN}:
        compared.embeddings = {(method, seed): Z for ((method, _), seed), Z in compared.embeddings.items()}
    return compared.plot(title=name).flat[0].figure


def _print(compared: Any, seeds: int) -> None:
    header, rows = compared.summary()
    names = list(dict.fromkeys(name for name, _ in compared.scores))
    cells = [[*name, *row[1:]] for name, row in zip(names, rows, strict=True)]
    common.print_table(["method", "start"], header[1:], cells)
    with common.guard_output():
        click.echo("Scores are in hundredths" + (", mean±standard deviation over seeds." if seeds > 1 else "."))
