"""The command ``graphcouple embed``."""

import ast
import dataclasses
from pathlib import Path
from typing import Any

import click

from graphcouple.cli import _common as common
from graphcouple.cli._help import Grouped

_PRIOR = common.check_name("prior", upper=True)
KERNELS = "gaussian, exponential, student[:DOF], rational:A:B, odds-KERNEL"


def _usage(name: str) -> str:
    """Return how to write a kernel: the numbers it needs, and optional ones in brackets."""
    from graphcouple import kernels

    fields = dataclasses.fields(kernels.KERNELS[name])
    needed = {f":{field.name.upper()}": field.default is dataclasses.MISSING for field in fields}
    return name + "".join(number if is_needed else f"[{number}]" for number, is_needed in needed.items())


def _parse_kernel(text: str) -> Any:
    from graphcouple import kernels

    name, *parts = text.split(":")
    name = name if name in kernels.KERNELS else name.lower()
    if name.startswith("odds-"):
        return kernels.Odds(_parse_kernel(text[len("odds-") :]))
    if name not in kernels.KERNELS:
        known = ", ".join([*map(_usage, kernels.KERNELS.names()), "odds-KERNEL"])
        raise ValueError(f"unknown kernel {text!r}; it must be one of {known}.")
    kernel = kernels.KERNELS[name]
    fields = dataclasses.fields(kernel)
    least = sum(field.default is dataclasses.MISSING for field in fields)
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) != len(parts) or not least <= len(numbers) <= len(fields):
        raise ValueError(f"cannot read the kernel {text!r}: write {_usage(name)} with numbers.")
    return kernel(*numbers)


def _compose(preset: Any, sides: dict[str, str | None], coupling: str | None) -> Any:
    """Return the preset, or a `GraphCoupling` of its sentence with the given laws and coupling."""
    flags = [f"--{name.replace('_', '-')}" for name, value in (*sides.items(), ("coupling", coupling)) if value]
    if not flags:
        return preset
    if not preset.couples_laws and flags == ["--input-prior"] and "prior" in preset.get_params():
        return preset.set_params(prior=sides["input_prior"])
    _check_couples_laws(preset, flags[-1])
    from graphcouple.couplings.recipes import as_coupling
    from graphcouple.estimators import GraphCoupling
    from graphcouple.laws.priors import as_prior

    sentence = preset.sentence
    changes: dict[str, Any] = {}
    for side in ("input", "latent"):
        parts: dict[str, Any] = {}
        if kernel := sides[f"{side}_kernel"]:
            parts["kernel"] = _parse_kernel(kernel)
        if prior := sides[f"{side}_prior"]:
            parts["prior"] = as_prior(prior)
            if not parts["prior"].independent_edges:
                parts["symmetrize"] = None
        law = sentence[side]
        each = tuple(dataclasses.replace(model, **parts) for model in law.parts)
        changes[side] = dataclasses.replace(law, laws=each) if len(each) > 1 else each[0]
    if coupling:
        changes["coupling"] = as_coupling(coupling)
    return GraphCoupling(**sentence.replace(**changes))


def _check_couples_laws(estimator: Any, option: str) -> None:
    if not estimator.couples_laws:
        raise ValueError(f"{option} does not apply to {type(estimator).__name__}, which does not couple two laws.")


def _with_terms(estimator: Any, n_prototypes: int | None, **weights: float | str | None) -> Any:
    """Return the estimator with the terms whose weights are given, and its points at this many places, if given."""
    from graphcouple.couplings import ComponentMeans, Density, LargeScale
    from graphcouple.estimators import DistR

    terms: dict[str, Any] = {"component_weight": ComponentMeans, "large_scale": LargeScale, "density": Density}
    for name, weight in weights.items():
        if weight is None:
            continue
        option, term = f"--{name.replace('_', '-')}", terms[name]
        _check_couples_laws(estimator, option)
        try:
            estimator.set_params(terms=(*estimator.terms, term(weight)))
        except ValueError as error:
            raise ValueError(f"{option}: {error}") from None
    if n_prototypes is not None:
        _check_couples_laws(estimator, "--prototypes")
        estimator = DistR(estimator, n_prototypes=n_prototypes)
    return estimator


