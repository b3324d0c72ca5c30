"""t-SNE of the bundled digits: graphcouple against scikit-learn's exact method, in alternation.

    python benchmarks/digits_tsne.py [--repeats 3]

Each fit runs in a process of its own, with compiled code in the cache. Prints wall seconds of the fit, the final
KL divergence each library reports (same affinities: all pairs, perplexity 30), and the ratio of the medians.
"""

import argparse
import json
import statistics
import subprocess
import sys

FIT = {
    "graphcouple": "import graphcouple as gc; estimator = gc.TSNE(random_state=0)",
    "scikit-learn exact": "from sklearn.manifold import TSNE; estimator = TSNE(method='exact', random_state=0)",
}
RUN = """
import json, time
from sklearn.datasets import load_digits
X = load_digits().data
{make}
start = time.perf_counter()
estimator.fit(X)
print(json.dumps([time.perf_counter() - start, float(estimator.kl_divergence_)]))
"""


def fit(name):
    done = subprocess.run(
        [sys.executable, "-c", RUN.format(make=FIT[name])], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    fit("graphcouple")
    results = {name: [] for name in FIT}
    for _ in range(repeats):
        for name in FIT:
            results[name].append(fit(name))
    print(f"{'':22}{'seconds (median)':>18}{'min':>8}{'max':>8}{'KL':>10}")
    for name, runs in results.items():
        seconds = [run[0] for run in runs]
        print(f"{name:22}{statistics.median(seconds):18.2f}{min(seconds):8.2f}{max(seconds):8.2f}{runs[-1][1]:10.4f}")
    ours, theirs = (statistics.median(run[0] for run in runs) for runs in results.values())
    print(f"scikit-learn / graphcouple: {theirs / ours:.1f}")


if __name__ == "__main__":
    main()
