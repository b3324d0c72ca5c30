"""Loss against time: how long the last per mille takes, on five data sets.

    python benchmarks/loss_curves.py [--kept FOLDER] [-o loss_curves.png]

Each curve is a second fit at the defaults (a mark where it ends), continued by L-BFGS until 50 iterations lower the
loss by less than 1e-6 of its height. It shows the excess over the least loss seen, as a share of that loss's height
above its lower bound. Dotted lines are the maps of openTSNE and umap-learn, if `separated.py` has kept them in the
folder. Looking at the loss every ten iterations takes part of the time.
"""

import argparse
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from separated import DATA, objective_of

import graphcouple as gc

NAMES = ("digits", "blobs 20 x 50", "walk", "noise", "moons")
METHODS = {"t-SNE": gc.TSNE, "UMAP": gc.UMAP}


class Watch:
    """Seconds and losses of a run."""

    def __init__(self):
        self.begun, self.seconds, self.losses = time.perf_counter(), [], []

    def __call__(self, iteration, loss, Z):
        self.seconds.append(time.perf_counter() - self.begun)
        self.losses.append(loss)


def curve(method, X):
    """Return seconds and losses of a fit that goes on, and how many of them are the fit's own."""
    method(random_state=0).fit(X)
    watch = Watch()
    fitted = method(random_state=0, callback=watch).fit(X)
    own = len(watch.losses)
    gc.solve(
        objective_of(fitted),
        fitted.embedding_,
        gc.optimize.LBFGS(),
        max_iter=3000,
        settled_within=1e-6,
        check_every=10,
        callback=watch,
    )
    return np.array(watch.seconds), np.array(watch.losses), own, objective_of(fitted)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kept", type=Path, default=Path("separated-peers"))
    parser.add_argument("-o", "--output", type=Path, default=Path("loss_curves.png"))
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    figure, axes = plt.subplots(1, len(NAMES), figsize=(4 * len(NAMES), 3.6), constrained_layout=True)
    for ax, name in zip(axes, NAMES, strict=True):
        X, _ = DATA[name]()
        path = given.kept / f"{name}.npz"
        for color, (label, method) in zip(("C0", "C1"), METHODS.items(), strict=True):
            seconds, losses, own, objective = curve(method, X)
            height = losses.min() - objective.lower_bound
            excess = 100.0 * (losses - losses.min()) / height
            ax.plot(seconds, excess, color=color, label=label)
            ax.plot(seconds[own - 1], excess[own - 1], "o", color=color)
            line = f"{name}, {label}: {seconds[own - 1]:.2f} s, {excess[own - 1]:.3f} % above {losses.min():.6g}"
            if path.exists():
                peer = objective.value(np.load(path)["UMAP" if label == "UMAP" else "TSNE"].astype(np.float64))
                ax.axhline(100.0 * (peer - losses.min()) / height, color=color, linestyle=":")
                line += f"; the peer {100.0 * (peer - losses.min()) / height:.2f} %"
            print(f"{line}; gone on {seconds[-1]:.2f} s", flush=True)
        ax.set(yscale="log", ylim=(1e-3, 50), title=f"{name}, {len(X):,} points", xlabel="seconds")
    axes[0].set_ylabel("excess of the loss, %")
    axes[0].legend()
    figure.savefig(given.output, dpi=70)


if __name__ == "__main__":
    main()
