"""`gc.estimate` against measured seconds and peak memory of fits, each in a process of its own.

    python benchmarks/estimate.py                                   # eleven cases, 10 minutes
    python benchmarks/estimate.py --cases TSNE,100000,50 UMAP,100000,50

Points come from `mixture` in `scaling.py`, in single precision. The first fit of a process loads compiled
loops, so a small fit runs before the one that is measured.
"""

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scaling import mixture

import graphcouple as gc

CASES = (
    *("TSNE,2000,50", "TSNE,10000,50", "TSNE,30000,50", "TSNE,50000,784", "TSNE,100000,50", "TSNE,300000,50"),
    *("UMAP,10000,50", "UMAP,100000,50", "UMAP,300000,50", "LargeVis,100000,50", "SNE,20000,20"),
)


def measure(method, n, p):
    """Print the seconds of a fit, and the peak memory of this process."""
    X, _ = mixture(n, p)
    model = getattr(gc, method)(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(gc, method)(random_state=0, max_iter=2).fit(X[: min(n, 10_000)])
        start = time.perf_counter()
        model.fit(X)
    seconds = time.perf_counter() - start
    # getrusage would begin with the memory of the parent process.
    status = Path("/proc/self/status").read_text().splitlines()
    print(json.dumps([seconds, 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=CASES, help="method,rows,columns")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        method, n, p = arguments.measure.split(",")
        measure(method, int(n), int(p))
        return
    print("| method, rows, columns | s: estimate, truth | GB: estimate, truth |\n|---|---|---|")
    for case in arguments.cases:
        method, n, p = case.split(",")
        cost = gc.estimate(getattr(gc, method)(random_state=0), int(n), int(p), np.float32)
        run = [sys.executable, __file__, "--measure", case]
        seconds, n_bytes = json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)
        print(
            f"| {case.replace(',', ', ')} | {cost.seconds:.3g}, {seconds:.3g} "
            f"| {cost.n_bytes / 1e9:.2f}, {n_bytes / 1e9:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
