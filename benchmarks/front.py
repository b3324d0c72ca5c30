"""The front from local to global: every method on ten data sets, five seeds.

    python benchmarks/front.py --files mnist10k-images-idx3-ubyte.gz coil20.mat [--peers PYTHON] [--seeds 5] [-o FOLDER]

R(10) is how well neighbourhoods of ten points are kept, R(n/4) and R(n/2) those of a quarter and half of all points
(`graphcouple.metrics`; 1 is perfect, 0 is chance). "torn" is the share of edges between neighbours that are longer
than a fifth of the map (`graphcouple.metrics.tears`), "class means" how well the arrangement of classes is kept.
Writes front.csv (one line for each fit), front.md (means ± standard deviations over seeds, mean ranks, and trials of
weights, terms and starts), front.png and curves.png (a panel for each data set). Fits that are in front.csv already
are not repeated.
`--peers` names the Python of another environment, with peers that this environment lacks.
"""

import argparse
import csv
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from front.data import generated, pictures
from front.methods import FITS, PEERS, embed
from front.report import curves, fronts, picture, tables

import graphcouple as gc

SCORES = ("R(10)", "R(n/4)", "R(n/2)", "torn", "flung", "detached", "distances", "triplets", "class means", "curve")
COLUMNS = ("data", "method", "seed", *SCORES, "seconds")

# Sizes of neighbourhoods in a curve: so many, from 5 points to n/2, equally spaced on a logarithmic scale.
SIZES = 16


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", nargs="*", default=[], help="data sets of pictures beside the digits")
    parser.add_argument("--peers", help="a Python with more peers")
    parser.add_argument("--methods", nargs="*", default=list(FITS), choices=list(FITS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--points", type=int, default=2000, help="points of each generated data set")
    parser.add_argument("-o", "--output", type=Path, default=Path("front"))
    return parser.parse_args()


def embedded(method, X, seed, peers):
    """Return an embedding and the seconds it took; None if the method is not installed."""
    module = PEERS[method][0] if method in PEERS else "graphcouple"
    if importlib.util.find_spec(module):
        return embed(method, X, seed)
    if peers is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        points, target = Path(folder) / "X.npy", Path(folder) / "Z.npz"
        np.save(points, X)
        command = [peers, str(Path(__file__).with_name("front") / "methods.py"), method, str(seed), points, target]
        if subprocess.run(command, capture_output=True).returncode:
            return None
        found = np.load(target)
        return found["Z"], float(found["seconds"])


def scored(X, Z, y):
    curves = gc.metrics.neighborhood_curves(X, Z, n_rows=None if len(X) <= 5000 else 2000, random_state=0)
    rows = {"n_rows": min(len(X), 2000), "random_state": 0}
    sizes = np.unique(np.geomspace(5, len(X) // 2, SIZES).astype(int))
    tears = gc.metrics.tears(X, Z, y)
    return {
        "R(10)": curves.at(10),
        "R(n/4)": curves.at(len(X) // 4),
        "R(n/2)": curves.at(len(X) // 2),
        "torn": tears.edges,
        "flung": tears.flung,
        "detached": tears.detached,
        "distances": gc.metrics.distance_correlation(X, Z, **rows),
        "triplets": gc.metrics.triplet_correlation(X, Z, **rows),
        "class means": "" if y is None else 1.0 - gc.metrics.class_mean_disparity(X, Z, y),
        "curve": " ".join(f"{k}:{curves.at(int(k)):.4f}" for k in sizes),
    }


def main():
    given = arguments()
    given.output.mkdir(exist_ok=True)
    path = given.output / "front.csv"
    rows = list(csv.DictReader(path.open())) if path.exists() else []
    known = {(row["data"], row["method"], int(row["seed"])) for row in rows}
    fixed = pictures(given.files)
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not rows:
            writer.writeheader()
        for seed in range(given.seeds):
            for data, (X, y) in {**generated(given.points, seed), **fixed}.items():
                for method in given.methods:
                    if (data, method, seed) in known:
                        continue
                    found = embedded(method, X, seed, given.peers)
                    if found is None:
                        continue
                    row = {"data": data, "method": method, "seed": seed, **scored(X, found[0], y), "seconds": found[1]}
                    writer.writerow({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()})
                    file.flush()
                    print(seed, data, method, f"{row['R(10)']:.3f} {row['R(n/2)']:.3f} {found[1]:.1f} s", flush=True)
    rows = list(csv.DictReader(path.open()))
    (given.output / "front.md").write_text(tables(rows))
    if fronts(rows):
        picture(fronts(rows), given.output / "front.png")
        curves(fronts(rows), given.output / "curves.png")
    sys.stdout.write(tables(rows))


if __name__ == "__main__":
    main()
