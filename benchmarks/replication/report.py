"""The tables as Markdown, beside the papers' figures."""

import laptsne
import numpy as np
from papers import GAPS, GRAPH_COUPLING, LAPTSNE, STARTS


def _cell(values, digits):
    text = f"{values.mean():.{digits}f}"
    return text if len(values) == 1 else f"{text} ± {values.std(ddof=1):.{digits}f}"


def _table(header, rows):
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def graph_coupling_tables(runs):
    """Return the rows of tables 2 and 3, from `runs` by data set and seed."""
    rows = []
    for data, seeds in runs.items():
        printed = GRAPH_COUPLING["t-SNE"].get(data.removesuffix(" (10,000)"))
        keys = list(next(iter(seeds.values())))
        for key in keys:
            method, start = key.split("|")
            values = np.array([scores[key] for scores in seeds.values()]).T
            theirs = ["", ""]
            if printed and method in GRAPH_COUPLING and start in STARTS:
                pair = GRAPH_COUPLING[method][data.removesuffix(" (10,000)")][STARTS.index(start)]
                theirs = [f"{mean:.3f} ± {spread:.3f}" for mean, spread in pair]
            r10, quarter, half = (_cell(column, 3) for column in values)
            rows.append([data, method, start, r10, quarter, theirs[0], half, theirs[1]])
    return _table(["data", "method", "start", "R(10)", "R(n/4)", "paper", "R(n/2)", "paper"], rows)


def laptsne_tables(runs):
    """Return tables 2 and 3 (few and many neighbors), and table 4 (clusters at the gap)."""
    tables = {laptsne.FEW: [], laptsne.MANY: []}
    gaps = []
    for data, seeds in runs.items():
        name = data.removesuffix(" (10,000)")
        for method in laptsne.METHODS:
            values = np.array([scores[method] for scores in seeds.values()]).T
            theirs = LAPTSNE[name].get(method)
            # The paper has no accuracy of points held out, the fifth of our columns.
            printed = [f" ({score:.3f})" for score in theirs] if theirs else [""] * 10
            printed.insert(4, "")
            cells = [_cell(column, 3) + paper for column, paper in zip(values, printed, strict=True)]
            tables[laptsne.neighbors_of(name)].append([data, method, *cells[:8]])
            gaps.append([data, method, str(GAPS[name]), *cells[8:]])
    scores = ["NMI ↑", "SC ↑", "DBI ↓"]
    few, many = (
        _table(["data", "method", *(f"{k}-NN ↑" for k in sizes), f"{sizes[0]}-NN held out ↑", *scores], rows)
        for sizes, rows in tables.items()
    )
    return few, many, _table(["data", "method", "k̂", *scores], gaps)
