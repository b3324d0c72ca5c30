"""The command ``graphcouple search``."""

from pathlib import Path
from typing import Any

import click

from graphcouple.cli import _common as common
from graphcouple.cli._help import Grouped


@click.command(cls=Grouped, examples="graphcouple search cells.csv --budget 10min -o report.html")
@click.argument("data")
@click.option("--space", type=click.Choice(("laws", "presets")), default="laws", show_default=True, help="Methods.")
@click.option("--objectives", default="R(10),R(n/2)", show_default=True, help="Scores, with commas between them.")
@click.option("--budget", default="10min", show_default=True, help='Time, or a number as in "60 trials".')
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True, help="Fits of the best methods.")
@click.option(
    "--seed", "random_state", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of the draws."
)
@click.option("-j", "--jobs", "n_jobs", type=int, help="Threads.  [default: every core]")
@click.option("--store", type=common.PATH, help="Keep each fit in this file, and continue where it ends.")
@common.labels_option
@common.columns_option
@click.option("-o", "--output", type=common.PATH, help="Report, .html.  [default: DATA-search.html]")
def search(
    data: str, objectives: str, seeds: int, labels: str | None, columns: str | None, output: Path | None, **options: Any
) -> None:
    """Try many methods on DATA, and show the methods that no other surpasses.

    Nine methods at a time are fitted to an eighth of the rows; the better ones to a third, and the best to all, with
    every seed. PCA, a random map, TSNE, UMAP and TwoScaleCoupling are always among them.
    """
    from graphcouple.plotting import require_matplotlib
    from graphcouple.searches import search as search_methods
    from graphcouple.searches.result import spread

    require_matplotlib()
    name, X, y = common.load_data(data, labels, columns)
    page = Path(f"{name}-search.html") if output is None else output
    common.check_target(page, (".html",), "--output")
    common.refuse_inputs({"--output": page, "--store": options["store"]}, (data, labels))
    options |= {"objectives": common.names_of(objectives), "n_seeds": seeds, "y": common.classes_or_none(y)}
    says = "{0.name}, {0.n_points} rows, seed {0.seed}: {0.seconds:.1f} s".format
    result = search_methods(X, callback=lambda fit: click.echo(says(fit), err=True), **options)
    result.to_html(page)
    rows = result.rows()
    cells = [
        [each, *(spread(rows[each], objective) for objective in result.objectives), f"{rows[each]['seconds']:.1f}"]
        for each in result.front
    ]
    common.print_table(["method"], [*result.objectives, "seconds"], cells)
    with common.guard_output():
        click.echo(f"{len(cells)} of {len(rows)} methods are on the front.\nwritten  {page}")
