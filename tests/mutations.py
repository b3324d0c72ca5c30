"""Put in the seeded faults of `tests.faults`, one at a time, and see whether the tests catch them.

    python -m tests.mutations            # all faults, each against the files that know it best
    python -m tests.mutations kernel     # those whose name holds a word

A fault is put into a copy of the repository. It is caught when a test of the named files fails; all of them are in the
fast set. Prints one line a fault, and exits with 1 if one survives. Two copies are at work at a time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

from tests.faults import FAULTS
from tests.faults.fault import Fault

ROOT = Path(__file__).parents[1]
WORKERS = 2


def copy_to(folder: Path) -> Path:
    """Copy what the tests need to a folder."""
    for name in ("graphcouple", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def is_caught(fault: Fault, copy: Path) -> bool:
    """Return whether a test fails in a copy of the repository with the fault in it."""
    path = copy / "graphcouple" / fault.file
    text, written = path.read_text(), path.stat()
    if text.count(fault.before) < 1:
        raise SystemExit(f"{fault.name}: {fault.file} no longer holds {fault.before!r}; write the fault anew")
    path.write_text(text.replace(fault.before, fault.after, 1))
    # Machine code of one file holds that of others, so a fault in compiled loops must not meet, or leave, any.
    own = fault.file.startswith("_numba/")
    cache = copy / ("own-cache" if own else "cache")
    files = [f"tests/{name}.py" for name in fault.tests.split()]
    environment = {**os.environ, "PYTHONPATH": str(copy), "NUMBA_CACHE_DIR": str(cache), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    path.write_text(text)
    os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
    if own:
        shutil.rmtree(cache, ignore_errors=True)
    if done.returncode not in (0, 1):
        sys.stdout.write(done.stdout[-2000:])
    return done.returncode == 1


def main() -> int:
    """Try the faults; return 1 if one survives."""
    wanted = [fault for fault in FAULTS if not sys.argv[1:] or any(word in fault.name for word in sys.argv[1:])]
    survivors = []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        copies: Queue[Path] = Queue()
        for worker in range(WORKERS):
            copies.put(copy_to(Path(folder) / str(worker)))

        def attempt(fault: Fault) -> bool:
            copy, start = copies.get(), time.perf_counter()
            try:
                caught = is_caught(fault, copy)
            finally:
                copies.put(copy)
            seconds = time.perf_counter() - start
            sys.stdout.write(f"{'caught  ' if caught else 'SURVIVED'} {seconds:5.1f} s  {fault.name}\n")
            sys.stdout.flush()
            return caught

        for fault, caught in zip(wanted, pool.map(attempt, wanted), strict=True):
            survivors += [] if caught else [fault.name]
    sys.stdout.write(f"{len(wanted) - len(survivors)} of {len(wanted)} caught\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
