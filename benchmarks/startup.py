"""Time of a first run: `import graphcouple`, and `graphcouple embed digits` with an empty and a warm compile cache.

    python benchmarks/startup.py [--repeats 3]

Wall seconds of whole processes, median of the repeats. Python's own bytecode is there already, as pip compiles it when
it installs.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time


def seconds(command, folder, cache, bytecode):
    env = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": bytecode}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    embed = [sys.executable, "-m", "graphcouple", "embed", "digits"]
    times = {"import graphcouple": [], "embed digits, empty cache": [], "embed digits, warm cache": []}
    with tempfile.TemporaryDirectory() as bytecode:
        for k in range(repeats + 1):
            with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as cache:
                empty, warm = (seconds(embed, folder, cache, bytecode) for _ in range(2))
                bare = seconds([sys.executable, "-c", ""], folder, cache, bytecode)
                loaded = seconds([sys.executable, "-c", "import graphcouple"], folder, cache, bytecode)
            # The first run writes the bytecode.
            if k:
                for name, value in zip(times, (loaded - bare, empty, warm), strict=True):
                    times[name].append(value)
    for name, values in times.items():
        print(f"{name:28}{statistics.median(values):8.2f} s   ({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
