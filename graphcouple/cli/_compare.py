"""The command ``graphcouple compare``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from graphcouple.cli._common import (
    METHODS,
    classes_or_none,
    fit_reporting,
    guard_output,
    labels_option,
    load_data,
    preset,
    print_table,
    registry,
    save_picture,
    targets,
)

_SHOWN = ("R(10)", "R(n/4)", "R(n/2)", "triplet correlation", "10-NN accuracy")
_OWN = "default"


class _Run(NamedTuple):
    method: str
    init: str
    seed: int


def _names(text: str | None, choices: tuple[str, ...], option: str) -> list[str]:
    names = [name.strip().lower() for name in (text or "").split(",") if name.strip()]
    for name in names:
        if name not in choices:
            raise ValueError(f"{option} {name!r} must be one of {', '.join(choices)}.")
    return list(dict.fromkeys(names))


def _runs(methods: list[str], inits: list[str], n_seeds: int) -> Iterator[_Run]:
    for method in methods:
        for init in inits if preset(method, {}).couples_laws else [_OWN]:
            for seed in range(n_seeds):
                yield _Run(method, init, seed)


@click.command()
@click.argument("data")
@click.option("-m", "--methods", default="tsne,umap", show_default=True, help=f"From {', '.join(METHODS)}.")
@click.option("-i", "--inits", help="Starts, from ccpca, pca, random, spectral.  [default: each method's own]")
@click.option("--seeds", type=click.IntRange(min=1), default=1, show_default=True, help="Fits of each; seeds 0, 1, …")
@click.option("--perplexity", type=float, help="For the methods that have one.")
@click.option("--n-neighbors", type=int, help="For the methods that have it.")
@click.option("-n", "--iterations", "max_iter", type=int, help="Maximum iterations.  [default: each method's own]")
@click.option("--metric", help="Distance of the points; 'precomputed' if DATA holds distances.")
@click.option("--rows", type=int, help="Score from this many random points.  [default: all to 12,000, then 1,280]")
@click.option("--jobs", "n_jobs", type=int, help="Threads.  [default: every core]")
@labels_option
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="Scores, .csv, a line per fit.  [default: DATA-compare.csv]"
)
@click.option(
    "-p", "--plot", type=click.Path(path_type=Path), help="Picture, .png, .svg or .pdf.  [default: beside the scores]"
)
@click.option("--no-plot", is_flag=True, help="Make no picture.")
def compare(
    data: str,
    methods: str,
    inits: str | None,
    seeds: int,
    rows: int | None,
    labels: str | None,
    output: Path | None,
    plot: Path | None,
    no_plot: bool,
    **options: Any,
) -> None:
    """Embed DATA with several methods and starts; draw the embeddings side by side and score them.

    The picture shows the first seed, with a row for each method and a column for each start. Scores are mean ± standard
    deviation over seeds; stability is the agreement of embeddings from seed to seed.
    """
    from graphcouple.datasets._files import finished_files, write_table
    from graphcouple.metrics._evaluate import check_scoring, score_each

    method_names = _names(methods, tuple(METHODS), "--methods")
    if not method_names:
        raise ValueError(f"--methods must name at least one of {', '.join(METHODS)}.")
    starts = _names(inits, tuple(registry("init").names()), "--inits") or [_OWN]
    name, X, y = load_data(data, labels)
    table, picture = targets(f"{name}-compare.csv", (".csv",), output, plot, no_plot, inputs=(data, labels))
    classes, n_rows = classes_or_none(y), rows if rows is not None else "auto"
    # Refuse data that cannot be scored before any fit.
    check_scoring(X, classes, None, n_rows)
    maps, seconds = {}, {}
    for run in _runs(method_names, starts, seeds):
        estimator = _estimator(run, options)
        seconds[run] = _fit(run, estimator, X)
        maps[run] = estimator.embedding_
    scores = score_each(
        X,
        maps,
        classes,
        metric=options["metric"] or "euclidean",
        K=None,
        n_rows=n_rows,
        random_state=0,
        n_jobs=options["n_jobs"],
    )
    lines = [{**run._asdict(), "seconds": seconds[run], **scores[run]} for run in maps]
    with finished_files(table, picture) as (draft, sketch):
        assert draft is not None
        write_table(draft, lines)
        if sketch is not None and picture is not None:
            save_picture(sketch, picture, _grid(maps, y, name))
    _print(lines, maps)
    with guard_output():
        click.echo("written  " + "\n         ".join(str(path) for path in (table, picture) if path is not None))


def _estimator(run: _Run, options: dict[str, Any]) -> Any:
    arguments = {**options, "random_state": run.seed}
    if run.init != _OWN:
        arguments["init"] = run.init
    parameters = preset(run.method, {}).get_params()
    # Each method gets the shared options that it has.
    return preset(run.method, {option: value for option, value in arguments.items() if option in parameters})


def _fit(run: _Run, estimator: Any, X: Any) -> float:
    seconds = fit_reporting(estimator, X)
    start = "" if run.init == _OWN else f" from {run.init}"
    click.echo(f"{run.method}{start}, seed {run.seed}: {seconds:.1f} s", err=True)
    return seconds


def _grid(maps: dict[_Run, Any], y: Any, name: str) -> Any:
    from graphcouple.plotting import plot_grid

    first = {run: Z for run, Z in maps.items() if run.seed == 0}
    own_only = {run.init for run in first} == {_OWN}
    panels = {run.method if own_only else (run.method, run.init): Z for run, Z in first.items()}
    return plot_grid(panels, y, title=name).flat[0].figure


def _print(lines: list[dict[str, Any]], maps: dict[_Run, Any]) -> None:
    from graphcouple.metrics import seed_stability

    several = any(run.seed for run in maps)
    scores = [score for score in _SHOWN if score in lines[0]]
    names = [score.replace(" correlation", "s").replace(" accuracy", "") for score in scores]
    rows = []
    for method, init in dict.fromkeys((run.method, run.init) for run in maps):
        fits = [line for line in lines if (line["method"], line["init"]) == (method, init)]
        cells = [_spread([100 * line[score] for line in fits]) for score in scores]
        if several:
            cells.append(f"{100 * seed_stability([Z for run, Z in maps.items() if run[:2] == (method, init)]):.1f}")
        rows.append([method, init, *cells, _spread([line["seconds"] for line in fits])])
    print_table(["method", "start"], [*names, *(["stability"] if several else []), "seconds"], rows)
    with guard_output():
        click.echo("Scores are in hundredths" + (", mean±standard deviation over seeds." if several else "."))


def _spread(values: list[float]) -> str:
    mean = f"{np.mean(values):.1f}"
    return mean if len(values) == 1 else f"{mean}±{np.std(values, ddof=1):.1f}"
