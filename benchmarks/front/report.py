"""Tables and the picture of the front."""

from collections import defaultdict

import numpy as np

SCORES = ("R(10)", "R(n/4)", "R(n/2)", "distances", "triplets")


def _by(rows, score):
    """Return the values of a score, as a list over seeds, by data set and method."""
    found = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row["data"]][row["method"]].append(float(row[score]))
    return found


def _over_data(rows, score, methods, data):
    """Return, for each method, the mean over data sets of each seed."""
    means = {}
    for method in methods:
        seeds = defaultdict(list)
        for row in rows:
            if row["method"] == method and row["data"] in data:
                seeds[row["seed"]].append(float(row[score]))
        means[method] = [float(np.mean(values)) for values in seeds.values() if len(values) == len(data)]
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
    lines[0] += "rank at n/2 | seconds |"
    lines.append("|---" * 8 + "|")
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
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    from graphcouple.plotting import PALETTE

    data = list(dict.fromkeys(row["data"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    near, far = _by(rows, "R(10)"), _by(rows, "R(n/2)")
    n_rows = -(-len(data) // 5)
    figure, axes = plt.subplots(n_rows, 5, figsize=(15, 3.3 * n_rows), layout="constrained", squeeze=False)
    for ax, name in zip(axes.ravel(), data, strict=False):
        for k, method in enumerate(methods):
            x, y = (100.0 * np.array(found[name][method]) for found in (far, near))
            if len(x):
                mark = "o" if "two-scale" in method else "s" if k < 6 else "^"
                ax.errorbar(x.mean(), y.mean(), y.std(), x.std(), mark, color=PALETTE[k % len(PALETTE)], label=method)
        ax.set_title(name)
    for ax in axes[-1]:
        ax.set_xlabel("global: 100·R(n/2)")
    for ax in axes[:, 0]:
        ax.set_ylabel("local: 100·R(10)")
    for ax in axes.ravel()[len(data) :]:
        ax.axis("off")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
