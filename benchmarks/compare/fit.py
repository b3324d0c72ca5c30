"""Fit one contender in this process, save its embedding, and print its time and memory as JSON.

python benchmarks/compare/fit.py CONTENDER DATA.npz EMBEDDING.npy once|again
"""

import importlib
import json
import resource
import sys
import warnings
from time import perf_counter

BEGAN = perf_counter()


def main():
    import numpy as np
    from contenders import CONTENDERS

    name, data, target, wanted = sys.argv[1:]
    contender = CONTENDERS[name]
    with np.load(data) as arrays:
        X = arrays["X"]
    read = perf_counter()
    warnings.simplefilter("ignore")
    importlib.import_module(contender.package)
    times = {"import_s": perf_counter() - read}
    Z = np.asarray(contender.fit(X, times))
    # From the start of the process, but for reading the data.
    times["total_s"] = perf_counter() - read
    times["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    np.save(target, Z)
    if wanted == "again":
        start = perf_counter()
        contender.fit(X, {})
        times["again_s"] = perf_counter() - start
    sys.stdout.write(json.dumps(times) + "\n")


if __name__ == "__main__":
    main()
