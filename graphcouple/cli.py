"""The command ``graphcouple``: embed data, and show the picture."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any, NoReturn

import click

METHODS = ("tsne", "sne", "symmetric-sne", "largevis", "umap", "ccpca")
KERNELS = ("gaussian", "exponential", "student[:DOF]", "rational:A:B", "odds-KERNEL")
OPTIONS = {"max_iter": "iterations", "n_components": "components", "n_jobs": "jobs", "random_state": "seed"}
PLOT_ENDINGS = (".png", ".svg", ".pdf")
TABLE_ENDINGS = (".npy", ".csv")


def _parse_kernel(text: str) -> Any:
    from graphcouple import kernels

    name, *parts = text.lower().split(":")
    if name.startswith("odds-"):
        return kernels.Odds(_parse_kernel(text.lower().removeprefix("odds-")))
    forms: dict[str, tuple[type, tuple[int, ...], str]] = {
        "gaussian": (kernels.Gaussian, (0,), "gaussian takes no number"),
        "exponential": (kernels.Exponential, (0,), "exponential takes no number"),
        "student": (kernels.Student, (0, 1), "student takes its degrees of freedom, as in student:0.5"),
        "rational": (kernels.RationalPower, (2,), "rational takes a and b, as in rational:1.5:0.9"),
    }
    if name not in forms:
        raise ValueError(f"unknown kernel {text!r}; it must be one of {', '.join(KERNELS)}.")
    kernel, counts, usage = forms[name]
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) != len(parts) or len(numbers) not in counts:
        raise ValueError(f"cannot read the kernel {text!r}: {usage}.")
    return kernel(*numbers)


def _preset(method: str, options: dict[str, Any]) -> Any:
    """Return the named estimator with the options that were given; raise for one it does not have."""
    from graphcouple import estimators

    classes: dict[str, type] = {
        "tsne": estimators.TSNE,
        "sne": estimators.SNE,
        "symmetric-sne": estimators.SymmetricSNE,
        "largevis": estimators.LargeVis,
        "umap": estimators.UMAP,
        "ccpca": estimators.CCPCA,
    }
    chosen = classes[method]
    given = {name: value for name, value in options.items() if value is not None}
    known = inspect.signature(chosen).parameters
    for name in given:
        if name not in known:
            raise ValueError(f"--{OPTIONS.get(name, name.replace('_', '-'))} does not apply to --method {method}.")
    return chosen(**given)


def _compose(preset: Any, n_samples: int, sides: dict[str, str | None]) -> Any:
    """Return the preset, or its two laws with the kernels and priors that were asked for put in their place."""
    given = [f"--{name.replace('_', '-')}" for name, value in sides.items() if value]
    if not given:
        return preset
    if not hasattr(preset, "models"):
        if given != ["--input-prior"]:
            raise ValueError(f"{given[-1]} does not apply to --method ccpca, which has a prior of the input only.")
        return preset.set_params(prior=sides["input_prior"])
    from graphcouple.estimators import GraphCoupling

    laws = dict(zip(("input", "latent"), preset.models(n_samples), strict=True))
    for side, law in laws.items():
        changes: dict[str, Any] = {}
        if kernel := sides[f"{side}_kernel"]:
            changes["kernel"] = _parse_kernel(kernel)
        if prior := sides[f"{side}_prior"]:
            changes["prior"] = prior
            if prior != "B" and law.symmetrize:
                changes["symmetrize"] = None
        laws[side] = dataclasses.replace(law, **changes)
    shared = {name: getattr(preset, name) for name in ("init", "n_components", "random_state", "n_jobs")}
    return GraphCoupling(**laws, **shared, max_iter=preset._iterations(n_samples))


def _load(data: str, labels: str | None) -> tuple[str, Any, Any]:
    """Return a short name, the points, and the labels or None."""
    from graphcouple import _files, datasets

    path = Path(data)
    y: Any
    if data in datasets.NAMES:
        X, y = datasets.load(data)
        name = data
    elif path.suffix or path.exists():
        separate = labels is not None and Path(labels).is_file()
        X, y = _files.read_points(path, None if separate else labels)
        name = path.name.removesuffix(_files.suffix_of(path)) or "embedding"
    else:
        raise ValueError(f"unknown data {data!r}: neither a file nor one of {', '.join(datasets.NAMES)}.")
    if getattr(X, "ndim", 0) != 2 or X.dtype.kind not in "iufb":
        raise ValueError(f"{data} must hold a 2D array of real numbers, got {X.ndim}D of dtype {X.dtype}.")
    if labels is not None and Path(labels).is_file():
        y = _files.read_labels(Path(labels), X.shape[0])
    elif labels is not None and (y is None or data in datasets.NAMES):
        raise ValueError(f"--labels {labels}: no such file, and {data} has no labels to choose from.")
    if y is not None and len(y) != X.shape[0]:
        raise ValueError(f"there are {len(y)} labels, but {X.shape[0]} rows of data.")
    return name, X, y


def _targets(name: str, method: str, output: Path | None, plot: Path | None, no_plot: bool) -> tuple[Path, Path | None]:
    """Return where the embedding and the picture go, checked before any work is done."""
    if no_plot and plot is not None:
        raise ValueError("--plot and --no-plot exclude each other.")
    table = output or Path(f"{name}-{method}.npy")
    picture = None if no_plot else plot or table.with_suffix(".png")
    for path, endings, option in ((table, TABLE_ENDINGS, "--output"), (picture, PLOT_ENDINGS, "--plot")):
        if path is None:
            continue
        if path.suffix.lower() not in endings:
            raise ValueError(f"{option} {path}: the ending must be one of {', '.join(endings)}.")
        if not path.parent.is_dir():
            raise ValueError(f"{option} {path}: the folder {path.parent} does not exist.")
        if path.is_dir():
            raise ValueError(f"{option} {path} is a folder.")
    if picture is not None:
        from graphcouple.plotting import _require_matplotlib

        try:
            _require_matplotlib()
        except ModuleNotFoundError as error:
            raise ValueError(f"{error}, or give --no-plot.") from None
    return table, picture


def _fit(estimator: Any, X: Any) -> float:
    """Fit under a progress bar (on a terminal); return the seconds it took."""
    start = time.perf_counter()
    (getattr(estimator, "estimator", None) or estimator).set_params(verbose=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        estimator.fit(X)
    package = Path(__file__).parent
    for text in dict.fromkeys(str(w.message) for w in caught if Path(w.filename).is_relative_to(package)):
        click.echo(f"graphcouple: warning: {' '.join(text.split())}", err=True)
    return time.perf_counter() - start


def _with_component_means(estimator: Any, weight: float | None) -> Any:
    """Return the estimator, or hierarchical coupling of it where a weight is given."""
    if weight is None:
        return estimator
    if not hasattr(estimator, "models"):
        raise ValueError("--component-weight does not apply to --method ccpca, which is all component means.")
    from graphcouple.estimators import HierarchicalCoupling

    return HierarchicalCoupling(estimator, weight=weight, random_state=estimator.random_state)


def _laws_of(estimator: Any, n_samples: int) -> str:
    def law(model: Any) -> str:
        parts = [f"{model.prior.code}{' thresholded' if model.symmetrize else ''}", model.kernel, model.bandwidth]
        text = ", ".join(str(part) for part in parts if part is not None)
        return re.sub(r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.4g}", text)

    if not hasattr(estimator, "models"):
        return f"input {law(estimator.model(n_samples))}"
    given, latent = estimator.models(n_samples)
    return f"input {law(given)}\nlatent {law(latent)}"


def _report(rows: list[tuple[str, str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console().print(table, highlight=False)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="graphcouple")
def cli() -> None:
    """Probabilistic graph coupling for dimensionality reduction."""


PRIOR = click.Choice(["B", "D", "E"], case_sensitive=False)


@cli.command()
@click.argument("data")
@click.option("-m", "--method", type=click.Choice(METHODS), default="tsne", show_default=True)
@click.option(
    "--input-prior",
    type=PRIOR,
    help="Prior of the input's graph, in place of the method's: B independent edges, D one edge a node, E n edges.",
)
@click.option("--input-kernel", metavar="KERNEL", help=f"Kernel of the input: {', '.join(KERNELS)}.")
@click.option("--latent-prior", type=PRIOR, help="Prior of the embedding's graph.")
@click.option("--latent-kernel", metavar="KERNEL", help="Kernel of the embedding.")
@click.option("--perplexity", type=float, help="Effective number of neighbors.  [default: 30; largevis 50]")
@click.option("--n-neighbors", type=int, help="Neighbors that can carry a point's edges.  [default: by size; umap 15]")
@click.option("--metric", help="Distance of the points; 'precomputed' when DATA holds distances.")
@click.option(
    "--init",
    type=click.Choice(["ccpca", "pca", "random", "spectral"]),
    help="Start of the embedding.  [default: pca; umap spectral]",
)
@click.option(
    "--component-weight",
    type=float,
    help="Hierarchical coupling: weight of the coupling of component means.  [default: none]",
)
@click.option("-c", "--components", "n_components", type=int, help="Dimension of the embedding.  [default: 2]")
@click.option(
    "-n", "--iterations", "max_iter", type=int, help="Iterations at most.  [default: 550; largevis 500; umap auto]"
)
@click.option("-s", "--seed", "random_state", type=int, default=0, show_default=True, help="Seed of all randomness.")
@click.option("--jobs", "n_jobs", type=int, help="Threads.  [default: every core]")
@click.option(
    "-l",
    "--labels",
    metavar="COLUMN|KEY|FILE",
    help="Labels: a csv column (name, or number from 0; not taken for data), an npz key, or a file.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Embedding file, .npy or .csv.  [default: DATA-METHOD.npy]",
)
@click.option(
    "-p",
    "--plot",
    type=click.Path(path_type=Path),
    help="Picture, .png, .svg or .pdf.  [default: beside the embedding]",
)
@click.option("--no-plot", is_flag=True, help="Make no picture.")
def embed(
    data: str,
    method: str,
    labels: str | None,
    output: Path | None,
    plot: Path | None,
    no_plot: bool,
    input_prior: str | None,
    input_kernel: str | None,
    latent_prior: str | None,
    latent_kernel: str | None,
    component_weight: float | None,
    **options: Any,
) -> None:
    """Embed DATA, write the embedding and a picture.

    DATA is a bundled name (breast_cancer, digits, iris, swiss_roll, wine) or a file:
    .npy, .npz, .csv, .csv.gz or .mtx, one row a point.
    """
    from graphcouple._files import finished_files, write_embedding

    name, X, y = _load(data, labels)
    sides = {
        "input_prior": input_prior,
        "input_kernel": input_kernel,
        "latent_prior": latent_prior,
        "latent_kernel": latent_kernel,
    }
    composed = any(sides.values()) and method != "ccpca"
    table, picture = _targets(name, "composed" if composed else method, output, plot, no_plot)
    plain = _compose(_preset(method, options), X.shape[0], sides)
    estimator = _with_component_means(plain, component_weight)
    seconds = _fit(estimator, X)
    with finished_files(table, picture) as (draft, sketch):
        assert draft is not None
        write_embedding(draft, table, estimator.embedding_)
        if sketch is not None and picture is not None:
            _draw(sketch, picture, estimator.embedding_, y, f"{type(estimator).__name__} of {name}")
    shown = f"{type(estimator).__name__} on {name}, {X.shape[0]:,} × {X.shape[1]:,}"
    rows = [("method", shown), ("laws", _laws_of(plain, X.shape[0])), *_outcome(estimator, seconds)]
    rows.append(("written", "\n".join(str(path) for path in (table, picture) if path is not None)))
    _report(rows)


def _outcome(estimator: Any, seconds: float) -> list[tuple[str, str]]:
    if not hasattr(estimator, "loss_"):
        counts, sizes = estimator.component_counts_, estimator.component_sizes_
        largest = sum(size[0] for size in sizes) / len(sizes)
        return [
            (
                "graphs",
                f"{len(counts)} drawn, {counts.mean():.1f} components each, the largest of {largest:.0f} points",
            ),
            ("error", f"{estimator.relative_error_:.3f} of the embedding's norm, by Monte Carlo"),
            ("time", f"{seconds:.1f} s"),
        ]
    rows = [("loss", f"{estimator.loss_:.6g} nats")]
    if hasattr(estimator, "coupling_loss_"):
        parts = f"graphs {estimator.coupling_loss_:.6g}, component means {estimator.component_loss_:.6g}"
        rows.append(("of which", f"{parts} × {estimator.weight:g}"))
    if hasattr(estimator, "kl_divergence_"):
        rows.append(("KL", f"{estimator.kl_divergence_:.4f} nats"))
    return [*rows, ("time", f"{seconds:.1f} s, {estimator.n_iter_} iterations; {estimator.stop_reason_}")]


def _draw(path: Path, target: Path, Z: Any, y: Any, title: str) -> None:
    from matplotlib import rc_context

    from graphcouple.plotting import plot

    ending = target.suffix.lower().removeprefix(".")
    # Text stays text: journals refuse matplotlib's default Type 3 fonts.
    with rc_context({"pdf.fonttype": 42, "svg.fonttype": "none"}):
        figure: Any = plot(Z, y, title=title).figure
        figure.savefig(path, dpi=200, format=ending)


def _fail(message: str) -> NoReturn:
    click.echo(f"graphcouple: error: {' '.join(message.split())}", err=True)
    sys.exit(2)


def main() -> None:
    """Run the command; every failure is one line on standard error and exit status 2."""
    warnings.simplefilter("ignore")
    try:
        status = cli.main(prog_name="graphcouple", standalone_mode=False)
    except getattr(click.exceptions, "NoArgsIsHelpError", ()):
        _fail("missing command; try graphcouple --help")
    except click.UsageError as error:
        _fail(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        click.echo("graphcouple: interrupted", err=True)
        sys.exit(130)
    except (ValueError, TypeError, OSError, FloatingPointError, MemoryError, click.ClickException) as error:
        _fail(str(error) or type(error).__name__)
    sys.exit(status if isinstance(status, int) else 0)
