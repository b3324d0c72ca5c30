"""Write the pages of the reference: every public name, by the module that defines it."""

import importlib
import inspect
from pathlib import Path

import graphcouple as gc

# Title of a page, what it holds, and the modules whose classes and functions it lists.
TOP = {
    "Methods": ("Estimators in the manner of scikit-learn.", "graphcouple.estimators"),
    "Laws and kernels": ("The two random graphs of a sentence.", "graphcouple.laws graphcouple.kernels"),
    "Couplings and terms": ("How two laws are compared, and what is added.", "graphcouple.couplings"),
    "Optimizers and sums": ("How an embedding is found.", "graphcouple.optimize graphcouple.summation"),
    "Tools": ("Functions that compare, search, draw and load.", "graphcouple"),
}
MODULES = {
    "extend": "Bases of parts of your own, and what registers them.",
    "couplings": "Objectives, and the recipes that make them.",
    "laws": "Bandwidths, priors and laws.",
    "laws.priors": "Priors of graphs, and the posteriors that they give.",
    "graphs": "Graphs as arrays.",
    "estimators": "The sentence of a method.",
    "kernels": "Kernels, and their check.",
    "components": "Connected components of random graphs.",
    "theory": "The papers' statements as objects.",
    "metrics": "Scores of maps.",
    "plotting": "Pictures.",
    "datasets": "Data to try methods on.",
    "neighbors": "Distances and nearest neighbours.",
    "summation": "Sums over all pairs.",
    "optimize": "The loop and its optimizers.",
    "distributed": "Rows that dask holds.",
    "scverse": "Annotated data, in scanpy's manner.",
}


def documented(module, names):
    """Return the names of classes and functions with an example; the package's own helpers have none."""
    values = {name: getattr(module, name) for name in names}
    public = (inspect.isclass, inspect.isroutine)
    return [n for n, value in values.items() if any(kind(value) for kind in public) and ">>>" in (value.__doc__ or "")]


def page(folder, title, opening, module, names):
    """Write one page, and return its name."""
    stem = title.lower().replace(" ", "_")
    rows = "\n".join(f"   {name}" for name in sorted(names, key=str.lower))
    text = f"{title}\n{'=' * len(title)}\n\n{opening}\n\n.. currentmodule:: {module}\n\n"
    text += f".. autosummary::\n   :toctree: names\n   :template: autosummary/name.rst\n   :nosignatures:\n\n{rows}\n"
    (folder / f"{stem}.rst").write_text(text)
    return stem


def write(app):
    """Write all pages of the reference below docs/reference."""
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    left, pages = set(documented(gc, dir(gc))), []
    seen = {getattr(gc, name) for name in left}
    for title, (opening, homes) in TOP.items():
        names = {n for n in left if getattr(gc, n).__module__.startswith(tuple(homes.split()))}
        names = {n for n in names if title != "Methods" or hasattr(getattr(gc, n), "fit")}
        left -= names
        pages.append(page(folder, title, opening, "graphcouple", names))
    for name, opening in MODULES.items():
        module = importlib.import_module(f"graphcouple.{name}")
        names = {n for n in documented(module, module.__all__) if getattr(module, n) not in seen}
        seen |= {getattr(module, n) for n in names}
        pages.append(page(folder, f"graphcouple.{name}", opening, f"graphcouple.{name}", names))
    contents = "\n".join(f"   {stem}" for stem in pages)
    text = "Reference\n=========\n\nEvery public name, with its formula, its errors and an example. "
    text += "Names without a page may change.\n\n"
    (folder / "index.rst").write_text(f"{text}.. toctree::\n   :maxdepth: 2\n\n{contents}\n")
