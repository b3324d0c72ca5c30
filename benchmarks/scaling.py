"""How time and memory grow with the number of points, stage by stage: Gaussian mixtures of 50 dimensions.

    python benchmarks/scaling.py [--sizes 10000 100000 1000000] [--method TSNE] [--decay 1] [--folder FOLDER]

With a decay of 1 the k-th column is 1/k times as wide, like principal components of cells or texts. A decay of 0 is the
hardest case for a search of neighbours: all points of a cluster are nearly alike.

The points are written to a memory-mapped file, part by part, and each size is fitted in a process of its own, after a
small fit that loads compiled code. Prints the seconds of each stage; the peak of the process's own memory in it, in GB
(`RssAnon`, which leaves out the pages of the file); the loss by point; and the share of the ten neighbours that the map
keeps, of 500 points. The folder also gets a picture of each map.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np

STAGES = ("neighbours", "law", "coupling", "start", "descent")
_ROWS = 2**18


def mixture(n, n_dims=50, n_classes=50, seed=0):
    """Return points of a mixture of spherical Gaussians whose centres have ten times their variance, and the class."""
    rng = np.random.default_rng(seed)
    centres = np.sqrt(10.0) * rng.normal(size=(n_classes, n_dims)).astype(np.float32)
    y = rng.integers(0, n_classes, n)
    return centres[y] + rng.standard_normal((n, n_dims), dtype=np.float32), y


def write_mixture(path, n, decay=0.0, n_dims=50, n_classes=50):
    """Write points of a mixture to a file, part by part, and return their classes."""
    widths = (1.0 + np.arange(n_dims, dtype=np.float32)) ** -np.float32(decay)
    centres = np.sqrt(10.0) * np.random.default_rng(0).normal(size=(n_classes, n_dims)).astype(np.float32)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, n_dims))
    y = np.empty(n, dtype=np.int8)
    for part, a in enumerate(range(0, n, _ROWS)):
        rng, here = np.random.default_rng([1, part]), slice(a, min(a + _ROWS, n))
        y[here] = rng.integers(0, n_classes, here.stop - a)
        X[here] = widths * (centres[y[here]] + rng.standard_normal((here.stop - a, n_dims), dtype=np.float32))
    X.flush()
    return y


class Stages:
    """Seconds and peak memory of the stages of a fit, noted as the functions that carry them out are entered."""

    def __init__(self):
        self.seconds, self.peak, self.stage, self.since = {}, {}, "before", time.perf_counter()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while True:
            status = Path("/proc/self/status").read_text().splitlines()
            n_bytes = 1024 * next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
            self.peak[self.stage] = max(self.peak.get(self.stage, 0), n_bytes)
            time.sleep(0.05)

    def enter(self, stage):
        now = time.perf_counter()
        self.seconds[self.stage] = self.seconds.get(self.stage, 0.0) + now - self.since
        self.stage, self.since = stage, now
        print(f"# {now:9.0f} {stage}", file=sys.stderr, flush=True)

    def note(self, owner, name, stage, after):
        plain = getattr(owner, name)

        def noted(*arguments, **named):
            self.enter(stage)
            try:
                return plain(*arguments, **named)
            finally:
                self.enter(after)

        setattr(owner, name, noted)


def measure(method, path, target):
    """Fit the points of a file, and print what it took as JSON."""
    import graphcouple as gc
    from graphcouple.couplings.recipes import as_coupling
    from graphcouple.estimators import carry_out

    warnings.simplefilter("ignore")
    X = np.load(path, mmap_mode="r")
    getattr(gc, method)(random_state=0, max_iter=2).fit(X[:3000])
    stages = Stages()
    stages.note(gc.GraphModel, "edges_among", "neighbours", "law")
    coupling = as_coupling(getattr(gc, method)().sentence.coupling)
    stages.note(type(coupling), "bind", "coupling", "start")
    stages.note(carry_out, "solve", "descent", "end")

    start = time.perf_counter()
    model = getattr(gc, method)(random_state=0, verbose=True)
    model.fit(X)
    seconds = time.perf_counter() - start
    stages.enter("end")
    Z, result = model.embedding_, {"loss": model.loss_ / len(X), "end": model.stop_reason_, "total": seconds}
    result |= {"seconds": dict(stages.seconds), "peak": dict(stages.peak)}
    np.save(target, Z)
    # Of ten million points, the distances of a few rows take as much memory as the graph, so the graph is dropped.
    del model
    kept = gc.metrics.k_ary_preservation(X, Z, 10, n_rows=500, random_state=0, n_jobs=1)
    print(json.dumps({**result, "kept": kept}))


def draw(Z, y, path):
    import matplotlib

    matplotlib.use("Agg")
    import graphcouple as gc

    gc.plotting.plot_density(Z, y).figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 30_000, 100_000, 300_000, 1_000_000])
    parser.add_argument("--method", default="TSNE")
    parser.add_argument("--decay", type=float, default=1.0)
    parser.add_argument("--folder", type=Path, help="where maps and pictures are kept")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        measure(asked.method, *asked.measure)
        return
    print("|  | " + " | ".join(f"{stage}, s (GB)" for stage in STAGES) + " | all, s (GB) | loss | R(10) | end |")
    print("|---" * (len(STAGES) + 5) + "|")
    with tempfile.TemporaryDirectory() as folder:
        kept = asked.folder or Path(folder)
        kept.mkdir(parents=True, exist_ok=True)
        for n in asked.sizes:
            y = write_mixture(f"{folder}/X.npy", n, asked.decay)
            target = kept / f"{asked.method}-{n}.npy"
            run = [sys.executable, __file__, "--method", asked.method, "--measure", f"{folder}/X.npy", str(target)]
            done = json.loads(subprocess.run(run, stdout=subprocess.PIPE, text=True, check=True).stdout)
            cells = [f"{done['seconds'].get(s, 0.0):.1f} ({done['peak'].get(s, 0) / 1e9:.2f})" for s in STAGES]
            cells += [f"{done['total']:.0f} ({max(done['peak'].values()) / 1e9:.2f})", f"{done['loss']:.4f}"]
            print(f"| {n:,} | " + " | ".join(cells) + f" | {done['kept']:.3f} | {done['end']} |", flush=True)
            draw(np.load(target), y, kept / f"{asked.method}-{n}.png")


if __name__ == "__main__":
    main()
