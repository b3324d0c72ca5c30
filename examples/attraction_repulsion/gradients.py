"""
Do UMAP and LLE pull alike?
===========================

Conjecture 1 of Draganov and Dohn (2023) says that the gradients of UMAP and of LLE with UMAP's kernel have a positive
inner product on average. The figure shows the cosine of their angle, every ten iterations of UMAP from three starts.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphcouple as gc

X, _ = gc.datasets.load("digits")
umap, lle = gc.UMAP().sentence, gc.TwoKernelLLE().sentence
pulls = gc.EffectiveCrossEntropy(umap.input.posterior(X), umap.latent, **umap.coupling.get_params())
neighbors = lle.input.posterior(X).support
energy = gc.ReconstructionEnergy(gc.couplings.reconstruction_weights(X, neighbors), lle.latent.kernel)
_, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for start in ("random", "pca", "spectral"):
    cosines = []

    def see(iteration, loss, Z, cosines=cosines):
        """Compare both gradients at Z."""
        one, other = (of.gradient(np.asarray(Z, dtype=np.float64)) for of in (pulls, energy))
        cosines.append(float(np.vdot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other))))

    # No exaggeration: the run follows the stated loss from the first iteration on.
    gc.UMAP(init=start, early_exaggeration=1.0, max_iter=300, random_state=0, callback=see).fit(X)
    print(f"{start:10} positive {np.mean(np.array(cosines) > 0):4.0%}, mean {np.mean(cosines):.3f}")
    ax.plot(10 * np.arange(len(cosines)), cosines, label=start)
ax.set(xlabel="iteration", ylabel="cosine of the two gradients")
ax.axhline(0.0, color="0.7", lw=0.8)
ax.legend(title="start", frameon=False)
