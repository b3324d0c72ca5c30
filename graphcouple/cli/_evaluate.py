"""The command ``graphcouple evaluate``."""

from pathlib import Path
from typing import Any

import click

from graphcouple.cli import _common as common


@click.command()
@click.argument("data")
@click.argument("embeddings", nargs=-1, required=True, type=common.PATH)
@common.labels_option
@common.columns_option
@click.option("--metric", default="euclidean", show_default=True, help="Distance of the points of DATA.")
@click.option("-k", "sizes", type=int, multiple=True, help="Size of a neighborhood; repeat for several.")
@click.option("--rows", type=int, help="Score only this many random points.  [default: all to 12,000, then 1,280]")
@click.option("-s", "--seed", "random_state", type=int, default=0, show_default=True, help="Seed of all randomness.")
@click.option("--jobs", "n_jobs", type=int, help="Threads.  [default: every core]")
@click.option("-o", "--output", type=common.PATH, help="Also write the scores to this .csv file.")
def evaluate(
    data: str,
    embeddings: tuple[Path, ...],
    labels: str | None,
    columns: str | None,
    sizes: tuple[int, ...],
    rows: int | None,
    output: Path | None,
    **options: Any,
) -> None:
    """Score EMBEDDINGS of DATA, files with one row per point: .npy, .npz or .csv.

    R(K), the agreement of neighborhoods of K points, is 1 if perfect and 0 by chance; graphcouple.metrics in the
    documentation explains each score.
    """
    from graphcouple._support.storage import finished_files
    from graphcouple.datasets._files import read_points, write_table
    from graphcouple.metrics._evaluate import score_each

    if output is not None:
        common.check_target(output, (".csv",), "--output")
    common.refuse_inputs({"--output": output}, (data, labels, *embeddings))
    _, X, y = common.load_data(data, labels, columns)
    maps: dict[str, Any] = {}
    for path in embeddings:
        name = path.name if path.name not in maps else str(path)
        if name in maps:
            raise ValueError(f"{path} is named twice; name each embedding once.")
        maps[name] = read_points(path, None)[0]
    n_rows = "auto" if rows is None else rows
    y = common.classes_or_none(y)
    scores = score_each(X, maps, y, K=list(sizes) or None, n_rows=n_rows, **options)
    if output is not None:
        with finished_files(output) as drafts:
            write_table(drafts[output], [{"embedding": name, **row} for name, row in scores.items()])
    _print(scores)


def _print(scores: dict[str, dict[str, float]]) -> None:
    rows = []
    for score in dict.fromkeys(name for row in scores.values() for name in row):
        if score.endswith(" ±"):
            continue
        cells = []
        for row in scores.values():
            error = row.get(f"{score} ±")
            shown = f"{row[score]:.4f}" if score in row else ""
            cells.append(shown + (f" ± {error:.4f}" if error is not None else ""))
        rows.append([score, *cells])
    common.print_table([""], list(scores), rows)
