"""One knob from strong attraction over UMAP to t-SNE and beyond: Neg-t-SNE along its edge prior.

    python examples/spectrum.py [--output spectrum.png]

Each map of the digits starts from the one before, so that clusters keep their places. Below a map stand the edge prior
π, and t-SNE's KL divergence of the map, which is least near π = n²/(2mZ), with m the negative samples of an edge and Z
the sum of t-SNE's kernel over all pairs (Damrich, Böhm, Hamprecht and Kobak 2023, figure 1).
"""

import argparse

import numpy as np
from matplotlib.figure import Figure
from scipy.spatial.distance import pdist

import graphcouple as gc


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", default="spectrum.png")
    asked = parser.parse_args()
    X, y = gc.datasets.load("digits")
    tsne = gc.TSNE(random_state=0).fit(X)
    objective = gc.CrossEntropy(tsne.posterior_, gc.GraphModel(gc.Student(), "E"))
    method = gc.NegTSNE(warm_start=True, random_state=0)
    whole = float((1.0 / (1.0 + pdist(tsne.embedding_, "sqeuclidean"))).sum())
    at_tsne = len(X) ** 2 / (2.0 * method.negative_sample_rate * whole)
    maps = {}
    for prior in np.geomspace(0.03, 100.0 * at_tsne, 9):
        Z = method.set_params(edge_prior=float(prior)).fit_transform(X)
        maps[f"π = {prior:.2g}"] = Z, objective.kl_divergence(Z)
        print(f"π {prior:8.3g}  KL {objective.kl_divergence(Z):.3f}  size {Z.std():6.1f}")
    maps["t-SNE"] = tsne.embedding_, tsne.kl_divergence_
    figure = Figure(figsize=(20, 8.5), layout="constrained")
    for ax, (name, (Z, divergence)) in zip(figure.subplots(2, 5).flat, maps.items(), strict=True):
        gc.plot(Z, y, ax=ax, title=f"{name}\nKL {divergence:.2f}", legend=False)
    figure.savefig(asked.output, dpi=80)


if __name__ == "__main__":
    main()
