"""
Theorem 1: places of components are free
========================================

A graph's field is normalisable on the centred points, and never on the whole space. For a graph of two pairs and a
triangle (7 points, R = 3 components) in the plane (p = 2), the integral over a box of side s grows like s^(Rp) = s⁶
for every kernel that the theorem admits. Kernels that are not integrable on the plane, among them the latent kernels
of t-SNE and UMAP, have no normaliser at all.

Paper: Van Assel, Espinasse, Chiquet and Picard (2022), theorem 1.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphcouple as gc

KERNELS = {
    "Gaussian": gc.Gaussian(),
    "Exponential": gc.Exponential(),
    "Student(3)": gc.Student(3.0),
    "Student(1), t-SNE's": gc.Student(),
    "UMAP's latent odds": gc.Odds(gc.RationalPower.from_min_dist()),
}
W = np.zeros((7, 7))
W[tuple(np.transpose([(0, 1), (2, 3), (4, 5), (5, 6), (6, 4)]))] = 1
sides = np.logspace(0, 4, 17)
_, ax = plt.subplots(figsize=(7, 5), layout="constrained")
for name, kernel in KERNELS.items():
    mrf = gc.PairwiseMRF(kernel)
    centred = mrf.log_normalizer(W, 2, rng=0)
    if np.isinf(centred.value):
        print(f"{name:22} has no normaliser: {kernel.assumptions(2)}")
        continue
    logs = np.array([mrf.log_box_integral(W, 2, side, rng=0, n_samples=40_000).value for side in sides])
    slope = np.polyfit(np.log(sides[-5:]), logs[-5:], 1)[0]
    print(f"{name:22} log integral {centred.value:.4f} ± {centred.standard_error:.4f}, exponent {slope:.3f}")
    ax.plot(sides, logs / np.log(10), marker=".", label=f"{name}, exponent {slope:.2f}")
ax.set(xscale="log", xlabel="side s of the box", ylabel="log₁₀ of the integral over the box")
ax.set_title("The integral over a box grows like $s^{Rp}$, here $s^6$")
ax.legend(frameon=False)
