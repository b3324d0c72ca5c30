"""How low descent ends at its defaults: a grid of compositions against an independent search, and t-SNE against peers.

    python benchmarks/descent.py                     # the whole grid
    python benchmarks/descent.py --confinement 0     # without the bound on the size of maps, as the search is
    python benchmarks/descent.py --only iris         # compositions whose name contains a text
    python benchmarks/descent.py --init random       # from another start than the default, ccPCA
    python benchmarks/descent.py --separated         # compositions of graphs in pieces: are the maps compact?
    python benchmarks/descent.py --panel             # t-SNE against scikit-learn's exact method and openTSNE
    python benchmarks/descent.py --data X.npy        # both, for one's own points

The search is scipy's L-BFGS-B on exact sums, from PCA at two sizes and from two random starts, for 2,000 iterations
each. Its losses are kept in a file (`--best`), and so is a lower loss of the defaults. With an empty file the search
takes an hour. Excess is the share of the best known height above the lower bound by which a run ends higher.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import descent_grid as grid
import numpy as np
from scipy.optimize import minimize
from separated import scores

import graphcouple as gc
from graphcouple.optimize import best_scale, is_collapsed

SEARCH_ITERATIONS = 2000
BEST = Path(__file__).with_name("descent_best.json")


def search(composition: grid.Composition) -> float:
    """Return the lowest loss that scipy finds."""
    objective = composition.objective()
    n, q = objective.n_points, composition.q
    X = composition.points - composition.points.mean(axis=0)
    principal = np.linalg.svd(X, full_matrices=False)[0][:, :q]
    principal = np.pad(principal, ((0, 0), (0, q - principal.shape[1]))) / principal[:, 0].std()
    rng = np.random.default_rng(0)
    starts = [(principal, 1.0), (principal, 0.2), (rng.normal(size=(n, q)), 1.0), (rng.normal(size=(n, q)), 1.0)]

    def evaluate(flat):
        loss, gradient = objective.value_and_grad(flat.reshape(n, q))
        return loss / n, gradient.ravel() / n

    found = []
    for Z, factor in starts:
        Z = Z + 1e-4 * rng.normal(size=(n, q))
        start = Z * best_scale(objective, Z) * factor
        options = {"maxiter": SEARCH_ITERATIONS, "maxfun": 2 * SEARCH_ITERATIONS, "ftol": 1e-9, "gtol": 0.0}
        found.append(n * float(minimize(evaluate, start.ravel(), jac=True, method="L-BFGS-B", options=options).fun))
    return min(found)


def measure(composition: grid.Composition, **options: Any) -> dict[str, float]:
    """Return the default run's loss under exact sums, its seconds, and whether it collapsed."""
    start = time.perf_counter()
    fitted = composition.estimator(random_state=0, **options).fit(composition.points)
    seconds = time.perf_counter() - start
    objective = composition.objective()
    Z = fitted.embedding_
    loss = objective.value(Z)
    return {"loss": loss, "seconds": seconds, "collapsed": is_collapsed(objective, Z, loss), "n_iter": fitted.n_iter_}


def report(rows: list[dict]) -> None:
    """Print the worst compositions and the summary."""
    excess = np.array([row["excess"] for row in rows])
    seconds = np.array([row["seconds"] for row in rows])
    for row in sorted(rows, key=lambda row: -row["excess"])[:15]:
        print(f"{100 * row['excess']:8.2f} %  {row['seconds']:6.1f} s  {row['name']}")
    print(
        f"\n{len(rows)} compositions: {sum(row['collapsed'] for row in rows)} collapsed; excess best "
        f"{100 * excess.min():.2f} %, median {100 * np.median(excess):.2f} %, worst {100 * excess.max():.2f} %; "
        f"within 1 %: {np.mean(excess <= 0.01):.1%}, within 5 %: {np.mean(excess <= 0.05):.1%}; "
        f"{seconds.sum():.0f} s, median {np.median(seconds):.2f} s"
    )


def run_grid(names: str, best_file: Path, **options: Any) -> None:
    """Measure every composition whose name contains the text."""
    known = json.loads(best_file.read_text()) if best_file.exists() else {}
    rows = []
    for composition in grid.grid():
        name = str(composition)
        if names not in name:
            continue
        if name not in known:
            known[name] = search(composition)
        row = {"name": name, **measure(composition, **options)}
        bound = composition.objective().lower_bound
        known[name], before = min(known[name], row["loss"]), known[name]
        height = before - bound if bound > -np.inf else abs(before)
        row["excess"] = (row["loss"] - before) / height
        best_file.write_text(json.dumps(known, indent=0))
        rows.append(row)
        print(f"{100 * row['excess']:8.2f} %  {row['seconds']:6.1f} s  {row['n_iter']:5d}  {name}", flush=True)
    print("\nThe worst:")
    report(rows)


