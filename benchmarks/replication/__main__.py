"""Make docs/evidence/replication.md: tables and figures of the papers, measured beside the papers' own.

    python benchmarks/replication --mnist mnist10k-images-idx3-ubyte.gz --coil20 coil20.mat [--seeds 5]
    python benchmarks/replication --mnist FOLDER --coil20 coil20.mat --data Fashion-MNIST=FOLDER --data CIFAR-10=C.npz

PenDigits (scikit-learn's digits) and Waveform need no files. MNIST takes an IDX file of images with its labels beside
it, or their folder; --data adds data for the tables of starts. Runs are kept in --store, and only missing
runs are made.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import attraction_repulsion
import graph_coupling
import laptsne
from report import graph_coupling_tables, laptsne_tables

import graphcouple as gc

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "evidence" / "replication.md"


def named(name, path):
    """Return a data set given by path, and its name with its size where it is not all of MNIST."""
    X, y = gc.datasets.load("mnist", path)
    return (f"{name} (10,000)" if name == "MNIST" and len(X) == 10_000 else name), X, y


def measured(store, key, function, *args):
    """Return what was measured before, or measure it and keep it."""
    known = json.loads(store.read_text()) if store.exists() else {}
    if key not in known:
        begin = time.perf_counter()
        known[key] = function(*args)
        store.write_text(json.dumps(known, indent=1))
        sys.stderr.write(f"{key}: {time.perf_counter() - begin:.0f} s\n")
    return known[key]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", help="IDX images, labels beside them")
    parser.add_argument("--coil20", help=".mat file with X and Y")
    parser.add_argument("--data", action="append", default=[], metavar="NAME=PATH", help="more, for the starts")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--weights", type=float, nargs="*", default=[1.0, 10.0], help="of hierarchical coupling")
    parser.add_argument("--store", type=Path, default=Path("replication.json"))
    parser.add_argument("--output", type=Path, default=DOCS)
    asked = parser.parse_args()

    starts, classes = {}, {"PenDigits": gc.datasets.load("digits")}
    if asked.mnist:
        name, X, y = named("MNIST", asked.mnist)
        starts[name] = X
        classes[name] = X, y
    for pair in asked.data:
        name, X, _ = named(*pair.split("=", 1))
        starts[name] = X
    if asked.coil20:
        classes["COIL-20"] = gc.datasets.load("coil20", asked.coil20)

    by_start, by_class = {}, {}
    for seed in range(asked.seeds):
        for name, X in starts.items():
            key = f"starts|{name}|{seed}"
            by_start.setdefault(name, {})[seed] = measured(
                asked.store, key, graph_coupling.measure, X, asked.weights, seed
            )
        waves = {"Waveform": gc.datasets.make_waveform(5000, random_state=seed)}
        for name, (X, y) in (classes | waves).items():
            key = f"classes|{name}|{seed}"
            plain = name.removesuffix(" (10,000)")
            by_class.setdefault(name, {})[seed] = measured(asked.store, key, laptsne.measure, plain, X, y, seed)
    by_forces = {}
    for name in [known for known in classes if known in (*starts, "PenDigits")]:
        X, y = classes[name]
        by_forces[name] = measured(asked.store, f"forces|{name}", attraction_repulsion.measure, X, y)
    epochs, methods, angles = attraction_repulsion.tables(by_forces)
    small, large, gaps = laptsne_tables(by_class)
    text = (HERE / "text.md").read_text()
    tables = {
        "SEEDS": str(asked.seeds),
        "STARTS": graph_coupling_tables(by_start) if by_start else "No data was given.",
        "CLASSES": small,
        "LARGE": large,
        "GAPS": gaps,
        "EPOCHS": epochs,
        "KERNELS": methods,
        "ANGLES": angles,
    }
    for mark, table in tables.items():
        text = text.replace(f"@{mark}@", table)
    asked.output.write_text(text)


if __name__ == "__main__":
    main()
