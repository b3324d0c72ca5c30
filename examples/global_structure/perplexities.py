"""ccPCA over perplexities (figure 4 of the graph-coupling paper).

    python examples/global_structure/perplexities.py [--data digits] [--output perplexities.png]
    python examples/global_structure/perplexities.py --images images-idx3-ubyte.gz --labels labels-idx1-ubyte.gz

The higher the perplexity, the likelier the hidden graph's edges from one cluster to another: components merge, and
ccPCA comes closer to PCA. Printed are the mean number of components, the share of the points in the largest one, the
share of the possible edges within components that join points of one class, and the Monte Carlo error.
"""

import time

from matplotlib.figure import Figure
from scipy.linalg import orthogonal_procrustes
from starts import read_options

import graphcouple as gc

PERPLEXITIES = (10, 20, 30, 50, 100, 200)


def main():
    X, y, output = read_options(__doc__, "perplexities.png")
    figure = Figure(figsize=(13.5, 8), layout="constrained")
    axes = figure.subplots(2, 3)
    print(f"{'perplexity':>10}{'components':>12}{'largest':>9}{'of one class':>14}{'error':>8}{'seconds':>9}")
    before = None
    for ax, perplexity in zip(axes.ravel(), PERPLEXITIES, strict=True):
        if perplexity >= len(X) - 1:
            ax.remove()
            continue
        begin = time.perf_counter()
        ccpca = gc.CCPCA(perplexity=perplexity, random_state=0).fit(X)
        seconds = time.perf_counter() - begin
        largest = sum(size[0] for size in ccpca.component_sizes_) / ccpca.n_samples_ / len(X)
        rows, columns = ccpca.posterior_.support.rows, ccpca.posterior_.support.indices
        together = ccpca.projection_.co_membership(rows, columns)
        same = float(together[y[rows] == y[columns]].sum() / together.sum())
        count = ccpca.component_counts_.mean()
        print(
            f"{perplexity:10}{count:12.0f}{largest:9.0%}{same:14.1%}{ccpca.relative_error_:8.3f}{seconds:9.1f}",
            flush=True,
        )
        title = f"perplexity {perplexity}: {count:.0f} components"
        # Principal axes have no sign: each picture is turned onto the one before.
        Z = ccpca.embedding_
        Z = Z if before is None else Z @ orthogonal_procrustes(Z, before)[0]
        before = Z
        gc.plot(Z, y, ax=ax, title=title, legend=ax is axes[0, -1])
    figure.savefig(output, dpi=100)
    print(f"saved {output}")


if __name__ == "__main__":
    main()
