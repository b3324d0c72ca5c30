"""Sphinx's configuration: `python -m sphinx -W -n docs docs/_build/html` builds the site."""

import os
import re
import sys

from docutils import nodes
from pybtex.database import parse_file

import graphcouple as gc

sys.path.insert(0, os.path.dirname(__file__))

project = "graphcouple"
author = "The graphcouple developers"
release = gc.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.bibtex",
]
exclude_patterns = ["_build", "_templates", "**/GALLERY_HEADER.rst"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
templates_path = ["_templates"]
bibtex_bibfiles = ["references.bib"]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
copybutton_prompt_text = ">>> |\\.\\.\\. |\\$ "
copybutton_prompt_is_regexp = True
# A name in backticks is a link if it has a page, and plain text if not.
nitpick_ignore_regex = [
    ("py:obj", r".*"),
    ("py:class", r"graphcouple\.laws\.priors\..*"),
    # The docstrings of dict.
    ("py:class", r".*\bD('s|\[k\]) ?.*"),
]

autosummary_generate = True
default_role = "autolink"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_title = "graphcouple"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"start": [], "problems": [], "coming_from": []}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # A pattern of the scripts to run; "none" runs none.
    "filename_pattern": os.environ.get("GRAPHCOUPLE_GALLERY", r"\.py$"),
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 60,
    "reference_url": {"graphcouple": None},
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "subsection_order": [
        f"../examples/{name}"
        for name in (
            "compose",
            "maps",
            "global_structure",
            "classical",
            "theory",
            "attraction_repulsion",
            "contraction",
            "texts",
        )
    ],
}


BIBLIOGRAPHY = parse_file(os.path.join(os.path.dirname(__file__), "references.bib")).entries


def first_author(paper):
    """Return the last name of the first author."""
    name = paper.persons["author"][0]
    return " ".join(name.prelast_names + name.last_names)


def cite(app, what, name, obj, options, lines):
    """Link a paper that a docstring names, its first author and year in one line, to the bibliography."""
    for k, line in enumerate(lines):
        for key, paper in BIBLIOGRAPHY.items():
            year = f"({paper.fields['year']})"
            if first_author(paper) in line and year in line:
                lines[k] = lines[k].replace(year, f"{year} :cite:p:`{key}`", 1)


def to_gallery(app, page, source):
    """Turn links to scripts and folders of examples into links to the gallery's pages."""
    ends = {".py": ".rst", "/": "/index.rst"}
    link = re.compile(r"\]\(((?:\.\./)*)\.\./examples(/[\w/]*\w)?(\.py|/)\)")
    source[0] = link.sub(lambda found: f"]({found[1]}gallery{found[2] or ''}{ends[found[3]]})", source[0])


def to_reference(app, doctree, page):
    """Link names in code type, such as `gc.TSNE`, to their pages of the reference."""
    home = "reference/names/graphcouple."
    for code in list(doctree.findall(nodes.literal)):
        name = code.astext().removeprefix("gc.").partition("(")[0]
        target = home + name
        if target in app.env.all_docs and page != target and not isinstance(code.parent, nodes.reference):
            uri = app.builder.get_relative_uri(page, target)
            code.replace_self(nodes.reference("", "", code.deepcopy(), internal=True, refuri=uri))


def setup(app):
    """Write the reference before Sphinx reads it, and cite papers once numpydoc is done."""
    from _reference import write

    app.connect("config-inited", lambda app, config: write(app))
    app.connect("source-read", to_gallery)
    app.connect("doctree-resolved", to_reference)
    app.connect("autodoc-process-docstring", cite, priority=900)