def _weight(context: click.Context, option: click.Parameter, value: str | None) -> float | str | None:
    try:
        return value if value in (None, "auto") else float(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is neither a number nor 'auto'.") from None


def _settings(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    """Return parameters by name, each as a Python value if it is written like one, and else as a text."""
    parameters: dict[str, Any] = {}
    for setting in values:
        name, separator, text = setting.partition("=")
        if not (name and separator):
            raise click.BadParameter(f"{setting!r} has no '='; write NAME=VALUE, as in min_dist=0.5.")
        if name in parameters:
            raise click.BadParameter(f"{name} is given twice; drop one of them.")
        try:
            parameters[name] = ast.literal_eval(text)
        except (ValueError, SyntaxError):
            parameters[name] = text
    return parameters


def _refuse_twice(settings: dict[str, Any]) -> None:
    """Raise if an option of the command line gives a parameter that --set gives too."""
    source_of = click.get_current_context().get_parameter_source
    for name in settings:
        if source_of(name) is click.core.ParameterSource.COMMANDLINE:
            raise ValueError(f"--{common.option_of(name)} and --set {name} give one parameter; drop one of them.")


@click.command(
    cls=Grouped,
    groups={
        "Method": "method perplexity n_neighbors metric n_components init max_iter random_state n_jobs settings",
        "Another sentence": "input_prior input_kernel latent_prior latent_kernel coupling",
        "Terms and places": "large_scale component_weight density prototypes",
        "Data and files": "labels columns hover output plot no_plot interactive",
    },
    examples="""graphcouple embed digits
        graphcouple embed cells.csv --labels type --method umap -o cells-umap.csv
        graphcouple embed texts.npy --metric cosine --interactive map.html
        graphcouple embed digits --method umap --set min_dist=0.5
        graphcouple embed digits --latent-kernel student:0.5 --large-scale auto""",
)
@click.argument("data")
@common.method_option("One of `graphcouple methods`.")
@click.option(
    "--input-prior",
    metavar="PRIOR",
    callback=_PRIOR,
    help="Prior of the input's graph instead of the method's: "
    "B independent edges, D one edge out of each node, E n edges, S as D and one edge into each on average.",
)
@click.option("--input-kernel", metavar="KERNEL", help=f"Kernel of the input: {KERNELS}.")
@click.option("--latent-prior", metavar="PRIOR", callback=_PRIOR, help="Prior of the embedding's graph.")
@click.option("--latent-kernel", metavar="KERNEL", help="Kernel of the embedding.")
@click.option(
    "--perplexity",
    metavar="NUMBER[,NUMBER...]",
    callback=common.numbers,
    help="Effective number of neighbors; several, as in 30,500, for near and far ones.  "
    "[default: 30; largevis 50, laptsne 25, phate 5]",
)
@click.option("--n-neighbors", type=int, help="Neighbors that can carry a point's edges.  [default: the method's own]")
@click.option("--metric", help="Distance of the points; 'precomputed' if DATA holds distances.")
@common.name_option("coupling", "How the two laws are compared: cross-entropy or effective.  [default: the method's]")
@common.name_option(
    "init", "Start of the embedding: auto, ccpca, pca, random or spectral.  [default: the method's own]"
)
@click.option(
    "--large-scale",
    metavar="WEIGHT",
    callback=_weight,
    help="Couple at the scale of the whole too, to show the overall arrangement; a number or auto.  [default: none]",
)
@click.option(
    "--component-weight",
    metavar="WEIGHT",
    callback=_weight,
    help="Hierarchical coupling: weight of the coupling of component means, a number or auto.  [default: none]",
)
@click.option(
    "--density",
    metavar="WEIGHT",
    type=float,
    help="Make the map dense where the data are, as densMAP does; 3 is usual.  [default: none]",
)
@click.option(
    "--prototypes",
    metavar="NUMBER",
    type=int,
    help="Put the points at this many places, which are clusters, by DistR.  [default: a place for each point]",
)
@click.option("-c", "--components", "n_components", type=int, help="Dimension of the embedding.  [default: 2]")
@click.option("-n", "--iterations", "max_iter", type=int, help="Maximum iterations.  [default: the method's own]")
@click.option("-s", "--seed", "random_state", type=int, default=0, show_default=True, help="Seed of all randomness.")
@click.option("--jobs", "n_jobs", type=int, help="Threads.  [default: every core]")
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_settings,
    help="Any other parameter of the method, as in Python; may be repeated.",
)
@common.labels_option
@click.option("-o", "--output", type=common.PATH, help="Embedding file, .npy or .csv.  [default: DATA-METHOD.npy]")
@click.option("-p", "--plot", type=common.PATH, help="Picture, .png, .svg or .pdf.  [default: beside the embedding]")
@click.option("--no-plot", is_flag=True, help="Make no picture.")
@click.option("--interactive", type=common.PATH, help="Map to zoom and search in, .html.")
@common.columns_option
@click.option("--hover", metavar="COLUMN[,COLUMN...]", help="Columns of a table that --interactive shows; no points.")
def embed(
    data: str,
    method: str,
    labels: str | None,
    output: Path | None,
    plot: Path | None,
    no_plot: bool,
    interactive: Path | None,
    columns: str | None,
    hover: str | None,
    coupling: str | None,
    settings: dict[str, Any],
    prototypes: int | None,
    **options: Any,
) -> None:
    """Embed DATA, and write the embedding and a picture.

    DATA is a name (breast_cancer, diabetes, digits, iris, swiss_roll, wine; or mnist, fashion_mnist, coil20, pendigits,
    fetched from OpenML) or a file with one row per point: .npy, .npz, .csv, .tsv, .parquet, .mtx or .h5ad.
    """
    from graphcouple._support.storage import finished_files
    from graphcouple.datasets._files import read_texts, write_embedding

    _refuse_twice(settings)
    texts = common.names_of(hover)
    if texts and interactive is None:
        raise ValueError("--hover is shown on the map of --interactive; name one.")
    name, X, y = common.load_data(data, labels, columns, texts)
    beside = read_texts(Path(data), texts) if texts else None
    sides = {name: options.pop(name) for name in ("input_prior", "input_kernel", "latent_prior", "latent_kernel")}
    weights = {name: options.pop(name) for name in ("component_weight", "large_scale", "density")}
    is_composed = any((*sides.values(), coupling)) and common.preset(method, {}).couples_laws
    default = f"{name}-{'composed' if is_composed else method}.npy"
    table, picture = common.targets(default, (".npy", ".csv"), output, plot, no_plot, inputs=(data, labels))
    if interactive is not None:
        from graphcouple.plotting._interactive import require_bokeh

        common.check_target(interactive, (".html",), "--interactive")
        require_bokeh()
    plain = _compose(common.preset(method, options).set_params(**settings), sides, coupling)
    estimator = _with_terms(plain, prototypes, **weights)
    seconds = common.fit_reporting(estimator, X, y if estimator.uses_classes else None)
    before = common.present(table, picture, interactive)
    with finished_files(table, picture, interactive) as drafts:
        write_embedding(drafts[table], table, estimator.embedding_)
        if picture is not None:
            from graphcouple.plotting import plot as scatter

            axes = scatter(estimator.embedding_, y, title=f"{type(estimator).__name__} of {name}")
            common.save_picture(drafts[picture], picture, axes.figure)
        if interactive is not None:
            from graphcouple.plotting import interactive as zoomed

            zoomed(estimator, y, beside, title=f"{type(estimator).__name__} of {name}").save(drafts[interactive])
    subject = f"{type(estimator).__name__} on {name}, {X.shape[0]:,} × {X.shape[1]:,}"
    state = vars(estimator)
    ending = f", {state['n_iter_']} iterations; {state['stop_reason_']}" if "stop_reason_" in state else ""
    rows = [("method", subject), *estimator.report(), ("time", f"{seconds:.1f} s{ending}")]
    common.report([*rows, ("written", common.written((table, picture, interactive), before))])
