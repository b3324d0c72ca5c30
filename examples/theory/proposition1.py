"""
Proposition 1: the limit of the posterior
=========================================

As the model of the component means becomes uninformative (ε → 0), the exact posterior converges to its simple form. The
total variation distance, by enumeration of all graphs, falls linearly in ε for each prior and kernel.

Paper: Van Assel, Espinasse, Chiquet and Picard (2022), proposition 1.
"""

import matplotlib.pyplot as plt
import numpy as np

import graphcouple as gc

epsilons = np.logspace(1, -5, 9)
kernels = {"Gaussian": gc.Gaussian(), "Student(1)": gc.Student(), "Exponential": gc.Exponential()}
X = np.random.default_rng(0).normal(size=(4, 2))
_, ax = plt.subplots(figsize=(7, 5), layout="constrained")
for prior, n, style in (("B", 3, "-"), ("D", 4, "--"), ("E", 4, ":")):
    for (name, kernel), color in zip(kernels.items(), ("#332288", "#cc6677", "#117733"), strict=True):
        model = gc.GraphModel(kernel, prior)
        limit = gc.finite_epsilon_posterior(model, X[:n], 0.0)
        distances = [gc.finite_epsilon_posterior(model, X[:n], e).total_variation(limit) for e in epsilons]
        order = np.polyfit(np.log(epsilons[-5:]), np.log(distances[-5:]), 1)[0]
        print(f"prior {prior}, {name:12} order {order:.3f}")
        ax.plot(epsilons, distances, style, color=color, label=f"{prior}, {name}")
ax.set(xscale="log", yscale="log", xlabel="ε", ylabel="total variation to the limit posterior")
ax.legend(frameon=False, ncols=3, fontsize=8)
