"""graphcouple and its peers, in alternation, each fit in a process of its own.

    python benchmarks/compare                       # scikit-learn's digits
    python benchmarks/compare mnist10k --images mnist10k-images-idx3-ubyte.gz --labels mnist10k-labels-idx1-ubyte.gz
    python benchmarks/compare mnist70k.npz          # arrays X (n × p) and y (n)
    python benchmarks/compare DATA --methods tsne umap --repeats 3

openTSNE, scikit-learn, umap-learn and PaCMAP take part if they are installed. For every contender the table has the
wall seconds of a fresh process: its import, neighbours, affinities and optimization (if it reports them), the first
fit, and the total; once with an empty compile cache (cold), and `--repeats` times with a warm cache. A second fit in
the same process is `again`. Peak memory is of the whole process, data included. All embeddings are scored in the same
way, in another process: KL under one set of affinities (exact neighbours, perplexity 30), R(K) and 10-NN accuracy.
Ratios are of medians, peer over graphcouple.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from contenders import CONTENDERS, FAMILIES, installed
from data import prepare

HERE = Path(__file__).parent
COLUMNS = (
    ("import", "import_s", ".2f"),
    ("neighbours", "neighbors_s", ".1f"),
    ("affinities", "affinities_s", ".1f"),
    ("optimize", "optimize_s", ".1f"),
    ("cold total", "cold_s", ".1f"),
    ("warm total", "total_s", ".1f"),
    ("again", "again_s", ".1f"),
    ("peak MB", "peak_mb", ".0f"),
    ("KL", "kl", ".3f"),
    ("R(10)", "R10", ".3f"),
    ("R(n/4)", "Rn4", ".3f"),
    ("R(n/2)", "Rn2", ".3f"),
    ("10-NN", "accuracy", ".4f"),
)


def run(script, *arguments, cache):
    command = [sys.executable, str(HERE / script), *map(str, arguments)]
    done = subprocess.run(command, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(names, data, folder, repeats, cold, again):
    """Return every contender's runs: a cold one, and warm ones in turn."""
    runs = {name: [] for name in names}
    colds = {}
    caches = {name: Path(folder) / f"cache-{name}" for name in names}
    for name in names:
        caches[name].mkdir()
    for turn in range(-1, repeats):
        for name in names:
            if turn < 0 and not cold and not CONTENDERS[name].caches:
                continue
            wanted = "again" if again and turn == repeats - 1 else "once"
            found = run("fit.py", name, data, f"{folder}/{name}.npy", wanted, cache=caches[name])
            progress(f"{name}: {found['total_s']:.1f} s" + (" (cold)" if turn < 0 else ""))
            if turn < 0:
                colds[name] = found["total_s"]
            else:
                runs[name].append(found)
    table = {}
    for name in names:
        keys = {key for one in runs[name] for key in one}
        table[name] = {key: statistics.median(one[key] for one in runs[name] if key in one) for key in keys}
        table[name]["cold_s"] = colds.get(name)
    return table


def progress(text):
    sys.stderr.write(text + "\n")


def show(title, table):
    width = max(len(name) for name in table) + 2
    lines = [title, " " * width + "".join(f"{label:>12}" for label, _, _ in COLUMNS)]
    for name, row in table.items():
        cells = ("" if row.get(key) is None else format(row[key], form) for _, key, form in COLUMNS)
        lines.append(f"{name:{width}}" + "".join(f"{cell:>12}" for cell in cells))
    for ours, peers in FAMILIES.items():
        for peer in peers:
            if ours in table and peer in table:
                lines.append(ratio_line(ours, peer, table))
    sys.stdout.write("\n".join(lines) + "\n")


def ratio_line(ours, peer, table):
    parts = []
    for label, key in (("cold", "cold_s"), ("warm", "total_s"), ("optimize", "optimize_s"), ("again", "again_s")):
        mine, theirs = table[ours].get(key), table[peer].get(key)
        if mine and theirs:
            parts.append(f"{label} {theirs / mine:.2f}")
    return f"{peer} / {ours}: " + ", ".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", default="digits", help="digits, an .npz file, or a name with --images")
    parser.add_argument("--images", help="IDX file of images")
    parser.add_argument("--labels", help="IDX file of labels")
    parser.add_argument("--methods", nargs="+", choices=("tsne", "umap", "sne", "largevis"), default=("tsne", "umap"))
    parser.add_argument("--only", nargs="+", choices=sorted(CONTENDERS), help="these contenders alone")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--no-cold", action="store_true", help="no runs with an empty compile cache, where avoidable")
    parser.add_argument("--no-again", action="store_true", help="no second fit in the same process")
    asked = parser.parse_args()
    names = [n for n, c in CONTENDERS.items() if c.method in asked.methods and installed(c)]
    if asked.only:
        names = [name for name in names if name in asked.only]
    with tempfile.TemporaryDirectory() as folder:
        data, title = prepare(asked.data, asked.images, asked.labels, folder)
        table = measure(names, data, folder, asked.repeats, not asked.no_cold, not asked.no_again)
        judged = run("judge.py", data, *(f"{folder}/{name}.npy" for name in names), cache=Path(folder) / "judge")
        for name, scores in zip(names, judged, strict=True):
            table[name].update(scores)
        show(title, table)


if __name__ == "__main__":
    main()
