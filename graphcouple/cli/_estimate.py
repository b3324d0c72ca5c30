"""The command ``graphcouple estimate``."""

import click

from graphcouple.cli._common import guard_output, method_option, preset


@click.command()
@click.option("--rows", "n", type=int, required=True, help="Number of rows of the data.")
@click.option("--columns", "p", type=int, required=True, help="Number of columns of the data.")
@method_option("One of `graphcouple methods` that couples two laws.")
@click.option("-c", "--components", "n_components", type=int, help="Dimension of the embedding.")
@click.option("--perplexity", type=float, help="Effective number of neighbors.")
@click.option("-j", "--jobs", "n_jobs", type=int, help="Threads.  [default: every core]")
@click.option("--single", is_flag=True, help="The data are in single precision.")
def estimate(n: int, p: int, method: str, single: bool, **options: float | None) -> None:
    """Estimate the seconds and the memory of a fit, by stage.

    A trial fit of up to 10,000 rows in 50 clusters runs first, which takes a few seconds. On an idle machine, the
    estimated seconds are mostly right within a factor of two.
    """
    from graphcouple.estimators import estimate

    cost = estimate(preset(method, options | {"random_state": 0}), n, p, "float32" if single else "float64")
    with guard_output():
        click.echo(str(cost))
