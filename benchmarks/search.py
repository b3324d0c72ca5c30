"""How long a search takes beside the same methods run alone, and whether few rows rank methods as all rows do.

    python benchmarks/search.py NAME ... [--files FILE ...] [--points 5000] [--trials 60] [--alone 6] [--ranked 20]

NAME is a data set of `benchmarks/front.py`, which reads --files too. Runs ``gc.search`` with a number of trials; then
fits and scores some of the same methods alone, each three times on all rows, and scales up to their number. Last, it
fits `--ranked` methods to an eighth and to all of 2,000 rows, and prints Kendall's tau between both rankings by each
objective. With ``--warm`` it only fits t-SNE with kernels of heavier and heavier tails, each from its own start and
from the map of the kernel before, and prints loss by point, seconds and scores of both.
"""

import argparse
import time
import warnings

import numpy as np
from front.data import generated, pictures
from scipy.stats import kendalltau
from sklearn.base import clone

import graphcouple as gc

OBJECTIVES = ("R(10)", "R(n/2)")
TAILS = (2.0, 1.4, 1.0, 0.75, 0.55, 0.4, 0.3)


def alone(X, methods, n_seeds=3):
    """Return the mean seconds of a method's fits and scores."""
    start = time.perf_counter()
    for method in methods:
        for seed in range(n_seeds):
            fitted = clone(method.estimator).set_params(random_state=seed).fit(X)
            gc.metrics.evaluate(X, fitted.embedding_)
    return (time.perf_counter() - start) / len(methods)


def taus(X, n_methods, seed):
    """Return Kendall's tau between scores of an eighth of the rows and of all, by objective."""
    from graphcouple.searches.draws import Draws
    from graphcouple.searches.runs import Runner, Store
    from graphcouple.searches.space import candidates

    rng = np.random.RandomState(seed)
    drawn = candidates("laws", Draws(rng), X)
    runner = Runner(X, None, None, Store(None, {}), None, rng)
    fits = []
    while len(fits) < n_methods:
        method = next(drawn)
        pair = [runner.fit(method, n, 0) for n in (len(X) // 8, len(X))]
        if all(fit.scores for fit in pair):
            fits.append(pair)
    return {name: kendalltau(*([pair[k].scores[name] for pair in fits] for k in (0, 1)))[0] for name in OBJECTIVES}


def warm(X):
    """Print what changes if t-SNE starts from its map with a slightly lighter tail."""
    before = gc.TSNE(dof=TAILS[0], random_state=0).fit_transform(X)
    for dof in TAILS[1:]:
        cells, cold = [], gc.TSNE(dof=dof, random_state=0)
        for method in (cold, clone(cold).set_params(init=before, early_exaggeration=1)):
            start = time.process_time()
            Z = method.fit_transform(X)
            seconds = time.process_time() - start
            kept = gc.metrics.evaluate(X, Z)
            scores = ", ".join(f"{kept[name]:.3f}" for name in OBJECTIVES)
            cells.append(f"{method.loss_ / len(X):.4f}, {seconds:.1f} s, {scores}")
        before = Z
        print(f"dof {dof}: own start {cells[0]}; warm start {cells[1]}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--files", nargs="*", default=[])
    for name, default in (("points", 5000), ("trials", 60), ("alone", 6), ("ranked", 20), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--warm", action="store_true")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = {**generated(args.points, args.seed), **pictures(args.files)}
    for name in args.names:
        print(name, flush=True)
        X = np.ascontiguousarray(sets[name][0][: args.points], dtype=np.float32)
        warm(X) if args.warm else measure(X, args)


def measure(X, args):
    """Print the figures of one data set."""
    if args.trials:
        start = time.perf_counter()
        found = gc.search(X, objectives=OBJECTIVES, budget=f"{args.trials} trials", random_state=args.seed)
        seconds = time.perf_counter() - start
        print(f"{args.trials} trials of {len(X)} rows: {seconds:.0f} s", flush=True)
        print(found, flush=True)
        tried = [method for name, method in found.methods.items() if "→" in name]
        # The last drawn are as good a sample as any, and their loops are compiled.
        each = alone(X, tried[-args.alone :]) if tried else float("nan")
        total = each * args.trials
        print(f"alone: {each:.1f} s each, {total:.0f} s for {args.trials}: {total / seconds:.1f} times", flush=True)
    if args.ranked:
        for name, tau in taus(X[:2000], args.ranked, args.seed).items():
            print(f"Kendall's tau of {args.ranked} methods by {name}: {tau:.2f}", flush=True)


if __name__ == "__main__":
    main()