def run_separated(names: str, init: str) -> None:
    """Print the size of the map over a cluster's, points that share a place, R(10) and how each run ended."""
    spreads: dict[int, list[float]] = {1: [], 2: [], 3: []}
    for composition in grid.separated():
        if names not in str(composition):
            continue
        X, sizes = composition.points, grid.PIECES[composition.data]
        y = np.repeat(np.arange(len(sizes)), sizes)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = composition.estimator(random_state=0, init=init).fit(X)
        kept, spread, _, _, places, _ = scores(X, y, fitted.embedding_)
        spreads[composition.q].append(spread)
        ended = "; ".join([fitted.stop_reason_[:30], *(str(one.message)[:60] for one in caught)])
        print(f"{spread:9.1f} {len(X) - places:4d} {kept:5.3f}  {composition}  {ended}", flush=True)
    for q, found in spreads.items():
        if found:
            shares = ", ".join(f"{np.sum(np.array(found) > bound)} above {bound:,}" for bound in (100, 300, 1000))
            print(f"q={q}: spread of {len(found)} maps: median {np.median(found):.1f}, {shares}")


def panel(names: list[str]) -> None:
    """Print t-SNE's KL divergence beside the peers', on the same affinities where they can be passed."""
    print(
        f"{'data':16} {'perplexity':>10} {'ours':>8} {'s':>6} {'scikit-learn':>12} {'s':>6} "
        f"{'openTSNE':>9} {'worst':>8}"
    )
    for name in names:
        X = grid.points(name)
        for perplexity in (5.0, 30.0, len(X) / 10.0, len(X) / 3.0 - 1.0):
            start = time.perf_counter()
            fitted = gc.TSNE(perplexity=perplexity, n_neighbors=None, random_state=0).fit(X)
            ours, seconds = fitted.kl_divergence_, time.perf_counter() - start
            objective = gc.CrossEntropy(fitted.posterior_, gc.GraphModel(gc.Student(), "E"))
            start = time.perf_counter()
            theirs = {"scikit-learn": _scikit_learn(X, perplexity)}
            peer_seconds = time.perf_counter() - start
            theirs["openTSNE"] = _open_tsne(X, perplexity)
            kl = {peer: objective.kl_divergence(Z) for peer, Z in theirs.items() if Z is not None}
            worst = max(ours / value - 1.0 for value in kl.values())
            print(
                f"{name:16} {perplexity:10.1f} {ours:8.4f} {seconds:6.1f} {kl['scikit-learn']:12.4f} "
                f"{peer_seconds:6.1f} {kl.get('openTSNE', np.nan):9.4f} {100 * worst:+7.2f} %",
                flush=True,
            )


def _scikit_learn(X, perplexity):
    from sklearn.manifold import TSNE

    return TSNE(perplexity=perplexity, method="exact", init="pca", random_state=0).fit_transform(X)


def _open_tsne(X, perplexity):
    try:
        from openTSNE import TSNE
    except ImportError:
        return None
    return np.asarray(TSNE(perplexity=perplexity, neighbors="exact", random_state=0).fit(X))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="text that a composition's name must contain")
    parser.add_argument("--best", type=Path, default=BEST, help="file of best known losses")
    parser.add_argument("--n-starts", type=lambda text: text if text == "auto" else int(text), default="auto")
    parser.add_argument("--init", default="ccpca", help="the start")
    parser.add_argument("--confinement", type=float, default=1.0, help="weight of the bound on the size of maps")
    parser.add_argument("--separated", action="store_true", help="graphs in pieces instead of the grid")
    parser.add_argument("--panel", action="store_true", help="t-SNE against the peers instead of the grid")
    parser.add_argument("--data", type=Path, action="append", default=[], help="file of points, as `embed` reads them")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.separated:
        run_separated(arguments.only, arguments.init)
        return
    own = [grid.add(path) for path in arguments.data]
    if not arguments.panel:
        run_grid(
            arguments.only or ("" if not own else own[0]),
            arguments.best,
            n_starts=arguments.n_starts,
            init=arguments.init,
            optimizer=gc.Descent(confinement=arguments.confinement),
        )
    if arguments.panel or own:
        panel(own or list(grid.BUNDLED))


if __name__ == "__main__":
    main()
