"""Tables and the picture of the front."""

from collections import defaultdict

import numpy as np

SCORES = ("R(10)", "R(n/4)", "R(n/2)", "distances", "triplets", "class means")


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


def table(rows):
    """Return the tables in Markdown: means over the data sets and mean ranks, then R(n/2) and R(10) of each.

    What follows ± is the standard deviation over seeds, in the first table of the means over data sets.
    """
    data = list(dict.fromkeys(row["data"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    columns = {score: _over_data(rows, score, methods, data) for score in SCORES}
    seconds = _by(rows, "seconds")
    ranks = _mean_ranks(rows, "R(n/2)", data, methods)
    lines = ["| mean over " + f"{len(data)} data sets | 100·R(10) | 100·R(n/4) | 100·R(n/2) | distances | triplets | "]
    lines[0] += "class means | rank at n/2 | seconds |"
    lines.append("|---" * 9 + "|")
    for method in sorted(methods, key=lambda name: ranks[name]):
        cells = []
        for score in SCORES:
            values, unit = columns[score][method], 100.0 if score.startswith("R") else 1.0
            digits = 1 if unit == 100.0 else 3
            cells.append(_shown(np.array(values) * unit, digits))
        # The least over seeds: what else the machine did only adds to it.
        least = [min(seconds[name][method]) for name in data if seconds[name][method]]
        cells += [f"{ranks[method]:.1f}", f"{np.mean(least):.1f}"]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    for score in ("R(n/2)", "R(10)"):
        found = _by(rows, score)
        lines += ["", f"| 100·{score} | " + " | ".join(data) + " |", "|---" * (len(data) + 1) + "|"]
        for method in methods:
            cells = [_shown(100.0 * np.array(found[name][method]), 1) for name in data]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _shown(values, digits):
    if not len(values):
        return "–"
    return f"{np.mean(values):.{digits}f} ± {np.std(values):.{digits}f}"


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
    """Draw R(K) of the first seed against K, a panel for each data set and a line for each method."""
    found = {(row["data"], row["method"]): row["curve"] for row in rows if row.get("curve") and row["seed"] == "0"}

    def draw(ax, data, method, mark, color):
        if (data, method) in found:
            K, values = zip(*(pair.split(":") for pair in found[data, method].split()), strict=True)
            style = {"o": "-", "s": "--", "^": ":"}[mark]
            ax.semilogx([int(k) for k in K], [100.0 * float(v) for v in values], style, color=color, label=method)

    _panels(rows, path, draw, "K", "100·R(K)")


def _panels(rows, path, draw, along, up):
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    from graphcouple.plotting import PALETTE

    data = list(dict.fromkeys(row["data"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
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
