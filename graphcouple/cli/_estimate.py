"""The command ``graphcouple estimate``."""

from __future__ import annotations

import click

from graphcouple.cli._common import METHODS, guard_output, preset


@click.command()
@click.option("--rows", "n", type=int, required=True, help="Number of rows of the data.")
@click.option("--columns", "p", type=int, required=True, help="Number of columns of the data.")
@click.option(
    "-m", "--method", type=click.Choice(sorted(METHODS)), default="tsne", show_default=True, help="The method."
)
@click.option("-c", "--components", "n_components", type=int, help="Dimension of the embedding.")
@click.option("--perplexity", type=float, help="Effective number of neighbors.")
@click.option("--single", is_flag=True, help="The data are in single precision.")
def estimate(n: int, p: int, method: str, n_components: int | None, perplexity: float | None, single: bool) -> None:
    """Estimate the seconds and the memory of a fit, by stage.

    A trial fit of up to 10,000 random rows runs first, which takes a few seconds.
    """
    from graphcouple.estimators import estimate

    options = {"n_components": n_components, "perplexity": perplexity, "random_state": 0}
    with guard_output():
        click.echo(str(estimate(preset(method, options), n, p, "float32" if single else "float64")))
