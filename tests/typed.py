"""A user's script, for type checkers: `mypy --strict tests/typed.py` and pyright accept it."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import graphcouple as gc


def main(folder: Path) -> None:
    X, y = gc.datasets.load("iris")
    tsne = gc.TSNE(perplexity=15, random_state=0).fit(X)
    loss: float = tsne.loss_
    Z: NDArray[np.floating] = tsne.embedding_
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(20), n_neighbors="auto")
    posterior = law.posterior(X)
    graph = posterior.sample(rng=0)
    entropy: float = posterior.entropy()
    own = gc.GraphCoupling(law, gc.GraphModel(gc.Student(dof=0.5), gc.FixedEdges()), terms=[gc.LargeScale(weight=1.0)])
    solution = gc.solve(gc.CrossEntropy(posterior, gc.GraphModel("student", "E")), Z, gc.LBFGS(), max_iter=100)
    scores = gc.metrics.evaluate(X, {"t-SNE": Z, "own": own.fit_transform(X)}, y)
    compared = gc.compare({"t-SNE": tsne, "UMAP": gc.UMAP(min_dist=0.2)}, X, y, seeds=2)
    ax = gc.plot(solution.Z, y, title=f"{loss:.3f} {entropy:.3f} {graph.nnz}")
    tsne.save(folder / "map.gc")
    print(ax.get_title(), scores, compared.table, gc.load(folder / "map.gc").transform(X[:3]))
