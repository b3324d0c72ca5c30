"""Do UMAP and LLE with two kernels pull alike? (conjecture 1 of Draganov and Dohn, 2023)

    python examples/attraction_repulsion/gradients.py [--mnist t10k-images-idx3-ubyte.gz] [--output gradients.png]

Along runs of UMAP from noise, from principal components and from Laplacian eigenvectors, the gradient of UMAP's
expected loss and that of LLE with UMAP's kernel: the cosine of their angle every ten iterations, and the share of
positive ones. The conjecture says that the inner product is positive on average. 2,000 MNIST digits, or those of
scikit-learn.
"""

import argparse

import numpy as np
from matplotlib.figure import Figure

import graphcouple as gc

STARTS = ("random", "pca", "spectral")


def measure(X):
    """Return the cosines along a run from each start."""
    umap, lle = gc.UMAP().sentence, gc.TwoKernelLLE().sentence
    pulls = gc.EffectiveCrossEntropy(umap.input.posterior(X), umap.latent, **gc.UMAP().sentence.coupling.get_params())
    neighbors = lle.input.posterior(X).support
    energy = gc.ReconstructionEnergy(gc.couplings.reconstruction_weights(X, neighbors), lle.latent.kernel)
    cosines = {}
    for start in STARTS:
        along = cosines.setdefault(start, [])

        def see(iteration, loss, Z, along=along):
            one, other = (of.gradient(np.asarray(Z, dtype=np.float64)) for of in (pulls, energy))
            along.append(float(np.vdot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other))))

        # No exaggeration: the run follows the stated loss from the first iteration on.
        gc.UMAP(init=start, early_exaggeration=1.0, max_iter=300, n_starts=1, random_state=0, callback=see).fit(X)
    return cosines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist")
    parser.add_argument("--output", default="gradients.png")
    asked = parser.parse_args()
    X, _ = gc.datasets.load("mnist", asked.mnist) if asked.mnist else gc.datasets.load("digits")
    cosines = measure(np.asarray(X[:2000], dtype=np.float64))
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    along, spread = figure.subplots(1, 2)
    for start, values in cosines.items():
        values = np.array(values)
        print(f"{start:10} positive {np.mean(values > 0):6.1%}   mean {values.mean():6.3f}   least {values.min():6.3f}")
        along.plot(10 * np.arange(values.size), values, label=start)
        spread.hist(values, bins=np.linspace(-1, 1, 41), histtype="step", label=start)
    along.set(xlabel="iteration", ylabel="cosine of the two gradients")
    along.axhline(0.0, color="0.7", lw=0.8)
    along.legend()
    spread.set(xlabel="cosine", ylabel="iterations", xticks=np.linspace(-1, 1, 5))
    figure.savefig(asked.output, dpi=120)


if __name__ == "__main__":
    main()
