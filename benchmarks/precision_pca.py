"""PrecisionCoupling against scikit-learn's PCA on 100,000 × 500 points, with the same SVD solver.

    python benchmarks/precision_pca.py [--repeats 3] [--solver covariance_eigh]

Each fit_transform runs in a process of its own, in alternation. Prints wall seconds, the peak of resident
memory, and ratios of medians.
"""

import argparse
import json
import statistics
import subprocess
import sys

MAKE = {
    "graphcouple": "from graphcouple import PrecisionCoupling as Method",
    "scikit-learn": "from sklearn.decomposition import PCA as Method",
}
RUN = """
import json, resource, time
import numpy as np
{make}
estimator = Method(10, svd_solver={solver!r}, random_state=0)
rng = np.random.default_rng(0)
X = rng.normal(size=(100_000, 500)) * np.linspace(3, 0.1, 500)
start = time.perf_counter()
estimator.fit_transform(X)
seconds = time.perf_counter() - start
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]))
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--solver", default="auto")
    options = parser.parse_args()
    results = {name: [] for name in MAKE}
    for _ in range(options.repeats):
        for name, make in MAKE.items():
            code = RUN.format(make=make, solver=options.solver)
            done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
            results[name].append(json.loads(done.stdout))
    medians = {}
    for name, runs in results.items():
        medians[name] = [statistics.median(column) for column in zip(*runs, strict=True)]
        print(f"{name:14}{medians[name][0]:8.2f} s{medians[name][1]:10.0f} MB peak")
    ours, theirs = medians.values()
    print(f"graphcouple / scikit-learn: time {ours[0] / theirs[0]:.2f}, memory {ours[1] / theirs[1]:.2f}")


if __name__ == "__main__":
    main()
