"""Time of a first run: `import graphcouple`, and `graphcouple embed digits` with an empty and a warm compile cache.

    python benchmarks/startup.py [--repeats 3]

Wall seconds of whole processes, median of the repeats.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time


def seconds(command, folder, cache):
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, env={**os.environ, "NUMBA_CACHE_DIR": cache}, check=True, capture_output=True)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    embed = [sys.executable, "-m", "graphcouple", "embed", "digits"]
    times = {"import graphcouple": [], "embed digits, empty cache": [], "embed digits, warm cache": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
            times["embed digits, empty cache"].append(seconds(embed, folder, cache))
            times["embed digits, warm cache"].append(seconds(embed, folder, cache))
            bare = seconds([sys.executable, "-c", ""], folder, cache)
            loaded = seconds([sys.executable, "-c", "import graphcouple"], folder, cache)
            times["import graphcouple"].append(loaded - bare)
    for name, values in times.items():
        print(f"{name:28}{statistics.median(values):8.2f} s   ({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
