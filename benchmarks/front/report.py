"""Tables and pictures of the front."""

from collections import defaultdict

import numpy as np

SCORES = ("R(10)", "R(n/4)", "R(n/2)", "torn", "detached", "distances", "triplets", "class means")

# Rows that belong together; all others are the front.
TRIALS = {
    "local against global": (
        "t-SNE",
        "two-scale t-SNE, weight 1",
        "two-scale t-SNE",
        "two-scale t-SNE, weight 7",
        "two-scale t-SNE, nothing resists",
        "two-scale t-SNE, weight 7, nothing resists",
    ),
    "terms": (
        "t-SNE",
        "two-scale t-SNE",
        "t-SNE, shape of PCA",
        "t-SNE, distances",
        "hierarchical t-SNE",
        "t-SNE, two perplexities",
    ),
    "starts": (
        "t-SNE",
        "t-SNE from ccPCA",
        "t-SNE from eigenmaps",
        "UMAP",
        "UMAP from PCA",
        "UMAP from ccPCA",
        "two-scale UMAP",
        "two-scale UMAP from PCA",
    ),
}
_MAIN = {"t-SNE", "UMAP", "UMAP from ccPCA", "two-scale t-SNE", "two-scale UMAP", "hierarchical t-SNE"}
_TRIED = {name for names in TRIALS.values() for name in names} - _MAIN


def fronts(rows):
    """Return the rows of the front itself, without those of trials."""
    return [row for row in rows if row["method"] not in _TRIED]


def _by(rows, score):
    """Return the values of a score, as a list over seeds, by data set and method."""
    found = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.get(score):
            found[row["data"]][row["method"]].append(float(row[score]))
    return found


def _over_data(rows, score, methods, data):
    """Return, for each method, the mean over data sets of each seed."""
    means = {}
    # Without classes, there is no arrangement of them.
    known = {row["data"] for row in rows if row.get(score)} & set(data)
    for method in methods:
        seeds = defaultdict(list)
        for row in rows:
            if row["method"] == method and row["data"] in known and row.get(score):
                seeds[row["seed"]].append(float(row[score]))
        means[method] = [float(np.mean(values)) for values in seeds.values() if len(values) == len(known)]
    return means


def tables(rows):
    """Return the tables in Markdown: those of the front, and the means of each trial over seeds that all rows have."""
    main = fronts(rows)
    parts = [table(main), *(each(main, score) for score in ("R(n/2)", "R(10)", "torn", "class means"))]
    for title, methods in TRIALS.items():
        held = [row for row in rows if row["method"] in methods]
        seeds = set.intersection(*({row["seed"] for row in held if row["method"] == name} for name in methods))
        if seeds:
            parts += [f"### {title}, seeds {', '.join(sorted(seeds))}", table([r for r in held if r["seed"] in seeds])]
    return "\n\n".join(parts) + "\n"


def _names(rows):
    return (list(dict.fromkeys(row[key] for row in rows)) for key in ("data", "method"))


def table(rows):
    """Return a table of means over the data sets, in the order of the mean rank at n/2.

    What follows ± is the standard deviation over seeds of the mean over data sets.
    """
    data, methods = _names(rows)
    columns = {score: _over_data(rows, score, methods, data) for score in SCORES}
    seconds = _by(rows, "seconds")
    ranks = _mean_ranks(rows, "R(n/2)", data, methods)
    names = " | ".join(SCORES)
    lines = [f"| mean over {len(data)} data sets | {names} | rank at n/2 | seconds |", "|---" * (len(SCORES) + 3) + "|"]
    for method in sorted(methods, key=lambda name: ranks[name]):
        cells = [_shown(columns[score][method]) for score in SCORES]
        # The least over seeds: what else the machine did only adds to it.
        least = [min(seconds[name][method]) for name in data if seconds[name][method]]
        cells += [f"{ranks[method]:.1f}", f"{np.mean(least):.1f}"]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def each(rows, score):
    """Return a table of one score, with a column for each data set that has it."""
    data, methods = _names([row for row in rows if row.get(score)])
    found = _by(rows, score)
    lines = [f"| {score} | " + " | ".join(data) + " |", "|---" * (len(data) + 1) + "|"]
    for method in methods:
        cells = [_shown(found[name][method]) for name in data]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _shown(values):
    if not len(values):
        return "–"
    return f"{np.mean(values):.3f} ± {np.std(values):.3f}"


def _mean_ranks(rows, score, data, methods):
    found = _by(rows, score)
    ranks = defaultdict(list)
    for name in data:
        present = sorted(found[name], key=lambda method: -np.mean(found[name][method]))
        for rank, method in enumerate(present, start=1):
            ranks[method].append(rank)
    return {method: float(np.mean(ranks[method])) for method in methods}


def picture(rows, path):
    """Draw R(10) against R(n/2), a panel for each data set and a mark for each method."""
    near, far = _by(rows, "R(10)"), _by(rows, "R(n/2)")

    def draw(ax, data, method, mark, color):
        x, y = (100.0 * np.array(found[data][method]) for found in (far, near))
        if len(x):
            ax.errorbar(x.mean(), y.mean(), y.std(), x.std(), mark, color=color, label=method)

    _panels(rows, path, draw, "global: 100·R(n/2)", "local: 100·R(10)")


def curves(rows, path):
    """Draw the mean of R(K) over seeds against K, a panel for each data set and a line for each method."""
    found = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for pair in (row.get("curve") or "").split():
            K, value = pair.split(":")
            found[row["data"], row["method"]][int(K)].append(100.0 * float(value))

    def draw(ax, data, method, mark, color):
        if (data, method) in found:
            means = {K: np.mean(values) for K, values in found[data, method].items()}
            style = {"o": "-", "s": "--", "^": ":"}[mark]
            ax.semilogx(list(means), list(means.values()), style, color=color, label=method)

    _panels(rows, path, draw, "K", "100·R(K)")


def _panels(rows, path, draw, along, up):
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    from graphcouple.plotting import PALETTE

    data, methods = _names(rows)
    n_rows = -(-len(data) // 5)
    figure, axes = plt.subplots(n_rows, 5, figsize=(15, 3.3 * n_rows), layout="constrained", squeeze=False)
    for ax, name in zip(axes.ravel(), data, strict=False):
        for k, method in enumerate(methods):
            mark = "o" if "two-scale" in method else "s" if k < 6 else "^"
            draw(ax, name, method, mark, PALETTE[k % len(PALETTE)])
        ax.set_title(name)
    for ax in axes[-1]:
        ax.set_xlabel(along)
    for ax in axes[:, 0]:
        ax.set_ylabel(up)
    for ax in axes.ravel()[len(data) :]:
        ax.axis("off")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
